"""Replication end to end, on every set-up of replica_lab.py: what is told to clients ends on both sides, by content.

What clients may send, through a gateway to each kind of storage (buckets, objects, folders, large ones, parts, tags,
versions), is in test_s3_boto.py, test_remote.py and test_clients.py.
"""
import collections
import concurrent.futures
import datetime
import json
import os
import random
import re
import threading
import time

import pytest
from botocore.exceptions import ClientError

from conftest import PACE, wait_for
from replica_lab import KINDS, Lab, S3RVER, fill, put, remove
from test_tasks import Queue

ODD = ["colon: b", "per%cent%3A", "plus+and&", "späce ü/☃", "trailing/", " ", "..", "q?#", "a:t", "a:a", "tab\tline"]
LONG = "l" * 1024
S3RVER_FAILS = ("the storage answers 500", "Connection reset by peer")  # its failures, as a gateway logs them


@pytest.fixture(scope="module", params=KINDS)
def lab(request, tmp_path_factory):
    if request.param == "foreign" and not S3RVER.exists():
        pytest.skip("the npm packages are not installed")
    lab = Lab(request.param, tmp_path_factory.mktemp(request.param))
    yield lab
    lab.end()


@pytest.fixture
def bucket(lab, request):
    """A bucket of the test's own."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.originalname.removeprefix("test_").lower())[:50]
    name += "-" + lab.kind  # a server of others keeps what another set-up left
    lab.s3().create_bucket(Bucket=name)
    return name


def upload(s3, bucket, model, key, sizes):
    bodies = [os.urandom(size) for size in sizes]
    id = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    tags = [s3.upload_part(Bucket=bucket, Key=key, UploadId=id, PartNumber=n, Body=body)["ETag"]
            for n, body in enumerate(bodies, 1)]
    s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=id, MultipartUpload={
        "Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]})
    model[key] = b"".join(bodies)


def random_change(s3, bucket, model, rng, keys):
    """One put, overwrite, delete, copy or upload in parts of one of the keys."""
    key = rng.choice(keys)
    what = rng.random()
    if what < .25:
        remove(s3, bucket, model, key)
    elif what < .35 and model.keys() - {key + ".copy"}:
        source = rng.choice(sorted(model.keys() - {key + ".copy"}))
        s3.copy_object(Bucket=bucket, Key=key + ".copy", CopySource={"Bucket": bucket, "Key": source})
        model[key + ".copy"] = model[source]
    elif what < .4:
        upload(s3, bucket, model, key, [rng.randrange(1, 5000)])
    else:
        put(s3, bucket, model, key, rng.randbytes(rng.randrange(3000)))


def test_routing(lab):
    """A bucket's policy goes before the user's; what is blocked is refused."""
    keys = ("AKIAROUTER", "secret-of-the-router")
    lab.add_user("router", keys)
    a, b = lab.names["a"], lab.names["b"]
    lab.api("POST", "/api/v1/users/router/route", {"storage": b})
    lab.run("bucket", "route", f"routed-by-bucket-{lab.kind}", a, "--user", "router")
    for n, (name, there) in enumerate([(f"routed-by-user-{lab.kind}", "b"), (f"routed-by-bucket-{lab.kind}", "a")]):
        s3 = lab.s3(n, keys)
        wait_for(lambda: made_there(s3, lab, name, there), f"{name} on {there}")
        s3.put_object(Bucket=name, Key="k", Body=name.encode())
        assert {r["storage"] for r in lab.run("bucket", "show", name, "--json")} == {lab.names[there]}
    lab.run("bucket", "route", f"routed-by-user-{lab.kind}", b, "--block")

    def is_refused():
        try:
            lab.s3(1, keys).get_object(Bucket=f"routed-by-user-{lab.kind}", Key="k")
            return False
        except ClientError as e:
            return e.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404, 503)
    wait_for(is_refused, "the block at the other gateway")
    lab.run("bucket", "route", f"routed-by-user-{lab.kind}", b, "--unblock")
    wait_for(lambda: not is_refused(), "its end")


def made_there(s3, lab, name, there):
    """Makes the bucket; other gateways hear of a policy within a second."""
    s3.create_bucket(Bucket=name)
    if lab.names[there] in [r["storage"] for r in lab.run("bucket", "show", name, "--json")]:
        return True
    s3.delete_bucket(Bucket=name)
    return False


def test_migrate(lab, bucket):
    """What is there and what comes, with what is kept beside the bytes."""
    s3, other, model = lab.s3(0), lab.s3(1), {}
    fill(s3, bucket, model, 40)
    put(s3, bucket, model, "empty", b"")
    put(s3, bucket, model, LONG if lab.kind != "foreign" else "l" * 200, b"long")
    for name in ODD if "escapes" not in lab.lacks else ["plain name"]:
        put(s3, bucket, model, name, name.encode())
    upload(s3, bucket, model, "parts", [5 * 1024 * 1024, 777])
    put(s3, bucket, model, "rich", b"rich", ContentType="image/x", CacheControl="max-age=9", ContentLanguage="de",
        ContentDisposition="attachment", Metadata={"who": "me"}, Tagging="a=1&b=2")
    lab.add(bucket)
    for n in range(20):
        put(other if n % 2 else s3, bucket, model, f"live{n}", os.urandom(100 + n))
    remove(other, bucket, model, "k0")
    upload(other, bucket, model, "live parts", [5 * 1024 * 1024, 5])
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
    tag = s3.head_object(Bucket=bucket, Key="parts")["ETag"]
    with lab.side("b", bucket) as there:
        got = there.head_object(Bucket=bucket, Key="rich")
        assert (got["ContentType"], got["CacheControl"], got["ContentDisposition"], got["Metadata"]) == (
            "image/x", "max-age=9", "attachment", {"who": "me"})
        assert got["ContentLanguage"] == "de"
        if "tags with a put" not in lab.lacks:
            tags = there.get_object_tagging(Bucket=bucket, Key="rich")["TagSet"]
            assert sorted((t["Key"], t["Value"]) for t in tags) == [("a", "1"), ("b", "2")]
        assert there.head_object(Bucket=bucket, Key="parts")["ETag"] == tag or "ETags of parts" in lab.lacks
    row = lab.row(bucket)
    assert (row["objects"], row["objects_failed"], row["lag"]) == (row["objects_done"], 0, 0)
    assert row["init_done"] and row["bytes"] == row["bytes_done"]


def test_migrate_custombucket(lab, bucket):
    """To another name, which nobody may use while it is a destination."""
    s3, model, there = lab.s3(), {}, bucket + "-copy"
    fill(s3, bucket, model, 10)
    lab.add(bucket, "--to-bucket", there)
    put(lab.s3(1), bucket, model, "later", b"later")
    lab.in_sync(bucket)
    lab.run("bucket", "route", there, lab.names["b"], "--user", "root")

    def is_blocked():
        with pytest.raises(ClientError):
            lab.s3(1).put_object(Bucket=there, Key="mine", Body=b"x")
        return True
    assert is_blocked()
    lab.run("replicate", "remove", bucket, "--user", "root")
    wait_for(lambda: can_list(lab.s3(1), there), "the block's end")
    assert lab.content("b", there) == model == lab.content("a", bucket)
    lab.run("bucket", "route", there, "--remove", "--user", "root")


def can_list(s3, bucket):
    try:
        s3.list_objects_v2(Bucket=bucket)
        return True
    except ClientError:
        return False


def test_migrate_load(lab, bucket):
    """Both gateways write while the first copy goes on; each key has one writer."""
    model = {}
    fill(lab.s3(), bucket, model, 120)
    lab.add(bucket, "--priority", "3")

    def writer(n):
        s3, own, rng = lab.s3(n), {}, random.Random(n)
        keys = [f"w{n}/{i}" for i in range(10)] if lab.kind != "foreign" else [f"w{n}-{i}" for i in range(10)]
        for _ in range(60):
            random_change(s3, bucket, own, rng, keys)
        return own
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for own in pool.map(writer, range(4)):
            model.update(own)
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)


def test_migrate_lock(lab, bucket):
    """One object changed again and again through both gateways while both workers copy it: the last one stands."""
    s3, model = [lab.s3(0), lab.s3(1)], {}
    lab.add(bucket)
    for n in range(60):
        put(s3[n % 2], bucket, model, "one", os.urandom(1000 + n))
        if n % 10 == 9:
            remove(s3[(n + 1) % 2], bucket, model, "two")
        else:
            put(s3[(n + 1) % 2], bucket, model, "two", os.urandom(10))
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)


def test_user_migration(lab):
    """All buckets that a user has or makes, one after another."""
    keys = ("AKIAMOVER", "secret-of-the-mover")
    lab.add_user("mover", keys)
    s3, other, models = lab.s3(0, keys), lab.s3(1, keys), {}
    wait_for(lambda: can(other.list_buckets), "the user at the other gateway")
    for name in ("moved-one", "moved-two"):
        s3.create_bucket(Bucket=name)
        models[name] = {}
        fill(s3, name, models[name], 12)
    lab.run("replicate", "add", lab.names["b"], "--user", "mover")
    for name in ("moved-new", "moved-gone"):
        other.create_bucket(Bucket=name)
        models[name] = {}
        fill(s3, name, models[name], 6)
    put(other, "moved-one", models["moved-one"], "late", b"late")
    lab.in_sync(*models)
    for name, model in models.items():
        lab.is_equal(name, model)
    for key in list(models["moved-gone"]):
        remove(s3, "moved-gone", models["moved-gone"], key)
    other.delete_bucket(Bucket="moved-gone")
    del models["moved-gone"]
    wait_for(lambda: lab.run("bucket", "show", "moved-gone", "--json", status=None) == [], "its end there")
    lab.run("replicate", "remove", "--user", "mover", "--with-buckets")
    rows = [r for r in lab.api("GET", "/api/v1/replications")["replications"] if r["user"] == "mover"]
    assert rows == []


def can(call):
    try:
        call()
        return True
    except ClientError:
        return False


def test_restart_bucket_replication(lab, bucket):
    """Removed, changed meanwhile, made anew: all is there, and the counts begin anew."""
    s3, model = lab.copied(bucket, 20)
    lab.run("replicate", "remove", bucket, "--user", "root")
    for key in sorted(model)[:10]:
        put(lab.s3(1), bucket, model, key, os.urandom(50))
    put(s3, bucket, model, "meanwhile", b"meanwhile")
    lab.add(bucket)
    put(s3, bucket, model, "after", b"after")
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
    assert lab.row(bucket)["objects_done"] in (21, 22)


def test_restart_user_replication(lab):
    keys = ("AKIAAGAIN", "secret-of-the-again")
    lab.add_user("again", keys)
    s3, model = lab.s3(0, keys), {}
    lab.run("replicate", "add", lab.names["b"], "--user", "again")
    wait_for(lambda: can(lab.s3(1, keys).list_buckets), "the user at the other gateway")
    lab.s3(1, keys).create_bucket(Bucket="again-one")
    fill(s3, "again-one", model, 10)
    lab.in_sync("again-one")
    lab.run("replicate", "remove", "--user", "again", "--with-buckets")
    put(s3, "again-one", model, "k0", b"meanwhile")
    s3.create_bucket(Bucket="again-two")
    s3.put_object(Bucket="again-two", Key="k", Body=b"two")
    lab.run("replicate", "add", lab.names["b"], "--user", "again")
    lab.in_sync("again-one", "again-two")
    lab.is_equal("again-one", model)
    lab.is_equal("again-two", {"k": b"two"})


# --- switch ---

def tried(call, *args, also=lambda status: False, **more):
    """As clients do: 503 is tried again, and what `also` says."""
    def done():
        try:
            call(*args, **more)
            return True
        except ClientError as e:
            status = e.response["ResponseMetadata"]["HTTPStatusCode"]
            if status != 503 and not also(status):
                raise
            return False
    wait_for(done, "an answer but 503")


def switched(lab, bucket, state="done"):
    last = []

    def is_so():
        shown = lab.run("switch", "show", bucket, "--user", "root", "--json")
        last[:] = [shown]
        assert state == "error" or shown["state"] != "error", shown
        return shown["state"] == state and shown
    try:
        return wait_for(is_so, f"the switch of {bucket} to be {state}", 120)
    except AssertionError as e:
        raise AssertionError(f"{e}: {last}\n{lab.tasks()}") from None


class Patient:
    """A client each of whose calls is tried again, so that an upload that has begun goes on."""

    def __init__(self, s3, also):
        self.s3, self.also = s3, also

    def __getattr__(self, name):
        def call(**more):
            answer = []
            tried(lambda: answer.append(getattr(self.s3, name)(**more)), also=self.also)
            return answer[0]
        return call


class Writers:
    """Threads that change keys of their own through both gateways, and read them back by the other one."""

    def __init__(self, lab, bucket, count=4):
        self.lab, self.bucket, self.stop, self.models, self.problems = lab, bucket, threading.Event(), [], []
        self.changes = collections.Counter()
        self.threads = [threading.Thread(target=self.run, args=(n,)) for n in range(count)]
        for thread in self.threads:
            thread.start()

    def run(self, number):
        clients, rng, model = [self.lab.s3(0), self.lab.s3(1)], random.Random(number), {}
        self.models.append(model)
        try:
            while not self.stop.wait(PACE):
                s3, other = rng.sample(clients, 2)
                key = f"w{number}-{rng.randrange(8)}"
                random_change(Patient(s3, self.is_foreign), self.bucket, model, rng, [key])
                found = read_back(other, self.bucket, key)
                if found != model.get(key):
                    self.problems.append((key, found, model.get(key)))
                    return
                self.changes[number] += 1
        except Exception as e:
            self.problems.append(e)

    def change_more(self, count):
        """Returns when every thread has made so many changes more, or one of them has a problem."""
        goals = {number: self.changes[number] + count for number in range(len(self.threads))}
        wait_for(lambda: self.problems or all(self.changes[number] >= goal for number, goal in goals.items()),
                 f"{count} changes of each writer")

    def is_foreign(self, status):
        """Whether a 500 is s3rver's. It copies an object file by file, and fails when one is being replaced. It also closes
        a connection that was idle for 5 s, at the moment at which the gateway may send the next request on it. Every
        failure that a gateway has logged must be of these kinds."""
        foreign = self.lab.kind == "foreign"
        lines = [line for g in self.lab.gateways for line in g.err.splitlines() if " s3.failed " in line]
        own = [line for line in lines if "error=BUSY" not in line and not (foreign and any(s in line for s in S3RVER_FAILS))]
        assert status != 500 or not own, own[-3:]
        return status == 500 and foreign

    def end(self, model):
        self.stop.set()
        for thread in self.threads:
            thread.join()
        assert not self.problems, self.problems[:3]
        for own in self.models:
            model.update(own)


def read_back(s3, bucket, key):
    found = []

    def ask():
        try:
            found.append(s3.get_object(Bucket=bucket, Key=key)["Body"].read())
        except ClientError as e:
            if e.response["Error"]["Code"] != "NoSuchKey":
                raise
            found.append(None)
    tried(ask)
    return found[0]


def test_zerodowntimeswitch(lab, bucket):
    """Random changes through both gateways before, during and after; the old side follows afterwards."""
    _, model = lab.copied(bucket, 20)
    writers = Writers(lab, bucket)
    try:
        writers.change_more(10)
        lab.run("switch", "start", bucket, "--user", "root", "--continue")
        switched(lab, bucket)
        writers.change_more(10)
    finally:
        writers.end(model)
    assert lab.route(bucket, "root") == lab.names["b"]
    lab.in_sync(bucket, to="a")
    lab.is_equal(bucket, model)


def test_switch_given_up(lab, bucket):
    """While an upload holds it open: what was written to the new side comes back."""
    s3, model = lab.copied(bucket, 10)
    open_upload = s3.create_multipart_upload(Bucket=bucket, Key="never")["UploadId"]
    lab.run("switch", "start", bucket, "--user", "root")
    for n in range(6):
        tried(put, lab.s3(n), bucket, model, f"k{2 * n}", os.urandom(50))
    tried(remove, lab.s3(1), bucket, model, "k0")
    lab.run("switch", "abort", bucket, "--user", "root")
    tried(s3.abort_multipart_upload, Bucket=bucket, Key="never", UploadId=open_upload)
    wait_for(lambda: lab.run("switch", "show", bucket, "--user", "root", "--json", status=None) == [], "its end", 120)
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
    assert lab.route(bucket, "root") in (None, lab.names["a"])


def test_switch_multipart(lab, bucket):
    """An upload begun before is finished after it began, by the other gateway; one begun meanwhile is the new side's."""
    other, (s3, model) = lab.s3(1), lab.copied(bucket, 5)
    parts = [os.urandom(5 * 1024 * 1024), os.urandom(99)]
    before = s3.create_multipart_upload(Bucket=bucket, Key="before")["UploadId"]
    tags = [s3.upload_part(Bucket=bucket, Key="before", UploadId=before, PartNumber=1, Body=parts[0])["ETag"]]
    lab.run("switch", "start", bucket, "--user", "root", "--continue")
    switched(lab, bucket, "in_progress")
    tried(upload, other, bucket, model, "meanwhile", [1000])
    tried(lambda: tags.append(other.upload_part(Bucket=bucket, Key="before", UploadId=before, PartNumber=2,
                                                Body=parts[1])["ETag"]))
    assert lab.run("switch", "show", bucket, "--user", "root", "--json")["state"] == "in_progress"
    tried(other.complete_multipart_upload, Bucket=bucket, Key="before", UploadId=before, MultipartUpload={
        "Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]})
    model["before"] = b"".join(parts)
    assert read_back(s3, bucket, "before") == model["before"]
    switched(lab, bucket)
    lab.in_sync(bucket, to="a")
    lab.is_equal(bucket, model)


def test_scheduled_switch(lab, bucket):
    """With downtime, at its time, while clients write; the contents are compared before it is done."""
    _, model = lab.copied(bucket, 15)
    at = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=4)
    lab.run("switch", "plan", bucket, "--user", "root", "--start-at", at.isoformat())
    writers = Writers(lab, bucket, 2)
    try:
        shown = switched(lab, bucket)
    finally:
        writers.end(model)
    assert any("check_in_progress" in line for line in shown["history"])
    assert lab.content("b", bucket) == model
    assert lab.route(bucket, "root") == lab.names["b"]


def test_scheduled_switch_continue_replication(lab, bucket):
    """As soon as everything was copied once; then the old side follows."""
    s3, model = lab.s3(), {}
    fill(s3, bucket, model, 15)
    lab.add(bucket)
    lab.run("switch", "plan", bucket, "--user", "root", "--on-init-done", "--continue")
    switched(lab, bucket)
    tried(put, lab.s3(1), bucket, model, "after", b"after")
    tried(remove, s3, bucket, model, "k0")
    lab.in_sync(bucket, to="a")
    lab.is_equal(bucket, model)


def test_diff(lab, bucket):
    """What was damaged past weir is found by name, fixed, and then nothing is found."""
    s3, model = lab.copied(bucket, 12)
    places = [f"{lab.names[name]}:{bucket}" for name in ("a", "b")]
    lab.run("diff", "check", *places, "--user", "root", "--watch")
    with lab.damaging(bucket) as there:
        there.put_object(Bucket=bucket, Key="k0", Body=b"wrong")
        there.put_object(Bucket=bucket, Key="more", Body=b"more")
        there.delete_object(Bucket=bucket, Key="k2")
    lab.run("diff", "check", *places, "--user", "root", "--watch", status=1)
    found = next(d for d in lab.run("diff", "list", "--json") if bucket in json.dumps(d))
    report = lab.run("diff", "report", found["id"], "--json")
    assert {e["object"] for e in report["entries"]} == {"k0", "k2", "more"}
    lab.run("diff", "fix", found["id"], "--source", places[0], "--watch")
    lab.is_equal(bucket, model)


# --- what is kept in Redis ---

APP, QUEUE, LOCK, CONFIG = range(4)
PART = r"[^:]+"  # of a name in which ':' and '%' are escaped
NUMBER = r"-?\d+"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
STATUS = {"created_at": TIME, "archived_at": TIME, "init_done_at": TIME, "last_emitted_at": TIME, "last_processed_at": TIME,
          "resynced_at": TIME, "paused": "[01]", "archived": "[01]", "listing_started": "[01]", "agent_url": ".*",
          **dict.fromkeys(("obj_listed", "obj_done", "obj_failed", "bytes_listed", "bytes_done", "events", "events_done",
                           "listings"), NUMBER)}
SWITCH = {"replicationID": f"{PART}:{PART}:{PART}:{PART}(:{PART})?", "createdAt": TIME, "startedAt": TIME, "doneAt": TIME,
          "abortedAt": TIME, "lastStatus": "not_started|in_progress|check_in_progress|done|error|skipped",
          "startAt": TIME, "cron": ".*", "onInitDone": "[01]", "skipBucketCheck": "[01]", "continueReplication": "[01]",
          **dict.fromkeys(("replPriority", "multipartTTL", "uploadsTTL", "blocked", "maxDuration", "maxEventLag"), NUMBER)}
TASK = {"msg": r"(?s).*", "state": "pending|active|scheduled|retry|archived|completed", "pending_since": NUMBER,
        "unique_key": ".*", "result": ".*", "token": ".*", "tally": ".*", "group": ".*"}
ANY = {r".+": r"(?s).*"}
# Database, key, type, and of a hash its fields, of others a pattern of what it holds. docs/replication.md, "Keys";
# docs/diff.md has checks,
# docs/security.md users and storages.
KEYS_OF_REDIS = [
    (QUEUE, r"asynq:queues", "set", PART), (QUEUE, r"asynq:(servers|workers|schedulers)", "zset", r"asynq:.*"),
    (QUEUE, r"asynq:servers:\{.*\}", "string", r"(?s).*"), (QUEUE, r"asynq:workers:\{.*\}", "hash", ANY),
    (QUEUE, r"asynq:\{\w+\}:t:.+", "hash", TASK), (QUEUE, r"asynq:\{\w+\}:(pending|active)", "list", r"(?s).+"),
    (QUEUE, r"asynq:\{\w+\}:(scheduled|retry|archived|completed|lease)", "zset", r"(?s).+"),
    (QUEUE, r"asynq:\{\w+\}:(processed|failed)(:\d{4}-\d\d-\d\d)?", "string", NUMBER),
    (QUEUE, r"asynq:\{\w+\}:(paused|unique:.*)", "string", r".+"),
    (LOCK, f"lk:{PART}:{PART}:{PART}", "string", r"\w+"), (LOCK, f"lk[bsu]:.+", "string", r"\w+"),
    (APP, f"kv:{PART}:h", "hash", ANY), (APP, f"kv:{PART}:z", "zset", r"(?s).+"),  # docs/kv.md
    (APP, f"s:up:{PART}:{PART}", "set", f"{PART}:.+"), (APP, f"s:{PART}:{PART}:{PART}(:.*)?", "string", r"(?s).*"),
    (APP, f"b:{PART}(:[ta])?", "hash", {f"{PART}(:{PART})?": NUMBER}),
    (APP, f"[a-z0-9.-]{{3,}}:{PART}(:{PART})?(:[ta])?", "hash", {f"{PART}(:{PART})?": NUMBER}),
    (APP, f"w:tap:{PART}", "string", NUMBER), (APP, f"w:copy:{PART}:{PART}:{PART}", "string", r"(?s).+"),
    (APP, f"w:rate:(requests|bytes):{PART}", "hash", ANY), (APP, r"w:ccv:(id|stor:\w+|f:\w+)", "set", r"(?s).+"),
    (APP, r"w:ccv:c:\w+", "hash", ANY), (APP, r"w:ccv:l:\w+", "string", r"(?s).*"),
    (APP, r"w:ccv:d:\w+", "list", r"(?s)\{.*\}"),
    (CONFIG, f"p:route:{PART}(:{PART})?", "string", PART), (CONFIG, f"p:route_block:{PART}", "set", PART),
    (CONFIG, f"p:repl:{PART}", "zset", f"{PART}:{PART}"), (CONFIG, f"p:repl:{PART}:{PART}", "zset", f"{PART}:{PART}(:{PART})?"),
    (CONFIG, f"p:repl_st:{PART}:{PART}:{PART}:{PART}(:{PART})?", "hash", STATUS),
    (CONFIG, f"p:switch:{PART}:{PART}", "hash", SWITCH),
    (CONFIG, f"p:switch-hist:{PART}:{PART}", "list", TIME.removesuffix("Z") + r".*\|.* -> .*:.*"),
    (CONFIG, r"w:copies", "hash", {f"{PART}:{PART}": PART}), (CONFIG, r"w:pinned", "string", "1"),
    (CONFIG, r"w:pins", "set", f"{PART}:{PART}"),
    (CONFIG, r"w:epoch", "string", NUMBER), (CONFIG, r"w:epochs", "zset", r"[ns]:.*"),
    (CONFIG, r"w:gateways", "hash", {r"\w+": f"{NUMBER}:{NUMBER}"}),
    (CONFIG, r"w:settled", "hash", {r".+": NUMBER}),
    (CONFIG, r"w:forget", "zset", PART), (LOCK, r"w:keeper", "string", r"\w+"),
    (CONFIG, r"w:installation", "hash", ANY), (CONFIG, r"w:config", "string", NUMBER),
    (QUEUE, r"w:seen", "hash", {r"\w+": r"\d+:\w*:\d+:\w"}), (APP, r"w:installed", "string", r".+"),
    (QUEUE, r"w:installed", "string", r".+"),
    (CONFIG, r"users|storages", "set", r".+"), (CONFIG, r"users:(version|check|check:at|root)|storages:(main|version)", "string", r".+"),
    (CONFIG, r"user:.+|users:(id|email|access)|storage:.+|storage_keys:.+|webhooks", "hash", ANY),
]
READ = {"set": ("SMEMBERS",), "zset": ("ZRANGE", 0, -1), "list": ("LRANGE", 0, -1), "string": ("GET",)}


def wrong_with(store, database, key, kind):
    """What of the key is not as the table has it; None: nothing."""
    for number, pattern, type, holds in KEYS_OF_REDIS:
        if number != database or not re.fullmatch(pattern, key, re.S):
            continue
        if kind != type:
            return f"is a {kind}, not a {type}"
        if type == "hash":
            row = store.call("HGETALL", key)
            fields = {row[i].decode(): row[i + 1].decode(errors="replace") for i in range(0, len(row), 2)}
            return next((f"{f} = {v}" for f, v in fields.items()
                         if not any(re.fullmatch(name, f, re.S) and re.fullmatch(value, v, re.S)
                                    for name, value in holds.items())), None)
        command, *more = READ[type]
        found = store.call(command, key, *more)
        values = [found] if type == "string" else found
        return next((v for v in values if v is not None and not re.fullmatch(holds, v.decode(errors="replace"), re.S)), None)
    return "is in no table"


def test_redis_holds_the_seed_s_keys_and_no_others(lab, bucket):
    """After the scenarios above, with one replication at work, one paused and one to a bucket of another name."""
    if not lab.redis:
        pytest.skip("the store is weir's own")
    s3, model = lab.s3(), {}
    lab.add(bucket)
    lab.add(bucket, "--to-bucket", bucket + "-other")
    lab.run("replicate", "pause", bucket, "--to-bucket", bucket + "-other", "--user", "root")
    for name in ODD if "escapes" not in lab.lacks else ["plain name"]:
        put(s3, bucket, model, name, b"x", Tagging="a=b")
    remove(s3, bucket, model, sorted(model)[0])
    if "bucket tags" not in lab.lacks:
        s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    store, wrong, seen = Queue(lab.redis.port), [], set()
    for database in range(4):
        store.call("SELECT", database)
        for key in store.call("KEYS", "*"):
            key = key.decode()
            kind = store.call("TYPE", key).decode()
            seen.add(next((p for n, p, *_ in KEYS_OF_REDIS if n == database and re.fullmatch(p, key, re.S)), key))
            problem = wrong_with(store, database, key, kind) if kind != "none" else None
            if problem and store.call("EXISTS", key) != b"0":
                wrong.append((database, key, problem))
    assert not wrong
    for number, pattern, *_ in KEYS_OF_REDIS:
        if pattern.startswith((f"p:repl:{PART}:", "p:repl_st", "p:route_block", "w:epoch")) or (
                number == APP and "[ta]" in pattern and "bucket tags" not in lab.lacks):
            assert pattern in seen, pattern
    lab.run("replicate", "remove", bucket, "--to-bucket", bucket + "-other", "--user", "root")
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
