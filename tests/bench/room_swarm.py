"""swarm/: the UDP tracker against opentracker and against a server that answers without thinking, by a load
that checks every reply; and the seed's fourteen calls of the cache against a PING."""
import os
import re
import shutil
import socket
import statistics
import struct

from lab import Measure, Unmeasured, free_port, median, ratios
from room_s3 import guarded, start_weir
from room_store import start_redis

# The seed's names; the last is the control that shows why LeecherFinished exists: two calls.
NAMES = ("SuccessfulFindUser", "FailedFindUser", "SuccessfulFindTorrent", "FailFindTorrent",
         "SuccessfulClientWhitelisted", "FailClientWhitelisted", "RecordSnatch", "MarkActive", "AddSeeder",
         "RemoveSeeder", "SetSeeder", "IncrementSlots", "LeecherFinished", "RemoveLeecherAddSeeder")
UDP_BOUNDS = {"swarm/announce_cpu": ("<=", 0.6), "swarm/mixed_cpu": ("<=", 0.6), "swarm/memory_per_peer": ("<=", 16)}
CACHE_BOUNDS = {f"swarm/redis_{name}": ("<=", 2.5) for name in NAMES[:-1]} | {"swarm/redis_round_trips": ("<=", 1)}
BOUNDS = UDP_BOUNDS | CACHE_BOUNDS

TORRENTS, PEERS = 1_000_000, 2_000_000
WORKERS = 2
DENSE = 100  # so many times fewer torrents, to measure the memory of peers

# Debian's build knows only torrents of its list, whose path is looked for inside tracker.rootdir, and does not
# run as root.
OPENTRACKER = """
listen.udp.workers {workers}
listen.udp 127.0.0.1:{port}
listen.tcp 127.0.0.1:{port}
access.whitelist ./whitelist
tracker.rootdir {root}
tracker.user nobody
"""


def size():
    """Torrents and peers."""
    if os.environ.get("SWARM"):
        torrents, peers = os.environ["SWARM"].split(":")
        return int(torrents), int(peers)
    return (10 * TORRENTS, 10 * PEERS) if os.environ.get("FULL") == "1" else (TORRENTS, PEERS)


def free_udp_port():
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def answers(port, info_hash):
    """Whether an announce of this torrent is answered as one that is tracked; it is taken back."""
    started, stopped = 2, 3
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as s:
        s.settimeout(1)
        s.connect(("127.0.0.1", port))
        try:
            s.send(struct.pack(">QII", 0x41727101980, 0, 7))
            connection = s.recv(2048)[8:16]
            for event in (started, stopped):
                s.send(connection + struct.pack(">II20s20sQQQIIIiH", 1, 7, info_hash, b"-WB0001-probe-------", 0, 1, 0,
                                                event, 0, 0, 1, 6881))
                if len(s.recv(2048)) < 20:
                    return False
            return True
        except OSError:
            return False


class Tracker:
    def __init__(self, lab, server, port, *options):
        self.lab, self.server, self.port = lab, server, port
        self.torrents, self.peers = size()
        self.options = options

    def load(self, mode, *options):
        command = [self.lab.program("tests/bench/bench_swarm_load"), mode, str(self.port), f"torrents={self.torrents}",
                   f"peers={self.peers}", *self.options, *options]
        figures = self.lab.served(self.server, lambda: self.lab.run(command))
        figures["cpu_us"] = figures["cpu"] / max(1, figures["ops"]) * 1e6
        return figures


# --- contenders ---

def start_opentracker(lab, name="plain"):
    program = shutil.which("opentracker")
    if not program:
        raise Unmeasured("opentracker is not installed (tools/setup bench)")
    root, port = os.path.join(lab.sockets, name), free_port()
    os.chmod(lab.sockets, 0o755)
    os.makedirs(root, 0o755, exist_ok=True)
    with open(os.path.join(root, "conf"), "w") as f:
        f.write(OPENTRACKER.format(port=port, root=root, workers=WORKERS))
    whitelist = os.path.join(root, "whitelist")
    generator = lab.program("tests/bench/bench_swarm_load")
    if os.system(f"'{generator}' whitelist torrents={size()[0]} peers={size()[1]} >'{whitelist}'") != 0:
        raise Unmeasured("the whitelist could not be written")
    server = lab.start("opentracker-" + name, [program, "-f", os.path.join(root, "conf")])
    lab.wait(server, lambda: answers(port, first_hash(whitelist)), 120)
    return Tracker(lab, server, port, "self=1")


def first_hash(whitelist):
    with open(whitelist) as f:
        return bytes.fromhex(f.readline().strip())


def start_tracker(lab, name="plain"):
    torrents, peers = size()
    port = free_udp_port()
    endpoint = start_weir(lab, "tracker-" + name, None, "--tracker.udp", f"127.0.0.1:{port}", "--tracker.http", "127.0.0.1:0",
                          "--tracker.open", "true", "--tracker.workers", str(WORKERS), "--tracker.max_torrents",
                          str(2 * torrents), "--tracker.max_peers", str(2 * peers))
    lab.wait(endpoint.server, lambda: answers(port, b"any torrent is fine."))
    return Tracker(lab, endpoint.server, port)


def start_floor(lab, peers):
    server = lab.start("floor", [lab.program("tests/bench/bench_swarm_floor"), str(WORKERS), str(peers)])
    found = lab.wait(server, lambda: re.search(r"listening (\d+)", lab.output(server)))
    return Tracker(lab, server, int(found.group(1)), "bare=1")


