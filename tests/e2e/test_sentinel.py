"""The store on a Redis that sentinels watch over: weir follows the master by itself (docs/store-redis.md, "Sentinel")."""
import json
import re
import signal
import subprocess

import pytest

from conftest import wait_for
from sentinel_lab import Group


@pytest.fixture
def group(tmp_path):
    """group(...) starts servers and sentinels; they are ended afterwards."""
    made = []

    def start(**more):
        made.append(Group(tmp_path / f"group{len(made)}", **more))
        return made[-1]
    yield start
    for one in made:
        one.kill()


def on(serve, url, *args, **more):
    return serve("--store.engine=redis", f"--store.redis.url={url}", "--store.redis.timeout=2s", *args, **more).ready()


def is_ready(server):
    return server.get("/readyz").status == 200


def add_user(server, name):
    """Whether it is there, perhaps by an earlier call whose outcome was unknown; refused is 503 and nothing else."""
    answer = server.post("/api/v1/users", {"name": name}, keys=server.keys)
    assert answer.status in (201, 409, 503), answer.body
    return answer.status != 503


def users(server):
    return {u["name"] for u in json.loads(server.get("/api/v1/users", keys=server.keys).body)["users"]}


def test_the_master_is_followed_and_an_old_one_is_never_written_to_again(serve, group):
    g = group()
    server = on(serve, g.url())
    wait_for(lambda: is_ready(server), "the store")
    assert add_user(server, "before")
    old = g.fail_over()
    wait_for(lambda: add_user(server, "after"), "a write")
    assert {"before", "after"} <= users(server)
    # It comes back as a master, with nothing of what was written meanwhile. The sentinels need ten seconds to make it a
    # replica; the writes of this time go to the other one.
    old.start()
    wait_for(old.answers, "the old master")
    for n in range(20):
        assert add_user(server, f"later{n}")
    assert g.master().call("SISMEMBER", "users", "later19", database=3) == ["1"]
    assert old.call("ROLE")[0] == "slave" or old.call("EXISTS", "users", database=3) == ["0"]
    assert is_ready(server)


def test_a_master_that_hangs_is_left(serve, group):
    """It takes connections and answers nobody. When it wakes it still thinks that it is the master."""
    g = group()
    server = on(serve, g.url())
    wait_for(lambda: is_ready(server), "the store")
    assert add_user(server, "before")
    old = g.fail_over(signal.SIGSTOP)
    wait_for(lambda: add_user(server, "after"), "a write")
    old.signal(signal.SIGCONT)
    for n in range(10):
        assert add_user(server, f"later{n}")
    assert {f"later{n}" for n in range(10)} <= users(server)
    assert g.master().call("SISMEMBER", "users", "later9", database=3) == ["1"]


def test_what_others_changed_during_the_failover_is_seen(serve, group, tmp_path):
    """Subscriptions are made again at the new master, and what is kept in memory is loaded anew."""
    g = group()
    first, second = tmp_path / "first", tmp_path / "second"
    for folder in (first, second):
        (folder / "data").mkdir(parents=True, mode=0o700)
        (folder / "data/secrets.key").write_bytes(b"k" * 32)
        (folder / "data/secrets.key").chmod(0o600)
    one, other = on(serve, g.url(), folder=first), on(serve, g.url(), folder=second)
    for server in (one, other):
        wait_for(lambda: is_ready(server), "the store")
    assert add_user(one, "before")
    wait_for(lambda: "before" in users(other), "the message")
    g.fail_over()
    wait_for(lambda: add_user(one, "after"), "a write")
    wait_for(lambda: "after" in users(other), "the user")
    assert add_user(one, "later")
    wait_for(lambda: "later" in users(other), "the message")


