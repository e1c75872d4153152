"""A sharded bucket in a folder, by the real binary: commands, walls, restarts, and the rest of weir beside it."""
import http.client
import json
import random
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402
from conftest import BUILD, DEADLINE, PACE, runner, wait_for  # noqa: E402
from test_s3_notify import Receiver  # noqa: E402

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

    def enable(self, bucket="box"):
        """Shards a bucket that was made plain. Until weir has removed the shards that it had, weir refuses that."""
        def done():
            try:
                return self.run("shard", "enable", bucket, "--json")
            except AssertionError as refused:
                assert "is just being sharded or made plain" in str(refused), refused
                return None
        return wait_for(done, "the end of the old shards")

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
    assert [b["sharded"] for b in it.run("bucket", "show", "box", "--json")] == ["no"]
    status = it.run("shard", "enable", "box", "--threshold", "1000", "--json")
    assert [b["sharded"] for b in it.run("bucket", "show", "box", "--json")] == ["yes"]
    assert (status["threshold"], status["own_threshold"], status["state"]) == (1000, True, "active")
    assert [(s["after"], s["upto"], s["shard"]) for s in status["segments"]] == [("", "", 0)]
    check_box(s3)
    it.split("c/05", "e/")
    status = it.status()
    assert [(s["after"], s["upto"]) for s in status["segments"]] == [("", "c/05"), ("c/05", "e/"), ("e/", "")]
    assert [s["objects"] for s in status["shards"]] == [26, 14, 20] and status["objects"] == len(KEYS)
    last = status["last_move"]
    assert (last["kind"], last["whole"], last["keys_moved"]) == ("split", True, 20)
    assert "The last split ended" in it.run("shard", "status", "box")
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
    again = sharded.enable()
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


def test_enabling_again_keeps_the_threshold_that_a_bucket_has(sharded):
    sharded.run("shard", "enable", "box", "--threshold", "500")
    sharded.run("shard", "enable", "box")
    assert sharded.rest()["threshold"] == 500
    sharded.run("shard", "enable", "box", "--threshold", "600")
    assert sharded.rest()["threshold"] == 600


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


def test_a_user_who_may_list_one_prefix_lists_exactly_that_over_boundaries(sharded):
    owner = sharded.server.s3()
    fill(owner)
    sharded.split("b/05", "c/", "c/05")
    user = sharded.run("user", "add", "bob", "--json")[0]
    bob = sharded.server.s3((user["access_key"], user["secret_key"]))
    owner.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:ListBucket", "Resource": "arn:aws:s3:::box",
         "Condition": {"StringEquals": {"s3:prefix": "c/"}}}]}))
    assert listed(bob, Prefix="c/") == [k for k in KEYS if k.startswith("c/")]
    assert code_of(bob.list_objects_v2, Bucket="box", Prefix="b/") == "AccessDenied"
    assert code_of(bob.list_objects_v2, Bucket="box") == "AccessDenied"
    owner.delete_bucket_policy(Bucket="box")
    assert code_of(bob.list_objects_v2, Bucket="box", Prefix="c/") == "AccessDenied"  # G5: at once


# --- with the rest of weir ---


def check_copy(run, s3, keys, source="local", to="disk2"):
    """Both storages hold the same."""
    def same():
        rows = {r["storage"]: (r["objects"], r["bytes"]) for r in run("bucket", "show", "box", "--json")}
        return rows.get(source) == rows.get(to) == (len(keys), sum(map(len, keys)))
    wait_for(same, "equal contents")
    wait_for(lambda: run("replicate", "list", "--json")[0]["state"] == "in sync", "in sync")
    assert run("replicate", "list", "--json")[0]["objects_failed"] == 0


