"""A weir with a lake that can be killed at its steps, for tests of deletion, collection and hooks.

The program is weir_faulty (tests/crash), which kills itself at the step that it is told. Its next start has a clock that is
two minutes ahead, so that the dead process's lease on its task is over; the task is then told to run at once.
"""
import json
import subprocess
import urllib.parse

from conftest import BUILD, WEIR, Server, wait_for

FAULTY = BUILD / "tests/crash/weir_faulty"
GRACE_S = 1
QUEUE = "/api/v1/queues/lake/tasks"


class Lake:
    """A weir with the bucket lake-data, which can be killed and started again. With `far` the bucket is on a storage behind
    an S3 service, which is that weir."""

    def __init__(self, folder, *flags, far=None, **env):
        self.folder, self.starts, self.server = folder, 0, None
        self.flags = [f"--lake.gc.grace={GRACE_S}s", "--lake.drop.again=1s", "--lake.hooks.hosts=127.0.0.1", *flags]
        if far:
            self.start()
            self.add_storage(far, "--main")
            self.server.s3().create_bucket(Bucket="lake-data")
            stop(self)
            self.start(**env)
            return
        self.start(**env)
        self.server.s3().create_bucket(Bucket="lake-data")

    def run(self, *args):
        """Runs a command of weir against the server, and returns its output."""
        done = subprocess.run([WEIR, *args, "--data", self.server.data, "--url", self.server.url], capture_output=True,
                              text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    def add_storage(self, far, *flags):
        self.run("storage", "add", "far", "--endpoint", far.s3_url, "--user", "root", "--access-key", far.keys[0],
                 "--secret-key", far.keys[1], *flags)

    def start(self, **env):
        folder = self.folder / str(self.starts)
        folder.mkdir(parents=True)
        self.starts += 1
        self.server = Server(folder, *self.flags, data=self.folder / "data", binary=FAULTY, env=env).ready()

    def start_later(self):
        self.server.process.wait()
        self.start(FAULT_CLOCK="120")

    def ask(self, method, path, body=None):
        return self.server.request(method, path, body=body, keys=self.server.keys)

    def call(self, method, path, body=None, status=(200, 201, 202, 204)):
        answer = self.ask(method, "/api/v1/repositories" + path, body)
        assert answer.status in status, answer.body
        return json.loads(answer.body) if answer.body.startswith("{") else answer.body

    def repo(self, name, space=None):
        self.call("POST", "", {"name": name, "storage_namespace": f"s3://lake-data/{space or name}"})

    def put(self, repo, path, body):
        self.server.s3().put_object(Bucket=repo, Key="main/" + path, Body=body)

    def commit(self, repo, message):
        return self.call("POST", f"/{repo}/branches/main/commits", {"message": message})["id"]

    def get(self, repo, key):
        return self.server.s3().get_object(Bucket=repo, Key=key)["Body"].read()

    def files(self, prefix):
        pages = self.server.s3().get_paginator("list_objects_v2").paginate(Bucket="lake-data", Prefix=prefix)
        return [o["Key"] for page in pages for o in page.get("Contents", [])]

    def metric(self, name):
        lines = self.ask("GET", "/metrics").body.splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(name + " ")))

    def hurry(self):
        """Makes the tasks of the dead process run now."""
        for state in ("retry", "scheduled"):
            for task in json.loads(self.ask("GET", f"{QUEUE}?state={state}").body)["tasks"]:
                self.ask("POST", f"{QUEUE}/{urllib.parse.quote(task['id'], safe='')}/run")

    def wait(self, condition, what):
        def look():
            self.hurry()
            return condition()
        return wait_for(look, what)

    def collect(self, repo="repo"):
        """Runs a collection to its end and returns its report."""
        self.call("POST", f"/{repo}/gc/run", {})
        return self.wait(lambda: self.done(repo), "the collection to end")

    def done(self, repo="repo"):
        report = self.call("GET", f"/{repo}/gc/run")
        return report["stage"] == "done" and report


def stop(lake):
    assert lake.server.stop() == 0, lake.server.err


def kills(steps):
    return [f"{when}:{step}" for step in steps for when in ("before", "after")]


def nodes_of(files):
    return [f for f in files if len(f.rsplit("/", 1)[1]) == 64]
