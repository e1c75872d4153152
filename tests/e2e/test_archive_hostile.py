"""The archive against hostile forges and git servers. Whatever they send, each repository ends with its own code, nothing
arrives at an address that is not configured, no token leaves its host, no name leaves its folder, memory stays below
128 MB, and the next repository is stored."""
import functools
import io
import json
import re
import struct
import zipfile

import git_lab
import pytest
from conftest import wait_for
from forge_lab import Answer
from git_lab import FLUSH, GitLab, band, cut, edit, forever, pkt, redirect, status
from hostile_lab import MIB, OID, PACKFILE, TIMEOUT, Hostile, entry, pack


@pytest.fixture
def hostile(request, tmp_path, serve, weir):
    """The parameter, if a test gives one, is the limit of time of a repository, in seconds."""
    lab = Hostile(tmp_path, serve, weir, timeout=getattr(request, "param", TIMEOUT))
    yield lab
    lab.close()
    lab.listener.stop()


# --- packs that lie ---

BLOB = entry(3, b"hello\n")
LYING_PACKS = {
    "count-more": (pack(BLOB, count=2), "corrupt"),
    "count-less": (pack(BLOB, BLOB, count=1), "corrupt"),
    "count-all": (pack(BLOB, count=0xffffffff), "corrupt"),
    "trailer": (pack(BLOB, trailer=b"x" * 20), "corrupt"),
    "no-trailer": (pack(BLOB)[:-20], "corrupt"),
    "version": (pack(BLOB, version=9), "corrupt"),
    "type-0": (pack(entry(0, b"x")), "corrupt"),
    "type-5": (pack(entry(5, b"x")), "corrupt"),
    "size-more": (pack(entry(3, b"hello", size=6)), "corrupt"),
    "size-less": (pack(entry(3, b"hello", size=4)), "corrupt"),
    "size-bomb": (pack(entry(3, b"\0" * 1000, size=40 << 30)), "too-big"),
    "size-endless": (b"PACK" + struct.pack(">II", 2, 1) + b"\xbf" + b"\xff" * 100, "corrupt"),
    "delta-before": (pack(BLOB, entry(6, b"\6\6\x90\6", delta=b"\xff\x7f")), "corrupt"),
    "delta-itself": (pack(BLOB, entry(6, b"\6\6\x90\6", delta=b"\0")), "corrupt"),
    "zlib": (pack(BLOB[:-3] + b"zzz"), "corrupt"),
    "no-pack": (b"", "corrupt"),
    "text": (b"<html>" * 1000, "corrupt"),
}


def test_packs_that_lie(hostile):
    good = hostile.add_repo("evil", "good", commits=4)
    for name, (bytes_, _) in LYING_PACKS.items():
        hostile.sends(name, bytes_)
    hostile.add("evil")
    assert hostile.codes(LYING_PACKS) == {name: code for name, (_, code) in LYING_PACKS.items()}
    hostile.same("evil", "good", good)
    assert not [k for k in hostile.keys("evil") if k.endswith(".bundle") and "/good." not in k]
    hostile.end()


# --- git servers that stall, lie and never end ---

