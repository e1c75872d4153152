#!/usr/bin/python3
"""Runs the test suites over one build and adds up their counts.

    tests/run.py BUILD [SUITE...]     run all suites, or those named
    tests/run.py --needs [SUITE...]   print the groups of tools/setup that these suites need
    tests/run.py --changed BASE BUILD run the unit tests that a change since the git revision BASE concerns: those of the
                                      folders that differ, and of the folders that include headers of them

A SUITE is a kind (unit, fuzz, crash, e2e, store-diff), one suite (e2e-switch, crash-db), or a room, which is a folder of
src/. A room stands for its unit tests, its fuzz corpora, its crash programs and its end-to-end files; unit-ROOM stands
for its unit tests alone.

A suite is a command that prints a line "N passed, N failed[, N skipped]". The last such line is its count. A suite that
prints no such line, or that ends with a status other than 0 without having counted a failure, counts as one failure.
A line "took N s NAME" says how long a test took, and "took N s, M s of CPU: NAME" also says how much CPU time it used.

Many unit tests are timed or keep a core busy, so the unit tests run first, four for each core, and with no other suite
beside them. The other suites mostly wait, for a process to start, a lease to end or a timer to fire: they use a fifth
of a core each. So five of them run for each core, the longest first. Suites that measure (ALONE) run last, one at a
time. The output of a suite is printed in one piece when the suite ends. At the end this program prints the slowest
tests, the names of the tests that failed, and the count of everything. How much of the cores the suites used says
whether less work or less waiting would make a run shorter.

Unit and end-to-end tests keep their files in memory (/dev/shm) where there is room: they end processes, not machines,
so no disk has to be waited for. Crash programs stay on the disk. TMPDIR names another folder for all of them. What an
end-to-end suite with a failure leaves behind is kept in BUILD/failed/SUITE.
"""
import atexit
import collections
import concurrent.futures
import glob
import os
import re
import shutil
import subprocess
import sys
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
PYTHON = "/usr/bin/python3"
CORES = len(os.sched_getaffinity(0))
LANES, UNIT_JOBS = 5 * CORES, min(16, 4 * CORES)
SLOWEST = 15
MEMORY, MEMORY_BYTES = "/dev/shm", 8 << 30  # bytes that must be free there; twice as many must be available in all
COUNT = re.compile(r"^(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$")
TOOK = re.compile(r"^took (\d+\.\d+) s(?:, (\d+\.\d+) s of CPU:)? (.+)$")
FAILED = re.compile(r"^(?:FAIL|(?:FAILED|ERROR)(?= \S+\.py)) (\S+)")  # as the unit tests' runner and pytest print it