def test_replication_from_a_sharded_bucket(sharded, tmp_path):
    run, s3 = sharded.run, sharded.server.s3()
    fill(s3)
    run("storage", "add", "disk2", tmp_path / "disk2")
    sharded.split("b/")
    run("replicate", "add", "box", "disk2", "--user", "root", "--watch")
    check_copy(run, s3, KEYS)
    sharded.split("d/")
    fill(s3, ["b/new", "e/new"])
    s3.delete_object(Bucket="box", Key="a/00")
    run("shard", "merge", "box", "--at", "b/")
    s3.put_object(Bucket="box", Key="f/00", Body=b"f/00")
    sharded.rest()
    check_copy(run, s3, [*KEYS[1:], "b/new", "e/new"])
    assert "-weir-" not in json.dumps(run("replicate", "list", "--json"))


def test_replication_to_a_sharded_bucket(server, weir, tmp_path):
    it = Sharded(server, weir)
    s3 = server.box()
    fill(s3)
    it.run("storage", "add", "disk2", tmp_path / "disk2")
    it.run("replicate", "add", "box", "disk2", "--user", "root", "--watch")
    check_copy(it.run, s3, KEYS)
    it.run("shard", "enable", "box", "--storage", "disk2")
    it.run("shard", "split", "box", "--at", "c/", "--storage", "disk2")
    wait_for(lambda: it.run("shard", "status", "box", "--storage", "disk2", "--json")["shard_count"] == 2, "the split")
    fill(s3, ["b/new", "e/new"])
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": "a/00"}, {"Key": "f/09"}]})
    check_copy(it.run, s3, [*KEYS[1:-1], "b/new", "e/new"])
    it.run("diff", "check", "local:box", "disk2:box", "--watch")
    assert it.run("shard", "verify", "box", "--storage", "disk2", "--json") == []


def test_user_policies_of_replication_do_not_see_shards(sharded, tmp_path):
    run, s3 = sharded.run, sharded.server.s3()
    fill(s3)
    run("storage", "add", "disk2", tmp_path / "disk2")
    sharded.split("c/")
    added = sharded.server.post("/api/v1/replications", {"user": "root", "from": "local", "to": "disk2"},
                                keys=sharded.server.keys)
    assert added.status in (200, 201) and "-weir-" not in added.body
    sharded.split("e/")
    s3.create_bucket(Bucket="later")
    wait_for(lambda: {r["bucket"] for r in run("replicate", "list", "--json")} >= {"box", "later"}, "both buckets")
    assert {r["bucket"] for r in run("replicate", "list", "--json")} <= {"", "box", "later"}


def test_lifecycle_notifications_and_logs_know_one_bucket(serve, weir):
    server = serve("--s3.lifecycle.day", "1s", "--s3.logging.interval", "1s").ready()
    hook = Receiver()
    it = Sharded(server, weir)
    s3 = server.box()
    try:
        it.run("webhook", "add", "hook", hook.url)
        s3.create_bucket(Bucket="logs")
        s3.put_bucket_policy(Bucket="logs", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"Service": "logging.s3.amazonaws.com"}, "Action": "s3:PutObject",
             "Resource": "arn:aws:s3:::logs/*"}]}))
        it.run("shard", "enable", "box")
        it.split("c/")
        s3.put_bucket_notification_configuration(Bucket="box", NotificationConfiguration={"TopicConfigurations": [
            {"TopicArn": "arn:weir:webhook:::hook", "Events": ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]}]})
        s3.put_bucket_logging(Bucket="box", BucketLoggingStatus={
            "LoggingEnabled": {"TargetBucket": "logs", "TargetPrefix": ""}})
        fill(s3)
        it.split("e/")
        s3.put_bucket_lifecycle_configuration(Bucket="box", LifecycleConfiguration={"Rules": [
            {"ID": "x", "Status": "Enabled", "Filter": {"Prefix": "d/"}, "Expiration": {"Days": 1}},
            {"ID": "y", "Status": "Enabled", "Filter": {"Prefix": "f/"}, "Expiration": {"Days": 1}}]})
        rest = [k for k in KEYS if k[0] not in "df"]
        wait_for(lambda: listed(s3) == rest, "the rules")
        wait_for(lambda: len({key for event, key in hook.names() if "Created" in event}) == len(KEYS), "events")
        assert len(hook.names()) == len(set(hook.names())), "a move tells nobody"
        assert {r["s3"]["bucket"]["name"] for r in hook.records()} == {"box"}

        def lines():
            logs = [s3.get_object(Bucket="logs", Key=k)["Body"].read().decode() for k in listed(s3, "logs")]
            return "".join(logs).splitlines()
        wait_for(lambda: sum("REST.PUT.OBJECT" in line for line in lines()) == len(KEYS), "lines of the log")
        assert all(line.split()[1] == "box" for line in lines()) and "-weir-" not in "".join(lines())
    finally:
        hook.stop()


