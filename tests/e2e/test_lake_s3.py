"""Repositories as S3 buckets: boto3, aws, rclone and s3cmd on branches, tags and expressions. Each test runs with the
storage namespace in a folder, and with the namespace on another weir, as on any S3 service."""
import io
import json
import os
import shutil
import subprocess
import urllib.request

import pytest

from conftest import BUILD, DEADLINE, Server, clean_env

boto3 = pytest.importorskip("boto3")
from botocore import UNSIGNED  # noqa: E402
from botocore.config import Config  # noqa: E402
from botocore.exceptions import ClientError  # noqa: E402

MIB = 1024 * 1024


class Lake:
    """A weir with the bucket lake-data, and calls to its REST API as the administrator."""

    def __init__(self, server):
        self.server = server
        self.s3 = server.s3()
        self.s3.create_bucket(Bucket="lake-data")
        self.count = 0

    def call(self, method, path, body=None, status=(200, 201, 204)):
        answer = self.server.request(method, "/api/v1" + path, body=body, keys=self.server.keys)
        assert answer.status in status, answer.body
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def repo(self, **more):
        """Makes a repository, and returns its name."""
        self.count += 1
        name = f"repo-{self.count}"
        self.call("POST", "/repositories", {"name": name, "storage_namespace": f"s3://lake-data/{name}", **more})
        return name

    def commit(self, repo, branch="main", message="m"):
        return self.call("POST", f"/repositories/{repo}/branches/{branch}/commits", {"message": message})["id"]

    def branch(self, repo, name, source="main"):
        self.call("POST", f"/repositories/{repo}/branches", {"name": name, "source": source})

    def tag(self, repo, name, ref="main"):
        self.call("POST", f"/repositories/{repo}/tags", {"id": name, "ref": ref})

    def get(self, repo, key, **more):
        return self.s3.get_object(Bucket=repo, Key=key, **more)["Body"].read()

    def keys(self, repo, **more):
        return [o["Key"] for page in self.s3.get_paginator("list_objects_v2").paginate(Bucket=repo, **more)
                for o in page.get("Contents", [])]

    def prefixes(self, repo, **more):
        answer = self.s3.list_objects_v2(Bucket=repo, Delimiter="/", **more)
        return [p["Prefix"] for p in answer.get("CommonPrefixes", [])]


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    servers = []

    def start(*args, **more):
        servers.append(Server(tmp_path_factory.mktemp("weir"), *args, **more))
        return servers[-1].ready()

    yield start
    for server in servers:
        assert server.stop() == 0, server.err


@pytest.fixture(scope="module")
def folder(started):
    return Lake(started())


@pytest.fixture(scope="module")
def service(started):
    """A lake whose objects lie on another weir, as on any S3 service."""
    back, server = started(), started()
    done = subprocess.run([str(BUILD / "weir"), "storage", "add", "back", "--endpoint", back.s3_url, "--main", "--user",
                           "root", "--access-key", back.keys[0], "--secret-key", back.keys[1], "--url", server.url,
                           "--data", server.data], capture_output=True, text=True, timeout=DEADLINE, env=clean_env())
    assert done.returncode == 0, done.stderr
    lake = Lake(server)
    lake.back = back
    return lake


