"""The tracker over HTTP, its lists, and how it is run. Names of scenarios as in the plan of tests."""
import json
import re
import signal
import socket
import struct
import threading

import pytest

from conftest import DEADLINE, wait_for
from swarm_lab import Malformed, address, announce, ask, peers, query, read_bencode, scrape

HASH = bytes(range(1, 21))
OTHER = b"other torrent, 20 b."


@pytest.fixture
def public(serve):
    """A tracker that takes any torrent."""
    return serve("--only", "tracker", "--tracker.open", "true").ready()


@pytest.fixture
def trusting(serve):
    """The same, and it believes whoever asks from this machine on where it is."""
    return serve("--only", "tracker", "--tracker.open", "true", "--tracker.trusted", "127.0.0.1").ready()


@pytest.fixture
def private(serve):
    return serve("--only", "tracker", "--tracker.mode", "private").ready()


def call(server, method, path, body=None, status=None):
    answer = server.request(method, "/api/v1/swarm/" + path, body=body, keys=server.keys)
    wanted = status or {"POST": 201, "DELETE": 204, "GET": 200}[method]
    assert answer.status == wanted, (answer.status, answer.body)
    return json.loads(answer.body) if answer.body else None


def add_user(server, **more):
    return call(server, "POST", "users", more)


def add_torrent(server, info_hash=HASH, **more):
    return call(server, "POST", "torrents", {"torrent": info_hash.hex(), **more})


def reason(answer):
    return answer[b"failure reason"].decode()


# --- answers ---


def test_bencode_golden_bytes(trusting):
    path = "/announce?" + query({"info_hash": HASH, "peer_id": "-TR3000-abcdefghijkl", "port": 6881, "left": 0})
    empty = ask(trusting, path)
    assert re.fullmatch(rb"d8:completei1e10:downloadedi0e11:external ip4:\x7f\x00\x00\x0110:incompletei0e"
                        rb"8:intervali1[78]\d\de12:min intervali900e5:peers0:e", empty)
    assert ask(trusting, path) == empty  # the interval varies by torrent and peer, not by chance
    path = path.replace("6881", "6882").replace("left=0", "left=5").replace("abc", "xyz")
    assert re.fullmatch(rb"d8:completei1e10:downloadedi0e11:external ip4:\x7f\x00\x00\x0110:incompletei1e"
                        rb"8:intervali1[78]\d\de12:min intervali900e5:peers6:\x7f\x00\x00\x01\x1a\xe1e", ask(trusting, path))
    announce(trusting, HASH, 6883, ip="2001:db8::7")
    answer = announce(trusting, HASH, 6884, left=1)
    assert len(answer[b"peers6"]) == 18 and ("2001:db8::7", 6883) in peers(answer)


def test_compact0_and_no_peer_id(public, private):
    announce(public, HASH, 6881)
    answer = announce(public, HASH, 6882, left=1, compact=0)
    assert answer[b"peers"] == [{b"ip": b"127.0.0.1", b"port": 6881}]  # memory has no peer ids
    add_torrent(private)
    paths = [f"/{add_user(private)['passkey']}/announce" for _ in range(2)]
    announce(private, HASH, 6881, path=paths[0])
    answer = announce(private, HASH, 6882, left=1, compact=0, path=paths[1])
    assert answer[b"peers"] == [{b"ip": b"127.0.0.1", b"peer id": b"-TR3000-000000006881", b"port": 6881}]
    answer = announce(private, HASH, 6882, left=1, compact=0, no_peer_id=1, path=paths[1])
    assert answer[b"peers"] == [{b"ip": b"127.0.0.1", b"port": 6881}]


def test_failure_retry_in(serve):
    closed = serve("--only", "tracker").ready()
    answer = announce(closed, HASH, 6881)
    assert answer == {b"failure reason": b"torrent does not exist", b"retry in": 60}
    answer = announce(closed, HASH, 80)
    assert answer == {b"failure reason": b"port is not allowed", b"retry in": b"never"}
    assert "port is missing" in reason(read_bencode(ask(closed, "/announce?" + query({"info_hash": HASH, "peer_id": "x" * 20}))))
    assert "event" in reason(announce(closed, HASH, 6881, event="dance"))


