"""The work queue through the commands: what waits, what failed and why, and what an operator does about it."""
import json
import re
import shutil
import socket

import pytest

from conftest import DEADLINE, free_port, runner, wait_for


class Queue:
    """Tasks put into a redis-server as Asynq's clients do."""

    def __init__(self, port):
        self.socket = socket.create_connection(("127.0.0.1", port), DEADLINE)
        self.answers = self.socket.makefile("rb")
        self.call("SELECT", "1")

    def call(self, *words):
        words = [w if isinstance(w, bytes) else str(w).encode() for w in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.read()

    def read(self):
        line = self.answers.readline().rstrip()
        if line[:1] == b"$":
            size = int(line[1:])
            return None if size < 0 else self.answers.read(size + 2)[:-2]
        if line[:1] == b"*":
            return [self.read() for _ in range(int(line[1:]))]
        assert line[:1] != b"-", line
        return line[1:]

    def add(self, queue, id, payload, type="object:sync"):
        message = b"".join(bytes([number << 3 | 2]) + varint(len(text.encode())) + text.encode()
                           for number, text in ((1, type), (2, payload), (3, id), (4, queue)))
        message += bytes([5 << 3]) + varint(25)
        prefix = f"asynq:{{{queue}}}:"
        self.call("SADD", "asynq:queues", queue)
        self.call("HSET", f"{prefix}t:{id}", "msg", message, "state", "pending", "pending_since", "1")
        self.call("LPUSH", f"{prefix}pending", id)


    def end_leases(self):
        """As if all that workers had taken were half a minute old."""
        for queue in self.call("SMEMBERS", "asynq:queues"):
            key = b"asynq:{%s}:lease" % queue
            for id in self.call("ZRANGE", key, 0, -1):
                self.call("ZADD", key, "XX", 1, id)


def varint(number):
    out = b""
    while number > 127:
        out += bytes([number & 127 | 128])
        number >>= 7
    return out + bytes([number])


@pytest.fixture
def on_redis(serve, redis):
    """on_redis(*args): a server with its store there."""
    def start(*args, **more):
        return serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}", *args, **more).ready()
    return start


def test_tasks_are_listed_shown_and_deleted(on_redis, redis, weir):
    server = on_redis("--only", "gateway")
    run, queue = runner(server, weir), Queue(redis.port)
    assert run("task", "queues", "--json") == [] and run("task", "list", "--json") == []
    payload = {"Object": {"Bucket": "photos", "Name": "a: b%/ü", "Version": ""}, "ToStorage": "disk2"}
    for n in range(3):
        queue.add("events1", f"id{n}", json.dumps(payload))
    queue.add("api", "other", "no JSON")
    rows = run("task", "list", "--json")
    assert [(r["queue"], r["id"], r["state"]) for r in rows] == [
        ("api", "other", "pending"), ("events1", "id0", "pending"), ("events1", "id1", "pending"),
        ("events1", "id2", "pending")]
    assert rows[1]["payload"] == payload and rows[0]["payload"] == "no JSON" and rows[1]["tries"] == 0
    assert [r["id"] for r in run("task", "list", "--queue", "api", "--json")] == ["other"]
    assert run("task", "list", "--state", "archived", "--json") == []
    assert "there are more" in run("task", "list", "--limit", "2")
    assert run("task", "show", "events1", "id1", "--json")[0]["max_tries"] == 25
    run("task", "delete", "events1", "id1")
    assert "no task id1 in queue events1" in run("task", "show", "events1", "id1", status=1)
    assert "id1" not in run("task", "list")
    assert "is pending, not running; delete it instead" in run("task", "cancel", "events1", "id0", status=1)
    counts = {r["name"]: r["pending"] for r in run("task", "queues", "--json")}
    assert counts == {"api": 1, "events1": 2}


def test_a_worker_gives_up_what_it_does_not_know_and_tells_why(on_redis, redis, weir):
    server = on_redis()
    run, queue = runner(server, weir), Queue(redis.port)
    run("task", "pause", "events1")
    queue.add("events1", "strange", "{}", type="no:such")
    queue.add("api", "quick", "{}", type="no:such")
    wait_for(lambda: run("task", "show", "api", "quick", "--json")[0]["state"] == "archived", "the other queue")
    row = run("task", "show", "events1", "strange", "--json")[0]
    assert row["state"] == "pending"
    run("task", "resume", "events1")
    wait_for(lambda: run("task", "show", "events1", "strange", "--json")[0]["state"] == "archived", "its run")
    row = run("task", "show", "events1", "strange", "--json")[0]
    assert row["error"] == "this process cannot run tasks of type no:such"
    assert re.search(r"ago|now", row["when"]) and row["due"].startswith("20")
    assert "this process cannot run" in run("task", "list", "--state", "archived")
    before = {r["name"]: r["failed"] for r in run("task", "queues", "--json")}["events1"]
    run("task", "run", "events1", "strange")
    wait_for(lambda: {r["name"]: r["failed"] for r in run("task", "queues", "--json")}["events1"] > before, "a new try")
    assert server.stop() == 0


def test_only_a_worker_takes_tasks(on_redis, redis, weir, tmp_path):
    server = on_redis("--only", "gateway")
    assert "\nweir_worker_threads " not in server.get("/metrics").body
    second = tmp_path / "second"
    second.mkdir(mode=0o700)
    shutil.copy(server.data / "secrets.key", second)
    worker = on_redis("--only", "worker", "--worker.threads", "3", data=second)
    assert "\nweir_worker_threads 3\n" in worker.get("/metrics").body
    queue = Queue(redis.port)
    queue.add("events1", "strange", "{}", type="no:such")
    run = runner(server, weir)
    wait_for(lambda: run("task", "show", "events1", "strange", "--json")[0]["state"] == "archived", "its run")
    assert worker.stop() == 0 and server.stop() == 0


def test_metrics_count_tasks_by_queue_and_state(on_redis, redis):
    server = on_redis("--only", "gateway")
    queue = Queue(redis.port)
    for n in range(3):
        queue.add("events2", f"id{n}", "{}")
    sample = 'weir_queue_tasks{queue="events2",state="pending"} 3'
    wait_for(lambda: sample in server.get("/metrics").body, sample)
    redis.kill()
    assert server.get("/metrics").status == 200


def test_stores_on_two_servers_leave_replication_off(serve, redis, weir):
    server = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}",
                   f"--store.redis.lockDB=redis://127.0.0.1:{free_port()}").ready()
    assert server.err.count("replication.off") == 1 and "store.redis.appDB" in server.err


def test_wrong_use_of_the_list_is_told(server, weir):
    run = runner(server, weir)
    assert "--limit takes a number from 1 on, not 'x'" in run("task", "list", "--limit", "x", status=2)
    assert "there is no queue nothing" in run("task", "list", "--queue", "nothing", status=1)
    assert "there is no queue nothing" in run("task", "pause", "nothing", status=1)
