"""A client of lakeFS's REST API for tests of the lake. Each answer is checked against the table of operations, and against
the published API. Its OpenAPI file (api/swagger.yml of treeverse/lakeFS) is not part of weir: WEIR_LAKEFS_OPENAPI names it,
or it is shared/facts/lakefs-openapi.yml beside the checkout. Without it, the tests that need it are skipped."""
import base64
import functools
import http.client
import json
import os
import pathlib
import re
import types
import urllib.parse

from conftest import DEADLINE, ROOT, note_secrets, secret

PREFIX = "/api/v1"

# Every operation of the published API: its id, method, first status of success, and path.
OPERATIONS = """
setupCommPrefs POST 200 /setup_comm_prefs
getSetupState GET 200 /setup_lakefs
setup POST 200 /setup_lakefs
getCurrentUser GET 200 /user
login POST 200 /auth/login
externalPrincipalLogin POST 200 /auth/external/principal/login
stsLogin POST 200 /sts/login
getAuthCapabilities GET 200 /auth/capabilities
listUsers GET 200 /auth/users
createUser POST 201 /auth/users
getUser GET 200 /auth/users/{userId}
deleteUser DELETE 204 /auth/users/{userId}
listGroups GET 200 /auth/groups
createGroup POST 201 /auth/groups
getGroup GET 200 /auth/groups/{groupId}
deleteGroup DELETE 204 /auth/groups/{groupId}
listPolicies GET 200 /auth/policies
createPolicy POST 201 /auth/policies
getPolicy GET 200 /auth/policies/{policyId}
updatePolicy PUT 200 /auth/policies/{policyId}
deletePolicy DELETE 204 /auth/policies/{policyId}
listGroupMembers GET 200 /auth/groups/{groupId}/members
addGroupMembership PUT 201 /auth/groups/{groupId}/members/{userId}
deleteGroupMembership DELETE 204 /auth/groups/{groupId}/members/{userId}
listUserCredentials GET 200 /auth/users/{userId}/credentials
createCredentials POST 201 /auth/users/{userId}/credentials
deleteCredentials DELETE 204 /auth/users/{userId}/credentials/{accessKeyId}
getCredentials GET 200 /auth/users/{userId}/credentials/{accessKeyId}
listUserGroups GET 200 /auth/users/{userId}/groups
listUserPolicies GET 200 /auth/users/{userId}/policies
attachPolicyToUser PUT 201 /auth/users/{userId}/policies/{policyId}
detachPolicyFromUser DELETE 204 /auth/users/{userId}/policies/{policyId}
createUserExternalPrincipal POST 201 /auth/users/{userId}/external/principals
deleteUserExternalPrincipal DELETE 204 /auth/users/{userId}/external/principals
listUserExternalPrincipals GET 200 /auth/users/{userId}/external/principals/ls
getExternalPrincipal GET 200 /auth/external/principals
listGroupPolicies GET 200 /auth/groups/{groupId}/policies
attachPolicyToGroup PUT 201 /auth/groups/{groupId}/policies/{policyId}
detachPolicyFromGroup DELETE 204 /auth/groups/{groupId}/policies/{policyId}
setGroupACL POST 201 /auth/groups/{groupId}/acl
getGroupACL GET 200 /auth/groups/{groupId}/acl
listRepositories GET 200 /repositories
createRepository POST 201 /repositories
getRepository GET 200 /repositories/{repository}
deleteRepository DELETE 204 /repositories/{repository}
getRepositoryMetadata GET 200 /repositories/{repository}/metadata
setRepositoryMetadata POST 204 /repositories/{repository}/metadata
deleteRepositoryMetadata DELETE 204 /repositories/{repository}/metadata
getGCRules GET 200 /repositories/{repository}/settings/gc_rules
setGCRules PUT 204 /repositories/{repository}/settings/gc_rules
deleteGCRules DELETE 204 /repositories/{repository}/settings/gc_rules
getBranchProtectionRules GET 200 /repositories/{repository}/settings/branch_protection
setBranchProtectionRules PUT 204 /repositories/{repository}/settings/branch_protection
dumpRefs PUT 201 /repositories/{repository}/refs/dump
restoreRefs PUT 200 /repositories/{repository}/refs/restore
dumpSubmit POST 202 /repositories/{repository}/dump
dumpStatus GET 200 /repositories/{repository}/dump
restoreSubmit POST 202 /repositories/{repository}/restore
restoreStatus GET 200 /repositories/{repository}/restore
listTags GET 200 /repositories/{repository}/tags
createTag POST 201 /repositories/{repository}/tags
getTag GET 200 /repositories/{repository}/tags/{tag}
deleteTag DELETE 204 /repositories/{repository}/tags/{tag}
listBranches GET 200 /repositories/{repository}/branches
createBranch POST 201 /repositories/{repository}/branches
logCommits GET 200 /repositories/{repository}/refs/{ref}/commits
commit POST 201 /repositories/{repository}/branches/{branch}/commits
CreateCommitRecord POST 204 /repositories/{repository}/commits
getBranch GET 200 /repositories/{repository}/branches/{branch}
deleteBranch DELETE 204 /repositories/{repository}/branches/{branch}
resetBranch PUT 204 /repositories/{repository}/branches/{branch}
hardResetBranch PUT 204 /repositories/{repository}/branches/{branch}/hard_reset
revertBranch POST 204 /repositories/{repository}/branches/{branch}/revert
cherryPick POST 201 /repositories/{repository}/branches/{branch}/cherry-pick
mergeIntoBranch POST 200 /repositories/{repository}/refs/{sourceRef}/merge/{destinationBranch}
findMergeBase GET 200 /repositories/{repository}/refs/{sourceRef}/merge/{destinationBranch}
diffBranch GET 200 /repositories/{repository}/branches/{branch}/diff
diffRefs GET 200 /repositories/{repository}/refs/{leftRef}/diff/{rightRef}
getCommit GET 200 /repositories/{repository}/commits/{commitId}
getObject GET 200 /repositories/{repository}/refs/{ref}/objects
headObject HEAD 200 /repositories/{repository}/refs/{ref}/objects
createPresignMultipartUpload POST 201 /repositories/{repository}/branches/{branch}/staging/pmpu
completePresignMultipartUpload PUT 200 /repositories/{repository}/branches/{branch}/staging/pmpu/{uploadId}
abortPresignMultipartUpload DELETE 204 /repositories/{repository}/branches/{branch}/staging/pmpu/{uploadId}
uploadPart PUT 200 /repositories/{repository}/branches/{branch}/staging/pmpu/{uploadId}/parts/{partNumber}
uploadPartCopy PUT 204 /repositories/{repository}/branches/{branch}/staging/pmpu/{uploadId}/parts/{partNumber}/copy
getPhysicalAddress GET 200 /repositories/{repository}/branches/{branch}/staging/backing
linkPhysicalAddress PUT 200 /repositories/{repository}/branches/{branch}/staging/backing
importStatus GET 200 /repositories/{repository}/branches/{branch}/import
importStart POST 202 /repositories/{repository}/branches/{branch}/import
importCancel DELETE 204 /repositories/{repository}/branches/{branch}/import
uploadObjectPreflight GET 204 /repositories/{repository}/branches/{branch}/objects/stage_allowed
stageObject PUT 201 /repositories/{repository}/branches/{branch}/objects
uploadObject POST 201 /repositories/{repository}/branches/{branch}/objects
deleteObject DELETE 204 /repositories/{repository}/branches/{branch}/objects
deleteObjects POST 200 /repositories/{repository}/branches/{branch}/objects/delete
copyObject POST 201 /repositories/{repository}/branches/{branch}/objects/copy
statObject GET 200 /repositories/{repository}/refs/{ref}/objects/stat
updateObjectUserMetadata PUT 201 /repositories/{repository}/branches/{branch}/objects/stat/user_metadata
getUnderlyingProperties GET 200 /repositories/{repository}/refs/{ref}/objects/underlyingProperties
listObjects GET 200 /repositories/{repository}/refs/{ref}/objects/ls
createSymlinkFile POST 201 /repositories/{repository}/refs/{branch}/symlink
listRepositoryRuns GET 200 /repositories/{repository}/actions/runs
getRun GET 200 /repositories/{repository}/actions/runs/{run_id}
listRunHooks GET 200 /repositories/{repository}/actions/runs/{run_id}/hooks
getRunHookOutput GET 200 /repositories/{repository}/actions/runs/{run_id}/hooks/{hook_run_id}/output
getMetadataObject GET 200 /repositories/{repository}/metadata/object/{type}/{object_id}
getMetaRange GET 200 /repositories/{repository}/metadata/meta_range/{meta_range}
getRange GET 200 /repositories/{repository}/metadata/range/{range}
setGarbageCollectionRulesPreflight GET 204 /repositories/{repository}/gc/rules/set_allowed
internalGetGarbageCollectionRules GET 200 /repositories/{repository}/gc/rules
internalSetGarbageCollectionRules POST 204 /repositories/{repository}/gc/rules
internalDeleteGarbageCollectionRules DELETE 204 /repositories/{repository}/gc/rules
prepareGarbageCollectionCommits POST 201 /repositories/{repository}/gc/prepare_commits
prepareGarbageCollectionCommitsAsync POST 202 /repositories/{repository}/gc/prepare_commits/async
prepareGarbageCollectionCommitsStatus GET 200 /repositories/{repository}/gc/prepare_commits/status
prepareGarbageCollectionUncommitted POST 201 /repositories/{repository}/gc/prepare_uncommited
createBranchProtectionRulePreflight GET 204 /repositories/{repository}/branch_protection/set_allowed
internalGetBranchProtectionRules GET 200 /repositories/{repository}/branch_protection
internalCreateBranchProtectionRule POST 204 /repositories/{repository}/branch_protection
internalDeleteBranchProtectionRule DELETE 204 /repositories/{repository}/branch_protection
listPullRequests GET 200 /repositories/{repository}/pulls
createPullRequest POST 201 /repositories/{repository}/pulls
getPullRequest GET 200 /repositories/{repository}/pulls/{pull_request}
updatePullRequest PATCH 200 /repositories/{repository}/pulls/{pull_request}
mergePullRequest PUT 200 /repositories/{repository}/pulls/{pull_request}/merge
healthCheck GET 204 /healthcheck
getConfig GET 200 /config
getLakeFSVersion GET 200 /config/version
getStorageConfig GET 200 /config/storage
getGarbageCollectionConfig GET 200 /config/garbage-collection
postStatsEvents POST 204 /statistics
getUsageReportSummary GET 200 /usage-report/summary
oauthCallback GET 302 /oidc/callback
"""

