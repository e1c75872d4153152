"""Access logs of buckets: boto3 makes the requests, the log objects are read and parsed."""
import json
import re
import shlex
import signal

import pytest
from conftest import wait_for

pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from botocore.auth import S3SigV4Auth  # noqa: E402
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402

FIELDS = ["owner", "bucket", "time", "address", "requester", "id", "operation", "key", "uri", "status", "error", "sent",
          "size", "total", "turn", "referer", "agent", "version", "host_id", "signature", "cipher", "auth", "host", "tls",
          "arn", "acl"]


def set_up(s3):
    s3.create_bucket(Bucket="box")
    s3.create_bucket(Bucket="logs")
    s3.put_bucket_policy(Bucket="logs", Policy=json.dumps({"Version": "2012-10-17", "Statement": [{
        "Effect": "Allow", "Principal": {"Service": "logging.s3.amazonaws.com"}, "Action": "s3:PutObject",
        "Resource": "arn:aws:s3:::logs/of-box/*",
        "Condition": {"ArnLike": {"aws:SourceArn": "arn:aws:s3:::box"}}}]}))
    s3.put_bucket_logging(Bucket="box", BucketLoggingStatus={
        "LoggingEnabled": {"TargetBucket": "logs", "TargetPrefix": "of-box/"}})


def records(s3):
    lines = []
    for entry in s3.list_objects_v2(Bucket="logs").get("Contents", []):
        assert re.fullmatch(r"of-box/\d{4}-\d\d-\d\d-\d\d-\d\d-\d\d-[0-9A-F]{16}", entry["Key"])
        lines += s3.get_object(Bucket="logs", Key=entry["Key"])["Body"].read().decode().splitlines()
    parsed = [shlex.split(re.sub(r"\[([^]]*)\]", r'"\1"', line, count=1)) for line in lines]
    assert all(len(one) == len(FIELDS) for one in parsed)
    return [dict(zip(FIELDS, one)) for one in parsed]


def test_requests_are_delivered_by_themselves(serve):
    server = serve("--s3.logging.interval", "1s").ready()
    s3 = server.s3()
    set_up(s3)
    assert s3.get_bucket_logging(Bucket="box")["LoggingEnabled"]["TargetBucket"] == "logs"
    answer = s3.put_object(Bucket="box", Key="a/ü", Body=b"12345")
    s3.get_object(Bucket="box", Key="a/ü", Range="bytes=1-2")
    url = s3.generate_presigned_url("get_object", Params={"Bucket": "box", "Key": "a/ü"})
    assert requests.get(url).status_code == 200
    assert requests.get(url.replace("X-Amz-Signature=", "X-Amz-Signature=0")).status_code == 403
    wait_for(lambda: len(records(s3)) >= 5, "the log")
    found = {(r["operation"], r["status"]): r for r in records(s3)}  # log objects of one second have no order
    assert len(found) == len(records(s3)) == 5 and ("REST.GET.LOGGING_STATUS", "200") in found
    put, ranged, presigned, forged = (found[f"REST.{what}", status] for what, status in (
        ("PUT.OBJECT", "200"), ("GET.OBJECT", "206"), ("GET.OBJECT", "200"), ("GET.OBJECT", "403")))
    assert put["key"] == "a/%C3%BC" and put["size"] == "5"
    assert put["id"] == answer["ResponseMetadata"]["HTTPHeaders"]["x-amz-request-id"]
    assert put["bucket"] == "box" and put["owner"] == put["requester"] and "Boto3" in put["agent"]
    assert re.fullmatch(r"\d\d/[A-Z][a-z]{2}/\d{4}:\d\d:\d\d:\d\d \+0000", put["time"])
    assert (ranged["status"], ranged["sent"], ranged["size"], ranged["auth"]) == ("206", "2", "5", "AuthHeader")
    assert presigned["auth"] == "QueryString" and "X-Amz-Signature=REDACTED" in presigned["uri"]
    assert (forged["status"], forged["error"]) == ("403", "SignatureDoesNotMatch")


def test_a_clean_stop_loses_no_record(serve):
    server = serve().ready()
    s3 = server.s3()
    set_up(s3)
    for i in range(20):
        s3.put_object(Bucket="box", Key=str(i), Body=b"x")
    assert server.stop() == 0
    server = serve("--s3.logging.interval", "1s", data=server.data).ready()
    s3 = server.s3()
    wait_for(lambda: len(records(s3)) >= 20, "the log of before the stop")
    assert sorted(r["key"] for r in records(s3)) == sorted(str(i) for i in range(20))


def flush(server):
    """POST /box?logging, which boto3 has not."""
    access, secret = server.keys
    url = server.s3_url + "/box?logging"
    ask = AWSRequest("POST", url, headers={"x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
    S3SigV4Auth(Credentials(access, secret), "s3", "us-east-1").add_auth(ask)
    return requests.post(url, headers=dict(ask.headers))


def test_what_was_kept_outlives_a_kill(serve):
    server = serve().ready()
    s3 = server.s3()
    set_up(s3)
    policy = s3.get_bucket_policy(Bucket="logs")["Policy"]
    s3.put_object(Bucket="box", Key="kept", Body=b"x")
    s3.delete_bucket_policy(Bucket="logs")
    assert flush(server).status_code == 403  # it is on disk by now, and cannot be delivered
    server.signal(signal.SIGKILL)
    server.wait()
    server = serve(data=server.data).ready()
    s3 = server.s3()
    s3.put_bucket_policy(Bucket="logs", Policy=policy)
    assert "<FlushedLoggingObject>of-box/" in flush(server).text
    assert [r["key"] for r in records(s3) if r["operation"] == "REST.PUT.OBJECT"] == ["kept"]
