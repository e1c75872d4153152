"""The store on a real redis-server."""
import json

from conftest import free_port, wait_for


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


def test_a_wrong_url_is_named_by_its_line(serve):
    server = serve(config="store:\n  engine: redis\n  redis:\n    appDB: redis://127.0.0.1/x\n")
    assert server.wait() == 2
    assert server.err == f"weir: store.redis.appDB ({server.config}:4): 'x' is not a redis database number\n"
