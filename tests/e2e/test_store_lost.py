"""A Redis whose data were lost or set back, under weirs that knew it: nothing acknowledged is lost or misplaced, `in sync` is never a
lie, and the operator is told (docs/store-redis.md, "A store that is not the one we knew")."""
import json
import re
import shutil
import subprocess
import urllib.request

import pytest
from botocore.exceptions import ClientError

from conftest import Redis, wait_for
from replica_lab import Lab, client, content, fill, put, remove

OWNER = ("AKIAOWNER", "secret-of-the-owner")
SECOND = ("AKIASECOND", "secret-of-the-second")


def call(redis, *words):
    done = subprocess.run(["redis-cli", "-p", str(redis.port), *map(str, words)], capture_output=True, text=True, timeout=60)
    return done.stdout.strip()


def status_of(ask):
    """Of an answer, whatever it is."""
    try:
        return ask()["ResponseMetadata"]["HTTPStatusCode"]
    except ClientError as e:
        return e.response["ResponseMetadata"]["HTTPStatusCode"]


class LostLab(Lab):
    """Its Redis can be put back to what it was."""

    def every(self):
        return self.gateways + self.workers

    def keep(self, name):
        """A copy of the Redis's folder as of now."""
        self.redis.kill()
        shutil.copytree(self.redis.folder, self.folder / name)
        self.redis.start()
        wait_for(lambda: all(w.get("/readyz").status == 200 for w in self.every()), "Redis again")

    def put_back(self, name):
        self.redis.kill()
        shutil.rmtree(self.redis.folder)
        shutil.copytree(self.folder / name, self.redis.folder)

    def store(self, weir):
        return self.rest(weir, "GET", "/api/v1/store")

    def halted(self):
        for weir in self.every():
            wait_for(lambda: weir.get("/readyz").status == 503, "a weir that is not ready")
            wait_for(lambda: self.store(weir)["state"] not in ("known", "unasked"), "a halted weir")

    def serving(self):
        for weir in self.every():
            wait_for(lambda: weir.get("/readyz").status == 200, f"a weir that is ready: {weir.err[-2000:]}")

    def honest(self, bucket, model):
        """Whenever a gateway says that the replication is in sync, both sides are what the clients were told. Ends when it has said so."""
        def said():
            for n in range(2):
                row = self.rest(self.gateways[n], "GET", "/api/v1/replications")["replications"]
                if [r["state"] for r in row if r["bucket"] == bucket] == ["in sync"]:
                    assert {side: content(client(*self.endpoints[side]), bucket) == model for side in "ab"} == {"a": True, "b": True}
                    return True
        wait_for(said, "in sync")


@pytest.fixture
def lab(tmp_path):
    lab = LostLab("redis", tmp_path)
    yield lab
    lab.end()


def served_by_nobody(lab, bucket):
    """Through each gateway, for owner, second user, administrator and nobody."""
    for gateway in lab.gateways:
        for keys in (OWNER, SECOND, gateway.keys):
            s3 = client(gateway.s3_url, keys)
            assert status_of(lambda: s3.get_object(Bucket=bucket, Key="k0")) == 503
            assert status_of(lambda: s3.put_object(Bucket=bucket, Key="lost", Body=b"lost")) == 503
            assert status_of(lambda: s3.create_bucket(Bucket="misplaced")) == 503
            assert status_of(lambda: s3.list_buckets()) == 503
        with pytest.raises(urllib.error.HTTPError) as e:
            urllib.request.urlopen(f"{gateway.s3_url}/{bucket}/k0")
        assert e.value.code == 503 and b"weir store status" in e.value.read()
        assert gateway.get("/healthz").status == 200 and gateway.get("/metrics").status == 200
        assert gateway.get("/api/v1/users", keys=gateway.keys).status == 503
        assert gateway.post("/api/v1/users", {"name": "eve"}, keys=gateway.keys).status == 503
        assert not list((gateway.data / "objects").rglob("misplaced"))


