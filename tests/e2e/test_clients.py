"""The clients that people have, each through its whole cycle: put, get, list, multipart, copy, versions, presigned
addresses, delete. Each runs against a storage in a folder, and through gateways in front of other S3 servers."""
import io
import os
import pathlib
import shutil
import socket
import subprocess
import urllib.request

import pytest

from conftest import BUILD, DEADLINE, ROOT, Server, clean_env, free_port, wait_for

boto3 = pytest.importorskip("boto3")
from botocore.config import Config  # noqa: E402

MIB = 1024 * 1024
NPM = BUILD.parent / "npm/node_modules"


class Endpoint:
    """An S3 endpoint to talk to, and what the server behind it cannot do by itself."""

    def __init__(self, name, url, keys, lacks=()):
        self.name, self.url, self.keys, self.lacks = name, url, keys, lacks
        self.key = "folder/a key ü.txt" if "escapes" in lacks else "folder/a key ü+%&=.txt"
        self.count = 0

    def has(self, feature):
        return feature not in self.lacks

    def bucket(self, client):
        self.count += 1
        return f"{client}-{self.name}-{self.count}"


@pytest.fixture(scope="module")
def started(tmp_path_factory):
    """started(...) starts a Server for the whole file."""
    servers = []

    def start(*args, **more):
        servers.append(Server(tmp_path_factory.mktemp("weir"), *args, **more))
        return servers[-1].ready()

    yield start
    for server in servers:
        assert server.stop() == 0, server.err


@pytest.fixture(scope="module")
def local(started):
    server = started("--s3.signature_v2", "true")  # s3cmd signs addresses that way
    return Endpoint("local", server.s3_url, server.keys)


def gateway(started, name, url, keys, lacks=()):
    """A weir whose main storage is the S3 server at `url`; its administrator has `keys` there."""
    server = started("--s3.signature_v2", "true")
    done = subprocess.run([str(BUILD / "weir"), "storage", "add", name, "--endpoint", url, "--main", "--user", "root",
                           "--access-key", keys[0], "--secret-key", keys[1], "--url", server.url, "--data", server.data],
                          capture_output=True, text=True, timeout=DEADLINE, env=clean_env(), check=False)
    assert done.returncode == 0, done.stderr
    return Endpoint(name, server.s3_url, server.keys, lacks)


@pytest.fixture(scope="module")
def weir(started, local):
    """A gateway in front of another weir."""
    return gateway(started, "weir", local.url, local.keys)


@pytest.fixture(scope="module")
def s3rver(started, tmp_path_factory):
    """A gateway in front of a server of others. It lists keys with percent and plus signs wrongly,
    has no copies of parts and no lists of uploads, and fails when two keys of a folder are removed at once."""
    script = NPM / "s3rver/bin/s3rver.js"
    if not script.exists() or not shutil.which("node"):
        pytest.skip("the npm packages are not installed")
    port = free_port()
    with open(tmp_path_factory.mktemp("s3rver") / "log", "w") as log:
        server = subprocess.Popen(["node", str(script), "--directory", str(tmp_path_factory.mktemp("data")), "--address",
                                   "127.0.0.1", "--port", str(port)], stdout=log, stderr=log)

    def answers():
        assert server.poll() is None, "s3rver ended"
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return True
        except OSError:
            return False
    wait_for(answers, "s3rver")
    yield gateway(started, "s3rver", f"http://127.0.0.1:{port}", ("S3RVER", "S3RVER"),
                  ("versions", "escapes", "part copies", "lists of uploads", "lists of access", "deletes side by side"))
    server.kill()
    server.wait()


@pytest.fixture(scope="module")
def foreign(started):
    """A gateway in front of any S3 server: WEIR_TEST_S3 is its URL, access key and secret key, by spaces."""
    url, *keys = os.environ["WEIR_TEST_S3"].split()
    return gateway(started, "foreign", url, keys)


ENDPOINTS = ["local", "weir", "s3rver"] + ["foreign"] * ("WEIR_TEST_S3" in os.environ)


@pytest.fixture(scope="module", params=ENDPOINTS)
def endpoint(request):
    return request.getfixturevalue(request.param)


@pytest.fixture
def lab(tmp_path, endpoint):
    """A client's workplace: files to send, and its programs run with the endpoint's keys."""
    return Lab(tmp_path, endpoint)


