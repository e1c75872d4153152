#!/usr/bin/python3
"""Kills everything that replicates, at random, while clients write; at the end both sides hold what the clients know.

    tests/crash/replica_chaos.py BUILD [--setup plain|mixed] [--kind KIND,...] [--runs N] [--seed S] [--seconds T]

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
Storages behind an endpoint are not killed. The last line is "N passed, N failed": one for each run of a kind, one for the
proof that what is lost would be found.

Set-ups and their kinds, by the store:
  plain  embedded: two folders; redis: two services. One user, and a bucket that is switched once.
  mixed  embedded, redis, sentinel: a folder and a service, and a bucket on its way in either direction. One owner is led by
         a user policy and has a replication for all buckets, the other by a bucket policy or the main storage; another user
         and the administrator write to the same buckets. An operator starts switches of both kinds, aborts them, and begins
         copies anew all the time. On Redis, one gateway and one worker do not have the folder. Sentinel: the master is killed,
         or stopped, and a replica takes its place. Mostly the replica has all that the master has; where it may lack the last
         moments weir finds that out and compares anew by itself (docs/store-redis.md, I3 to I5).
  4. (mixed) A replication that is called in sync has, at the destination, what its writer was told before.
"""
import argparse
import base64
import concurrent.futures
import hashlib
import http.client
import json
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

from botocore.exceptions import ClientError  # noqa: E402
from serve_crash import Client, Gone, PART_MIN, Wrong, digest  # noqa: E402

WRITERS, KEYS = 4, 15
REST_S = 5  # of a key whose outcome is not known
DRAIN_S = 480
CALM_S = 4
STORE = ("redis", "failover")
MAKER = ("AKIAMAKER", "secret-of-the-maker")


class Bucket:
    """Who it belongs to, and who else asks for it."""

    def __init__(self, name, owner, others=()):
        self.name, self.owner, self.askers = name, owner, (owner, *others)


class Key:
    """What a key holds, by the digest of its bytes; None: nothing."""

    def __init__(self, path):
        self.path, self.value, self.pending, self.rests_until = path, None, [], 0


