#!/usr/bin/python3
"""Kills everything that replicates, at random, while clients write; at the end both sides hold what the clients know.

    tests/crash/replica_chaos.py BUILD [--runs N] [--seed S] [--seconds T] [--kind redis|embedded|both]

One run: several threads put, overwrite, copy, upload in parts, tag and remove keys of their own through two gateways,
before and after the bucket gets its replication; another makes, fills, empties and deletes buckets of a user whose
policy is for all buckets. Meanwhile gateways, workers and redis-server (appendfsync always) are killed with SIGKILL and
started again, or stopped for a while and resumed; embedded: the one weir that is all of them. Then all are left alone
until no task is left, and
  1. the source has of every key the bytes of the last change that was answered, or of a later one whose outcome is
     not known; a key whose outcome is not known is left alone for a while, so that no late effect is taken for lost;
  2. the destination has exactly what the source has, by content, ETag, metadata and tags; and of the user's buckets
     the same ones;
  3. no task failed for good.
Storages are not killed. The last line is "N passed, N failed": one for each run of a kind, one for the proof that what
is lost would be found.
"""
import argparse
import base64
import concurrent.futures
import hashlib
import os
import pathlib
import random
import re
import shutil
import signal
import sys
import tempfile
import threading
import time
import traceback

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
sys.path[:0] = [os.path.join(ROOT, "e2e"), os.path.join(ROOT, "crash")]

from serve_crash import Client, Gone, PART_MIN, Wrong, digest  # noqa: E402

WRITERS, KEYS = 4, 15
REST_S = 5  # of a key whose outcome is not known
DRAIN_S = 480
MAKER = ("AKIAMAKER", "secret-of-the-maker")


class Key:
    """What a key holds, by the digest of its bytes; None: nothing."""

    def __init__(self, path):
        self.path, self.value, self.pending, self.rests_until = path, None, [], 0


class Writer(threading.Thread):
    def __init__(self, number, seed, chaos):
        super().__init__()
        self.random = random.Random(f"{seed}/{number}")
        self.chaos, self.problem = chaos, None
        self.keys = [Key(f"/chaos/w{number}/k{i}") for i in range(KEYS)]
        self.answered = self.unknown = 0

    def body(self):
        return self.random.randbytes(self.random.choice((0, 1, 500, 3000, 70_000)) + self.random.randrange(50))

    def commit(self, key, value):
        key.value, key.pending = value, []
        self.answered += 1

    def put(self, client, key):
        body = self.body()
        key.pending.append(digest(body))
        client.ask("PUT", key.path, body=body, headers={"x-amz-meta-n": str(self.random.random())})
        self.commit(key, digest(body))

    def remove(self, client, key):
        key.pending.append(None)
        client.ask("DELETE", key.path, want=(204,))
        self.commit(key, None)

    def copy(self, client, key):
        source = self.random.choice(self.keys)
        if source is key or source.value is None or source.pending:
            return
        key.pending.append(source.value)
        answer = client.ask("PUT", key.path, headers={"x-amz-copy-source": source.path})
        if b"CopyObjectResult" not in answer.body:
            raise Gone()
        self.commit(key, source.value)

    def upload(self, client, key):
        parts = [self.body() + b"x"]
        if self.random.random() < .1:
            parts.insert(0, self.random.randbytes(PART_MIN))
        answer = client.ask("POST", key.path, [("uploads", "")])
        upload = re.search(rb"<UploadId>([^<]+)", answer.body).group(1).decode()
        tags = [client.ask("PUT", key.path, [("partNumber", str(i + 1)), ("uploadId", upload)], body=part)
                .headers["ETag"] for i, part in enumerate(parts)]
        key.pending.append(digest(b"".join(parts)))
        text = "".join(f"<Part><PartNumber>{i + 1}</PartNumber><ETag>{tag}</ETag></Part>" for i, tag in enumerate(tags))
        answer = client.ask("POST", key.path, [("uploadId", upload)],
                            body=f"<CompleteMultipartUpload>{text}</CompleteMultipartUpload>".encode())
        if b"CompleteMultipartUploadResult" not in answer.body:
            raise Gone()
        self.commit(key, digest(b"".join(parts)))

    def tag(self, client, key):
        """Only that both sides have the same is looked at, in the end."""
        text = f"<Tagging><TagSet><Tag><Key>t</Key><Value>{self.random.random()}</Value></Tag></TagSet></Tagging>"
        client.ask("PUT", key.path, [("tagging", "")], body=text.encode(), want=(200, 404))

    def remove_some(self, client, key):
        """Two keys by one request."""
        other = self.random.choice([k for k in self.keys if not k.pending] or [key])
        keys = {k.path: k for k in (key, other)}.values()
        for k in keys:
            k.pending.append(None)
            k.rests_until = time.monotonic() + REST_S  # unless it is answered
        names = "".join(f"<Object><Key>{k.path.removeprefix('/chaos/')}</Key></Object>" for k in keys)
        body = f"<Delete>{names}</Delete>".encode()
        answer = client.ask("POST", "/chaos", [("delete", "")], body=body,
                            headers={"content-md5": base64.b64encode(hashlib.md5(body).digest()).decode()})
        if b"<Error>" in answer.body or b"DeleteResult" not in answer.body:
            raise Gone()
        for k in keys:
            self.commit(k, None)
            k.rests_until = 0

    def read(self, client, key):
        answer = client.ask("GET", key.path, want=(200, 404))
        found = digest(answer.body) if answer.status == 200 else None
        if found not in [key.value] + key.pending:
            raise AssertionError(f"{key.path} reads {found}, was answered {key.value}, open {key.pending}")

    def step(self, clients):
        now = time.monotonic()
        free = [k for k in self.keys if k.rests_until < now]
        if not free:
            time.sleep(0.05)
            return
        key = self.random.choice(free)
        action = self.random.choice([self.put] * 5 + [
            self.upload, self.copy, self.remove, self.remove, self.remove_some, self.tag, self.read])
        number, open_before = self.random.randrange(2), len(key.pending)
        try:
            action(clients.of(number), key)
        except (Gone, Wrong) as e:
            clients.drop(number)
            # of a process that was stopped for a while: a body that came meanwhile counts as late
            if isinstance(e, Wrong) and ": 5" not in str(e) and "RequestTimeout" not in str(e):
                raise AssertionError(f"{e}") from None
            if isinstance(e, Gone) and isinstance(e.__cause__, ConnectionRefusedError):
                del key.pending[open_before:]  # nothing was sent
                time.sleep(0.05)
            else:
                self.unknown += 1
                key.rests_until = time.monotonic() + REST_S

    def run(self):
        clients = Clients(self.chaos)
        try:
            while not self.chaos.over.is_set():
                self.step(clients)
        except Exception as e:  # told by the run
            self.problem = e
        clients.close()