# Every end-to-end file: the rooms whose change it should be run for, the seconds that it takes beside others on two
# cores (they only decide the order), and the groups of tools/setup that it needs besides "e2e".
E2E = {
    "api": ("api rest", 8, ""),
    "archive": ("archive", 280, "archive"),
    "archive_forge": ("archive", 250, "archive"),
    "archive_options": ("archive", 60, "archive"),
    "archive_satellites": ("archive route", 170, "archive"),
    "archive_kills": ("archive coord", 300, "archive"),
    "archive_giving": ("archive", 200, "archive"),
    "archive_zip": ("archive", 20, "archive"),
    "archive_bundles": ("archive object", 170, "archive"),
    "archive_fetch": ("archive http", 100, "archive"),
    "archive_hostile": ("archive http", 250, "archive"),
    "archive_hostile_options": ("archive http", 120, "archive"),
    "archive_memory": ("archive http", 120, "archive"),
    "backup": ("server db", 8, ""),
    "archive_processes": ("archive coord", 100, "archive"),
    "bad_days": ("replica copy", 100, "npm"),
    "clients": ("s3", 170, "clients npm"),
    "cluster_docs": ("server", 25, "cluster"),
    "commands": ("cli command", 5, ""),
    "config": ("conf", 5, ""),
    "diff": ("replica copy", 80, ""),
    "disks": ("object db", 40, ""),
    "failover": ("store replica", 25, ""),
    "in_sync": ("replica", 10, ""),
    "kv": ("kv", 15, ""),
    "lake_cli": ("lake cli", 40, ""),
    "lake_clients": ("lake api", 10, ""),
    "lake_collect": ("lake", 350, ""),
    "lake_copies": ("lake kv", 60, ""),
    "lake_days": ("lake kv", 30, ""),
    "lake_full": ("lake kv db", 40, ""),
    "lake_keeping": ("lake", 100, ""),
    "lake_kills": ("lake kv", 400, ""),
    "lake_limits": ("lake api s3", 25, ""),
    "lake_moves": ("lake cli", 80, ""),
    "lake_openapi": ("lake api rest", 30, ""),
    "lake_pair": ("lake kv coord", 30, ""),
    "lake_rest": ("lake api", 60, ""),
    "lake_rights": ("lake s3", 30, ""),
    "lake_s3": ("lake s3 route", 60, "clients"),
    "lifecycle": ("s3", 10, ""),
    "load": ("http", 60, ""),
    "make": ("server", 5, ""),
    "names": ("route s3", 5, ""),
    "notify": ("replica", 20, ""),
    "openapi": ("api rest", 45, "archive"),
    "operator": ("replica cli", 60, ""),
    "present_side": ("route coord", 60, ""),
    "redis": ("store", 10, ""),
    "remote": ("object", 30, "npm"),
    "replicate": ("replica", 25, ""),
    "s3_boto": ("s3", 8, ""),
    "s3_docs": ("s3", 2, ""),
    "s3_encryption": ("s3", 20, ""),
    "s3_logging": ("s3", 8, ""),
    "s3_notify": ("s3", 15, ""),
    "s3_tls": ("s3 http", 10, ""),
    "s3_website": ("s3", 5, ""),
    "scenarios": ("replica", 180, "npm"),
    "sentinel": ("store", 35, ""),
    "serve": ("server", 20, ""),
    "shard": ("shard s3 object", 60, ""),
    "shard_kills": ("shard object", 120, ""),
    "storage_names": ("route", 20, ""),
    "store_lost": ("store replica", 30, ""),
    "store_trouble": ("store", 10, ""),
    "swarm": ("swarm", 25, ""),
    "swarm_clients": ("swarm", 60, "swarm npm"),
    "swarm_docs": ("swarm", 1, ""),
    "swarm_load": ("swarm", 30, ""),
    "switch": ("replica coord", 125, ""),
    "switch_kills": ("replica coord", 70, ""),
    "switch_live": ("replica coord", 150, ""),
    "tasks": ("coord", 10, ""),
    "torrent": ("swarm s3", 25, "swarm"),
    "users": ("api meta", 15, ""),
}
CRASH_ROOMS = {"adopt": "object", "intent": "replica", "local": "object", "serve": "server s3", "tap": "replica",
               "replica-mixed": "replica", "lake-chaos": "lake", "shard-sim": "shard"}
ALONE = {"e2e-load", "e2e-swarm_load"}  # they judge times and memory under a full load


