"""A weir with a lake that can be killed at its steps, for tests of deletion, collection, moves and hooks; and key-value
stores that show their rows.

The program is weir_faulty (tests/crash), which kills itself at the step that it is told. Its next start has a clock that is
two minutes ahead, so that the dead process's lease on its task is over; the task is then told to run at once.
"""
import json
import subprocess
import urllib.parse

import pytest

from conftest import BUILD, WEIR, Redis, Server, wait_for
from postgres_lab import Postgres

FAULTY = BUILD / "tests/crash/weir_faulty"
GRACE_S = 1
QUEUE = "/api/v1/queues/lake/tasks"


class Lake:
    """A weir with the bucket lake-data, which can be killed and started again. With `far` the bucket is on a storage behind
    an S3 service, which is that weir. `kv` has the records of the lake; without it they are in weir's data folder."""

    def __init__(self, folder, *flags, far=None, kv=None, **env):
        self.folder, self.starts, self.server = folder, 0, None
        self.env = {"WEIR_KV_URL": kv.url} if kv else {}
        self.flags = [f"--lake.gc.grace={GRACE_S}s", "--lake.drop.again=1s", "--lake.hooks.hosts=127.0.0.1", *flags]
        if far:
            self.start()
            self.add_storage(far, "--main")
            self.server.s3().create_bucket(Bucket="lake-data")
            stop(self)
            self.start(**env)
            return
        self.start(**env)
        self.server.s3().create_bucket(Bucket="lake-data")

    def run(self, *args):
        """Runs a command of weir against the server, and returns its output."""
        done = subprocess.run([WEIR, *args, "--data", self.server.data, "--url", self.server.url], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add_storage(self, far, *flags):
        self.run("storage", "add", "far", "--endpoint", far.s3_url, "--user", "root", "--access-key", far.keys[0],
                 "--secret-key", far.keys[1], *flags)

    def start(self, **env):
        folder = self.folder / str(self.starts)
        folder.mkdir(parents=True)
        self.starts += 1
        self.server = Server(folder, *self.flags, data=self.folder / "data", binary=FAULTY,
                             env={**self.env, **env}).ready()

    def start_later(self):
        self.server.process.wait()
        self.start(FAULT_CLOCK="120")

    def ask(self, method, path, body=None):
        return self.server.request(method, path, body=body, keys=self.server.keys)

    def call(self, method, path, body=None, status=(200, 201, 202, 204)):
        answer = self.ask(method, "/api/v1/repositories" + path, body)
        assert answer.status in status, answer.body
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def repo(self, name, space=None):
        self.call("POST", "", {"name": name, "storage_namespace": f"s3://lake-data/{space or name}"})

    def put(self, repo, path, body):
        self.server.s3().put_object(Bucket=repo, Key="main/" + path, Body=body)

    def commit(self, repo, message):
        return self.call("POST", f"/{repo}/branches/main/commits", {"message": message})["id"]

    def get(self, repo, key):
        return self.server.s3().get_object(Bucket=repo, Key=key)["Body"].read()

    def files(self, prefix):
        pages = self.server.s3().get_paginator("list_objects_v2").paginate(Bucket="lake-data", Prefix=prefix)
        return [o["Key"] for page in pages for o in page.get("Contents", [])]

    def metric(self, name):
        lines = self.ask("GET", "/metrics").body.splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def hurry(self):
        """Makes the tasks of the dead process run now."""
        for state in ("retry", "scheduled"):
            for task in json.loads(self.ask("GET", f"{QUEUE}?state={state}").body)["tasks"]:
                self.ask("POST", f"{QUEUE}/{urllib.parse.quote(task['id'], safe='')}/run")

    def wait(self, condition, what):
        def look():
            self.hurry()
            return condition()
        return wait_for(look, what)

    def collect(self, repo="repo"):
        """Runs a collection to its end and returns its report."""
        self.call("POST", f"/{repo}/gc/run", {})
        return self.wait(lambda: self.done(repo), "the collection to end")

    def done(self, repo="repo"):
        report = self.call("GET", f"/{repo}/gc/run")
        return report["stage"] == "done" and report


def stop(lake):
    assert lake.server.stop() == 0, lake.server.err


def kills(steps):
    return [f"{when}:{step}" for step in steps for when in ("before", "after")]


def nodes_of(files):
    return [f for f in files if len(f.rsplit("/", 1)[1]) == 64]


# --- the key-value stores: what rows they have ---

class RedisRows:
    def __init__(self, folder):
        folder.mkdir()
        self.redis = Redis(folder)
        self.url = f"redis://127.0.0.1:{self.redis.port}/5"

    def ask(self, *command):
        done = subprocess.run(["redis-cli", "-n", "5", "-p", str(self.redis.port), *command], check=True, capture_output=True)
        return done.stdout.decode("utf-8", "replace").splitlines()

    def rows(self):
        return {(key[3:-2], row) for key in self.ask("KEYS", "kv:*:h") for row in self.ask("HKEYS", key)}

    def remove(self):
        self.redis.kill()


class PostgresRows:
    """A database of a server that all tests share, since a server starts slowly. stop() ends the server."""
    server, count = None, 0

    def __init__(self, _folder):
        cls = PostgresRows
        cls.server, cls.count = cls.server or Postgres(), cls.count + 1
        self.url = cls.server.url.replace("/postgres?", f"/rows{cls.count}?")
        cls.server.query(f"CREATE DATABASE rows{cls.count}")

    def rows(self):
        text = self.server.query("SELECT encode(partition_key, 'escape'), encode(key, 'escape') FROM kv", self.url)
        return {tuple(line.split("|", 1)) for line in text.splitlines()}

    def remove(self):
        pass

    @classmethod
    def stop(cls):
        if cls.server:
            cls.server.remove()
            cls.server = None


@pytest.fixture
def redis_rows(tmp_path):
    store = RedisRows(tmp_path / "kv")
    yield store
    store.remove()


def check_deleted(lake, kv, *repos, stay=()):
    """Deletes the repositories with their files. Nothing of them is left then but the rows `stay`, neither in the key-value
    store nor in the bucket. The lives of the weirs stay for ever."""
    for repo in repos:
        answer = lake.server.request("DELETE", f"/api/v1/repositories/{repo}?purge=true", keys=lake.server.keys)
        assert answer.status in (204, 404), answer.body

    def left():
        return {(partition, row) for partition, row in kv.rows()
                if partition != "kv-internal-metadata" and not row.startswith("lives/")} - set(stay)
    lake.wait(lambda: not left(), "every row to go")
    assert kv.rows()  # the store is the lake's
    for repo in repos:
        assert lake.files(repo + "/") == []
