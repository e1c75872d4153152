"""Ten thousand idle connections under a full load, peers that are slow on purpose, and strangers who attack."""
import http.client
import io
import json
import os
import re
import resource
import select
import socket
import subprocess
import sys
import threading
import time
import urllib.parse

import pytest
from conftest import wait_for

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release"))
SERVER = os.path.join(BUILD, "tests/bench/bench_http_server")
CLIENT = os.path.join(BUILD, "tests/bench/bench_http_load")
SMALL, LARGE = b"s" * 4096, 64 * 1024 * 1024
IDLE_BYTES_MAX, SLOWDOWN_MAX, ROUNDS = 8192, 3, 5


def sanitized():
    """Sanitizers multiply memory and time, so the counts go down and memory is not judged."""
    with open(SERVER, "rb") as f:
        program = f.read()
    return b"__asan_init" in program or b"__tsan_init" in program


SANITIZED = sanitized()
IDLE, SLOW = (1000, 50) if SANITIZED else (10000, 500)


def allow_files(count):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft >= count:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (count, max(hard, count)))
    except (ValueError, OSError):
        pytest.skip(f"needs {count} open files, the limit is {hard}")


class Server:
    def __init__(self, folder):
        (folder / "small").write_bytes(SMALL)
        with open(folder / "large", "wb") as f:
            f.truncate(LARGE)
        self.log = folder.parent / "server.log"
        with open(self.log, "w") as out:
            self.process = subprocess.Popen([SERVER, str(folder)], stdout=out, stderr=out, stdin=subprocess.DEVNULL)
        deadline = time.monotonic() + 20
        while not (found := re.search(r"127\.0\.0\.1:(\d+)", self.log.read_text())):
            assert self.process.poll() is None and time.monotonic() < deadline, self.log.read_text()
            time.sleep(0.01)
        self.port = int(found.group(1))

    def connect(self, receive_buffer=None):
        s = socket.socket()
        if receive_buffer:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer)
        s.connect(("127.0.0.1", self.port))
        return s

    def rss(self):
        with open(f"/proc/{self.process.pid}/statm") as f:
            return int(f.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def rest(self):
        """Until it has done what it can for the connections that it has: it uses next to no time of a processor."""
        def ticks():
            with open(f"/proc/{self.process.pid}/stat") as f:
                return sum(map(int, f.read().rsplit(")", 1)[1].split()[11:13]))
        deadline, last = time.monotonic() + 60, -100
        while (now := ticks()) - last > 1 and time.monotonic() < deadline:
            last = now
            time.sleep(0.1)

    def load(self, connections, seconds, path="/small"):
        """Figures of a client that asks as fast as it can; every answer must be right."""
        done = subprocess.run([CLIENT, "-c", str(connections), "-t", str(seconds), "127.0.0.1", str(self.port), path],
                              capture_output=True, text=True, timeout=120)
        figures = dict(line.split() for line in done.stdout.splitlines())
        assert done.returncode == 0 and figures["errors"] == "0", done
        figures = {name: float(value) for name, value in figures.items()}
        if not figures["ops"]:
            figures["p99_us"] = figures["seconds"] * 1e6  # it took longer than we looked
        return figures

    def stop(self):
        self.process.terminate()
        assert self.process.wait(60) == 0, self.log.read_text()[-2000:]


@pytest.fixture
def server(tmp_path):
    allow_files(IDLE + 1000)
    folder = tmp_path / "files"
    folder.mkdir()
    server = Server(folder)
    try:
        yield server
        server.stop()
    finally:
        if server.process.poll() is None:
            server.process.kill()
            server.process.wait()


def get_small(s):
    s.sendall(b"GET /small HTTP/1.1\r\nHost: load\r\n\r\n")
    got = b""
    while not got.endswith(SMALL):
        piece = s.recv(65536)
        assert piece, f"closed after {got[:200]}"
        got += piece
    assert got.startswith(b"HTTP/1.1 200"), got[:200]


def test_ten_thousand_idle_connections_cost_little_and_disturb_nobody(server):
    server.load(64, 1)
    before = server.rss()
    idle = []
    try:
        for _ in range(IDLE):
            idle.append(server.connect())
            get_small(idle[-1])
        each = (server.rss() - before) / IDLE
        figures = server.load(64, 3)
        assert figures["ops"] > 0
        print(f"{IDLE} idle connections: {each:.0f} bytes each; meanwhile {figures['ops'] / figures['seconds']:.0f} "
              f"GETs a second without an error")
        assert SANITIZED or each <= IDLE_BYTES_MAX
        for s in idle:
            get_small(s)
    finally:
        for s in idle:
            s.close()


class Peers:
    """SLOW connections that each do a little now and then, from a thread of their own."""

    def __init__(self, server, begin, move, receive_buffer=None):
        self.connections = []
        self.move, self.ending = move, threading.Event()
        self.thread = threading.Thread(target=self.drip)
        for _ in range(SLOW):
            self.connections.append(server.connect(receive_buffer))
            self.connections[-1].sendall(begin)

    def drip(self):
        while not self.ending.is_set():
            for s in self.connections:
                self.move(s)
                if self.ending.wait(2.0 / SLOW):
                    return

    def still_held(self):
        """How many the server has not closed."""
        poll = select.poll()
        for s in self.connections:
            poll.register(s, select.POLLRDHUP)
        return SLOW - sum(1 for _, event in poll.poll(0) if event & (select.POLLRDHUP | select.POLLHUP | select.POLLERR))

    def __enter__(self):
        self.thread.start()
        return self

    def __exit__(self, *_):
        self.ending.set()
        self.thread.join()
        for s in self.connections:
            s.close()


def read_little(s):
    try:
        s.recv(512, socket.MSG_DONTWAIT)
    except BlockingIOError:
        pass


KINDS = {
    "half_sent_heads": (b"GET /small HTTP/1.1\r\nHost: load\r\nX-Slow: ", lambda s: s.send(b"a"), None),
    "stalled_bodies": (b"PUT /upload HTTP/1.1\r\nHost: load\r\nContent-Length: 1000000\r\n\r\n" + b"b" * 1000,
                       lambda s: s.send(b"b"), None),
    "crawling_readers": (b"GET /large HTTP/1.1\r\nHost: load\r\n\r\n", read_little, 4096),
}


@pytest.mark.parametrize("kind", KINDS)
def test_slow_peers_do_not_slow_a_normal_client(server, kind):
    """The client's p99 beside the slow peers over its p99 alone, each the best of short runs that take turns: other
    programs make runs worse and never better, and a server that is really held up is so in each of them."""
    server.load(4, 0.5)
    alone, beside = [], []
    while len(beside) < ROUNDS or (min(beside) > SLOWDOWN_MAX * min(alone) and len(beside) < 10 * ROUNDS):
        alone.append(server.load(4, 0.2)["p99_us"])
        with Peers(server, *KINDS[kind]) as peers:
            server.rest()
            beside.append(server.load(4, 0.2)["p99_us"])
            assert peers.still_held() == SLOW, "the server dropped some, so they were no load"
    print(f"{SLOW} {kind}: p99 is {min(beside) / min(alone):.2f} of that without them, in {len(beside)} rounds")
    assert min(beside) <= SLOWDOWN_MAX * min(alone)


# --- strangers beside a signed client ---

RUN, PATIENCE = 0.7, 5  # seconds that the signed client asks for in one run, and waits for one answer
# Most that weir's memory may grow while it is attacked, in MiB. A request that waits holds some 50 kB, a thread twice
# that. What strangers send to an open bucket is read and takes its time; by s3.document_memory they have 64 MiB for it,
# and the allocator keeps some more: there only the memory is judged.
GROWTH = {"forms_to_no_bucket": 64, "forms": 64, "readers": 64, "keys": 64, "keys_of_an_open_bucket": 256, "policy": 64}


class Attack:
    """The strangers of strangers.py, on and off."""

    def __init__(self, name, port):
        script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "strangers.py")
        self.process = subprocess.Popen([sys.executable, script, name, str(port)], stdin=subprocess.PIPE,
                                        stdout=subprocess.PIPE, text=True)

    def turn(self, word):
        self.process.stdin.write(word + "\n")
        self.process.stdin.flush()
        return self.process.stdout.readline().strip()

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.stdin.close()
        self.process.kill()
        self.process.wait()