class Lab:
    def __init__(self, folder, endpoint):
        self.folder, self.endpoint = folder, endpoint
        self.small, self.big = folder / "small.txt", folder / "big.bin"
        self.small.write_bytes(b"hello")
        self.big.write_bytes(os.urandom(17 * MIB))
        self.env = clean_env(HOME=str(folder), AWS_ACCESS_KEY_ID=endpoint.keys[0], AWS_SECRET_ACCESS_KEY=endpoint.keys[1],
                             AWS_DEFAULT_REGION="us-east-1", AWS_EC2_METADATA_DISABLED="true", AWS_CA_BUNDLE=None,
                             AWS_MAX_ATTEMPTS="1" if endpoint.has("deletes side by side") else "5")

    def run(self, *command, fails=False, **more):
        env = dict(self.env, **more)
        done = subprocess.run([str(c) for c in command], capture_output=True, text=True, timeout=4 * DEADLINE, env=env,
                              cwd=self.folder)
        assert (done.returncode != 0) == fails, f"{command}: status {done.returncode}\n{done.stdout}\n{done.stderr}"
        return done.stdout

    def same(self, one, other):
        assert pathlib.Path(one).read_bytes() == pathlib.Path(other).read_bytes()


def program(name):
    path = f"/usr/bin/{name}"
    if not os.path.exists(path):
        pytest.skip(f"{name} is not installed")
    return path


def test_boto3(lab):
    box = lab.endpoint.bucket("boto3")
    s3 = boto3.client("s3", endpoint_url=lab.endpoint.url, aws_access_key_id=lab.endpoint.keys[0],
                      aws_secret_access_key=lab.endpoint.keys[1], region_name="us-east-1",
                      config=Config(signature_version="s3v4", s3={"addressing_style": "path"}, retries={"max_attempts": 0}))
    s3.create_bucket(Bucket=box)
    s3.put_object(Bucket=box, Key=lab.endpoint.key, Body=b"hello", Metadata={"a": "b"}, ContentType="text/plain")
    got = s3.get_object(Bucket=box, Key=lab.endpoint.key)
    assert (got["Body"].read(), got["Metadata"], got["ContentType"]) == (b"hello", {"a": "b"}, "text/plain")
    assert [o["Key"] for o in s3.list_objects_v2(Bucket=box, Prefix="folder/")["Contents"]] == [lab.endpoint.key]
    big = lab.big.read_bytes()
    s3.upload_fileobj(io.BytesIO(big), box, "big")
    if lab.endpoint.has("part copies"):
        s3.copy({"Bucket": box, "Key": "big"}, box, "copy")
    else:
        s3.copy_object(CopySource={"Bucket": box, "Key": "big"}, Bucket=box, Key="copy")
    assert s3.get_object(Bucket=box, Key="copy")["Body"].read() == big
    assert s3.get_object(Bucket=box, Key="big", Range="bytes=5-9")["Body"].read() == big[5:10]
    with urllib.request.urlopen(s3.generate_presigned_url("get_object", {"Bucket": box, "Key": lab.endpoint.key})) as answer:
        assert answer.read() == b"hello"
    if lab.endpoint.has("versions"):
        s3.put_bucket_versioning(Bucket=box, VersioningConfiguration={"Status": "Enabled"})
        first = s3.put_object(Bucket=box, Key="v", Body=b"1")["VersionId"]
        s3.put_object(Bucket=box, Key="v", Body=b"2")
        s3.delete_object(Bucket=box, Key="v")
        assert s3.get_object(Bucket=box, Key="v", VersionId=first)["Body"].read() == b"1"
    empty(s3, lab.endpoint, box)


def empty(s3, endpoint, box):
    if endpoint.has("versions"):
        found = s3.list_object_versions(Bucket=box)
        keys = [{"Key": v["Key"], "VersionId": v["VersionId"]} for v in found["Versions"] + found.get("DeleteMarkers", [])]
    else:
        keys = [{"Key": o["Key"]} for o in s3.list_objects_v2(Bucket=box)["Contents"]]
    assert "Errors" not in s3.delete_objects(Bucket=box, Delete={"Objects": keys})
    s3.delete_bucket(Bucket=box)


