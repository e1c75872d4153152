"""ZIP files of the archive, made from packs of real git, read by unzip, bsdtar and Python. The files, links, modes and
times must be those of `git ls-tree -r`."""
import hashlib
import os
import re
import stat
import subprocess
import zipfile
import zlib

import pytest

from conftest import BUILD, clean_env

TIME = 1700000000
ENV = clean_env(GIT_AUTHOR_NAME="a", GIT_AUTHOR_EMAIL="a@x", GIT_COMMITTER_NAME="c", GIT_COMMITTER_EMAIL="c@x",
                GIT_AUTHOR_DATE=f"{TIME} +0200", GIT_COMMITTER_DATE=f"{TIME} +0200", GIT_CONFIG_GLOBAL="/dev/null",
                GIT_CONFIG_NOSYSTEM="1", LC_ALL="C.UTF-8", HOME="/nonexistent")


def run(*command, cwd=None, data=None):
    done = subprocess.run(command, cwd=cwd, input=data, env=ENV, capture_output=True, check=False)
    assert done.returncode == 0, (command, done.stderr[-2000:])
    return done.stdout


class Repo:
    """A repository in which files are written straight into the index."""

    def __init__(self, folder, sha256=False):
        self.folder, self.sha256 = folder, sha256
        run("git", "init", "-q", "--bare", f"--object-format={'sha256' if sha256 else 'sha1'}", str(folder))
        self.entries = []

    def git(self, *args, data=None):
        return run("git", "-C", str(self.folder), *args, data=data)

    def blob(self, data):
        return self.git("hash-object", "-w", "--stdin", "--literally", data=data).decode().strip()

    def add(self, path, data, mode="100644"):
        path = path.encode() if isinstance(path, str) else path
        self.entries.append((mode, data if mode == "160000" else self.blob(data), path))

    def commit(self):
        self.git("read-tree", "--empty")
        lines = b"".join(f"{mode} {oid}\t".encode() + path + b"\0" for mode, oid, path in self.entries)
        self.git("update-index", "-z", "--index-info", data=lines)
        tree = self.git("write-tree").decode().strip()
        self.tip = self.git("commit-tree", tree, "-m", "m").decode().strip()
        self.git("update-ref", "refs/heads/main", self.tip)
        return self

    def pack(self, *options):
        objects = self.git("rev-list", "--objects", "-1", self.tip)
        return self.git("pack-objects", "--stdout", "-q", *options, data=objects)

    def tree(self):
        """path: (mode, bytes), without submodules; and the paths of submodules."""
        files, submodules = {}, set()
        for row in self.git("ls-tree", "-r", "-z", self.tip).split(b"\0")[:-1]:
            head, path = row.split(b"\t", 1)
            mode, _, oid = head.decode().split()
            if mode == "160000":
                submodules.add(path)
            else:
                files[path] = (mode, oid)
        ids = list({oid for _, oid in files.values()})
        data, at, contents = self.git("cat-file", "--batch", data="\n".join(ids).encode() + b"\n"), 0, {}
        for oid in ids:
            end = data.index(b"\n", at)
            size = int(data[at:end].split()[2])
            contents[oid] = data[end + 1:end + 1 + size]
            at = end + size + 2
        return {path: (mode, contents[oid]) for path, (mode, oid) in files.items()}, submodules


def make_zip(repo, pack, path, branch="main"):
    with open(path, "wb") as out:
        done = subprocess.run([BUILD / "tests/bench/bench_zip", repo.tip, "Hello-World", branch, path.parent],
                              input=pack, stdout=out, stderr=subprocess.PIPE, check=False)
    return done.returncode, done.stderr.decode()


def made(repo, tmp_path, *options):
    path = tmp_path / "made.zip"
    status, said = make_zip(repo, repo.pack(*options), path)
    assert status == 0, said
    assert not [name for name in os.listdir(tmp_path) if name.startswith("scratch-")]
    return path


