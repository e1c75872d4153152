"""Sequences of requests as lakectl and the Hadoop file system of lakeFS make them, with the headers and parameters that they
send. Each step checks what that client looks at in the answer."""
import http.client
import urllib.parse

import pytest

from conftest import DEADLINE, free_port
from lake_lab import Lake, quote

R = "/repositories/repo"
B = R + "/branches/main"
F = R + "/refs/main"


@pytest.fixture(params=["through the API", "presigned"])
def server(request, serve):
    port = free_port()
    url = ["--s3.url", f"http://127.0.0.1:{port}"] if request.param == "presigned" else []
    return serve("--s3.listen", f"127.0.0.1:{port}", *url).ready()


def put_to(url, data, content_type=None):
    """Puts to a presigned URL. A Go program sends no body for an empty object, and no Content-Type that was not given."""
    parts = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(parts.hostname, parts.port, timeout=DEADLINE)
    headers = {"User-Agent": "Go-http-client/1.1", "Accept-Encoding": "gzip"}
    if content_type:
        headers["Content-Type"] = content_type
    connection.request("PUT", f"{parts.path}?{parts.query}", body=data or None, headers={**headers, "Content-Length": len(data)})
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
    connection.close()
    return answer.headers["ETag"].strip('"')


# --- lakectl ---

class Lakectl(Lake):
    """Every command asks for the configuration first, and reports that it was run at its end."""

    agent = "lakectl/1.84.0/linux/12/x86_64"

    def send(self, method, target, body=None, /, headers=None, **query):
        headers = {"User-Agent": self.agent, "Accept-Encoding": "gzip", **(headers or {})}
        return super().send(method, target, body, headers=headers, **query)

    def command(self, name, *calls):
        config = self.call("GET", "/config")
        assert config["version_config"].get("version_context", "lakeFS") == "lakeFS"
        assert [c["blockstore_id"] for c in config["storage_config_list"]] == [""]
        self.storage = config["storage_config"]
        answers = [call() for call in calls]
        self.call("POST", "/statistics", {"events": [{"class": "lakectl", "name": name, "count": 1}]})
        return answers[-1]

    def upload(self, path, data, content_type=""):
        if self.storage["pre_sign_support"]:
            given = self.call("GET", B + "/staging/backing", path=path, presign="true")
            etag = put_to(given["presigned_url"], data, content_type)
            link = {"staging": given, "checksum": etag, "size_bytes": len(data), "user_metadata": {},
                    "content_type": content_type}
            return self.call("PUT", B + "/staging/backing", link, path=path)
        boundary = "6d2b1c1d5a1f4f0a9b7c"
        form = (f'--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="f"\r\n'
                f"Content-Type: {content_type or 'application/octet-stream'}\r\n\r\n").encode() + data + \
            f"\r\n--{boundary}--\r\n".encode()
        return self.call("POST", B + "/objects", iter([form]), path=path,
                         headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})


