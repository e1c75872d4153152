"""Collections of repositories: killed at each of their steps, under load, on remote storages, and by themselves."""
import contextlib
import http.client
import json
import threading
import time
import urllib.parse

import pytest

from conftest import wait_for
from keeping_lab import GRACE_S, Lake, kills, nodes_of, stop

pytest.importorskip("boto3")
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402


def refuse_commits(lake, repo):
    """Makes every commit of the repository fail when its tree is built."""
    lake.put(repo, "_lakefs_actions/never.yaml", b"""
name: never
on: {pre-commit: {}}
hooks: [{id: never, type: webhook, properties: {url: "http://127.0.0.1:1/"}}]
""")


def make_garbage(lake):
    """Makes a repository with garbage of each kind, and returns the commit that expires."""
    lake.repo("repo")
    lake.put("repo", "a", b"first a")
    old = lake.commit("repo", "first")
    lake.put("repo", "a", b"second a")
    lake.commit("repo", "second")
    lake.call("POST", "/repo/tags", {"id": "kept", "ref": "main"})
    lake.put("repo", "b", b"overwritten b")
    lake.put("repo", "b", b"staged b")
    lake.put("repo", "made-again", b"made again")
    refuse_commits(lake, "repo")
    answer = lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "leaves its nodes"})
    assert answer.status == 412, answer.body
    lake.server.s3().delete_object(Bucket="repo", Key="main/_lakefs_actions/never.yaml")
    lake.call("POST", "/repo/branches", {"name": "side", "source": "main"})
    upload = lake.server.s3().create_multipart_upload(Bucket="repo", Key="side/parts")["UploadId"]
    lake.server.s3().upload_part(Bucket="repo", Key="side/parts", UploadId=upload, PartNumber=1, Body=b"part")
    lake.call("DELETE", "/repo/branches/side")
    lake.call("PUT", "/repo/settings/gc_rules", {"default_retention_days": 0, "branches": []})
    return old


def begin_collection(lake):
    """Asks for a run. A server that is to be killed may die before it answers."""
    with contextlib.suppress(OSError, http.client.HTTPException):
        lake.ask("POST", "/api/v1/repositories/repo/gc/run", {})


def check_collected(lake, old):
    """Everything that is live is there in full, and nothing else is."""
    s3 = lake.server.s3()
    assert lake.get("repo", "main/a") == lake.get("repo", "kept/a") == b"second a"
    assert lake.get("repo", "main/b") == b"staged b" and lake.get("repo", "main/made-again") == b"made again"
    assert len(lake.files("repo/data/")) == 4  # a sealed token has the removed action file until the next commit
    assert not s3.list_multipart_uploads(Bucket="lake-data").get("Uploads")
    with pytest.raises(ClientError):
        lake.get("repo", old + "/a")
    lake.call("GET", f"/repo/refs/{old}/objects?path=a", status=(410,))
    live = len(nodes_of(lake.files("repo/_lakefs/")))
    lake.commit("repo", "third")  # it makes a tree like the one whose nodes were removed
    assert lake.get("repo", "main/made-again") == b"made again"
    assert lake.collect()["nodes_dead"] == 0
    assert len(lake.files("repo/data/")) == 3
    assert len(nodes_of(lake.files("repo/_lakefs/"))) > live
    stop(lake)
    lake.start()  # nothing is in its memory
    assert [lake.get("repo", "main/" + p) for p in ("a", "b", "made-again")] == [b"second a", b"staged b", b"made again"]


KILLS = kills(["lake.gc_mark:1", "lake.gc_mark:2", "lake.gc_mark:3", "lake.gc_mark:4", "lake.gc_mark:5", "lake.gc_tokens:1",
               "lake.gc_remove:1", "lake.gc_remove:2", "lake.gc_remove:4"])


@pytest.mark.parametrize("kill", KILLS)
def test_a_collection_that_is_killed_goes_on(tmp_path, kill):
    lake = Lake(tmp_path, FAULT_KILL=kill)
    old = make_garbage(lake)
    time.sleep(GRACE_S + 2.2)
    begin_collection(lake)
    lake.start_later()
    lake.wait(lake.done, "the collection to end")
    check_collected(lake, old)
    stop(lake)


