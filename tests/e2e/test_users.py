"""Users, storages and buckets through the commands and the API."""
import re
import shutil
import stat

import pytest

from conftest import runner


@pytest.fixture
def run(server, weir):
    return runner(server, weir)


def test_a_user_is_added_listed_and_removed(run, server):
    made = run("user", "add", "alice", "--display-name", "Alice A.", "--email", "a@example.org", "--json")[0]
    assert made["name"] == "alice" and len(made["id"]) == 32 and len(made["secret_key"]) == 40
    users = {user["name"]: user for user in run("user", "list", "--json")}
    assert set(users) == {"root", "alice"}
    assert users["alice"] == {"name": "alice", "id": made["id"], "display_name": "Alice A.", "email": "a@example.org",
                              "admin": "no", "keys": made["access_key"]}
    assert made["secret_key"] not in run("user", "list") + server.err
    run("user", "remove", "alice")
    assert "alice" not in run("user", "list")
    assert "there is no user alice" in run("user", "remove", "alice", status=1)


def test_keys_may_be_given_and_names_are_of_one_user(run):
    keys = ["--access-key", "0555b35654ad1656d804", "--secret-key", "h7GhxuBLTrlhVUyxSPUKUV8r/2EI4ngqJxD7iBdBYLhwluN30JaT3Q=="]
    made = run("user", "add", "tester", "--id", "0123456789abcdef", *keys, "--json")[0]
    assert (made["access_key"], made["secret_key"], made["id"]) == (keys[1], keys[3], "0123456789abcdef")
    assert "name is taken" in run("user", "add", "tester", status=1)
    assert "id is taken" in run("user", "add", "other", "--id", "0123456789abcdef", status=1)
    assert "access key is taken" in run("user", "add", "other", *keys, status=1)
    assert "go together" in run("user", "add", "other", "--access-key", "ABC", status=2)
    assert "a name is" in run("user", "add", "a b", status=1)
    assert "first administrator" in run("user", "remove", "root", status=1)


def test_a_key_is_replaced(run):
    first = run("user", "add", "alice", "--json")[0]["access_key"]
    second = run("user", "key", "alice", "--json")[0]
    run("user", "key", "alice", "--remove", first)
    assert [u["keys"] for u in run("user", "list", "--json") if u["name"] == "alice"] == [second["access_key"]]
    assert "no such access key" in run("user", "key", "alice", "--remove", first, status=1)


def test_a_restart_keeps_users_and_storages_and_no_secret_is_in_plain_text(serve, weir, tmp_path):
    server = serve().ready()
    run = runner(server, weir)
    made = run("user", "add", "alice", "--json")[0]
    run("storage", "add", "disk2", tmp_path / "disk2")
    assert server.stop() == 0
    again = serve(data=server.data).ready()
    run = runner(again, weir)
    assert made["access_key"] in run("user", "list")
    assert [s["name"] for s in run("storage", "list", "--json")] == ["local", "disk2"]
    assert stat.S_IMODE((server.data / "secrets.key").stat().st_mode) == 0o600
    for path in server.data.rglob("*"):
        if path.is_file():
            assert made["secret_key"].encode() not in path.read_bytes(), path
    assert again.stop() == 0


def test_a_wrong_key_file_stops_the_start(serve):
    server = serve().ready()
    assert server.stop() == 0
    (server.data / "secrets.key").write_bytes(b"x" * 32)
    again = serve(data=server.data)
    assert again.wait() == 2
    assert re.search(r"secrets\.key is not the key file", again.err) and len(again.err.splitlines()) == 1


