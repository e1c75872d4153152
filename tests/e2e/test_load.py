"""Ten thousand idle connections under a full load, and peers that are slow on purpose."""
import os
import re
import resource
import select
import socket
import subprocess
import threading
import time

import pytest

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
