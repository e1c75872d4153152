"""Deletions and collections of repositories, killed at each of their steps, and hooks that a running weir calls.

The program is weir_faulty (tests/crash), which kills itself at the step that it is told. Its next start has a clock that is
two minutes ahead, so that the dead process's lease on its task is over; the task is then told to run at once.
"""
import http.server
import json
import threading
import time
import urllib.parse

import pytest

from conftest import BUILD, Server, wait_for

pytest.importorskip("boto3")
from botocore.exceptions import ClientError  # noqa: E402

FAULTY = BUILD / "tests/crash/weir_faulty"
GRACE_S = 1
QUEUE = "/api/v1/queues/lake/tasks"


class Lake:
    """A weir with the bucket lake-data, which can be killed and started again."""

    def __init__(self, folder, **env):
        self.folder, self.starts, self.server = folder, 0, None
        self.start(**env)
        self.server.s3().create_bucket(Bucket="lake-data")

    def start(self, **env):
        folder = self.folder / str(self.starts)
        folder.mkdir()
        self.starts += 1
        self.server = Server(folder, f"--lake.gc.grace={GRACE_S}s", data=self.folder / "data", binary=FAULTY, env=env).ready()

    def start_later(self):
        self.server.process.wait()
        self.start(FAULT_CLOCK="120")

    def ask(self, method, path, body=None):
        return self.server.request(method, path, body=body, keys=self.server.keys)

    def call(self, method, path, body=None, status=(200, 201, 202, 204)):
        answer = self.ask(method, "/api/v1/repositories" + path, body)
        assert answer.status in status, answer.body
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def repo(self, name):
        self.call("POST", "", {"name": name, "storage_namespace": f"s3://lake-data/{name}"})

    def put(self, repo, path, body):
        self.server.s3().put_object(Bucket=repo, Key="main/" + path, Body=body)

    def commit(self, repo, message):
        return self.call("POST", f"/{repo}/branches/main/commits", {"message": message})["id"]

    def get(self, repo, key):
        return self.server.s3().get_object(Bucket=repo, Key=key)["Body"].read()

    def files(self, prefix):
        pages = self.server.s3().get_paginator("list_objects_v2").paginate(Bucket="lake-data", Prefix=prefix)
        return [o["Key"] for page in pages for o in page.get("Contents", [])]

    def hurry(self):
        """Makes the tasks of the dead process run now."""
        for state in ("retry", "scheduled"):
            for task in json.loads(self.ask("GET", f"{QUEUE}?state={state}").body)["tasks"]:
                self.ask("POST", f"{QUEUE}/{urllib.parse.quote(task['id'], safe='')}/run")

    def wait(self, condition, what):
        def look():
            self.hurry()
            return condition()
        wait_for(look, what)


def stop(lake):
    assert lake.server.stop() == 0, lake.server.err


def kills(steps):
    return [f"{when}:{step}" for step in steps for when in ("before", "after")]


# --- collection ---

@pytest.mark.parametrize("kill", kills(["lake.gc_mark:1", "lake.gc_mark:2", "lake.gc_mark:3", "lake.gc_mark:4", "lake.gc_mark:5",
                                        "lake.gc_tokens:1", "lake.gc_remove:1", "lake.gc_remove:2"]))
def test_a_collection_that_is_killed_goes_on(tmp_path, kill):
    lake = Lake(tmp_path, FAULT_KILL=kill)
    lake.repo("repo")
    lake.put("repo", "a", b"first a")
    old = lake.commit("repo", "first")
    lake.put("repo", "a", b"second a")
    lake.commit("repo", "second")
    lake.put("repo", "b", b"overwritten b")
    lake.put("repo", "b", b"staged b")
    lake.call("PUT", "/repo/settings/gc_rules", {"default_retention_days": 0, "branches": []})
    assert len(lake.files("repo/data/")) == 4
    time.sleep(GRACE_S + 0.2)
    lake.ask("POST", "/api/v1/repositories/repo/gc/run", {})
    lake.start_later()
    lake.wait(lambda: lake.call("GET", "/repo/gc/run")["stage"] == "done", "the collection to end")
    assert lake.get("repo", "main/a") == b"second a"
    assert lake.get("repo", "main/b") == b"staged b"
    assert len(lake.files("repo/data/")) == 2
    with pytest.raises(ClientError):
        lake.get("repo", old + "/a")
    lake.call("GET", f"/repo/refs/{old}/objects?path=a", status=(410,))
    lake.put("repo", "c", b"afterwards")
    lake.commit("repo", "third")
    assert lake.get("repo", "main/c") == b"afterwards"
    stop(lake)


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


# --- hooks ---

@pytest.fixture
def webhook():
    """A web server that notes what it is sent and answers with `status`."""
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            server.got.append((json.loads(body), self.headers.get("X-Token")))
            self.send_response(server.status)
            self.end_headers()
            self.wfile.write(b"the token is hidden-word")

        def log_message(self, *_):
            pass

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.got, server.status = [], 200
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server
    server.shutdown()


def test_hooks_are_called_before_and_after_a_commit(tmp_path, webhook):
    lake = Lake(tmp_path, LAKEFSACTION_TOKEN="hidden-word")
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
