"""Diffs through the commands: the scenarios of consistency checks and fixes, plain and by versions, and what a kill or a flushed
store does to them."""
import http.client
import os
import signal

import pytest

from conftest import DEADLINE, runner, wait_for
from test_tasks import Queue

PLACES = {"left": "local", "right": "disk2", "third": "disk3"}


def location(bucket):
    return f"{PLACES[bucket]}:{bucket}"


class Lab:
    """A server with buckets left, right and third, each on a storage of its own."""

    def __init__(self, serve, weir, tmp_path, redis=None):
        self.serve, self.weir, self.redis = serve, weir, redis
        self.args = [] if not redis else [
            "--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}"]
        self.server = serve(*self.args).ready()
        self.run = runner(self.server, weir)
        for storage in ("disk2", "disk3"):
            self.run("storage", "add", storage, tmp_path / storage)
        for bucket in ("right", "third"):
            self.run("bucket", "route", bucket, PLACES[bucket], "--user", "root")
        self.s3 = self.server.s3()
        for bucket in PLACES:
            self.s3.create_bucket(Bucket=bucket)

    def kill(self):
        """As if the machine had lost its power; then it is started again."""
        self.server.signal(signal.SIGKILL)
        self.server.wait()
        if self.redis:
            Queue(self.redis.port).end_leases()
        self.server = self.serve(*self.args, data=self.server.data).ready()
        self.run, self.s3 = runner(self.server, self.weir), self.server.s3()

    def put(self, key, body=b"body", buckets=("left", "right")):
        for bucket in buckets:
            self.s3.put_object(Bucket=bucket, Key=key, Body=body)

    def delete(self, key, bucket):
        self.s3.delete_object(Bucket=bucket, Key=key)

    def keep_versions(self):
        for bucket in PLACES:
            self.s3.put_bucket_versioning(Bucket=bucket, VersioningConfiguration={"Status": "Enabled"})

    def check(self, *flags, buckets=("left", "right")):
        """The report of a check that has ended."""
        row = self.run("diff", "check", *map(location, buckets), *flags, "--json")[0]
        return self.await_ready(row["id"])

    def await_ready(self, diff):
        def ready():
            report = self.report(diff)
            return report["state"] in ("ready", "failed") and report
        return wait_for(ready, "the check")

    def report(self, diff, *flags):
        return self.run("diff", "report", diff, *flags, "--json")

    def fix(self, report, source="left"):
        """Fixed from there, and checked again."""
        self.run("diff", "fix", report["id"], "--source", location(source))
        report = self.await_ready(report["id"])
        assert report["fix_failed"] == 0 and report["fix_done"] == report["fix_queued"] > 0, report
        return report

    def versions(self, bucket):
        page = self.s3.list_object_versions(Bucket=bucket)
        return [(v["Key"], v["ETag"]) for v in page.get("Versions", [])], [m["Key"] for m in page.get("DeleteMarkers", [])]

    def content(self, bucket):
        pages = self.s3.get_paginator("list_objects_v2").paginate(Bucket=bucket)
        return {o["Key"]: self.s3.get_object(Bucket=bucket, Key=o["Key"])["Body"].read()
                for page in pages for o in page.get("Contents", [])}


def kinds(report):
    return {entry["object"]: entry["kind"] for entry in report["entries"]}


@pytest.fixture(params=["embedded", "redis"])
def lab(request, serve, weir, tmp_path):
    return Lab(serve, weir, tmp_path, request.getfixturevalue("redis") if request.param == "redis" else None)


@pytest.fixture
def one(serve, weir, tmp_path):
    return Lab(serve, weir, tmp_path)


def fill(lab, buckets=("left", "right")):
    for key in ("a", "dir/", "dir/b", "dir/sub/c: ü%", "empty/", "z"):
        lab.put(key, b"" if key.endswith("/") else key.encode(), buckets)


# --- consistency checks of two storages ---


def test_Consistency_2Storages_Success(lab):
    fill(lab)
    report = lab.check()
    assert report["consistent"] and report["keys"] == 6 and report["entries"] == [] and report["state"] == "ready"
    assert report["total"] == 6 and report["keys_per_s"] > 0 and report["left_s"] is None


