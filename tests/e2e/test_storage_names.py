"""Processes of one Redis whose local storages have the same name: every weir has one that is called local."""
import json
import os
import shutil
import socket
import subprocess

import botocore.exceptions
import pytest

from conftest import DEADLINE, WEIR, clean_env, wait_for
from replica_lab import KEYS, QUICK, Weir, client, content
from test_users import runner


class Machines:
    """Weirs of one Redis, each with a data folder of its own; `far` is none of them, but a storage."""

    def __init__(self, folder, redis):
        self.folder, self.weirs = folder, []
        self.store = ("--store.engine=redis", f"--store.redis.url=redis://127.0.0.1:{redis.port}", *QUICK)

    def weir(self, name, *args):
        data = self.folder / name / "data"
        data.mkdir(parents=True, mode=0o700)
        secret = self.folder / "secrets.key"
        if not secret.exists():
            secret.write_bytes(os.urandom(32))
            secret.chmod(0o600)
        shutil.copy(secret, data)
        weir = Weir(self.folder / name, *args, env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1]})
        self.weirs.append(weir)
        return weir

    def far(self):
        return self.weir("far").ready()

    def machine(self, name, *args):
        return self.weir(name, *self.store, *args)

    def run(self, weir, *args, status=0):
        done = subprocess.run([str(WEIR), *map(str, args), "--data", str(weir.data), "--url", weir.url],
                              capture_output=True, text=True, timeout=2 * DEADLINE,
                              env=clean_env(WEIR_ACCESS_KEY=KEYS[0], WEIR_SECRET_KEY=KEYS[1]))
        assert done.returncode == status, done.stderr
        return done.stdout + done.stderr

    def rows(self, weir, *args):
        return json.loads(self.run(weir, *args, "--json"))

    def add_far(self, weir, far):
        self.run(weir, "storage", "add", "far", "--endpoint", far.s3_url, "--user", "root", "--access-key", KEYS[0],
                 "--secret-key", KEYS[1])


@pytest.fixture
def machines(tmp_path, redis):
    lab = Machines(tmp_path, redis)
    yield lab
    for weir in lab.weirs:
        weir.kill()


def status_of(call, **kwargs):
    try:
        return call(**kwargs)["ResponseMetadata"]["HTTPStatusCode"]
    except botocore.exceptions.ClientError as e:
        return e.response["ResponseMetadata"]["HTTPStatusCode"]


def fill(weir, prefix, bucket="photos"):
    s3 = client(weir.s3_url, KEYS)
    s3.create_bucket(Bucket=bucket)
    bodies = {f"{prefix}{i}": f"{prefix} {i}".encode() for i in range(5)}
    for key, body in bodies.items():
        s3.put_object(Bucket=bucket, Key=key, Body=body)
    return s3, bodies


def in_sync(machines, weir):
    wait_for(lambda: machines.rows(weir, "replicate", "list", "photos")[0]["state"] == "in sync", "it to be in sync")


def test_a_worker_leaves_objects_of_another_storage_of_the_same_name_alone(machines):
    far = machines.far()
    one = machines.machine("one", "--only", "gateway").ready()
    machines.add_far(one, far)
    s3, bodies = fill(one, "k")
    machines.run(one, "replicate", "add", "photos", "far")
    machines.machine("two", "--only", "worker").ready()  # its storage local has nothing

    def waits():
        return any("the storage local is not here" in task["error"] for task in machines.rows(one, "task", "list"))
    wait_for(waits, "the worker to give the task back")
    row = machines.rows(one, "replicate", "list", "photos")[0]
    assert row["state"] == "listing", row
    one.kill()
    one.more = machines.store  # with a worker of its own
    one.start().ready()
    in_sync(machines, one)
    there = client(far.s3_url, KEYS)
    assert content(there, "photos") == bodies
    s3 = client(one.s3_url, KEYS)
    s3.put_object(Bucket="photos", Key="later", Body=b"later")
    s3.delete_object(Bucket="photos", Key="k0")
    del bodies["k0"]
    in_sync(machines, one)
    assert content(there, "photos") == bodies | {"later": b"later"}
    assert machines.rows(one, "diff", "check", "local:photos", "far:photos")


