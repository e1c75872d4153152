"""The OpenAPI document of weir's API: the document itself, and the calls of every room against it. Each test makes what
its room has, and ends when every GET of the room was answered as the document says."""
import base64
import json
import re
import urllib.parse
import urllib.request

import pytest

pytest.importorskip("boto3")
from archive_lab import Archive  # noqa: E402
from conftest import DEADLINE, wait_for  # noqa: E402
from openapi_lab import VERBS, check_schema, document, every_call_is_as_described, walk  # noqa: E402, F401: fixtures
from swarm_lab import announce  # noqa: E402

HASH = bytes(range(1, 21))

# The objects whose members are not fixed, and so not listed.
OPEN = {"getSwarmStatsAnswer"}

# --- the document ---

def test_the_document_is_valid(document):
    d = document.json
    assert set(d) == {"openapi", "info", "servers", "tags", "paths", "components"}
    assert d["openapi"] == "3.0.3" and set(d["info"]) == {"title", "version", "description"}
    for where, value in walk(d):
        if "$ref" in value and "properties" not in where[-1:]:
            target = d
            for name in value["$ref"].removeprefix("#/").split("/"):
                assert name in target, (where, value)
                target = target[name]
    for name, schema in d["components"]["schemas"].items():
        assert re.fullmatch(r"[a-zA-Z0-9]+", name)
        check_schema(schema, name)
        assert name in OPEN or schema["additionalProperties"] is False, name


def test_operations_are_valid(document):
    d = document.json
    tags = {tag["name"] for tag in d["tags"]}
    ids = [o["operationId"] for o in document.operations.values()]
    assert len(set(ids)) == len(ids) > 100
    used = set()
    for (verb, path), operation in document.operations.items():
        assert verb.lower() in VERBS and re.fullmatch(r"[a-z][a-zA-Z0-9]+", operation["operationId"])
        assert len(operation["tags"]) == 1 and set(operation["tags"]) <= tags
        assert operation["summary"].endswith(".") and operation["x-weir-who"] in ("admin", "anyone", "token")
        named = [p["name"] for p in operation["parameters"] if p["in"] == "path"]
        assert named == re.findall(r"{([^}.]+)}", path)
        assert all(p.get("required") for p in operation["parameters"] if p["in"] == "path")
        keys = [(p["in"], p["name"]) for p in operation["parameters"]]
        assert len(set(keys)) == len(keys)
        for parameter in operation["parameters"]:
            check_schema(parameter["schema"], (path, parameter["name"]))
        assert "default" in operation["responses"] and min(operation["responses"]) in ("200", "201", "202", "204")
        assert "requestBody" not in operation or verb in ("POST", "PUT")
        for way in operation["security"]:
            assert set(way) <= set(d["components"]["securitySchemes"])
        used |= set(re.findall(r"#/components/schemas/(\w+)", json.dumps(operation)))
    used |= set(re.findall(r"#/components/schemas/(\w+)", json.dumps(d["components"])))
    assert used == set(d["components"]["schemas"])


def test_the_document_has_every_call_of_weir_and_none_of_lakefs(server, document):
    routes = json.loads(server.get("/api/v1", keys=server.keys).body)["routes"]
    assert {(r["method"], r["path"]) for r in routes if r["own"]} == set(document.operations)
    assert not any(path.startswith("/api/v1/repositories") for _, path in document.operations)
    for (_, path), operation in document.operations.items():
        assert (operation["x-weir-who"] == "admin") == path.startswith("/api")


def test_weir_serves_the_document_that_it_prints(server, weir):
    answer = server.get("/api/v1/openapi.json", keys=server.keys)
    assert answer.headers["Content-Type"] == "application/json"
    assert answer.body == weir("help", "--openapi").stdout
    assert server.get("/api/v1/openapi.json").status == 401


def test_an_answer_with_a_member_that_is_not_described_is_found(document):
    call = ("GET", "/api/v1/version")
    headers = {"Content-Type": "application/json"}
    document.check_answer(call, 200, headers, '{"name": "weir", "version": "1"}')
    for wrong in ('{"name": "weir", "version": "1", "more": 1}', '{"name": "weir"}', '{"name": "weir", "version": 1}'):
        with pytest.raises(AssertionError):
            document.check_answer(call, 200, headers, wrong)
    with pytest.raises(AssertionError):
        document.check_answer(call, 206, headers, "{}")


# --- the rooms ---

