"""lakeFS's REST API: every operation of the table, and rights."""
import base64
import hashlib
import hmac
import http.server
import json
import re
import threading
import time
import urllib.error
import urllib.request

import pytest

from conftest import free_port, runner, secret, wait_for
from lake_lab import NO_OPENAPI, OPERATION, PREFIX, REFUSED, Lake, openapi, quote

R = "/repositories/repo"
B = R + "/branches/main"
F = R + "/refs/main"


@pytest.fixture
def lake(server):
    """A client with the repository `repo`."""
    client = Lake(server)
    client.repo()
    return client


@pytest.fixture
def signing(serve):
    """The same with presigned URLs."""
    port = free_port()
    server = serve("--s3.listen", f"127.0.0.1:{port}", "--s3.url", f"http://127.0.0.1:{port}").ready()
    client = Lake(server)
    client.repo()
    return client


@pytest.fixture
def other(server, weir):
    """other(name) makes a user and returns a client."""
    def make(name):
        made = runner(server, weir)("user", "add", name, "--json")[0]
        client = Lake(server, (made["access_key"], made["secret_key"]))
        client.id = made["id"]
        return client
    return make


# --- the table of operations ---

def test_every_operation_is_a_route_and_no_other_is(server):
    routes = server.get("/api/v1?limit=1000", keys=server.keys)
    assert routes.status == 200
    served = {(r["method"], r["path"]) for r in json.loads(routes.body)["routes"]}
    assert {(o.method, PREFIX + o.path) for o in OPERATION.values()} <= served
    assert len(OPERATION) == 134 and len(REFUSED) == 35


@pytest.mark.skipif(not openapi(), reason=NO_OPENAPI)
def test_the_table_is_that_of_the_published_api():
    published = {(spec["operationId"], method.upper(), path)
                 for path, methods in openapi()["paths"].items()
                 for method, spec in methods.items() if "operationId" in spec}
    assert published == {(o.id, o.method, o.path) for o in OPERATION.values()}


def test_operations_that_are_not_served_say_so(server):
    lake = Lake(server)
    for name in REFUSED:
        operation = OPERATION[name]
        lake.fails(operation.method, operation.example(), 501, f"{name} is not served: weir ", body={})


def test_every_operation_but_the_open_ones_needs_a_user(server):
    stranger = Lake(server, ("AKNOBODY", "wrong-secret"))
    stranger.authorization = lambda: None
    open_to_all = {"healthCheck", "getSetupState", "setup", "login", "getAuthCapabilities", "setupCommPrefs",
                   "externalPrincipalLogin", "stsLogin", "oauthCallback"}
    for operation in OPERATION.values():
        answer = stranger.send(operation.method, operation.example(), body={} if operation.method != "GET" else None)
        if operation.id in open_to_all:
            assert answer.status != 401 or operation.id == "login", operation
        else:
            assert answer.status == 401, operation
            assert operation.method == "HEAD" or answer.json == {"message": "error authenticating request"}


# --- the server ---

def test_the_server_describes_itself(server):
    lake = Lake(server)
    lake.call("GET", "/healthcheck")
    config = lake.call("GET", "/config")
    assert "version_context" not in config["version_config"]
    storage = config["storage_config"]
    assert config["storage_config_list"] == [storage] == [lake.call("GET", "/config/storage")]
    assert storage["blockstore_type"] == "s3" and re.match(storage["blockstore_namespace_ValidityRegex"], "s3://x")
    assert storage["pre_sign_support"] is False
    assert lake.call("GET", "/config/version") == config["version_config"]
    assert lake.call("GET", "/config/garbage-collection") == {"grace_period": 86400}
    assert lake.call("GET", "/setup_lakefs")["state"] == "initialized"
    lake.fails("POST", "/setup_lakefs", 409, "already initialized", body={"username": "admin"})
    lake.call("POST", "/statistics", {"events": []})
    lake.fails("POST", "/statistics", 400, "events is required", body={})
    assert lake.call("GET", "/auth/capabilities") == {"invite_user": False, "forgot_password": False}


# --- who calls ---

def token_parts(token):
    def decoded(part):
        return json.loads(base64.urlsafe_b64decode(part + "=" * (-len(part) % 4)))
    header, claims, _ = token.split(".")
    return decoded(header), decoded(claims)


def test_a_user_logs_in_with_keys_and_calls_with_the_token(server):
    lake = Lake(server)
    access, secret_key = server.keys
    login = lake.call("POST", "/auth/login", {"access_key_id": access, "secret_access_key": secret_key})
    header, claims = token_parts(login["token"])
    assert header == {"alg": "HS256", "kid": access, "typ": "JWT"}
    assert (claims["iss"], claims["aud"], claims["sub"]) == ("auth", "login", "root")
    assert claims["exp"] == login["token_expiration"]
    assert abs(claims["exp"] - claims["iat"] - 7 * 86400) <= 1 and abs(claims["iat"] - time.time()) < 60
    assert Lake(server, token=login["token"]).call("GET", "/user")["user"]["id"] == "root"


def test_forged_tokens_are_refused(server):
    lake = Lake(server)
    access, secret_key = server.keys
    token = lake.call("POST", "/auth/login", {"access_key_id": access, "secret_access_key": secret_key})["token"]
    header, claims, signature = token.split(".")

    def encoded(value):
        return base64.urlsafe_b64encode(json.dumps(value).encode()).decode().rstrip("=")

    def signed(head, body, key):
        mac = hmac.new(key, f"{encoded(head)}.{encoded(body)}".encode(), hashlib.sha256).digest()
        return f"{encoded(head)}.{encoded(body)}." + base64.urlsafe_b64encode(mac).decode().rstrip("=")
    good = {"iss": "auth", "aud": "login", "sub": "root", "exp": int(time.time()) + 1000}
    forged = ["", ".", "..", header, f"{header}.{claims}", f"{header}.{claims}.", f"{header}.{claims}.{signature[:-2]}",
              f"{header}.{encoded({**good, 'sub': 'other'})}.{signature}",
              f"{encoded({'alg': 'none'})}.{claims}.", f"{encoded({'alg': 'none'})}.{claims}.{signature}",
              signed({"alg": "HS256", "typ": "JWT"}, good, b""), "x" * 5000]
    for text in forged:
        Lake(server, token=text or " ").fails("GET", "/user", 401, "error authenticating request")


def test_a_removed_user_has_no_token_any_more(server, weir, other):
    alice = other("alice")
    login = alice.call("POST", "/auth/login", {"access_key_id": alice.keys[0], "secret_access_key": alice.keys[1]})
    by_token = Lake(server, token=login["token"])
    assert by_token.call("GET", "/user")["user"]["id"] == "alice"
    runner(server, weir)("user", "remove", "alice")
    by_token.fails("GET", "/user", 401, "error authenticating request")


def test_a_token_ends_with_its_key(server, weir, other):
    run, alice = runner(server, weir), other("alice")
    second = run("user", "key", "alice", "--json")[0]
    keys = [alice.keys, (second["access_key"], second["secret_key"])]
    tokens = [Lake(server, token=alice.call("POST", "/auth/login", {"access_key_id": a, "secret_access_key": s})["token"])
              for a, s in keys]
    run("user", "key", "alice", "--remove", keys[0][0])
    tokens[0].fails("GET", "/user", 401, "error authenticating request")
    assert tokens[1].call("GET", "/user")["user"]["id"] == "alice"
    # A later key of the same name is another key.
    made = server.post("/api/v1/users/alice/keys", {"access_key": keys[0][0], "secret_key": secret("another-secret")},
                       keys=server.keys)
    assert made.status == 201, made.body
    tokens[0].fails("GET", "/user", 401, "error authenticating request")


def test_guesses_of_keys_are_limited(server):
    wrong = Lake(server, (server.keys[0], "not-the-secret"))
    answers = [wrong.send("GET", "/user").status for _ in range(12)]
    assert answers[:10] == [401] * 10 and answers[11] == 429
    assert wrong.send("POST", "/auth/login", {"access_key_id": "a", "secret_access_key": "b"}).status == 429


def test_a_page_of_another_site_changes_nothing(lake):
    for headers in ({"Origin": "https://evil.example"}, {"Sec-Fetch-Site": "cross-site"}):
        assert lake.send("POST", B + "/objects", b"x", path="a", headers=headers).status == 403
        assert lake.send("DELETE", R, headers=headers).status == 403
    assert lake.paths() == []


def test_paths_that_no_operation_has(lake, other):
    """Many clients and proxies take . and .. out of a path, so that another path arrives."""
    stranger = Lake(lake.server, ("AKNOBODY", "wrong-secret"))
    stranger.authorization = lambda: None
    for client in (lake, other("alice"), stranger):
        for path in (R + "/refs/commits", R + "/nothing", "/repositories/a/b/c/d/e/f"):
            answer = client.send("GET", path)
            assert (answer.status, answer.json) == (404, {"message": "invalid API endpoint"}), path
        assert client.send("DELETE", F + "/commits").status == 405
        assert client.send("GET", R + "/refs/%zz/commits").status == 400
    assert stranger.send("GET", "/nothing").status == 401


