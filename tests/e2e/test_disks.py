"""Disks that are gone, full or damaged."""
import json
import os
import pathlib
import signal
import socket
import subprocess

import botocore.exceptions
import pytest

from conftest import BUILD, WEIR, wait_for


def refused(call, **arguments):
    """The status and the error that an S3 call was answered with."""
    with pytest.raises(botocore.exceptions.ClientError) as caught:
        call(**arguments)
    answer = caught.value.response
    return answer["ResponseMetadata"]["HTTPStatusCode"], answer.get("Error", {})


class Disks:
    """A weir with the storage disk2 beside its own, and a bucket on each."""

    def __init__(self, serve, weir, folder):
        self.serve, self.weir, self.folder, self.away = serve, weir, folder / "disk2", folder / "away"
        self.server = serve().ready()
        self.run("storage", "add", "disk2", self.folder)
        self.run("bucket", "route", "there", "disk2", "--user", "root")
        for bucket in ("here", "there"):
            self.s3.create_bucket(Bucket=bucket)
            self.s3.put_object(Bucket=bucket, Key="k", Body=b"x" * 100000)

    @property
    def s3(self):
        return self.server.s3()

    def run(self, *args, status=0):
        done = self.weir(*args, "--data", self.server.data, "--url", self.server.url)
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def restart(self):
        assert self.server.stop() == 0
        self.server = self.serve(data=self.server.data).ready()

    def restart_without(self):
        assert self.server.stop() == 0
        self.folder.rename(self.away)
        self.server = self.serve(data=self.server.data).ready()

    def states(self):
        rows = json.loads(self.run("storage", "list", "--json"))
        return {row["name"]: row["state"] for row in rows}


@pytest.fixture
def disks(serve, weir, tmp_path):
    return Disks(serve, weir, tmp_path)


def test_a_disk_that_is_gone_keeps_nothing_else_from_being_served(disks):
    disks.restart_without()
    s3 = disks.s3
    assert s3.get_object(Bucket="here", Key="k")["Body"].read() == b"x" * 100000
    s3.put_object(Bucket="here", Key="k2", Body=b"y")
    for call, more in ((s3.get_object, {"Key": "k"}), (s3.put_object, {"Key": "k", "Body": b"z"}),
                       (s3.delete_object, {"Key": "k"}), (s3.list_objects_v2, {}), (s3.delete_bucket, {})):
        status, error = refused(call, Bucket="there", **more)
        assert (status, error["Code"]) == (503, "ServiceUnavailable") and "disk" in error["Message"], error
    assert refused(s3.head_bucket, Bucket="nowhere")[0] == 404
    assert {b["Name"] for b in s3.list_buckets()["Buckets"]} == {"here", "there"}
    assert disks.states() == {"local": "", "disk2": "missing"}
    ready = disks.server.get("/readyz")
    assert ready.status == 503 and json.loads(ready.body)["parts"]["storage.disk2"] == "failed"
    assert json.loads(ready.body)["parts"]["storage.local"] == "ok"
    assert "local.missing" in disks.server.err and "is the disk mounted?" in disks.server.err
    disks.run("storage", "scrub", "disk2", status=1)


def test_a_disk_that_comes_back_is_taken_into_service(disks):
    disks.restart_without()
    assert refused(disks.s3.get_object, Bucket="there", Key="k")[0] == 503
    disks.away.rename(disks.folder)
    wait_for(lambda: disks.states()["disk2"] == "", "the disk to be found")
    s3 = disks.s3
    assert s3.get_object(Bucket="there", Key="k")["Body"].read() == b"x" * 100000
    s3.put_object(Bucket="there", Key="k2", Body=b"y" * 100000)
    wait_for(lambda: disks.server.get("/readyz").status == 200, "/readyz")
    disks.run("storage", "scrub", "disk2")
    disks.restart()
    assert disks.s3.get_object(Bucket="there", Key="k2")["Body"].read() == b"y" * 100000


def test_the_folder_of_another_storage_is_not_taken(disks, tmp_path):
    other = disks.serve().ready()
    done = disks.weir("storage", "add", "disk2", tmp_path / "other", "--data", other.data, "--url", other.url)
    assert done.returncode == 0, done.stderr
    assert other.stop() == 0
    disks.restart_without()
    (tmp_path / "other").rename(disks.folder)
    def looked():
        return "of another storage" in disks.run("storage", "test", "disk2", status=1)
    wait_for(looked, "a look at the folder")
    assert disks.states()["disk2"] == "missing"
    assert disks.server.stop() == 0
    disks.server = disks.serve(data=disks.server.data).ready()
    assert "is of another storage" in disks.server.err
    assert disks.states()["disk2"] == "missing"
    assert refused(disks.s3.get_object, Bucket="there", Key="k")[0] == 503