def crafted_policy():
    """As large as a policy may be; each place of a key of many a's is one where a pattern might begin."""
    allow = {"Effect": "Allow", "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::crafted/*"}
    patterns = [f"arn:aws:s3:::crafted/*{'a' * 100}{i:03d}*" for i in range(145)]
    deny = {"Effect": "Deny", "Principal": "*", "Action": "s3:GetObject", "Resource": patterns}
    text = json.dumps({"Version": "2012-10-17", "Statement": [allow, deny]})
    assert 19000 < len(text) <= 20 * 1024
    return text


@pytest.fixture
def attacked(serve):
    """A weir with a private, a public and a crafted bucket."""
    pytest.importorskip("boto3")
    server = serve().ready()
    s3 = server.s3()
    for bucket in "private", "public", "crafted":
        s3.create_bucket(Bucket=bucket)
    s3.put_bucket_acl(Bucket="public", ACL="public-read-write")
    s3.upload_fileobj(io.BytesIO(b"l" * (20 << 20)), "public", "large", ExtraArgs={"ACL": "public-read"})
    assert s3.head_object(Bucket="public", Key="large")["ETag"].endswith('-3"')
    s3.put_bucket_policy(Bucket="crafted", Policy=crafted_policy())
    s3.put_object(Bucket="crafted", Key="a" * 1000, Body=b"x")
    return server