def told_once(weir, event):
    return len(re.findall(rf" {event} ", weir.err)) == 1


def test_a_redis_that_comes_back_empty(lab):
    bucket, model = "flushed", {}
    lab.add_user("owner", OWNER)
    lab.add_user("second", SECOND)
    wait_for(lambda: status_of(lambda: lab.s3(1, SECOND).list_buckets()) == 200, "users everywhere")
    s3 = lab.s3(0, OWNER)
    s3.create_bucket(Bucket=bucket)
    fill(s3, bucket, model, 10)
    lab.run("replicate", "add", bucket, "b", "--user", "owner")
    lab.honest(bucket, model)
    lab.run("replicate", "pause", bucket, "--user", "owner")
    put(lab.s3(1, OWNER), bucket, model, "k0", b"answered, not copied")
    remove(s3, bucket, model, "k2")
    count = wait_for(lambda: lab.store(lab.gateways[0])["config"], "a count")
    for weir in lab.every():
        wait_for(lambda: lab.store(weir)["copied_config"] == count, "copies of the configuration")
        assert (weir.data / "config.sealed").stat().st_mode & 0o777 == 0o600
        assert b"AKIAOWNER" not in (weir.data / "config.sealed").read_bytes()
    copies = call(lab.redis, "-n", 3, "HGETALL", "w:copies")
    assert f"b:{bucket}" in str(copies)
    call(lab.redis, "FLUSHALL")
    lab.halted()
    served_by_nobody(lab, bucket)
    assert lab.store(lab.gateways[0])["state"] == "empty" and told_once(lab.gateways[0], "store.halted")
    lab.gateways[1].kill()
    lab.gateways[1].start().ready()
    lab.halted()
    served_by_nobody(lab, bucket)
    assert call(lab.redis, "-n", 3, "KEYS", "*") in ("", "w:settled"), "nothing is left in a store that is not ours"
    lab.run("store", "restore", n=1)
    assert call(lab.redis, "-n", 3, "HGETALL", "w:copies") == copies
    lab.serving()
    assert lab.run("store", "status", "--json")[0]["state"] == "known"
    lab.run("replicate", "resume", bucket, "--user", "owner", status=None)
    for n in range(2):
        assert content(lab.s3(n, OWNER), bucket) == model
        assert status_of(lambda: lab.s3(n, SECOND).get_object(Bucket=bucket, Key="k0")) == 403
    lab.honest(bucket, model)
    call(lab.redis, "FLUSHALL")
    lab.halted()
    lab.run("store", "accept", "--empty")
    lab.serving()
    assert status_of(lambda: lab.s3(0, OWNER).list_buckets()) == 403
    assert "owner" not in lab.run("user", "list")


def test_a_redis_that_went_back(lab):
    bucket, model = "older", {}
    s3 = lab.s3()
    s3.create_bucket(Bucket=bucket)
    fill(s3, bucket, model, 10)
    lab.add(bucket)
    lab.honest(bucket, model)
    lab.keep("before")
    for weirs_run in (True, False):
        lab.run("replicate", "pause", bucket, "--user", "root")
        for n in range(2):
            put(lab.s3(n), bucket, model, f"k{2 * n}", f"answered, and forgotten {weirs_run}".encode())
            put(lab.s3(n), bucket, model, f"new{n}-{weirs_run}", b"answered, and forgotten")
        remove(s3, bucket, model, "k6")
        lab.recorded()
        for weir in [] if weirs_run else lab.every():
            weir.stop() if weir in lab.gateways else weir.kill()
        lab.put_back("before")
        lab.redis.start()
        for weir in [] if weirs_run else lab.every():
            weir.start().ready()
        s3 = lab.s3()
        lab.serving()
        lab.honest(bucket, model)
        assert any(" store.went_back " in w.err or " replica.copied_anew " in w.err for w in lab.every())
        put(s3, bucket, model, "later", b"later")
        lab.honest(bucket, model)


