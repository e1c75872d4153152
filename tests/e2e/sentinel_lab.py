"""A Redis master with replicas and sentinels, all real processes on loopback.

The servers have no configuration file that Sentinel could rewrite: a server that is started again does so as it was started
first, so a master that failed comes back as a master, the worst that weir can meet.
"""
import os
import signal
import subprocess

from conftest import free_port, wait_for

NAME = "main"
DOWN_AFTER_MS = 1000


class Process:
    """One redis-server, which may be a sentinel."""

    def __init__(self, group, folder, *args, config=None):
        folder.mkdir()
        self.group, self.folder, self.args, self.config = group, folder, args, config
        self.port, self.process = free_port(), None

    def start(self):
        ports = ("--port", "0", "--tls-port", self.port) if self.group.tls else ("--port", self.port)
        words = ["redis-server", *([self.config] if self.config else []), *ports, "--bind", "127.0.0.1", "--dir", self.folder,
                 *self.group.tls_args(), *self.args]
        with open(self.folder / "log", "a") as log:
            self.process = subprocess.Popen([str(w) for w in words], stdout=log, stderr=log)
        return self

    def signal(self, number):
        os.kill(self.process.pid, number)

    def kill(self):
        if self.process and self.process.poll() is None:
            self.signal(signal.SIGKILL)
            self.process.wait()

    def call(self, *words, database=0):
        """The answer by lines, as redis-cli prints it; [] when the server does not answer."""
        secret = self.group.sentinel_password if self.config else self.group.password
        done = subprocess.run(["redis-cli", "-p", str(self.port), "-n", str(database), *self.group.tls_args("cli"),
                               *map(str, words)], capture_output=True, text=True, timeout=60,
                              env={**os.environ, **({"REDISCLI_AUTH": secret} if secret else {})})
        return done.stdout.splitlines() if done.returncode == 0 else []

    def answers(self):
        assert self.process.poll() is None, (self.folder / "log").read_text()
        return self.call("PING") == ["PONG"]


class Group:
    """servers[0] is the first master. A write needs a replica (min-replicas-to-write), so two are needed to be able to lose
    the master."""

    def __init__(self, folder, replicas=2, sentinels=3, password=None, sentinel_password=None, tls=None, durable=False,
                 down_after_ms=DOWN_AFTER_MS):
        self.down_after_ms = down_after_ms
        self.folder, self.password, self.sentinel_password, self.tls = folder, password, sentinel_password, tls
        folder.mkdir()
        more = ["--save", "", "--repl-diskless-sync-delay", "0", "--min-replicas-to-write", min(replicas, 1), "--min-replicas-max-lag",
                "10", "--maxmemory-policy", "noeviction", "--appendonly", "yes" if durable else "no", "--appendfsync", "always"]
        if password:
            more += ["--requirepass", password, "--masterauth", password]
        self.servers = [Process(self, folder / f"server{n}", *more) for n in range(1 + replicas)]
        for replica in self.servers[1:]:
            replica.args = (*replica.args, "--replicaof", "127.0.0.1", self.servers[0].port)
        self.sentinels = [Process(self, folder / f"sentinel{n}", "--sentinel", config=folder / f"sentinel{n}.conf")
                          for n in range(sentinels)]
        try:
            self.start()
        except BaseException:
            self.kill()
            raise

    def tls_args(self, of="server"):
        if not self.tls:
            return []
        cert, key = self.tls
        if of == "cli":
            return ["--tls", "--cacert", str(cert)]
        return ["--tls-cert-file", cert, "--tls-key-file", key, "--tls-ca-cert-file", cert, "--tls-auth-clients", "no",
                "--tls-replication", "yes"]

    def start(self):
        for server in self.servers:
            server.start()
        for server in self.servers:
            wait_for(server.answers, "redis-server")
        if len(self.servers) > 1:
            wait_for(lambda: self.servers[0].call("SET", "started", 1) == ["OK"], "replicas")
        wait_for(lambda: self.servers[0].call("DEL", "started") and self.has_all(self.servers[0]), "the replicas to follow")
        for n in range(len(self.sentinels)):
            self.write_sentinel(n)
        for sentinel in self.sentinels:
            sentinel.start()
        for sentinel in self.sentinels:
            wait_for(sentinel.answers, "sentinel")

    def write_sentinel(self, n):
        """They know of each other and of the replicas from the start, which they would learn within seconds."""
        ids = [f"{i + 1:040x}" for i in range(len(self.sentinels))]
        lines = [f"sentinel monitor {NAME} 127.0.0.1 {self.servers[0].port} {len(self.sentinels) // 2 + 1}",
                 f"sentinel down-after-milliseconds {NAME} {self.down_after_ms}", f"sentinel failover-timeout {NAME} 5000",
                 f"sentinel myid {ids[n]}"]
        lines += [f"sentinel known-replica {NAME} 127.0.0.1 {s.port}" for s in self.servers[1:]]
        lines += [f"sentinel known-sentinel {NAME} 127.0.0.1 {s.port} {ids[i]}"
                  for i, s in enumerate(self.sentinels) if i != n]
        if self.password:
            lines.append(f"sentinel auth-pass {NAME} {self.password}")
        if self.sentinel_password:
            lines += [f"requirepass {self.sentinel_password}", f"sentinel sentinel-pass {self.sentinel_password}"]
        self.sentinels[n].config.write_text("\n".join(lines) + "\n")

    def url(self, login="", name=NAME, query=""):
        hosts = ",".join(f"127.0.0.1:{s.port}" for s in self.sentinels)
        return f"redis{'s' if self.tls else ''}+sentinel://{login}{hosts}/{name}{query}"

    def master(self, sentinel=0):
        """The server that the sentinel names."""
        told = self.sentinels[sentinel].call("SENTINEL", "GET-MASTER-ADDR-BY-NAME", NAME)
        return next((s for s in self.servers if told[1:] == [str(s.port)]), None)

    def fail_over(self, how=signal.SIGKILL):
        """The master ends or stops; returns it when another has taken its place."""
        old = self.master()
        old.kill() if how == signal.SIGKILL else old.signal(how)
        wait_for(lambda: self.master() not in (None, old), "a failover")
        return old

    def offset(self, server):
        """How much of the master's stream it has sent, or received."""
        return [line for line in server.call("INFO", "replication") if "master_repl_offset" in line]

    def has_all(self, master):
        """Every server has received what the master has sent: one that was just copied to gets the stream a second later."""
        return len({tuple(self.offset(s)) for s in (master, *self.servers) if s.process.poll() is None}) == 1

    def level(self):
        """Writes wait from now on, and the replicas have received all that was answered."""
        master = self.master()
        assert master.call("CLIENT", "PAUSE", 60000, "WRITE") == ["OK"]
        wait_for(lambda: self.has_all(master), "the replicas")

    def join(self, server):
        """It is started again, as a replica of the master."""
        self.start_as_replica(server)
        wait_for(lambda: self.has_all(self.master()), "the replica")

    def start_as_replica(self, server):
        server.args = (*server.args, "--replicaof", "127.0.0.1", self.master().port)
        server.start()

    def is_whole(self):
        """The master sends to all others what it is told."""
        master = self.master()
        told = master.call("INFO", "replication") if master else []
        return sum("state=online" in line for line in told) == len(self.servers) - 1

    def kill(self):
        for one in self.sentinels + self.servers:
            one.kill()
