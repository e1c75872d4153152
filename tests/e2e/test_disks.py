"""Disks that are gone, full or damaged."""
import json

import botocore.exceptions
import pytest

from conftest import wait_for


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
    assert "data folder" in disks.run("storage", "remove", "local", "--force", status=1)
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


def test_the_own_storage_of_the_data_folder_is_needed(disks, serve):
    assert disks.server.stop() == 0
    (disks.server.data / "objects").rename(disks.away)
    again = serve(data=disks.server.data)
    assert again.wait() == 2
    assert "is the disk mounted?" in again.err and again.err.count("\n") == 1
