"""The archive under kills.

Two weir processes sync accounts over one Redis into three satellites, while people push. Meanwhile processes are killed, or
sleep past their locks; Redis is killed and emptied; a satellite goes down and another one is full. Then everything
comes back, each account is synced once more, and nothing may be lost or left over: `weir archive check` finds nothing, git
clones every bundle and finds the refs and objects of the source, every object is on the satellite of its slot, no
upload, scratch file or unexplained object is left, and `tracked` says what the records say.

WEIR_TEST_KILLS is the number of runs (2; `make chaos ROOM=archive` takes more), WEIR_TEST_SEED the first run's seed.
"""
import hashlib
import json
import os
import random
import re
import shutil
import signal
import subprocess
import time

import pytest

from archive_lab import LOCK_S, Archive
from conftest import Redis, free_port, wait_for
from test_disks import SmallDisk

RUNS = int(os.environ.get("WEIR_TEST_KILLS") or 2)
SEED = int(os.environ.get("WEIR_TEST_SEED") or 1)
KEYS = ("AKIDOFTHEARCHIVE", "secret-of-the-archive-lab")
SATELLITES = ("asia", "europe", "usa")
LOGINS = ("octocat", "mojombo", "torvalds", "antirez", "calebcase")
REPOS = 2
CHAOS_S = 12
# Pushes of 6 MiB. The disk of europe must have room for its accounts' objects when all troubles are over: every byte
# that is pushed is in a bundle and in a ZIP file, and a rewritten object needs its room twice for a moment. Of the disk,
# weir keeps 256 MiB free, and its database takes about 50 MiB.
LARGE_PUSHES = 6
SMALL_DISK = "512m"


class Satellite:
    """A weir that is a satellite's storage, on a port of its own."""

    def __init__(self, name, serve, folder):
        self.name, self.start_weir, self.folder, self.port, self.server = name, serve, folder / name, free_port(), None
        self.folder.mkdir()
        self.data, self.binary = self.folder / "data", None
        self.start()

    def start(self):
        more = {"binary": self.binary} if self.binary else {}
        self.server = self.start_weir("--s3.listen", f"127.0.0.1:{self.port}", data=self.data,
                                      env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1]}, **more).ready()

    def kill(self):
        self.server.signal(signal.SIGKILL)
        self.server.wait()

    def s3(self):
        return self.server.s3(keys=KEYS)


class SmallSatellite(Satellite):
    """One whose disk can be full."""

    def __init__(self, name, serve, folder):
        self.disk = SmallDisk(serve, folder, SMALL_DISK)
        super().__init__(name, serve, folder)

    def start(self):
        self.data, self.binary = self.disk.data, self.disk.binary
        super().start()

    def fill(self):
        self.disk.fill(0)

    def free(self):
        self.disk.filler.unlink(missing_ok=True)