def test_a_local_storage_is_removed_only_when_nothing_needs_it(disks):
    disks.restart_without()
    assert "routing policy" in disks.run("storage", "remove", "disk2", status=1)
    for force in ((), ("--force",)):  # which does not help
        said = disks.run("storage", "remove", "local", *force, status=1)
        assert "data folder" in said and "force" not in said
    disks.run("storage", "remove", "disk2", "--force")
    assert disks.states() == {"local": ""}
    wait_for(lambda: disks.server.get("/readyz").status == 200, "/readyz")
    disks.restart()
    assert disks.states() == {"local": ""} and "missing" not in disks.server.err
    assert (disks.away / "FORMAT").exists()
    assert disks.s3.get_object(Bucket="here", Key="k")["Body"].read() == b"x" * 100000


def test_an_empty_local_storage_is_removed_while_it_is_there(disks, tmp_path):
    disks.run("storage", "add", "disk3", tmp_path / "disk3")
    disks.run("bucket", "route", "later", "disk3", "--user", "root")
    assert "routing policy" in disks.run("storage", "remove", "disk3", status=1)
    disks.run("bucket", "route", "later", "--remove", "--user", "root")
    disks.run("replicate", "add", "here", "disk3", "--watch")
    assert "disk3" in disks.states()
    disks.run("storage", "remove", "disk3", status=1)
    disks.run("storage", "remove", "disk3", "--force")
    assert disks.states() == {"local": "", "disk2": ""}
    assert (tmp_path / "disk3" / "FORMAT").exists()
    assert "not empty" in disks.run("storage", "add", "disk3", tmp_path / "disk3", status=1)


def test_the_own_storage_of_the_data_folder_is_needed(disks, serve):
    assert disks.server.stop() == 0
    (disks.server.data / "objects").rename(disks.away)
    again = serve(data=disks.server.data)
    assert again.wait() == 2
    assert "is the disk mounted?" in again.err and again.err.count("\n") == 1


# --- a full disk ---

MIB = 1 << 20


class SmallDisk:
    """A small file system of its own, in a mount namespace that lives as long as this, and a weir with its data there."""
    KEYS = ("AKIDSMALLDISK", "of-the-small-disk")

    def __init__(self, serve, folder, size="400m"):
        self.serve, mount = serve, folder / "small"
        mount.mkdir()
        script = f"mount --make-rprivate / && mount -t tmpfs -o size={size} none {mount} && echo mounted && exec cat"
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        if self.holder.stdout.readline() != "mounted\n":
            pytest.skip("needs root to mount a small file system")
        self.binary = folder / "weir-on-a-small-disk"
        self.binary.write_text(f'#!/bin/sh\nexec nsenter -t {self.holder.pid} -m {WEIR} "$@"\n')
        self.binary.chmod(0o755)
        self.data = mount / "data"
        self.path = pathlib.Path(f"/proc/{self.holder.pid}/root{mount}")
        self.filler = self.path / "filler"

    def start(self):
        access, secret = self.KEYS
        self.server = self.serve(data=self.data, binary=self.binary,
                                 env={"WEIR_ACCESS_KEY": access, "WEIR_SECRET_KEY": secret})
        return self.server

    @property
    def s3(self):
        return self.server.s3(keys=self.KEYS)

    def free(self):
        fs = os.statvfs(self.path)
        return fs.f_bavail * fs.f_frsize

    def fill(self, leave):
        """Somebody else takes what is free."""
        with open(self.filler, "ab", buffering=0) as f:
            try:
                while self.free() > leave:
                    f.write(bytes(min(MIB, max(4096, self.free() - leave))))
            except OSError:
                assert self.free() == 0

    def end(self):
        self.holder.stdin.close()
        self.holder.wait()


@pytest.fixture
def small(serve, tmp_path):
    disk = SmallDisk(serve, tmp_path)
    yield disk
    disk.end()


BODY = b"b" * MIB


@pytest.fixture
def small_with_objects(small):
    small.start().ready()
    small.s3.create_bucket(Bucket="full")
    for i in range(8):
        small.s3.put_object(Bucket="full", Key=f"k{i}", Body=BODY)
    return small


