"""Swarms of real clients, which know of each other by weir's tracker alone. Names of scenarios as in the plan of tests."""
import socket

import pytest
from conftest import wait_for
from swarm_clients import Libtorrent, aria2, hash_of, make_torrent, pattern, urls
from swarm_lab import scrape

BODY = pattern(600_000)
NAME = "obj.bin"


@pytest.fixture
def source(tmp_path):
    """A folder with the file."""
    folder = tmp_path / "source"
    folder.mkdir()
    (folder / NAME).write_bytes(BODY)
    return folder


@pytest.fixture
def run():
    """run(client, ...) starts a client; programs are ended after the test."""
    started = []

    def start(client, *args, **more):
        started.append(client(*args, **more))
        return started[-1]
    yield start
    for client in started:
        if hasattr(client, "kill"):
            client.kill()
        else:
            client.stop()


def has_ipv6():
    try:
        with socket.socket(socket.AF_INET6) as s:
            s.bind(("::1", 0))
        return True
    except OSError:
        return False


def counts(server, info_hash, path="/scrape"):
    """(seeders, leechers, snatches)"""
    of = scrape(server, info_hash, path=path)[b"files"].get(info_hash, {})
    return tuple(of.get(name, 0) for name in (b"complete", b"incomplete", b"downloaded"))


def wait_counts(server, info_hash, *wanted, **more):
    wait_for(lambda: counts(server, info_hash, **more) == wanted, f"{wanted} seeders, leechers, snatches")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_e2e_swarm_libtorrent_http_udp(serve, run, source, tmp_path, protocol, host):
    if host == "[::1]" and not has_ipv6():
        pytest.skip("no IPv6 here")
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.http", f"{host}:0", "--tracker.udp",
                   f"{host}:0").ready()
    torrent = make_torrent(source / NAME, [urls(server)[protocol]])
    info_hash = hash_of(torrent)
    # The leecher is first, so it is the seeder that is told of the other; then the other way round.
    leecher = run(Libtorrent, torrent, tmp_path / "leecher", f"{host}:0")
    wait_counts(server, info_hash, 0, 1, 0)
    seeder = run(Libtorrent, torrent, source, f"{host}:0")
    leecher.wait_seeding()
    assert (tmp_path / "leecher" / NAME).read_bytes() == BODY
    wait_counts(server, info_hash, 2, 0, 1)
    seeder.stop()
    wait_counts(server, info_hash, 1, 0, 1)
    second = run(Libtorrent, torrent, tmp_path / "second", f"{host}:0")
    second.wait_seeding()
    wait_counts(server, info_hash, 2, 0, 2)
    for client in (leecher, second):
        client.stop()
    wait_counts(server, info_hash, 0, 0, 2)


@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_e2e_aria2(serve, run, source, tmp_path, protocol):
    server = serve("--only", "tracker", "--tracker.open", "true").ready()
    torrent = make_torrent(source / NAME, [urls(server)[protocol]])
    info_hash = hash_of(torrent)
    seeder = run(Libtorrent, torrent, source)
    wait_counts(server, info_hash, 1, 0, 0)
    # It ends when it is done, and says "stopped", never "completed": that is a snatch all the same.
    brief = run(aria2, torrent, tmp_path / "brief", "--seed-time=0")
    brief.wait_file(NAME, BODY)
    assert brief.process.wait(timeout=60) == 0
    wait_counts(server, info_hash, 1, 0, 1)
    # One that stays is a seeder to others.
    staying = run(aria2, torrent, tmp_path / "staying", "--seed-ratio=0.0")
    staying.wait_file(NAME, BODY)
    wait_counts(server, info_hash, 2, 0, 2)
    seeder.stop()
    wait_counts(server, info_hash, 1, 0, 2)
    run(Libtorrent, torrent, tmp_path / "leecher").wait_seeding()
    wait_counts(server, info_hash, 2, 0, 3)
    staying.stop()
    wait_counts(server, info_hash, 1, 0, 3)
