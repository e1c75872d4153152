"""Bad days of a lake: its key-value store hangs or is gone, its storage is gone, and names are wanted by two at once."""
import concurrent.futures
import contextlib
import itertools
import os
import signal
import time

import pytest

from conftest import Redis, free_port, wait_for
from keeping_lab import Lake, stop
from postgres_lab import postgres  # noqa: F401  (a fixture)

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402

TIMEOUT_S = 2


def family(pid):
    """The process and its children."""
    with open(f"/proc/{pid}/task/{pid}/children") as children:
        return [pid, *(int(child) for child in children.read().split())]


@contextlib.contextmanager
def held(pid):
    """Stops the processes of a server, as a machine that hangs does."""
    stopped = family(pid)
    for one in stopped:
        with contextlib.suppress(ProcessLookupError):
            os.kill(one, signal.SIGSTOP)
    try:
        yield
    finally:
        for one in stopped:
            with contextlib.suppress(ProcessLookupError):
                os.kill(one, signal.SIGCONT)


@pytest.fixture(params=["postgres", "redis"])
def store(request, tmp_path):
    """A server for the records of the lake: its address, its process, and functions that stop and start it."""
    if request.param == "postgres":
        server = request.getfixturevalue("postgres")
        yield server.url, lambda: server.process.pid, server.stop, server.start
        return
    folder = tmp_path / "redis"
    folder.mkdir()
    server = Redis(folder, "--appendonly", "yes", "--appendfsync", "always")
    yield f"redis://127.0.0.1:{server.port}", lambda: server.process.pid, server.kill, server.start
    server.kill()


def timed_calls(lake):
    """The statuses of calls that need the records, and how many seconds they took, both by the calls' names. The calls are
    made at the same time."""
    client = lake.server.s3(read_timeout=30)  # making one takes long

    def s3(method, **more):
        try:
            return getattr(client, method)(Bucket="repo", **more)["ResponseMetadata"]["HTTPStatusCode"]
        except ClientError as e:
            return e.response["ResponseMetadata"]["HTTPStatusCode"]

    def rest(method, path, body=None):
        return lake.ask(method, "/api/v1/repositories" + path, body).status
    jobs = {
        "get": lambda: s3("get_object", Key="main/a"), "head": lambda: s3("head_object", Key="main/a"),
        "absent": lambda: s3("get_object", Key="main/absent"), "list": lambda: s3("list_objects_v2", Prefix="main/"),
        "put": lambda: s3("put_object", Key="main/b", Body=b"b"), "remove": lambda: s3("delete_object", Key="main/c"),
        "repository": lambda: rest("GET", "/repo"), "unknown": lambda: rest("GET", "/unknown"),
        "branch": lambda: rest("GET", "/repo/branches/main"), "log": lambda: rest("GET", "/repo/refs/main/commits"),
        "commit": lambda: rest("POST", "/repo/branches/main/commits", {"message": "m", "allow_empty": True}),
    }

    def timed(job):
        began = time.monotonic()
        return job(), time.monotonic() - began
    with concurrent.futures.ThreadPoolExecutor(len(jobs)) as pool:
        done = dict(zip(jobs, pool.map(timed, jobs.values())))
    return {name: status for name, (status, _) in done.items()}, {name: took for name, (_, took) in done.items()}


def calls(lake):
    return timed_calls(lake)[0]


WELL = {"get": 200, "head": 200, "absent": 404, "list": 200, "put": 200, "remove": 204, "repository": 200, "unknown": 404,
        "branch": 200, "log": 200, "commit": 201}


def test_a_key_value_store_that_is_slow_or_down_is_503_and_nothing_is_absent(tmp_path, store):
    url, pid, end, begin = store
    lake = Lake(tmp_path / "near", f"--kv.timeout={TIMEOUT_S}s", WEIR_KV_URL=url)
    lake.repo("repo")
    lake.put("repo", "a", b"a")
    lake.commit("repo", "first")
    wait_for(lambda: calls(lake) == WELL, "a store that is well")  # a busy machine may be too slow for the time-out
    with held(pid()):
        # The first calls wait for one time-out, and one of them may then ask the store once more.
        statuses, took = timed_calls(lake)
        assert set(statuses.values()) == {503}, statuses
        assert max(took.values()) < 4 * TIMEOUT_S, took
        # From then on one caller at a time waits for the store, and all others are refused at once.
        for _ in range(3):
            statuses, took = timed_calls(lake)
            assert set(statuses.values()) == {503}, statuses
            assert sum(seconds > TIMEOUT_S / 2 for seconds in took.values()) <= 2, took
    wait_for(lambda: calls(lake) == WELL, "the store that goes on")
    end()
    assert set(calls(lake).values()) == {503}
    begin()
    wait_for(lambda: calls(lake) == WELL, "the store that is there again")
    assert lake.get("repo", "main/a") == b"a" and lake.get("repo", "main/b") == b"b"
    stop(lake)


