#!/usr/bin/python3
"""Runs every suite over one build and adds up what they count.

    tests/run.py BUILD [SUITE...]

A suite is a command whose last line that reads "N passed, N failed[, N skipped]" is its count; a
suite without one, or that ends with a status other than 0, counts one failure more. A line that
reads "took N s NAME" tells how long a test took. At the end come the slowest tests, the names of
those that failed, and the count of all.
"""
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
SLOWEST = 15
COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
TOOK = re.compile(r"^took (\d+\.\d+) s (.+)$")
FAILED = re.compile(r"^(?:FAIL|(?:FAILED|ERROR)(?= \S+\.py)) (\S+)")  # the unit tests' runner, and pytest


def fuzz_suites(build):
    corpus = os.path.join(ROOT, "tests/fuzz/corpus")
    for name in sorted(os.listdir(corpus)) if os.path.isdir(corpus) else []:
        yield "fuzz-" + name, [os.path.join(build, "tests/fuzz_" + name), os.path.join(corpus, name)]


def crash_suites(build):
    """A short version of what `make chaos` runs at full length; the seed is printed by the program."""
    folder = os.path.join(build, "tests/crash")
    for name in sorted(os.listdir(folder)) if os.path.isdir(folder) else []:
        if name.endswith("_crash"):
            yield "crash-" + name.removesuffix("_crash"), [os.path.join(folder, name), "--runs", "20"]
    yield "crash-serve", ["/usr/bin/python3", os.path.join(ROOT, "tests/crash/serve_crash.py"), build, "--runs", "10"]
    yield "crash-replica", ["/usr/bin/python3", os.path.join(ROOT, "tests/crash/replica_chaos.py"), build, "--runs", "1",
                            "--seconds", "15"]


def suites(build):
    yield "unit", [os.path.join(build, "tests/unit_tests"), "-t"]
    yield from fuzz_suites(build)
    yield "store-diff", [os.path.join(build, "tests/store_diff"), "--shrink"]
    yield from crash_suites(build)
    yield "e2e", ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.join(ROOT, "tests/e2e")]


class Told:
    """What suites tell: their counts [passed, failed, skipped], the names that failed, and how long tests took."""

    def __init__(self):
        self.total, self.failed, self.took = [0, 0, 0], [], []

    def show(self):
        print(f"slowest {SLOWEST}:")
        for seconds, name in sorted(self.took, reverse=True)[:SLOWEST]:
            print(f"  {seconds:6.1f} s  {name}")
        if self.failed:
            print("failed:")
            for name in self.failed:
                print(f"  {name}")
        passed, failed, skipped = self.total
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)


def listen(lines, name, told):
    """Shows the suite's output as it comes; returns its count, or none."""
    quiet, kept, count = name.startswith("fuzz-"), [], None
    for line in lines:
        if took := TOOK.match(line):
            told.took.append((float(took.group(1)), f"{name} {took.group(2)}"))
            continue
        if found := COUNT.match(line.strip()):
            count = [int(n or 0) for n in found.groups()]
        if failed := FAILED.match(line):
            told.failed.append(f"{name} {failed.group(1)}")
        kept.append(line)
        if not quiet:
            print(line, end="", flush=True)
    if quiet and (count is None or count[1]):
        print("".join(kept[-40:]))
    return count


def run(name, command, env, told):
    began, names, times = time.monotonic(), len(told.failed), len(told.took)
    print(f"== {name}", flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                               errors="replace", cwd=ROOT)
    count = listen(process.stdout, name, told)
    status = process.wait()
    passed, failed, skipped = count or (0, 0, 0)
    if status != 0 and failed == 0 or count is None:
        failed += 1
        print(f"{name} ended with status {status} and no count of its own failures")
    seconds = time.monotonic() - began
    if failed and len(told.failed) == names:
        told.failed.append(f"{name} (status {status})")
    if len(told.took) == times:
        told.took.append((seconds, name))
    print(f"== {name}: {passed} passed, {failed} failed, {skipped} skipped, {seconds:.0f} s", flush=True)
    for i, n in enumerate((passed, failed, skipped)):
        told.total[i] += n


def main():
    build = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    env = dict(os.environ, WEIR_BUILD=build, TEST_TIMES="1")
    told = Told()
    for name, command in suites(build):
        if not wanted or any(name == w or name.startswith(w + "-") for w in wanted):
            run(name, command, env, told)
    told.show()
    sys.exit(1 if told.total[1] or not told.total[0] else 0)


if __name__ == "__main__":
    main()