def test_aws(lab):
    box = lab.endpoint.bucket("aws")
    aws = [program("aws"), "--endpoint-url", lab.endpoint.url]
    lab.run(*aws, "s3", "mb", f"s3://{box}")
    lab.run(*aws, "s3", "cp", lab.small, f"s3://{box}/{lab.endpoint.key}", "--metadata", "a=b")
    lab.run(*aws, "s3", "cp", lab.big, f"s3://{box}/big")
    if lab.endpoint.has("part copies"):
        lab.run(*aws, "s3", "cp", f"s3://{box}/big", f"s3://{box}/copy")
    else:
        lab.run(*aws, "s3api", "copy-object", "--copy-source", f"{box}/big", "--bucket", box, "--key", "copy")
    lab.run(*aws, "s3", "cp", f"s3://{box}/copy", "back")
    lab.same(lab.big, lab.folder / "back")
    listed = lab.run(*aws, "s3", "ls", "--recursive", f"s3://{box}")
    assert [line.split(None, 3)[3] for line in listed.splitlines()] == ["big", "copy", lab.endpoint.key]
    url = lab.run(*aws, "s3", "presign", f"s3://{box}/{lab.endpoint.key}").strip()
    with urllib.request.urlopen(url) as answer:
        assert answer.read() == b"hello"
    (lab.folder / "tree/deep").mkdir(parents=True)
    for i in range(12):
        (lab.folder / f"tree/deep/{i}").write_text(str(i))
        os.utime(lab.folder / f"tree/deep/{i}", (1000000000, 1000000000))  # older than what the server will say
    lab.run(*aws, "s3", "sync", "tree", f"s3://{box}/tree")
    assert lab.run(*aws, "s3", "sync", "tree", f"s3://{box}/tree") == ""
    lab.run(*aws, "s3", "sync", f"s3://{box}/tree", "tree2")
    assert sorted(p.name for p in (lab.folder / "tree2/deep").iterdir()) == sorted(str(i) for i in range(12))
    if lab.endpoint.has("versions"):
        lab.run(*aws, "s3api", "put-bucket-versioning", "--bucket", box, "--versioning-configuration", "Status=Enabled")
        lab.run(*aws, "s3", "rm", f"s3://{box}/big")
        found = lab.run(*aws, "s3api", "list-object-versions", "--bucket", box, "--prefix", "big", "--query", "Versions[0].VersionId")
        lab.run(*aws, "s3api", "get-object", "--bucket", box, "--key", "big", "--version-id", found.strip().strip('"'), "back2")
        lab.same(lab.big, lab.folder / "back2")
        lab.run(*aws, "s3api", "put-bucket-versioning", "--bucket", box, "--versioning-configuration", "Status=Suspended")
    lab.run(*aws, "s3", "rm", "--recursive", f"s3://{box}")
    assert lab.run(*aws, "s3", "ls", f"s3://{box}") == ""
    if not lab.endpoint.has("versions"):
        lab.run(*aws, "s3", "rb", f"s3://{box}")


def test_s3cmd(lab):
    box = lab.endpoint.bucket("s3cmd")
    host = lab.endpoint.url.split("//")[1]
    s3cmd = [program("s3cmd"), "--config", "/dev/null", "--no-ssl", "--host", host, "--host-bucket", host, "--region", "us-east-1",
             "--access_key", lab.endpoint.keys[0], "--secret_key", lab.endpoint.keys[1], "--no-progress"]
    lab.run(*s3cmd, "mb", f"s3://{box}")
    lab.run(*s3cmd, "put", lab.small, f"s3://{box}/{lab.endpoint.key}")
    lab.run(*s3cmd, "put", "--multipart-chunk-size-mb", "8", lab.big, f"s3://{box}/big")
    moved = "big"
    if lab.endpoint.has("lists of access"):
        lab.run(*s3cmd, "cp", f"s3://{box}/big", f"s3://{box}/copy")
        lab.run(*s3cmd, "mv", f"s3://{box}/copy", f"s3://{box}/moved")
        moved = "moved"
        assert "MD5 sum:   5d41402abc4b2a76b9719d911017c592" in lab.run(*s3cmd, "info", f"s3://{box}/{lab.endpoint.key}")
    lab.run(*s3cmd, "get", f"s3://{box}/{moved}", "back")
    lab.same(lab.big, lab.folder / "back")
    assert lab.endpoint.key in lab.run(*s3cmd, "ls", "--recursive", f"s3://{box}")
    with urllib.request.urlopen(lab.run(*s3cmd, "signurl", f"s3://{box}/big", "+60").strip()) as answer:
        assert answer.read() == lab.big.read_bytes()
    lab.run(*s3cmd, "del", "--recursive", "--force", f"s3://{box}")
    lab.run(*s3cmd, "rb", f"s3://{box}")