@pytest.mark.parametrize("kill", ["", *kills(["lake.gc_mark:3", "lake.gc_remove:1", "lake.gc_remove:4"])])
def test_a_collection_on_a_remote_storage_leaves_nothing(tmp_path, serve, kill):
    far = serve().ready()
    lake = Lake(tmp_path / "near", far=far, FAULT_KILL=kill or None)
    old = make_garbage(lake)
    assert nodes_of([o["Key"] for o in far.s3().list_objects_v2(Bucket="lake-data")["Contents"]])
    time.sleep(GRACE_S + 2.2)
    begin_collection(lake)
    if kill:
        lake.start_later()
    report = lake.wait(lake.done, "the collection to end")
    assert report["nodes_dead"] > 0
    check_collected(lake, old)
    stop(lake)


def test_a_collection_reaches_the_copy_of_a_replicated_bucket(tmp_path, serve):
    far = serve().ready()
    lake = Lake(tmp_path / "near")
    lake.add_storage(far)
    lake.run("replicate", "add", "lake-data", "far")
    old = make_garbage(lake)

    def copied():
        listed = far.s3().list_objects_v2(Bucket="lake-data").get("Contents", [])
        return sorted(o["Key"] for o in listed) == sorted(lake.files(""))
    wait_for(lambda: "lake-data" in [b["Name"] for b in far.s3().list_buckets()["Buckets"]], "the copy of the bucket")
    wait_for(copied, "the files to be copied")
    before = len(lake.files(""))
    time.sleep(GRACE_S + 2.2)
    report = lake.collect()
    assert report["nodes_removed"] > 0 and report["bodies_removed"] > 0 and len(lake.files("")) < before
    wait_for(copied, "the removals to be copied")
    check_collected(lake, old)
    wait_for(copied, "what was made since to be copied")
    stop(lake)


class ShardedLake(Lake):
    """A lake whose data bucket is split as it grows. The first split is held after it has begun, until `go` is there."""

    def __init__(self, folder, go):
        super().__init__(folder, FAULT_PAUSE=f"after:shard.place:1={go}")
        self.run("shard", "enable", "lake-data", "--threshold", "20")
        self.repo("repo")
        self.bodies = {}

    def shards(self):
        return json.loads(self.run("shard", "status", "lake-data", "--json"))

    def claim(self):
        return self.get("lake-data", "repo/_lakefs/dummy").decode()

    def write(self, folder):
        """Commits some objects, each of which was overwritten before."""
        for n in range(4):
            path = f"{folder}/{n}"
            self.put("repo", path, b"overwritten")
            self.bodies[path] = path.encode()
            self.put("repo", path, self.bodies[path])
        self.commit("repo", folder)

    def read_all(self):
        keys = [o["Key"] for o in self.server.s3().list_objects_v2(Bucket="repo", Prefix="main/").get("Contents", [])]
        assert keys == sorted("main/" + path for path in self.bodies)
        assert all(self.get("repo", "main/" + path) == body for path, body in self.bodies.items())


def test_a_lake_in_a_sharded_bucket_is_written_collected_and_purged(tmp_path):
    go, held = tmp_path / "go", tmp_path / "go.waits"
    lake = ShardedLake(tmp_path, go)
    rounds = 0
    while not held.exists() and rounds < 30:
        lake.write(f"before-{rounds:02}")
        rounds += 1
    wait_for(held.exists, "the first split")
    lake.write("beside")  # the split is under way
    assert lake.shards()["move"] is not None
    go.touch()
    for n in range(8):  # windows are handed over meanwhile
        lake.write(f"behind-{n}")
    wait_for(lambda: lake.shards()["shard_count"] >= 4, "splits")
    wait_for(lambda: lake.shards()["move"] is None, "the end of the splits")
    assert sum(s["objects"] > 0 for s in lake.shards()["shards"]) >= 4
    lake.read_all()
    refuse_commits(lake, "repo")
    lake.put("repo", "refused", b"refused")
    assert lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "m"}).status == 412
    lake.call("PUT", "/repo/branches/main", {"type": "reset"})
    time.sleep(GRACE_S + 2.2)
    report = lake.collect()
    assert report["bodies_removed"] == len(lake.bodies) + 2 and report["nodes_removed"] > 0
    assert len(lake.files("repo/data/")) == len(lake.bodies)
    lake.read_all()
    claim = lake.claim()
    stop(lake)
    lake.start()  # nothing is in its memory, and its life is put into the claim
    wait_for(lambda: lake.claim() != claim, "the new claim")
    assert claim.startswith("weir repository repo-") and "rival" not in lake.claim()
    lake.read_all()
    assert lake.collect()["nodes_dead"] == 0
    lake.call("DELETE", "/repo?purge=true")
    wait_for(lambda: not lake.files(""), "the purge")
    assert json.loads(lake.run("shard", "verify", "lake-data", "--json")) == []
    stop(lake)