def test_storages_are_added_tested_and_scrubbed(run, tmp_path):
    listed = run("storage", "list", "--json")
    assert [(s["name"], s["kind"], s["main"]) for s in listed] == [("local", "local", "yes")]
    assert run("storage", "add", "disk2", tmp_path / "disk2", "--json")[0]["name"] == "disk2"
    assert run("storage", "test", "disk2", "--json") == [{"name": "disk2", "ok": "yes", "error": ""}]
    assert run("storage", "scrub", "disk2", "--json") == []
    assert "already" in run("storage", "add", "disk2", tmp_path / "other", status=1)
    assert "absolute" in run("storage", "add", "disk3", "relative", status=1)
    assert "--endpoint http://far.example" in run("storage", "add", "far", "http://far.example", status=2)
    rows = {s["name"]: (s["folder"], s["url"]) for s in run("storage", "list", "--json")}
    assert rows["disk2"] == (str(tmp_path / "disk2"), "") and rows["local"][0].endswith("/objects")
    assert str(tmp_path / "disk2") in run("storage", "list")
    (tmp_path / "disk2" / "FORMAT").unlink()
    assert "FORMAT is missing" in run("storage", "test", "disk2", status=1)
    assert "no storage" in run("storage", "test", "nowhere", status=1)
    assert "there is no storage nowhere" in run("storage", "remove", "nowhere", status=1)
    assert "there is no storage nowhere" in run("storage", "key", "nowhere", status=1)
    assert "the storage local is not a remote one" in run("storage", "key", "local", status=1)
    assert "local storages were added" in run("backup", tmp_path / "copy", status=1)


def test_routes_are_set_before_the_bucket_is_made(run, tmp_path):
    run("user", "add", "alice")
    run("storage", "add", "disk2", tmp_path / "disk2")
    run("bucket", "route", "photos", "disk2", "--user", "alice")
    assert "no storage" in run("bucket", "route", "photos", "nowhere", "--user", "alice", status=1)
    assert "name the user" in run("bucket", "route", "photos", "disk2", status=1)
    run("bucket", "route", "photos", "--remove", "--user", "alice")
    run("bucket", "route", "photos", "local", "--block")
    run("bucket", "route", "photos", "local", "--unblock")
    assert run("bucket", "list", "--json") == []
    assert "no bucket photos" in run("bucket", "show", "photos", status=1)


@pytest.mark.parametrize("path, body, status", [
    ("/api/v1/users", {"name": 7}, 400), ("/api/v1/users", {}, 400), ("/api/v1/users", "[]", 400),
    ("/api/v1/users/nobody/keys", {}, 404), ("/api/v1/storages", {"kind": "tape"}, 400),
    ("/api/v1/storages/nowhere/test", {}, 404), ("/api/v1/buckets/photos/route", {"storage": 1}, 400),
])
def test_wrong_calls_are_refused(server, path, body, status):
    answer = server.post(path, body, keys=server.keys, headers={"Content-Type": "application/json"})
    assert answer.status == status, answer.body


def test_without_keys_nothing_is_told(server):
    for path in ["/api/v1/users", "/api/v1/storages", "/api/v1/buckets", "/api/v1/users/root"]:
        assert server.get(path).status == 401
    answer = server.request("PATCH", "/api/v1/users/root", keys=server.keys)
    assert answer.status == 405 and answer.headers["Allow"] == "GET, DELETE"


def test_a_command_without_keys_says_where_they_were_looked_for(server, weir, tmp_path):
    done = weir("storage", "list", "--data", tmp_path / "elsewhere", "--url", server.url)
    assert done.returncode == 1 and done.stderr.count("\n") == 1
    assert f"{tmp_path}/elsewhere/credentials" in done.stderr
    assert "WEIR_ACCESS_KEY and WEIR_SECRET_KEY" in done.stderr


@pytest.mark.parametrize("command", [("storage", "list"), ("status",), ("user", "add", "alice")])
def test_an_address_that_is_not_the_api_is_said_to_be_none(server, weir, command):
    done = weir(*command, "--data", server.data, "--url", server.s3_url)
    assert done.returncode == 1
    assert f"{server.s3_url} is not weir's API" in done.stderr and "api.listen" in done.stderr


