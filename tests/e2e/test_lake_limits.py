"""The limits of the lake (docs/lake.md, "Names and limits"), over the REST API, S3 and the command line: the greatest value
is taken, and one that is greater by one is refused with a reason and changes nothing."""
import itertools
import json
import urllib.parse

import pytest

from conftest import Server, runner
from lake_lab import Lake

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402

R = "/repositories/repo"
B = R + "/branches/main"
KIB, MIB = 1024, 1024 * 1024


@pytest.fixture(scope="module")
def lake(tmp_path_factory):
    """A client with the repository `repo`, whose branches main and dev have different commits."""
    server = Server(tmp_path_factory.mktemp("weir")).ready()
    client = Lake(server)
    client.repo()
    client.put("base")
    client.commit("base")
    client.branch("dev")
    client.put("other", branch="dev")
    client.commit("other", branch="dev")
    yield client
    assert server.stop() == 0, server.err


@pytest.fixture(scope="module")
def fresh():
    """Numbers that no other case has."""
    return itertools.count(1)


def pairs(size):
    """Metadata with `size` bytes of keys and values."""
    return {"key": "v" * (size - 3)}


def keys(count):
    return {f"k{i}": "" for i in range(count)}


def name(size, number):
    """A name of exactly `size` bytes."""
    return f"{number}-".ljust(size, "x")


# Each case: what is limited; the greatest value; words of the refusal; a call with a value of that size, which returns
# the answer. `n` is a new number for each call.

def upload(lake, size, n):
    return lake.send("POST", B + "/objects", b"x", path=name(size, n))


def copied(lake, size, n):
    return lake.send("POST", B + "/objects/copy", {"src_path": "base"}, dest_path=name(size, n))


def staged(lake, size, n, **more):
    lake.server.s3().put_object(Bucket="lake-data", Key="elsewhere", Body=b"x")
    return lake.send("PUT", B + "/objects", {"physical_address": "s3://lake-data/elsewhere", "checksum": "x",
                                             "size_bytes": 1, **more}, path=name(size, n))


def committed(lake, n, **more):
    lake.put(f"commit-{n}")
    return lake.send("POST", B + "/commits", {"message": "m", **more})


def merged(lake, n, **more):
    return lake.send("POST", R + "/refs/dev/merge/main", {"force": True, "allow_empty": True, **more})


def reverted(lake, n, **more):
    lake.send("PUT", B, {"type": "reset"})
    lake.put(f"revert-{n}")
    lake.commit("to be reverted")
    return lake.send("POST", B + "/revert", {"ref": "main", "parent_number": 0, "commit_overrides": {"message": "m", **more}})


def picked(lake, n, **more):
    lake.branch(f"pick-{n}", source="dev~1")
    return lake.send("POST", f"{R}/branches/pick-{n}/cherry-pick",
                     {"ref": "dev", "commit_overrides": {"message": "m", **more}})


def imported(lake, n, paths=1, **more):
    body = {"paths": [{"type": "object", "path": "s3://lake-data/elsewhere", "destination": f"in-{i}"} for i in range(paths)],
            "commit": {"message": "m", **more}}
    lake.server.s3().put_object(Bucket="lake-data", Key="elsewhere", Body=b"x")
    lake.branch(f"import-{n}")
    return lake.send("POST", f"{R}/branches/import-{n}/import", body)


def pulled(lake, n, **more):
    return lake.send("POST", R + "/pulls", {"title": "t", "source_branch": "dev", "destination_branch": "main", **more})


