"""Repositories with a random history, the program that keeps bundles of them, and what a bundle must hold.

Real git makes every repository and every pack. Each bundle is cloned by the system's git and read by dulwich.
"""
import hashlib
import io
import os
import random
import shutil
import subprocess

from conftest import BUILD, check_sanitizers

ENV = {"GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@x", "GIT_COMMITTER_NAME": "c", "GIT_COMMITTER_EMAIL": "c@x",
       "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null", "PATH": os.environ["PATH"], "HOME": "/nonexistent",
       "GIT_AUTHOR_DATE": "1700000000 +0000", "GIT_COMMITTER_DATE": "1700000000 +0000", "LC_ALL": "C"}
LEFT_OUT = ("refs/pull/", "refs/keep-around/", "refs/weir/")


def git(folder, *args, stdin=None, status=0):
    done = subprocess.run(["git", *args], cwd=folder, env=ENV, input=stdin, capture_output=True, check=False)
    assert done.returncode == status, (args, done.returncode, done.stderr.decode(errors="replace"))
    return done.stdout.decode(errors="surrogateescape")


class Repository:
    """A bare repository that others push to."""

    def __init__(self, folder, sha256=False, bitmaps=True, seed=0):
        self.folder, self.random, self.bitmaps, self.clock = str(folder), random.Random(seed), bitmaps, 0
        self.commits, self.trees = [], []
        os.makedirs(self.folder)
        git(self.folder, "init", "-q", "--bare", "-b", "main", *(["--object-format=sha256"] if sha256 else []), ".")
        git(self.folder, "config", "gc.auto", "0")

    def git(self, *args, **more):
        return git(self.folder, *args, **more)

    def refs(self):
        """Name to id, as they are."""
        lines = self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines()
        return {name: oid for oid, name in (line.split(" ", 1) for line in lines)}

    def kept(self):
        return {name: oid for name, oid in self.refs().items()
                if not (name.startswith(LEFT_OUT) and (name.endswith("/merge") or not name.startswith("refs/pull/")))}

    def objects(self):
        """The ids of everything that the kept refs lead to."""
        tips = "".join(oid + "\n" for oid in self.kept().values()).encode()
        return set(self.git("rev-list", "--objects", "--no-object-names", "--stdin", stdin=tips).split())

    def head(self):
        return self.git("symbolic-ref", "HEAD").strip()

    def blob(self, data):
        return self.git("hash-object", "-w", "--stdin", stdin=data).strip()

    def commit(self, branch=None, files=None, parents=None, size=2000):
        """A commit with a changed file or two; the branch moves to it."""
        self.clock += 1
        files = files if files is not None else {
            f"file{self.random.randrange(12)}": self.random.randbytes(self.random.randrange(1, size)) * 2 for _ in range(2)}
        refs = self.refs()
        if parents is None:
            parents = [refs[f"refs/heads/{branch}"]] if f"refs/heads/{branch}" in refs else []
        stream = [f"commit refs/made\ncommitter c <c@x> {1700000000 + self.clock} +0000\ndata 2\nhi\n".encode()]
        stream += [f"{'from' if i == 0 else 'merge'} {oid}\n".encode() for i, oid in enumerate(parents)]
        for name, data in files.items():
            stream.append(f"M 100644 inline {name}\ndata {len(data)}\n".encode() + data + b"\n")
        self.git("fast-import", "--quiet", "--force", stdin=b"".join(stream) + b"\n")
        oid = self.git("rev-parse", "refs/made").strip()
        self.git("update-ref", "-d", "refs/made")
        if branch:
            self.git("update-ref", f"refs/heads/{branch}", oid)
        self.commits.append(oid)
        return oid

    def revert(self, branch):
        """A commit whose tree is that of an older one."""
        tip = self.refs().get(f"refs/heads/{branch}")
        alive = [c for c in self.commits if self.there(c)]
        if not tip or not alive or self.git("cat-file", "-t", tip).strip() != "commit":
            return
        self.clock += 1
        tree = self.git("rev-parse", self.random.choice(alive) + "^{tree}").strip()
        oid = self.git("commit-tree", tree, "-p", tip, "-m", f"revert {self.clock}").strip()
        self.git("update-ref", f"refs/heads/{branch}", oid)
        self.commits.append(oid)

    def there(self, oid):
        return subprocess.run(["git", "cat-file", "-e", oid], cwd=self.folder, env=ENV, capture_output=True,
                              check=False).returncode == 0

    def some_branch(self):
        names = [n[11:] for n in self.refs() if n.startswith("refs/heads/")]
        return self.random.choice(names) if names else "main"

    def step(self):
        """One change of a kind that happens at a forge."""
        r = self.random
        kind = r.choice(["commit"] * 4 + ["revert", "revert", "force", "delete", "create", "tag", "tag", "note", "pull", "gc",
                                          "head", "merge"])
        alive = [c for c in self.commits if self.there(c)]
        branch = self.some_branch()
        if kind == "commit" or not alive:
            self.commit(branch)
        elif kind == "revert":
            self.revert(branch)
        elif kind == "force":
            self.git("update-ref", f"refs/heads/{branch}", r.choice(alive)) if r.random() < .5 else \
                self.commit(branch, parents=[r.choice(alive)])
        elif kind == "delete":
            if r.random() < .8:
                self.git("update-ref", "-d", f"refs/heads/{branch}")
        elif kind == "create":
            self.git("update-ref", f"refs/heads/b{r.randrange(6)}", r.choice(alive))
        elif kind == "tag":
            name, target = f"t{r.randrange(5)}", r.choice(alive)
            if r.random() < .3:
                target = self.blob(r.randbytes(50)) if r.random() < .5 else \
                    self.git("rev-parse", target + "^{tree}").strip()
            self.git(*(["tag", "-f", name, target] if r.random() < .5 else ["tag", "-f", "-a", "-m", "x", name, target]))
        elif kind == "note":
            self.git("notes", "add", "-f", "-m", f"note {r.random()}", r.choice(alive))
        elif kind == "pull":
            n = r.randrange(4)
            self.git("update-ref", f"refs/pull/{n}/head", self.commit(parents=[r.choice(alive)]))
            self.git("update-ref", f"refs/pull/{n}/merge", self.commit(parents=r.sample(alive, min(2, len(alive)))))
        elif kind == "gc":
            self.gc()
        elif kind == "head":
            self.git("symbolic-ref", "HEAD", f"refs/heads/{branch}")
        elif kind == "merge":
            self.commit(branch, parents=r.sample(alive, min(len(alive), 2)))

    def gc(self):
        self.git("reflog", "expire", "--expire=now", "--all")
        self.git("repack", "-q", "-a", "-d", *(["-b"] if self.bitmaps else ["--no-write-bitmap-index"]))
        self.git("prune", "--expire=now")


