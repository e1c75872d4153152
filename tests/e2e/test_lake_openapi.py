"""Every operation of lakeFS's REST API that weir serves, with good and with bad input, against the published description of
the API (lake_lab.py says where that file is looked for). The bad input is made from the description: each parameter and each
member of a body is left out if it is required, and has a value of another type. Bad input is refused with a reason and
changes nothing; after it the good request is served, and its answer is as described."""
import http.server
import itertools
import json
import threading
import urllib.request

import pytest

from conftest import Server, free_port, wait_for
from lake_lab import NO_OPENAPI, OPERATION, REFUSED, Lake, openapi, quote, resolve

pytestmark = pytest.mark.skipif(not openapi(), reason=NO_OPENAPI)
SERVED = sorted(set(OPERATION) - set(REFUSED))
R = "/repositories/repo"
REPO = {"repository": "repo"}
MAIN = {**REPO, "branch": "main"}
REF = {**REPO, "ref": "main"}
RULES = {"default_retention_days": 21, "branches": [{"branch_id": "dev", "retention_days": 7}]}
ACTION = """
name: tell
on:
  pre-commit:
hooks:
  - id: tell
    type: webhook
    properties:
      url: http://127.0.0.1:%d/
"""


@pytest.fixture(scope="module")
def hook_port():
    """The port of a server that takes the calls of hooks."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *args):
            pass
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def root(tmp_path_factory, hook_port):
    """A client of a server that presigns URLs. The bucket `lake-data` has the object `elsewhere`."""
    port = free_port()
    server = Server(tmp_path_factory.mktemp("weir"), "--s3.listen", f"127.0.0.1:{port}", "--s3.url",
                    f"http://127.0.0.1:{port}", "--lake.hooks.hosts=127.0.0.1").ready()
    client = Lake(server)
    client.hook_port = hook_port
    server.s3().create_bucket(Bucket="lake-data")
    server.s3().put_object(Bucket="lake-data", Key="elsewhere", Body=b"x")
    client.call("POST", "/auth/users", {"id": "erin"})
    yield client
    assert server.stop() == 0, server.err


@pytest.fixture(scope="module")
def fresh():
    """Numbers that no other case has."""
    return itertools.count(1)


@pytest.fixture
def lake(root, fresh):
    """The client with a new repository `repo`. Its branch main has the object `base`, dev one more, both are clean, and
    the tag v1 is on main."""
    root.space = f"s3://lake-data/{next(fresh)}"
    root.repo("repo", namespace=root.space)
    root.put("base")
    root.commit("base")
    root.branch("dev")
    root.put("other", branch="dev")
    root.commit("other", branch="dev")
    root.call("POST", R + "/tags", {"id": "v1", "ref": "main"})
    yield root
    for name in ("repo", "another"):
        root.send("DELETE", "/repositories/" + name)


# --- a good request for each operation ---

class Request:
    """Values of the path, the body (None: there is none) and the query."""

    def __init__(self, path=(), body=None, query=()):
        self.path, self.body, self.query = dict(path), body, dict(query)

    def send(self, lake, operation):
        target = operation.path.format_map({k: quote(str(v)) for k, v in self.path.items()})
        return lake.send(operation.method, target, self.body, **self.query)


def after(step, request):
    """A request that needs a step before it, which may return values for the path."""
    def make(lake):
        return Request({**request.path, **(step(lake) or {})}, request.body, request.query)
    return make


def user(lake):
    lake.call("POST", "/auth/users", {"id": "frank"})


def key(lake):
    return {"accessKeyId": lake.call("POST", "/auth/users/erin/credentials")["access_key_id"]}


def staged(lake):
    lake.put("staged")


def rules(lake):
    lake.call("PUT", R + "/settings/gc_rules", RULES)


def protected(lake):
    lake.call("POST", R + "/branch_protection", {"pattern": "kept"})


def labelled(lake):
    lake.call("POST", R + "/metadata", {"metadata": {"k": "v"}})


def pull(lake):
    made = lake.call("POST", R + "/pulls", {"title": "t", "source_branch": "dev", "destination_branch": "main"})
    return {"pull_request": made["id"]}


def run(lake):
    lake.put("_lakefs_actions/tell.yaml", (ACTION % lake.hook_port).encode())
    lake.commit()
    made = lake.call("GET", R + "/actions/runs")["results"][0]
    hook = lake.call("GET", f"{R}/actions/runs/{made['run_id']}/hooks")["results"][0]
    return {"run_id": made["run_id"], "hook_run_id": hook["hook_run_id"]}


def tree(lake):
    made = lake.call("GET", R + "/commits/main")["meta_range_id"]
    return {"meta_range": made, "range": made, "object_id": made}


def bare(lake):
    """Puts a bare repository in the place of `repo`. Returns the dump of the old one."""
    dump = lake.call("PUT", R + "/refs/dump")
    lake.call("DELETE", R)
    wait_for(lambda: lake.send("POST", "/repositories", {"name": "repo", "storage_namespace": lake.space},
                               bare="true").status == 201, "the namespace")
    return dump


def dumped(lake):
    return Request(REPO, query={"task_id": lake.call("POST", R + "/dump")["id"]})


def restored(lake):
    task = {"task_id": lake.call("POST", R + "/restore", bare(lake))["id"]}
    wait_for(lambda: lake.call("GET", R + "/restore", **task)["done"], "the restore")
    return Request(REPO, query=task)


def imported(lake):
    task = {"id": lake.call("POST", R + "/branches/main/import", IMPORT)["id"]}
    wait_for(lambda: lake.call("GET", R + "/branches/main/import", **task)["completed"], "the import")
    return Request(MAIN, query=task)


def login(lake):
    return Request(body=dict(zip(("access_key_id", "secret_access_key"), lake.keys)))


def another(lake):
    return {"name": "another", "storage_namespace": lake.space + "-another"}


def record(lake):
    """The record of a commit for a repository that lacks it."""
    first = lake.call("GET", R + "/commits/main~1")
    lake.call("POST", "/repositories", another(lake), bare="true")
    return Request({"repository": "another"}, {
        "commit_id": first["id"], "version": 1, "committer": first["committer"], "message": first["message"],
        "metarange_id": "", "creation_date": first["creation_date"], "parents": [], "metadata": {}, "generation": 1})


def put_to(url, data):
    with urllib.request.urlopen(urllib.request.Request(url, data=data, method="PUT")) as answer:
        return answer.headers["ETag"].strip('"')


def in_parts(lake, part=None, **more):
    begun = lake.call("POST", R + "/branches/main/staging/pmpu", path="parts", parts=1)
    path = {**MAIN, "uploadId": begun["upload_id"], "partNumber": part}
    return begun, Request(path, {"physical_address": begun["physical_address"], **more}, {"path": "parts"})


def completed(lake):
    begun, request = in_parts(lake, content_type="text/plain", user_metadata={"k": "v"})
    request.body["parts"] = [{"part_number": 1, "etag": put_to(begun["presigned_urls"][0], b"12345")}]
    return request


def linked(lake):
    given = lake.call("GET", R + "/branches/main/staging/backing", path="linked", presign="true")
    body = {"staging": given, "checksum": put_to(given["presigned_url"], b"12345"), "size_bytes": 5,
            "user_metadata": {"k": "v"}, "content_type": "text/plain"}
    return Request(MAIN, body, {"path": "linked"})


PATH = {"path": "base"}
IMPORT = {"paths": [{"type": "object", "path": "s3://lake-data/elsewhere", "destination": "in"}],
          "commit": {"message": "m", "metadata": {"k": "v"}}}
PULL = {"title": "t", "description": "d", "source_branch": "dev", "destination_branch": "main"}
ERIN = {"userId": "erin"}
GOOD = {
    "healthCheck": Request(), "getConfig": Request(), "getLakeFSVersion": Request(), "getStorageConfig": Request(),
    "getGarbageCollectionConfig": Request(), "getSetupState": Request(), "getAuthCapabilities": Request(),
    "getCurrentUser": Request(), "login": login,
    "setup": Request(body={"username": "admin"}),
    "postStatsEvents": Request(body={"events": [{"class": "c", "name": "n", "count": 1}]}),
    "listUsers": Request(), "createUser": Request(body={"id": "carol"}), "getUser": Request(ERIN),
    "deleteUser": after(user, Request({"userId": "frank"})),
    "listUserCredentials": Request(ERIN), "createCredentials": Request(ERIN),
    "getCredentials": after(key, Request(ERIN)), "deleteCredentials": after(key, Request(ERIN)),
    "listRepositories": Request(), "createRepository": lambda lake: Request(body=another(lake)),
    "getRepository": Request(REPO), "deleteRepository": Request(REPO), "getRepositoryMetadata": Request(REPO),
    "setRepositoryMetadata": Request(REPO, {"metadata": {"k": "v"}}),
    "deleteRepositoryMetadata": after(labelled, Request(REPO, {"keys": ["k"]})),
    "getGCRules": after(rules, Request(REPO)), "setGCRules": Request(REPO, RULES),
    "deleteGCRules": after(rules, Request(REPO)),
    "internalGetGarbageCollectionRules": after(rules, Request(REPO)),
    "internalSetGarbageCollectionRules": Request(REPO, RULES),
    "internalDeleteGarbageCollectionRules": after(rules, Request(REPO)),
    "setGarbageCollectionRulesPreflight": Request(REPO),
    "getBranchProtectionRules": Request(REPO), "setBranchProtectionRules": Request(REPO, [{"pattern": "kept"}]),
    "internalGetBranchProtectionRules": Request(REPO),
    "internalCreateBranchProtectionRule": Request(REPO, {"pattern": "kept"}),
    "internalDeleteBranchProtectionRule": after(protected, Request(REPO, {"pattern": "kept"})),
    "createBranchProtectionRulePreflight": Request(REPO),
    "dumpRefs": Request(REPO), "restoreRefs": lambda lake: Request(REPO, bare(lake)),
    "dumpSubmit": Request(REPO), "dumpStatus": dumped,
    "restoreSubmit": lambda lake: Request(REPO, bare(lake)), "restoreStatus": restored,
    "listTags": Request(REPO), "createTag": Request(REPO, {"id": "v2", "ref": "main"}),
    "getTag": Request({**REPO, "tag": "v1"}), "deleteTag": Request({**REPO, "tag": "v1"}),
    "listBranches": Request(REPO), "createBranch": Request(REPO, {"name": "new", "source": "main"}),
    "getBranch": Request(MAIN), "deleteBranch": Request({**REPO, "branch": "dev"}),
    "resetBranch": after(staged, Request(MAIN, {"type": "object", "path": "staged"})),
    "hardResetBranch": Request(MAIN, query={"ref": "dev"}),
    "revertBranch": Request(MAIN, {"ref": "main", "parent_number": 0}), "cherryPick": Request(MAIN, {"ref": "dev"}),
    "diffBranch": Request(MAIN), "commit": after(staged, Request(MAIN, {"message": "m", "metadata": {"k": "v"}})),
    "CreateCommitRecord": record, "getCommit": Request({**REPO, "commitId": "main"}), "logCommits": Request(REF),
    "mergeIntoBranch": Request({**REPO, "sourceRef": "dev", "destinationBranch": "main"},
                               {"message": "m", "metadata": {"k": "v"}, "strategy": "source-wins"}),
    "findMergeBase": Request({**REPO, "sourceRef": "dev", "destinationBranch": "main"}),
    "diffRefs": Request({**REPO, "leftRef": "main", "rightRef": "dev"}),
    "getObject": Request(REF, query=PATH), "headObject": Request(REF, query=PATH),
    "statObject": Request(REF, query=PATH), "listObjects": Request(REF),
    "getUnderlyingProperties": Request(REF, query=PATH),
    "uploadObject": Request(MAIN, b"data", {"path": "new"}), "uploadObjectPreflight": Request(MAIN, query=PATH),
    "stageObject": Request(MAIN, {"physical_address": "s3://lake-data/elsewhere", "checksum": "x", "size_bytes": 1,
                                  "metadata": {"k": "v"}}, {"path": "new"}),
    "deleteObject": Request(MAIN, query=PATH), "deleteObjects": Request(MAIN, {"paths": ["base", "none"]}),
    "copyObject": Request(MAIN, {"src_path": "base"}, {"dest_path": "copy"}),
    "updateObjectUserMetadata": Request(MAIN, {"set": {"k": "v"}}, PATH),
    "getPhysicalAddress": Request(MAIN, query={"path": "linked"}), "linkPhysicalAddress": linked,
    "createPresignMultipartUpload": Request(MAIN, query={"path": "parts", "parts": 1}),
    "completePresignMultipartUpload": completed,
    "abortPresignMultipartUpload": lambda lake: in_parts(lake)[1],
    "uploadPart": lambda lake: in_parts(lake, 2)[1],
    "uploadPartCopy": lambda lake: in_parts(
        lake, 1, copy_source={"repository": "repo", "ref": "main", "path": "base", "range": "bytes=0-1"})[1],
    "importStart": Request(MAIN, IMPORT), "importStatus": imported, "importCancel": imported,
    "listRepositoryRuns": after(run, Request(REPO)), "getRun": after(run, Request(REPO)),
    "listRunHooks": after(run, Request(REPO)), "getRunHookOutput": after(run, Request(REPO)),
    "getMetaRange": after(tree, Request(REPO)), "getRange": after(tree, Request(REPO)),
    "getMetadataObject": after(tree, Request({**REPO, "type": "meta_range"})),
    "listPullRequests": Request(REPO), "createPullRequest": Request(REPO, PULL),
    "getPullRequest": after(pull, Request(REPO)), "mergePullRequest": after(pull, Request(REPO)),
    "updatePullRequest": after(pull, Request(REPO, {"title": "other"})),
}
# A good request that comes too late.
OTHER_STATUS = {"setup": 409, "importCancel": 409}  # it is set up already; the import has ended


# --- bad requests, from the description ---

WRONG = {"object": "text", "array": "text", "string": 7, "integer": "text", "number": "text", "boolean": "text"}
# Values that weir does not read, so that any value is good. The URL of a part is signed for any upload: the upload is
# looked for when the part is put.
UNREAD = {"linkPhysicalAddress: staging: presigned_url of another type",
          "linkPhysicalAddress: staging: presigned_url_expiry of another type", "uploadPart: another uploadId",
          "importStart: commit: date of another type", "importStart: commit: allow_empty of another type",
          "importStart: commit: force of another type"}
UNREAD_BODIES = {"setup", "postStatsEvents"}


def described(operation):
    """The description of the operation's parameters, and of the JSON that it takes (None: no JSON)."""
    methods = openapi()["paths"][operation.path]
    spec = methods[operation.method.lower()]
    parameters = [resolve(p) for p in methods.get("parameters", []) + spec.get("parameters", [])]
    content = resolve(spec.get("requestBody", {})).get("content", {})
    return parameters, content.get("application/json", {}).get("schema")


