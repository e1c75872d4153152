"""A sharded bucket in a folder, by the real binary: commands, walls, restarts, and the rest of weir beside it."""
import http.client
import json
import re
import time
import urllib.parse

import pytest

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402
from conftest import runner, wait_for  # noqa: E402

KEYS = [f"{letter}/{i:02}" for letter in "abcdef" for i in range(10)]


def code_of(call, *args, **kwargs):
    with pytest.raises(ClientError) as caught:
        call(*args, **kwargs)
    return caught.value.response["Error"]["Code"]


def fill(s3, keys=KEYS, bucket="box"):
    for key in keys:
        s3.put_object(Bucket=bucket, Key=key, Body=key.encode())


def listed(s3, bucket="box", size=7, **more):
    """All keys, by pages of `size`."""
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket=bucket, PaginationConfig={"PageSize": size}, **more)
    return [o["Key"] for page in pages for o in page.get("Contents", [])]


def check_box(s3, keys=KEYS, bucket="box"):
    assert listed(s3, bucket) == sorted(keys)
    for key in keys[::7]:
        assert s3.get_object(Bucket=bucket, Key=key)["Body"].read() == key.encode()


class Sharded:
    """A server with the bucket box, which is sharded at the boundaries."""

    def __init__(self, server, weir):
        self.server, self.run = server, runner(server, weir)

    def status(self, bucket="box"):
        return self.run("shard", "status", bucket, "--json")

    def rest(self, bucket="box"):
        """Waits until no move is under way, and returns the status."""
        def done():
            status = self.status(bucket)
            return status["move"] is None and status["moving"] == "" and status
        return wait_for(done, "the end of the move")

    def split(self, *boundaries, bucket="box"):
        for at in boundaries:
            self.run("shard", "split", bucket, "--at", at)
            self.rest(bucket)

    def parts(self, bucket="box"):
        """Names of the map bucket and of the shards."""
        shards = [s["bucket"] for s in self.status(bucket)["shards"] if s["shard"]]
        hashed = re.search(r"-weir-([a-z2-7]{12})-", shards[0]).group(1)
        return [f"{bucket}-weir-{hashed}-map", *shards]


@pytest.fixture
def sharded(server, weir):
    server.box()
    it = Sharded(server, weir)
    it.run("shard", "enable", "box")
    return it


# --- commands ---


def test_a_bucket_is_served_the_same_before_and_after(server, weir):
    s3 = server.box()
    fill(s3)
    before = s3.list_objects_v2(Bucket="box")["Contents"]
    it = Sharded(server, weir)
    status = it.run("shard", "enable", "box", "--threshold", "1000", "--json")
    assert (status["threshold"], status["own_threshold"], status["state"]) == (1000, True, "active")
    assert [(s["after"], s["upto"], s["shard"]) for s in status["segments"]] == [("", "", 0)]
    check_box(s3)
    it.split("c/05", "e/")
    status = it.status()
    assert [(s["after"], s["upto"]) for s in status["segments"]] == [("", "c/05"), ("c/05", "e/"), ("e/", "")]
    assert [s["objects"] for s in status["shards"]] == [26, 14, 20] and status["objects"] == len(KEYS)
    assert s3.list_objects_v2(Bucket="box")["Contents"] == before
    check_box(s3)
    prefixes = s3.list_objects_v2(Bucket="box", Delimiter="/")["CommonPrefixes"]
    assert [p["Prefix"] for p in prefixes] == ["a/", "b/", "c/", "d/", "e/", "f/"]
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": k} for k in KEYS[1:]]})
    assert listed(s3) == KEYS[:1]
    assert it.run("shard", "verify", "box", "--json") == []
    assert "box" in it.run("shard", "status") and "e/" in it.run("shard", "status", "box")


def test_merge_and_disable_bring_everything_back(sharded):
    s3 = sharded.server.s3()
    fill(s3)
    sharded.split("b/", "d/")
    sharded.run("shard", "merge", "box", "--at", "b/")
    assert [s["after"] for s in sharded.rest()["segments"]] == ["", "d/"]
    check_box(s3)
    parts = sharded.parts()
    sharded.run("shard", "disable", "box")
    wait_for(lambda: sharded.run("shard", "status", "--json") == [], "the plain bucket")
    check_box(s3)
    fill(s3, ["new"])
    assert "is not sharded" in sharded.run("shard", "status", "box", status=1)
    again = sharded.run("shard", "enable", "box", "--json")
    assert again["segment_count"] == 1 and again["objects"] == len(KEYS) + 1
    check_box(s3, [*KEYS, "new"])
    sharded.split("c/")
    check_box(s3, [*KEYS, "new"])
    assert sharded.parts()[0] == parts[0] and sharded.parts()[1] != parts[1]


def test_growth_beyond_the_threshold_splits_the_bucket(sharded):
    s3 = sharded.server.s3()
    sharded.run("shard", "enable", "box", "--threshold", "20")
    fill(s3)
    wait_for(lambda: sharded.status()["shard_count"] > 2, "splits")
    check_box(s3)
    status = sharded.rest()
    assert status["objects"] == len(KEYS)
    assert sharded.server.metric("weir_shard_moves_total") >= 2
    assert sharded.server.metric("weir_shard_shards") == status["shard_count"]


