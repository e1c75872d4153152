"""A place to try the archive: a git server (git_lab.py), a forge (forge_lab.py), and weir between them and its storage.

    lab = Archive(tmp_path, serve, weir)
    repo = lab.add_repo("octocat", "Hello-World", commits=20)      # at the git server and at the forge
    lab.add("octocat")                                             # weir archive add HOST/octocat
    lab.sync("octocat")                                            # weir archive sync --watch
    lab.same("octocat", "Hello-World", repo)                       # clones the bundle, and compares refs and objects
"""
import hashlib
import json
import time

from bundle_lab import read_by_dulwich
from conftest import wait_for
from forge_lab import Forge
from git_lab import GitLab, git

# A test waits neither a week for the next look nor 10 s for the end of a lock between two syncs of an account.
LOCK_S = 3
FAST = ("--archive.look=0s", "--archive.resync_after=365d", f"--archive.lock={LOCK_S}s", "--archive.rate=1000")


def folders(login):
    """The four folders of an account."""
    digest = hashlib.sha256(login.lower().encode()).hexdigest()
    return "/".join(digest[i:i + 2] for i in range(0, 8, 2))


class Archive:
    def __init__(self, folder, serve, weir, kind="github", args=(), storages="", redis=None, token=True, options="",
                 host=None, serve_args=()):
        self.folder, self.start, self.command = folder, serve, weir
        self.git = GitLab(folder / "git")
        self.forge = Forge(kind, git=self.git.base)
        self.host = host or self.forge.host
        self.bucket = self.host.replace(":", "-")
        self.token = self.forge.add_token("ghp_" + "t" * 20) if token else None
        self.redis = redis
        self.args = [*FAST, *args]
        if redis:
            self.args += ["--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}"]
        self.config = (f"forges:\n  '{self.host}':\n    kind: {kind}\n    api: {self.forge.api}\n    git: {self.git.base}\n" +
                       (f"    token: {self.token}\n" if token else "") + options + storages)
        self.repos, self.objects = {}, None     # objects: the server whose endpoint has the objects
        self.server = self.serve(*serve_args)

    def serve(self, *args, **more):
        self.server = self.start(*self.args, *args, config=self.config, **more).ready()
        return self.server

    def close(self):
        self.forge.stop()
        self.git.stop()

    # --- what there is to archive ---

    def add_repo(self, login, name, commits=3, at_forge=True, format="sha1", **fields):
        """A repository at the git server and at the forge."""
        if login.lower() not in self.forge.accounts:
            self.forge.add_account(login)
        repo = self.git.repo(f"{login}/{name}", commits=commits, format=format)
        if at_forge:
            self.forge.add_repo(login, name, **fields)
        self.repos[login, name] = repo
        return repo

    def push(self, login, name, at=None):
        """Tells the forge that something was pushed."""
        self.pushes = getattr(self, "pushes", 0) + 1
        self.forge.push(login, name, at or f"2026-02-01T00:{self.pushes // 60:02}:{self.pushes % 60:02}Z")

    # --- commands ---

    def run(self, *args, status=0):
        done = self.command("archive", *args, "--data", self.server.data, "--url", self.server.url)
        assert status in (None, done.returncode), (done.returncode, done.stdout, done.stderr)
        return json.loads(done.stdout) if "--json" in args and done.stdout else done.stdout + done.stderr

    def member(self, login):
        return f"{self.host}/{login}"

    def add(self, *logins):
        return self.run("add", *(self.member(login) for login in logins), "--json")

    def sync(self, login, status=0):
        return self.run("sync", self.member(login), "--watch", status=status)

    def synced(self, login):
        """Waits for the first full sync."""
        return wait_for(lambda: (a := self.account(login))["last_sync"] and a, f"the sync of {login}")

    def api(self, path, method="GET", body=None, status=200):
        answer = self.server.request(method, "/api/v1/archive" + path, body=body, keys=self.server.keys)
        assert answer.status == status, (answer.status, answer.body)
        return json.loads(answer.body) if answer.body else None

    def account(self, login, status=200):
        return self.api("/accounts/" + self.member(login).replace("/", "%2F"), status=status)

    def repository(self, login, name, status=200):
        return self.api(f"/accounts/{self.member(login).replace('/', '%2F')}/repositories/{name}", status=status)

    def repositories(self, login):
        return {r["name"]: r for r in
                self.api(f"/accounts/{self.member(login).replace('/', '%2F')}/repositories")["repositories"]}

    # --- objects ---

    def s3(self):
        return (self.objects or self.server).s3()

    def key(self, login, rest):
        return f"{folders(login)}/{login.lower()}{rest}"

    def keys(self, login=None):
        """All keys but the verdicts of audits, which are sampled by repository and week."""
        found, s3, more = [], self.s3(), {}
        while True:
            page = s3.list_objects_v2(Bucket=self.bucket, Prefix=folders(login) + "/" if login else "", **more)
            found += [o["Key"] for o in page.get("Contents", []) if not o["Key"].endswith("@audit.json")]
            if not page["IsTruncated"]:
                return found
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def names(self, login):
        """The keys of an account without their folders."""
        return sorted(k[len(folders(login)) + 1:] for k in self.keys(login))

    def head(self, login, rest):
        return self.s3().head_object(Bucket=self.bucket, Key=self.key(login, rest))

    def get(self, login, rest):
        return self.s3().get_object(Bucket=self.bucket, Key=self.key(login, rest))["Body"].read()

    def has(self, login, rest):
        return self.key(login, rest) in self.keys(login)

    def error(self, login, name=None):
        """The first line of an .error object: code, stage and message."""
        text = self.get(login, f"/{name}.error" if name else ".error").decode()
        _, code, stage, message = text.splitlines()[0].split(" ", 3)
        return code, stage, message

    def record(self, login):
        lines = [json.loads(line) for line in self.get(login, ".json").decode().splitlines()]
        return lines[0], [l for l in lines[1:] if "name" in l]

    def uploads(self):
        return self.s3().list_multipart_uploads(Bucket=self.bucket).get("Uploads", [])

    # --- the oracle: git itself ---

    def bundle(self, login, name):
        """The bundle as a file."""
        path = self.folder / f"{login}-{name}-{time.monotonic_ns()}.bundle"
        path.write_bytes(self.get(login, f"/{name}.bundle"))
        return path

    def clone(self, login, name):
        """Clones the bundle by the system's git, checks it, and returns the folder of the clone. A second implementation
        of git, which knows no SHA-256, must find the same objects."""
        path = self.bundle(login, name)
        to = path.with_suffix(".git")
        git("clone", "-q", "--mirror", path, to)
        git("fsck", "--full", "--strict", cwd=to)
        if git("rev-parse", "--show-object-format", cwd=to).strip() == "sha1" and git("for-each-ref", cwd=to):
            objects = git("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", cwd=to).split()
            assert set(read_by_dulwich(path, may_have_ref_deltas=True)) == set(objects)
        return to

    def same(self, login, name, repo=None, left_out=()):
        """Checks that the bundle has the same refs, objects and HEAD as the repository at the git server."""
        repo = repo or self.repos[login, name]
        to = self.clone(login, name)
        found = [line for line in git("for-each-ref", "--format=%(objectname) %(refname)", cwd=to).splitlines()
                 if not line.split()[1].startswith("refs/weir/")]
        wanted = [line for line in repo.refs() if not line.split()[1].startswith(tuple(left_out) or "\0")]
        assert sorted(found) == wanted
        ids = "".join(line.split()[0] + "\n" for line in wanted)
        objects = git("rev-list", "--objects", "--no-object-names", "--stdin", cwd=to, input=ids.encode()).split()
        theirs = repo.git("rev-list", "--objects", "--no-object-names", "--stdin", input=ids.encode()).split()
        assert sorted(objects) == sorted(theirs)
        if wanted:
            assert git("symbolic-ref", "HEAD", cwd=to) == repo.git("symbolic-ref", "HEAD")
        return to

    def check(self):
        """weir's own check finds nothing."""
        assert self.run("check", "--json") == []