@functools.cache
def many_refs(width):
    """More refs than a list may have, each with a name of its own."""
    line = pkt(OID.encode() + b" refs/heads/" + b"0" * width + b"\n")[:-width - 1]
    return b"".join(line + b"%0*d\n" % (width, i) for i in range(120 * MIB // len(line + b"0" * width)))


def endless_refs(width):
    refs = many_refs(width)  # made before the servers need it

    def script(call, body):
        call.head(200, {"Content-Type": git_lab.ADVERT_TYPE})
        call.piece(pkt(f"{OID} HEAD\0side-band-64k ofs-delta\n"))
        for at in range(0, len(refs), MIB):
            call.piece(refs[at:at + MIB])
    return script


def test_git_servers_without_end(hostile):
    """All of them at once, as one account's repositories."""
    h = hostile
    h.v2("keepalives", forever(PACKFILE, band(1), 0.05))
    h.v2("keepalives-fast", forever(PACKFILE, band(1) * 1000))
    h.v2("words", forever(PACKFILE, band(2, b"Counting\r" * 6000)))
    h.v2("words-slow", forever(PACKFILE, band(2, b"x"), 0.05))
    h.v2("lines", forever(b"", pkt("acknowledgments\n") * 1000))
    h.script("drip", real=True, post=git_lab.in_pieces(1, 0.05))
    h.v2("pack", forever(PACKFILE + band(1, b"PACK\0\0\0\2\xff\xff\xff\xff"), band(1, BLOB * 3000)))
    h.v2("silence", lambda call, body: call.wait(600))
    for i in range(3):  # more of them than are fetched at once
        h.script(f"refs-{i}", endless_refs(12))
        h.script(f"refs-long-{i}", endless_refs(900))
    h.script("capabilities", forever(pkt("version 2\n"), pkt("x=y\n") * 1000))
    h.script("heads", git_lab.raw(b"HTTP/1.1 100 Continue\r\n\r\n" * 50000))
    good = h.add_repo("evil", "good", commits=4)
    h.add("evil")
    want = {"keepalives": "timeout", "keepalives-fast": "timeout", "words": "protocol", "words-slow": "timeout",
            "lines": "protocol", "drip": "timeout", "pack": "too-big", "silence": "timeout", "capabilities": "protocol",
            "heads": "protocol", **{f"refs-{i}": "protocol" for i in range(3)},
            **{f"refs-long-{i}": "protocol" for i in range(3)}}
    assert h.codes(want) == want
    h.same("evil", "good", good)
    h.end()


@pytest.mark.parametrize("hostile", [600], indirect=True)
def test_connections_that_break(hostile):
    """None of them waits for the limit of time. A slow machine takes long for the bytes that come one by one."""
    h = hostile
    lies = {"0003": "protocol", "fff1": "protocol", "zzzz": "protocol", "00": "protocol", "0001": "protocol"}
    for text in lies:
        h.script(f"length-{text}", lambda call, body, text=text: iter([text.encode()]))
    for after in (0, 7, 200):
        for reset in (False, True):
            h.script(f"cut-{after}-{reset}", real=True, post=lambda call, body, a=after, r=reset:
                     cut(a, r)(call, body) if b"want " in call.seen.body else body)
    h.script("one-byte", real=True, info=git_lab.in_pieces(1), post=git_lab.in_pieces(1))
    h.script("flush", real=True, post=edit(lambda body: body[:-4] if PACKFILE in body else body))
    h.script("behind", real=True, post=edit(lambda body: body + b"x" if PACKFILE in body else body))
    h.script("flip", real=True, post=edit(lambda body: body[:-5] + bytes([body[-5] ^ 1]) + FLUSH if PACKFILE in body else body))
    h.script("band3", real=True, post=lambda call, body: iter([PACKFILE + band(3, "no\x1b[31m more")])
             if b"want " in call.seen.body else body)
    h.script("err", lambda call, body: iter([pkt("ERR Repository unavailable due to DMCA takedown.")]))
    h.script("html", status(200, b"<html>", Content_Type="text/html"))
    h.script("server-error", status(500, b"oops"))
    h.add("evil")
    want = {**{f"length-{text}": code for text, code in lies.items()},
            **{f"cut-{a}-{r}": "http-5xx" for a in (0, 7, 200) for r in (False, True)},
            "flush": "protocol", "behind": "protocol", "flip": "corrupt", "band3": "protocol", "err": "dmca", "html": "protocol",
            "server-error": "http-5xx"}
    assert h.codes(want) == want
    wait_for(lambda: h.has("evil", "/one-byte.bundle"), "the bundle that came byte by byte", 300)
    h.same("evil", "one-byte")
    assert h.error("evil", "band3")[2].endswith("no [31m more")
    h.end()


# --- names ---

BAD_REPOS = ["..", ".", "../../x", "a/b", "a\nb", "x" * 101, "x@wiki", "\u00e9", "a b", "..\\x", "a%2fb", "-\u202e", "a\0b"]
BAD_LOGINS = ["..", ".", "../x", "a//b", "/x", "-x", "a b", "a\nb", "x" * 101, "a%2fb", "_map", "\u00e9", "", "a/../b"]


def test_names_of_repositories_that_leave_their_folder(hostile):
    """They are left out, and the others are stored."""
    good = hostile.add_repo("evil", "good", commits=2)
    for name in BAD_REPOS:
        hostile.forge.add_repo("evil", name)
    hostile.forge.add_repo("evil", "a.zip.bundle")
    hostile.git.repo("evil/a.zip.bundle", commits=1)
    hostile.add("evil")
    wait_for(lambda: hostile.has("evil", "/good.bundle") and hostile.has("evil", "/a.zip.bundle.bundle"), "the good ones")
    hostile.same("evil", "good", good)
    hostile.end()
    hostile.check()


def test_a_name_that_is_none_ends_the_listing(hostile):
    hostile.forge.add_repo("evil", "")
    hostile.add("evil")
    wait_for(lambda: hostile.key("evil", ".error") in hostile.keys("evil"), "the error of the account")
    assert hostile.error("evil")[0] == "protocol"
    hostile.end()


def test_names_of_accounts_that_leave_their_folder(hostile):
    """Each is refused, also beside a good one, and nothing is made of it."""
    hostile.add_repo("calm", "first", commits=1)
    hostile.add("calm")
    hostile.synced("calm")
    before = hostile.keys()
    for login in BAD_LOGINS:
        answer = hostile.server.request("POST", "/api/v1/archive/accounts", keys=hostile.server.keys, body=json.dumps(
            {"accounts": [hostile.host + "/" + login]}))
        assert 400 <= answer.status < 500, (login, answer)
    assert hostile.keys() == before


def test_refs_that_would_write_lines(hostile):
    """Names of refs with newlines and other bytes are left out; the rest is stored."""
    h = hostile
    repo = h.add_repo("evil", "refs", commits=2)
    tip = repo.git("rev-parse", "main").strip()
    bad = ["refs/heads/a\nPACK", "refs/heads/..", "refs/heads/a..b", "refs/heads/x.lock", "HEAD2", "refs/weir/1/was/x",
           "refs/heads/\x7f", "refs/heads/" + "x" * 2000, "refs/pull/1/merge", "../x"]

    def more(body):
        lines = b"".join(pkt(f"{tip} {name}") for name in bad)
        return body[:-4] + lines + FLUSH if not body.startswith(PACKFILE) and PACKFILE not in body else body

    h.git.answer(r"^/evil/refs\.git/git-upload-pack$", edit(more))
    h.add("evil")
    h.synced("evil")
    header = h.get("evil", "/refs.bundle").split(b"\n\nPACK")[0].decode().splitlines()
    assert header == ["# v2 git bundle", f"{tip} HEAD", f"{tip} refs/heads/main"]
    h.same("evil", "refs")
    h.end()


def test_trees_that_leave_the_folder_of_the_zip(hostile):
    h = hostile
    repo = h.add_repo("evil", "tree", commits=1)
    blob = bytes.fromhex(repo.git("hash-object", "-w", "--stdin", input=b"evil").strip())
    names = sorted([b"..", b".", b".git", b".GIT", b"a/b", b"..\\x", b"/abs", b"ok", b"C:\\x", b"good.txt"])
    tree = b"".join(b"100644 " + name + b"\0" + blob for name in names)
    oid = repo.git("hash-object", "-w", "-t", "tree", "--literally", "--stdin", input=tree).strip()
    commit = repo.git("commit-tree", oid, "-m", "x", input=b"").strip()
    repo.update(("refs/heads/main", commit))
    h.add("evil")
    wait_for(lambda: h.has("evil", "/tree.zip"), "the ZIP")
    found = zipfile.ZipFile(io.BytesIO(h.get("evil", "/tree.zip"))).namelist()
    for name in found:
        parts = re.split(r"[/\\]", name)
        assert parts[0] == "tree-main" and not {"..", ".", ".git", ".GIT"} & set(parts), name
    assert {"tree-main/ok", "tree-main/good.txt"} <= set(found)
    h.end()


# --- addresses and tokens ---

def test_redirects_of_git_servers(hostile, tmp_path):
    """Redirects to other hosts, ports and schemes are not followed, and a token is not sent after them."""
    h = hostile
    other = GitLab(tmp_path / "other")
    other.repo("evil/host", commits=1)
    query = "/evil/x.git/info/refs?service=git-upload-pack"
    places = {"port": f"{h.listener.url}{query}", "loopback": f"http://[::1]:{h.listener.port}{query}",
              "name": f"http://localhost:{h.listener.port}{query}", "meta": f"http://169.254.169.254{query}",
              "user": f"http://127.0.0.1:{h.git.port}@127.0.0.1:{h.listener.port}{query}", "file": "file:///etc/passwd",
              "host": f"{other.base}/evil/host.git/info/refs?service=git-upload-pack", "loop": None}
    for name, to in places.items():
        h.script(name, redirect(to if to else lambda path: path))
    h.script("post", real=True, post=redirect(h.listener.url + "/evil/post.git/git-upload-pack", 307))
    h.add("evil")
    codes = h.codes([*places, "post"])
    assert {codes[n] for n in ("port", "loopback", "name", "meta", "user", "host", "post")} == {"redirect"}, codes
    assert {codes["file"], codes["loop"]} == {"protocol"}, codes
    assert other.seen == []
    other.stop()
    h.end()


def test_clone_urls_and_links_stay_at_the_forge(hostile):
    """The forge's own answers name other places: clone URLs, the next page, the account's URL."""
    h = hostile
    good = h.add_repo("evil", "good", commits=2)
    for i, url in enumerate((f"{h.listener.url}/evil/x.git", f"http://localhost:{h.listener.port}/x.git", "file:///etc/passwd",
                             "http://169.254.169.254/latest.git", "ssh://git@127.0.0.1/x.git", "ext::sh -c touch", "")):
        h.forge.add_repo("evil", f"clone{i}", clone_url=url)
    h.add("evil")
    wait_for(lambda: h.has("evil", "/good.bundle"), "the good one")
    h.same("evil", "good", good)
    for target in (h.listener.url + "/users/evil/repos?page=2", "http://169.254.169.254/?page=2", "//127.0.0.1/", "file:///etc"):
        h.forge.answer(r"/repos$", make=lambda call, target=target: Answer(200, [], {"Link": f'<{target}>; rel="next"'}))
        h.run("sync", h.member("evil"), "--watch", status=1)
    h.forge.rules.clear()
    assert h.has("evil", "/good.bundle")
    h.end()


# --- forges ---

@pytest.mark.parametrize("hostile", [8], indirect=True)
def test_forges_without_end(hostile):
    """Each attack is an account of its own. The one that drips ends by the time of a request, which is tried again."""
    h = hostile
    pages = [0]

    def endless(call):
        pages[0] += 1
        return Answer(200, [], {"Link": f'<{h.forge.api}/users/endless/repos?page={pages[0] + 1}>; rel="next"'})

    attacks = {
        "loop": (lambda call: Answer(200, [], {"Link": f'<{h.forge.api}/users/loop/repos?page=1>; rel="next"'}), "protocol"),
        "endless": (endless, "protocol"),
        "page": (lambda call: Answer(200, b"[" + b'{"id":1},' * (3 * MIB) + b"{}]"), "protocol"),
        "deep": (lambda call: Answer(200, b"[" * 1_000_000), "protocol"),
        "cut": (lambda call: Answer(200, b'[{"id":1,"name":"x"}]', cut=9), "http-5xx"),
        "html": (lambda call: Answer(200, b"<html>", {"Content-Type": "text/html"}), "protocol"),
        "drip": (lambda call: Answer(200, b"[" + b" " * 4000 + b"]", drip=0.5), "timeout"),
        "strings": (lambda call: Answer(200, b'[{"id":1,"name":"' + b"x" * (8 * MIB) + b'"}]'), "protocol"),
        "redirect": (lambda call: Answer(302, b"", {"Location": h.listener.url + "/users/x/repos"}), "redirect"),
    }
    for login, (make, _) in attacks.items():
        h.forge.add_account(login)
        h.forge.answer(rf"/users/{login}/repos$", make=make)
    h.add(*attacks)
    for login, (_, code) in attacks.items():
        wait_for(lambda login=login: h.key(login, ".error") in h.keys(login), f"the error of {login}", 420)
        assert h.error(login)[0] == code, (login, h.error(login))
        assert not h.has(login, ".json")
    h.end()
