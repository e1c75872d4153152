"""archive/: the backup of a repository beside `git clone --mirror`, `git bundle create --all` and `rclone copyto`, and
beside the bare limit of the work; a repository of 100,001 refs; the backup a hundred commits later; the
schedule of many accounts (archive_schedule.py); the clones that weir serves (archive_serve.py).

ARCHIVE=commits (22000) sets the size of the repository; there are five objects for each commit. The repositories are made
once and kept in the build folder. MEASURES=full,refs measures only what begins with one of these names."""
import os
import resource
import shutil
import subprocess
import sys
import time

import archive_git
import archive_schedule
import archive_serve
from lab import Measure, Unmeasured, accepts, free_port, median, ratios

BOUNDS = {
    "archive/full_wall": (">=", 6), "archive/full_cpu": (">=", 10), "archive/full_hash_cpu": (">=", 20),
    "archive/full_written": ("<=", 0.4), "archive/full_vs_limit": ("<=", 1.5),
    "archive/refs_wall": (">=", 15),
    "archive/zip_cpu": ("<=", 0.7),
    "archive/append_wall": (">=", 3), "archive/append_cpu": (">=", 3), "archive/append_bytes": ("<=", 1.05),
    **archive_schedule.BOUNDS,
    **archive_serve.BOUNDS,
}
COMMITS, REFS, MANY_REFS = int(os.environ.get("ARCHIVE", "22000")), 881, 100001


def wanted(*names):
    """Whether MEASURES asks for one of these measures."""
    asked = os.environ.get("MEASURES")
    return not asked or any(name.startswith(one) for name in names for one in asked.split(","))


def timed(run):
    """Wall time; CPU and bytes written to files by the processes that run() starts and waits for. run() may return more
    figures."""
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    more = run() or {}
    wall, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return {"wall": wall, "cpu": cpu, "written": 512 * (after.ru_oublock - before.ru_oublock), **more}


def fresh(lab, name, like=None):
    """An empty folder, or a copy of another one."""
    path = os.path.join(lab.dir, name)
    shutil.rmtree(path, ignore_errors=True)
    if like:
        subprocess.run(["cp", "-r", like, path], check=True)
    else:
        os.makedirs(path)
    return path


class Backups:
    """The repositories, their server, and the contenders."""

    def __init__(self, lab):
        if not shutil.which("git") or not shutil.which("rclone"):
            raise Unmeasured("git or rclone is not installed (tools/setup archive bench)")
        self.lab = lab
        self.folder = archive_git.repositories(os.path.join(lab.build, "bench-repositories"), COMMITS, REFS, MANY_REFS)
        self.port = free_port()
        server = lab.start("git-server", [sys.executable, os.path.abspath(archive_git.__file__), self.folder, str(self.port)])
        lab.wait(server, lambda: accepts(self.port))

    def url(self, name):
        return f"http://127.0.0.1:{self.port}/{name}"

    def weir(self, way, repository, check="walk", like=None):
        """A sync by weir's own code, into an empty storage or into a copy of one."""
        data = fresh(self.lab, "weir-data", like)
        return timed(lambda: self.lab.run([self.lab.program("tests/bench/bench_archive"), way, data, self.url(repository),
                                           check]))

    def git(self, repository, like=None):
        """The usual way, first or later: a mirror, a bundle of everything, and its copy into the storage's folder."""
        data = fresh(self.lab, "git-data", like)
        mirror, bundle, kept = (os.path.join(data, name) for name in ("mirror", "all.bundle", "kept.bundle"))
        if like:
            archive_git.git(mirror, "remote", "set-url", "origin", self.url(repository))

        def run():
            if like:
                archive_git.git(mirror, "remote", "update", "--prune")
            else:
                archive_git.git(data, "clone", "-q", "--mirror", self.url(repository), mirror)
            archive_git.git(mirror, "bundle", "create", "-q", bundle, "--all")
            subprocess.run(["rclone", "copyto", "--config", os.devnull, bundle, kept], check=True, capture_output=True)
        return timed(run)


def told(results, name):
    return (f"{median(results, name, 'wall'):.2f} s, {median(results, name, 'cpu'):.2f} s CPU, "
            f"{median(results, name, 'written') / 1e6:.0f} MB written")


def times(results, name, figure, peer="git"):
    return ratios(results, peer, name, figure)