def test_what_cannot_be_sharded_is_refused_with_its_reason(sharded):
    run = sharded.run
    assert "no folder of this weir has a bucket none" in run("shard", "enable", "none", status=1)
    assert "there is no storage disk9" in run("shard", "enable", "box", "--storage", "disk9", status=1)
    assert "at least 10" in run("shard", "enable", "box", "--threshold", "9", status=2)
    assert "is not destroyed" in run("shard", "rebuild", "box", "--from-contents", status=1)
    run("shard", "rebuild", "box")
    run("shard", "merge", "box", "--at", "nothing", status=1)
    keys = sharded.server.keys
    small = sharded.server.post("/api/v1/shards", {"bucket": "box", "threshold": 9}, keys=keys)
    assert small.status == 400 and "at least 10" in small.body
    assert sharded.server.post("/api/v1/shards", {"bucket": "box"}).status == 401


def test_a_restart_finds_sharded_buckets(serve, weir, tmp_path):
    first = serve(data=tmp_path / "data").ready()
    fill(first.box())
    it = Sharded(first, weir)
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    before = it.status()
    assert first.stop() == 0
    it = Sharded(serve(data=tmp_path / "data").ready(), weir)
    after = it.status()
    assert (after["map"], after["segments"]) == (before["map"], before["segments"])
    check_box(it.server.s3())
    it.split("d/")
    assert it.status()["map"] > before["map"]
    check_box(it.server.s3())
    assert it.run("shard", "verify", "box", "--json") == []


def test_delete_bucket_removes_all_shards(sharded):
    s3 = sharded.server.s3()
    fill(s3)
    sharded.split("c/")
    assert code_of(s3.delete_bucket, Bucket="box") == "BucketNotEmpty"
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": k} for k in KEYS]})
    upload = s3.create_multipart_upload(Bucket="box", Key="z")["UploadId"]
    s3.delete_bucket(Bucket="box")
    assert code_of(s3.list_objects_v2, Bucket="box") == "NoSuchBucket"
    assert code_of(s3.list_parts, Bucket="box", Key="z", UploadId=upload) == "NoSuchBucket"
    assert s3.list_buckets()["Buckets"] == []

    def made():
        try:
            return s3.create_bucket(Bucket="box")
        except ClientError:
            return None
    wait_for(made, "a new bucket of that name")
    assert listed(s3) == [] and sharded.run("shard", "status", "--json") == []
    fill(s3)
    check_box(s3)


# --- walls ---


def plain_get(server, path):
    """An anonymous request; returns the status and the body."""
    url = urllib.parse.urlsplit(server.s3_url)
    connection = http.client.HTTPConnection(url.hostname, url.port, timeout=60)
    connection.request("GET", path)
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def test_nobody_sees_or_reaches_a_shard(sharded):
    server, run = sharded.server, sharded.run
    owner = server.s3()
    fill(owner)
    sharded.split("c/")
    parts = sharded.parts()
    assert len(parts) == 2
    user = run("user", "add", "bob", "--json")[0]
    bob = server.s3((user["access_key"], user["secret_key"]))
    owner.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:*", "Resource": ["arn:aws:s3:::box", "arn:aws:s3:::box/*"]}]}))
    assert listed(bob) == KEYS
    upload = {"Parts": [{"PartNumber": 1, "ETag": '"x"'}]}
    for part in [*parts, parts[0].replace("box", "other")]:
        for s3 in (owner, bob):
            assert code_of(s3.create_bucket, Bucket=part) == "InvalidBucketName"
            assert code_of(s3.list_objects_v2, Bucket=part) == "NoSuchBucket"
            assert code_of(s3.head_bucket, Bucket=part) == "404"
            assert code_of(s3.get_object, Bucket=part, Key="d/01") == "NoSuchBucket"
            assert code_of(s3.put_object, Bucket=part, Key="k", Body=b"x") == "NoSuchBucket"
            assert code_of(s3.delete_object, Bucket=part, Key="d/01") == "NoSuchBucket"
            assert code_of(s3.delete_bucket, Bucket=part) == "NoSuchBucket"
            assert code_of(s3.get_bucket_policy, Bucket=part) == "NoSuchBucket"
            assert code_of(s3.copy_object, Bucket="box", Key="k", CopySource=f"{part}/d/01") == "NoSuchBucket"
            assert code_of(s3.create_multipart_upload, Bucket=part, Key="k") == "NoSuchBucket"
            assert code_of(s3.complete_multipart_upload, Bucket=part, Key="k", UploadId="u",
                           MultipartUpload=upload) == "NoSuchBucket"
        assert plain_get(server, f"/{part}")[0] == 404 and plain_get(server, f"/{part}/d/01")[0] == 404
        run("bucket", "show", part, status=1)
        run("bucket", "route", part, "local", "--user", "root", status=1)
        run("shard", "enable", part, status=1)
        run("replicate", "add", part, "local", "--to-bucket", "else", "--user", "root", status=1)
        run("replicate", "add", "box", "local", "--to-bucket", part, "--user", "root", status=1)
        logging = {"LoggingEnabled": {"TargetBucket": part, "TargetPrefix": ""}}
        assert code_of(owner.put_bucket_logging, Bucket="box", BucketLoggingStatus=logging) == "NoSuchKey"
    seen = [b["Name"] for b in owner.list_buckets()["Buckets"]]
    assert seen == ["box"]
    status, usage = plain_get(server, "/box?max-keys=100")
    assert status == 200 and "-weir-" not in usage
    assert "-weir-" not in run("bucket", "list", "--json", status=0).__repr__()


def test_shards_do_not_count_for_the_limit_of_buckets(serve, weir):
    server = serve("--s3.max_buckets", "2").ready()
    fill(server.box())
    it = Sharded(server, weir)
    it.run("shard", "enable", "box")
    it.split("b/", "c/", "d/")
    s3 = server.s3()
    s3.create_bucket(Bucket="second")
    assert code_of(s3.create_bucket, Bucket="third") == "TooManyBuckets"