META = "metadata has at most 256 keys and 2048 bytes"
MESSAGE = "a commit's message has at most 65536 bytes"
PATH = "a path has 1 to 1024 bytes"
CASES = {
    "repository": (63, "3 to 63", lambda lake, size, n: lake.send(
        "POST", "/repositories", {"name": name(size, n), "storage_namespace": f"s3://lake-data/limit-{n}"})),
    "namespace": (768, "at most 768 bytes", lambda lake, size, n: lake.send(
        "POST", "/repositories", {"name": f"space-{n}", "storage_namespace": f"s3://lake-data/{n}-".ljust(size, "x")})),
    "branch": (255, "1 to 255", lambda lake, size, n: lake.send(
        "POST", R + "/branches", {"name": name(size, n), "source": "main"})),
    "tag": (255, "1 to 255", lambda lake, size, n: lake.send("POST", R + "/tags", {"id": name(size, n), "ref": "main"})),
    "path of an upload": (1024, PATH, upload),
    "path of a copy": (1024, PATH, copied),
    "path of a staged address": (1024, PATH, staged),
    "path of a reset": (1024, PATH, lambda lake, size, n: lake.send("PUT", B, {"type": "object", "path": name(size, n)})),
    "message of a commit": (64 * KIB, MESSAGE, lambda lake, size, n: committed(lake, n, message="m" * size)),
    "message of a merge": (64 * KIB, MESSAGE, lambda lake, size, n: merged(lake, n, message="m" * size)),
    "message of a revert": (64 * KIB, MESSAGE, lambda lake, size, n: reverted(lake, n, message="m" * size)),
    "message of a cherry-pick": (64 * KIB, MESSAGE, lambda lake, size, n: picked(lake, n, message="m" * size)),
    "message of an import": (64 * KIB, MESSAGE, lambda lake, size, n: imported(lake, n, message="m" * size)),
    "metadata of a commit": (2048, META, lambda lake, size, n: committed(lake, n, metadata=pairs(size))),
    "metadata of a merge": (2048, META, lambda lake, size, n: merged(lake, n, metadata=pairs(size))),
    "metadata of a revert": (2048, META, lambda lake, size, n: reverted(lake, n, metadata=pairs(size))),
    "metadata of an import": (2048, META, lambda lake, size, n: imported(lake, n, metadata=pairs(size))),
    "metadata of an upload": (2048, META, lambda lake, size, n: lake.send(
        "POST", B + "/objects", b"x", path=f"meta-{n}", headers={"x-lakefs-meta-key": "v" * (size - 3)})),
    "metadata of a staged address": (2048, META, lambda lake, size, n: staged(lake, 10, n, metadata=pairs(size))),
    "metadata of an object": (2048, META, lambda lake, size, n: lake.send(
        "PUT", B + "/objects/stat/user_metadata", {"set": pairs(size)}, path="base")),
    "metadata of a repository": (2048, META, lambda lake, size, n: lake.send(
        "POST", R + "/metadata", {"metadata": pairs(size)})),
    "keys of metadata of a commit": (256, META, lambda lake, size, n: committed(lake, n, metadata=keys(size))),
    "paths of a removal": (1000, "paths must have", lambda lake, size, n: lake.send(
        "POST", B + "/objects/delete", {"paths": [f"{n}-{i}" for i in range(size)]})),
    "paths of a commit": (1000, "paths must have", lambda lake, size, n: committed(
        lake, n, paths=[f"commit-{n}"] + [f"p{i}" for i in range(size - 1)])),
    "sources of an import": (100, "paths must have", lambda lake, size, n: imported(lake, n, paths=size)),
    "keys of removed metadata": (1000, "keys must have", lambda lake, size, n: lake.send(
        "DELETE", R + "/metadata", {"keys": [f"k{i}" for i in range(size)]})),
    "title of a pull request": (1024, "a title has 1 to 1024 bytes", lambda lake, size, n: pulled(lake, n, title="t" * size)),
    "description of a pull request": (64 * KIB, "65536 bytes", lambda lake, size, n: pulled(lake, n, description="d" * size)),
    "pattern of protected branches": (1024, "1 to 1024 bytes", lambda lake, size, n: lake.send(
        "POST", R + "/branch_protection", {"pattern": f"never-{n}".ljust(size, "x")})),
}


@pytest.mark.parametrize("case", CASES)
def test_rest_takes_the_greatest_value_and_no_greater_one(lake, fresh, case):
    greatest, words, call = CASES[case]
    taken = call(lake, greatest, next(fresh))
    assert taken.status in (200, 201, 202, 204), taken.body[:300]
    refused = call(lake, greatest + 1, next(fresh))
    assert (refused.status, words in refused.json["message"]) == (400, True), refused.body[:300]
    lake.send("PUT", B, {"type": "reset"})


@pytest.mark.parametrize("call", [committed, merged, reverted, picked, imported], ids=lambda call: call.__name__)
def test_metadata_of_200000_keys_is_refused_by_its_limit(lake, fresh, call):
    answer = call(lake, next(fresh), metadata=keys(200_000))
    assert (answer.status, META in answer.json["message"]) == (400, True), answer.body[:300]
    lake.send("PUT", B, {"type": "reset"})


def test_a_body_of_json_has_4_mib(lake, fresh):
    def commit(size):
        text = json.dumps({"message": "m", "ignored": "x", "allow_empty": True})
        return lake.send("POST", B + "/commits", text + " " * (size - len(text)),
                         headers={"Content-Type": "application/json"})
    assert commit(4 * MIB).status == 201
    refused = commit(4 * MIB + 1)
    assert refused.status == 413 and refused.json["message"]