def test_scrape_sorted_dedup_limit(serve):
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.max_scrape", 3).ready()
    for info_hash in (OTHER, HASH):
        announce(server, info_hash, 6881, left=1)
        announce(server, info_hash, 6881, left=0, event="completed")
    announce(server, HASH, 6882, left=9, event="paused")
    announce(server, HASH, 6883, left=9)
    answer = scrape(server, OTHER, HASH, OTHER)
    assert list(answer[b"files"]) == [HASH, OTHER]
    assert answer[b"files"][HASH] == {b"complete": 1, b"downloaded": 1, b"downloaders": 1, b"incomplete": 2}
    assert answer[b"flags"] == {b"min_request_interval": 900}
    assert list(scrape(server, b"x" * 20)[b"files"]) == []
    assert "too many" in reason(scrape(server, *(bytes([i]) * 20 for i in range(4))))


def test_scrape_full_refused(public):
    announce(public, HASH, 6881)
    assert "all torrents" in reason(scrape(public))


def test_percent_decode_matrix(public):
    info_hash = b"a(!)~*._-+ \x00\xbe%&=;Zz9"
    assert len(info_hash) == 20
    forms = ["".join(f"%{byte:02x}" for byte in info_hash), "".join(f"%{byte:02X}" for byte in info_hash),
             "a(!)~*._-+%20%00%be%25%26%3d%3BZz9", query({"h": info_hash})[2:]]
    for number, form in enumerate(forms):
        text = ask(public, f"/announce?info_hash={form}&peer_id=-TR3000-abcdefghijkl;PORT={7000 + number}&left=1")
        assert read_bencode(text)[b"incomplete"] == number + 1, form
    for wrong in ("%", "%1", "%zz" + "a" * 19, "a" * 19 + "%f"):
        text = ask(public, f"/announce?info_hash={wrong}&peer_id=-TR3000-abcdefghijkl&port=7000")
        assert "escape" in reason(read_bencode(text)), wrong


def test_duplicate_info_hash_rejected(public):
    path = "/announce?" + query({"info_hash": HASH, "peer_id": "-TR3000-abcdefghijkl", "port": 6881, "left": 0})
    assert "more than one info_hash" in reason(read_bencode(ask(public, path + "&" + query({"info_hash": OTHER}))))


def test_numwant_matrix(public):
    for port in range(2000, 2250):
        announce(public, HASH, port, numwant=0)

    def count(**more):
        return len(peers(announce(public, HASH, 3000, left=1, **more)))
    assert count() == 50
    assert count(numwant=0) == 0
    assert count(numwant=-1) == 50
    assert count(numwant=7) == 7
    assert count(numwant=100000) == 200
    assert count(numwant="many") == 50
    assert count(numwant=9, event="stopped") == 0


# --- where clients are ---


def test_ip_param_trust_matrix(serve):
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.trusted", "127.0.0.0/8,203.0.113.0/24").ready()

    def is_at(**more):
        """Where a seeder is seen that announces so."""
        info_hash = bytes([is_at.number] * 20)
        is_at.number += 1
        announce(server, info_hash, 6881, **more)
        return peers(announce(server, info_hash, 6999, left=1)).pop()[0]
    is_at.number = 1
    assert is_at() == "127.0.0.1"
    assert is_at(ip="198.51.100.9") == "198.51.100.9"
    assert is_at(ipv6="2001:db8::9") == "2001:db8::9"
    assert is_at(ip="0.0.0.0") == is_at(ip="example.org") == is_at(ip="224.0.0.1") == "127.0.0.1"
    stranger = {"X-Forwarded-For": "192.0.2.1"}
    assert is_at(headers=stranger) == is_at(headers=stranger, ip="198.51.100.9") == "192.0.2.1"
    assert is_at(headers={"X-Forwarded-For": "203.0.113.5"}, ip="198.51.100.9") == "198.51.100.9"
    for inside in ("10.0.0.9", "192.168.0.9", "172.16.0.9", "169.254.0.9"):  # a private network is not a trusted one
        assert is_at(headers={"X-Forwarded-For": inside}, ip="198.51.100.9") == inside
    for inside in ("::1", "fd00::9", "fe80::9"):
        assert is_at(headers={"X-Forwarded-For": inside}, ipv6="2001:db8::9") == inside