def test_repositories_with_rules_are_collected_by_themselves(tmp_path):
    lake = Lake(tmp_path, "--lake.gc.every=1s")
    for name in ("one", "two", "plain"):
        lake.repo(name)
        lake.put(name, "a", b"dead")
        lake.put(name, "a", b"live")
    for name in ("one", "two"):
        lake.call("PUT", f"/{name}/settings/gc_rules", {"default_retention_days": 0, "branches": []})
    wait_for(lambda: all(len(lake.files(name + "/data/")) == 1 for name in ("one", "two")), "the collections")
    assert len(lake.files("plain/data/")) == 2  # it has no rules
    wait_for(lambda: lake.metric("weir_lake_collections_total") >= 2, "the metrics")
    assert lake.metric("weir_lake_collected_bodies_total") == 2 and lake.metric("weir_lake_collected_bytes_total") >= 8
    assert all(lake.get(name, "main/a") == b"live" for name in ("one", "two", "plain"))
    stop(lake)


class Writer(threading.Thread):
    """Puts, copies, removes and commits objects of its own until the server dies; notes what was acknowledged."""

    def __init__(self, lake, number):
        super().__init__(daemon=True)
        self.lake, self.name_of, self.acked, self.unsure = lake, f"w{number}", {}, set()

    def run(self):
        s3 = self.lake.server.s3()
        n = 0
        while True:
            n += 1
            key, body = f"{self.name_of}/{n % 7}", f"{self.name_of} {n}".encode()
            copy = f"{self.name_of}/copy{n % 3}"
            self.unsure = {key, copy}
            try:
                s3.put_object(Bucket="repo", Key="main/" + key, Body=body)
                self.acked[key] = body
                s3.copy_object(Bucket="repo", Key="main/" + copy, CopySource={"Bucket": "repo", "Key": "main/" + key})
                self.acked[copy] = body
                if n % 5 == 0:
                    self.lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": body.decode()})
            except (OSError, BotoCoreError, ClientError):
                return
            self.unsure = set()


@pytest.mark.parametrize("kill", ["after:lake.gc_mark:4", "before:lake.gc_remove:5", "after:lake.gc_remove:9"])
def test_a_collection_that_is_killed_under_load_loses_nothing(tmp_path, kill):
    lake = Lake(tmp_path, FAULT_KILL=kill)
    lake.repo("repo")
    lake.call("PUT", "/repo/settings/gc_rules", {"default_retention_days": 0, "branches": []})
    writers = [Writer(lake, n) for n in range(3)]
    for w in writers:
        w.start()
    time.sleep(GRACE_S + 1)
    begin_collection(lake)
    lake.server.process.wait()
    for w in writers:
        w.join(timeout=60)
    lake.start_later()
    lake.wait(lake.done, "the collection to end")
    for _ in range(2):
        for w in writers:
            assert w.acked
            for key, body in w.acked.items():
                if key not in w.unsure:
                    assert lake.get("repo", "main/" + key) == body
        if lake.call("GET", "/repo/branches/main/diff")["results"]:
            lake.commit("repo", "all that is staged")
        time.sleep(GRACE_S + 0.2)
        lake.collect()
    listed = lake.server.s3().list_objects_v2(Bucket="repo", Prefix="main/")["Contents"]
    assert all(lake.get("repo", o["Key"]) for o in listed)
    bodies = {json.loads(lake.ask("GET", "/api/v1/repositories/repo/refs/main/objects/stat?path=" + urllib.parse.quote(
        o["Key"][5:])).body)["physical_address"] for o in listed}
    assert len(lake.files("repo/data/")) == len(bodies)  # copies share a body
    stop(lake)