@pytest.fixture(scope="module", params=["folder", "service"])
def lake(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def repo(lake):
    return lake.repo()


def refused(code, call, **more):
    with pytest.raises(ClientError) as caught:
        call(**more)
    assert caught.value.response["Error"]["Code"] == code, caught.value
    return caught.value.response["Error"].get("Message", "")


# --- boto3 ---

def test_objects_are_written_read_listed_and_removed(lake, repo):
    s3, key = lake.s3, "main/folder/a key ü+%&=.txt"
    put = s3.put_object(Bucket=repo, Key=key, Body=b"hello", ContentType="text/plain", Metadata={"a": "b"}, Tagging="x=1")
    assert put["ETag"] == '"5d41402abc4b2a76b9719d911017c592"'
    got = s3.get_object(Bucket=repo, Key=key)
    assert got["Body"].read() == b"hello" and got["ContentType"] == "text/plain" and got["Metadata"] == {"a": "b"}
    assert lake.get(repo, key, Range="bytes=1-2") == b"el"
    assert s3.get_object_tagging(Bucket=repo, Key=key)["TagSet"] == [{"Key": "x", "Value": "1"}]
    assert lake.keys(repo) == [key] == lake.keys(repo, Prefix="main/fol")
    assert lake.prefixes(repo) == ["main/"] and lake.prefixes(repo, Prefix="main/") == ["main/folder/"]
    s3.delete_object(Bucket=repo, Key=key)
    refused("NoSuchKey", s3.get_object, Bucket=repo, Key=key)
    assert lake.keys(repo) == []


def test_every_ref_is_read_and_only_branches_are_written(lake, repo):
    s3 = lake.s3
    s3.put_object(Bucket=repo, Key="main/k", Body=b"1")
    first = lake.commit(repo)
    lake.tag(repo, "v1")
    lake.branch(repo, "dev")
    s3.put_object(Bucket=repo, Key="dev/k", Body=b"2")
    s3.put_object(Bucket=repo, Key="main/k", Body=b"3")
    lake.commit(repo)
    expect = {"main": b"3", "dev": b"2", "dev@": b"1", "v1": b"1", "main~1": b"1", first: b"1", first[:12]: b"1"}
    for ref, want in expect.items():
        assert lake.get(repo, f"{ref}/k") == want
        assert lake.keys(repo, Prefix=f"{ref}/") == [f"{ref}/k"]
    assert lake.prefixes(repo) == ["dev/", "main/", "v1/"]
    for ref in ("v1", "main~1", first):
        assert "not a branch" in refused("AccessDenied", s3.put_object, Bucket=repo, Key=f"{ref}/k", Body=b"x")
    refused("NoSuchBucket", s3.put_object, Bucket=repo, Key="nowhere/k", Body=b"x")
    refused("InvalidArgument", s3.put_object, Bucket=repo, Key="main/", Body=b"x")
    s3.delete_object(Bucket=repo, Key="main/")  # Spark does this


def test_large_objects_in_parts_copies_and_checksums(lake, repo):
    s3, big = lake.s3, os.urandom(20 * MIB)
    s3.upload_fileobj(io.BytesIO(big), repo, "main/big")
    assert s3.head_object(Bucket=repo, Key="main/big")["ETag"].endswith('-3"')
    assert lake.get(repo, "main/big") == big
    assert lake.get(repo, "main/big", PartNumber=2) == big[8 * MIB:16 * MIB]
    before = len(lake.keys("lake-data", Prefix=f"{repo}/data/"))
    s3.copy_object(Bucket=repo, Key="main/copy", CopySource={"Bucket": repo, "Key": "main/big"})
    s3.copy({"Bucket": repo, "Key": "main/big"}, repo, "main/copied-in-parts")
    assert lake.get(repo, "main/copy") == big == lake.get(repo, "main/copied-in-parts")
    assert len(lake.keys("lake-data", Prefix=f"{repo}/data/")) == before + 1  # the first copy shares the bytes
    s3.put_object(Bucket=repo, Key="main/sum", Body=b"hello", ChecksumAlgorithm="SHA256")
    head = s3.head_object(Bucket=repo, Key="main/sum", ChecksumMode="ENABLED")
    assert head["ChecksumSHA256"] == "LPJNul+wow4m6DsqxbninhsWHlwfp0JecwQzYpOLmCQ="


def test_an_upload_in_parts_is_listed_aborted_and_finished_twice(lake, repo):
    s3, key = lake.s3, "main/up"
    gone = s3.create_multipart_upload(Bucket=repo, Key=key)["UploadId"]
    assert [u["UploadId"] for u in s3.list_multipart_uploads(Bucket=repo)["Uploads"]] == [gone]
    s3.abort_multipart_upload(Bucket=repo, Key=key, UploadId=gone)
    refused("NoSuchUpload", s3.list_parts, Bucket=repo, Key=key, UploadId=gone)
    upload = s3.create_multipart_upload(Bucket=repo, Key=key, Metadata={"m": "1"})["UploadId"]
    parts = [{"PartNumber": n, "ETag": s3.upload_part(Bucket=repo, Key=key, UploadId=upload, PartNumber=n,
                                                      Body=b)["ETag"]}
             for n, b in ((1, b"a" * 5 * MIB), (2, b"end"))]
    finish = dict(Bucket=repo, Key=key, UploadId=upload, MultipartUpload={"Parts": parts})
    assert s3.complete_multipart_upload(**finish)["ETag"] == s3.complete_multipart_upload(**finish)["ETag"]
    assert s3.head_object(Bucket=repo, Key=key)["Metadata"] == {"m": "1"}
    assert "Uploads" not in s3.list_multipart_uploads(Bucket=repo)


def put_if(lake, header, value, **more):
    """Puts with a condition, for which Debian's boto3 has no parameter."""
    def add(params, **_):
        params["headers"][header] = value
    events = lake.s3.meta.events
    events.register("before-call.s3.PutObject", add)
    try:
        return lake.s3.put_object(**more)
    finally:
        events.unregister("before-call.s3.PutObject", add)


def test_conditions_hold_against_staged_and_committed_objects(lake, repo):
    put = dict(Bucket=repo, Key="main/k", Body=b"1")
    etag = put_if(lake, "If-None-Match", "*", **put)["ETag"]
    refused("PreconditionFailed", put_if, lake=lake, header="If-None-Match", value="*", **put)
    lake.commit(repo)
    refused("PreconditionFailed", put_if, lake=lake, header="If-None-Match", value="*", **put)
    put["Body"] = b"2"
    put_if(lake, "If-Match", etag, **put)
    refused("PreconditionFailed", put_if, lake=lake, header="If-Match", value=etag, **put)
    assert lake.get(repo, "main/k") == b"2"
    bodies = lake.keys("lake-data", Prefix=f"{repo}/data/")
    assert len(bodies) == 2  # refused writes leave no bytes


def test_a_page_goes_on_where_the_last_one_ended(lake, repo):
    want = [f"main/{a}/{b}" for a in "abc" for b in range(10)]
    for key in want:
        lake.s3.put_object(Bucket=repo, Key=key, Body=b"x")
    lake.branch(repo, "zz")
    assert lake.keys(repo, PaginationConfig={"PageSize": 7}) == want
    pages = lake.s3.get_paginator("list_objects_v2").paginate(Bucket=repo, Prefix="main/", Delimiter="/",
                                                              PaginationConfig={"PageSize": 1})
    assert [p["Prefix"] for page in pages for p in page["CommonPrefixes"]] == ["main/a/", "main/b/", "main/c/"]
    versions = lake.s3.list_object_versions(Bucket=repo, Prefix="main/a/")["Versions"]
    assert [v["Key"] for v in versions] == want[:10] and {v["VersionId"] for v in versions} == {"null"}


def test_presigned_addresses_work(lake, repo):
    url = lake.s3.generate_presigned_url("put_object", {"Bucket": repo, "Key": "main/k"})
    assert urllib.request.urlopen(urllib.request.Request(url, data=b"signed", method="PUT")).status == 200
    url = lake.s3.generate_presigned_url("get_object", {"Bucket": repo, "Key": "main/k"})
    assert urllib.request.urlopen(url).read() == b"signed"


# --- rights ---

def user(lake, name):
    """Makes a user, with keys on the service behind the lake if there is one, and returns the user's keys."""
    answer = lake.server.post("/api/v1/users", {"name": name}, keys=lake.server.keys)
    assert answer.status in (200, 201), answer.body
    made = json.loads(answer.body)
    if hasattr(lake, "back"):
        done = subprocess.run([str(BUILD / "weir"), "storage", "key", "back", name, "--access-key", lake.back.keys[0],
                               "--secret-key", lake.back.keys[1], "--url", lake.server.url, "--data", lake.server.data],
                              capture_output=True, text=True, timeout=DEADLINE, env=clean_env())
        assert done.returncode == 0, done.stderr
    return made["access_key"], made["secret_key"]


def test_owner_other_user_anonymous_and_administrator(lake):
    owner, other = user(lake, "owner"), user(lake, "other")
    mine, theirs, admin = lake.server.s3(owner), lake.server.s3(other), lake.s3
    anybody = boto3.client("s3", endpoint_url=lake.server.s3_url, region_name="us-east-1",
                           config=Config(signature_version=UNSIGNED, s3={"addressing_style": "path"}))
    mine.create_bucket(Bucket="owner-data")
    answer = lake.server.post("/api/v1/repositories", {"name": "owned", "storage_namespace": "s3://owner-data/owned"},
                              keys=owner)
    assert answer.status == 201, answer.body
    mine.put_object(Bucket="owned", Key="main/k", Body=b"1")
    for ref in ("dev", "public"):
        answer = lake.server.post("/api/v1/repositories/owned/branches", {"name": ref, "source": "main"}, keys=owner)
        assert answer.status == 201, answer.body
        mine.put_object(Bucket="owned", Key=f"{ref}/k", Body=ref.encode())
    assert "owned" in [b["Name"] for b in mine.list_buckets()["Buckets"]]
    assert "owned" not in [b["Name"] for b in theirs.list_buckets()["Buckets"]]
    for client in (theirs, anybody):
        refused("AccessDenied", client.get_object, Bucket="owned", Key="main/k")
        refused("AccessDenied", client.list_objects_v2, Bucket="owned")
        refused("AccessDenied", client.put_object, Bucket="owned", Key="main/k", Body=b"x")
    assert admin.get_object(Bucket="owned", Key="main/k")["Body"].read() == b"1"
    rule = {"Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject"], "Resource": "arn:aws:s3:::owned/dev/*",
            "Principal": {"AWS": "arn:aws:iam:::user/other"}}
    read = {"Effect": "Allow", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::owned/public/*", "Principal": "*"}
    mine.put_bucket_policy(Bucket="owned", Policy=json.dumps({"Version": "2012-10-17", "Statement": [rule, read]}))
    assert theirs.get_object(Bucket="owned", Key="dev/k")["Body"].read() == b"dev"
    theirs.put_object(Bucket="owned", Key="dev/new", Body=b"by another user")
    assert mine.get_object(Bucket="owned", Key="dev/new")["Body"].read() == b"by another user"
    refused("AccessDenied", theirs.put_object, Bucket="owned", Key="main/new", Body=b"x")
    refused("AccessDenied", theirs.delete_object, Bucket="owned", Key="dev/k")
    assert anybody.get_object(Bucket="owned", Key="public/k")["Body"].read() == b"public"
    refused("AccessDenied", anybody.get_object, Bucket="owned", Key="dev/k")


# --- what is refused ---

def test_what_a_repository_does_not_have_is_refused(lake, repo):
    s3 = lake.s3
    for call, more in ((s3.put_bucket_versioning, {"VersioningConfiguration": {"Status": "Enabled"}}),
                       (s3.put_bucket_lifecycle_configuration,
                        {"LifecycleConfiguration": {"Rules": [{"ID": "x", "Status": "Enabled", "Filter": {"Prefix": ""},
                                                               "Expiration": {"Days": 1}}]}}),
                       (s3.put_object, {"Key": "main/k", "Body": b"x", "ServerSideEncryption": "AES256"}),
                       (s3.put_object, {"Key": "main/k", "Body": b"x", "ObjectLockLegalHoldStatus": "ON"})):
        refused("NotImplemented", call, Bucket=repo, **more)
    s3.put_object(Bucket=repo, Key="main/k", Body=b"x")
    refused("BucketNotEmpty", s3.delete_bucket, Bucket=repo)
    refused("BucketAlreadyExists", s3.create_bucket, Bucket=repo)
    answer = lake.server.post("/api/v1/replications", {"bucket": repo, "to": "elsewhere", "user": "root"},
                              keys=lake.server.keys)
    assert answer.status == 400 and "replicate its storage namespace" in answer.body, answer.body
    s3.delete_object(Bucket=repo, Key="main/k")
    s3.delete_bucket(Bucket=repo)
    refused("NoSuchBucket", s3.list_objects_v2, Bucket=repo)


def test_a_protected_branch_is_not_written(lake, repo):
    lake.call("PUT", f"/repositories/{repo}/settings/branch_protection", json.dumps([{"pattern": "ma*"}]))
    message = refused("AccessDenied", lake.s3.put_object, Bucket=repo, Key="main/k", Body=b"x")
    assert "protected branch" in message


# --- programs ---

class Programs:
    """Runs client programs in a folder with a small tree of files."""

    def __init__(self, lake, folder):
        self.lake, self.folder = lake, folder
        self.access, self.secret = lake.server.keys
        (folder / "tree/sub").mkdir(parents=True)
        (folder / "tree/a.txt").write_text("a")
        (folder / "tree/sub/b ü.txt").write_text("b")
        (folder / "tree/big").write_bytes(os.urandom(9 * MIB))

    def run(self, *command):
        env = clean_env(AWS_ACCESS_KEY_ID=self.access, AWS_SECRET_ACCESS_KEY=self.secret, AWS_DEFAULT_REGION="us-east-1",
                        AWS_CONFIG_FILE="/dev/null", AWS_SHARED_CREDENTIALS_FILE="/dev/null", AWS_CA_BUNDLE=None,
                        AWS_EC2_METADATA_DISABLED="true", HOME=str(self.folder))
        done = subprocess.run([str(c) for c in command], cwd=self.folder, env=env, capture_output=True, text=True,
                              timeout=DEADLINE)
        assert done.returncode == 0, f"{command}: {done.stdout}{done.stderr}"
        return done.stdout


@pytest.fixture
def programs(lake, tmp_path):
    return Programs(lake, tmp_path)


def program(name):
    found = next((p for p in (f"/usr/local/bin/{name}", f"/usr/bin/{name}") if os.path.exists(p)), shutil.which(name))
    return found or pytest.skip(f"{name} is not installed")


def test_rclone_syncs_and_checks_a_branch(lake, repo, programs):
    host = lake.server.s3_url
    rclone = [program("rclone"), "--config", "/dev/null", "--retries", "1", "--low-level-retries", "1",
              "--s3-upload-cutoff", "8M", "--s3-chunk-size", "5M", "--s3-provider", "Other", "--s3-endpoint", host,
              "--s3-access-key-id", programs.access, "--s3-secret-access-key", programs.secret,
              "--s3-region", "us-east-1"]
    branch = f":s3:{repo}/main"
    programs.run(*rclone, "sync", "tree", branch)
    programs.run(*rclone, "check", "tree", branch)
    programs.run(*rclone, "check", "--download", "tree", branch)
    lake.commit(repo)
    lake.tag(repo, "v1")
    (programs.folder / "tree/a.txt").unlink()
    (programs.folder / "tree/c.txt").write_text("c")
    programs.run(*rclone, "sync", "tree", branch)
    programs.run(*rclone, "check", "tree", branch)
    assert sorted(programs.run(*rclone, "lsf", "-R", "--files-only", branch).splitlines()) == \
        ["big", "c.txt", "sub/b ü.txt"]
    assert sorted(programs.run(*rclone, "lsf", "-R", "--files-only", f":s3:{repo}/v1").splitlines()) == \
        ["a.txt", "big", "sub/b ü.txt"]
    assert programs.run(*rclone, "lsf", f":s3:{repo}").splitlines() == ["main/", "v1/"]
    (programs.folder / "tree/a.txt").write_text("a")
    (programs.folder / "tree/c.txt").unlink()
    for ref in ("v1", "main@", "v1~0"):  # the commit, as it was before the second sync
        programs.run(*rclone, "check", "tree", f":s3:{repo}/{ref}")
        programs.run(*rclone, "check", "--download", "tree", f":s3:{repo}/{ref}")
    programs.run(*rclone, "sync", f":s3:{repo}/v1", "back")
    programs.run(*rclone, "check", "tree", "back")
    programs.run(*rclone, "copyto", branch + "/big", branch + "/copy")
    programs.run(*rclone, "moveto", branch + "/copy", branch + "/moved")
    programs.run(*rclone, "purge", branch)
    assert lake.keys(repo, Prefix="main/") == []


def test_aws_copies_and_syncs(lake, repo, programs):
    aws = [program("aws"), "--endpoint-url", lake.server.s3_url]
    programs.run(*aws, "s3", "cp", "tree/a.txt", f"s3://{repo}/main/a.txt")
    programs.run(*aws, "s3", "sync", "tree", f"s3://{repo}/main/tree")
    assert programs.run(*aws, "s3", "sync", "tree", f"s3://{repo}/main/tree") == ""
    lake.commit(repo)
    programs.run(*aws, "s3", "sync", f"s3://{repo}/main@/tree", "back")
    assert (programs.folder / "back/big").read_bytes() == (programs.folder / "tree/big").read_bytes()
    assert programs.run(*aws, "s3", "ls", f"s3://{repo}").split() == ["PRE", "main/"]
    lake.tag(repo, "v1")
    for ref in ("v1", "v1~0"):
        programs.run(*aws, "s3", "sync", f"s3://{repo}/{ref}/tree", f"of-{ref}")
        assert (programs.folder / f"of-{ref}/sub/b ü.txt").read_text() == "b"
        assert programs.run(*aws, "s3", "ls", f"s3://{repo}/{ref}/").split()[-1] == "a.txt"
    programs.run(*aws, "s3", "mv", f"s3://{repo}/main/a.txt", f"s3://{repo}/main/b.txt")
    programs.run(*aws, "s3", "rm", "--recursive", f"s3://{repo}/main/tree")
    assert lake.keys(repo, Prefix="main/") == ["main/b.txt"] and "main~1/tree/big" not in lake.keys(repo)
    assert lake.get(repo, "main@/a.txt") == b"a"


def test_s3cmd_puts_lists_and_removes(lake, repo, programs):
    host = lake.server.s3_url.split("//")[1]
    s3cmd = [program("s3cmd"), "--config", "/dev/null", "--no-ssl", "--host", host, "--host-bucket", host,
             "--access_key", programs.access, "--secret_key", programs.secret, "--region", "us-east-1"]
    programs.run(*s3cmd, "put", "tree/a.txt", f"s3://{repo}/main/a.txt")
    programs.run(*s3cmd, "put", "--multipart-chunk-size-mb", "5", "tree/big", f"s3://{repo}/main/big")
    lake.commit(repo)
    lake.tag(repo, "v1")
    programs.run(*s3cmd, "cp", f"s3://{repo}/v1/big", f"s3://{repo}/main/copy")
    programs.run(*s3cmd, "get", f"s3://{repo}/v1/big", "back")
    assert (programs.folder / "back").read_bytes() == (programs.folder / "tree/big").read_bytes()
    programs.run(*s3cmd, "get", f"s3://{repo}/main@/a.txt", "head")
    assert (programs.folder / "head").read_text() == "a"
    assert "main~1/a.txt" not in programs.run(*s3cmd, "ls", "--recursive", f"s3://{repo}/main~1/")
    assert "main~0/a.txt" in programs.run(*s3cmd, "ls", "--recursive", f"s3://{repo}/main~0/")
    assert "main/copy" in programs.run(*s3cmd, "ls", "--recursive", f"s3://{repo}/main/")
    programs.run(*s3cmd, "del", "--recursive", "--force", f"s3://{repo}/main/")
    assert lake.keys(repo, Prefix="main/") == [] and lake.keys(repo, Prefix="v1/") == ["v1/a.txt", "v1/big"]