def by_python(path):
    """path: (mode, bytes) as zipfile reads it, and the folders."""
    files, folders = {}, set()
    with zipfile.ZipFile(path) as z:
        assert z.testzip() is None
        for info in z.infolist():
            name = info.filename.encode() if info.flag_bits & 0x800 else info.filename.encode("cp437")
            mode = info.external_attr >> 16
            top, _, rest = name.partition(b"/")
            assert top == b"Hello-World-main"
            assert info.date_time == (2023, 11, 14, 22, 13, 20)
            if name.endswith(b"/"):
                assert stat.S_ISDIR(mode)
                folders.add(rest[:-1])
            else:
                files[rest] = (mode, z.read(info))
    return files, folders


MODES = {"100644": 0o100644, "100755": 0o100755, "120000": 0o120777}


def unpacked(folder):
    """The same of a folder that a program has unpacked."""
    top, files, folders = os.path.join(os.fsencode(folder), b"Hello-World-main"), {}, set()
    for parent, names, leaves in os.walk(top):
        for name in names + leaves:
            path = os.path.join(parent, name)
            where = os.path.relpath(path, top)
            if os.path.islink(path):
                files[where] = ("120000", os.readlink(path))
            elif os.path.isdir(path):
                folders.add(where)
            else:
                mode = "100755" if os.stat(path).st_mode & 0o100 else "100644"
                assert int(os.stat(path).st_mtime) == TIME
                with open(path, "rb") as f:
                    files[where] = (mode, f.read())
    return files, folders


def check(repo, path, programs=("unzip", "bsdtar")):
    want, submodules = repo.tree()
    files, folders = by_python(path)
    assert files == {name: (MODES[mode], data) for name, (mode, data) in want.items()}
    assert submodules <= folders
    parents = {name.rsplit(b"/", n)[0] for name in [*want, *submodules] for n in range(1, name.count(b"/") + 1)}
    assert folders - {b""} == parents | submodules
    for program in programs:
        out = path.parent / f"by_{program}"
        out.mkdir()
        if program == "unzip":
            run("unzip", "-q", str(path), "-d", str(out))
        else:
            run("bsdtar", "-x", "-p", "-f", str(path), "-C", str(out))
        files, folders = unpacked(out)
        assert files == want
        assert submodules <= folders
    with zipfile.ZipFile(path) as z:
        assert z.comment.decode() == repo.tip


def is_delta_pack(repo, tmp_path, *options):
    """Whether the pack has deltas, as git says."""
    other = Repo(tmp_path / "other.git", repo.sha256)
    name = run("git", "-C", str(other.folder), "index-pack", "--stdin", data=repo.pack(*options)).decode().split()[1]
    return b"chain length" in other.git("verify-pack", "-v", f"objects/pack/pack-{name}.idx")


@pytest.mark.parametrize("sha256", [False, True], ids=["sha1", "sha256"])
@pytest.mark.parametrize("deltas", [("--delta-base-offset",), (), ("--window=0",)], ids=["ofs", "ref", "whole"])
def test_a_zip_equals_the_tree(tmp_path, sha256, deltas):
    repo = Repo(tmp_path / "r.git", sha256)
    base = os.urandom(3000).hex()
    for i in range(60):  # similar files, which git stores as deltas of each other, also in chains
        repo.add(f"dir{i % 7}/sub/file{i}.txt", (base[:i * 20] + f"line {i}\n" + base[i * 20:]).encode())
    repo.add("empty", b"")
    repo.add("big.bin", os.urandom(300000) + bytes(2000000))
    repo.add("a", b"file a")  # a, a-b and the folder a.b come in git's own order
    repo.add("a-b", b"file a-b")
    repo.add("a.b/c", b"x" * 100)
    repo.commit()
    assert is_delta_pack(repo, tmp_path, *deltas) == ("--window=0" not in deltas)
    check(repo, made(repo, tmp_path, *deltas))