def measure_full(lab, b):
    results = lab.interleave({"walk": lambda: b.weir("sync", "large"), "hash": lambda: b.weir("sync", "large", "hash"),
                              "limit": lambda: b.weir("limit", "large"), "git": lambda: b.git("large")})
    ours, peer = told(results, "walk"), told(results, "git")
    yield Measure("archive/full_wall", times(results, "walk", "wall"), ours, peer)
    yield Measure("archive/full_cpu", times(results, "walk", "cpu"), ours, peer)
    yield Measure("archive/full_hash_cpu", times(results, "hash", "cpu"), told(results, "hash"), peer)
    yield Measure("archive/full_written", ratios(results, "walk", "git", "written"), ours, peer)
    yield Measure("archive/full_vs_limit", ratios(results, "walk", "limit", "cpu"), ours, told(results, "limit"))


def measure_refs(lab, b):
    results = lab.interleave({"weir": lambda: b.weir("sync", "refs"), "git": lambda: b.git("refs")}, rounds=1)
    yield Measure("archive/refs_wall", times(results, "weir", "wall"), told(results, "weir"), told(results, "git"))


def smallest_pack(b):
    """Bytes of the pack that git makes of the hundred commits, if it may not be thin."""
    before = archive_git.git(os.path.join(b.folder, "large"), "rev-parse", "--all").decode().split()
    after = archive_git.git(os.path.join(b.folder, "after"), "rev-parse", "--all").decode().split()
    ask = "\n".join([*after, *("^" + oid for oid in before), ""]).encode()
    return len(archive_git.git(os.path.join(b.folder, "after"), "pack-objects", "-q", "--revs", "--stdout",
                               "--delta-base-offset", stdin=ask))


def measure_append(lab, b):
    b.weir("sync", "large")
    b.git("large")
    weir, peer = os.path.join(lab.dir, "weir-before"), os.path.join(lab.dir, "git-before")
    os.rename(os.path.join(lab.dir, "weir-data"), weir)
    os.rename(os.path.join(lab.dir, "git-data"), peer)
    results = lab.interleave({"weir": lambda: b.weir("sync", "after", like=weir), "git": lambda: b.git("after", like=peer)})
    ours, theirs = told(results, "weir"), told(results, "git")
    yield Measure("archive/append_wall", times(results, "weir", "wall"), ours, theirs)
    yield Measure("archive/append_cpu", times(results, "weir", "cpu"), ours, theirs)
    smallest = smallest_pack(b)
    yield Measure("archive/append_bytes", [one["pack"] / smallest for one in results["weir"]],
                  f"{median(results, 'weir', 'pack') / 1e6:.2f} MB", f"{smallest / 1e6:.2f} MB")


def depth_one(repository):
    """The tip of a repository, and the pack that a fetch of depth 1 brings."""
    tip = archive_git.git(repository, "rev-parse", "HEAD").decode().strip()
    objects = archive_git.git(repository, "rev-list", "--objects", "-1", tip)
    return tip, archive_git.git(repository, "pack-objects", "-q", "--stdout", "--delta-base-offset", stdin=objects)


def measure_zip(lab, b):
    """The ZIP file of the default branch beside `git archive`, which has the whole repository at hand."""
    repository = os.path.join(b.folder, "large")
    tip, pack = depth_one(repository)
    folder = fresh(lab, "zip")

    def ours():
        with open(os.path.join(folder, "ours.zip"), "wb") as out:
            subprocess.run([lab.program("tests/bench/bench_zip"), tip, "large", "main", folder], input=pack, stdout=out,
                           stderr=subprocess.DEVNULL, check=True)

    def theirs():
        subprocess.run(["git", "-C", repository, "archive", "--format=zip", "-o", os.path.join(folder, "git.zip"), tip],
                       check=True)
    results = lab.interleave({"weir": lambda: timed(ours), "git": lambda: timed(theirs)})
    yield Measure("archive/zip_cpu", ratios(results, "weir", "git", "cpu"), told(results, "weir"), told(results, "git"))


def measure(lab):
    if wanted("claim"):
        yield from archive_schedule.measure_claims(lab)
    if wanted("rebuild"):
        yield from archive_schedule.measure_rebuild(lab)
    if not wanted("full", "refs", "append", "zip", "serve"):
        return
    b = Backups(lab)
    if wanted("full"):
        yield from measure_full(lab, b)
    if wanted("refs"):
        yield from measure_refs(lab, b)
    if wanted("append"):
        yield from measure_append(lab, b)
    if wanted("zip"):
        yield from measure_zip(lab, b)
    if wanted("serve"):
        yield from archive_serve.measure(lab, os.path.join(b.folder, "large"))
