"""A weir that is killed before and behind each step of a split, a merge, a disabling and a DeleteBucket, and started again.

Clients are at work meanwhile. Behind the next start, which needs no command, every answered change is there, and what was
not answered has happened or not. What was under way goes on by itself, and `verify` finds nothing.
"""
import http.client
import json
import os
import signal
import threading

import pytest

from conftest import BUILD, Server, wait_for

pytest.importorskip("boto3")
from botocore.exceptions import BotoCoreError, ClientError  # noqa: E402

FAULTY = BUILD / "tests/crash/weir_faulty"
KEYS = [f"{letter}/{i}" for letter in "abcdef" for i in range(4)]
WRITERS = 3
SPLIT = ["shard.place", "shard.close", "shard.adopt", "shard.commit", "shard.end"]
DELETION = ["shard.all", "shard.deleting", "shard.remove", "shard.clean", "shard.unmap"]
STEPS = {"split": SPLIT, "merge": [*SPLIT, "shard.clean"], "disable": [*SPLIT, "shard.clean", "shard.unmap"]}
KILLS = [(move, f"{when}:{step}:1") for move, steps in STEPS.items() for step in steps for when in ("before", "after")]


class Box:
    """The bucket box, which is sharded at b/ and d/, on a weir that can be killed and started again."""

    def __init__(self, folder):
        self.folder, self.starts, self.server = folder, 0, None

    def start(self, **env):
        folder = self.folder / str(self.starts)
        folder.mkdir()
        self.starts += 1
        self.server = Server(folder, data=self.folder / "data", binary=FAULTY, env=env).ready()
        self.s3 = self.server.s3()

    def end(self):
        if self.server.process.poll() is None:
            os.kill(self.server.process.pid, signal.SIGKILL)
            self.server.process.wait()

    def call(self, method, path, body=None):
        answer = self.server.request(method, "/api/v1/shards" + path, body=body, keys=self.server.keys)
        return answer.status, json.loads(answer.body) if answer.body.startswith(("{", "[")) else answer.body

    def status(self):
        status, answer = self.call("GET", "/box")
        assert status in (200, 404), answer
        return answer if status == 200 else None

    def rest(self):
        """Waits until nothing is under way. Returns the status; None: the bucket is plain."""
        def done():
            status = self.status()
            return status is None or (status["move"] is None and status["moving"] == "" and status["state"] == "active")
        wait_for(done, "the end of the move")
        return self.status()

    def prepare(self):
        self.start()
        self.s3.create_bucket(Bucket="box")
        assert self.call("POST", "", {"bucket": "box"})[0] < 300
        for at in ("b/", "d/"):
            assert self.call("POST", "/box/split", {"at": at})[0] == 202
            self.rest()
        assert self.server.stop() == 0, self.server.err

    def begin(self, move):
        """Begins the move. The weir may die before it answers."""
        path = {"split": "/box/split", "merge": "/box/merge", "disable": "/box"}[move]
        body = {"split": {"at": "c/1"}, "merge": {"at": "d/"}}.get(move)
        try:
            self.call("DELETE" if move == "disable" else "POST", path, body)
        except (OSError, http.client.HTTPException):
            pass

    def wait_killed(self):
        self.server.process.wait(timeout=30)
        assert self.server.process.returncode == -signal.SIGKILL, self.server.err


class Writer(threading.Thread):
    """Changes keys of its own until the weir is gone. `may` has the bodies that a key may have now (None: it is absent)."""

    def __init__(self, server, keys):
        super().__init__()
        self.s3, self.may = server.s3(), {key: {None} for key in keys}
        self.error, self.stopped, self.count = None, False, 0

    def change(self, key, body):
        self.may[key] = self.may[key] | {body}
        if body is None:
            self.s3.delete_object(Bucket="box", Key=key)
        else:
            self.s3.put_object(Bucket="box", Key=key, Body=body)
            assert self.s3.get_object(Bucket="box", Key=key)["Body"].read() == body
        self.may[key] = {body}

    def run(self):
        try:
            while not self.stopped:
                for key in self.may:
                    self.count += 1
                    self.change(key, None if self.count % 5 == 0 else str(self.count).encode())
        except (OSError, BotoCoreError):
            pass  # the weir is gone
        except ClientError as error:
            if error.response["ResponseMetadata"]["HTTPStatusCode"] < 500:
                self.error = error
        except AssertionError as error:
            self.error = error


