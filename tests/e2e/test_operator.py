"""What operators stumble over: whose bucket is meant, what a switch waits for, what is left of things that are gone.

One weir in front of folders and of a service (another weir), with users that have keys of their own there."""
import pytest

from conftest import DEADLINE, free_port, runner, wait_for
from replica_lab import FAULTY, QUICK, client
from test_tasks import Queue

KEYS = {name: (f"AKIA{name.upper()}", f"secret-of-{name}-0123456789") for name in ("alice", "bob")}


@pytest.fixture
def far(serve, weir):
    """The service: alice and bob are users of its own."""
    server = serve("--s3.listen", f"127.0.0.1:{free_port()}", "--only", "gateway").ready()
    run = runner(server, weir)
    for name, keys in KEYS.items():
        run("user", "add", name, "--access-key", keys[0], "--secret-key", keys[1])
    return server


def user_route(server, name, storage):
    assert server.post(f"/api/v1/users/{name}/route", {"storage": storage}, keys=server.keys).status == 204


@pytest.fixture
def front(serve, weir, far, tmp_path):
    """Folders local (main) and disk2, and the service far, where the routes of alice and bob lead."""
    server = serve("--replication.pause_retry", "1s").ready()
    server.run = run = runner(server, weir)
    run("storage", "add", "disk2", tmp_path / "disk2")
    run("storage", "add", "far", "--endpoint", far.s3_url)
    for name, keys in KEYS.items():
        run("user", "add", name, "--access-key", keys[0], "--secret-key", keys[1])
        run("storage", "key", "far", name, "--access-key", keys[0], "--secret-key", keys[1])
        user_route(server, name, "far")
    server.of = {name: client(server.s3_url, keys) for name, keys in KEYS.items()}
    return server


def rows(server, **wanted):
    return [r for r in server.run("replicate", "list", "--json") if all(r[k] == v for k, v in wanted.items())]


def in_sync(server, **wanted):
    wait_for(lambda: [r["state"] for r in rows(server, **wanted)] == ["in sync"], f"{wanted} in sync")


def test_the_owner_of_a_remote_bucket_is_found(front):
    front.of["alice"].create_bucket(Bucket="photos")
    front.of["alice"].put_object(Bucket="photos", Key="k", Body=b"1")
    front.run("bucket", "route", "photos", "far")
    assert [p["user"] for p in front.run("bucket", "route", "--json") if p["bucket"] == "photos"] == ["alice"]
    front.run("replicate", "add", "photos", "disk2", "--watch")
    assert [(r["user"], r["from"], r["state"]) for r in rows(front)] == [("alice", "far", "in sync")]
    front.run("diff", "check", "far:photos", "disk2:photos", "--watch")
    assert [(d["user"], d["consistent"]) for d in front.run("diff", "list", "--json")] == [("alice", "yes")]


def test_several_owners_are_listed_and_nobody_is_guessed(front):
    front.of["alice"].create_bucket(Bucket="alices")
    root = front.s3()
    root.create_bucket(Bucket="photos")
    user_route(front, "alice", "")
    front.run("bucket", "route", "photos", "far", "--user", "alice")
    front.of["alice"].create_bucket(Bucket="photos")
    said = front.run("replicate", "add", "photos", "disk2", status=1)
    assert "2 users have a bucket photos: " in said and "alice (storage far)" in said and "root (storage local)" in said
    assert "name the user" in said
    said = front.run("diff", "check", "local:photos", "far:photos", status=1)
    assert "no user has all of these buckets; name the user" in said
    front.run("replicate", "add", "photos", "disk2", "--from", "far")
    assert [r["user"] for r in rows(front)] == ["alice"]
    assert "there is no bucket none; for a bucket that is yet to be made, name the user" in front.run("replicate", "add", "none", "disk2", status=1)
    assert "there is no bucket none on storage far" in front.run("diff", "check", "far:none", "local:photos", status=1)


