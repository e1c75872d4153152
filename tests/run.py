#!/usr/bin/python3
"""Runs every suite over one build and adds up what they count.

    tests/run.py BUILD [SUITE...]

A suite is a command whose last line that reads "N passed, N failed[, N skipped]" is its count; a
suite without one, or that ends with a status other than 0, counts one failure more.
"""
import os
import re
import subprocess
import sys
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")


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
    yield "unit", [os.path.join(build, "tests/unit_tests")]
    yield from fuzz_suites(build)
    yield "store-diff", [os.path.join(build, "tests/store_diff"), "--shrink"]
    yield from crash_suites(build)
    yield "e2e", ["/usr/bin/python3", "-m", "pytest", "-q", "-p", "no:cacheprovider", os.path.join(ROOT, "tests/e2e")]


def run(name, command, env):
    """Shows the suite's output as it comes; returns (passed, failed, skipped)."""
    began, count = time.monotonic(), None
    print(f"== {name}", flush=True)
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                               errors="replace", cwd=ROOT)
    quiet = name.startswith("fuzz-")
    lines = []
    for line in process.stdout:
        found = COUNT.match(line.strip())
        if found:
            count = tuple(int(n or 0) for n in found.groups())
        lines.append(line)
        if not quiet:
            print(line, end="", flush=True)
    status = process.wait()
    if quiet and status != 0:
        print("".join(lines[-40:]))
    passed, failed, skipped = count or (0, 0, 0)
    if status != 0 and failed == 0 or count is None:
        failed += 1
        print(f"{name} ended with status {status} and no count of its own failures")
    print(f"== {name}: {passed} passed, {failed} failed, {skipped} skipped, {time.monotonic() - began:.0f} s", flush=True)
    return passed, failed, skipped


def main():
    build = os.path.abspath(sys.argv[1])
    wanted = sys.argv[2:]
    env = dict(os.environ, WEIR_BUILD=build)
    total = [0, 0, 0]
    for name, command in suites(build):
        if wanted and not any(name == w or name.startswith(w + "-") for w in wanted):
            continue
        for i, n in enumerate(run(name, command, env)):
            total[i] += n
    print(f"{total[0]} passed, {total[1]} failed, {total[2]} skipped" if total[2] else f"{total[0]} passed, {total[1]} failed")
    sys.exit(1 if total[1] or not total[0] else 0)


if __name__ == "__main__":
    main()
