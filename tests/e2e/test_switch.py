"""Switches of the main storage through the commands, with a real weir on the embedded store and two local storages."""
import datetime
import hashlib
import json
import random
import signal
import threading

import botocore.exceptions
import pytest

from conftest import PACE, runner, wait_for
from replica_lab import Lab, content
from test_replicate import in_sync, pair, row_of


@pytest.fixture
def two(serve, weir, tmp_path):
    """A server with storages local and disk2; bucket photos with some objects on both, in sync."""
    server = pair(serve("--replication.pause_retry", "1s").ready(), weir, tmp_path)
    fill(server)
    return server


def fill(server, bucket="photos"):
    s3 = server.s3()
    s3.create_bucket(Bucket=bucket)
    server.objects = {f"dir/{i:02}": f"body {i}".encode() * (i + 1) for i in range(12)}
    for key, body in server.objects.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    server.run("replicate", "add", bucket, "disk2")
    in_sync(server, bucket)


def route_of(server, bucket="photos"):
    rows = [r for r in server.run("bucket", "route", "--json") if r["bucket"] == bucket]
    return rows[0]["storage"] if rows else "local"


def show(server, bucket="photos"):
    return server.run("switch", "show", bucket, "--json")


def rows(server):
    return server.run("switch", "list", "--json")


def ended(server, state, bucket="photos"):
    wait_for(lambda: show(server, bucket)["state"] == state, state)
    return show(server, bucket)


def put(s3, key, body):
    """As a client does: 503 is tried again."""
    wait_for(lambda: status_of(s3.put_object, Bucket="photos", Key=key, Body=body) == 200, f"200 for {key}")


def lines(switch):
    return [line.partition("|")[2] for line in switch["history"]]


def status_of(call, **kwargs):
    try:
        return call(**kwargs)["ResponseMetadata"]["HTTPStatusCode"]
    except botocore.exceptions.ClientError as e:
        return e.response["ResponseMetadata"]["HTTPStatusCode"]


# --- with downtime


def test_a_switch_with_downtime_moves_the_bucket_and_its_clients(two):
    run, s3 = two.run, two.s3()
    made = run("switch", "plan", "photos", "--json")
    assert made[0]["downtime"] == "yes" and made[0]["from"] == "local" and made[0]["to"] == "disk2"
    done = ended(two, "done")
    assert lines(done) == [" -> not_started: planned", "not_started -> in_progress: blocked",
                           "in_progress -> check_in_progress: everything has been copied",
                           "check_in_progress -> done: the route leads to disk2"]
    assert route_of(two) == "disk2"
    wait_for(lambda: content(s3, "photos") == two.objects, "the objects on the new storage")
    row = row_of(two, "photos")
    assert (row["state"], row["from"], row["switch"]) == ("archived", "local", "no")
    put(s3, "after", b"new side")
    assert s3.get_object(Bucket="photos", Key="after")["Body"].read() == b"new side"
    run("switch", "abort", "photos")  # what is done is forgotten, nothing else
    assert rows(two) == []
    assert route_of(two) == "disk2"
    assert s3.get_object(Bucket="photos", Key="after")["Body"].read() == b"new side"


def test_watching_a_switch_ends_with_it(two):
    out = two.run("switch", "plan", "photos", "--watch")
    assert "photos  local -> disk2  done" in out.splitlines()[-1]


def test_afterwards_the_old_storage_follows_if_it_is_to_continue(two):
    run, s3 = two.run, two.s3()
    run("switch", "plan", "photos", "--continue")
    ended(two, "done")
    wait_for(lambda: route_of(two) == "disk2", "the new route")
    s3.put_object(Bucket="photos", Key="later", Body=b"later")
    s3.delete_object(Bucket="photos", Key="dir/00")
    wait_for(lambda: [r["state"] for r in run("replicate", "list", "photos", "--to", "local", "--json")] == ["in sync"],
             "the reverse replication")
    run("switch", "plan", "photos", "--to", "local", "--continue", "--watch")  # and back again
    wait_for(lambda: route_of(two) == "local", "the old route")
    expected = {k: v for k, v in two.objects.items() if k != "dir/00"} | {"later": b"later"}
    assert content(s3, "photos") == expected


