"""Deletions of repositories, killed at each of their steps; namespaces and encryption; hooks that a running weir calls."""
import contextlib
import http.client
import http.server
import json
import threading
import time
import urllib.parse

import pytest

from conftest import DEADLINE, wait_for
from keeping_lab import GRACE_S, QUEUE, Lake, kills, nodes_of, stop

pytest.importorskip("boto3")


# --- deletion ---

@pytest.mark.parametrize("kill", kills(["lake.delete_repo:1", "lake.delete_branch:1", "lake.delete_branch:2", "lake.drop_repo:1"]))
def test_a_deletion_that_is_killed_goes_on(tmp_path, kill):
    lake = Lake(tmp_path, FAULT_KILL=kill)
    lake.repo("repo")
    lake.repo("other")
    lake.put("other", "a", b"other")
    lake.put("repo", "a", b"a")
    lake.commit("repo", "first")
    lake.call("POST", "/repo/branches", {"name": "side", "source": "main"})
    lake.put("repo", "b", b"staged")
    try:
        lake.ask("DELETE", "/api/v1/repositories/repo?purge=true")
    except OSError:
        pass  # killed before it could answer
    lake.start_later()
    lake.ask("DELETE", "/api/v1/repositories/repo?purge=true")  # one that was not made is asked for again
    lake.call("GET", "/repo", status=(404,))
    lake.wait(lambda: not lake.files("repo/"), "the files to go")
    lake.wait(lambda: lake.ask("POST", "/api/v1/repositories", {
        "name": "repo", "storage_namespace": "s3://lake-data/repo"}).status == 201, "the namespace to be free")
    assert lake.get("other", "main/a") == b"other"
    assert lake.server.s3().list_objects_v2(Bucket="repo").get("KeyCount", 0) == 0
    stop(lake)


