"""A weir whose storage is another weir: boto3 through both, and the commands and the file that make it so."""
import io
import json
import os
import signal
import socket
import subprocess
import threading
import urllib.request

import pytest

from conftest import BUILD, body, clean_env, free_port, wait_for

boto3 = pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from botocore import UNSIGNED  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402

KEY = "a key ü+%&=.txt"
S3RVER = BUILD.parent / "npm/node_modules/s3rver/bin/s3rver.js"


@pytest.fixture
def back(serve):
    return serve("--s3.listen", f"127.0.0.1:{free_port()}").ready()  # it is started again there


@pytest.fixture
def front(serve, back, weir):
    server = serve().ready()
    done = weir("storage", "add", "back", "--endpoint", back.s3_url, "--framing", "trailer", "--user", "root",
                "--access-key", back.keys[0], "--secret-key", back.keys[1], "--main", "--data", server.data, "--url",
                server.url)
    assert done.returncode == 0, done.stderr
    return server


@pytest.fixture
def s3(front):
    return front.box()


def test_objects_go_through_and_are_the_storage_s(s3, back):
    s3.put_object(Bucket="box", Key=KEY, Body=b"hello", Metadata={"a": "b"}, ContentType="text/plain", Tagging="x=1")
    got = back.s3().get_object(Bucket="box", Key=KEY)
    assert got["Body"].read() == b"hello" and got["Metadata"] == {"a": "b"} and got["ContentType"] == "text/plain"
    assert body(s3, KEY) == b"hello" and body(s3, KEY, Range="bytes=1-2") == b"el"
    assert [o["Key"] for o in s3.list_objects_v2(Bucket="box")["Contents"]] == [KEY]
    assert s3.get_object_tagging(Bucket="box", Key=KEY)["TagSet"] == [{"Key": "x", "Value": "1"}]
    with pytest.raises(ClientError, match="NoSuchKey"):
        s3.get_object(Bucket="box", Key="none")
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": KEY}]})
    assert "Contents" not in s3.list_objects(Bucket="box")


def test_a_form_with_tags_goes_through(s3):
    tags = "<Tagging><TagSet><Tag><Key>a</Key><Value>b</Value></Tag></TagSet></Tagging>"
    post = s3.generate_presigned_post("box", "posted", Fields={"tagging": tags}, Conditions=[{"tagging": tags}])
    assert requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"posted!")}).status_code == 204
    assert body(s3, "posted") == b"posted!"
    assert s3.get_object_tagging(Bucket="box", Key="posted")["TagSet"] == [{"Key": "a", "Value": "b"}]


def test_a_body_is_not_asked_for_before_the_storage_wants_it(s3, front):
    host, port = front.s3_url.split("//")[1].split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        peer.sendall(b"PUT /box/k HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n")
        assert peer.recv(4096).startswith(b"HTTP/1.1 403 ")


def test_a_preflight_of_a_presigned_address_is_the_storage_s_to_answer(s3):
    rule = {"AllowedMethods": ["GET"], "AllowedOrigins": ["http://page.test"]}
    s3.put_bucket_cors(Bucket="box", CORSConfiguration={"CORSRules": [rule]})
    url = s3.generate_presigned_url("get_object", {"Bucket": "box", "Key": "k"})
    ask = {"Origin": "http://page.test", "Access-Control-Request-Method": "GET"}
    assert requests.options(url, headers=ask).headers["Access-Control-Allow-Origin"] == "http://page.test"
    assert requests.options(url, headers=dict(ask, Origin="http://other.test")).status_code == 403


