"""docs/cluster.md as it stands: each of its blocks is run, in order, on machines that are folders and addresses of loopback.

A block says in its first line what it is: "sh MACHINE..." are commands, "LANGUAGE MACHINE,...:/path" is a file. 10.0.0.N
becomes 127.x.y.N, so that every port is as on the page; /etc and the like become folders of the machine. What a block calls
of the machine (systemctl, ssh, scp, apt-get, chown) is played by scripts; redis-server, haproxy, aws and weir are real.
"""
import os
import random
import re
import signal
import stat
import subprocess

import boto3
import pytest
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

from conftest import DEADLINE, ROOT, WEIR, check_sanitizers, clean_env, wait_for

MACHINES = {"lb": 10, "redis1": 11, "redis2": 12, "redis3": 13, "gateway1": 21, "gateway2": 22, "worker1": 31, "worker2": 32,
            "paris": 41, "lyon": 42}
BLOCK = re.compile(r"^```(\w+) ([^\n]+)\n(.*?)^```$", re.M | re.S)
ALICE = ("ALICEACCESSKEY", "alice-secret-key")

# Started by systemctl: as the packages' units do, and weir as the block's own unit says.
SYSTEMCTL = r"""#!/usr/bin/python3
import os, re, signal, subprocess, sys, time
root, lab = os.environ["MACHINE_ROOT"], os.environ["LAB"]
words = {"redis-server": ["redis-server", root + "/etc/redis/redis.conf"],
         "redis-sentinel": ["redis-server", root + "/etc/redis/sentinel.conf", "--sentinel"],
         "haproxy": ["haproxy", "-db", "-f", root + "/etc/haproxy/haproxy.cfg"]}
if sys.argv[1] == "restart":
    for unit in sys.argv[2:]:
        env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_")}
        if unit == "weir":
            lines = open(root + "/etc/systemd/system/weir.service.d/role.conf").read()
            words["weir"] = re.findall(r"^ExecStart=(.*)$", lines, re.M)[-1].split()
            assert "\nExecStart=\n" in lines  # without it systemd has two
            env.update(line.split("=", 1) for line in open(root + "/etc/weir/weir.env").read().splitlines())
        path = f"{lab}/pids/{os.path.basename(root)}.{unit}"
        if os.path.exists(path):
            os.kill(int(open(path).read()), signal.SIGKILL)
        with open(f"{root}/{unit}.log", "a") as log:
            process = subprocess.Popen(words[unit], stdout=log, stderr=log, stdin=subprocess.DEVNULL, env=env, cwd=root,
                                       start_new_session=True)
        open(path, "w").write(str(process.pid))
"""
SSH = """#!/bin/bash
to=${1#root@}; shift
exec bash -ec "${*//$MACHINE_ROOT\\//$LAB/${to##*.}/}"
"""
SCP = """#!/bin/bash
to=${3#root@}; host=${to%%:*}
exec cp -p "$2" "$LAB/${host##*.}${to#*:}"
"""