# --- memory ---

def fill(tracker):
    """Bytes held when empty, with each torrent known by one peer, and with all peers."""
    empty = tracker.server.rss()
    known = tracker.load("fill", f"to={tracker.torrents}")["rss"]
    full = tracker.load("fill", f"from={tracker.torrents}")["rss"]
    return {"empty": empty, "known": known, "full": full}


def memory(lab, start):
    """Few torrents with many peers each, in a server of its own: what grows is peers alone."""
    tracker = start(lab, "dense")
    tracker.torrents = max(1, tracker.torrents // DENSE)
    filled = fill(tracker)
    lab.stop(tracker.server)
    return (filled["full"] - filled["known"]) / (tracker.peers - tracker.torrents)


def memory_text(tracker, filled):
    return (f"{filled['empty'] / 1e6:.0f} MB empty, {filled['full'] / 1e6:.0f} MB with {tracker.peers / 1e6:g} M peers in "
            f"{tracker.torrents / 1e6:g} M torrents: {(filled['known'] - filled['empty']) / tracker.torrents:.0f} bytes a "
            f"torrent with a peer, {(filled['full'] - filled['empty']) / tracker.peers:.0f} a peer with its share of them")


# --- speed ---

def speed_text(results, name):
    return (f"{median(results, name, 'cpu_us'):.2f} us CPU an announce, {median(results, name, 'rate') / 1000:.1f}k/s, "
            f"p50 {median(results, name, 'p50_us'):.0f} us, p99 {median(results, name, 'p99_us'):.0f} us")


def compare(lab, name, trackers, *load):
    ms = f"ms={lab.seconds * 1000:.0f}"
    results = lab.interleave({t: lambda t=t: trackers[t].load(*load, ms) for t in trackers})
    texts = {t: speed_text(results, t) for t in trackers}
    yield results, Measure(name, ratios(results, "weir", "opentracker", "cpu_us"), texts["weir"], texts["opentracker"])
    if "floor" in trackers:
        yield results, Measure(name + "_vs_floor", ratios(results, "weir", "floor", "cpu_us"), texts["weir"],
                               texts["floor"])


def measure_udp(lab):
    slopes = {"weir": memory(lab, start_tracker), "opentracker": memory(lab, start_opentracker)}
    trackers = {"weir": start_tracker(lab), "opentracker": start_opentracker(lab)}
    filled = {name: fill(tracker) for name, tracker in trackers.items()}
    texts = {name: memory_text(trackers[name], filled[name]) for name in filled}
    yield Measure("swarm/memory_per_peer", [slopes["weir"]], texts["weir"],
                  f"{slopes['opentracker']:.1f} bytes; {texts['opentracker']}", unit=" bytes")
    probe = trackers["weir"].load("announce", "ms=200")
    trackers["floor"] = start_floor(lab, round(probe["peers"] / probe["ops"]))
    rates = []
    for results, measure in compare(lab, "swarm/announce_cpu", trackers, "announce"):
        rates = [median(results, name, "rate") for name in ("weir", "opentracker")]
        yield measure
    for _, measure in compare(lab, "swarm/mixed_cpu", trackers, "mixed"):
        yield measure
    yield half_load(lab, trackers, int(min(rates) / 2))


def half_load(lab, trackers, rate):
    """At half of what the slower one reaches, the same for both."""
    ms = f"ms={lab.seconds * 1000:.0f}"
    results = lab.interleave({t: lambda t=t: trackers[t].load("announce", ms, f"rate={rate}") for t in trackers})
    return Measure("swarm/p99_half_load", ratios(results, "weir", "opentracker", "p99_us"), speed_text(results, "weir"),
                   f"{speed_text(results, 'opentracker')} (floor p99 {median(results, 'floor', 'p99_us'):.0f} us)")


# --- the cache ---

def measure_cache(lab):
    redis = start_redis(lab, "redis-swarm", "--appendonly", "no")
    program, calls = lab.program("tests/bench/bench_swarm_cache"), str(max(100, round(500 * lab.seconds)))
    folder = lab.folder("swarm-cache")
    results = lab.interleave({
        "redis": lambda: lab.run([program, f"redis:unix://{redis.path}", calls]),
        "embedded": lambda: lab.run([program, f"volatile:{folder}", calls]),
    })
    trips = [max(one[f"{name}_trips"] for name in NAMES) for one in results["redis"]]
    yield Measure("swarm/redis_round_trips", trips, "of the call that has most", unit="")
    for name in NAMES:
        yield Measure(f"swarm/redis_{name}", [one[f"{name}_vs_ping"] for one in results["redis"]],
                      call_text(results["redis"], name), "PING")
    for name in NAMES:
        yield Measure(f"swarm/embedded_{name}", [one[f"{name}_p50_us"] for one in results["embedded"]],
                      call_text(results["embedded"], name), unit=" us")


def call_text(rounds, name):
    p50, p99 = (statistics.median(one[f"{name}_{q}_us"] for one in rounds) for q in ("p50", "p99"))
    return f"p50 {p50:.1f} us, p99 {p99:.1f} us"


def measure(lab):
    yield from guarded(CACHE_BOUNDS, measure_cache, lab)
    yield from guarded(UDP_BOUNDS, measure_udp, lab)
