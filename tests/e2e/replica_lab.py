"""Set-ups for replication, each with the real binary, that scenarios run on.

embedded  one weir with everything in it; its storages `a` (main) and `b` are two folders
redis     redis-server, two gateways and two workers, each a weir with a data folder of its own; a folder belongs to one
          process, so what gateways share are S3 services: `a` and `b` are two weirs more, as plain storages
foreign   as redis, and `b` is s3rver
s3-to     as redis, and `b` is the server of WEIR_TEST_S3 (URL, access key and secret key by spaces)
s3-from   the same the other way round: that server is `a`
sentinel  as redis, with replicas and Sentinels (sentinel_lab.py)

MixedLab has a folder as `a` and a service as `b`, on each kind of store.

What a storage holds is read past the gateways under test: from the service itself; in the embedded set-up, by an
administrator's requests that name the storage.
"""
import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import time
import urllib.parse

import boto3
from botocore.config import Config

from conftest import BUILD, DEADLINE, WEIR, Redis, Server, check_sanitizers, clean_env, free_port, wait_for
from sentinel_lab import Group

S3RVER = BUILD.parent / "npm/node_modules/s3rver/bin/s3rver.js"
FAULTY = BUILD / "tests/crash/weir_faulty"
KEYS = ("AKIAREPLICALAB", "secret-of-the-replica-lab")
KINDS = ["embedded", "redis", "foreign"] + ["s3-to", "s3-from"] * ("WEIR_TEST_S3" in os.environ)
# What weir's replication is not to blame for, and scenarios leave out.
LACKS = {"foreign": {"escapes", "versions", "lists of access", "bucket tags", "tags with a put", "ETags of parts"},
         "s3-from": {"ETags of parts"}}  # a server that does not tell of parts: docs/replication.md, "Work"
RECORD_S = 0.5
QUICK = ("--replication.pause_retry", "1s")


def client(url, keys):
    """A boto3 client that asks once."""
    return boto3.client("s3", endpoint_url=url, aws_access_key_id=keys[0], aws_secret_access_key=keys[1],
                        region_name="us-east-1",
                        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0},
                                      signature_version="s3v4", max_pool_connections=50))


def names_in(s3, bucket):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
    return [o["Key"] for page in pages for o in page.get("Contents", [])]


def content(s3, bucket):
    """Name to bytes of all objects of the bucket."""
    return {name: s3.get_object(Bucket=bucket, Key=name)["Body"].read() for name in names_in(s3, bucket)}


# Changes that a model (name to bytes) follows.


def put(s3, bucket, model, key, body, **more):
    s3.put_object(Bucket=bucket, Key=key, Body=body, **more)
    model[key] = body


def remove(s3, bucket, model, key):
    s3.delete_object(Bucket=bucket, Key=key)
    model.pop(key, None)


def fill(s3, bucket, model, count, size=200):
    """Some folders deep."""
    for n in range(count):
        put(s3, bucket, model, f"dir{n % 5}/sub{n % 3}/k{n}" if n % 2 else f"k{n}", os.urandom(size + n))


def viewer(s3, storage):
    """Makes an administrator's client read what this storage has, wherever routes lead (docs/forward.md, B2)."""
    s3.meta.events.register("before-sign.s3", lambda request, **_: request.headers.add_header("x-weir-storage", storage))
    return s3


class Weir(Server):
    """A weir that can be killed and started again on the same data."""

    def __init__(self, folder, *args, env=None):
        folder.mkdir(exist_ok=True)
        self.more, self.env, self.binary = args, env or {}, WEIR
        super().__init__(folder, *args, env=self.env)

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()
        check_sanitizers(self.err)

    def start(self, **faults):
        """After a kill or a stop. With faults: as weir_faulty (tests/crash), from now on."""
        self.binary = FAULTY if faults else self.binary
        super().__init__(self.folder, *self.more, env={**self.env, **faults}, binary=self.binary)
        return self

    @property
    def keys(self):
        return KEYS


