"""Moving repositories: dumps of refs and restores into bare repositories, also killed at each of their steps."""
import json

import pytest

from conftest import runner, wait_for
from lake_lab import Lake
from test_lake_keeping import Lake as Faulty, kills, stop

pytest.importorskip("boto3")

IDS = ("commits_meta_range_id", "tags_meta_range_id", "branches_meta_range_id")


def history(lake):
    """Two branches, a merge, a hidden branch and a tag."""
    lake.put("a", b"first")
    lake.commit("first")
    lake.branch("work")
    lake.put("b", b"second", branch="work")
    lake.commit("second", branch="work")
    lake.call("POST", "/repositories/repo/refs/work/merge/main", {"message": "merged"})
    lake.branch("dark", hidden=True)
    lake.call("POST", "/repositories/repo/tags", {"id": "v1", "ref": "work"})


def state(lake):
    """What clients see of the repository."""
    branches = list(lake.pages("/repositories/repo/branches", show_hidden=True))
    tags = list(lake.pages("/repositories/repo/tags"))
    log = list(lake.pages("/repositories/repo/refs/main/commits"))
    return branches, tags, log, lake.paths("main"), lake.paths("v1"), lake.get("b")


def make_bare(lake):
    """Deletes the repository, and makes a bare one in its namespace."""
    lake.call("DELETE", "/repositories/repo")

    def made():
        return lake.send("POST", "/repositories", {"name": "repo", "storage_namespace": "s3://lake-data/repo"},
                         bare="true").status == 201
    wait_for(made, "the namespace to be free")


def task(lake, kind, body=None):
    id = lake.call("POST", f"/repositories/repo/{kind}", body)["id"]
    status = {}

    def done():
        status.update(lake.call("GET", f"/repositories/repo/{kind}", task_id=id))
        return status["done"]
    wait_for(done, f"the {kind}")
    assert status["id"] == id
    return status


def test_a_dump_is_restored_at_once(server):
    lake = Lake(server)
    lake.repo()
    history(lake)
    before = state(lake)
    dump = lake.call("PUT", "/repositories/repo/refs/dump")
    assert set(dump) == set(IDS) and all(len(id) == 64 for id in dump.values())
    manifest = server.s3().get_object(Bucket="lake-data", Key="repo/_lakefs/refs_manifest.json")["Body"].read()
    assert json.loads(manifest) == dump
    lake.fails("PUT", "/repositories/repo/refs/restore", 400, "not bare", body=dump)
    make_bare(lake)
    lake.fails("PUT", "/repositories/repo/refs/restore", 400, "three ids", body={IDS[0]: dump[IDS[0]]})
    lake.fails("PUT", "/repositories/repo/refs/restore", 400, "64 hex digits", body={**dump, IDS[0]: "x"})
    lake.call("PUT", "/repositories/repo/refs/restore", dump)
    assert state(lake) == before
    assert lake.call("PUT", "/repositories/repo/refs/dump") == dump
    lake.put("c", b"third")
    lake.commit("third")


def test_a_dump_is_restored_by_tasks(server):
    lake = Lake(server)
    lake.repo()
    history(lake)
    before = state(lake)
    done = task(lake, "dump")
    assert done["rows"] == 8 and "error" not in done  # 4 commits, 3 branches, a tag
    lake.fails("GET", "/repositories/repo/restore", 404, "task not found", task_id=done["id"])
    lake.fails("GET", "/repositories/repo/dump", 404, "task not found", task_id="nothing")
    assert "not bare" in task(lake, "restore", done["refs"])["error"]
    make_bare(lake)
    assert task(lake, "restore", {})["rows"] == 8  # the manifest says what to restore
    assert state(lake) == before
    assert task(lake, "dump")["refs"] == done["refs"]


def test_only_who_may_manage_the_repository_moves_it(server, weir):
    lake = Lake(server)
    lake.repo()
    keys = runner(server, weir)("user", "add", "stranger", "--json")[0]
    stranger = Lake(server, (keys["access_key"], keys["secret_key"]))
    for method, path in (("PUT", "/refs/dump"), ("POST", "/dump"), ("PUT", "/refs/restore"), ("POST", "/restore")):
        assert stranger.send(method, "/repositories/repo" + path, {}).status in (401, 403, 404)


def test_commands(server, weir, tmp_path):
    lake, run = Lake(server), runner(server, weir)
    lake.repo()
    history(lake)
    before = state(lake)
    dump = run("lake", "dump", "lake://repo", "--json")
    assert dump[0]["rows"] == 8
    file = tmp_path / "dump.json"
    file.write_text(json.dumps(dump))
    assert "not bare" in run("lake", "restore", "lake://repo", "--from", file, status=1)
    make_bare(lake)
    file.write_text("{}")
    assert "has no member commits_meta_range_id" in run("lake", "restore", "repo", "--from", file, status=1)
    file.write_text(json.dumps(dump))
    assert run("lake", "restore", "lake://repo", "--from", file, "--json")[0]["rows"] == 8
    assert state(lake) == before
    make_bare(lake)
    run("lake", "restore", "lake://repo")
    assert state(lake) == before


@pytest.mark.parametrize("kill", kills(["lake.restore_row:1", "lake.restore_row:2", "lake.restore_row:3"]))
def test_a_restore_that_is_killed_goes_on(tmp_path, kill):
    faulty = Faulty(tmp_path)
    lake = Lake(faulty.server)
    lake.repo()
    history(lake)
    before = state(lake)
    dump = lake.call("PUT", "/repositories/repo/refs/dump")
    make_bare(lake)
    stop(faulty)
    faulty.start(FAULT_KILL=kill)
    Lake(faulty.server).call("POST", "/repositories/repo/restore", dump)
    faulty.start_later()
    lake = Lake(faulty.server)
    faulty.wait(lambda: lake.send("GET", "/repositories/repo/branches/main").status == 200, "the restore to end")
    assert state(lake) == before
    assert lake.call("PUT", "/repositories/repo/refs/dump") == dump
    stop(faulty)