def test_refs_that_cannot_be(lake):
    for ref in ("%00", "main%00", ".", "..", "%2e%2e", "a%20b", "~1", "x" * 300):
        status, words = (400, "a bad escape in the path") if "%00" in ref else (404, "not found")
        for path in ("/commits", "/objects/ls"):
            lake.fails("GET", f"{R}/refs/{ref}{path}", status, words)
        assert lake.send("GET", f"{R}/branches/{ref}").status in (400, 404), ref
        assert lake.send("POST", f"{R}/branches/{ref}/commits", {"message": "m"}).status in (400, 404), ref
        assert lake.send("POST", f"{R}/branches/{ref}/objects", b"x", path="a").status in (400, 404), ref
        assert lake.send("GET", f"/repositories/{ref}").status in (400, 404), ref
    assert [b["id"] for b in lake.pages(R + "/branches")] == ["main"]


# --- repositories ---

def test_repositories_are_made_listed_and_deleted(server):
    lake = Lake(server)
    made = lake.repo("weather", default_branch="trunk")
    assert made["default_branch"] == "trunk" and made["storage_namespace"] == "s3://lake-data/weather"
    assert made["storage_id"] == "" and abs(made["creation_date"] - time.time()) < 60
    assert lake.call("GET", "/repositories/weather") == made
    for name in ("alpha", "beta", "gamma"):
        lake.repo(name)
    names = [r["id"] for r in lake.pages("/repositories", amount=2)]
    assert names == ["alpha", "beta", "gamma", "weather"]
    assert [r["id"] for r in lake.pages("/repositories", prefix="g")] == ["gamma"]
    assert [r["id"] for r in lake.pages("/repositories", search="eath")] == ["weather"]
    lake.call("DELETE", "/repositories/weather")
    lake.fails("GET", "/repositories/weather", 404, "repository not found")
    lake.fails("DELETE", "/repositories/weather", 404, "repository not found")