def test_a_storage_that_is_down_fails_what_is_not_cached_and_leaves_the_branch(tmp_path, serve):
    port = free_port()
    far = serve("--s3.listen", f"127.0.0.1:{port}").ready()
    lake = Lake(tmp_path / "near", far=far)
    lake.repo("repo")
    lake.put("repo", "a", b"a")
    lake.commit("repo", "first")
    lake.put("repo", "staged", b"staged")
    assert lake.get("repo", "main/a") == b"a"

    def state():
        """The part of the branch that needs no file but nodes that are cached."""
        listed = lake.server.s3().list_objects_v2(Bucket="repo", Prefix="main/")
        return ([o["Key"] for o in listed["Contents"]], lake.call("GET", "/repo/branches/main"),
                lake.call("GET", "/repo/branches/main/diff")["results"],
                lake.server.s3().head_object(Bucket="repo", Key="main/a")["ContentLength"])
    before = state()
    far.stop()
    assert state() == before
    with pytest.raises(ClientError) as failed:
        lake.get("repo", "main/a")
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    with pytest.raises(ClientError) as failed:
        lake.put("repo", "new", b"new")
    assert failed.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    lake.call("POST", "/repo/branches/main/commits", {"message": "m"}, status=(503,))
    assert state() == before
    # A removal and a reset need no file.
    lake.server.s3().delete_object(Bucket="repo", Key="main/staged")
    assert lake.call("GET", "/repo/branches/main/diff")["results"] == []
    lake.call("PUT", "/repo/branches/main", {"type": "reset"})
    far = serve("--s3.listen", f"127.0.0.1:{port}", data=far.data).ready()
    wait_for(lambda: lake.ask("GET", "/api/v1/repositories/repo/refs/main/objects?path=a").status == 200, "the storage")
    lake.put("repo", "new", b"new")
    lake.commit("repo", "second")
    assert lake.get("repo", "main/new") == b"new" and lake.get("repo", "main/a") == b"a"
    stop(lake)


def test_a_repository_and_a_bucket_that_are_made_at_once_share_no_name(tmp_path):
    lake = Lake(tmp_path / "near")
    s3 = lake.server.s3()

    def bucket(name):
        try:
            s3.create_bucket(Bucket=name)
            return True
        except ClientError as e:
            assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 409, e
            return False

    spaces = itertools.count()

    def repository(name):
        space = f"s3://lake-data/{next(spaces)}"
        answer = lake.ask("POST", "/api/v1/repositories", {"name": name, "storage_namespace": space})
        assert answer.status in (201, 409), answer.body
        return answer.status == 201
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for i in range(30):
            name = f"name-{i}"
            makers = [bucket, repository, repository] if i % 2 else [repository, repository, bucket]
            made = list(pool.map(lambda make, name=name: (make, make(name)), makers))
            kinds = {make for make, done in made if done}
            assert len(kinds) <= 1, name
            is_repo = lake.ask("GET", f"/api/v1/repositories/{name}").status == 200
            is_listed = name in [b["Name"] for b in s3.list_buckets()["Buckets"]]
            assert (is_repo or is_listed) == bool(kinds), name
            if not kinds:  # each gave way to the other one: the name is free
                assert bucket(name), name
    stop(lake)


def test_of_repositories_that_are_made_at_once_in_one_namespace_one_is_made(tmp_path):
    lake = Lake(tmp_path / "near")

    def repository(name, space):
        answer = lake.ask("POST", "/api/v1/repositories", {"name": name, "storage_namespace": f"s3://lake-data/{space}"})
        assert answer.status in (201, 400), answer.body
        return answer.status == 201
    with concurrent.futures.ThreadPoolExecutor(6) as pool:
        for i in range(8):
            spaces = [f"space-{i}", f"space-{i}/below"] * 3
            made = list(pool.map(lambda k, i=i, spaces=spaces: repository(f"repo-{i}-{k}", spaces[k]), range(6)))
            assert sum(made) <= 1, made
            if not any(made):
                assert repository(f"repo-{i}-again", f"space-{i}")
    stop(lake)