def test_symlink_exec_zip(tmp_path):
    repo = Repo(tmp_path / "r.git")
    repo.add("run.sh", b"#!/bin/sh\n", "100755")
    repo.add("plain", b"plain")
    repo.add("link", b"plain", "120000")
    repo.add("dir/up", b"../run.sh", "120000")
    repo.add("dir/none", b"nowhere", "120000")
    repo.commit()
    check(repo, made(repo, tmp_path))


def test_submodules_zip(tmp_path):
    repo = Repo(tmp_path / "r.git")
    repo.add(".gitmodules", b'[submodule "lib"]\n\tpath = lib\n\turl = https://example.com/x\n')
    repo.add("lib", "1" * 40, "160000")
    repo.add("deep/in/lib2", "2" * 40, "160000")
    repo.add("file", b"x")
    repo.commit()
    check(repo, made(repo, tmp_path))


def test_non_utf8_paths(tmp_path):
    repo = Repo(tmp_path / "r.git")
    repo.add("zwölf Boxkämpfer/日本語.txt", "日本".encode())
    repo.add(b"latin-\xe4\xf6\xfc", b"latin1")
    repo.add("-rf", b"x")
    repo.add("a b\\c", b"a backslash")
    repo.add("new\nline", b"n")
    repo.commit()
    path = made(repo, tmp_path)
    want, _ = repo.tree()
    files, _ = by_python(path)
    assert files == {name: (MODES[mode], data) for name, (mode, data) in want.items()}
    with zipfile.ZipFile(path) as z:
        flags = {info.filename: info.flag_bits & 0x800 for info in z.infolist()}
    assert flags["Hello-World-main/zwölf Boxkämpfer/日本語.txt"] and not flags["Hello-World-main/-rf"]


def test_zip64_of_many_files(tmp_path):
    repo = Repo(tmp_path / "r.git")
    blob = repo.blob(b"the same\n")
    repo.entries = [("100644", blob, f"d{i % 100}/f{i}".encode()) for i in range(70000)]
    repo.commit()
    path = made(repo, tmp_path)
    with zipfile.ZipFile(path) as z:
        assert len(z.infolist()) == 70000 + 100 + 1
        assert sum(info.file_size for info in z.infolist()) == 70000 * 9
    names = run("unzip", "-Z1", str(path)).decode().split()
    assert len(names) == 70101 and "Hello-World-main/d99/f69999" in names
    assert run("bsdtar", "-tf", str(path)).count(b"\n") == 70101


def test_the_same_tree_gives_the_same_entries(tmp_path):
    repo = Repo(tmp_path / "r.git")
    for i in range(40):
        repo.add(f"f{i}", b"some text that repeats\n" * 50 + b"%d" % i)
    repo.commit()
    lists = []
    for options in (("--window=0", "--compression=9"), ("--delta-base-offset", "--compression=1"), ()):
        with zipfile.ZipFile(made(repo, tmp_path, *options)) as z:
            lists.append([(i.filename, i.CRC, i.file_size, i.external_attr, i.date_time) for i in z.infolist()])
    assert lists[0] == lists[1] == lists[2]


def hostile(repo, rows):
    """A commit over a tree that git itself would not make. rows: (mode, name, id)."""
    tree = b"".join(b"%s %s\0%s" % (mode.encode(), name, bytes.fromhex(oid)) for mode, name, oid in rows)
    oid = repo.git("hash-object", "-w", "-t", "tree", "--stdin", "--literally", data=tree).decode().strip()
    commit = f"tree {oid}\nauthor a <a@x> {TIME} +0000\ncommitter a <a@x> {TIME} +0000\n\nm\n".encode()
    repo.tip = repo.git("hash-object", "-w", "-t", "commit", "--stdin", "--literally", data=commit).decode().strip()
    return oid


