"""Fetching from git servers: the program git_fetch.c, which is the archive's transport with a file behind it, against `git
http-backend` and against servers that lie, stall and never end. Every bundle is cloned by the system's git."""
import functools
import json
import os
import re
import subprocess

import git_lab
import pytest
from conftest import BUILD, clean_env
from git_lab import (ADVERT_TYPE, DELIM, FLUSH, GitLab, Listener, assert_same, band, cut, edit, forever, git, in_pieces, pkt, raw,
                     redirect, status)

MIB = 1 << 20
RSS_MAX = 128 * MIB
OID = "1" * 40
PACKFILE = pkt("packfile\n")
V2 = pkt("version 2\n") + pkt("ls-refs=unborn\n") + pkt("fetch=shallow\n") + pkt("object-format=sha1\n") + FLUSH


@pytest.fixture
def lab(tmp_path):
    lab = GitLab(tmp_path / "git")
    yield lab
    lab.stop()


@pytest.fixture
def out(tmp_path):
    return tmp_path / "out.bundle"


def fetch(url, out, private=1, **options):
    """Runs git_fetch; the answer is its report. A report of a failure never leaves a bundle behind."""
    out.unlink(missing_ok=True)
    args = [f"{name}={value}" for name, value in options.items()] + (["private=1"] if private else [])
    done = subprocess.run([BUILD / "tests/git_fetch", url, out, *args], capture_output=True, text=True, timeout=110,
                          env=clean_env(no_proxy="*"))
    assert done.returncode == 0 and "Sanitizer" not in done.stderr, done.stderr
    report = json.loads(done.stdout.splitlines()[-1])
    assert report["rss"] <= RSS_MAX or sanitized()
    assert report["error"] == "" or not out.exists()
    assert report["ref_deltas"] == 0
    return report


@functools.cache
def sanitized():
    """Sanitizers multiply the memory of a process, which is then not judged."""
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    return any(o["name"] == "b_sanitize" and o["value"] != "none" for o in options)


def fails(report, code, words="", **more):
    assert report["error"] and report["code"] == code, report
    assert re.search(words, report["text"] + report["words"]), report
    for name, value in more.items():
        assert report[name] == value, report
    return report


def works(report):
    assert report["error"] == "" and report["code"] == "ok", report
    return report


def rich_repo(lab, name="octocat/rich", format="sha1", bitmaps=None):
    """Branches, tags of all kinds, notes, refs of pull requests, refs to a blob and a tree."""
    repo = lab.repo(name, format, commits=40)
    repo.commit(5, ref="refs/heads/topic/a")
    repo.git("tag", "-a", "v1", "-m", "first", "main")
    repo.git("tag", "-a", "v1-tag", "-m", "tag of a tag", "v1")
    repo.git("tag", "light", "main~3")
    repo.git("tag", "blob", repo.git("hash-object", "-w", "--stdin", input=b"blob").strip())
    repo.git("tag", "tree", "main^{tree}")
    repo.git("notes", "add", "-m", "a note", "main")
    repo.update(("refs/pull/1/head", repo.git("rev-parse", "main~1").strip()))
    if bitmaps is not None:
        repo.pack(bitmaps)
    return repo


# --- servers as they are ---

