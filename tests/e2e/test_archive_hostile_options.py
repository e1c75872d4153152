"""The options of the archive against hostile servers: wikis, gists, LFS objects, issues, and releases with files. Whatever
they send, each repository ends with its own code, nothing arrives at an address that is not configured, no token leaves
its host, no name leaves its folder, memory stays below 128 MB, and the next repository is stored."""
import hashlib
import json

import git_lab
import pytest
from conftest import wait_for
from forge_lab import Answer
from git_lab import band, forever, redirect, status
from hostile_lab import MIB, PACKFILE, TIMEOUT, Hostile


@pytest.fixture
def hostile(request, tmp_path, serve, weir):
    """The parameter is a pair: the options that are on, and the seconds that a repository may take."""
    options, seconds = request.param
    text = "".join(f"    {name}: true\n" for name in options.split()) + "    zip: false\n"
    lab = Hostile(tmp_path, serve, weir, options=text, timeout=seconds)
    yield lab
    lab.close()
    lab.listener.stop()


def on(options, seconds=TIMEOUT):
    return pytest.mark.parametrize("hostile", [(options, seconds)], indirect=True, ids=[options])


def tokens_stayed(h):
    """The files of releases and LFS objects were asked for without the token."""
    for seen in h.git.seen:
        if "/files/" in seen.path:
            assert "Authorization" not in seen.headers and h.token not in str(seen.headers), seen


# --- lists ---

def next_page(h, path):
    return {"Link": f'<{h.forge.api}{path}>; rel="next"'}


