"""The schedule of the archive, for room_archive.py: a claim beside a PING of the same Redis, with a million tracked accounts,
with and without 10,000 locked ones; and the rebuild of the schedule beside the bare listing of the same keys by the
same storage, inside the process.

ARCHIVE_USERS (1000000) is the number of accounts."""
import os
import subprocess

from lab import Measure, median, ratios
from room_store import start_redis

USERS, LOCKED, CLAIMS, WARM = int(os.environ.get("ARCHIVE_USERS", "1000000")), 10000, 5000, 101
BOUNDS = {"archive/claim_vs_ping": ("<=", 5), "archive/claim_locked": ("<=", 1.3), "archive/rebuild_vs_list": ("<=", 2)}


def program(lab, server, *words):
    return [lab.program("tests/bench/bench_archive_schedule"), f"unix://{server.path}", *map(str, words)]


def claims(lab, server):
    """The first claims after a pause put back what was leased, so they are not measured."""
    return lab.run(program(lab, server, "claim", CLAIMS))


def text(results, name):
    return f"{median(results, name, 'claim_us'):.0f} us, PING {median(results, name, 'ping_us'):.0f} us"


def measure_claims(lab):
    """Two servers with the same accounts, so that claims with and without locked accounts are measured in turn."""
    servers = {name: start_redis(lab, f"redis-{name}", "--appendonly", "no") for name in ("free", "locked")}
    for server in servers.values():
        lab.run(program(lab, server, "fill", USERS))
    lab.run(program(lab, servers["locked"], "lock", 0, LOCKED))  # those that would be claimed next
    for server in servers.values():
        claims(lab, server)  # meets the locked ones
    results = lab.interleave({name: lambda server=server: claims(lab, server) for name, server in servers.items()})
    yield Measure("archive/claim_vs_ping", [r["claim_us"] / r["ping_us"] for r in results["locked"]],
                  text(results, "locked"), "PING")
    yield Measure("archive/claim_locked", ratios(results, "locked", "free", "claim_us"), text(results, "locked"),
                  text(results, "free") + " with none locked")


def measure_rebuild(lab):
    server = start_redis(lab, "redis-rebuild", "--appendonly", "no")
    folder = lab.folder("records")
    lab.run(program(lab, server, "records", folder, USERS))

    def rebuild():
        subprocess.run(["redis-cli", "-s", server.path, "FLUSHALL"], check=True, capture_output=True)
        return lab.run(program(lab, server, "rebuild", folder))
    results = lab.interleave({"rebuild": rebuild, "list": lambda: lab.run(program(lab, server, "list", folder))})
    yield Measure("archive/rebuild_vs_list", ratios(results, "rebuild", "list", "seconds"),
                  f"{USERS} accounts in {median(results, 'rebuild', 'seconds'):.1f} s",
                  f"listing {median(results, 'list', 'seconds'):.1f} s")
