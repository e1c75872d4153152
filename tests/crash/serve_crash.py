#!/usr/bin/python3
"""Kills a real `weir serve` in the middle of S3 requests and looks at what is left.

    tests/crash/serve_crash.py BUILD [--runs N] [--seed S]

One run: several threads put, overwrite, upload in parts, copy and remove keys of their own over HTTP, half of
them in a bucket that keeps versions. At a random moment the server is killed with SIGKILL (and sometimes once
more while it starts again). After the restart
  1. every key has exactly the bytes of the last change that was answered, or of the one that was under way;
     what was removed stays removed; every version that was answered is there, and no other;
  2. uploads that were completed or aborted are gone;
  3. once the collector has run, `weir storage scrub` finds index, counts and blobs agreeing, and no file left over.
That damage would show is proved first, by damaging. The last line is "N passed, N failed": one for each run, one
for the proof.
"""
import argparse
import collections
import datetime
import hashlib
import hmac
import http.client
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
import urllib.parse
import xml.etree.ElementTree

sys.path.insert(0, os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "e2e"))

WRITERS, KEYS = 6, 5
LOAD_CHANGES = 120  # answered ones before a kill, at most
VERSIONS_KEPT = 20  # of a key; then the check removes them all
PART_MIN = 5 * 1024 * 1024
SWEEP_SECONDS = 180


class Gone(Exception):
    """The server is: whether the request was carried out is not known."""


class Wrong(Exception):
    """What must not be."""


Answer = collections.namedtuple("Answer", "status headers body")


class Client:
    """One S3 connection; signature version 4 over headers, bodies unsigned."""

    def __init__(self, address, keys):
        self.address, (self.access, self.secret) = address, keys
        self.connection = http.client.HTTPConnection(address, timeout=60)

    def sign(self, method, path, query, headers):
        now = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
        headers.update({"host": self.address, "x-amz-date": now, "x-amz-content-sha256": "UNSIGNED-PAYLOAD"})
        names = ";".join(sorted(headers))
        lines = "".join(f"{name}:{headers[name]}\n" for name in sorted(headers))
        text = f"{method}\n{path}\n{query}\n{lines}\n{names}\nUNSIGNED-PAYLOAD"
        scope = f"{now[:8]}/us-east-1/s3/aws4_request"
        key = ("AWS4" + self.secret).encode()
        for part in scope.split("/"):
            key = hmac.digest(key, part.encode(), "sha256")
        text = f"AWS4-HMAC-SHA256\n{now}\n{scope}\n{hashlib.sha256(text.encode()).hexdigest()}"
        signature = hmac.digest(key, text.encode(), "sha256").hex()
        headers["authorization"] = (f"AWS4-HMAC-SHA256 Credential={self.access}/{scope}, SignedHeaders={names}, "
                                    f"Signature={signature}")

    def ask(self, method, path, query=(), headers=None, body=b"", want=(200,)):
        query = "&".join(f"{k}={urllib.parse.quote(v, safe='')}" for k, v in sorted(query))
        headers = dict(headers or {})
        self.sign(method, path, query, headers)
        try:
            self.connection.request(method, path + ("?" + query if query else ""), body=body, headers=headers)
            answer = self.connection.getresponse()
            answer = Answer(answer.status, answer.headers, answer.read())
        except (OSError, http.client.HTTPException) as e:
            self.connection.close()
            raise Gone() from e
        if answer.status not in want:
            raise Wrong(f"{method} {path}?{query}: {answer.status} {answer.body[:300]!r}")
        return answer

    def xml(self, path, *query):
        """The children of the answer's root as (tag, {name: text})."""
        root = xml.etree.ElementTree.fromstring(self.ask("GET", path, query).body)
        plain = [(child.tag.split("}")[1], child) for child in root]
        return [(tag, {e.tag.split("}")[1]: e.text for e in child}) for tag, child in plain]


