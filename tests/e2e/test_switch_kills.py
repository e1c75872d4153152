"""Switches that are killed at each of their steps, before and after the store has done it, while clients write.

The program is weir_faulty (tests/crash), which kills itself at the step that it is told; its next start has a clock a minute ahead, so
that leases and locks of the dead one are over. Then the switch comes to its end by itself; a plan or an abort that was not answered is
asked for again, as people do. At the end every answered change is on both sides, the route leads to one of them, nothing is blocked, and
the history has only legal transitions, each from where the one before has led to.

Here each transition is killed; `WEIR_TEST_KILLS=all` kills at every call of the store that a switch makes.
"""
import concurrent.futures
import itertools
import json
import os
import pathlib
import random
import signal
import subprocess
import tempfile
import threading
import time

import pytest
from botocore.exceptions import BotoCoreError, ClientError

from conftest import DEADLINE, PACE, Server, check_sanitizers, clean_env, wait_for
from replica_lab import FAULTY, KEYS, QUICK, client, content, viewer

OVER_S = 60  # leases, locks
AT_ONCE = 6  # cases; they wait most of the time
PART = 5 * 1024 * 1024
LEGAL = {("", "not_started"), ("done", "not_started"), ("error", "not_started"), ("skipped", "not_started"),
         ("not_started", "not_started"), ("not_started", "in_progress"), ("in_progress", "done"),
         ("in_progress", "in_progress"), ("in_progress", "deleted"), ("in_progress", "check_in_progress"),
         ("check_in_progress", "done"), ("check_in_progress", "in_progress"), ("check_in_progress", "deleted")}
STEPS = {
    "down": ["switch_plan", "switch_begin", "switch_step", "switch_done"],
    "live": ["switch_plan", "switch_begin", "switch_done"],
    "abort": ["switch_abort", "switch_done"],
    "uploads": ["switch_follow", "switch_unblock"],  # with downtime, while an upload is open
}
SOME = [(kind, f"{when}:{name}:1") for kind, names in STEPS.items() for name in names for when in ("before", "after")]


MAKING = threading.Lock()


class Client(threading.Thread):
    """Changes its own keys until it is stopped; each change is tried until it is answered, so the model is what must be there."""

    def __init__(self, case, number):
        super().__init__(daemon=True)
        self.case, self.prefix, self.random = case, f"client{number}/", random.Random(number)
        self.model, self.ended, self.failure, self.answered = {}, threading.Event(), None, 0

    def run(self):
        try:
            while not self.ended.wait(PACE):
                self.change(self.prefix + str(self.random.randrange(12)))
        except BaseException as e:
            self.failure = e

    def change(self, key):
        if self.random.random() < 0.3:
            self.case.again("delete_object", Key=key)
            self.model.pop(key, None)
        else:
            body = self.random.randbytes(self.random.choice([0, 10, 3000]))
            self.case.again("put_object", Key=key, Body=body)
            self.model[key] = body
        self.answered += 1

    def stop(self):
        self.ended.set()
        self.join(4 * DEADLINE)
        assert not self.is_alive() and not self.failure, self.failure
        return self.model