@pytest.mark.parametrize("bitmaps", [True, False])
@pytest.mark.parametrize("format", ["sha1", "sha256"])
@pytest.mark.parametrize("version", [0, 2])
def test_bundle_is_the_repository(lab, out, tmp_path, version, format, bitmaps):
    repo = rich_repo(lab, format=format, bitmaps=bitmaps)
    lab.v0_only = version == 0
    report = works(fetch(lab.url("octocat/rich"), out))
    assert report["v2"] == (version == 2) and report["refs"] == len(repo.refs())
    assert_same(out, repo, tmp_path / "copy")
    assert lab.connections == 1  # all requests went over one


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_have_what_is_there(lab, out, tmp_path, version, format):
    """With the tips of a bundle as haves the server sends what is new, and no thin pack."""
    repo = lab.repo("a/b", format, commits=200)
    lab.v0_only = version == 0
    works(fetch(lab.url("a/b"), out))
    whole, lab.bytes_out = lab.bytes_out, 0
    repo.commit(2)
    new = tmp_path / "new.bundle"
    report = works(fetch(lab.url("a/b"), new, old=out))
    assert 0 < report["objects"] < 40 and lab.bytes_out < whole / 5
    copy = git_lab.bundle_repo(out, tmp_path / "copy", format)
    text = new.read_bytes()
    copy.git("index-pack", "--stdin", input=text[text.index(b"\n\nPACK") + 2:])
    copy.update(*((line.split()[1], line.split()[0]) for line in repo.refs()))
    copy.git("fsck", "--strict")
    assert copy.objects() == repo.objects()


@pytest.mark.parametrize("version", [0, 2])
def test_with_and_without_preamble(lab, out, tmp_path, version):
    repo = lab.repo("a/b", commits=3)
    lab.v0_only = version == 0
    for lab.preamble in (True, False):
        works(fetch(lab.url("a/b"), out))
        assert_same(out, repo, tmp_path / f"copy-{lab.preamble}")


@pytest.mark.parametrize("version", [0, 2])
def test_pkt_split_at_every_byte(lab, out, tmp_path, version):
    """Each byte of every answer is a chunk of its own."""
    repo = rich_repo(lab)
    lab.v0_only = version == 0
    lab.answer("", in_pieces(1))
    works(fetch(lab.url("octocat/rich"), out))
    assert_same(out, repo, tmp_path / "copy")


def test_empty_repository_is_no_failure(lab, out):
    lab.repo("a/empty")
    for lab.v0_only in (True, False):
        report = works(fetch(lab.url("a/empty"), out))
        assert report["refs"] == 0 and report["fetches"] == 0


@pytest.mark.parametrize("format", ["sha1", "sha256"])
def test_depth_one_has_one_commit(lab, out, format):
    repo = lab.repo("a/b", format, commits=30, files=5)
    tree = {line.split()[2] for line in repo.git("ls-tree", "-rt", "main").splitlines()}
    for lab.v0_only in (True, False):
        report = works(fetch(lab.url("a/b"), out, depth=1))
        assert report["objects"] == len(tree) + 2  # the commit and its tree


def test_shallow_upstream_refused(lab, out):
    repo = lab.repo("a/deep", commits=10)
    git("clone", "-q", "--bare", "--depth=2", f"file://{repo.path}", lab.root / "a/shallow.git")
    for lab.v0_only in (True, False):
        fails(fetch(lab.url("a/shallow"), out), "protocol", "shallow")


def test_more_tips_than_one_request_takes(lab, out, tmp_path):
    """100,001 refs take two packs. git itself clones such a bundle in minutes, so its packs are indexed here."""
    repo = lab.repo("a/many")
    repo.refs_by_number(100_001)
    report = works(fetch(lab.url("a/many"), out))
    assert report["refs"] == 100_001 and report["fetches"] == 2
    bodies = [s.body for s in lab.seen if b"command=fetch" in s.body[:30]]
    assert [b.count(b"want ") for b in bodies] == [100_000, 1] and bodies[1].count(b"have ") == 20_000
    assert all(s.headers.get("Content-Encoding") == "gzip" for s in lab.seen if len(s.body) > 1024)
    header, _, pack = out.read_bytes().partition(b"\n\nPACK")
    assert header.decode().splitlines() == ["# v2 git bundle"] + (tmp_path / "git/a/many.git/packed-refs").read_text().splitlines()[1:-1]
    copy = git_lab.Repo(tmp_path / "copy")
    copy.git("index-pack", "--stdin", input=b"PACK" + pack)
    copy.git("index-pack", "--stdin", input=(tmp_path / "out.bundle.pack").read_bytes())
    (tmp_path / "copy/packed-refs").write_text((tmp_path / "git/a/many.git/packed-refs").read_text())
    copy.git("fsck", "--connectivity-only")
    assert len(copy.refs()) == 100_001