def wrong_members(schema, body):
    """Yields a name, and the body with one member left out or of another type."""
    schema = resolve(schema)
    required = set(schema.get("required", ()))
    for part in map(resolve, schema.get("allOf", ())):
        required |= set(part.get("required", ()))
        schema = {**schema, "properties": {**schema.get("properties", {}), **part.get("properties", {})}}
    for name, member in schema.get("properties", {}).items():
        member = resolve(member)
        if name in required:
            yield f"no {name}", {k: v for k, v in body.items() if k != name}
        if member.get("type") in WRONG:
            yield f"{name} of another type", {**body, name: WRONG[member["type"]]}
        if "enum" in member:
            yield f"{name} is no choice", {**body, name: "no-such-choice"}
        if isinstance(body.get(name), dict):
            for what, other in wrong_members(member, body[name]):
                yield f"{name}: {what}", {**body, name: other}
        items = resolve(member.get("items", {}))
        if member.get("type") == "array" and items.get("type") in WRONG:
            yield f"{name} with an item of another type", {**body, name: [WRONG[items["type"]]]}


def wrong_bodies(schema, body):
    if resolve(schema).get("type") == "array":
        yield "an object", {}
        yield "an item of another type", ["text"]
    else:
        yield "an array", []
        yield from wrong_members(schema, body)
    yield "no JSON", "{"
    yield "half of the JSON", json.dumps(body)[:-1]


