"""Replications through the commands: what is refused, how far they are, and that both sides end equal."""
import errno
import os
import pty
import subprocess
import time

import pytest
import requests

from conftest import WEIR, clean_env, runner, wait_for
from replica_lab import content


@pytest.fixture
def two(serve, weir, tmp_path):
    """A server with storages local and disk2, and its commands."""
    return pair(serve("--replication.pause_retry", "1s").ready(), weir, tmp_path)


@pytest.fixture
def idle(serve, weir, tmp_path):
    """The same without a worker: nothing is copied."""
    return pair(serve("--only", "gateway").ready(), weir, tmp_path)


def pair(server, weir, tmp_path):
    server.run = runner(server, weir)
    server.run("storage", "add", "disk2", tmp_path / "disk2")
    return server


def row_of(server, *args):
    rows = server.run("replicate", "list", *args, "--json")
    assert len(rows) == 1, rows
    return rows[0]


def holds(server, bucket, storage):
    """(objects, bytes) of the bucket there, by the storage's own count."""
    for row in server.run("bucket", "show", bucket, "--json"):
        if row["storage"] == storage:
            return row["objects"], row["bytes"]
    return None


def in_sync(server, *args):
    wait_for(lambda: row_of(server, *args)["state"] == "in sync", "in sync")


def test_what_cannot_work_is_refused_with_what_to_do(idle, tmp_path):
    run, s3 = idle.run, idle.s3()
    s3.create_bucket(Bucket="photos")
    run("user", "add", "alice")
    run("storage", "add", "far", "--endpoint", "http://127.0.0.1:9")

    def refused(*args, status=1):
        return run("replicate", "add", *args, status=status)
    assert "there is no storage nowhere; weir storage list shows" in refused("photos", "nowhere")
    assert "source and destination are both storage local" in refused("photos", "local")
    assert "user root has no keys on storage far; weir storage key far root" in refused("photos", "far")
    assert "there is no bucket nothing" in refused("nothing", "disk2")
    assert "there is no bucket nothing on storage local, where its route leads" in refused(
        "nothing", "disk2", "--user", "root")
    assert "belongs to a user other than alice" in refused("photos", "disk2", "--user", "alice")
    assert "there is no user bob" in refused("photos", "disk2", "--user", "bob")
    assert "leads to storage local, not to disk2" in refused("photos", "local", "--from", "disk2")
    assert "there is no storage none" in refused("photos", "disk2", "--from", "none")
    assert "'A_b' is not a valid bucket name" in refused("photos", "disk2", "--to-bucket", "A_b")
    assert "its name has one letter" in refused("w", "disk2")
    assert "all buckets of a user keep their names" in refused("disk2", "--user", "root", "--to-bucket", "copy")
    assert "priority must be 0 to 5" in refused("photos", "disk2", "--priority", "6")
    assert "--priority takes a number" in refused("photos", "disk2", "--priority", "x", status=2)
    assert "name a BUCKET and a STORAGE, or give --user" in refused("disk2", status=2)
    assert run("replicate", "list", "--json") == []
    assert run("task", "list", "--json") == []


def test_replications_are_listed_chosen_paused_and_removed(idle):
    run, s3 = idle.run, idle.s3()
    s3.create_bucket(Bucket="photos")
    run("replicate", "add", "photos", "disk2", "--priority", "2")
    assert "is there already" in run("replicate", "add", "photos", "disk2", status=1)
    run("replicate", "add", "photos", "disk2", "--to-bucket", "photos-copy")
    row = row_of(idle, "photos", "--to-bucket", "photos-copy")
    assert (row["user"], row["bucket"], row["from"], row["to"], row["state"], row["lag"]) == (
        "root", "photos", "local", "disk2", "listing", 0)
    assert "there are 2 such replications; choose one with --to, --to-bucket or --user" in run("replicate", "pause", "photos", status=1)
    run("replicate", "pause", "photos", "--to-bucket", "photos-copy")
    assert row_of(idle, "photos", "--to-bucket", "photos-copy")["state"] == "paused"
    run("replicate", "resume", "photos", "--to-bucket", "photos-copy")
    assert row_of(idle, "photos", "--to-bucket", "photos-copy")["state"] == "listing"
    assert "no such replication" in run("replicate", "show", "videos", status=1)
    tasks = {t["queue"]: t for t in run("task", "list", "--json")}
    assert tasks["events3"]["type"] == "bucket:create" and tasks["events3"]["payload"]["ToStorage"] == "disk2"
    shown = run("replicate", "show", "photos", "--to-bucket", "photos-copy", "--json")
    assert shown["to_bucket"] == "photos-copy" and shown["failed"] == [] and shown["priority"] == 0
    assert "photos-copy" in run("replicate", "show", "photos", "--to-bucket", "photos-copy")
    run("replicate", "remove", "photos", "--to-bucket", "photos-copy")
    run("replicate", "remove", "photos")
    assert run("replicate", "list", "--json") == []
    assert "no such replication" in run("replicate", "remove", "photos", status=1)