def test_rclone(lab):
    box = lab.endpoint.bucket("rclone")
    rclone = [program("rclone"), "--config", "/dev/null", "--retries", "1", "--low-level-retries", "1", "--s3-upload-cutoff", "8M",
              "--s3-chunk-size", "8M"]
    remote = ":s3,provider=Other,env_auth=true,region=us-east-1,endpoint='" + lab.endpoint.url + "':" + box
    tree = lab.folder / "tree"
    (tree / "folder").mkdir(parents=True)
    (tree / lab.endpoint.key).write_bytes(b"hello")
    shutil.copy(lab.big, tree / "big")
    for i in range(12):
        (tree / f"folder/{i}").write_text(str(i))
    lab.run(*rclone, "mkdir", remote)
    lab.run(*rclone, "copy", tree, remote)
    lab.run(*rclone, "check", tree, remote)
    lab.run(*rclone, "check", "--download", tree, remote)
    (tree / "folder/0").unlink()
    (tree / "folder/1").write_text("changed")
    lab.run(*rclone, "sync", tree, remote)
    lab.run(*rclone, "check", tree, remote)
    assert sorted(lab.run(*rclone, "lsf", "-R", "--files-only", remote).splitlines()) == sorted(
        str(p.relative_to(tree)) for p in tree.rglob("*") if p.is_file())
    lab.run(*rclone, "copyto", remote + "/big", remote + "/copy", "--s3-copy-cutoff",
            "8M" if lab.endpoint.has("part copies") else "1G")
    lab.run(*rclone, "moveto", remote + "/copy", remote + "/moved")
    lab.run(*rclone, "copyto", remote + "/moved", "back")
    lab.same(lab.big, lab.folder / "back")
    with urllib.request.urlopen(lab.run(*rclone, "link", "--expire", "1m", remote + "/" + lab.endpoint.key).strip()) as answer:
        assert answer.read() == b"hello"
    lab.run(*rclone, "purge", remote)
    assert "directory not found" not in lab.run(*rclone, "lsf", remote.rsplit(":", 1)[0] + ":")


def test_rclone_by_signature_version_2(lab):
    """Its Date header ends in UTC."""
    box = lab.endpoint.bucket("rclone-v2")
    rclone = [program("rclone"), "--config", "/dev/null", "--retries", "1", "--low-level-retries", "1", "--s3-v2-auth"]
    remote = (f":s3,provider=Other,access_key_id={lab.endpoint.keys[0]},secret_access_key={lab.endpoint.keys[1]},"
              f"region=us-east-1,endpoint='{lab.endpoint.url}':{box}")
    lab.run(*rclone, "mkdir", remote)
    lab.run(*rclone, "copyto", lab.small, remote + "/small")
    lab.run(*rclone, "copyto", remote + "/small", "back")
    lab.same(lab.small, lab.folder / "back")
    assert lab.run(*rclone, "lsf", remote) == "small\n"
    lab.run(*rclone, "purge", remote)


@pytest.mark.parametrize("script", ["sdk", "minio"])
def test_javascript(lab, script):
    if not NPM.is_dir() or not shutil.which("node"):
        pytest.skip("the npm packages are not installed")
    out = lab.run("node", ROOT / f"tests/e2e/js/{script}.cjs", NODE_PATH=str(NPM), ENDPOINT=lab.endpoint.url,
                  ACCESS=lab.endpoint.keys[0], SECRET=lab.endpoint.keys[1], BUCKET=lab.endpoint.bucket(script),
                  KEY=lab.endpoint.key, LACKS=",".join(lab.endpoint.lacks))
    assert out.strip().endswith("ok")


def test_s3fs(lab):
    """A bucket as a folder."""
    if not os.access("/dev/fuse", os.R_OK | os.W_OK):
        pytest.skip("FUSE does not work here")
    box = lab.endpoint.bucket("s3fs")
    aws = [program("aws"), "--endpoint-url", lab.endpoint.url]
    lab.run(*aws, "s3", "mb", f"s3://{box}")
    mount = lab.folder / "mount"
    mount.mkdir()
    s3fs = subprocess.Popen([program("s3fs"), box, str(mount), "-f", "-o",
                             f"url={lab.endpoint.url},use_path_request_style,endpoint=us-east-1,multipart_size=8,retries=1"],
                            env=dict(lab.env, AWSACCESSKEYID=lab.endpoint.keys[0], AWSSECRETACCESSKEY=lab.endpoint.keys[1]),
                            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def mounted():
        if s3fs.poll() is not None:
            pytest.skip("FUSE does not work here: s3fs ended")
        return os.path.ismount(mount)
    try:
        wait_for(mounted, "the mount")
        (mount / "folder").mkdir()
        (mount / "folder/small ü").write_bytes(b"hello")
        shutil.copy(lab.big, mount / "big")
        lab.same(lab.big, mount / "big")
        (mount / "big").rename(mount / "folder/moved")
        with open(mount / "folder/small ü", "ab") as f:
            f.write(b" world")
        assert sorted(os.listdir(mount / "folder")) == ["moved", "small ü"]
        assert (mount / "folder/small ü").read_bytes() == b"hello world"
        lab.run(*aws, "s3", "cp", f"s3://{box}/folder/moved", "back")
        lab.same(lab.big, lab.folder / "back")
        shutil.rmtree(mount / "folder")
        assert os.listdir(mount) == []
    finally:
        subprocess.run(["fusermount3", "-u", str(mount)], check=False, capture_output=True)
        s3fs.terminate()
        s3fs.wait()
    lab.run(*aws, "s3", "rb", "--force", f"s3://{box}")
