"""One bucket has one present side, whoever asks (docs/forward.md, B1 to B5).

A flow is one bucket on its way from one storage to another: before it is replicated, while it is copied, in sync, in a switch
without downtime, after that was given up, in a switch with downtime, when that is done, after a resync, and when its
replications are gone. In each state everybody who could ask for it writes, reads, and removes. What was answered is looked for
on both storages, past the routes: it is on the present side, and not on the other one, whose copying rests meanwhile.

The flows are all pairs of folders and services, with the route to the source given by a bucket policy, a user policy, or the main
storage. The main storage, and a user's policy, also lead to the destination, where nobody may arrive.
"""
import concurrent.futures
import json

import boto3
import pytest
from botocore import UNSIGNED
from botocore.config import Config
from botocore.exceptions import ClientError

from conftest import wait_for
from replica_lab import KEYS, QUICK, Weir, client, content, viewer

FOLDERS, SERVICES = ("local", "disk2"), ("s1", "s2")
STORAGES = FOLDERS + SERVICES
RESTS = ("events", "migrate_obj_copy")  # what the names of the queues begin with that wait while a state is looked at

# Source and destination, and what leads the owner to the source, by the main storage of the weir.
MAINS = {
    "local": [(a, b, by) for a, b in (("local", "disk2"), ("local", "s2")) for by in ("bucket", "user", "main")]
    + [(a, b, by) for a, b in (("s1", "local"), ("s1", "s2")) for by in ("bucket", "user")],
    "s1": [(a, b, "main") for a, b in (("s1", "local"), ("s1", "s2"))]
    + [(a, b, by) for a, b in (("disk2", "local"), ("disk2", "s1")) for by in ("bucket", "user")],
}


def keys_of(name):
    return (f"AKIA{name.upper().replace('-', '')}", f"secret-of-{name}")


def anonymous(url):
    return boto3.client("s3", endpoint_url=url, region_name="us-east-1",
                        config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, signature_version=UNSIGNED))


def start(folder, *args):
    return Weir(folder, *args, env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1]})


