"""What users may do in repositories of others through the REST API of the lake, and what nobody may."""
import hashlib
import json
import urllib.error
import urllib.request

import pytest

from conftest import free_port, runner, secret, wait_for

pytest.importorskip("boto3")
ClientError = pytest.importorskip("botocore.exceptions").ClientError


class Tenant:
    """A user of weir with an access key."""

    def __init__(self, server, made):
        self.server, self.keys = server, (made["access_key"], made["secret_key"])
        self.s3 = server.s3(self.keys)

    def call(self, method, path, body=None, token=None):
        """Makes a call as the user, or with a token, and returns the status and the body."""
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        answer = self.server.request(method, "/api/v1" + path, body=body, keys=None if token else self.keys,
                                     headers=headers)
        return answer.status, answer.body

    def made(self, method, path, body=None):
        """Makes a call that must succeed, and returns its answer."""
        status, text = self.call(method, path, body)
        assert status in (200, 201, 204), text
        return json.loads(text) if text.startswith("{") else text

    def login(self):
        return secret(self.made("POST", "/auth/login", {"access_key_id": self.keys[0],
                                                         "secret_access_key": self.keys[1]})["token"])


@pytest.fixture
def server(serve):
    """A server that makes presigned URLs."""
    port = free_port()
    return serve("--s3.listen", f"127.0.0.1:{port}", "--s3.url", f"http://127.0.0.1:{port}").ready()


@pytest.fixture
def tenant(server, weir):
    """tenant(name) adds a user."""
    return lambda name: Tenant(server, runner(server, weir)("user", "add", name, "--json")[0])


REPO = "/repositories/repo"


def allow(owner, *resources, actions=("s3:GetObject", "s3:PutObject")):
    """Lets bob do the actions on the resources of the repository."""
    owner.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": list(actions),
         "Resource": [f"arn:aws:s3:::repo/{r}" for r in resources]}]}))


@pytest.fixture
def alice(tenant):
    """The owner of a repository whose branch main has the object `secret`, and whose branch dev has nothing."""
    alice = tenant("alice")
    alice.s3.create_bucket(Bucket="data")
    alice.made("POST", "/repositories", {"name": "repo", "storage_namespace": "s3://data/ns"})
    alice.made("POST", REPO + "/branches", {"name": "dev", "source": "main"})
    alice.s3.put_object(Bucket="repo", Key="main/secret", Body=b"secret")
    alice.commit = alice.made("POST", REPO + "/branches/main/commits", {"message": "m"})
    alice.stat = alice.made("GET", REPO + "/refs/main/objects/stat?path=secret")
    return alice


@pytest.fixture
def bob(tenant, alice):
    """A user who may read and write the branch dev alone."""
    bob = tenant("bob")
    allow(alice, "dev/*")
    return bob


def stage(user, address, path="stolen"):
    return user.call("PUT", f"{REPO}/branches/dev/objects?path={path}",
                     {"physical_address": address, "checksum": hashlib.md5(b"secret").hexdigest(), "size_bytes": 6})[0]


def test_a_tree_of_another_branch_is_not_committed(alice, bob):
    path = f"{REPO}/branches/dev/commits?source_metarange={alice.commit['meta_range_id']}"
    assert bob.call("POST", path, {"message": "m"})[0] == 401
    assert bob.call("GET", REPO + "/refs/dev/objects?path=secret")[0] == 404
    allow(alice, "*")
    assert bob.call("POST", path, {"message": "m"})[0] == 201


def test_bytes_of_another_branch_are_not_staged_by_their_address(alice, bob):
    address = alice.stat["physical_address"]
    assert stage(bob, address) == 401
    assert bob.call("GET", REPO + "/refs/dev/objects?path=stolen")[0] == 404
    allow(alice, "*")
    assert stage(bob, address) == 201
    assert bob.call("GET", REPO + "/refs/dev/objects?path=stolen") == (200, "secret")


def test_an_address_is_staged_by_the_user_to_whom_it_was_given(alice, bob):
    given = bob.made("GET", REPO + "/branches/dev/staging/backing?path=mine")["physical_address"]
    assert stage(bob, given, "other") == 401
    assert stage(bob, given, "mine") == 201


def test_an_address_in_a_repository_is_refused(alice, bob):
    assert stage(alice, "s3://repo/main/secret") == 400


# --- objects outside of the namespace ---

def outside(user, body, etag=None):
    """Stages the object s3://abk/k, whose bytes are expected to be `body`, in bob's repository."""
    etag = hashlib.md5(body).hexdigest() if etag is None else etag
    return user.call("PUT", "/repositories/bobs/branches/main/objects?path=k", {
        "physical_address": "s3://abk/k", "checksum": etag, "size_bytes": len(body)})[0]