class Writer(threading.Thread):
    def __init__(self, number, seed, chaos):
        super().__init__()
        self.random = random.Random(f"{seed}/{number}")
        self.chaos, self.problem = chaos, None
        self.bucket = chaos.BUCKETS[number % len(chaos.BUCKETS)]
        self.keys = [Key(f"/{self.bucket.name}/w{number}/k{i}") for i in range(KEYS)]
        self.avoided_until = 0  # the second gateway, after it refused
        self.answered = self.unknown = self.proved = 0

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
        names = "".join(f"<Object><Key>{k.path.split('/', 2)[2]}</Key></Object>" for k in keys)
        body = f"<Delete>{names}</Delete>".encode()
        answer = client.ask("POST", f"/{self.bucket.name}", [("delete", "")], body=body,
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

    def prove(self, _, key):
        """What was answered is where the bucket is called in sync (docs/replication.md, "Status")."""
        if key.pending:
            return
        for to in self.chaos.in_sync_with(self.bucket):
            answer = self.chaos.look(to, key.path)
            found = digest(answer.body) if answer.status == 200 else None
            if found != key.value:
                raise AssertionError(f"{key.path} on {to}, in sync, is {found}, was answered {key.value}")
            self.proved += 1

    def gateway(self):
        number = self.random.randrange(2)
        return 0 if time.monotonic() < self.avoided_until else number

    def step(self, clients):
        now = time.monotonic()
        free = [k for k in self.keys if k.rests_until < now]
        if not free:
            time.sleep(0.05)
            return
        key = self.random.choice(free)
        action = self.random.choice(self.chaos.actions(self))
        number, asker, open_before = self.gateway(), self.random.choice(self.bucket.askers), len(key.pending)
        try:
            action(clients.of(number, asker), key)
        except (Gone, Wrong) as e:
            clients.drop(number, asker)
            # of a process that was stopped for a while: a body that came meanwhile counts as late
            if isinstance(e, Wrong) and ": 5" not in str(e) and "RequestTimeout" not in str(e):
                raise AssertionError(f"{asker} by gateway {number}: {e}") from None
            if number and isinstance(e, Wrong):
                self.avoided_until = time.monotonic() + 1
            nothing_was_sent = isinstance(e, Gone) and isinstance(e.__cause__, ConnectionRefusedError)
            if nothing_was_sent or "<Code>SlowDown<" in str(e):  # as a bucket is that a switch holds up
                del key.pending[open_before:]
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
        clients = Clients(self.chaos)
        try:
            while not self.chaos.over.is_set():
                number = self.random.randrange(2)
                try:
                    self.step(clients.of(number, self.chaos.MAKES))
                except (Gone, Wrong) as e:
                    clients.drop(number, self.chaos.MAKES)
                    if isinstance(e, Wrong) and ": 5" not in str(e) and "RequestTimeout" not in str(e):
                        raise AssertionError(f"{e}") from None
                time.sleep(self.random.random() * .3)
        except Exception as e:  # told by the run
            self.problem = e
        clients.close()


class Clients:
    """Connections of users to gateways, wherever these listen by now."""

    def __init__(self, chaos):
        self.chaos, self.open = chaos, {}

    def of(self, number, user):
        if (number, user) not in self.open:
            self.open[number, user] = Client(self.chaos.address(number), self.chaos.users[user])
        return self.open[number, user]

    def drop(self, number, user):
        if (number, user) in self.open:
            self.open.pop((number, user)).connection.close()

    def close(self):
        for number, user in list(self.open):
            self.drop(number, user)


class Chaos:
    """The set-up plain."""

    KINDS = ("redis", "embedded")
    PAUSE_S = 3  # between kills, at most
    USERS = {"maker": MAKER}  # beside the administrator
    MAKES = "maker"
    BUCKETS = (Bucket("chaos", "root"),)  # the first gets its replication later

    def __init__(self, kind, seed, seconds):
        import replica_lab  # needs WEIR_BUILD
        self.module, self.kind, self.seconds = replica_lab, kind, seconds
        self.keys = replica_lab.KEYS
        self.users = {"root": self.keys, **self.USERS}
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-replica-chaos-"))
        self.random, self.seed = random.Random(seed), seed
        self.over = threading.Event()
        self.lab = self.build()
        self.failover = Failover(self) if kind == "sentinel" else None
        self.writers = [Writer(n, seed, self) for n in range(WRITERS)]
        self.maker = Maker(seed, self)
        self.kills, self.switched, self.acts = {}, "", {}

    def build(self):
        return self.module.Lab(self.kind, self.folder)

    def count(self, table, what):
        table[what] = table.get(what, 0) + 1

    def actions(self, w):
        """What a writer may do now."""
        return [w.put] * 5 + [w.upload, w.copy, w.remove, w.remove, w.remove_some, w.tag, w.read]

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
        name, victim = self.random.choice([v for v in self.victims() if v[0] not in STORE])
        self.count(self.kills, "stopped " + name)
        os.kill(victim.process.pid, signal.SIGSTOP)
        time.sleep(self.random.choice((0.5, 1, 2, 12)))
        os.kill(victim.process.pid, signal.SIGCONT)

    def kill_one(self):
        name, victim = self.random.choice(self.victims())
        self.count(self.kills, name)
        victim.kill()
        time.sleep(self.random.choice((0, 0.05, 0.5, 2)))
        victim.start()
        if self.random.random() < .8 and name not in STORE:
            victim.ready()

    def load(self):
        self.prepare()
        end = time.monotonic() + self.seconds
        added, switch = (time.monotonic() + self.seconds * part for part in (.2, .5))
        threads = [*self.writers, self.maker, *self.more_threads()]
        for thread in threads:
            thread.start()
        try:
            while time.monotonic() < end and not any(thread.problem for thread in threads):
                time.sleep(self.random.random() * self.PAUSE_S)
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

    def prepare(self):
        lab = self.lab
        lab.s3().create_bucket(Bucket="chaos")
        lab.add_user("maker", MAKER)
        lab.run("replicate", "add", lab.names["b"], "--user", "maker")

    def more_threads(self):
        return []

    def begin_replication(self):
        """As a person would: again, when Redis was killed a moment ago."""
        to, owner = self.destination(), self.BUCKETS[0].owner
        deadline = time.monotonic() + 30
        while True:
            for weir in self.lab.started:
                weir.ready()
            text = self.lab.run("replicate", "add", "chaos", to, "--user", owner, status=None)
            rows = [] if "weir:" in text else [text]
            if not rows and "redis:" not in text:  # the answer of the attempt before may have been lost
                rows = [r for r in self.lab.api("GET", "/api/v1/replications")["replications"] if r["bucket"] == "chaos"]
            if rows:
                return
            if time.monotonic() > deadline:
                raise Wrong(f"replicate add: {text}")
            time.sleep(.2)

    def destination(self):
        return self.lab.names["b"]

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
                tags = s3.get_object_tagging(Bucket=bucket, Key=key)["TagSet"] if not bucket.startswith("made-") else None
                out[f"/{bucket}/{key}"] = (digest(got["Body"].read()), got["ETag"], got["Metadata"], tags)
        return out

    def made(self, side):
        """The maker's buckets there, and what they hold."""
        names = {r["name"] for r in self.lab.run("bucket", "list", "--json")
                 if r["storage"] == self.lab.names[side] and r["name"].startswith("made-")}
        return names, {k: v for name in names for k, v in self.found(side, name).items()}

    def check(self):
        a, b = ({k: v for bucket in self.BUCKETS for k, v in self.found(side, bucket.name).items()} for side in ("a", "b"))
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
        answered, unknown, proved = (sum(getattr(w, name) for w in self.writers) for name in ("answered", "unknown", "proved"))
        print(f"{self.kind}: {answered} changes answered, {unknown} not known, {proved} found in sync, {self.maker.done} steps with buckets, {self.switched or 'no switch'}"
              f"{f', operator {self.acts}' if self.acts else ''}, kills {self.kills}, {objects} objects, drained in {time.monotonic() - began:.0f} s", flush=True)

    def end(self, keep):
        self.over.set()
        self.lab.end()
        if not keep:
            shutil.rmtree(self.folder)


class Operator(threading.Thread):
    """Makes the replication that is not there yet, starts switches of both kinds, aborts them, and begins copies anew. What it is
    refused is not looked at."""

    def __init__(self, seed, chaos):
        super().__init__()
        self.random, self.chaos, self.problem = random.Random(f"{seed}/operator"), chaos, None
        self.began = time.monotonic()

    def choose(self, bucket, switch, states):
        """The words of a command, or none."""
        of = (bucket.name, "--user", bucket.owner)
        if not states:
            late = time.monotonic() > self.began + self.chaos.seconds * .2
            return ("replicate", "add", bucket.name, self.chaos.to(bucket.owner), *of[1:]) if late else None
        live = ("switch", "start", *of, "--continue", "--multipart-ttl", "15s")
        planned = ("switch", "plan", *of, "--continue", "--max-duration", "15s", "--multipart-ttl", "10s")
        if switch in ("error", "skipped"):
            return self.random.choice((planned, ("switch", "abort", *of)))
        if switch not in ("gone", "done"):
            return ("switch", "abort", *of) if self.random.random() < .15 else None
        if "in sync" in states or "behind" in states:
            return self.random.choice((live, live, planned, ("replicate", "resync", *of)))
        return None

    def step(self):
        chaos, bucket = self.chaos, self.random.choice(self.chaos.BUCKETS)
        chaos.restore_store()
        states = [r["state"] for r in chaos.replications(bucket)]
        switches = [s["state"] for s in chaos.asked("switches") if s["bucket"] == bucket.name]
        words = self.choose(bucket, (switches or ["gone"])[0], states)
        if words:
            told = chaos.lab.run(*words, status=None)
            what = " ".join(words[:2])
            chaos.count(chaos.acts, what if "weir:" not in told else f"refused {what}")

    def run(self):
        while not self.chaos.over.is_set():
            try:
                self.step()
            except (Gone, OSError, AttributeError):  # the weir that is asked was killed
                pass
            except Exception as e:  # told by the run
                self.problem = e
                return
            self.chaos.over.wait(self.random.random() * 2)


class Failover:
    """What is killed and started again is the master of Redis, and a replica takes its place."""

    def __init__(self, chaos):
        self.chaos, self.group, self.how, self.old = chaos, chaos.lab.redis, None, None

    def kill(self):
        wait_for = self.chaos.module.wait_for
        wait_for(self.group.is_whole, "replicas")
        self.how = self.chaos.random.choice((signal.SIGKILL, signal.SIGKILL, signal.SIGSTOP))
        if self.chaos.random.random() < .7:
            self.group.level()
        else:
            self.how = signal.SIGKILL
        self.old = self.group.fail_over(self.how)

    def start(self):
        if self.how == signal.SIGSTOP:
            self.old.signal(signal.SIGCONT)
        else:
            self.group.start_as_replica(self.old)


class Mixed(Chaos):
    """A folder and a service; several users; an operator who never rests."""

    KINDS = ("sentinel", "embedded", "redis")
    PAUSE_S = 6
    USERS = {name: (f"AKIA{name.upper()}", f"secret-of-{name}") for name in ("ann", "uma", "bob")}
    MAKES = "uma"
    BUCKETS = (Bucket("chaos", "ann", ("bob", "root")), Bucket("chaos-uma", "uma", ("bob", "root")))

    def build(self):
        self.first = dict(zip(("ann", "uma"), self.random.sample(("a", "b"), 2)))  # the side that their buckets are made on
        self.by_policy = self.random.random() < .5
        more = ("--store.redis.timeout=5s",) if self.kind == "sentinel" else ()
        return self.module.MixedLab(self.kind, self.folder, *more)

    def prepare(self):
        lab, names = self.lab, {who: self.lab.names[side] for who, side in self.first.items()}
        for name, keys in self.USERS.items():
            lab.add_user(name, keys)
        lab.api("POST", "/api/v1/users/uma/route", {"storage": names["uma"]})
        if self.by_policy:
            lab.run("bucket", "route", "chaos", names["ann"], "--user", "ann")
        else:
            lab.run("storage", "main", names["ann"])
        lab.run("replicate", "add", self.to("uma"), "--user", "uma")
        for bucket in self.BUCKETS:
            s3 = lab.s3(keys=self.users[bucket.owner])
            s3.create_bucket(Bucket=bucket.name)
            everybody = {"Effect": "Allow", "Principal": "*", "Action": "s3:*",
                         "Resource": [f"arn:aws:s3:::{bucket.name}", f"arn:aws:s3:::{bucket.name}/*"]}
            s3.put_bucket_policy(Bucket=bucket.name, Policy=json.dumps({"Version": "2012-10-17", "Statement": [everybody]}))
        # Others find a bucket that a user policy leads to by a bucket policy of an administrator's (docs/forward.md, rule 5).
        lab.run("bucket", "route", "chaos-uma", names["uma"], "--user", "uma")
        for n in range(len(lab.gateways)):
            self.module.wait_for(lambda: self.is_seen(n), "the new bucket and its replication")

    def is_seen(self, n):
        try:
            self.lab.s3(n, self.users["bob"]).head_bucket(Bucket="chaos-uma")
        except ClientError as e:  # of a gateway that has not the folder: 503
            if e.response["ResponseMetadata"]["HTTPStatusCode"] != 503:
                return False
        return self.replications(self.BUCKETS[1], n)

    def to(self, who):
        return self.lab.names["b" if self.first[who] == "a" else "a"]

    def destination(self):
        return self.to("ann")

    def more_threads(self):
        return [Operator(self.seed, self)]

    def victims(self):
        lab = self.lab
        if self.kind == "embedded":
            return [("weir", lab.gateways[0])]
        store = [("redis", lab.redis)] if self.kind == "redis" else [("failover", self.failover)]
        return [("home", lab.gateways[0]), ("gateway", lab.gateways[1]), ("worker", lab.workers[0])] + store

    def begin_replication(self):
        """The operator does so."""

    def begin_switch(self):
        self.switched = "operated"

    # --- what writers ask beside ---

    def actions(self, w):
        """Each bucket is left alone for a third of the time, so that it can be in sync."""
        if int(time.monotonic() / CALM_S) % 3 == self.BUCKETS.index(w.bucket):
            time.sleep(.1)
            return [w.prove, w.read]
        return super().actions(w)

    def asked(self, what, n=0):
        """Of the API; [] when it does not answer."""
        try:
            answer = self.lab.gateways[n].request("GET", f"/api/v1/{what}", keys=self.keys)
        except (AttributeError, OSError, http.client.HTTPException):  # it was killed
            return []
        return json.loads(answer.body)[what] if answer.status == 200 else []

    def replications(self, bucket, n=0):
        return [r for r in self.asked("replications", n) if r["bucket"] == bucket.name and not r["archived"]]

    def in_sync_with(self, bucket):
        """Storages that have everything, by what weir says."""
        n = self.random.randrange(len(self.lab.gateways))
        return [r["to"] for r in self.replications(bucket, n) if r["state"] == "in sync"]

    def look(self, storage, path):
        """Past the routes."""
        far = storage == self.lab.names["b"]
        address = self.lab.endpoints["b"][0].removeprefix("http://") if far else self.address(0)
        return Client(address, self.keys).ask("GET", path, headers={} if far else {"x-weir-storage": storage}, want=(200, 404))

    # --- the end ---

    def drain(self):
        for weir in self.lab.started:
            weir.ready()
        if self.kind == "sentinel":
            self.module.wait_for(self.lab.redis.is_whole, "replicas")
        self.forget_failed()
        self.restore_store()
        for bucket in self.BUCKETS:
            self.module.wait_for(lambda: self.replicated(bucket), f"a replication of {bucket.name}")
        super().drain()

    def replicated(self, bucket):
        self.restore_store()
        if not self.replications(bucket):
            self.lab.run("replicate", "add", bucket.name, self.to(bucket.owner), "--user", bucket.owner, status=None)
        return self.replications(bucket)

    def restore_store(self):
        """Where the promoted replica lacked a change of the configuration (docs/store-redis.md, I5)."""
        if self.kind == "embedded":
            return
        answer = self.lab.gateways[0].get("/api/v1/store", keys=self.keys)
        if answer.status == 200 and json.loads(answer.body)["state"] == "older":
            self.lab.run("store", "restore", "--replace", status=None)
            self.count(self.acts, "restored")

    def behind(self):
        self.forget_failed()
        return super().behind()

    def forget_failed(self):
        """Of switches with downtime, which end in an error when clients do not leave them the time."""
        for s in self.asked("switches"):
            if s["state"] in ("error", "skipped"):
                self.lab.run("switch", "abort", s["bucket"], "--user", s["user"], status=None)

    def check(self):
        """What everybody reads by the routes is what the owner was told, too."""
        for writer in self.writers:
            for key in writer.keys:
                asker = self.random.choice(writer.bucket.askers)
                try:
                    writer.read(Client(self.address(0), self.users[asker]), key)
                except AssertionError as e:
                    raise Wrong(f"for {asker} {e}") from None
        return super().check()


SETUPS = {"plain": Chaos, "mixed": Mixed}


def one(setup, kind, seed, seconds, prove):
    """(passed, failed)"""
    chaos = SETUPS[setup](kind, seed, seconds)
    failed = True
    try:
        chaos.run()
        failed = prove and not chaos.damage_is_found()
        if failed:
            print("damage was not found")
        return 1 + bool(prove) - failed, int(failed)
    except (Wrong, Gone, AssertionError, OSError) as e:
        print(f"{setup}, {kind} failed: {e if isinstance(e, Wrong) else traceback.format_exc()}\nkills {chaos.kills}, operator "
              f"{chaos.acts}\nagain: {sys.argv[0]} BUILD --setup {setup} --kind {kind} --runs 1 --seconds {seconds} --seed {seed} (folder kept: {chaos.folder})", flush=True)
        return 0, 1
    finally:
        chaos.end(failed)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("build")
    parser.add_argument("--runs", type=int, default=20)
    parser.add_argument("--seconds", type=int, default=120)
    parser.add_argument("--setup", choices=SETUPS, default="plain")
    parser.add_argument("--kind", help="several by commas; default: all of the set-up")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().getrandbits(31))
    o = parser.parse_args()
    os.environ["WEIR_BUILD"] = os.path.abspath(o.build)
    kinds = tuple(o.kind.split(",")) if o.kind else SETUPS[o.setup].KINDS
    passed = failed = 0
    for i in range(o.runs):
        with concurrent.futures.ThreadPoolExecutor(len(kinds)) as pool:  # most of a run is waiting
            for result in pool.map(lambda kind: one(o.setup, kind, o.seed + i, o.seconds, prove=i == 0), kinds):
                passed, failed = passed + result[0], failed + result[1]
    print(f"seed {o.seed}")
    print(f"{passed} passed, {failed} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
