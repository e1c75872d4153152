"""Replication on bad days: each is told by a clear status, and ends in equal buckets.

Two workers on one object: test_migrate_lock in test_scenarios.py. Objects of 5 GiB: WEIR_TEST_LARGE=1.
"""
import contextlib
import os
import signal
import socket
import threading
import time
import urllib.parse
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
import http.client

import pytest
from botocore.exceptions import ClientError

from conftest import DEADLINE, Redis, wait_for
from replica_lab import Lab, content, fill, put, quoted, remove
from test_scenarios import switched
from test_tasks import Queue

GIB = 1024 * 1024 * 1024


class Peer:
    """Stands between weir and the destination; `mode` says how it behaves. Bodies pass through memory."""

    def __init__(self, target):
        self.target, self.mode, self.answered, self.held = target, None, 0, threading.Event()
        peer = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def log_message(self, *args):
                pass

            def answer(self, status, headers, body):
                self.send_response_only(status)
                for name, value in headers:
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                if self.command != "HEAD":
                    self.wfile.write(body)

            def handle_one(self):
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                if peer.mode:
                    made = peer.mode(self.command, self.path)
                    if made:
                        peer.answered += 1
                        status, code = made
                        text = f"<Error><Code>{code}</Code><Message>a bad day</Message></Error>".encode()
                        self.answer(status, [("Content-Type", "application/xml"), ("Retry-After", "1")], text)
                        return
                onward = http.client.HTTPConnection(peer.target, timeout=60)
                onward.request(self.command, self.path, body=body, headers=dict(self.headers))
                got = onward.getresponse()
                text = got.read()
                headers = [(n, v) for n, v in got.getheaders()
                           if n.lower() not in ("connection", "transfer-encoding", "content-length")]
                if self.command == "HEAD":
                    self.send_response_only(got.status)
                    for name, value in headers:
                        self.send_header(name, value)
                    self.send_header("Content-Length", got.getheader("Content-Length") or "0")
                    self.end_headers()
                else:
                    self.answer(got.status, headers, text)
                onward.close()

            do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = handle_one

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://{self.server.server_address[0]}:{self.server.server_address[1]}"
        self.thread = threading.Thread(target=self.server.serve_forever)
        self.thread.start()

    def end(self):
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def objects(method, path):
    """Whether a request writes an object."""
    return method == "PUT" and path.count("/") > 1


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    lab = Lab("redis", tmp_path_factory.mktemp("bad"))
    yield lab
    lab.end()


@pytest.fixture(scope="module")
def peer(lab):
    """Storage c of the lab: side b, through somebody with bad days. Host names are part of signatures, and this
    one keeps them."""
    peer = Peer(lab.endpoints["b"][0].removeprefix("http://"))
    access, secret = lab.endpoints["b"][1]
    lab.run("storage", "add", "c", "--endpoint", peer.url, "--user", "root", "--access-key", access, "--secret-key", secret,
            "--response-timeout", "2s", "--idle-timeout", "2s")
    lab.names["c"] = "c"
    yield peer
    peer.end()


@pytest.fixture
def bucket(lab, request):
    name = request.node.originalname.removeprefix("test_").replace("_", "-")[:60].strip("-")
    wait_for(lambda: can_make(lab, name), "the bucket")
    return name


def can_make(lab, name):
    try:
        lab.s3().create_bucket(Bucket=name)
        return True
    except ClientError:
        return False


def hurry(lab, *states):
    """What waits to be tried again is tried now."""
    for task in lab.tasks("retry", "scheduled", *states):
        lab.gateways[0].post(f"/api/v1/queues/{task['queue']}/tasks/{quoted(task['id'])}/run", {}, keys=lab.gateways[0].keys)


def synced(lab, bucket, to="b", states=()):
    """In sync, without waiting for the times between tries; `states`: of tasks that are run again besides."""
    lab.recorded()
    def done():
        if lab.row(bucket, to)["state"] == "in sync":
            return True
        hurry(lab, *states)
        return False
    try:
        wait_for(done, "in sync", 2 * DEADLINE)
    except AssertionError as e:
        raise AssertionError(f"{e}: {lab.row(bucket, to)}\n{lab.tasks()}") from None


@pytest.mark.parametrize("day,answer,told", [
    ("down", (503, "ServiceUnavailable"), "unavailable"), ("busy", (503, "SlowDown"), "SlowDown"),
    ("limited", (429, "TooManyRequests"), "429"), ("full", (507, "InsufficientStorage"), "InsufficientStorage"),
    ("quota", (403, "QuotaExceeded"), "QuotaExceeded"), ("revoked", (403, "InvalidAccessKeyId"), "InvalidAccessKeyId"),
    ("broken", (500, "InternalError"), "InternalError")])