def test_lakectl(server):
    lake = Lakectl(server)
    server.s3().create_bucket(Bucket="lake-data")
    body = {"name": "repo", "storage_namespace": "s3://lake-data/repo", "default_branch": "main", "sample_data": False,
            "read_only": False, "storage_id": ""}
    made = lake.command("repo_create", lambda: lake.call("POST", "/repositories", body))
    assert made["id"] == "repo" and made["storage_namespace"] == body["storage_namespace"]
    listed = lake.command("repo_list", lambda: lake.call("GET", "/repositories", after="", amount=100))
    assert [r["id"] for r in listed["results"]] == ["repo"] and listed["pagination"]["has_more"] is False
    for path, data in (("dir/a.csv", b"1,2"), ("empty", b"")):
        stats = lake.command("fs_upload", lambda p=path, d=data: lake.upload(p, d, "text/csv"))
        assert (stats["path"], stats["size_bytes"], stats["path_type"]) == (path, len(data), "object")
    rows = lake.command("fs_ls", lambda: lake.call("GET", F + "/objects/ls", prefix="", after="", delimiter="/"))
    assert [(r["path"], r["path_type"]) for r in rows["results"]] == [("dir/", "common_prefix"), ("empty", "object")]
    stats = lake.command("fs_stat", lambda: lake.call("GET", F + "/objects/stat", path="dir/a.csv", user_metadata="true",
                                                      presign="false"))
    assert stats["content_type"] == "text/csv"
    changes = lake.command("diff", lambda: lake.call("GET", B + "/diff", after="", amount=1000))
    assert [(d["type"], d["path"]) for d in changes["results"]] == [("added", "dir/a.csv"), ("added", "empty")]
    commit = lake.command("commit", lambda: lake.call("POST", B + "/commits", {
        "message": "first", "metadata": {"k": "v"}, "allow_empty": False}))
    assert len(commit["id"]) == 64 and commit["committer"] and commit["creation_date"] and commit["parents"]

    def create_branch():
        lake.call("GET", R + "/refs/main/commits", amount=1, limit="true")
        return lake.call("POST", R + "/branches", {"name": "dev", "source": "main"})
    assert lake.command("branch_create", create_branch).decode() == commit["id"]
    lake.put("b", branch="dev")
    lake.commit("second", branch="dev", metadata={})
    compared = lake.command("diff", lambda: lake.call(
        "GET", R + "/refs/main/diff/dev", after="", amount=1000, type="three_dot"))
    assert [d["path"] for d in compared["results"]] == ["b"]
    done = lake.command("merge", lambda: lake.call("POST", R + "/refs/dev/merge/main", {
        "message": "", "metadata": {}, "strategy": "", "force": False, "allow_empty": False, "squash_merge": False}))
    assert len(done["reference"]) == 64
    again = lake.send("POST", R + "/refs/dev/merge/main", {"strategy": ""})
    assert again.status == 400 and "no changes" in again.json["message"]
    log = lake.command("log", lambda: lake.call("GET", F + "/commits", after="", amount=100, limit="false",
                                                first_parent="false", stop_at=""))
    assert [c["message"] for c in log["results"]] == ["Merge 'dev' into 'main'", "second", "first", "Repository created"]

    def create_tag():
        target = lake.call("GET", R + "/commits/" + quote("main"))
        return lake.call("POST", R + "/tags", {"id": "v1", "ref": target["id"]})
    assert lake.command("tag_create", create_tag)["commit_id"] == done["reference"]

    def protect():
        rules = lake.send("GET", R + "/settings/branch_protection")
        lake.call("PUT", R + "/settings/branch_protection", [*rules.json, {"pattern": "release-*"}],
                  headers={"If-Match": rules.headers["ETag"]})
        return lake.call("GET", R + "/settings/branch_protection")
    assert lake.command("branch-protect_add", protect) == [{"pattern": "release-*"}]

    def remove():
        found = lake.call("GET", F + "/objects/ls", prefix="dir/", after="", delimiter="")
        return lake.call("POST", B + "/objects/delete", {"paths": [o["path"] for o in found["results"]]})
    assert lake.command("fs_rm", remove)["errors"] == []
    lake.command("branch_reset", lambda: lake.call("PUT", B, {"type": "reset"}))
    reverted = lake.send("POST", B + "/revert", {"ref": done["reference"], "parent_number": 0})
    assert reverted.status == 409 and "must specify 1-based parent number" in reverted.json["message"]
    lake.command("branch_revert", lambda: lake.call("POST", B + "/revert", {"ref": done["reference"], "parent_number": 1}))
    assert lake.paths() == ["dir/a.csv", "empty"]
    lake.command("branch_delete", lambda: lake.call("DELETE", R + "/branches/dev"))
    lake.command("repo_delete", lambda: lake.call("DELETE", R))


# --- the Hadoop file system ---