class World(Archive):
    """Two processes over one Redis and three satellites, and what happens to them."""

    def __init__(self, folder, serve, weir, seed):
        self.random, self.large_pushes = random.Random(seed), 0
        redis_folder = folder / "redis"
        redis_folder.mkdir()
        self.redis_server = Redis(redis_folder, "--appendonly", "yes")
        self.satellites = {name: (SmallSatellite if name == "europe" else Satellite)(name, serve, folder)
                           for name in SATELLITES}
        storages = "storages:\n" + "".join(
            f"  {name}:\n    url: http://127.0.0.1:{s.port}\n    credentials:\n"
            f"      {name}: {{access_key: {KEYS[0]}, secret_key: {KEYS[1]}}}\n" for name, s in self.satellites.items())
        storages += "users:\n" + "".join(
            f"  {name}: {{access_key: KEYOF{name.upper()}, secret_key: secret-key-of-{name}}}\n" for name in SATELLITES)
        self.secret = folder / "secrets.key"
        self.secret.write_bytes(os.urandom(32))
        self.secret.chmod(0o600)
        self.workers = [None, None]
        super().__init__(folder, serve, weir, redis=self.redis_server, storages=storages,
                         args=[f"--archive.satellites={','.join(SATELLITES)}", "--archive.workers=3"])

    def worker_folder(self, n):
        data = self.folder / f"worker{n}" / "data"
        if not data.exists():
            data.mkdir(parents=True, mode=0o700)
            shutil.copy(self.secret, data)
        return data

    def serve(self, n=None):
        """Starts one process, or both."""
        for i in (0, 1) if n is None else (n,):
            self.workers[i] = self.start(*self.args, config=self.config, data=self.worker_folder(i),
                                         env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1]})
        for i in (0, 1) if n is None else (n,):
            self.workers[i].ready()
        self.server = self.workers[0]
        return self.server

    def close(self):
        super().close()
        self.redis_server.kill()
        self.satellites["europe"].disk.end()

    def get(self, login, rest):
        """An object, as its satellite has it."""
        s3 = self.satellites[self.account(login)["satellite"]].s3()
        return s3.get_object(Bucket=self.bucket, Key=self.key(login, rest))["Body"].read()

    def cli(self, *words, db=0):
        done = subprocess.run(["redis-cli", "-p", str(self.redis_server.port), "-n", str(db), "--json", *map(str, words)],
                              capture_output=True, text=True)
        assert done.returncode == 0 and "ERR" not in done.stdout, done.stdout + done.stderr
        return json.loads(done.stdout)

    def entry(self, login):
        """The account as the indexes of the schedule have it."""
        return f"{hashlib.sha256(login.encode()).digest()[0]} {self.member(login)}"

    # --- people push ---

    def push_something(self):
        login, name = self.random.choice(list(self.repos))
        repo = self.repos[login, name]
        what = self.random.random()
        if what < 0.05 and self.large_pushes < LARGE_PUSHES:
            self.large_pushes += 1
            repo.commit(1, files=1, content=lambda _: self.random.randbytes(6 << 20))
        elif what < 0.6:
            repo.commit(self.random.randint(1, 3))
        elif what < 0.75:
            repo.commit(1, ref=f"refs/heads/b{self.random.randint(0, 3)}")
        elif what < 0.9 and int(repo.git("rev-list", "--count", "refs/heads/main")) > 3:  # a forced update
            repo.git("update-ref", "refs/heads/main", repo.git("rev-parse", "refs/heads/main~2").strip())
        else:
            repo.git("update-ref", "-d", f"refs/heads/b{self.random.randint(0, 3)}")
        self.push(login, name)

    def ask_for_sync(self, login):
        """In whichever process answers. A process or Redis may be down."""
        for worker in self.workers:
            try:
                if worker.process.poll() is None and worker.request(
                        "POST", f"/api/v1/archive/accounts/{self.member(login).replace('/', '%2F')}/sync", body="{}",
                        keys=KEYS).status < 300:
                    return
            except OSError:
                pass

    # --- what happens to them: each returns a function that undoes it, and after how many seconds ---

    def kill_worker(self):
        n = self.random.randrange(2)
        self.workers[n].signal(signal.SIGKILL)
        self.workers[n].wait()
        return lambda: self.serve(n), self.random.uniform(0, 3)

    def stop_worker(self):
        worker = self.workers[self.random.randrange(2)]
        worker.signal(signal.SIGSTOP)
        return lambda: worker.signal(signal.SIGCONT), LOCK_S + 3

    def kill_redis(self):
        self.redis_server.kill()
        return self.redis_server.start, self.random.uniform(0, 2)

    def empty_redis(self):
        self.cli("FLUSHDB")
        return lambda: None, 0

    def kill_satellite(self):
        satellite = self.satellites[self.random.choice(("asia", "usa"))]
        satellite.kill()
        return satellite.start, self.random.uniform(1, 5)

    def fill_satellite(self):
        satellite = self.satellites["europe"]
        satellite.fill()
        return satellite.free, self.random.uniform(1, 5)

    def use_redis_cli(self):
        login = self.random.choice(LOGINS)
        self.cli("ZADD", "tracked", "XX", "0", self.member(login))
        self.cli("SET", f"lock:{self.member(login)}", "1", "EX", "2", "NX")
        self.cli("ZRANGEBYSCORE", "tracked", "-inf", "+inf", "LIMIT", "0", "1")
        return lambda: None, 0

    def trouble(self):
        """Until CHAOS_S have passed, one trouble after another."""
        until = time.monotonic() + CHAOS_S
        kinds = [self.kill_worker, self.kill_worker, self.stop_worker, self.kill_redis, self.empty_redis,
                 self.kill_satellite, self.fill_satellite, self.use_redis_cli]
        while time.monotonic() < until:
            undo, after = self.random.choice(kinds)()
            pause(self, after)
            undo()
            pause(self, self.random.uniform(0, 1.5))

    # --- afterwards ---

    def places(self):
        """Every object of the archive, with the satellites that have it."""
        found = {}
        for name, satellite in self.satellites.items():
            s3 = satellite.s3()
            for bucket in (b["Name"] for b in s3.list_buckets()["Buckets"]):
                for page in s3.get_paginator("list_objects_v2").paginate(Bucket=bucket):
                    for o in page.get("Contents", []):
                        found.setdefault((bucket, o["Key"]), []).append(name)
                assert s3.list_multipart_uploads(Bucket=bucket).get("Uploads", []) == [], (name, bucket)
        return found