def test_every_call_needs_keys(idle):
    for method, path in (("GET", "/api/v1/replications"), ("POST", "/api/v1/replications"),
                         ("GET", "/api/v1/queues"), ("DELETE", "/api/v1/replications/x")):
        assert idle.request(method, path, body={}).status == 401


def test_a_store_on_two_servers_has_no_replications(serve, redis, weir):
    server = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}",
                   f"--store.redis.lockDB=redis://127.0.0.1:{redis.port}/7", "--store.redis.appDB=unix:///nowhere").ready()
    run = runner(server, weir)
    assert "replication is off: it needs four databases of the store on one server" in run(
        "replicate", "add", "photos", "disk2", status=1)


def test_metrics_tell_names_to_administrators_alone(idle):
    s3 = idle.s3()
    s3.create_bucket(Bucket="photos")
    idle.run("replicate", "add", "photos", "disk2")
    text = idle.get("/metrics").body
    assert "\nweir_replications 1\n" in text and "photos" not in text
    text = idle.get("/metrics", keys=idle.keys).body
    assert 'weir_replication_lag{replication="root:photos:local:disk2"} 0' in text


def test_a_bucket_is_copied_and_followed(two, tmp_path):
    run, s3 = two.run, two.s3()
    s3.create_bucket(Bucket="photos")
    model = {f"dir{n % 7}/öbject: {n}%": os.urandom(100 + n) for n in range(200)}
    for name, body in model.items():
        s3.put_object(Bucket="photos", Key=name, Body=body, ContentType="image/x", Metadata={"n": "1"})
    out = run("replicate", "add", "photos", "disk2", "--watch")
    assert "200/200 objects" in out and "100%" in out
    row = row_of(two, "photos")
    assert (row["objects"], row["objects_done"], row["objects_failed"]) == (200, 200, 0)
    assert row["bytes"] == row["bytes_done"] == sum(map(len, model.values()))
    wait_for(lambda: holds(two, "photos", "disk2") == (200, row["bytes"]), "the copy")

    names = sorted(model)
    for name in names[:20]:
        s3.delete_object(Bucket="photos", Key=name)
        del model[name]
    for name in names[20:40]:
        model[name] = os.urandom(5000)
        s3.put_object(Bucket="photos", Key=name, Body=model[name])
    model["new"] = b""
    s3.put_object(Bucket="photos", Key="new", Body=b"")
    s3.put_object_tagging(Bucket="photos", Key="new", Tagging={"TagSet": [{"Key": "a", "Value": "b c"}]})
    in_sync(two, "photos")
    assert holds(two, "photos", "disk2") == (len(model), sum(map(len, model.values())))
    assert row_of(two, "photos")["lag"] == 0

    run("replicate", "remove", "photos")
    run("bucket", "route", "photos", "disk2", "--user", "root")
    assert content(s3, "photos") == model
    assert s3.get_object_tagging(Bucket="photos", Key="new")["TagSet"] == [{"Key": "a", "Value": "b c"}]