def presigned(user):
    """The presigned URLs of the staged object, from a redirect and from a listing."""
    at = "/api/v1/repositories/bobs/refs/main/objects"
    redirect = user.server.request("GET", at + "?path=k&presign=true", keys=user.keys)
    listed = user.made("GET", "/repositories/bobs/refs/main/objects/ls?presign=true")["results"][0]["physical_address"]
    return [redirect.headers["Location"] if redirect.status == 302 else redirect.status, listed]


def fetch(url):
    """The status of a request that anybody makes."""
    try:
        with urllib.request.urlopen(url) as answer:
            return answer.status
    except urllib.error.HTTPError as e:
        return e.code


def reads(user):
    """Reads the staged object by REST, by S3, by a copy to another repository and by two presigned URLs, and returns the five
    results."""
    def by_s3(call, **more):
        try:
            return call(Bucket="bobs", **more)["ResponseMetadata"]["HTTPStatusCode"]
        except ClientError as e:
            return e.response["Error"]["Code"]
    return [user.call("GET", "/repositories/bobs/refs/main/objects?path=k")[0],
            by_s3(user.s3.get_object, Key="main/k"),
            by_s3(lambda Bucket: user.s3.copy_object(Bucket="bob2", Key="main/k",
                                                     CopySource={"Bucket": Bucket, "Key": "main/k"})),
            *(fetch(url) for url in presigned(user))]


READ = [200, 200, 200, 200, 200]
GONE = [410, "NoSuchVersion", "NoSuchVersion"]  # and what the presigned URLs give


@pytest.fixture
def stager(tenant):
    """Bob, the owner of the repositories bobs and bob2."""
    bob = tenant("bob")
    bob.s3.create_bucket(Bucket="bbk")
    for name in ("bobs", "bob2"):
        bob.made("POST", "/repositories", {"name": name, "storage_namespace": f"s3://bbk/{name}"})
    return bob


def test_an_object_elsewhere_is_read_only_while_the_owner_of_the_repository_may_read_it(stager, tenant):
    alice = tenant("alice")
    alice.s3.create_bucket(Bucket="abk")
    alice.s3.put_object(Bucket="abk", Key="k", Body=b"ALICE")
    assert outside(stager, b"ALICE") == 401
    rule = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": "s3:GetObject",
            "Resource": "arn:aws:s3:::abk/*"}

    def permit(**more):
        alice.s3.put_bucket_policy(Bucket="abk", Policy=json.dumps({"Version": "2012-10-17",
                                                                    "Statement": [{**rule, **more}]}))
    permit()
    assert outside(stager, b"ALICE") == 201
    assert reads(stager) == READ
    # The read is no request of bob's, so a condition about requests cannot allow it. A presigned URL is one of bob's.
    permit(Condition={"NotIpAddress": {"aws:SourceIp": "192.0.2.1"}})
    assert reads(stager) == GONE + [200, 200]
    permit(Condition={"StringEquals": {"s3:ExistingObjectTag/open": "yes"}})
    assert reads(stager) == GONE + [403, 403]
    alice.s3.put_object_tagging(Bucket="abk", Key="k", Tagging={"TagSet": [{"Key": "open", "Value": "yes"}]})
    assert reads(stager) == READ
    alice.s3.delete_bucket_policy(Bucket="abk")
    assert reads(stager) == GONE + [403, 403]
    alice.s3.put_object_acl(Bucket="abk", Key="k", ACL="public-read")
    assert reads(stager) == READ


def test_an_object_elsewhere_that_was_overwritten_is_gone(stager):
    stager.s3.create_bucket(Bucket="abk")
    stager.s3.put_object(Bucket="abk", Key="k", Body=b"FIRST")
    assert outside(stager, b"FIRST") == 201
    assert reads(stager) == READ
    before = presigned(stager)
    stager.s3.put_object(Bucket="abk", Key="k", Body=b"OTHER")
    assert reads(stager) == GONE + [412, 412]
    assert [fetch(url) for url in before] == [412, 412]
    assert [fetch(url.replace("x-weir-if-match", "x-other")) for url in before] == [403, 403]