def wrong_parameters(parameters, request):
    """Yields a name, and the values of the path and the query with one that is wrong."""
    for parameter in parameters:
        name, kind = parameter["name"], resolve(parameter["schema"])
        if parameter["in"] == "path":
            yield f"another {name}", {**request.path, name: "no-such-thing"}, request.query
        if parameter["in"] != "query":
            continue
        if parameter.get("required"):
            yield f"no {name}", request.path, {k: v for k, v in request.query.items() if k != name}
        if kind.get("type") in ("integer", "boolean") or "enum" in kind:
            yield f"{name}=text", request.path, {**request.query, name: "text"}


def bad_requests(operation, request):
    parameters, schema = described(operation)
    for what, path, query in wrong_parameters(parameters, request):
        yield what, Request(path, request.body, query)
    if schema and operation.id not in UNREAD_BODIES:
        for what, body in wrong_bodies(schema, request.body):
            yield what, Request(request.path, body, request.query)


def state(lake):
    """What can be seen of the repository, and of the lists that operations without a repository change."""
    if lake.send("GET", R).status == 404:
        return None
    settings = [lake.call("GET", R + path) for path in ("", "/metadata", "/settings/branch_protection")]
    lists = ["/repositories", "/auth/users", R + "/branches?show_hidden=true", R + "/tags", R + "/pulls"]
    for branch in [b["id"] for b in lake.call("GET", R + "/branches")["results"]]:
        lists += [f"{R}/branches/{branch}/diff", f"{R}/refs/{branch}/objects/ls"]
    return settings + [lake.send("GET", R + "/settings/gc_rules").json] + [lake.send("GET", path).json for path in lists]


def test_there_is_a_request_for_every_operation_that_is_served():
    assert sorted(GOOD) == SERVED and len(SERVED) == 61 + 38


@pytest.mark.parametrize("name", SERVED)
def test_good_and_bad_input(lake, name):
    operation, make = OPERATION[name], GOOD[name]
    request = make(lake) if callable(make) else make
    before = state(lake)
    for what, bad in bad_requests(operation, request):
        if f"{name}: {what}" in UNREAD:
            continue
        answer = bad.send(lake, operation)
        assert answer.status in (400, 404), f"{what}: {answer.status} {answer.body[:300]!r}"
        assert operation.method == "HEAD" or answer.json["message"], what
    assert state(lake) == before
    answer = request.send(lake, operation)
    assert answer.status == OTHER_STATUS.get(name, operation.status), f"{answer.status} {answer.body[:300]!r}"
