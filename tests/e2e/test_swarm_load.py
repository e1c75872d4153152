"""The tracker under the loads of the bench (tests/bench/swarm_load.c), which check every reply. What is judged here is
that all of them come and are right, and that memory stays; how fast, `make bench ROOM=swarm` says. Names of scenarios
as in the plan of tests."""
import os
import re
import subprocess

import pytest

from conftest import free_port

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
BUILD = os.environ.get("WEIR_BUILD", os.path.join(ROOT, "build/release"))
LOAD = os.path.join(BUILD, "tests/bench/bench_swarm_load")
FLOOR = os.path.join(BUILD, "tests/bench/bench_swarm_floor")
WORLD = ("torrents=2000", "peers=10000")
PAGE = os.sysconf("SC_PAGE_SIZE")


def run(mode, port, *options):
    done = subprocess.run([LOAD, mode, str(port), *WORLD, *options], capture_output=True, text=True, timeout=300)
    figures = {name: float(value) for name, value in (line.split() for line in done.stdout.splitlines())}
    return done, figures


def load(mode, port, *options):
    done, figures = run(mode, port, *options)
    assert done.returncode == 0 and figures["errors"] == 0, done.stdout + done.stderr
    return figures


def rss(server):
    with open(f"/proc/{server.process.pid}/statm") as f:
        return int(f.read().split()[1]) * PAGE


@pytest.fixture
def tracker(serve):
    port = free_port()
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.udp", f"127.0.0.1:{port}").ready()
    server.udp = port
    return server


def test_load_announce_only(tracker):
    assert load("fill", tracker.udp)["ops"] == 10000
    figures = load("announce", tracker.udp, "ms=500")
    assert figures["ops"] > 0 and figures["peers"] > 0


def test_load_mixed_1to1(tracker):
    load("fill", tracker.udp)
    figures = load("mixed", tracker.udp, "ms=1000", "bad=20")
    assert figures["connects"] == figures["ops"] + figures["scrapes"]
    assert figures["scrapes"] > 0 and figures["refused"] > 0


def test_load_at_a_rate(tracker):
    load("fill", tracker.udp)
    assert 0 < load("announce", tracker.udp, "ms=1000", "rate=500")["ops"] <= 510


def test_soak_24h_no_growth(tracker):
    """Shortened: the same load again and again takes no memory after the first times."""
    load("fill", tracker.udp)
    for _ in range(2):
        load("mixed", tracker.udp, "ms=300")
    before = rss(tracker)
    for _ in range(5):
        load("mixed", tracker.udp, "ms=300")
    assert rss(tracker) < before + 8e6


def test_a_server_that_answers_without_thinking_is_found_out():
    floor = subprocess.Popen([FLOOR, "1", "5"], stdout=subprocess.PIPE, text=True)
    try:
        port = int(re.search(r"listening (\d+)", floor.stdout.readline()).group(1))
        done, figures = run("announce", port, "ms=100")
        assert done.returncode == 1 and figures["wrong"] > 0 and figures["ops"] == 0
        assert "wrong reply: interval" in done.stderr
        load("announce", port, "ms=100", "bare=1")
    finally:
        floor.kill()
        floor.communicate()