class Signed:
    """A client whose requests are signed: it puts and gets by turns, on one connection."""

    def __init__(self, server):
        s3, asked = server.s3(), {"Bucket": "private", "Key": "small"}
        self.port = urllib.parse.urlsplit(server.s3_url).port
        self.paths = {method: s3.generate_presigned_url(name, asked).split(str(self.port), 1)[1]
                      for method, name in (("PUT", "put_object"), ("GET", "get_object"))}

    def ask(self, connection, method):
        began = time.monotonic()
        try:
            connection.request(method, self.paths[method], body=SMALL if method == "PUT" else None)
            answer = connection.getresponse()
            answer.read()
            assert answer.status == 200, f"{method}: {answer.status}"
        except TimeoutError:
            return None
        return time.monotonic() - began

    def p99(self):
        """Of PUTs and of GETs, in milliseconds. One that waits in vain ends the run: that is as bad as it gets."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE)
        took = []
        try:
            end = time.monotonic() + RUN
            while time.monotonic() < end or len(took) < 200:
                took.append(self.ask(connection, ("PUT", "GET")[len(took) % 2]))
                if took[-1] is None:
                    return PATIENCE * 1000.0
        finally:
            connection.close()
        return max(sorted(kind)[int(len(kind) * 0.99) - 1] for kind in (took[::2], took[1::2])) * 1000


def peak_memory(pid, reset=False):
    """The most memory that the process had since the last reset, in bytes."""
    if reset:
        with open(f"/proc/{pid}/clear_refs", "w") as f:
            f.write("5")
    with open(f"/proc/{pid}/status") as f:
        return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) * 1024


@pytest.mark.parametrize("kind", GROWTH)
def test_strangers_do_not_stop_a_signed_client(attacked, kind):
    """Its p99 while strangers attack over its p99 alone, each the best of runs that take turns, as above; and how much
    memory the attack costs."""
    allow_files(2000)
    client, alone, beside, growth, judged = Signed(attacked), [], [], 0, kind != "keys_of_an_open_bucket"
    client.p99()
    with Attack(kind, client.port) as attack:
        deadline = time.monotonic() + 60
        while len(beside) < 3 or (judged and min(beside) > SLOWDOWN_MAX * min(alone) and time.monotonic() < deadline):
            alone.append(client.p99())
            before = peak_memory(attacked.process.pid, reset=True)
            attack.turn("on")
            beside.append(client.p99())
            growth = max(growth, peak_memory(attacked.process.pid) - before)
            got = attack.turn("off")
            wait_for(lambda: attacked.metric("weir_pool_busy") <= 1, "weir to be at rest")  # who counts is one
            if min(beside) >= PATIENCE * 1000:
                break
    print(f"{kind}: p99 {min(beside):.1f} ms is {min(beside) / min(alone):.2f} of that without, in {len(beside)} rounds; "
          f"memory grew by {growth / (1 << 20):.0f} MiB; strangers got {got}")
    assert not judged or min(beside) <= SLOWDOWN_MAX * min(alone)
    assert SANITIZED or growth <= GROWTH[kind] << 20