@pytest.mark.parametrize("scenario, keys", [("NoObject", ["a"]), ("NoDir", ["dir/", "dir/b", "dir/sub/c: ü%"]),
                                            ("NoEmptyDir", ["empty/"])])
def test_Consistency_2Storages_missing_Failure(lab, scenario, keys):
    fill(lab)
    for key in keys:
        lab.delete(key, "right")
    report = lab.check()
    assert not report["consistent"] and kinds(report) == {key: "missing" for key in keys}
    entry = report["entries"][0]
    assert report["locations"] == ["disk2:right", "local:left"]
    assert entry["sides"][0] is None and entry["sides"][1]["size"] >= 0
    report = lab.fix(report)
    assert report["consistent"] and lab.content("left") == lab.content("right")


def test_Consistency_2Storages_WrongEtag_Failure(lab):
    fill(lab)
    lab.put("z", b"y", ["right"])
    report = lab.check()
    assert kinds(report) == {"z": "etag"}
    text = lab.run("diff", "report", report["id"])
    assert "disk2:right 1 " in text and "local:left 1 " in text
    assert lab.fix(report)["consistent"]
    assert lab.content("right")["z"] == b"z"


def test_ListChecks(one):
    fill(one)
    first, second = one.check(), one.check(buckets=("left", "third"))
    rows = {row["id"]: row for row in one.run("diff", "list", "--json")}
    assert set(rows) == {first["id"], second["id"]}
    assert rows[first["id"]]["consistent"] == "yes" and rows[second["id"]]["differences"] == 6
    assert one.check()["id"] == first["id"]
    one.run("diff", "purge", first["id"])
    assert [row["id"] for row in one.run("diff", "list", "--json")] == [second["id"]]
    assert "there is no check" in one.run("diff", "report", first["id"], status=1)
    assert "there is no check" in one.run("diff", "purge", first["id"], status=1)


# --- the diff suite: plain and by versions ---


@pytest.fixture(params=["plain", "versioned"])
def suite(request, one):
    one.versioned = request.param == "versioned"
    if one.versioned:
        one.keep_versions()
    fill(one)
    if one.versioned:
        one.put("a", b"second")
        one.put("z", b"second")
    return one


def ends_equal(lab, report):
    report = lab.fix(report)
    assert report["consistent"] and lab.content("left") == lab.content("right")
    assert lab.versions("left") == lab.versions("right")
    lab.run("diff", "recheck", report["id"])
    assert lab.await_ready(report["id"])["consistent"]


def test_succeed(suite):
    report = suite.check()
    assert report["consistent"] and report["versioned"] == suite.versioned


def test_sizes_only(suite):
    suite.put("a", b"other!", ["right"])
    if suite.versioned:
        suite.put("a", b"others", ["left"])
    assert suite.check("--ignore-etags")["consistent"] == suite.versioned
    suite.put("a", b"another", ["right"])
    report = suite.check("--ignore-etags")
    assert set(kinds(report).values()) <= {"size", "missing"} and set(kinds(report)) == {"a"}
    ends_equal(suite, report)


def test_names_only(suite):
    suite.put("a", b"of another size", ["right"])
    if suite.versioned:
        suite.put("a", b"x", ["left"])
    assert suite.check("--ignore-etags", "--ignore-sizes")["consistent"]
    suite.put("only", b"", ["right"])
    report = suite.check("--ignore-etags", "--ignore-sizes")
    assert kinds(report) == {"only": "missing"}
    suite.fix(report)
    assert "only" not in suite.content("right")


def test_last_version_only(suite):
    if suite.versioned:
        suite.put("a", b"lost", ["left"])
        suite.put("a", b"last")
        assert not suite.check()["consistent"]
    report = suite.check("--last-versions")
    assert report["consistent"] and not report["versioned"]
    suite.put("a", b"not the same", ["right"])
    report = suite.check("--last-versions")
    assert kinds(report) == {"a": "size"}
    ends_equal(suite, report)


@pytest.mark.parametrize("keys", [["a"], ["dir/", "dir/b", "dir/sub/c: ü%"], ["empty/"]],
                         ids=["no_object", "no_directory", "no_empty_dir"])
def test_missing(suite, keys):
    for key in keys:
        suite.delete(key, "right")
    report = suite.check()
    assert set(kinds(report)) == set(keys) and set(kinds(report).values()) == {"missing"}
    ends_equal(suite, report)


