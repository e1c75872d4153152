"""db/: durable writes of 64 threads against what each pays alone, and against Redis that syncs always."""
import os
import re
import shutil
import subprocess

from lab import Measure, Unmeasured, best, median, ratios
from room_store import KEYS, raw, start_durable_redis

BOUNDS = {"db/durable64_vs_fsync_each": (">=", 10), "db/durable64_vs_redis": (">=", 1.2)}


def write(lab, kind, threads):
    folder = os.path.join(lab.dir, "db")
    return lab.run([lab.program("tests/bench/bench_db"), folder, kind, f"{lab.seconds:g}", str(threads), str(KEYS)])


def fsync_each(lab, kind, threads):
    return lab.run([lab.program("tests/bench/bench_fsync_each"), os.path.join(lab.dir, "log"), kind, f"{lab.seconds:g}",
                    str(threads)])


def redis_benchmark(lab, server):
    """Redis's own load program: 64 connections, one thread, no pipelining, keys and values of our sizes."""
    if not shutil.which("redis-benchmark"):
        raise Unmeasured("redis-benchmark is not installed (tools/setup bench)")
    requests = int(20000 * lab.seconds)
    key = "bench:string:__rand_int__:"
    command = ["redis-benchmark", "-s", server.path, "-c", "64", "-n", str(requests), "-r", str(KEYS), "--csv",
               "SET", key + "k" * (64 - len(key)), "v" * 200]

    def load():
        done = subprocess.run(command, capture_output=True, text=True)
        found = re.search(r'"([\d.]+)"', done.stdout.splitlines()[-1].partition('",')[2]) if done.stdout else None
        if done.returncode != 0 or not found:
            raise Unmeasured(f"redis-benchmark: {done.stderr[-200:]}")
        return {"rate": float(found.group(1)), "ops": requests}
    return lab.served(server, load)


def text(results, name):
    return f"{median(results, name, 'rate') / 1000:.1f}k/s"


def measure(lab):
    redis = start_durable_redis(lab, "redis-always")
    results = lab.interleave({
        "db": lambda: write(lab, "durable", 64),
        "db alone": lambda: write(lab, "durable", 1),
        "append": lambda: fsync_each(lab, "append", 1),
        "append, 64 in turn": lambda: fsync_each(lab, "append", 64),
        "in place": lambda: fsync_each(lab, "place", 1),
        "in place, 64 beside": lambda: fsync_each(lab, "place", 64),
        "64 blocking clients": lambda: raw(lab, redis, "set", 64),
        "one epoll client": lambda: raw(lab, redis, "set", 1, 64),
        "redis-benchmark": lambda: redis_benchmark(lab, redis),
    })
    group = median(results, "db", "group")
    ours = f"{text(results, 'db')}, p50 {median(results, 'db', 'p50_us'):.0f} us, groups of {group:.0f}"
    each = best(results, ("append", "append, 64 in turn"), "rate")
    yield Measure("db/durable64_vs_fsync_each", ratios(results, "db", each, "rate"), ours,
                  f"{text(results, each)}: log of {each}")
    for name, label in (("in place", "in_place"), ("in place, 64 beside", "in_place_64"), ("db alone", "one_thread")):
        yield Measure(f"db/durable64_vs_{label}", ratios(results, "db", name, "rate"), ours, text(results, name))
    # Like for like: 64 callers that each wait for their own write. One thread that drives 64 connections by
    # epoll is no caller of that kind, but shows what Redis itself can do.
    peers = ("64 blocking clients", "redis-benchmark")
    peer = best(results, peers, "rate")
    others = ", ".join(f"{name} {text(results, name)}" for name in peers if name != peer)
    yield Measure("db/durable64_vs_redis", ratios(results, "db", peer, "rate"), ours,
                  f"{text(results, peer)} by {peer} ({others})")
    yield Measure("db/durable64_vs_redis_epoll", ratios(results, "db", "one epoll client", "rate"), ours,
                  text(results, "one epoll client"))