class Suite:
    def __init__(self, name, rooms, command, seconds=1, needs="e2e"):
        self.name, self.rooms, self.command = name, set(rooms.split()), command
        self.seconds, self.needs = seconds, set(needs.split())
        self.count, self.failed, self.took, self.lines, self.cpu_seconds = None, [], [], [], 0

    def matches(self, wanted):
        return self.name == wanted or self.name.startswith(wanted + "-") or wanted in self.rooms

    def run(self, build, folder):
        began = time.monotonic()
        if not self.is_quiet():
            print(f"-- {self.name}", flush=True)
        command, own = list(self.command), os.path.join(folder, self.name)
        env = dict(os.environ, WEIR_BUILD=build, TEST_TIMES="1")
        if self.keeps_files_in_memory():
            env["TMPDIR"] = folder
        if self.name.startswith("e2e-"):
            command += ["--basetemp", own]
            if folder.startswith(MEMORY + "/"):
                env["TESTS_IN_MEMORY"] = folder
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, env=env,
                                   errors="replace", cwd=ROOT)
        for line in process.stdout:
            self.hear(line)
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
        self.seconds, self.cpu_seconds = time.monotonic() - began, usage.ru_utime + usage.ru_stime
        self.judge(process.returncode)
        if self.count[1]:
            self.keep(own, os.path.join(build, "failed", self.name))
        shutil.rmtree(own, ignore_errors=True)

    def judge(self, status):
        if self.count is None or status != 0 and self.count[1] == 0:
            self.count = [0, 0, 0] if self.count is None else self.count
            self.count[1] += 1
            self.lines.append(f"{self.name} ended with status {status} and counted no failure\n")
        if self.count[1] and not self.failed:
            self.failed.append(f"{self.name} (status {status})")
        if not self.took:
            self.took.append((self.seconds, self.name))

    def keep(self, folder, kept):
        if os.path.isdir(folder):
            shutil.rmtree(kept, ignore_errors=True)
            os.makedirs(os.path.dirname(kept), exist_ok=True)
            subprocess.run(["cp", "-a", folder, kept], check=False, capture_output=True)
            self.lines.append(f"the files of {self.name} are kept in {kept}\n")

    def hear(self, line):
        if took := TOOK.match(line):
            cpu = f" ({took.group(2)} s of CPU)" if took.group(2) else ""
            self.took.append((float(took.group(1)), f"{self.name} {took.group(3)}{cpu}"))
            return
        self.lines.append(line)
        if found := COUNT.match(line.strip()):
            self.count = [int(n or 0) for n in found.groups()]
        if failed := FAILED.match(line):
            self.failed.append(f"{self.name} {failed.group(1)}")

    def keeps_files_in_memory(self):
        return self.name.startswith(("unit", "e2e-"))

    def is_quiet(self):
        return self.name.startswith("fuzz-") and not (self.count and self.count[1])

    def show(self):
        passed, failed, skipped = self.count
        said = "" if self.is_quiet() else f"== {self.name}\n" + "".join(self.lines)
        print(f"{said}== {self.name}: {passed} passed, {failed} failed, {skipped} skipped, {self.seconds:.0f} s, "
              f"{self.cpu_seconds:.0f} s of CPU", flush=True)


def folders_of(pattern):
    return {os.path.basename(path) for path in glob.glob(os.path.join(ROOT, pattern)) if os.path.isdir(path)}


def unit_suite(build, wanted):
    """All unit tests, or only those of the rooms that are wanted."""
    rooms = folders_of("tests/unit/*")
    names = {f"unit-{room}": room for room in rooms} | {room: room for room in rooms}
    chosen = [] if "unit" in wanted else sorted({names[w] for w in wanted if w in names})
    return Suite("unit", " ".join(names), [os.path.join(build, "tests/unit_tests"), "-t", "-j", str(UNIT_JOBS),
                                           *(room + "/" for room in chosen)], needs="unit")


def fuzz_suites(build):
    for source in sorted(glob.glob(os.path.join(ROOT, "tests/fuzz/*/*.c"))):
        name, room = os.path.basename(source)[:-2], os.path.basename(os.path.dirname(source))
        corpus = os.path.join(ROOT, "tests/fuzz/corpus", name)
        if os.path.isdir(corpus):
            yield Suite("fuzz-" + name, room, [os.path.join(build, "tests/fuzz_" + name), corpus], needs="")