def test_a_scheduled_switch_begins_at_its_time(two):
    run = two.run
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=6)
    run("switch", "plan", "photos", "--start-at", at.isoformat())
    assert show(two)["state"] == "not_started"
    assert row_of(two, "photos")["switch"] == "yes"
    done = ended(two, "done")
    started = datetime.datetime.fromisoformat(done["started"].replace("Z", "+00:00"))
    assert started >= at - datetime.timedelta(seconds=1)


def test_a_plan_tells_how_many_uploads_are_open_on_the_old_storage(two):
    run, s3 = two.run, two.s3()
    later = ["switch", "plan", "photos", "--start-at", "2099-01-01T00:00:00Z"]
    assert run(*later, "--json")[0]["uploads"] == 0
    ids = [s3.create_multipart_upload(Bucket="photos", Key=key)["UploadId"] for key in ("one", "one", "two")]
    assert run(*later, "--json")[0]["uploads"] == 3
    head, row = run(*later).splitlines()
    assert row[:head.index("uploads") + len("uploads")].split()[-1] == "3"
    assert show(two)["uploads"] == 3
    assert [line.split()[1] for line in run("switch", "show", "photos").splitlines() if line.startswith("uploads")] == ["3"]
    s3.abort_multipart_upload(Bucket="photos", Key="two", UploadId=ids[2])
    assert show(two)["uploads"] == 2


def test_a_plan_is_changed_until_it_begins(two):
    run = two.run
    run("switch", "plan", "photos", "--start-at", "2099-01-01T00:00:00Z", "--max-duration", "30m")
    run("switch", "plan", "photos", "--cron", "0 3 * * 6", "--max-event-lag", "7")
    row = show(two)
    assert (row["state"], row["cron"], row["start_at"], row["max_event_lag"], row["max_duration_ms"]) == (
        "not_started", "0 3 * * 6", "", 7, 0)
    assert "switch that is not done" in run("switch", "start", "photos", status=1)
    assert "switch that is not done" in run("replicate", "remove", "photos", status=1)
    run("switch", "plan", "photos")
    ended(two, "done")


def test_what_cannot_be_switched_is_refused(two):
    run, s3 = two.run, two.s3()

    def refused(*args):
        return run("switch", *args, status=1)
    assert "the bucket nothing is not replicated to another storage" in refused("plan", "nothing")
    assert "start_at is in the past" in refused("plan", "photos", "--start-at", "2020-01-01T00:00:00Z")
    assert "start_at must be a time" in refused("plan", "photos", "--start-at", "tomorrow")
    assert "not a valid minute in a cron line" in refused("plan", "photos", "--cron", "61 * * * *")
    assert "never comes" in refused("plan", "photos", "--cron", "0 0 30 2 *")
    assert "exclude each other" in refused("plan", "photos", "--cron", "* * * * *", "--start-at",
                                           "2099-01-01T00:00:00Z")
    assert "takes a duration" in refused("plan", "photos", "--max-duration", "soon")
    assert "takes a number" in refused("plan", "photos", "--max-event-lag", "x")
    run("replicate", "pause", "photos")
    assert "is paused" in refused("start", "photos")
    run("replicate", "resume", "photos")
    s3.create_bucket(Bucket="copies")
    run("replicate", "add", "copies", "disk2", "--to-bucket", "other")
    assert "another name at the destination" in refused("start", "copies")
    assert "the bucket has no switch" in refused("show", "photos")
    assert "the bucket has no switch" in refused("abort", "photos")
    assert rows(two) == []