class S3rver:
    def __init__(self, folder):
        folder.mkdir(exist_ok=True)
        self.folder, self.port = folder, free_port()
        self.url, self.keys = f"http://127.0.0.1:{self.port}", ("S3RVER", "S3RVER")
        self.start()

    def start(self):
        self.process = subprocess.Popen(["node", str(S3RVER), "-d", str(self.folder), "-a", "127.0.0.1", "-p",
                                         str(self.port), "-s"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                        env=clean_env())

    def ready(self):
        def answers():
            assert self.process.poll() is None, "s3rver ended"
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", self.port)) == 0
        wait_for(answers, "s3rver")

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


class Lab:
    """gateways[0] and [1] may be the same process; so may workers. sides: storage to its server, None for a folder."""

    down_after_ms = 1000  # of Sentinel

    def __init__(self, kind, folder, *args):
        self.kind, self.folder, self.args = kind, folder, (*QUICK, *args)
        self.lacks = LACKS.get(kind, set())
        self.redis, self.sides, self.endpoints, self.started = None, {}, {}, []
        try:
            self.build()
        except BaseException:
            self.end()
            raise

    # --- building ---

    def build(self):
        if self.kind == "embedded":
            self.gateways = self.workers = [self.weir("one", *self.args)]
            self.gateways[0].ready()
            self.run("storage", "add", "b", self.folder / "b")
            self.names = {"a": "local", "b": "b"}
            return
        self.names = {"a": "a", "b": "b"}
        self.start_redis(self.folder / "redis")
        self.build_sides()
        store = self.store_args()
        self.gateways = [self.weir(f"gateway{n}", "--only", "gateway", *store) for n in range(2)]
        self.workers = [self.weir(f"worker{n}", "--only", "worker", *store) for n in range(2)]
        for weir in self.started:
            weir.ready()
        for name, (url, keys) in self.endpoints.items():
            self.run("storage", "add", name, "--endpoint", url, "--user", "root", "--access-key", keys[0], "--secret-key",
                     keys[1], *(["--main"] if name == "a" else []))
        for weir in self.started[len(self.sides) - self.far:]:
            wait_for(lambda: len(self.rest(weir, "GET", "/api/v1/storages")["storages"]) >= 3, "the storages")

    def start_redis(self, folder):
        if self.kind == "sentinel":
            self.redis = Group(folder, durable=True, down_after_ms=self.down_after_ms)
            return
        folder.mkdir()
        self.redis = Redis(folder, "--appendonly", "yes", "--appendfsync", "always")

    def store_args(self):
        return "--store.engine=redis", f"--store.redis.url={self.store_url()}", *self.args

    def store_url(self):
        return self.redis.url() if self.kind == "sentinel" else f"redis://127.0.0.1:{self.store_port()}"

    def store_port(self):
        return self.redis.port

    def build_sides(self):
        foreign = {"s3-to": "b", "s3-from": "a"}.get(self.kind)
        self.far = 0
        for name in ("a", "b"):
            if name == foreign:
                self.sides[name], self.far = None, 1
            elif name == "b" and self.kind == "foreign":
                self.sides[name] = S3rver(self.folder / "s3rver")
                self.started.append(self.sides[name])
            else:
                self.sides[name] = self.weir(f"side-{name}")
        for side in self.started:
            side.ready()
        self.endpoints = {name: (getattr(s, "url" if isinstance(s, S3rver) else "s3_url"), s.keys) if s else
                          (os.environ["WEIR_TEST_S3"].split()[0], tuple(os.environ["WEIR_TEST_S3"].split()[1:]))
                          for name, s in self.sides.items()}

    def weir(self, name, *args):
        """All of one lab have one secrets.key (docs/security.md) and one first administrator."""
        data = self.folder / name / "data"
        data.mkdir(parents=True, mode=0o700)
        secret = self.folder / "secrets.key"
        if secret.exists():
            shutil.copy(secret, data)
        else:
            secret.write_bytes(os.urandom(32))
            secret.chmod(0o600)
            shutil.copy(secret, data)
        weir = Weir(self.folder / name, *args, env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1]})
        self.started.append(weir)
        return weir

    # --- using ---

    def s3(self, n=0, keys=KEYS):
        """Through the n-th gateway."""
        return client(self.gateways[n % len(self.gateways)].s3_url, keys)

    def run(self, *args, status=0, n=0):
        server = self.gateways[n % len(self.gateways)]
        done = subprocess.run([str(WEIR), *map(str, args), "--data", str(server.data), "--url", server.url],
                              capture_output=True, text=True, timeout=2 * DEADLINE,
                              env=clean_env(WEIR_ACCESS_KEY=KEYS[0], WEIR_SECRET_KEY=KEYS[1]))
        check_sanitizers(done.stderr)
        assert status is None or done.returncode == status, done.stderr
        if "--json" in args and done.returncode != 0:
            return []
        return json.loads(done.stdout) if "--json" in args else done.stdout + done.stderr

    def add_user(self, name, keys):
        """With the same keys on the storages that are weirs, so that its buckets are its own; on a server of others it
        has the keys of all."""
        self.run("user", "add", name, "--access-key", keys[0], "--secret-key", keys[1])
        for storage in self.sides:
            side, there = self.sides[storage], self.endpoints[storage][1]
            if isinstance(side, Weir):
                self.rest(side, "POST", "/api/v1/users", {"name": name, "access_key": keys[0], "secret_key": keys[1]})
                there = keys
            self.run("storage", "key", self.names[storage], name, "--access-key", there[0], "--secret-key", there[1])

    def rest(self, server, method, path, body=None):
        answer = server.request(method, path, keys=KEYS, body=body)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body}"
        return json.loads(answer.body) if answer.body else None

    def api(self, method, path, body=None):
        return self.rest(self.gateways[0], method, path, body)

    def row(self, bucket, to="b"):
        """What is told of the one replication of the bucket; of a user's new bucket it is made in a moment."""
        rows = [r for r in self.api("GET", "/api/v1/replications")["replications"]
                if r["bucket"] == bucket and r["to"] == self.names[to]]
        assert len(rows) <= 1, rows
        return rows[0] if rows else {"state": "none"}

    def add(self, bucket, *more, to="b"):
        self.run("replicate", "add", bucket, self.names[to], *(() if "--user" in more else ("--user", "root")), *more)

    def copied(self, bucket, count):
        """A replication of the bucket with so many objects, in sync: a client and the model."""
        s3, model = self.s3(), {}
        fill(s3, bucket, model, count)
        self.add(bucket)
        self.in_sync(bucket)
        return s3, model

    def recorded(self):
        """What was answered is recorded a moment later; one whose outcome is not known stays for minutes."""
        end = time.monotonic() + RECORD_S
        while time.monotonic() < end:
            queues = self.api("GET", "/api/v1/queues")["queues"]
            if self.redis and not any(q["scheduled"] for q in queues if q["name"] == "intents"):
                break
            time.sleep(0.05)

    def in_sync(self, *buckets, to="b", seconds=2 * DEADLINE):
        for bucket in buckets:
            try:
                wait_for(lambda: self.row(bucket, to)["state"] == "in sync", f"{bucket} to be in sync", seconds)
            except AssertionError as e:
                raise AssertionError(f"{e}: {self.row(bucket, to)}\n{self.tasks()}") from None

    def tasks(self, *states):
        """All tasks of these states: [{queue, id, type, state, error, …}]."""
        return [t for t in self.run("task", "list", "--json") if not states or t["state"] in states]

    def route(self, bucket, owner):
        """The storage that a policy of the owner's bucket names, or none."""
        for p in self.api("GET", "/api/v1/policies")["policies"]:
            if p.get("bucket") == bucket and p.get("user") == owner and not p.get("blocked"):
                return p["storage"]
        return None

    @contextlib.contextmanager
    def side(self, name, bucket):
        """A client of what the storage holds, past the gateways: its administrator's. Of folders of one weir: an
        administrator's that names the storage."""
        yield client(*self.endpoints[name]) if name in self.endpoints else viewer(self.s3(), self.names[name])

    @contextlib.contextmanager
    def damaging(self, bucket):
        """A client that writes to the copy on `b`. No route leads to a copy of a replication, so where `b` is a folder the
        replication ends before."""
        if self.redis:
            yield client(*self.endpoints["b"])
            return
        self.run("replicate", "remove", bucket)
        self.run("bucket", "route", bucket, self.names["b"], "--user", "root")
        yield self.s3()
        self.run("bucket", "route", bucket, self.names["a"], "--user", "root")

    def content(self, name, bucket):
        with self.side(name, bucket) as s3:
            return content(s3, bucket)

    def is_equal(self, bucket, model):
        """Both sides hold the model, by content."""
        for name in ("a", "b"):
            found = self.content(name, bucket)
            assert found.keys() == model.keys(), (name, sorted(found.keys() ^ model.keys())[:10])
            wrong = [key for key in model if found[key] != model[key]]
            assert not wrong, (name, wrong[:10])
        return True

    def end(self):
        """In any state."""
        if self.redis:
            self.redis.kill()
        for one in self.started:
            one.kill()


