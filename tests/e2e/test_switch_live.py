"""A bucket is switched to another storage without downtime, while clients go on: every one of them sees its own changes at every
moment, in reads and in listings, whichever side has them, also when the switch is given up half-way."""
import os
import random
import threading
import time

import pytest
from botocore.exceptions import ClientError

from conftest import PACE, runner, wait_for
from replica_lab import Lab, content
from test_replicate import pair

WRITERS = 4
BEFORE = 120  # objects that are there when the replication is made


@pytest.fixture
def disks(serve, weir, tmp_path):
    """A server with the local storages local and disk2."""
    server = pair(serve().ready(), weir, tmp_path)
    server.second = "disk2"
    return server


@pytest.fixture
def far(serve, weir, tmp_path_factory):
    """A server with the local storage local and the remote one far, which is another weir."""
    back = serve(folder=tmp_path_factory.mktemp("back")).ready()
    server = serve().ready()
    server.run = runner(server, weir)
    access, secret = back.keys
    server.run("storage", "add", "far", "--endpoint", back.s3_url)
    server.run("storage", "key", "far", "root", "--access-key", access, "--secret-key", secret)
    server.second, server.back = "far", back
    return server


@pytest.fixture
def twins(tmp_path):
    """Two gateways and two workers over one Redis, with two remote storages; each request goes through one of the gateways."""
    lab = Lab("redis", tmp_path)
    lab.second = "b"
    yield lab
    lab.end()


def again(call, **args):
    """One call, tried again while the server says that it is not the time."""
    end = time.monotonic() + 60
    while True:
        try:
            return call(**args)
        except ClientError as e:
            if e.response["ResponseMetadata"]["HTTPStatusCode"] != 503 or time.monotonic() > end:
                raise
            time.sleep(0.05)


def clients(server):
    """One for each gateway."""
    return [server.s3(n) for n in range(2)] if isinstance(server, Lab) else [server.s3()]