def test_removals_go_on_when_the_disk_is_full(small_with_objects):
    small = small_with_objects
    s3 = small.s3
    upload = s3.create_multipart_upload(Bucket="full", Key="u")["UploadId"]
    s3.upload_part(Bucket="full", Key="u", UploadId=upload, PartNumber=1, Body=BODY)
    for i, leave in enumerate((40 * MIB, 0)):
        small.fill(leave)
        assert refused(s3.put_object, Bucket="full", Key="new", Body=b"x")[0] == 507
        assert s3.get_object(Bucket="full", Key="k7")["Body"].read() == BODY
        s3.delete_object(Bucket="full", Key=f"k{2 * i}")
        assert not s3.delete_objects(Bucket="full", Delete={"Objects": [{"Key": f"k{2 * i + 1}"}]}).get("Errors")
    s3.abort_multipart_upload(Bucket="full", Key="u", UploadId=upload)
    assert [o["Key"] for o in s3.list_objects_v2(Bucket="full")["Contents"]] == ["k4", "k5", "k6", "k7"]
    small.filler.unlink()
    s3.put_object(Bucket="full", Key="new", Body=BODY)
    assert small.server.stop() == 0


def test_a_full_disk_is_started_on_and_stopped_on(small_with_objects):
    small = small_with_objects
    small.fill(0)
    assert small.server.stop() == 0, small.server.err
    small.fill(8 * MIB)
    small.start().ready()
    s3 = small.s3
    assert s3.get_object(Bucket="full", Key="k7")["Body"].read() == BODY
    s3.delete_object(Bucket="full", Key="k0")
    assert refused(s3.put_object, Bucket="full", Key="new", Body=b"x")[0] == 507
    assert small.server.stop() == 0, small.server.err


def test_a_start_without_any_room_says_so(small_with_objects):
    small = small_with_objects
    small.server.process.kill()
    small.server.wait()
    (small.path / "data/db/ballast").unlink()
    small.fill(0)
    refused_start = small.start()
    assert refused_start.wait() == 2, refused_start.err
    assert "the disk is full" in refused_start.err and refused_start.err.count("\n") == 1
    small.filler.unlink()
    small.start().ready()
    assert small.s3.get_object(Bucket="full", Key="k7")["Body"].read() == BODY


# --- a disk that fails ---

EIO, EDQUOT = 5, 122
BIG = os.urandom(MIB)


class FailingDisk:
    """A weir whose writes and syncs fail as they are told to (tests/crash/disk_faults.c)."""

    def __init__(self, serve, folder):
        self.control, self.number = folder / "faults", 0
        self.notified = folder / "notify"
        self.control.write_text("")
        self.supervisor = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self.supervisor.bind(str(self.notified))
        self.supervisor.settimeout(60)
        self.server = serve(binary=BUILD / "tests/crash/weir_faulty",
                            env={"FAULT_DISK": str(self.control), "NOTIFY_SOCKET": str(self.notified)}).ready()
        self.s3.create_bucket(Bucket="box")

    @property
    def s3(self):
        return self.server.s3()

    def fail(self, call, part, error=EIO, count=0):
        """The next `count` calls fail for files whose path has `part`; 0: all."""
        self.number += 1
        self.write(f"{self.number} {call} {error} {count} {part}\n")

    def write(self, text):
        new = self.control.with_suffix(".new")
        new.write_text(text)
        new.rename(self.control)

    def mend(self):
        self.write("")

    def reason(self, part):
        """Why the part is not ready, as an administrator is told."""
        answer = self.server.request("GET", "/readyz", keys=self.server.keys)
        assert answer.status == 503, answer.body
        assert json.loads(self.server.get("/readyz").body)["parts"][part] == "failed"
        return json.loads(answer.body)["parts"][part]

    def heard(self):
        """What the supervisor was told."""
        self.supervisor.setblocking(False)
        told = []
        try:
            while True:
                told.append(self.supervisor.recv(4096).decode())
        except BlockingIOError:
            return told


@pytest.fixture
def failing(serve, tmp_path):
    disk = FailingDisk(serve, tmp_path)
    yield disk
    disk.supervisor.close()


