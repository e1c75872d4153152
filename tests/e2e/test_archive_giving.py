"""Giving back what the archive has saved: restores to folders and to servers, clones by HTTP, bundle-uri; and looking
after it: audits that find damage, and tidying. The real git is the client and the judge."""
import json
import os
import re
import shutil
import signal
import subprocess
import threading
import time
import urllib.parse

import pytest
from archive_lab import Archive
from conftest import WEIR, secret, wait_for
from git_lab import ENV, GitLab, git, redirect


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(**more):
        made.append(Archive(tmp_path, serve, weir, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


def two_repos(a):
    a.add_repo("octocat", "Hello-World", commits=8)
    a.add_repo("octocat", "Spoon-Knife", commits=2)
    a.add("octocat")
    a.synced("octocat")
    return a


@pytest.fixture
def octocat(lab):
    """An archive with one account of two repositories, synced once."""
    return two_repos(lab())


def refs_of(folder):
    return sorted(git("for-each-ref", "--format=%(objectname) %(refname)", cwd=folder).splitlines())


def objects_of(folder):
    return sorted(git("rev-list", "--objects", "--no-object-names", "--all", cwd=folder).split())


def same(folder, repo):
    """The repository in the folder is the one at the git server."""
    git("fsck", "--full", "--strict", cwd=folder)
    assert refs_of(folder) == repo.refs()
    assert objects_of(folder) == sorted(repo.git("rev-list", "--objects", "--no-object-names", "--all").split())
    assert git("symbolic-ref", "HEAD", cwd=folder) == repo.git("symbolic-ref", "HEAD")


def next_second():
    """Waits until the clock shows another second, because lines of history have whole seconds."""
    now = int(time.time())
    wait_for(lambda: int(time.time()) > now, "the next second")


def append(a, name="Hello-World", login="octocat", commits=2, change=None):
    """Another sync, which appends to the bundle."""
    repo = a.repos[login, name]
    if change:
        change(repo)
    else:
        repo.commit(commits)
    a.push(login, name)
    next_second()
    a.sync(login)
    return repo


# --- restore ---

def test_restore_to_a_folder(octocat, tmp_path):
    a = octocat
    to = tmp_path / "hello.git"
    rows = a.run("restore", a.member("octocat") + "/Hello-World", str(to), "--json")
    assert rows[0]["name"] == "Hello-World" and rows[0]["state"] == "restored" and rows[0]["refs"] == 1
    same(to, a.repos["octocat", "Hello-World"])
    assert "exists already" in a.run("restore", a.member("octocat") + "/Hello-World", str(to), status=1)
    assert [n for n in os.listdir(tmp_path) if ".part-" in n] == []


def test_restore_of_a_whole_account(octocat, tmp_path):
    a = octocat
    rows = a.run("restore", "https://" + a.member("octocat") + "/", str(tmp_path / "all"), "--json")
    assert sorted(r["name"] for r in rows) == ["Hello-World", "Spoon-Knife"]
    for name in ("Hello-World", "Spoon-Knife"):
        same(tmp_path / "all" / f"{name}.git", a.repos["octocat", name])


def test_restore_to_another_server(octocat, tmp_path):
    a = octocat
    repo = append(a, change=lambda r: (r.commit(1), r.update(("refs/tags/v1", r.git("rev-parse", "main").strip()),
                                                            ("refs/notes/commits", r.git("rev-parse", "main").strip()),
                                                            ("refs/pull/1/head", r.git("rev-parse", "main~1").strip()))))
    to = tmp_path / "servers"
    for name in ("Hello-World", "Spoon-Knife"):
        git("init", "-q", "--bare", to / f"{name}.git")
    rows = a.run("restore", a.member("octocat"), f"file://{to}", "--json")
    assert {r["state"] for r in rows} == {"pushed"}
    assert refs_of(to / "Hello-World.git") == [r for r in repo.refs() if "refs/pull/" not in r]
    assert refs_of(to / "Spoon-Knife.git") == a.repos["octocat", "Spoon-Knife"].refs()
    git("fsck", "--full", cwd=to / "Hello-World.git")


@pytest.fixture
def target(tmp_path):
    """A git server that takes pushes of one user."""
    server = GitLab(tmp_path / "target")
    server.may_push, server.users = True, {"me": "s:e@cret"}
    yield server
    server.stop()


def target_url(server, path, user="me:s%3Ae%40cret@"):
    return server.url(path).removesuffix(".git").replace("http://", "http://" + user)


def test_the_server_restores_to_another_server(octocat, target, tmp_path):
    a = octocat
    append(a)
    for name in ("Hello-World", "Spoon-Knife"):
        git("init", "-q", "-b", "main", "--bare", target.root / f"new/{name}.git")
    rows = a.run("restore", a.member("octocat"), target_url(target, "new"), "--json")
    assert rows[0]["state"] == "pushed" and rows[0]["refs"] == 2
    for name in ("Hello-World", "Spoon-Knife"):
        same(target.root / f"new/{name}.git", a.repos["octocat", name])
    # Nothing of the password is left where others see it.
    listed = a.run("restores", "list", "--json")
    assert "cret" not in json.dumps(listed)
    assert [r["state"] for r in listed] == ["done"] and listed[0]["done"] == 2 and listed[0]["bytes"] == listed[0]["total_bytes"]
    assert os.listdir(os.path.join(a.server.data, "archive")) == []
    # One repository, to a URL of its own; again is fine, because nothing is new.
    rows = a.run("restore", a.member("octocat") + "/Hello-World", target_url(target, "new/Hello-World") + ".git", "--json")
    assert rows[0]["name"] == "Hello-World" and rows[0]["state"] == "pushed"
    # The machine of the command can push instead.
    rows = a.run("restore", a.member("octocat") + "/Spoon-Knife", target_url(target, "new/Spoon-Knife") + ".git", "--here",
                 "--json")
    assert rows[0]["name"] == "Spoon-Knife" and rows[0]["state"] == "pushed"
    assert len(a.run("restores", "list", "--json")) == 2


def test_a_restore_by_the_server_tells_what_fails(octocat, target):
    a = octocat
    git("init", "-q", "-b", "main", "--bare", target.root / "new/Hello-World.git")
    said = a.run("restore", a.member("octocat"), target_url(target, "new"), status=1)
    assert "1 of 2 repositories were not restored" in said and "Spoon-Knife" in said
    assert a.run("restores", "list", "--json")[0]["done"] == 1
    said = a.run("restore", a.member("octocat") + "/Hello-World", target_url(target, "new/Hello-World.git", user="me:wrong@"),
                 status=1)
    assert "Authentication failed" in said or "could not read" in said or "terminal prompts" in said
    said = a.run("restore", a.member("octocat") + "/Hello-World", target_url(target, "new/Hello-World.git"), "--at", "1000",
                 status=1)
    assert "its first sync was at" in said
    said = a.run("restore", a.member("octocat") + "/Nothing", target_url(target, "new/Nothing"), status=1)
    assert "no bundle" in said
    for url in ("file:///tmp/x", "ext::sh -c id", "https://a/?x=1", "https://me:x@a/", "git://a/b"):
        a.api("/accounts/" + a.member("octocat").replace("/", "%2F") + "/restores", "POST", json.dumps({"url": url}), status=400)
    a.api("/restores/0123456789abcdef", status=404)


def test_a_redirect_does_not_get_the_credentials(octocat, target):
    a = octocat
    other = GitLab(target.root / "other")
    target.answer("info/refs", redirect(other.url("new/Hello-World") + "/info/refs?service=git-receive-pack"))
    said = a.run("restore", a.member("octocat") + "/Hello-World", target_url(target, "new/Hello-World.git"), status=1)
    other.stop()
    assert other.seen == [] and said


@pytest.mark.parametrize("engine", ["embedded", "redis"])
def test_a_restore_goes_on_after_a_kill(lab, target, request, engine):
    a = two_repos(lab(redis=request.getfixturevalue("redis") if engine == "redis" else None))
    for name in ("Hello-World", "Spoon-Knife"):
        git("init", "-q", "-b", "main", "--bare", target.root / f"new/{name}.git")
    held = threading.Event()

    def hold(call, body):
        if "Spoon-Knife" in call.path:
            held.set()
            call.wait(60)
        return body
    target.answer("git-receive-pack", hold)
    a.run("restore", a.member("octocat"), target_url(target, "new"), "--detach")
    assert held.wait(60)
    first = a.run("restores", "list", "--json")[0]
    assert first["state"] == "running" and first["done"] == 1 and first["total"] == 2
    tasks = a.server.request("GET", "/api/v1/queues/archive/tasks?state=active", keys=a.server.keys)
    assert tasks.status == 200 and "archive:restore" in tasks.body and "cret" not in tasks.body
    a.server.signal(signal.SIGKILL)
    a.server.wait()
    target.answer("git-receive-pack", None)
    pushes = target.count("POST", "new/Hello-World.git/git-receive-pack")
    a.serve(data=a.server.data)
    wait_for(lambda: a.run("restores", "list", "--json")[0]["state"] == "done", "the rest of the restore", 120)
    last = a.run("restores", "list", "--json")[0]
    assert last["done"] == 2 and last["failed"] == 0 and last["bytes"] == last["total_bytes"]
    # What was done before the kill is not done again.
    assert target.count("POST", "new/Hello-World.git/git-receive-pack") == pushes
    for name in ("Hello-World", "Spoon-Knife"):
        same(target.root / f"new/{name}.git", a.repos["octocat", name])


def test_a_restore_is_canceled(octocat, target):
    a = octocat
    for name in ("Hello-World", "Spoon-Knife"):
        git("init", "-q", "-b", "main", "--bare", target.root / f"new/{name}.git")
    held = threading.Event()

    def hold(call, body):
        held.set()
        call.wait(60)
        return body
    target.answer("git-receive-pack", hold)
    a.run("restore", a.member("octocat"), target_url(target, "new"), "--detach")
    assert held.wait(60)
    id = a.run("restores", "list", "--json")[0]["id"]
    a.run("restores", "cancel", id)
    wait_for(lambda: a.api(f"/restores/{id}")["state"] == "canceled", "the end")
    assert a.api(f"/restores/{id}")["done"] == 0
    assert os.listdir(os.path.join(a.server.data, "archive")) == []
    target.answer("git-receive-pack", None)
    a.run("restore", a.member("octocat"), target_url(target, "new"))
    same(target.root / "new/Spoon-Knife.git", a.repos["octocat", "Spoon-Knife"])


def test_restore_at_each_of_the_past_syncs(octocat, tmp_path):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    past = []

    def note():
        past.append((int(time.time()), repo.refs()))
    note()
    main = repo.git("rev-parse", "main").strip()
    changes = [
        lambda r: r.commit(2),                                                              # a fast-forward
        lambda r: r.commit(1, ref="refs/heads/topic"),                                      # a new branch
        lambda r: r.update(("refs/heads/main", r.git("rev-parse", "main~3").strip())),      # a forced update back
        lambda r: r.update(("refs/heads/topic", None), ("refs/tags/v1", main)),             # one goes, one comes
        lambda r: r.update(("refs/heads/topic", main), ("refs/tags/v1", r.git("rev-parse", "main").strip())),
        lambda r: r.commit(1),
    ]
    for change in changes:
        append(a, change=change)
        note()
    for i, (at, refs) in enumerate(past):
        to = tmp_path / f"at{i}.git"
        a.run("restore", a.member("octocat") + "/Hello-World", str(to), "--at", str(at))
        assert refs_of(to) == refs, (i, at)
        git("fsck", "--full", "--strict", cwd=to)
    shown = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(past[2][0]))
    a.run("restore", a.member("octocat") + "/Hello-World", str(tmp_path / "iso.git"), "--at", shown)
    assert refs_of(tmp_path / "iso.git") == past[2][1]
    assert "not a time" in a.run("restore", a.member("octocat"), str(tmp_path / "x"), "--at", "yesterday", status=2)
    to = tmp_path / "history.git"
    a.run("restore", a.member("octocat") + "/Hello-World", str(to), "--history")
    lines = [r for r in refs_of(to) if " refs/weir/" in r]
    assert [r for r in refs_of(to) if r not in lines] == repo.refs()
    assert len(lines) == 8 and any(f"{main} refs/weir/" in line for line in lines)


def test_a_time_before_the_first_sync_is_refused(octocat, tmp_path):
    """Neither an append, tidying nor a rename moves the first sync, and each tells the same times as before."""
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    first = int(a.head("octocat", "/Hello-World.bundle")["Metadata"]["first"])
    was = repo.refs()
    count = iter(range(100))

    def at(name, second, status=0):
        to = tmp_path / f"at{next(count)}.git"
        said = a.run("restore", f"{a.member('octocat')}/{name}", str(to), "--at", str(second), status=status)
        assert to.exists() == (status == 0)
        return said if status else refs_of(to)

    def check(name):
        assert at(name, first) == was
        said = at(name, first - 1, status=1)
        assert "first sync" in said and "no older bundle is kept" in said
    check("Hello-World")
    append(a)
    check("Hello-World")
    a.run("tidy", a.member("octocat") + "/Hello-World", "--wait")
    check("Hello-World")
    shutil.move(repo.path, a.git.root / "octocat/Hello.git")
    repo.path = a.git.root / "octocat/Hello.git"
    a.forge.rename_repo("octocat", "Hello-World", "Hello")
    a.repos["octocat", "Hello"] = repo
    append(a, "Hello")
    check("Hello")
    assert at("Hello", int(time.time())) == repo.refs()
    # Of a whole account, the repositories that were there at that time are restored, and the others are told.
    a.add_repo("octocat", "later")
    next_second()
    a.sync("octocat")
    said = a.run("restore", a.member("octocat"), str(tmp_path / "all"), "--at", str(first + 1), status=1)
    assert "later: the first sync" in said and "1 of 4 repositories" in said
    assert refs_of(tmp_path / "all" / "Hello.git") == was


def test_a_time_before_a_bundle_was_kept_aside_is_in_the_kept_one(octocat, tmp_path):
    a = octocat
    old = a.repos["octocat", "Hello-World"]
    was, then = old.refs(), int(time.time())
    shutil.rmtree(old.path)
    new = a.git.repo("octocat/Hello-World", commits=3, format="sha256")  # another kind of ids cannot be appended
    a.push("octocat", "Hello-World")
    next_second()
    a.sync("octocat")
    name = "Hello-World"
    (kept,) = [n for n in a.repositories("octocat") if n.startswith(name + "@")]
    said = a.run("restore", f"{a.member('octocat')}/{name}", str(tmp_path / "no.git"), "--at", str(then), status=1)
    assert "first sync" in said and kept in said and not (tmp_path / "no.git").exists()
    a.run("restore", f"{a.member('octocat')}/{kept}", str(tmp_path / "then.git"), "--at", str(then))
    assert refs_of(tmp_path / "then.git") == was
    a.run("restore", f"{a.member('octocat')}/{name}", str(tmp_path / "now.git"), "--at", str(int(time.time())))
    assert refs_of(tmp_path / "now.git") == new.refs()


def test_a_bundle_that_does_not_say_its_first_sync_is_restored_with_a_warning(octocat, tmp_path):
    a = octocat
    repo, then = a.repos["octocat", "Hello-World"], int(time.time())
    s3, key = a.server.s3(), a.key("octocat", "/Hello-World.bundle")
    meta = a.head("octocat", "/Hello-World.bundle")["Metadata"]
    del meta["first"]
    s3.put_object(Bucket=a.bucket, Key=key, Body=a.get("octocat", "/Hello-World.bundle"), Metadata=meta)
    was = repo.refs()
    said = a.run("restore", a.member("octocat") + "/Hello-World", str(tmp_path / "a.git"), "--at", str(then - 100))
    assert "does not say when its first sync was" in said and refs_of(tmp_path / "a.git") == was
    append(a, change=lambda r: r.commit(1, ref="refs/heads/topic"))
    assert "first" not in a.head("octocat", "/Hello-World.bundle")["Metadata"]
    said = a.run("restore", a.member("octocat") + "/Hello-World", str(tmp_path / "b.git"), "--at",
                 str(int(time.time())))
    assert "does not say" not in said and refs_of(tmp_path / "b.git") == repo.refs()  # a line of history is older


def test_a_group_of_gitlab_is_restored_whole(lab, tmp_path):
    """Its name has parts as that of a repository has."""
    a = lab(kind="gitlab")
    a.forge.add_account("acme/tools", type="Group")
    repo = a.add_repo("acme/tools", "hammer")
    a.add("acme/tools")
    a.synced("acme/tools")
    rows = a.run("restore", a.member("acme/tools"), str(tmp_path / "all"), "--json")
    assert [r["name"] for r in rows] == ["hammer"]
    same(tmp_path / "all" / "hammer.git", repo)


def test_a_damaged_bundle_is_not_restored(octocat, tmp_path):
    a = octocat
    flip(a, "Hello-World", -100)
    said = a.run("restore", a.member("octocat"), str(tmp_path / "all"), status=1)
    assert "1 of 2 repositories were not restored" in said
    assert os.listdir(tmp_path / "all") == ["Spoon-Knife.git"]
    said = a.run("restore", a.member("octocat") + "/Nothing", str(tmp_path / "n.git"), status=1)
    assert "no such bundle" in said or "cannot be" in said or "no bundle" in said
    assert "Traceback" not in said and not (tmp_path / "n.git").exists()


def test_a_former_repository_is_given_back_like_any_other(octocat, tmp_path):
    """Another repository has taken the name. The kept bundle is the only copy of the old one."""
    a = octocat
    former, id = a.repos["octocat", "Hello-World"], a.forge.find_repo("octocat", "Hello-World")["id"]
    a.forge.remove_repo("octocat", "Hello-World")
    shutil.move(former.path, tmp_path / "former.git")
    former.path = tmp_path / "former.git"
    a.add_repo("octocat", "Hello-World", commits=4)
    a.sync("octocat")
    name, names = f"Hello-World@{id}", {"Hello-World", "Spoon-Knife", f"Hello-World@{id}"}
    assert {r["name"] for r in a.run("show", a.member("octocat"), "--repositories", "--json")} == names
    assert a.repositories("octocat")[name]["bytes"] == a.head("octocat", f"/{name}.bundle")["ContentLength"]
    assert a.run("show", a.member("octocat"), name, "--json")[0]["id"] == str(id)
    found = audit(a, None)
    assert {n: row["state"] for n, row in found.items()} == dict.fromkeys(names, "good")
    rows = a.run("restore", a.member("octocat"), str(tmp_path / "all"), "--json")
    assert {r["name"] for r in rows} == names
    same(tmp_path / "all" / f"Hello-World.{id}.git", former)
    same(tmp_path / "all" / "Hello-World.git", a.repos["octocat", "Hello-World"])
    git("clone", "-q", "--mirror", clone_url(a, name), tmp_path / "served.git")
    same(tmp_path / "served.git", former)
    # A damaged bundle is listed and restored when it is asked for.
    copy = "Hello-World@damaged-20260131T030000Z"
    a.server.s3().copy_object(Bucket=a.bucket, Key=a.key("octocat", f"/{copy}.bundle"),
                              CopySource={"Bucket": a.bucket, "Key": a.key("octocat", f"/{name}.bundle")})
    assert set(a.repositories("octocat")) == names and set(audit(a, None)) == names
    assert {r["name"] for r in a.run("show", a.member("octocat"), "--repositories", "--all", "--json")} == {*names, copy}
    rows = a.run("restore", a.member("octocat"), str(tmp_path / "more"), "--all", "--json")
    assert {r["name"] for r in rows} == {*names, copy}


def test_a_gist_is_given_back_like_a_repository(lab, tmp_path):
    a = lab(options="    gists: true\n    zip: false\n")
    a.add_repo("octocat", "Hello-World")
    gist = a.git.repo("gists/abc123", commits=2)
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    a.forge.accounts["octocat"]["gists"].append(
        {"id": "abc123", "git_pull_url": a.git.url("gists/abc123"), "updated_at": now})
    a.add("octocat")
    a.synced("octocat")
    name = "@gists/abc123"
    git("clone", "-q", "--mirror", clone_url(a, name), tmp_path / "served.git")
    same(tmp_path / "served.git", gist)
    next_second()
    gist.commit(2)
    a.sync("octocat")
    assert "try again" in refused("clone", "-q", clone_url(a, name + ".git"), tmp_path / "no")  # an audit comes first
    assert audit(a, name)[name]["state"] == "good"
    assert set(audit(a, None)) == {"Hello-World", name}
    a.run("tidy", a.member("octocat") + "/" + name, "--wait")
    assert a.repository("octocat", "%40gists%2Fabc123")["appends"] == 0
    rows = a.run("restore", a.member("octocat"), str(tmp_path / "all"), "--json")
    assert {r["name"] for r in rows} == {"Hello-World", name}
    same(tmp_path / "all" / "gists" / "abc123.git", gist)
    a.run("restore", a.member("octocat") + "/" + name, str(tmp_path / "one.git"))
    same(tmp_path / "one.git", gist)
    assert "Hello-World" in a.repositories("octocat") and name not in a.repositories("octocat")
    a.check()


@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_empty_and_sha256_repositories_are_restored(lab, tmp_path, format):
    a = lab()
    a.add_repo("octocat", "full", commits=4, format=format)
    a.add_repo("octocat", "empty", commits=0, format=format)
    a.add("octocat")
    a.synced("octocat")
    a.run("restore", a.member("octocat"), str(tmp_path / "all"))
    same(tmp_path / "all" / "full.git", a.repos["octocat", "full"])
    assert refs_of(tmp_path / "all" / "empty.git") == []


# --- clones over HTTP ---

def clone_url(a, name, login="octocat", keys=None):
    access, key = keys or a.server.keys
    host = urllib.parse.urlsplit(a.server.url).netloc
    return f"http://{access}:{urllib.parse.quote(key, safe=str())}@{host}/git/{a.host}/{login}/{name}"


VERSIONS = {"v0": "0", "v1": "1", "v2": "2"}


def fetch_git(*args, version="v2", **more):
    return git("-c", f"protocol.version={VERSIONS[version]}", "-c", "fetch.fsckObjects=true", *args, **more)


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_clone_over_http(lab, tmp_path, version, format):
    a = lab()
    repo = a.add_repo("octocat", "Hello-World", commits=30, format=format)
    repo.commit(2, ref="refs/heads/topic/one")
    repo.update(("refs/tags/light", repo.git("rev-parse", "main~5").strip()))
    repo.git("tag", "-a", "-m", "annotated", "v1", "main~3")
    a.add("octocat")
    a.synced("octocat")
    mirror = tmp_path / "mirror.git"
    fetch_git("clone", "-q", "--mirror", clone_url(a, "Hello-World.git"), mirror, version=version)
    same(mirror, repo)
    work = tmp_path / "work"
    fetch_git("clone", "-q", clone_url(a, "Hello-World"), work, version=version)
    assert git("rev-parse", "HEAD", cwd=work) == repo.git("rev-parse", "main")
    assert git("symbolic-ref", "HEAD", cwd=work).strip() == "refs/heads/main"
    assert git("status", "--porcelain", cwd=work) == ""
    assert git("tag", cwd=work).split() == ["light", "v1"]


@pytest.mark.parametrize("version", ["v0", "v2"])
def test_fetch_from_behind(octocat, tmp_path, version):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    to = tmp_path / "behind.git"
    git("clone", "-q", "--mirror", repo.path, to)
    repo.commit(5)
    repo.git("tag", "-a", "-m", "new", "v2", "main")
    a.push("octocat", "Hello-World")
    next_second()
    a.sync("octocat")
    a.run("tidy", a.member("octocat") + "/Hello-World", "--wait")
    fetch_git("fetch", "-q", "--tags", clone_url(a, "Hello-World"), "+refs/*:refs/*", version=version, cwd=to)
    same(to, repo)
    fetch_git("fetch", "-q", clone_url(a, "Hello-World"), "+refs/*:refs/*", version=version, cwd=to)  # nothing is new
    same(to, repo)


def refused(*args, version="v2", **more):
    done = subprocess.run(["git", "-c", f"protocol.version={VERSIONS[version]}", *map(str, args)], capture_output=True,
                          env=ENV, check=False, **more)
    assert done.returncode != 0
    return done.stderr.decode()


def test_only_administrators_and_the_satellites_user_may_clone(octocat, tmp_path):
    a = octocat
    host = urllib.parse.urlsplit(a.server.url).netloc
    path = f"/git/{a.host}/octocat/Hello-World/info/refs?service=git-upload-pack"
    bare = a.server.request("GET", path)
    assert bare.status == 401 and bare.headers["WWW-Authenticate"].startswith("Basic")
    assert a.server.request("GET", path, keys=(a.server.keys[0], "wrong")).status == 401
    said = refused("clone", f"http://{host}/git/{a.host}/octocat/Hello-World", tmp_path / "x")
    assert "Authentication" in said or "could not read Username" in said
    user = json.loads(a.server.request("POST", "/api/v1/users", body={"name": "stranger"}, keys=a.server.keys).body)
    keys = user["access_key"], secret(user["secret_key"])
    assert a.server.request("GET", path, keys=keys).status == 404
    assert "not found" in refused("clone", clone_url(a, "Hello-World", keys=keys), tmp_path / "x")
    satellite = a.repository("octocat", "Hello-World")["satellite"]
    made = json.loads(a.server.request("POST", f"/api/v1/users/{satellite}/keys", body={}, keys=a.server.keys).body)
    keys = made["access_key"], secret(made["secret_key"])
    git("clone", "-q", clone_url(a, "Hello-World", keys=keys), tmp_path / "by-user")


def test_what_is_not_served_says_why(octocat, tmp_path):
    a = octocat
    for version in ("v0", "v2"):
        assert "shallow" in refused("clone", "--depth=1", clone_url(a, "Hello-World"), tmp_path / "s", version=version)
    assert "no such repository" in refused("clone", clone_url(a, "Nothing"), tmp_path / "n")
    assert "no such repository" in refused("clone", clone_url(a, "..", login="x"), tmp_path / "n")
    git("clone", "-q", clone_url(a, "Spoon-Knife"), tmp_path / "w")
    said = refused("push", "-q", clone_url(a, "Spoon-Knife"), "HEAD:refs/heads/x", cwd=tmp_path / "w")
    assert "read-only" in said or "403" in said


def test_an_appended_pack_is_served_after_its_audit(octocat, tmp_path):
    a = octocat
    repo = append(a)
    assert a.repository("octocat", "Hello-World")["appends"] == 1
    said = refused("clone", "-q", "--mirror", clone_url(a, "Hello-World"), tmp_path / "first.git")
    assert "try again" in said and "503" in said
    to = tmp_path / "later.git"

    def cloned():
        return subprocess.run(["git", "clone", "-q", "--mirror", clone_url(a, "Hello-World"), str(to)],
                              capture_output=True, env=ENV, check=False).returncode == 0
    wait_for(cloned, "a clone after the audit")
    same(to, repo)


def test_clone_of_many_refs_sends_a_large_request(lab, tmp_path):
    """git sends a gzip body above 1 KiB, and chunks above 1 MiB."""
    a = lab()
    repo = a.add_repo("octocat", "many", commits=1)
    repo.refs_by_number(25000)
    a.add("octocat")
    a.synced("octocat")
    to = tmp_path / "many.git"
    fetch_git("clone", "-q", "--mirror", clone_url(a, "many"), to)
    assert refs_of(to) == repo.refs()


def test_bundle_uri_clone_from_archive(octocat, tmp_path):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    url = a.server.s3().generate_presigned_url("get_object", Params={
        "Bucket": a.bucket, "Key": a.key("octocat", "/Hello-World.bundle")}, ExpiresIn=600)
    before = a.git.count("POST", "Hello-World")
    git("clone", "-q", f"--bundle-uri={url}", a.git.url("octocat/Hello-World"), tmp_path / "w")
    assert git("rev-parse", "HEAD", cwd=tmp_path / "w") == repo.git("rev-parse", "main")
    assert a.git.count("POST", "Hello-World") - before <= 2
    git("fsck", "--full", cwd=tmp_path / "w")


# --- audits and tidying ---

def flip(a, name, at, login="octocat"):
    """Changes one byte of a stored bundle behind weir's back, with the metadata as they were."""
    s3, key = a.server.s3(), a.key(login, f"/{name}.bundle")
    old = s3.get_object(Bucket=a.bucket, Key=key)
    data = bytearray(old["Body"].read())
    data[at] ^= 1
    s3.put_object(Bucket=a.bucket, Key=key, Body=bytes(data), Metadata=old["Metadata"])


def audit(a, name, *flags, login="octocat", status=0):
    rows = a.run("audit", a.member(login) + (f"/{name}" if name else ""), "--wait", "--json", *flags, status=status)
    return {r["name"]: r for r in rows} if isinstance(rows, list) else rows


def test_audit_finds_a_good_bundle(octocat):
    a = octocat
    found = audit(a, None)
    assert set(found) == {"Hello-World", "Spoon-Knife"}
    for name, row in found.items():
        assert row["state"] == "good" and row["doubles"] == 0
        assert row["objects"] == len(objects_of(a.repos["octocat", name].path))
    assert not os.listdir(os.path.join(a.server.data, "archive"))
    append(a)
    shown = a.api(f"/accounts/{a.member('octocat').replace('/', '%2F')}/audits/Hello-World")
    assert shown["state"] == "changed"


@pytest.mark.parametrize("at", [5, 60, 400, -30, -1], ids=["magic", "ref", "early", "late", "trailer"])
def test_audit_finds_one_flipped_byte(octocat, at):
    a = octocat
    flip(a, "Hello-World", at)
    done = a.command("archive", "audit", a.member("octocat"), "--wait", "--json", "--data", a.server.data, "--url",
                     a.server.url)
    assert done.returncode == 1 and "1 bundles are damaged" in done.stderr
    rows = {r["name"]: r for r in json.loads(done.stdout)}
    assert rows["Hello-World"]["state"] == "damaged" and rows["Hello-World"]["words"]
    assert rows["Spoon-Knife"]["state"] == "good"


def test_audit_finds_a_missing_object(octocat):
    """A pack that is right in itself, but lacks a commit of a ref."""
    a = octocat
    s3, key = a.server.s3(), a.key("octocat", "/Hello-World.bundle")
    data = s3.get_object(Bucket=a.bucket, Key=key)["Body"].read()
    tip = a.repos["octocat", "Hello-World"].git("rev-parse", "main").strip().encode()
    s3.put_object(Bucket=a.bucket, Key=key, Body=data.replace(tip + b" refs/heads/main", b"1" * 40 + b" refs/heads/main"))
    done = a.command("archive", "audit", a.member("octocat") + "/Hello-World", "--wait", "--json", "--data",
                     a.server.data, "--url", a.server.url)
    assert done.returncode == 1
    assert "missing" in json.loads(done.stdout)[0]["words"]


def test_tidy_keeps_refs_and_history(octocat, tmp_path):
    a = octocat
    repo = a.repos["octocat", "Hello-World"]
    noise = {i: os.urandom(3000) for i in range(4)}
    for i in range(6):
        append(a, change=lambda r: r.commit(3, content=lambda n: noise[n % 4] + b"%d" % n))
    repo.update(("refs/heads/main", repo.git("rev-parse", "main~2").strip()))
    append(a, change=lambda r: None)
    before = a.repository("octocat", "Hello-World")
    old = a.clone("octocat", "Hello-World")
    a.run("tidy", a.member("octocat") + "/Hello-World", "--wait")
    after = a.repository("octocat", "Hello-World")
    assert after["bytes"] < before["bytes"] * 0.7 and after["appends"] == 0
    assert after["updated"] == before["updated"]
    new = a.clone("octocat", "Hello-World")
    assert refs_of(old) == refs_of(new) and objects_of(old) == objects_of(new)
    assert any("refs/weir/" in line for line in refs_of(new))
    a.check()
    fetch_git("clone", "-q", "--mirror", clone_url(a, "Hello-World"), tmp_path / "served.git")
    same(tmp_path / "served.git", repo)
    append(a)
    a.same("octocat", "Hello-World")
    a.check()


def test_a_damaged_bundle_is_not_tidied(octocat):
    a = octocat
    flip(a, "Hello-World", -40)
    before = a.head("octocat", "/Hello-World.bundle")["ETag"]
    a.command("archive", "tidy", a.member("octocat") + "/Hello-World", "--wait", "--data", a.server.data, "--url",
              a.server.url)
    assert a.head("octocat", "/Hello-World.bundle")["ETag"] == before


def test_an_audit_that_runs_already_does_not_count(lab, tmp_path):
    """The audit that runs has read the bundle of before the damage, so the command asks for another one."""
    a = lab()
    a.add_repo("octocat", "Hello-World", commits=8)
    a.add("octocat")
    a.synced("octocat")
    a.server.stop()
    tools, gate = tmp_path / "tools", tmp_path / "gate"
    tools.mkdir()
    os.mkfifo(gate)
    (tools / "git").write_text(f'#!/bin/sh\ncase "$*" in *index-pack*) [ -p {gate} ] && read _ < {gate};; esac\n'
                               f'exec {shutil.which("git")} "$@"\n')
    (tools / "git").chmod(0o755)
    a.serve(data=a.server.data, env={"PATH": f"{tools}:{os.environ['PATH']}"})
    a.run("audit", a.member("octocat") + "/Hello-World")
    with open(gate, "w"):  # opens when git has begun
        flip(a, "Hello-World", -40)
        args = ["archive", "audit", a.member("octocat") + "/Hello-World", "--wait", "--data", a.server.data]
        command = subprocess.Popen([str(WEIR), *map(str, args), "--url", a.server.url], stdout=subprocess.PIPE, text=True)
        wait_for(lambda: len(re.findall(r"method=POST path=\S*/audits status=202", a.server.err)) == 2, "the question")
        gate.unlink()
    shown, _ = command.communicate(timeout=60)
    assert command.returncode == 1 and " damaged " in shown


def test_without_git_an_audit_says_so(lab, tmp_path):
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    a.server.stop()
    tools = tmp_path / "tools"
    tools.mkdir()
    a.serve(data=a.server.data, env={"PATH": str(tools)})
    a.run("audit", a.member("octocat") + "/Hello-World")

    def archived():
        page = json.loads(a.server.request("GET", "/api/v1/queues/archive/tasks?state=archived", keys=a.server.keys).body)
        return [t for t in page["tasks"] if "git is not installed" in json.dumps(t)]
    wait_for(archived, "the task that cannot be done")


@pytest.mark.parametrize("command", ["audit", "tidy"])
def test_waiting_for_a_task_that_is_given_up_ends_with_its_words(lab, tmp_path, command):
    """A task that cannot be done leaves no verdict. One of before is not shown as if it were new."""
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    old = audit(a, "Hello-World")["Hello-World"]
    assert old["state"] == "good"
    a.server.stop()
    tools = tmp_path / "tools"
    tools.mkdir()
    a.serve(data=a.server.data, env={"PATH": str(tools)})
    for name in ("/Hello-World", ""):
        done = a.command("archive", command, a.member("octocat") + name, "--wait", "--json", "--data", a.server.data,
                         "--url", a.server.url)
        (row,) = json.loads(done.stdout)
        assert done.returncode == 1 and row["state"] == "failed" and "git is not installed" in row["words"]
        assert "1 bundles could not be" in done.stderr
    a.server.stop()
    a.serve(data=a.server.data)
    new = audit(a, "Hello-World")["Hello-World"]  # the task that was given up is in nobody's way
    assert new["state"] == "good" and new["at"] > old["at"]