class Keeper:
    """The program tests/tools/bundle_sync."""

    def __init__(self, folder, **options):
        os.makedirs(folder, exist_ok=True)
        self.folder, self.options = str(folder), options
        self.start()

    def start(self):
        self.errors = open(os.path.join(self.folder, "stderr"), "a+", encoding="utf-8")
        self.process = subprocess.Popen(
            [BUILD / "tests/tools/bundle_sync", self.folder, *(f"{k}={v}" for k, v in self.options.items())],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self.errors, text=True, errors="surrogateescape",
            env=dict(os.environ, **ENV))
        assert self.answer()[-1].startswith("ok")

    def answer(self):
        lines = []
        while not (lines and lines[-1].startswith(("ok", "error"))):
            line = self.process.stdout.readline()
            if not line:
                raise EOFError("the keeper has ended: " + self.process_errors())
            lines.append(line.rstrip("\n"))
        return lines

    def process_errors(self):
        self.errors.seek(0)
        return self.errors.read()

    def ask(self, *words):
        self.process.stdin.write(" ".join(str(w) for w in words) + "\n")
        self.process.stdin.flush()
        return self.answer()

    def do(self, *words):
        lines = self.ask(*words)
        assert lines[-1].startswith("ok"), lines[-1]
        return lines

    def sync(self, key, now, repository, version=2):
        """What happened, and its numbers."""
        words = self.do("sync", key, now, repository.folder, version)[-1].split()[1:]
        return words[0], {k: int(v) for k, v in (w.split("=") for w in words[1:])}

    def get(self, key):
        path = os.path.join(self.folder, "out.bundle")
        self.do("get", key, path)
        return path

    def at(self, key, time):
        lines = self.do("at", key, time)[:-1]
        return {name: oid for oid, name in (line.split(" ", 1) for line in lines if not line.startswith("HEAD "))}

    def stop(self):
        self.process.stdin.close()
        assert self.process.wait(60) == 0
        self.process.stdout.close()
        check_sanitizers(self.process_errors())
        self.errors.close()


