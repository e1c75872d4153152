#!/usr/bin/python3
"""Runs the libFuzzer targets, each for a while on a copy of its corpus.

    tests/fuzz/run.py BUILD [TARGET...]

SECONDS (60, for each target) comes from the environment. One line a target; inputs that crash are kept in
BUILD/crashes with the target's name in front. What was found stays in BUILD/corpus, so that the next run
begins where this one ended; to keep an input for good, put it into tests/fuzz/corpus/<target>/.
"""
import glob
import os
import re
import shutil
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
RSS_LIMIT_MB, UNIT_SECONDS = 2048, 10


def targets(build):
    for path in sorted(glob.glob(os.path.join(build, "tests/fuzz_*"))):
        if os.path.isfile(path) and os.access(path, os.X_OK):
            yield os.path.basename(path)[len("fuzz_"):]


def corpus(build, target):
    """A folder of the run's own: the committed inputs and what earlier runs found."""
    found = os.path.join(build, "corpus", target)
    os.makedirs(found, exist_ok=True)
    kept = os.path.join(ROOT, "tests/fuzz/corpus", target)
    for name in os.listdir(kept) if os.path.isdir(kept) else []:
        shutil.copy(os.path.join(kept, name), os.path.join(found, name))
    return found


def fuzz(build, target, seconds):
    crashes = os.path.join(build, "crashes")
    os.makedirs(crashes, exist_ok=True)
    log = os.path.join(build, target + ".log")
    before = set(os.listdir(crashes))
    with open(log, "w") as out:
        status = subprocess.run([os.path.join(build, "tests/fuzz_" + target), f"-max_total_time={seconds}",
                                 f"-timeout={UNIT_SECONDS}", f"-rss_limit_mb={RSS_LIMIT_MB}", "-print_final_stats=1",
                                 f"-artifact_prefix={crashes}/{target}-", corpus(build, target)],
                                stdout=out, stderr=out, stdin=subprocess.DEVNULL, cwd=build).returncode
    with open(log, errors="replace") as text:
        output = text.read()
    executed = re.search(r"stat::number_of_executed_units:\s*(\d+)", output)
    new = sorted(set(os.listdir(crashes)) - before)
    ok = status == 0 and executed is not None
    what = "ok" if ok else "CRASH " + (os.path.join(crashes, new[0]) if new else log)
    print(f"fuzz: {target} {executed.group(1) if executed else 0} {what}", flush=True)
    if not ok:
        print(output[-3000:])
    return ok


def main():
    build, *wanted = sys.argv[1:]
    build = os.path.abspath(build)
    seconds = int(os.environ.get("SECONDS") or 60)
    known = list(targets(build))
    for name in wanted:
        if name not in known:
            sys.exit(f"no such fuzz target: {name} (there are {', '.join(known)})")
    results = [fuzz(build, target, seconds) for target in wanted or known]
    print(f"{sum(results)} passed, {len(results) - sum(results)} failed")
    sys.exit(0 if results and all(results) else 1)


if __name__ == "__main__":
    main()