@pytest.mark.parametrize("etag", ["", "*", "x,*"])
def test_a_presigned_url_of_an_entry_without_a_usable_etag_is_checked_when_it_is_made(stager, etag):
    stager.s3.create_bucket(Bucket="abk")
    stager.s3.put_object(Bucket="abk", Key="k", Body=b"FIRST")
    assert outside(stager, b"FIRST", etag) == 201
    gone = [410, "s3://abk/k"]
    if etag:  # the object never had this ETag
        assert presigned(stager) == gone
        return
    before = presigned(stager)
    assert [fetch(url) for url in before] == [200, 200]
    stager.s3.put_object(Bucket="abk", Key="k", Body=b"OTHER")  # of the same size
    assert [fetch(url) for url in before] == [412, 412]
    assert [fetch(url) for url in presigned(stager)] == [200, 200]
    stager.s3.put_object(Bucket="abk", Key="k", Body=b"LONGER")
    assert presigned(stager) == gone


def test_a_bucket_of_the_same_name_is_not_read(stager, tenant):
    stager.s3.create_bucket(Bucket="abk")
    assert outside(stager, b"ALICE") == 201
    stager.s3.delete_bucket(Bucket="abk")
    alice = tenant("alice")
    alice.s3.create_bucket(Bucket="abk")
    alice.s3.put_object(Bucket="abk", Key="k", Body=b"ALICE")
    assert reads(stager) == GONE + [403, 403]


# --- denials for some paths of a ref ---

def deny(owner, *resources, actions=("s3:GetObject",)):
    """Lets bob do everything in the repository, but denies him the actions on the resources."""
    bob = {"Principal": {"AWS": "arn:aws:iam:::user/bob"}}
    owner.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {**bob, "Effect": "Allow", "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject", "s3:ListBucket"],
         "Resource": ["arn:aws:s3:::repo", "arn:aws:s3:::repo/main/*", "arn:aws:s3:::repo/dev*/*"]},
        {**bob, "Effect": "Deny", "Action": list(actions), "Resource": [f"arn:aws:s3:::repo/{r}" for r in resources]}]}))


# Calls that take all of main: each makes main/secret readable, or staged, elsewhere.
TAKES = {
    "branch": ("POST", REPO + "/branches", {"name": "dev-2", "source": "main"}),
    "tag": ("POST", REPO + "/tags", {"id": "dev-tag", "ref": "main"}),
    "merge": ("POST", REPO + "/refs/main/merge/dev", {}),
    "cherry-pick": ("POST", REPO + "/branches/dev/cherry-pick", {"ref": "main"}),
    "hard reset": ("PUT", REPO + "/branches/dev/hard_reset?ref=main", None),
}


@pytest.mark.parametrize("name", TAKES)
def test_a_denial_is_not_evaded_by_another_ref(alice, bob, name):
    deny(alice, "main/secret")
    assert bob.call("GET", REPO + "/refs/main/objects?path=secret")[0] == 401
    assert bob.call(*TAKES[name])[0] == 401
    for ref in ("dev", "dev-2", "dev-tag"):
        assert bob.call("GET", f"{REPO}/refs/{ref}/objects?path=secret")[0] == 404
    deny(alice, "*/secret")
    assert bob.call(*TAKES[name])[0] in (200, 201, 204)
    for ref in ("dev", "dev-2", "dev-tag"):
        assert bob.call("GET", f"{REPO}/refs/{ref}/objects?path=secret")[0] == 401


def rules(owner, *statements):
    """Sets a policy. A statement is the effect, the user, the actions, and other members."""
    owner.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": effect, "Principal": {"AWS": "arn:aws:iam:::user/" + who} if who != "*" else "*",
         "Action": ["s3:" + a for a in actions.split()],
         **{k: [f"arn:aws:s3:::repo/{r}" for r in v] if "Resource" in k else v for k, v in more.items()}}
        for effect, who, actions, more in statements]}))


WRITE = ("Allow", "bob", "PutObject", {"Resource": ["*"]})
DEV = ("Allow", "bob", "GetObject", {"Resource": ["dev*"]})
# Policies that do not let bob read main/secret, though no statement denies it on every ref.
NARROW = {
    "another resource": [("Allow", "bob", "GetObject", {"NotResource": ["main/secret"]})],
    "some paths": [DEV, ("Allow", "bob", "GetObject", {"Resource": ["main/", "main/public/*"]})],
    "a tag": [DEV, ("Allow", "bob", "GetObject",
                    {"Resource": ["main/*"], "Condition": {"StringNotEquals": {"s3:ExistingObjectTag/a": "b"}}})],
    "for others": [("Allow", "bob", "GetObject", {"Resource": ["*"]}), ("Allow", "*", "GetObject", {"Resource": ["dev*"]}),
                   ("Deny", "bob", "GetObject", {"Resource": ["*/secret"]})],
    "a variable": [("Allow", "bob", "GetObject", {"Resource": ["*"]}),
                   ("Deny", "bob", "GetObject", {"Resource": ["main/${s3:ExistingObjectTag/path}"]})],
}


