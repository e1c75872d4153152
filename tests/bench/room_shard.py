"""shard/: a sharded bucket in a folder beside a plain one: pages of a listing, GET and PUT; a plain bucket beside sharded
ones; rows that change their shard, beside `rclone copy`; clients while their bucket is split.

SHARD=objects (1000000) sets the size of the listed buckets. MEASURES=list,get4k measures only what begins with one of
these names."""
import base64
import http.client
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.error
import urllib.request

from lab import Measure, Unmeasured, median, ratios
from room_http import SMALL
from room_replica import rclone_env
from room_s3 import CLIENTS, keep, put_small, start_weir, wrk
from s3_client import headers, query_of

BOUNDS = {
    "shard/list": ("<=", 1.2), "shard/get4k_cpu": ("<=", 1.05), "shard/put4k_cpu": ("<=", 1.05),
    "shard/plain_get4k_cpu": ("<=", 1.01), "shard/rows": (">=", 30000), "shard/rows_vs_rclone": (">=", 20),
    "shard/split_rate": (">=", 0.8), "shard/split_longest_wait": ("<=", 1.0), "shard/split_without_moving": ("<=", 1.0),
}
SHARDS, MANY, PAGES = 8, 64, 64
SPLIT_OBJECTS, COPIED, MIXED_KEYS = 100_000, 5000, 512


def wanted(*names):
    asked = os.environ.get("MEASURES")
    return not asked or any(name.startswith(one) for name in names for one in asked.split(","))


def fill(lab, data, bucket, objects):
    """Empty objects d<0..999>/k<number>."""
    lab.run([lab.program("tests/bench/bench_local"), data, "fill", bucket, "root", str(objects)])


def key_of(i):
    return f"d{i % 1000:03}/k{i:08}"


class Shards:
    """The calls of a weir that shard, split and merge its buckets."""

    def __init__(self, lab, weir):
        self.url = re.search(r"API +(http://127\.0\.0\.1:\d+)", lab.output(weir.server)).group(1) + "/api/v1/shards"
        self.login = "Basic " + base64.b64encode(f"{weir.keys.access}:{weir.keys.secret}".encode()).decode()

    def call(self, method, path="", body=None):
        request = urllib.request.Request(self.url + path, None if body is None else json.dumps(body).encode(), method=method,
                                         headers={"Authorization": self.login, "Content-Type": "application/json"})
        try:
            with urllib.request.urlopen(request, timeout=120) as answer:
                return json.loads(answer.read())
        except urllib.error.HTTPError as error:
            raise Unmeasured(f"{method} {path}: {error.code} {error.read()[:200]!r}") from error

    def enable(self, bucket):
        self.call("POST", "", {"bucket": bucket, "threshold": 10**12})

    def move(self, bucket, kind, at, full_speed=True):
        """Splits or merges, and waits until that is done."""
        self.call("POST", f"/{bucket}/{kind}", {"at": at, "full_speed": full_speed})
        while True:
            status = self.call("GET", "/" + bucket)
            if status["last_error"]:
                raise Unmeasured(f"{kind} of {bucket}: {status['last_error']}")
            if status["move"] is None and not status["moving"]:
                return
            time.sleep(0.01)


# --- listings ---