def test_nobody_is_believed_on_its_address_unless_trusted(public):
    for number, said in enumerate(({"ip": "198.51.100.9"}, {"ipv4": "198.51.100.9"}, {"ipv6": "2001:db8::9"}), start=1):
        info_hash = bytes([number] * 20)
        announce(public, info_hash, 6881, **said)
        assert peers(announce(public, info_hash, 6999, left=1)) == {("127.0.0.1", 6881)}


def test_xff_rightmost(serve):
    server = serve("--only", "tracker", "--tracker.open", "true", "--tracker.trusted", "127.0.0.1,10.0.0.0/8").ready()
    untrusting = serve("--only", "tracker", "--tracker.open", "true").ready()

    def external(server, value):
        return announce(server, HASH, 6881, headers={"X-Forwarded-For": value})[b"external ip"]
    assert external(server, "203.0.113.9, 198.51.100.1, 10.0.0.2") == bytes([198, 51, 100, 1])
    assert external(server, "203.0.113.9") == bytes([203, 0, 113, 9])
    assert external(server, "203.0.113.9, nonsense") == bytes([127, 0, 0, 1])
    assert len(external(server, "2001:db8::1")) == 16
    assert external(untrusting, "203.0.113.9") == bytes([127, 0, 0, 1])


# --- the private mode ---


def test_passkey_http(private):
    """passkey_http_and_udp, the part of HTTP."""
    add_torrent(private)
    passkey = add_user(private)["passkey"]
    assert re.fullmatch("[0-9a-f]{32}", passkey)
    for path in (f"/{passkey}/announce", f"/announce/{passkey}", f"/users/{passkey}/announce"):
        assert announce(private, HASH, 6881, path=path)[b"complete"] == 1
        assert scrape(private, HASH, path=path.replace("announce", "scrape"))[b"files"][HASH][b"complete"] == 1
    assert announce(private, HASH, 6881, passkey=passkey)[b"complete"] == 1
    assert reason(announce(private, HASH, 6881)) == "passkey is invalid"
    assert reason(announce(private, HASH, 6881, path="/short/announce")) == "passkey is invalid"
    assert reason(announce(private, HASH, 6881, path=f"/{'0' * 32}/announce")) == "user does not exist"
    assert reason(scrape(private, HASH, path=f"/{'0' * 32}/scrape")) == "user does not exist"


def test_one_passkey_fills_no_store(serve):
    node = serve("--only", "tracker", "--tracker.mode", "private", "--tracker.max_per_user", "2").ready()
    add_torrent(node)
    paths = [f"/{add_user(node)['passkey']}/announce" for _ in range(2)]
    for port in (6881, 6882):
        assert b"failure reason" not in announce(node, HASH, port, path=paths[0])
    assert reason(announce(node, HASH, 6883, path=paths[0])) == "you have too many peers here"
    assert announce(node, HASH, 6882, left=3, path=paths[0])[b"incomplete"] == 1
    assert announce(node, HASH, 6884, path=paths[1])[b"complete"] == 2


