"""Options of the archive: wikis, gists, issues, pull requests, releases with their files, and LFS objects."""
import hashlib
import json

import pytest
from archive_lab import Archive
from conftest import wait_for
from git_lab import Listener, git, redirect, status


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(*options, **more):
        text = "".join(f"    {name}: true\n" for name in options) + "    zip: false\n"
        made.append(Archive(tmp_path, serve, weir, options=text, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()


def lines(a, login, rest):
    return [json.loads(line) for line in a.get(login, rest).decode().splitlines()]


def issue(id, at, **more):
    return {"id": id, "number": id, "title": f"issue {id}", "updated_at": at, "created_at": at, "body": "two\nlines", **more}


@pytest.mark.parametrize("kind", ["github", "gitlab", "gitea"])
def test_issues_and_pulls_with_checkpoints(lab, kind):
    a = lab("issues", "pulls", kind=kind)
    a.add_repo("octocat", "Hello-World")
    repo = a.forge.find_repo("octocat", "Hello-World")
    repo["issues"] += [issue(i, f"2026-01-{i:02}T00:00:00Z") for i in range(1, 9)]
    repo["issues"][0]["body"] = "\0 and \ud800"      # JSON allows both as escapes; the repository goes on
    repo["pulls"].append(issue(20, "2026-01-01T00:00:00Z"))
    a.add("octocat")
    a.synced("octocat")
    assert rb"\u0000 and \ud800" in a.get("octocat", "/Hello-World@issues.ndjson")        # as it came
    assert [l["data"]["id"] for l in lines(a, "octocat", "/Hello-World@issues.ndjson")] == list(range(1, 9))
    assert [l["data"]["id"] for l in lines(a, "octocat", "/Hello-World@pulls.ndjson")] == [20]
    before = a.head("octocat", "/Hello-World@issues.ndjson")["LastModified"]
    mark = a.forge.mark()
    a.sync("octocat")
    assert a.head("octocat", "/Hello-World@issues.ndjson")["LastModified"] == before     # nothing was written
    since = [r.query for r in a.forge.requests[mark:] if r.path.endswith("/issues")]
    assert all(q.get("since") or q.get("updated_after") for q in since) and since
    repo["issues"][2].update(title="changed", updated_at="2099-01-01T00:00:00Z")
    a.sync("octocat")
    now = lines(a, "octocat", "/Hello-World@issues.ndjson")
    assert len(now) == 9 and now[-1]["data"]["title"] == "changed"                       # the old line stays
    a.check()


def test_an_account_has_options_of_its_own(lab):
    a = lab(args=("--archive.look=7d",))        # the forge has no option at all
    for login in ("octocat", "mojombo"):
        a.add_repo(login, "Hello-World")
        a.forge.find_repo(login, "Hello-World")["issues"].append(issue(1, "2026-01-01T00:00:00Z"))
    a.run("add", a.member("mojombo"))
    a.run("add", a.member("octocat"), "--wants", "issues")
    for login in ("octocat", "mojombo"):
        a.synced(login)
    assert a.names("mojombo") == ["mojombo.json", "mojombo/Hello-World.bundle"]
    assert a.names("octocat") == ["octocat.json", "octocat.options", "octocat/Hello-World.bundle",
                                  "octocat/Hello-World@issues.ndjson"]
    assert a.get("octocat", ".options") == b"issues\n" and a.record("octocat")[0]["wants"] == "issues"
    assert a.account("octocat")["wants"] == ["issues"] and a.account("octocat")["own_wants"]
    assert a.account("mojombo")["wants"] == [] and not a.account("mojombo")["own_wants"]
    # A new option counts at the next sync, although the forge's list is unchanged. The next one asks nothing again.
    shown = a.run("options", a.member("mojombo"), "--wants", "zip", "--json")
    assert shown == [{"account": a.member("mojombo"), "wants": "zip", "from": "account"}]
    a.sync("mojombo")
    assert a.has("mojombo", "/Hello-World.zip") and a.record("mojombo")[0]["wants"] == "zip"
    seen = a.git.count()
    a.sync("mojombo")
    assert a.git.count() == seen
    # The options are in the storage: they survive the loss of the store, and say nothing about who is tracked.
    a.run("rebuild")
    a.run("remove", a.member("octocat"))
    a.api("/accounts/" + a.member("octocat").replace("/", "%2F") + "/options", status=404)
    a.add("octocat")
    assert a.run("options", a.member("octocat"), "--json")[0]["wants"] == "issues"
    # What was saved stays when the options of the forge come back.
    a.run("options", a.member("octocat"), "--default")
    a.sync("octocat")
    assert not a.has("octocat", ".options") and a.has("octocat", "/Hello-World@issues.ndjson")
    assert a.record("octocat")[0]["wants"] == "-"
    assert "not an option" in a.run("options", a.member("octocat"), "--wants", "stars", status=1)
    a.check()


def test_a_renamed_account_keeps_its_options(lab):
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.run("add", a.member("octocat"), "--wants", "zip")
    a.synced("octocat")
    a.forge.rename_account("octocat", "hexacat")
    a.run("sync", a.member("octocat"), "--watch", status=None)
    wait_for(lambda: a.account("hexacat")["own_wants"], "the options of the new name")


def test_features_that_are_off_are_no_error(lab):
    a = lab("issues", "pulls", "releases", "wikis", "lfs")
    a.add_repo("octocat", "Hello-World", issues=None, pulls=None)
    a.add("octocat")
    a.synced("octocat")
    assert a.names("octocat") == ["octocat.json", "octocat/Hello-World.bundle"]
    assert a.record("octocat")[1][0]["code"] == "ok"


def test_an_option_that_fails_is_tried_again(lab):
    a = lab("issues")
    a.add_repo("octocat", "Hello-World")
    a.forge.find_repo("octocat", "Hello-World")["issues"].append(issue(1, "2026-01-01T00:00:00Z"))
    rule = a.forge.answer(r"/issues$", 500, {"message": "Oops"})
    a.add("octocat")
    a.sync("octocat", status=1)
    assert a.error("octocat", "Hello-World")[:2] == ("http-5xx", "list")
    assert a.has("octocat", "/Hello-World.bundle")
    a.forge.rules.remove(rule)
    a.sync("octocat")
    assert not a.has("octocat", "/Hello-World.error") and a.has("octocat", "/Hello-World@issues.ndjson")


def test_links_of_gitlab_releases(lab):
    """Files at GitLab are saved, with or without a length. Links that lead nowhere are left out, and a refusal is told."""
    a = lab("releases", kind="gitlab")
    listener = Listener()
    a.add_repo("octocat", "Hello-World")
    a.git.answer(r"/files/long$", status(200, b"long" * 1000, Content_Length=4000))
    a.git.answer(r"/files/chunked$", status(200, b"chunked"))
    links = [{"id": 1, "name": "tool v1.tgz", "url": a.git.base + "/files/long", "link_type": "package"},
             {"id": 2, "name": "notes", "url": a.git.base + "/files/chunked"},
             {"id": 3, "name": "gone", "url": a.git.base + "/files/gone"},
             {"id": 4, "name": "elsewhere", "url": listener.url + "/x"},
             {"id": 5, "name": "secure", "url": f"https://localhost:{listener.port}/x"}]
    a.git.answer(r"/files/gone$", status(404, b"no"))
    release = {"tag_name": "v1", "assets": {"count": 9, "links": links, "sources": [
        {"format": "zip", "url": listener.url + "/v1.zip"}]}}
    a.forge.find_repo("octocat", "Hello-World")["releases"].append(release)
    a.add("octocat")
    a.synced("octocat")
    assert a.get("octocat", "/Hello-World@assets/1/tool_v1.tgz") == b"long" * 1000
    assert a.get("octocat", "/Hello-World@assets/2/notes") == b"chunked"
    assert len([k for k in a.keys("octocat") if "@assets/" in k]) == 2 and listener.arrived == []
    assert not any("Private-Token" in s.headers or "PRIVATE-TOKEN" in s.headers for s in a.git.seen if "/files/" in s.path)
    before = a.git.count(path="/files/")
    a.sync("octocat")
    assert a.git.count(path="/files/") == before                 # the releases are the same
    links.append({"id": 6, "name": "secret", "url": a.git.base + "/files/secret"})
    a.git.answer(r"/files/secret$", redirect("/users/sign_in"))
    a.git.answer(r"/users/sign_in$", status(200, b"<html>who are you?"))
    a.sync("octocat", status=1)
    assert a.error("octocat", "Hello-World")[:2] == ("auth", "list")
    assert not a.has("octocat", "/Hello-World@assets/6/secret")
    listener.stop()


def test_a_link_to_a_file_that_is_too_large_is_left_out(lab):
    """With a length and without one. The other files are saved, and the repository is done."""
    a = lab("releases", kind="gitlab", args=("--archive.max_pack=1MiB",))
    a.add_repo("octocat", "Hello-World")
    large = b"x" * (2 << 20)
    a.git.answer(r"/files/long$", status(200, large, Content_Length=len(large)))
    a.git.answer(r"/files/chunked$", status(200, large))
    a.git.answer(r"/files/small$", status(200, b"small"))
    links = [{"id": i, "name": name, "url": f"{a.git.base}/files/{name}"} for i, name in enumerate(("long", "chunked", "small"))]
    a.forge.find_repo("octocat", "Hello-World")["releases"].append({"tag_name": "v1", "assets": {"links": links}})
    a.add("octocat")
    a.synced("octocat")
    assert a.error("octocat", "Hello-World")[0] == "too-big"
    assert [n for n in a.names("octocat") if "@assets/" in n] == ["octocat/Hello-World@assets/2/small"]


def test_releases_with_their_files(lab):
    a = lab("releases")
    a.add_repo("octocat", "Hello-World")
    body = b"binary" * 1000
    a.git.answer(r"/download/7", status(200, body))
    asset = {"id": 7, "name": "tool v1.tgz", "size": len(body), "download_count": 1,
             "browser_download_url": a.git.base + "/download/7"}
    a.forge.find_repo("octocat", "Hello-World")["releases"].append({"id": 1, "tag_name": "v1", "assets": [asset]})
    a.add("octocat")
    a.synced("octocat")
    assert a.get("octocat", "/Hello-World@assets/7/tool_v1.tgz") == body
    assert [l["type"] for l in lines(a, "octocat", "/Hello-World@releases.ndjson")] == ["release"]
    asset["download_count"] = 2
    a.sync("octocat")
    assert len(lines(a, "octocat", "/Hello-World@releases.ndjson")) == 1 and a.git.count("GET", "download/7") == 1
    assert all("Authorization" not in s.headers for s in a.git.seen if "download" in s.path)


def test_wiki_flag_absent(lab):
    """has_wiki does not prove that there is a wiki."""
    a = lab("wikis")
    a.add_repo("octocat", "with", has_wiki=True)
    a.add_repo("octocat", "without", has_wiki=True)
    wiki = a.git.repo("octocat/with.wiki", commits=2)
    a.add("octocat")
    a.synced("octocat")
    a.same("octocat", "with@wiki", wiki)
    assert not a.has("octocat", "/without@wiki.bundle") and not a.has("octocat", "/without@wiki.error")
    wiki.commit(1)
    a.sync("octocat")
    a.same("octocat", "with@wiki", wiki)


def test_gists(lab):
    a = lab("gists")
    a.add_repo("octocat", "Hello-World")
    gist = a.git.repo("gists/abc123", commits=2)
    a.forge.accounts["octocat"]["gists"] += [
        {"id": "abc123", "git_pull_url": a.git.url("gists/abc123"), "updated_at": "2026-01-01T00:00:00Z"},
        {"id": "evil", "git_pull_url": "http://169.254.169.254/x.git", "updated_at": "2026-01-01T00:00:00Z"}]
    a.add("octocat")
    a.synced("octocat")
    assert a.has("octocat", "/@gists/abc123.bundle") and not a.has("octocat", "/@gists/evil.bundle")
    path = a.folder / "gist.bundle"
    path.write_bytes(a.get("octocat", "/@gists/abc123.bundle"))
    git("clone", "-q", "--mirror", path, a.folder / "gist.git")
    assert git("rev-parse", "HEAD", cwd=a.folder / "gist.git") == gist.git("rev-parse", "HEAD")
    a.sync("octocat")
    a.check()


def test_gists_that_are_older_than_the_option(lab):
    """Gists have a checkpoint of their own, which moves only when all of them were saved."""
    a = lab()
    a.add_repo("octocat", "Hello-World")
    a.git.repo("gists/abc123", commits=2)
    a.forge.accounts["octocat"]["gists"].append(
        {"id": "abc123", "git_pull_url": a.git.url("gists/abc123"), "updated_at": "2026-01-01T00:00:00Z"})
    a.add("octocat")
    a.synced("octocat")
    assert "gists" not in a.record("octocat")[0]
    a.server.stop()
    a.config = a.config.replace("    zip: false\n", "    zip: false\n    gists: true\n")
    a.git.answer(r"gists/abc123", status(403, b"no"))
    a.serve(data=a.server.data)
    a.sync("octocat", status=1)
    assert a.error("octocat")[0] == "auth" and "gists" not in a.record("octocat")[0]
    a.git.answer_as_usual()
    a.sync("octocat")
    assert a.has("octocat", "/@gists/abc123.bundle") and a.record("octocat")[0]["gists"]


def test_lfs_refusals_are_tried_again(lab):
    """Only 404 and 410 mean that an object is absent; another answer leaves the commit to be looked at again."""
    a = lab("lfs")
    body = b"large" * 99
    oid = hashlib.sha256(body).hexdigest()
    repo = a.add_repo("octocat", "big", commits=0)
    repo.commit(1, files=1, content=lambda i: b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n"
                % (oid.encode(), len(body)))
    answers = [(403, {}), (200, {"objects": []}), (200, {"objects": [{"oid": oid, "error": {"code": 503}}]}),
               (200, {"objects": [{"oid": oid, "actions": {"download": {"href": f"{a.git.base}/lfs/{oid}"}}}]})]
    now = []
    a.git.answer(r"/info/lfs/objects/batch",
                 lambda call, answer: status(now[0][0], json.dumps(now[0][1]).encode())(call, answer))
    a.git.answer(r"/lfs/[0-9a-f]{64}$", status(200, body))
    now[:] = answers[:1]
    a.add("octocat")
    for one, code in zip(answers, ("auth", "protocol", "http-5xx"), strict=False):
        now[:] = [one]
        a.sync("octocat", status=1)
        assert a.error("octocat", "big")[:2] == (code, "fetch")
    now[:] = answers[3:]
    a.sync("octocat")
    assert a.get("octocat", f"/big@lfs/{oid[:2]}/{oid[2:4]}/{oid}") == body


def test_lfs_pointers(lab):
    a = lab("lfs")
    wanted = {hashlib.sha256(body).hexdigest(): body for body in (b"large" * 999, b"other" * 7, b"")}
    missing = hashlib.sha256(b"missing").hexdigest()
    lying = hashlib.sha256(b"lying").hexdigest()
    sizes = {**{oid: len(body) for oid, body in wanted.items()}, missing: 7}
    files = [b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (oid.encode(), size)
             for oid, size in sizes.items()]
    repo = a.add_repo("octocat", "big", commits=0)
    repo.commit(1, files=len(files), content=lambda i: files[i % len(files)])
    asked = []

    def batch(call, answer):
        objects = json.loads(call.seen.body)["objects"]
        asked.append([o["oid"] for o in objects])
        found = [{**o, "actions": {"download": {"href": f"{a.git.base}/lfs/{o['oid']}", "header": {"X-Lfs": "yes"}}}}
                 if o["oid"] in wanted else {**o, "error": {"code": 404, "message": "no"}} for o in objects]
        status(200, json.dumps({"objects": found}).encode())(call, answer)

    def give(call, answer):
        status(200, wanted[call.path.rpartition("/")[2]])(call, answer)
    a.git.answer(r"/info/lfs/objects/batch", batch)
    a.git.answer(r"/lfs/[0-9a-f]{64}$", give)
    a.add("octocat")
    a.synced("octocat")
    for oid, body in wanted.items():
        assert a.get("octocat", f"/big@lfs/{oid[:2]}/{oid[2:4]}/{oid}") == body
    assert sorted(asked[0]) == sorted(sizes)
    a.sync("octocat")
    assert len(asked) == 1                                      # the commit is the same
    wanted[lying] = b"LYING"                                     # another SHA-256, the right size
    files.append(b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize 5\n" % lying.encode())
    repo.commit(1, files=len(files), content=lambda i: files[i % len(files)])
    a.push("octocat", "big")
    a.sync("octocat", status=1)
    assert a.error("octocat", "big")[:2] == ("protocol", "fetch")
    assert not a.has("octocat", f"/big@lfs/{lying[:2]}/{lying[2:4]}/{lying}")
