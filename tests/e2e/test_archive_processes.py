"""The archive with several processes over one Redis: races, processes that die or sleep past their lock, and a Redis that
is emptied. The storage is another weir, which all processes reach."""
import json
import os
import shutil
import signal
import subprocess
import time

import pytest
from archive_lab import Archive
from conftest import wait_for

LOGINS = [f"user{i}" for i in range(8)]


class Fleet:
    """A weir that serves, and weirs that only archive, over one Redis and one storage."""

    def __init__(self, tmp_path, serve, weir, redis, **more):
        (tmp_path / "storage").mkdir()
        self.storage = serve("--only=gateway", folder=tmp_path / "storage").ready()
        self.lab = Archive(tmp_path, serve, weir, redis=redis, args=["--archive.satellites=far"],
                           storages="access_key: administrator\nsecret_key: longsecret\n",
                           serve_args=["--only=gateway,worker"], **more)
        self.serve, self.tmp_path, self.workers = serve, tmp_path, []
        self.lab.objects = self.storage
        keys = self.storage.keys
        run = lambda *args: weir(*args, "--data", self.lab.server.data, "--url", self.lab.server.url)
        done = run("user", "add", "far")
        assert done.returncode == 0, done.stderr
        done = run("storage", "add", "far", "--endpoint", self.storage.s3_url, "--user", "far", "--access-key", keys[0],
                   "--secret-key", keys[1])
        assert done.returncode == 0, done.stderr

    def worker(self):
        folder = self.tmp_path / f"worker{len(self.workers)}"
        (folder / "data").mkdir(parents=True)
        os.chmod(folder / "data", 0o700)
        shutil.copy(self.lab.server.data / "secrets.key", folder / "data/secrets.key")
        self.workers.append(self.serve(*self.lab.args, "--only=archive,worker", folder=folder, config=self.lab.config))
        return self.workers[-1].ready()


@pytest.fixture
def fleet(tmp_path, serve, weir, redis):
    made = []

    def make(**more):
        made.append(Fleet(tmp_path, serve, weir, redis, **more))
        return made[-1]
    yield make
    for one in made:
        one.lab.close()


def cli(redis, *args):
    return subprocess.run(["redis-cli", "-p", str(redis.port), *args], capture_output=True, text=True,
                          check=True).stdout.strip()


def check_all(a, logins, repos=2):
    for login in logins:
        for i in range(repos):
            a.same(login, f"r{i}")
    a.check()
    assert not a.uploads()


def filled(fleet, **more):
    f = fleet(**more)
    for login in LOGINS:
        for i in range(2):
            f.lab.add_repo(login, f"r{i}", commits=8)
    return f


def test_two_workers_race_one_user(fleet):
    """Two processes share the accounts: each is synced once, and never by both at a time."""
    f = filled(fleet)
    f.worker(), f.worker()
    f.lab.add(*LOGINS)
    for login in LOGINS:
        f.lab.synced(login)
    # The refs of a repository are listed once: nobody has synced an account twice.
    for login in LOGINS:
        for i in range(2):
            assert f.lab.git.count("GET", rf"/{login}/r{i}\.git/info/refs") == 1
    done = [w.metric('weir_archive_syncs_total{outcome="full"}') for w in f.workers]
    assert sum(done) == len(LOGINS)
    check_all(f.lab, LOGINS)


def test_worker_death_mid_backup(fleet):
    """kill -9 while packs flow: another process has the account within seconds of the lock's end."""
    f = filled(fleet)
    first = f.worker()
    f.lab.git.latency = 0.3
    f.lab.add(*LOGINS)
    wait_for(lambda: f.lab.git.count("POST") >= 6, "fetches")
    first.signal(signal.SIGKILL)
    first.wait()
    f.lab.git.latency = 0
    since = time.monotonic()
    f.worker()
    for login in LOGINS:
        f.lab.synced(login)
    assert time.monotonic() - since < 60
    check_all(f.lab, LOGINS)


def test_paused_worker_resumes_after_ttl(fleet):
    """SIGSTOP for longer than the lock lives: another process takes over, and the sleeper writes nothing."""
    f = filled(fleet)
    sleeper = f.worker()
    f.lab.git.latency = 0.3
    f.lab.add(*LOGINS)
    wait_for(lambda: f.lab.git.count("POST") >= 6, "fetches")
    sleeper.signal(signal.SIGSTOP)
    f.worker()
    for login in LOGINS:
        f.lab.synced(login)
    before = {login: f.lab.head(login, ".json")["ETag"] for login in LOGINS}
    sleeper.signal(signal.SIGCONT)
    lost = lambda: sleeper.metric("weir_archive_locks_lost_total") + sleeper.metric(
        'weir_archive_syncs_total{outcome="put_back"}')
    wait_for(lambda: lost() > 0 and sleeper.metric("weir_archive_runners_busy") == 0, "the sleeper's end")
    assert {login: f.lab.head(login, ".json")["ETag"] for login in LOGINS} == before
    f.lab.git.latency = 0
    check_all(f.lab, LOGINS)