def test_a_storage_that_refuses(lab, peer, day, answer, told):
    """Objects wait with the reason; others are not held up; afterwards all arrives."""
    s3, model, bucket = lab.s3(), {}, f"refused-{day}"
    s3.create_bucket(Bucket=bucket)
    fill(s3, bucket, model, 5)
    lab.add(bucket, to="c")
    lab.in_sync(bucket, to="c")
    peer.mode = lambda method, path: answer if objects(method, path) and bucket in path else None
    try:
        fill(lab.s3(1), bucket, model, 7, 300)
        remove(s3, bucket, model, "k0")

        def waits():
            tasks = [t for t in lab.tasks() if bucket in str(t["payload"]) and t["error"]]
            if tasks and all(told.lower() in t["error"].lower() for t in tasks):
                return True
            hurry(lab)  # a busy machine was too late for the storage's limits: another reason, and another try
            return False
        try:
            wait_for(waits, "tasks that tell why")
        except AssertionError as e:
            raise AssertionError(f"{e}: {lab.tasks()}") from None
        assert lab.row(bucket, "c")["state"] == "behind" and lab.row(bucket, "c")["lag"] > 0
    finally:
        peer.mode = None
    synced(lab, bucket, "c")
    lab.is_equal(bucket, model)


def test_a_storage_that_is_slow(lab, peer, bucket):
    """Past its timeouts: tried again, by connections of their own, and nothing is held up for ever."""
    s3, model = lab.s3(), {}
    lab.add(bucket, to="c")
    lab.in_sync(bucket, to="c")
    slow = {"left": 3}

    def mode(method, path):
        if objects(method, path) and bucket in path and slow["left"] > 0:
            slow["left"] -= 1
            time.sleep(4)  # longer than weir waits for this storage
        return None
    peer.mode = mode
    try:
        fill(s3, bucket, model, 6)
        synced(lab, bucket, "c")
    finally:
        peer.mode = None
    assert slow["left"] == 0
    lab.is_equal(bucket, model)


def test_a_destination_bucket_deleted_under_us(lab, bucket):
    s3, model = lab.copied(bucket, 10)
    with lab.side("b", bucket) as there:
        for key in content(there, bucket):
            there.delete_object(Bucket=bucket, Key=key)
        there.delete_bucket(Bucket=bucket)
    put(s3, bucket, model, "after", b"after")
    synced(lab, bucket)
    lab.run("replicate", "resync", bucket, "--user", "root")
    synced(lab, bucket)
    lab.is_equal(bucket, model)


def test_a_source_bucket_deleted_under_us(lab, bucket):
    """Past weir: nothing is deleted at the destination, and the task says why."""
    s3, model = lab.copied(bucket, 6)
    with lab.side("a", bucket) as there:
        for key in content(there, bucket):
            there.delete_object(Bucket=bucket, Key=key)
        there.delete_bucket(Bucket=bucket)
    with pytest.raises(ClientError):
        s3.put_object(Bucket=bucket, Key="x", Body=b"x")
    assert lab.content("b", bucket) == model
    s3.create_bucket(Bucket=bucket)
    put(s3, bucket, model, "k0", b"new")
    synced(lab, bucket)
    assert lab.content("b", bucket) == model


def test_keys_that_are_revoked(lab, bucket):
    """The user's keys at the destination are taken away and come back."""
    s3, model = lab.s3(), {}
    lab.add(bucket)
    lab.in_sync(bucket)
    access, secret = lab.endpoints["b"][1]
    lab.run("storage", "key", "b", "root", "--remove")

    def tells():
        """A worker may not have heard of it at first; objects go by one task or by several."""
        put(s3, bucket, model, f"k{len(model)}", b"x")
        return any(t["error"] for t in lab.tasks() if bucket in str(t["payload"]))
    try:
        wait_for(tells, "a task that tells why")
    finally:
        lab.run("storage", "key", "b", "root", "--access-key", access, "--secret-key", secret)
    synced(lab, bucket)
    lab.is_equal(bucket, model)