@pytest.mark.parametrize("version", [0, 2])
def test_not_our_ref_retry(lab, out, tmp_path, version):
    """The branch moves, and its old commit goes, between the list of refs and the fetch."""
    repo = lab.repo("a/b", commits=5)

    def move(call, answer):
        if b"want " in call.seen.body:
            lab.answer_as_usual()
            repo.update(("refs/heads/main", repo.git("rev-parse", "main~2").strip()))
            repo.pack(False)
            repo.git("prune", "--expire=now")
        return answer

    lab.v0_only = version == 0
    lab.answer("/git-upload-pack$", move)
    report = works(fetch(lab.url("a/b"), out))
    assert report["refreshes"] == 1
    assert_same(out, repo, tmp_path / "copy")


def test_ref_that_is_never_ours_ends(lab, out):
    lab.repo("a/b", commits=2)
    lab.answer("/git-upload-pack$", lambda call, answer: iter([pkt(f"ERR upload-pack: not our ref {OID}")])
               if b"want " in call.seen.body else answer)
    fails(fetch(lab.url("a/b"), out), "protocol", "not our ref", refreshes=3)
    assert lab.count("POST") == 8


def test_keepalive_0005(lab, out, tmp_path):
    """Keep-alives before and inside the pack are no bytes of it."""
    repo = lab.repo("a/b", commits=20)

    def alive(body):
        at = body.find(PACKFILE)
        return body if at < 0 else body[:at + len(PACKFILE)] + band(1) * 3 + body[at + len(PACKFILE):-4] + band(1) + FLUSH

    lab.answer("/git-upload-pack$", edit(alive))
    works(fetch(lab.url("a/b"), out))
    assert_same(out, repo, tmp_path / "copy")


def test_slow_upload_bounded_memory(lab, out, tmp_path):
    """A consumer that is slower than the server: memory stays, 16 MiB of it for the check of the pack."""
    repo = lab.repo("a/big", commits=8, files=4, bitmaps=True, content=lambda i: os.urandom(MIB))
    idle = works(fetch(lab.url("a/big"), out, depth=1, no_check=1))["rss"]
    report = works(fetch(lab.url("a/big"), out, pause_ms=2))
    assert report["bytes"] > 30 * MIB and (sanitized() or report["rss"] < idle + 24 * MIB)
    assert_same(out, repo, tmp_path / "copy")


# --- servers that refuse ---

@pytest.mark.parametrize("code, headers, body, outcome", [
    (401, {}, b"", "auth"), (403, {}, b"no", "auth"), (404, {}, b"Not Found", "gone"), (410, {}, b"", "gone"),
    (403, {"Retry_After": "90"}, b"", "rate"), (429, {"Retry_After": "7200"}, b"slow down", "rate"), (429, {}, b"", "rate"),
    (451, {}, b"", "dmca"), (451, {}, b'{"block":{"reason":"tos"}}', "tos"),
    (403, {}, b"Repository unavailable due to DMCA takedown.", "dmca"),
    (403, {}, b"Repository `x` is disabled.", "disabled"),
    (500, {}, b"", "http-5xx"), (502, {}, b"<html>", "http-5xx"), (503, {"Retry_After": "5"}, b"", "rate"),
    (503, {}, b"", "http-5xx"), (400, {}, b"", "protocol"), (204, {}, b"", "protocol"), (408, {}, b"", "timeout"),
])
@pytest.mark.parametrize("path", ["info/refs", "/git-upload-pack$"])
def test_refusals_have_their_codes(lab, out, path, code, headers, body, outcome):
    lab.repo("a/b", commits=1)
    lab.answer(path, status(code, body, **headers))
    report = fails(fetch(lab.url("a/b"), out), outcome, status=code)
    assert report["words"] == body.decode()
    assert report["retry_after"] == int(headers.get("Retry_After", -1))
    assert len(lab.seen) == (1 if path == "info/refs" else 2)  # nothing is tried again here