class Maker(threading.Thread):
    """Makes, fills, empties and deletes buckets. What it has is not kept: both sides are to have the same."""

    def __init__(self, seed, chaos):
        super().__init__()
        self.random = random.Random(f"{seed}/maker")
        self.chaos, self.problem, self.done = chaos, None, 0

    def step(self, client):
        bucket = f"/made-{self.random.randrange(4)}"
        if self.random.random() < .6:
            client.ask("PUT", bucket, want=(200, 409))
            for n in range(self.random.randrange(3)):
                client.ask("PUT", f"{bucket}/k{n}", body=self.random.randbytes(100), want=(200, 404))
        else:
            for n in range(3):
                client.ask("DELETE", f"{bucket}/k{n}", want=(204, 404))
            client.ask("DELETE", bucket, want=(204, 404, 409))
        self.done += 1

    def run(self):
        clients = Clients(self.chaos, MAKER)
        try:
            while not self.chaos.over.is_set():
                number = self.random.randrange(2)
                try:
                    self.step(clients.of(number))
                except (Gone, Wrong) as e:
                    clients.drop(number)
                    if isinstance(e, Wrong) and ": 5" not in str(e) and "RequestTimeout" not in str(e):
                        raise AssertionError(f"{e}") from None
                time.sleep(self.random.random() * .3)
        except Exception as e:  # told by the run
            self.problem = e
        clients.close()


class Clients:
    """A connection to each gateway, wherever it listens by now."""

    def __init__(self, chaos, keys=None):
        self.chaos, self.open, self.keys = chaos, {}, keys or chaos.keys

    def of(self, number):
        if number not in self.open:
            self.open[number] = Client(self.chaos.address(number), self.keys)
        return self.open[number]

    def drop(self, number):
        if number in self.open:
            self.open.pop(number).connection.close()

    def close(self):
        for number in list(self.open):
            self.drop(number)


