"""Clones that weir serves from the archive, for room_archive.py: a sync by a whole weir from a forge and a git server of our
own; then the pack of every ref is asked for by a client that drops it, once from weir and once from `git http-backend`.

The CPU is that of weir, and of `git http-backend` with its children; the HTTP server before http-backend is not counted."""
import base64
import http.client
import os
import re
import subprocess
import sys
import time

import archive_git
from lab import TICK, Measure, Unmeasured, accepts, free_port, median, ratios
from room_s3 import start_weir

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "e2e"))
from forge_lab import Forge  # noqa: E402

BOUNDS = {"archive/serve_cpu": ("<=", 0.4)}
CLONES = 3  # in each round
CONFIG = "forges:\n  '{host}':\n    kind: github\n    api: {api}\n    git: {git}\n"


def packets(*lines):
    return b"".join(b"%04x%s" % (len(line) + 4, line) if line else b"0001" for line in lines) + b"0000"


class Remote:
    """A repository at a server, as git asks for it by version 2 of its protocol."""

    def __init__(self, address, path, keys=None):
        self.address, self.path = address, path
        self.headers = {"Git-Protocol": "version=2", "Content-Type": "application/x-git-upload-pack-request"}
        if keys:
            self.headers["Authorization"] = "Basic " + base64.b64encode(f"{keys.access}:{keys.secret}".encode()).decode()

    def ask(self, body):
        """Bytes of the answer, which are dropped, and its beginning."""
        connection = http.client.HTTPConnection(*self.address, timeout=120)
        try:
            connection.request("POST", self.path + "/git-upload-pack", body=body, headers=self.headers)
            answer = connection.getresponse()
            head = answer.read(1 << 20)
            if answer.status != 200:
                raise Unmeasured(f"{self.path}: {answer.status} {head[:200]!r}")
            size, piece = len(head), bytearray(1 << 20)
            while (n := answer.readinto(piece)):
                size += n
            return size, head
        finally:
            connection.close()

    def tips(self):
        _, answer = self.ask(packets(b"command=ls-refs\n", b"object-format=sha1\n", b"", b"peel\n", b"symrefs\n"))
        return sorted(set(re.findall(rb"([0-9a-f]{40}) (?:HEAD|refs/)", answer)))

    def clone(self, tips):
        wants = [b"want %s\n" % tip for tip in tips]
        size, _ = self.ask(packets(b"command=fetch\n", b"object-format=sha1\n", b"", b"ofs-delta\n", b"no-progress\n", *wants,
                                   b"done\n"))
        return size


def children_cpu(pid):
    """Seconds of the children that have ended, with theirs."""
    with open(f"/proc/{pid}/stat") as f:
        return sum(map(int, f.read().rpartition(")")[2].split()[13:15])) / TICK


def start_git(lab, repository):
    """A git server that has the repository as octocat/large.git."""
    root = lab.folder("served")
    os.makedirs(os.path.join(root, "octocat"))
    os.symlink(repository, os.path.join(root, "octocat", "large.git"))
    port = free_port()
    server = lab.start("served-git", [sys.executable, os.path.abspath(archive_git.__file__), root, str(port)])
    lab.wait(server, lambda: accepts(port))
    return server, port


def start_archive(lab, forge):
    """A weir that has the repository in its archive, and the address of its API."""
    config = os.path.join(lab.dir, "archive.yaml")
    with open(config, "w", encoding="utf-8") as f:
        f.write(CONFIG.format(host=forge.host, api=forge.api, git=forge.git))
    weir = start_weir(lab, "weir-archive", None, "--config", config)
    api = re.search(r"API +(http://(\S+):(\d+))", lab.output(weir.server))
    reach = ["--url", api.group(1), "--data", lab.folder("weir-archive")]
    for words in (["add", f"{forge.host}/octocat"], ["sync", f"{forge.host}/octocat", "--watch"]):
        done = subprocess.run([lab.program("weir"), "archive", *words, *reach], capture_output=True, text=True, cwd=lab.dir)
        if done.returncode != 0:
            raise Unmeasured("weir archive: " + (done.stderr or done.stdout)[-300:].strip())
    return weir, (api.group(2), int(api.group(3)))


def measured(remote, tips, cpu):
    before, began = cpu(), time.monotonic()
    sizes = {remote.clone(tips) for _ in range(CLONES)}
    wall = (time.monotonic() - began) / CLONES
    time.sleep(0.05)  # the last child is waited for after its answer has ended
    return {"cpu": (cpu() - before) / CLONES, "wall": wall, "bytes": max(sizes)}


def told(results, name):
    return (f"{median(results, name, 'cpu'):.3f} s CPU, {median(results, name, 'wall'):.2f} s, "
            f"{median(results, name, 'bytes') / 1e6:.0f} MB")


def measure(lab, repository):
    server, port = start_git(lab, repository)
    forge = Forge("github", git=f"http://127.0.0.1:{port}")
    try:
        forge.add_account("octocat")
        forge.add_repo("octocat", "large")
        weir, api = start_archive(lab, forge)
        ours = Remote(api, f"/git/{forge.host}/octocat/large", weir.keys)
        theirs = Remote(("127.0.0.1", port), "/octocat/large.git")
        tips = theirs.tips()
        if not tips or ours.tips() != tips:
            raise Unmeasured("the clones that weir serves have other refs")
        results = lab.interleave({"weir": lambda: measured(ours, tips, weir.server.cpu),
                                  "git": lambda: measured(theirs, tips, lambda: children_cpu(server.pid))})
        yield Measure("archive/serve_cpu", ratios(results, "weir", "git", "cpu"), told(results, "weir"), told(results, "git"))
    finally:
        forge.stop()