def test_sideband3_error(lab, out):
    lab.repo("a/b", commits=1)
    lab.answer("/git-upload-pack$", lambda call, answer: iter([PACKFILE + band(3, "the disk\x07 is on fire\n")])
               if b"want " in call.seen.body else answer)
    fails(fetch(lab.url("a/b"), out), "protocol", "the disk  is on fire")


def test_words_of_the_server_in_the_protocol(lab, out):
    lab.answer("info/refs", lambda call, answer: iter([pkt("ERR Repository unavailable due to DMCA takedown.\n")]))
    report = fails(fetch(lab.url("a/b"), out), "dmca")
    assert report["words"] == "Repository unavailable due to DMCA takedown."


def test_server_that_is_not_there(out, lab):
    fails(fetch("http://127.0.0.1:1/a/b.git", out), "http-5xx")
    fails(fetch("http://no-such-host.invalid/a/b.git", out), "http-5xx")
    fails(fetch("http://user:pass@127.0.0.1/a.git", out), "protocol")


def test_pages_for_people_are_not_git(lab, out):
    lab.answer("info/refs", lambda call, answer: status(200, b"<html>", Content_Type="text/html")(call, answer))
    fails(fetch(lab.url("a/b"), out), "protocol", "smart HTTP")


# --- redirects, addresses and tokens ---

def test_redirect_on_get_only(lab, out, tmp_path):
    repo = lab.repo("a/new", commits=3)
    lab.answer(r"^/a/old\.git", redirect(lambda path: path.replace("/old.git", "/new.git"), 301))
    report = works(fetch(lab.url("a/old"), out))
    assert report["url"] == lab.url("a/new")
    assert_same(out, repo, tmp_path / "copy")
    lab.reset()
    lab.answer("/git-upload-pack$", redirect(lab.url("a/new") + "/git-upload-pack", 307))
    fails(fetch(lab.url("a/new"), out), "redirect", status=307)


def test_redirects_stay_on_the_host_and_have_an_end(lab, out):
    lab.repo("a/b", commits=1)
    listener = Listener()
    for to in (f"{listener.url}/a/b.git/info/refs?service=git-upload-pack", f"{lab.base}/elsewhere", "file:///etc/passwd",
               f"http://user@127.0.0.1:{lab.port}/a/b.git/info/refs?service=git-upload-pack",
               f"http://127.0.0.1:{listener.port}@127.0.0.1:{listener.port}/info/refs?service=git-upload-pack",
               f"ftp://127.0.0.1:{listener.port}/"):
        lab.reset()
        lab.answer("info/refs", redirect(to), times=1)
        report = fetch(lab.url("a/b"), out)
        assert report["code"] in ("redirect", "gone", "protocol") and report["error"], (to, report)
    lab.reset()
    lab.answer("info/refs", redirect(lambda path: path))
    fails(fetch(lab.url("a/b"), out), "protocol", "redirects")
    assert lab.count("GET") == 4
    assert listener.arrived == []
    listener.stop()


def test_https_never_becomes_http(out, tmp_path):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", tmp_path / "key", "-out",
                    tmp_path / "cert", "-days", "1", "-subj", "/CN=x", "-addext", "subjectAltName=IP:127.0.0.1"], check=True,
                   capture_output=True)
    plain, tls = GitLab(tmp_path / "git"), GitLab(tmp_path / "git", tls=(tmp_path / "cert", tmp_path / "key"))
    tls.repo("a/b", commits=2)
    try:
        works(fetch(tls.url("a/b"), out, ca=tmp_path / "cert"))
        tls.answer("info/refs", redirect(lambda path: plain.base + path))
        fails(fetch(tls.url("a/b"), tmp_path / "no", ca=tmp_path / "cert", same_host=f"127.0.0.1:{plain.port}"), "redirect")
        assert plain.seen == []
        fails(fetch(tls.url("a/b"), tmp_path / "no"), "http-5xx", "certificate")
    finally:
        plain.stop()
        tls.stop()


