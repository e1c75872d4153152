"""Swarms of real clients, which know of each other by weir's tracker alone. Names of scenarios as in the plan of tests."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import time

import libtorrent as lt
import pytest
from conftest import BUILD, DEADLINE, ROOT, free_port, wait_for
from swarm_clients import (Libtorrent, Refused, aria2, hash_of, inside, make_torrent, own_udp, pattern, redis_ask, redis_hash,
                           transmission, two_networks, urls, with_trackers)
from swarm_lab import announce, scrape
from test_swarm import add_torrent, add_user, call, on_redis
from test_torrent import torrent_of, with_bucket

NPM = BUILD.parent / "npm/node_modules"

BODY = pattern(600_000)
NAME = "obj.bin"


def wait_written(folder):
    """libtorrent writes a file behind its word that it has it."""
    wait_for(lambda: (folder / NAME).read_bytes() == BODY, f"the bytes in {folder.name}")


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


def wait_counts(server, info_hash, *wanted, client=None, **more):
    """`client` is the libtorrent whose announce is waited for. On a busy machine its announce may time out, and it would
    wait for minutes before the next one. So it is asked for one every 20 s."""
    asked = time.monotonic()

    def reached():
        nonlocal asked
        if client and time.monotonic() - asked > 20:
            client.handle.force_reannounce()
            asked = time.monotonic()
        return counts(server, info_hash, **more) == wanted
    wait_for(reached, f"{wanted} seeders, leechers, snatches")


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]"], ids=["ipv4", "ipv6"])
@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_e2e_swarm_libtorrent_http_udp(serve, run, source, tmp_path, protocol, host):
    if host == "[::1]" and not has_ipv6():
        pytest.skip("no IPv6 here")
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.http", f"{host}:0",
                   *(own_udp() if host == "127.0.0.1" else ("--tracker.udp", f"{host}:0"))).ready()
    torrent = make_torrent(source / NAME, [urls(server)[protocol]])
    info_hash = hash_of(torrent)
    # The leecher is first, so it is the seeder that is told of the other; then the other way round.
    leecher = run(Libtorrent, torrent, tmp_path / "leecher", f"{host}:0")
    wait_counts(server, info_hash, 0, 1, 0)
    seeder = run(Libtorrent, torrent, source, f"{host}:0")
    leecher.wait_seeding()
    wait_written(tmp_path / "leecher")
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
    server = serve("--only", "tracker", "--tracker.open", "true", *own_udp()).ready()
    torrent = make_torrent(source / NAME, [urls(server)[protocol]])
    info_hash = hash_of(torrent)
    seeder = run(Libtorrent, torrent, source)
    wait_counts(server, info_hash, 1, 0, 0)
    # One that stays is a seeder to others.
    staying = run(aria2, torrent, tmp_path / "staying", "--seed-ratio=0.0")
    staying.wait_file(NAME, BODY)
    wait_counts(server, info_hash, 2, 0, 1)
    seeder.stop()
    wait_counts(server, info_hash, 1, 0, 1)
    # One that ends when it is done says "stopped", and never "completed": that is a snatch all the same.
    brief = run(aria2, torrent, tmp_path / "brief", "--seed-time=0")
    brief.wait_file(NAME, BODY)
    assert brief.process.wait(timeout=DEADLINE) == 0
    wait_counts(server, info_hash, 1, 0, 2)
    staying.stop()
    wait_counts(server, info_hash, 0, 0, 2)


# --- networks of their own ---


@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_e2e_transmission_nonloopback(serve, run, source, tmp_path, protocol):
    """It connects to no peer on 127.0.0.1, so it has a network namespace, and tracker and seeder another."""
    with contextlib.ExitStack() as stack:
        try:
            here, there = stack.enter_context(two_networks())
        except Refused as reason:
            pytest.skip(f"no network namespaces: {reason}")
        address = "192.0.2.1:" + str(free_port())
        server = inside(here, lambda: serve("--only", "tracker", "--tracker.open", "true", "--tracker.http", address,
                                            "--tracker.udp", address).ready())
        torrent = make_torrent(source / NAME, [urls(server)[protocol]])
        info_hash = hash_of(torrent)

        def wait(*wanted):
            inside(here, lambda: wait_counts(server, info_hash, *wanted))
        inside(here, lambda: run(Libtorrent, torrent, source, "192.0.2.1:0"))
        wait(1, 0, 0)
        leecher = inside(there, lambda: run(transmission, torrent, tmp_path / "leecher"))
        leecher.wait_file(NAME, BODY)
        wait(2, 0, 1)


# --- a client that is a tracker's client alone ---


@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_e2e_bittorrent_tracker_npm_client(serve, protocol):
    if not (NPM / "bittorrent-tracker").is_dir() or not shutil.which("node"):
        pytest.skip("the npm packages are not installed")
    server = serve("--only", "tracker", "--tracker.open", "true", *own_udp()).ready()
    done = subprocess.run(["node", ROOT / "tests/e2e/js/tracker.mjs"], capture_output=True, text=True, timeout=DEADLINE,
                          check=False, env={**os.environ, "NPM": str(NPM), "ANNOUNCE": urls(server)[protocol],
                                            "INFO_HASH": "ab" * 20})
    assert done.returncode == 0, done.stderr
    told = [json.loads(line) for line in done.stdout.splitlines()]

    def of(what, *names):
        return [tuple(answer.get(name) for name in names) for answer in told if answer["what"] == what]
    assert of("seeder", "complete", "incomplete", "peers") == [(1, 0, [])]
    assert of("leecher", "complete", "incomplete", "peers") == [(1, 1, ["127.0.0.1:6881"])]
    assert of("completed", "complete", "incomplete", "peers") == [(2, 0, [])]
    assert of("stopped", "complete", "incomplete", "peers") == [(1, 0, [])]
    assert of("scrape", "complete", "incomplete", "downloaded") == [(1, 1, 0), (1, 0, 1)]


# --- torrents of version 2, and magnet links ---


def test_hybrid_two_hashes(serve, run, source, tmp_path):
    """A hybrid is announced by both of its hashes. The tracker takes only what was made of objects, so it must know both."""
    server, s3 = with_bucket(serve(*own_udp()).ready())
    s3.put_object(Bucket="pub", Key=NAME, Body=BODY)
    made = tmp_path / "made.torrent"
    made.write_bytes(torrent_of(server, "pub", NAME, "&v=hybrid").body)
    torrent = with_trackers(made, tmp_path / "peers.torrent", urls(server)["http"])
    both = lt.torrent_info(lt.bdecode(torrent.read_bytes())).info_hashes()
    hashes = [bytes.fromhex(str(both.v1)), bytes.fromhex(str(both.v2))[:20]]

    def wait(*wanted):
        for info_hash in hashes:
            wait_counts(server, info_hash, *wanted)
    wait(0, 0, 0)
    leecher = run(Libtorrent, torrent, tmp_path / "leecher")
    wait(0, 1, 0)
    seeder = run(Libtorrent, torrent, source)
    leecher.wait_seeding()
    wait_written(tmp_path / "leecher")
    wait(2, 0, 1)
    for client in (seeder, leecher):
        client.stop()
    wait(0, 0, 1)


@pytest.mark.parametrize("protocol", ["http", "udp"])
def test_magnet_left_quirks(serve, run, source, tmp_path, protocol):
    """Who has but a link does not know what is left: libtorrent says 16384, aria2 0, as a seeder does."""
    server = serve("--only", "tracker", "--tracker.open", "true", *own_udp()).ready()
    torrent = make_torrent(source / NAME, [urls(server)[protocol]])
    info_hash = hash_of(torrent)
    magnet = lt.make_magnet_uri(lt.torrent_info(lt.bdecode(torrent.read_bytes())))
    first = run(Libtorrent, magnet, tmp_path / "first")
    wait_counts(server, info_hash, 0, 1, 0)
    seeder = run(Libtorrent, torrent, source)
    first.wait_seeding()
    wait_counts(server, info_hash, 2, 0, 1)
    # There are seeders alone now, and aria2 gets the info dictionary from one of them.
    second = run(aria2, magnet, tmp_path / "second", "--seed-time=0")
    second.wait_file(NAME, BODY)
    assert second.process.wait(timeout=DEADLINE) == 0
    wait_counts(server, info_hash, 2, 0, 2)
    for client in (seeder, first):
        client.stop()
    wait_counts(server, info_hash, 0, 0, 2)


# --- several trackers ---


def test_two_trackers_on_one_redis_are_one_swarm(serve, redis, run, source, tmp_path):
    one, two = (on_redis(serve, redis, "--tracker.open", "true", *own_udp()) for _ in range(2))
    torrent = make_torrent(source / NAME, [urls(one)["http"]])
    info_hash = hash_of(torrent)
    seeder = run(Libtorrent, torrent, source)
    wait_counts(two, info_hash, 1, 0, 0)
    leecher = run(Libtorrent, with_trackers(torrent, tmp_path / "two.torrent", urls(two)["udp"]), tmp_path / "leecher")
    leecher.wait_seeding()
    wait_written(tmp_path / "leecher")
    for server in (one, two):
        wait_counts(server, info_hash, 2, 0, 1)
    leecher.stop()
    seeder.stop()
    for server in (one, two):
        wait_counts(server, info_hash, 0, 0, 1)


def test_private_swarm_with_passkeys_over_http_and_udp(serve, redis, run, source, tmp_path, weir):
    """The seeder is at one tracker over HTTP, the leecher at another over UDP, with its passkey as BEP 41 has it. What they
    do is in the store as the seed has it, and in the feed."""
    one, two = (on_redis(serve, redis, "--tracker.mode", "private", *own_udp()) for _ in range(2))
    call(one, "POST", "feed", {"name": "site"})
    users = [add_user(one), add_user(two, slots=1)]
    torrent = make_torrent(source / NAME, ["http://replaced"])
    info_hash = hash_of(torrent)
    tid = add_torrent(one, info_hash, down_multiplier=0.5)["id"]
    paths = [f"/{user['passkey']}/announce" for user in users]
    own = [with_trackers(torrent, tmp_path / f"{number}.torrent", url.replace("/announce", path))
           for number, (url, path) in enumerate(zip((urls(one)["http"], urls(two)["udp"]), paths))]
    scrapes = paths[0].replace("announce", "scrape")

    def of_user(number):
        fields = redis_hash(redis, "user:" + users[number]["passkey"])
        return int(fields["slots"]), int(fields["slots_used"]), int(fields["snatches"])

    leecher = run(Libtorrent, own[1], tmp_path / "leecher")
    wait_counts(one, info_hash, 0, 1, 0, path=scrapes)
    assert of_user(1) == (1, 1, 0)
    add_torrent(two, b"another one 20 bytes")
    refused = announce(one, b"another one 20 bytes", 6881, left=1, path=paths[1])
    assert b"slots" in refused[b"failure reason"]
    seeder = run(Libtorrent, own[0], source)
    leecher.wait_seeding()
    wait_written(tmp_path / "leecher")
    wait_counts(two, info_hash, 2, 0, 1, path=scrapes)
    assert of_user(0) == (-1, 0, 0) and of_user(1) == (1, 0, 1)
    assert redis_hash(redis, b"torrent:" + info_hash)["snatches"] == b"1"
    members = redis_ask(redis, "SMEMBERS", f"seeders:{tid}")
    assert len(members) == 2 and redis_ask(redis, "SCARD", f"leechers:{tid}") == 0
    for member in members:
        peer = redis_hash(redis, member)
        assert set(peer) >= {"id", "user_id", "torrent_id", "ip", "port", "uploaded", "downloaded", "left", "last_announce"}
        assert member[:20] == peer["id"] and peer["ip"] == b"127.0.0.1" and peer["left"] == b"0"
    leecher.stop()
    seeder.stop()
    wait_counts(two, info_hash, 0, 0, 1, path=scrapes)
    # Each announce that was accepted is a record: two starts, the completion, two stops.
    records = call(two, "GET", "feed/site")["records"]
    seeding, leeching = ([record for record in records if record["user"] == user["id"]] for user in users)
    assert [record["number"] for record in records] == list(range(1, len(records) + 1))
    assert [record["snatched"] for record in leeching] == [False, True, False]
    for of in (seeding, leeching):
        assert of[0]["created"] and of[-1]["stopped"] and {record["torrent"] for record in of} == {tid}
    assert sum(record["raw_uploaded"] for record in seeding) == sum(record["uploaded"] for record in seeding) >= len(BODY)
    downloaded = sum(record["raw_downloaded"] for record in leeching)
    assert downloaded >= len(BODY) and sum(record["downloaded"] for record in leeching) == downloaded / 2
    done = weir("swarm", "check", "--data", one.data, "--url", one.url)
    assert done.returncode == 0, done.stdout


# --- a dataset ---


def test_e2e_dataset_outlives_its_gateway(serve, redis, run, tmp_path):
    """It starts from the web seed alone, and then spreads: the gateway goes, then the first client, and the last to come gets
    everything still, from others than the first."""
    # Both addresses of the torrent are of one swarm. A client that announces to both at once sends two starts and two
    # completions side by side, and a start that arrives last makes a leecher of a seeder until its next announce.
    one_tracker = {"announce_to_all_tiers": False, "announce_to_all_trackers": False}
    tracker = on_redis(serve, redis, *own_udp())
    known = urls(tracker)
    shared = redis.folder / "gateway"
    shared.mkdir()
    (shared / "secrets.key").write_bytes(b"k" * 32)
    (shared / "secrets.key").chmod(0o600)
    gateway, s3 = with_bucket(serve(
        "--only", "gateway", "--store.engine", "redis", "--store.redis.url", f"redis://127.0.0.1:{redis.port}",
        "--tracker.http", known["http"].split("/")[2], "--tracker.udp", known["udp"].split("/")[2], data=shared).ready())
    s3.put_object(Bucket="pub", Key=NAME, Body=BODY)
    torrent = tmp_path / "obj.torrent"
    torrent.write_bytes(torrent_of(gateway, "pub", NAME).body)
    meta, info_hash = lt.bdecode(torrent.read_bytes()), hash_of(torrent)
    assert [tier[0].decode() for tier in meta[b"announce-list"]] == list(known.values())
    wait_for(lambda: info_hash in scrape(tracker, info_hash)[b"files"], "the tracker to hear of it")

    first = run(Libtorrent, torrent, tmp_path / "first", **one_tracker)
    first.wait_seeding()
    assert first.status.num_peers == 0
    wait_written(tmp_path / "first")
    wait_counts(tracker, info_hash, 1, 0, 1, client=first)
    assert gateway.stop() == 0
    second = run(aria2, torrent, tmp_path / "second", "--seed-ratio=0.0")
    second.wait_file(NAME, BODY)
    wait_counts(tracker, info_hash, 2, 0, 2)
    first.stop()
    wait_counts(tracker, info_hash, 1, 0, 2)
    run(Libtorrent, torrent, tmp_path / "third", **one_tracker).wait_seeding()
    wait_written(tmp_path / "third")
    wait_counts(tracker, info_hash, 2, 0, 3)