class MixedLab(Lab):
    """A folder as `a`, a service as `b`. gateways[0] is the weir that has the folder, with everything in it; on Redis there
    are a gateway and a worker more, which cannot reach the folder."""

    down_after_ms = 3000  # a busy machine makes no failovers of its own

    def build(self):
        self.names = {"a": "disk", "b": "far"}
        self.sides["b"] = self.weir("side-b").ready()
        self.endpoints["b"] = (self.sides["b"].s3_url, KEYS)
        more = self.args
        if self.kind != "embedded":
            self.start_redis(self.folder / "redis")
            more = self.store_args()
        self.gateways = [self.weir("home", *more).ready()]
        self.workers = []
        self.run("storage", "add", "disk", self.folder / "disk")
        self.run("storage", "add", "far", "--endpoint", self.endpoints["b"][0], "--user", "root", "--access-key", KEYS[0],
                 "--secret-key", KEYS[1])
        if self.kind == "embedded":
            return
        self.gateways.append(self.weir("gateway1", "--only", "gateway", *more).ready())
        self.workers.append(self.weir("worker1", "--only", "worker", *more).ready())
        for weir in self.gateways[1:] + self.workers:
            wait_for(lambda: any(s["name"] == "far" for s in self.rest(weir, "GET", "/api/v1/storages")["storages"]), "the storages")


def quoted(name):
    return urllib.parse.quote(name, safe="")
