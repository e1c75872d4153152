"""Two weirs in one namespace, of which one runs on a copy of the records of the other: nothing that is live in either of them
is removed, and somebody who decides makes one of them go on."""
import io
import json
import shutil
import subprocess
import tarfile
import time

import pytest

from conftest import WEIR, Server, wait_for
from keeping_lab import GRACE_S, Lake, stop

pytest.importorskip("boto3")

FLAGS = [f"--lake.gc.grace={GRACE_S}s", "--lake.drop.again=1s"]


class Copy(Lake):
    """A weir on a copy of the data folder of another one."""

    def __init__(self, folder, data):
        self.folder, self.starts, self.flags = folder, 1, FLAGS
        folder.mkdir()
        self.server = Server(folder, *FLAGS, data=data).ready()


def fill(lake):
    lake.repo("repo")
    lake.put("repo", "a", b"first a")
    lake.commit("repo", "first")
    lake.put("repo", "b", b"overwritten b")
    lake.put("repo", "b", b"staged b")


def ended(lake):
    """The report of a collection that has ended, in one way or the other."""
    report = lake.call("GET", "/repo/gc/run")
    return report["stage"] in ("done", "failed") and report


def collect(lake):
    lake.call("POST", "/repo/gc/run", {})
    return lake.wait(lambda: ended(lake), "the collection to end")


def check_live(first, copy):
    assert first.get("repo", "main/a") == b"first a" and first.get("repo", "main/b") == b"b of the first"
    assert copy.get("repo", "main/a") == b"first a" and copy.get("repo", "main/b") == b"b of the copy"


def copied(first, tmp_path, how):
    """Makes a copy of the records: by `weir backup`, or of the folder of a weir that was stopped."""
    data = tmp_path / "copied"
    if how == "backup":
        first.run("backup", str(data))
    else:
        stop(first)
        shutil.copytree(first.folder / "data", data, symlinks=True)
        first.start()
    return Copy(tmp_path / "copy", data)


@pytest.mark.parametrize("how", ["backup", "folder"])
@pytest.mark.parametrize("earlier", ["first", "copy"])
def test_two_weirs_on_copied_records_lose_nothing(tmp_path, serve, how, earlier):
    far = serve().ready()
    first = Lake(tmp_path / "first", far=far)
    fill(first)
    copy = copied(first, tmp_path, how)
    copy.put("repo", "b", b"b of the copy")
    copy.commit("repo", "second, in the copy")
    first.put("repo", "b", b"b of the first")
    first.commit("repo", "second")
    before = sorted(first.files("repo/"))
    time.sleep(GRACE_S + 2.2)  # the grace is what the test is about: every file is old enough now
    for lake in (first, copy) if earlier == "first" else (copy, first):
        report = collect(lake)
        assert report["stage"] == "failed" and "another lake" in report["error"], report
        assert report["bodies_removed"] == report["nodes_removed"] == 0
        wait_for(lambda lake=lake: lake.metric("weir_lake_claims_refused") == 1, "the metric")
        assert lake.metric("weir_lake_collections_refused_total") >= 1
    assert sorted(first.files("repo/")) == before
    check_live(first, copy)

    stop(copy)
    first.run("lake", "gc", "claim", "lake://repo")
    assert collect(first)["stage"] == "done"
    assert first.metric("weir_lake_claims_refused") == 0
    assert len(first.files("repo/data/")) == 2
    assert first.get("repo", "main/b") == b"b of the first"
    stop(first)
    assert "lake.claim_refused" in first.server.err or "lake.gc_refused" in first.server.err


def test_a_weir_that_is_restored_takes_the_claim_over(tmp_path, serve):
    far = serve().ready()
    first = Lake(tmp_path / "first", far=far)
    fill(first)
    data = tmp_path / "copied"
    first.run("backup", str(data))
    stop(first)
    first.start()  # a later life, which the backup does not know
    first.put("repo", "c", b"behind the backup")
    stop(first)
    restored = Copy(tmp_path / "copy", data)
    time.sleep(GRACE_S + 2.2)
    report = collect(restored)
    assert report["stage"] == "failed" and "weir lake gc claim lake://repo" in report["error"]
    shown = subprocess.run([WEIR, "lake", "gc", "report", "lake://repo", "--data", data, "--url", restored.server.url],
                           capture_output=True, text=True)
    assert shown.returncode == 0 and "another lake" in shown.stdout, shown.stderr
    file = tmp_path / "diagnosis.tar"
    restored.run("lake", "diagnose", str(file))
    with tarfile.open(fileobj=io.BytesIO(file.read_bytes())) as tar:
        rows = json.load(tar.extractfile("collections.json"))
    assert [(r["repository"], r["claim_refused"], r["failed"]) for r in rows] == [("repo", True, True)]
    restored.run("lake", "gc", "claim", "lake://repo")
    assert collect(restored)["stage"] == "done"
    assert restored.get("repo", "main/a") == b"first a" and restored.get("repo", "main/b") == b"staged b"
    assert len(restored.files("repo/data/")) == 2

    first.start()  # the old one comes back
    first.put("repo", "d", b"of the old one")
    time.sleep(GRACE_S + 2.2)
    assert collect(first)["stage"] == "failed"
    assert first.get("repo", "main/d") == b"of the old one"
    assert collect(restored)["stage"] == "failed"
    assert first.get("repo", "main/d") == b"of the old one"
    stop(first)
    stop(restored)


def test_a_weir_without_the_files_neither_collects_nor_writes(tmp_path, redis):
    """Two weirs on one Redis, and the namespace is a folder of one of them. The other has a bucket of the same name."""
    url = {"WEIR_KV_URL": f"redis://127.0.0.1:{redis.port}"}
    first = Lake(tmp_path / "first", **url)
    other = Lake(tmp_path / "other", **url)
    fill(first)
    wait_for(lambda: other.ask("GET", "/api/v1/repositories/repo").status == 200, "the other to know the repository")
    before = sorted(first.files("repo/"))
    time.sleep(GRACE_S + 2.2)
    report = collect(other)
    assert report["stage"] == "failed" and "has no claim" in report["error"], report
    refused = other.ask("POST", "/api/v1/repositories/repo/branches/main/objects?path=c", {"in": "the wrong folder"})
    assert refused.status == 503 and "has no claim" in refused.body, refused.body
    assert sorted(first.files("repo/")) == before and other.files("repo/") == []
    assert collect(first)["stage"] == "done"
    assert first.get("repo", "main/b") == b"staged b" and len(first.files("repo/data/")) == 2
    stop(first)
    stop(other)