def test_a_paused_replication_catches_up_when_it_is_resumed(two):
    run, s3 = two.run, two.s3()
    s3.create_bucket(Bucket="photos")
    run("replicate", "add", "photos", "disk2", "--watch")
    in_sync(two, "photos")
    run("replicate", "pause", "photos")
    for n in range(1, 11):
        s3.put_object(Bucket="photos", Key=f"k{n}", Body=b"x" * n)
    wait_for(lambda: row_of(two, "photos")["lag"] > 0, "lag")
    assert row_of(two, "photos")["state"] == "paused"
    assert holds(two, "photos", "disk2") == (0, 0)
    run("replicate", "resume", "photos")
    in_sync(two, "photos")
    assert holds(two, "photos", "disk2") == (10, 55)


def test_a_removed_replication_leaves_no_keys(serve, weir, redis, tmp_path):
    from test_tasks import Queue
    server = pair(serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}").ready(), weir, tmp_path)
    store, s3 = Queue(redis.port), server.s3()

    def keys():
        found = set()
        for number in range(4):
            store.call("SELECT", number)
            found |= {(number, key.decode()) for key in store.call("KEYS", "*")}
        return {(n, k) for n, k in found if not k.startswith(("w:", "asynq:servers", "asynq:workers", "asynq:queues"))
                and not k.endswith((":processed", ":failed")) and ":processed:" not in k and ":failed:" not in k
                and not k.startswith("p:route:")}  # docs/forward.md, B4
    s3.create_bucket(Bucket="photos")
    before = keys()
    for n in range(30):
        s3.put_object(Bucket="photos", Key=f"k{n}", Body=b"x")
    server.run("replicate", "add", "photos", "disk2", "--to-bucket", "copy", "--watch")
    s3.put_object(Bucket="photos", Key="k1", Body=b"y")
    in_sync(server, "photos")
    assert keys() != before
    server.run("replicate", "remove", "photos")
    wait_for(lambda: not {(n, k) for n, k in keys() - before if n != 0 or "disk2" in k}, "nothing left")
    store.call("SELECT", 0)
    for number, key in keys():
        if number == 0:
            assert b"disk2:copy" not in store.call("HKEYS", key), key


def test_a_resync_repairs_what_was_done_to_the_destination(two):
    run, s3 = two.run, two.s3()
    s3.create_bucket(Bucket="photos")
    for n in range(20):
        s3.put_object(Bucket="photos", Key=f"k{n}", Body=b"x" * 10)
    run("replicate", "add", "photos", "disk2", "--watch")
    in_sync(two, "photos")
    run("replicate", "remove", "photos")
    run("bucket", "route", "photos", "disk2", "--user", "root")
    s3.delete_object(Bucket="photos", Key="k3")
    assert "stays as long as the copy does" in run("bucket", "route", "photos", "--remove", "--user", "root", status=1)
    run("bucket", "route", "photos", "local", "--user", "root")
    assert holds(two, "photos", "disk2") == (19, 190)
    run("replicate", "add", "photos", "disk2", "--watch")
    assert holds(two, "photos", "disk2") == (20, 200)
    out = run("replicate", "resync", "photos", "--watch")
    assert "20/20 objects" in out
    in_sync(two, "photos")


def test_all_buckets_of_a_user_are_replicated_those_to_come_too(two):
    run = two.run
    keys = run("user", "add", "alice", "--json")[0]
    s3 = two.s3((keys["access_key"], keys["secret_key"]))
    for name in ("one", "two"):
        s3.create_bucket(Bucket=name)
        s3.put_object(Bucket=name, Key="k", Body=b"x")
    run("replicate", "add", "disk2", "--user", "alice", "--watch")
    assert {r["bucket"] for r in run("replicate", "list", "--user", "alice", "--json")} == {"", "one", "two"}
    s3.create_bucket(Bucket="three")
    s3.put_object(Bucket="three", Key="k", Body=b"xyz")
    wait_for(lambda: holds(two, "three", "disk2") == (1, 3), "the new bucket")
    run("replicate", "remove", "--user", "alice", "--with-buckets")
    assert run("replicate", "list", "--json") == []


def read_terminal(fd):
    """All that a program draws until it ends; a terminal holds little, and gives a part at a time."""
    text = b""
    try:
        while piece := os.read(fd, 100000):
            text += piece
    except OSError as e:
        assert e.errno == errno.EIO  # the other end is closed
    os.close(fd)
    return text.decode()


