"""The lake killed before and behind each of its steps, and started again.

One script of calls is played against weir_faulty (tests/crash), which kills itself at the step that it is told. Behind the
next start the branch is as after the calls that were answered, or as after one more (L4, L6 of docs/lake.md). The script
is then played to its end. Once the cleaner and a collection have run, the key-value store has no row of a dropped token,
and the storage has no body and no node that nothing refers to. Once the repository is deleted nothing is left at all.
The collection and the deletion are killed, too.
"""
import concurrent.futures
import contextlib
import http.client
import json
import os
import signal
import time
import urllib.parse

import pytest

from conftest import BUILD, Server, wait_for
from keeping_lab import PostgresRows, RedisRows, check_deleted

pytest.importorskip("boto3")
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402

FAULTY = BUILD / "tests/crash/weir_faulty"
GRACE_S = 1
REPOS = "/api/v1/repositories"
STEPS = ["lake.stage:1", "lake.stage:4", "lake.seal:1", "lake.seal:3", "lake.node:1", "lake.node:4", "lake.publish:1",
         "lake.publish:2", "lake.drop:1", "lake.drop:2", "lake.reset:1", "lake.reset:2", "lake.delete_branch:1"]
GC_STEPS = ["lake.gc_mark:1", "lake.gc_mark:3", "lake.gc_tokens:1", "lake.gc_remove:1", "lake.gc_remove:3"]
DELETION_STEPS = ["lake.delete_repo:1", "lake.delete_branch:2", "lake.purge:1", "lake.purge:3",
                  "lake.drop_repo:1"]  # the script deletes a branch itself
KILLS_AT_ONCE = 4
LEASE_S = 120  # the clock of the next start is ahead by so much: leases of the dead process are over
DRAFT_S = 3720  # the same, for tokens that were being filled: they are dropped after an hour


STORES = (RedisRows, PostgresRows)


@pytest.fixture(scope="module", autouse=True)
def postgres_is_removed():
    yield
    PostgresRows.stop()


@pytest.fixture
def kv(request, tmp_path):
    store = request.param(tmp_path / "kv")
    yield store
    store.remove()


def kills(store, steps):
    """Before and behind each step. PostgreSQL, which is slower, has the first time of each step alone."""
    return [f"{when}:{step}" for step in steps for when in ("before", "after") if store is RedisRows or step.endswith(":1")]


def each_kill(steps):
    """Runs a test with each kill, on each store."""
    points = [(store, kill) for store in STORES for kill in kills(store, steps)]
    return pytest.mark.parametrize("kv, kill", points, indirect=["kv"],
                                   ids=[f"{store.__name__[:-4].lower()}-{kill}" for store, kill in points])


# --- weir ---

class Lake:
    """A weir with the bucket lake-data. It can be killed and started again."""

    def __init__(self, folder, kv):
        self.folder, self.kv, self.starts, self.server = folder, kv, 0, None

    def start(self, **env):
        folder = self.folder / str(self.starts)
        folder.mkdir()
        self.starts += 1
        self.server = Server(folder, f"--lake.gc.grace={GRACE_S}s", "--lake.drop.again=100ms", "--lake.gc.every=0s",
                             data=self.folder / "data", binary=FAULTY, env={"WEIR_KV_URL": self.kv.url, **env}).ready()
        self.s3 = self.server.s3()

    def end(self):
        if self.server and self.server.process.poll() is None:
            os.kill(self.server.process.pid, signal.SIGKILL)
            self.server.process.wait()

    def call(self, method, path, body=None, ok=()):
        """The answer's body. Errors are exceptions, but for the statuses of `ok`."""
        answer = self.server.request(method, REPOS + path, body=body, keys=self.server.keys)
        assert answer.status < 300 or answer.status in ok, answer.body
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def list(self, ref):
        found = self.call("GET", f"/repo/refs/{urllib.parse.quote(ref, safe='')}/objects/ls?amount=1000")
        return " ".join(o["path"] for o in found["results"])

    def messages(self):
        return [c["message"] for c in self.call("GET", "/repo/refs/main/commits?amount=100")["results"]]

    def files(self, prefix):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket="lake-data", Prefix=prefix)
        return [o["Key"] for page in pages for o in page.get("Contents", [])]

    def wait(self, condition, what):
        """Waits; meanwhile the tasks of the dead process are made to run now."""
        def look():
            for state in ("retry", "scheduled"):
                tasks = f"/api/v1/queues/lake/tasks?state={state}"
                for task in json.loads(self.server.request("GET", tasks, keys=self.server.keys).body)["tasks"]:
                    self.server.request("POST", f"/api/v1/queues/lake/tasks/{urllib.parse.quote(task['id'], safe='')}/run",
                                        keys=self.server.keys)
            return condition()
        wait_for(look, what)