class Writer(threading.Thread):
    """Changes its own keys at random and looks at them; the model is what it was told."""

    def __init__(self, server, bucket, number, seed):
        super().__init__()
        self.gateways = clients(server)
        self.bucket, self.prefix = bucket, f"w{number}/"
        self.random = random.Random(seed * 100 + number)
        self.model, self.tags, self.open = {}, {}, []
        self.stop, self.failure, self.steps = threading.Event(), None, 0
        self.conditional = False
        for s3 in self.gateways:
            s3.meta.events.register("before-call.s3.PutObject", self.add_condition)

    @property
    def s3(self):
        return self.random.choice(self.gateways)

    def add_condition(self, params, **_):
        """Debian's boto3 has no parameter for it."""
        if self.conditional:
            params["headers"]["If-None-Match"] = "*"

    def call(self, name, key, **args):
        return again(getattr(self.s3, name), Bucket=self.bucket, Key=self.prefix + key, **args)

    def some_key(self):
        return self.random.choice("abcdef") + self.random.choice(["", "/", "/x"]) + str(self.random.randrange(5))

    def body(self):
        return self.random.randbytes(self.random.choice([0, 1, 100, 5000, 200000]))

    def put(self, key):
        body = self.body()
        self.call("put_object", key, Body=body)
        self.model[key] = body
        self.tags.pop(key, None)

    def delete(self, key):
        self.call("delete_object", key)
        self.model.pop(key, None)
        self.tags.pop(key, None)

    def delete_many(self, key):
        keys = {key, self.some_key(), self.some_key()}
        done = again(self.s3.delete_objects, Bucket=self.bucket,
                     Delete={"Objects": [{"Key": self.prefix + k} for k in keys]})
        assert "Errors" not in done, done
        for k in keys:
            self.model.pop(k, None)
            self.tags.pop(k, None)

    def copy(self, key):
        if not self.model:
            return
        source = self.random.choice(sorted(self.model))
        if source != key:
            self.call("copy_object", key, CopySource={"Bucket": self.bucket, "Key": self.prefix + source},
                      TaggingDirective="REPLACE")
            self.model[key] = self.model[source]
            self.tags.pop(key, None)

    def tag(self, key):
        if key in self.model:
            value = str(self.random.random())
            self.call("put_object_tagging", key, Tagging={"TagSet": [{"Key": "n", "Value": value}]})
            self.tags[key] = value

    def create(self, key):
        """A put that must find what is there."""
        body = self.body()
        self.conditional = True
        try:
            self.call("put_object", key, Body=body)
            assert key not in self.model, key
            self.model[key] = body
            self.tags.pop(key, None)
        except ClientError as e:
            assert e.response["Error"]["Code"] == "PreconditionFailed" and key in self.model, (key, e)
        finally:
            self.conditional = False

    def begin(self, key):
        if len(self.open) < 3:
            self.open.append((key, self.call("create_multipart_upload", key)["UploadId"], self.body()))

    def finish(self, _key=None):
        if not self.open:
            return
        key, upload, body = self.open.pop(0)
        part = self.call("upload_part", key, UploadId=upload, PartNumber=1, Body=body)
        self.call("complete_multipart_upload", key, UploadId=upload,
                  MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
        self.model[key] = body
        self.tags.pop(key, None)

    def look(self, key):
        try:
            got = self.call("get_object", key)["Body"].read()
        except ClientError as e:
            assert e.response["Error"]["Code"] == "NoSuchKey", e
            got = None
        assert got == self.model.get(key), f"{key}: {got and got[:20]} is not {self.model.get(key) and self.model[key][:20]}"
        if got is not None:
            tags = self.call("get_object_tagging", key)["TagSet"]
            assert [t["Value"] for t in tags] == ([self.tags[key]] if key in self.tags else []), key

    def list(self, _key=None):
        page = self.random.choice([1, 3, 7, 1000])
        delimiter = self.random.choice(["", "/"])
        names, prefixes, token = [], [], {}
        while True:
            r = again(self.s3.list_objects_v2, Bucket=self.bucket, Prefix=self.prefix, Delimiter=delimiter, MaxKeys=page, **token)
            names += [(o["Key"][len(self.prefix):], o["Size"]) for o in r.get("Contents", [])]
            prefixes += [p["Prefix"][len(self.prefix):] for p in r.get("CommonPrefixes", [])]
            assert r["KeyCount"] <= page and (r["KeyCount"] == page or not r["IsTruncated"])
            if not r["IsTruncated"]:
                break
            token = {"ContinuationToken": r["NextContinuationToken"]}
        flat = [k for k in self.model if not delimiter or "/" not in k]
        assert names == sorted((k, len(self.model[k])) for k in flat), delimiter
        assert prefixes == sorted({k.split("/")[0] + "/" for k in self.model if delimiter and "/" in k})

    def uploads(self, _key=None):
        r = again(self.s3.list_multipart_uploads, Bucket=self.bucket, Prefix=self.prefix)
        found = {u["UploadId"] for u in r.get("Uploads", [])}
        assert {upload for _, upload, _ in self.open} <= found

    def step(self):
        key = self.some_key()
        kind = self.random.choices(
            [self.put, self.delete, self.delete_many, self.copy, self.tag, self.create, self.begin, self.finish, self.list,
             self.uploads], [10, 5, 1, 3, 3, 3, 2, 2, 3, 1])[0]
        kind(key)
        self.look(key)
        self.look(self.some_key())
        self.steps += 1

    def run(self):
        try:
            while not self.stop.wait(PACE):
                self.step()
            while self.open:
                self.finish()
            for key in list(self.model):
                self.look(key)
            self.list()
        except BaseException as e:  # the test tells it
            self.failure = e
            raise


def state_of(server, bucket):
    rows = server.run("switch", "list", bucket, "--json")
    return rows[0]["state"] if rows else "gone"


def begun(server):
    """A bucket with objects, in sync on both storages."""
    s3 = server.s3()
    s3.create_bucket(Bucket="photos")
    there = {f"before/{n % 5}/{n}": os.urandom(50 + n) for n in range(BEFORE)}
    for name, body in there.items():
        s3.put_object(Bucket="photos", Key=name, Body=body)
    server.run("replicate", "add", "photos", server.second, "--user", "root")
    wait_for(lambda: server.run("replicate", "list", "--json")[0]["state"] == "in sync", "in sync")
    return there


def run_writers(server, seed, drama):
    """Writers go on while drama() happens."""
    writers = [Writer(server, "photos", n, seed) for n in range(WRITERS)]
    for w in writers:
        w.start()

    def progress(steps):
        goal = [w.steps + steps for w in writers]
        wait_for(lambda: any(w.failure for w in writers) or all(w.steps >= g for w, g in zip(writers, goal)), "writers", 180)
        assert not any(w.failure for w in writers), [w.failure for w in writers]
    try:
        progress(5)
        drama(progress)
        progress(5)
    finally:
        for w in writers:
            w.stop.set()
        for w in writers:
            w.join()
    assert not any(w.failure for w in writers), [w.failure for w in writers]
    return {w.prefix + key: body for w in writers for key, body in w.model.items()}


def route_of(server):
    """Which storage a new object is on, by what the storages themselves count; the others may follow."""
    def count():
        return {row["storage"]: row["objects"] for row in server.run("bucket", "show", "photos", "--json")}
    wait_for(lambda: all(r["lag"] == 0 for r in server.run("replicate", "list", "--json")), "all to be copied")
    before = count()
    server.s3().put_object(Bucket="photos", Key="probe", Body=b"x")
    after = count()
    return [name for name in after if after[name] > before.get(name, 0)]


def hold(server):
    """An upload that is open on the old side, so that the switch is not done before it is let go; returns what does that."""
    s3, name = server.s3(), {"Bucket": "photos", "Key": "held"}
    upload = s3.create_multipart_upload(**name)["UploadId"]
    return lambda: again(s3.abort_multipart_upload, UploadId=upload, **name)


def check_zero_downtime(server, seed):
    model = begun(server)
    let_go = hold(server)

    def drama(progress):
        server.run("switch", "start", "photos")
        progress(5)
        wait_for(lambda: state_of(server, "photos") == "in_progress", "the route to change")
        progress(12)
        let_go()
        wait_for(lambda: state_of(server, "photos") == "done", "the switch to be done", 180)
    model.update(run_writers(server, seed, drama))
    assert content(server.s3(), "photos") == model


def check_abort(server, seed):
    model = begun(server)
    let_go = hold(server)

    def drama(progress):
        server.run("switch", "start", "photos")
        wait_for(lambda: state_of(server, "photos") == "in_progress", "the route to change")
        progress(12)
        assert state_of(server, "photos") == "in_progress"
        server.run("switch", "abort", "photos")
        progress(5)
        wait_for(lambda: state_of(server, "photos") == "gone", "all to be back", 180)
        let_go()
    model.update(run_writers(server, seed, drama))
    assert content(server.s3(), "photos") == model
    assert server.run("switch", "list", "--json") == []


def test_zero_downtime_switch(disks):
    check_zero_downtime(disks, 1)
    assert route_of(disks) == ["disk2"]


def test_a_switch_that_is_given_up_loses_nothing(disks):
    check_abort(disks, 1)
    assert "local" in route_of(disks)


def test_zero_downtime_switch_to_a_remote_storage(far):
    check_zero_downtime(far, 7)
    assert content(far.back.s3(), "photos") == content(far.s3(), "photos")


def test_a_switch_to_a_remote_storage_that_is_given_up_loses_nothing(far):
    check_abort(far, 8)


def test_zero_downtime_switch_of_two_gateways(twins):
    check_zero_downtime(twins, 9)
    assert twins.content("b", "photos") == content(twins.s3(), "photos")


def test_a_switch_of_two_gateways_that_is_given_up_loses_nothing(twins):
    check_abort(twins, 10)


def test_switch_multipart(disks):
    """Uploads that were begun before a switch are finished during it, on the old side, and are there afterwards."""
    s3 = disks.s3()
    begun(disks)
    before = s3.create_multipart_upload(Bucket="photos", Key="large")["UploadId"]
    first = s3.upload_part(Bucket="photos", Key="large", UploadId=before, PartNumber=1, Body=b"1" * (5 << 20))
    disks.run("switch", "start", "photos")
    wait_for(lambda: state_of(disks, "photos") == "in_progress", "the route to change")
    during = s3.create_multipart_upload(Bucket="photos", Key="during")["UploadId"]
    uploads = {u["UploadId"] for u in s3.list_multipart_uploads(Bucket="photos")["Uploads"]}
    assert uploads == {before, during}
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["photos"]
    second = s3.upload_part(Bucket="photos", Key="large", UploadId=before, PartNumber=2, Body=b"2")
    assert [p["PartNumber"] for p in s3.list_parts(Bucket="photos", Key="large", UploadId=before)["Parts"]] == [1, 2]
    time.sleep(3)  # polled every two seconds: it would be done by then
    assert state_of(disks, "photos") == "in_progress"
    s3.complete_multipart_upload(Bucket="photos", Key="large", UploadId=before, MultipartUpload={
        "Parts": [{"PartNumber": n + 1, "ETag": p["ETag"]} for n, p in enumerate([first, second])]})
    assert s3.get_object(Bucket="photos", Key="large")["Body"].read() == b"1" * (5 << 20) + b"2"
    wait_for(lambda: state_of(disks, "photos") == "done", "the switch to be done")
    assert s3.head_object(Bucket="photos", Key="large")["ContentLength"] == (5 << 20) + 1
    part = s3.upload_part(Bucket="photos", Key="during", UploadId=during, PartNumber=1, Body=b"3")
    s3.complete_multipart_upload(Bucket="photos", Key="during", UploadId=during,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert s3.get_object(Bucket="photos", Key="during")["Body"].read() == b"3"