def test_a_bucket_that_is_blocked_answers_503_and_comes_back(two):
    """A change that cannot go over holds it up: the bucket is blocked, until the duration is over."""
    run, s3 = two.run, two.s3()
    run("replicate", "pause", "photos")
    s3.put_object(Bucket="photos", Key="stuck", Body=b"stuck")
    wait_for(lambda: row_of(two, "photos")["lag"] > 0, "a change that waits")
    run("task", "pause", "events1")  # before the resume, so that no worker takes the change in between
    run("replicate", "resume", "photos")
    run("switch", "plan", "photos", "--max-duration", "8s")
    wait_for(lambda: show(two)["state"] == "in_progress", "in_progress")
    wait_for(lambda: status_of(s3.get_object, Bucket="photos", Key="dir/01") == 503, "503")
    assert status_of(s3.put_object, Bucket="photos", Key="new", Body=b"x") == 503
    assert status_of(s3.list_objects_v2, Bucket="photos") == 503
    assert status_of(s3.head_bucket, Bucket="photos") == 503
    with pytest.raises(botocore.exceptions.ClientError) as e:
        s3.get_object(Bucket="photos", Key="dir/01")
    assert e.value.response["Error"]["Code"] == "SlowDown"
    assert e.value.response["ResponseMetadata"]["HTTPHeaders"]["retry-after"] == "1"
    failed = ended(two, "error")
    assert "the maximal duration is over" in lines(failed)[-1]
    wait_for(lambda: status_of(s3.get_object, Bucket="photos", Key="dir/01") == 200, "200")
    assert route_of(two) == "local"
    run("task", "resume", "events1")
    in_sync(two, "photos")
    run("switch", "plan", "photos", "--watch")
    assert content(two.s3(), "photos") == two.objects | {"stuck": b"stuck"}


def test_buckets_that_differ_are_not_switched(two):
    run, s3 = two.run, two.s3()
    run("switch", "plan", "photos", "--continue", "--watch")  # now local follows disk2
    wait_for(lambda: route_of(two) == "disk2", "the new route")
    run("replicate", "pause", "photos", "--to", "local")
    s3.put_object(Bucket="photos", Key="only-new", Body=b"x")
    wait_for(lambda: row_of(two, "photos", "--to", "local")["lag"] > 0, "the change")
    for task in run("task", "list", "--json"):  # the change is forgotten: nobody brings it over
        run("task", "delete", task["queue"], task["id"])
    run("replicate", "resume", "photos", "--to", "local")
    assert "the bucket was not switched" in run("switch", "plan", "photos", "--to", "local", "--watch", status=1)
    failed = show(two)
    assert failed["state"] == "error"
    assert "differ in 1: only-new (missing)" in lines(failed)[-1]
    assert route_of(two) == "disk2"
    assert s3.get_object(Bucket="photos", Key="only-new")["Body"].read() == b"x"
    run("switch", "plan", "photos", "--to", "local", "--skip-check", "--watch")
    wait_for(lambda: route_of(two) == "local", "the old route")


@pytest.mark.parametrize("ends", ["complete", "abort"])
def test_an_upload_that_is_open_during_a_downtime_is_finished_afterwards(two, ends):
    run, s3 = two.run, two.s3()
    parts = [b"a" * 5 * 1024 * 1024, b"the end"]
    upload = {"Bucket": "photos", "Key": "big", "UploadId": s3.create_multipart_upload(Bucket="photos", Key="big")["UploadId"]}
    tags = [s3.upload_part(**upload, PartNumber=1, Body=parts[0])["ETag"]]
    run("switch", "plan", "photos")
    wait_for(lambda: route_of(two) == "disk2" and show(two)["state"] == "in_progress" and "unblocked" in lines(show(two))[-1],
             "it to go on")
    assert "check_in_progress -> in_progress: the route leads to disk2; uploads open on local: 1" in lines(show(two))
    put(s3, "meanwhile", b"new side")
    tags.append(s3.upload_part(**upload, PartNumber=2, Body=parts[1])["ETag"])
    if ends == "complete":
        s3.complete_multipart_upload(**upload, MultipartUpload={
            "Parts": [{"PartNumber": n + 1, "ETag": tag} for n, tag in enumerate(tags)]})
        assert s3.get_object(Bucket="photos", Key="big")["Body"].read() == b"".join(parts)
    else:
        s3.abort_multipart_upload(**upload)
    done = ended(two, "done")
    assert done["downtime"] is True
    expected = two.objects | {"meanwhile": b"new side"} | ({"big": b"".join(parts)} if ends == "complete" else {})
    assert content(s3, "photos") == expected
    assert route_of(two) == "disk2"


def test_a_downtime_that_waits_for_no_uploads_leaves_them(two):
    run, s3 = two.run, two.s3()
    upload = s3.create_multipart_upload(Bucket="photos", Key="big")["UploadId"]
    run("switch", "plan", "photos", "--multipart-ttl", "0s")
    assert ended(two, "done")["multipart_ttl_ms"] == 0
    wait_for(lambda: route_of(two) == "disk2", "the new route")
    assert status_of(s3.upload_part, Bucket="photos", Key="big", UploadId=upload, PartNumber=1, Body=b"x") == 404