# --- the script: each call, then what main has with and without its staged changes ---

def body_of(path):
    return b"the body of " + path.encode()


def put(lake, path):
    lake.s3.put_object(Bucket="repo", Key=path, Body=body_of(path))


def commit(lake, branch):
    lake.call("POST", f"/repo/branches/{branch}/commits", {"message": "commit"}, ok=(400,))  # played again: no changes


def reset(lake, what):
    kind = "common_prefix" if what.endswith("/") else "object"
    lake.call("PUT", "/repo/branches/main", {"type": kind, "path": what})


def branch(lake, name):
    lake.call("POST", "/repo/branches", {"name": name, "source": "main"}, ok=(409,))


def unbranch(lake, name):
    lake.call("DELETE", f"/repo/branches/{name}", ok=(404,))


def remove(lake, path):
    lake.s3.delete_object(Bucket="repo", Key=path)


SCRIPT = [
    (put, "main/a", "a", ""),
    (put, "main/b", "a b", ""),
    (commit, "main", "a b", "a b"),
    (put, "main/undone/x", "a b undone/x", "a b"),
    (put, "main/c", "a b c undone/x", "a b"),
    (reset, "undone/", "a b c", "a b"),
    (put, "main/c2", "a b c c2", "a b"),
    (reset, "c2", "a b c", "a b"),
    (branch, "side", "a b c", "a b"),
    (put, "side/s", "a b c", "a b"),
    (unbranch, "side", "a b c", "a b"),
    (remove, "main/b", "a c", "a b"),
    (commit, "main", "a c", "a c"),
    (put, "main/staged", "a c staged", "a c"),
]


def state_after(count):
    return SCRIPT[count - 1][2:] if count else ("", "")


def play(lake, begin):
    """Plays the script from a call on, and returns how many calls of it were answered."""
    for i in range(begin, len(SCRIPT)):
        call, argument = SCRIPT[i][:2]
        try:
            call(lake, argument)
        except (OSError, http.client.HTTPException, BotoCoreError):
            return i
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500 or lake.server.process.poll() is None:
                raise
            return i
    return len(SCRIPT)


def tokens(kv):
    """Partitions of staged rows."""
    return {partition for partition, row in kv.rows() if row.startswith("key/")}


def check_cleaned(lake, kv):
    """The branch has one token with rows, and the cleanup list becomes empty. The clock is too far ahead for S3 meanwhile."""
    assert lake.server.stop() == 0, lake.server.err
    lake.start(FAULT_CLOCK=str(DRAFT_S))
    wait_for(lambda: not [row for row in kv.rows() if row[0] == "cleanup-tokens"], "the cleanup list to be empty")
    assert len(tokens(kv)) == 1
    assert lake.server.stop() == 0, lake.server.err
    lake.start(FAULT_CLOCK=str(LEASE_S))


def check_collected(lake, kv):
    """A collection leaves the bodies of a, b (in the first commit), c and staged, and the nodes of two commits."""
    time.sleep(GRACE_S + 0.2)
    lake.call("POST", "/repo/gc/run", {})
    lake.wait(lambda: lake.call("GET", "/repo/gc/run")["stage"] == "done", "the collection to end")
    assert len(lake.files("repo/data/")) == 4
    assert len(lake.files("repo/_lakefs/")) == 2 * 2 + 1  # a root and a leaf for each commit, and the claim
    for path in ("a", "c", "staged"):
        assert lake.s3.get_object(Bucket="repo", Key="main/" + path)["Body"].read() == body_of("main/" + path)
    assert not [row for row in kv.rows() if row[1].startswith(("gc/kept", "gc/dead"))]