def test_a_redis_that_lost_the_configuration(lab):
    """A user that was made, and is not known any more, is no reason to go on as if there had been none."""
    bucket, model = "config", {}
    s3 = lab.s3()
    s3.create_bucket(Bucket=bucket)
    fill(s3, bucket, model, 4)
    lab.add(bucket)
    lab.honest(bucket, model)
    lab.keep("before")
    lab.add_user("owner", OWNER)
    put(s3, bucket, model, "k0", b"answered")
    count = lab.store(lab.gateways[0])["config"]
    for weir in lab.every():
        wait_for(lambda: lab.store(weir)["copied_config"] == count, "copies of the configuration")
    lab.put_back("before")
    lab.redis.start()
    lab.halted()
    assert lab.store(lab.gateways[1])["state"] == "older"
    assert status_of(lambda: lab.s3(1).put_object(Bucket=bucket, Key="k0", Body=b"never")) == 503
    assert "--replace" in lab.run("store", "restore", status=1)
    lab.run("store", "restore", "--replace")
    lab.serving()
    for n in range(2):
        wait_for(lambda: status_of(lambda: lab.s3(n, OWNER).list_buckets()) == 200, "the user")
    lab.honest(bucket, model)
    lab.put_back("before")
    lab.redis.start()
    lab.halted()
    lab.run("store", "accept", "--older", n=1)
    lab.serving()
    assert "owner" not in lab.run("user", "list")
    lab.honest(bucket, model)


def test_a_redis_of_another_installation(serve, tmp_path):
    redises = []
    for name in ("ours", "theirs"):
        (tmp_path / name).mkdir()
        redises.append(Redis(tmp_path / name))
    (tmp_path / "run0" / "data").mkdir(parents=True)

    def start(n, folder):
        return serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redises[n].port}",
                     folder=tmp_path / folder).ready()
    theirs = start(1, "theirs-weir")
    assert theirs.post("/api/v1/users", {"name": "theirs"}, keys=theirs.keys).status == 201
    assert theirs.stop() == 0
    ours = start(0, "ours-weir")
    ours.box().put_object(Bucket="box", Key="k", Body=b"ours")
    known = json.loads(ours.get("/api/v1/store", keys=ours.keys).body)["installation"]
    assert ours.stop() == 0
    before = call(redises[1], "-n", 3, "DBSIZE"), call(redises[1], "-n", 1, "HLEN", "w:seen")
    ours = start(1, "ours-weir")
    try:
        assert ours.get("/readyz").status == 503 and ours.get("/healthz").status == 200
        store = json.loads(ours.get("/api/v1/store", keys=ours.keys).body)
        assert (store["state"], store["installation"]) == ("other", known) and store["found"] not in ("", known)
        assert status_of(lambda: ours.s3().get_object(Bucket="box", Key="k")) == 503
        assert (call(redises[1], "-n", 3, "DBSIZE"), call(redises[1], "-n", 1, "HLEN", "w:seen")) == before

        def accept(installation):
            return ours.post("/api/v1/store/accept", {"what": "other", "installation": installation}, keys=ours.keys).status
        assert accept("0" * 32) == 409
        assert ours.post("/api/v1/store/accept", {"what": "empty"}, keys=ours.keys).status == 409
        assert ours.post("/api/v1/store/restore", {"replace": True}, keys=ours.keys).status == 409
        assert ours.stop() == 0
        shutil.copy(theirs.data / "secrets.key", ours.data)  # theirs are sealed with it
        ours = start(1, "ours-weir")
        assert accept(store["found"]) == 200
        wait_for(lambda: ours.get("/readyz").status == 200, "ready")
        wait_for(lambda: "theirs" in ours.get("/api/v1/users", keys=ours.keys).body, "their users")
        assert ours.s3().get_object(Bucket="box", Key="k")["Body"].read() == b"ours"
        assert ours.stop() == 0
        ours = start(0, "ours-weir")
        assert json.loads(ours.get("/api/v1/store", keys=ours.keys).body)["found"] == known
    finally:
        for redis in redises:
            redis.kill()
