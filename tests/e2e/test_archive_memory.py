"""The memory of the archive: lists just below their limits, at several runners at once, take at most 128 MB in all."""
import functools
import hashlib
import json
import struct
import zlib

import pytest
from conftest import wait_for
from forge_lab import Answer
from git_lab import FLUSH, band, pkt, status
from hostile_lab import MIB, PACKFILE, RSS_MAX, V2, Hostile, sanitized

ACCOUNTS = ["evil0", "evil1", "evil2", "evil3"]     # as many as a process works on at once
SECONDS = 900       # the large lists are worked on one after another
REFS = 400_000      # names of 22 bytes; 403,298 take 20 MiB
CHANGED = 120_000   # 125,000 lines of history and the refs take 28 MiB


@pytest.fixture
def lab(tmp_path, serve, weir):
    made = []

    def make(options="", **more):
        text = "".join(f"    {name}\n" for name in options.split(", ") if name)
        made.append(Hostile(tmp_path, serve, weir, timeout=SECONDS, max_pack="1GiB", options=text, **more))
        return made[-1]
    yield make
    for one in made:
        one.close()
        one.listener.stop()


def stays_small(h):
    peak = h.peak()
    print(f"peak of memory: {peak / 1e6:.0f} MB")
    assert peak <= RSS_MAX or sanitized(), f"{peak / 1e6:.0f} MB"
    assert h.uploads() == []


def serve_repo(h, login, name, refs, pack):
    """A git server whose repository has the refs and sends the pack; both are functions, so that they may change."""
    if login not in h.forge.accounts:
        h.forge.add_account(login)
    h.forge.add_repo(login, name)

    def post(call, body):
        if b"ls-refs" in call.seen.body:
            return pieces(refs() + FLUSH)
        return iter([PACKFILE, *banded(pack()), FLUSH])
    h.git.answer(rf"^/{login}/{name}\.git/info/refs", lambda call, body: iter([V2]))
    h.git.answer(rf"^/{login}/{name}\.git/git-upload-pack$", post)


def pieces(data, size=MIB):
    for at in range(0, len(data), size):
        yield data[at:at + size]


def banded(pack):
    for piece in pieces(pack, 65000):
        yield band(1, piece)


# --- packs that are made here ---

@functools.cache
def made(kind, data):
    """An object: its id, and its entry in a pack."""
    number = {"commit": 1, "tree": 2, "blob": 3}[kind]
    oid = hashlib.sha1(b"%s %d\0" % (kind.encode(), len(data)) + data).digest()
    size = len(data)
    head, size = bytearray([number << 4 | size & 15]), size >> 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return oid, bytes(head) + zlib.compress(data, 1)


def pack_of(entries):
    body = b"PACK" + struct.pack(">II", 2, len(entries)) + b"".join(entries)
    return body + hashlib.sha1(body).digest()


def commit(tree):
    return made("commit", b"tree %s\nauthor A <a@example> 1700000000 +0000\ncommitter A <a@example> 1700000000 +0000\n\nx\n"
                % tree.hex().encode())