def test_website_usage_and_torrents_of_a_sharded_bucket(serve, weir):
    server = serve("--s3.website_domain", "web.test").ready()
    it = Sharded(server, weir)
    s3 = server.box()
    it.run("shard", "enable", "box")
    it.split("c/")
    s3.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": ["s3:GetObject", "s3:GetObjectTorrent"],
         "Resource": "arn:aws:s3:::box/*"}]}))
    s3.put_bucket_website(Bucket="box", WebsiteConfiguration={"IndexDocument": {"Suffix": "index.html"}})
    for key in ("a/index.html", "z/index.html"):
        s3.put_object(Bucket="box", Key=key, Body=key.encode() * 10000)
    it.split("y/")
    url = urllib.parse.urlsplit(server.s3_url)

    def get(path, **headers):
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=DEADLINE)
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        body = answer.read()
        connection.close()
        return answer.status, body
    for folder in ("a/", "z/"):
        key = folder + "index.html"
        assert get(f"/{folder}", Host="box.web.test") == (200, key.encode() * 10000)
        status, torrent = get(f"/box/{key}?torrent")
        assert status == 200 and b"-weir-" not in torrent and b"piece length" in torrent
    rows = it.run("bucket", "show", "box", "--json")
    assert [(r["objects"], r["bytes"]) for r in rows] == [(2, 240000)]
    it.split("z/index.html")
    assert get("/z/", Host="box.web.test")[0] == 200 and get("/box/z/index.html?torrent")[0] == 200


def test_usage_counts_each_object_once(sharded):
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
    import urllib.request
    server, s3 = sharded.server, sharded.server.s3()
    fill(s3)
    sharded.split("c/", "e/")
    request = botocore.awsrequest.AWSRequest("GET", server.s3_url + "/?usage")
    botocore.auth.S3SigV4Auth(botocore.credentials.Credentials(*server.keys), "s3", "us-east-1").add_auth(request)
    with urllib.request.urlopen(urllib.request.Request(server.s3_url + "/?usage", headers=dict(request.headers))) as answer:
        text = answer.read().decode()
    assert re.findall(r"<Bucket>([^<]*)</Bucket>", text) == ["box"] and "-weir-" not in text
    assert f"<TotalEntries>{len(KEYS)}</TotalEntries>" in text and f"<TotalBytes>{sum(map(len, KEYS))}</TotalBytes>" in text


def test_a_storage_whose_folder_comes_back_later_is_looked_at_then(serve, weir, tmp_path):
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    it.run("storage", "add", "disk2", tmp_path / "disk2")
    it.run("bucket", "route", "box", "disk2", "--user", "root")
    fill(server.box())
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    assert server.stop() == 0
    (tmp_path / "disk2").rename(tmp_path / "away")
    server = serve(data=tmp_path / "data").ready()
    it, s3 = Sharded(server, weir), server.s3()
    assert it.run("shard", "status", "--json")[0]["state"] == "broken"
    assert code_of(s3.get_object, Bucket="box", Key="d/01") in ("SlowDown", "ServiceUnavailable")
    assert code_of(s3.put_object, Bucket="box", Key="d/01", Body=b"lost") in ("SlowDown", "ServiceUnavailable")
    assert server.metric("weir_shard_broken") == 1
    (tmp_path / "away").rename(tmp_path / "disk2")
    wait_for(lambda: it.run("shard", "status", "--json")[0]["state"] == "active", "the folder")
    check_box(s3)
    assert it.run("shard", "verify", "box", "--json") == []