# --- without downtime


def test_a_switch_without_downtime_loses_nothing_that_is_written_meanwhile(two):
    run, s3 = two.run, two.s3()
    written, stop = dict(two.objects), threading.Event()

    def write():
        i = 0
        while not stop.wait(PACE):
            key = f"live/{i % 20}"
            put(s3, key, f"version {i}".encode())
            written[key] = f"version {i}".encode()
            i += 1
    writer = threading.Thread(target=write)
    writer.start()
    try:
        run("switch", "start", "photos", "--watch")
    finally:
        stop.set()
        writer.join()
    done = show(two)
    assert done["state"] == "done" and done["downtime"] is False
    assert lines(done)[:2] == [" -> not_started: planned", "not_started -> in_progress: the route leads to disk2"]
    assert route_of(two) == "disk2"
    wait_for(lambda: content(s3, "photos") == written, "all that was written")
    assert [r["state"] for r in run("replicate", "list", "--json")] == ["archived"]


def test_while_an_upload_is_open_the_old_side_lacks_what_is_written_and_abort_brings_it_back(two):
    run, s3 = two.run, two.s3()
    upload = s3.create_multipart_upload(Bucket="photos", Key="big")["UploadId"]
    run("switch", "start", "photos")
    wait_for(lambda: show(two)["state"] == "in_progress", "in_progress")
    wait_for(lambda: route_of(two) == "disk2", "the new route")
    put(s3, "new", b"on the new side")
    s3.delete_object(Bucket="photos", Key="dir/03")
    back = row_of(two, "photos", "--to", "local")
    assert back["state"] == "paused"
    wait_for(lambda: row_of(two, "photos", "--to", "local")["lag"] >= 2, "what the old side lacks")
    run("switch", "abort", "photos", "--watch")
    assert rows(two) == []
    assert route_of(two) == "local"
    expected = {k: v for k, v in two.objects.items() if k != "dir/03"} | {"new": b"on the new side"}
    wait_for(lambda: content(s3, "photos") == expected, "all that was written")
    assert [(r["from"], r["to"]) for r in run("replicate", "list", "--json")] == [("local", "disk2")]
    s3.abort_multipart_upload(Bucket="photos", Key="big", UploadId=upload)
    in_sync(two, "photos")


def test_uploads_that_nobody_ends_are_waited_for_until_their_time_is_over(two):
    run, s3 = two.run, two.s3()
    s3.create_multipart_upload(Bucket="photos", Key="left")
    run("switch", "start", "photos", "--multipart-ttl", "6s", "--continue")
    done = ended(two, "done")
    started, finished = (datetime.datetime.fromisoformat(done[k].replace("Z", "+00:00")) for k in ("started", "done"))
    assert finished - started >= datetime.timedelta(seconds=6)
    in_sync(two, "photos", "--to", "local")


def test_a_restart_goes_on_with_a_switch(two, serve, weir):
    run, s3 = two.run, two.s3()
    upload = s3.create_multipart_upload(Bucket="photos", Key="big")["UploadId"]
    run("switch", "start", "photos")
    wait_for(lambda: show(two)["state"] == "in_progress", "in_progress")
    two.signal(signal.SIGKILL)
    two.wait()
    again = serve("--replication.pause_retry", "1s", data=two.data).ready()
    again.run = runner(again, weir)
    s3 = again.s3()
    assert show(again)["state"] == "in_progress"
    put(s3, "k", b"v")
    again.run("switch", "abort", "photos", "--watch")
    assert route_of(again) == "local"
    wait_for(lambda: content(s3, "photos") == two.objects | {"k": b"v"}, "all that was written")
    assert json.dumps(rows(again)) == "[]"
    s3.abort_multipart_upload(Bucket="photos", Key="big", UploadId=upload)


# --- two gateways, two workers, Redis, and storages behind S3


@pytest.fixture
def many(tmp_path_factory):
    lab = Lab("redis", tmp_path_factory.mktemp("redis"))
    yield lab
    lab.end()