@pytest.mark.parametrize("name", TAKES)
@pytest.mark.parametrize("policy", NARROW)
def test_nobody_reads_by_another_ref_what_a_narrow_rule_does_not_allow(alice, bob, policy, name):
    alice.s3.put_object_tagging(Bucket="repo", Key="main/secret",
                                Tagging={"TagSet": [{"Key": "a", "Value": "b"}, {"Key": "path", "Value": "secret"}]})
    alice.made("POST", REPO + "/branches/main/commits", {"message": "tags"})
    rules(alice, WRITE, *NARROW[policy])
    assert bob.call("GET", REPO + "/refs/main/objects?path=secret")[0] == 401
    assert bob.call(*TAKES[name])[0] == 401
    rules(alice, WRITE, ("Allow", "bob", "GetObject", {"Resource": ["main/*"]}), DEV)
    assert bob.call(*TAKES[name])[0] in (200, 201, 204, 409)  # a pick of the tags alone is a conflict


def test_rules_for_single_refs_can_be_in_several_statements(alice, bob):
    rules(alice, WRITE, DEV, ("Allow", "bob", "GetObject", {"Resource": ["main/*"]}),
          ("Deny", "bob", "GetObject", {"Resource": ["*/secret"]}))
    assert bob.call(*TAKES["merge"])[0] == 200
    assert bob.call("GET", REPO + "/refs/dev/objects?path=secret")[0] == 401


def test_a_revert_gives_back_only_what_the_caller_may_read(alice, bob):
    """The commit that removes `secret` has nothing to hide, but its parent has."""
    alice.made("DELETE", REPO + "/branches/main/objects?path=secret")
    removal = alice.made("POST", REPO + "/branches/main/commits", {"message": "r"})
    revert = ("POST", REPO + "/branches/dev/revert", {"ref": removal["id"], "parent_number": 0})
    rules(alice, WRITE, DEV, ("Allow", "bob", "GetObject", {"Resource": [removal["id"] + "/*"]}))
    assert bob.call(*revert)[0] == 401
    assert bob.call("GET", REPO + "/refs/dev/objects?path=secret")[0] == 404
    rules(alice, WRITE, ("Allow", "bob", "GetObject", {"Resource": ["*"]}))
    assert bob.call(*revert)[0] == 204
    assert bob.call("GET", REPO + "/refs/dev/objects?path=secret") == (200, "secret")


def test_whoever_names_bytes_by_their_address_may_certainly_read_every_ref(alice, bob):
    address, tree = alice.stat["physical_address"], alice.commit["meta_range_id"]
    for more in ({"NotResource": ["main/*"]}, {"Resource": ["?/*"]}, {"Resource": ["?/", "dev/*"]},
                 {"Resource": ["*"], "Condition": {"StringEquals": {"aws:username": "${s3:ExistingObjectTag/a}"}}},
                 {"Resource": ["*"], "Condition": {"Null": {"s3:ExistingObjectTag/a": "true"}}}):
        rules(alice, WRITE, ("Allow", "bob", "GetObject", more))
        assert stage(bob, address) == 401, more
        assert bob.call("GET", f"{REPO}/metadata/object/meta_range/{tree}")[0] == 401
    rules(alice, WRITE, ("Allow", "bob", "GetObject", {"Resource": ["*"]}))
    assert stage(bob, address) == 201


def test_a_denial_is_not_evaded_by_a_pull_request(alice, bob):
    deny(alice, "main/secret")
    made = bob.made("POST", REPO + "/pulls", {"title": "t", "source_branch": "main", "destination_branch": "dev"})
    assert bob.call("PUT", f"{REPO}/pulls/{made['id']}/merge")[0] == 401
    deny(alice, "*/secret")
    assert bob.call("PUT", f"{REPO}/pulls/{made['id']}/merge")[0] == 200


def test_a_denial_is_not_evaded_by_the_address_of_the_bytes(alice, bob):
    address, tree = alice.stat["physical_address"], alice.commit["meta_range_id"]
    path = f"{REPO}/branches/dev/commits?source_metarange={tree}"
    deny(alice, "*/secret")
    allow_all = {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": "s3:*",
                 "Resource": ["arn:aws:s3:::repo", "arn:aws:s3:::repo/*"]}
    policy = json.loads(alice.s3.get_bucket_policy(Bucket="repo")["Policy"])
    policy["Statement"][0] = allow_all
    alice.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps(policy))
    assert stage(bob, address) == 401
    assert bob.call("POST", path, {"message": "m"})[0] == 401
    assert bob.call("GET", f"{REPO}/metadata/object/meta_range/{tree}")[0] == 401
    alice.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({**policy, "Statement": [allow_all]}))
    assert stage(bob, address) == 201


