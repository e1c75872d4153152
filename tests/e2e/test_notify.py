"""Changes that go past weir, told by the storage: s3_notification_webhook of Chorus, with another weir as the storage."""
import json
import urllib.parse

import pytest

from conftest import free_port, runner, wait_for
from replica_lab import content
from test_replicate import far, holds, in_sync, pair


@pytest.fixture
def front(serve, weir, tmp_path):
    """A server with the storages local and disk2."""
    listen = f"127.0.0.1:{free_port()}"  # a test starts it there again
    return pair(serve("--replication.pause_retry", "1s", listen=listen).ready(), weir, tmp_path)


@pytest.fixture
def back(serve, weir, front):
    """Another weir, which is the front's storage far, with the bucket photos; the front's user root goes there."""
    server = serve().ready()
    server.run = runner(server, weir)
    far(front, server)
    front.run("bucket", "route", "photos", "far", "--user", "root")
    server.s3().create_bucket(Bucket="photos")
    return server


def token_of(server, storage="far"):
    return server.run("storage", "notify", storage, "--json")[0]["token"]


def tell(server, records, storage="far", token=None, headers=None):
    path = f"/notify/{storage}"
    if token:
        path += "?token=" + token
    body = json.dumps({"Records": [
        {"eventName": event, "s3": {"bucket": {"name": bucket}, "object": {"key": key}}}
        for event, bucket, key in records]})
    return server.post(path, body, headers={"Content-Type": "application/json", **(headers or {})})


def arrives(front, bucket, model):
    want = (len(model), sum(map(len, model.values())))
    wait_for(lambda: holds(front, bucket, "disk2") == want, "what was told")


def test_s3_notification_webhook_bucket_replication(front, back):
    """What is written past the front, with keys of every kind, arrives; the storage repeats what was not taken."""
    url = f"{front.url}/notify/far?token={token_of(front)}"
    back.run("webhook", "add", "front", url)
    direct, model = back.s3(), {"before": b"1"}
    direct.put_object(Bucket="photos", Key="before", Body=b"1")
    front.run("replicate", "add", "photos", "disk2", "--user", "root", "--notify", "arn:weir:webhook:::front", "--watch")
    arrives(front, "photos", model)
    assert front.run("replicate", "show", "photos", "--json")["notify"] == "arn:weir:webhook:::front"
    rules = direct.get_bucket_notification_configuration(Bucket="photos")["TopicConfigurations"]
    assert [r["TopicArn"] for r in rules] == ["arn:weir:webhook:::front"]
    for key in ("plain", "a b+c", "100%", "%41", "dir/ü:x", "q?&=#"):
        model[key] = key.encode()
        direct.put_object(Bucket="photos", Key=key, Body=model[key])
    arrives(front, "photos", model)
    direct.delete_object(Bucket="photos", Key="before")
    del model["before"]
    arrives(front, "photos", model)
    in_sync(front, "photos")
    assert content(direct, "photos") == model
    front.run("replicate", "remove", "photos")
    assert "TopicConfigurations" not in direct.get_bucket_notification_configuration(Bucket="photos")


def test_what_was_not_taken_is_told_again_and_other_rules_stay(serve, weir, front, back):
    """The front is away while something is written: it is told once it is back."""
    back.run("webhook", "add", "front", f"{front.url}/notify/far?token={token_of(front)}")
    back.run("webhook", "add", "else", "http://127.0.0.1:9/")
    direct, port = back.s3(), urllib.parse.urlsplit(front.url).port
    rule = {"Id": "mine", "TopicArn": "arn:weir:webhook:::else", "Events": ["s3:ObjectCreated:Put"]}
    direct.put_bucket_notification_configuration(
        Bucket="photos", NotificationConfiguration={"TopicConfigurations": [rule]}, SkipDestinationValidation=True)
    front.run("replicate", "add", "photos", "disk2", "--user", "root", "--notify", "arn:weir:webhook:::front")
    in_sync(front, "photos")
    assert len(direct.get_bucket_notification_configuration(Bucket="photos")["TopicConfigurations"]) == 2
    assert front.stop() == 0
    direct.put_object(Bucket="photos", Key="missed", Body=b"123")
    again = serve(data=front.data, listen=f"127.0.0.1:{port}").ready()
    again.run = runner(again, weir)
    arrives(again, "photos", {"missed": b"123"})
    again.run("replicate", "remove", "photos")
    rules = direct.get_bucket_notification_configuration(Bucket="photos")["TopicConfigurations"]
    assert [r["Id"] for r in rules] == ["mine"]