def test_an_object_that_changes_while_it_is_copied(lab, peer, bucket):
    """The copy waits in the destination's hands while the source is overwritten."""
    s3, model = lab.s3(), {}
    lab.add(bucket, to="c")
    lab.in_sync(bucket, to="c")
    held, go = threading.Event(), threading.Event()

    def mode(method, path):
        if objects(method, path) and bucket in path and not held.is_set():
            held.set()
            go.wait(1.5)
        return None
    peer.mode = mode
    try:
        put(s3, bucket, model, "k", b"first" * 1000)
        assert held.wait(DEADLINE)
        put(lab.s3(1), bucket, model, "k", b"second" * 1000)
        go.set()
        synced(lab, bucket, "c")
    finally:
        peer.mode = None
    lab.is_equal(bucket, model)


def refused(call):
    try:
        call()
        return False
    except ClientError as e:
        assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 503, e
        return True


def test_redis_is_down_for_a_while(lab, bucket):
    """Writes to what is replicated are refused before they happen; reads go on; afterwards all is as answered."""
    s3, model = lab.copied(bucket, 5)
    lab.redis.kill()
    try:
        for n in range(2):
            assert refused(lambda: lab.s3(n).put_object(Bucket=bucket, Key="k0", Body=b"never"))
            assert lab.s3(n).get_object(Bucket=bucket, Key="k0")["Body"].read() == model["k0"]
    finally:
        lab.redis.start()
    wait_for(lambda: not refused(lambda: put(lab.s3(1), bucket, model, "k0", b"again")), "writes")
    put(s3, bucket, model, "new", b"new")
    synced(lab, bucket)
    lab.is_equal(bucket, model)


def test_redis_is_flushed(lab, bucket):
    """FLUSHDB of appDB and queueDB with changes that wait: all is compared anew by itself."""
    s3, model = lab.copied(bucket, 20)
    lab.run("replicate", "pause", bucket, "--user", "root")
    for key in ("k0", "k2", "new"):
        put(lab.s3(1), bucket, model, key, b"while paused")
    store = Queue(lab.redis.port)
    for number in (0, 1):
        store.call("SELECT", number)
        store.call("FLUSHDB")
    wait_for(lambda: not refused(lambda: put(s3, bucket, model, "later", b"later")), "writes")
    lab.run("replicate", "resume", bucket, "--user", "root")
    synced(lab, bucket)
    lab.is_equal(bucket, model)


class Forwarder:
    """A port that leads to whichever Redis is the master."""

    def __init__(self, target):
        self.target, self.open = target, set()
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.port = self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        while True:
            try:
                near, _ = self.listener.accept()
            except OSError:
                return
            try:
                far = socket.create_connection(("127.0.0.1", self.target))
            except OSError:
                near.close()
                continue
            self.open |= {near, far}
            for one, other in ((near, far), (far, near)):
                threading.Thread(target=self.pump, args=(one, other), daemon=True).start()

    def pump(self, one, other):
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            pass
        for side in (one, other):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)
        self.open.discard(one)

    def lead_to(self, target):
        self.target = target
        for side in list(self.open):
            with contextlib.suppress(OSError):
                side.shutdown(socket.SHUT_RDWR)

    def end(self):
        self.listener.close()
        self.lead_to(0)


class FailoverLab(Lab):
    """Its Redis has a replica, which is behind from `fall_behind` on and becomes the master by `fail_over`."""

    def store_port(self):
        folder = self.folder / "replica"
        folder.mkdir()
        self.replica = Redis(folder, "--replicaof", "127.0.0.1", str(self.redis.port))
        self.forwarder = Forwarder(self.redis.port)
        return self.forwarder.port

    def fall_behind(self):
        """What is answered until now is there; what comes is lost."""
        master = Queue(self.redis.port)
        master.call("SET", "lk:wait", "", "PX", 1000)  # it is waited for this, and all before
        assert master.call("WAIT", 1, 30000) == b"1"
        Queue(self.replica.port).call("REPLICAOF", "127.0.0.1", 1)

    def fail_over(self):
        self.redis.kill()
        self.forwarder.lead_to(self.replica.port)

    def end(self):
        super().end()
        if hasattr(self, "replica"):
            self.replica.kill()
            self.forwarder.end()