def test_a_denial_to_write_is_not_evaded_by_a_whole_branch(alice, bob):
    alice.made("POST", REPO + "/refs/main/merge/dev", {})
    bob_writes = REPO + "/branches/dev/objects?path=locked/x"
    calls = [("POST", REPO + "/refs/dev/merge/main", {}),
             ("POST", REPO + "/branches/main/cherry-pick", {"ref": "dev"}),
             ("PUT", REPO + "/branches/main", {"type": "reset"}),
             ("PUT", REPO + "/branches/main", {"type": "common_prefix", "path": "lock"}),
             ("PUT", REPO + "/branches/main", {"type": "object", "path": "locked/x"})]
    deny(alice, "main/locked/*", actions=["s3:PutObject"])
    assert bob.call("POST", REPO + "/branches/main/objects?path=locked/x", "x")[0] == 401
    assert bob.call("POST", bob_writes, "x")[0] == 201
    bob.made("POST", REPO + "/branches/dev/commits", {"message": "m"})
    for call in calls:
        assert bob.call(*call)[0] == 401, call
    # Other paths can be reset, and a denial on every ref denies the write before the merge.
    assert bob.call("PUT", REPO + "/branches/main", {"type": "common_prefix", "path": "free/"})[0] == 204
    deny(alice, "*/locked/*", actions=["s3:PutObject"])
    assert bob.call("POST", bob_writes, "y")[0] == 401
    assert bob.call(*calls[0])[0] == 200


@pytest.mark.parametrize("bare", ["false", "true"])
@pytest.mark.parametrize("statements, may", [
    ([("Allow", ["s3:PutObject"], "drop/*")], False),
    ([("Allow", ["s3:PutObject", "s3:DeleteObject"], "drop/*")], False),
    ([("Allow", ["s3:GetObject", "s3:PutObject"], "drop/*")], False),
    ([("Allow", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "drop/ns/")], False),
    ([("Allow", ["s3:*"], "drop/*"), ("Deny", ["s3:GetObject"], "drop/ns/data/*")], False),
    ([("Allow", ["s3:*"], "drop/*"), ("Deny", ["s3:DeleteObject"], "drop/*/secret")], False),
    ([("Allow", ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], "drop/ns/*")], True),
], ids=["write-only", "no-read", "no-removal", "one-key", "denied-read", "denied-removal", "all"])
def test_a_namespace_needs_all_rights_that_a_repository_uses_there(tenant, bare, statements, may):
    """A bare repository has the objects that lie in its namespace already, and a purge removes them."""
    alice, bob = tenant("alice"), tenant("bob")
    alice.s3.create_bucket(Bucket="drop")
    alice.s3.put_bucket_policy(Bucket="drop", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": effect, "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": actions,
         "Resource": f"arn:aws:s3:::{resource}"} for effect, actions, resource in statements]}))
    status, text = bob.call("POST", f"/repositories?bare={bare}", {"name": "repo", "storage_namespace": "s3://drop/ns"})
    assert status == (201 if may else 401), text


LENT = "/repositories/lent"