@pytest.fixture
def lake(tmp_path, kv):
    one = Lake(tmp_path, kv)
    yield one
    one.end()


def begin(lake, kill):
    """Starts a weir that is to be killed, and plays the script. Returns how many calls of it were answered."""
    lake.start(FAULT_KILL=kill)
    lake.s3.create_bucket(Bucket="lake-data")
    lake.call("POST", "", {"name": "repo", "storage_namespace": "s3://lake-data/repo"})
    return play(lake, 0)


def start_again(lake):
    lake.server.process.wait(timeout=30)  # drops and tasks come a moment later
    assert lake.server.process.returncode == -signal.SIGKILL, lake.server.err
    lake.start(FAULT_CLOCK=str(LEASE_S))


@each_kill(STEPS)
def test_a_lake_that_is_killed_keeps_its_promises_and_leaves_nothing(lake, kv, kill):
    done = begin(lake, kill)
    start_again(lake)
    assert (lake.list("main"), lake.list("main@")) in (state_after(done), state_after(min(done + 1, len(SCRIPT))))
    assert play(lake, done) == len(SCRIPT)
    assert (lake.list("main"), lake.list("main@")) == state_after(len(SCRIPT))
    assert lake.messages() == ["commit", "commit", "Repository created"]
    check_cleaned(lake, kv)
    check_collected(lake, kv)
    check_deleted(lake, kv, "repo")
    assert lake.server.stop() == 0, lake.server.err


# The tasks of a process that died are found 15 s behind the next start. So several kills are played at once.

def play_kills(folder, store, steps, killed):
    """Calls killed(lake, kv, kill) with a weir and a store of its own for each kill of the steps."""
    def play(kill, lake):
        try:
            assert begin(lake, kill) == len(SCRIPT)
            killed(lake, lake.kv)
            check_deleted(lake, lake.kv, "repo")
            assert not lake.s3.list_multipart_uploads(Bucket="lake-data").get("Uploads")
            assert lake.server.stop() == 0, lake.server.err
        except Exception as e:
            raise AssertionError(f"{kill}: {e}") from e

    lakes = {}
    try:
        for kill in kills(store, steps):
            own = folder / kill.replace(":", "-")
            own.mkdir()
            lakes[kill] = Lake(own, store(own / "kv"))
        with concurrent.futures.ThreadPoolExecutor(KILLS_AT_ONCE) as pool:
            list(pool.map(play, lakes.keys(), lakes.values()))
    finally:
        for lake in lakes.values():
            lake.end()
            lake.kv.remove()


@pytest.mark.parametrize("store", STORES)
def test_a_collection_that_is_killed_leaves_nothing(tmp_path, store):
    def killed(lake, kv):
        time.sleep(GRACE_S + 0.2)
        with contextlib.suppress(OSError, http.client.HTTPException):
            lake.call("POST", "/repo/gc/run", {})
        start_again(lake)
        lake.wait(lambda: lake.call("GET", "/repo/gc/run")["stage"] in ("done", "never"), "the collection to end")
        check_cleaned(lake, kv)
        check_collected(lake, kv)
    play_kills(tmp_path, store, GC_STEPS, killed)


@pytest.mark.parametrize("store", STORES)
def test_a_deletion_that_is_killed_leaves_nothing(tmp_path, store):
    def killed(lake, kv):
        upload = lake.s3.create_multipart_upload(Bucket="repo", Key="main/parts")["UploadId"]
        lake.s3.upload_part(Bucket="repo", Key="main/parts", UploadId=upload, PartNumber=1, Body=b"a part")
        assert len(lake.s3.list_multipart_uploads(Bucket="lake-data")["Uploads"]) == 1
        with contextlib.suppress(OSError, http.client.HTTPException):
            lake.call("DELETE", "/repo?purge=true")
        start_again(lake)
    play_kills(tmp_path, store, DELETION_STEPS, killed)