# Operations that weir does not serve, and those that it does not serve yet.
REFUSED = """
addGroupMembership attachPolicyToGroup attachPolicyToUser createGroup createPolicy createSymlinkFile
createUserExternalPrincipal deleteGroup deleteGroupMembership deletePolicy deleteUserExternalPrincipal
detachPolicyFromGroup detachPolicyFromUser externalPrincipalLogin getExternalPrincipal getGroup getGroupACL getPolicy
getUsageReportSummary listGroupMembers listGroupPolicies listGroups listPolicies listUserExternalPrincipals listUserGroups
listUserPolicies oauthCallback prepareGarbageCollectionCommits prepareGarbageCollectionCommitsAsync
prepareGarbageCollectionCommitsStatus prepareGarbageCollectionUncommitted setGroupACL setupCommPrefs stsLogin updatePolicy
""".split()


class Operation:
    def __init__(self, line):
        self.id, self.method, status, self.path = line.split()
        self.status = int(status)
        self.pattern = re.compile(re.sub(r"\{\w+\}", "[^/]+", self.path) + "$")

    def example(self):
        """The path with some value for each parameter."""
        return re.sub(r"\{\w+\}", "example", self.path)

    def __repr__(self):
        return self.id


OPERATION = {o.id: o for o in map(Operation, OPERATIONS.strip().splitlines())}