def lend(alice, **more):
    """Lets bob use the namespace s3://box/ns in alice's bucket."""
    alice.s3.put_bucket_policy(Bucket="box", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Resource": "arn:aws:s3:::box/ns/*",
         "Action": ["s3:GetObject", "s3:PutObject", "s3:DeleteObject"], **more}]}))


def everybody_reads(server, users):
    """Reads main/k of the repository `lent` in every way, as the users, an administrator and nobody; returns the statuses."""
    statuses = {user.call("GET", LENT + "/refs/main/objects?path=k")[0] for user in users}
    statuses.add(server.request("GET", "/api/v1" + LENT + "/refs/main/objects?path=k", keys=server.keys).status)
    try:
        statuses.add(urllib.request.urlopen(server.s3_url + "/lent/main/k").status)
    except urllib.error.HTTPError as e:
        statuses.add(e.code)
    return statuses


def test_a_namespace_is_used_only_while_the_owner_of_the_repository_has_the_rights(server, tenant):
    alice, bob = tenant("alice"), tenant("bob")
    alice.s3.create_bucket(Bucket="box")
    lend(alice)
    bob.made("POST", "/repositories", {"name": "lent", "storage_namespace": "s3://box/ns"})
    for key in ("k", "staged"):
        bob.s3.put_object(Bucket="lent", Key=f"main/{key}", Body=key.encode())
    bob.s3.put_bucket_policy(Bucket="lent", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
        {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::lent/*"}]}))
    assert everybody_reads(server, [alice, bob]) == {200}
    # The bucket's owner takes the rights away, or lets them depend on requests, which weir does not make as bob.
    for take in (lambda: alice.s3.delete_bucket_policy(Bucket="box"),
                 lambda: lend(alice, Condition={"IpAddress": {"aws:SourceIp": "127.0.0.0/8"}}),
                 lambda: lend(alice, Action=["s3:GetObject", "s3:PutObject"])):
        take()
        wait_for(lambda: everybody_reads(server, [alice, bob]) == {403}, "the refusal of reads")
        for call in (("POST", LENT + "/branches/main/objects?path=new", "x"),
                     ("POST", LENT + "/branches/main/commits", {"message": "m"})):
            assert bob.call(*call)[0] == 403, call
        with pytest.raises(ClientError, match="AccessDenied"):
            bob.s3.put_object(Bucket="lent", Key="main/new", Body=b"x")
        lend(alice)
        wait_for(lambda: everybody_reads(server, [alice, bob]) == {200}, "the rights")
    bob.made("POST", LENT + "/branches/main/commits", {"message": "m"})
    assert bob.s3.get_object(Bucket="lent", Key="main/staged")["Body"].read() == b"staged"


def test_a_repository_without_rights_in_its_namespace_can_be_deleted_and_leaves_its_files(serve, weir):
    server = serve("--lake.gc.grace=1s").ready()
    alice, bob = (Tenant(server, runner(server, weir)("user", "add", name, "--json")[0]) for name in ("alice", "bob"))
    alice.s3.create_bucket(Bucket="box")
    lend(alice)
    bob.made("POST", "/repositories", {"name": "lent", "storage_namespace": "s3://box/ns"})
    bob.s3.put_object(Bucket="lent", Key="main/k", Body=b"k")
    alice.s3.delete_bucket_policy(Bucket="box")
    wait_for(lambda: bob.call("GET", LENT + "/refs/main/objects?path=k")[0] == 403, "the refusal of reads")
    assert bob.call("DELETE", LENT + "?purge=true")[0] == 204
    wait_for(lambda: "lake.delete_leaves_files" in server.err, "the deletion")
    assert [o for o in alice.s3.list_objects_v2(Bucket="box")["Contents"] if "/data/" in o["Key"]]


def test_a_namespace_whose_bucket_was_made_again_by_another_user_is_not_read(tenant):
    alice, bob = tenant("alice"), tenant("bob")
    bob.s3.create_bucket(Bucket="box")
    bob.made("POST", "/repositories", {"name": "lent", "storage_namespace": "s3://box/ns"})
    for entry in bob.s3.list_objects_v2(Bucket="box").get("Contents", []):
        bob.s3.delete_object(Bucket="box", Key=entry["Key"])
    bob.s3.delete_bucket(Bucket="box")
    alice.s3.create_bucket(Bucket="box")
    alice.s3.put_object(Bucket="box", Key="ns/secret", Body=b"secret")
    staged = {"physical_address": "s3://box/ns/secret", "checksum": hashlib.md5(b"secret").hexdigest(), "size_bytes": 6}
    bob.call("PUT", LENT + "/branches/main/objects?path=stolen", staged)
    wait_for(lambda: bob.call("GET", LENT + "/refs/main/objects?path=stolen")[0] in (403, 404), "the refusal of reads")
    with pytest.raises(ClientError):
        bob.s3.get_object(Bucket="lent", Key="main/stolen")


def test_an_import_is_seen_and_cancelled_only_by_its_branch(alice, bob):
    alice.s3.put_object(Bucket="data", Key="outside", Body=b"x")
    allow(alice, "dev/*", actions=["s3:GetObject", "s3:PutObject", "s3:ListBucket"])
    source = {"type": "object", "path": "s3://data/outside", "destination": "in"}
    status, text = alice.call("POST", REPO + "/branches/main/import", {"paths": [source], "commit": {"message": "m"}})
    assert status == 202, text
    imported = json.loads(text)["id"]
    for method in ("GET", "DELETE"):
        assert bob.call(method, f"{REPO}/branches/main/import?id={imported}")[0] == 401
        assert bob.call(method, f"{REPO}/branches/dev/import?id={imported}")[0] in (401, 404)
    assert alice.call("DELETE", f"{REPO}/branches/dev/import?id={imported}")[0] == 404
    wait_for(lambda: alice.made("GET", f"{REPO}/branches/main/import?id={imported}")["completed"], "the import")
    assert alice.s3.get_object(Bucket="repo", Key="main/in")["Body"].read() == b"x"


def test_a_denial_to_remove_keeps_the_branch(alice, bob):
    deny(alice, "dev/locked/*", actions=["s3:DeleteObject"])
    assert bob.call("DELETE", REPO + "/branches/dev")[0] == 401
    deny(alice, "main/locked/*", actions=["s3:DeleteObject"])
    assert bob.call("DELETE", REPO + "/branches/dev")[0] == 204


def test_a_listing_signs_no_address_that_the_caller_may_not_read(server, weir):
    alice, bob = (Tenant(server, runner(server, weir)("user", "add", name, "--json")[0]) for name in ("alice", "bob"))
    alice.s3.create_bucket(Bucket="data")
    alice.made("POST", "/repositories", {"name": "repo", "storage_namespace": "s3://data/ns"})
    for path in ("open", "secret"):
        alice.s3.put_object(Bucket="repo", Key=f"main/{path}", Body=path.encode())
    deny(alice, "main/secret")
    rows = bob.made("GET", REPO + "/refs/main/objects/ls?presign=true")["results"]
    signed = {row["path"]: row["physical_address"].startswith("http") for row in rows}
    assert signed == {"open": True, "secret": False}
    assert "physical_address_expiry" not in rows[1]


def test_a_rule_about_the_tags_of_objects_holds_for_every_read(server, weir):
    alice, bob = (Tenant(server, runner(server, weir)("user", "add", name, "--json")[0]) for name in ("alice", "bob"))
    alice.s3.create_bucket(Bucket="data")
    alice.made("POST", "/repositories", {"name": "repo", "storage_namespace": "s3://data/ns"})
    for path, tags in ("open", "level=open"), ("secret", "level=secret"), ("plain", ""):
        alice.s3.put_object(Bucket="repo", Key=f"main/{path}", Body=path.encode(), Tagging=tags)
    # An object that has no ETag, which stageObject can make.
    alice.s3.put_object(Bucket="data", Key="outside", Body=b"bytes")
    alice.made("PUT", REPO + "/branches/main/objects?path=bare",
               {"physical_address": "s3://data/outside", "checksum": "", "size_bytes": 5})
    alice.s3.put_object_tagging(Bucket="repo", Key="main/bare", Tagging={"TagSet": [{"Key": "level", "Value": "secret"}]})
    everything = {"Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": "s3:*",
                  "Resource": ["arn:aws:s3:::repo", "arn:aws:s3:::repo/*"]}
    read = {**everything, "Action": "s3:GetObject"}

    def may_read(path):
        """Reads the object in every way, and returns whether bob may; all ways must agree."""
        upload = bob.made("POST", REPO + "/branches/main/staging/pmpu?path=joined")
        part = f"{REPO}/branches/main/staging/pmpu/{upload['upload_id']}/parts/1/copy?path=joined"
        source = {"repository": "repo", "ref": "main", "path": path}
        query = f"{REPO}/refs/main/objects%s?path={path}%s"
        rows = bob.made("GET", REPO + "/refs/main/objects/ls?presign=true")["results"]
        answers = [bob.call("GET", query % ("", "")), bob.call("GET", query % ("", "&presign=true")),
                   bob.call("HEAD", query % ("", "")), bob.call("GET", query % ("/stat", "")),
                   bob.call("GET", query % ("/underlyingProperties", "")),
                   bob.call("POST", REPO + "/branches/main/objects/copy?dest_path=copy", {"src_path": path}),
                   bob.call("PUT", part, {"physical_address": upload["physical_address"], "copy_source": source})]
        may = {status < 400 for status, _ in answers}
        assert may == {True} or {status for status, _ in answers} == {401}, answers
        may |= {row["physical_address"].startswith("http") for row in rows if row["path"] == path}
        for call in (lambda: bob.s3.get_object(Bucket="repo", Key=f"main/{path}"),
                     lambda: bob.s3.copy_object(Bucket="repo", Key="main/copy", CopySource=f"repo/main/{path}")):
            try:
                call()
                may.add(True)
            except ClientError as e:
                assert e.response["Error"]["Code"] == "AccessDenied"
                may.add(False)
        assert len(may) == 1, (path, answers, rows)
        return may.pop()

    def judged(*statements):
        alice.s3.put_bucket_policy(Bucket="repo", Policy=json.dumps({"Version": "2012-10-17",
                                                                     "Statement": list(statements)}))
        return {path: may_read(path) for path in ("open", "secret", "plain", "bare")}

    tag = "s3:ExistingObjectTag/level"
    assert judged({**everything, "Effect": "Allow"},
                 {**read, "Effect": "Deny", "Resource": "arn:aws:s3:::repo/*",
                  "Condition": {"StringEquals": {tag: "secret"}}}) == {"open": True, "secret": False, "plain": True, "bare": False}
    assert judged({"Effect": "Allow", "Principal": everything["Principal"], "NotAction": "s3:GetObject",
                  "Resource": everything["Resource"]},
                 {**read, "Effect": "Allow", "Resource": "arn:aws:s3:::repo/*",
                  "Condition": {"StringEquals": {tag: "open"}}}) == {"open": True, "secret": False, "plain": False, "bare": False}
    assert bob.call("GET", REPO + "/refs/main/objects?path=absent")[0] == 401
    assert bob.call("POST", REPO + "/branches/main/objects/copy?dest_path=m",
                    {"src_path": "secret", "move": True})[0] == 401


def test_a_remote_storage_is_asked_whether_the_caller_may_read(alice, bob, serve, server, weir):
    far, run = serve().ready(), runner(server, weir)
    users = {name: runner(far, weir)("user", "add", name, "--json")[0] for name in ("alice", "bob")}
    owner = far.s3((users["alice"]["access_key"], users["alice"]["secret_key"]))
    owner.create_bucket(Bucket="remote")
    owner.put_object(Bucket="remote", Key="key", Body=b"secret")
    run("storage", "add", "far", "--endpoint", far.s3_url)
    for name, made in users.items():
        run("storage", "key", "far", name, "--access-key", made["access_key"], "--secret-key", made["secret_key"])
        run("bucket", "route", "remote", "far", "--user", name)
    bucket, key = "arn:aws:s3:::remote", "arn:aws:s3:::remote/key"
    for actions, status in (["s3:ListBucket", "s3:GetBucketVersioning"], 403), (["s3:*"], 201):
        owner.put_bucket_policy(Bucket="remote", Policy=json.dumps({"Version": "2012-10-17", "Statement": [
            {"Effect": "Allow", "Principal": {"AWS": "arn:aws:iam:::user/bob"}, "Action": actions,
             "Resource": [bucket, key]}]}))
        assert stage(bob, "s3://remote/key") == status
    assert bob.call("GET", REPO + "/refs/dev/objects?path=stolen") == (200, "secret")


def test_values_that_no_header_can_have_are_refused(alice):
    for value in "a\r\nX-Evil: 1", "a\x01", "x" * 1025:
        status, _ = alice.call("PUT", REPO + "/branches/dev/objects?path=e", {
            "physical_address": alice.stat["physical_address"], "checksum": value, "size_bytes": 6})
        assert status == 400
        described = {"checksum": "c", "size_bytes": 6, "content_type": value}
        address = alice.made("GET", REPO + "/branches/dev/staging/backing?path=e")
        for target, place in (("objects", {"physical_address": alice.stat["physical_address"]}),
                              ("staging/backing", {"staging": address})):
            status, text = alice.call("PUT", f"{REPO}/branches/dev/{target}?path=e", {**place, **described})
            assert status == 400 and "content_type" in text
    assert alice.call("POST", REPO + "/branches/dev/objects?path=e&storageClass=%0d%0aX:y", "x")[0] == 400
    assert alice.call("GET", REPO + "/refs/dev/objects?path=e")[0] == 404


def test_times_after_the_year_9999_are_refused(alice):
    """A record with the greatest time of all could not be read again, nor could the listing of its branch."""
    last = 253402300799  # the end of the year 9999
    body = {"physical_address": alice.stat["physical_address"], "checksum": "x", "size_bytes": 6}
    for time, status in (last, 201), (last + 1, 400):
        assert alice.call("PUT", f"{REPO}/branches/dev/objects?path=t{time}", {**body, "mtime": time})[0] == status
        assert alice.call("POST", REPO + "/branches/dev/commits",
                          {"message": "m", "date": time, "allow_empty": True})[0] == status
    assert alice.made("GET", REPO + "/refs/dev/objects/ls")["results"][0]["mtime"] == last
    assert alice.made("GET", REPO + "/refs/dev/commits")["results"][0]["creation_date"] == last


def test_a_token_ends_with_its_user(alice, tenant, server, weir):
    token = tenant("dave").login()
    assert alice.call("GET", "/user", token=token)[0] == 200
    runner(server, weir)("user", "remove", "dave")
    assert alice.call("GET", "/user", token=token)[0] == 401
    tenant("dave")
    assert alice.call("GET", "/user", token=token)[0] == 401
