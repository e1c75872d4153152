"""start/: how long `weir serve` takes until it listens, and what it holds while nobody asks."""
import os
import shutil
import socket
import time

from lab import Measure, Unmeasured, free_port

BOUNDS = {"start/listening_fresh": ("<=", 100), "start/listening_existing": ("<=", 100), "start/idle_rss": ("<=", 40)}


def serve(lab, data):
    """A running weir and the milliseconds until its API port accepted."""
    ports = {key: free_port() for key in ("S3_LISTEN", "API_LISTEN", "TRACKER_HTTP", "TRACKER_UDP")}
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
    env.update({"WEIR_" + key: f"127.0.0.1:{port}" for key, port in ports.items()})
    command = [lab.program("weir"), "serve", "--data", data]
    began = time.monotonic()
    server = lab.start("weir", command, env)

    def accepts():
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", ports["API_LISTEN"])) == 0
    lab.wait(server, accepts, pause=0.001)
    return server, (time.monotonic() - began) * 1000


def once(lab, data, fresh):
    if fresh:
        shutil.rmtree(data, ignore_errors=True)
    server, ms = serve(lab, data)
    cpu = server.cpu()
    lab.stop(server)
    if server.process.returncode != 0:
        raise Unmeasured(f"weir serve ended with status {server.process.returncode}: {lab.output(server)[-300:]}")
    return {"ms": ms, "cpu": cpu * 1000}


def idle_rss(lab, data):
    """Megabytes (of 10^6 bytes) once two seconds have passed and it holds still for another half."""
    server, _ = serve(lab, data)
    time.sleep(2)
    before, deadline = -1, time.monotonic() + 10
    while (now := server.rss()) != before and time.monotonic() < deadline:
        before = now
        time.sleep(0.5)
    threads = len(os.listdir(f"/proc/{server.pid}/task"))
    lab.stop(server)
    return now / 1e6, threads


def measure(lab):
    fresh, existing = os.path.join(lab.dir, "fresh"), os.path.join(lab.dir, "existing")
    once(lab, existing, fresh=True)
    results = lab.interleave({"fresh": lambda: once(lab, fresh, True), "existing": lambda: once(lab, existing, False)})
    for name, runs in results.items():
        cpu = sorted(run["cpu"] for run in runs)[len(runs) // 2]
        yield Measure(f"start/listening_{name}", [run["ms"] for run in runs], f"{cpu:.0f} ms CPU", unit=" ms")
    held = [idle_rss(lab, existing) for _ in range(min(3, lab.rounds))]
    yield Measure("start/idle_rss", [rss for rss, _ in held], f"{held[0][1]} threads", unit=" MB")