def operation_of(method, path):
    """The operation of a request. Of two that fit, the one with fewer parameters."""
    fits = [o for o in OPERATION.values() if o.method == method and o.pattern.match(path)]
    return min(fits, key=lambda o: o.path.count("{"), default=None)


# --- the published API ---

NO_OPENAPI = "the OpenAPI file of lakeFS is not there; WEIR_LAKEFS_OPENAPI names it"


@functools.cache
def openapi():
    """The OpenAPI document, or None when there is none. A file that WEIR_LAKEFS_OPENAPI names must be there."""
    named = os.environ.get("WEIR_LAKEFS_OPENAPI")
    path = pathlib.Path(named or ROOT.parent / "shared/facts/lakefs-openapi.yml")
    if not named and not path.exists():
        return None
    import yaml
    with open(path) as file:
        return yaml.load(file, Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))


def resolve(node):
    while "$ref" in node:
        target = openapi()
        for part in node["$ref"].lstrip("#/").split("/"):
            target = target[part]
        node = target
    return node


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float), "boolean": bool}


def violations(schema, value, at="answer"):
    """Yields how the value differs from the schema."""
    schema = resolve(schema)
    for part in schema.get("allOf", ()):
        yield from violations(part, value, at)
    kind = schema.get("type")
    if kind and (not isinstance(value, TYPES[kind]) or (kind == "integer" and isinstance(value, bool))):
        yield f"{at} is {value!r} and not of type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{at} is {value!r} and not one of {schema['enum']}"
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield f"{at} lacks {name}"
        extra = schema.get("additionalProperties")
        for name, item in value.items():
            part = schema.get("properties", {}).get(name) or (extra if isinstance(extra, dict) else None)
            if part:
                yield from violations(part, item, f"{at}.{name}")
    if isinstance(value, list):
        for i, item in enumerate(value):
            yield from violations(schema.get("items", {}), item, f"{at}[{i}]")