def pause(world, seconds):
    """Pushes and asks for syncs meanwhile."""
    until = time.monotonic() + seconds
    while True:
        if world.random.random() < 0.5:
            world.push_something()
        world.ask_for_sync(world.random.choice(LOGINS))
        if time.monotonic() >= until:
            return
        time.sleep(0.05)


@pytest.fixture
def world(request, tmp_path, serve, weir):
    made = World(tmp_path, serve, weir, request.param)
    yield made
    made.close()


def make_accounts(w):
    """One repository is so large that its bundle is written as an upload of several parts."""
    for login in LOGINS:
        for i in range(REPOS):
            w.add_repo(login, f"r{i}", commits=4)
    w.repos["torvalds", "r0"].commit(1, content=lambda _: w.random.randbytes(7 << 20))
    w.add(*LOGINS)


def sync_all(w):
    """Each account is synced in full after this moment."""
    began = int(time.time() * 1000)
    wait_for(lambda: w.cli("HLEN", "w:archive:built") == 256, "the rebuild", seconds=300)
    wait_for(lambda: w.cli("ZCARD", "tracked") == len(LOGINS), "all accounts to be tracked")

    def done():
        late = [login for login in LOGINS if float(w.cli("ZSCORE", "tracked", w.member(login)) or 0) < began]
        for login in late:
            if w.cli("ZSCORE", "w:archive:first", w.entry(login)) is None:
                w.ask_for_sync(login)
        return not late
    try:
        wait_for(done, "a full sync of every account", seconds=300)
    except AssertionError as e:
        raise AssertionError({login: w.account(login) for login in LOGINS}) from e


def check_objects(w):
    """Each object is explained, and on one satellite: that of its slot. Audits of some repositories run by themselves, and
    leave their verdicts beside the bundles."""
    known = re.compile(r"^(?:[0-9a-f]{2}/){4}([a-z]+)(?:\.json|/r\d(?:\.bundle|\.zip|@audit\.json))$")
    places = w.places()
    for (bucket, key), where in places.items():
        if key.startswith("_map/"):
            assert len(where) == 3
            continue
        match = known.match(key)
        assert bucket == w.bucket and match and match.group(1) in LOGINS, (bucket, key)
        assert where == [w.account(match.group(1))["satellite"]], (key, where)
        assert not key.endswith("@audit.json") or (bucket, key.replace("@audit.json", ".bundle")) in places, key


def check_schedule(w):
    """`tracked` and the records agree, and each account is in one place."""
    places = [e for s in w.cli("SMEMBERS", "w:archive:sets") for e in w.cli("ZRANGE", s, "0", "-1")]
    places += w.cli("ZRANGE", "w:archive:leased", "0", "-1") + w.cli("ZRANGE", "w:archive:hold", "0", "-1")
    assert sorted(places) == sorted(w.entry(login) for login in LOGINS)


