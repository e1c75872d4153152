"""replica/: copying between two endpoints against rclone, what capturing changes costs a PUT, and the queue against
its own scripts.

The endpoints are two weirs with local storages. weir's side of a copy is a third weir, `--only worker`, that knows
them as remote storages; rclone runs as a process of its own. Each copy goes into a bucket that is new."""
import base64
import json
import os
import re
import shutil
import subprocess
import threading
import time
import urllib.parse
import urllib.request

from lab import Measure, Unmeasured, best, median, ratios
from room_s3 import guarded, start_weir
from room_store import start_redis
from s3_client import keep

# How many objects; REPLICA=small:large for a quick look.
SMALL_COUNT, LARGE_COUNT = (int(n) for n in (os.environ.get("REPLICA") or "10000:20").split(":"))
SMALL_SIZE, LARGE_SIZE = 16 * 1024, 256 * 1024 * 1024
TAP_SIZE, TAP_KEYS, TAP_CLIENTS = 4096, 16384, (1, 16)
THREADS = 64  # of the worker: on two cores with both endpoints more copies at once make larger commits
ENGINES, KINDS = ("embedded", "redis"), ("local", "remote")
TAPS = {f"replica/tap_{kind}_{engine}_{clients}": ("<=", 1.15)
        for kind in KINDS for engine in ENGINES for clients in TAP_CLIENTS}
BOUNDS = {
    "replica/small_rate": (">=", 3.0), "replica/small_cpu": ("<=", 1.0),
    "replica/large_rate": (">=", 1.0), "replica/large_cpu": ("<=", 1.0),
    "replica/folders_rate": None, "replica/folders_cpu": ("<=", 1.0),
    **TAPS,
    "replica/queue_vs_scripts": None,
}
# Fastest of those tried: no look at an object that a listing or an answer has told of, no checksum of its own.
RCLONE = ["--config", "/dev/null", "--fast-list", "--size-only", "--use-server-modtime", "--s3-no-check-bucket", "--s3-no-head",
          "--s3-no-head-object", "--s3-disable-checksum", "--no-update-modtime", "--retries", "1", "--stats", "0",
          "--checkers", "16", "--buffer-size", "0"]
RCLONE_SMALL = ["--transfers", "32"]
RCLONE_LARGE = ["--transfers", "4", "--s3-upload-cutoff", "5G"]


class Weir:
    """A weir and its commands."""

    def __init__(self, lab, name, *options):
        self.lab, self.name = lab, name
        self.data = lab.folder(name)
        if "--only" in options and options[options.index("--only") + 1] == "worker":
            self.server = lab.start(name, [lab.program("weir"), "serve", "--data", self.data, "--s3.listen", "127.0.0.1:0",
                                           "--tracker.http", "off", "--tracker.udp", "off",
                                           "--api.listen", "127.0.0.1:0", *options])
            lab.wait(self.server, lambda: re.search(r"API +http://\S+", lab.output(self.server)), 60)
            self.end = None
        else:
            self.end = start_weir(lab, name, self.data, *options)
            self.server = self.end.server
        self.api = re.search(r"API +(http://\S+)", lab.output(self.server)).group(1)

    def run(self, *args):
        done = subprocess.run([self.lab.program("weir"), *args, "--url", self.api, "--data", self.data, "--json"],
                              capture_output=True, text=True, cwd=self.lab.dir)
        if done.returncode != 0:
            raise Unmeasured(f"weir {' '.join(args[:2])}: {(done.stderr or done.stdout)[-300:].strip()}")
        return json.loads(done.stdout) if done.stdout.strip() else None

    def ask(self, path):
        """By the API itself, for what is asked again and again while something is measured."""
        with open(os.path.join(self.data, "credentials")) as f:
            keys = dict(line.strip().split("=", 1) for line in f if "=" in line)
        token = base64.b64encode(f"{keys['access_key']}:{keys['secret_key']}".encode()).decode()
        request = urllib.request.Request(self.api + path, headers={"Authorization": f"Basic {token}"})
        with urllib.request.urlopen(request) as answer:
            return json.load(answer)

    def add(self, name, other, *more):
        """Another weir as a remote storage of this one."""
        self.run("storage", "add", name, "--endpoint", f"http://{other.host}", "--user", "root", "--access-key",
                 other.keys.access, "--secret-key", other.keys.secret, *more)


