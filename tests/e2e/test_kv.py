"""The key-value store of the lake, opened where the configuration says."""
import json

from conftest import Redis, wait_for
from postgres_lab import postgres  # noqa: F401  (a fixture)


def parts(server):
    return json.loads(server.get("/readyz").body)["parts"]


def redis_store(redis):
    return "--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}"


def test_ready_follows_postgres(serve, postgres, weir):
    postgres.stop()
    server = serve(env={"WEIR_KV_URL": postgres.url}).ready()  # a server that is down is no reason not to start
    assert server.get("/readyz").status == 503 and parts(server)["kv"] != "ok"
    postgres.start()
    wait_for(lambda: server.get("/readyz").status == 200, "200")
    assert parts(server)["kv"] == "ok"
    assert postgres.query("SELECT convert_from(value, 'UTF8') FROM kv WHERE key = 'kv/schema/version'") == "1"
    assert postgres.query("SELECT count(*) FROM pg_inherits WHERE inhparent = 'kv'::regclass") == "100"
    postgres.stop()
    wait_for(lambda: server.get("/readyz").status == 503, "503")
    postgres.start()
    wait_for(lambda: server.get("/readyz").status == 200, "200 again")
    shown = weir("config", env={"WEIR_KV_URL": postgres.url}).stdout
    assert "kv.url" in shown
    assert "hidden" not in shown + server.err + server.out + server.get("/readyz", keys=server.keys).body
    assert server.stop() == 0


def test_a_wrong_password_ends_the_start(serve, postgres):
    server = serve(env={"WEIR_KV_URL": postgres.url.replace("hidden", "wrong-secret")})
    assert server.wait() == 2
    assert "kv.url" in server.err and "authentication failed" in server.err and "wrong-secret" not in server.err


def test_a_database_of_a_newer_program_ends_the_start(serve, postgres):
    serve(env={"WEIR_KV_URL": postgres.url}).ready().stop()
    postgres.query("UPDATE kv SET value = '4' WHERE key = 'kv/schema/version'")
    server = serve(env={"WEIR_KV_URL": postgres.url})
    assert server.wait() == 2 and "schema version 4" in server.err


def test_an_engine_without_a_server_ends_the_start(serve):
    for engine in "redis", "postgres":
        server = serve(f"--kv.engine={engine}")
        assert server.wait() == 2
        assert f"{engine} needs kv.url" in server.err and "kv.engine" in server.err


def test_it_is_where_the_store_is(serve, redis):
    server = serve(*redis_store(redis)).ready()
    assert server.get("/readyz").status == 200 and "kv" not in parts(server)
    assert "kv.not_ready" not in server.err
    server.stop()
    asked = serve(*redis_store(redis), "--kv.engine=redis", data=server.data).ready()
    assert asked.get("/readyz").status == 200 and parts(asked)["kv"] == "ok"


def test_a_redis_that_evicts_is_refused_where_it_was_asked_for(serve, tmp_path):
    """Beside the coordination store, which takes such a Redis, only the lake does without."""
    folder = tmp_path / "redis"
    folder.mkdir()
    redis = Redis(folder, "--maxmemory-policy", "allkeys-lru")
    try:
        server = serve(*redis_store(redis)).ready()
        assert server.get("/readyz").status == 200
        assert "kv.not_ready" in server.err and "allkeys-lru" in server.err
        server.stop()
        server = serve(*redis_store(redis), "--kv.engine=redis", data=server.data)
        assert server.wait() == 2 and "allkeys-lru" in server.err
        server = serve(env={"WEIR_KV_URL": f"redis://127.0.0.1:{redis.port}/5"})
        assert server.wait() == 2 and "allkeys-lru" in server.err and "kv.url" in server.err
    finally:
        redis.kill()


def test_an_emptied_redis_is_refused_until_somebody_decides(serve, tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    redis = Redis(folder)  # it keeps nothing on disk
    env = {"WEIR_KV_URL": f"redis://127.0.0.1:{redis.port}"}
    try:
        server = serve(env=env).ready()
        assert "kv.no_aof" in server.err and server.get("/readyz").status == 200
        redis.kill()
        redis.start()  # empty
        wait_for(lambda: "is empty" in server.get("/readyz", keys=server.keys).body, "the trouble to be named")
        assert server.get("/readyz").status == 503
        server.stop()
        again = serve(env=env, data=server.data)
        assert again.wait() == 2 and "is empty" in again.err and "kv.known" in again.err
        (server.data / "kv.known").unlink()
        again = serve(env=env, data=server.data).ready()
        assert again.get("/readyz").status == 200
        assert again.stop() == 0
    finally:
        redis.kill()