def many_files(count, content, folders=10):
    """A pack of a commit with so many different files. Returns the id of the commit and the pack."""
    entries, top = [], b""
    for f in range(folders):
        tree = []
        for i in range(count // folders):
            oid, entry = made.__wrapped__("blob", content(f * (count // folders) + i))
            entries.append(entry)
            tree.append(b"100644 %06d\0" % i + oid)
        oid, entry = made("tree", b"".join(tree))
        entries.append(entry)
        top += b"40000 f%02d\0" % f + oid
    oid, entry = made("tree", top)
    entries.append(entry)
    tip, entry = commit(oid)
    return tip.hex(), pack_of([*entries, entry])


# --- refs and headers ---

def test_lists_of_refs_and_histories(lab):
    """First 400,000 refs at each of eight repositories, and then 120,000 of them change."""
    h = lab("zip: false")
    tree, tree_entry = made("tree", b"")
    one, one_entry = commit(tree)
    two, two_entry = made("commit", b"tree %s\nparent %s\nauthor A <a@example> 1700000001 +0000\n"
                                    b"committer A <a@example> 1700000001 +0000\n\ny\n" % (tree.hex().encode(),
                                                                                         one.hex().encode()))
    packs = [pack_of([tree_entry, one_entry]), pack_of([two_entry])]

    def lines(changed):
        return b"".join(b"0044%s refs/heads/r%010d\n" % ((two if i < changed else one).hex().encode(), i) for i in range(REFS))
    lists, stage = [lines(0), lines(CHANGED)], [0]
    names = [(login, name) for login in ACCOUNTS for name in ("a", "b")]
    for login, name in names:
        serve_repo(h, login, name, lambda: lists[stage[0]], lambda: packs[stage[0]])
    h.add(*ACCOUNTS)
    for login in ACCOUNTS:
        wait_for(lambda login=login: h.account(login)["last_sync"], f"the sync of {login}", SECONDS)
    stays_small(h)
    stage[0] = 1
    for login in ACCOUNTS:
        for name in "ab":
            h.push(login, name)
    first = {login: h.account(login)["last_sync"] for login in ACCOUNTS}
    for login in ACCOUNTS:
        h.run("priority", h.member(login))
    for login in ACCOUNTS:
        wait_for(lambda login=login: h.account(login)["last_sync"] != first[login], f"the second sync of {login}", SECONDS)
    stays_small(h)
    for login, name in names:
        header = h.get(login, f"/{name}.bundle").split(b"\n\n", 1)[0].split(b"\n")
        assert len(header) == 1 + REFS + CHANGED, (login, name, len(header))
        assert sum(b" refs/weir/" in line for line in header[-CHANGED:]) == CHANGED


# --- trees ---

def test_trees_of_a_million_objects(lab):
    """ZIP files of four repositories, each with 990,000 objects, are made at the same time."""
    h = lab()
    tip, pack = many_files(989_900, lambda i: b"%d" % i)
    made.cache_clear()
    for login in ACCOUNTS[:2]:
        for name in "ab":
            serve_repo(h, login, name, lambda: pkt(f"{tip} HEAD symref-target:refs/heads/main\n") +
                       pkt(f"{tip} refs/heads/main\n"), lambda: pack)
    h.add(*ACCOUNTS[:2])
    for login in ACCOUNTS[:2]:
        wait_for(lambda login=login: h.account(login)["last_sync"], f"the sync of {login}", SECONDS)
        assert {"a.zip", "b.zip"} <= {k.split("/")[-1] for k in h.keys(login)}
    stays_small(h)


def test_lfs_objects_of_a_large_tree(lab):
    """Two repositories with 199,000 LFS pointers each; the server does not have the objects."""
    h = lab("zip: false, lfs: true")
    tip, pack = many_files(199_000, lambda i: b"version https://git-lfs.github.com/spec/v1\noid sha256:%064x\nsize 1\n" % i)
    made.cache_clear()
    asked = [0]

    def batch(call, answer):
        objects = json.loads(call.seen.body)["objects"]
        asked[0] += len(objects)
        status(200, json.dumps({"objects": [{"oid": o["oid"], "error": {"code": 404}} for o in objects]}).encode())(call, answer)
    for login in ACCOUNTS[:2]:
        serve_repo(h, login, "a", lambda: pkt(f"{tip} HEAD symref-target:refs/heads/main\n") +
                   pkt(f"{tip} refs/heads/main\n"), lambda: pack)
    h.git.answer(r"/info/lfs/objects/batch$", batch)
    h.add(*ACCOUNTS[:2])
    for login in ACCOUNTS[:2]:
        wait_for(lambda login=login: h.account(login)["last_sync"], f"the sync of {login}", SECONDS)
    assert asked[0] == 2 * 199_000
    stays_small(h)


# --- pages ---

def test_pages_of_forges(lab):
    """Lists of repositories and of issues in pages of almost 16 MiB, at sixteen repositories at once."""
    h = lab("zip: false, issues: true")
    filler = b'{"id":1,"updated_at":"2026-01-01T00:00:00Z","body":"' + b"x" * (MIB - 200) + b'"}'
    page = b"[" + b",".join([filler] * 15) + b"]"
    pad = b" " * (15 * MIB)
    for login in ACCOUNTS:
        for name in "abcd":
            h.add_repo(login, name, commits=1)
            h.forge.answer(rf"/repos/{login}/{name}/issues$", make=lambda call: Answer(200, page))
        usual = json.dumps([{"id": r["id"], "name": r["name"], "full_name": f"{login}/{r['name']}",
                             "owner": {"login": login, "id": 1}, "clone_url": h.git.url(f"{login}/{r['name']}"),
                             "pushed_at": "2026-01-01T00:00:00Z", "size": 1}
                            for r in (h.forge.find_repo(login, n) for n in "abcd")]).encode()
        h.forge.answer(rf"/users/{login}/repos$", make=lambda call, usual=usual: Answer(200, pad + usual))
    h.add(*ACCOUNTS)
    for login in ACCOUNTS:
        wait_for(lambda login=login: h.account(login)["last_sync"], f"the sync of {login}", SECONDS)
        assert h.head(login, "/a@issues.ndjson")["ContentLength"] > 15 * (MIB - 200)
    stays_small(h)
