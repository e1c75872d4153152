#!/usr/bin/python3
"""Runs every suite over one build and adds up what they count.

    tests/run.py BUILD [SUITE...]

A suite is a command whose last line that reads "N passed, N failed[, N skipped]" is its count; a
suite without one, or that ends with a status other than 0, counts one failure more. A line that
reads "took N s NAME" tells how long a test took.

The unit tests are two at a time by themselves. The other suites are, too: much of a suite is waiting,
for a process to start or a lease to end. What one says is shown when it ends, in one piece. At the
end come the slowest tests, the names of those that failed, and the count of all.
"""
import concurrent.futures
import os
import re
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LANES, SLOWEST = 2, 15
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
    chaos = ["/usr/bin/python3", os.path.join(ROOT, "tests/crash/replica_chaos.py"), build, "--runs", "1", "--seconds", "15"]
    yield "crash-replica", [*chaos, "--kind", "redis"]
    yield "crash-replica-mixed", [*chaos, "--setup", "mixed", "--kind", "sentinel,embedded"]


def e2e_suites():
    """One for each file, the largest first, so that no long one is left alone at the end."""
    folder = os.path.join(ROOT, "tests/e2e")
    files = [os.path.join(folder, name) for name in os.listdir(folder) if re.fullmatch(r"test_\w+\.py", name)]
    for path in sorted(files, key=os.path.getsize, reverse=True):
        name = os.path.basename(path).removeprefix("test_").removesuffix(".py")
        yield "e2e-" + name, ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", path]


def suites(build):
    yield "unit", [os.path.join(build, "tests/unit_tests"), "-t"]
    yield from fuzz_suites(build)
    yield "store-diff", [os.path.join(build, "tests/store_diff"), "--shrink"]
    yield from crash_suites(build)
    yield from e2e_suites()


class Told:
    """What suites tell: their counts [passed, failed, skipped], the names that failed, and how long tests took."""

    def __init__(self):
        self.lock, self.total, self.failed, self.took = threading.Lock(), [0, 0, 0], [], []

    def add(self, suite):
        with self.lock:
            for i, n in enumerate(suite.count):
                self.total[i] += n
            self.failed += suite.failed
            self.took += suite.took
            suite.show()

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


class Suite:
    def __init__(self, name, command):
        self.name, self.command = name, command
        self.count, self.failed, self.took, self.lines, self.seconds = None, [], [], [], 0

    def run(self, env):
        began = time.monotonic()
        if not self.is_quiet():
            print(f"-- {self.name}", flush=True)
        process = subprocess.Popen(self.command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                                   errors="replace", cwd=ROOT)
        for line in process.stdout:
            self.hear(line)
        status = process.wait()
        self.seconds = time.monotonic() - began
        if self.count is None or status != 0 and self.count[1] == 0:
            self.count = [0, 0, 0] if self.count is None else self.count
            self.count[1] += 1
            self.lines.append(f"{self.name} ended with status {status} and no count of its own failures\n")
        if self.count[1] and not self.failed:
            self.failed.append(f"{self.name} (status {status})")
        if not self.took:
            self.took.append((self.seconds, self.name))

    def hear(self, line):
        if took := TOOK.match(line):
            self.took.append((float(took.group(1)), f"{self.name} {took.group(2)}"))
            return
        self.lines.append(line)
        if found := COUNT.match(line.strip()):
            self.count = [int(n or 0) for n in found.groups()]
        if failed := FAILED.match(line):
            self.failed.append(f"{self.name} {failed.group(1)}")

    def is_quiet(self):
        return self.name.startswith("fuzz-") and not (self.count and self.count[1])

    def show(self):
        passed, failed, skipped = self.count
        said = "" if self.is_quiet() else f"== {self.name}\n" + "".join(self.lines)
        print(f"{said}== {self.name}: {passed} passed, {failed} failed, {skipped} skipped, {self.seconds:.0f} s", flush=True)


def main():
    build = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    env = dict(os.environ, WEIR_BUILD=build, TEST_TIMES="1")
    told = Told()
    chosen = [Suite(name, command) for name, command in suites(build)
              if not wanted or any(name == w or name.startswith(w + "-") for w in wanted)]

    def run(suite):
        suite.run(env)
        told.add(suite)
    while chosen and chosen[0].name == "unit":
        run(chosen.pop(0))
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(run, chosen))
    told.show()
    sys.exit(1 if told.total[1] or not told.total[0] else 0)


if __name__ == "__main__":
    main()