def test_a_private_swarm_from_the_first_user_to_the_last(private, weir):
    def run(*args):
        done = weir("swarm", *args, "--data", private.data, "--url", private.url)
        assert done.returncode == 0, done.stderr
        return done.stdout
    torrent = json.loads(run("torrent", "add", "magnet:?xt=urn:btih:" + HASH.hex(), "--down", "0.5", "--json"))[0]
    assert torrent["info_hash"] == HASH.hex() and torrent["down_multiplier"] == 0.5
    run("torrent", "add", OTHER.hex())
    run("feed", "add", "site")
    users = [json.loads(run("user", "add", "--slots", "1", "--json"))[0] for _ in range(2)]
    paths = [f"/{user['passkey']}/announce" for user in users]
    shown = run("user", "list")
    assert not any(user["passkey"] in shown for user in users)
    assert all(user["passkey"] in run("user", "list", "--show-passkeys") for user in users)

    assert announce(private, HASH, 6881, path=paths[0])[b"complete"] == 1
    answer = announce(private, HASH, 6882, left=10, event="started", path=paths[1])
    assert peers(answer) == {("127.0.0.1", 6881)} and answer[b"incomplete"] == 1
    assert "slots" in reason(announce(private, OTHER, 6882, left=10, path=paths[1]))
    answer = announce(private, HASH, 6882, left=0, downloaded=10, event="completed", path=paths[1])
    assert answer[b"downloaded"] == 1 and answer[b"complete"] == 2
    assert b"failure reason" not in announce(private, OTHER, 6882, left=10, path=paths[1])
    listed = json.loads(run("torrent", "list", "--json"))
    assert {(row["info_hash"], row["seeders"], row["leechers"], row["snatches"]) for row in listed} == {
        (HASH.hex(), 2, 0, 1), (OTHER.hex(), 0, 1, 0)}

    records = json.loads(run("feed", "read", "site", "--json"))
    assert [record["number"] for record in records] == [1, 2, 3, 4]
    assert [record["snatched"] for record in records] == ["no", "no", "yes", "no"]
    assert records[2]["raw_downloaded"] == 10 and records[2]["downloaded"] == 5
    run("feed", "acknowledge", "site", "3")
    assert [record["number"] for record in json.loads(run("feed", "read", "site", "--json"))] == [4]
    assert json.loads(run("feed", "list", "--json")) == [{"name": "site", "acknowledged": 3, "waiting": 1}]

    assert run("check").split() == ["invariant", "key"]
    run("user", "remove", str(users[0]["id"]))
    assert scrape(private, HASH, path=paths[1].replace("announce", "scrape"))[b"files"][HASH][b"complete"] == 1
    assert reason(announce(private, HASH, 6881, path=paths[0])) == "user does not exist"
    run("torrent", "remove", HASH.hex())
    assert reason(announce(private, HASH, 6882, path=paths[1])) == "torrent does not exist"
    run("feed", "remove", "site")
    assert run("check").split() == ["invariant", "key"]


# --- lists ---


def test_whitelist_prefix_and_reload(serve, private):
    public = serve("--only", "tracker", "--tracker.open", "true", "--tracker.approved_clients", "true").ready()
    add_torrent(private)
    path = f"/{add_user(private)['passkey']}/announce"
    for server, at in ((public, "/announce"), (private, path)):
        def is_approved(peer_id):
            answer = announce(server, HASH, 6881, path=at, peer_id=peer_id)
            assert answer.get(b"failure reason") in (None, b"client is not approved")
            return b"failure reason" not in answer
        assert is_approved("-TR3000-abcdefghijkl")  # nothing is listed
        call(server, "POST", "clients", {"client": "-TR3"})
        wait_for(lambda: not is_approved("-LT2080-abcdefghijkl"), "the list to count")
        assert is_approved("-TR3000-abcdefghijkl") and not is_approved("-TR2000-abcdefghijkl")
        call(server, "POST", "clients", {"client": "-LT"})
        wait_for(lambda: is_approved("-LT2080-abcdefghijkl"), "the second client")
        call(server, "DELETE", "clients/-TR3")
        wait_for(lambda: not is_approved("-TR3000-abcdefghijkl"), "the first to go")
        assert call(server, "GET", "clients")["clients"] == [{"client": "-LT"}]
        call(server, "DELETE", "clients/-TR3", status=404)


