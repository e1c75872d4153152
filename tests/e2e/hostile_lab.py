"""Hostile forges and git servers for tests: an archive beside a listener at which nothing may arrive.

    lab = Hostile(tmp_path, serve, weir)
    lab.script("x", info=redirect(lab.listener.url))     # a repository of `evil`, whose server answers by a script
    lab.add("evil")
    assert lab.codes(["x"]) == {"x": "redirect"}
    lab.end()                                            # what holds after every attack
"""
import functools
import hashlib
import json
import re
import struct
import zlib

from archive_lab import Archive
from conftest import BUILD, wait_for
from git_lab import FLUSH, Listener, band, pkt

MIB = 1 << 20
RSS_MAX = 128 * 1000 * 1000
OID = "1" * 40
PACKFILE = pkt("packfile\n")
V2 = pkt("version 2\n") + pkt("ls-refs=unborn\n") + pkt("fetch=shallow\n") + pkt("object-format=sha1\n") + FLUSH
# Seconds for a whole repository, because nobody waits for the 15 minutes in which a server may send no byte of a pack.
TIMEOUT = 25
# The keys that an account may have, behind the folders of its hash.
KEYS = (r"[a-z0-9._-]+(\.(json|new|error)|/@gists/[A-Za-z0-9_-]+\.(bundle|error)|/[A-Za-z0-9._-]+("
        r"(@[a-z]+)?\.(bundle|zip|error|ndjson)|@assets/[A-Za-z0-9_-]+/[A-Za-z0-9._+-]+|@lfs/[0-9a-f/]+))")


@functools.cache
def sanitized():
    """Sanitizers multiply the memory of a process, which is then not judged."""
    options = json.loads((BUILD / "meson-info/intro-buildoptions.json").read_text())
    return any(o["name"] == "b_sanitize" and o["value"] != "none" for o in options)


class Hostile(Archive):
    def __init__(self, *args, timeout=TIMEOUT, max_pack="16MiB", **more):
        super().__init__(*args, args=[f"--archive.timeout={timeout}s", f"--archive.max_pack={max_pack}"], **more)
        self.listener = Listener()
        self.forge.add_account("evil")

    def peak(self):
        """The most memory that the process ever had, in bytes."""
        with open(f"/proc/{self.server.process.pid}/status") as f:
            return int(re.search(r"VmHWM:\s+(\d+)", f.read()).group(1)) * 1024

    def script(self, name, info=None, post=None, real=False):
        """A repository of evil whose git server answers by scripts."""
        if real:
            self.add_repo("evil", name)
        else:
            self.forge.add_repo("evil", name)
        if info:
            self.git.answer(rf"^/evil/{name}\.git/info/refs", info)
        if post:
            self.git.answer(rf"^/evil/{name}\.git/git-upload-pack$", post)

    def v2(self, name, answer, refs=(f"{OID} refs/heads/main\n",)):
        """A server without a repository: it lists refs, and answers a fetch by a script."""
        def post(call, body):
            if b"ls-refs" in call.seen.body:
                return iter([*map(pkt, refs), FLUSH])
            return answer(call, body)
        self.script(name, lambda call, body: iter([V2]), post)

    def sends(self, name, pack):
        """A server that sends these bytes as its pack."""
        self.v2(name, lambda call, body: iter([PACKFILE, *(band(1, pack[i:i + 60000]) for i in range(0, len(pack), 60000)),
                                               FLUSH]))

    def codes(self, names, seconds=110):
        """Waits until every repository has its `.error`, and returns the codes."""
        want = {self.key("evil", f"/{name}.error") for name in names}
        wait_for(lambda: want <= set(self.keys("evil")), f"errors of {sorted(names)}", seconds)
        return {name: self.error("evil", name)[0] for name in names}

    def end(self):
        """What holds after every attack."""
        peak = self.peak()
        print(f"peak of memory: {peak / 1e6:.0f} MB")
        assert peak <= RSS_MAX or sanitized(), f"{peak / 1e6:.0f} MB"
        assert self.listener.arrived == []
        for key in self.keys():
            assert re.fullmatch("([0-9a-f]{2}/){4}" + KEYS, key) and "/../" not in key, key
        assert self.uploads() == []
        self.add_repo("calm", "after", commits=2)   # the runners are free for others
        self.add("calm")
        self.synced("calm")
        self.same("calm", "after")


# --- packs ---

def entry(kind, data, size=None, delta=b""):
    """An entry of a pack that says it has `size` bytes."""
    size = len(data) if size is None else size
    head, size = bytearray([kind << 4 | size & 15]), size >> 4
    while size:
        head[-1] |= 128
        head.append(size & 127)
        size >>= 7
    return bytes(head) + delta + zlib.compress(data)


def pack(*entries, count=None, version=2, trailer=None):
    body = b"PACK" + struct.pack(">II", version, len(entries) if count is None else count) + b"".join(entries)
    return body + (hashlib.sha1(body).digest() if trailer is None else trailer)
