"""Other servers that speak S3, each started in a folder of its own: s3rver from npm, Ceph's RGW from Debian."""
import os
import shutil
import subprocess
import uuid

from lab import Unmeasured, accepts, free_port
from s3_client import Endpoint, Keys

ROOT = os.path.abspath(os.path.join(os.path.dirname(__file__), "../.."))
S3RVER = os.path.join(ROOT, "build/npm/node_modules/s3rver/bin/s3rver.js")
RGW_KEYS = Keys("benchbenchbenchbench", "benchsecretbenchsecretbenchsecretbenchse")

CEPH = """
[global]
fsid = {fsid}
mon host = [v2:127.0.0.1:{mon}/0,v1:127.0.0.1:{mon_v1}/0]
public network = 127.0.0.0/8
ms bind ipv6 = false
auth cluster required = none
auth service required = none
auth client required = none
run dir = {dir}
admin socket = {sockets}/$name.asok
log file = {dir}/$name.log
crash dir = {dir}
pid file = {dir}/$name.pid
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 8
osd pool default pgp num = 8
osd pool default pg autoscale mode = off
osd crush chooseleaf type = 0
mon allow pool size one = true
mon max pg per osd = 5000
mon data avail crit = 1
mon data avail warn = 2
[mon]
mon data = {dir}/mon
auth allow insecure global id reclaim = true
[osd]
osd data = {dir}/osd
osd objectstore = bluestore
osd memory target = 1073741824
bluestore block size = 10737418240
osd class load list = *
osd class default list = *
[client.rgw.a]
ms mon client mode = crc
auth client required = none
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {dir}/rgw
rgw thread pool size = 128
rgw override bucket index max shards = 1
debug rgw = 0/0
"""


def install(task, *paths):
    """What only this peer needs, when it is wanted."""
    if not all(shutil.which(path) or os.path.exists(path) for path in paths):
        done = subprocess.run(["tools/setup", task], capture_output=True, text=True, cwd=ROOT)
        if done.returncode != 0:
            raise Unmeasured(f"tools/setup {task}: {(done.stderr or done.stdout)[-200:].strip()}")


def start_s3rver(lab):
    install("npm", "node", S3RVER)
    port = free_port()
    server = lab.start("s3rver", ["node", S3RVER, "-d", lab.folder("s3rver"), "-a", "127.0.0.1", "-p", str(port), "-s"])
    lab.wait(server, lambda: accepts(port))
    return Endpoint(server, port, Keys("S3RVER", "S3RVER"))


class Rgw:
    """A monitor, one OSD on a file of the same disk, and a gateway; none in the background."""

    def __init__(self, lab):
        install("rgw", "ceph", "ceph-mon", "ceph-osd", "radosgw", "radosgw-admin", "monmaptool")
        self.lab, self.dir = lab, lab.folder("rgw")
        for part in ("mon", "osd", "rgw"):
            os.makedirs(os.path.join(self.dir, part), exist_ok=True)
        self.port, self.mon = free_port(), free_port()
        self.conf = os.path.join(self.dir, "ceph.conf")
        self.fsid = str(uuid.uuid4())
        with open(self.conf, "w") as f:
            f.write(CEPH.format(fsid=self.fsid, mon=self.mon, mon_v1=free_port(), dir=self.dir, port=self.port,
                                sockets=lab.sockets))

    def run(self, *command, seconds=120):
        try:
            done = subprocess.run(command, capture_output=True, text=True, cwd=self.dir, timeout=seconds)
        except subprocess.TimeoutExpired:
            raise Unmeasured(f"{command[0]} took more than {seconds} s") from None
        if done.returncode != 0:
            raise Unmeasured(f"{' '.join(command[:3])}: {(done.stderr or done.stdout)[-300:].strip()}")
        return done.stdout

    def ceph(self, *words):
        return self.run("ceph", "-c", self.conf, "--connect-timeout", "20", *words)

    def is_up(self):
        try:
            return "1 up" in self.ceph("osd", "stat")
        except Unmeasured:
            return False

    def start(self):
        addresses = f"[v2:127.0.0.1:{self.mon},v1:127.0.0.1:{self.mon + 1}]"
        self.run("monmaptool", "--create", "--clobber", "--fsid", self.fsid, "--addv", "a", addresses, "monmap")
        self.run("ceph-mon", "-c", self.conf, "--mkfs", "-i", "a", "--monmap", "monmap")
        monitor = self.lab.start("ceph-mon", ["ceph-mon", "-f", "-c", self.conf, "-i", "a"])
        self.lab.wait(monitor, lambda: accepts(self.mon), 60)
        osd_id = str(uuid.uuid4())
        self.ceph("osd", "new", osd_id)
        self.run("ceph-osd", "-c", self.conf, "-i", "0", "--mkfs", "--osd-uuid", osd_id)
        self.osd = self.lab.start("ceph-osd", ["ceph-osd", "-f", "-c", self.conf, "-i", "0"])
        self.lab.wait(self.osd, self.is_up, 120)
        self.run("radosgw-admin", "-c", self.conf, "user", "create", "--uid", "bench", "--display-name", "bench",
                 "--access-key", RGW_KEYS.access, "--secret", RGW_KEYS.secret)
        gateway = self.lab.start("radosgw", ["radosgw", "-f", "-c", self.conf, "-n", "client.rgw.a"])
        self.lab.wait(gateway, lambda: accepts(self.port), 120)
        return Endpoint(gateway, self.port, RGW_KEYS)


def start_rgw(lab):
    return Rgw(lab).start()