class Chaos:
    def __init__(self, kind, seed, seconds):
        import replica_lab  # needs WEIR_BUILD
        self.module, self.kind, self.seconds = replica_lab, kind, seconds
        self.keys = replica_lab.KEYS
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-replica-chaos-"))
        self.random = random.Random(seed)
        self.over = threading.Event()
        self.lab = replica_lab.Lab(kind, self.folder)
        self.writers = [Writer(n, seed, self) for n in range(WRITERS)]
        self.maker = Maker(seed, self)
        self.kills, self.switched = {}, ""

    def address(self, number):
        weir = self.lab.gateways[number % len(self.lab.gateways)]
        try:
            return weir.s3_url.removeprefix("http://")
        except AttributeError:  # it has not said yet
            raise Gone() from ConnectionRefusedError()

    def victims(self):
        lab = self.lab
        if self.kind == "embedded":
            return [("weir", lab.gateways[0])]
        return ([("gateway", g) for g in lab.gateways] + [("worker", w) for w in lab.workers] +
                [("redis", lab.redis)])

    def stop_one(self):
        """For less, or more, than leases of gateways and locks live (10 s)."""
        name, victim = self.random.choice([v for v in self.victims() if v[0] != "redis"])
        self.kills["stopped " + name] = self.kills.get("stopped " + name, 0) + 1
        os.kill(victim.process.pid, signal.SIGSTOP)
        time.sleep(self.random.choice((0.5, 1, 2, 12)))
        os.kill(victim.process.pid, signal.SIGCONT)

    def kill_one(self):
        name, victim = self.random.choice(self.victims())
        self.kills[name] = self.kills.get(name, 0) + 1
        victim.kill()
        time.sleep(self.random.choice((0, 0.05, 0.5, 2)))
        victim.start()
        if self.random.random() < .8 and name != "redis":
            victim.ready()

    def load(self):
        end = time.monotonic() + self.seconds
        added, switch = (time.monotonic() + self.seconds * part for part in (.2, .5))
        self.lab.s3().create_bucket(Bucket="chaos")
        self.add_maker()
        threads = [*self.writers, self.maker]
        for thread in threads:
            thread.start()
        try:
            while time.monotonic() < end:
                time.sleep(self.random.random() * 3)
                if self.random.random() < .15:
                    self.stop_one()
                else:
                    self.kill_one()
                if added and time.monotonic() > added:
                    self.begin_replication()
                    added = None
                elif not added and time.monotonic() > switch and not self.switched:
                    self.begin_switch()
            if added:
                self.begin_replication()
        finally:
            self.over.set()
            for thread in threads:
                thread.join()
        for thread in threads:
            if thread.problem:
                raise Wrong(f"{thread.problem}")

    def add_maker(self):
        lab = self.lab
        lab.add_user("maker", MAKER)
        lab.run("replicate", "add", lab.names["b"], "--user", "maker")

    def begin_replication(self):
        """As a person would: again, when Redis was killed a moment ago."""
        deadline = time.monotonic() + 30
        while True:
            for weir in self.lab.started:
                weir.ready()
            text = self.lab.run("replicate", "add", "chaos", self.lab.names["b"], "--user", "root", status=None)
            rows = [] if "weir:" in text else [text]
            if not rows and "redis:" not in text:  # the answer of the attempt before may have been lost
                rows = [r for r in self.lab.api("GET", "/api/v1/replications")["replications"] if r["bucket"] == "chaos"]
            if rows:
                return
            if time.monotonic() > deadline:
                raise Wrong(f"replicate add: {text}")
            time.sleep(.2)

    def begin_switch(self):
        """Without downtime; the old side follows afterwards. Before everything was copied once it is refused."""
        if self.random.random() < .5:
            self.switched = "not this time"
            return
        for weir in self.lab.gateways:
            weir.ready()
        done = self.lab.run("switch", "start", "chaos", "--user", "root", "--continue", "--multipart-ttl", "20s", status=None)
        self.switched = "" if "weir:" in done else "switched"

    # --- the end ---

    def queues(self):
        return {q["name"]: q for q in self.lab.api("GET", "/api/v1/queues")["queues"]}

    def hurry(self):
        """What waits for a while runs now; how much is left."""
        left = 0
        for name, q in self.queues().items():
            left += sum(q[state] for state in ("pending", "active", "scheduled", "retry"))
            for state in ("scheduled", "retry"):
                if not q[state]:
                    continue
                path = f"/api/v1/queues/{name}/tasks"
                for task in self.lab.api("GET", f"{path}?state={state}")["tasks"]:
                    if task["type"] == "upload:abort":  # waits until no copy can go on with the upload
                        left -= 1
                        continue
                    answer = self.lab.gateways[0].post(f"{path}/{self.module.quoted(task['id'])}/run", {}, keys=self.keys)
                    if answer.status not in (200, 204, 404, 409):  # it may run by now
                        raise Wrong(f"{task}: {answer}")
        return left

    def behind(self):
        return [r for r in self.lab.api("GET", "/api/v1/replications")["replications"]
                if r["state"] not in ("in sync", "policy", "archived")] + [
            s for s in self.lab.run("switch", "list", "--json") if s["state"] != "done"]

    def drain(self):
        for weir in self.lab.started:
            weir.ready()
        end = time.monotonic() + DRAIN_S
        while self.hurry() or self.behind():
            if time.monotonic() > end:
                raise Wrong(f"not drained: {self.behind()} {self.lab.tasks()[:20]}")
            time.sleep(0.5)
        failed = self.lab.tasks("archived")
        if failed:
            raise Wrong(f"failed for good: {failed[:10]}")

    def found(self, side, bucket="chaos"):
        """Path to digest, ETag, metadata and tags."""
        out = {}
        with self.lab.side(side, bucket) as s3:
            for key in self.module.names_in(s3, bucket):
                got = s3.get_object(Bucket=bucket, Key=key)
                tags = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] if bucket == "chaos" else None
                out[f"/{bucket}/{key}"] = (digest(got["Body"].read()), got["ETag"], got["Metadata"], tags)
        return out

    def made(self, side):
        """The maker's buckets there, and what they hold."""
        names = {r["name"] for r in self.lab.run("bucket", "list", "--json")
                 if r["storage"] == self.lab.names[side] and r["name"].startswith("made-")}
        return names, {k: v for name in names for k, v in self.found(side, name).items()}

    def check(self):
        a, b = self.found("a"), self.found("b")
        for key in (k for w in self.writers for k in w.keys):
            there = a.get(key.path, (None,))[0]
            if there not in [key.value] + key.pending:
                raise Wrong(f"{key.path}: the source has {there}, was answered {key.value}, open {key.pending}")
        wrong = {path: (a.get(path), b.get(path)) for path in a.keys() | b.keys() if a.get(path) != b.get(path)}
        if wrong:
            raise Wrong(f"{len(wrong)} keys differ (source, destination): {dict(list(wrong.items())[:5])}")
        a_made, b_made = self.made("a"), self.made("b")
        if a_made != b_made:
            raise Wrong(f"the maker's buckets differ (source, destination): {a_made}, {b_made}")
        return len(a) + len(a_made[1])

    def damage_is_found(self):
        """An object that only one side has, and one with other bytes."""
        key = next(iter(self.found("a"))).removeprefix("/chaos/")
        for name, body in (("stray", b"x"), (key, b"other bytes")):
            with self.lab.side("b", "chaos") as s3:
                s3.put_object(Bucket="chaos", Key=name, Body=body)
            try:
                self.check()
                return False
            except Wrong:
                with self.lab.side("b", "chaos") as s3:
                    s3.delete_object(Bucket="chaos", Key=name)
        return True

    def run(self):
        self.load()
        began = time.monotonic()
        self.drain()
        objects = self.check()
        answered, unknown = (sum(getattr(w, name) for w in self.writers) for name in ("answered", "unknown"))
        print(f"{self.kind}: {answered} changes answered, {unknown} not known, {self.maker.done} steps with buckets, {self.switched or 'no switch'}, kills "
              f"{self.kills}, {objects} objects, drained in {time.monotonic() - began:.0f} s", flush=True)

    def end(self, keep):
        self.over.set()
        self.lab.end()
        if not keep:
            shutil.rmtree(self.folder)


def one(kind, seed, seconds, prove):
    """(passed, failed)"""
    chaos = Chaos(kind, seed, seconds)
    failed = True
    try:
        chaos.run()
        failed = prove and not chaos.damage_is_found()
        if failed:
            print("damage was not found")
        return 1 + bool(prove) - failed, int(failed)
    except (Wrong, Gone, AssertionError, OSError) as e:
        print(f"{kind} failed: {e if isinstance(e, Wrong) else traceback.format_exc()}\nagain: {sys.argv[0]} BUILD --kind "
              f"{kind} --runs 1 --seconds {seconds} --seed {seed} (folder kept: {chaos.folder})", flush=True)
        return 0, 1
    finally:
        chaos.end(failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--kind", choices=("redis", "embedded", "both"), default="both")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    o = parser.parse_args()
    os.environ["WEIR_BUILD"] = os.path.abspath(o.build)
    kinds = ("redis", "embedded") if o.kind == "both" else (o.kind,)
    passed = failed = 0
    for i in range(o.runs):
        with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:  # most of a run is waiting
            for result in pool.map(lambda kind: one(kind, o.seed + i, o.seconds, prove=i == 0), kinds):
                passed, failed = passed + result[0], failed + result[1]
    print(f"seed {o.seed}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