def test_large_bodies_parts_checksums_and_copies_go_through(s3):
    big = os.urandom(20 * 1024 * 1024)
    s3.upload_fileobj(io.BytesIO(big), "box", "big")
    assert s3.head_object(Bucket="box", Key="big")["ETag"].endswith('-3"')
    s3.copy({"Bucket": "box", "Key": "big"}, "box", "copy")
    assert body(s3, "copy") == big
    s3.put_object(Bucket="box", Key="sum", Body=b"hello", ChecksumAlgorithm="SHA256")
    head = s3.head_object(Bucket="box", Key="sum", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="


def test_presigned_urls_forms_and_strangers_go_through(s3, front):
    url = s3.generate_presigned_url("put_object", {"Bucket": "box", "Key": KEY})
    assert requests.put(url, data=b"put").status_code == 200
    url = s3.generate_presigned_url("get_object", {"Bucket": "box", "Key": KEY})
    assert urllib.request.urlopen(url).read() == b"put"
    for size in (10, 300000):
        post = s3.generate_presigned_post("box", "posted", Fields={"acl": "public-read"},
                                          Conditions=[{"acl": "public-read"}, ["content-length-range", 5, 400000]])
        answer = requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"p" * size)})
        assert answer.status_code == 204 and body(s3, "posted") == b"p" * size, answer.text
    answer = requests.post(post["url"], data=post["fields"], files={"file": ("x.txt", b"p" * 500000)})
    assert answer.status_code == 400 and "EntityTooLarge" in answer.text and len(body(s3, "posted")) == 300000
    stranger = boto3.client("s3", endpoint_url=front.s3_url, region_name="us-east-1",
                            config=Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}))
    assert len(stranger.get_object(Bucket="box", Key="posted")["Body"].read()) == 300000
    with pytest.raises(ClientError, match="AccessDenied"):
        stranger.get_object(Bucket="box", Key=KEY)


def test_versions_and_documents_go_through(s3):
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    versions = [s3.put_object(Bucket="box", Key="v", Body=b)["VersionId"] for b in (b"1", b"2")]
    assert body(s3, "v", VersionId=versions[0]) == b"1"
    assert len(s3.list_object_versions(Bucket="box")["Versions"]) == 2
    rules = {"CORSRules": [{"AllowedMethods": ["GET"], "AllowedOrigins": ["http://a"]}]}
    s3.put_bucket_cors(Bucket="box", CORSConfiguration=rules)
    assert s3.get_bucket_cors(Bucket="box")["CORSRules"] == rules["CORSRules"]


def test_a_storage_that_is_down_is_503_and_comes_back(serve, s3, front, back, weir):
    s3.put_object(Bucket="box", Key="key", Body=b"x")
    port = back.s3_url.rsplit(":", 1)[1]
    assert back.stop() == 0
    with pytest.raises(ClientError) as e:
        s3.get_object(Bucket="box", Key="key")
    assert e.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    done = weir("storage", "test", "back", "--data", front.data, "--url", front.url)
    assert done.returncode == 1 and "no" in done.stdout
    serve("--s3.listen", f"127.0.0.1:{port}", data=back.data).ready()

    def is_back():
        try:
            return body(s3, "key") == b"x"
        except ClientError:
            return False
    wait_for(is_back, "the storage")


class Two:
    """A weir with its own folder as the main storage, and the remote storage back, where root has keys."""

    def __init__(self, serve, weir, back):
        self.server, self.weir = serve().ready(), weir
        self.run("storage", "add", "back", "--endpoint", back.s3_url, "--user", "root", "--access-key", back.keys[0],
                 "--secret-key", back.keys[1])

    def run(self, *args, status=0):
        done = self.weir(*args, "--data", self.server.data, "--url", self.server.url)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr

    def listed(self):
        """The names, and whether the list is complete."""
        answer = self.server.s3().list_buckets()
        return [b["Name"] for b in answer["Buckets"]], "x-weir-incomplete" not in answer["ResponseMetadata"]["HTTPHeaders"]


@pytest.fixture
def two(serve, weir, back):
    lab = Two(serve, weir, back)
    s3 = lab.server.s3()
    s3.create_bucket(Bucket="here")
    for name in ("there", "too"):
        lab.run("bucket", "route", name, "back", "--user", "root")
        s3.create_bucket(Bucket=name)
    back.s3().create_bucket(Bucket="unrouted")
    return lab