def test_torrents_are_followed_without_a_restart(serve):
    server = serve("--only", "tracker").ready()

    def is_tracked():
        return b"failure reason" not in announce(server, HASH, 6881)
    assert not is_tracked()
    add_torrent(server)
    wait_for(is_tracked, "the torrent to be tracked")
    assert call(server, "GET", "torrents")["torrents"][0]["seeders"] == 1
    call(server, "DELETE", "torrents/" + HASH.hex())
    wait_for(lambda: not is_tracked(), "the torrent to go")
    call(server, "DELETE", "torrents/" + HASH.hex(), status=404)
    call(server, "POST", "torrents", {"torrent": "nonsense"}, status=400)


def test_a_long_list_of_torrents_is_told_whole(private):
    hashes = [bytes([number]) * 20 for number in range(1, 131)]
    for info_hash in hashes:
        add_torrent(private, info_hash)
    path = f"/{add_user(private)['passkey']}/announce"
    for info_hash in (hashes[0], hashes[129]):
        announce(private, info_hash, 6881, path=path)
    listed = call(private, "GET", "torrents")["torrents"]
    assert {row["info_hash"]: row["seeders"] for row in listed} == {
        info_hash.hex(): int(info_hash in (hashes[0], hashes[129])) for info_hash in hashes}
    assert len(call(private, "GET", "torrents?limit=70")["torrents"]) == 70


def test_swarms_survive_a_restart(serve, tmp_path):
    args = ("--only", "tracker", "--tracker.open", "true", "--tracker.snapshot", "1s", "--tracker.trusted", "127.0.0.1")
    server = serve(*args, data=tmp_path / "kept").ready()
    announce(server, HASH, 6881)
    announce(server, HASH, 6882, left=3, ip="2001:db8::5")
    assert server.stop() == 0
    server = serve(*args, data=tmp_path / "kept").ready()
    assert scrape(server, HASH)[b"files"][HASH] == {b"complete": 1, b"downloaded": 0, b"downloaders": 1, b"incomplete": 1}
    announce(server, HASH, 6883)
    before = (tmp_path / "kept/swarm/peers").stat().st_mtime_ns
    wait_for(lambda: (tmp_path / "kept/swarm/peers").stat().st_mtime_ns > before, "a snapshot")
    before = (tmp_path / "kept/swarm/peers").stat().st_mtime_ns
    wait_for(lambda: (tmp_path / "kept/swarm/peers").stat().st_mtime_ns > before, "one begun behind the announce")
    server.signal(signal.SIGKILL)
    server.wait()
    server = serve(*args, data=tmp_path / "kept").ready()
    answer = announce(server, HASH, 6884, left=1)
    assert peers(answer) == {("127.0.0.1", 6881), ("127.0.0.1", 6883), ("2001:db8::5", 6882)}


# --- several trackers ---


def on_redis(serve, redis, *args):
    """All of one test have one secrets.key (docs/security.md)."""
    folder = redis.folder / f"weir{len(list(redis.folder.glob('weir*')))}"
    folder.mkdir()
    (folder / "secrets.key").write_bytes(b"k" * 32)
    (folder / "secrets.key").chmod(0o600)
    return serve("--only", "tracker", "--store.engine", "redis", "--store.redis.url", f"redis://127.0.0.1:{redis.port}",
                 *args, data=folder).ready()


def test_two_trackers_see_each_other_2s(serve, redis):
    one, two = (on_redis(serve, redis, "--tracker.open", "true") for _ in range(2))
    announce(one, HASH, 6881)
    found = wait_for(lambda: peers(announce(two, HASH, 6882, left=1)) - {("127.0.0.1", 6882)}, "the other's peer")
    assert found == {("127.0.0.1", 6881)}
    wait_for(lambda: ("127.0.0.1", 6882) in peers(announce(one, HASH, 6881)), "the way back")
    announce(two, HASH, 6882, left=1, event="stopped")
    wait_for(lambda: not peers(announce(one, HASH, 6881)), "the peer to go")


