"""store/: the embedded engine against redis-server over a unix socket, the same commands on the same
data. Redis is asked twice, by the bare client of redis_raw.c and by weir's own redis engine; the one that
gets more out of it counts."""
import os
import shutil
import subprocess

from lab import Measure, Unmeasured, accepts, best, median, ratios

KEYS = 20000
READS = ("get", "hget", "script_read")
WRITES = ("set", "hincrby", "script_write")
THREADS = (1, 8)
BOUNDS = {f"store/{read}_{threads}": (">=", 5) for read in READS for threads in THREADS}


def start_redis(lab, name, *options):
    redis = shutil.which("redis-server")
    if not redis:
        raise Unmeasured("redis-server is not installed (tools/setup bench)")
    path = os.path.join(lab.sockets, name)
    server = lab.start(name, [redis, "--port", "0", "--unixsocket", path, "--unixsocketperm", "700", "--save", "",
                              "--dir", lab.folder(name), *options])
    lab.wait(server, lambda: accepts(path))
    server.path = path
    return server


def start_durable_redis(lab, name):
    return start_redis(lab, name, "--appendonly", "yes", "--appendfsync", "always", "--auto-aof-rewrite-percentage", "0")


def seconds(lab):
    """Half of the others': there are many of these measures, and they are steady."""
    return f"{lab.seconds / 2:g}"


def raw(lab, server, operation, threads, connections=1):
    command = [lab.program("tests/bench/bench_redis_raw"), server.path, operation, seconds(lab), str(threads),
               str(connections), str(KEYS)]
    figures = lab.served(server, lambda: lab.run(command))
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6  # of the server alone
    return figures


def ours(lab, target, operation, threads):
    """`target` is a data folder with a durability (volatile:DIR, durable:DIR) or a Redis (redis:URL)."""
    figures = lab.run([lab.program("tests/bench/bench_store"), target, operation, seconds(lab), str(threads), str(KEYS)])
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def text(results, name):
    return (f"{median(results, name, 'rate') / 1000:.1f}k/s, p50 {median(results, name, 'p50_us'):.1f} us, "
            f"{median(results, name, 'cpu_us'):.1f} us CPU")


def compare(lab, name, operation, threads, embedded, server):
    results = lab.interleave({
        "embedded": lambda: ours(lab, embedded, operation, threads),
        "raw client": lambda: raw(lab, server, operation, threads),
        "redis engine": lambda: ours(lab, f"redis:unix://{server.path}", operation, threads),
    })
    peer = best(results, ("raw client", "redis engine"), "rate")
    other = "redis engine" if peer == "raw client" else "raw client"
    return Measure(name, ratios(results, "embedded", peer, "rate"), text(results, "embedded"),
                   f"{text(results, peer)} by {peer} ({other} {median(results, other, 'rate') / 1000:.1f}k/s)")


def measure(lab):
    volatile, durable = start_redis(lab, "redis-volatile", "--appendonly", "no"), start_durable_redis(lab, "redis-durable")
    folder = lab.folder("store")
    targets = {"volatile": f"volatile:{folder}", "durable": f"durable:{folder}"}
    for server in (volatile, durable):
        subprocess.run([lab.program("tests/bench/bench_redis_raw"), server.path, "fill", "1", "1", "1", str(KEYS)],
                       check=True)
    lab.run([lab.program("tests/bench/bench_store"), targets["volatile"], "fill", "1", "1", str(KEYS)])
    for threads in THREADS:
        for operation in READS:
            yield compare(lab, f"store/{operation}_{threads}", operation, threads, targets["volatile"], volatile)
        for operation in WRITES:
            if threads == 1:
                yield compare(lab, f"store/{operation}_volatile_1", operation, 1, targets["volatile"], volatile)
            yield compare(lab, f"store/{operation}_durable_{threads}", operation, threads, targets["durable"], durable)
