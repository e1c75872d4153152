"""Replication end to end, on every set-up of replica_lab.py: what is told to clients ends on both sides, by content.

What clients may send, through a gateway to each kind of storage (buckets, objects, folders, large ones, parts, tags,
versions), is in test_s3_boto.py, test_remote.py and test_clients.py.
"""
import concurrent.futures
import os
import random
import re

import pytest
from botocore.exceptions import ClientError

from conftest import wait_for
from replica_lab import KINDS, Lab, S3RVER
from test_tasks import Queue

ODD = ["colon: b", "per%cent%3A", "plus+and&", "späce ü/☃", "trailing/", " ", "..", "q?#", "a:t", "a:a", "tab\tline"]
LONG = "l" * 1024


@pytest.fixture(scope="module", params=KINDS)
def lab(request, tmp_path_factory):
    if request.param == "foreign" and not S3RVER.exists():
        pytest.skip("the npm packages are not installed")
    lab = Lab(request.param, tmp_path_factory.mktemp(request.param))
    yield lab
    lab.end()


@pytest.fixture
def bucket(lab, request):
    """A bucket of the test's own."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.originalname.removeprefix("test_").lower())
    lab.s3().create_bucket(Bucket=name)
    return name


def put(s3, bucket, model, key, body, **more):
    s3.put_object(Bucket=bucket, Key=key, Body=body, **more)
    model[key] = body


def remove(s3, bucket, model, key):
    s3.delete_object(Bucket=bucket, Key=key)
    model.pop(key, None)


def upload(s3, bucket, model, key, sizes):
    bodies = [os.urandom(size) for size in sizes]
    id = s3.create_multipart_upload(Bucket=bucket, Key=key)["UploadId"]
    tags = [s3.upload_part(Bucket=bucket, Key=key, UploadId=id, PartNumber=n, Body=body)["ETag"]
            for n, body in enumerate(bodies, 1)]
    s3.complete_multipart_upload(Bucket=bucket, Key=key, UploadId=id, MultipartUpload={
        "Parts": [{"PartNumber": n, "ETag": tag} for n, tag in enumerate(tags, 1)]})
    model[key] = b"".join(bodies)


def random_change(s3, bucket, model, rng, keys):
    """One put, overwrite, delete, copy or upload in parts of one of the keys."""
    key = rng.choice(keys)
    what = rng.random()
    if what < .25:
        remove(s3, bucket, model, key)
    elif what < .35 and model.keys() - {key + ".copy"}:
        source = rng.choice(sorted(model.keys() - {key + ".copy"}))
        s3.copy_object(Bucket=bucket, Key=key + ".copy", CopySource={"Bucket": bucket, "Key": source})
        model[key + ".copy"] = model[source]
    elif what < .4:
        upload(s3, bucket, model, key, [rng.randrange(1, 5000)])
    else:
        put(s3, bucket, model, key, rng.randbytes(rng.randrange(3000)))


def fill(s3, bucket, model, count, size=200):
    """Some folders deep."""
    for n in range(count):
        put(s3, bucket, model, f"dir{n % 5}/sub{n % 3}/k{n}" if n % 2 else f"k{n}", os.urandom(size + n))


def test_routing(lab):
    """A bucket's policy goes before the user's; what is blocked is refused."""
    made = lab.run("user", "add", "router", "--json")[0]
    keys = made["access_key"], made["secret_key"]
    if lab.redis:
        for name in ("a", "b"):
            access, secret = lab.endpoints[name][1]
            lab.run("storage", "key", name, "router", "--access-key", access, "--secret-key", secret)
    a, b = lab.names["a"], lab.names["b"]
    lab.api("POST", "/api/v1/users/router/route", {"storage": b})
    lab.run("bucket", "route", "routed-by-bucket", a, "--user", "router")
    for n, (name, there) in enumerate([("routed-by-user", "b"), ("routed-by-bucket", "a")]):
        s3 = lab.s3(n, keys)
        wait_for(lambda: made_there(s3, lab, name, there), f"{name} on {there}")
        s3.put_object(Bucket=name, Key="k", Body=name.encode())
        assert {r["storage"] for r in lab.run("bucket", "show", name, "--json")} == {lab.names[there]}
    lab.run("bucket", "route", "routed-by-user", b, "--block")

    def is_refused():
        try:
            lab.s3(1, keys).get_object(Bucket="routed-by-user", Key="k")
            return False
        except ClientError as e:
            return e.response["ResponseMetadata"]["HTTPStatusCode"] in (403, 404, 503)
    wait_for(is_refused, "the block at the other gateway")
    lab.run("bucket", "route", "routed-by-user", b, "--unblock")
    wait_for(lambda: not is_refused(), "its end")


def made_there(s3, lab, name, there):
    """Makes the bucket; other gateways hear of a policy within a second."""
    s3.create_bucket(Bucket=name)
    if lab.names[there] in [r["storage"] for r in lab.run("bucket", "show", name, "--json")]:
        return True
    s3.delete_bucket(Bucket=name)
    return False


def test_migrate(lab, bucket):
    """What is there and what comes, with what is kept beside the bytes."""
    s3, other, model = lab.s3(0), lab.s3(1), {}
    fill(s3, bucket, model, 40)
    put(s3, bucket, model, "empty", b"")
    put(s3, bucket, model, LONG if lab.kind != "foreign" else "l" * 200, b"long")
    for name in ODD if "escapes" not in lab.lacks else ["plain name"]:
        put(s3, bucket, model, name, name.encode())
    upload(s3, bucket, model, "parts", [5 * 1024 * 1024, 777])
    put(s3, bucket, model, "rich", b"rich", ContentType="image/x", CacheControl="max-age=9", ContentLanguage="de",
        ContentDisposition="attachment", Metadata={"who": "me"}, Tagging="a=1&b=2")
    lab.add(bucket)
    for n in range(20):
        put(other if n % 2 else s3, bucket, model, f"live{n}", os.urandom(100 + n))
    remove(other, bucket, model, "k0")
    upload(other, bucket, model, "live parts", [5 * 1024 * 1024, 5])
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
    tag = s3.head_object(Bucket=bucket, Key="parts")["ETag"]
    with lab.side("b", bucket) as there:
        got = there.head_object(Bucket=bucket, Key="rich")
        assert (got["ContentType"], got["CacheControl"], got["ContentDisposition"], got["Metadata"]) == (
            "image/x", "max-age=9", "attachment", {"who": "me"})
        assert got["ContentLanguage"] == "de"
        if "tags with a put" not in lab.lacks:
            tags = there.get_object_tagging(Bucket=bucket, Key="rich")["TagSet"]
            assert sorted((t["Key"], t["Value"]) for t in tags) == [("a", "1"), ("b", "2")]
        assert there.head_object(Bucket=bucket, Key="parts")["ETag"] == tag or "ETags of parts" in lab.lacks
    row = lab.row(bucket)
    assert (row["objects"], row["objects_failed"], row["lag"]) == (row["objects_done"], 0, 0)
    assert row["init_done"] and row["bytes"] == row["bytes_done"]


def test_migrate_custombucket(lab, bucket):
    """To another name, which nobody may use while it is a destination."""
    s3, model, there = lab.s3(), {}, bucket + "-copy"
    fill(s3, bucket, model, 10)
    lab.add(bucket, "--to-bucket", there)
    put(lab.s3(1), bucket, model, "later", b"later")
    lab.in_sync(bucket)
    lab.run("bucket", "route", there, lab.names["b"], "--user", "root")

    def is_blocked():
        with pytest.raises(ClientError):
            lab.s3(1).put_object(Bucket=there, Key="mine", Body=b"x")
        return True
    assert is_blocked()
    lab.run("replicate", "remove", bucket, "--user", "root")
    wait_for(lambda: can_list(lab.s3(1), there), "the block's end")
    assert lab.content("b", there) == model == lab.content("a", bucket)
    lab.run("bucket", "route", there, "--remove", "--user", "root")


def can_list(s3, bucket):
    try:
        s3.list_objects_v2(Bucket=bucket)
        return True
    except ClientError:
        return False


def test_migrate_load(lab, bucket):
    """Both gateways write while the first copy goes on; each key has one writer."""
    model = {}
    fill(lab.s3(), bucket, model, 120)
    lab.add(bucket, "--priority", "3")

    def writer(n):
        s3, own, rng = lab.s3(n), {}, random.Random(n)
        keys = [f"w{n}/{i}" for i in range(10)] if lab.kind != "foreign" else [f"w{n}-{i}" for i in range(10)]
        for _ in range(60):
            random_change(s3, bucket, own, rng, keys)
        return own
    with concurrent.futures.ThreadPoolExecutor(4) as pool:
        for own in pool.map(writer, range(4)):
            model.update(own)
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)


def test_migrate_lock(lab, bucket):
    """One object changed again and again through both gateways while both workers copy it: the last one stands."""
    s3, model = [lab.s3(0), lab.s3(1)], {}
    lab.add(bucket)
    for n in range(60):
        put(s3[n % 2], bucket, model, "one", os.urandom(1000 + n))
        if n % 10 == 9:
            remove(s3[(n + 1) % 2], bucket, model, "two")
        else:
            put(s3[(n + 1) % 2], bucket, model, "two", os.urandom(10))
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)


def test_user_migration(lab):
    """All buckets that a user has or makes, one after another."""
    keys = ("AKIAMOVER", "secret-of-the-mover")
    lab.run("user", "add", "mover", "--access-key", keys[0], "--secret-key", keys[1])
    if lab.redis:
        for name in ("a", "b"):
            access, secret = lab.endpoints[name][1]
            lab.run("storage", "key", name, "mover", "--access-key", access, "--secret-key", secret)
        # In the services all is root's, and so are the other tests' buckets: their own user has a policy of its own.
    s3, other, models = lab.s3(0, keys), lab.s3(1, keys), {}
    wait_for(lambda: can(other.list_buckets), "the user at the other gateway")
    for name in ("moved-one", "moved-two"):
        s3.create_bucket(Bucket=name)
        models[name] = {}
        fill(s3, name, models[name], 12)
    lab.run("replicate", "add", lab.names["b"], "--user", "mover")
    for name in ("moved-new", "moved-gone"):
        other.create_bucket(Bucket=name)
        models[name] = {}
        fill(s3, name, models[name], 6)
    put(other, "moved-one", models["moved-one"], "late", b"late")
    lab.in_sync(*models)
    for name, model in models.items():
        lab.is_equal(name, model, owner="mover")
    for key in list(models["moved-gone"]):
        remove(s3, "moved-gone", models["moved-gone"], key)
    other.delete_bucket(Bucket="moved-gone")
    del models["moved-gone"]
    wait_for(lambda: lab.run("bucket", "show", "moved-gone", "--json", status=None) == [], "its end there")
    lab.run("replicate", "remove", "--user", "mover", "--with-buckets")
    rows = [r for r in lab.api("GET", "/api/v1/replications")["replications"] if r["user"] == "mover"]
    assert rows == []


def can(call):
    try:
        call()
        return True
    except ClientError:
        return False


def test_restart_bucket_replication(lab, bucket):
    """Removed, changed meanwhile, made anew: all is there, and the counts begin anew."""
    s3, model = lab.s3(), {}
    fill(s3, bucket, model, 20)
    lab.add(bucket)
    lab.in_sync(bucket)
    lab.run("replicate", "remove", bucket, "--user", "root")
    for key in sorted(model)[:10]:
        put(lab.s3(1), bucket, model, key, os.urandom(50))
    put(s3, bucket, model, "meanwhile", b"meanwhile")
    lab.add(bucket)
    put(s3, bucket, model, "after", b"after")
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
    assert lab.row(bucket)["objects_done"] in (21, 22)


def test_restart_user_replication(lab):
    keys = ("AKIAAGAIN", "secret-of-the-again")
    lab.run("user", "add", "again", "--access-key", keys[0], "--secret-key", keys[1])
    if lab.redis:
        for name in ("a", "b"):
            access, secret = lab.endpoints[name][1]
            lab.run("storage", "key", name, "again", "--access-key", access, "--secret-key", secret)
    s3, model = lab.s3(0, keys), {}
    lab.run("replicate", "add", lab.names["b"], "--user", "again")
    wait_for(lambda: can(lab.s3(1, keys).list_buckets), "the user at the other gateway")
    lab.s3(1, keys).create_bucket(Bucket="again-one")
    fill(s3, "again-one", model, 10)
    lab.in_sync("again-one")
    lab.run("replicate", "remove", "--user", "again", "--with-buckets")
    put(s3, "again-one", model, "k0", b"meanwhile")
    s3.create_bucket(Bucket="again-two")
    s3.put_object(Bucket="again-two", Key="k", Body=b"two")
    lab.run("replicate", "add", lab.names["b"], "--user", "again")
    lab.in_sync("again-one", "again-two")
    lab.is_equal("again-one", model, owner="again")
    lab.is_equal("again-two", {"k": b"two"}, owner="again")


# --- what is kept in Redis ---

APP, QUEUE, LOCK, CONFIG = range(4)
PART = r"[^:]+"  # of a name in which ':' and '%' are escaped
NUMBER = r"-?\d+"
TIME = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z"
STATUS = {"created_at": TIME, "archived_at": TIME, "init_done_at": TIME, "last_emitted_at": TIME, "last_processed_at": TIME,
          "resynced_at": TIME, "paused": "[01]", "archived": "[01]", "listing_started": "[01]", "agent_url": ".*",
          **dict.fromkeys(("obj_listed", "obj_done", "obj_failed", "bytes_listed", "bytes_done", "events", "events_done",
                           "listings"), NUMBER)}
SWITCH = {"replicationID": f"{PART}:{PART}:{PART}:{PART}(:{PART})?", "createdAt": TIME, "startedAt": TIME, "doneAt": TIME,
          "abortedAt": TIME, "lastStatus": "not_started|in_progress|check_in_progress|done|error|skipped",
          "startAt": TIME, "cron": ".*", "onInitDone": "[01]", "skipBucketCheck": "[01]", "continueReplication": "[01]",
          **dict.fromkeys(("replPriority", "multipartTTL", "maxDuration", "maxEventLag"), NUMBER)}
TASK = {"msg": r"(?s).*", "state": "pending|active|scheduled|retry|archived|completed", "pending_since": NUMBER,
        "unique_key": ".*", "result": ".*", "token": ".*", "tally": ".*", "group": ".*"}
ANY = {r".+": r"(?s).*"}
# Database, key, type, and of a hash its fields, of others a pattern of what it holds. docs/replication.md, "Keys";
# docs/security.md has users and storages.
KEYS_OF_REDIS = [
    (QUEUE, r"asynq:queues", "set", PART), (QUEUE, r"asynq:(servers|workers|schedulers)", "zset", r"asynq:.*"),
    (QUEUE, r"asynq:servers:\{.*\}", "string", r"(?s).*"), (QUEUE, r"asynq:workers:\{.*\}", "hash", ANY),
    (QUEUE, r"asynq:\{\w+\}:t:.+", "hash", TASK), (QUEUE, r"asynq:\{\w+\}:(pending|active)", "list", r"(?s).+"),
    (QUEUE, r"asynq:\{\w+\}:(scheduled|retry|archived|completed|lease)", "zset", r"(?s).+"),
    (QUEUE, r"asynq:\{\w+\}:(processed|failed)(:\d{4}-\d\d-\d\d)?", "string", NUMBER),
    (QUEUE, r"asynq:\{\w+\}:(paused|unique:.*)", "string", r".+"),
    (LOCK, f"lk:{PART}:{PART}:{PART}", "string", r"\w+"), (LOCK, f"lk[bsu]:.+", "string", r"\w+"),
    (APP, f"s:up:{PART}:{PART}", "set", f"{PART}:.+"), (APP, f"s:{PART}:{PART}:{PART}(:.*)?", "string", r"(?s).*"),
    (APP, f"b:{PART}(:[ta])?", "hash", {f"{PART}(:{PART})?": NUMBER}),
    (APP, f"[a-z0-9.-]{{3,}}:{PART}(:{PART})?(:[ta])?", "hash", {f"{PART}(:{PART})?": NUMBER}),
    (APP, f"w:tap:{PART}", "string", NUMBER), (APP, f"w:copy:{PART}:{PART}:{PART}", "string", r"(?s).+"),
    (APP, f"w:rate:(requests|bytes):{PART}", "hash", ANY), (APP, r"w:(diff|check|ready).*", None, None),
    (CONFIG, f"p:route:{PART}(:{PART})?", "string", PART), (CONFIG, f"p:route_block:{PART}", "set", PART),
    (CONFIG, f"p:repl:{PART}", "zset", f"{PART}:{PART}"), (CONFIG, f"p:repl:{PART}:{PART}", "zset", f"{PART}:{PART}(:{PART})?"),
    (CONFIG, f"p:repl_st:{PART}:{PART}:{PART}:{PART}(:{PART})?", "hash", STATUS),
    (CONFIG, f"p:switch:{PART}:{PART}", "hash", SWITCH),
    (CONFIG, f"p:switch-hist:{PART}:{PART}", "list", TIME.removesuffix("Z") + r".*\|.* -> .*:.*"),
    (CONFIG, r"w:epoch", "string", NUMBER), (CONFIG, r"w:epochs", "zset", r"[ns]:.*"),
    (CONFIG, r"w:gateways", "hash", {r"\w+": f"{NUMBER}:{NUMBER}"}),
    (CONFIG, r"users|storages", "set", r".+"), (CONFIG, r"users:(version|check)|storages:(main|version)", "string", r".+"),
    (CONFIG, r"user:.+|users:(id|email|access)|storage:.+|storage_keys:.+|webhooks", "hash", ANY),
]
READ = {"set": ("SMEMBERS",), "zset": ("ZRANGE", 0, -1), "list": ("LRANGE", 0, -1), "string": ("GET",)}


def wrong_with(store, database, key, kind):
    """What of the key is not as the table has it; None: nothing."""
    for number, pattern, type, holds in KEYS_OF_REDIS:
        if number != database or not re.fullmatch(pattern, key, re.S):
            continue
        if type is None:
            return None
        if kind != type:
            return f"is a {kind}, not a {type}"
        if type == "hash":
            row = store.call("HGETALL", key)
            fields = {row[i].decode(): row[i + 1].decode(errors="replace") for i in range(0, len(row), 2)}
            return next((f"{f} = {v}" for f, v in fields.items()
                         if not any(re.fullmatch(name, f, re.S) and re.fullmatch(value, v, re.S)
                                    for name, value in holds.items())), None)
        command, *more = READ[type]
        found = store.call(command, key, *more)
        values = [found] if type == "string" else found
        return next((v for v in values if v is not None and not re.fullmatch(holds, v.decode(errors="replace"), re.S)), None)
    return "is in no table"


def test_redis_holds_the_seed_s_keys_and_no_others(lab, bucket):
    """After the scenarios above, with one replication at work, one paused and one to a bucket of another name."""
    if not lab.redis:
        pytest.skip("the store is weir's own")
    s3, model = lab.s3(), {}
    lab.add(bucket)
    lab.add(bucket, "--to-bucket", bucket + "-other")
    lab.run("replicate", "pause", bucket, "--to-bucket", bucket + "-other", "--user", "root")
    for name in ODD if "escapes" not in lab.lacks else ["plain name"]:
        put(s3, bucket, model, name, b"x", Tagging="a=b")
    remove(s3, bucket, model, sorted(model)[0])
    if "bucket tags" not in lab.lacks:
        s3.put_bucket_tagging(Bucket=bucket, Tagging={"TagSet": [{"Key": "a", "Value": "b"}]})
    store, wrong, seen = Queue(lab.redis.port), [], set()
    for database in range(4):
        store.call("SELECT", database)
        for key in store.call("KEYS", "*"):
            key = key.decode()
            kind = store.call("TYPE", key).decode()
            seen.add(next((p for n, p, *_ in KEYS_OF_REDIS if n == database and re.fullmatch(p, key, re.S)), key))
            problem = wrong_with(store, database, key, kind) if kind != "none" else None
            if problem and store.call("EXISTS", key) != b"0":
                wrong.append((database, key, problem))
    assert not wrong
    for number, pattern, *_ in KEYS_OF_REDIS:
        if pattern.startswith(("p:repl:", "p:repl_st", "p:route_block", "w:epoch")) or (
                number == APP and "[ta]" in pattern and "bucket tags" not in lab.lacks):
            assert pattern in seen, pattern
    lab.run("replicate", "remove", bucket, "--to-bucket", bucket + "-other", "--user", "root")
    lab.in_sync(bucket)
    lab.is_equal(bucket, model)