def test_redis_fails_over(tmp_path):
    """A replica that lags becomes the master: what only the old one knew of is found by comparing, without being asked. Before it is the master it
    refuses to be written to, and so do the gateways."""
    lab, model, bucket = FailoverLab("redis", tmp_path), {}, "failover"
    try:
        s3 = lab.s3()
        s3.create_bucket(Bucket=bucket)
        fill(s3, bucket, model, 20)
        lab.add(bucket)
        lab.in_sync(bucket)
        lab.fall_behind()
        put(s3, bucket, model, "k0", b"went over, which is forgotten")
        lab.in_sync(bucket)
        lab.run("replicate", "pause", bucket, "--user", "root")
        for key in ("k0", "k2", "new"):
            put(lab.s3(1), bucket, model, key, b"queued, which is forgotten")
        remove(s3, bucket, model, "k4")
        lab.recorded()
        lab.fail_over()
        for n in range(2):
            assert refused(lambda: lab.s3(n).put_object(Bucket=bucket, Key="k6", Body=b"never"))
            assert lab.s3(n).get_object(Bucket=bucket, Key="k6")["Body"].read() == model["k6"]
        Queue(lab.replica.port).call("REPLICAOF", "NO", "ONE")
        wait_for(lambda: not refused(lambda: put(lab.s3(), bucket, model, "k6", b"after")), "writes")
        wait_for(lambda: not refused(lambda: put(lab.s3(1), bucket, model, "later", b"later")), "writes")
        assert lab.row(bucket)["state"] != "paused"  # as the replica knew it
        synced(lab, bucket)
        lab.is_equal(bucket, model)
        assert not lab.tasks("archived")
    finally:
        lab.end()


def test_a_worker_that_sleeps_through_its_leases(lab, bucket):
    """Stopped until its leases have ended and locks live no more, then resumed: what it had begun overwrites nothing
    newer."""
    s3, model = lab.s3(), {}
    lab.add(bucket)
    lab.in_sync(bucket)
    stop, rounds = threading.Event(), []

    def write():
        while not stop.is_set():
            rounds.append(len(rounds))
            for key in ("one", "two", "three"):
                put(s3, bucket, model, key, os.urandom(100_000 + len(rounds)))
    writer = threading.Thread(target=write)
    writer.start()
    try:
        wait_for(lambda: len(rounds) > 10, "ten rounds of writes, some of whose copies are on their way")
        lab.workers[0].signal(signal.SIGSTOP)
        stop.set()
        writer.join()
        for key in ("one", "two"):
            put(lab.s3(1), bucket, model, key, b"newest " + key.encode())
        Queue(lab.redis.port).end_leases()
        lab.in_sync(bucket, seconds=2 * DEADLINE)
        lab.is_equal(bucket, model)
    finally:
        lab.workers[0].signal(signal.SIGCONT)
        stop.set()
        writer.join()
    put(s3, bucket, model, "three", b"last")
    synced(lab, bucket)
    lab.is_equal(bucket, model)


@contextlib.contextmanager
def asleep(lab, bucket, model, prefix):
    """Gateway 1 is stopped, and clients have sent it writes. The model has what they are told after it has woken."""
    weir, refused = lab.gateways[1], []

    def write(n):
        try:
            put(lab.s3(1), bucket, model, f"{prefix}-{n}", b"written in its sleep")
        except ClientError as e:
            refused.append(e.response["ResponseMetadata"]["HTTPStatusCode"])
    writers = [threading.Thread(target=write, args=(n,)) for n in range(8)]
    weir.signal(signal.SIGSTOP)
    try:
        for writer in writers:
            writer.start()
        yield
    finally:
        weir.signal(signal.SIGCONT)
        for writer in writers:
            writer.join()
    assert set(refused) <= {503}, refused


def test_a_gateway_that_sleeps_through_its_lease(lab, bucket):
    """The others take it for dead. What it was to write meanwhile is refused, or goes where it belongs and is brought over: a
    replication was made without it, then the bucket was switched."""
    model = {}
    fill(lab.s3(), bucket, model, 3)
    lab.s3(1).head_bucket(Bucket=bucket)
    with asleep(lab, bucket, model, "made"):
        lab.add(bucket)
        lab.in_sync(bucket)
    synced(lab, bucket)
    lab.is_equal(bucket, model)
    with asleep(lab, bucket, model, "switched"):
        lab.run("switch", "start", bucket, "--user", "root")
        switched(lab, bucket)
    assert content(lab.s3(), bucket) == model
    wait_for(lambda: can_write(lab.s3(1), bucket, model), "the gateway to take writes again")
    assert lab.content("b", bucket) == model