def test_names_that_would_leave_the_folder_are_left_out(tmp_path):
    repo = Repo(tmp_path / "r.git")
    blob = repo.blob(b"evil")
    names = [b".", b"..", b".GiT", b".git", b"..\\x", b"a/../../x", b"good", b"x\\..\\y"]
    hostile(repo, [("100644", name, blob) for name in sorted(names)])
    status, said = make_zip(repo, repo.pack(), tmp_path / "made.zip")
    assert status == 0, said
    assert "files 1 " in said and "left_out 7" in said
    files, _ = by_python(tmp_path / "made.zip")
    assert list(files) == [b"good"]


@pytest.mark.parametrize("rows", [
    [("120000", b"a"), ("040000", b"a")],
    [("120000", b"a"), ("100644", b"a-b"), ("040000", b"a")],
    [("100644", b"a"), ("100644", b"a")],
    [("100644", b"b"), ("100644", b"a")],
    [("777777", b"b")],
    [("100644", b"")],
], ids=["link_and_folder", "link_then_folder", "twice", "order", "mode", "empty"])
def test_a_tree_with_a_name_twice_or_out_of_order_is_refused(tmp_path, rows):
    repo = Repo(tmp_path / "r.git")
    blob = repo.blob(b"/etc/passwd")
    folder = hostile(repo, [("100644", b"passwd", blob)])
    objects = [blob, folder]
    objects += [hostile(repo, [(mode, name, folder if mode == "040000" else blob) for mode, name in rows]), repo.tip]
    pack = repo.git("pack-objects", "--stdout", "-q", data="\n".join(objects).encode() + b"\n")
    status, said = make_zip(repo, pack, tmp_path / "made.zip")
    assert status == 1 and "tree of the repository is damaged" in said


def test_a_tree_that_never_ends_is_too_large(tmp_path):
    """Ten folders in each of ten folders, ten times: ten thousand million files from eleven objects."""
    repo = Repo(tmp_path / "r.git")
    oid, mode, objects = repo.blob(b"x"), "100644", []
    objects.append(oid)
    for _ in range(10):
        oid = hostile(repo, [(mode, b"f%d" % i, oid) for i in range(10)])
        mode = "040000"
        objects.append(oid)
    pack = repo.git("pack-objects", "--stdout", "-q", data="\n".join(objects + [repo.tip]).encode() + b"\n")
    status, said = make_zip(repo, pack, tmp_path / "made.zip")
    assert status == 1 and re.search("too.large.*more than 1000000 files", said, re.I), said


def test_a_tree_that_is_too_deep_is_too_large(tmp_path):
    repo = Repo(tmp_path / "r.git")
    oid, mode = repo.blob(b"x"), "100644"
    objects = [oid]
    for _ in range(2100):  # written by Python: a process for each would take a minute
        data = b"%s d\0%s" % (mode.encode(), bytes.fromhex(oid))
        store = b"tree %d\0" % len(data) + data
        oid, mode = hashlib.sha1(store).hexdigest(), "040000"
        where = repo.folder / "objects" / oid[:2]
        where.mkdir(exist_ok=True)
        (where / oid[2:]).write_bytes(zlib.compress(store))
        objects.append(oid)
    objects.append(hostile(repo, [("040000", b"d", oid)]))
    pack = repo.git("pack-objects", "--stdout", "-q", data="\n".join(objects + [repo.tip]).encode() + b"\n")
    status, said = make_zip(repo, pack, tmp_path / "made.zip")
    assert status == 1 and "more than 2048 folders" in said


def test_a_pack_without_an_object_of_the_tree_is_refused(tmp_path):
    repo = Repo(tmp_path / "r.git")
    repo.add("f", b"x")
    repo.add("g", b"y")
    repo.commit()
    objects = [line.split()[0] for line in repo.git("rev-list", "--objects", "-1", repo.tip).split(b"\n") if line]
    for missing in objects:
        pack = repo.git("pack-objects", "--stdout", "-q", data=b"\n".join(o for o in objects if o != missing) + b"\n")
        status, said = make_zip(repo, pack, tmp_path / "made.zip")
        assert status == 1 and "the pack does not have" in said, said