def test_redis_down_degrades_and_recovers(serve, redis):
    public = on_redis(serve, redis, "--tracker.open", "true")
    private = on_redis(serve, redis, "--tracker.mode", "private", "--tracker.prefix", "p:")
    add_torrent(private)
    path = f"/{add_user(private)['passkey']}/announce"
    announce(public, HASH, 6881)
    assert announce(private, HASH, 6881, path=path)[b"complete"] == 1
    redis.kill()
    # The public tracker goes on from memory; the private one says that it cannot know.
    assert peers(announce(public, HASH, 6882, left=1)) == {("127.0.0.1", 6881)}
    answer = announce(private, HASH, 6881, path=path)
    assert answer == {b"failure reason": b"tracker is temporarily unavailable", b"retry in": 5}
    redis.start()
    wait_for(lambda: b"temporarily" not in announce(private, HASH, 6881, path=path).get(b"failure reason", b""), "Redis")
    assert announce(private, HASH, 6881, path=path)[b"complete"] == 1
    # What the public tracker knows comes to another with the next announces.
    other = on_redis(serve, redis, "--tracker.open", "true")

    def is_told():
        announce(public, HASH, 6881, event="stopped")
        announce(public, HASH, 6881)
        return ("127.0.0.1", 6881) in peers(announce(other, HASH, 6900, left=1))
    wait_for(is_told, "changes to be told again")


def over_udp(server, packet, source):
    """The reply's action and what is behind the transaction."""
    host, port = re.search(r"^  tracker udp://(.+):(\d+)$", server.out, re.M).groups()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.settimeout(60)
        client.bind((source, 0))
        client.connect((host, int(port)))
        client.send(packet)
        reply = client.recv(2048)
    return struct.unpack(">I", reply[:4])[0], reply[8:]


def test_udp_ids_are_shared_also_by_trackers_that_started_before_redis(serve, redis):
    redis.kill()
    one, two = (on_redis(serve, redis, "--tracker.open", "true") for _ in range(2))

    def connect(server, source):
        action, rest = over_udp(server, struct.pack(">QII", 0x41727101980, 0, 7), source)
        assert action == 0
        return rest

    def takes(server, connection, source):
        packet = connection + struct.pack(">II20s20sQQQIIIiH", 1, 8, HASH, b"-TR3000-abcdefghijkl", 0, 0, 0, 0, 0, 0, -1, 6881)
        return over_udp(server, packet, source)[0] == 1
    early = connect(one, "127.0.0.1")
    assert takes(one, early, "127.0.0.1") and not takes(two, early, "127.0.0.1")
    redis.start()
    sources = (f"127.7.{number >> 8}.{number & 255}" for number in range(1, 1 << 16))  # none sends enough to be banned

    def agree():
        source = next(sources)
        return takes(two, connect(one, source), source)
    wait_for(agree, "the trackers to agree")
    assert takes(one, early, "127.0.0.1")


# --- running it ---


def test_reload_under_load(serve, tmp_path):
    config = "tracker:\n  open: true\n  interval: {}s\n  max_numwant: {}\n"
    server = serve("--only", "tracker", config=config.format(1000, 10)).ready()
    failures, stop, counts = [], threading.Event(), [0]

    def load(number):
        while not stop.is_set():
            try:
                answer = announce(server, HASH, 2000 + number * 100 + counts[0] % 50, left=1)
                interval = answer[b"interval"]
                if not (950 <= interval <= 1050 or 1900 <= interval <= 2100):
                    failures.append(interval)
                counts[0] += 1
            except (OSError, KeyError, Malformed, AssertionError) as error:
                failures.append(error)
    threads = [threading.Thread(target=load, args=(number,)) for number in range(3)]
    for thread in threads:
        thread.start()
    for interval, most in ((2000, 20), (1000, 5), (2000, 40)):
        before = counts[0]
        wait_for(lambda: counts[0] > before + 50 or failures, "some announces")
        server.config.write_text(config.format(interval, most))
        server.signal(signal.SIGHUP)

        def is_new():
            answer = announce(server, HASH, 2000, left=1, numwant=1000)
            return abs(answer[b"interval"] - interval) <= interval / 20 and len(peers(answer)) <= most
        wait_for(is_new, "the new values")
    stop.set()
    for thread in threads:
        thread.join(DEADLINE)
    assert not failures
    server.config.write_text("tracker:\n  open: true\n  trusted: nonsense\n")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.not_reloaded" in server.err and "tracker.trusted" in server.err, "the refusal")