def test_token_is_for_its_own_host(lab, out, tmp_path):
    """A redirect to another host that is configured is followed, without the token; so is what follows it."""
    other = GitLab(tmp_path / "other")
    repo = other.repo("a/b", commits=3)
    lab.repo("a/c", commits=1)
    lab.users = {"x-access-token": "s3cret-token"}
    try:
        fails(fetch(lab.url("a/c"), out), "auth", status=401)
        works(fetch(lab.url("a/c"), out, user="x-access-token", token="s3cret-token"))
        assert all("Authorization" in s.headers for s in lab.seen if s.sent > 20)
        lab.answer("info/refs", redirect(lambda path: other.base + path))
        report = works(fetch(lab.url("a/b"), out, user="x-access-token", token="s3cret-token",
                             same_host=f"127.0.0.1:{other.port}"))
        assert report["url"] == other.url("a/b")
        assert_same(out, repo, tmp_path / "copy")
        assert len(other.seen) == 3 and not any("Authorization" in s.headers for s in other.seen)
        assert "s3cret" not in str(other.seen)
    finally:
        other.stop()


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost", "[::1]", "0.0.0.0", "127.1", "2130706433", "[::ffff:127.0.0.1]"])
def test_forbidden_addresses_are_not_reached(out, host):
    listener = Listener("::1" if host == "[::1]" else "127.0.0.1")
    report = fetch(f"http://{host}:{listener.port}/a/b.git", out, private=0)
    assert report["error"] in ("DENIED", "PARSE") and report["code"] in ("redirect", "protocol"), report
    assert listener.arrived == []
    listener.stop()


# --- servers that lie, stall and never end ---

def v2_server(lab, answer, refs=f"{OID} refs/heads/main\n"):
    """A server without a repository: it lists a ref and answers a fetch by the script."""
    def post(call, body):
        if b"ls-refs" in call.seen.body:
            return iter([pkt(refs), FLUSH])
        return answer(call, body)
    lab.answer("info/refs", lambda call, body: iter([V2]))
    lab.answer("/git-upload-pack$", post)


@pytest.mark.parametrize("pause", [0, 0.05])
def test_keepalives_without_end(lab, out, pause):
    v2_server(lab, forever(PACKFILE, band(1) * (1 if pause else 1000), pause))
    fails(fetch(lab.url("a/b"), out, pack_idle_ms=1500, slow_ms=300), "timeout", "no byte of the pack")


def test_words_without_end(lab, out):
    v2_server(lab, forever(PACKFILE, band(2, b"Counting objects\r" * 3000)))
    fails(fetch(lab.url("a/b"), out), "protocol", "words without end")
    assert lab.bytes_out < 80 * MIB


def test_slow_words_count_as_no_byte_of_the_pack(lab, out):
    v2_server(lab, forever(PACKFILE, band(2, b"x"), 0.05))
    fails(fetch(lab.url("a/b"), out, pack_idle_ms=1500), "timeout", "no byte of the pack")


@pytest.mark.parametrize("line", [b"acknowledgments\n", b"wanted-refs\n", b"ACK " + OID.encode()])
def test_lines_without_end(lab, out, line):
    v2_server(lab, forever(b"", pkt(line) * 1000))
    fails(fetch(lab.url("a/b"), out), "protocol", "without end")


def numbered(count, name=b"refs/heads/%0*d", width=12):
    """Pieces of a list of refs, each different from the others."""
    at = 0
    while at < count:
        yield b"".join(pkt(OID.encode() + b" " + name % (width, i) + b"\n") for i in range(at, at + 5000))
        at += 5000