class Caller:
    """Calls the API as the administrator, and expects success. openapi_lab checks each call."""

    def __init__(self, server, document):
        self.server, self.document = server, document

    def __call__(self, method, path, body=None, status=None):
        answer = self.server.request(method, path, body=body, keys=self.server.keys)
        assert answer.status == status if status else answer.status < 300, (method, path, answer.status, answer.body)
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def get(self, path, status=None):
        return self("GET", path, status=status)

    def post(self, path, status=None, **members):
        return self("POST", path, members, status)

    def raw(self, path):
        """GETs bytes that are not text."""
        request = urllib.request.Request(self.server.url + path)
        request.add_header("Authorization", "Basic " + base64.b64encode(":".join(self.server.keys).encode()).decode())
        with urllib.request.urlopen(request, timeout=DEADLINE) as answer:
            body = answer.read()
            self.document.exchanged("GET", path, None, answer.status, answer.headers, body.decode("latin-1"))
            return body


@pytest.fixture
def call(server, document):
    return Caller(server, document)


def test_the_server(call, document, tmp_path):
    for path in ("/healthz", "/readyz", "/metrics", "/api/v1", "/api/v1?limit=3&after=2", "/api/v1/openapi.json",
                 "/api/v1/version"):
        call.get(path)
    assert call.server.get("/readyz").status == 200  # without keys
    call.post("/api/v1/backup", dir=str(tmp_path / "copy"))
    call.post("/api/v1/backup", dir=str(tmp_path / "copy"), status=409)
    call.post("/api/v1/backup", dri="/", status=400)
    call.get("/api/v1?limit=0", status=400)
    assert not document.missing("server")


def test_users(call, document):
    call.post("/api/v1/users", name="bob", email="bob@example.org", admin=True)
    call.post("/api/v1/users", name="bob", status=409)
    call.post("/api/v1/users", name="eve", access_key="eve-access", secret_key="eve-secret-key")
    for path in ("", "?limit=1", "/bob"):
        call.get("/api/v1/users" + path)
    key = call.post("/api/v1/users/bob/keys")
    call("DELETE", f"/api/v1/users/bob/keys/{key['access_key']}")
    call.post("/api/v1/users/bob/route", storage="local")
    call("DELETE", "/api/v1/users/eve")
    call.get("/api/v1/users/eve", status=404)
    assert not document.missing("users")


def test_storages(call, serve, document, tmp_path):
    far = serve().ready()
    call.post("/api/v1/storages", name="disk2", folder=str(tmp_path / "disk2"), requests_per_minute=100)
    call.post("/api/v1/storages", name="far", kind="remote", url=far.s3_url, connect_timeout="1500ms", user="root",
              access_key=far.keys[0], secret_key=far.keys[1])
    call.get("/api/v1/storages")
    call.post("/api/v1/storages/disk2/limits", bytes_per_second=1 << 40)
    for name in ("disk2", "far"):
        call.post(f"/api/v1/storages/{name}/test")
        call.get(f"/api/v1/storages/{name}/notify")
    call.post("/api/v1/storages/disk2/scrub")
    call.post("/api/v1/storages/disk2/main")
    call.post("/api/v1/storages/local/main")
    call.post("/api/v1/storages/far/credentials", user="root", access_key=far.keys[0], secret_key=far.keys[1])
    call.get("/api/v1/storages/far/credentials")
    call("DELETE", "/api/v1/storages/far/credentials/root")
    token = call.get("/api/v1/storages/far/notify")["token"]
    call.post("/notify/far", status=401)
    answer = call.server.post(f"/notify/far?token={urllib.parse.quote(token)}", {"Records": []})
    assert answer.status == 200
    call("DELETE", "/api/v1/storages/far")
    call("DELETE", "/api/v1/storages/disk2?force=true")
    assert not document.missing("storages")


def test_buckets(call, document, tmp_path):
    s3 = call.server.box()
    s3.put_object(Bucket="box", Key="a", Body=b"a")
    s3.put_bucket_versioning(Bucket="box", VersioningConfiguration={"Status": "Enabled"})
    far = tmp_path / "far"
    call.post("/api/v1/storages", name="disk2", folder=str(far))
    call.post("/api/v1/buckets/new/route", storage="disk2", user="root")
    call.post("/api/v1/buckets/shut/route", storage="disk2", blocked=True)
    for path in ("/buckets", "/buckets?storage=disk2", "/buckets?limit=1", "/policies", "/buckets/box"):
        call.get("/api/v1" + path)
    call.get("/api/v1/buckets/nothing", status=404)
    assert not document.missing("buckets")