def test_a_storage_that_is_down_costs_its_own_buckets_alone(two, back, serve):
    assert two.listed() == (["here", "there", "too"], True)
    port = back.s3_url.rsplit(":", 1)[1]
    assert back.stop() == 0
    assert two.listed() == (["here", "there", "too"], False)  # by their policies
    assert "buckets.incomplete" in two.server.err and "storage=back" in two.server.err
    serve("--s3.listen", f"127.0.0.1:{port}", data=back.data).ready()
    wait_for(lambda: two.listed() == (["here", "there", "too"], True), "the storage")


def test_a_remote_storage_is_removed_only_when_nothing_needs_it(two):
    assert "routing policy of the bucket t" in two.run("storage", "remove", "back", status=1)
    two.run("bucket", "route", "there", "--remove", "--user", "root")
    two.run("bucket", "route", "too", "--remove", "--user", "root")
    for storage, removed in (("back", False), ("", True)):
        answer = two.server.request("POST", "/api/v1/users/root/route", body={"storage": storage}, keys=two.server.keys)
        assert answer.status < 300, answer.body
        if not removed:
            assert "of the user root" in two.run("storage", "remove", "back", status=1)
    two.run("replicate", "add", "here", "back", "--watch")
    assert "a replication of the bucket here uses it" in two.run("storage", "remove", "back", status=1)
    two.run("replicate", "remove", "here")
    two.run("storage", "remove", "back")
    assert [row["name"] for row in json.loads(two.run("storage", "list", "--json"))] == ["local"]


def test_a_storage_that_was_removed_by_force_costs_its_own_buckets_alone(two):
    two.run("storage", "remove", "back", "--force")
    assert two.listed() == (["here"], True)
    s3 = two.server.s3()
    with pytest.raises(ClientError) as e:
        s3.list_objects_v2(Bucket="there")
    assert e.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503
    s3.put_object(Bucket="here", Key="k", Body=b"x")


def test_a_user_s_policy_that_leads_nowhere_costs_no_bucket_elsewhere(two):
    answer = two.server.request("POST", "/api/v1/users/root/route", body={"storage": "back"}, keys=two.server.keys)
    assert answer.status < 300, answer.body
    assert two.listed() == (["here", "there", "too", "unrouted"], True)
    two.run("storage", "remove", "back", "--force")
    assert two.listed() == (["here"], True)
    s3 = two.server.s3()
    s3.put_object(Bucket="here", Key="k", Body=b"x")
    assert s3.get_object(Bucket="here", Key="k")["Body"].read() == b"x"
    for call in (s3.head_bucket, s3.create_bucket, s3.list_objects_v2):
        with pytest.raises(ClientError) as e:
            call(Bucket="unrouted")
        assert e.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503


def test_a_disk_that_fails_under_the_journal_ends_weir_with_a_word(two):
    """The journal of intents is mapped, and a page that is not there is a signal."""
    two.run("replicate", "add", "there", "local", "--user", "root", "--watch")
    s3 = two.server.s3()
    s3.put_object(Bucket="there", Key="k", Body=b"x")
    os.truncate(two.server.data / "intents", 0)
    with pytest.raises(BotoCoreError):
        s3.put_object(Bucket="there", Key="k", Body=b"y")
    assert two.server.wait() == 3, two.server.err
    last = two.server.err.splitlines()[-1]
    assert last.startswith("weir: the disk failed under ") and "/intents" in last and "SIGBUS" in last


class Silent:
    """A storage that answers the first `answers` requests, and then takes them and says nothing."""

    def __init__(self, answers):
        self.answers, self.ignored, self.open = answers, 0, []
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                self.open.append(self.listener.accept()[0])
                threading.Thread(target=self.talk, args=(self.open[-1],), daemon=True).start()
        except OSError:
            pass  # closed by the test

    def talk(self, peer):
        head = b""
        while piece := peer.recv(4096):
            head += piece
            if not head.endswith(b"\r\n\r\n"):
                continue
            head = b""
            if self.answers:
                self.answers -= 1
                peer.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
            else:
                self.ignored += 1

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()
        for peer in self.open:
            peer.close()


