"""The archive and the APIs of forges: paging, ETags, limits, tokens, and forges that lie. Names of tests are those of the
scenarios for APIs. The forge is forge_lab.py, which counts every request."""
import json
import os
import shutil
import socket
import threading
import time

import forge_lab
import pytest
from archive_lab import Archive
from conftest import secret, wait_for
from forge_lab import Answer
from git_lab import status


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(**more):
        made.append(Archive(tmp_path, serve, weir, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


def add_links(a, login, count, name="r{:04}"):
    """Many repositories at the forge, which are one repository at the git server."""
    real = a.git.repo(f"{login}/real", commits=1)
    if login not in a.forge.accounts:
        a.forge.add_account(login)
    for i in range(count):
        os.symlink(real.path, real.path.parent / f"{name.format(i)}.git")
        a.forge.add_repo(login, name.format(i))


def listed(a, login):
    return sorted(r["name"] for r in a.record(login)[1])


def forge_state(a):
    return next(f for f in a.api("/forges")["forges"] if f["host"] == a.host)


@pytest.fixture
def small(lab):
    """An archive that never asked the forge yet, with one account of two repositories."""
    def make(**more):
        a = lab(**more)
        a.add_repo("octocat", "Hello-World")
        a.add_repo("octocat", "Spoon-Knife")
        return a
    return make


# --- pages ---

def test_paging_link_header(lab):
    a = lab(options="    zip: false\n")
    add_links(a, "octocat", 230)
    a.add("octocat")
    assert a.synced("octocat")["listed"] == 230
    assert len(listed(a, "octocat")) == 230
    assert a.forge.count(r"/repos$", status=200) == 3
    before = a.forge.mark()
    a.sync("octocat")
    assert a.forge.count(since=before) == a.forge.count(r"/repos$", status=304, since=before) == 3


def test_per_page_clipped(lab, monkeypatch):
    """The forge gives fewer items on a page than were asked for."""
    monkeypatch.setitem(forge_lab.PER_PAGE, "github", 7)
    a = lab(options="    zip: false\n")
    add_links(a, "octocat", 20)
    a.add("octocat")
    assert a.synced("octocat")["listed"] == 20


def test_a_page_that_was_full_is_looked_behind(lab, monkeypatch):
    """GitHub sends no Link with 304, so a repository on a new page could be overlooked."""
    monkeypatch.setitem(forge_lab.PER_PAGE, "github", 100)
    a = lab(options="    zip: false\n", args=["--archive.look=7d"])
    add_links(a, "octocat", 100)
    a.add("octocat")
    a.synced("octocat")
    a.add_repo("octocat", "zz-new")
    a.sync("octocat")
    assert "zz-new" in listed(a, "octocat")


def test_listing_changes_between_pages(lab):
    """A repository slides to a page that was read already. It is not gone, and the next sync has it."""
    a = lab(options="    zip: false\n")
    add_links(a, "octocat", 120)
    a.add("octocat")
    a.synced("octocat")
    a.add_repo("octocat", "a-new")            # every page has changed
    removed = []

    def slide(call):
        if call.query.get("page") == "2" and not removed:
            removed.append(a.forge.remove_repo("octocat", "r0001"))
        return None
    a.forge.answer(r"/repos$", make=slide)
    a.sync("octocat")
    a.sync("octocat")
    codes = {r["name"]: r["code"] for r in a.record("octocat")[1]}
    assert len(removed) == 1 and len(codes) == 121
    assert [n for n, code in codes.items() if code == "gone"] == ["r0001"]
    assert a.has("octocat", "/r0001.bundle") and a.has("octocat", "/r0099.bundle")


def test_account_100k_repos(lab):
    """The forge has switched off all of them, so that only the list is worked on. WEIR_TEST_REPOS=100000 has them
    all; the usual run has fewer, to be short."""
    repos = int(os.environ.get("WEIR_TEST_REPOS", 20_000))
    a = lab(options="    zip: false\n", args=["--archive.look=7d"])
    a.forge.tokens[a.token].limit = a.forge.tokens[a.token].remaining = 1_000_000
    a.forge.add_account("octocat")
    a.forge.add_many("octocat", repos, disabled=True)
    a.add("octocat")
    wait_for(lambda: a.account("octocat")["last_sync"], "the list of all repositories", 600)
    assert a.account("octocat")["listed"] == repos
    assert a.forge.count(r"/repos$", status=200) == repos // 100
    before = a.forge.mark()
    a.sync("octocat")
    assert a.forge.count(r"/repos$", status=304, since=before) == repos // 100
    assert a.forge.count(since=before) <= repos // 100 + 1   # the last page is full, and looked behind
    peak = int(next(line.split()[1] for line in open(f"/proc/{a.server.process.pid}/status") if "VmHWM" in line))
    assert peak < 224 * 1024                     # KiB: 96 MiB for the process and 32 for each of the four runners


# --- ETags ---

def test_etag_304_free(small):
    a = small(args=["--archive.look=7d"])
    a.add("octocat")
    a.synced("octocat")
    remaining, before = a.forge.tokens[a.token].remaining, a.forge.mark()
    for _ in range(3):
        a.sync("octocat")
    assert a.forge.count(since=before) == a.forge.count(status=304, since=before) == 3
    assert a.forge.tokens[a.token].remaining == remaining
    assert forge_state(a)["tokens"][0]["remaining"] == remaining


# --- limits ---

def test_primary_403_remaining_0(small):
    a = small()
    a.forge.primary_limit(times=1, reset_in=11)
    a.add("octocat")
    wait_for(lambda: forge_state(a)["rests_until"], "the rest")
    assert a.account("octocat")["last_sync"] == ""
    a.synced("octocat")                          # by itself, behind the reset
    times = [r.time for r in a.forge.requests]
    assert times[1] - times[0] >= 10


def test_secondary_403_retry_after(small):
    a = small()
    a.forge.secondary_limit(times=1, retry_after=11)
    a.add("octocat")
    a.synced("octocat")
    times = [r.time for r in a.forge.requests]
    assert times[1] - times[0] >= 11             # is not cut short


def test_429_without_headers(small):
    """The first token rests for a minute, and the second goes on at once."""
    a = small()
    second = secret(a.forge.add_token("ghp_" + "s" * 20))
    config = a.config.replace(f"token: {a.token}", f"token: {a.token},{second}")
    a.server.stop()
    a.config = config
    a.serve()
    a.forge.secondary_limit(times=1, status=429)
    a.add("octocat")
    a.synced("octocat")
    resting = [t for t in forge_state(a)["tokens"] if t["rests_until"]]
    assert len(resting) == 1 and "secondary rate limit" in resting[0]["words"]
    first = next(r for r in a.forge.requests if r.status == 429).token
    later = [r.token for r in a.forge.requests if r.status != 429]
    assert first not in later and later


def test_two_processes_obey_one_rest(lab, redis, tmp_path):
    a = lab(redis=redis)
    for login in ("ann", "bob", "cid", "dot"):
        a.add_repo(login, "r")
    data = tmp_path / "second"
    data.mkdir()
    shutil.copy(a.server.data / "secrets.key", data / "secrets.key")
    second = a.start(*a.args, config=a.config, data=data).ready()
    a.forge.secondary_limit(times=1, retry_after=11)
    a.add("ann", "bob", "cid", "dot")
    for login in ("ann", "bob", "cid", "dot"):
        a.synced(login)
    limited = next(i for i, r in enumerate(a.forge.requests) if r.status == 403)
    at = a.forge.requests[limited].time
    # Requests that were under way when the answer came are allowed; nothing begins during the rest.
    begun = [r.time - at for r in a.forge.requests if 3 < r.time - at < 10.5]
    assert not begun
    second.stop()


def test_most_requests_at_once(lab):
    a = lab(args=["--archive.workers=40"])
    for i in range(40):
        a.forge.add_account(f"u{i:02}")
    a.forge.answer(r"/users/", make=lambda call: time.sleep(0.05))
    a.add(*(f"u{i:02}" for i in range(40)))
    for i in range(40):
        a.synced(f"u{i:02}")
    assert a.forge.most_at_once <= 20


# --- servers that fail ---

def test_5xx_then_ok(small):
    a = small()
    a.forge.answer(r"/repos$", 502, {"message": "Bad Gateway"}, times=2)
    a.add("octocat")
    a.synced("octocat")
    assert a.forge.count(r"/repos$", status=502) == 2 and not a.has("octocat", ".error")


def test_truncated_json(small):
    a = small()
    a.forge.answer(r"/repos$", 200, [{"id": 1, "name": "x" * 200}], cut=40, times=1)       # the connection breaks
    rule = a.forge.answer(r"/repos$", 200, b'[{"id": 1, "name": "cut', times=1)             # the text ends
    a.add("octocat")
    wait_for(lambda: a.has("octocat", ".error"), "the error")
    assert a.error("octocat")[:2] == ("protocol", "list") and rule.times == 0
    a.sync("octocat")
    assert not a.has("octocat", ".error") and listed(a, "octocat") == ["Hello-World", "Spoon-Knife"]


def test_server_faults_never_remove_anything(small):
    a = small()
    a.add("octocat")
    a.synced("octocat")
    names = a.names("octocat")
    for status in (401, 403, 500, 503):
        rule = a.forge.answer(r"/repos$", status, {"message": "no"})
        a.sync("octocat", status=1)
        a.forge.rules.remove(rule)
        assert [n for n in a.names("octocat") if not n.endswith(".error")] == names
    a.sync("octocat")
    assert a.names("octocat") == names


# --- tokens ---

def test_token_revoked_rotates(small):
    a = small()
    dead = secret(a.forge.add_token("ghp_" + "d" * 20))
    a.forge.tokens[dead].dead = True
    a.server.stop()
    a.config = a.config.replace(f"token: {a.token}", f"token: {a.token},{dead}")
    a.serve()
    a.add("octocat")
    a.synced("octocat")
    for _ in range(3):
        a.sync("octocat")
    tokens = forge_state(a)["tokens"]
    aside = [t for t in tokens if t["dead_since"]]
    assert a.forge.count(token=dead) >= 1        # weir knows no quota of it, so it comes second at the latest
    assert len(aside) == 1 and aside[0]["words"] == "Bad credentials"
    assert a.forge.count(token=dead) <= 2        # the question, and the one that proves it


def test_without_a_live_token_strangers_quota_is_used(small):
    a = small()
    a.forge.tokens[a.token].dead = True
    a.add("octocat")
    a.synced("octocat")
    assert a.forge.count(r"/repos$", status=200, token=None) == 1
    assert [t["id"] for t in forge_state(a)["tokens"] if not t["dead_since"]] == ["-"]


# --- forges that lie ---

class Trap:
    """A listener that nothing may connect to."""

    def __init__(self):
        self.socket = socket.create_server(("127.0.0.1", 0))
        self.url = "http://127.0.0.1:%d" % self.socket.getsockname()[1]
        self.met = []
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    def run(self):
        while True:
            try:
                connection, _ = self.socket.accept()
                self.met.append(connection.recv(4096))
                connection.close()
            except OSError:
                return

    def stop(self):
        """Closing alone would leave the thread in accept() with the number of a file that the next test's git server
        gets: when a signal makes the kernel begin the call anew, the thread would take that server's connections."""
        self.socket.shutdown(socket.SHUT_RDWR)
        self.thread.join()
        self.socket.close()


@pytest.fixture
def trap():
    made = Trap()
    yield made
    made.stop()


@pytest.mark.parametrize("way", ["link", "redirect", "circle", "endless", "huge"])
def test_lying_lists_end_by_their_limits(small, trap, way):
    a = small()
    page = [forge_lab.github_repo(a.forge, r) for r in a.forge.repos.values()]
    numbers = iter(range(10_000))
    answers = {
        "link": lambda call: Answer(200, page, {"Link": f'<{trap.url}/x>; rel="next"'}),
        "redirect": lambda call: Answer(302, {}, {"Location": trap.url + "/x"}),
        "circle": lambda call: Answer(200, page, {"Link": f'<{a.forge.api}/users/octocat/repos?x>; rel="next"'}),
        "endless": lambda call: Answer(200, [], {"Link": f'<{a.forge.api}/users/octocat/repos?p={next(numbers)}>; rel="next"'}),
        "huge": lambda call: Answer(200, b"[" + b" " * (17 << 20) + b"]"),
    }
    a.forge.answer(r"/repos$", make=answers[way])
    a.add("octocat")
    wait_for(lambda: a.has("octocat", ".error"), "the error", 300)
    assert a.error("octocat")[0] == ("redirect" if way in ("link", "redirect") else "protocol")
    assert trap.met == [] and a.forge.count(r"/repos$") <= 2001


def test_a_clone_url_on_another_host_is_not_used(tmp_path, serve, weir, trap):
    """Without `git` in the configuration the forge's own clone URLs are used, on the forge's own origin."""
    with forge_lab.Forge(root=tmp_path / "root") as forge:
        forge.add_account("octocat")
        forge.add_repo("octocat", "bad", clone_url=trap.url + "/octocat/bad.git")
        token = secret(forge.add_token("ghp_" + "t" * 20))
        config = (f"forges:\n  '{forge.host}':\n    kind: github\n    api: {forge.api}\n    git: {forge.url}\n"
                  f"    token: {token}\n")
        server = serve("--archive.look=0s", config=config.replace(f"    git: {forge.url}\n", "")).ready()
        done = weir("archive", "add", f"{forge.host}/octocat", "--data", server.data, "--url", server.url)
        assert done.returncode == 0, done.stderr
        path = f"/api/v1/archive/accounts/{forge.host}%2Foctocat/repositories/bad"

        def outcome():
            answer = server.request("GET", path, keys=server.keys)
            return answer.status == 200 and json.loads(answer.body)["error"]
        assert wait_for(outcome, "the outcome")["code"] == "redirect"
        assert trap.met == []


def test_a_forge_that_repeats_the_token(small):
    a = small()
    a.forge.answer(r"", make=lambda call: Answer(403, {"message": f"you sent {call.token}"}))
    a.add("octocat")
    wait_for(lambda: a.has("octocat", ".error"), "the error")
    assert a.token not in a.get("octocat", ".error").decode()
    assert a.token not in json.dumps(a.api("/forges")) and a.token not in a.server.err


def test_a_git_server_that_repeats_the_token(small):
    a = small()
    a.git.answer(r"info/refs", lambda call, answer: status(
        403, f"you sent {call.headers['Authorization']}, which is {a.token}".encode())(call, answer))
    a.add("octocat")
    wait_for(lambda: a.has("octocat", "/Hello-World.error") and a.has("octocat", ".error"), "the errors")
    said = a.get("octocat", "/Hello-World.error").decode() + a.get("octocat", ".error").decode() + a.server.err
    sent = {s.headers["Authorization"].split()[1] for s in a.git.seen if "Authorization" in s.headers}
    assert sent and "hold the token" in said
    assert all(text not in said for text in (a.token, *sent))


# --- other kinds ---

def test_gitlab_nested_groups(lab):
    a = lab(kind="gitlab")
    a.forge.add_account("group/sub", type="Group")
    a.git.repo("group/sub/tool", commits=3)
    a.forge.add_repo("group/sub", "tool")
    a.add("group/sub")
    a.synced("group/sub")
    assert a.has("group/sub", "/tool.bundle")
    assert a.record("group/sub")[0]["type"] == "Group"


def test_gitlab_user_renamed(lab):
    """GitLab lists by the account's number, which goes on under the new name."""
    a = lab(kind="gitlab")
    a.add_repo("octocat", "Hello-World")
    a.add("octocat")
    a.synced("octocat")
    a.forge.rename_account("octocat", "octopus")
    shutil.move(a.git.root / "octocat", a.git.root / "octopus")
    a.sync("octocat", status=1)
    code, stage, message = a.error("octocat")
    assert (code, stage) == ("renamed", "list") and "octopus" in message


def test_gitea_sha256(lab):
    a = lab(kind="gitea")
    a.add_repo("octocat", "new", format="sha256")
    a.add("octocat")
    a.synced("octocat")
    a.same("octocat", "new")
    assert a.repository("octocat", "new")["format"] == "sha256"


def test_members_of_an_organisation_are_added(lab):
    a = lab()
    a.forge.add_account("acme", type="Organization", members=["ann", "bob"])
    a.forge.add_account("ann")
    a.forge.add_account("bob")
    a.run("add", "--org", a.member("acme"))
    names = {x["account"].partition("/")[2] for x in a.api("/accounts")["accounts"]}
    assert {"ann", "bob"} <= names


# --- forges that are added while weir runs ---

def test_forges_are_added_listed_and_removed(lab, tmp_path):
    a = lab()
    with forge_lab.Forge("gitea", git=a.git.base) as gitea:
        token = secret(gitea.add_token("gitea-secret-token"))
        file = tmp_path / "token"
        file.write_text(f"{token}\n")
        shown = a.run("forge", "add", gitea.host, "--kind", "gitea", "--api", gitea.api, "--git", a.git.base,
                      "--token-file", file, "--wants", "zip,wikis", "--json")
        assert token not in json.dumps(shown)
        entry = next(f for f in a.run("forge", "list", "--json") if f["host"] == gitea.host)
        assert entry["kind"] == "gitea" and entry["source"] == "added" and entry["wants"] == "zip,wikis"
        assert [f["source"] for f in a.run("forge", "list", "--json") if f["host"] == "github.com"] == ["built-in"]
        gitea.add_account("octocat")
        a.git.repo("octocat/tool", commits=2)
        gitea.add_repo("octocat", "tool")
        a.run("add", f"{gitea.host}/octocat")
        path = f"/accounts/{gitea.host}%2Foctocat"
        wait_for(lambda: a.api(path)["last_sync"], "the sync")
        assert gitea.count(token=token) >= 1
        tokens = next(f for f in a.run("forge", "list", "--json") if f["host"] == gitea.host)["tokens"]
        a.run("forge", "remove", gitea.host, "--token", tokens[0]["id"])
        a.run("forge", "remove", gitea.host)
        assert gitea.host not in [f["host"] for f in a.run("forge", "list", "--json")]
        a.run("forge", "remove", "github.com", status=1)
        assert "does not know the forge" in a.run("sync", f"{gitea.host}/octocat", "--watch", status=1)
        assert token not in a.server.err


@pytest.mark.parametrize("args", [["x.example"], ["x.example", "--kind", "gitea", "--api", "ftp://x"],
                                  ["../x", "--kind", "gitea"], ["x.example", "--kind", "gitea", "--wants", "stars"]])
def test_wrong_forges_are_refused(lab, args):
    a = lab()
    a.run("forge", "add", *args, status=1)