class Writer(threading.Thread):
    """Puts and deletes its own keys through both gateways by turns; 503 is tried again. `model` is what it was told."""

    def __init__(self, lab, number, stop):
        super().__init__()
        self.clients = [lab.s3(0), lab.s3(1)]
        self.random, self.stop, self.failed = random.Random(number), stop, None
        self.prefix, self.model, self.count = f"w{number}/", {}, 0

    def again(self, call, **args):
        def accepted():
            status = status_of(getattr(self.random.choice(self.clients), call), Bucket="photos", **args)
            assert status in (200, 204, 503), (call, args, status)
            return status != 503
        wait_for(accepted, call)

    def one(self):
        key = f"{self.prefix}{self.random.randrange(15)}"
        if self.random.random() < 0.25:
            self.again("delete_object", Key=key)
            self.model.pop(key, None)
        else:
            body = self.random.randbytes(self.random.randrange(2000))
            self.again("put_object", Key=key, Body=body)
            self.model[key] = body
        self.count += 1

    def run(self):
        try:
            while not self.stop.wait(PACE):
                self.one()
        except BaseException as e:
            self.failed = e


def given_up(lab, writers):
    """An upload that is open holds the switch up until it is given up."""
    lab.s3().create_multipart_upload(Bucket="photos", Key="held")
    lab.run("switch", "start", "photos")
    wait_for(lambda: lab.route("photos", "root") == "b", "the new route")
    counts = [w.count for w in writers]
    wait_for(lambda: all(w.count > n + 20 for w, n in zip(writers, counts)), "writers on the new side")
    lab.run("switch", "abort", "photos", "--watch")
    return "a"


def switched(kind):
    def call(lab, _):
        assert "done" in lab.run("switch", kind, "photos", "--continue", "--watch").splitlines()[-1]
        return "b"
    return call


def with_an_upload(lab, writers):
    """Which is open during the downtime: parts come through either gateway, the end through the other one."""
    tries = [Writer(lab, n, None) for n in (8, 9)]
    upload = {"Key": "w9/big", "UploadId": lab.s3().create_multipart_upload(Bucket="photos", Key="w9/big")["UploadId"]}
    lab.run("switch", "plan", "photos", "--continue")

    def goes_on():
        row = lab.run("switch", "show", "photos", "--json")
        return lab.route("photos", "root") == "b" and row["state"] == "in_progress" and "unblocked" in row["history"][-1]
    wait_for(goes_on, "it to go on without downtime", 120)
    counts = [w.count for w in writers]
    tries[0].again("upload_part", **upload, PartNumber=1, Body=b"part")
    wait_for(lambda: all(w.count > n + 20 for w, n in zip(writers, counts)), "writers on the new side", 60)
    tries[1].again("complete_multipart_upload", **upload, MultipartUpload={
        "Parts": [{"PartNumber": 1, "ETag": hashlib.md5(b"part").hexdigest()}]})
    for n in range(2):  # at once, wherever it is
        assert lab.s3(n).get_object(Bucket="photos", Key="w9/big")["Body"].read() == b"part"
    wait_for(lambda: lab.run("switch", "show", "photos", "--json")["state"] == "done", "the end", 120)
    writers[0].model["w9/big"] = b"part"
    return "b"


@pytest.mark.parametrize("act", [switched("start"), switched("plan"), given_up, with_an_upload],
                         ids=["start", "plan", "abort", "upload"])
def test_a_switch_under_two_gateways_on_redis(many, act):
    s3, stop = many.s3(), threading.Event()
    s3.create_bucket(Bucket="photos")
    model = {f"before/{i}": f"body {i}".encode() for i in range(60)}
    for key, body in model.items():
        s3.put_object(Bucket="photos", Key=key, Body=body)
    many.add("photos")
    many.in_sync("photos")
    writers = [Writer(many, n, stop) for n in range(3)]
    for writer in writers:
        writer.start()
    try:
        wait_for(lambda: all(w.count > 20 for w in writers), "writers")
        main = act(many, writers)
        counts = [w.count for w in writers]
        wait_for(lambda: all(w.count > n + 20 for w, n in zip(writers, counts)), "writers afterwards")
    finally:
        stop.set()
        for writer in writers:
            writer.join()
    assert [w.failed for w in writers] == [None] * 3
    assert many.route("photos", "root") == main
    for writer in writers:
        model |= writer.model
    many.in_sync("photos", to="a" if main == "b" else "b")
    many.is_equal("photos", model)