def crash_suites(build):
    """A short version of what `make chaos` runs at full length. Each program prints its seed."""
    def suite(name, seconds, *command):
        return Suite("crash-" + name, CRASH_ROOMS.get(name, name), list(command), seconds)
    for source in sorted(glob.glob(os.path.join(ROOT, "tests/crash/*_crash.c"))):
        name = os.path.basename(source).removesuffix("_crash.c")
        yield suite(name, 15, os.path.join(build, "tests/crash", name + "_crash"), "--runs", "20")
    yield suite("lake-chaos", 20, os.path.join(build, "tests/crash/lake_chaos"), "--runs", "8")
    yield suite("shard-sim", 30, os.path.join(build, "tests/crash/shard_sim"), "--runs", "200", "--rules", "1000")
    yield suite("serve", 40, PYTHON, os.path.join(ROOT, "tests/crash/serve_crash.py"), build, "--runs", "10")
    chaos = [PYTHON, os.path.join(ROOT, "tests/crash/replica_chaos.py"), build, "--runs", "1", "--seconds", "15"]
    yield suite("replica", 60, *chaos, "--kind", "redis")
    yield suite("replica-mixed", 65, *chaos, "--setup", "mixed", "--kind", "sentinel,embedded")


def e2e_suites():
    folder = os.path.join(ROOT, "tests/e2e")
    files = {name[5:-3] for name in os.listdir(folder) if re.fullmatch(r"test_\w+\.py", name)}
    if files != E2E.keys():
        sys.exit(f"the table E2E of tests/run.py and the files of tests/e2e differ: {', '.join(sorted(files ^ E2E.keys()))}")
    for name, (rooms, seconds, needs) in E2E.items():
        yield Suite("e2e-" + name, rooms, [PYTHON, "-m", "pytest", "-q", "-p", "no:cacheprovider",
                                           os.path.join(folder, f"test_{name}.py")], seconds, "e2e " + needs)


def suites(build, wanted):
    """Those that are wanted (all when nothing is), in the order in which they are started."""
    diff = Suite("store-diff", "store", [os.path.join(build, "tests/store_diff"), "--shrink"], 60, needs="unit")
    every = [unit_suite(build, wanted), diff, *fuzz_suites(build), *crash_suites(build), *e2e_suites()]
    rooms = folders_of("src/*")
    unknown = [w for w in wanted if w not in rooms and not any(suite.matches(w) for suite in every)]
    if unknown:
        sys.exit(f"no such suite: {' '.join(unknown)}; there are {' '.join(s.name for s in every)}, and the rooms "
                 f"{' '.join(sorted(rooms))}")
    chosen = [suite for suite in every if not wanted or any(suite.matches(w) for w in wanted)]
    return sorted(chosen, key=lambda suite: (suite.name != "unit", suite.name in ALONE, -suite.seconds))


def folders_that_include(changed):
    """The folders of src/ and tests/unit with a file that includes a header of one of these folders."""
    include = re.compile(r'^#include "(?:unit/)?(?:' + "|".join(sorted(changed)) + r')/', re.M)
    found = set()
    for path in glob.glob(os.path.join(ROOT, "src/*/**/*.[ch]"), recursive=True) + glob.glob(
            os.path.join(ROOT, "tests/unit/*/**/*.[ch]"), recursive=True):
        room = os.path.relpath(path, ROOT).removeprefix("tests/unit/").removeprefix("src/").split("/")[0]
        if room not in found:
            with open(path, encoding="utf-8") as f:
                if include.search(f.read()):
                    found.add(room)
    return found


