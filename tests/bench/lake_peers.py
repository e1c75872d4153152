"""Peers of the lake: a PostgreSQL that syncs, and a git repository with the same names."""
import glob
import os
import resource
import shutil
import subprocess
import tempfile

from lab import Unmeasured, free_port

CHANGED, FOLDER = 10, 1000  # folders that diff and merge find changed, and the objects of one


class Postgres:
    """On a unix socket; the lab ends it. PostgreSQL refuses to run as root."""

    def __init__(self, lab):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        if not programs:
            raise Unmeasured("PostgreSQL is not installed (tools/setup bench)")
        self.programs, self.user = programs[-1], "postgres" if os.geteuid() == 0 else None
        self.folder = tempfile.mkdtemp(prefix="weir-bench-postgres-")
        if self.user:
            shutil.chown(self.folder, self.user)
        port, data = free_port(), os.path.join(self.folder, "data")
        subprocess.run([self.program("initdb"), "-D", data, "-U", "weir", "-A", "trust", "-N"], user=self.user, check=True,
                       cwd="/", stdout=subprocess.DEVNULL, env={"PATH": os.environ["PATH"]})
        command = [self.program("postgres"), "-D", data, "-k", self.folder, "-p", str(port), "-c", "listen_addresses=",
                   "-c", "max_connections=200"]
        if self.user:
            command = ["setpriv", "--reuid", self.user, "--regid", self.user, "--clear-groups", *command]
        self.server = lab.start("postgres", command)
        self.url = f"postgres://weir@/postgres?host={self.folder}&port={port}"
        lab.wait(self.server, lambda: subprocess.run([self.program("pg_isready"), "-q", "-h", self.folder, "-p", str(port)],
                                                     check=False).returncode == 0, pause=0.1)

    def program(self, name):
        return os.path.join(self.programs, name)

    def remove(self, lab):
        lab.stop(self.server)
        shutil.rmtree(self.folder, ignore_errors=True)


def child_cpu(run):
    """Seconds of CPU of the processes that run() starts and waits for."""
    def now():
        used = resource.getrusage(resource.RUSAGE_CHILDREN)
        return used.ru_utime + used.ru_stime
    before = now()
    run()
    return now() - before


class Git:
    """A repository with a commit of `objects` names, by plumbing. References are synced, as weir's branches are."""
    EMPTY = "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"

    def __init__(self, lab, objects):
        self.folder, self.objects = lab.folder("git"), objects
        self.git("init", "-q", "--bare", ".")
        self.git("hash-object", "-w", "--stdin", text="")
        names = "".join(f"100644 {self.EMPTY}\t{self.path(n)}\n" for n in range(objects))
        self.git("update-index", "--index-info", text=names)
        tree = self.git("write-tree")
        self.commit = self.git("commit-tree", tree, "-m", "bench")
        self.branches = 0

    @staticmethod
    def path(n):
        return f"table/date={n // 1000:04}/part-{n:09}.parquet"

    def git(self, *args, text=None):
        env = {"PATH": os.environ["PATH"], "HOME": self.folder, "GIT_DIR": self.folder, "GIT_AUTHOR_NAME": "bench",
               "GIT_AUTHOR_EMAIL": "bench@localhost", "GIT_COMMITTER_NAME": "bench", "GIT_COMMITTER_EMAIL": "bench@localhost"}
        done = subprocess.run(["git", "-c", "core.fsync=reference", *args], input=text, capture_output=True, text=True,
                              env=env, cwd=self.folder)
        if done.returncode != 0:
            raise Unmeasured(f"git {args[0]}: {done.stderr[-200:]}")
        return done.stdout.strip()

    def lookups(self, random, count):
        """CPU of a lookup, in us, by one process for all of them."""
        asked = "".join(f"{self.commit}:{self.path(random.randrange(self.objects))}\n" for _ in range(count))
        return child_cpu(lambda: self.git("cat-file", "--batch-check", text=asked)) / count * 1e6

    def make_branches(self, count):
        """CPU of a branch, in us: one process, a transaction for each branch."""
        first, self.branches = self.branches, self.branches + count
        asked = "".join(f"start\ncreate refs/heads/b{n} {self.commit}\nprepare\ncommit\n"
                        for n in range(first, self.branches))
        return child_cpu(lambda: self.git("update-ref", "--stdin", text=asked)) / count * 1e6

    def change(self, name, first):
        """A commit on the first one with ten folders changed, at equal distances from `first` on."""
        step, blob = self.objects // FOLDER // CHANGED, self.git("hash-object", "-w", "--stdin", text=name)
        folders = [(first + i * step) * FOLDER for i in range(CHANGED)]
        names = "".join(f"100644 {blob}\t{self.path(n)}\n" for at in folders for n in range(at, at + FOLDER))
        self.git("read-tree", self.commit)
        self.git("update-index", "--index-info", text=names)
        return self.git("commit-tree", self.git("write-tree"), "-p", self.commit, "-m", name)

    def diff_and_merge(self, repeats):
        """Seconds of CPU of diffs of 10,000 changes, and of merges of as many on both sides."""
        left, right = self.change("left", 1), self.change("right", 50)
        found = self.git("diff-tree", "-r", "--name-only", self.commit, left).count("\n") + 1
        if found != CHANGED * FOLDER:
            raise Unmeasured(f"git diff-tree: {found} differences")
        diffs = [child_cpu(lambda: self.git("diff-tree", "-r", self.commit, left)) for _ in range(repeats)]
        merges = [child_cpu(lambda: self.git("merge-tree", "--write-tree", right, left)) for _ in range(repeats)]
        return diffs, merges