def test_only_at_the_destination(suite):
    suite.put("extra", b"x", ["right"])
    suite.put("extra dir/", b"", ["right"])
    report = suite.check()
    assert kinds(report) == {"extra": "missing", "extra dir/": "missing"}
    ends_equal(suite, report)


def test_wrong_etag(suite):
    suite.put("a", b"left", ["left"])
    suite.put("a", b"righ", ["right"])
    report = suite.check()
    assert kinds(report) == {"a": "etag"}
    if suite.versioned:
        assert report["entries"][0]["version_index"] == 2
    ends_equal(suite, report)


def test_wrong_version_count(one):
    one.keep_versions()
    fill(one)
    one.put("a", b"2", ["left"])
    one.put("a", b"3", ["left"])
    one.delete("z", "left")
    report = one.check()
    assert [(e["object"], e["version_index"], e["kind"]) for e in report["entries"]] == [
        ("a", 1, "missing"), ("a", 2, "missing"), ("z", 1, "missing")]
    ends_equal(one, report)


# --- more of them ---


def test_three_locations(one):
    buckets = tuple(PLACES)
    fill(one, buckets)
    one.put("a", b"x", ["right"])
    one.delete("z", "third")
    one.put("extra", b"x", ["third"])
    report = one.check(buckets=buckets)
    assert kinds(report) == {"a": "etag", "z": "missing", "extra": "missing"}
    report = one.fix(report)
    assert report["consistent"] and report["fix_queued"] == 3
    assert one.content("left") == one.content("right") == one.content("third")


def test_parts_that_differ_and_bytes_that_do_not(one):
    body = os.urandom(6 << 20)
    upload = one.s3.create_multipart_upload(Bucket="left", Key="large")["UploadId"]
    part = one.s3.upload_part(Bucket="left", Key="large", UploadId=upload, PartNumber=1, Body=body)["ETag"]
    one.s3.complete_multipart_upload(Bucket="left", Key="large", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part}]})
    one.put("large", body, ["right"])
    report = one.check()
    assert report["consistent"]
    one.put("large", body[:-1] + bytes([body[-1] ^ 1]), ["right"])
    report = one.check()
    assert kinds(report)["large"] in ("content", "etag")
    assert one.fix(report)["consistent"] and one.content("right")["large"] == body


def test_contents_are_read(one):
    fill(one)
    report = one.check("--contents")
    assert report["consistent"] and report["bytes"] == 2 * sum(len(v) for v in one.content("left").values())


def test_another_weir_is_a_location(serve, one):
    other = serve().ready()
    access, secret = other.keys
    one.run("storage", "add", "far", "--endpoint", other.s3_url, "--user", "root", "--access-key", access, "--secret-key",
            secret)
    far = other.s3()
    far.create_bucket(Bucket="photos")
    fill(one, ["left"])
    far.put_object(Bucket="photos", Key="stranger", Body=b"x")
    row = one.run("diff", "check", "local:left", "far:photos", "--json")[0]
    report = one.await_ready(row["id"])
    assert report["differences"] == 7
    assert one.fix(report)["consistent"]
    assert {o["Key"] for o in far.list_objects_v2(Bucket="photos")["Contents"]} == set(one.content("left"))


def test_progress_is_watched_and_differences_fail(one):
    fill(one)
    out = one.run("diff", "check", location("left"), location("right"), "--watch")
    assert "ready: 6 keys, 0 differences" in out
    one.delete("a", "right")
    out = one.run("diff", "check", location("left"), location("right"), "--watch", status=1)
    assert "1 differences; weir diff report" in out
    diff = one.run("diff", "list", "--json")[0]["id"]
    assert "--source STORAGE:BUCKET" in one.run("diff", "fix", diff, status=2)
    assert "source must be one of the locations" in one.run("diff", "fix", diff, "--source", "local:x", status=1)
    out = one.run("diff", "fix", diff, "--source", location("left"), "--watch")
    assert "ready: 6 keys, 0 differences" in out
    assert "ready: 6 keys" in one.run("diff", "recheck", diff, "--watch")
    assert "there is no bucket nothing on storage disk2" in one.run("diff", "check", "local:left", "disk2:nothing", status=1)
    assert "is named twice" in one.run("diff", "check", "local:left", "local:left", status=1)