def units_of_changed(base):
    """The unit suites that a change since `base` concerns. All of them if nothing differs, or if something differs that
    belongs to no folder, such as the runner."""
    def git(*args):
        return subprocess.run(["git", *args], check=True, stdout=subprocess.PIPE, text=True, cwd=ROOT).stdout.splitlines()
    left = git("merge-base", base, "HEAD")[0]
    paths = git("diff", "--name-only", left) + git("ls-files", "--others", "--exclude-standard")
    sources = [path for path in paths if path.startswith(("src/", "tests/unit/", "tests/meson.build", "meson.build"))]
    rooms = {found[1] for path in sources if (found := re.match(r"(?:src|tests/unit)/(\w+)/", path))}
    if not sources or not all(re.match(r"(?:src|tests/unit)/\w+/|src/main\.c", path) for path in sources):
        return ["unit"]
    with_tests = folders_of("tests/unit/*")
    return ["unit-" + room for room in sorted((rooms | folders_that_include(rooms)) & with_tests)] if rooms else ["unit"]


class Report:
    """The counts [passed, failed, skipped] of all suites, the names of failed tests, and how long the tests took."""

    def __init__(self):
        self.lock, self.total, self.failed, self.took = threading.Lock(), [0, 0, 0], [], []
        self.seconds, self.began = collections.Counter(), time.monotonic()

    def add(self, suite):
        with self.lock:
            for i, n in enumerate(suite.count):
                self.total[i] += n
            self.failed += suite.failed
            self.took += suite.took
            self.seconds["wall"] += suite.seconds
            self.seconds["cpu"] += suite.cpu_seconds
            suite.show()

    def show(self):
        print(f"slowest {SLOWEST}:")
        for seconds, name in sorted(self.took, reverse=True)[:SLOWEST]:
            print(f"  {seconds:6.1f} s  {name}")
        if self.failed:
            print("failed:")
            for name in self.failed:
                print(f"  {name}")
        passed_s, cpu_s = time.monotonic() - self.began, self.seconds["cpu"]
        print(f"all suites together: {self.seconds['wall']:.0f} s, {cpu_s:.0f} s of CPU; the run: {passed_s:.0f} s, "
              f"{100 * cpu_s / passed_s / CORES:.0f} % of {CORES} cores")
        passed, failed, skipped = self.total
        print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)


def available_bytes():
    with open("/proc/meminfo", encoding="ascii") as f:
        return int(re.search(r"^MemAvailable:\s+(\d+) kB", f.read(), re.M).group(1)) << 10


def memory_is_enough():
    if not os.path.isdir(MEMORY) or not os.access(MEMORY, os.W_OK):
        return False
    space = os.statvfs(MEMORY)
    return space.f_bavail * space.f_frsize >= MEMORY_BYTES and available_bytes() >= 2 * MEMORY_BYTES


def test_folder():
    """A folder for the files of tests. It is named after this process, so that the next run can remove it if this one
    is killed."""
    parent = os.environ.get("TMPDIR") or (MEMORY if memory_is_enough() else "/tmp")
    for left in glob.glob(os.path.join(parent, "weir-test-*")):
        pid = left.rpartition("-")[2]
        if pid.isdigit() and not os.path.exists(f"/proc/{pid}"):
            shutil.rmtree(left, ignore_errors=True)
    folder = os.path.join(parent, f"weir-test-{os.getpid()}")
    os.mkdir(folder, 0o700)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    return folder


def main():
    first, *wanted = sys.argv[1:]
    if first == "--changed":
        base, first = wanted
        wanted = units_of_changed(base)
    if first == "--needs":
        needs = set().union(*(suite.needs for suite in suites("", wanted)))
        print(" ".join(sorted(needs)))
        return
    build, folder, report = os.path.abspath(first), test_folder(), Report()

    def run(suite):
        suite.run(build, folder)
        report.add(suite)
    chosen = suites(build, wanted)
    together = [suite for suite in chosen if suite.name != "unit" and suite.name not in ALONE]
    for suite in chosen:
        if suite.name == "unit":
            run(suite)
    with concurrent.futures.ThreadPoolExecutor(LANES) as lanes:
        list(lanes.map(run, together))
    for suite in chosen:
        if suite.name in ALONE:
            run(suite)
    report.show()
    sys.exit(1 if report.total[1] or not report.total[0] else 0)


if __name__ == "__main__":
    main()