class Key:
    """What a key holds, by the digest of its bytes; None: nothing."""

    def __init__(self, path):
        self.path = path
        self.value = None
        self.pending = []  # at most one value: of the request that is under way
        self.versions = {}  # answered: id to digest, or to None for a delete marker


def digest(body):
    return hashlib.sha256(body).hexdigest()


class Writer:
    def __init__(self, number, seed):
        self.random = random.Random(f"{seed}/{number}")
        self.versioned = number % 2 == 1
        self.bucket = "/kept" if self.versioned else "/plain"
        self.prefix = f"w{number}/"
        self.keys = [Key(f"{self.bucket}/{self.prefix}k{i}") for i in range(KEYS)]
        self.ended_uploads = set()  # answered as completed or aborted
        self.done = 0

    def body(self):
        kind = self.random.random()
        size = self.random.randrange(3000) if kind < .6 else 60_000 + self.random.randrange(300_000)
        return self.random.randbytes(size)

    def commit(self, key, value, answer):
        key.value, key.pending = value, []
        version = answer.headers.get("x-amz-version-id")
        if self.versioned and not version:
            raise Wrong(f"{key.path}: no version id in the answer")
        if self.versioned:
            key.versions[version] = value
        self.done += 1

    def put(self, client, key):
        body = self.body()
        key.pending = [digest(body)]
        self.commit(key, key.pending[0], client.ask("PUT", key.path, body=body))

    def remove(self, client, key):
        key.pending = [None]
        self.commit(key, None, client.ask("DELETE", key.path, want=(204,)))

    def copy(self, client, key):
        source = self.random.choice([k for k in self.keys if k is not key])
        if source.value is None:
            return
        key.pending = [source.value]
        self.commit(key, source.value, client.ask("PUT", key.path, headers={"x-amz-copy-source": source.path}))

    def upload(self, client, key):
        body = self.body()
        if self.random.random() < .15:
            body = self.random.randbytes(PART_MIN) + body
        upload = re.search(rb"<UploadId>([^<]+)", client.ask("POST", key.path, [("uploads", "")]).body).group(1).decode()
        parts = [body[:PART_MIN], body[PART_MIN:]] if len(body) > PART_MIN else [body]
        tags = [client.ask("PUT", key.path, [("partNumber", str(i + 1)), ("uploadId", upload)], body=part)
                .headers["ETag"] for i, part in enumerate(parts)]
        if self.random.random() < .3:
            client.ask("DELETE", key.path, [("uploadId", upload)], want=(204,))
            self.ended_uploads.add(upload)
            return
        key.pending = [digest(body)]
        text = "".join(f"<Part><PartNumber>{i + 1}</PartNumber><ETag>{tag}</ETag></Part>" for i, tag in enumerate(tags))
        answer = client.ask("POST", key.path, [("uploadId", upload)],
                            body=f"<CompleteMultipartUpload>{text}</CompleteMultipartUpload>".encode())
        if b"CompleteMultipartUploadResult" not in answer.body:
            raise Wrong(f"{key.path}: {answer.body[:300]!r}")
        self.commit(key, key.pending[0], answer)
        self.ended_uploads.add(upload)

    def work(self, address, keys):
        """Until the server is gone."""
        client = Client(address, keys)
        actions = [self.put] * 5 + [self.upload] * 2 + [self.copy, self.remove, self.remove]
        try:
            while True:
                self.random.choice(actions)(client, self.random.choice(self.keys))
        except Gone:
            pass
        except Exception as e:  # told by the run
            self.problem = e
        finally:
            client.connection.close()

    # --- checking ---

    def check_key(self, client, key):
        answer = client.ask("GET", key.path, want=(200, 404))
        found = digest(answer.body) if answer.status == 200 else None
        if found not in [key.value] + key.pending:
            raise Wrong(f"{key.path}: has {found}, was answered {key.value}, under way {key.pending}")
        key.value = found

    def check_versions(self, client):
        """Those that are there: all that were answered, and of a key at most the one that was under way."""
        there = {key.path: {} for key in self.keys}
        for tag, item in client.xml(self.bucket, ("versions", ""), ("prefix", self.prefix), ("max-keys", "1000")):
            if tag in ("Version", "DeleteMarker"):
                there[f"{self.bucket}/{item['Key']}"][item["VersionId"]] = tag == "DeleteMarker"
        for key in self.keys:
            found = there[key.path]
            lost, more = key.versions.keys() - found, found.keys() - key.versions
            if lost or len(more) > len(key.pending):
                raise Wrong(f"{key.path}: {len(lost)} versions are lost, {len(more)} were never answered")
            for version in more:
                key.versions[version] = None if found[version] else key.pending[0]
            for version, value in key.versions.items():
                if found[version] != (value is None):
                    raise Wrong(f"{key.path}: version {version} is not what was answered")
            for version in self.random.sample(sorted(key.versions), min(2, len(key.versions))):
                if key.versions[version] is not None:
                    body = client.ask("GET", key.path, [("versionId", version)]).body
                    if digest(body) != key.versions[version]:
                        raise Wrong(f"{key.path}: version {version} has other bytes")

    def trim(self, client):
        for key in self.keys:
            if len(key.versions) > VERSIONS_KEPT:
                for version in key.versions:
                    client.ask("DELETE", key.path, [("versionId", version)], want=(204,))
                key.versions, key.value = {}, None

    def check(self, client):
        for key in self.keys:
            self.check_key(client, key)
        if self.versioned:
            self.check_versions(client)
            self.trim(client)
        for key in self.keys:
            key.pending = []