@pytest.mark.parametrize("call", ["sync", "write"])
def test_a_database_that_failed_once_ends_weir_so_that_it_is_started_again(failing, serve, call):
    s3 = failing.s3
    for i in range(20):
        s3.put_object(Bucket="box", Key=f"k{i}", Body=b"%d" % i)
    failing.fail(call, "/db/", count=1)
    assert refused(s3.put_object, Bucket="box", Key="doubtful", Body=b"x")[0] in (500, 503)
    assert failing.server.wait() == 3, failing.server.err
    err = failing.server.err
    assert err.count("db.failed") == 1 and "Input/output error" in err and err.count("server.ending") == 1
    told = failing.heard()
    assert any(line.startswith("STATUS=") and "Input/output error" in line for line in told) and told[-1] == "STOPPING=1"
    again = serve(data=failing.server.data).ready()
    s3 = again.s3()
    for i in range(20):
        assert s3.get_object(Bucket="box", Key=f"k{i}")["Body"].read() == b"%d" % i
    s3.put_object(Bucket="box", Key="new", Body=b"x")
    assert again.get("/readyz").status == 200
    assert again.stop() == 0


@pytest.mark.parametrize("error", [EIO, EDQUOT])
def test_a_disk_that_goes_on_failing_is_read_from_until_it_works(failing, error):
    s3 = failing.s3
    s3.put_object(Bucket="box", Key="k", Body=BIG)
    failing.fail("write", "/db/", error)
    refused(s3.put_object, Bucket="box", Key="doubtful", Body=b"x")
    assert os.strerror(error) in failing.reason("db")
    for _ in range(3):
        assert refused(s3.put_object, Bucket="box", Key="more", Body=b"x")[0] == 503
        assert refused(s3.delete_object, Bucket="box", Key="k")[0] == 503
        assert s3.get_object(Bucket="box", Key="k")["Body"].read() == BIG
    assert failing.server.get("/healthz").status == 200
    assert failing.server.err.count("db.failed") == 1
    failing.mend()
    assert failing.server.wait() == 3, failing.server.err


def test_a_stop_while_the_disk_fails_is_in_order(failing, serve):
    failing.s3.put_object(Bucket="box", Key="k", Body=b"x")
    failing.fail("write", "/db/")
    refused(failing.s3.put_object, Bucket="box", Key="doubtful", Body=b"x")
    assert failing.server.stop() == 0, failing.server.err
    again = serve(data=failing.server.data).ready()
    assert again.s3().get_object(Bucket="box", Key="k")["Body"].read() == b"x"


@pytest.mark.parametrize("call", ["sync", "write"])
def test_a_disk_that_fails_under_objects_costs_the_request_and_comes_back(failing, call):
    s3 = failing.s3
    s3.put_object(Bucket="box", Key="before", Body=BIG)
    failing.fail(call, "/objects/")
    for _ in range(3):
        assert refused(s3.put_object, Bucket="box", Key="k", Body=BIG)[0] == 500
    assert "Input/output error" in failing.reason("storage.local")
    assert refused(s3.head_object, Bucket="box", Key="k")[0] == 404
    s3.put_object(Bucket="box", Key="small", Body=b"x")  # in the database
    assert s3.get_object(Bucket="box", Key="before")["Body"].read() == BIG
    assert failing.server.err.count("local.failed") == 1
    failing.mend()
    wait_for(lambda: failing.server.get("/readyz").status == 200, "/readyz")
    assert "local.works_again" in failing.server.err
    s3.put_object(Bucket="box", Key="k", Body=BIG)
    assert s3.get_object(Bucket="box", Key="k")["Body"].read() == BIG
    assert failing.server.stop() == 0