@pytest.mark.parametrize("world", range(SEED, SEED + RUNS), indirect=True)
def test_nothing_is_lost_or_left(world):
    w = world
    make_accounts(w)
    for login in LOGINS:
        w.synced(login)
    w.trouble()
    sync_all(w)
    for login, name in w.repos:
        w.same(login, name)
    w.check()
    check_objects(w)
    check_schedule(w)
    for n in (0, 1):
        scratch = w.worker_folder(n) / "archive"
        wait_for(lambda: not any(files for _, _, files in os.walk(scratch)), "the last audit to remove its files")


# --- single scenarios, by the names of the fact sheet ---

@pytest.fixture
def pair(tmp_path, serve, weir):
    made = World(tmp_path, serve, weir, 0)
    make_accounts(made)
    for login in LOGINS:
        made.synced(login)
    yield made
    made.close()


def test_redis_restart_mid_run(pair):
    w = pair
    w.redis_server.kill()
    w.repos["octocat", "r0"].commit(2)
    w.push("octocat", "r0")
    w.redis_server.start()
    sync_all(w)
    w.same("octocat", "r0")
    w.check()


def test_tracked_comes_back_after_flushdb(pair):
    """The order and the members are the same; a score is the time of the record, which is behind the start of the sync."""
    w = pair
    before = w.cli("ZRANGE", "tracked", "0", "-1", "WITHSCORES")
    w.cli("FLUSHDB")
    wait_for(lambda: w.cli("HLEN", "w:archive:built") == 256, "the rebuild", seconds=300)
    after = w.cli("ZRANGE", "tracked", "0", "-1", "WITHSCORES")
    flat = lambda rows: dict(rows if rows and isinstance(rows[0], list) else zip(rows[::2], rows[1::2]))  # noqa: E731
    before, after = flat(before), flat(after)
    assert sorted(before) == sorted(after)
    for member, score in before.items():
        assert float(score) - 1000 <= float(after[member]) < float(score) + 60_000


def test_a_paused_worker_writes_nothing(pair):
    """SIGSTOP past its lock: the other process has synced the account, and the late one changes nothing."""
    w = pair
    w.git.latency = 0.3
    w.repos["octocat", "r0"].commit(5)
    w.push("octocat", "r0")
    w.ask_for_sync("octocat")
    token = wait_for(lambda: w.cli("GET", f"lock:{w.member('octocat')}"), "the lock")
    assert re.fullmatch(r"\d+-[0-9a-f]{32}", token)
    w.workers[0].signal(signal.SIGSTOP)
    time.sleep(LOCK_S + 3)
    w.git.latency = 0
    w.workers[0].signal(signal.SIGCONT)
    sync_all(w)
    w.same("octocat", "r0")
    w.check()


def test_commands_of_the_seed_by_redis_cli(pair):
    w = pair
    w.add_repo("hubot", "r0", commits=2)
    assert w.cli("ZADD", "tracked", "0", w.member("hubot")) == 1
    wait_for(lambda: w.account("hubot")["last_sync"], "the sync of an account that was added by hand")
    w.same("hubot", "r0")
    first = w.cli("ZRANGEBYSCORE", "tracked", "-inf", "+inf", "LIMIT", "0", "1")
    assert len(first) == 1 and first[0].startswith(w.host)
    key = f"lock:{w.member('octocat')}"
    wait_for(lambda: w.cli("SET", key, "1", "EX", "10", "NX") == "OK", "the lock of octocat")
    score = w.cli("ZSCORE", "tracked", w.member("octocat"))
    w.ask_for_sync("octocat")
    assert w.cli("EXPIRE", key, "4") == 1
    until = time.monotonic() + 3
    while time.monotonic() < until:
        assert w.cli("ZSCORE", "tracked", w.member("octocat")) == score and w.cli("GET", key) == "1"
        time.sleep(0.1)
    wait_for(lambda: w.cli("ZSCORE", "tracked", w.member("octocat")) != score, "the sync behind the lock")