def check_uploads(client, writers):
    """None that was ended is there; what a kill left is aborted."""
    ended = set().union(*(w.ended_uploads for w in writers))
    for bucket in ("/plain", "/kept"):
        for tag, item in client.xml(bucket, ("uploads", "")):
            if tag != "Upload":
                continue
            if item["UploadId"] in ended:
                raise Wrong(f"the upload {item['UploadId']} of {item['Key']} was ended and is there")
            client.ask("DELETE", f"{bucket}/{item['Key']}", [("uploadId", item["UploadId"])], want=(204,))
    for writer in writers:
        writer.ended_uploads.clear()


def scrub(server, weir):
    """What `weir storage scrub` finds."""
    done = subprocess.run([weir, "storage", "scrub", "local", "--data", server.data, "--url", server.url],
                          capture_output=True, text=True, timeout=SWEEP_SECONDS)
    return "" if done.returncode == 0 else done.stdout + done.stderr


class Lab:
    def __init__(self, seed):
        import conftest  # of tests/e2e: needs WEIR_BUILD
        self.conftest = conftest
        self.weir = str(conftest.WEIR)
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-serve-crash-"))
        self.random = random.Random(seed)
        self.writers = [Writer(i, seed) for i in range(WRITERS)]
        self.server = None

    def start(self):
        self.server = self.conftest.Server(self.folder)

    def kill(self):
        os.kill(self.server.process.pid, signal.SIGKILL)
        self.server.process.wait()

    @property
    def address(self):
        return self.server.s3_url.removeprefix("http://")

    def client(self):
        return Client(self.address, self.server.keys)

    def prepare(self):
        self.start()
        self.server.ready()
        client = self.client()
        for bucket in ("/plain", "/kept"):
            client.ask("PUT", bucket)
        on = b"<VersioningConfiguration><Status>Enabled</Status></VersioningConfiguration>"
        client.ask("PUT", "/kept", [("versioning", "")], body=on)

    def answered(self):
        return sum(writer.done for writer in self.writers)

    def load_and_kill(self):
        threads = [threading.Thread(target=w.work, args=(self.address, self.server.keys)) for w in self.writers]
        for writer in self.writers:
            writer.problem = None
        for thread in threads:
            thread.start()
        goal = self.answered() + self.random.randrange(LOAD_CHANGES)
        self.conftest.wait_for(lambda: self.answered() >= goal or not any(t.is_alive() for t in threads), "the load")
        ended = self.server.process.poll()
        self.kill()
        for thread in threads:
            thread.join()
        if ended is not None:
            raise Wrong(f"the server ended by itself with {ended}: {self.server.err[-2000:]}")
        for writer in self.writers:
            if writer.problem:
                raise writer.problem

    def restart(self):
        if self.random.random() < .125:
            self.start()
            time.sleep(self.random.random() * 0.1)  # the moment is the point
            self.kill()
        self.start()
        self.server.ready()

    def check_storage(self):
        """Leftovers may still be on their way out; anything else is wrong at once, and stays."""
        found = ""

        def is_whole():
            nonlocal found
            found = scrub(self.server, self.weir)
            if "wrong count" in found:  # it is mended by now
                raise Wrong(f"scrub: {found}")
            return not found
        try:
            self.conftest.wait_for(is_whole, "the collector", SWEEP_SECONDS)
        except AssertionError as e:
            raise Wrong(f"{e}; scrub: {found}") from None

    def check(self):
        client = self.client()
        for writer in self.writers:
            writer.check(client)
        check_uploads(client, self.writers)
        client.connection.close()
        self.check_storage()

    def run(self):
        self.load_and_kill()
        self.restart()
        self.check()

    def end(self):
        if self.server and self.server.process.poll() is None:
            self.kill()

    def remove(self):
        shutil.rmtree(self.folder)