class Flow:
    """One bucket; `model` is what everybody was told that it holds."""

    def __init__(self, lab, source, to, by):
        self.lab, self.source, self.to, self.by = lab, source, to, by
        self.bucket = f"{lab.main}-{source}-{to}-{by}"
        self.owner = {"bucket": "ann", "user": f"uma-{source}", "main": "max"}[by]
        self.askers = [self.owner, "bob", "nobody", "root", f"bea-{to}"]  # bea's policy leads to the destination
        self.model, self.present, self.other = {}, source, to

    def make(self):
        if self.by == "bucket":
            self.lab.post(f"/api/v1/buckets/{self.bucket}/route", {"storage": self.source, "user": self.owner})
        self.lab.s3[self.owner].create_bucket(Bucket=self.bucket, ACL="public-read-write")

    def here(self, storage):
        return self.lab.sides[storage]

    def has(self, storage, key):
        try:
            self.here(storage).head_object(Bucket=self.bucket, Key=key)
            return True
        except ClientError as e:
            assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 404, e
            return False

    def moved(self, back=False):
        self.present, self.other = (self.source, self.to) if back else (self.to, self.source)

    # --- what everybody does in a state ---

    def asks(self, asker, state):
        s3, key, body = self.lab.s3[asker], f"{state}/{asker}", f"{self.bucket} {state} {asker}".encode()
        s3.put_object(Bucket=self.bucket, Key=key, Body=body, ACL="public-read")
        self.model[key] = body
        for name in (key, f"before/{self.owner}"):
            assert s3.get_object(Bucket=self.bucket, Key=name)["Body"].read() == self.model[name], (state, asker)
        assert {o["Key"] for o in s3.list_objects_v2(Bucket=self.bucket)["Contents"]} == set(self.model), (state, asker)
        gone = f"{state}/{asker}-gone"
        s3.put_object(Bucket=self.bucket, Key=gone, Body=b"x")
        s3.delete_object(Bucket=self.bucket, Key=gone)
        if asker == self.owner:
            self.owner_asks(s3, state)

    def owner_asks(self, s3, state):
        """In the other ways there are to change something."""
        where, key = {"Bucket": self.bucket}, f"{state}/{self.owner}"
        s3.copy_object(**where, Key=key + "-copy", CopySource={**where, "Key": key})
        self.model[key + "-copy"] = self.model[key]
        upload = {**where, "Key": key + "-parts", "UploadId": s3.create_multipart_upload(**where, Key=key + "-parts")["UploadId"]}
        tag = s3.upload_part(**upload, PartNumber=1, Body=b"part")["ETag"]
        s3.complete_multipart_upload(**upload, MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
        self.model[key + "-parts"] = b"part"
        for n in range(2):
            s3.put_object(**where, Key=f"{key}-batch{n}", Body=b"x")
        s3.delete_objects(**where, Delete={"Objects": [{"Key": f"{key}-batch{n}"} for n in range(2)]})

    def finds(self, asker):
        """Whether the asker's routes lead to the bucket: nobody else is led to where a user policy leads (rule 5)."""
        try:
            self.lab.s3[asker].head_bucket(Bucket=self.bucket)
            return True
        except ClientError as e:
            assert e.response["ResponseMetadata"]["HTTPStatusCode"] == 404, (self.bucket, asker, e)
            return False

    def must_be_found(self, state):
        """By everybody: where a bucket policy of an administrator leads, and while folders are all there is on the way."""
        return state != "before" and (self.by == "bucket" or {self.source, self.to, self.lab.main} <= set(FOLDERS))

    def all_ask(self, state):
        """And what they were told is on the present side alone."""
        found = self.found = [asker for asker in self.askers if self.finds(asker)]
        assert self.owner in found
        if self.must_be_found(state):
            assert found == self.askers, (self.bucket, state, found)
        for asker in found:
            try:
                self.asks(asker, state)
            except ClientError as e:
                raise AssertionError(f"{self.bucket}, {state}, {asker}: {e}") from None
        for asker in found:
            key = f"{state}/{asker}"
            assert (self.has(self.present, key), self.has(self.other, key)) == (True, False), (self.bucket, key)
            assert not self.has(self.present, key + "-gone")
        for key in (f"{state}/{self.owner}-copy", f"{state}/{self.owner}-parts"):
            assert (self.has(self.present, key), self.has(self.other, key)) == (True, False), (self.bucket, key)

    def all_are_refused(self, state):
        for asker in self.found:
            key = f"{state}/{asker}"
            for call in ({"Body": b"x"}, None):
                with pytest.raises(ClientError) as refused:
                    s3 = self.lab.s3[asker]
                    s3.put_object(Bucket=self.bucket, Key=key, **call) if call else s3.get_object(Bucket=self.bucket, Key=key)
                assert refused.value.response["ResponseMetadata"]["HTTPStatusCode"] == 503, (self.bucket, asker)
            assert not self.has(self.present, key) and not self.has(self.other, key)

    # --- its replication and its switch ---

    def row(self):
        rows = [r for r in self.lab.get(f"/api/v1/replications?bucket={self.bucket}")["replications"] if not r["archived"]]
        assert len(rows) == 1, rows
        return rows[0]

    def in_sync(self):
        wait_for(lambda: self.row()["state"] == "in sync", f"{self.bucket} to be in sync: {self.row()}")

    def switch(self):
        found = [s for s in self.lab.get("/api/v1/switches")["switches"] if s["bucket"] == self.bucket]
        return found[0]["state"] if found else "gone"

    def begin(self, live):
        row = self.row()
        self.lab.post("/api/v1/switches", {"replication": row["id"], "continue": True, "downtime": not live})

    def remove(self):
        for row in self.lab.get(f"/api/v1/replications?bucket={self.bucket}")["replications"]:
            self.lab.call("DELETE", f"/api/v1/replications/{row['id']}", {})

    def is_equal(self):
        for storage in (self.present, self.other):
            assert content(self.here(storage), self.bucket) == self.model, (self.bucket, storage)


class Lab:
    """One weir with two folders, in front of two services."""

    def __init__(self, folder, main, services):
        self.main, self.services = main, services
        self.server = start(folder, *QUICK).ready()
        self.post("/api/v1/storages", {"name": "disk2", "kind": "local", "folder": str(folder / "disk2")})
        users = ["ann", "max", "bob"] + [f"{who}-{storage}" for who in ("uma", "bea") for storage in STORAGES]
        for name in users:
            self.post("/api/v1/users", {"name": name, "access_key": keys_of(name)[0], "secret_key": keys_of(name)[1]})
        for name, service in services.items():
            self.post("/api/v1/storages", {"name": name, "kind": "remote", "url": service.s3_url, "user": "root", "access_key": KEYS[0],
                                           "secret_key": KEYS[1]})
            for user in users:
                self.post(f"/api/v1/storages/{name}/credentials",
                          {"user": user, "access_key": keys_of(user)[0], "secret_key": keys_of(user)[1]})
        for who in ("uma", "bea"):
            for storage in STORAGES:
                self.post(f"/api/v1/users/{who}-{storage}/route", {"storage": storage})
        self.post(f"/api/v1/storages/{main}/main", {})
        url = self.server.s3_url
        self.s3 = {name: client(url, keys_of(name)) for name in users} | {"root": client(url, KEYS), "nobody": anonymous(url)}
        self.sides = {name: viewer(client(url, KEYS), name) for name in FOLDERS}
        self.sides |= {name: client(service.s3_url, KEYS) for name, service in services.items()}
        self.flows = [Flow(self, *way) for way in MAINS[main]]

    def call(self, method, path, body=None):
        answer = self.server.request(method, path, keys=KEYS, body=body)
        assert answer.status < 300, f"{method} {path}: {answer.status} {answer.body}"
        return json.loads(answer.body) if answer.body else None

    def post(self, path, body):
        return self.call("POST", path, body)

    def get(self, path):
        return self.call("GET", path)

    def each(self, step):
        """Of all flows, some at a time: much of it is waiting."""
        with concurrent.futures.ThreadPoolExecutor(4) as lanes:
            list(lanes.map(step, self.flows))

    def rest(self, *queues):
        """Tasks of these queues wait from now on; those that run have ended."""
        for queue in self.get("/api/v1/queues")["queues"]:
            if queue["name"].startswith(queues):
                self.call("PUT", f"/api/v1/queues/{queue['name']}/pause", {})
        wait_for(lambda: not any(q["active"] for q in self.get("/api/v1/queues")["queues"] if q["name"].startswith(queues)),
                 "tasks to end")

    def go_on(self):
        for queue in self.get("/api/v1/queues")["queues"]:
            self.call("PUT", f"/api/v1/queues/{queue['name']}/resume", {})

    def looks(self, state):
        self.rest(*RESTS)
        self.each(lambda f: f.all_ask(state))


@pytest.fixture(scope="module")
def services(tmp_path_factory):
    started = {name: start(tmp_path_factory.mktemp(name)).ready() for name in SERVICES}
    for service in started.values():
        for name in ["ann", "max", "bob"] + [f"{who}-{storage}" for who in ("uma", "bea") for storage in STORAGES]:
            service.request("POST", "/api/v1/users", keys=KEYS, body={"name": name, "access_key": keys_of(name)[0],
                                                                     "secret_key": keys_of(name)[1]})
    yield started
    for service in started.values():
        service.kill()


@pytest.mark.parametrize("main", MAINS)
def test_every_write_is_on_the_present_side_in_every_state(tmp_path, services, main):
    lab = Lab(tmp_path / "front", main, services)
    try:
        walk(lab)
    finally:
        lab.server.kill()


def walk(lab):
    lab.each(Flow.make)
    lab.looks("before")
    lab.go_on()

    def add(flow):
        lab.post("/api/v1/replications", {"bucket": flow.bucket, "user": flow.owner, "to": flow.to})
        wait_for(lambda: exists(flow), f"{flow.bucket} on {flow.to}")
    lab.rest("migrate_obj_copy")
    lab.each(add)
    lab.looks("copying")
    lab.go_on()
    lab.each(Flow.in_sync)
    lab.looks("in-sync")

    def begin(flow):
        flow.begin(live=True)
        wait_for(lambda: flow.switch() == "in_progress", f"the switch of {flow.bucket}: {flow.switch()}")
        flow.moved()
    lab.each(begin)
    lab.looks("live-switch")

    def abort(flow):
        lab.call("DELETE", f"/api/v1/switches/{switch_id(flow)}", {})
        flow.moved(back=True)
    lab.each(abort)
    lab.looks("going-back")
    lab.go_on()
    lab.each(lambda f: wait_for(lambda: f.switch() == "gone", f"the end of the switch of {f.bucket}: {f.switch()}"))
    lab.each(Flow.in_sync)
    lab.looks("aborted")

    def plan(flow):
        flow.begin(live=False)
        wait_for(lambda: flow.switch() == "in_progress", f"the switch of {flow.bucket}: {flow.switch()}")
    lab.each(plan)
    lab.each(lambda f: f.all_are_refused("blocked"))
    lab.go_on()
    lab.each(lambda f: wait_for(lambda: f.switch() == "done", f"the switch of {f.bucket}: {f.switch()}"))
    lab.each(Flow.moved)
    lab.each(Flow.in_sync)
    lab.looks("done")
    lab.go_on()
    lab.each(Flow.in_sync)
    lab.each(Flow.is_equal)

    def resync(flow):
        lab.post(f"/api/v1/replications/{flow.row()['id']}/resync", {})
        flow.in_sync()
        flow.is_equal()
    lab.each(resync)
    lab.each(Flow.remove)
    lab.looks("removed")


def exists(flow):
    try:
        flow.here(flow.to).head_bucket(Bucket=flow.bucket)
        return True
    except ClientError:
        return False


def switch_id(flow):
    return [s["id"] for s in flow.lab.get("/api/v1/switches")["switches"] if s["bucket"] == flow.bucket][0]


@pytest.fixture
def tenants(tmp_path, services):
    lab = Lab(tmp_path / "front", "s1", services)
    yield lab
    lab.server.kill()


def test_a_user_with_a_policy_takes_no_bucket_of_others(tenants):
    """Neither at the destination, by making and deleting one of the name, nor on the main storage, by the pin of a replication."""
    lab = tenants
    bea, uma, maxine = lab.s3["bea-disk2"], lab.s3["uma-s2"], lab.s3["max"]
    bea.create_bucket(Bucket="payroll")  # on disk2
    bea.put_object(Bucket="payroll", Key="k", Body=b"bea's")
    maxine.create_bucket(Bucket="mine-of-max")  # on the main storage, s1
    maxine.put_object(Bucket="mine-of-max", Key="k", Body=b"max's")
    lab.post("/api/v1/replications", {"user": "uma-s2", "to": "disk2"})
    wait_for(lambda: not lab.get("/api/v1/queues/api/tasks")["tasks"], "the policy to be known")
    for bucket in ("payroll", "mine-of-max"):
        uma.create_bucket(Bucket=bucket, ACL="public-read-write")  # on s2
        uma.put_object(Bucket=bucket, Key="uma", Body=b"uma's")
    wait_for(lambda: any(r["bucket"] == "mine-of-max" and r["state"] == "in sync"
                         for r in lab.get("/api/v1/replications")["replications"]), "the replication of a new bucket")
    assert not any(r["bucket"] == "payroll" for r in lab.get("/api/v1/replications")["replications"])
    uma.delete_object(Bucket="payroll", Key="uma")
    uma.delete_bucket(Bucket="payroll")
    for s3, bucket, body in ((bea, "payroll", b"bea's"), (maxine, "mine-of-max", b"max's")):
        assert s3.get_object(Bucket=bucket, Key="k")["Body"].read() == body
        s3.put_object(Bucket=bucket, Key="more", Body=b"x")
        assert {o["Key"] for o in s3.list_objects_v2(Bucket=bucket)["Contents"]} == {"k", "more"}
    assert uma.get_object(Bucket="mine-of-max", Key="uma")["Body"].read() == b"uma's"