def test_a_refusal_names_storage_user_and_operation(front, far):
    front.of["alice"].create_bucket(Bucket="photos")
    front.run("storage", "key", "far", "alice", "--access-key", KEYS["alice"][0], "--secret-key", "wrong-0123456789")
    said = front.run("replicate", "add", "photos", "disk2", "--user", "alice", status=1)
    assert "storage far cannot be asked for bucket photos with the keys of user alice" in said
    assert "HEAD /photos as user" in said and "the storage answers 403" in said
    said = front.run("diff", "check", "far:photos", "far:zoo", "--user", "alice", status=1)
    assert "storage far cannot be asked for bucket photos with the keys of user alice" in said
    far.stop()
    said = front.run("replicate", "add", "photos", "disk2", status=1)
    assert "the owner of bucket photos is not known, because storage far cannot be asked with the keys of user " in said


# --- what a switch waits for


def show(server, bucket="photos"):
    return server.run("switch", "show", bucket, "--json")


@pytest.mark.parametrize("side, to, how", [("far", "disk2", "plan"), ("disk2", "far", "start")])
def test_a_switch_tells_which_uploads_it_waits_for_and_can_be_told_to_stop(front, side, to, how):
    """Between a folder and a service, both ways; the ways of both kinds of switches."""
    alice, run = front.of["alice"], front.run
    run("bucket", "route", "photos", side, "--user", "alice")
    alice.create_bucket(Bucket="photos")
    alice.put_object(Bucket="photos", Key="k", Body=b"1")
    run("replicate", "add", "photos", to, "--user", "alice", "--watch")
    ids = [alice.create_multipart_upload(Bucket="photos", Key=key)["UploadId"] for key in ("one", "two")]
    run("switch", how, "photos")
    wait_for(lambda: "they are waited for until" in show(front)["waits_for"], "the wait")
    told = show(front)
    assert told["uploads"] == 2 and told["multipart_ttl_ms"] == 3600 * 1000
    assert [(u["key"], u["upload_id"]) for u in told["open_uploads"]] == [("one", ids[0]), ("two", ids[1])]
    assert all(u["initiated"] for u in told["open_uploads"])
    assert side == "far" or {u["initiator"] for u in told["open_uploads"]} == {"alice"}
    assert 3500 * 1000 < told["waits_left_ms"] <= 3600 * 1000
    page = run("switch", "show", "photos")
    assert f"open uploads on {side}:" in page and ids[0] in page and told["waits_until"] in page
    assert "weir switch set photos --multipart-ttl" in page
    assert "say what to change" in run("switch", "set", "photos", status=2)
    run("switch", "set", "photos", "--multipart-ttl", "2h")
    assert show(front)["waits_left_ms"] > 3600 * 1000
    run("switch", "set", "photos", "--multipart-ttl", "0s")
    wait_for(lambda: show(front)["state"] == "done", "the switch")
    done = show(front)
    assert any("in_progress -> in_progress: open uploads are waited for 7200 s" in line for line in done["history"])
    assert done["waits_left_ms"] is None and done["waits_for"] == "" and done["open_uploads"] == []
    assert alice.get_object(Bucket="photos", Key="k")["Body"].read() == b"1"
    assert "the switch is: done" in run("switch", "set", "photos", "--multipart-ttl", "1h", status=1)


def test_the_wait_for_uploads_is_no_longer_than_the_longest_downtime_unless_told(front):
    front.s3().create_bucket(Bucket="box")
    front.run("replicate", "add", "box", "disk2", "--watch")
    for more, wanted in ((["--max-duration", "5m"], 300), (["--max-duration", "5h"], 3600),
                         (["--max-duration", "5m", "--multipart-ttl", "2h"], 7200)):
        front.run("switch", "plan", "box", "--start-at", "2099-01-01T00:00:00Z", *more)
        assert show(front, "box")["multipart_ttl_ms"] == wanted * 1000


# --- what goes with a bucket


def policy_for(server, user, to):
    server.run("replicate", "add", to, "--user", user)