@pytest.mark.parametrize("width", [12, 900])
@pytest.mark.parametrize("version", [0, 2])
def test_refs_without_end(lab, out, version, width):
    """The list ends by the limit of its memory, and the process stays below its own."""
    first = pkt(f"{OID} HEAD\0side-band-64k ofs-delta\n") if version == 0 else b""

    def refs(call, body):
        call.head(200, {"Content-Type": git_lab.RESULT_TYPE if version else ADVERT_TYPE})
        call.piece(first)
        for piece in numbered(10_000_000, width=width):
            call.piece(piece)

    lab.answer("info/refs", refs if version == 0 else lambda call, body: iter([V2]))
    lab.answer("/git-upload-pack$", refs)
    fails(fetch(lab.url("a/b"), out), "protocol", "refs")


@pytest.mark.parametrize("line", [b"x" * 60000, OID.encode() + b" refs/pull/7/merge\n", OID.encode() + b" refs/heads/a^{}\n"])
def test_lists_of_what_is_not_kept_without_end(lab, out, line):
    lab.answer("info/refs", forever(pkt(f"{OID} HEAD\0side-band-64k\n"), pkt(line) * (1 if len(line) > 1000 else 2000)))
    fails(fetch(lab.url("a/b"), out), "protocol")
    assert lab.bytes_out < 600 * MIB


def test_capabilities_without_end(lab, out):
    lab.answer("info/refs", forever(pkt("version 2\n"), pkt("x=y\n") * 1000))
    fails(fetch(lab.url("a/b"), out), "protocol", "capabilities")


@pytest.mark.parametrize("bytes_", [b"0003", b"fff1", b"zzzz", b"-001", b"00", b"0009ab", b"\0\0\0\0", b"0004", b"0001"])
def test_lying_lengths(lab, out, bytes_):
    lab.answer("info/refs", lambda call, body: iter([bytes_]))
    fails(fetch(lab.url("a/b"), out), "protocol")
    v2_server(lab, lambda call, body: iter([PACKFILE + bytes_]))
    fails(fetch(lab.url("a/b"), out), "protocol")


def test_answer_that_is_no_http(lab, out):
    for text in (b"SSH-2.0-x\r\n", b"HTTP/1.1 200 OK\r\n" + b"A: b\r\n" * 200 + b"\r\n", b"\0" * 1000,
                 b"HTTP/1.1 100 Continue\r\n\r\n" * 20000):
        lab.answer("info/refs", raw(text))
        fails(fetch(lab.url("a/b"), out), "protocol")
    lab.answer("info/refs", raw(b""))
    fails(fetch(lab.url("a/b"), out), "http-5xx")


@pytest.mark.parametrize("path, where", [("info/refs", "head"), ("/git-upload-pack$", "head"), ("/git-upload-pack$", "body")])
def test_silence(lab, out, path, where):
    lab.repo("a/b", commits=1)

    def mute(call, body):
        if where == "body":
            if b"want " not in call.seen.body:
                return body
            call.head(200, {"Content-Type": git_lab.RESULT_TYPE})
            call.piece(PACKFILE)
        call.wait(600)
        return None

    lab.answer(path, mute)
    fails(fetch(lab.url("a/b"), out, idle_ms=700), "timeout", "nothing for 700 ms")


def test_one_byte_at_a_time_is_too_slow(lab, out):
    lab.repo("a/b", commits=50)
    lab.answer("info/refs", in_pieces(1, 0.02))
    fails(fetch(lab.url("a/b"), out, slow_ms=600, slow_bytes_per_s=1024), "timeout", "less than 1024 bytes/s")
    lab.reset()
    lab.answer("/git-upload-pack$", in_pieces(1, 0.02))
    fails(fetch(lab.url("a/b"), out, slow_ms=600, slow_bytes_per_s=1024), "timeout", "less than 1024 bytes/s")
    lab.reset()  # a pack that begins at once, and then drips
    v2_server(lab, forever(PACKFILE + band(1, b"PACK"), band(1, b"x"), 0.02))
    fails(fetch(lab.url("a/b"), out, no_check=1, slow_ms=600, slow_bytes_per_s=1024), "timeout", "less than 1024 bytes/s")


