"""Failovers of the store under load: four writers over two gateways, two workers, services as storages, Redis with Sentinel.

The model is the test's own: what each key may hold, by the answers that its one writer got. Whatever was answered 200 counts
from then on. An answer of 503, or none, leaves both possible: the state before and the one that was asked for.
"""
import contextlib
import itertools
import os
import threading
import time

from botocore.exceptions import BotoCoreError, ClientError

from conftest import DEADLINE, wait_for
from replica_lab import Lab, content
from test_bad_days import synced

BUCKET, WRITERS, KEYS = "failover", 4, 25


class Writer(threading.Thread):
    """Puts, overwrites and deletes objects of its own, in turn through both gateways."""

    def __init__(self, lab, number):
        super().__init__(daemon=True)
        self.clients, self.number, self.stop = [lab.s3(n) for n in range(2)], number, threading.Event()
        self.may = {}  # key to the bodies that it may have; None: no object
        self.changed = {}  # key to when it was last answered
        self.count, self.refused, self.longest, self.wrong = 0, 0, 0, None

    def run(self):
        last = time.monotonic()
        for n in itertools.count():
            if self.stop.is_set():
                return
            answered = self.change(self.clients[n % 2], f"w{self.number}/k{n * 7 % KEYS}", n)
            if self.wrong:
                return
            now = time.monotonic()
            if not answered:
                self.refused += 1
                self.stop.wait(0.02)
            self.longest = max(self.longest, now - last)
            last = now if answered else last

    def change(self, s3, key, n):
        body = None if n % 5 == 4 else os.urandom(20 + n % 50)
        before = self.may.get(key, {None})
        self.may[key] = before | {body}
        try:
            if body is None:
                s3.delete_object(Bucket=BUCKET, Key=key)
            else:
                s3.put_object(Bucket=BUCKET, Key=key, Body=body)
        except ClientError as e:
            if e.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
                self.wrong = e
            return False
        except BotoCoreError:
            return False
        self.may[key], self.changed[key] = {body}, time.monotonic()
        self.count += 1
        return True


@contextlib.contextmanager
def load(lab, writers):
    """All write meanwhile, before and after what is done."""
    def all_go_on(since):
        assert not any(w.wrong for w in writers), [w.wrong for w in writers]
        return all(w.count > was + 10 for w, was in zip(writers, since))
    for w in writers:
        w.start()
    wait_for(lambda: all_go_on([0] * WRITERS), "the writers")
    try:
        yield
        since = [w.count for w in writers]
        wait_for(lambda: all_go_on(since), "the writers after the failover")
    finally:
        for w in writers:
            w.stop.set()
        for w in writers:
            w.join()
    lines = [f"{w.count} answered, {w.refused} refused, {w.longest:.1f} s without an answer" for w in writers]
    print("\n".join(lines))
    assert all(w.longest < DEADLINE / 2 for w in writers), lines


def check_model(lab, writers):
    """Everything that was answered is on the main storage and seen through both gateways."""
    found = [content(lab.s3(n), BUCKET) for n in range(2)] + [lab.content("a", BUCKET)]
    for there in found:
        assert not (there.keys() - {k for w in writers for k in w.may})
        wrong = [k for w in writers for k in w.may if there.get(k) not in w.may[k]]
        assert not wrong, wrong
    assert found[0] == found[1] == found[2]
    return found[0]


def differences(lab, model):
    there = lab.content("b", BUCKET)
    return {k for k in model.keys() | there.keys() if model.get(k) != there.get(k)}


def writers_on(lab, model):
    """New ones, which know what the bucket holds."""
    made = [Writer(lab, n) for n in range(WRITERS)]
    for w in made:
        w.may = {k: {v} for k, v in model.items() if k.startswith(f"w{w.number}/")}
    return made


def test_a_failover_under_load_loses_nothing_that_redis_kept(tmp_path):
    lab = Lab("sentinel", tmp_path, "--store.redis.timeout=5s")
    group = lab.redis
    try:
        lab.s3().create_bucket(Bucket=BUCKET)
        lab.add(BUCKET)
        # The promoted replica has everything that was answered: nothing may be missing anywhere, without a resync.
        writers = writers_on(lab, {})
        with load(lab, writers):
            group.level()
            old = group.fail_over()
        synced(lab, BUCKET)
        model = check_model(lab, writers)
        assert not differences(lab, model)
        # The master is killed in the middle of it. What it had not passed on are changes of its last moments: their objects
        # are on the main storage, and a resync brings what the replica never heard of.
        group.join(old)
        writers = writers_on(lab, model)
        with load(lab, writers):
            killed = time.monotonic()
            group.fail_over()
        synced(lab, BUCKET)
        model = check_model(lab, writers)
        missing = differences(lab, model)
        print(f"{len(missing)} changes were not passed on to the replica")
        changed = {k: t for w in writers for k, t in w.changed.items()}
        early = [k for k in missing if not killed - 2 < changed.get(k, 0) < killed + 2]
        assert not early, early
        if missing:
            lab.run("replicate", "resync", BUCKET, "--user", "root")
            synced(lab, BUCKET)
        assert not differences(lab, model)
        assert not lab.tasks("archived")
    finally:
        lab.end()
