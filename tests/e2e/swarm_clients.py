"""Real BitTorrent clients that know of each other by the tracker alone: no DHT that anybody answers, no local discovery, no
exchange of peers."""
import contextlib
import ctypes
import json
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import threading

import libtorrent as lt
from conftest import DEADLINE, free_port, wait_for

# A path like /<passkey>/announce on loopback is what ssrf_mitigation refuses; several peers have one address here.
QUIET = {"enable_dht": False, "enable_lsd": False, "enable_upnp": False, "enable_natpmp": False, "ssrf_mitigation": False,
         "allow_multiple_connections_per_ip": True, "announce_to_all_tiers": True, "announce_to_all_trackers": True,
         "stop_tracker_timeout": 60}  # seconds; a busy machine needs more than the usual 5 to say that it stops
ALONE = lt.torrent_flags.disable_dht | lt.torrent_flags.disable_lsd | lt.torrent_flags.disable_pex


def pattern(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


def make_torrent(path, trackers, flags=lt.create_torrent.v1_only):
    """Writes `path`.torrent, of the file at `path`."""
    storage = lt.file_storage()
    lt.add_files(storage, str(path))
    torrent = lt.create_torrent(storage, 0, flags)
    for tier, url in enumerate(trackers):
        torrent.add_tracker(url, tier)
    lt.set_piece_hashes(torrent, str(path.parent))
    made = path.with_name(path.name + ".torrent")
    made.write_bytes(lt.bencode(torrent.generate()))
    return made


def hash_of(torrent):
    """The info hash of version 1, 20 bytes."""
    return bytes.fromhex(str(lt.torrent_info(lt.bdecode(torrent.read_bytes())).info_hashes().v1))


def with_trackers(torrent, to, *trackers):
    """The same torrent with other trackers, one a tier, and without web seeds."""
    meta = lt.bdecode(torrent.read_bytes())
    meta.pop(b"url-list", None)
    meta[b"announce"] = trackers[0].encode()
    meta[b"announce-list"] = [[url.encode()] for url in trackers]
    to.write_bytes(lt.bencode(meta))
    return to


class Libtorrent:
    """A session with one torrent: a file, or a magnet link."""

    def __init__(self, torrent, folder, listen="127.0.0.1:0", **settings):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.session = lt.session({**QUIET, "listen_interfaces": listen, **settings})
        if str(torrent).startswith("magnet:"):
            params = lt.parse_magnet_uri(torrent)
        else:
            params = lt.add_torrent_params()
            params.ti = lt.torrent_info(lt.bdecode(torrent.read_bytes()))
        params.save_path = str(folder)
        params.flags |= ALONE
        self.handle = self.session.add_torrent(params)

    @property
    def status(self):
        return self.handle.status()

    def wait_seeding(self):
        wait_for(lambda: self.status.is_seeding, f"libtorrent in {self.folder.name}: {self.status.state}")

    def stop(self):
        """The torrent leaves the swarm; its tracker is told."""
        self.handle.unset_flags(lt.torrent_flags.auto_managed)
        self.handle.pause()


class Program:
    """A client that is a process, ended by its pid."""

    def __init__(self, args, folder):
        folder.mkdir(exist_ok=True)
        self.folder, self.log = folder, folder / "log"
        with open(self.log, "wb") as out:
            self.process = subprocess.Popen([str(a) for a in args], stdin=subprocess.DEVNULL, stdout=out, stderr=out)

    def wait_file(self, name, body):
        """Until the file is there as a whole; the process may have ended by then, but not with a failure."""
        path = self.folder / name

        def is_there():
            ended = self.process.poll()
            found = path.exists() and path.stat().st_size == len(body) and path.read_bytes() == body
            assert found or ended is None, self.log.read_text(errors="replace")[-2000:]
            return found
        wait_for(is_there, f"{self.process.args[0]} in {self.folder.name}")

    def stop(self, number=signal.SIGINT):
        """These programs tell their trackers that they go upon this signal, and no other."""
        if self.process.poll() is None:
            os.kill(self.process.pid, number)
        return self.process.wait(timeout=DEADLINE)

    def kill(self):
        self.stop(signal.SIGKILL)


def aria2(torrent, folder, *args):
    """Its UDP trackers are asked by its DHT's socket, so that is on, without anybody to ask."""
    return Program(["aria2c", "--no-conf", "--enable-dht=true", "--enable-dht6=false", "--dht-listen-port", free_port(),
                    "--dht-file-path", folder / "dht.dat", "--bt-enable-lpd=false", "--enable-peer-exchange=false",
                    "--listen-port", free_port(), "--dir", folder, "--file-allocation=none", "--summary-interval=0",
                    *args, torrent], folder)


def transmission(torrent, folder, *args):
    config = folder / "config"
    config.mkdir(parents=True)
    (config / "settings.json").write_text(json.dumps({
        "dht-enabled": False, "lpd-enabled": False, "pex-enabled": False, "utp-enabled": False, "rpc-enabled": False}))
    return Program(["transmission-cli", "--config-dir", config, "--download-dir", folder, "--port", free_port(), "--no-portmap",
                    *args, torrent], folder)


# --- networks ---


class Refused(Exception):
    """The machine does not let us make a network."""


def _ip(*args):
    if not shutil.which("ip"):
        raise Refused("there is no ip")
    done = subprocess.run(["ip", *args], capture_output=True, text=True, timeout=DEADLINE, check=False)
    if done.returncode:
        raise Refused(f"ip {' '.join(args)}: {done.stderr.strip()}")


@contextlib.contextmanager
def two_networks():
    """The names of two network namespaces, 192.0.2.1 and 192.0.2.2, with a cable between them."""
    names = [f"weir-{os.getpid()}-{side}" for side in (1, 2)]
    made = []
    try:
        for name in names:
            _ip("netns", "add", name)
            made.append(name)
            _ip("-n", name, "link", "set", "lo", "up")
        _ip("-n", names[0], "link", "add", "cable", "type", "veth", "peer", "name", "cable", "netns", names[1])
        for number, name in enumerate(names, 1):
            _ip("-n", name, "addr", "add", f"192.0.2.{number}/24", "dev", "cable")
            _ip("-n", name, "link", "set", "cable", "up")
            _ip("-n", name, "route", "add", "default", "dev", "cable")
        yield names
    finally:
        for name in made:
            _ip("netns", "del", name)


def inside(name, work):
    """What work() returns, run by a thread in the network namespace `name`. Sockets, threads and processes that it makes
    stay there."""
    result = []

    def enter():
        libc = ctypes.CDLL(None, use_errno=True)
        with open(f"/run/netns/{name}", "rb") as namespace:
            if libc.setns(namespace.fileno(), 0x40000000):  # CLONE_NEWNET
                result.append((None, OSError(ctypes.get_errno(), "setns")))
                return
        try:
            result.append((work(), None))
        except BaseException as error:  # pylint: disable=broad-except; it is raised again by the caller
            result.append((None, error))
    thread = threading.Thread(target=enter)
    thread.start()
    thread.join()
    value, error = result[0]
    if error:
        raise error
    return value


# --- the tracker's side ---


def own_udp():
    """An address on loopback that no other test's tracker has: libtorrent keeps connection ids for a minute by address without
    port, for all sessions of a process, and would show another tracker's."""
    return "--tracker.udp", "127.{}.{}.{}:0".format(*(random.randrange(1, 255) for _ in range(3)))


def urls(server):
    """{"http": announce URL, "udp": announce URL} of a server's tracker."""
    http = re.search(r"^  tracker (http://\S+)$", server.out, re.M)
    udp = re.search(r"^  tracker (udp://\S+)$", server.out, re.M)
    return {"http": http and http.group(1), "udp": udp and udp.group(1) + "/announce"}


def redis_ask(redis, *command, database=4):
    """What a Redis answers to one command, as bytes, numbers and lists."""
    def packed(args):
        args = [arg if isinstance(arg, bytes) else str(arg).encode() for arg in args]
        return b"*%d\r\n" % len(args) + b"".join(b"$%d\r\n%s\r\n" % (len(arg), arg) for arg in args)

    def read(stream):
        line = stream.readline()
        kind, rest = line[:1], line[1:-2]
        assert kind in b"+:$*" and line.endswith(b"\r\n"), line
        if kind == b"+":
            return rest
        number = int(rest)
        if kind == b":" or number < 0:
            return number if kind == b":" else None
        if kind == b"*":
            return [read(stream) for _ in range(number)]
        return stream.read(number + 2)[:-2]
    with socket.create_connection(("127.0.0.1", redis.port), DEADLINE) as s, s.makefile("rb") as stream:
        s.sendall(packed(["SELECT", database]) + packed(command))
        assert read(stream) == b"OK"
        return read(stream)


def redis_hash(redis, key):
    flat = redis_ask(redis, "HGETALL", key)
    return {name.decode(): value for name, value in zip(flat[::2], flat[1::2])}
