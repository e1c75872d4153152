#!/usr/bin/python3
"""The kill and race tests at full length.

    tests/chaos/run.py BUILD TSAN_BUILD ASAN_BUILD [ROOM...]

RUNS (200: kills of each crash test) and SEED come from the environment; the seed is printed, and the same
one gives the same kills and commands. A step is a command whose last "N passed, N failed" line is its
count; one without a line counts by its exit status. What a failed step printed is shown.
"""
import glob
import os
import random
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
COUNT = re.compile(r"^(\d+) passed, (\d+) failed", re.M)
RACES = ("os", "http", "db", "store", "kv", "lake", "replica", "swarm", "archive", "api")
COMMANDS_A_RUN = 5000  # of the differential test: 200 runs are a million commands
LONG_RUN = 10  # kills of others for one run in which everything that replicates is killed
CHAOS_SETUPS = {"plain": 120, "mixed": 60}  # seconds of such a run
SIM_RUNS = 50  # of the simulation of sharding: 200 runs are 10,000
MODEL_SEEDS, MODEL_RUNS = 20, 8  # of the lake's model test, and the kills that each seed has at least
SLOW_SHARE = 5  # one seed in so many also runs under ThreadSanitizer, and under AddressSanitizer
HISTORY_RUNS = 20  # kills of others for one random history of 50 syncs of the archive
RACE_REPEATS = 40  # runs for one pass of the unit tests under ThreadSanitizer


def steps(build, tsan, asan, runs, seed):
    """(room, name, command) of every step."""
    for program in sorted(glob.glob(os.path.join(build, "tests/crash/*_crash"))):
        name = os.path.basename(program)
        yield name.removesuffix("_crash"), name, [program, "--runs", str(runs), "--seed", str(seed)]
    for folder, share in ((build, 1), (tsan, SLOW_SHARE), (asan, SLOW_SHARE)):
        for i in range(MODEL_SEEDS // share):
            yield "lake", f"lake_chaos {os.path.basename(folder)} {i + 1}", [
                os.path.join(folder, "tests/crash/lake_chaos"), "--runs", str(max(MODEL_RUNS, runs // MODEL_SEEDS)),
                "--seed", str(seed + i)]
    yield "s3", "serve_crash", ["/usr/bin/python3", os.path.join(ROOT, "tests/crash/serve_crash.py"), build,
                                "--runs", str(runs), "--seed", str(seed)]
    for setup, seconds in CHAOS_SETUPS.items():
        yield "replica", f"replica_chaos {setup}", [
            "/usr/bin/python3", os.path.join(ROOT, "tests/crash/replica_chaos.py"), build, "--setup", setup, "--runs",
            str(max(1, runs // LONG_RUN)), "--seconds", str(seconds), "--seed", str(seed)]
    yield "shard", "shard_sim", [os.path.join(build, "tests/crash/shard_sim"), "--runs", str(runs * SIM_RUNS), "--rules",
                                 str(runs * SIM_RUNS // 5), "--seed", str(seed)]
    yield "replica", "switch_kills", ["/usr/bin/env", "WEIR_TEST_KILLS=all", "/usr/bin/python3", "-m", "pytest", "-q",
                                      os.path.join(ROOT, "tests/e2e/test_switch_kills.py")]
    yield "archive", "archive_kills", ["/usr/bin/env", f"WEIR_TEST_KILLS={max(1, runs // 2)}", f"WEIR_TEST_SEED={seed}",
                                       "/usr/bin/python3", "-m", "pytest", "-q",
                                       os.path.join(ROOT, "tests/e2e/test_archive_kills.py")]
    yield "archive", "archive_histories", ["/usr/bin/env", f"WEIR_SEEDS={max(1, runs // HISTORY_RUNS)}", "/usr/bin/python3",
                                           "-m", "pytest", "-q", "-k", "soak",
                                           os.path.join(ROOT, "tests/e2e/test_archive_bundles.py")]
    yield "archive", "archive_lost_store", ["/usr/bin/python3", "-m", "pytest", "-q",
                                            os.path.join(ROOT, "tests/e2e/test_archive_processes.py")]
    diff = os.path.join(build, "tests/store_diff")
    yield "store", "store_diff", [diff, "--commands", str(runs * COMMANDS_A_RUN), "--seed", str(seed)]
    for room in RACES:
        for i in range(max(1, runs // RACE_REPEATS)):
            yield room, f"races {i + 1}", [os.path.join(tsan, "tests/unit_tests"), room + "/"]


def run(room, name, command):
    began = time.monotonic()
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace",
                          cwd=ROOT, stdin=subprocess.DEVNULL)
    counts = COUNT.findall(done.stdout)
    passed, failed = map(int, counts[-1]) if counts else (int(done.returncode == 0), 0)
    if done.returncode != 0 and failed == 0:
        failed = 1
    if failed:
        print(done.stdout[-4000:])
    print(f"chaos: {room} {name}: {passed} passed, {failed} failed, {time.monotonic() - began:.0f} s", flush=True)
    return passed, failed


def main():
    builds, rooms = [os.path.abspath(folder) for folder in sys.argv[1:4]], sys.argv[4:]
    runs = int(os.environ.get("RUNS") or 200)
    seed = int(os.environ.get("SEED") or random.SystemRandom().getrandbits(31))
    print(f"chaos: runs {runs} seed {seed}", flush=True)
    os.environ.update(WEIR_BUILD=builds[0])
    passed = failed = 0
    for room, name, command in steps(*builds, runs, seed):
        if not rooms or room in rooms:
            one = run(room, name, command)
            passed, failed = passed + one[0], failed + one[1]
    print(f"chaos: seed {seed}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed or not passed else 0)


if __name__ == "__main__":
    main()