class Client(threading.Thread):
    """Puts, reads, lists and deletes keys of its own, one after another, and knows what must be there."""

    def __init__(self, server, name):
        super().__init__()
        self.s3, self.model, self.busy, self.wrong = server.s3(), {}, 0, []
        self.rounds, self.end = 0, threading.Event()
        self.name = name

    def one(self, number):
        key, value = f"{'abcdefg'[number % 7]}/{self.name}/{number % 40}", f"{self.name} {number}"
        if number % 5 == 4 and key in self.model:
            self.s3.delete_object(Bucket="box", Key=key)
            del self.model[key]
        else:
            self.s3.put_object(Bucket="box", Key=key, Body=value.encode())
            self.model[key] = value
        found = self.s3.get_object(Bucket="box", Key=key)["Body"].read().decode() if key in self.model else None
        if found != self.model.get(key):
            self.wrong.append((key, found, self.model.get(key)))
        if number % 10 == 0:
            mine = {k for k in listed(self.s3, size=50) if f"/{self.name}/" in k}
            if mine != set(self.model):
                self.wrong.append(("list", mine ^ set(self.model)))

    def run(self):
        number = 0
        while not self.end.wait(PACE):
            try:
                self.one(number)
            except ClientError as e:
                if e.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
                    self.wrong.append((number, str(e)))
                self.busy += 1
                # Nothing was changed by a request that was answered 503, and the next round looks.
            number, self.rounds = number + 1, self.rounds + 1


def test_enabling_and_disabling_under_load_loses_nothing(server, weir):
    server.box()
    it = Sharded(server, weir)
    clients = [Client(server, name) for name in "xyz"]
    for client in clients:
        client.start()

    def go_on(rounds=30):
        ends = [c.rounds + rounds for c in clients]
        wait_for(lambda: all(c.rounds >= end or not c.is_alive() for c, end in zip(clients, ends)), "the clients")
    try:
        for _ in range(3):
            go_on()
            it.enable()
            it.split("c/", "e/")
            go_on()
            it.run("shard", "merge", "box", "--at", "c/")
            it.rest()
            it.run("shard", "disable", "box")
            wait_for(lambda: it.run("shard", "status", "--json") == [], "the plain bucket")
    finally:
        for client in clients:
            client.end.set()
        for client in clients:
            client.join()
    assert [c.wrong for c in clients] == [[], [], []]
    assert listed(server.s3(), size=1000) == sorted(k for c in clients for k in c.model)
    assert all(c.busy < c.rounds / 5 for c in clients)


def test_a_kill_at_any_moment_of_a_move_loses_nothing(serve, weir, tmp_path):
    keys = [f"{i % 7}/{i:04}" for i in range(1500)]
    server = serve(data=tmp_path / "data").ready()
    it, s3 = Sharded(server, weir), server.box()
    fill(s3, keys)
    s3.create_multipart_upload(Bucket="box", Key="5/upload")
    it.run("shard", "enable", "box")
    boundaries = ["2/", "4/", "5/", "6/"]
    for turn in range(6):
        at = random.choice(boundaries)
        known = {s["after"] for s in it.status()["segments"]}
        it.run("shard", "merge" if at in known else "split", "box", "--at", at)
        time.sleep(random.random() / 20)  # so that the kill comes at another step each time
        server.signal(signal.SIGKILL)
        server.process.wait()
        server = serve(data=tmp_path / "data").ready()
        it, s3 = Sharded(server, weir), server.s3()
        assert listed(s3, size=1000) == sorted(keys)
        s3.put_object(Bucket="box", Key=keys[turn], Body=b"after the kill")
        it.rest()
        assert s3.get_object(Bucket="box", Key=keys[turn])["Body"].read() == b"after the kill"
        assert [u["Key"] for u in s3.list_multipart_uploads(Bucket="box")["Uploads"]] == ["5/upload"]
        wait_for(lambda: it.run("shard", "verify", "box", "--json") == [], "nothing to be found", 60)
    assert it.status()["objects"] == len(keys)