def add_silent(weir, server, storage, *more):
    done = weir("storage", "add", "silent", "--endpoint", storage.url, "--framing", "trailer", "--user", "root",
                "--access-key", "a", "--secret-key", "secret-key", "--main", *more, "--data", server.data, "--url",
                server.url)
    assert done.returncode == 0, done.stderr


# The first request to a storage waits on a thread; over a connection that is there already it waits without one.
@pytest.mark.parametrize("answers", [0, 1])
def test_a_stop_does_not_wait_for_a_storage_that_is_silent(serve, weir, answers):
    server = serve("--shutdown.timeout", "100ms").ready()
    storage = Silent(answers)
    add_silent(weir, server, storage)
    host, port = server.s3_url.split("//")[1].split(":")
    with socket.create_connection((host, int(port)), 30) as peer:
        for _ in range(answers):
            peer.sendall(b"GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n")
            assert peer.recv(4096).startswith(b"HTTP/1.1 200 ")
        peer.sendall(b"GET /box/key HTTP/1.1\r\nHost: x\r\n\r\n")
        wait_for(lambda: storage.ignored, "the storage to have the request")
        server.signal(signal.SIGTERM)
        assert server.process.wait(timeout=50) == 0  # weir gives a storage 60 s to answer
    assert "server.stop_forced" not in server.err
    storage.close()


def test_a_stop_ends_uploads_downloads_and_commands_that_a_storage_holds(serve, weir):
    server = serve("--shutdown.timeout", "100ms").ready()
    storage = Silent(0)
    add_silent(weir, server, storage)
    host, port = server.s3_url.split("//")[1].split(":")
    asks = [b"PUT /box/key HTTP/1.1\r\nHost: x\r\nContent-Length: 90000000\r\n\r\n" + bytes(200000),
            b"PUT /box/key HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc",
            b"DELETE /box/key HTTP/1.1\r\nHost: x\r\n\r\n",
            b"OPTIONS /box/key HTTP/1.1\r\nHost: x\r\nOrigin: http://x\r\n\r\n"]
    peers = [socket.create_connection((host, int(port)), 30) for _ in asks]
    for peer, ask in zip(peers, asks):
        peer.sendall(ask)
    threading.Thread(target=weir, args=("storage", "test", "silent", "--data", server.data, "--url", server.url),
                     daemon=True).start()
    wait_for(lambda: len(storage.open) > len(asks), "the storage to have all connections")
    server.signal(signal.SIGTERM)
    assert server.process.wait(timeout=50) == 0
    assert "server.stop_forced" not in server.err
    for peer in peers:
        peer.close()
    storage.close()


def test_a_storage_may_take_as_long_as_it_was_given(serve, weir):
    server = serve().ready()
    storage = Silent(1)
    add_silent(weir, server, storage, "--response-timeout", "1s")
    for answer in (200, 503, 503):  # over a kept connection, and over a new one
        assert requests.get(server.s3_url + "/box/key").status_code == answer
    storage.close()


def test_the_commands_refuse_what_a_folder_does_not_have(serve, weir, tmp_path):
    server = serve().ready()

    def run(*args):
        return weir("storage", "add", *args, "--data", server.data, "--url", server.url)
    for flag, value in (("--user", "root"), ("--region", "x"), ("--idle-timeout", "5s"), ("--framing", "plain")):
        done = run("disk", tmp_path / "disk", flag, value)
        assert done.returncode == 2 and f"{flag} is only for a storage with an --endpoint" in done.stderr, done.stderr
    assert "--no-verify is only for" in run("disk", tmp_path / "disk", "--no-verify").stderr
    done = run("far", "--endpoint", "http://127.0.0.1:1", "--connect-timeout", "1ms")
    assert done.returncode == 1 and "connect_timeout must be from 100 ms to 60 s" in done.stderr
    assert run("disk", tmp_path / "disk", "--main").returncode == 0
    server.s3().create_bucket(Bucket="box")
    done = weir("bucket", "show", "box", "--data", server.data, "--url", server.url)
    assert "disk" in done.stdout, done.stdout + done.stderr