class Case:
    """One weir with the storages local and disk2, and a bucket that is in sync."""

    def __init__(self, folder, kind, kill):
        self.folder, self.kind, self.kill = folder, kind, kill
        self.log = folder / "calls"
        self.server = self.start(FAULT_KILL=kill, FAULT_LOG=str(self.log))
        self.clients, self.made = [], {}

    def start(self, **faults):
        folder = self.folder / f"run{len(list(self.folder.iterdir()))}"
        folder.mkdir()
        server = Server(folder, *QUICK, data=self.folder / "data", binary=FAULTY,
                        env={"WEIR_ACCESS_KEY": KEYS[0], "WEIR_SECRET_KEY": KEYS[1], **faults})
        server.ready()
        self.url = server.s3_url
        return server

    def run(self, *args, status=0):
        done = subprocess.run([str(FAULTY), *map(str, args), "--data", str(self.server.data), "--url", self.server.url],
                              capture_output=True, text=True, timeout=2 * DEADLINE,
                              env=clean_env(WEIR_ACCESS_KEY=KEYS[0], WEIR_SECRET_KEY=KEYS[1]))
        assert status is None or done.returncode == status, done.stderr
        return done

    def rows(self, *args):
        return json.loads(self.run(*args, "--json").stdout)

    def s3(self, keys=KEYS):
        """Of the server as it is now, one for each thread; boto3 makes them one at a time."""
        name = (threading.get_ident(), self.url, keys)
        if name not in self.made:
            with MAKING:
                self.made[name] = client(self.url, keys)
        return self.made[name]

    def again(self, name, **args):
        """One call, until it is answered: the server is killed and comes back, and says 503 while it is not the time. What
        it did not read in time had no effect."""
        end = time.monotonic() + 3 * DEADLINE
        while True:
            try:
                return getattr(self.s3(), name)(Bucket="photos", **args)
            except (ClientError, BotoCoreError) as e:
                status = e.response["ResponseMetadata"]["HTTPStatusCode"] if isinstance(e, ClientError) else 503
                late = isinstance(e, ClientError) and e.response["Error"]["Code"] == "RequestTimeout"  # on a busy machine
                if (status < 500 and not late) or time.monotonic() > end:
                    raise
                time.sleep(0.05)

    # --- the steps of a case

    def fill(self):
        self.run("storage", "add", "disk2", self.folder / "disk2")
        self.again("create_bucket")
        self.model = {f"dir/{i:02}": f"body {i}".encode() * (i + 1) for i in range(12)}
        for key, body in self.model.items():
            self.again("put_object", Key=key, Body=body)
        self.run("replicate", "add", "photos", "disk2")
        self.in_sync("disk2")
        if self.kind in ("abort", "uploads"):  # keeps the switch open
            self.upload = self.again("create_multipart_upload", Key="big")["UploadId"]
        self.clients = [Client(self, n) for n in range(2)]
        for one in self.clients:
            one.start()
        wait_for(lambda: all(one.answered > 3 for one in self.clients), "the clients")

    def switch(self):
        rows = self.rows("switch", "list")
        return rows[0] if rows else None

    def ask(self):
        """For the switch, and for its end, if nobody has heard of it yet."""
        begin = ["start", "--multipart-ttl", "1h"] if self.kind in ("live", "abort") else ["plan"]
        if not self.switch():
            self.run("switch", begin[0], "photos", "--continue", *begin[1:])
        if self.kind == "abort":
            wait_for(lambda: self.switch()["state"] == "in_progress", "the switch to begin")
            self.run("switch", "abort", "photos")

    def is_dead(self):
        if self.server.process.poll() is None:
            return False
        assert self.server.process.returncode == -signal.SIGKILL, self.server.err
        return True

    def is_over(self):
        switch = self.switch()
        return not switch if self.kind == "abort" else switch["state"] == "done"

    def until_killed(self):
        """Whether it was; a switch that had fewer steps is over."""
        try:
            self.ask()
            wait_for(lambda: self.is_dead() or self.is_over(), "the kill or the end", 2 * DEADLINE)
        except (AssertionError, OSError):
            wait_for(self.is_dead, "the kill")
        return self.is_dead()

    def finish(self):
        check_sanitizers(self.server.err)
        self.server = self.start(FAULT_CLOCK=str(OVER_S))
        if self.kind == "abort":
            done = self.run("switch", "abort", "photos", status=None)
            assert done.returncode == 0 or "aborted already" in done.stderr or not self.switch(), done.stderr
        else:
            self.ask()
        if self.kind == "uploads":
            wait_for(lambda: self.switch()["state"] == "in_progress" and "unblocked" in self.switch()["last"], "unblocked")
            self.complete()
        wait_for(self.is_over, "the end of the switch", 2 * DEADLINE)

    # --- what must hold

    def in_sync(self, to):
        wait_for(lambda: [r["state"] for r in self.rows("replicate", "list", "photos", "--to", to)] == ["in sync"],
                 f"{to} to be in sync", 2 * DEADLINE)

    def check(self):
        for one in self.clients:
            self.model |= one.stop()
        if self.kind == "abort":
            self.complete()
        side, other = ("local", "disk2") if self.kind == "abort" else ("disk2", "local")
        routes = [r["storage"] for r in self.rows("bucket", "route") if r["bucket"] == "photos"]
        assert routes == [side]
        self.in_sync(other)
        self.compare(side, self.s3())
        self.compare(other, viewer(client(self.url, KEYS), other))
        self.check_history()

    def complete(self):
        """The upload that was open all the time."""
        part = os.urandom(PART)
        tag = self.again("upload_part", Key="big", UploadId=self.upload, PartNumber=1, Body=part)["ETag"]
        self.again("complete_multipart_upload", Key="big", UploadId=self.upload,
                   MultipartUpload={"Parts": [{"PartNumber": 1, "ETag": tag}]})
        self.model["big"] = part

    def compare(self, side, s3):
        found = content(s3, "photos")
        assert found.keys() == self.model.keys(), (side, sorted(found.keys() ^ self.model.keys())[:10])
        wrong = [key for key in self.model if found[key] != self.model[key]]
        assert not wrong, (side, wrong)

    def check_history(self):
        if self.kind == "abort":
            return  # it goes with the switch
        at = ""
        for line in self.rows("switch", "show", "photos")["history"]:
            was, _, now = line.partition("|")[2].partition(":")[0].partition(" -> ")
            assert was == at and (was, now) in LEGAL, line
            at = now
        assert at == "done"

    def end(self):
        for one in self.clients:
            one.ended.set()
        if self.server.process.poll() is None:
            os.kill(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()


def try_case(folder, kind, kill):
    """Whether it was killed at all."""
    folder = pathlib.Path(tempfile.mkdtemp(dir=folder))
    case = Case(folder, kind, kill)
    try:
        case.fill()
        killed = case.until_killed()
        if killed:
            case.finish()
        case.check()
        return killed
    except BaseException as e:
        calls = case.log.read_text().split("\n")[-4:] if case.log.exists() else "none"
        raise AssertionError(f"{kind} {kill}, calls {calls}: {e!r}\n{case.server.err[-2000:]}") from e
    finally:
        case.end()


def test_a_switch_that_is_killed_at_any_step_ends_as_it_should(tmp_path):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        killed = list(pool.map(lambda case: try_case(tmp_path, *case), SOME))
    assert all(killed), [case for case, was in zip(SOME, killed) if not was]


@pytest.mark.skipif(os.environ.get("WEIR_TEST_KILLS") != "all", reason="WEIR_TEST_KILLS=all")
@pytest.mark.parametrize("kind", ["down", "live", "abort"])
def test_a_switch_that_is_killed_at_every_call_of_the_store_ends_as_it_should(kind, tmp_path):
    with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
        for first in itertools.count(1, AT_ONCE):
            kills = [f"before:*:{n}" for n in range(first, first + AT_ONCE)]
            if not all(pool.map(lambda kill: try_case(tmp_path, kind, kill), kills)):
                break
    assert first > AT_ONCE
