"""Event notifications: boto3 on one side, a webhook on the other, and kills in between."""
import hashlib
import hmac
import http.server
import json
import os
import random
import re
import signal
import threading
import time
import urllib.parse

import pytest
from conftest import wait_for

pytest.importorskip("boto3")
requests = pytest.importorskip("requests")
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402


class Receiver:
    """Keeps every body that it answered with 200; `status` is what it answers."""

    def __init__(self):
        self.bodies, self.signatures, self.status, self.delay = [], [], 200, 0
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                time.sleep(outer.delay)
                if outer.status == 200:
                    outer.signatures.append(self.headers.get("X-Weir-Signature"))
                    outer.bodies.append(body)
                self.send_response(outer.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/hook"
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    def records(self):
        return [r for body in list(self.bodies) for r in json.loads(body).get("Records", [])]

    def names(self):
        return [(r["eventName"], urllib.parse.unquote_plus(r["s3"]["object"]["key"])) for r in self.records()]

    def stop(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


@pytest.fixture
def receiver():
    r = Receiver()
    yield r
    r.stop()


def client(server):
    return server.s3(max_pool_connections=20)


def subscribe(s3, events=("s3:ObjectCreated:*", "s3:ObjectRemoved:*"), **more):
    rule = {"Id": "all", "TopicArn": "arn:aws:sns:us-east-1::hook", "Events": list(events), **more}
    s3.put_bucket_notification_configuration(Bucket="box", NotificationConfiguration={"TopicConfigurations": [rule]})


ENV = {"no_proxy": "127.0.0.1", "NO_PROXY": "127.0.0.1"}


@pytest.fixture
def site(serve, weir, receiver):
    """A server with a webhook `hook` and a bucket `box`."""
    server = serve(env=ENV).ready()
    access, secret = server.keys
    done = weir("webhook", "add", "hook", receiver.url, "--secret", "s3cret", "--url", server.url, "--data", server.data)
    assert done.returncode == 0, done.stderr
    s3 = client(server)
    s3.create_bucket(Bucket="box")
    return server, s3


def test_each_way_to_change_an_object_is_told(site, receiver, weir):
    server, s3 = site
    subscribe(s3)
    wait_for(lambda: receiver.bodies, "the test event")
    assert json.loads(receiver.bodies[0])["Event"] == "s3:TestEvent"
    got = s3.get_bucket_notification_configuration(Bucket="box")["TopicConfigurations"][0]
    assert got["TopicArn"].endswith(":hook") and got["Events"] == ["s3:ObjectCreated:*", "s3:ObjectRemoved:*"]

    s3.put_object(Bucket="box", Key="a b/ü", Body=b"1")
    s3.copy_object(Bucket="box", Key="copy", CopySource={"Bucket": "box", "Key": "a b/ü"})
    post = s3.generate_presigned_post("box", "form")
    assert requests.post(post["url"], data=post["fields"], files={"file": b"x"}).status_code == 204
    upload = s3.create_multipart_upload(Bucket="box", Key="mp")["UploadId"]
    part = s3.upload_part(Bucket="box", Key="mp", UploadId=upload, PartNumber=1, Body=b"x")
    s3.complete_multipart_upload(Bucket="box", Key="mp", UploadId=upload,
                                 MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": "form"}, {"Key": "mp"}]})
    want = [("ObjectCreated:Put", "a b/ü"), ("ObjectCreated:Copy", "copy"), ("ObjectCreated:Post", "form"),
            ("ObjectCreated:CompleteMultipartUpload", "mp"), ("ObjectRemoved:Delete", "form"),
            ("ObjectRemoved:Delete", "mp")]
    wait_for(lambda: len(receiver.records()) >= len(want), "the events")
    assert receiver.names() == want

    for body, header in zip(receiver.bodies, receiver.signatures):
        t, v1 = re.fullmatch(r"t=(\d+),v1=([0-9a-f]{64})", header).groups()
        assert hmac.new(b"s3cret", t.encode() + b"." + body, hashlib.sha256).hexdigest() == v1

    listed = weir("webhook", "list", "--json", "--url", server.url, "--data", server.data)
    assert "s3cret" not in listed.stdout and '"hook"' in listed.stdout
    wait_for(lambda: server.metric("weir_notify_pending") == 0, "an empty outbox")
    assert server.metric("weir_notify_delivered_total") >= len(want)
    assert weir("webhook", "remove", "hook", "--url", server.url, "--data", server.data).returncode == 0
    with pytest.raises(ClientError, match="InvalidArgument"):
        subscribe(s3)


def test_a_webhook_that_fails_or_is_slow_gets_everything_in_order(site, receiver):
    server, s3 = site
    subscribe(s3)
    receiver.status = 500
    for i in range(30):
        s3.put_object(Bucket="box", Key=f"{i:03}", Body=b"x")
    wait_for(lambda: server.metric("weir_notify_failed_total") > 0, "a failure")
    assert server.metric("weir_notify_pending") >= 30
    receiver.delay, receiver.status = 0.01, 200
    wait_for(lambda: len(receiver.records()) >= 30, "the events")
    assert [key for _, key in receiver.names()] == [f"{i:03}" for i in range(30)]
    assert server.metric("weir_notify_dropped_total") == 0


def test_no_acknowledged_put_is_untold_after_kills(serve, site, receiver):
    server, s3 = site
    subscribe(s3)
    acknowledged, lock = set(), threading.Lock()
    for round_ in range(4):
        stop = threading.Event()

        def work(n, s3=client(server)):
            i = 0
            while not stop.is_set():
                key = f"r{round_}-{n}-{i}"
                i += 1
                try:
                    s3.put_object(Bucket="box", Key=key, Body=os.urandom(100))
                except (BotoCoreError, ClientError, OSError):
                    return
                with lock:
                    acknowledged.add(key)

        before = len(acknowledged)
        workers = [threading.Thread(target=work, args=(n,)) for n in range(6)]
        for w in workers:
            w.start()
        wait_for(lambda: len(acknowledged) > before + 20, "writes")
        time.sleep(random.random() * 0.2)  # the moment is the test's point
        receiver.status = random.choice([200, 503])
        server.signal(signal.SIGKILL)
        server.wait()
        stop.set()
        for w in workers:
            w.join()
        server = serve(folder=server.folder, data=server.data, env=ENV).ready()
    receiver.status = 200
    wait_for(lambda: acknowledged <= {key for _, key in receiver.names()}, "every event")
    wait_for(lambda: server.metric("weir_notify_pending") == 0, "an empty outbox")
    there = set()
    for page in client(server).get_paginator("list_objects_v2").paginate(Bucket="box"):
        there |= {o["Key"] for o in page.get("Contents", [])}
    assert {key for _, key in receiver.names()} == there  # and nothing was told that did not happen