def samples(server):
    return {line.rsplit(" ", 1)[0] for line in server.get("/metrics").body.splitlines() if not line.startswith("#")}


def test_metrics_cardinality_fixed(trusting):
    before = {name for name in samples(trusting) if name.startswith("weir_tracker")}
    for number in range(50):
        announce(trusting, bytes([number]) * 20, 2000 + number, left=number % 2, ip=f"203.0.113.{number + 1}")
        announce(trusting, b"short", 6881)
        scrape(trusting, bytes([number]) * 20)
    assert {name for name in samples(trusting) if name.startswith("weir_tracker")} == before
    text = trusting.get("/metrics").body
    assert 'weir_tracker_requests_total{protocol="http",action="announce"} 50' in text
    assert 'weir_tracker_failures_total{reason="malformed"} 50' in text
    assert 'weir_tracker_peers{family="ipv4",role="leecher"} 25' in text
    assert 'weir_http_requests_total{server="tracker"} 150' in text


@pytest.mark.parametrize("mode", ["public", "private"])
def test_logs_contain_no_ip_or_passkey(serve, mode):
    server = serve("--only", "tracker", "--tracker.mode", mode, "--tracker.open", "true", "--tracker.trusted", "127.0.0.1").ready()
    secrets = ["203.0.113.77", "2001:db8::77"]
    path = "/announce"
    if mode == "private":
        add_torrent(server)
        passkey = add_user(server)["passkey"]
        path = f"/{passkey}/announce"
        secrets += [passkey, "0123456789abcdef0123456789abcdef"]
    for ip in secrets[:2]:
        announce(server, HASH, 6881, path=path, ip=ip)
        announce(server, HASH, 6881, path="/0123456789abcdef0123456789abcdef/announce", ip=ip)
        announce(server, b"short", 6881, path=path, ip=ip)
        scrape(server, HASH, path=path.replace("announce", "scrape"))
    if mode == "private":
        call(server, "DELETE", f"users/{passkey}")
    page = ask(server, "/stats").decode() + ask(server, "/stats?json").decode() + server.get("/metrics").body
    assert server.stop() == 0
    for secret in secrets:
        assert secret not in server.out + server.err and secret not in page


def test_the_pages_of_the_tracker(public):
    announce(public, HASH, 6881)
    stats = json.loads(ask(public, "/stats?json"))
    assert stats["mode"] == "public" and stats["torrents"] == 1 and stats["seeders_ipv4"] == 1
    assert call(public, "GET", "stats")["http_announces"] == 1
    assert b"<td>Seeders, IPv4</td>" in ask(public, "/stats")
    assert ask(public, "/check") == b"STILL-ALIVE\n"
    assert '"tracker":"ok"' in public.get("/readyz").body.replace(" ", "")


def test_a_port_in_use_is_one_clear_line(public, weir, tmp_path):
    host, port = address(public)
    done = weir("serve", "--only", "tracker", "--data", tmp_path / "second", "--api.listen", "127.0.0.1:0",
                "--tracker.http", f"{host}:{port}", "--tracker.udp", "off")
    assert done.returncode == 2
    assert done.stderr.startswith("weir: tracker.http") and str(port) in done.stderr and done.stderr.count("\n") == 1


def test_without_the_role_there_is_no_tracker_but_its_lists_are_kept(serve):
    server = serve("--only", "gateway").ready()
    assert "  tracker " not in server.out
    add_torrent(server)
    assert [row["info_hash"] for row in call(server, "GET", "torrents")["torrents"]] == [HASH.hex()]
    call(server, "GET", "stats", status=501)
    assert server.get("/api/v1/swarm/torrents").status == 401