def fill(end, bucket, count, size):
    """By some threads, each with a body of its own."""
    end.need("PUT", f"/{bucket}")

    def some(first):
        body = os.urandom(size)
        for i in range(first, count, threads):
            end.need("PUT", f"/{bucket}/d{i % 10}/{i:06}", body)
    threads = 4 if size < LARGE_SIZE else 2
    running = [threading.Thread(target=some, args=(i,)) for i in range(threads)]
    for t in running:
        t.start()
    for t in running:
        t.join()


def check_equal(lab, name, bucket, count, size):
    """A copy that is not whole is no copy."""
    found = total = 0
    after = ""
    while True:
        query = f"list-type=2&start-after={urllib.parse.quote(after, safe='')}"
        text = name.need("GET", f"/{bucket}", query=query).decode()
        keys = re.findall(r"<Key>([^<]*)</Key>", text)
        total += sum(int(n) for n in re.findall(r"<Size>(\d+)</Size>", text))
        found += len(keys)
        if not keys or "<IsTruncated>true" not in text:
            break
        after = keys[-1]
    if found != count or total != count * size:
        raise Unmeasured(f"{bucket} has {found} objects of {count}, {total} bytes")


def drop(end, bucket):
    """Of a copy that was measured: the disk is not for all of them."""
    while True:
        keys = re.findall(r"<Key>([^<]*)</Key>", end.need("GET", f"/{bucket}", query="list-type=2").decode())
        if not keys:
            break
        body = "<Delete><Quiet>true</Quiet>" + "".join(f"<Object><Key>{key}</Key></Object>" for key in keys) + "</Delete>"
        end.need("POST", f"/{bucket}", body.encode(), query="delete=")
    end.call("DELETE", f"/{bucket}")


class Copies:
    """One bucket at `a`, copied to new buckets at `b` by either side."""

    def __init__(self, lab, a, b, mover, bucket, count, size):
        self.lab, self.a, self.b, self.mover = lab, a, b, mover
        self.bucket, self.count, self.size, self.number = bucket, count, size, 0

    def target(self):
        self.number += 1
        return f"{self.bucket}-{self.number}"

    def done(self, target, seconds, cpu):
        check_equal(self.lab, self.b, target, self.count, self.size)
        drop(self.b, target)
        return {"seconds": seconds, "rate": self.count / seconds, "cpu": cpu, "cpu_us": cpu / self.count * 1e6}

    storages = "a", "b"
    to = "b"  # rclone's name of the target's endpoint

    @staticmethod
    def served():
        return 0

    def rclone(self, *more):
        target = self.target()
        self.b.need("PUT", f"/{target}")
        began = time.monotonic()
        # Copies at the server are checked by a look at each, which cannot be left out.
        flags = [flag for flag in RCLONE if self.to != "a" or not flag.startswith("--s3-no-head")]
        process = subprocess.Popen(["rclone", "sync", f"a:{self.bucket}", f"{self.to}:{target}", *flags, *more], text=True,
                                   stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=rclone_env(a=self.a, b=self.b))
        text = process.stderr.read()
        _, status, used = os.wait4(process.pid, 0)
        process.returncode = status
        seconds = time.monotonic() - began
        if status != 0:
            raise Unmeasured(f"rclone: {text[-300:].strip()}")
        return self.done(target, seconds, used.ru_utime + used.ru_stime + self.served())

    def weir(self):
        target = self.target()
        cpu, began = self.mover.server.cpu(), time.time()
        self.mover.run("replicate", "add", self.bucket, self.storages[1], "--from", self.storages[0], "--user", "root",
                       "--to-bucket", target)
        while True:
            rows = self.mover.ask("/api/v1/replications")["replications"]
            row = next(r for r in rows if r["to_bucket"] == target)
            if row["init_done_at"]:
                break
            if row["objects_failed"]:
                raise Unmeasured(f"{row['objects_failed']} copies failed")
            time.sleep(0.2)
        seconds = ended(row["init_done_at"]) - began
        cpu = self.mover.server.cpu() - cpu
        self.mover.run("replicate", "remove", self.bucket, "--to-bucket", target)
        return self.done(target, seconds, cpu)