class Hadoop(Lake):
    """lakeFSFS, in its mode SIMPLE where the server has no presigned URLs, else PRESIGNED."""

    agent = "lakefs-hadoopfs/0.2.5"

    def send(self, method, target, body=None, /, headers=None, **query):
        return super().send(method, target, body, headers={"User-Agent": self.agent, "X-Lakefs-Client": self.agent,
                                                           **(headers or {})}, **query)

    def start(self):
        repository = self.call("GET", R)
        config = self.call("GET", "/config")
        storage = config["storage_config_list"][0] if config.get("storage_config_list") else config["storage_config"]
        assert storage["blockstore_id"] == repository["storage_id"]
        assert storage["blockstore_type"] == "s3"  # so the addresses are read and written through s3a
        assert repository["storage_namespace"].startswith("s3://")
        self.presigned = storage["pre_sign_support"]

    def status(self, path):
        """getFileStatus: the object, else the marker of a folder, else something below."""
        for wanted in (path, path + "/"):
            answer = self.send("GET", F + "/objects/stat", path=wanted, user_metadata="false", presign="false")
            if answer.status == 200:
                return answer.json["path"]
            assert answer.status == 404
        return "folder" if self.call("GET", F + "/objects/ls", prefix=path + "/", user_metadata="false", presign="false",
                                     amount=1)["results"] else None

    def exists(self, path):
        found = self.call("GET", F + "/objects/ls", prefix=path, user_metadata="false", presign="false", amount=5)["results"]
        return any(o["path"] == path or o["path"].startswith(path + "/") for o in found)

    def write(self, path, data, once=False):
        given = self.call("GET", B + "/staging/backing", path=path, presign=str(self.presigned).lower())
        if self.presigned:
            etag = put_to(given["presigned_url"], data)
        else:
            bucket, key = given["physical_address"].removeprefix("s3://").split("/", 1)
            etag = self.server.s3().put_object(Bucket=bucket, Key=key, Body=data)["ETag"].strip('"')
        link = {"staging": {"physical_address": given["physical_address"]}, "checksum": etag, "size_bytes": len(data)}
        return self.send("PUT", B + "/staging/backing", link, path=path,
                         headers={"If-None-Match": "*"} if once else {}).status

    def read(self, path):
        stats = self.call("GET", F + "/objects/stat", path=path, user_metadata="false", presign=str(self.presigned).lower())
        address = urllib.parse.urlsplit(stats["physical_address"])
        if self.presigned:
            connection = http.client.HTTPConnection(address.hostname, address.port, timeout=DEADLINE)
            connection.request("GET", f"{address.path}?{address.query}", headers={"Range": "bytes=0-8388607"})
            data = connection.getresponse().read()
            connection.close()
            return data
        return self.server.s3().get_object(Bucket=address.netloc, Key=address.path[1:])["Body"].read()

    def mkdirs(self, path):
        if not self.call("GET", F + "/objects/ls", prefix=path + "/", amount=5)["results"]:
            return self.send("POST", B + "/objects", b"", path=path + "/", headers={
                "If-None-Match": "*", "Content-Type": "application/octet-stream"}).status

    def remove_marker(self, path):
        """After a file was made its folder needs no marker, which need not be there."""
        return self.send("DELETE", B + "/objects", path=path + "/").status

    def rename(self, source, destination):
        self.call("POST", B + "/objects/copy", {"src_ref": "main", "src_path": source}, dest_path=destination)
        self.call("DELETE", B + "/objects", path=source, no_tombstone="false")


def test_hadoop(server):
    lake = Hadoop(server)
    lake.repo()
    lake.start()
    assert lake.call("GET", B)["id"] == "main" and lake.send("GET", R + "/branches/none").status == 404
    assert lake.status("out") is None and not lake.exists("out")
    assert lake.mkdirs("out") == 201 and lake.status("out") == "out/"
    assert lake.mkdirs("out") is None
    assert lake.write("out/_temporary/0/part-0", b"rows") == 200
    assert lake.remove_marker("out/_temporary/0") in (204, 404)
    assert lake.remove_marker("out") == 204
    assert lake.status("out") == "folder" and lake.exists("out")
    assert lake.write("out/_temporary/0/part-0", b"other", once=True) == 412
    lake.rename("out/_temporary/0/part-0", "out/part-0")
    assert lake.read("out/part-0") == b"rows"
    below = lake.call("GET", F + "/objects/ls", prefix="out/", after="", amount=1000, delimiter="/", user_metadata="false",
                      presign="false")
    assert [o["path"] for o in below["results"]] == ["out/part-0"]
    assert lake.write("out/_SUCCESS", b"") == 200
    deleted = lake.call("POST", B + "/objects/delete", {"paths": ["out/part-0", "out/_SUCCESS"]})
    assert deleted["errors"] == [] and not lake.exists("out")
    assert lake.paths() == []