def findings(lab):
    """What one check of the first writer's keys and one scrub find."""
    client = lab.client()
    try:
        lab.writers[0].check(client)
        return scrub(lab.server, lab.weir)
    except Wrong as e:
        return str(e)
    except Gone:
        return "an answer was cut off"
    finally:
        client.connection.close()


def damage_is_found(lab):
    """A blob that lost a byte, an object that is gone, a file that nothing names; and no damage is found where there
    is none. Returns what was not."""
    key, body = lab.writers[0].keys[0], os.urandom(200_000)
    blobs = lab.folder / "data/objects/blobs"
    missed = []
    lab.prepare()
    while lab.answered() < 100:
        lab.run()
    lab.client().ask("PUT", key.path, body=body)
    key.value = digest(body)
    lab.check_storage()  # what was there before is on its way out
    missed += ["nothing"] if findings(lab) else []
    blob = max((p for p in blobs.rglob("*") if p.is_file()), key=lambda p: p.stat().st_mtime_ns)
    os.truncate(blob, blob.stat().st_size - 1)
    missed += [] if findings(lab) else ["a lost byte"]
    lab.client().ask("DELETE", key.path, want=(204,))
    missed += [] if findings(lab) else ["a lost object"]
    key.value = None
    lab.check_storage()
    # Of an epoch that has ended: in the running one it could be a body that still comes.
    old = min(p for p in blobs.rglob("*") if p.is_file())
    (old.parent / "00000000000fffff").write_bytes(b"stray")
    missed += [] if findings(lab) else ["a stray file"]
    return missed


def proves_itself(seed):
    lab = Lab(seed)
    try:
        missed = damage_is_found(lab)
    finally:
        lab.end()
        lab.remove()
    if missed:
        print(f"found wrongly: {missed}")
    return not missed


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=200)
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    o = parser.parse_args()
    os.environ["WEIR_BUILD"] = os.path.abspath(o.build)
    passed = failed = 0
    proved = proves_itself(o.seed)
    passed, failed = passed + proved, failed + (not proved)
    lab = Lab(o.seed)
    try:
        lab.prepare()
        for i in range(o.runs):
            try:
                lab.run()
                passed += 1
            except (Wrong, Gone, AssertionError) as e:
                failed += 1
                print(f"run {i} failed: {e}\nagain: {sys.argv[0]} {o.build} --runs {o.runs} --seed {o.seed} "
                      f"(folder kept: {lab.folder})")
                break
    finally:
        lab.end()
    print(f"seed {o.seed}, {lab.answered()} changes answered")
    if not failed:
        lab.remove()
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