def list_pages(lab, weir, bucket, objects):
    requests = []
    for i in range(PAGES):
        after = f"d{i * 1000 // PAGES:03}/k{i * objects // PAGES:08}"
        requests.append(weir.raw("GET", "/" + bucket, query_of({"list-type": "2", "max-keys": "1000", "start-after": after})))
    command = [lab.program("tests/bench/bench_http_load"), "-c", "1", "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, "pages"), requests), "127.0.0.1", str(weir.port)]
    return lab.served(weir.server, lambda: lab.run(command))


def measure_lists(lab, objects):
    data = lab.folder("weir-lists")
    for bucket in ("plain", "cut"):
        fill(lab, data, bucket, objects)
    weir = start_weir(lab, "weir-lists", data)
    shards = Shards(lab, weir)
    shards.enable("cut")
    for i in range(SHARDS - 1, 0, -1):
        shards.move("cut", "split", f"d{i * 1000 // SHARDS:03}/")
    for bucket in ("plain", "cut"):  # from disk into the caches
        list_pages(lab, weir, bucket, objects)
    results = lab.interleave({name: lambda name=name: list_pages(lab, weir, name, objects) for name in ("plain", "cut")})
    yield Measure("shard/list", ratios(results, "cut", "plain", "p50_us"),
                  *(f"{median(results, one, 'p50_us'):.0f} us" for one in ("cut", "plain")))
    lab.stop(weir.server)


# --- single objects ---

def get_signed(lab, weir, path):
    return wrk(lab, weir, path, [h for h in headers(weir.keys, "GET", weir.host, path) if h[0] != "host"])


def start_objects(lab, name):
    weir, body = start_weir(lab, name), os.urandom(SMALL)
    for path in ("/box", "/box/small"):
        weir.need("PUT", path, body if "small" in path else b"")
    return weir


def measure_objects(lab):
    alone, weir, body = start_objects(lab, "weir-alone"), start_objects(lab, "weir-many"), os.urandom(SMALL)
    shards = Shards(lab, weir)
    weir.need("PUT", "/many")
    shards.enable("many")
    took = []
    for i in range(1, MANY):
        began = time.monotonic()
        shards.move("many", "split", f"small-{i * 512 // MANY:03}")
        took.append(time.monotonic() - began)
    weir.need("PUT", "/many/small", body)
    results = lab.interleave({
        "alone": lambda: get_signed(lab, alone, "/box/small"), "beside": lambda: get_signed(lab, weir, "/box/small"),
        "get": lambda: get_signed(lab, weir, "/many/small"), "put": lambda: put_small(lab, weir, body, "/many"),
        "put plain": lambda: put_small(lab, weir, body, "/box")})
    for name, ours, peer in (("get4k_cpu", "get", "beside"), ("put4k_cpu", "put", "put plain"),
                             ("plain_get4k_cpu", "beside", "alone")):
        yield Measure("shard/" + name, ratios(results, ours, peer, "cpu_us"),
                      *(f"{median(results, one, 'cpu_us'):.1f} us CPU" for one in (ours, peer)))
    yield Measure("shard/split_without_moving", took, unit=" s")
    lab.stop(alone.server)
    lab.stop(weir.server)


# --- moves ---

def rclone_rate(weir, objects):
    command = ["rclone", "copy", "w:copied", "w:target", "--transfers", "32", "--checkers", "32"]
    began = time.monotonic()
    done = subprocess.run(command, capture_output=True, text=True, env=rclone_env(w=weir))
    if done.returncode != 0:
        raise Unmeasured("rclone: " + done.stderr[-300:])
    return objects / (time.monotonic() - began)


class Splitter(threading.Thread):
    """Splits a bucket in the middle and merges it again until it is told to stop, as fast as weir does it by itself."""

    def __init__(self, shards):
        super().__init__()
        self.shards, self.stopped, self.moves, self.failed = shards, False, 0, None

    def run(self):
        try:
            while not self.stopped:
                for kind in ("split", "merge"):
                    self.shards.move("half", kind, "d500/", full_speed=False)
                    self.moves += 1
        except (Unmeasured, OSError, http.client.HTTPException) as why:
            self.failed = why


def mixed_load(lab, weir, name):
    requests = []
    for i in range(MIXED_KEYS):
        path = "/half/" + key_of(i * SPLIT_OBJECTS // MIXED_KEYS)
        requests += [weir.raw("PUT", path, body=b"changed"), weir.raw("GET", path)]
    command = [lab.program("tests/bench/bench_http_load"), "-c", str(CLIENTS), "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, name), requests), "127.0.0.1", str(weir.port)]
    return lab.served(weir.server, lambda: lab.run(command))


def load_beside_moves(lab, weir, shards):
    splitter = Splitter(shards)
    splitter.start()
    try:
        figures = mixed_load(lab, weir, "moved")
    finally:
        splitter.stopped = True
        splitter.join()
    if splitter.failed:
        raise Unmeasured(str(splitter.failed))
    return {**figures, "moves": splitter.moves}


def measure_moves(lab):
    if not shutil.which("rclone"):
        raise Unmeasured("rclone is not installed (tools/setup bench)")
    data = lab.folder("weir-moves")
    fill(lab, data, "half", SPLIT_OBJECTS)
    fill(lab, data, "copied", COPIED)
    weir = start_weir(lab, "weir-moves", data)
    shards = Shards(lab, weir)
    shards.enable("half")
    rows, copies = [], []
    for _ in range(lab.rounds):
        for kind in ("split", "merge"):
            began = time.monotonic()
            shards.move("half", kind, "d500/")
            rows.append(SPLIT_OBJECTS / 2 / (time.monotonic() - began))
    for _ in range(min(3, lab.rounds)):
        weir.need("PUT", "/target")
        copies.append(rclone_rate(weir, COPIED))
        for i in range(COPIED):
            weir.need("DELETE", "/target/" + key_of(i))
        weir.need("DELETE", "/target")
    rclone = sorted(copies)[len(copies) // 2]
    yield Measure("shard/rows", rows, unit="/s")
    yield Measure("shard/rows_vs_rclone", [one / rclone for one in rows], peer=f"{rclone:.0f}/s")
    results = lab.interleave({"still": lambda: mixed_load(lab, weir, "still"),
                              "moved": lambda: load_beside_moves(lab, weir, shards)})
    yield Measure("shard/split_rate", ratios(results, "moved", "still", "rate"),
                  f"{median(results, 'moved', 'rate'):.0f}/s, {median(results, 'moved', 'moves'):.0f} moves",
                  f"{median(results, 'still', 'rate'):.0f}/s")
    yield Measure("shard/split_longest_wait", [one["max_us"] / 1e6 for one in results["moved"]], unit=" s",
                  peer=f"{max(one['max_us'] for one in results['still']) / 1e6:.2g} s")
    lab.stop(weir.server)


def measure(lab):
    if wanted("list"):
        yield from measure_lists(lab, int(os.environ.get("SHARD") or 1_000_000))
    if wanted("get4k", "put4k", "plain", "split_without"):
        yield from measure_objects(lab)
    if wanted("rows", "split"):
        yield from measure_moves(lab)