def test_a_bucket_on_a_remote_storage_is_shown(s3, front, back, weir):
    def show(bucket):
        return weir("bucket", "show", bucket, "--json", "--data", front.data, "--url", front.url)
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    row, = json.loads(show("box").stdout)
    assert (row["name"], row["storage"], row["owner"], row["versions"]) == ("box", "back", "root", "on")
    assert row["lifecycle"] == "remote" and row["created"]
    before = row["counted_versions"], row["counted_bytes"]  # by the count of the storage, which is a weir too
    for value in (b"one", b"of two versions"):
        s3.put_object(Bucket="box", Key="counted", Body=value)
    row, = json.loads(show("box").stdout)
    assert (row["counted_versions"], row["counted_bytes"]) == (before[0] + 2, before[1] + 18)
    assert row["objects"] == ""  # by the count of weir, which has none for a remote bucket
    done = show("none")
    assert done.returncode == 1 and "no bucket none" in done.stderr
    assert back.stop() == 0
    done = show("box")
    assert done.returncode == 1 and "storage back cannot be asked" in done.stderr


def test_a_bucket_on_a_remote_storage_is_not_sharded(s3, front, back, weir):
    def enable(*flags):
        return weir("shard", "enable", "box", *flags, "--data", front.data, "--url", front.url)
    s3.put_object(Bucket="box", Key=KEY, Body=b"hello")
    done = enable()
    assert done.returncode == 1 and "buckets on remote storages cannot be sharded" in done.stderr, done.stderr
    done = enable("--storage", "back")
    assert done.returncode == 1 and "the storage back is remote; only a bucket in a folder" in done.stderr, done.stderr
    assert [b["Name"] for b in back.s3().list_buckets()["Buckets"]] == ["box"]  # no map bucket was made there
    assert body(s3, KEY) == b"hello"


def test_a_storage_that_is_a_weir_may_shard_its_bucket_itself(s3, front, back, weir):
    def run(server, *args):
        done = weir(*args, "--data", server.data, "--url", server.url)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout
    keys = [f"k{i:02}" for i in range(30)]
    for key in keys[:20]:
        s3.put_object(Bucket="box", Key=key, Body=key.encode())
    run(back, "shard", "enable", "box", "--threshold", "1000")
    run(back, "shard", "split", "box", "--at", "k09", "--full-speed")

    def split():
        status = json.loads(run(back, "shard", "status", "box", "--json"))
        return status["move"] is None and status["moving"] == "" and len(status["segments"]) == 2
    wait_for(split, "the split")
    for key in keys[20:]:
        s3.put_object(Bucket="box", Key=key, Body=key.encode())
    assert [o["Key"] for o in s3.list_objects_v2(Bucket="box")["Contents"]] == keys
    assert all(body(s3, key) == key.encode() for key in keys)
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["box"]
    row, = json.loads(run(front, "bucket", "show", "box", "--json"))
    assert (row["counted_versions"], row["counted_bytes"]) == (30, 90)


