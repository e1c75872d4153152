"""Two weirs on the same repositories: they share users, storages and routes by one Redis, and the records of the lake lie on
this Redis or on a PostgreSQL. The namespaces are on a storage behind a third weir. What one of them has answered, the other
one shows at once."""
import concurrent.futures
import json
import os
import shutil

import pytest

from conftest import runner, secret, wait_for
from postgres_lab import postgres  # noqa: F401  (a fixture)

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402

KEYS = ("ROOTOFBOTH", "one-secret-for-both")
WRITERS, ROUNDS = 4, 30
REPOS = "/api/v1/repositories"


class Side:
    """One of the two weirs, as a user sees it. Without `keys` the user is the administrator, who owns the repositories."""

    def __init__(self, server, keys=KEYS):
        self.server, self.keys, self.s3 = server, keys, server.s3(keys)

    def ask(self, method, path, body=None):
        return self.server.request(method, path, body=body, keys=self.keys)

    def call(self, method, path, body=None, status=(200, 201, 204)):
        answer = self.ask(method, REPOS + path, body)
        assert answer.status in status, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body.startswith("{") else answer.status

    def status(self, path):
        return self.ask("GET", REPOS + path).status

    def put(self, key, body, repo="repo"):
        self.s3.put_object(Bucket=repo, Key=key, Body=body)

    def get(self, key, repo="repo"):
        return self.s3.get_object(Bucket=repo, Key=key)["Body"].read()

    def refused(self, call, **more):
        """The status of a call of S3 that fails; 0: it did not fail."""
        try:
            getattr(self.s3, call)(Bucket="repo", **more)
        except ClientError as e:
            return e.response["ResponseMetadata"]["HTTPStatusCode"]
        return 0

    def commit(self, message):
        """The id of the commit; None: another commit has taken all changes along."""
        made = self.call("POST", "/repo/branches/main/commits", {"message": message}, status=(201, 400))
        return None if made == 400 or "id" not in made else made["id"]

    def log(self):
        return self.call("GET", "/repo/refs/main/commits?amount=1000")["results"]

    def policy(self, effect):
        self.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": effect, "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": "s3:GetObject",
             "Resource": "arn:aws:s3:::repo/main/*"}]}))


class Pair:
    def __init__(self, tmp_path, serve, weir, redis, env):
        self.far = serve().ready()
        self.flags = ["--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}", "--kv.timeout=30s"]
        self.env = {"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": secret(KEYS[1]), **env}
        self.secret = tmp_path / "secrets.key"
        self.secret.write_bytes(os.urandom(32))
        self.secret.chmod(0o600)
        self.a, self.b = (Side(self.start(serve, tmp_path / name)) for name in ("a", "b"))
        self.run = runner(self.a.server, lambda *args: weir(*args, env={k: self.env[k] for k in list(self.env)[:2]}))
        self.run("storage", "add", "far", "--endpoint", self.far.s3_url, "--user", "root", "--access-key", self.far.keys[0],
                 "--secret-key", self.far.keys[1], "--main")
        self.a.s3.create_bucket(Bucket="lake-data")
        wait_for(lambda: self.b.refused("head_bucket") == 404 and self.is_listed("lake-data"), "the other weir to know the bucket")

    def start(self, serve, folder):
        (folder / "data").mkdir(parents=True, mode=0o700)
        shutil.copy(self.secret, folder / "data")
        return serve(*self.flags, folder=folder, env=self.env).ready()

    def is_listed(self, bucket):
        return bucket in [b["Name"] for b in self.b.s3.list_buckets()["Buckets"]]

    def repo(self, name):
        self.a.call("POST", "", {"name": name, "storage_namespace": f"s3://lake-data/{name}"})

    def bob(self):
        """A user, at the other weir."""
        made = self.run("user", "add", "bob", "--json")[0]
        bob = Side(self.b.server, (made["access_key"], secret(made["secret_key"])))
        wait_for(lambda: bob.ask("GET", "/api/v1/user").status == 200, "the other weir to know the user")
        return bob