def test_sentinels_that_are_down(serve, group):
    g = group()
    g.sentinels[0].kill()
    server = on(serve, g.url())
    wait_for(lambda: is_ready(server), "the store with a sentinel less")
    for sentinel in g.sentinels:
        sentinel.kill()
    wait_for(lambda: server.err.count("store.sentinel.down") == 3, "three lines")
    assert is_ready(server) and add_user(server, "without-sentinels")
    g.servers[0].call("CLIENT", "KILL", "TYPE", "normal")  # new connections go to the master that is known
    wait_for(lambda: add_user(server, "anew"), "a write")
    late = on(serve, g.url())
    assert late.get("/readyz").status == 503
    assert "no sentinel tells the address of master 'main'" in late.get("/readyz", keys=late.keys).body
    for sentinel in g.sentinels[1:]:
        sentinel.start()
    wait_for(lambda: is_ready(late), "the store")
    wait_for(lambda: server.err.count("store.sentinel.up") == 2, "two lines")
    g.servers[0].kill()
    wait_for(lambda: g.master(1) not in (None, g.servers[0]), "a failover")
    wait_for(lambda: add_user(server, "other-master"), "a write")


def test_a_master_that_no_sentinel_knows(serve, group):
    g = group(replicas=0, sentinels=1)
    server = on(serve, g.url(name="mian"))
    answer = server.get("/readyz", keys=server.keys)
    assert answer.status == 503
    assert f"sentinel 127.0.0.1:{g.sentinels[0].port}: it knows no master of that name" in answer.body
    assert "no sentinel tells the address of master 'mian'" in answer.body
    assert "it knows no master of that name" in server.err


def certificate(folder):
    """Of this machine, signed by itself."""
    cert, key = folder / "cert.pem", folder / "key.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-keyout",
                    str(key), "-out", str(cert), "-days", "2", "-subj", "/CN=weir test", "-addext",
                    "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)
    return cert, key


def test_tls_and_passwords_of_both(serve, group, tmp_path, weir):
    cert, key = certificate(tmp_path)
    g = group(password="of-the-servers", sentinel_password="of-the-sentinels", tls=(cert, key))
    url = g.url(":of-the-servers@", query="?sentinel_password=of-the-sentinels")
    server = on(serve, url, f"--store.redis.tls.ca={cert}")
    wait_for(lambda: is_ready(server), "the store")
    assert add_user(server, "before")
    g.fail_over()
    wait_for(lambda: add_user(server, "after"), "a write")
    shown = weir("config", env={"WEIR_STORE_REDIS_URL": url}).stdout
    assert f":***@127.0.0.1:{g.sentinels[0].port}" in shown and "sentinel_password=***" in shown
    # A password that is wrong or missing is told of with the server that refuses it. No password is ever shown.
    for query, told in (("?sentinel_password=not-this", "WRONGPASS"), ("", "NOAUTH")):
        one = on(serve, g.url(":of-the-servers@", query=query), f"--store.redis.tls.ca={cert}")
        answer = one.get("/readyz", keys=one.keys)
        assert answer.status == 503 and re.search(f"sentinel 127.0.0.1:[^\"]*{told}", answer.body), answer.body
        assert not re.search("of-the|not-this", answer.body + one.err + one.out)
    one = serve("--store.engine=redis", "--store.redis.url=" + g.url(":nor-that@", query="?sentinel_password=of-the-sentinels"),
                f"--store.redis.tls.ca={cert}")
    assert one.wait() == 2 and re.search(rf"WRONGPASS .* \(127.0.0.1:{g.master().port}\)", one.err) and "that@" not in one.err
    assert "of-the" not in shown + server.err + server.out + one.err


def test_one_password_is_for_both_and_sentinels_without_one_do_not_mind(serve, group):
    for sentinel_password in ("shared-secret", None):
        g = group(replicas=0, sentinels=1, password="shared-secret", sentinel_password=sentinel_password)
        server = on(serve, g.url(":shared-secret@"))
        wait_for(lambda: is_ready(server), "the store")
        assert add_user(server, "one")