def test_names_that_cannot_be_are_refused(lake):
    for bad in ("", "-a", "a..b", "a b", "a/b", "a~1", "ä", "a\n"):
        assert lake.send("POST", R + "/branches", {"name": bad, "source": "main"}).status == 400, bad
    for bad in ("", "a..b", "a b", "a/b", "a~1", "a^", "x.lock", "x.", "a\n", "a@b"):
        assert lake.send("POST", R + "/tags", {"id": bad, "ref": "main"}).status == 400, bad
    for bad in ("%ff", "a%00b"):
        assert lake.send("POST", B + "/objects?path=" + bad, b"x").status == 400, bad


# --- S3 ---

def s3_error(call, **more):
    """The status and the code of the refusal of a request; None: it was served."""
    try:
        call(**more)
    except ClientError as e:
        return e.response["ResponseMetadata"]["HTTPStatusCode"], e.response["Error"]["Code"]
    return None


def test_s3_takes_the_greatest_value_and_no_greater_one(lake):
    s3 = lake.server.s3()
    path = "p" * 1024
    assert s3_error(s3.put_object, Bucket="repo", Key="main/" + path, Body=b"x") is None
    assert s3.get_object(Bucket="repo", Key="main/" + path)["Body"].read() == b"x"
    assert s3.list_objects_v2(Bucket="repo", Prefix="main/ppp")["Contents"][0]["Key"] == "main/" + path
    status, code = s3_error(s3.put_object, Bucket="repo", Key="main/" + path + "p", Body=b"x")
    assert (status, code) in ((400, "InvalidArgument"), (400, "KeyTooLongError"))
    assert s3_error(s3.copy_object, Bucket="repo", Key="main/" + path + "p", CopySource="repo/main/base")[0] == 400
    assert s3_error(s3.create_multipart_upload, Bucket="repo", Key="main/" + path + "p")[0] == 400
    branch = "b" * 255
    lake.branch(branch)
    assert s3_error(s3.put_object, Bucket="repo", Key=f"{branch}/{path}", Body=b"x") is None
    assert s3_error(s3.put_object, Bucket="repo", Key="b" * 256 + "/a", Body=b"x")[0] == 404
    assert s3_error(s3.put_object, Bucket="repo", Key="main/m", Body=b"x", Metadata={"key": "v" * 2045}) is None
    assert s3_error(s3.put_object, Bucket="repo", Key="main/m", Body=b"x",
                    Metadata={"key": "v" * 2046}) == (400, "MetadataTooLarge")
    several = {"Objects": [{"Key": f"main/none-{i}"} for i in range(1001)]}
    assert s3_error(s3.delete_objects, Bucket="repo", Delete=several)[0] == 400
    several["Objects"].pop()
    assert s3_error(s3.delete_objects, Bucket="repo", Delete=several) is None
    lake.send("PUT", B, {"type": "reset"})


def test_s3_refuses_keys_that_cannot_be_paths(lake):
    url = urllib.parse.quote(b"main/\xff")
    s3 = lake.server.s3()

    def raw_key(params, **_):
        params["url_path"] = "/repo/" + url
        params["url"] = params["url"].split("/repo/")[0] + "/repo/" + url
    s3.meta.events.register("before-call.s3.PutObject", raw_key)
    assert s3_error(s3.put_object, Bucket="repo", Key="main/x", Body=b"x")[0] == 400
    assert lake.paths(prefix="x") == []


# --- the command line ---

def test_commands_pass_the_reason_of_a_refusal_on(lake, weir, tmp_path):
    run = runner(lake.server, weir)
    file = tmp_path / "f"
    file.write_text("x")
    run("lake", "cp", file, "lake://repo/main/" + "p" * 1024)
    for args, words in [
            (["commit", "lake://repo/main", "-m", "m" * (64 * KIB + 1)], MESSAGE),
            (["commit", "lake://repo/main", "-m", "m", "--meta", "key=" + "v" * 2046], META),
            (["commit", "lake://repo/main", "-m", "m"] + [f"--path=p{i}" for i in range(1001)], "paths must have"),
            (["merge", "lake://repo/dev", "lake://repo/main", "-m", "m" * (64 * KIB + 1)], MESSAGE),
            (["cp", file, "lake://repo/main/" + "p" * 1025], PATH),
            (["branch", "create", "lake://repo/" + "b" * 256], "1 to 255"),
            (["tag", "create", "lake://repo/" + "t" * 256, "main"], "1 to 255"),
            (["repo", "create", "r" * 64, "s3://lake-data/r"], "3 to 63"),
            (["import", "s3://lake-data/x", "lake://repo/dev/x", "-m", "m" * (64 * KIB + 1)], MESSAGE)]:
        assert words in run("lake", *args, status=1), args[:2]
    run("lake", "commit", "lake://repo/main", "-m", "m" * 64 * KIB, "--meta", "key=" + "v" * 2045)
