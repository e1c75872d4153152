"""The archive end to end: the first description of the layout part by part, and what can happen to repositories. Every
bundle is cloned by the system's git and compared with the repository that it was made of."""
import hashlib
import io
import json
import os
import re
import shutil
import signal
import subprocess
import time
import zipfile

import pytest
from archive_lab import Archive, folders
from conftest import wait_for
from git_lab import cut, git, pkt, status

OCTOCAT = "a6/65/81/57"


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(**more):
        made.append(Archive(tmp_path, serve, weir, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


@pytest.fixture
def octocat(lab):
    """An archive with one account of two repositories, synced once."""
    a = lab()
    a.add_repo("octocat", "Hello-World", commits=5)
    a.add_repo("octocat", "Spoon-Knife", commits=2)
    a.add("octocat")
    a.synced("octocat")
    return a


# --- the whole way ---

def test_an_account_end_to_end(octocat):
    a = octocat
    a.same("octocat", "Hello-World")
    a.same("octocat", "Spoon-Knife")
    assert a.names("octocat") == ["octocat.json", "octocat/Hello-World.bundle", "octocat/Hello-World.zip",
                                  "octocat/Spoon-Knife.bundle", "octocat/Spoon-Knife.zip"]
    a.check()


def test_later_commits_are_appended(octocat):
    a = octocat
    before = a.git.bytes_out
    a.repos["octocat", "Hello-World"].commit(3)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    a.same("octocat", "Hello-World")
    shown = a.repository("octocat", "Hello-World")
    assert shown["appends"] == 1 and shown["code"] == "ok"
    assert a.server.metric('weir_archive_bundles_total{way="append"}') == 1
    assert a.git.bytes_out - before < 20_000
    a.check()


def test_an_unchanged_account_costs_its_304s_and_nothing_else(lab):
    a = lab(args=["--archive.look=7d"])
    for i in range(3):
        a.add_repo("octocat", f"r{i}")
    a.add("octocat")
    a.synced("octocat")
    forge, gits = a.forge.mark(), a.git.count()
    a.sync("octocat")
    assert a.forge.count(since=forge) == a.forge.count(r"/repos$", status=304, since=forge) == 1
    assert a.git.count() == gits


@pytest.mark.parametrize("lost", ["Hello-World.bundle", "Hello-World.zip"])
def test_a_lost_object_is_fetched_again(lab, lost):
    """Nobody has pushed, so only the listing of the account's folder tells that the object is missing."""
    a = lab(args=["--archive.look=365d"])
    a.add_repo("octocat", "Hello-World", commits=5)
    a.add_repo("octocat", "Spoon-Knife", commits=2)
    a.add("octocat")
    a.synced("octocat")
    names = a.names("octocat")
    asked = a.git.count()
    a.sync("octocat")
    assert a.git.count() == asked
    a.s3().delete_object(Bucket=a.bucket, Key=a.key("octocat", "/" + lost))
    a.sync("octocat")
    assert a.names("octocat") == names
    assert a.git.count() > asked and a.git.count(path="Spoon-Knife") == len([
        s for s in a.git.seen[:asked] if "Spoon-Knife" in s.path])
    a.same("octocat", "Hello-World")
    a.check()
    asked = a.git.count()
    a.sync("octocat")
    assert a.git.count() == asked                 # the new record has the new object


def test_an_unchanged_repository_costs_one_look_at_its_refs(octocat):
    a = octocat
    before = a.head("octocat", "/Hello-World.bundle")
    gets, posts = a.git.count("GET", "Hello-World"), a.git.count("POST", "Hello-World")
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    assert a.git.count("GET", "Hello-World") == gets + 1 and a.git.count("POST", "Hello-World") == posts + 1
    assert a.head("octocat", "/Hello-World.bundle")["LastModified"] == before["LastModified"]


# --- the first description, part by part ---

def test_seed_paths(lab):
    """The folders are the first four bytes of the SHA-256 of the name, and the example 2b/cb/c2/d5 is a mistake."""
    assert folders("octocat") == OCTOCAT
    assert hashlib.sha1(b"octocat\n").hexdigest().startswith("2bcbc2d5")
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    assert f"{OCTOCAT}/octocat/Hello-World.bundle" in a.keys()
    assert f"{OCTOCAT}/octocat/Hello-World.zip" in a.keys()


def test_seed_names_are_folded(lab):
    """case_folding_user: OctoCat and octocat are one account; repositories keep their spelling."""
    a = lab()
    a.add_repo("OctoCat", "Hello-World")
    assert a.add("OCTOCAT") == [{"added": 1, "known": 0}]
    assert a.add("octocat") == [{"added": 0, "known": 1}]
    shown = a.synced("octocat")
    assert shown["login"] == "OctoCat" and shown["account"] == a.member("octocat")
    assert a.has("octocat", "/Hello-World.bundle")


def six_answers_by_s3(a):
    s3, bucket = a.server.s3(), a.bucket
    keys = [o["Key"] for o in s3.list_objects_v2(Bucket=bucket)["Contents"]]
    users = sorted(m[1] for k in keys if (m := re.fullmatch(r"(?:[0-9a-f]{2}/){4}([^/]+)\.json", k)))
    head = json.loads(a.get("octocat", ".json").split(b"\n")[0])
    repos = sorted(k.rsplit("/", 1)[1][:-7] for k in keys if k.startswith(f"{OCTOCAT}/octocat/") and k.endswith(".bundle"))
    updated = float(a.head("octocat", "/Hello-World.bundle")["Metadata"]["mtime"])
    return {"users": users, "last_sync": head["last_full_sync"], "count": head["repos_stored"], "repos": repos,
            "updated": round(updated, 3), "error": a.error("octocat", "empty")[0]}


def stamp(text):
    import datetime
    return round(datetime.datetime.strptime(text, "%Y-%m-%dT%H:%M:%S.%f%z").timestamp(), 3)


def six_answers_by_rest(a):
    user, repo = a.account("octocat"), a.repository("octocat", "Hello-World")
    users = [x["account"].partition("/")[2] for x in a.api("/accounts")["accounts"]]
    return {"users": sorted(users), "last_sync": user["last_sync"], "count": user["repositories"],
            "repos": sorted(a.repositories("octocat")), "updated": stamp(repo["updated"]),
            "error": a.repository("octocat", "empty")["error"]["code"]}


def six_answers_by_commands(a):
    user = a.run("show", a.member("octocat"), "--json")[0]
    repo = a.run("show", a.member("octocat"), "Hello-World", "--json")[0]
    users = [x["account"].partition("/")[2] for x in a.run("list", "--json")]
    repos = [x["name"] for x in a.run("show", a.member("octocat"), "--repositories", "--json")]
    error = a.run("show", a.member("octocat"), "empty", "--json")[0]["error"]
    return {"users": sorted(users), "last_sync": user["last_sync"], "count": user["repositories"], "repos": sorted(repos),
            "updated": stamp(repo["updated"]), "error": error["code"]}


def test_seed_six_answers_are_the_same_by_s3_rest_and_commands(lab):
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.add_repo("octocat", "empty", commits=0)
    a.add_repo("mojombo", "grit")
    a.add("octocat", "mojombo")
    a.synced("mojombo"), a.synced("octocat")
    by_s3 = six_answers_by_s3(a)
    assert by_s3 == six_answers_by_rest(a) == six_answers_by_commands(a)
    assert by_s3["users"] == ["mojombo", "octocat"] and by_s3["repos"] == ["Hello-World", "empty"]
    assert by_s3["count"] == 2 and by_s3["error"] == "empty"


def rclone(a, *args):
    access, secret_key = a.server.keys
    env = {"PATH": os.environ["PATH"], "HOME": str(a.folder), "RCLONE_CONFIG": "/dev/null", "RCLONE_CONFIG_SAT_TYPE": "s3", "RCLONE_CONFIG_SAT_PROVIDER": "Other",
           "RCLONE_CONFIG_SAT_ENDPOINT": a.server.s3_url, "RCLONE_CONFIG_SAT_ACCESS_KEY_ID": access,
           "RCLONE_CONFIG_SAT_SECRET_ACCESS_KEY": secret_key, "TZ": "UTC"}
    return subprocess.run(["rclone", *args], env=env, capture_output=True, text=True, check=True).stdout


@pytest.mark.skipif(not shutil.which("rclone"), reason="rclone is not installed")
def test_seed_rclone_commands(lab):
    """The three commands of the description, with the real rclone; `lsl` shows the time that `ls` does not."""
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.add_repo("octocat", "empty", commits=0)
    a.add("octocat")
    a.synced("octocat")
    folder = f"sat:{a.bucket}/{OCTOCAT}/octocat/"
    assert {line.split()[1] for line in rclone(a, "ls", folder).splitlines()} == {
        "Hello-World.bundle", "Hello-World.zip", "empty.bundle", "empty.error"}
    size = len(a.get("octocat", "/Hello-World.bundle"))
    assert rclone(a, "ls", folder + "Hello-World.bundle").split() == [str(size), "Hello-World.bundle"]
    shown = rclone(a, "lsl", folder + "Hello-World.bundle").split()
    assert f"{shown[1]}T{shown[2][:12]}Z" == a.repository("octocat", "Hello-World")["updated"]
    assert " empty " in rclone(a, "cat", folder + "empty.error").splitlines()[0]


def test_seed_redis_commands(lab, redis):
    """ZADD by hand is synced, a lock that was set by hand is honoured, and its end is noticed."""
    a = lab(redis=redis)
    a.add_repo("octocat", "Hello-World")

    def cli(*args):
        return subprocess.run(["redis-cli", "-p", str(redis.port), *args], capture_output=True, text=True,
                              check=True).stdout.strip()
    lock = f"lock:{a.member('octocat')}"
    assert cli("SET", lock, "1", "EX", "4", "NX") == "OK"
    assert cli("ZADD", "tracked", "0", a.member("octocat")) == "1"
    assert cli("EXPIRE", lock, "3") == "1"
    since = time.monotonic()
    a.synced("octocat")
    assert time.monotonic() - since > 2, "the lock was not honoured"
    score = cli("ZRANGEBYSCORE", "tracked", "-inf", "+inf", "WITHSCORES", "LIMIT", "0", "1").split()
    assert score[0] == a.member("octocat") and abs(int(score[1]) / 1000 - time.time()) < 60
    assert score[1] == str(round(stamp(a.account("octocat")["last_sync"]) * 1000))
    assert not a.has("octocat", ".new")


def test_what_a_killed_sync_left_beside_the_record_is_removed(lab, redis):
    """A sync that was killed behind its first record has left `.new`; the account has the score -1 still."""
    a = lab(redis=redis)
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    a.s3().put_object(Bucket=a.bucket, Key=a.key("octocat", ".new"), Body=b"2026-01-01T00:00:00.000Z\n")
    a.s3().put_object(Bucket=a.bucket, Key=a.key("octocat", "/Hello-World.error"), Body=b"x")
    wait_for(lambda: {f["finding"] for f in a.run("check", "--json", status=None)} == {
        "the account has a record, and its .new object is still there",
        "there is an .error object, and the record has no error"}, "the lock to expire and the findings")
    subprocess.run(["redis-cli", "-p", str(redis.port), "ZADD", "tracked", "-1", a.member("octocat")], check=True,
                   capture_output=True)
    a.sync("octocat")
    assert not a.has("octocat", ".new")
    a.check()


@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_the_zip_of_a_sync_equals_the_tree(lab, format, tmp_path):
    """Behind the first sync, a push, and a change of the default branch; as Python, unzip and bsdtar read it."""
    a = lab()
    repo = a.add_repo("octocat", "Hello-World", commits=4, format=format)
    a.add("octocat")
    a.synced("octocat")

    def check(branch, turn):
        path = tmp_path / f"{turn}.zip"
        path.write_bytes(a.get("octocat", "/Hello-World.zip"))
        top = f"Hello-World-{branch}/"
        wanted = {}
        for line in repo.git("ls-tree", "-r", branch).splitlines():
            head, name = line.split("\t", 1)
            wanted[name] = repo.git("cat-file", "blob", head.split()[2])
        with zipfile.ZipFile(path) as z:
            assert z.testzip() is None
            assert z.comment.decode() == repo.git("rev-parse", branch).strip()
            found = {n.removeprefix(top): z.read(n).decode() for n in z.namelist() if not n.endswith("/")}
        assert found == wanted
        for program in (["unzip", "-q", path, "-d"], ["bsdtar", "-xf", path, "-C"]):
            out = tmp_path / f"{turn}-{program[0]}"
            out.mkdir()
            subprocess.run([*map(str, program), str(out)], check=True)
            assert {str(f.relative_to(out / top)): f.read_text() for f in out.rglob("*") if f.is_file()} == wanted
    check("main", 1)
    repo.commit(3)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    check("main", 2)
    repo.commit(2, ref="refs/heads/next")
    repo.git("symbolic-ref", "HEAD", "refs/heads/next")
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    check("next", 3)


def test_the_default_branch_moves_between_the_pack_and_the_zip(octocat):
    """The server has dropped the tip: the bundle is brought up to date, and the ZIP is that of the new tip."""
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    repo.commit(2)
    moved = []

    def move(call, body):
        if b"deepen" not in call.seen.body or moved:
            return body
        moved.append(repo.commit(1))
        oid = call.seen.body.split(b"want ")[1][:40].decode()
        return iter([pkt(f"ERR upload-pack: not our ref {oid}")])
    a.git.answer("Hello-World.git/git-upload-pack$", move)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    a.same("octocat", "Hello-World")
    with zipfile.ZipFile(io.BytesIO(a.get("octocat", "/Hello-World.zip"))) as z:
        assert moved and z.comment.decode() == moved[0]
    a.check()


# --- repositories ---

def test_renamed_repo_redirect(octocat):
    """A renamed repository goes on under its new name without a full fetch; the old objects stay."""
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    fetches = a.server.metric('weir_archive_bundles_total{way="whole"}')
    shutil.move(a.git.root / "octocat/Hello-World.git", a.git.root / "octocat/Hello.git")
    repo = a.repos["octocat", "Hello-World"]
    repo.path = a.git.root / "octocat/Hello.git"
    repo.commit(2)
    a.forge.rename_repo("octocat", "Hello-World", "Hello")
    a.push("octocat", "Hello")
    a.sync("octocat")
    a.same("octocat", "Hello", repo)
    assert a.server.metric('weir_archive_bundles_total{way="whole"}') == fetches
    assert a.get("octocat", "/Hello-World.bundle") == old
    code, stage, message = a.error("octocat", "Hello-World")
    assert (code, stage) == ("renamed", "list") and "octocat/Hello" in message
    a.check()


def test_name_reused_other_id(octocat):
    """Another repository takes the name: the bundle of the old one is kept beside it."""
    a = octocat
    old, id = a.get("octocat", "/Hello-World.bundle"), a.forge.find_repo("octocat", "Hello-World")["id"]
    a.forge.remove_repo("octocat", "Hello-World")
    shutil.rmtree(a.git.root / "octocat/Hello-World.git")
    repo = a.add_repo("octocat", "Hello-World", commits=4)
    a.sync("octocat")
    a.same("octocat", "Hello-World", repo)
    assert a.get("octocat", f"/Hello-World@{id}.bundle") == old
    assert not a.has("octocat", "/Hello-World.error") and a.has("octocat", f"/Hello-World@{id}.error")
    assert a.repositories("octocat")["Hello-World"]["code"] == "ok"
    a.check()


def test_renamed_and_its_name_taken_at_once(octocat):
    """The renamed repository and the one that takes its name are synced at the same time: each has its own bundle."""
    a = octocat
    shutil.move(a.git.root / "octocat/Hello-World.git", a.git.root / "octocat/Hello.git")
    moved = a.repos["octocat", "Hello-World"]
    moved.path = a.git.root / "octocat/Hello.git"
    a.forge.rename_repo("octocat", "Hello-World", "Hello")
    taken = a.add_repo("octocat", "Hello-World", commits=4)
    a.sync("octocat")
    a.same("octocat", "Hello", moved)
    a.same("octocat", "Hello-World", taken)
    assert not a.has("octocat", "/Hello-World.error") and not a.has("octocat", "/Hello.error")
    a.check()


def test_transferred_repo(octocat):
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    a.forge.add_account("acme", type="Organization")
    a.forge.transfer_repo("octocat", "Hello-World", "acme")
    a.sync("octocat")
    code, stage, message = a.error("octocat", "Hello-World")
    assert (code, stage) == ("renamed", "list") and "acme/Hello-World" in message
    assert a.get("octocat", "/Hello-World.bundle") == old
    a.check()


def test_deleted_repo_keeps_data(octocat):
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    a.forge.remove_repo("octocat", "Hello-World")
    a.sync("octocat")
    assert a.error("octocat", "Hello-World")[:2] == ("gone", "list")
    assert a.get("octocat", "/Hello-World.bundle") == old
    assert a.repositories("octocat")["Hello-World"]["code"] == "gone"
    a.check()


@pytest.mark.parametrize("code", [401, 403, 500, 502, 503])
def test_a_refusal_is_never_gone(octocat, code):
    """A repository that the list lacks, and about which the forge does not answer, is not gone."""
    a = octocat
    a.forge.remove_repo("octocat", "Hello-World")
    a.forge.answer(r"/repositories/\d+", status=code, body={"message": "no"})
    a.sync("octocat", status=1)
    assert a.error("octocat", "Hello-World")[0] not in ("gone", "renamed")
    assert a.account("octocat")["error"]["code"] == a.error("octocat", "Hello-World")[0]


def test_force_push_keeps_old_tip(octocat):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    old = repo.git("rev-parse", "refs/heads/main").strip()
    repo.update(("refs/heads/main", None))
    repo.commit(2)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    to = a.same("octocat", "Hello-World")
    kept = git("for-each-ref", "--format=%(objectname) %(refname)", "refs/weir", cwd=to).splitlines()
    assert [line.split()[0] for line in kept if line.endswith("/was/heads/main")] == [old]
    git("cat-file", "-e", old, cwd=to)


def test_deleted_branch(octocat):
    """A branch that was deleted costs no pack: only the header is written."""
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    tip = repo.commit(2, ref="refs/heads/topic")
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    repo.update(("refs/heads/topic", None))
    a.push("octocat", "Hello-World")
    headers = a.server.metric('weir_archive_bundles_total{way="header"}')
    a.sync("octocat")
    assert a.server.metric('weir_archive_bundles_total{way="header"}') == headers + 1
    to = a.same("octocat", "Hello-World")
    git("cat-file", "-e", tip, cwd=to)


def test_default_branch_last_line(octocat):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    repo.update(("refs/heads/zebra", repo.git("rev-parse", "refs/heads/main").strip()))
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    heads = [line for line in a.get("octocat", "/Hello-World.bundle").split(b"\n\n")[0].decode().splitlines()
             if " refs/heads/" in line]
    assert heads[-1].endswith(" refs/heads/main")
    a.same("octocat", "Hello-World")


@pytest.mark.parametrize("format,size", [("sha1", 49), ("sha256", 81)])
def test_empty_repo_49_bytes(lab, format, size):
    a = lab()
    repo = a.add_repo("octocat", "empty", commits=0, format=format)
    a.add("octocat")
    a.synced("octocat")
    assert a.error("octocat", "empty")[0] == "empty"
    if format == "sha1":
        assert len(a.get("octocat", "/empty.bundle")) == size
    assert a.account("octocat")["repositories"] == 1
    repo.commit(2)
    a.push("octocat", "empty")
    a.sync("octocat")
    a.same("octocat", "empty")
    assert not a.has("octocat", "/empty.error")
    a.check()


def test_emptied_repo(octocat):
    """A repository that was emptied keeps what was saved."""
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    old = repo.git("rev-parse", "refs/heads/main").strip()
    repo.update(("refs/heads/main", None))
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    assert a.error("octocat", "Hello-World")[0] == "empty"
    to = a.clone("octocat", "Hello-World")
    git("cat-file", "-e", old, cwd=to)


def test_repo_100k_refs(lab):
    a = lab()
    repo = a.add_repo("octocat", "many", commits=1)
    repo.refs_by_number(100_001)
    a.add("octocat")
    wait_for(lambda: a.account("octocat")["last_sync"], "the sync", 300)
    path = a.bundle("octocat", "many")
    lines = git("bundle", "list-heads", path).splitlines()
    assert sum(" refs/tags/n" in line for line in lines) == 100_001


def test_tag_to_blob_and_tree_nested_tags_notes_and_pull_refs(lab):
    a = lab()
    repo = a.add_repo("octocat", "odd")
    blob = repo.git("hash-object", "-w", "--stdin", input=b"a blob alone").strip()
    tree = repo.git("rev-parse", "main^{tree}").strip()
    tip = repo.git("rev-parse", "main").strip()
    inner = repo.git("mktag", input=f"object {tip}\ntype commit\ntag inner\ntagger C <c@example> 1 +0000\n\nx\n".encode()).strip()
    outer = repo.git("mktag", input=f"object {inner}\ntype tag\ntag outer\ntagger C <c@example> 1 +0000\n\nx\n".encode()).strip()
    note = repo.commit(1, ref="refs/notes/commits")
    repo.update(("refs/tags/blob", blob), ("refs/tags/tree", tree), ("refs/tags/outer", outer),
                ("refs/pull/1/head", note), ("refs/pull/1/merge", tip))
    a.add("octocat")
    a.synced("octocat")
    a.same("octocat", "odd", left_out=["refs/pull/1/merge"])


def test_sha256_repo_v3(lab):
    a = lab()
    repo = a.add_repo("octocat", "new", commits=4, format="sha256")
    a.add("octocat")
    a.synced("octocat")
    a.same("octocat", "new")
    repo.commit(3)
    a.push("octocat", "new")
    a.sync("octocat")
    a.same("octocat", "new")
    assert a.get("octocat", "/new.bundle").startswith(b"# v3 git bundle\n@object-format=sha256\n")


def test_shallow_upstream_refused(octocat):
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    repo = a.repos["octocat", "Hello-World"]
    tip = repo.commit(1)
    (repo.path / "shallow").write_text(tip + "\n")
    a.push("octocat", "Hello-World")
    a.sync("octocat", status=1)
    assert a.error("octocat", "Hello-World")[0] == "protocol"
    assert a.get("octocat", "/Hello-World.bundle") == old


def test_too_big_error_object(lab):
    a = lab(args=["--archive.max_pack=200k"])
    a.add_repo("octocat", "small")
    repo = a.add_repo("octocat", "big")
    repo.commit(1, content=lambda i: os.urandom(300_000))
    a.add_repo("octocat", "said", size=10_000)
    a.add("octocat")
    a.synced("octocat")
    assert a.error("octocat", "big")[:2] in (("too-big", "verify"), ("too-big", "fetch"))
    assert a.error("octocat", "said")[:2] == ("too-big", "list")
    assert not a.has("octocat", "/big.bundle") and not a.uploads()
    a.same("octocat", "small")
    a.check()


def test_blob_100MB(lab):
    a = lab()
    repo = a.add_repo("octocat", "large", commits=1)
    repo.commit(1, files=1, content=lambda i: os.urandom(1024 * 1024) * 100)
    a.add("octocat")
    wait_for(lambda: a.account("octocat")["last_sync"], "the sync", 300)
    a.same("octocat", "large")


def test_blocked_disabled_and_back(octocat):
    """repo_451_dmca, disabled: the outcome is in the .error object, and goes with the next success."""
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    a.forge.find_repo("octocat", "Hello-World")["blocked"] = "dmca"
    a.git.answer("Hello-World", status(403, b"Repository unavailable due to DMCA takedown."))
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    assert a.error("octocat", "Hello-World")[0] == "dmca"
    assert a.get("octocat", "/Hello-World.bundle") == old
    a.forge.find_repo("octocat", "Hello-World").update(blocked=None, disabled=True)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    assert a.error("octocat", "Hello-World")[0] == "disabled"
    a.forge.find_repo("octocat", "Hello-World")["disabled"] = False
    a.git.answer_as_usual()
    a.sync("octocat")
    assert not a.has("octocat", "/Hello-World.error")
    a.same("octocat", "Hello-World")
    a.check()


def test_a_damaged_bundle_is_kept_aside_and_fetched_whole(octocat):
    a = octocat
    key = a.key("octocat", "/Hello-World.bundle")
    head = a.head("octocat", "/Hello-World.bundle")
    data = bytearray(a.get("octocat", "/Hello-World.bundle"))
    data[-100] ^= 1
    a.server.s3().put_object(Bucket=a.bucket, Key=key, Body=bytes(data), Metadata=head["Metadata"])
    a.repos["octocat", "Hello-World"].commit(1)
    a.push("octocat", "Hello-World")
    a.sync("octocat")
    a.same("octocat", "Hello-World")
    kept = [n for n in a.names("octocat") if "@damaged-" in n]
    assert len(kept) == 1 and a.get("octocat", kept[0][len("octocat"):]) == bytes(data)


# --- accounts ---

def test_user_404_hold(lab):
    a = lab()
    a.add("nobody")
    wait_for(lambda: a.has("nobody", ".error"), "the error")
    assert a.error("nobody")[:2] == ("gone", "list")
    shown = wait_for(lambda: (x := a.account("nobody"))["held_until"] and x, "the hold")
    assert stamp(shown["held_until"]) - time.time() > 6 * 86400 and not shown["last_sync"]


def test_zero_repo_user_survives(lab):
    a = lab()
    a.forge.add_account("octocat")
    a.add("octocat")
    assert a.synced("octocat")["repositories"] == 0
    assert a.names("octocat") == ["octocat.json"]


def test_user_renamed(octocat):
    a = octocat
    a.forge.rename_account("octocat", "octopus")
    shutil.move(a.git.root / "octocat", a.git.root / "octopus")
    a.sync("octocat", status=1)
    code, stage, message = a.error("octocat")
    assert (code, stage) == ("renamed", "list") and "octopus" in message
    a.synced("octopus")
    assert a.has("octopus", "/Hello-World.bundle") and a.has("octocat", "/Hello-World.bundle")


def test_one_failure_holds_the_account_and_the_next_sync_is_full(lab):
    a = lab()
    a.add_repo("octocat", "good")
    a.add_repo("octocat", "bad")
    a.git.answer(r"bad\.git", status(502, b"gateway"))
    a.add("octocat")
    wait_for(lambda: a.has("octocat", ".error"), "the error")
    assert a.error("octocat")[0] == a.error("octocat", "bad")[0] == "http-5xx"
    assert a.has("octocat", "/good.bundle") and not a.has("octocat", ".json") and a.has("octocat", ".new")
    shown = a.account("octocat")
    assert not shown["last_sync"] and shown["failures"] == 1
    a.git.answer_as_usual()
    a.sync("octocat")
    assert a.names("octocat") == ["octocat.json", "octocat/bad.bundle", "octocat/bad.zip", "octocat/good.bundle",
                                  "octocat/good.zip"]
    a.check()


def test_org_as_user(lab):
    a = lab()
    a.forge.add_account("acme", type="Organization", members=["octocat", "mojombo"])
    a.add_repo("acme", "tools")
    a.add_repo("octocat", "Hello-World")
    a.forge.add_account("mojombo")
    assert a.run("add", "--org", a.member("acme"), "--json") == [{"added": 3, "known": 0}]
    assert a.synced("acme")["type"] == "Organization"
    a.synced("octocat"), a.synced("mojombo")
    a.same("acme", "tools")


def test_accounts_are_added_from_a_file_and_removed(lab, tmp_path):
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.forge.add_account("mojombo")
    names = tmp_path / "names"
    names.write_text(f"# accounts\nhttps://{a.member('octocat')}/\n\n{a.member('Mojombo')}\n")
    assert a.run("add", "--file", names, "--json") == [{"added": 2, "known": 0}]
    a.synced("octocat"), a.synced("mojombo")
    a.run("remove", a.member("octocat"))
    assert [x["account"] for x in a.run("list", "--json")] == [a.member("mojombo")]
    assert a.has("octocat", "/Hello-World.bundle") and a.has("octocat", ".removed")
    a.account("octocat", status=404)
    a.run("remove", a.member("octocat"), status=1)
    assert "does not know the forge" in a.run("add", "git.example.org/x", status=1)
    a.run("add", a.host + "/../x", status=1)
    assert "names a repository" in a.run("add", a.member("octocat") + "/Hello-World", status=1)
    assert [x["account"] for x in a.run("list", "--json")] == [a.member("mojombo")]


# --- killed and resumed ---

@pytest.mark.parametrize("engine", ["embedded", "redis"])
def test_killed_and_resumed(lab, request, engine):
    """worker_death_mid_backup: killed while packs flow; the next process goes on, and nothing is left over."""
    a = lab(redis=request.getfixturevalue("redis") if engine == "redis" else None)
    for i in range(6):
        a.add_repo("octocat", f"r{i}", commits=20)
    a.git.latency = 0.2
    a.add("octocat")
    wait_for(lambda: a.git.count("POST", "git-upload-pack") >= 4, "fetches")
    folder = a.server.folder
    a.server.signal(signal.SIGKILL)
    a.server.wait()
    a.git.latency = 0
    a.serve(folder=folder)
    a.synced("octocat")
    for i in range(6):
        a.same("octocat", f"r{i}")
    a.check()


def test_interrupted_transfer_leaves_no_object(octocat):
    a = octocat
    old = a.get("octocat", "/Hello-World.bundle")
    a.repos["octocat", "Hello-World"].commit(50)
    a.push("octocat", "Hello-World")
    a.git.answer("Hello-World.git/git-upload-pack", cut(2000), method="POST")
    a.sync("octocat", status=1)
    assert a.get("octocat", "/Hello-World.bundle") == old and not a.uploads()
    a.git.answer_as_usual()
    a.sync("octocat")
    a.same("octocat", "Hello-World")


# --- satellites ---

SEED = ["asia-east-1", "europe-west-1", "us-central-1"]
VECTORS = {"octocat": "europe-west-1", "montyanderson": "us-central-1", "calebcase": "europe-west-1",
           "mojombo": "asia-east-1", "torvalds": "europe-west-1", "antirez": "europe-west-1"}


def remote_storage(a, name, other):
    """A storage behind another weir, with keys for the satellite's user on both sides."""
    run, keys = (lambda *args: a.command(*args, "--data", a.server.data, "--url", a.server.url)), other.keys
    assert run("user", "add", name).returncode == 0
    done = run("storage", "add", name, "--endpoint", other.s3_url, "--user", name, "--access-key", keys[0],
               "--secret-key", keys[1])
    assert done.returncode == 0, done.stderr


def local_storage(a, name, folder):
    folder.mkdir()
    done = a.command("storage", "add", name, folder, "--data", a.server.data, "--url", a.server.url)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", ["local", "remote"])
def test_seed_satellites(lab, serve, tmp_path, kind):
    """The accounts of the fact sheet are on the satellites of the description's table, each on no other one."""
    a = lab(args=["--archive.satellites=" + ",".join(SEED)])
    others = {}
    for name in SEED:
        if kind == "local":
            local_storage(a, name, tmp_path / name)
        else:
            (tmp_path / name).mkdir()
            others[name] = serve("--only=gateway", folder=tmp_path / name).ready()
            remote_storage(a, name, others[name])
    for login in VECTORS:
        a.add_repo(login, "code")
    a.add(*VECTORS)
    for login, satellite in VECTORS.items():
        assert a.synced(login)["satellite"] == satellite
        repo = a.repository(login, "code")
        assert repo["key"] == f"{folders(login)}/{login}/code.bundle" and repo["satellite"] == satellite
    a.check()
    for name, other in others.items():
        held = [o["Key"] for o in other.s3().list_objects_v2(Bucket=a.bucket).get("Contents", [])]
        assert {login for login in VECTORS for k in held if k.startswith(folders(login))} == {
            login for login, satellite in VECTORS.items() if satellite == name}
    if kind == "remote":
        repo = a.repos["octocat", "code"]
        repo.commit(3)
        a.push("octocat", "code")
        a.sync("octocat")
        data = others["europe-west-1"].s3().get_object(Bucket=a.bucket, Key=f"{OCTOCAT}/octocat/code.bundle")["Body"].read()
        path = tmp_path / "octocat.bundle"
        path.write_bytes(data)
        git("clone", "-q", "--mirror", path, tmp_path / "clone")
        assert git("rev-parse", "refs/heads/main", cwd=tmp_path / "clone") == repo.git("rev-parse", "refs/heads/main")


# --- what commands print ---

def test_a_watched_sync_shows_the_account_at_its_end(octocat):
    a = octocat
    (row,) = a.run("sync", a.member("octocat"), "--watch", "--json")
    now = a.account("octocat")
    assert row == {"account": a.member("octocat"), "last_sync": now["last_sync"],
                   "repositories": now["repositories"], "error": ""}
    a.forge.answer(r"/users/octocat/repos", 500, {"message": "Oops"})
    done = a.command("archive", "sync", a.member("octocat"), "--watch", "--json", "--data", a.server.data, "--url",
                     a.server.url)
    (row,) = json.loads(done.stdout)
    assert done.returncode == 1 and row["error"]["code"] == "http-5xx" and row["last_sync"] == now["last_sync"]
    assert "http-5xx: " in a.sync("octocat", status=1)


def test_tables_have_words_in_the_place_of_json(octocat):
    a = octocat
    a.forge.answer(r"/users/octocat/repos", 500, {"message": "Oops"})
    a.sync("octocat", status=1)
    shown = a.run("show", a.member("octocat"))
    assert "http-5xx: " in shown and "{" not in shown
    assert a.run("show", a.member("octocat"), "--json")[0]["error"]["code"] == "http-5xx"
    status = a.run("status")
    assert "local: up, 256 slots" in status and f"{a.host}: 1 tokens, " in status and "{" not in status
    assert {r["name"]: r["value"] for r in a.run("status", "--json")}["satellites"][0]["name"] == "local"
    forges = a.run("forge", "list")
    assert "requests left" in forges and "{" not in forges
