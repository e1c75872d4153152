"""The lake on a full disk and on a full Redis: writes and commits fail, reads, removals and resets go on."""
import subprocess

from lake_lab import Lake
from test_disks import MIB, small  # noqa: F401  (a fixture)

REPO = "/repositories/repo"
MAIN = REPO + "/branches/main"


def fill_lake(lake):
    """A repository with twenty committed objects, twenty that are staged, ten branches and ten tags."""
    lake.repo()
    for i in range(20):
        lake.put(f"old/{i}")
    lake.commit()
    for i in range(10):
        lake.call("POST", REPO + "/branches", {"name": f"b{i}", "source": "main"})
        lake.call("POST", REPO + "/tags", {"id": f"t{i}", "ref": "main"})
        lake.put("x", branch=f"b{i}")
    for i in range(20):
        lake.put(f"new/{i}")


def use_full_lake(lake, n, refused):
    """What a lake does that is full for the n-th time, twice at most."""
    before, k = lake.paths(), 8 * n
    for method, path, body, more in (("POST", MAIN + "/objects", b"data", {"path": "z"}),
                                     ("POST", MAIN + "/commits", {"message": "m"}, {}),
                                     ("POST", REPO + "/branches", {"name": "z", "source": "main"}, {})):
        answer = lake.send(method, path, body, **more)
        assert answer.status == refused, (path, answer.status, answer.body)
    assert lake.get(f"old/{k}") == b"data" and lake.paths() == before
    lake.call("DELETE", MAIN + "/objects", path=f"old/{k}")
    lake.call("DELETE", MAIN + "/objects", path=f"new/{k}")
    gone = {"paths": [f"old/{k + 2}", f"new/{k + 2}"]}
    assert lake.call("POST", MAIN + "/objects/delete", gone)["errors"] == []
    left = [p for p in before if p.split("/")[1] not in (str(k), str(k + 2))]
    assert lake.paths() == left
    lake.call("PUT", MAIN, {"type": "object", "path": f"new/{k + 4}"})
    left.remove(f"new/{k + 4}")
    assert lake.paths() == left
    lake.call("PUT", MAIN, {"type": "common_prefix", "path": f"new/{k + 5}"})
    left = [p for p in left if not p.startswith(f"new/{k + 5}")]
    assert lake.paths() == left
    lake.call("PUT", REPO + f"/branches/b{n}", {"type": "reset"})
    assert "x" not in lake.paths(f"b{n}")
    lake.call("DELETE", REPO + f"/branches/b{n + 2}")
    lake.call("DELETE", REPO + f"/tags/t{n}")


def test_removals_and_resets_go_on_when_the_disk_is_full(small):
    server = small.start().ready()
    lake = Lake(server, keys=small.KEYS)
    fill_lake(lake)
    for n, leave in enumerate((40 * MIB, 0)):
        small.fill(leave)
        use_full_lake(lake, n, 507)
    lake.call("PUT", MAIN, {"type": "reset"})
    assert lake.paths() == sorted(f"old/{i}" for i in range(20))
    lake.call("DELETE", REPO)
    small.filler.unlink()
    lake.repo("again")
    assert server.stop() == 0


def redis_call(redis, *words):
    return subprocess.run(["redis-cli", "-p", str(redis.port), *map(str, words)], capture_output=True, text=True,
                          timeout=60, check=True).stdout.strip()


def redis_memory(redis):
    lines = redis_call(redis, "INFO", "memory").splitlines()
    return int(dict(line.split(":", 1) for line in lines if ":" in line)["used_memory"])


def test_removals_and_resets_go_on_when_redis_is_full(serve, redis):
    server = serve(env={"WEIR_KV_URL": f"redis://127.0.0.1:{redis.port}"}).ready()
    lake = Lake(server)
    fill_lake(lake)
    redis_call(redis, "CONFIG", "SET", "maxmemory", redis_memory(redis) - 64 * 1024)
    use_full_lake(lake, 0, 507)
    # The reserve of removals is a sixteenth of maxmemory.
    redis_call(redis, "CONFIG", "SET", "maxmemory", redis_memory(redis) // 2)
    assert lake.send("DELETE", MAIN + "/objects", path="old/10").status == 507
    assert lake.get("old/10") == b"data"
    lake.remove("x", branch="b4")  # its row goes, and no other comes
    redis_call(redis, "CONFIG", "SET", "maxmemory", 0)
    lake.call("DELETE", MAIN + "/objects", path="old/10")
    lake.commit()
    assert "old/10" not in lake.paths() and "old/0" not in lake.paths()