@pytest.mark.parametrize("how", ["plan", "start"])
def test_a_switch_leaves_and_enters_sharded_buckets(serve, weir, tmp_path, how):
    """From a sharded bucket to one that is sharded too, with and without downtime."""
    server = serve("--replication.pause_retry", "1s").ready()
    it, s3 = Sharded(server, weir), server.box()
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    fill(s3)
    it.run("storage", "add", "disk2", tmp_path / "disk2")
    it.run("replicate", "add", "box", "disk2", "--user", "root", "--watch")
    it.run("shard", "enable", "box", "--storage", "disk2")
    it.run("shard", "split", "box", "--at", "b/", "--storage", "disk2")
    it.run("switch", how, "box")
    wait_for(lambda: it.run("switch", "show", "box", "--json")["state"] == "done", "the switch")
    check_box(s3)
    fill(s3, ["new"])
    check_box(s3, [*KEYS, "new"])
    assert it.run("shard", "status", "box", "--storage", "disk2", "--json")["objects"] == len(KEYS) + 1


def test_no_move_begins_while_the_bucket_is_being_switched(serve, weir, tmp_path):
    server = serve("--replication.pause_retry", "1s").ready()
    it, s3 = Sharded(server, weir), server.box()
    it.run("shard", "enable", "box")
    fill(s3)
    it.run("storage", "add", "disk2", tmp_path / "disk2")
    it.run("replicate", "add", "box", "disk2", "--user", "root", "--watch")
    it.run("shard", "enable", "box", "--storage", "disk2")
    upload = s3.create_multipart_upload(Bucket="box", Key="big")["UploadId"]
    it.run("switch", "start", "box")
    wait_for(lambda: it.run("switch", "show", "box", "--json")["state"] == "in_progress", "the switch")
    for storage in ("local", "disk2"):
        said = it.run("shard", "split", "box", "--at", "c/", "--storage", storage, status=1)
        assert "being switched" in said
    s3.abort_multipart_upload(Bucket="box", Key="big", UploadId=upload)
    wait_for(lambda: it.run("switch", "show", "box", "--json")["state"] == "done", "the end of the switch")
    it.run("shard", "split", "box", "--at", "c/", "--storage", "disk2")
    wait_for(lambda: it.run("shard", "status", "box", "--storage", "disk2", "--json")["shard_count"] == 2, "the split")
    check_box(s3)


# --- mishaps


def mishap(server, *args):
    """Changes a bucket of the stopped server past weir."""
    assert server.stop() == 0
    subprocess.run([BUILD / "tests/tools/local_bucket", server.data, *args], check=True, capture_output=True)


def test_a_destroyed_map_is_made_anew_from_the_contents(serve, weir, tmp_path):
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    fill(server.box())
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    parts = it.parts()
    mishap(server, "remove", parts[0])
    server = serve(data=tmp_path / "data").ready()
    it, s3 = Sharded(server, weir), server.s3()
    assert code_of(s3.get_object, Bucket="box", Key="a/01") in ("SlowDown", "ServiceUnavailable")
    assert code_of(s3.list_objects_v2, Bucket="box") in ("SlowDown", "ServiceUnavailable")
    assert code_of(s3.put_object, Bucket="box", Key="a/01", Body=b"lost") in ("SlowDown", "ServiceUnavailable")
    row = it.run("shard", "status", "--json")[0]
    assert row["state"] == "broken" and "rebuild" in row["error"]
    assert "no map" in it.run("shard", "verify", "box", status=1)
    it.run("shard", "enable", "box", status=1)
    it.run("shard", "rebuild", "box", "--from-contents")
    check_box(s3)
    assert it.run("shard", "verify", "box", "--json") == []
    assert [s["bucket"] for s in it.status()["shards"]] == ["box", *parts[1:]]
    it.split("d/")
    check_box(s3)
    # A key that is in two shards is named, and only --newest chooses.
    mishap(server, "put", "box", "f/05")
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    check_box(server.s3())
    garbage = weir("shard", "verify", "box", "--json", "--data", server.data, "--url", server.url)
    assert garbage.returncode == 1
    assert [(f["finding"], f["key"], f["keys"]) for f in json.loads(garbage.stdout)] == [("garbage", "f/05", 1)]
    mishap(server, "remove", parts[0])
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    assert "f/05 is in" in it.run("shard", "rebuild", "box", "--from-contents", status=1)
    assert it.run("shard", "status", "--json")[0]["state"] == "broken"
    it.run("shard", "rebuild", "box", "--from-contents", "--newest")
    check_box(server.s3())
    assert "f/05" in it.run("shard", "verify", "box", status=1)
    assert it.run("shard", "verify", "box", "--clean", "--json") == []
    check_box(server.s3())
    it.run("shard", "disable", "box")
    wait_for(lambda: it.run("shard", "status", "--json") == [], "the plain bucket")
    check_box(server.s3())


