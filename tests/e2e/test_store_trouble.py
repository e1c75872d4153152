"""A Redis that answers and takes no writes: readiness names the trouble, clients are told of it."""
import json
import subprocess

import pytest
from botocore.exceptions import ClientError

from conftest import Redis, wait_for


def call(redis, *words):
    return subprocess.run(["redis-cli", "-p", str(redis.port), *map(str, words)], capture_output=True, text=True,
                          timeout=60).stdout.strip()


def fill_up(redis):
    """Full, with what is there already; nothing is evicted."""
    call(redis, "CONFIG", "SET", "maxmemory-policy", "noeviction")
    call(redis, "CONFIG", "SET", "maxmemory", "1")


def lose_the_disk(redis):
    """Its file of snapshots cannot be made, as a folder has the name."""
    (redis.folder / "taken.rdb" / "x").mkdir(parents=True)
    call(redis, "CONFIG", "SET", "save", "3600 1")
    call(redis, "BGSAVE")
    wait_for(lambda: "rdb_last_bgsave_status:err" in call(redis, "INFO", "persistence"), "a failed snapshot")


def ask_for_a_password(redis):
    call(redis, "CONFIG", "SET", "requirepass", "hidden")
    call(redis, "-a", "hidden", "CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")
    call(redis, "-a", "hidden", "CLIENT", "KILL", "TYPE", "pubsub")


TROUBLES = {
    "OOM": (fill_up, ("CONFIG", "SET", "maxmemory", "0")),
    "READONLY": (lambda r: call(r, "REPLICAOF", "127.0.0.1", 1), ("REPLICAOF", "NO", "ONE")),
    "MISCONF": (lose_the_disk, ("CONFIG", "SET", "save", "")),
    "NOREPLICAS": (lambda r: call(r, "CONFIG", "SET", "min-replicas-to-write", 1),
                   ("CONFIG", "SET", "min-replicas-to-write", 0)),
    "NOAUTH": (ask_for_a_password, ("-a", "hidden", "CONFIG", "SET", "requirepass", "")),
}


def refusal(s3):
    """What a write is refused with; None: it was taken."""
    try:
        s3.put_object(Bucket="box", Key="k", Body=b"x")
        return None
    except ClientError as e:
        return e.response["ResponseMetadata"]["HTTPStatusCode"], e.response["Error"]


@pytest.fixture
def pairs(tmp_path, serve):
    """Each trouble with a Redis and a weir of its own, so that their leases end at the same time."""
    made = {}
    for name in TROUBLES:
        (tmp_path / name).mkdir()
        made[name] = Redis(tmp_path / name, "--dbfilename", "taken.rdb")
    weirs = {name: serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{r.port}")
             for name, r in made.items()}
    yield {name: (made[name], weirs[name].ready()) for name in TROUBLES}
    for redis in made.values():
        redis.kill()


def test_a_redis_that_takes_no_writes(pairs, weir):
    clients = {name: server.box() for name, (_, server) in pairs.items()}
    for name, (redis, server) in pairs.items():
        assert server.get("/readyz").status == 200
        TROUBLES[name][0](redis)
    for name, (redis, server) in pairs.items():
        wait_for(lambda: server.get("/readyz").status == 503, f"not ready by {name}")
        parts = json.loads(server.get("/readyz", keys=server.keys).body)["parts"]
        assert all(name in parts[f"store.{db}"] for db in ("appDB", "queueDB", "lockDB", "configDB", "swarmDB")), parts
        assert set(json.loads(server.get("/readyz").body)["parts"].values()) == {"ok", "failed"}
        assert server.get("/healthz").status == 200
        told = weir("status", "--data", server.data, "--url", server.url)
        assert told.returncode == 1 and name in told.stdout
    for name, s3 in clients.items():
        status, error = wait_for(lambda: refusal(s3), f"a refused write by {name}")
        assert (status, error["Code"]) == (503, "ServiceUnavailable"), error
        assert f"({name})" in error["Message"] and "rate" not in error["Message"], error
    for name, (redis, server) in pairs.items():
        call(redis, *TROUBLES[name][1])
        wait_for(lambda: server.get("/readyz").status == 200, f"ready after {name}")
        wait_for(lambda: refusal(clients[name]) is None, f"writes after {name}")