def test_server_that_thinks_before_the_pack_is_waited_for(lab, out, tmp_path):
    """Keep-alives for longer than the window of the limit of speed, then the pack."""
    repo = lab.repo("a/b", commits=5)

    def think(call, answer):
        whole = b"".join(answer)
        at = whole.find(PACKFILE) + len(PACKFILE)
        if at < len(PACKFILE):
            yield whole
            return
        yield whole[:at]
        for _ in range(80):
            yield band(1)
            call.wait(0.05)
        yield whole[at:]

    lab.answer("/git-upload-pack$", think)
    works(fetch(lab.url("a/b"), out, slow_ms=3000, slow_bytes_per_s=1024, pack_idle_ms=30_000))
    assert_same(out, repo, tmp_path / "copy")


def test_whole_time_is_limited(lab, out):
    v2_server(lab, forever(PACKFILE + band(1, b"PACK"), band(1, b"x" * 1000), 0.01))
    fails(fetch(lab.url("a/b"), out, no_check=1, total_ms=1500), "timeout", "longer than")


def test_pack_without_end_is_too_big(lab, out):
    v2_server(lab, forever(PACKFILE + band(1, b"PACK"), band(1, b"x" * 60000)))
    fails(fetch(lab.url("a/b"), out, no_check=1, pack_max=100 * MIB), "too-big", "104857600")


@pytest.mark.parametrize("reset", [False, True])
def test_interrupted_transfer_leaves_no_object(lab, out, reset):
    repo = lab.repo("a/b", commits=30)
    works(fetch(lab.url("a/b"), out))
    out.unlink()
    whole = max(s.sent for s in lab.seen)
    for after in (0, 1, 5, 13, 14, 100, whole // 2, whole - 5, whole - 1):
        lab.reset()
        lab.answer("/git-upload-pack$", lambda call, answer, after=after: cut(after, reset)(call, answer)
                   if b"want " in call.seen.body else answer)
        fails(fetch(lab.url("a/b"), out), "http-5xx")
    lab.reset()
    for after in (0, 3, 20):
        lab.answer("info/refs", cut(after, reset))
        fails(fetch(lab.url("a/b"), out), "http-5xx")
    assert repo


def damaged(lab, out, change, code, words, **options):
    lab.reset()
    lab.answer("/git-upload-pack$", edit(lambda body: change(body) if PACKFILE in body else body))
    return fails(fetch(lab.url("a/b"), out, **options), code, words)


def test_missing_final_flush(lab, out):
    lab.repo("a/b", commits=5)
    damaged(lab, out, lambda body: body[:-4], "protocol", "ended before its last packet")
    damaged(lab, out, lambda body: body[:-2], "protocol", "inside a packet")


def test_bytes_after_trailer(lab, out):
    lab.repo("a/b", commits=5)
    damaged(lab, out, lambda body: body + b"x", "protocol", "behind its last packet")
    damaged(lab, out, lambda body: body + FLUSH, "protocol", "behind its last packet")
    damaged(lab, out, lambda body: body[:-4] + band(1, b"x") + FLUSH, "corrupt", "")


def test_corrupt_pack_trailer_and_body(lab, out):
    """What the transport hands over is what the server sent; the check of the pack finds the rest."""
    lab.repo("a/b", commits=5)

    def flip(body, at):
        return body[:at] + bytes([body[at] ^ 1]) + body[at + 1:]

    damaged(lab, out, lambda body: flip(body, len(body) - 5), "corrupt", "")
    damaged(lab, out, lambda body: flip(body, body.index(b"PACK") + 60), "corrupt", "")


def test_delimiter_and_foreign_bands_in_the_pack(lab, out):
    lab.repo("a/b", commits=5)
    damaged(lab, out, lambda body: body[:-4] + DELIM + FLUSH, "protocol", "without a band")
    damaged(lab, out, lambda body: body[:-4] + band(7, b"x") + FLUSH, "protocol", "band 7")
