"""The store on a real redis-server."""
import json
import shutil
import socket

from conftest import Redis, free_port, wait_for


def test_ready_follows_redis(serve, redis):
    server = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}").ready()
    assert json.loads(server.get("/readyz").body)["ready"]
    redis.kill()
    wait_for(lambda: server.get("/readyz").status == 503, "503")
    answer = json.loads(server.get("/readyz").body)
    assert answer["parts"]["db"] == "ok" and answer["parts"]["store.queueDB"] != "ok"
    assert server.get("/healthz").status == 200
    redis.start()
    wait_for(lambda: server.get("/readyz").status == 200, "200 again")


def test_each_database_may_live_elsewhere(serve, redis):
    server = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}",
                   f"--store.redis.lockDB=redis://127.0.0.1:{free_port()}").ready()
    answer = server.get("/readyz")
    parts = json.loads(answer.body)["parts"]
    assert answer.status == 503
    assert {name for name, state in parts.items() if state != "ok"} == {"store.lockDB"}


def test_a_redis_that_is_down_at_the_start_is_no_reason_not_to_start(serve, weir):
    server = serve("--store.engine=redis", f"--store.redis.url=redis://:hidden@127.0.0.1:{free_port()}").ready()
    assert server.get("/readyz").status == 503
    assert "hidden" not in server.get("/readyz", keys=server.keys).body + server.err + server.out
    assert "127.0.0.1" in server.get("/readyz", keys=server.keys).body
    assert "127.0.0.1" not in server.get("/readyz").body
    run = weir("status", "--url", server.url)
    assert run.returncode == 1 and "store.appDB" in run.stdout


def test_a_second_weir_is_told_which_key_file_to_copy_and_where_to(serve, redis, tmp_path):
    """A missing secrets.key is not made anew beside secrets that are sealed, nor is another one used."""
    store = ("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}")
    first = serve(*store).ready()
    right = f"{socket.gethostname()}:{first.data.resolve()}/secrets.key"
    for key in (None, b"x" * 32):
        data = tmp_path / f"second{len(key or '')}"
        data.mkdir(mode=0o700)
        if key:
            (data / "secrets.key").write_bytes(key)
            (data / "secrets.key").chmod(0o600)
        second = serve(*store, data=data)
        assert second.wait() == 2
        what = "is not the key file that the users' secrets are sealed with" if key else "is missing, and"
        assert f"{data}/secrets.key {what}" in second.err
        assert second.err.endswith(f": copy {right} to {data}/secrets.key, with mode 0600\n"), second.err
        assert (data / "secrets.key").exists() == bool(key)
        shutil.copy(first.data / "secrets.key", data)
        assert serve(*store, data=data).ready().stop() == 0


def test_first_administrators_that_differ_are_told_of(serve, redis, tmp_path):
    store = ("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}")
    servers = []
    for n, secret in enumerate(("one-secret-for-all", "one-secret-for-all", "another-secret")):
        folder = tmp_path / f"weir{n}"
        (folder / "data").mkdir(parents=True, mode=0o700)
        (folder / "data/secrets.key").write_bytes(b"k" * 32)
        (folder / "data/secrets.key").chmod(0o600)
        servers.append(serve(*store, folder=folder, env={"WEIR_ACCESS_KEY": "ROOTOFALL", "WEIR_SECRET_KEY": secret}).ready())
    assert ["users.root_differs" in s.err for s in servers] == [False, False, True]
    assert f"{servers[1].data.resolve()}/secrets.key" in servers[2].err and "WEIR_ACCESS_KEY" in servers[2].err
    assert servers[2].stop() == 0
    again = serve(*store, data=servers[2].data, env={"WEIR_ACCESS_KEY": "ROOTOFALL", "WEIR_SECRET_KEY": "one-secret-for-all"})
    assert "users.root_differs" not in again.ready().err


def test_a_wrong_url_is_named_by_its_line(serve):
    server = serve(config="store:\n  engine: redis\n  redis:\n    appDB: redis://127.0.0.1/x\n")
    assert server.wait() == 2
    assert server.err == f"weir: store.redis.appDB ({server.config}:4): 'x' is not a redis database number\n"


def test_a_redis_that_would_lose_data_is_warned_of(serve, tmp_path):
    """At the start, and when Redis has become another run of itself."""
    args = {"bad": ("--maxmemory", "100mb", "--maxmemory-policy", "allkeys-lru"), "good": ("--appendonly", "yes")}
    redises, weirs = {}, {}
    for name in args:
        (tmp_path / name).mkdir()
        redises[name] = Redis(tmp_path / name, *args[name])
        weirs[name] = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redises[name].port}")
    try:
        wait_for(lambda: " store.no_aof " in weirs["bad"].ready().err and " store.evicts " in weirs["bad"].err, "warnings")
        redises["good"].kill()
        redises["good"].args += args["bad"]
        redises["good"].start()
        wait_for(lambda: " store.evicts " in weirs["good"].ready().err, "a warning")
        assert " store.no_aof " not in weirs["good"].err and weirs["good"].err.count(" store.evicts ") == 1
    finally:
        for redis in redises.values():
            redis.kill()