def test_webhooks(call, document):
    call.post("/api/v1/webhooks", name="hook", url="http://127.0.0.1:1/", secret="secret-of-hook")
    call.get("/api/v1/webhooks")
    call("DELETE", "/api/v1/webhooks/hook")
    assert not document.missing("webhooks")


class Replicas:
    """Two storages and a bucket with some objects."""

    def __init__(self, call, tmp_path):
        call.post("/api/v1/storages", name="disk2", folder=str(tmp_path / "disk2"))
        self.s3 = call.server.box()
        for n in range(5):
            self.s3.put_object(Bucket="box", Key=f"k{n}", Body=b"body")
        self.id = call.post("/api/v1/replications", bucket="box", to="disk2", priority=2)["id"]
        self.path = f"/api/v1/replications/{urllib.parse.quote(self.id, safe='')}"
        wait_for(lambda: call.get(self.path)["state"] == "in sync", "the copy")


def one(call, path, name):
    """Waits until the list has an item, and returns it."""
    return wait_for(lambda: call.get(path)[name], path)[0]


def test_queues(call, document, tmp_path):
    replicas = Replicas(call, tmp_path)
    names = [q["name"] for q in call.get("/api/v1/queues")["queues"]]
    for name in names:
        call("PUT", f"/api/v1/queues/{name}/pause")
    replicas.s3.put_object(Bucket="box", Key="later", Body=b"body")

    def found():
        tasks = [t for n in names for t in call.get(f"/api/v1/queues/{n}/tasks?state=pending")["tasks"]]
        return tasks and tasks[0]
    task = wait_for(found, "a task")
    path = f"/api/v1/queues/{task['queue']}/tasks/{urllib.parse.quote(task['id'], safe='')}"
    call.get(path)
    call("DELETE", path)
    for name in names:
        call("PUT", f"/api/v1/queues/{name}/resume")
        call.get(f"/api/v1/queues/{name}/tasks?limit=2")
    assert not document.missing("queues")


def test_shards(call, document):
    s3 = call.server.box()
    for n in range(20):
        s3.put_object(Bucket="box", Key=f"k{n:02}", Body=b"body")
    call.post("/api/v1/shards", bucket="box", threshold=1000)
    call.get("/api/v1/shards")
    call.post("/api/v1/shards/box/split", full_speed=True, at="k09")
    wait_for(lambda: not call.get("/api/v1/shards/box")["move"], "the split")
    shown = call.get("/api/v1/shards/box?storage=local")
    assert shown["shard_count"] == 2 and shown["last_move"]["whole"]
    call.post("/api/v1/shards/box/verify", clean=True)
    call.post("/api/v1/shards/box/rebuild")
    call.get("/api/v1/buckets/box")
    call("POST", "/api/v1/shards/box/merge", {"at": "k09"})
    wait_for(lambda: call.get("/api/v1/shards/box")["shard_count"] == 1, "the merge")
    wait_for(lambda: not call.get("/api/v1/shards/box")["move"], "its end")
    call("DELETE", "/api/v1/shards/box?full_speed=true")
    assert not document.missing("shard")


def test_replications_diffs_and_switches(call, document, tmp_path):
    replicas = Replicas(call, tmp_path)
    call.post("/api/v1/users", name="uma")
    call.post("/api/v1/replications", user="uma", to="disk2")
    call.get("/api/v1/replications?bucket=box")
    call.get("/api/v1/replications")
    for verb in ("pause", "resume"):
        call("PUT", f"{replicas.path}/{verb}")
    call.post(replicas.path + "/resync")

    replicas.s3.delete_object(Bucket="box", Key="k1")
    call("PUT", replicas.path + "/pause")
    replicas.s3.put_object(Bucket="box", Key="k2", Body=b"another")
    replicas.s3.put_object(Bucket="box", Key="only", Body=b"here")
    made = call.post("/api/v1/diffs", locations=["local:box", "disk2:box"], contents=True)
    path = f"/api/v1/diffs/{urllib.parse.quote(made['id'], safe='')}"
    wait_for(lambda: call.get(path)["state"] == "ready", "the diff")
    assert call.get(path + "/entries?limit=100")["entries"]
    call.get("/api/v1/diffs")
    call.post(path + "/fix", source="local:box")
    wait_for(lambda: call.get(path)["consistent"], "the fix")
    call.post(path + "/restart")
    wait_for(lambda: call.get(path)["state"] == "ready", "the second diff")
    call("DELETE", path)
    call("PUT", replicas.path + "/resume")
    wait_for(lambda: call.get(replicas.path)["state"] == "in sync", "the copy after the resync")

    switch = call.post("/api/v1/switches", replication=replicas.id, multipart_ttl_ms=1000)
    path = f"/api/v1/switches/{urllib.parse.quote(switch['id'], safe='')}"
    call.get("/api/v1/switches")
    wait_for(lambda: call.get(path)["done"], "the switch")
    call("DELETE", path)
    call.get("/api/v1/store")
    call.post("/api/v1/storages/disk2/claim")
    call("DELETE", replicas.path + "?buckets=false")
    assert not document.missing("replica")