def settled(server, wanted):
    """The replications are those of these buckets, all in sync."""
    def are():
        found = {r["bucket"]: r["state"] for r in rows(server) if r["bucket"]}
        return found == dict.fromkeys(wanted, "in sync")
    try:
        wait_for(are, f"replications of {sorted(wanted)}")
    except AssertionError as e:
        raise AssertionError(f"{e}: {rows(server)}\n{server.run('task', 'list')}") from None


@pytest.mark.parametrize("side, to", [("disk2", "far"), ("far", "disk2")])
def test_the_replication_of_a_bucket_that_was_deleted_goes_and_comes_with_a_new_one(front, side, to):
    """Under a user's policy, between a folder and a service, both ways; bob's buckets are none of alice's business."""
    alice, bob = front.of["alice"], front.of["bob"]
    for name in ("alice", "bob"):
        user_route(front, name, side)
    policy_for(front, "alice", to)
    policy_for(front, "bob", to)
    bob.create_bucket(Bucket="bobs")
    model = {}
    for n in range(16):  # some are deleted at once, some are made again at once
        bucket = f"box{n % 4}"
        alice.create_bucket(Bucket=bucket)
        alice.put_object(Bucket=bucket, Key="k", Body=b"%d" % n)
        if n % 3 == 0:
            settled(front, [*model, bucket, "bobs"])
        model[bucket] = b"%d" % n
        if n < 12 or n % 2:
            alice.delete_object(Bucket=bucket, Key="k")
            alice.delete_bucket(Bucket=bucket)
            del model[bucket]
    settled(front, [*model, "bobs"])
    assert set(model) == {"box0", "box2"}
    for bucket, body in model.items():
        front.run("diff", "check", f"{side}:{bucket}", f"{to}:{bucket}", "--user", "alice", "--watch")
        assert alice.get_object(Bucket=bucket, Key="k")["Body"].read() == body
    assert all(d["consistent"] == "yes" for d in front.run("diff", "list", "--json"))
    assert {r["user"] for r in rows(front, state="policy")} == {"alice", "bob"}
    bob.create_bucket(Bucket="box1")  # nothing of alice's is left of the name
    settled(front, [*model, "bobs", "box1"])
    assert {r["user"] for r in rows(front, bucket="box1")} == {"bob"}


@pytest.mark.parametrize("kill, again", [("before", False), ("after", True)])
def test_a_kill_where_a_replication_ends_with_its_bucket_loses_nothing(serve, weir, tmp_path, kill, again):
    """`again`: the bucket is made anew before weir is back at work."""
    server = serve(*QUICK, binary=FAULTY, env={"FAULT_KILL": f"{kill}:replication_end:1"}).ready()
    run = runner(server, weir)
    run("storage", "add", "disk2", tmp_path / "disk2")
    run("replicate", "add", "disk2", "--user", "root")
    s3 = server.s3()
    s3.create_bucket(Bucket="box")
    s3.put_object(Bucket="box", Key="k", Body=b"old")
    wait_for(lambda: [r["state"] for r in run("replicate", "list", "box", "--json")] == ["in sync"], "in sync")
    s3.delete_object(Bucket="box", Key="k")
    s3.delete_bucket(Bucket="box")
    server.process.wait(DEADLINE)
    if again:  # by a weir that has no worker
        server = serve("--only", "gateway", data=server.data).ready()
        server.s3().create_bucket(Bucket="box")
        server.s3().put_object(Bucket="box", Key="new", Body=b"new")
        server.stop()
    server = serve(*QUICK, binary=FAULTY, data=server.data, env={"FAULT_CLOCK": "60"}).ready()  # leases are over
    server.run = runner(server, weir)
    settled(server, ["box"] if again else [])
    if again:
        server.run("diff", "check", "local:box", "disk2:box", "--watch")
        assert [(d["consistent"], d["keys"]) for d in server.run("diff", "list", "--json")] == [("yes", 1)]


