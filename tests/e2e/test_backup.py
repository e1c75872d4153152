"""Backups of a running weir, and starting on them."""
import json
import os
import stat
import threading

import pytest


def where(server):
    return ["--data", server.data, "--api.listen", server.url.removeprefix("http://")]


def test_backup_while_writes_go_on_and_start_on_the_copy(serve, weir, tmp_path):
    server = serve(config="log.level: info\n").ready()
    stop = threading.Event()

    def write():
        while not stop.is_set():
            server.get("/readyz")  # a durable write, at most one a second
    writer = threading.Thread(target=write)
    writer.start()
    try:
        run = weir("backup", "copy", *where(server))
        assert run.returncode == 0, run.stderr
        again = weir("backup", "--json", tmp_path / "copy2", *where(server))
        assert json.loads(again.stdout) == {"dir": str(tmp_path / "copy2")}
    finally:
        stop.set()
        writer.join()
    assert run.stdout == f"backed up to {tmp_path}/copy\nto start on it: weir serve --data {tmp_path}/copy\n"
    assert stat.S_IMODE(os.stat(tmp_path / "copy").st_mode) == 0o700
    assert stat.S_IMODE(os.stat(tmp_path / "copy/credentials").st_mode) == 0o600
    assert (tmp_path / "copy/weir.yaml").read_text() == "log.level: info\n"
    assert not list(tmp_path.glob("*.partial*"))
    restored = serve(data=tmp_path / "copy").ready()
    assert restored.keys == server.keys
    assert restored.get("/api/v1/version", keys=server.keys).status == 200
    assert json.loads(restored.get("/readyz").body)["ready"]


def test_a_folder_that_exists_is_left_alone(server, weir, tmp_path):
    (tmp_path / "there").mkdir()
    run = weir("backup", "there", *where(server))
    assert run.returncode == 1
    assert run.stderr == f"weir: backup: {tmp_path}/there exists already\n"
    assert list((tmp_path / "there").iterdir()) == []


@pytest.mark.parametrize("body, code", [
    ({"dir": "relative"}, "invalid"), ({"dir": "/tmp/../etc/x"}, "invalid"), ({}, "invalid"), ({"dir": 1}, "invalid"),
    ("[]", "invalid"), ("{", "malformed"), ('{"dir":"/a","dir":"/b"}', "malformed"),
])
def test_wrong_bodies_are_refused(server, body, code):
    answer = server.post("/api/v1/backup", body, keys=server.keys, headers={"Content-Type": "application/json"})
    assert (answer.status, json.loads(answer.body)["error"]["code"]) == (400, code)


def test_only_json_is_taken_and_only_so_much(server):
    form = {"Content-Type": "text/plain"}
    answer = server.post("/api/v1/backup", '{"dir":"/tmp/x"}', keys=server.keys, headers=form)
    assert answer.status == 415 and "application/json" in answer.body
    answer = server.post("/api/v1/backup", {"dir": "/" + "x" * 100000}, keys=server.keys)
    assert answer.status == 413


def test_where_it_cannot_be_written_it_fails_and_leaves_nothing(server, weir):
    run = weir("backup", "/proc/weir-backup", *where(server))
    assert run.returncode == 1 and "/proc/weir-backup" in run.stderr


def test_without_the_keys_it_is_refused(server, weir, tmp_path):
    run = weir("backup", tmp_path / "copy", "--url", server.url)
    assert run.returncode == 1 and "keys are needed" in run.stderr
    assert not (tmp_path / "copy").exists()
