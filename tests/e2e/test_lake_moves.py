"""Moving repositories: dumps of refs, restores into bare repositories, and the migration from an old lakeFS on PostgreSQL,
also killed at each of their steps. What was killed leaves no row and no file behind once its repositories are deleted."""
import contextlib
import hashlib
import http.client
import json
import re
import signal
import struct
import subprocess
import tarfile

import pytest

from conftest import WEIR, free_port, runner, wait_for
from keeping_lab import Lake as Faulty, check_deleted, kills, redis_rows, stop  # noqa: F401  (with a fixture)
from lake_lab import Lake
from postgres_lab import postgres  # noqa: F401  (a fixture)

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
def test_a_restore_that_is_killed_goes_on_and_leaves_nothing(tmp_path, redis_rows, kill):
    faulty = Faulty(tmp_path, "--lake.gc.every=0s", kv=redis_rows)
    lake = Lake(faulty.server)
    lake.repo()
    history(lake)
    before = state(lake)
    dump = lake.call("PUT", "/repositories/repo/refs/dump")
    make_bare(lake)
    stop(faulty)
    faulty.start(FAULT_KILL=kill)
    with contextlib.suppress(OSError, http.client.HTTPException):  # the task may die before the call is answered
        Lake(faulty.server).call("POST", "/repositories/repo/restore", dump)
    faulty.start_later()
    lake = Lake(faulty.server)
    faulty.wait(lambda: lake.send("GET", "/repositories/repo/branches/main").status == 200, "the restore to end")
    assert state(lake) == before
    assert lake.call("PUT", "/repositories/repo/refs/dump") == dump
    check_deleted(faulty, redis_rows, "repo")
    stop(faulty)


# --- migration ---

TABLES = """
CREATE TABLE graveler_repositories (id text PRIMARY KEY, storage_namespace text NOT NULL,
  creation_date timestamptz NOT NULL, default_branch text NOT NULL);
CREATE TABLE graveler_branches (repository_id text NOT NULL, id text NOT NULL, staging_token text, commit_id text,
  PRIMARY KEY (repository_id, id));
CREATE INDEX ON graveler_branches (commit_id);
CREATE TABLE graveler_commits (repository_id text NOT NULL, id text NOT NULL, committer text NOT NULL, message text NOT NULL,
  creation_date timestamptz NOT NULL, meta_range_id text NOT NULL, metadata jsonb, parents text[],
  version int NOT NULL DEFAULT 0, generation int, PRIMARY KEY (repository_id, id));
CREATE TABLE graveler_tags (repository_id text NOT NULL, id text NOT NULL, commit_id text, PRIMARY KEY (repository_id, id));
CREATE TABLE graveler_staging_kv (staging_token varchar NOT NULL, key bytea NOT NULL, identity bytea, data bytea,
  UNIQUE (staging_token, key)) PARTITION BY HASH (staging_token);
""" + "".join(f"CREATE TABLE graveler_staging_kv_p{i} PARTITION OF graveler_staging_kv FOR VALUES WITH "
              f"(MODULUS 10, REMAINDER {i});" for i in range(10)) + """
CREATE TABLE gateway_multiparts (upload_id varchar PRIMARY KEY, path varchar COLLATE "C" NOT NULL,
  creation_date timestamptz DEFAULT now(), physical_address varchar, metadata jsonb, content_type text);
"""
CREATED = 1600000000  # seconds since 1970


def number(v):
    return b"\x02\x08" + struct.pack(">Q", v)


def text(s):
    return b"\x01" + number(len(s.encode())) + s.encode()


def commit_id(message, metadata, parents):
    """lakeFS's formula."""
    pairs = b"\x04" + number(len(metadata)) + b"".join(text(k) + text(v) for k, v in sorted(metadata.items()))
    names = hashlib.sha256(b"\x03" + number(len(parents)) + b"".join(map(text, parents))).digest()
    return hashlib.sha256(text("commit:v1") + text("tester") + text(message) + text("") + number(CREATED) + pairs + b"\x05" +
                          b"\x00" + number(len(names)) + names).hexdigest()


def varint(v):
    out = b""
    while v >= 128:
        out, v = out + bytes([v & 127 | 128]), v >> 7
    return out + bytes([v])


def entry(address, size):
    """The protobuf of an object: address 1, size 3, e_tag 4, address_type 6."""
    field = lambda n, s: varint(n << 3 | 2) + varint(len(s)) + s  # noqa: E731
    return field(1, address.encode()) + b"\x18" + varint(size) + field(4, b"etag") + b"\x30\x01"