def test_every_call_needs_keys(one):
    for method, path in (("GET", "/api/v1/diffs"), ("POST", "/api/v1/diffs"), ("GET", "/api/v1/diffs/x"),
                         ("GET", "/api/v1/diffs/x/entries"), ("POST", "/api/v1/diffs/x/fix"),
                         ("POST", "/api/v1/diffs/x/restart"), ("DELETE", "/api/v1/diffs/x")):
        assert one.server.request(method, path, body={}).status == 401


def put_many(lab, count):
    """Into left and right, but for one in a thousand; unsigned, as boto3 would take longer than all else."""
    there = http.client.HTTPConnection(lab.server.s3_url.removeprefix("http://"), timeout=DEADLINE)
    for bucket in ("left", "right"):
        lab.s3.put_bucket_acl(Bucket=bucket, ACL="public-read-write")
        for n in range(count):
            if bucket == "left" or n % 1000 != 7:
                there.request("PUT", f"/{bucket}/k{n:05}", body=b"x")
                answer = there.getresponse()
                assert answer.read() == b"" and answer.status == 200
    there.close()


def test_a_kill_in_the_middle_counts_nothing_twice(lab):
    """The walk asks every three seconds, so that it can be killed between two steps; the next one goes on."""
    put_many(lab, 2500)
    lab.run("storage", "set", "disk2", "--requests-per-minute", 20)
    diff = lab.run("diff", "check", location("left"), location("right"), "--json")[0]["id"]
    seen = wait_for(lambda: (report := lab.report(diff))["keys"] >= 1000 and report, "the first step")
    lab.kill()
    lab.run("storage", "set", "disk2", "--requests-per-minute", 0)
    report = lab.await_ready(diff)
    assert seen["keys"] < 2500 and seen["state"] == "checking"
    assert report["keys"] == 2500 and report["differences"] == 3 == len(report["entries"])
    lab.run("diff", "fix", diff, "--source", location("left"))
    lab.kill()
    assert lab.await_ready(diff)["consistent"]


def test_a_resync_repairs_all_after_the_store_was_flushed(serve, weir, tmp_path, redis):
    lab = Lab(serve, weir, tmp_path, redis)
    s3, run = lab.s3, lab.run
    s3.create_bucket(Bucket="photos")
    model = {f"dir{n % 5}/k{n}": os.urandom(50) for n in range(120)}
    for key, body in model.items():
        s3.put_object(Bucket="photos", Key=key, Body=body)
    run("replicate", "add", "photos", "disk2", "--watch")
    run("replicate", "pause", "photos")
    # Changes that wait as tasks, and are lost with them.
    for n in range(0, 120, 3):
        key = f"dir{n % 5}/k{n}"
        s3.delete_object(Bucket="photos", Key=key)
        del model[key]
    model["new"] = model["dir1/k1"] = b"changed"
    for key in ("new", "dir1/k1"):
        s3.put_object(Bucket="photos", Key=key, Body=model[key])
    wait_for(lambda: run("replicate", "list", "photos", "--json")[0]["lag"] > 0, "changes that wait")
    store = Queue(redis.port)
    for number in (0, 1):
        store.call("SELECT", number)
        store.call("FLUSHDB")
    run("replicate", "resume", "photos")
    row = run("replicate", "list", "photos", "--json")[0]  # weir may have noticed, and compare everything by itself
    assert row["lag"] > 0 or row["state"] != "in sync"
    run("replicate", "resync", "photos", "--watch")
    row = run("replicate", "list", "photos", "--json")[0]
    assert row["state"] == "in sync" and row["lag"] == 0 and row["objects_failed"] == 0
    diff = run("diff", "check", "local:photos", "disk2:photos", "--contents", "--json")[0]["id"]
    report = lab.await_ready(diff)
    assert report["consistent"] and report["keys"] == len(model), report["entries"]
    # and it goes on
    s3.put_object(Bucket="photos", Key="later", Body=b"x")
    wait_for(lambda: run("replicate", "list", "photos", "--json")[0]["state"] == "in sync", "in sync")
    run("diff", "recheck", diff)
    assert wait_for(lambda: lab.await_ready(diff)["consistent"], "equal")