def test_torrents_and_the_tracker(serve, document):
    server = serve("--tracker.mode", "private").ready()
    call = Caller(server, document)
    s3 = server.box()
    s3.put_object(Bucket="box", Key="file", Body=bytes(100_000))
    made = call.post("/api/v1/torrents", bucket="box", key="file", v="hybrid")
    path = f"/api/v1/torrents/{urllib.parse.quote(made['id'], safe='')}"
    wait_for(lambda: call.get(path)["state"] == "ready", "the torrent")
    call.get("/api/v1/torrents")
    call.raw(path + "/file?v=1")
    call("DELETE", path)

    user = call.post("/api/v1/swarm/users", slots=3, up_multiplier=1.5)
    call.post("/api/v1/swarm/torrents", torrent=HASH.hex(), down_multiplier=0.5)
    call.post("/api/v1/swarm/feed", name="site")
    call.post("/api/v1/swarm/clients", client="-TR")
    announce(server, HASH, 6881, path=f"/{user['passkey']}/announce")
    record = one(call, "/api/v1/swarm/feed/site", "records")
    call.post("/api/v1/swarm/feed/site/acknowledge", number=record["number"])
    for path in ("users", "users?passkeys=true", "clients", "stats", "torrents", "feed"):
        call.get("/api/v1/swarm/" + path)
    call.post("/api/v1/swarm/check")
    call("DELETE", "/api/v1/swarm/clients/-TR")
    call("DELETE", f"/api/v1/swarm/users/{user['id']}")
    call("DELETE", f"/api/v1/swarm/torrents/{HASH.hex()}")
    call("DELETE", "/api/v1/swarm/feed/site")
    assert not document.missing("swarm")


@pytest.fixture
def archive(tmp_path, serve, weir):
    lab = Archive(tmp_path, serve, weir)
    yield lab
    lab.close()


def test_the_archive(archive, document):
    a, call = archive, Caller(archive.server, document)
    for name in ("Hello-World", "Spoon-Knife"):
        a.add_repo("octocat", name)
    root = "/api/v1/archive/"
    member = "accounts/" + urllib.parse.quote(a.member("octocat"), safe="")
    call.post(root + "accounts", accounts=[a.member("octocat")])
    a.synced("octocat")
    for path in ("accounts", member, member + "/repositories", member + "/repositories?all=true",
                 member + "/repositories/Hello-World", "status", "satellites", "forges",
                 "forges/" + urllib.parse.quote(a.host, safe=""), member + "/bundles?limit=1", member + "/options"):
        call.get(root + path)
    assert call.raw(root + member + "/bundles/Hello-World").startswith(b"# v")
    call("PUT", root + member + "/options", {"wants": ["wikis"]})
    call("DELETE", root + member + "/options")
    call.post(root + "forges", host="forge.example.org", kind="gitea", tokens=["a-token-of-the-forge"])
    call.get(root + "forges")
    call("DELETE", root + "forges/forge.example.org")
    call.post(root + member + "/audits", name="Hello-World")
    wait_for(lambda: call.get(root + member + "/audits/Hello-World")["state"] == "good", "the audit")
    made = call.post(root + member + "/restores", url="https://127.0.0.1:1/new", name="Hello-World")
    call.get(root + "restores")
    call.get(root + "restores/" + made["id"])
    call("DELETE", root + "restores/" + made["id"])
    call.post(root + "check")
    call.post(root + member + "/sync")
    call.post(root + "rebuild")
    call("DELETE", root + member)
    assert not document.missing("archive")