def header_of(bundle):
    """The refs of a bundle in their order, and where its pack begins."""
    with open(bundle, "rb") as f:
        assert f.readline() in (b"# v2 git bundle\n", b"# v3 git bundle\n")
        refs = []
        while (line := f.readline()) != b"\n":
            if not line.startswith(b"@"):
                oid, name = line.decode(errors="surrogateescape").rstrip("\n").split(" ", 1)
                refs.append((name, oid))
        return refs, f.tell()


def read_by_dulwich(bundle, may_have_ref_deltas=False):
    """The ids of all objects, as a second implementation computes them. A delta may name its base by id only if the
    server gave such deltas."""
    from dulwich.bundle import read_bundle
    from dulwich.pack import REF_DELTA, PackData
    refs, at = header_of(bundle)
    with open(bundle, "rb") as f:
        assert {k.decode(errors="surrogateescape"): v.decode() for k, v in read_bundle(f).references.items()} == dict(refs)
    with open(bundle, "rb") as f:
        f.seek(at)
        raw = f.read()
    pack = PackData(None, io.BytesIO(raw), len(raw))
    pack.check()
    assert may_have_ref_deltas or all(o.pack_type_num != REF_DELTA for o in pack.iter_unpacked())
    return [entry[0].hex() for entry in pack.iterentries()]


def clone(bundle, folder):
    """A mirror that the system's git makes of the bundle alone."""
    shutil.rmtree(folder, ignore_errors=True)
    subprocess.run(["git", "clone", "-q", "--mirror", bundle, folder], env=ENV, check=True, capture_output=True)
    return folder


def check_bundle(bundle, repository, objects, folder, sha256=False):
    """The bundle holds the refs of the repository, exactly these objects, and HEAD; git and dulwich agree."""
    copy = clone(bundle, folder)
    lines = git(copy, "for-each-ref", "--format=%(objectname) %(refname)").splitlines()
    refs = {name: oid for oid, name in (line.split(" ", 1) for line in lines)}
    now = {name: oid for name, oid in refs.items() if not name.startswith("refs/weir/")}
    assert now == repository.kept()
    assert dict((n, o) for n, o in header_of(bundle)[0] if n != "HEAD") == refs
    git(copy, "fsck", "--full", "--strict", "--no-dangling")
    have = git(copy, "cat-file", "--batch-all-objects", "--batch-check=%(objectname)").split()
    assert set(have) == objects
    head = repository.head()
    if head in now:
        same = [n for n in now if n.startswith("refs/heads/") and now[n] == now[head]]
        assert git(copy, "symbolic-ref", "HEAD").strip() == head or "refs/heads/master" in same or len(same) > 1
        assert git(copy, "rev-parse", "HEAD").strip() == now[head]
    if not sha256:
        assert set(read_by_dulwich(bundle)) == objects
    return refs


def digest(path):
    with open(path, "rb") as f:
        return hashlib.sha256(f.read()).hexdigest()