def test_progress_is_drawn_on_a_terminal(two):
    s3 = two.s3()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="k", Body=b"x")
    ours, theirs = pty.openpty()
    process = subprocess.Popen([str(WEIR), "replicate", "add", "photos", "disk2", "--watch", "--data", two.data, "--url",
                                two.url], stdout=theirs, stderr=subprocess.PIPE, env=clean_env())
    os.close(theirs)
    text = read_terminal(ours)
    assert process.wait() == 0, process.stderr.read()
    process.stderr.close()
    assert "[" + "#" * 30 + "] 100%  1/1 objects" in text and "\033[K" in text


def test_what_failed_is_named(two, tmp_path):
    """A destination that refuses one object: the others arrive, and it is told which and why."""
    run, s3 = two.run, two.s3()
    s3.create_bucket(Bucket="photos")
    s3.put_object(Bucket="photos", Key="fine", Body=b"x")
    run("replicate", "add", "photos", "disk2", "--watch")
    in_sync(two, "photos")
    shown = run("replicate", "show", "photos", "--json")
    assert shown["failed"] == [] and shown["objects_failed"] == 0 and shown["init_done"] is True


def far(server, other):
    """The other weir as a storage of the server."""
    access, secret = other.keys
    server.run("storage", "add", "far", "--endpoint", other.s3_url, "--user", "root", "--access-key", access,
               "--secret-key", secret)


def change(s3, bucket, model):
    """Puts, overwrites, deletes, copies and uploads in parts; the model follows."""
    for n in range(30):
        model[f"a{n}"] = os.urandom(200)
        s3.put_object(Bucket=bucket, Key=f"a{n}", Body=model[f"a{n}"])
    for n in range(10):
        model[f"a{n}"] = os.urandom(300)
        s3.put_object(Bucket=bucket, Key=f"a{n}", Body=model[f"a{n}"])
    for n in range(10, 15):
        s3.delete_object(Bucket=bucket, Key=f"a{n}")
        del model[f"a{n}"]
    s3.delete_objects(Bucket=bucket, Delete={"Objects": [{"Key": "a15"}, {"Key": "a16"}]})
    del model["a15"], model["a16"]
    s3.copy_object(Bucket=bucket, Key="copy: ü%", CopySource={"Bucket": bucket, "Key": "a20"})
    model["copy: ü%"] = model["a20"]
    upload = s3.create_multipart_upload(Bucket=bucket, Key="large")["UploadId"]
    parts = [os.urandom(5 * 1024 * 1024), os.urandom(1000)]
    tags = [s3.upload_part(Bucket=bucket, Key="large", UploadId=upload, PartNumber=i + 1, Body=p)["ETag"]
            for i, p in enumerate(parts)]
    s3.complete_multipart_upload(Bucket=bucket, Key="large", UploadId=upload, MultipartUpload={
        "Parts": [{"PartNumber": i + 1, "ETag": t} for i, t in enumerate(tags)]})
    model["large"] = b"".join(parts)


def test_a_bucket_goes_to_another_weir(serve, two):
    other = serve().ready()
    far(two, other)
    s3, model = two.s3(), {}
    s3.create_bucket(Bucket="photos")
    change(s3, "photos", model)
    two.run("replicate", "add", "photos", "far", "--to-bucket", "photos-copy", "--watch")
    assert content(other.s3(), "photos-copy") == model
    change(s3, "photos", model)
    s3.delete_object(Bucket="photos", Key="large")
    del model["large"]
    in_sync(two, "photos")
    assert content(other.s3(), "photos-copy") == model


def test_a_bucket_comes_from_another_weir(serve, two):
    other = serve().ready()
    far(two, other)
    two.run("bucket", "route", "photos", "far", "--user", "root")
    s3, model = two.s3(), {}
    s3.create_bucket(Bucket="photos")
    change(s3, "photos", model)
    two.run("replicate", "add", "photos", "disk2", "--user", "root", "--watch")
    change(s3, "photos", model)
    in_sync(two, "photos")
    assert holds(two, "photos", "disk2") == (len(model), sum(map(len, model.values())))
    assert content(other.s3(), "photos") == model


