"""Disks that are gone, full or damaged."""
import json
import os
import pathlib
import subprocess

import botocore.exceptions
import pytest

from conftest import WEIR, wait_for


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
    assert "buckets" in disks.run("storage", "remove", "disk2", status=1)
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
    """A file system of 400 MiB of its own, in a mount namespace that lives as long as this, and a weir with its data there."""
    KEYS = ("AKIDSMALLDISK", "of-the-small-disk")

    def __init__(self, serve, folder):
        self.serve, mount = serve, folder / "small"
        mount.mkdir()
        script = f"mount --make-rprivate / && mount -t tmpfs -o size=400m none {mount} && echo mounted && exec cat"
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