def check_answer(operation, answer):
    """Checks status and body of an answer against the published API."""
    spec = openapi()["paths"][operation.path][operation.method.lower()]["responses"]
    described = spec.get(str(answer.status)) or spec.get(answer.status) or spec.get("default")
    if not described and answer.status in (401, 429):  # some operations do not mention that keys may be wrong
        described = {"$ref": "#/components/responses/Unauthorized"}
    assert described, f"{operation}: status {answer.status} is not described"
    content = resolve(described).get("content", {})
    media = answer.headers.get("Content-Type", "").split(";")[0]
    if operation.method != "HEAD" and "application/json" in content and answer.body:
        assert media == "application/json", f"{operation}: {media}"
        found = list(violations(content["application/json"]["schema"], answer.json))
        assert not found, f"{operation} {answer.status}: {found}"


# --- the client ---

class Lake:
    """Calls of one user. Paths are below /api/v1."""

    def __init__(self, server, keys=None, token=None):
        self.server, self.token = server, token
        self.keys = keys or server.keys
        secret(self.keys[1])

    def authorization(self):
        if self.token:
            return "Bearer " + self.token
        return "Basic " + base64.b64encode(":".join(self.keys).encode()).decode()

    def send(self, method, target, body=None, /, headers=None, **query):
        """Makes a call and returns its answer, with any status."""
        url = urllib.parse.urlsplit(self.server.url)
        connection = http.client.HTTPConnection(url.hostname, url.port, timeout=DEADLINE)
        headers = {"Authorization": self.authorization(), **(headers or {})}
        if isinstance(body, (dict, list)):
            headers.setdefault("Content-Type", "application/json")
            body = json.dumps(body)
        given = [(k, v) for k, v in query.items() if v is not None]
        whole = PREFIX + target + ("?" + urllib.parse.urlencode(given, doseq=True) if given else "")
        try:
            connection.request(method, whole, body=body,
                               headers={k: v for k, v in headers.items() if v is not None})
            got = connection.getresponse()
            answer = types.SimpleNamespace(status=got.status, reason=got.reason, headers=got.headers, body=got.read())
        finally:
            connection.close()
        is_json = answer.headers.get("Content-Type", "").startswith("application/json")
        answer.json = json.loads(answer.body) if is_json and answer.body else None
        note_secrets(answer.json)
        self.judge(method, target, answer)
        return answer

    @staticmethod
    def judge(method, path, answer):
        operation = operation_of(method, path)
        if not operation:
            return
        if openapi():
            check_answer(operation, answer)
        if answer.status >= 400 and answer.json is not None:
            assert isinstance(answer.json.get("message"), str), answer.json

    def call(self, method, target, body=None, /, **more):
        """Makes a call that succeeds. Returns the JSON, or else the bytes."""
        operation = operation_of(method, target)
        assert operation, f"{method} {target} is not an operation"
        answer = self.send(method, target, body, **more)
        assert answer.status == operation.status, f"{operation}: {answer.status} {answer.body[:500]!r}"
        return answer.json if answer.json is not None else answer.body

    def fails(self, method, target, status, message, /, body=None, **more):
        """Makes a call that fails with this status and a message that contains `message`."""
        answer = self.send(method, target, body, **more)
        text = (answer.json or {}).get("message", "")
        assert (answer.status, message in text) == (status, True), f"{answer.status} {answer.body[:500]!r}"

    # short forms

    def repo(self, name="repo", namespace=None, **more):
        """Makes a repository. The bucket of its namespace is made if it is not there."""
        namespace = namespace or f"s3://lake-data/{name}"
        s3 = self.server.s3(self.keys)
        bucket = namespace.split("/")[2]
        if bucket not in [b["Name"] for b in s3.list_buckets()["Buckets"]]:
            s3.create_bucket(Bucket=bucket)
        return self.call("POST", "/repositories", {"name": name, "storage_namespace": namespace, **more})

    def put(self, path, data=b"data", branch="main", repo="repo", **more):
        return self.call("POST", f"/repositories/{repo}/branches/{branch}/objects", data, path=path, **more)

    def get(self, path, ref="main", repo="repo", **more):
        return self.call("GET", f"/repositories/{repo}/refs/{quote(ref)}/objects", path=path, **more)

    def remove(self, path, branch="main", repo="repo"):
        return self.call("DELETE", f"/repositories/{repo}/branches/{branch}/objects", path=path)

    def commit(self, message="a commit", branch="main", repo="repo", **more):
        return self.call("POST", f"/repositories/{repo}/branches/{branch}/commits", {"message": message, **more})

    def branch(self, name, source="main", repo="repo", **more):
        return self.call("POST", f"/repositories/{repo}/branches", {"name": name, "source": source, **more}).decode()

    def pages(self, target, /, **query):
        """All results of a list, page by page."""
        after = ""
        while True:
            answer = self.call("GET", target, after=after or None, **query)
            yield from answer["results"]
            page = answer["pagination"]
            assert page["results"] == len(answer["results"]) and page["max_per_page"] == 1000
            assert bool(page["next_offset"]) == page["has_more"]
            if not page["has_more"]:
                return
            after = page["next_offset"]

    def paths(self, ref="main", repo="repo", **query):
        return [o["path"] for o in self.pages(f"/repositories/{repo}/refs/{quote(ref)}/objects/ls", **query)]


def quote(text):
    return urllib.parse.quote(text, safe="")
