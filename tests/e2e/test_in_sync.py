"""Whoever wrote and then hears that a replication is in sync finds at its destination what was written."""
import concurrent.futures
import json
import random
import time

import pytest

from conftest import DEADLINE
from replica_lab import KEYS, Lab, client

CLIENTS, WRITES = 4, 12


@pytest.fixture(params=["embedded", "redis"])
def lab(request, tmp_path):
    """A folder as the source, or a service; the destination is a service."""
    lab = Lab(request.param, tmp_path)
    if lab.kind == "embedded":
        far = lab.weir("far").ready()
        lab.run("storage", "add", "far", "--endpoint", far.s3_url, "--user", "root", "--access-key", KEYS[0], "--secret-key",
                KEYS[1])
        lab.names["b"], lab.endpoints = "far", {"b": (far.s3_url, KEYS)}
    yield lab
    lab.end()


def state(lab, n, id):
    answer = lab.gateways[n % len(lab.gateways)].request("GET", f"/api/v1/replications/{id}", keys=KEYS)
    assert answer.status == 200, answer.body
    return json.loads(answer.body)["state"]


def write_and_look(lab, bucket, id, number):
    """Through either gateway, and asked at either. Answers what was not there."""
    rng, there, missing = random.Random(number), client(*lab.endpoints["b"]), []
    for n in range(WRITES):
        key, body = f"{number}-{n % 3}", f"{number} {n}".encode()
        lab.s3(rng.randrange(2)).put_object(Bucket=bucket, Key=key, Body=body)
        end = time.monotonic() + 2 * DEADLINE
        while state(lab, rng.randrange(2), id) != "in sync":
            assert time.monotonic() < end, "never in sync"
        try:
            found = there.get_object(Bucket=bucket, Key=key)["Body"].read()
        except there.exceptions.NoSuchKey:
            found = None
        if found != body:
            missing.append((key, body, found))
    return missing


def test_what_was_written_before_in_sync_is_at_the_destination(lab):
    lab.s3().create_bucket(Bucket="box")
    lab.add("box")
    lab.in_sync("box")
    id = lab.row("box")["id"]
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        runs = [pool.submit(write_and_look, lab, "box", id, n) for n in range(CLIENTS)]
        assert [r.result() for r in runs] == [[]] * CLIENTS