def test_a_body_that_comes_slowly_while_the_bucket_is_switched(lab, bucket):
    """Its way was found before the switch began; it does not end where the bucket no longer is."""
    model = {}
    fill(lab.s3(), bucket, model, 3)
    lab.add(bucket)
    lab.in_sync(bucket)
    url = urllib.parse.urlsplit(lab.s3(1).generate_presigned_url("put_object", Params={"Bucket": bucket, "Key": "slow"}))
    with socket.create_connection((url.hostname, url.port)) as s:
        s.sendall(f"PUT {url.path}?{url.query} HTTP/1.1\r\nHost: {url.netloc}\r\nContent-Length: 10\r\n\r\nabc".encode())
        lab.run("switch", "start", bucket, "--user", "root")
        switched(lab, bucket)
        s.sendall(b"defghij")
        status = int(s.recv(4096).split()[1])
    if status == 200:
        model["slow"] = b"abcdefghij"
    else:
        assert status == 503
    assert content(lab.s3(), bucket) == model == lab.content("b", bucket)


def can_write(s3, bucket, model):
    try:
        put(s3, bucket, model, "awake", b"again")
        return True
    except ClientError as e:
        assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 503
        return False


# --- clocks


HOURS = 3600


def test_a_gateway_and_a_worker_whose_clocks_are_off(lab, bucket):
    """By hours. Storages refuse what such a worker signs, and its tasks say so until the other one does them; the gateway refuses what
    clients sign, and what it has no clock for is as everywhere: leases, locks and epochs go by the store's."""
    s3, model = lab.s3(), {}
    fill(s3, bucket, model, 5)
    for weir, hours in ((lab.gateways[1], -5), (lab.workers[0], 3)):
        weir.kill()
        weir.start(FAULT_CLOCK=str(hours * HOURS)).ready()
    try:
        lab.add(bucket)
        with pytest.raises(ClientError) as e:
            lab.s3(1).put_object(Bucket=bucket, Key="skewed", Body=b"x")
        assert e.value.response["Error"]["Code"] == "RequestTimeTooSkewed"
        fill(s3, bucket, model, 40)
        remove(s3, bucket, model, "k0")
        synced(lab, bucket, states=["archived"])  # in such a hurry one worker may use up all tries
        lab.is_equal(bucket, model)
        log = lab.workers[0].err
        assert "s ahead of its own" in log, log[-2000:]  # it had its share
    finally:
        for weir in (lab.gateways[1], lab.workers[0]):
            weir.kill()
            weir.start(FAULT_CLOCK="0").ready()
    put(lab.s3(1), bucket, model, "after", b"after")
    synced(lab, bucket)
    lab.is_equal(bucket, model)


def test_the_clock_goes_back(tmp_path):
    """Of everything on one machine, which is killed in the middle of its work: nobody waits for leases, locks and processes of before.
    By less than a quarter of an hour, past which clients are refused."""
    lab, model, bucket = Lab("embedded", tmp_path), {}, "clock"
    weir = lab.gateways[0]
    try:
        weir.kill()
        weir.start(FAULT_CLOCK=str(14 * 60)).ready()
        lab.s3().create_bucket(Bucket=bucket)
        lab.add(bucket)
        lab.in_sync(bucket)
        number = 0
        while not any(t["type"].startswith("object") for t in lab.tasks("active")):
            for _ in range(5):
                number += 1
                put(lab.s3(), bucket, model, f"k{number}", os.urandom(4 * 1024 * 1024))
        weir.kill()
        weir.start(FAULT_CLOCK="0").ready()
        put(lab.s3(), bucket, model, "after", b"after")
        synced(lab, bucket)
        lab.is_equal(bucket, model)
    finally:
        lab.end()


@pytest.mark.skipif("WEIR_TEST_LARGE" not in os.environ, reason="5 GiB are for WEIR_TEST_LARGE=1")
def test_five_gib(lab, bucket):
    """Put in one piece, which is the most that S3 takes."""
    class Zeros:
        def __init__(self):
            self.left = 5 * GIB

        def __len__(self):
            return 5 * GIB

        def read(self, size=-1):
            size = min(self.left, size if size >= 0 else self.left)
            self.left -= size
            return bytes(size)
    import requests
    url = lab.s3().generate_presigned_url("put_object", {"Bucket": bucket, "Key": "large"}, ExpiresIn=3600)
    assert requests.put(url, data=Zeros(), timeout=600).status_code == 200
    lab.add(bucket)
    lab.in_sync(bucket, seconds=1200)
    with lab.side("b", bucket) as there:
        head = there.head_object(Bucket=bucket, Key="large")
    assert head["ContentLength"] == 5 * GIB
    assert head["ETag"] == lab.s3().head_object(Bucket=bucket, Key="large")["ETag"]