def test_the_commands_set_keys_and_a_restart_keeps_all_but_no_plain_secret(serve, front, back, s3, weir):
    def run(*args, server=front, status=0):
        done = weir(*args, "--data", server.data, "--url", server.url)
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout + done.stderr
    run("user", "add", "alice", "--id", "alice-id", "--access-key", "AKIAALICE", "--secret-key", "alice-secret-1")
    alice = front.s3(("AKIAALICE", "alice-secret-1"))
    with pytest.raises(ClientError, match="no credentials"):
        alice.list_objects(Bucket="box")
    run("storage", "key", "back", "alice", "--access-key", back.keys[0], "--secret-key", back.keys[1])
    alice.put_object(Bucket="box", Key="alice", Body=b"hers")
    assert "already" in run("storage", "add", "back", "--endpoint", "http://127.0.0.1:1", status=1)
    assert "endpoint must" in run("storage", "add", "other", "--endpoint", "ftp://x", status=1)
    assert "main storage" in run("storage", "remove", "back", status=1)
    assert front.stop() == 0
    for path in front.data.rglob("*"):
        if path.is_file() and path.name != "credentials":
            assert back.keys[1].encode() not in path.read_bytes(), path
    again = serve(data=front.data).ready()
    assert body(again.s3(("AKIAALICE", "alice-secret-1")), "alice") == b"hers"
    run("storage", "key", "back", "alice", "--remove", server=again)
    with pytest.raises(ClientError, match="no credentials"):
        again.s3(("AKIAALICE", "alice-secret-1")).list_objects(Bucket="box")
    run("storage", "main", "local", server=again)
    run("storage", "remove", "back", server=again)
    assert "back" not in run("storage", "list", server=again)


def test_storages_and_users_may_be_in_the_file(serve, back, weir, tmp_path):
    config = f"""
storages:
  back:
    url: {back.s3_url}
    framing: trailer
    connect_timeout: 5s
    response_timeout: 2m
    idle_timeout: 1500ms
    requests_per_minute: 6000
    bytes_per_second: 64MiB
    main: true
    credentials:
      alice:
        access_key: {back.keys[0]}
        secret_key: {back.keys[1]}
users:
  alice: {{access_key: AKIAALICE, secret_key: alice-secret-1, display_name: Alice}}
"""
    server = serve(config=config).ready()
    alice = server.s3(("AKIAALICE", "alice-secret-1"))
    alice.create_bucket(Bucket="box")
    alice.put_object(Bucket="box", Key="key", Body=b"x")
    assert back.s3().get_object(Bucket="box", Key="key")["Body"].read() == b"x"
    listed = requests.get(server.url + "/api/v1/storages", auth=server.keys).json()["storages"]
    row, = [s for s in listed if s["name"] == "back"]
    assert (row["idle_timeout"], row["requests_per_minute"], row["bytes_per_second"]) == ("1500ms", 6000, 64 << 20)
    done = weir("storage", "set", "back", "--requests-per-minute", "1", "--data", server.data, "--url", server.url)
    assert done.returncode == 1 and "configuration file" in done.stderr
    done = weir("user", "remove", "alice", "--data", server.data, "--url", server.url)
    assert done.returncode == 1 and "configuration file" in done.stderr
    done = weir("storage", "remove", "back", "--data", server.data, "--url", server.url)
    assert done.returncode == 1 and "configuration file" in done.stderr


@pytest.mark.parametrize("text, words", [
    ("storages:\n  back:\n    region: x\n", "weir.yaml:3: storages.back has no url"),
    ("storages:\n  back:\n    url: ftp://x\n", "storages.back.url must begin with http://"),
    ("storages:\n  back:\n    urk: http://x\n", "did you mean url"),
    ("storages:\n  back:\n    url: http://x\n    idle_timeout: soon\n", "back.idle_timeout' must be a duration"),
    ("storages:\n  back:\n    url: http://x\n    idle_timeout: 2h\n", "storages.back: idle_timeout must be from"),
    ("storages:\n  back:\n    url: http://x\n    bytes_per_second: much\n", "bytes_per_second' must be a size"),
    ("storages:\n  back:\n    url: http://x\n    requests_per_minute: 1m\n", "per_minute' must be a number"),
    ("storages:\n  Back:\n    url: http://x\n", "weir.yaml:3: storages.Back: a storage's name"),
    ("storages:\n  b:\n    url: http://x\n    credentials:\n      al: {access_key: abc}\n", "has no secret_key"),
    ("storages:\n  b:\n    url: http://x\n    credentials:\n      al: {access_key: abc, secret_key: abc}\n",
     "weir.yaml:5: credentials.al: there is no such user"),
    ("users:\n  al: {access_key: abc, secret_key: short}\n", "weir.yaml:2: users.al: a secret key"),
])
def test_what_is_wrong_in_the_file_is_named_and_nothing_starts(weir, tmp_path, text, words):
    (tmp_path / "weir.yaml").write_text(text)
    done = weir("serve", "--data", tmp_path / "data", "--s3.listen", "127.0.0.1:0", "--api.listen", "127.0.0.1:0",
                "--config", tmp_path / "weir.yaml")
    assert done.returncode == 2 and words in done.stderr, done.stderr


