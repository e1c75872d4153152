"""What a measurement needs: a folder on a disk, processes that are ended again, their CPU and memory,
rounds in which the contenders take turns, and the arithmetic over them."""
import os
import random
import re
import shutil
import signal
import socket
import statistics
import subprocess
import tempfile
import time

TICK = os.sysconf("SC_CLK_TCK")
PAGE = os.sysconf("SC_PAGE_SIZE")


class Unmeasured(Exception):
    """A contender could not be started, or its load failed: there is no figure."""


class Measure:
    """One line of the result. `ratios` has one value a round; the figure is their median."""

    def __init__(self, name, ratios, ours="", peer="", unit="x", failed=None):
        self.name, self.ratios, self.ours, self.peer, self.unit = name, ratios, ours, peer, unit
        self.failed = failed  # why there is no figure
        self.bound = None  # ("<=" or ">=", limit), from the room's table

    @property
    def value(self):
        return statistics.median(self.ratios)

    @property
    def met(self):
        if self.failed is not None:
            return False
        if not self.bound:
            return True
        op, limit = self.bound
        return self.value <= limit if op == "<=" else self.value >= limit

    def line(self):
        bound = "none" if not self.bound else "%s%g" % self.bound
        value = "-" if self.failed is not None else f"{self.value:.3g}"
        return f"bench: {self.name} {value} bound {bound} {'ok' if self.met else 'MISS'}"


class Server:
    """A process under measurement; its children (nginx's workers) count as it."""

    def __init__(self, name, process):
        self.name, self.process, self.pid = name, process, process.pid

    def pids(self):
        found = [self.pid]
        for pid in found:
            try:
                with open(f"/proc/{pid}/task/{pid}/children") as f:
                    found += [int(child) for child in f.read().split()]
            except OSError:
                pass
        return found

    def cpu(self):
        """Seconds of user and system time so far, of all threads and of the children that have ended (a connection to
        PostgreSQL is a process). A child that ends meanwhile would be missed or counted twice, so then it looks again."""
        while True:
            before = self.pids()
            try:
                total = sum(map(self.ticks, before))
            except (FileNotFoundError, ProcessLookupError):
                continue
            if self.pids() == before:
                return total / TICK

    @staticmethod
    def ticks(pid):
        with open(f"/proc/{pid}/stat") as f:
            fields = f.read().rpartition(")")[2].split()
        return sum(map(int, fields[11:15]))

    def rss(self):
        """Bytes resident, added over the processes (shared pages count in each)."""
        total = 0
        for pid in self.pids():
            with open(f"/proc/{pid}/statm") as f:
                total += int(f.read().split()[1]) * PAGE
        return total


class Lab:
    def __init__(self, build, rounds, seconds, seed):
        self.build, self.rounds, self.seconds = build, rounds, seconds
        self.random = random.Random(seed)
        self.dir = tempfile.mkdtemp(prefix="bench-", dir=build)
        self.sockets = tempfile.mkdtemp(prefix="weir-bench-")  # the path of a socket may not be long
        self.servers = []

    def program(self, name):
        path = os.path.join(self.build, name)
        if not os.access(path, os.X_OK):
            raise Unmeasured(f"{name} is not built")
        return path

    def folder(self, name):
        path = os.path.join(self.dir, name)
        os.makedirs(path, exist_ok=True)
        return path

    def disk(self):
        """What the folder lies on: figures that fsync mean nothing on tmpfs."""
        device, kind, best = "?", "?", ""
        with open("/proc/mounts") as mounts:
            for source, point, fs, *_ in map(str.split, mounts):
                inside = os.path.join(self.dir, "").startswith(os.path.join(point, ""))
                if inside and len(point) >= len(best):
                    device, kind, best = source, fs, point
        return f"{kind} on {device}"

    def start(self, name, command, env=None):
        log = open(os.path.join(self.dir, name + ".log"), "w")
        process = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, cwd=self.dir)
        log.close()
        server = Server(name, process)
        self.servers.append(server)
        return server

    def output(self, server):
        with open(os.path.join(self.dir, server.name + ".log")) as log:
            return log.read()

    def wait(self, server, ready, seconds=20, pause=0.005):
        """Until ready() is true; a server that ends first is a failure with its output."""
        deadline = time.monotonic() + seconds
        while not (found := ready()):
            if server.process.poll() is not None or time.monotonic() > deadline:
                raise Unmeasured(f"{server.name} did not start: {self.output(server)[-400:].strip()}")
            time.sleep(pause)
        return found

    def stop(self, server):
        if server.process.poll() is None:
            server.process.send_signal(signal.SIGTERM)
            try:
                server.process.wait(20)
            except subprocess.TimeoutExpired:
                server.process.kill()
        server.process.wait()
        if server in self.servers:
            self.servers.remove(server)

    def stop_all(self):
        for server in list(self.servers):
            self.stop(server)

    def close(self):
        self.stop_all()
        shutil.rmtree(self.dir, ignore_errors=True)
        shutil.rmtree(self.sockets, ignore_errors=True)

    def run(self, command):
        """A load program's "name value" lines as a dict; one that fails or counts errors has no figure."""
        done = subprocess.run(command, capture_output=True, text=True, cwd=self.dir)
        figures = {}
        for line in done.stdout.splitlines():
            words = line.split()
            if len(words) == 2:
                try:
                    figures[words[0]] = float(words[1])
                except ValueError:
                    pass
        if done.returncode != 0 or figures.get("errors"):
            raise Unmeasured(f"{os.path.basename(command[0])} failed: {(done.stderr or done.stdout)[-300:].strip()}")
        if figures.get("seconds"):
            figures["rate"] = figures.get("ops", 0) / figures["seconds"]
        return figures

    def interleave(self, contenders, rounds=None):
        """contenders: name -> function that measures once and returns a dict. All are measured in each
        round, in random order, so that what the machine does meanwhile meets them alike."""
        results = {name: [] for name in contenders}
        for _ in range(rounds or self.rounds):
            order = list(contenders)
            self.random.shuffle(order)
            for name in order:
                results[name].append(contenders[name]())
        return results

    @staticmethod
    def served(server, load):
        """Runs the load against the server and adds what the server spent on it."""
        cpu = server.cpu()
        figures = load()
        figures["cpu"] = server.cpu() - cpu
        figures["rss"] = server.rss()
        return figures


def ratios(results, ours, peer, figure):
    return [a[figure] / b[figure] for a, b in zip(results[ours], results[peer])]


def best(results, peers, figure):
    """The peer with the highest median: the fairest to the other side."""
    return max(peers, key=lambda name: median(results, name, figure))


def median(results, name, figure):
    return statistics.median(one[figure] for one in results[name])


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def accepts(address):
    """Of a port on the loopback, or of the path of a unix socket."""
    unix = isinstance(address, str)
    with socket.socket(socket.AF_UNIX if unix else socket.AF_INET) as s:
        return s.connect_ex(address if unix else ("127.0.0.1", address)) == 0


def wrk_figures(text):
    """Requests, seconds and errors out of wrk's report."""
    total = re.search(r"(\d+) requests in ([\d.]+)(ms|s|m)", text)
    if not total or "Socket errors" in text or "Non-2xx" in text:
        raise Unmeasured("wrk: " + " ".join(text.split())[-200:])
    ops = int(total.group(1))
    rate = float(re.search(r"Requests/sec:\s+([\d.]+)", text).group(1))
    return {"ops": ops, "rate": rate, "seconds": ops / rate if rate else 0}