class OldLake:
    """The tables of an old lakeFS, filled with everything that they allow."""

    COMMITS, STAGED = 1300, 700  # more than one batch of each

    def __init__(self, postgres):
        self.postgres, self.sql, self.url = postgres, [TABLES], postgres.url.replace("/postgres?", "/old?")
        postgres.query("CREATE DATABASE old ENCODING 'UTF8' TEMPLATE template0")
        self.ids = []
        for name in ("alpha", "beta"):
            self.repo(name)
        self.sql.append("INSERT INTO graveler_repositories VALUES ('elsewhere', 'gs://cloud/x', now(), 'main')")
        self.sql.append("INSERT INTO graveler_staging_kv VALUES ('lost:token', 'a', 'i', 'd'), ('lost:token', 'b', NULL, NULL)")
        self.sql.append("INSERT INTO graveler_tags VALUES ('nobody', 't', NULL)")
        self.sql.append("INSERT INTO gateway_multiparts VALUES ('u1', 'p', DEFAULT, 'data/u1', 'null', NULL)")
        self.run(";\n".join(self.sql))

    def run(self, sql):
        subprocess.run([str(self.postgres.programs / "psql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", self.url], input=sql,
                       text=True, check=True, stdout=subprocess.DEVNULL)

    def repo(self, name):
        """A line of commits of both versions, without generations or with wrong ones, and a merge of version 0 at its end,
        whose first parent is its last one."""
        self.sql.append(f"INSERT INTO graveler_repositories VALUES ('{name}', 's3://lake-data/{name}', "
                        f"to_timestamp({CREATED}), 'main')")
        ids = []
        for i in range(self.COMMITS):
            parents = ids[-1:] if i < self.COMMITS - 1 else [ids[10], ids[-1]]
            metadata = {"n": str(i), "ä": "ö"} if i % 3 == 0 else {}
            id = commit_id(f"{name} {i}", metadata, parents)
            shown = "NULL" if i % 3 == 1 else "'null'" if i % 3 == 2 else "'" + json.dumps(metadata) + "'"
            array = "NULL" if not parents else "ARRAY['" + "','".join(parents) + "']"
            self.sql.append(f"INSERT INTO graveler_commits VALUES ('{name}', '{id}', 'tester', '{name} {i}', to_timestamp({CREATED}), "
                            f"'', {shown}, {array}, {i % 2 if len(parents) < 2 else 0}, {'NULL' if i % 4 else 7})")
            ids.append(id)
        self.sql.append(f"INSERT INTO graveler_branches VALUES ('{name}', 'main', '{name}-main:token', '{ids[-1]}'), "
                        f"('{name}', 'old', NULL, '{ids[5]}'), ('{name}', 'empty', '{name}-empty:token', NULL)")
        self.sql.append(f"INSERT INTO graveler_tags VALUES ('{name}', 'v1', '{ids[3]}'), ('{name}', 'none', NULL)")
        rows = [(f"{name}-main:token", f"path/{i:05}".encode(), None if i % 7 == 0 else (f"data/{i}", i))
                for i in range(self.STAGED)]
        rows += [(f"{name}-main:token", b"\xff\x00\xfe", ("data/binary", 3)), (f"{name}-empty:token", b"only", ("data/only", 4))]
        for token, key, value in rows:
            data = "NULL, NULL" if value is None else f"'\\x01', '\\x{entry(*value).hex()}'"
            self.sql.append(f"INSERT INTO graveler_staging_kv VALUES ('{token}', '\\x{key.hex()}', {data})")
        self.ids.append(ids)

    def checksum(self):
        dump = subprocess.run([str(self.postgres.programs / "pg_dump"), "--inserts", self.url], check=True,
                              capture_output=True).stdout
        lines = [line for line in dump.splitlines() if not line.startswith((b"\\restrict", b"\\unrestrict"))]
        return hashlib.sha256(b"\n".join(lines)).hexdigest()


def check_moved(lake, old):
    for name, ids in zip(("alpha", "beta"), old.ids):
        heads = {b["id"]: b["commit_id"] for b in lake.pages(f"/repositories/{name}/branches")}
        assert heads == {"main": ids[-1], "old": ids[5], "empty": ""}
        assert {t["id"]: t["commit_id"] for t in lake.pages(f"/repositories/{name}/tags")} == {"v1": ids[3], "none": ""}
        log = list(lake.pages(f"/repositories/{name}/refs/main/commits"))
        assert sorted(c["id"] for c in log) == sorted(ids)
        assert {c["id"]: c["generation"] for c in log} == {id: n + 1 for n, id in enumerate(ids)}
        by_message = {c["message"]: c for c in log}
        assert by_message[f"{name} 3"]["metadata"] == {"n": "3", "ä": "ö"} and by_message[f"{name} 4"]["metadata"] == {}
        firsts = list(lake.pages(f"/repositories/{name}/refs/main/commits", first_parent="true"))
        assert len(firsts) == len(ids)  # the merge's first parent is its last one
        stats = {o["path"]: o["size_bytes"] for o in lake.pages(f"/repositories/{name}/refs/main/objects/ls")}
        assert len(stats) == old.STAGED - old.STAGED // 7 + 1
        assert stats["path/00008"] == 8 and "path/00007" not in stats
        assert lake.paths("empty", repo=name) == ["only"]


def test_a_migration_that_is_killed_goes_on_and_leaves_nothing(tmp_path, postgres, redis_rows, weir):
    old = OldLake(postgres)
    before = old.checksum()
    faulty, killed = Faulty(tmp_path, "--lake.gc.every=0s", kv=redis_rows), 0
    for kill in ("before:lake.migrate_row:2", "after:lake.migrate_row:4", "before:lake.migrate_row:4", "after:lake.migrate_row:4",
                 "before:lake.migrate_row:5", "after:lake.migrate_row:6"):
        stop(faulty)
        faulty.start(FAULT_KILL=kill)
        done = weir("lake", "migrate", old.url, "--data", faulty.server.data, "--url", faulty.server.url)
        assert done.returncode == 1
        assert faulty.server.process.wait() != 0
        killed += 1
        faulty.start()
    assert killed >= 5
    lake, run = Lake(faulty.server), runner(faulty.server, weir)
    assert lake.send("GET", "/repositories/beta").status == 404  # nothing is seen of it before it is whole
    done = weir("lake", "migrate", old.url, "--data", faulty.server.data, "--url", faulty.server.url, "--json")
    assert done.returncode == 1 and "1 of 3 repositories were not moved" in done.stderr
    assert "2 staged rows whose token no branch has" in done.stderr and "hidden" not in done.stdout + done.stderr
    states = {r["repository"]: r["state"] for r in json.loads(done.stdout)}
    assert states["elsewhere"] == "failed" and states["alpha"] in ("done", "present") and states["beta"] == "done"
    check_moved(lake, old)
    assert old.checksum() == before
    old.run("DELETE FROM graveler_repositories WHERE id = 'elsewhere'")
    assert {r["state"] for r in run("lake", "migrate", old.url, "--json")} == {"present"}
    lake.put("new", b"new", repo="alpha")
    lake.commit("the first of weir", repo="alpha")
    assert "hidden" not in faulty.server.err + faulty.server.out
    check_deleted(faulty, redis_rows, "alpha", "beta", stay={
        ("lake-migrate", "repos/alpha"), ("lake-migrate", "repos/beta"), ("multiparts", "u1")})
    stop(faulty)


def test_a_migration_is_for_administrators_and_one_at_a_time(server, weir, postgres):
    lake, run = Lake(server), runner(server, weir)
    keys = run("user", "add", "alice", "--json")[0]
    alice = Lake(server, (keys["access_key"], keys["secret_key"]))
    for method in ("POST", "GET", "DELETE"):
        assert alice.send(method, "/lake/migration", {"url": postgres.url}).status == 401
    assert "no table graveler_repositories" in run("lake", "migrate", postgres.url, status=1)
    assert "there is no user 'nobody'" in run("lake", "migrate", postgres.url, "--owner", "nobody", status=1)
    assert lake.send("GET", "/lake/migration").json["repositories"] == []
    assert "write postgres://" in run("lake", "migrate", "nonsense://x", status=1)
    nobody = f"postgres://x@127.0.0.1:{free_port()}/x"
    assert re.fullmatch(r"weir: lake migrate: the source: .*Connection refused\n", run("lake", "migrate", nobody, status=1))
    old = OldLake(postgres)
    server.s3((keys["access_key"], keys["secret_key"])).create_bucket(Bucket="lake-data")
    assert lake.send("POST", "/lake/migration", {"url": old.url, "owner": "alice"}).status == 202
    assert lake.send("POST", "/lake/migration", {"url": old.url}).status == 429
    wait_for(lambda: not lake.send("GET", "/lake/migration").json["running"], "the migration")
    assert alice.paths("empty", repo="alpha") == ["only"]


class TableLock:
    """Another session's lock, for which every statement on the table waits."""

    def __init__(self, old, table):
        self.old, self.met = old, 0
        self.psql = subprocess.Popen([str(old.postgres.programs / "psql"), "-X", "-q", old.url], stdin=subprocess.PIPE, text=True)
        self.psql.stdin.write(f"BEGIN; LOCK TABLE {table} IN ACCESS EXCLUSIVE MODE;\n")
        self.psql.stdin.flush()
        wait_for(lambda: self.count("granted AND mode = 'AccessExclusiveLock'") == 1, "the lock")

    def count(self, condition):
        return int(self.old.postgres.query("SELECT count(*) FROM pg_locks WHERE database = (SELECT oid FROM pg_database WHERE "
                                           f"datname = 'old') AND {condition}"))

    def wait(self):
        """Waits until one more migration waits for the lock: the server notices only later that a client went away."""
        self.met += 1
        wait_for(lambda: self.count("NOT granted") == self.met, "a migration that waits")

    def release(self):
        self.psql.communicate("ROLLBACK;\n")


def test_a_migration_whose_source_hangs_is_stopped(tmp_path, weir, postgres):
    old, faulty = OldLake(postgres), Faulty(tmp_path)
    server, lake = faulty.server, Lake(faulty.server)
    old.run("DELETE FROM graveler_repositories WHERE id = 'elsewhere'")
    status = lambda: lake.send("GET", "/lake/migration").json  # noqa: E731
    lock = TableLock(old, "graveler_tags")
    assert lake.send("POST", "/lake/migration", {"url": old.url}).status == 202
    lock.wait()
    assert lake.send("DELETE", "/lake/migration").status == 204
    wait_for(lambda: not status()["running"], "the end of the migration")
    assert "was stopped" in status()["error"]

    command = subprocess.Popen([WEIR, "lake", "migrate", old.url, "--data", server.data, "--url", server.url],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    lock.wait()
    command.send_signal(signal.SIGINT)
    assert "was stopped" in command.communicate(timeout=60)[1] and command.returncode == 1
    assert not status()["running"]

    assert lake.send("POST", "/lake/migration", {"url": old.url}).status == 202
    lock.wait()
    server.process.send_signal(signal.SIGTERM)
    server.process.wait(60)
    lock.release()
    faulty.start()
    assert {r["state"] for r in runner(faulty.server, weir)("lake", "migrate", old.url, "--json")} == {"done"}
    check_moved(Lake(faulty.server), old)
    stop(faulty)


# --- diagnosis ---

def test_a_diagnosis_has_no_secrets(server, weir, tmp_path):
    lake, run = Lake(server), runner(server, weir)
    lake.repo()
    lake.put("hush/hush", b"hush")
    lake.commit("a message with hush")
    lake.put("staged", b"x")
    keys = run("user", "add", "alice", "--json")[0]
    file = tmp_path / "lake.tar"
    shown = run("lake", "diagnose", file, "--json")[0]
    assert shown["bytes"] == file.stat().st_size and file.stat().st_mode & 0o777 == 0o600
    with tarfile.open(file) as archive:
        files = {m.name: archive.extractfile(m).read() for m in archive.getmembers()}
    everything = b"".join(files.values())
    for word in (keys["secret_key"], server.keys[1], "hush"):
        assert word.encode() not in everything
    rows = {name: json.loads(text) for name, text in files.items()}
    assert rows["about.json"][0]["users"] == 2 and rows["about.json"][0]["repositories"] == 1
    assert [(b["branch"], b["staged_rows"]) for b in rows["branches.json"]] == [("main", 1)]
    assert {e["entity"]: e["rows"] for e in rows["partitions.json"] if e["partition"].startswith("repo-")}["commits"] == 2
    assert [t["nodes"] for t in rows["trees.json"]] == [1, 1] and rows["errors.json"] == []
    assert next(o for o in rows["operations.json"] if o["operation"] == "commit")["count"] == 1
    alice = Lake(server, (keys["access_key"], keys["secret_key"]))
    assert alice.send("GET", "/lake/diagnosis").status == 401
    assert "No such file" in run("lake", "diagnose", tmp_path / "none" / "lake.tar", status=1)