def test_what_a_policy_made_can_be_removed_after_it(front):
    alice = front.of["alice"]
    for bucket in ("one", "two"):
        alice.create_bucket(Bucket=bucket)
    policy_for(front, "alice", "disk2")
    settled(front, ["one", "two"])
    front.run("replicate", "remove", "--user", "alice")
    assert "there is no such replication" in front.run("replicate", "remove", "--user", "alice", status=1)
    front.run("replicate", "add", "one", "local", "--user", "alice")
    assert "there are 2 such replications" in front.run("replicate", "remove", "--user", "alice", "--with-buckets", status=1)
    front.run("replicate", "remove", "--user", "alice", "--with-buckets", "--to", "disk2")
    assert [(r["bucket"], r["to"]) for r in rows(front)] == [("one", "local")]
    front.run("replicate", "remove", "--user", "alice", "--with-buckets")
    assert rows(front) == []
    assert "there is no such replication" in front.run("replicate", "remove", "--user", "alice", "--with-buckets", status=1)


# --- what other tools delete, and what is left


class Asynq(Queue):
    """What Asynq's own tools do to a queue."""

    def delete(self, queue):
        """All tasks that wait in it; how many."""
        ids = self.call("LRANGE", f"asynq:{{{queue}}}:pending", 0, -1)
        for id in ids:
            self.call("LREM", f"asynq:{{{queue}}}:pending", 0, id)
            self.call("DEL", b"asynq:{%s}:t:%s" % (queue.encode(), id))
        return len(ids)

    def keys(self, database, pattern):
        self.call("SELECT", database)
        found = self.call("KEYS", pattern)
        self.call("SELECT", 1)
        return sorted(key.decode() for key in found)


@pytest.mark.parametrize("side, to", [("disk2", "far"), ("local", "disk2")])
def test_tasks_that_another_tool_deletes_are_noticed_and_vectors_go_in_the_end(serve, weir, redis, far, tmp_path, side, to):
    store = ("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}", "--replication.check_interval", "1s")
    server = serve(*QUICK, *store).ready()
    server.run = run = runner(server, weir)
    run("storage", "add", "disk2", tmp_path / "disk2")
    run("storage", "add", "far", "--endpoint", far.s3_url)
    run("user", "add", "alice", "--access-key", KEYS["alice"][0], "--secret-key", KEYS["alice"][1])
    run("storage", "key", "far", "alice", "--access-key", KEYS["alice"][0], "--secret-key", KEYS["alice"][1])
    alice, asynq = client(server.s3_url, KEYS["alice"]), Asynq(redis.port)
    run("bucket", "route", "photos", side, "--user", "alice")
    alice.create_bucket(Bucket="photos")
    for n in range(5):
        alice.put_object(Bucket="photos", Key=f"k{n}", Body=b"1")

    run("task", "pause", "migrate_obj_copy1")
    run("replicate", "add", "photos", to, "--user", "alice")
    wait_for(lambda: [r["state"] for r in rows(server)] == ["copying"], "the copies")
    assert asynq.delete("migrate_obj_copy1") > 0
    run("task", "resume", "migrate_obj_copy1")
    in_sync(server, bucket="photos")
    assert "replication.begun_anew" in server.err

    run("task", "pause", "events1")
    alice.put_object(Bucket="photos", Key="k0", Body=b"changed")
    alice.delete_object(Bucket="photos", Key="k1")
    wait_for(lambda: asynq.delete("events1") > 0, "the events")
    run("task", "resume", "events1")
    assert rows(server)[0]["state"] != "in sync"
    in_sync(server, bucket="photos")
    run("diff", "check", f"{side}:photos", f"{to}:photos", "--watch")
    assert [(d["consistent"], d["keys"]) for d in run("diff", "list", "--json")] == [("yes", 4)]

    run("replicate", "remove", "photos")
    assert asynq.keys(0, "photos:*")
    asynq.call("SELECT", 3)
    asynq.call("ZADD", "w:forget", "XX", 1, "photos")  # a day goes by
    wait_for(lambda: not asynq.keys(0, "photos:*") and not asynq.keys(0, "b:photos*"), "no vectors")