def test_buckets_of_all_storages_are_one_list_and_copies_go_between(s3, front, weir):
    done = weir("bucket", "route", "here", "local", "--user", "root", "--data", front.data, "--url", front.url)
    assert done.returncode == 0, done.stderr
    s3.create_bucket(Bucket="here")
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["box", "here"]
    big = os.urandom(9 * 1024 * 1024)
    s3.upload_fileobj(io.BytesIO(big), "here", "big", ExtraArgs={"Metadata": {"a": "b"}})
    s3.copy({"Bucket": "here", "Key": "big"}, "box", "big")  # in parts
    assert body(s3, "big") == big
    s3.copy_object(CopySource={"Bucket": "box", "Key": "big"}, Bucket="here", Key="back")
    assert s3.get_object(Bucket="here", Key="back")["Body"].read() == big


@pytest.fixture
def s3rver(tmp_path):
    if not S3RVER.exists():
        pytest.skip("the npm packages are not installed")
    port = free_port()
    process = subprocess.Popen(["node", str(S3RVER), "-d", str(tmp_path / "s3rver"), "-a", "127.0.0.1", "-p", str(port), "-s"],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=clean_env())

    def answers():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", port)) == 0
    (tmp_path / "s3rver").mkdir()
    wait_for(answers, "s3rver")
    yield f"http://127.0.0.1:{port}"
    os.kill(process.pid, signal.SIGTERM)
    process.wait()


def test_a_foreign_server_serves_through(serve, s3rver):
    config = f"""
storages:
  other: {{url: "{s3rver}", main: true, credentials: {{alice: {{access_key: S3RVER, secret_key: S3RVER}}}}}}
users:
  alice: {{access_key: AKIAALICE, secret_key: alice-secret-1}}
"""
    server = serve(config=config).ready()
    s3 = server.s3(("AKIAALICE", "alice-secret-1"))
    s3.create_bucket(Bucket="box")
    assert [b["Name"] for b in s3.list_buckets()["Buckets"]] == ["box"]
    s3.put_object(Bucket="box", Key=KEY, Body=b"hello", Metadata={"a": "b"})
    got = s3.get_object(Bucket="box", Key=KEY)
    assert got["Body"].read() == b"hello" and got["Metadata"] == {"a": "b"}
    big = os.urandom(20 * 1024 * 1024)
    s3.upload_fileobj(io.BytesIO(big), "box", "big")
    assert body(s3, "big") == big and body(s3, "big", Range="bytes=5-9") == big[5:10]
    s3.copy_object(CopySource={"Bucket": "box", "Key": "big"}, Bucket="box", Key="copy")  # it cannot decode KEY here
    assert body(s3, "copy") == big
    url = s3.generate_presigned_url("get_object", {"Bucket": "box", "Key": KEY})
    assert urllib.request.urlopen(url).read() == b"hello"
    assert sorted(o["Key"] for o in s3.list_objects_v2(Bucket="box")["Contents"]) == sorted([KEY, "big", "copy"])
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": k} for k in (KEY, "big", "copy")]})
    s3.delete_bucket(Bucket="box")
    with pytest.raises(ClientError, match="NoSuchBucket"):
        s3.list_objects(Bucket="box")