@pytest.fixture(params=["redis", "postgres"])
def pair(request, tmp_path, serve, weir, redis):
    env = {"WEIR_KV_URL": request.getfixturevalue("postgres").url} if request.param == "postgres" else {}
    return Pair(tmp_path, serve, weir, redis, env)


def write(sides, number):
    """Puts objects through one side, reads each at once through the other one, and commits. Returns the ids of its commits."""
    mine, other, ids = sides[number % 2], sides[1 - number % 2], []
    for i in range(ROUNDS):
        path, body = f"main/{number}/{i}", f"{number} {i}".encode()
        mine.put(path, body)
        assert other.get(path) == body
        if i % 3 == 2:
            ids.append(mine.commit(path))
    return [id for id in ids if id]


def check_log(log, ids):
    """The history is linear, and has every commit that was acknowledged, and no other."""
    assert [[c["id"] for c in log[1:]]] == [[p for c in log[:-1] for p in c["parents"]]]
    assert log[-1]["parents"] == [] and log[-1]["message"] == "Repository created"
    assert sorted(c["id"] for c in log[:-1]) == sorted(ids)


def test_what_two_weirs_write_at_once_is_all_there_in_one_history(pair):
    pair.repo("repo")
    assert pair.b.status("/repo") == 200  # at once; by S3 a moment later, when the message has come
    wait_for(lambda: pair.b.refused("head_bucket") == 0, "the repository to be a bucket at the other weir")
    sides = (pair.a, pair.b)
    with concurrent.futures.ThreadPoolExecutor(WRITERS) as pool:
        ids = [id for made in pool.map(lambda number: write(sides, number), range(WRITERS)) for id in made]
    last = pair.b.commit("last")
    ids += [last] if last else []
    for side in sides:
        check_log(side.log(), ids)
        assert side.call("GET", "/repo/branches/main/diff")["results"] == []
        for ref in ("main", "main@"):
            for number in range(WRITERS):
                for i in range(ROUNDS):
                    assert side.get(f"{ref}/{number}/{i}") == f"{number} {i}".encode()


def test_what_one_weir_forbids_or_removes_is_gone_at_the_other_one_at_once(pair):
    pair.repo("repo")
    wait_for(lambda: pair.b.refused("head_bucket") == 0, "the repository to be a bucket at the other weir")
    a, b, bob = pair.a, pair.b, pair.bob()

    a.put("main/k", b"k")
    a.commit("first")
    assert bob.refused("get_object", Key="main/k") == 403
    a.policy("Allow")
    assert bob.get("main/k") == b"k" and bob.status("/repo/refs/main/objects?path=k") == 200
    a.policy("Deny")
    assert bob.refused("get_object", Key="main/k") == 403 and bob.status("/repo/refs/main/objects?path=k") == 401
    b.policy("Allow")
    assert bob.get("main/k") == b"k"
    a.s3.delete_bucket_policy(Bucket="repo")
    assert bob.refused("get_object", Key="main/k") == 403

    a.call("POST", "/repo/branches", {"name": "side", "source": "main"})
    b.put("side/s", b"s")
    assert a.get("side/s") == b"s" and b.get("side/k") == b"k"
    a.call("DELETE", "/repo/branches/side")
    assert b.status("/repo/branches/side") == 404
    assert b.refused("get_object", Key="side/s") == 404 and b.refused("put_object", Key="side/t", Body=b"t") == 404
    b.call("POST", "/repo/branches", {"name": "side", "source": "main"})
    assert a.refused("get_object", Key="side/s") == 404 and a.get("side/k") == b"k"

    a.call("DELETE", "/repo")
    assert b.status("/repo") == 404 and b.status("/repo/branches/main") == 404
    assert b.refused("get_object", Key="main/k") == 404 and b.refused("put_object", Key="main/l", Body=b"l") == 404