def test_a_user_s_buckets_are_where_the_route_says(server, run, tmp_path):
    made = run("user", "add", "alice", "--json")[0]
    run("storage", "add", "disk2", tmp_path / "disk2")
    run("bucket", "route", "photos", "disk2", "--user", "alice")
    client = server.s3((made["access_key"], made["secret_key"]))
    client.create_bucket(Bucket="photos")
    client.create_bucket(Bucket="notes")
    client.put_object(Bucket="photos", Key="cat", Body=b"c" * 200000)
    assert client.get_object(Bucket="photos", Key="cat")["Body"].read() == b"c" * 200000
    assert {(b["name"], b["storage"], b["owner"]) for b in run("bucket", "list", "--json")} == {
        ("notes", "local", made["id"]), ("photos", "disk2", made["id"])}
    assert run("bucket", "show", "photos", "--json")[0]["storage"] == "disk2"
    assert run("storage", "scrub", "disk2", "--json") == []
    run("user", "remove", "alice")
    with pytest.raises(Exception, match="InvalidAccessKeyId"):
        client.list_buckets()


def test_a_backup_holds_users_and_objects(serve, weir, tmp_path):
    server = serve().ready()
    run = runner(server, weir)
    made = run("user", "add", "alice", "--json")[0]
    client = server.s3((made["access_key"], made["secret_key"]))
    client.create_bucket(Bucket="photos")
    for size in (10, 200000):
        client.put_object(Bucket="photos", Key=str(size), Body=b"c" * size)
    run("backup", tmp_path / "copy")
    client.delete_object(Bucket="photos", Key="200000")
    assert server.stop() == 0
    copy = serve(data=tmp_path / "copy").ready()
    client = copy.s3((made["access_key"], made["secret_key"]))
    for size in (10, 200000):
        assert client.get_object(Bucket="photos", Key=str(size))["Body"].read() == b"c" * size
    assert runner(copy, weir)("storage", "scrub", "local", "--json") == []
    assert copy.stop() == 0


def test_policies_that_are_set_are_listed(run):
    run("user", "add", "alice", "--id", "id-of-alice")
    assert run("bucket", "route", "--json") == []
    run("bucket", "route", "photos", "local", "--user", "alice")
    run("bucket", "route", "secret", "local", "--block")
    assert run("bucket", "route", "--json") == [
        {"user": "", "user_id": "", "bucket": "secret", "storage": "local", "blocked": "yes"},
        {"user": "alice", "user_id": "id-of-alice", "bucket": "photos", "storage": "local", "blocked": "no"}]
    assert "alice" in run("bucket", "route")
    assert "name a bucket" in run("bucket", "route", "--remove", status=2)


def test_an_administrator_manages_with_keys_of_its_own(run, server):
    made = run("user", "add", "ann", "--admin", "--json")[0]
    plain = run("user", "add", "bob", "--json")[0]
    assert server.get("/api/v1/users", keys=(made["access_key"], made["secret_key"])).status == 200
    assert server.get("/api/v1/users", keys=(plain["access_key"], plain["secret_key"])).status == 401
    run("user", "remove", "ann")
    assert server.get("/api/v1/users", keys=(made["access_key"], made["secret_key"])).status == 401


def test_a_storage_s_folder_is_of_one_weir_only(serve, weir, tmp_path):
    server = serve().ready()
    runner(server, weir)("storage", "add", "disk2", tmp_path / "disk2")
    server.stop()
    shutil.copytree(server.data, tmp_path / "copy")
    server = serve(data=server.data).ready()
    second = serve(data=tmp_path / "copy")
    assert second.wait() == 2
    assert second.err.count("\n") == 1, second.err
    assert "storage disk2" in second.err and str(tmp_path / "disk2") in second.err
    assert f"process {server.process.pid}" in second.err
    server.stop()
    serve(data=tmp_path / "copy").ready()