def test_a_page_of_repositories_costs_no_more_than_it_may_show(server, other):
    """A user who sees few of many repositories gets pages with few rows, and reaches them all."""
    root, bob = Lake(server), other("bob")
    root.repo("aaa")
    bob.repo("zzz", namespace="s3://bob-data/zzz")

    def make(part):
        for i in part:
            root.call("POST", "/repositories", {"name": f"many-{i}", "storage_namespace": f"s3://lake-data/many/{i}"})
    threads = [threading.Thread(target=make, args=(range(k, 1000, 4),)) for k in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    first = bob.call("GET", "/repositories", amount=100)
    assert first["results"] == [] and first["pagination"]["has_more"]
    assert [r["id"] for r in bob.pages("/repositories", amount=100)] == ["zzz"]
    assert [r["id"] for r in root.pages("/repositories", search="zz")] == ["zzz"]
    assert len(list(root.pages("/repositories", amount=1000))) == 1002
    one = root.call("GET", "/repositories", amount=1, after="aaa")
    assert [r["id"] for r in one["results"]] == ["many-0"] and one["pagination"]["next_offset"] == "many-0"


@pytest.mark.parametrize("body, status, message", [
    ({"name": "Up", "storage_namespace": "s3://lake-data/x"}, 400, ""),
    ({"name": "ab", "storage_namespace": "s3://lake-data/x"}, 400, ""),
    ({"name": "fine"}, 400, "storage_namespace is required"),
    ({"storage_namespace": "s3://lake-data/x"}, 400, "name is required"),
    ({"name": "fine", "storage_namespace": "local://x"}, 400, "s3://"),
    ({"name": "fine", "storage_namespace": "s3://nowhere/x"}, 400, "'nowhere' is not there"),
    ({"name": "fine", "storage_namespace": "s3://lake-data/repo"}, 400, "already in use"),
    ({"name": "fine", "storage_namespace": "s3://repo/x"}, 400, ""),
    ({"name": "repo", "storage_namespace": "s3://lake-data/other"}, 409, "already exists"),
    ({"name": "lake-data", "storage_namespace": "s3://lake-data/other"}, 409, ""),
    ({"name": "fine", "storage_namespace": "s3://lake-data/x", "storage_id": "s2"}, 400, "storage_id"),
    ({"name": "fine", "storage_namespace": "s3://lake-data/x", "sample_data": True}, 501, "sample data"),
    ({"name": "fine", "storage_namespace": "s3://lake-data/x", "default_branch": "a b"}, 400, ""),
    ({"name": 7, "storage_namespace": "s3://lake-data/x"}, 400, "name must be a string"),
    ([], 400, "must be a JSON object"),
])
def test_repositories_that_cannot_be_made(lake, body, status, message):
    lake.fails("POST", "/repositories", status, message, body=body)
    assert [r["id"] for r in lake.pages("/repositories")] == ["repo"]


def test_the_error_of_a_namespace_in_use_is_one_line(lake):
    lake.server.s3().put_object(Bucket="lake-data", Key="foreign/_lakefs/dummy", Body=b"another program\nand more\n")
    for space, words in (("repo", r"overlaps with .* of repository repo"), ("foreign", r"\(another program\)")):
        answer = lake.send("POST", "/repositories", {"name": "fine", "storage_namespace": f"s3://lake-data/{space}"})
        assert answer.status == 400
        assert re.fullmatch(f"storage namespace already in use: s3://lake-data/{space} {words}", answer.json["message"])


def test_a_read_only_repository_changes_by_force_alone(lake):
    lake.repo("fixed", read_only=True)
    fixed = "/repositories/fixed"
    lake.fails("POST", fixed + "/branches/main/objects", 403, "read-only repository", body=b"x", path="a")
    lake.fails("POST", fixed + "/branches", 403, "read-only repository", body={"name": "b", "source": "main"})
    lake.fails("POST", fixed + "/tags", 403, "read-only repository", body={"id": "t", "ref": "main"})
    lake.put("a", repo="fixed", force="true")
    lake.fails("POST", fixed + "/branches/main/commits", 403, "read-only repository", body={"message": "m"})
    lake.commit(repo="fixed", force=True)
    lake.call("POST", fixed + "/branches", {"name": "b", "source": "main", "force": True})
    lake.fails("DELETE", fixed, 403, "read-only repository")
    lake.call("DELETE", fixed, force="true")


def test_metadata_of_a_repository(lake):
    assert lake.call("GET", R + "/metadata") == {}
    lake.call("POST", R + "/metadata", {"metadata": {"a": "1", "b": "2"}})
    lake.call("POST", R + "/metadata", {"metadata": {"b": "3"}})
    assert lake.call("GET", R + "/metadata") == {"a": "1", "b": "3"}
    lake.call("DELETE", R + "/metadata", {"keys": ["a", "none"]})
    assert lake.call("GET", R + "/metadata") == {"b": "3"}
    lake.fails("POST", R + "/metadata", 400, "metadata must be an object", body={"metadata": {"a": 1}})
    lake.fails("POST", R + "/metadata", 400, "metadata has at most", body={"metadata": {"a": "x" * 5000}})


# --- branches and tags ---

def test_branches(lake):
    head = lake.call("GET", B)["commit_id"]
    answer = lake.send("POST", R + "/branches", {"name": "dev", "source": "main"})
    assert (answer.status, answer.body.decode(), answer.headers["Content-Type"]) == (201, head, "text/html")
    lake.branch("hidden", hidden=True)
    assert [b["id"] for b in lake.pages(R + "/branches", amount=1)] == ["dev", "main"]
    assert [b["id"] for b in lake.pages(R + "/branches", show_hidden="true")] == ["dev", "hidden", "main"]
    assert [b["id"] for b in lake.pages(R + "/branches", prefix="d")] == ["dev"]
    assert lake.call("GET", R + "/branches/dev") == {"id": "dev", "commit_id": head}
    lake.fails("POST", R + "/branches", 409, "branch already exists: not unique", body={"name": "dev", "source": "main"})
    lake.fails("POST", R + "/branches", 404, "not found", body={"name": "new", "source": "none"})
    lake.fails("POST", R + "/branches", 400, "", body={"name": "a b", "source": "main"})
    lake.fails("POST", R + "/branches", 400, "source is required", body={"name": "new"})
    lake.fails("GET", R + "/branches/none", 404, "branch not found")
    lake.call("DELETE", R + "/branches/dev")
    lake.fails("DELETE", R + "/branches/dev", 404, "branch not found")
    lake.fails("DELETE", B, 403, "cannot delete repository default branch")


def test_a_commit_whose_tree_is_missing_gets_no_name(lake, serve):
    lake.put("a")
    lost = lake.commit()
    lake.put("b")
    lake.commit()
    lake.server.stop()  # nothing of the tree stays in memory
    lake.server = serve(data=lake.server.data).ready()
    lake.server.s3().delete_object(Bucket="lake-data", Key=f"repo/_lakefs/{lost['meta_range_id']}")
    for method, path, body, query in (("POST", R + "/tags", {"id": "t", "ref": lost["id"]}, {}),
                                      ("POST", R + "/branches", {"name": "x", "source": lost["id"]}, {}),
                                      ("PUT", R + "/branches/main/hard_reset", None, {"ref": lost["id"]})):
        answer = lake.send(method, path, body, **query)
        assert answer.status == 410, (path, answer.status, answer.body)
        assert lost["id"] in answer.json["message"] and lost["meta_range_id"] in answer.json["message"]
    assert lake.paths() == ["a", "b"]
    assert [b["id"] for b in lake.pages(R + "/branches")] == ["main"] and not list(lake.pages(R + "/tags"))


def test_tags(lake):
    head = lake.call("GET", B)["commit_id"]
    assert lake.call("POST", R + "/tags", {"id": "v1", "ref": "main"}) == {"id": "v1", "commit_id": head}
    assert lake.call("GET", R + "/tags/v1") == {"id": "v1", "commit_id": head}
    lake.call("POST", R + "/tags", {"id": "v2", "ref": head})
    assert [t["id"] for t in lake.pages(R + "/tags", amount=1)] == ["v1", "v2"]
    lake.fails("POST", R + "/tags", 409, "tag already exists: not unique", body={"id": "v1", "ref": "main"})
    lake.fails("POST", R + "/tags", 404, "not found", body={"id": "v3", "ref": "none"})
    lake.fails("POST", R + "/tags", 400, "", body={"id": "a..b", "ref": "main"})
    lake.call("DELETE", R + "/tags/v1")
    lake.fails("DELETE", R + "/tags/v1", 404, "tag not found")
    lake.fails("GET", R + "/tags/v1", 404, "tag not found")


def test_protected_branches(lake):
    rules = R + "/settings/branch_protection"
    first = lake.send("GET", rules)
    assert (first.status, first.json, first.headers["ETag"]) == (200, [], "")
    lake.call("PUT", rules, [{"pattern": "ma*"}], headers={"If-Match": first.headers["ETag"]})
    second = lake.send("GET", rules)
    assert second.json == [{"pattern": "ma*"}] and second.headers["ETag"]
    lake.fails("PUT", rules, 412, "", body=[], headers={"If-Match": first.headers["ETag"] or '"x"'})
    lake.fails("POST", B + "/objects", 403, "protected branch", body=b"x", path="a")
    lake.fails("POST", B + "/commits", 403, "protected branch", body={"message": "m"})
    lake.branch("dev")
    lake.put("a", branch="dev")
    lake.commit(branch="dev")
    lake.call("POST", R + "/refs/dev/merge/main", {})
    assert lake.paths() == ["a"]
    old = R + "/branch_protection"
    lake.call("POST", old, {"pattern": "dev"})
    lake.fails("POST", old, 409, "rule already exists", body={"pattern": "dev"})
    assert sorted(rule["pattern"] for rule in lake.call("GET", old)) == ["dev", "ma*"]
    lake.call("DELETE", old, {"pattern": "ma*"})
    lake.fails("DELETE", old, 404, "rule not found", body={"pattern": "ma*"})
    lake.call("GET", old + "/set_allowed")
    lake.call("PUT", rules, [])
    lake.put("b")
    lake.fails("PUT", rules, 400, "JSON array", body={"pattern": "x"})
    lake.fails("PUT", rules, 400, "", body=[{"pattern": ""}])


# --- commits and history ---

def test_commits(lake):
    lake.put("a")
    commit = lake.commit("first", metadata={"k": "v", "a": "b"}, date=1700000000)
    assert commit["message"] == "first" and commit["metadata"] == {"k": "v", "a": "b"}
    assert commit["creation_date"] == 1700000000 and commit["committer"] == "root" and commit["generation"] == 2
    for ref in (commit["id"], commit["id"][:12], "main", "main@", "main~0"):
        assert lake.call("GET", R + "/commits/" + quote(ref)) == commit
    assert lake.call("GET", R + "/commits/main~1")["message"] == "Repository created"
    lake.fails("POST", B + "/commits", 400, "no changes", body={"message": "again"})
    assert lake.commit("empty", allow_empty=True)["parents"] == [commit["id"]]
    lake.fails("POST", B + "/commits", 400, "message is required", body={})
    lake.fails("POST", B + "/commits", 400, "metadata", body={"message": "m", "metadata": {"a": 1}})
    lake.fails("POST", R + "/branches/none/commits", 404, "branch not found", body={"message": "m"})
    lake.fails("GET", R + "/commits/none", 404, "not found")
    lake.fails("GET", R + "/commits/" + "0" * 64, 404, "not found")


def test_a_commit_of_some_paths(lake):
    for path in ("a", "dir/b", "dir/c", "e"):
        lake.put(path)
    lake.commit("some", paths=["a", "dir/"])
    assert lake.paths(ref="main@") == ["a", "dir/b", "dir/c"]
    assert [d["path"] for d in lake.pages(B + "/diff")] == ["e"]


def test_the_log(lake):
    for i in range(5):
        lake.put(f"dir{i % 2}/file", f"{i}".encode())
        lake.commit(f"c{i}", date=1700000000 + i * 100)
    log = F + "/commits"
    assert [c["message"] for c in lake.pages(log, amount=2)] == ["c4", "c3", "c2", "c1", "c0", "Repository created"]
    assert [c["message"] for c in lake.pages(log, objects="dir0/file")] == ["c4", "c2", "c0"]
    assert [c["message"] for c in lake.pages(log, prefixes=["dir1/", "none/"])] == ["c3", "c1"]
    stop = lake.call("GET", R + "/commits/main~2")["id"]
    assert [c["message"] for c in lake.pages(log, stop_at=stop)] == ["c4", "c3", "c2"]
    assert [c["message"] for c in lake.pages(log, since="2023-11-14T22:18:19Z")] == ["c4", "c3"]
    one = lake.call("GET", log, amount=1, limit="true")
    assert [c["message"] for c in one["results"]] == ["c4"] and one["pagination"]["has_more"] is False
    lake.fails("GET", log, 400, "since must be a time", since="yesterday")
    lake.fails("GET", R + "/refs/none/commits", 404, "not found")


def test_differences(lake):
    lake.put("same")
    lake.put("gone", b"12345")
    lake.put("old", b"1")
    lake.commit()
    lake.branch("dev")
    lake.put("old", b"22", branch="dev", headers={"Content-Type": "text/plain"})
    lake.put("dir/new", b"333", branch="dev")
    lake.remove("gone", branch="dev")
    expected = [("added", "dir/new", 3), ("removed", "gone", 0), ("changed", "old", 2)]
    staged = list(lake.pages(R + "/branches/dev/diff", amount=1))
    assert [(d["type"], d["path"], d["size_bytes"]) for d in staged] == expected
    lake.commit(branch="dev")
    diff = F + "/diff/dev"
    found = list(lake.pages(diff, amount=1))
    assert [(d["type"], d["path"]) for d in found] == [e[:2] for e in expected]
    folded = list(lake.pages(diff, delimiter="/"))
    assert ("prefix_changed", "dir/", "common_prefix") in [(d["type"], d["path"], d["path_type"]) for d in folded]
    right = [d for d in lake.pages(diff, include_right_stats="true") if d["path"] == "old"][0]["right"]
    assert right["checksum"] == hashlib.md5(b"22").hexdigest() and right["content_type"] == "text/plain"
    lake.put("old", b"999")
    lake.commit()
    assert [d["type"] for d in lake.pages(diff, prefix="old")] == ["conflict"]
    assert [d["type"] for d in lake.pages(diff, prefix="old", type="two_dot")] == ["changed"]
    assert [d["path"] for d in lake.pages(R + "/refs/main/diff/main$")] == []
    lake.put("staged")
    assert [d["path"] for d in lake.pages(R + "/refs/main@/diff/" + quote("main$"), type="two_dot")] == ["staged"]
    lake.fails("GET", diff, 400, "type must be", type="four_dot")
    lake.fails("GET", F + "/diff/none", 404, "not found")


# --- merge, revert, cherry-pick, reset ---

def test_merges(lake):
    lake.put("a", b"1")
    base = lake.commit()["id"]
    lake.branch("dev")
    lake.fails("POST", R + "/refs/dev/merge/main", 400, "no changes", body={})
    lake.fails("POST", R + "/refs/dev/merge/main", 400, "no changes")
    lake.put("b", branch="dev")
    source = lake.commit(branch="dev")["id"]
    found = lake.call("GET", R + "/refs/dev/merge/main")
    assert found == {"source_commit_id": source, "destination_commit_id": base, "base_commit_id": base}
    done = lake.call("POST", R + "/refs/dev/merge/main", {"message": "M", "metadata": {"x": "y"}})["reference"]
    commit = lake.call("GET", R + "/commits/main")
    assert commit["id"] == done and commit["message"] == "M" and commit["parents"] == [base, source]
    assert commit["metadata"]["x"] == "y"
    lake.put("c", branch="dev")
    squashed = lake.commit(branch="dev")["id"]
    lake.call("POST", R + "/refs/dev/merge/main", {"squash_merge": True})
    commit = lake.call("GET", R + "/commits/main")
    assert squashed not in commit["parents"] and commit["message"] == "Merge 'dev' into 'main'"
    lake.fails("POST", R + "/refs/none/merge/main", 404, "not found", body={})
    lake.fails("POST", R + "/refs/dev/merge/none", 404, "not found", body={})
    lake.fails("POST", R + "/refs/dev/merge/main", 400, "strategy must be", body={"strategy": "both-win"})


def test_a_merge_with_conflicts_changes_nothing_and_names_the_paths(lake):
    lake.put("a", b"1")
    lake.commit()
    lake.branch("dev")
    for branch, data in (("dev", b"2"), ("main", b"3")):
        lake.put("a", data, branch=branch)
        head = lake.commit(branch=branch)["id"]
    answer = lake.send("POST", R + "/refs/dev/merge/main", {})
    assert answer.status == 409 and answer.reason == "Conflict"
    assert answer.json == {"reference": "", "message": "conflict found", "conflicts": ["a"]}
    assert lake.call("GET", B)["commit_id"] == head
    lake.put("staged")
    lake.fails("POST", R + "/refs/dev/merge/main", 400, "uncommitted changes (dirty branch)", body={})
    lake.call("PUT", B, {"type": "reset"})
    lake.call("POST", R + "/refs/dev/merge/main", {"strategy": "source-wins"})
    assert lake.get("a") == b"2"


def test_a_merge_takes_a_side_for_each_path(lake):
    for path in "abc":
        lake.put(path, b"1")
    lake.commit()
    lake.branch("dev")
    for branch, data in (("dev", b"2"), ("main", b"3")):
        for path in "abc":
            lake.put(path, data, branch=branch)
        lake.commit(branch=branch)
    merge = R + "/refs/dev/merge/main"
    lake.fails("POST", merge, 400, "a choice must be", body={"choices": {"a": ""}})
    lake.fails("POST", merge, 400, "path", body={"choices": {"": "dest-wins"}})
    lake.fails("POST", merge, 400, "choices must be", body={"choices": {"a": 1}})
    some = {"a": "source-wins", "b": "dest-wins", "not there": "dest-wins"}
    assert lake.send("POST", merge, {"choices": some}).json["conflicts"] == ["c"]
    lake.call("POST", merge, {"choices": some, "strategy": "dest-wins"})
    assert [lake.get(path) for path in "abc"] == [b"2", b"3", b"3"]


def test_an_emptied_branch_can_be_merged_into_the_first_commit(lake):
    lake.branch("dev")
    lake.put("a", branch="dev")
    lake.commit(branch="dev")
    lake.remove("a", branch="dev")
    lake.commit(branch="dev")
    lake.call("POST", R + "/refs/dev/merge/main", {"message": "Merge1"})
    assert lake.call("GET", R + "/commits/main")["message"] == "Merge1"


def test_revert_and_cherry_pick(lake):
    lake.put("a", b"1")
    lake.commit("one")
    lake.put("a", b"2")
    two = lake.commit("two")["id"]
    lake.branch("dev", source="main~1")
    lake.call("POST", B + "/revert", {"ref": two, "parent_number": 0})
    assert lake.get("a") == b"1"
    picked = lake.call("POST", R + "/branches/dev/cherry-pick", {"ref": two})
    assert lake.get("a", ref="dev") == b"2" and picked["metadata"]["cherry-pick-origin"] == two
    lake.fails("POST", R + "/branches/dev/cherry-pick", 400, "no changes", body={"ref": two})
    lake.fails("POST", B + "/revert", 400, "parent_number is required", body={"ref": two})
    lake.fails("POST", B + "/revert", 404, "not found", body={"ref": "none", "parent_number": 0})
    lake.put("a", b"3", branch="dev")
    lake.commit(branch="dev")
    lake.fails("POST", R + "/branches/dev/revert", 409, "conflict found", body={"ref": picked["id"], "parent_number": 0})
    over = {"message": "mine", "metadata": {"why": "test"}}
    made = lake.call("POST", B + "/cherry-pick", {"ref": "dev~1", "commit_overrides": over})
    assert made["message"] == "mine" and made["metadata"]["why"] == "test"


def test_revert_and_cherry_pick_of_a_merge_need_a_parent(lake):
    lake.branch("dev")
    lake.put("a", branch="dev")
    lake.commit(branch="dev")
    merge = lake.call("POST", R + "/refs/dev/merge/main", {})["reference"]
    lake.branch("other", source="main~1")
    assert lake.send("POST", R + "/branches/other/cherry-pick", {"ref": merge}).status == 400
    lake.call("POST", R + "/branches/other/cherry-pick", {"ref": merge, "parent_number": 1})
    assert lake.paths(ref="other") == ["a"]
    assert lake.send("POST", B + "/revert", {"ref": merge, "parent_number": 0}).status == 409
    lake.call("POST", B + "/revert", {"ref": merge, "parent_number": 1})
    assert lake.paths() == []


def test_reset(lake):
    lake.put("keep", b"1")
    first = lake.commit()["id"]

    def stage():
        for path in ("a", "dir/b", "dir/c"):
            lake.put(path)
        lake.put("keep", b"2")
    stage()
    lake.call("PUT", B, {"type": "object", "path": "keep"})
    assert lake.get("keep") == b"1" and lake.paths() == ["a", "dir/b", "dir/c", "keep"]
    lake.call("PUT", B, {"type": "common_prefix", "path": "dir/"})
    assert lake.paths() == ["a", "keep"]
    lake.call("PUT", B, {"type": "reset"})
    assert lake.paths() == ["keep"]
    lake.fails("PUT", B, 400, "type must be", body={"type": "all"})
    lake.fails("PUT", B, 400, "path is required", body={"type": "object"})
    lake.put("a")
    lake.commit()
    lake.call("PUT", B + "/hard_reset", ref=first)
    assert lake.paths() == ["keep"] and lake.call("GET", B)["commit_id"] == first
    stage()
    lake.fails("PUT", B + "/hard_reset", 400, "uncommitted changes (dirty branch)", ref=first)
    lake.fails("PUT", B + "/hard_reset", 400, "ref is required")


# --- objects ---

def test_an_object_is_uploaded_read_and_removed(lake):
    data = bytes(range(256)) * 40
    stats = lake.put("dir/a b+c.bin", data, headers={"Content-Type": "image/png", "x-lakefs-meta-Color": "red"})
    assert stats["checksum"] == hashlib.md5(data).hexdigest() and stats["size_bytes"] == len(data)
    assert stats["content_type"] == "image/png" and stats["metadata"] == {"color": "red"}
    assert stats["physical_address"].startswith("s3://lake-data/repo/data/")
    assert lake.call("GET", F + "/objects/stat", path="dir/a b+c.bin") == stats
    assert "metadata" not in lake.call("GET", F + "/objects/stat", path="dir/a b+c.bin", user_metadata="false")
    whole = lake.send("GET", F + "/objects", path="dir/a b+c.bin")
    assert (whole.status, whole.body, whole.headers["Content-Type"]) == (200, data, "image/png")
    assert whole.headers["ETag"] == f'"{stats["checksum"]}"' and "sandbox" in whole.headers["Content-Security-Policy"]
    head = lake.send("HEAD", F + "/objects", path="dir/a b+c.bin")
    assert (head.status, head.body, head.headers["Content-Length"]) == (200, b"", str(len(data)))
    assert lake.call("GET", F + "/objects/underlyingProperties", path="dir/a b+c.bin") == {"storage_class": "STANDARD"}
    lake.remove("dir/a b+c.bin")
    lake.fails("GET", F + "/objects", 404, "not found", path="dir/a b+c.bin")
    assert lake.send("HEAD", F + "/objects", path="dir/a b+c.bin").status == 404
    lake.fails("GET", F + "/objects/stat", 404, "not found", path="dir/a b+c.bin")


@pytest.mark.parametrize("text, status, expected", [
    ("bytes=0-3", 206, b"0123"), ("bytes=7-", 206, b"789"), ("bytes=-2", 206, b"89"), ("bytes=3-99", 206, b"3456789"),
    ("bytes=0-1,3-4", 200, b"0123456789"), ("lines=1-2", 200, b"0123456789"), ("bytes=10-", 416, None),
    ("bytes=-0", 416, None),
])
def test_ranges(lake, text, status, expected):
    lake.put("a", b"0123456789")
    got = lake.send("GET", F + "/objects", path="a", headers={"Range": text})
    head = lake.send("HEAD", F + "/objects", path="a", headers={"Range": text})
    assert got.status == head.status == status
    if status == 416:
        assert got.headers["Content-Range"] == "bytes */10"
    else:
        assert got.body == expected and head.headers["Content-Length"] == str(len(expected))
        assert got.headers["Content-Range"] == head.headers["Content-Range"]


def test_conditions(lake):
    etag = lake.put("a", b"1", headers={"If-None-Match": "*"})["checksum"]
    lake.fails("POST", B + "/objects", 412, "precondition", body=b"2", path="a", headers={"If-None-Match": "*"})
    assert lake.get("a") == b"1"
    assert lake.send("GET", F + "/objects", path="a", headers={"If-None-Match": f'"{etag}"'}).status == 304
    lake.put("a", b"2", headers={"If-Match": f'"{etag}"'})
    lake.fails("POST", B + "/objects", 412, "precondition", body=b"3", path="a", headers={"If-Match": f'"{etag}"'})
    lake.fails("POST", B + "/objects", 412, "precondition", body=b"3", path="none", headers={"If-Match": f'"{etag}"'})


def test_a_form_is_an_upload_too(lake):
    boundary = "a-boundary"
    body = (f'--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="x"\r\n'
            f"Content-Type: text/csv\r\n\r\n1,2\r\n3,4\r\n--{boundary}--\r\n").encode()
    stats = lake.put("a.csv", body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert stats["content_type"] == "text/csv" and lake.get("a.csv") == b"1,2\r\n3,4"
    other = body.replace(b'name="content"', b'name="other"')
    lake.fails("POST", B + "/objects", 400, "", body=other, path="b",
               headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    assert lake.paths() == ["a.csv"]


def test_a_large_object_streams(lake):
    data = bytes(5 * 1024 * 1024) + b"end"
    lake.put("large", data)
    assert lake.get("large") == data

    def pieces():
        for _ in range(64):
            yield b"x" * 65536
    lake.put("chunked", pieces())
    assert lake.call("GET", F + "/objects/stat", path="chunked")["size_bytes"] == 64 * 65536


@pytest.mark.parametrize("path, status, message", [
    ("", 400, "path is required"), ("x" * 1025, 400, "a path has"), ("a\0b", 400, "NUL"),
])
def test_paths_that_cannot_be(lake, path, status, message):
    lake.fails("POST", B + "/objects", status, message, body=b"x", path=path)
    lake.fails("GET", B + "/objects/stage_allowed", status, message, path=path)
    assert lake.paths() == []


def test_writes_go_to_branches_alone(lake):
    lake.call("POST", R + "/tags", {"id": "v1", "ref": "main"})
    head = lake.call("GET", B)["commit_id"]
    for ref in ("v1", head, "none", "main~1"):
        assert lake.send("POST", f"{R}/branches/{quote(ref)}/objects", b"x", path="a").status in (400, 404), ref


def test_listings(lake):
    paths = ["a", "b/1", "b/2", "b/c/3", "d", "é"]
    for path in paths:
        lake.put(path)
    lake.commit()
    lake.put("b/0")
    lake.remove("d")
    expected = ["a", "b/0", "b/1", "b/2", "b/c/3", "é"]
    for amount in (1, 2, 1000):
        assert lake.paths(amount=amount) == expected
        assert lake.paths(amount=amount, delimiter="/") == ["a", "b/", "é"]
        assert lake.paths(amount=amount, prefix="b/", delimiter="/") == ["b/0", "b/1", "b/2", "b/c/"]
    assert lake.paths(ref="main@") == paths
    folder = lake.call("GET", F + "/objects/ls", delimiter="/", prefix="b")["results"]
    assert [(o["path"], o["path_type"]) for o in folder] == [("b/", "common_prefix")]
    assert len(lake.call("GET", F + "/objects/ls", amount=-1)["results"]) == len(expected)
    assert len(lake.call("GET", F + "/objects/ls", amount=100000)["results"]) == len(expected)
    lake.fails("GET", F + "/objects/ls", 400, "amount must be a whole number", amount="many")
    lake.fails("GET", R + "/refs/none/objects/ls", 404, "not found")


def test_many_objects_are_removed_at_once(lake):
    for path in ("a", "b", "c"):
        lake.put(path)
    answer = lake.call("POST", B + "/objects/delete", {"paths": ["a", "b", "none", "", "a", "x" * 2000]})
    assert [(e["path"], e["status_code"]) for e in answer["errors"]] == [("x" * 2000, 400)]
    assert lake.paths() == ["c"]
    lake.fails("POST", B + "/objects/delete", 400, "paths must have", body={"paths": ["p"] * 1001})
    lake.fails("POST", B + "/objects/delete", 400, "paths is required", body={})
    lake.fails("POST", R + "/branches/none/objects/delete", 404, "branch not found", body={"paths": ["a"]})


def test_copies_move_no_byte(lake):
    first = lake.put("a", b"1", headers={"x-lakefs-meta-k": "v"})
    lake.commit()
    lake.put("a", b"2")
    copy = lake.call("POST", B + "/objects/copy", {"src_path": "a", "src_ref": "main@"}, dest_path="b")
    assert copy["physical_address"] == first["physical_address"] and copy["metadata"] == {"k": "v"}
    lake.call("POST", B + "/objects/copy", {"src_path": "a"}, dest_path="c")
    assert (lake.get("b"), lake.get("c")) == (b"1", b"2")
    lake.fails("POST", B + "/objects/copy", 404, "not found", body={"src_path": "none"}, dest_path="d")
    lake.fails("POST", B + "/objects/copy", 400, "dest_path is required", body={"src_path": "a"})


def test_a_move_is_one_step(lake):
    first = lake.put("a", b"1")
    lake.commit()
    lake.branch("dev")
    moved = lake.call("POST", B + "/objects/copy", {"src_path": "a", "move": True}, dest_path="b")
    assert moved["physical_address"] == first["physical_address"] and lake.paths() == ["b"]
    assert [(d["type"], d["path"]) for d in lake.pages(B + "/diff")] == [("removed", "a"), ("added", "b")]
    for body, path, status, message in [
            ({"src_path": "a", "src_ref": "dev"}, "c", 400, "of the branch itself"),
            ({"src_path": "b"}, "b", 400, "the same path"), ({"src_path": "a"}, "c", 404, "not found")]:
        lake.fails("POST", B + "/objects/copy", status, message, body={**body, "move": True}, dest_path=path)
    assert lake.paths() == ["b"]


def test_conditions_of_a_move_are_those_of_its_destination(lake):
    lake.put("a", b"1")
    etag = lake.put("b", b"2")["checksum"]
    move, copy = {"src_path": "a", "move": True}, B + "/objects/copy"
    lake.fails("POST", copy, 412, "precondition", body=move, dest_path="b", headers={"If-None-Match": "*"})
    lake.fails("POST", copy, 412, "precondition", body=move, dest_path="b", headers={"If-Match": '"other"'})
    assert lake.paths() == ["a", "b"]
    lake.call("POST", copy, move, dest_path="b", headers={"If-Match": f'"{etag}"'})
    assert lake.paths() == ["b"]


def test_metadata_of_an_object_is_replaced(lake):
    lake.put("a", headers={"x-lakefs-meta-k": "v"})
    lake.commit()
    lake.call("PUT", B + "/objects/stat/user_metadata", {"set": {"new": "1"}}, path="a")
    assert lake.call("GET", F + "/objects/stat", path="a")["metadata"] == {"new": "1"}
    assert [d["type"] for d in lake.pages(B + "/diff")] == ["changed"]
    lake.fails("PUT", B + "/objects/stat/user_metadata", 404, "not found", body={"set": {}}, path="none")


def test_an_object_of_another_bucket_is_staged(lake):
    s3 = lake.server.s3()
    s3.create_bucket(Bucket="elsewhere")
    etag = s3.put_object(Bucket="elsewhere", Key="x/y", Body=b"12345")["ETag"].strip('"')
    body = {"physical_address": "s3://elsewhere/x/y", "checksum": etag, "size_bytes": 5, "metadata": {"a": "b"}}
    stats = lake.call("PUT", B + "/objects", body, path="linked")
    assert stats["physical_address"] == "s3://elsewhere/x/y" and stats["metadata"] == {"a": "b"}
    assert lake.get("linked") == b"12345"
    for address in ("elsewhere/x", "s3://elsewhere", "s3://nowhere/x", "s3://lake-data/repo/_lakefs/dummy", "/etc/passwd"):
        answer = lake.send("PUT", B + "/objects", {**body, "physical_address": address}, path="bad")
        assert answer.status == 400, address


def test_bytes_that_are_gone_are_410(lake):
    stats = lake.put("a")
    bucket, key = stats["physical_address"][len("s3://"):].split("/", 1)
    lake.server.s3().delete_object(Bucket=bucket, Key=key)
    assert lake.send("GET", F + "/objects", path="a").status == 410


# --- straight to the storage ---

def upload(url, data):
    request = urllib.request.Request(url, data=data, method="PUT")
    with urllib.request.urlopen(request) as answer:
        return answer.headers["ETag"].strip('"')


def test_a_presigned_upload_is_linked(signing):
    lake = signing
    given = lake.call("GET", B + "/staging/backing", path="a", presign="true")
    assert abs(given["presigned_url_expiry"] - time.time() - 900) < 60
    etag = upload(given["presigned_url"], b"12345")
    body = {"staging": given, "checksum": etag, "size_bytes": 5, "user_metadata": {"k": "v"}, "content_type": "text/plain"}
    stats = lake.call("PUT", B + "/staging/backing", body, path="a")
    assert stats["physical_address"] == given["physical_address"] and stats["metadata"] == {"k": "v"}
    assert lake.get("a") == b"12345"
    lake.fails("PUT", B + "/staging/backing", 412, "precondition", body=body, path="a", headers={"If-None-Match": "*"})
    signed = lake.call("GET", F + "/objects/stat", path="a", presign="true")["physical_address"]
    with urllib.request.urlopen(signed) as answer:
        assert answer.read() == b"12345"
    redirect = lake.send("GET", F + "/objects", path="a", presign="true")
    assert redirect.status == 302
    with urllib.request.urlopen(redirect.headers["Location"]) as answer:
        assert answer.read() == b"12345"


def test_a_presigned_upload_cannot_be_repeated(signing):
    """The URL is good for a while after the link, and must not change what was linked."""
    lake = signing
    given = lake.call("GET", B + "/staging/backing", path="a", presign="true")
    etag = upload(given["presigned_url"], b"first")

    def again(url):
        with pytest.raises(urllib.error.HTTPError) as caught:
            upload(url, b"other")
        return caught.value.code
    assert again(given["presigned_url"]) == 412
    lake.call("PUT", B + "/staging/backing", {"staging": given, "checksum": etag, "size_bytes": 5}, path="a")
    assert again(given["presigned_url"]) == 412
    assert again(given["presigned_url"].replace("x-weir-if-none-match=%2A", "x-weir-if-none-match=none")) == 403
    assert again(given["presigned_url"].replace("x-weir-if-none-match=%2A&", "")) == 403
    assert lake.get("a") == b"first"


def test_a_link_is_good_for_its_branch_path_and_object_alone(signing):
    lake = signing
    lake.branch("dev")
    given = lake.call("GET", B + "/staging/backing", path="a", presign="true")
    link = {"staging": given, "checksum": hashlib.md5(b"12345").hexdigest(), "size_bytes": 5}
    lake.fails("PUT", B + "/staging/backing", 400, "nothing was uploaded", body=link, path="a")
    upload(given["presigned_url"], b"12345")
    lake.fails("PUT", B + "/staging/backing", 400, "not given for this path", body=link, path="b")
    lake.fails("PUT", R + "/branches/dev/staging/backing", 400, "not given for this path", body=link, path="a")
    lake.fails("PUT", B + "/staging/backing", 400, "has 5 bytes", body={**link, "size_bytes": 4}, path="a")
    lake.fails("PUT", B + "/staging/backing", 400, "has the checksum", body={**link, "checksum": "x"}, path="a")
    address = given["physical_address"]
    for forged in (address[:-1] + ("A" if address[-1] != "A" else "B"), address.rsplit(",")[0], "s3://lake-data/x,y", ""):
        answer = lake.send("PUT", B + "/staging/backing", {**link, "staging": {"physical_address": forged}}, path="a")
        assert answer.status == 400, forged
    lake.call("PUT", B + "/staging/backing", link, path="a")


def test_without_s3_url_there_are_no_presigned_urls(lake):
    given = lake.call("GET", B + "/staging/backing", path="a")
    assert "presigned_url" not in given
    lake.fails("GET", B + "/staging/backing", 501, "s3.url", path="a", presign="true")
    bucket, key = given["physical_address"][len("s3://"):].split("/", 1)
    lake.server.s3().put_object(Bucket=bucket, Key=key, Body=b"1")
    body = {"staging": given, "checksum": hashlib.md5(b"1").hexdigest(), "size_bytes": 1}
    lake.call("PUT", B + "/staging/backing", body, path="a")
    assert lake.get("a") == b"1"


# --- rights ---

def allow(user, actions, *resources, effect="Allow"):
    return {"Effect": effect, "Principal": {"AWS": [user.id]}, "Action": actions,
            "Resource": [f"arn:aws:s3:::{r}" for r in resources]}


def set_policy(lake, *statements):
    policy = {"Version": "2012-10-17", "Statement": list(statements)}
    lake.server.s3(lake.keys).put_bucket_policy(Bucket="repo", Policy=json.dumps(policy))


def test_a_repository_belongs_to_the_user_who_made_it(server, other):
    alice, bob, root = other("alice"), other("bob"), Lake(server)
    alice.repo("hers", namespace="s3://alice-data/hers")
    assert [r["id"] for r in alice.pages("/repositories")] == ["hers"]
    assert [r["id"] for r in root.pages("/repositories")] == ["hers"]
    assert list(bob.pages("/repositories")) == []
    hers = "/repositories/hers"
    for method, path, body in [
            ("GET", hers, None), ("DELETE", hers, None), ("GET", hers + "/branches", None),
            ("POST", hers + "/branches", {"name": "b", "source": "main"}), ("GET", hers + "/branches/main", None),
            ("GET", hers + "/refs/main/commits", None), ("GET", hers + "/refs/main/objects/ls", None),
            ("POST", hers + "/branches/main/commits", {"message": "m"}), ("GET", hers + "/metadata", None),
            ("PUT", hers + "/settings/branch_protection", [])]:
        bob.fails(method, path, 401, "insufficient permissions", body=body)
    bob.fails("GET", hers + "/refs/main/objects", 401, "insufficient permissions", path="a")
    bob.fails("POST", hers + "/branches/main/objects", 401, "insufficient permissions", body=b"x", path="a")
    # A namespace needs the right to write to its bucket.
    body = {"name": "mine", "storage_namespace": "s3://alice-data/mine"}
    bob.fails("POST", "/repositories", 401, "insufficient permissions", body=body)
    root.put("a", repo="hers")
    assert alice.get("a", repo="hers") == b"data"


def test_a_policy_gives_rights_by_branch(server, other):
    root, bob = Lake(server), other("bob")
    root.repo()
    root.put("a")
    root.commit()
    root.branch("dev")
    set_policy(root,
               allow(bob, "s3:ListBucket", "repo"),
               allow(bob, "s3:GetObject", "repo/main/*", "repo/dev*"),
               allow(bob, ["s3:PutObject", "s3:DeleteObject"], "repo/dev/*", "repo/dev-*"))
    assert [r["id"] for r in bob.pages("/repositories")] == ["repo"]
    assert bob.get("a") == b"data" and bob.paths() == ["a"]
    bob.put("b", branch="dev")
    bob.commit(branch="dev")
    bob.remove("a", branch="dev")
    denied = "insufficient permissions"
    bob.fails("POST", B + "/objects", 401, denied, body=b"x", path="a")
    bob.fails("POST", B + "/commits", 401, denied, body={"message": "m"})
    bob.fails("PUT", B, 401, denied, body={"type": "reset"})
    bob.fails("POST", R + "/refs/dev/merge/main", 401, denied, body={})
    bob.fails("POST", R + "/branches", 401, denied, body={"name": "other", "source": "main"})
    bob.fails("DELETE", R, 401, denied)
    bob.branch("dev-2", source="main")
    errors = bob.call("POST", B + "/objects/delete", {"paths": ["a"]})["errors"]
    assert [e["status_code"] for e in errors] == [401] and root.paths() == ["a"]


def test_a_branch_cannot_be_made_from_a_ref_that_the_caller_may_not_read(server, other):
    root, bob = Lake(server), other("bob")
    root.repo()
    root.put("secret")
    root.commit()
    root.branch("dev", source="main~1")
    set_policy(root, allow(bob, "s3:ListBucket", "repo"),
               allow(bob, ["s3:GetObject", "s3:PutObject"], "repo/dev/*", "repo/mine/*"))
    denied = "insufficient permissions"
    bob.fails("POST", R + "/branches", 401, denied, body={"name": "mine", "source": "main"})
    bob.fails("POST", R + "/refs/main/merge/dev", 401, denied, body={})
    bob.fails("POST", R + "/branches/dev/cherry-pick", 401, denied, body={"ref": "main"})
    bob.fails("PUT", R + "/branches/dev/hard_reset", 401, denied, ref="main")
    bob.fails("POST", R + "/branches/dev/objects/copy", 401, denied, body={"src_path": "secret", "src_ref": "main"},
              dest_path="x")
    bob.branch("mine", source="dev")


def test_an_address_needs_the_right_to_read_it(server, other):
    root, bob = Lake(server), other("bob")
    bob.repo("bobs", namespace="s3://bob-data/bobs")
    s3 = server.s3()
    s3.create_bucket(Bucket="private")
    s3.put_object(Bucket="private", Key="x", Body=b"1")
    body = {"physical_address": "s3://private/x", "checksum": "c", "size_bytes": 1}
    bob.fails("PUT", "/repositories/bobs/branches/main/objects", 401, "insufficient permissions", body=body, path="a")
    root.call("PUT", "/repositories/bobs/branches/main/objects", body, path="a")


def test_a_denial_binds_in_rest_as_in_s3(server, other):
    root, bob = Lake(server), other("bob")
    root.repo()
    root.put("open/a")
    root.put("closed/a")
    set_policy(root, allow(bob, ["s3:GetObject", "s3:ListBucket"], "repo", "repo/*"),
               allow(bob, "s3:GetObject", "repo/main/closed/*", effect="Deny"))
    assert bob.get("open/a") == b"data"
    bob.fails("GET", F + "/objects", 401, "insufficient permissions", path="closed/a")
    bob.fails("GET", F + "/objects/stat", 401, "insufficient permissions", path="closed/a")


# --- users ---

def test_administrators_manage_users(server, other):
    root, bob = Lake(server), other("bob")
    assert root.call("POST", "/auth/users", {"id": "carol"})["id"] == "carol"
    assert [u["id"] for u in root.pages("/auth/users", amount=1)] == ["bob", "carol", "root"]
    assert root.call("GET", "/auth/users/carol")["id"] == "carol"
    keys = root.call("POST", "/auth/users/carol/credentials")
    carol = Lake(server, (keys["access_key_id"], keys["secret_access_key"]))
    assert carol.call("GET", "/user")["user"]["id"] == "carol"
    listed = [k["access_key_id"] for k in root.pages("/auth/users/carol/credentials")]
    assert keys["access_key_id"] in listed and len(listed) == 2
    path = "/auth/users/carol/credentials/" + keys["access_key_id"]
    assert root.call("GET", path)["access_key_id"] == keys["access_key_id"]
    root.call("DELETE", path)
    root.fails("GET", path, 404, "credentials not found")
    carol.fails("GET", "/user", 401, "error authenticating request")
    root.fails("POST", "/auth/users", 409, "taken", body={"id": "carol"})
    root.call("DELETE", "/auth/users/carol")
    root.fails("GET", "/auth/users/carol", 404, "user not found")
    assert bob.call("GET", "/auth/users/bob")["id"] == "bob"
    for method, path, body in [("GET", "/auth/users", None), ("POST", "/auth/users", {"id": "x"}),
                               ("GET", "/auth/users/root", None), ("DELETE", "/auth/users/root", None),
                               ("POST", "/auth/users/root/credentials", None)]:
        bob.fails(method, path, 401, "insufficient permissions", body=body)


# --- the Python package ---

def test_the_first_calls_of_the_python_package(lake):
    storage = lake.call("GET", "/config")["storage_config"]
    assert storage["pre_sign_support"] is False
    assert lake.call("GET", R)["storage_id"] == ""
    boundary = "0123456789abcdef"
    body = (f'--{boundary}\r\nContent-Disposition: form-data; name="content"; filename="content"\r\n'
            f"Content-Type: application/octet-stream\r\n\r\nhello\r\n--{boundary}--\r\n").encode()
    lake.put("a", body, headers={"Content-Type": f"multipart/form-data; boundary={boundary}"})
    answer = lake.send("GET", F + "/objects", path="a", presign="False", headers={"Range": "bytes=0-1"})
    assert (answer.status, answer.body) == (206, b"he")
    # A transaction: a hidden branch, a commit, a merge, and the branch is deleted.
    lake.commit()
    lake.branch("tx-1", hidden=True)
    lake.put("b", branch="tx-1")
    lake.commit(branch="tx-1")
    lake.call("POST", R + "/refs/tx-1/merge/main", {"squash_merge": True})
    lake.call("DELETE", R + "/branches/tx-1")
    assert lake.paths() == ["a", "b"]


# --- uploads in parts ---

def test_an_upload_in_parts_goes_straight_to_the_storage(signing):
    lake, parts = signing, B + "/staging/pmpu"
    assert lake.call("GET", "/config")["storage_config"]["pre_sign_multipart_upload"] is True
    data = [b"a" * (5 << 20), b"b" * 10]
    begun = lake.call("POST", parts, path="big", parts=1)
    assert len(begun["presigned_urls"]) == 1
    address = {"physical_address": begun["physical_address"]}
    upload_id = quote(begun["upload_id"])
    etags = [upload(begun["presigned_urls"][0], data[0])]
    second = lake.call("PUT", f"{parts}/{upload_id}/parts/2", address, path="big")["presigned_url"]
    etags.append(upload(second, data[1]))
    lake.put("small", b"0123456789")
    source = {"repository": "repo", "ref": "main", "path": "small", "range": "bytes=2-4"}
    copied = lake.send("PUT", f"{parts}/{upload_id}/parts/3/copy", {**address, "copy_source": source}, path="big")
    assert copied.status == 204
    etags.append(copied.headers["ETag"].strip('"'))
    # The second part is too small to be followed by a third one.
    listed = [{"part_number": i + 1, "etag": etag} for i, etag in enumerate(etags)]
    whole = {**address, "parts": listed, "user_metadata": {"k": "v"}, "content_type": "text/plain"}
    lake.fails("PUT", f"{parts}/{upload_id}", 400, "", body=whole, path="big")
    whole["parts"] = [listed[0], listed[2]]
    stats = lake.call("PUT", f"{parts}/{upload_id}", whole, path="big")
    assert stats["size_bytes"] == len(data[0]) + 3 and stats["metadata"] == {"k": "v"}
    assert lake.get("big") == data[0] + b"234"


def test_an_upload_in_parts_that_is_malformed_or_given_up(signing):
    lake, parts = signing, B + "/staging/pmpu"
    begun = lake.call("POST", parts, path="a", parts=0)
    assert begun["presigned_urls"] == []
    address, one = {"physical_address": begun["physical_address"]}, f"{parts}/{quote(begun['upload_id'])}"
    part = [{"part_number": 1, "etag": "x"}]
    lake.fails("PUT", one, 400, "not given for this path", body={**address, "parts": part}, path="b")
    lake.fails("PUT", one, 400, "part_number", body={**address, "parts": [{"part_number": 0, "etag": "x"}]}, path="a")
    lake.fails("PUT", one, 400, "parts must have", body={**address, "parts": []}, path="a")
    lake.fails("PUT", one + "/parts/0", 400, "partNumber must be", body=address, path="a")
    lake.call("DELETE", one, address, path="a")
    lake.fails("DELETE", one, 404, "upload not found", body=address, path="a")
    lake.fails("PUT", one, 404, "upload not found", body={**address, "parts": part}, path="a")
    assert lake.paths() == []


# --- imports ---

def finished(lake, wanted):
    return wait_for(lambda: (s := lake.call("GET", B + "/import", id=wanted))["completed"] and s, "the import")


def test_objects_are_imported_without_a_copy(lake):
    s3 = lake.server.s3()
    s3.create_bucket(Bucket="source")
    for key in ("dir/a", "dir/sub/b", "single"):
        s3.put_object(Bucket="source", Key=key, Body=key.encode())
    lake.put("kept")
    lake.put("in/gone")
    lake.commit()
    body = {"paths": [{"type": "common_prefix", "path": "s3://source/dir/", "destination": "in/"},
                      {"type": "object", "path": "s3://source/single", "destination": "one"}],
            "commit": {"message": "imported", "metadata": {"k": "v"}}}
    status = finished(lake, lake.call("POST", B + "/import", body)["id"])
    assert "error" not in status and status["ingested_objects"] == 3
    assert status["commit"]["message"] == "imported" and status["commit"]["metadata"]["k"] == "v"
    assert lake.paths() == ["in/a", "in/sub/b", "kept", "one"] and lake.get("in/sub/b") == b"dir/sub/b"
    assert lake.call("GET", F + "/objects/stat", path="one")["physical_address"] == "s3://source/single"


def test_imports_that_cannot_be(lake, other):
    good = {"type": "object", "path": "s3://lake-data/x", "destination": "x"}

    def refused(status, message, who=lake, **changes):
        who.fails("POST", B + "/import", status, message,
                  body={"paths": [{**good, **changes}], "commit": {"message": "m"}})
    refused(400, "type must be", type="folder")
    refused(400, "s3://bucket/key", path="file:///etc/passwd")
    refused(400, "no bucket", path="s3://nowhere/x")
    refused(400, "repository's bucket", path="s3://repo/main/x")
    lake.fails("POST", B + "/import", 400, "paths must have", body={"paths": [], "commit": {"message": "m"}})
    lake.fails("GET", B + "/import", 404, "not found", id="none")
    lake.fails("DELETE", B + "/import", 404, "not found", id="none")
    bob = other("bob")
    bob.repo("bobs", namespace="s3://bob-data/bobs")
    s3 = lake.server.s3()
    s3.create_bucket(Bucket="private")
    s3.put_object(Bucket="private", Key="x", Body=b"1")
    for source in ({"type": "object", "path": "s3://private/x", "destination": "x"},
                   {"type": "common_prefix", "path": "s3://private/", "destination": "y/"}):
        bob.fails("POST", "/repositories/bobs/branches/main/import", 401, "insufficient permissions",
                  body={"paths": [source], "commit": {"message": "m"}})


# --- hooks ---

ACTION = """
name: check
on:
  pre-commit:
    branches: [main]
hooks:
  - id: ask
    type: webhook
    properties:
      url: %s
"""


@pytest.fixture
def judge():
    """A server that is asked by hooks: judge.status is its answer, judge.asked what it was sent."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            judged.asked.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(judged.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass
    judged = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    judged.asked, judged.status = [], 200
    threading.Thread(target=judged.serve_forever, daemon=True).start()
    yield judged
    judged.shutdown()
    judged.server_close()


def test_runs_of_hooks(serve, judge):
    lake = Lake(serve("--lake.hooks.hosts=127.0.0.1").ready())
    lake.repo()
    lake.put("_lakefs_actions/check.yaml", (ACTION % f"http://127.0.0.1:{judge.server_port}/").encode())
    first = lake.commit("first")
    judge.status = 500
    lake.put("a")
    lake.fails("POST", B + "/commits", 412, "", body={"message": "refused"})
    runs = list(lake.pages(R + "/actions/runs", amount=1))
    assert [(r["event_type"], r["status"], r["branch"]) for r in runs] == [
        ("pre-commit", "failed", "main"), ("pre-commit", "completed", "main")]
    assert [q["commit_message"] for q in judge.asked] == ["first", "refused"]
    newest = runs[0]
    assert lake.call("GET", f"{R}/actions/runs/{newest['run_id']}") == newest
    hooks = list(lake.pages(f"{R}/actions/runs/{newest['run_id']}/hooks"))
    assert [(h["hook_id"], h["action"], h["status"]) for h in hooks] == [("ask", "check", "failed")]
    output = lake.call("GET", f"{R}/actions/runs/{newest['run_id']}/hooks/{hooks[0]['hook_run_id']}/output")
    assert b"500" in output
    assert list(lake.pages(R + "/actions/runs", branch="other")) == []
    lake.fails("GET", R + "/actions/runs/none", 404, "not found")
    assert lake.call("GET", B)["commit_id"] == first["id"]


# --- garbage collection ---

def test_rules_of_garbage_collection(lake):
    for path in (R + "/settings/gc_rules", R + "/gc/rules"):
        put = "PUT" if "settings" in path else "POST"
        lake.fails("GET", path, 404, "not found")
        rules = {"default_retention_days": 21, "branches": [{"branch_id": "dev", "retention_days": 7},
                                                             {"branch_id": "main", "retention_days": 28}]}
        lake.call(put, path, rules)
        assert lake.call("GET", path) == rules
        lake.fails(put, path, 400, "two rules", body={**rules, "branches": rules["branches"] * 2})
        lake.fails(put, path, 400, "retention_days", body={**rules, "branches": [{"branch_id": "x"}]})
        lake.fails(put, path, 400, "default_retention_days must be", body={**rules, "default_retention_days": -1})
        lake.call("DELETE", path)
    lake.call("GET", R + "/gc/rules/set_allowed")


# --- trees ---

def test_files_of_trees(lake, other):
    lake.put("a")
    tree = lake.commit()["meta_range_id"]
    place = lake.call("GET", f"{R}/metadata/meta_range/{tree}")["location"]
    assert place == f"s3://lake-data/repo/_lakefs/{tree}" == lake.call("GET", f"{R}/metadata/range/{tree}")["location"]
    assert lake.call("GET", f"{R}/metadata/object/meta_range/{tree}")[:8] == b"weirTRE1"
    lake.fails("GET", f"{R}/metadata/object/meta_range/{'0' * 64}", 404, "file not found")
    lake.fails("GET", f"{R}/metadata/object/meta_range/dummy", 400, "64 hex digits")
    lake.fails("GET", f"{R}/metadata/object/leaf/{tree}", 400, "type must be")
    bob = other("bob")
    set_policy(lake, allow(bob, ["s3:GetObject", "s3:ListBucket"], "repo", "repo/main/*"))
    bob.fails("GET", f"{R}/metadata/object/meta_range/{tree}", 401, "insufficient permissions")


# --- pull requests ---

def test_pull_requests(lake, other):
    pulls = R + "/pulls"
    lake.branch("dev")
    lake.put("a", branch="dev")
    lake.commit(branch="dev")
    body = {"title": "T", "description": "D", "source_branch": "dev", "destination_branch": "main"}
    first, second = (lake.call("POST", pulls, body)["id"] for _ in range(2))
    one = lake.call("GET", f"{pulls}/{first}")
    assert (one["status"], one["title"], one["description"], one["author"]) == ("open", "T", "D", "root")
    assert "closed_date" not in one
    assert [p["id"] for p in lake.pages(pulls, amount=1)] == [first, second]
    lake.call("PATCH", f"{pulls}/{second}", {"status": "closed", "title": "new"})
    assert [p["id"] for p in lake.pages(pulls, status="open")] == [first]
    closed = list(lake.pages(pulls, status="closed"))
    assert [(p["id"], p["title"]) for p in closed] == [(second, "new")] and closed[0]["closed_date"]
    lake.fails("PUT", f"{pulls}/{second}/merge", 409, "not open")
    done = lake.call("PUT", f"{pulls}/{first}/merge")["reference"]
    assert lake.call("GET", R + "/commits/main")["id"] == done and lake.paths() == ["a"]
    merged = lake.call("GET", f"{pulls}/{first}")
    assert (merged["status"], merged["merged_commit_id"]) == ("merged", done)
    lake.fails("PATCH", f"{pulls}/{first}", 409, "merged", body={"status": "open"})
    lake.fails("POST", pulls, 400, "same branch", body={**body, "source_branch": "main"})
    lake.fails("POST", pulls, 404, "branch not found", body={**body, "source_branch": "none"})
    lake.fails("POST", pulls, 400, "title is required", body={})
    lake.fails("GET", f"{pulls}/none", 404, "pull request not found")
    bob = other("bob")
    set_policy(lake, allow(bob, "s3:ListBucket", "repo"))
    assert bob.call("GET", f"{pulls}/{second}")["title"] == "new"
    bob.fails("PATCH", f"{pulls}/{second}", 401, "insufficient permissions", body={"status": "open"})
    bob.fails("POST", pulls, 401, "insufficient permissions", body=body)


def test_a_commit_is_added_by_its_record(lake):
    lake.put("a")
    head = lake.commit("one", metadata={"k": "v"}, date=1700000000)
    # The same commit in another repository, which gets its parent and the root of its tree.
    lake.call("POST", "/repositories", {"name": "copy", "storage_namespace": "s3://lake-data/copy"}, bare="true")
    copy = "/repositories/copy"
    record = {"commit_id": head["id"], "version": 1, "committer": head["committer"], "message": "one",
              "metarange_id": head["meta_range_id"], "creation_date": 1700000000, "parents": head["parents"],
              "metadata": {"k": "v"}, "generation": 2}
    lake.fails("POST", copy + "/commits", 400, "no commit " + head["parents"][0], body=record)
    parent = lake.call("GET", R + "/commits/main~1")
    lake.call("POST", copy + "/commits", {**record, "commit_id": parent["id"], "committer": parent["committer"],
                                          "message": parent["message"], "metarange_id": "", "metadata": {},
                                          "creation_date": parent["creation_date"], "parents": [], "generation": 1})
    lake.fails("POST", copy + "/commits", 400, "would be", body={**record, "message": "other"})
    lake.fails("POST", copy + "/commits", 400, "generation of this commit is 2", body={**record, "generation": 3})
    lake.fails("POST", copy + "/commits", 400, f"tree {head['meta_range_id']} cannot be read", body=record)
    lake.server.s3().copy_object(Bucket="lake-data", Key=f"copy/_lakefs/{head['meta_range_id']}",
                                 CopySource=f"lake-data/repo/_lakefs/{head['meta_range_id']}")
    lake.call("POST", copy + "/commits", record)
    assert lake.call("GET", f"{copy}/commits/{head['id']}") == head
    lake.fails("POST", copy + "/commits", 409, "commit already exists", body=record)
    assert list(lake.pages(copy + "/branches")) == []