class Cluster:
    def __init__(self, folder):
        self.folder, self.network = folder, f"127.{random.randrange(1, 250)}.{random.randrange(1, 250)}."
        for name, text in (("systemctl", SYSTEMCTL), ("ssh", SSH), ("scp", SCP), ("apt-get", "#!/bin/sh\n"),
                           ("chown", "#!/bin/sh\n")):
            path = folder / "bin" / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        (folder / "pids").mkdir()
        for number in MACHINES.values():
            for part in ("etc", "tmp", "var/lib/redis", "usr/local/bin"):
                (folder / str(number) / part).mkdir(parents=True)
            (folder / str(number) / "usr/local/bin/weir").symlink_to(WEIR)

    def root(self, machine):
        return self.folder / str(MACHINES[machine])

    def address(self, machine):
        return f"{self.network}{MACHINES[machine]}"

    def translate(self, text, machine):
        text = re.sub(r"(?<![\w./:])/(etc|var/lib|tmp|usr/local/bin)/", rf"{self.root(machine)}/\1/", text)
        text = text.replace("weir 5000", "weir 1000")  # a test waits less long for a failover
        return text.replace("ADDRESS", self.address(machine)).replace("10.0.0.", self.network)

    def write(self, machine, path, text):
        whole = self.root(machine) / path.lstrip("/")
        whole.parent.mkdir(parents=True, exist_ok=True)
        whole.write_text(self.translate(text, machine))

    def run(self, machine, text):
        env = clean_env(LAB=str(self.folder), MACHINE_ROOT=str(self.root(machine)), HOME=str(self.root(machine)),
                        PATH=f"{self.folder}/bin:{self.root(machine)}/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin")
        done = subprocess.run(["bash", "-eu", "-c", self.translate(text, machine)], capture_output=True, text=True,
                              timeout=DEADLINE, env=env, cwd=self.root(machine))
        assert done.returncode == 0, f"on {machine}:\n{text}\n{done.stdout}{done.stderr}\n{self.logs()}"
        return done.stdout

    def page(self, text):
        """All blocks, in order."""
        blocks = BLOCK.findall(text)
        assert len(blocks) == len(re.findall(r"^```\w", text, re.M))
        for language, where, body in blocks:
            if language == "sh":
                for machine in where.split():
                    self.run(machine, body)
            else:
                machines, path = where.split(":")
                for machine in machines.split(","):
                    self.write(machine, path, body)

    def storages(self):
        """Two S3 services, which the page asks for: weirs of their own."""
        for machine in ("paris", "lyon"):
            self.write(machine, "/etc/weir/weir.env",
                       f"WEIR_ACCESS_KEY={machine.upper()}-KEY\nWEIR_SECRET_KEY={machine.upper()}-SECRET\n")
            self.write(machine, "/etc/systemd/system/weir.service.d/role.conf",
                       "[Service]\nExecStart=\nExecStart=/usr/local/bin/weir serve --only gateway --data /var/lib/weir "
                       "--s3.listen ADDRESS:9000 --api.listen ADDRESS:9001\n")
            self.run(machine, "systemctl restart weir")

    def kill(self, machine, unit, number=signal.SIGKILL):
        path = self.folder / "pids" / f"{MACHINES[machine]}.{unit}"
        os.kill(int(path.read_text()), number)
        path.unlink()

    def logs(self):
        return "".join(f"--- {p}\n{p.read_text()[-1500:]}" for p in sorted(self.folder.glob("*/weir.log")))

    def end(self):
        for path in (self.folder / "pids").iterdir():
            try:
                os.kill(int(path.read_text()), signal.SIGKILL)
            except ProcessLookupError:
                pass
        check_sanitizers(self.logs())


@pytest.fixture
def cluster(tmp_path):
    made = Cluster(tmp_path)
    yield made
    made.end()


def client(cluster, machine, keys=ALICE):
    return boto3.client("s3", endpoint_url=f"http://{cluster.address(machine)}:9000", aws_access_key_id=keys[0],
                        aws_secret_access_key=keys[1], region_name="us-east-1",
                        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, connect_timeout=5,
                                      read_timeout=20))


def put(s3, key):
    """Whether it was answered; what fails meanwhile is 503, or a connection that was cut off."""
    try:
        s3.put_object(Bucket="photos", Key=key, Body=key.encode())
        return True
    except ClientError as e:
        assert e.response["ResponseMetadata"]["HTTPStatusCode"] in (502, 503), e
    except BotoCoreError:
        pass
    return False


def test_the_page_leads_from_nothing_to_a_cluster_that_survives_what_it_says(cluster):
    cluster.storages()
    cluster.page((ROOT / "docs/cluster.md").read_text())
    assert stat.S_IMODE((cluster.root("worker2") / "var/lib/weir/secrets.key").stat().st_mode) == 0o600
    assert client(cluster, "lyon", ("LYON-KEY", "LYON-SECRET")).get_object(
        Bucket="photos", Key="hello.txt")["Body"].read() == b"hello\n"
    s3, there = client(cluster, "lb"), client(cluster, "lyon", ("LYON-KEY", "LYON-SECRET"))

    def is_copied(key):
        return key in {o["Key"] for o in there.list_objects_v2(Bucket="photos")["Contents"]}

    # A gateway and the master of Redis fail; each time alice goes on through the balancer.
    cluster.kill("gateway1", "weir")
    wait_for(lambda: put(s3, "without-gateway1"), "the other gateway")
    wait_for(lambda: is_copied("without-gateway1"), "the copy")
    cluster.kill("redis1", "redis-server")
    wait_for(lambda: put(s3, "after-the-failover"), "the new master")
    log = (cluster.root("gateway2") / "weir.log").read_text()
    assert re.findall(r"store\.redis\.master host=(\S+)", log)[-1] in (cluster.address("redis2"), cluster.address("redis3"))
    assert s3.get_object(Bucket="photos", Key="without-gateway1")["Body"].read() == b"without-gateway1"
    cluster.run("redis1", "systemctl restart redis-server")
    cluster.run("gateway1", "systemctl restart weir")
    wait_for(lambda: is_copied("after-the-failover"), "the copy")