def rclone_env(**ends):
    """The endpoints as rclone's remotes; nothing of the caller's that would change how it goes about it."""
    env = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RCLONE_"))}
    for name, end in ends.items():
        for key, value in {"TYPE": "s3", "PROVIDER": "Other", "ENDPOINT": f"http://{end.host}", "REGION": "us-east-1",
                           "ACCESS_KEY_ID": end.keys.access, "SECRET_ACCESS_KEY": end.keys.secret}.items():
            env[f"RCLONE_CONFIG_{name.upper()}_{key}"] = value
    return env


def ended(text):
    """RFC 3339 with nanoseconds, as seconds since 1970."""
    import datetime
    whole, fraction = re.fullmatch(r"(.*?)(\.\d+)?Z", text).groups()
    at = datetime.datetime.strptime(whole, "%Y-%m-%dT%H:%M:%S").replace(tzinfo=datetime.timezone.utc)
    return at.timestamp() + float(fraction or 0)


def copy_text(results, name, size):
    rate = median(results, name, "rate")
    speed = f"{rate:.0f}/s" if size < LARGE_SIZE else f"{rate * size / 1e6:.0f} MB/s"
    return f"{speed}, {median(results, name, 'cpu_us'):.0f} us CPU each"


def compare(lab, copies, name, flags):
    results = lab.interleave({"rclone": lambda: copies.rclone(*flags), "weir": copies.weir}, rounds=min(lab.rounds, 3))
    texts = copy_text(results, "weir", copies.size), copy_text(results, "rclone", copies.size)
    yield Measure(f"replica/{name}_rate", ratios(results, "weir", "rclone", "rate"), *texts)
    yield Measure(f"replica/{name}_cpu", ratios(results, "weir", "rclone", "cpu"), *texts)


def copies(lab):
    if not shutil.which("rclone"):
        raise Unmeasured("rclone is not installed (tools/setup bench)")
    a, b = start_weir(lab, "end-a"), start_weir(lab, "end-b")
    mover = Weir(lab, "mover", "--only", "worker", "--worker.threads", str(THREADS))
    mover.add("a", a, "--main")
    mover.add("b", b)
    for name, count, size, flags in (("small", SMALL_COUNT, SMALL_SIZE, RCLONE_SMALL),
                                     ("large", LARGE_COUNT, LARGE_SIZE, RCLONE_LARGE)):
        if not count:
            continue
        fill(a, name, count, size)
        yield from compare(lab, Copies(lab, a, b, mover, name, count, size), name, flags)
        drop(a, name)
    for server in (mover.server, a.server, b.server):
        lab.stop(server)


class Folders(Copies):
    """From one folder of a weir to another of the same: by itself, or by rclone through its endpoint. CPU is that of
    all processes."""
    storages = "local", "other"

    def __init__(self, lab, weir, bucket, count, size):
        super().__init__(lab, weir.end, weir.end, weir, bucket, count, size)

    def lead(self, target):
        self.mover.run("bucket", "route", target, "other", "--user", "root")

    def done(self, target, seconds, cpu):
        self.lead(target)
        figures = super().done(target, seconds, cpu)
        self.mover.run("bucket", "route", target, "--remove", "--user", "root")
        return figures

    def rclone(self, to, *more):
        target = f"{self.bucket}-{self.number + 1}"
        self.lead(target)
        self.to, served = to, self.mover.server.cpu()
        self.served = lambda: self.mover.server.cpu() - served
        return super().rclone(*more)


def folders(lab):
    weir = Weir(lab, "folders", "--worker.threads", str(THREADS))
    weir.run("storage", "add", "other", lab.folder("other-folder"))
    fill(weir.end, "small", SMALL_COUNT, SMALL_SIZE)
    c = Folders(lab, weir, "small", SMALL_COUNT, SMALL_SIZE)
    results = lab.interleave({"streams": lambda: c.rclone("b", *RCLONE_SMALL), "server side": lambda: c.rclone("a", *RCLONE_SMALL),
                              "weir": c.weir}, rounds=min(lab.rounds, 3))
    peer = best(results, ("streams", "server side"), "rate")
    texts = copy_text(results, "weir", SMALL_SIZE), f"{copy_text(results, peer, SMALL_SIZE)} ({peer})"
    yield Measure("replica/folders_rate", ratios(results, "weir", peer, "rate"), *texts)
    yield Measure("replica/folders_cpu", ratios(results, "weir", peer, "cpu"), *texts)
    lab.stop(weir.server)