def test_a_copied_folder_is_used_by_a_new_installation_only_after_a_command(serve, weir, tmp_path, redis):
    """The new installation has the old one's folder and database, but a store and a key file of its own."""
    def start(folder):
        server = serve("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}",
                       data=tmp_path / folder).ready()
        return Sharded(server, weir)

    it = start("data")
    fill(it.server.box())
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    assert it.server.stop() == 0
    redis.kill()
    shutil.rmtree(redis.folder)
    redis.folder.mkdir()
    redis.start()  # it is empty
    shutil.copytree(tmp_path / "data", tmp_path / "other")
    for name in ["secrets.key", "config.sealed", "installation", "installation.number"]:
        (tmp_path / "other" / name).unlink(missing_ok=True)
    it = start("other")
    s3 = it.server.s3()
    row = it.run("shard", "status", "--json")[0]
    assert row["state"] == "broken" and "another installation of weir" in row["error"]
    assert code_of(s3.get_object, Bucket="box", Key="a/01") in ("SlowDown", "ServiceUnavailable")
    it.run("shard", "rebuild", "box", status=1)
    it.run("shard", "rebuild", "box", "--take-over")
    check_box(s3)
    it.split("d/")
    assert it.server.stop() == 0
    it = start("other")
    check_box(it.server.s3())
    assert it.run("shard", "verify", "box", "--json") == []


def test_a_bucket_that_is_missing_under_its_map_is_said_and_its_name_is_freed(serve, weir, tmp_path):
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    fill(server.box())
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    parts = it.parts()
    mishap(server, "remove", "box")
    server = serve(data=tmp_path / "data").ready()
    it, s3 = Sharded(server, weir), server.s3()
    row = it.run("shard", "status", "--json")[0]
    assert row["state"] == "broken" and "the bucket itself is missing" in row["error"]
    assert code_of(s3.create_bucket, Bucket="box") in ("SlowDown", "ServiceUnavailable")
    it.run("shard", "rebuild", "box", status=1)
    it.run("shard", "rebuild", "box", "--remove")
    assert it.run("shard", "status", "--json") == []
    assert server.stop() == 0
    for part in parts:
        tool = [BUILD / "tests/tools/local_bucket", server.data, "remove", part]
        assert subprocess.run(tool, capture_output=True).returncode == 1, f"{part} is left"
    server = serve(data=tmp_path / "data").ready()
    it, s3 = Sharded(server, weir), server.s3()
    fill(server.box())
    it.run("shard", "enable", "box")
    it.split("d/")
    assert it.run("shard", "verify", "box", "--json") == []
    check_box(s3)


def test_a_damaged_newest_map_is_replaced_by_one_from_the_contents(serve, weir, tmp_path):
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    fill(server.box())
    it.run("shard", "enable", "box")
    it.split("c/", "e/")
    number = int(time.time() * 1000) + 100_000
    mishap(server, "put", it.parts()[0], f"map/{10**19 - 1 - number:019}")
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    row = it.run("shard", "status", "--json")[0]
    assert row["state"] == "broken" and "--from-contents" in row["error"]
    it.run("shard", "rebuild", "box", "--from-contents")
    assert it.status()["map"] > number
    check_box(server.s3())
    it.split("d/")
    assert server.stop() == 0
    server = serve(data=tmp_path / "data").ready()
    it = Sharded(server, weir)
    check_box(server.s3())
    assert it.run("shard", "verify", "box", "--json") == []