def test_a_name_is_of_one_folder_until_another_takes_its_place(machines):
    far = machines.far()
    one, two = machines.machine("one").ready(), machines.machine("two").ready()
    machines.add_far(one, far)
    _, bodies = fill(one, "one")
    s3, others = fill(two, "two")
    s3.create_bucket(Bucket="notes")
    wait_for(lambda: "far" in machines.run(two, "storage", "list"), "the storage")
    machines.run(one, "replicate", "add", "photos", "far")
    in_sync(machines, one)
    there = client(far.s3_url, KEYS)
    assert content(there, "photos") == bodies
    # what the other folder has under the same names is none of it, and grows no more
    wait_for(lambda: status_of(s3.put_object, Bucket="photos", Key="x", Body=b"x") == 503, "503")
    wait_for(lambda: "replica.name_taken" in two.err, "the line in the log")
    assert status_of(s3.put_object, Bucket="notes", Key="x", Body=b"x") == 200
    refused = machines.run(two, "replicate", "add", "notes", "far", status=1)
    assert f"in this store the storage local is the folder {socket.gethostname()}:{one.data}/objects, not" in refused, refused
    assert "weir storage claim local" in refused
    client(one.s3_url, KEYS).put_object(Bucket="photos", Key="later", Body=b"later")
    in_sync(machines, one)
    assert content(there, "photos") == bodies | {"later": b"later"}
    # a machine that starts again has its folder, and so its name
    one.kill()
    one.start().ready()
    client(one.s3_url, KEYS).put_object(Bucket="photos", Key="again", Body=b"again")
    in_sync(machines, one)
    assert content(there, "photos") == bodies | {"later": b"later", "again": b"again"}
    # that folder is gone
    one.kill()
    machines.run(two, "storage", "claim", "local")
    wait_for(lambda: status_of(s3.put_object, Bucket="photos", Key="x", Body=b"x") == 200, "200")
    machines.run(two, "replicate", "resync", "photos")
    in_sync(machines, two)
    assert content(there, "photos") == content(s3, "photos") == others | {"x": b"x"}


def test_with_the_embedded_store_a_name_needs_no_claim(serve, weir):
    server = serve().ready()
    run = runner(server, weir)
    run("storage", "claim", "local")
    assert "no local storage nothing" in run("storage", "claim", "nothing", status=1)


@pytest.mark.parametrize("by", ("bucket policy", "main storage"))
def test_a_weir_refuses_what_is_on_a_folder_of_another(machines, tmp_path, by):
    """A rule of docs/forward.md, "Which storage", that names a storage which this weir has not is the last one asked."""
    far, one = machines.far(), machines.machine("one", "--only", "gateway").ready()
    machines.add_far(one, far)
    machines.run(one, "storage", "add", "disk", tmp_path / "disk")
    machines.run(one, "user", "add", "ann", "--access-key", "AKIAANN", "--secret-key", "secret-of-ann")
    ann, two = ("AKIAANN", "secret-of-ann"), machines.machine("two", "--only", "gateway").ready()
    client(far.s3_url, KEYS).create_bucket(Bucket="elsewhere")
    machines.run(one, "bucket", "route", "elsewhere", "far", "--user", "root")
    if by == "bucket policy":
        machines.run(one, "bucket", "route", "photos", "disk", "--user", "ann")
    machines.run(one, "storage", "main", "far" if by == "bucket policy" else "disk")
    client(one.s3_url, ann).create_bucket(Bucket="photos")

    def is_refused():
        for keys in (KEYS, ann):
            s3 = client(two.s3_url, keys)
            calls = ((s3.head_bucket, {}), (s3.get_object, {"Key": "k"}), (s3.put_object, {"Key": "k"}),
                     (s3.delete_object, {"Key": "k"})) + ((s3.create_bucket, {}),) * (by == "main storage")
            found = [status_of(call, Bucket="photos", **more) for call, more in calls]
            if set(found) != {503}:
                return False
        return True
    wait_for(is_refused, "the other weir to know, and to refuse", 10)
    two.kill()
    two.start().ready()
    wait_for(is_refused, "the same after a start", 10)
    # Everything else goes on there.
    s3 = client(two.s3_url, KEYS)
    s3.put_object(Bucket="elsewhere", Key="k", Body=b"x")
    assert content(client(far.s3_url, KEYS), "elsewhere") == {"k": b"x"}
    assert "photos" not in [b["Name"] for b in client(far.s3_url, KEYS).list_buckets()["Buckets"]]