def test_an_entry_stays_as_long_as_a_replication_needs_it(front, back, tmp_path):
    arn, direct = "arn:weir:webhook:::front", back.s3()
    back.run("webhook", "add", "front", f"{front.url}/notify/far?token={token_of(front)}")
    front.run("storage", "add", "disk3", tmp_path / "disk3")

    def rules():
        return [r["TopicArn"] for r in
                direct.get_bucket_notification_configuration(Bucket="photos").get("TopicConfigurations", [])]
    for to in ("disk2", "disk3"):
        front.run("replicate", "add", "photos", to, "--user", "root", "--notify", arn)
    assert "already" in front.run("replicate", "add", "photos", "disk3", "--user", "root", "--notify", arn, status=1)
    assert rules() == [arn]
    back.run("webhook", "add", "another", front.url)
    front.run("replicate", "add", "photos", "disk3", "--user", "root", "--notify", "arn:weir:webhook:::another", status=1)
    assert rules() == [arn]
    front.run("replicate", "remove", "photos", "--to", "disk2")
    assert rules() == [arn]
    front.run("replicate", "remove", "photos", "--to", "disk3")
    assert rules() == []


def test_s3_notification_webhook_no_replication_skips_events(front, back):
    token = token_of(front)
    answer = tell(front, [("ObjectCreated:Put", "photos", "k")], token=token)
    assert answer.status == 200 and json.loads(answer.body) == {"records": 1, "recorded": 0}
    assert all(row["size"] == 0 for row in map(size_of, front.run("task", "queues", "--json")))


def size_of(row):
    return {"size": sum(int(row[state]) for state in ("pending", "active", "scheduled", "retry", "archived"))}


def test_s3_notification_webhook_unknown_storage_returns_ok(front):
    """A storage that was removed, or never was, would tell for ever."""
    server = front
    far_token = None
    server.run("storage", "add", "gone", "--endpoint", "http://127.0.0.1:9")
    far_token = token_of(server, "gone")
    server.run("storage", "remove", "gone")
    answer = tell(server, [("ObjectCreated:Put", "photos", "k")], storage="gone", token=far_token)
    assert answer.status == 200 and json.loads(answer.body)["recorded"] == 0


def test_s3_notification_webhook_minio_webhook(front, back):
    """MinIO's body, and its token as a bearer."""
    direct = back.s3()
    front.run("replicate", "add", "photos", "disk2", "--user", "root")
    in_sync(front, "photos")
    direct.put_object(Bucket="photos", Key="dir/a b", Body=b"minio")
    body = {"EventName": "s3:ObjectCreated:Put", "Key": "photos/dir/a b", "Records": [{
        "eventVersion": "2.0", "eventSource": "minio:s3", "eventName": "s3:ObjectCreated:Put",
        "userIdentity": {"principalId": "minioadmin"}, "s3": {
            "s3SchemaVersion": "1.0", "configurationId": "Config", "bucket": {"name": "photos"},
            "object": {"key": "dir%2Fa+b", "size": 5, "eTag": "x", "versionId": "null", "sequencer": "1"}}}]}
    header = {"Content-Type": "application/json", "Authorization": "Bearer " + token_of(front)}
    assert front.post("/notify/far", json.dumps(body), headers={**header, "Authorization": "Bearer x"}).status == 401
    assert front.post("/notify/far", json.dumps(body), headers=header).status == 200
    arrives(front, "photos", {"dir/a b": b"minio"})


def test_a_store_that_is_down_is_503_and_what_was_told_counts_once_it_is_back(serve, weir, redis, tmp_path):
    url = f"redis://127.0.0.1:{redis.port}"
    server = pair(serve("--store.engine", "redis", "--store.redis.url", url, "--store.redis.timeout", "30s").ready(),
                  weir, tmp_path)
    token = token_of(server, "local")
    server.s3().create_bucket(Bucket="photos")
    server.run("replicate", "add", "photos", "disk2", "--watch")
    assert tell(server, [("ObjectCreated:Put", "photos", "k")], storage="local", token=token).status == 200
    redis.kill()
    for bucket in ("photos", "other"):
        assert tell(server, [("ObjectCreated:Put", bucket, "k")], storage="local", token=token).status == 503
    redis.start()
    wait_for(lambda: tell(server, [("ObjectCreated:Put", "other", "k")], storage="local", token=token).status == 200,
             "the store")


def test_what_cannot_be_set_up_is_refused_with_what_to_do(front, back):
    add = ["replicate", "add", "photos", "disk2", "--user", "root", "--notify"]
    assert "Unable to validate" in front.run(*add, "arn:weir:webhook:::nobody", status=1)
    assert "makes no topic" in front.run(*add, front.url, status=1)
    assert "address of weir's API" in front.run(*add, "somewhere", status=1)
    assert front.run("replicate", "list", "--json") == []
    front.s3().create_bucket(Bucket="own")
    assert "weir's own" in front.run("replicate", "add", "own", "disk2", "--notify", front.url, status=1)
    assert "notify needs a bucket" in front.run("replicate", "add", "disk2", "--user", "root", "--notify", front.url, status=1)
    with_keys = front.post("/notify/far", "{}", keys=front.keys)
    assert with_keys.status == 401