def test_losing_redis_loses_nothing(fleet, redis):
    """appDB is emptied: `tracked` comes back from the storage, and later commits are archived."""
    f = filled(fleet)
    f.worker()
    f.lab.add(*LOGINS)
    for login in LOGINS:
        f.lab.synced(login)
    before = sorted(cli(redis, "ZRANGE", "tracked", "0", "-1").split())
    assert cli(redis, "-n", "0", "FLUSHDB") == "OK"
    wait_for(lambda: sorted(cli(redis, "ZRANGE", "tracked", "0", "-1").split()) == before, "the rebuild")
    wait_for(lambda: f.lab.api("/status")["built"] == 256, "all slots")
    repo = f.lab.repos["user3", "r1"]
    repo.commit(2)
    f.lab.push("user3", "r1")
    f.lab.sync("user3")
    check_all(f.lab, LOGINS)


# --- forges that only the store knows ---

@pytest.fixture
def added_forge(tmp_path, serve, weir, redis):
    """An archive with an account of a forge that was added by the command: the same forge, under another name."""
    a = Archive(tmp_path, serve, weir, redis=redis, token=False)
    a.add_repo("octocat", "Hello-World")
    a.host = a.host.replace("127.0.0.1", "localhost")
    a.bucket = a.host.replace(":", "-")
    a.again = lambda: a.run("forge", "add", a.host, "--kind", "github", "--api", a.forge.api, "--git", a.git.base)
    a.again()
    a.add("octocat")
    a.synced("octocat")
    yield a
    a.close()


def tracked(redis):
    return cli(redis, "ZRANGE", "tracked", "0", "-1").split()


def rebuilt(a, redis):
    wait_for(lambda: cli(redis, "HLEN", "w:archive:built") == "256", "the rebuild")
    return tracked(redis)


def test_accounts_of_added_forges_come_back_with_the_store(added_forge, redis):
    """All of Redis is emptied, and weir is started again before the configuration is there: it knows no added forge when the
    rebuild begins."""
    a = added_forge
    store = lambda: json.loads(a.server.get("/api/v1/store", keys=a.server.keys).body)
    wait_for(lambda: (s := store())["copied_config"] == s["config"] > 0, "a copy of the configuration")
    assert cli(redis, "FLUSHALL") == "OK"
    wait_for(lambda: a.server.get("/readyz").status == 503, "a halted weir")
    folder = a.server.folder
    a.server.signal(signal.SIGKILL)
    a.server.wait()
    a.serve(folder=folder)
    wait_for(lambda: store()["state"] == "empty", "a weir that is halted from its start")
    done = a.command("store", "restore", "--data", a.server.data, "--url", a.server.url)
    assert done.returncode == 0, done.stderr
    assert rebuilt(a, redis) == [a.member("octocat")]
    a.same("octocat", "Hello-World")


def test_a_rebuild_asks_the_store_for_the_forges(added_forge, redis):
    """The store has a forge of which the process has perhaps not heard: it reads the forges again in its own time. The
    forge's accounts are found in any case."""
    a = added_forge
    config = lambda *args: cli(redis, "-n", "3", *args)
    key = next(k for k in config("KEYS", "forge:*").split())
    assert config("COPY", key, "kept") == "1"
    a.run("forge", "remove", a.host)
    assert config("RENAME", "kept", key) == "OK" and config("SADD", "forges", a.host) == "1"
    assert cli(redis, "-n", "0", "FLUSHDB") == "OK"
    assert rebuilt(a, redis) == [a.member("octocat")]


def test_a_forge_that_is_added_again_has_its_accounts(added_forge, redis):
    a = added_forge
    a.run("forge", "remove", a.host)
    assert cli(redis, "-n", "0", "FLUSHDB") == "OK"
    assert rebuilt(a, redis) == []
    a.again()
    wait_for(lambda: tracked(redis) == [a.member("octocat")], "the account")
    assert a.account("octocat")["repositories"] == 1
    wait_for(lambda: cli(redis, "HLEN", "w:archive:built") == "256", "the rebuild")