def test_files_that_come_behind_a_purge_are_purged(tmp_path):
    go = tmp_path / "go"
    lake = Lake(tmp_path, FAULT_PAUSE=f"before:lake.node:1={go}")
    lake.repo("repo")
    lake.put("repo", "a", b"a")
    answers = []
    commit = threading.Thread(target=lambda: answers.append(lake.ask(
        "POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "late"})))
    commit.start()
    wait_for((tmp_path / "go.waits").exists, "the commit to build its tree")
    lake.call("DELETE", "/repo?purge=true")
    wait_for(lambda: lake.files("repo/") == ["repo/_lakefs/dummy"], "the first purge")
    go.touch()
    commit.join()
    assert answers[0].status == 404
    wait_for(lambda: not lake.files("repo/"), "the second purge")
    wait_for(lambda: lake.ask("POST", "/api/v1/repositories", {
        "name": "repo", "storage_namespace": "s3://lake-data/repo"}).status == 201, "the namespace to be free")
    stop(lake)


# --- namespaces ---

def test_no_repository_reaches_into_the_namespace_of_another(tmp_path):
    lake = Lake(tmp_path)
    lake.repo("one")
    lake.put("one", "a", b"a")
    lake.put("one", "a", b"b")
    for space in ("one/data/x", "one/x"):
        answer = lake.ask("POST", "/api/v1/repositories?bare=true", {"name": "two", "storage_namespace": f"s3://lake-data/{space}"})
        assert answer.status == 400 and "in use" in answer.body
    lake.repo("two")
    body = next(f for f in lake.files("one/data/"))
    answer = lake.ask("PUT", "/api/v1/repositories/two/branches/main/objects?path=x", {
        "physical_address": f"s3://lake-data/{body}", "checksum": "0" * 32, "size_bytes": 1})
    assert answer.status == 400 and "namespace of repository one" in answer.body
    answer = lake.ask("POST", "/api/v1/repositories/two/branches/main/import", {
        "paths": [{"type": "common_prefix", "path": "s3://lake-data/one/data/", "destination": "x/"}],
        "commit": {"message": "m"}})
    assert answer.status == 400 and "namespace of repository one" in answer.body
    s3 = lake.server.s3()
    s3.copy_object(Bucket="two", Key="main/a", CopySource={"Bucket": "one", "Key": "main/a"})
    time.sleep(GRACE_S + 0.2)
    assert lake.collect("one")["bodies_removed"] == 1
    s3.delete_object(Bucket="one", Key="main/a")
    assert lake.collect("one")["bodies_removed"] == 1
    assert lake.get("two", "main/a") == b"b"
    stop(lake)


# --- imports ---

def begin_import(lake, kind, path, destination):
    """Begins an import and returns its id."""
    return lake.call("POST", "/repo/branches/main/import", {
        "paths": [{"type": kind, "path": path, "destination": destination}], "commit": {"message": "import"}})["id"]


def end_import(lake, id):
    """Waits for the end of an import and returns its status."""
    def ended():
        status = lake.call("GET", f"/repo/branches/main/import?id={id}")
        return status["completed"] and status
    return lake.wait(ended, "the import")


def import_objects(lake, kind, path, destination):
    return end_import(lake, begin_import(lake, kind, path, destination))


def source_of(lake, *keys):
    lake.server.s3().create_bucket(Bucket="source")
    for key in keys:
        lake.server.s3().put_object(Bucket="source", Key=key, Body=b"of the source")


def history(lake):
    return [c["message"] for c in lake.call("GET", "/repo/refs/main/commits")["results"]]


@pytest.mark.parametrize("kill", kills(["lake.publish:1"]))
def test_an_import_that_is_killed_is_made_once_and_undoes_no_later_commit(tmp_path, kill):
    go = tmp_path / "go"  # the server dies only when the id of the import is known
    lake = Lake(tmp_path, FAULT_KILL=kill, FAULT_PAUSE=f"before:lake.node:1={go}")
    lake.repo("repo")
    source_of(lake, "in/a", "in/b")
    id = begin_import(lake, "common_prefix", "s3://source/in/", "in/")
    go.touch()
    lake.server.process.wait()
    lake.start()  # the dead process still has the lease of the task
    lake.put("repo", "in/a", b"changed since")
    lake.put("repo", "other", b"other")
    lake.commit("repo", "between")
    stop(lake)
    lake.start(FAULT_CLOCK="120")
    status = end_import(lake, id)
    assert not status.get("error") and status["ingested_objects"] == 2
    made = kill.startswith("after")
    assert history(lake) == (["between", "import"] if made else ["import", "between"]) + ["Repository created"]
    assert status["commit"]["message"] == "import"
    assert lake.get("repo", "main/in/a") == (b"changed since" if made else b"of the source")
    assert lake.get("repo", "main/other") == b"other"
    stop(lake)


@pytest.mark.parametrize("when", ["before", "after"])
def test_a_cancel_and_the_commit_of_an_import_exclude_each_other(tmp_path, when):
    go = tmp_path / "go"
    lake = Lake(tmp_path, FAULT_PAUSE=f"{when}:lake.publish:1={go}")
    lake.repo("repo")
    source_of(lake, "in/a")
    id = begin_import(lake, "common_prefix", "s3://source/in/", "in/")
    wait_for((tmp_path / "go.waits").exists, "the import to publish")
    answer = lake.ask("DELETE", f"/api/v1/repositories/repo/branches/main/import?id={id}")
    assert answer.status == (204 if when == "before" else 409), answer.body
    go.touch()
    stop(lake)  # waits for the task
    lake.start()
    status = end_import(lake, id)
    if when == "before":
        assert "cancel" in status["error"]["message"].lower() and "commit" not in status
        assert history(lake) == ["Repository created"]
    else:
        assert "error" not in status and status["commit"]["message"] == "import"
        assert history(lake) == ["import", "Repository created"]
    stop(lake)


def test_objects_of_a_bucket_behind_a_service_are_imported_and_stay_there(tmp_path, serve):
    far = serve().ready()
    lake = Lake(tmp_path / "near", far=far)
    lake.repo("repo")
    source_of(lake, "in/a", "in/b/c", "one")
    assert far.s3().list_objects_v2(Bucket="source")["KeyCount"] == 3
    status = import_objects(lake, "common_prefix", "s3://source/in/", "to/")
    assert not status.get("error") and status["ingested_objects"] == 2
    status = import_objects(lake, "object", "s3://source/one", "one")
    assert not status.get("error") and status["ingested_objects"] == 1
    assert lake.files("repo/data/") == []  # nothing was copied
    imported = ["main/one", "main/to/a", "main/to/b/c"]
    assert [lake.get("repo", key) for key in imported] == [b"of the source"] * 3
    lake.call("PUT", "/repo/branches/main/hard_reset?ref=main~2")
    lake.call("PUT", "/repo/settings/gc_rules", {"default_retention_days": 0, "branches": []})
    time.sleep(GRACE_S + 2.2)
    assert lake.collect()["bodies_removed"] == 0
    assert far.s3().list_objects_v2(Bucket="source")["KeyCount"] == 3
    stop(lake)


# --- tasks that the queue has lost ---

def lose_task(lake, begin):
    """Begins work and removes its task from the queue before a worker takes it. Returns the answer of the beginning."""
    assert lake.ask("PUT", "/api/v1/queues/lake/pause").status < 300
    answer = begin()
    tasks = json.loads(lake.ask("GET", f"{QUEUE}?state=pending").body)["tasks"]
    assert len(tasks) == 1
    assert lake.ask("DELETE", f"{QUEUE}/{urllib.parse.quote(tasks[0]['id'], safe='')}").status < 300
    assert lake.ask("PUT", "/api/v1/queues/lake/resume").status < 300
    return answer


def test_the_status_of_an_import_adds_its_lost_task_again(tmp_path):
    lake = Lake(tmp_path)
    lake.repo("repo")
    source_of(lake, "in/a")
    id = lose_task(lake, lambda: begin_import(lake, "common_prefix", "s3://source/in/", "in/"))
    assert end_import(lake, id)["ingested_objects"] == 1
    assert lake.get("repo", "main/in/a") == b"of the source"
    stop(lake)


def test_the_status_of_a_dump_adds_its_lost_task_again(tmp_path):
    lake = Lake(tmp_path)
    lake.repo("repo")
    id = lose_task(lake, lambda: lake.call("POST", "/repo/dump"))["id"]
    lake.wait(lambda: lake.call("GET", f"/repo/dump?task_id={id}")["done"], "the dump")
    stop(lake)


# --- pull requests ---

@pytest.mark.parametrize("kill", kills(["lake.publish:1"]))
def test_a_killed_merge_of_a_pull_request_is_whole(tmp_path, kill):
    lake = Lake(tmp_path)
    lake.repo("repo")
    lake.call("POST", "/repo/branches", {"name": "dev", "source": "main"})
    lake.server.s3().put_object(Bucket="repo", Key="dev/a", Body=b"a")
    lake.call("POST", "/repo/branches/dev/commits", {"message": "work"})
    id = lake.call("POST", "/repo/pulls", {"title": "take it", "source_branch": "dev", "destination_branch": "main"})["id"]
    stop(lake)
    lake.start(FAULT_KILL=kill)
    with contextlib.suppress(OSError, http.client.HTTPException):  # killed before it can answer
        lake.call("PUT", f"/repo/pulls/{id}/merge")
    lake.start_later()
    made = kill.startswith("after")
    pull = lake.call("GET", f"/repo/pulls/{id}")
    assert pull["status"] == ("merged" if made else "open")
    assert (history(lake)[0] == "take it") == made
    if made:
        assert pull["merged_commit_id"] == lake.call("GET", "/repo/branches/main")["commit_id"]
        lake.call("PUT", f"/repo/pulls/{id}/merge", status=(409,))
    stop(lake)


# --- encryption ---

def test_objects_are_encrypted_as_their_bucket_asks(tmp_path):
    lake = Lake(tmp_path)
    s3 = lake.server.s3()
    s3.put_bucket_encryption(Bucket="lake-data", ServerSideEncryptionConfiguration={
        "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]})
    lake.repo("repo")
    text = b"this text is nowhere on the disk"
    lake.put("repo", "a", text)
    upload = s3.create_multipart_upload(Bucket="repo", Key="main/parts")["UploadId"]
    parts = [{"PartNumber": n, "ETag": s3.upload_part(Bucket="repo", Key="main/parts", UploadId=upload, PartNumber=n,
                                                      Body=text * 200000)["ETag"]} for n in (1, 2)]
    s3.complete_multipart_upload(Bucket="repo", Key="main/parts", UploadId=upload, MultipartUpload={"Parts": parts})
    lake.commit("repo", "first")
    for key in lake.files("repo/"):
        assert s3.head_object(Bucket="lake-data", Key=key)["ServerSideEncryption"] == "AES256", key
    assert len(nodes_of(lake.files("repo/_lakefs/"))) > 0
    stop(lake)
    lake.start()
    assert lake.get("repo", "main/a") == text and lake.get("repo", "main/parts") == text * 400000
    got = lake.server.s3().get_object(Bucket="repo", Key="main/parts", Range="bytes=32-63")["Body"].read()
    assert got == text
    on_disk = b"".join(p.read_bytes() for p in (lake.folder / "data").rglob("*") if p.is_file())
    assert text not in on_disk
    stop(lake)


def test_imported_objects_are_read_if_weir_has_their_key(tmp_path):
    lake = Lake(tmp_path)
    lake.repo("repo")
    s3 = lake.server.s3()
    s3.create_bucket(Bucket="source")
    s3.put_object(Bucket="source", Key="sealed/a", Body=b"sealed", ServerSideEncryption="AES256")
    s3.put_object(Bucket="source", Key="own/a", Body=b"own", SSECustomerAlgorithm="AES256", SSECustomerKey="k" * 32)
    assert not import_objects(lake, "common_prefix", "s3://source/sealed/", "in/").get("error")
    assert lake.get("repo", "main/in/a") == b"sealed"
    for kind, path in (("common_prefix", "s3://source/own/"), ("object", "s3://source/own/a")):
        status = import_objects(lake, kind, path, "in/b")
        assert "SSE-C" in status["error"]["message"]
    stop(lake)


# --- hooks ---

@pytest.fixture
def webhook():
    """A web server that notes what it is sent and answers with `status`."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((json.loads(body), self.headers.get("X-Token")))
            server.go.wait(DEADLINE)
            self.send_response(server.status)
            if server.status == 302:
                self.send_header("Location", f"http://127.0.0.1:{server.server_port}/elsewhere")
            self.end_headers()
            self.wfile.write(b"the token is hidden-word")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.status, server.go = [], 200, threading.Event()
    server.go.set()
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.go.set()
    server.shutdown()


@pytest.mark.parametrize("hosts, called", [("public", False), ("", False), ("localhost,10.0.0.0/8", False),
                                           ("public,127.0.0.0/8", True)])
def test_hooks_call_only_hosts_that_are_listed(tmp_path, webhook, hosts, called):
    lake = Lake(tmp_path, f"--lake.hooks.hosts={hosts}")
    lake.repo("repo")
    lake.put("repo", "_lakefs_actions/check.yaml", f"""
name: check
on: {{pre-commit: {{}}}}
hooks: [{{id: ask, type: webhook, properties: {{url: "http://127.0.0.1:{webhook.server_port}/hook"}}}}]
""".encode())
    answer = lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "m"})
    if called:
        assert answer.status == 201 and len(webhook.got) == 1
    else:
        assert answer.status == 412 and "lake.hooks.hosts" in answer.body and not webhook.got
    stop(lake)


def test_hooks_follow_no_redirect(tmp_path, webhook):
    lake = Lake(tmp_path)
    lake.repo("repo")
    webhook.status = 302
    lake.put("repo", "_lakefs_actions/check.yaml", f"""
name: check
on: {{pre-commit: {{}}}}
hooks: [{{id: ask, type: webhook, properties: {{url: "http://127.0.0.1:{webhook.server_port}/hook"}}}}]
""".encode())
    answer = lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "m"})
    assert answer.status == 412 and "302" in answer.body and len(webhook.got) == 1
    stop(lake)


def test_hooks_are_called_before_and_after_a_commit(tmp_path, webhook):
    lake = Lake(tmp_path, "--lake.hooks.variables=LAKEFSACTION_TOKEN@127.0.0.1", LAKEFSACTION_TOKEN="hidden-word")
    lake.repo("repo")
    lake.put("repo", "_lakefs_actions/check.yaml", f"""
name: check
on:
  pre-commit:
  post-commit: {{branches: [main]}}
hooks:
  - id: ask
    type: webhook
    properties:
      url: http://127.0.0.1:{webhook.server_port}/hook
      headers: {{X-Token: "{{{{ ENV.LAKEFSACTION_TOKEN }}}}"}}
""".encode())
    webhook.status = 400
    answer = lake.ask("POST", "/api/v1/repositories/repo/branches/main/commits", {"message": "refused"})
    assert answer.status == 412 and "pre-commit hook aborted" in answer.body
    webhook.status = 200
    id = lake.commit("repo", "accepted")
    wait_for(lambda: len(webhook.got) == 3, "the hook behind the commit")
    bodies = [body for body, token in webhook.got if token == "hidden-word"]
    assert [b["event_type"] for b in bodies] == ["pre-commit", "pre-commit", "post-commit"]
    assert bodies[2]["commit_id"] == id and bodies[2]["commit_message"] == "accepted" and bodies[2]["branch_id"] == "main"
    stop(lake)
    assert b"hidden-word" not in b"".join(p.read_bytes() for p in tmp_path.rglob("std*"))


def hold_branches(tmp_path, webhook, event):
    """A repository, in a weir with few threads, whose hook of the event waits for webhook.go."""
    lake = Lake(tmp_path, "--http.threads=8", "--worker.threads=2")
    lake.repo("repo")
    lake.put("repo", "_lakefs_actions/check.yaml", f"""
name: check
on: {{{event}: }}
hooks:
  - {{id: ask, type: webhook, properties: {{url: "http://127.0.0.1:{webhook.server_port}/hook"}}}}
""".encode())
    lake.commit("repo", "hooks")
    webhook.go.clear()
    return lake


def test_slow_hooks_before_events_leave_threads_to_others(tmp_path, webhook):
    lake = hold_branches(tmp_path, webhook, "pre-create-branch")
    held = threading.Thread(target=lake.call, args=("POST", "/repo/branches", {"name": "one", "source": "main"}))
    held.start()
    wait_for(lambda: len(webhook.got) == 1, "the first hook")
    answer = lake.ask("POST", "/api/v1/repositories/repo/branches", {"name": "two", "source": "main"})
    assert answer.status == 429 and "too many hooks" in answer.body
    webhook.go.set()
    held.join()
    lake.call("POST", "/repo/branches", {"name": "two", "source": "main"})
    lake.call("GET", "/repo/branches/one")
    stop(lake)


def test_slow_hooks_behind_events_leave_workers_to_others(tmp_path, webhook):
    lake = hold_branches(tmp_path, webhook, "post-create-branch")
    for name in ("one", "two"):
        lake.call("POST", "/repo/branches", {"name": name, "source": "main"})
    wait_for(lambda: len(webhook.got) == 1, "the first hook")
    lake.collect()  # a task, too
    assert len(webhook.got) == 1
    webhook.go.set()
    lake.wait(lambda: len(webhook.got) == 2, "the second hook")
    stop(lake)
