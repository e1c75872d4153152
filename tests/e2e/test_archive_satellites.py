"""Satellites of the archive end to end: the first description's table and rclone commands with three satellites, and
slots that move while accounts are synced and read and weir is killed."""
import collections
import json
import os
import random
import shutil
import signal
import subprocess
import threading
import time

import pytest
from archive_lab import Archive, folders
from conftest import PACE, secret, wait_for

SEED = ["asia-east-1", "europe-west-1", "us-central-1"]
OCTOCAT = "a6/65/81/57"
BUCKET = "github.com"


class Satellites(Archive):
    """An archive of github.com, which is a forge and a git server of this test."""

    def __init__(self, folder, serve, weir, **more):
        self.satellite_keys, self.peers = {}, {}
        super().__init__(folder, serve, weir, host=BUCKET, **more)

    def storage(self, *args):
        done = self.command("storage", *args, "--data", self.server.data, "--url", self.server.url)
        assert done.returncode == 0, done.stderr

    def local(self, name):
        """A storage in a folder."""
        self.storage("add", name, str(self.folder / name))

    def remote(self, name):
        """A storage behind the endpoint of another weir."""
        folder = self.folder / f"peer-{name}"
        folder.mkdir()
        self.peers[name] = self.start(folder=folder).ready()
        self.storage("add", name, "--endpoint", self.peers[name].s3_url)

    def add_satellites(self, *names):
        """Adds satellites, and keeps the keys of their users."""
        args = []
        if names[0] in self.peers:
            access, value = self.peers[names[0]].keys
            args = ["--access-key", access, "--secret-key", value]
        for row in self.run("satellite", "add", *names, *args, "--json"):
            if row["access_key"]:
                self.satellite_keys[row["name"]] = (row["access_key"], secret(row["secret_key"]))

    def add_each(self, *names):
        """Adds them one after another, because a remote one needs keys of its own. The archive is still empty, so the
        slots are split equally."""
        for name in names:
            self.add_satellites(name)
            wait_for(self.moved, "the slots of an empty archive")

    def satellites(self):
        return {s["name"]: s for s in self.api("/satellites")["satellites"]}

    def slots(self):
        """Slot to satellite, by the ranges that weir shows."""
        table = {}
        for name, s in self.satellites().items():
            for part in filter(None, s["ranges"].split(",")):
                first, last = (part.split("-") * 2)[:2]
                table.update({slot: name for slot in range(int(first, 16), int(last, 16) + 1)})
        assert len(table) == 256
        return table

    def moved(self):
        return self.api("/satellites")["moving"] == 0

    def on(self, name):
        """A client of the satellite's user, through weir."""
        return self.server.s3(keys=self.satellite_keys[name])

    def held_by(self, name):
        """Key to size, time, ETag and metadata of everything that a satellite has, without the tables."""
        s3, found, more = self.on(name), {}, {}
        while True:
            page = s3.list_objects_v2(Bucket=BUCKET, **more)
            for o in page.get("Contents", []):
                if not o["Key"].startswith("_map/") and not o["Key"].endswith("@audit.json"):  # audits are sampled
                    head = s3.head_object(Bucket=BUCKET, Key=o["Key"])
                    found[o["Key"]] = (head["ContentLength"], head["ETag"], head["ContentType"],
                                       tuple(sorted(head["Metadata"].items())))
            if not page["IsTruncated"]:
                return found
            more = {"ContinuationToken": page["NextContinuationToken"]}

    def rclone(self, *args):
        env = {"PATH": os.environ["PATH"], "HOME": str(self.folder), "RCLONE_CONFIG": str(self.folder / "rclone.conf"),
               "TZ": "UTC"}
        (self.folder / "rclone.conf").write_text("".join(
            f"[{name}]\ntype = s3\nprovider = Other\nendpoint = {self.server.s3_url}\naccess_key_id = {access}\n"
            f"secret_access_key = {value}\n" for name, (access, value) in self.satellite_keys.items()) + "".join(
            f"[direct-{name}]\ntype = s3\nprovider = Other\nendpoint = {peer.s3_url}\naccess_key_id = {peer.keys[0]}\n"
            f"secret_access_key = {peer.keys[1]}\n" for name, peer in self.peers.items()))
        done = subprocess.run(["rclone", *args], env=env, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(**more):
        made.append(Satellites(tmp_path, serve, weir, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture(params=["embedded", "redis"])
def engine(request):
    return {"redis": request.getfixturevalue("redis")} if request.param == "redis" else {}


# --- the first description ---

@pytest.mark.skipif(not shutil.which("rclone"), reason="rclone is not installed")
def test_the_seeds_three_rclone_commands_per_satellite(lab, engine):
    a = lab(**engine)
    a.local("asia-east-1")
    a.remote("europe-west-1")
    a.local("us-central-1")
    a.add_each(*SEED)
    assert [(s["name"], s["slots"], s["ranges"]) for s in a.api("/satellites")["satellites"]] == [
        ("asia-east-1", 86, "00-55"), ("europe-west-1", 85, "56-aa"), ("us-central-1", 85, "ab-ff")]
    a.add_repo("octocat", "Hello-World", commits=5)
    a.add_repo("octocat", "empty", commits=0)
    a.add_repo("mojombo", "grit")
    a.add("octocat", "mojombo")
    a.synced("octocat")
    a.synced("mojombo")
    size = len(a.on("europe-west-1").get_object(Bucket=BUCKET, Key=f"{OCTOCAT}/octocat/Hello-World.bundle")["Body"].read())
    updated = a.repository("octocat", "Hello-World")["updated"]
    for remote in ("europe-west-1", "direct-europe-west-1"):  # through weir, and on the storage itself
        folder = f"{remote}:{BUCKET}/{OCTOCAT}/octocat/"
        assert {line.split()[1] for line in a.rclone("ls", folder).splitlines() if "@audit" not in line} == {
            "Hello-World.bundle", "Hello-World.zip", "empty.bundle", "empty.error"}
        assert a.rclone("ls", folder + "Hello-World.bundle").split() == [str(size), "Hello-World.bundle"]
        shown = a.rclone("lsl", folder + "Hello-World.bundle").split()
        assert f"{shown[1]}T{shown[2][:12]}Z" == updated
        assert " empty " in a.rclone("cat", folder + "empty.error").splitlines()[0]
    listed = a.rclone("lsl", f"asia-east-1:{BUCKET}/{folders('mojombo')}/mojombo/").splitlines()
    assert len([line for line in listed if "@audit" not in line]) == 2
    assert a.account("octocat")["satellite"] == "europe-west-1"
    # A satellite's user sees nothing of the others.
    for name in ("asia-east-1", "us-central-1"):
        assert not any("octocat" in key for key in a.held_by(name))


def test_one_command_needs_no_satellites(lab):
    a = lab()
    assert a.api("/satellites") == {"epoch": 0, "moving": 0, "satellites": []}
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    (only,) = a.api("/satellites")["satellites"]
    assert (only["name"], only["slots"], only["ranges"], only["up"]) == ("local", 256, "00-ff", True)
    assert a.account("octocat")["satellite"] == "local"


# --- moves ---

LOGINS = [f"user-{i}" for i in range(14)]


def fill(a):
    for login in LOGINS:
        a.add_repo(login, "repo", commits=2)
    a.add(*LOGINS)
    for login in LOGINS:
        a.synced(login)


class Reader(threading.Thread):
    """Reads repositories by weir's API, again and again. While weir is down nothing counts as a failure."""

    def __init__(self, a):
        super().__init__(daemon=True)
        self.a, self.failures, self.reads, self.stops = a, [], collections.Counter(), threading.Event()

    def run(self):
        while not self.stops.wait(PACE):
            login, server = random.choice(LOGINS), self.a.server
            try:
                path = f"/api/v1/archive/accounts/{self.a.member(login).replace('/', '%2F')}/repositories/repo"
                answer = server.request("GET", path, keys=server.keys)
            except (OSError, AttributeError, ValueError):
                continue  # it is being killed, or starts
            if server.process.poll() is not None:
                continue  # it was killed, and another process may have taken its port and answered
            if answer.status == 200 and json.loads(answer.body)["bytes"]:
                self.reads[login] += 1
            elif answer.status not in (502, 503):
                self.failures.append((login, answer.status, answer.body))

    def end(self):
        self.stops.set()
        self.join()
        assert not self.failures and len(self.reads) == len(LOGINS), (self.failures[:3], self.reads)


def kill_and_start(a):
    a.server.signal(signal.SIGKILL)
    a.server.wait()
    a.serve(data=a.server.data)


def expect_moved(a, before, after, objects):
    """Exactly the planned slots moved, and every object is on its satellite alone, as it was."""
    found = {}
    for name in a.satellites():
        for key, what in a.held_by(name).items():
            assert key not in found, f"{key} is on two satellites"
            assert after[int(key[:2], 16)] == name, f"{key} is on {name}"
            found[key] = what
    assert set(found) == set(objects)
    for key in objects:
        if key.endswith(".json"):  # syncs went on, and wrote records
            continue
        assert found[key] == objects[key], key


@pytest.mark.parametrize("kind", ["folders", "mixed"])
def test_a_satellite_comes_and_one_goes_under_load_with_kills(lab, engine, kind):
    a = lab(**engine)
    for i, name in enumerate([*SEED, "zone-4"]):
        a.remote(name) if kind == "mixed" and i % 2 else a.local(name)
    a.add_each(*SEED)
    fill(a)
    before = a.slots()
    objects = {key: what for name in SEED for key, what in a.held_by(name).items()}
    assert len(objects) == 3 * len(LOGINS)
    reader = Reader(a)
    reader.start()
    random.seed(17)

    a.add_satellites("zone-4")
    after = a.slots()
    assert {s for s in range(256) if after[s] != before[s]} == {s for s in range(256) if after[s] == "zone-4"}
    assert collections.Counter(after.values())["zone-4"] == 64
    for _ in range(3):
        time.sleep(random.uniform(0.1, 0.8))  # the moment of the kill
        kill_and_start(a)
        a.run("sync", a.member(random.choice(LOGINS)))
    wait_for(a.moved, "the moves to the newcomer", 120)
    assert a.slots() == after
    expect_moved(a, before, after, objects)

    assert a.run("satellite", "drain", "us-central-1", "--json")[0]["moving"] == sum(
        name == "us-central-1" for name in after.values())
    for _ in range(3):
        time.sleep(random.uniform(0.1, 0.8))
        kill_and_start(a)
    wait_for(lambda: "us-central-1" not in a.satellites(), "the drained satellite to go", 120)
    drained = a.slots()
    assert all(drained[s] == after[s] for s in range(256) if after[s] != "us-central-1")
    a.run("satellite", "drain", "us-central-1", status=None)  # weir may have been killed before it did the rest
    wait_for(lambda: a.server.request("GET", "/api/v1/users/us-central-1", keys=a.server.keys).status == 404,
             "the end of the drained satellite's user")
    a.storage("remove", "us-central-1")
    expect_moved(a, after, drained, objects)
    reader.end()
    for login in LOGINS[:3]:
        assert a.repository(login, "repo")["bytes"] == objects[f"{folders(login)}/{login}/repo.bundle"][0]
    for login in LOGINS:  # a sync that was killed behind its record has not set the score
        a.sync(login)
    assert not a.on("zone-4").list_multipart_uploads(Bucket=BUCKET).get("Uploads")
    a.check()


def test_satellites_that_disagree_are_refused_with_a_sentence(lab):
    a = lab()
    for name in SEED:
        a.local(name)
    a.add_satellites(*SEED)
    s3 = a.on("asia-east-1")
    table = json.loads(s3.get_object(Bucket=BUCKET, Key="_map/1.json")["Body"].read())
    table["slots"][7] = 2
    s3.put_object(Bucket=BUCKET, Key="_map/1.json", Body=json.dumps(table).encode())
    a.server.stop()
    a.serve(data=a.server.data)
    ready = a.server.get("/readyz", keys=a.server.keys)
    assert ready.status == 503 and "different tables of slots of epoch 1" in ready.body
    said = a.run("add", a.member("octocat"), status=1)
    assert "different tables" in said
    table["slots"][7] = 0
    s3 = a.on("asia-east-1")
    s3.put_object(Bucket=BUCKET, Key="_map/1.json", Body=json.dumps(table).encode())
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    wait_for(lambda: a.server.get("/readyz").status == 200, "/readyz")


def test_a_satellite_that_is_down_delays_only_its_accounts(lab):
    a = lab()
    a.local("asia-east-1")
    a.remote("europe-west-1")
    a.add_each(*SEED[:2])
    a.add_repo("mojombo", "grit")
    a.add_repo("octocat", "Hello-World")
    a.peers["europe-west-1"].signal(signal.SIGKILL)
    a.peers["europe-west-1"].wait()
    a.server.stop()
    a.serve(data=a.server.data)  # a start finds it down
    a.add("mojombo")
    a.synced("mojombo")
    a.run("add", a.member("octocat"), status=1)
    said = a.run("satellite", "drain", "asia-east-1", status=1)
    assert "europe-west-1 does not answer" in said
    wait_for(lambda: not a.satellites()["europe-west-1"]["up"], "the satellite to be seen as down")
    peer = a.peers["europe-west-1"]
    port = peer.s3_url.rsplit(":", 1)[1]
    a.start("--s3.listen", f"127.0.0.1:{port}", data=peer.data).ready()
    wait_for(lambda: a.satellites()["europe-west-1"]["up"], "the satellite to be seen again")
    a.add("octocat")
    a.synced("octocat")


def test_the_policy_of_a_user_is_removed_by_command(lab):
    a = lab()
    a.local("asia-east-1")
    a.add_satellites("asia-east-1")

    def route(*args, status=0):
        done = a.command("bucket", "route", *args, "--data", a.server.data, "--url", a.server.url)
        assert done.returncode == status, (done.returncode, done.stderr)
        return done.stdout + done.stderr
    assert [p["user"] for p in json.loads(route("--json"))] == ["asia-east-1"]
    assert "name a bucket, or a user" in route("--remove", status=2)
    assert "only one of" in route("--user", "asia-east-1", "--remove", "--block", status=2)
    assert "name a bucket" in route("--user", "asia-east-1", status=2)
    route("--user", "asia-east-1", "--remove")
    assert json.loads(route("--json")) == []


def test_the_user_of_a_satellite_is_not_removed(lab):
    a = lab()
    for name in SEED[:2]:
        a.local(name)
    a.add_satellites(*SEED[:2])
    done = a.command("user", "remove", SEED[0], "--data", a.server.data, "--url", a.server.url)
    assert done.returncode == 1 and "owns the archive's buckets on the satellite asia-east-1" in done.stderr
    assert a.server.request("DELETE", f"/api/v1/users/{SEED[1]}", keys=a.server.keys).status == 409
    assert a.server.request("POST", "/api/v1/users", body={"name": "stranger"}, keys=a.server.keys).status == 201
    assert a.server.request("DELETE", "/api/v1/users/stranger", keys=a.server.keys).status == 204
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")


# --- writes are changes like any other ---

def test_a_bucket_of_the_archive_with_default_encryption_gets_sealed_objects(lab):
    a = lab()
    a.local("asia-east-1")
    a.add_satellites("asia-east-1")
    s3 = a.on("asia-east-1")
    s3.put_bucket_encryption(Bucket=BUCKET, ServerSideEncryptionConfiguration={
        "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]})
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    head = s3.head_object(Bucket=BUCKET, Key=f"{OCTOCAT}/octocat/Hello-World.bundle")
    assert head["ServerSideEncryption"] == "AES256"
    body = s3.get_object(Bucket=BUCKET, Key=f"{OCTOCAT}/octocat/Hello-World.bundle")["Body"].read()
    assert body.startswith(b"# v2 git bundle\n")


def test_a_replicated_bucket_of_the_archive_is_captured(lab):
    """Everything that a sync writes on a remote satellite reaches the copy."""
    a = lab()
    a.remote("asia-east-1")
    a.local("copy")
    a.add_satellites("asia-east-1")
    user = a.satellites()["asia-east-1"]["name"]
    done = a.command("replicate", "add", BUCKET, "copy", "--user", user,
                     "--data", a.server.data, "--url", a.server.url)
    assert done.returncode == 0, done.stderr
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    wanted = set(a.held_by("asia-east-1"))
    assert len(wanted) == 3
    admin = a.server.s3()
    admin.meta.events.register("before-sign.s3", lambda request, **_: request.headers.add_header("x-weir-storage", "copy"))

    def copied():
        try:
            listed = admin.list_objects_v2(Bucket=BUCKET).get("Contents", [])
        except admin.exceptions.NoSuchBucket:
            return False
        return wanted <= {o["Key"] for o in listed}
    wait_for(copied, "the copies")