class Ext4:
    """A small ext4 of its own in a file, in a mount namespace that lives as long as this, and a weir with its data there. Its folder
    is one that any user can reach."""
    KEYS = ("AKIDEXT4", "of-the-small-ext4")
    MOUNT = "/mnt"

    def __init__(self, serve, folder, size, user=None):
        self.serve = serve
        image = folder / "image"
        with open(image, "wb") as f:
            f.truncate(size)
        script = (f"mkfs.ext4 -q -F {image} && mount --make-rprivate / && mount -o loop,errors=remount-ro {image} {self.MOUNT} && "
                  f"chmod 1777 {self.MOUNT} && findmnt -no SOURCE {self.MOUNT} && exec cat")
        self.holder = subprocess.Popen(["unshare", "-m", "sh", "-c", script], stdin=subprocess.PIPE,
                                       stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        self.device = os.path.basename(self.holder.stdout.readline().strip())
        if not self.device:
            pytest.skip("needs root, mkfs.ext4 and loop devices to mount a small file system")
        self.binary = folder / "weir-on-ext4"
        drop = f"setpriv --reuid={user} --regid={user} --clear-groups " if user else ""
        self.binary.write_text(f'#!/bin/sh\nexec nsenter -t {self.holder.pid} -m --wd=/ {drop}{WEIR} "$@"\n')
        self.binary.chmod(0o755)
        self.data = pathlib.Path(self.MOUNT) / "data"
        self.path = pathlib.Path(f"/proc/{self.holder.pid}/root{self.MOUNT}")

    def start(self):
        access, secret = self.KEYS
        self.server = self.serve(data=self.data, binary=self.binary,
                                 env={"WEIR_ACCESS_KEY": access, "WEIR_SECRET_KEY": secret}).ready()
        return self.server.s3(keys=self.KEYS)

    def turn_read_only(self):
        """As the kernel does when it meets an error."""
        trigger = pathlib.Path(f"/sys/fs/ext4/{self.device}/trigger_fs_error")
        if not trigger.exists():
            pytest.skip("this kernel cannot be made to fail an ext4")
        trigger.write_text("by a test")
        with pytest.raises(OSError):
            (self.path / "try").write_text("x")

    def end(self):
        self.holder.stdin.close()
        self.holder.wait()


@pytest.mark.parametrize("written", [True, False])
def test_a_file_system_that_turned_read_only_is_read_from_and_left_in_order(serve, tmp_path, written):
    disk = Ext4(serve, tmp_path, 600 * MIB)
    try:
        s3 = disk.start()
        s3.create_bucket(Bucket="box")
        s3.put_object(Bucket="box", Key="big", Body=BIG)
        s3.put_object(Bucket="box", Key="small", Body=b"x")
        disk.turn_read_only()
        if written:
            refused(s3.put_object, Bucket="box", Key="new", Body=b"x")  # another write may have met it before
            assert refused(s3.put_object, Bucket="box", Key="new", Body=b"x")[0] == 503
            assert refused(s3.put_object, Bucket="box", Key="new", Body=BIG)[0] == 500
            parts = json.loads(disk.server.get("/readyz").body)["parts"]
            assert (parts["db"], parts["storage.local"]) == ("failed", "failed")
            assert disk.server.err.count("db.failed") == 1
        assert s3.get_object(Bucket="box", Key="big")["Body"].read() == BIG
        assert s3.get_object(Bucket="box", Key="small")["Body"].read() == b"x"
        disk.server.signal(signal.SIGTERM)
        assert disk.server.wait() == 0, disk.server.err
    finally:
        disk.end()


def test_removals_go_on_when_root_s_reserve_is_all_that_is_left(serve, tmp_path):
    """ext4 keeps 5 % for root. Once root has taken more than the ballast of it, the ballast's room is root's too."""
    disk = Ext4(serve, tmp_path, 700 * MIB, user=65534)
    try:
        s3 = disk.start()
        s3.create_bucket(Bucket="box")
        for i in range(4):
            s3.put_object(Bucket="box", Key=f"big{i}", Body=BIG)
        small = [f"small{i:04}" for i in range(300)]
        for key in small:
            s3.put_object(Bucket="box", Key=key, Body=b"x")
        filler = disk.path / "filler"
        with open(filler, "wb") as f:  # as root, to the last block
            for step in (64 * MIB, MIB, 4096):
                with pytest.raises(OSError):
                    while True:
                        os.posix_fallocate(f.fileno(), os.fstat(f.fileno()).st_size, step)
        assert os.statvfs(disk.path).f_bavail == 0
        assert refused(s3.put_object, Bucket="box", Key="new", Body=b"x")[0] == 507
        for i in range(3):
            s3.delete_object(Bucket="box", Key=f"big{i}")
        for key in small[:100]:
            s3.delete_object(Bucket="box", Key=key)
        assert "db.ballast_dropped" in disk.server.err
        assert not s3.delete_objects(Bucket="box", Delete={"Objects": [{"Key": key} for key in small[100:]]}).get("Errors")
        assert [o["Key"] for o in s3.list_objects_v2(Bucket="box")["Contents"]] == ["big3"]
        assert refused(s3.put_object, Bucket="box", Key="new", Body=b"x")[0] == 507
        assert os.statvfs(disk.path).f_bavail == 0
        disk.server.process.kill()  # what was answered is on the disk
        disk.server.wait()
        filler.unlink()
        s3 = disk.start()
        assert [o["Key"] for o in s3.list_objects_v2(Bucket="box")["Contents"]] == ["big3"]
        assert s3.get_object(Bucket="box", Key="big3")["Body"].read() == BIG
        s3.put_object(Bucket="box", Key="new", Body=BIG)
        assert disk.server.stop() == 0, disk.server.err
    finally:
        disk.end()