def contents(s3):
    pages = s3.get_paginator("list_objects_v2").paginate(Bucket="box", PaginationConfig={"PageSize": 7})
    keys = [o["Key"] for page in pages for o in page.get("Contents", [])]
    assert keys == sorted(set(keys))
    return {key: s3.get_object(Bucket="box", Key=key)["Body"].read() for key in keys}


def check_contents(s3, writers):
    found = contents(s3)
    for writer in writers:
        assert writer.error is None
        for key, may in writer.may.items():
            assert found.pop(key, None) in may, key
    assert not found


def check_tidy(box, sharded):
    """Nothing is left of what was under way."""
    if sharded:
        status, answer = box.call("POST", "/box/verify", {})
        assert status == 200 and answer["findings"] == [], answer
    else:
        assert box.status() is None
    names = [b["Name"] for b in box.s3.list_buckets()["Buckets"]]
    assert "box" in names and not [name for name in names if "-weir-" in name]


@pytest.fixture
def box(tmp_path):
    one = Box(tmp_path)
    yield one
    one.end()


@pytest.mark.parametrize("move, kill", KILLS, ids=[f"{move}-{kill}" for move, kill in KILLS])
def test_a_move_that_is_killed_at_any_step_loses_nothing_and_goes_on(box, move, kill):
    box.prepare()
    box.start(FAULT_KILL=kill)
    writers = [Writer(box.server, KEYS[i::WRITERS]) for i in range(WRITERS)]
    for writer in writers:
        writer.start()
    wait_for(lambda: all(w.count > len(w.may) for w in writers), "objects")
    box.begin(move)
    try:
        box.wait_killed()
    finally:
        for writer in writers:
            writer.stopped = True
            writer.join()
    box.start()
    check_contents(box.s3, writers)
    after = box.rest()
    check_contents(box.s3, writers)
    check_tidy(box, after is not None)
    box.s3.put_object(Bucket="box", Key="c/2", Body=b"new")
    assert contents(box.s3)["c/2"] == b"new"
    assert box.server.stop() == 0, box.server.err


@pytest.mark.parametrize("kill", [f"{when}:{step}:1" for step in DELETION for when in ("before", "after")])
def test_a_removal_that_is_killed_goes_on_or_leaves_the_bucket_as_it_was(box, kill):
    box.prepare()
    box.start(FAULT_KILL=kill)
    with pytest.raises(BotoCoreError):
        box.s3.delete_bucket(Bucket="box")
    box.wait_killed()
    box.start()
    names = [b["Name"] for b in box.s3.list_buckets()["Buckets"]]
    stays = kill in ("before:shard.all:1", "after:shard.all:1", "before:shard.deleting:1")
    assert names == (["box"] if stays else [])
    if stays:
        box.s3.put_object(Bucket="box", Key="c", Body=b"c")
        assert contents(box.s3) == {"c": b"c"}
        box.rest()
        check_tidy(box, True)
    else:
        assert box.status() is None
        box.s3.create_bucket(Bucket="box")
        assert contents(box.s3) == {}
    assert box.server.stop() == 0, box.server.err


def test_a_bucket_whose_weir_is_stopped_in_a_closed_window_is_whole_at_the_next_start(box):
    """The kill is one of the machine's choosing: while the rows of a window are in the other shard."""
    box.prepare()
    box.start(FAULT_KILL="after:shard.adopt:1")
    box.s3.put_object(Bucket="box", Key="c/1/x", Body=b"x")
    upload = box.s3.create_multipart_upload(Bucket="box", Key="c/9")["UploadId"]
    part = box.s3.upload_part(Bucket="box", Key="c/9", UploadId=upload, PartNumber=1, Body=b"part")
    box.begin("split")
    box.wait_killed()
    box.start()
    assert contents(box.s3) == {"c/1/x": b"x"}
    box.rest()
    box.s3.complete_multipart_upload(Bucket="box", Key="c/9", UploadId=upload,
                                     MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": part["ETag"]}]})
    assert contents(box.s3) == {"c/1/x": b"x", "c/9": b"part"}
    check_tidy(box, True)