# --- what the tap costs ---

def put(lab, weir, bucket, clients):
    """Objects that are new each time: those that are put again before they were copied cost the tap less."""
    body = os.urandom(TAP_SIZE)
    weir.round = getattr(weir, "round", 0) + 1
    requests = [weir.end.raw("PUT", f"/{bucket}/{weir.round}/k-{i}", body=body) for i in range(TAP_KEYS)]
    command = [lab.program("tests/bench/bench_http_load"), "-c", str(clients), "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, "taps"), requests), "127.0.0.1", str(weir.end.port)]
    figures = lab.served(weir.server, lambda: lab.run(command))
    if not figures["ops"]:
        raise Unmeasured(f"{weir.name} answered nothing")
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def put_text(results, name):
    return (f"{median(results, name, 'rate') / 1000:.2f}k/s, p50 {median(results, name, 'p50_us'):.0f} us, "
            f"{median(results, name, 'cpu_us'):.0f} us CPU")


def tap_pair(lab, kind, engine):
    """A gateway with the buckets `taken`, which is replicated, and `plain`. Nobody runs the tasks."""
    options = ["--only", "gateway"]
    if engine == "redis":
        redis = start_redis(lab, f"redis-{kind}")
        options += ["--store.engine=redis", f"--store.redis.url=unix://{redis.path}"]
    weir = Weir(lab, f"tap-{kind}-{engine}", *options)
    if kind == "remote":
        weir.add("far", start_weir(lab, f"far-{engine}"), "--main")
    weir.run("storage", "add", "other", lab.folder(f"other-{kind}-{engine}"))
    for bucket in ("plain", "taken"):
        weir.end.need("PUT", f"/{bucket}")
    weir.run("replicate", "add", "taken", "other", "--from", "far" if kind == "remote" else "local", "--user", "root")

    def is_taken():
        weir.end.need("PUT", "/taken/first", b"x")
        return weir.run("replicate", "show", "taken")["lag"] > 0
    lab.wait(weir.server, is_taken)
    return weir


def tap_costs(lab, kind, engine):
    weir = tap_pair(lab, kind, engine)
    for clients in TAP_CLIENTS:
        results = lab.interleave({"plain": lambda: put(lab, weir, "plain", clients),
                                  "taken": lambda: put(lab, weir, "taken", clients)})
        yield Measure(f"replica/tap_{kind}_{engine}_{clients}", ratios(results, "plain", "taken", "rate"),
                      put_text(results, "taken"), put_text(results, "plain"))
    lab.stop_all()


# --- the queue ---

def queue_text(results, name):
    return f"{median(results, name, 'rate') / 1000:.1f}k/s, {median(results, name, 'cpu_us'):.0f} us CPU of Redis each"


def queue(lab):
    """Tasks added, taken and done by weir's worker, against the same scripts in pipelines."""
    redis = start_redis(lab, "redis-queue")

    def run(mode):
        figures = lab.served(redis, lambda: lab.run([lab.program("tests/bench/bench_queue"), f"unix://{redis.path}", mode,
                                                     f"{lab.seconds:g}", "16"]))
        figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
        return figures
    results = lab.interleave({"worker": lambda: run("worker"), "scripts": lambda: run("scripts")})
    yield Measure("replica/queue_vs_scripts", ratios(results, "worker", "scripts", "rate"), queue_text(results, "worker"),
                  queue_text(results, "scripts"))
    lab.stop(redis)


def measure(lab):
    yield from guarded(["replica/queue_vs_scripts"], queue, lab)
    for kind in KINDS:
        for engine in ENGINES:
            yield from guarded([name for name in TAPS if f"_{kind}_{engine}_" in name], tap_costs, lab, kind, engine)
    yield from guarded([name for name in BOUNDS if re.search("small|large", name)], copies, lab)
    yield from guarded([name for name in BOUNDS if "folders" in name], folders, lab)