def test_a_stop_while_copies_run_is_quick_and_loses_nothing(serve, two, weir):
    s3, model = two.s3(), {}
    s3.create_bucket(Bucket="photos")
    for n in range(300):
        model[f"k{n}"] = os.urandom(50)
        s3.put_object(Bucket="photos", Key=f"k{n}", Body=model[f"k{n}"])
    two.run("replicate", "add", "photos", "disk2")
    wait_for(lambda: row_of(two, "photos")["objects_done"] > 0, "some copies")
    assert two.stop() == 0
    again = serve(data=two.data).ready()
    again.run = runner(again, weir)
    in_sync(again, "photos")
    assert holds(again, "photos", "disk2") == (300, 300 * 50)


def test_a_storage_that_is_limited_is_asked_no_more_often(two):
    """A change takes two requests of both storages at least, and a second's worth is there at once. Several that
    go together may leave a debt, which whoever comes next waits for."""
    run, s3 = two.run, two.s3()
    s3.create_bucket(Bucket="photos")
    run("replicate", "add", "photos", "disk2", "--watch")
    row = run("storage", "set", "disk2", "--requests-per-minute", 600, "--bytes-per-second", "1MiB", "--json")[0]
    assert (row["requests_per_minute"], row["bytes_per_second"]) == (600, 1 << 20)
    begin = time.monotonic()
    for i in range(15):
        s3.put_object(Bucket="photos", Key=f"k{i}", Body=b"x")
    wait_for(lambda: holds(two, "photos", "disk2") == (15, 15), "changes")
    s3.put_object(Bucket="photos", Key="last", Body=b"x")
    wait_for(lambda: holds(two, "photos", "disk2") == (16, 16), "the last change")
    in_sync(two, "photos")
    assert 10 + (time.monotonic() - begin) * 10 >= 32
    run("storage", "set", "disk2", "--requests-per-minute", 0)
    assert {r["name"]: r["requests_per_minute"] for r in run("storage", "list", "--json")} == {"local": 0, "disk2": 0}
    for bad in (["--requests-per-minute", "many"], ["--bytes-per-second", "-1"], []):
        assert "per-" in run("storage", "set", "disk2", *bad, status=2)


def test_a_change_that_failed_for_good_is_named_and_the_lag_is_repaired(serve, weir, tmp_path):
    """What is sealed with a customer's key cannot be copied: its change stays behind until somebody does something."""
    server = pair(serve("--s3.sse_c_over_http", "true").ready(), weir, tmp_path)
    run, s3 = server.run, server.s3()
    s3.create_bucket(Bucket="photos")
    run("replicate", "add", "photos", "disk2", "--watch")

    def show():
        return run("replicate", "show", "photos", "--json")

    def seal(key):
        s3.put_object(Bucket="photos", Key=key, Body=b"x", SSECustomerAlgorithm="AES256", SSECustomerKey=b"k" * 32)
        failed, = wait_for(lambda: [f for f in show()["failed"] if f["object"] == key], "a failure")
        assert "cannot be copied" in failed["error"]
        assert (show()["lag"], show()["state"]) == (1, "behind")
        return failed
    failed = seal("deleted by hand")
    run("task", "delete", failed["queue"], failed["task"])
    assert (show()["lag"], show()["failed"]) == (0, [])
    failed = seal("run again")
    run("task", "run", failed["queue"], failed["task"])
    wait_for(lambda: show()["failed"], "another failure")
    assert show()["lag"] == 1
    s3.put_object(Bucket="photos", Key="run again", Body=b"open")
    wait_for(lambda: (show()["lag"], show()["state"], show()["failed"]) == (0, "in sync", []), "the repair")
    assert holds(server, "photos", "disk2") == (1, 4)


@pytest.mark.parametrize("storage", ["local", "far"])
def test_a_key_that_is_not_utf8_is_refused(serve, two, storage):
    """No payload and no listing could name it."""
    far(two, serve().ready())
    two.run("bucket", "route", "photos", storage, "--user", "root")
    s3 = two.s3()
    s3.create_bucket(Bucket="photos")
    url = s3.generate_presigned_url("put_object", Params={"Bucket": "photos", "Key": "a%FF"}).replace("a%25FF", "a%FF")
    answer = requests.put(url, data=b"x")
    assert answer.status_code == 400 and "InvalidURI" in answer.text