def list_attacks(h):
    """What a forge may answer for the list of issues, and the code of the repository."""
    pages = [0]

    def endless(call):
        pages[0] += 1
        return Answer(200, [{"id": pages[0], "updated_at": "2026-01-01T00:00:00Z"}],
                      next_page(h, f"/repos/evil/endless/issues?page={pages[0] + 1}"))

    return {
        "endless": (endless, "protocol"),
        "loop": (lambda call: Answer(200, [], next_page(h, "/repos/evil/loop/issues?page=1")), "protocol"),
        "page": (lambda call: Answer(200, b"[" + b'{"id":1},' * (3 * MIB) + b"{}]"), "protocol"),
        "deep": (lambda call: Answer(200, b"[" * 1_000_000), "protocol"),
        "deep-item": (lambda call: Answer(200, b'[{"id":1,"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}]"), "protocol"),
        "numbers": (lambda call: Answer(200, b"[1,2,3]"), "protocol"),
        "object": (lambda call: Answer(200, b'{"id":1}'), "protocol"),
        "cut": (lambda call: Answer(200, b'[{"id":1,"name":"x"}]', cut=9), "http-5xx"),
        "html": (lambda call: Answer(200, b"<html>", {"Content-Type": "text/html"}), "protocol"),
        "redirect": (lambda call: Answer(302, b"", {"Location": h.listener.url + "/repos/x/y/issues"}), "redirect"),
        "redirect-name": (lambda call: Answer(302, b"", {
            "Location": f"http://localhost:{h.listener.port}/issues"}), "redirect"),
        "link": (lambda call: Answer(200, [], {"Link": f'<{h.listener.url}/issues?page=2>; rel="next"'}), "redirect"),
        "link-meta": (lambda call: Answer(200, [], {"Link": '<http://169.254.169.254/?page=2>; rel="next"'}), "redirect"),
        "server-error": (lambda call: Answer(500, {"message": "oops"}), "http-5xx"),
        "refused": (lambda call: Answer(403, {"message": "no"}), "auth"),
    }


@on("issues", 300)
def test_lists_of_issues(hostile):
    h = hostile
    attacks = list_attacks(h)
    for name, (make, _) in attacks.items():
        h.add_repo("evil", name, commits=1)
        h.forge.answer(rf"/repos/evil/{name}/issues$", make=make)
    good = h.add_repo("evil", "good", commits=2)
    big = h.add_repo("evil", "big-items", commits=1)     # items past the limit are left out, the others are saved
    h.forge.find_repo("evil", "big-items")["issues"] += [
        {"id": 1, "updated_at": "2026-01-01T00:00:00Z", "body": "x" * (2 * MIB)},
        {"id": 2, "updated_at": "2026-01-01T00:00:00Z", "body": "\n\r\u2028 }{ \x01"}]
    h.add("evil")
    assert h.codes(attacks, 300) == {name: code for name, (_, code) in attacks.items()}
    for name in attacks:
        assert h.error("evil", name)[1] == "list" and h.has("evil", f"/{name}.bundle")
        assert not h.has("evil", f"/{name}@issues.ndjson")
    wait_for(lambda: h.has("evil", "/good.bundle") and h.has("evil", "/big-items@issues.ndjson"), "the good ones", 300)
    h.same("evil", "good", good)
    h.same("evil", "big-items", big)
    saved = [json.loads(line) for line in h.get("evil", "/big-items@issues.ndjson").decode().split("\n")[:-1]]
    assert [item["data"]["id"] for item in saved] == [2]
    h.end()


@on("issues", 8)
def test_a_list_that_comes_one_byte_at_a_time(hostile):
    """It ends by the time of a request, which is tried again."""
    h = hostile
    h.add_repo("evil", "drip", commits=1)
    h.forge.answer(r"/repos/evil/drip/issues$", make=lambda call: Answer(200, b"[" + b" " * 4000 + b"]", drip=0.5))
    h.add("evil")
    assert h.codes(["drip"], 420) == {"drip": "timeout"}
    h.end()


# --- releases ---

def asset(url, size=5, name="file", id=7):
    return {"id": id, "name": name, "size": size, "browser_download_url": url}


@on("releases", 60)
def test_files_of_releases(hostile):
    h = hostile
    files = h.git.base + "/files"
    answers = {
        "ok": status(200, b"hello"), "short": status(200, b"hell"), "long": status(200, b"hello!"),
        "to-listener": redirect(h.listener.url + "/file"),
        "to-name": redirect(f"http://localhost:{h.listener.port}/file"),
        "to-meta": redirect("http://169.254.169.254/latest/meta-data"),
        "to-file": redirect("file:///etc/passwd"),
        "loop": redirect(lambda path: path),
        "refused": status(403, b"no"), "broken": status(500, b"oops"),
    }
    for name, script in answers.items():
        h.git.answer(rf"/files/{name}$", script)

    def cut(call, answer):
        call.head(200, {"Content-Type": "application/octet-stream", "Content-Length": 5})
        call.piece(b"he")
        call.hang_up()
    h.git.answer(r"/files/cut$", cut)

    def drip(call, answer):
        call.head(200, {"Content-Type": "application/octet-stream", "Content-Length": 5})
        for byte in b"hello":
            call.piece(bytes([byte]))
            call.wait(0.1)
    h.git.answer(r"/files/drip$", drip)
    h.git.answer(r"/files/endless$", forever(b"", b"x" * 60000))
    attacks = {
        "short": (asset(f"{files}/short"), "http-5xx"),    # as one whose connection was cut
        "long": (asset(f"{files}/long"), "protocol"),
        "endless": (asset(f"{files}/endless"), "protocol"),
        "cut": (asset(f"{files}/cut"), "http-5xx"),
        "broken": (asset(f"{files}/broken"), "http-5xx"),
        "refused": (asset(f"{files}/refused"), "auth"),
        "to-listener": (asset(f"{files}/to-listener"), "redirect"),
        "to-name": (asset(f"{files}/to-name"), "redirect"),
        "to-meta": (asset(f"{files}/to-meta"), "redirect"),
        "listener": (asset(h.listener.url + "/x"), "redirect"),
        "listener-https": (asset(f"https://127.0.0.1:{h.listener.port}/x"), "redirect"),
        "name-https": (asset(f"https://localhost:{h.listener.port}/x"), "redirect"),
        "meta": (asset("http://169.254.169.254/x"), "redirect"),
        "file": (asset("file:///etc/passwd"), "redirect"),
        "user": (asset(f"http://127.0.0.1:{h.git.port}@127.0.0.1:{h.listener.port}/x"), "redirect"),
        "huge": (asset(f"{files}/ok", size=1 << 62), "too-big"),
        "id": (asset(f"{files}/ok", id="../../../x"), "protocol"),
        "no-id": ({"name": "x", "size": 5, "browser_download_url": f"{files}/ok"}, "protocol"),
        "twice": (b'[{"id":1,"assets":[{"id":7,"id":8,"name":"x","size":1,"browser_download_url":"x"}]}]', "protocol"),
    }
    for name, (what, _) in attacks.items():
        h.add_repo("evil", name, commits=1)
        if isinstance(what, bytes):
            h.forge.answer(rf"/repos/evil/{name}/releases$", body=None, make=lambda call, what=what: Answer(200, what))
        else:
            h.forge.find_repo("evil", name)["releases"].append({"id": 1, "assets": [what]})
    h.add_repo("evil", "names", commits=1)
    h.forge.find_repo("evil", "names")["releases"].append({"id": 1, "assets": [
        asset(f"{files}/ok", name=name, id=i) for i, name in enumerate(["../../up", "/abs", "a\nb", "..", "x" * 900, "\u202ex"])]})
    h.add_repo("evil", "drip", commits=1)
    h.forge.find_repo("evil", "drip")["releases"].append({"id": 1, "assets": [asset(f"{files}/drip")]})
    h.add("evil")
    assert h.codes(attacks, 300) == {name: code for name, (_, code) in attacks.items()}
    for name in attacks:
        assert h.has("evil", f"/{name}.bundle") and not [k for k in h.keys("evil") if f"/{name}@assets" in k]
    wait_for(lambda: h.has("evil", "/drip@assets/7/file"), "the file that came byte by byte")
    names = [k.split("@assets/")[1] for k in h.keys("evil") if "/names@assets/" in k]
    assert sorted(names)[:3] == ["0/.._.._up", "1/_abs", "2/a_b"] and len(names) == 6
    tokens_stayed(h)
    h.end()


# --- LFS ---

def pointer(body):
    oid = hashlib.sha256(body).hexdigest()
    return oid, b"version https://git-lfs.github.com/spec/v1\noid sha256:%s\nsize %d\n" % (oid.encode(), len(body))


@on("lfs", 60)
def test_lfs_servers(hostile):
    h = hostile
    body = b"large" * 99
    oid, text = pointer(body)
    files = h.git.base + "/files"
    other = "f" * 64

    def found(href, **more):
        return {"objects": [{"oid": oid, "size": len(body), "actions": {"download": {"href": href, **more}}}]}

    h.git.answer(r"/files/ok$", status(200, body))
    h.git.answer(r"/files/wrong$", status(200, body[::-1]))
    h.git.answer(r"/files/short$", status(200, body[:-1]))
    h.git.answer(r"/files/endless$", forever(b"", b"x" * 60000))
    h.git.answer(r"/files/to-listener$", redirect(h.listener.url + "/file"))
    attacks = {
        "listener": (found(h.listener.url + "/x"), "redirect"),
        "listener-https": (found(f"https://127.0.0.1:{h.listener.port}/x"), "redirect"),
        "name-https": (found(f"https://localhost:{h.listener.port}/x"), "redirect"),
        "meta": (found("http://169.254.169.254/x"), "redirect"),
        "file": (found("file:///etc/passwd"), "redirect"),
        "to-listener": (found(f"{files}/to-listener"), "redirect"),
        "wrong": (found(f"{files}/wrong"), "protocol"),
        "short": (found(f"{files}/short"), "http-5xx"),
        "endless": (found(f"{files}/endless"), "protocol"),
        "says-nothing": ({"objects": []}, "protocol"),
        "names-others": ({"objects": [{"oid": o, "actions": {"download": {"href": h.listener.url}}}
                                      for o in (other, "../" * 20, "")]}, "protocol"),
        "no-url": ({"objects": [{"oid": oid}]}, "protocol"),
        "huge": (b'{"x":"' + b"y" * (5 * MIB) + b'"}', "protocol"),
        "deep": (b'{"objects":' + b"[" * 500_000, "protocol"),
        "html": (b"<html>", "protocol"),
        "refused": (403, "auth"),
        "broken": (500, "http-5xx"),
        "batch-to-listener": (redirect(h.listener.url + "/batch", 307), "http-5xx"),
        "batch-cut": (git_lab.cut(5), "http-5xx"),
        "batch-endless": (forever(b"{", b" " * 60000), "protocol"),
    }
    for name, (what, _) in attacks.items():
        h.add_repo("evil", name, commits=0).commit(1, files=1, content=lambda i: text)
        script = what if callable(what) else status(what, b"no") if isinstance(what, int) else \
            status(200, what if isinstance(what, bytes) else json.dumps(what).encode())
        h.git.answer(rf"/evil/{name}\.git/info/lfs/objects/batch$", script)
    h.add_repo("evil", "good", commits=0).commit(1, files=1, content=lambda i: text)
    h.git.answer(r"/evil/good\.git/info/lfs/objects/batch$", status(200, json.dumps(found(f"{files}/ok", header={
        "X-Good": "yes", "Host": "127.0.0.1", "Content-Length": "3", "Bad\r\nX-Evil": "1", "X-Value": "a\r\nX-Evil: 1",
        "Transfer-Encoding": "chunked", **{f"X-{i}": "1" for i in range(30)}})).encode()))
    h.add("evil")
    assert h.codes(attacks, 300) == {name: code for name, (_, code) in attacks.items()}
    wait_for(lambda: h.has("evil", f"/good@lfs/{oid[:2]}/{oid[2:4]}/{oid}"), "the good object")
    sent = next(s for s in h.git.seen if s.path == "/files/ok").headers
    assert sent["X-Good"] == "yes" and sent["Host"] == f"127.0.0.1:{h.git.port}"
    assert not {"X-Evil", "Content-Length", "Transfer-Encoding", "X-Value"} & set(sent)
    assert [k for k in h.keys("evil") if "@lfs/" in k] == [h.key("evil", f"/good@lfs/{oid[:2]}/{oid[2:4]}/{oid}")]
    tokens_stayed(h)
    h.end()


# --- wikis and gists ---

@on("wikis")
def test_wikis(hostile):
    h = hostile
    attacks = {
        "redirect": (redirect(h.listener.url + "/wiki/info/refs?service=git-upload-pack"), "redirect"),
        "redirect-name": (redirect(f"http://localhost:{h.listener.port}/w/info/refs?service=git-upload-pack"), "redirect"),
        "meta": (redirect("http://169.254.169.254/w/info/refs?service=git-upload-pack"), "redirect"),
        "html": (status(200, b"<html>", Content_Type="text/html"), "protocol"),
        "broken": (status(500, b"oops"), "http-5xx"),
        "refused": (status(403, b"no"), "auth"),
        "silence": (lambda call, body: call.wait(600), "timeout"),
        "endless": (forever(b"", git_lab.pkt("x=y\n") * 1000), "protocol"),
    }
    for name, (script, _) in attacks.items():
        h.add_repo("evil", name, commits=1, has_wiki=True)
        h.git.answer(rf"^/evil/{name}\.wiki\.git/info/refs", script)
    h.add_repo("evil", "words", commits=1, has_wiki=True)
    h.git.repo("evil/words.wiki", commits=1)
    h.git.answer(r"^/evil/words\.wiki\.git/git-upload-pack$", lambda call, body: forever(
        PACKFILE, band(2, b"Counting\r" * 6000))(call, body) if b"want " in call.seen.body else body)
    h.add("evil")
    want = {**{name: code for name, (_, code) in attacks.items()}, "words": "protocol"}
    assert h.codes(want) == want
    for name in want:
        assert h.has("evil", f"/{name}.bundle") and not h.has("evil", f"/{name}@wiki.bundle")
    h.end()


def gist(id, url):
    return {"id": id, "git_pull_url": url, "updated_at": "2026-01-01T00:00:00Z"}


@on("gists")
def test_gists(hostile):
    """Gists elsewhere are left out; a list that lies ends the account's sync, and its bundles stay."""
    h = hostile
    good = h.add_repo("evil", "good", commits=2)
    h.git.repo("gists/a1", commits=1)
    h.forge.accounts["evil"]["gists"] += [
        gist("a1", h.git.url("gists/a1")), gist("b2", h.listener.url + "/b2.git"), gist("c3", "file:///etc/passwd"),
        gist("d4", f"http://localhost:{h.listener.port}/d4.git"), gist("e5", "http://169.254.169.254/e5.git"),
        gist("f6", "ext::sh -c touch"), gist("g7", f"http://127.0.0.1:{h.git.port}@127.0.0.1:{h.listener.port}/g7.git")]
    h.add("evil")
    h.synced("evil")
    assert [k for k in h.keys("evil") if "@gists" in k] == [h.key("evil", "/@gists/a1.bundle")]
    pages = [0]

    def endless(call):
        pages[0] += 1
        return Answer(200, [], next_page(h, f"/users/evil/gists?page={pages[0] + 1}"))

    attacks = [
        (lambda call: Answer(200, [gist("../../x", h.git.url("gists/a1"))]), "protocol"),
        (lambda call: Answer(200, [gist("x" * 40, h.git.url("gists/a1"))]), "protocol"),
        (lambda call: Answer(200, [], next_page(h, "/users/evil/gists?page=1")), "protocol"),
        (lambda call: Answer(200, b"[" + b'{"id":1},' * (3 * MIB) + b"{}]"), "protocol"),
        (lambda call: Answer(302, b"", {"Location": h.listener.url + "/gists"}), "redirect"),
        (lambda call: Answer(200, [], {"Link": f'<{h.listener.url}/gists?page=2>; rel="next"'}), "redirect"),
        (lambda call: Answer(200, b'[{"id":1}]', cut=4), "http-5xx"),
    ]
    for make, code in attacks:
        rule = h.forge.answer(r"/users/evil/gists$", make=make)
        h.run("sync", h.member("evil"), "--watch", status=1)
        assert h.error("evil")[0] == code, (attacks.index((make, code)), h.error("evil"))
        h.forge.rules.remove(rule)
    rule = h.forge.answer(r"/users/evil/gists$", make=endless)
    h.run("sync", h.member("evil"))
    wait_for(lambda: h.error("evil")[0] == "protocol", "the end of the pages", 420)
    h.forge.rules.remove(rule)
    h.forge.accounts["evil"]["gists"][0]["updated_at"] = "2099-01-01T00:00:00Z"
    h.git.answer(r"/gists/a1\.git/info/refs", redirect(h.listener.url + "/a1/info/refs?service=git-upload-pack"))
    h.run("sync", h.member("evil"), "--watch", status=1)
    assert h.error("evil")[0] == "redirect"
    h.git.answer_as_usual()
    h.same("evil", "good", good)
    h.end()
