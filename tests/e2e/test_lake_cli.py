"""The commands of the lake: weir lake ... against a running weir."""
import json
import os
import pty
import subprocess

import pytest

from conftest import BUILD, DEADLINE, clean_env, runner, wait_for
from lake_lab import Lake


@pytest.fixture
def run(server, weir):
    """Runs `weir lake ...` with the repository `repo`."""
    Lake(server).repo()
    command = runner(server, weir)
    return lambda *args, **more: command("lake", *args, **more)


@pytest.fixture
def raw(server, weir):
    """Runs `weir lake ...` and returns what it wrote to standard output."""
    return lambda *args: weir("lake", *args, "--data", server.data, "--url", server.url).stdout


USAGE = 2  # the exit status of a command that was used wrongly


def put(run, tmp_path, path, data="data", branch="main"):
    file = tmp_path / "upload"
    file.write_text(data)
    return run("cp", file, f"lake://repo/{branch}/{path}", "--json")[0]


def paths(run, place="lake://repo/main"):
    return [row["path"] for row in run("ls", place, "--recursive", "--json")]


def test_repositories(run):
    made = run("repo", "create", "other", "s3://lake-data/other", "--branch", "trunk", "--json")[0]
    assert made["id"] == "other" and made["default_branch"] == "trunk" and made["read_only"] is False and made["created"].endswith("Z")
    assert [r["id"] for r in run("repo", "list", "--json")] == ["other", "repo"]
    assert [r["id"] for r in run("repo", "list", "--prefix", "o", "--json")] == ["other"]
    assert run("repo", "show", "lake://other", "--json") == [made] == run("repo", "show", "other", "--json")
    assert "storage_namespace" in run("repo", "list")
    assert "already exists" in run("repo", "create", "repo", "s3://lake-data/x", status=1)
    assert "is not there" in run("repo", "create", "third", "s3://none/x", status=1)
    run("repo", "delete", "lake://other")
    assert "repository not found" in run("repo", "show", "other", status=1)


def test_a_purged_repository_leaves_no_object(serve, weir, tmp_path):
    server = serve("--lake.gc.grace", "1ms", folder=tmp_path / "purge").ready()  # so the claim settles at once
    Lake(server).repo()
    command = runner(server, weir)

    def run(*args):
        return command("lake", *args)
    run("repo", "create", "brief", "s3://lake-data/brief")
    file = tmp_path / "f"
    file.write_text("x")
    run("cp", file, "lake://brief/main/f")
    run("commit", "lake://brief/main", "--message", "m")
    run("repo", "delete", "brief", "--purge")
    s3 = server.s3()

    def keys():
        return [o["Key"] for o in s3.list_objects_v2(Bucket="lake-data", Prefix="brief/").get("Contents", [])]
    wait_for(lambda: keys() == ["brief/_lakefs/dummy"], "the purge")  # the claim goes with the second purge
    assert "Contents" in s3.list_objects_v2(Bucket="lake-data", Prefix="repo/")


def test_branches_and_tags(run):
    head = run("branch", "show", "lake://repo/main", "--json")[0]["commit_id"]
    assert run("branch", "create", "lake://repo/dev", "--json") == [{"id": "dev", "commit_id": head}]
    run("branch", "create", "lake://repo/ghost", "--source", "main", "--hidden")
    assert [b["id"] for b in run("branch", "list", "lake://repo", "--json")] == ["dev", "main"]
    assert [b["id"] for b in run("branch", "list", "repo", "--hidden", "--json")] == ["dev", "ghost", "main"]
    assert "not unique" in run("branch", "create", "lake://repo/dev", status=1)
    assert "not found" in run("branch", "create", "lake://repo/x", "--source", "none", status=1)
    run("branch", "delete", "lake://repo/dev")
    assert "default branch" in run("branch", "delete", "lake://repo/main", status=1)
    assert run("tag", "create", "lake://repo/v1", "main", "--json") == [{"id": "v1", "commit_id": head}]
    assert [t["id"] for t in run("tag", "list", "lake://repo", "--json")] == ["v1"]
    run("tag", "delete", "lake://repo/v1")
    assert "tag not found" in run("tag", "delete", "lake://repo/v1", status=1)


def test_protection(run, tmp_path):
    assert run("branch", "protect", "lake://repo", "--json") == []
    assert run("branch", "protect", "lake://repo", "ma*", "--json") == [{"pattern": "ma*"}]
    (tmp_path / "f").write_text("x")
    assert "protected branch" in run("cp", tmp_path / "f", "lake://repo/main/f", status=1)
    assert "rule already exists" in run("branch", "protect", "lake://repo", "ma*", status=1)
    assert run("branch", "protect", "lake://repo", "ma*", "--remove", "--json") == []
    run("cp", tmp_path / "f", "lake://repo/main/f")


def test_commits_and_history(run, tmp_path):
    put(run, tmp_path, "a")
    made = run("commit", "lake://repo/main", "--message", "one", "--meta", "k=v", "--meta", "l=w", "--json")[0]
    assert made["message"] == "one" and made["metadata"] == {"k": "v", "l": "w"}
    assert run("show", "lake://repo/main", "--json") == [made]
    put(run, tmp_path, "dir/b")
    put(run, tmp_path, "c")
    run("commit", "lake://repo/main", "--message", "two", "--path", "dir/")
    assert [d["path"] for d in run("diff", "lake://repo/main", "--json")] == ["c"]
    run("commit", "lake://repo/main", "--message", "three")
    log = [c["message"] for c in run("log", "lake://repo/main", "--json")]
    assert log == ["three", "two", "one", "Repository created"]
    assert [c["message"] for c in run("log", "lake://repo/main", "--max", "2", "--json")] == ["three", "two"]
    assert [c["message"] for c in run("log", "lake://repo/main", "--path", "dir/", "--json")] == ["two"]
    assert [c["message"] for c in run("log", "lake://repo/main", "--path", "a", "--path", "c", "--json")] == ["three", "one"]
    assert "no changes" in run("commit", "lake://repo/main", "--message", "m", status=1)
    run("commit", "lake://repo/main", "--message", "empty", "--allow-empty")
    assert "--message" in run("commit", "lake://repo/main", status=USAGE)
    assert "KEY=VALUE" in run("commit", "lake://repo/main", "--message", "m", "--meta", "k", status=USAGE)
    assert "--max takes" in run("log", "lake://repo/main", "--max", "no", status=USAGE)


def test_differences_of_refs(run, tmp_path):
    put(run, tmp_path, "a")
    run("commit", "lake://repo/main", "--message", "one")
    run("branch", "create", "lake://repo/dev")
    put(run, tmp_path, "b", branch="dev")
    run("commit", "lake://repo/dev", "--message", "two")
    for other in ("dev", "lake://repo/dev"):
        assert run("diff", "lake://repo/main", other, "--json") == [{"type": "added", "path": "b", "size_bytes": 4}]
    assert [d["type"] for d in run("diff", "lake://repo/dev", "main", "--two-dot", "--json")] == ["removed"]
    assert run("diff", "lake://repo/main", "dev", "--prefix", "x", "--json") == []
    assert "one repository" in run("diff", "lake://repo/main", "lake://other/dev", status=USAGE)


def test_merge_revert_cherry_pick_and_reset(run, raw, tmp_path):
    put(run, tmp_path, "a", "1")
    run("commit", "lake://repo/main", "--message", "one")
    run("branch", "create", "lake://repo/dev")
    put(run, tmp_path, "a", "2", branch="dev")
    run("commit", "lake://repo/dev", "--message", "two")
    put(run, tmp_path, "a", "3")
    run("commit", "lake://repo/main", "--message", "three")
    assert "both sides have changed a" in run("merge", "lake://repo/dev", "lake://repo/main", status=1)
    for refused in ("revert", "cherry-pick"):
        assert "conflict found: the branch has other changes of a\n" in run(refused, "lake://repo/main", "dev", status=1)
    for take in ("a", "=source", "a=other"):
        assert "PATH=source or PATH=dest" in run("merge", "lake://repo/dev", "lake://repo/main", "--take", take, status=USAGE)
    assert "changed a" in run("merge", "lake://repo/dev", "lake://repo/main", "--take", "b=source", status=1)
    run("merge", "lake://repo/dev", "lake://repo/main", "--take", "a=dest")
    assert raw("cat", "lake://repo/main/a") == "3"
    run("reset", "lake://repo/main", "--to", "main~1")
    done = run("merge", "lake://repo/dev", "lake://repo/main", "--strategy", "source-wins", "--message", "M", "--json")[0]
    assert run("show", "lake://repo/main", "--json")[0]["id"] == done["reference"]
    assert raw("cat", "lake://repo/main/a") == "2"
    assert "--strategy takes source-wins, dest-wins, not 'x'\n" in run(
        "merge", "lake://repo/dev", "lake://repo/main", "--strategy", "x", status=USAGE)
    assert "one repository" in run("merge", "lake://repo/dev", "lake://x/main", status=USAGE)
    run("revert", "lake://repo/main", "main", "--parent", "1", "--message", "undone")
    assert raw("cat", "lake://repo/main/a") == "3"
    assert run("log", "lake://repo/main", "--max", "1", "--json")[0]["message"] == "undone"
    assert run("cherry-pick", "lake://repo/dev", "main", "--json", status=0)[0]["id"]
    put(run, tmp_path, "dir/x")
    put(run, tmp_path, "y")
    run("reset", "lake://repo/main/dir/")
    assert paths(run) == ["a", "y"]
    run("reset", "lake://repo/main/y")
    assert paths(run) == ["a"]
    put(run, tmp_path, "z")
    assert "dirty" in run("reset", "lake://repo/main", "--to", "main~1", status=1)
    run("reset", "lake://repo/main")
    run("reset", "lake://repo/main", "--to", "main~1")
    assert raw("cat", "lake://repo/main/a") == "2"


def test_objects(run, raw, tmp_path):
    row = put(run, tmp_path, "dir/a.txt", "hello")
    assert row["destination"] == "lake://repo/main/dir/a.txt" and row["bytes"] == 5
    put(run, tmp_path, "b")
    assert [r["path"] for r in run("ls", "lake://repo/main", "--json")] == ["b", "dir/"]
    assert [r["path"] for r in run("ls", "lake://repo/main/dir/", "--json")] == ["dir/a.txt"]
    assert paths(run) == ["b", "dir/a.txt"]
    assert [r["path"] for r in run("ls", "lake://repo/main", "--max", "1", "--json")] == ["b"]
    stat = run("stat", "lake://repo/main/dir/a.txt", "--json")[0]
    assert stat["size_bytes"] == 5 and stat["physical_address"].startswith("s3://lake-data/repo/")
    assert raw("cat", "lake://repo/main/dir/a.txt") == "hello"
    assert "not found" in run("cat", "lake://repo/main/none", status=1)
    assert "lake://REPO/REF/PATH" in run("cat", "lake://repo/main", status=USAGE)
    run("rm", "lake://repo/main/b")
    assert paths(run) == ["dir/a.txt"]
    run("rm", "lake://repo/main/dir/", "--recursive")
    assert paths(run) == []


def test_recursive_means_the_folder_and_not_all_that_begins_alike(run, tmp_path):
    for path in ("a/1", "a/deep/2", "ab/2", "abc", "a"):
        put(run, tmp_path, path, path)
    run("cp", "-r", "lake://repo/main/a", tmp_path / "to")
    assert sorted(str(p.relative_to(tmp_path / "to")) for p in (tmp_path / "to").rglob("*") if p.is_file()) == ["1", "deep/2"]
    rows = run("cp", "-r", "lake://repo/main/a", "lake://repo/main/copy", "--json")
    assert [r["destination"] for r in rows] == ["lake://repo/main/copy/1", "lake://repo/main/copy/deep/2"]
    first, copy = (run("stat", f"lake://repo/main/{p}/1", "--json")[0]["physical_address"] for p in ("a", "copy"))
    assert first == copy
    assert "into itself" in run("cp", "-r", "lake://repo/main/a", "lake://repo/main/a/b", status=USAGE)
    assert "into itself" in run("cp", "-r", "lake://repo/main", "lake://repo/main/b", status=USAGE)
    assert "no object is below 'none/'" in run("cp", "-r", "lake://repo/main/none", tmp_path / "none", status=1)
    run("rm", "-r", "lake://repo/main/a")
    assert paths(run) == ["a", "ab/2", "abc", "copy/1", "copy/deep/2"]
    assert "no object is below 'a/'" in run("rm", "-r", "lake://repo/main/a", status=1)
    for path in ("copy", "copy/", "none"):
        assert "path not found; a folder needs -r" in run("rm", f"lake://repo/main/{path}", status=1)
    assert "`weir lake branch list`" in run("rm", "lake://repo/none/a", status=1)
    run("rm", "-r", "lake://repo/main")
    assert paths(run) == []


def test_rm_removes_more_than_one_page(run, server):
    lake = Lake(server)
    lake.put("file")
    for i in range(1100):
        lake.call("POST", "/repositories/repo/branches/main/objects/copy", {"src_path": "file"}, dest_path=f"many/{i}")
    run("rm", "lake://repo/main/many/", "--recursive")
    assert paths(run) == ["file"]


def test_copies_between_files_and_the_lake(run, tmp_path):
    data = bytes(range(256)) * 5000
    (tmp_path / "big").write_bytes(data)
    run("cp", tmp_path / "big", "lake://repo/main/dir/")
    run("cp", tmp_path / "big", "lake://repo/main/typed", "--type", "image/png")
    assert run("stat", "lake://repo/main/typed", "--json")[0]["content_type"] == "image/png"
    run("cp", "lake://repo/main/dir/big", tmp_path / "back")
    assert (tmp_path / "back").read_bytes() == data
    (tmp_path / "folder").mkdir()
    run("cp", "lake://repo/main/dir/big", tmp_path / "folder")
    assert (tmp_path / "folder/big").read_bytes() == data
    run("cp", "lake://repo/main/dir/big", "lake://repo/main/copy")
    first, copy = (run("stat", f"lake://repo/main/{p}", "--json")[0]["physical_address"] for p in ("dir/big", "copy"))
    assert first == copy
    (tmp_path / "empty").write_bytes(b"")
    run("cp", tmp_path / "empty", "lake://repo/main/empty")
    assert run("stat", "lake://repo/main/empty", "--json")[0]["size_bytes"] == 0
    assert "No such file" in run("cp", tmp_path / "none", "lake://repo/main/x", status=1)
    assert "not found" in run("cp", "lake://repo/main/none", tmp_path / "x", status=1)
    assert not (tmp_path / "x").exists() and not (tmp_path / "x.part").exists()
    assert "--recursive" in run("cp", tmp_path / "folder", "lake://repo/main/x", status=USAGE)
    assert "neither" in run("cp", tmp_path / "a", tmp_path / "b", status=USAGE)
    assert "inside one repository" in run("cp", "lake://repo/main/copy", "lake://other/main/copy", status=USAGE)


def test_an_object_is_moved(run, raw, tmp_path):
    put(run, tmp_path, "a", "1")
    first = run("stat", "lake://repo/main/a", "--json")[0]["physical_address"]
    run("mv", "lake://repo/main/a", "lake://repo/main/dir/")
    assert paths(run) == ["dir/a"] and raw("cat", "lake://repo/main/dir/a") == "1"
    assert run("stat", "lake://repo/main/dir/a", "--json")[0]["physical_address"] == first
    assert "not found" in run("mv", "lake://repo/main/a", "lake://repo/main/b", status=1)


def test_folders_are_copied_with_all_that_is_below(run, server, tmp_path):
    tree = {"a": "1", "sub/b": "2", "sub/deep/c": "3", "ä b": "4"}
    for name, text in tree.items():
        file = tmp_path / "from" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    rows = run("cp", tmp_path / "from", "lake://repo/main/up", "--recursive", "--json")
    assert len(rows) == len(tree)
    assert paths(run) == sorted(f"up/{name}" for name in tree)
    run("cp", "lake://repo/main/up", tmp_path / "to", "--recursive")
    for name, text in tree.items():
        assert (tmp_path / "to" / name).read_text() == text
    Lake(server).put("bad/../../escape")
    assert "cannot be the name of a file" in run("cp", "lake://repo/main/bad", tmp_path / "to", "--recursive", status=1)
    assert not (tmp_path / "escape").exists()


def test_garbage_collection(run, serve, weir, tmp_path):
    server = serve("--lake.gc.grace", "1ms", folder=tmp_path / "gc").ready()
    Lake(server).repo()
    command = runner(server, weir)

    def gc(*args, **more):
        return command("lake", "gc", *args, **more)
    assert gc("report", "lake://repo", "--json")[0]["stage"] == "never"
    assert "--days" in gc("rules", "lake://repo", "--branch", "main=1", status=USAGE)
    rules = gc("rules", "lake://repo", "--days", "30", "--branch", "main=365", "--json")
    assert rules == [{"branch_id": "*", "retention_days": 30}, {"branch_id": "main", "retention_days": 365}]
    assert gc("rules", "lake://repo", "--json") == rules
    for bad in (["--days", "0"], ["--days", "9", "--branch", "main=0"], ["--days", "soon"]):
        assert "a number of days from 1 on" in gc("rules", "lake://repo", *bad, status=USAGE)
    assert gc("rules", "lake://repo", "--json") == rules
    gc("rules", "lake://repo", "--remove")
    assert "no rules: every commit is kept" in gc("rules", "lake://repo")
    assert gc("rules", "lake://repo", "--json") == []
    file = tmp_path / "f"
    file.write_text("x")
    command("lake", "cp", file, "lake://repo/main/f")
    command("lake", "rm", "lake://repo/main/f")
    gc("run", "lake://repo")
    wait_for(lambda: gc("report", "lake://repo", "--json")[0]["stage"] == "done", "the collection")
    report = gc("report", "lake://repo", "--json")[0]
    assert report["bodies_removed"] == 1 and report["mark_only"] is False


def test_imports(run, raw, server):
    s3 = server.s3()
    s3.create_bucket(Bucket="source")
    for key in ("dir/a", "dir/b", "one"):
        s3.put_object(Bucket="source", Key=key, Body=key.encode())
    done = run("import", "s3://source/dir/", "lake://repo/main/in/", "--message", "M", "--meta", "k=v", "--json")[0]
    assert done["completed"] is True and done["ingested_objects"] == 2
    assert run("show", "lake://repo/main", "--json")[0]["id"] == done["commit_id"]
    run("import", "s3://source/one", "lake://repo/main/one", "--object")
    assert paths(run) == ["in/a", "in/b", "one"] and raw("cat", "lake://repo/main/one") == "one"
    started = run("import", "s3://source/dir/", "lake://repo/main/in/", "--no-wait", "--json")[0]
    assert started["id"]
    assert "no bucket" in run("import", "s3://none/x", "lake://repo/main/x", status=1)


def test_imports_replace_only_a_folder_and_only_by_objects(run, server, tmp_path):
    s3 = server.s3()
    s3.create_bucket(Bucket="source")
    for key in ("dir/a", "dir-old/b"):
        s3.put_object(Bucket="source", Key=key, Body=key.encode())
    for path in ("in/old", "inner"):
        put(run, tmp_path, path)
    run("commit", "lake://repo/main", "-m", "m")
    for wrong in ("s3://source/dri/", "s3://source/dir/a"):
        assert f"no object begins with {wrong.rstrip('/')}/" in run("import", wrong, "lake://repo/main/in/", status=1)
    for place in ("lake://repo/main", "lake://repo/main/"):
        assert "--force" in run("import", "s3://source/dir/", place, status=USAGE)
    assert paths(run) == ["in/old", "inner"]
    run("import", "s3://source/dir", "lake://repo/main/in")
    assert paths(run) == ["in/a", "inner"]
    run("import", "s3://source", "lake://repo/main", "--force")
    assert paths(run) == ["dir-old/b", "dir/a"]


def test_letters_stand_for_flags(run, tmp_path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder/a").write_text("a")
    run("cp", "-r", tmp_path / "folder", "lake://repo/main/up")
    assert run("commit", "lake://repo/main", "-m", "by letter", "--json")[0]["message"] == "by letter"
    assert [c["message"] for c in run("log", "-n1", "lake://repo/main", "--json")] == ["by letter"]
    run("branch", "create", "lake://repo/dev", "-s", "main~1")
    assert paths(run, "lake://repo/dev") == []
    run("merge", "lake://repo/main", "lake://repo/dev", "-m", "merged")
    assert [r["path"] for r in run("ls", "-r", "lake://repo/dev", "--json")] == ["up/a"]
    run("rm", "-r", "lake://repo/dev/up/")
    assert paths(run, "lake://repo/dev") == []


def test_errors_say_what_to_do(run, tmp_path):
    for args, advice in [
            (["log", "lake://none/main"], "`weir lake repo list`"),
            (["branch", "show", "lake://repo/none"], "`weir lake branch list`"),
            (["repo", "create", "new", "s3://none/x"], "`weir bucket list`")]:
        assert advice in run(*args, status=1)
    assert "-m TEXT" in run("commit", "lake://repo/main", status=USAGE)
    assert "--object" in run("import", "s3://lake-data/none", "lake://repo/main/none", status=1)
    put(run, tmp_path, "a")
    assert "`weir lake reset`" in run("reset", "lake://repo/main", "--to", "main", status=1)
    run("branch", "protect", "lake://repo", "main")
    assert "merge it" in run("commit", "lake://repo/main", "-m", "m", status=1)


def on_terminal(server, args):
    """Runs `weir lake ...` with a terminal as standard error, and returns what it wrote there."""
    ours, theirs = pty.openpty()
    done = subprocess.run([str(BUILD / "weir"), "lake", *map(str, args), "--data", server.data, "--url", server.url],
                          stdout=subprocess.PIPE, stderr=theirs, timeout=DEADLINE, env=clean_env())
    os.close(theirs)
    text = b""
    try:
        while piece := os.read(ours, 65536):
            text += piece
    except OSError:  # the other side is closed
        pass
    os.close(ours)
    assert done.returncode == 0, text
    return text.decode()


def test_progress_is_shown_on_a_terminal(run, server, tmp_path):
    (tmp_path / "folder").mkdir()
    for i in range(3):
        (tmp_path / f"folder/{i}").write_text("x" * 1000)
    up = on_terminal(server, ["cp", "-r", tmp_path / "folder", "lake://repo/main/up"])
    down = on_terminal(server, ["cp", "-r", "lake://repo/main/up", tmp_path / "back"])
    for text in (up, down):
        assert "1 files, 1000 bytes" in text and "3 files, 3000 bytes" in text
        assert text.endswith("\r\033[K")


def test_many_objects_are_copied_to_a_folder(run, server, tmp_path):
    """A listing has more than one page."""
    lake = Lake(server)
    lake.put("file")
    for i in range(1003):
        lake.call("POST", "/repositories/repo/branches/main/objects/copy", {"src_path": "file"}, dest_path=f"many/{i:04}")
    rows = run("cp", "-r", "lake://repo/main/many/", tmp_path / "many", "--json")
    assert len(rows) == 1003 == len(list((tmp_path / "many").iterdir()))


# What each command that shows something writes with --json: its arguments, and the members of a row.
SHOWN = [
    (["repo", "create", "second", "s3://lake-data/second"], "id default_branch storage_namespace read_only created"),
    (["repo", "list"], "id default_branch storage_namespace read_only created"),
    (["repo", "show", "lake://repo"], "id default_branch storage_namespace read_only created"),
    (["branch", "list", "lake://repo"], "id commit_id"),
    (["branch", "show", "lake://repo/main"], "id commit_id"),
    (["branch", "create", "lake://repo/new"], "id commit_id"),
    (["branch", "protect", "lake://repo", "x*"], "pattern"),
    (["tag", "create", "lake://repo/v2", "main"], "id commit_id"),
    (["tag", "list", "lake://repo"], "id commit_id"),
    (["log", "lake://repo/main"], "id created committer message"),
    (["show", "lake://repo/main"], "id created committer message parents metadata"),
    (["diff", "lake://repo/main"], "type path size_bytes"),
    (["diff", "lake://repo/main~1", "main"], "type path size_bytes"),
    (["ls", "lake://repo/main"], "path size_bytes modified checksum"),
    (["stat", "lake://repo/main/a"], "path size_bytes modified checksum content_type physical_address metadata"),
    (["cp", "lake://repo/main/a", "lake://repo/main/copy"], "source destination bytes"),
    (["mv", "lake://repo/main/copy", "lake://repo/main/moved"], "source destination bytes"),
    (["commit", "lake://repo/main", "-m", "m"], "id created committer message parents metadata"),
    (["revert", "lake://repo/main", "main"], None),
    (["cherry-pick", "lake://repo/dev", "main~1"], "id created committer message"),
    (["merge", "lake://repo/main", "lake://repo/dev"], "reference"),
    (["gc", "rules", "lake://repo", "--days", "9"], "branch_id retention_days"),
    (["gc", "report", "lake://repo"], None),
    (["import", "s3://source/", "lake://repo/dev/in/", "--no-wait"], "id completed ingested_objects commit_id"),
]


def test_every_command_writes_json(run, raw, server, tmp_path):
    server.s3().create_bucket(Bucket="source")
    server.s3().put_object(Bucket="source", Key="a", Body=b"a")
    run("branch", "create", "lake://repo/dev")
    put(run, tmp_path, "a")
    run("commit", "lake://repo/main", "-m", "first")
    put(run, tmp_path, "b")
    for args, members in SHOWN:
        text = raw(*args, "--json")
        rows = json.loads(text) if text else []
        assert isinstance(rows, list), args
        if members:
            assert rows, args
            for row in rows:
                assert set(row) == set(members.split()), args
                assert all(isinstance(v, (str, int, dict, list)) for v in row.values()), args


def test_the_table_has_every_command_that_shows_something(weir):
    listed = {line.split("  ")[1].strip() for line in weir("help", "lake").stdout.splitlines() if line.startswith("  lake")}
    silent = {"lake repo delete", "lake branch delete", "lake tag delete", "lake reset", "lake cat", "lake rm", "lake gc run",
              "lake gc claim"}
    elsewhere = {"lake dump", "lake restore", "lake migrate", "lake diagnose"}  # they have tests of their own
    shown = {"lake " + " ".join(a for a in args[:2] if a.isalpha() or a == "cherry-pick") for args, _ in SHOWN}
    assert listed - silent - elsewhere == shown


def test_every_command_has_examples(weir):
    for name in (line.split("  ")[1].strip() for line in weir("help", "lake").stdout.splitlines() if line.startswith("  lake")):
        text = weir("help", *name.split()).stdout
        assert f"usage: weir {name} " in text and f"\n  weir {name} " in text, name


def test_places_that_are_malformed(run):
    for text in ("lake://", "lake:///main", ""):
        assert "is not a place in the lake" in run("repo", "show", text, status=USAGE)
    assert "write lake://REPO/REF" in run("log", "lake://repo", status=USAGE)


def test_a_part_of_a_place_is_never_ignored(run, tmp_path):
    run("branch", "create", "lake://repo/dev")
    put(run, tmp_path, "a")
    for args in (["commit", "-m", "m"], ["log"], ["show"], ["diff"], ["diff", "lake://repo/dev"], ["branch", "show"],
                 ["branch", "delete"], ["merge", "lake://repo/dev"], ["tag", "delete"], ["revert", "main"]):
        name = 2 if args[0] in ("branch", "tag") else 1
        for place in ("lake://repo/main/a", "repo/main/2026/"):
            assert "has a path" in run(*args[:name], place, *args[name:], status=USAGE), args
    for args in (["repo", "show"], ["repo", "delete"], ["branch", "list"], ["tag", "list"], ["gc", "run"], ["dump"],
                 ["branch", "protect"]):
        assert "write lake://REPO\n" in run(*args, "lake://repo/main", status=USAGE), args
    assert [row["id"] for row in run("branch", "list", "lake://repo/", "--json")] == ["dev", "main"]
    assert [row["path"] for row in run("diff", "repo/main/", "--json")] == ["a"]


def test_a_further_ref_may_be_a_place(run, raw, tmp_path):
    put(run, tmp_path, "a", "1")
    run("commit", "repo/main", "-m", "one")
    run("branch", "create", "repo/dev", "--source", "lake://repo/main")
    put(run, tmp_path, "a", "2", branch="dev")
    run("commit", "repo/dev", "-m", "two")
    assert [d["path"] for d in run("diff", "repo/main", "repo/dev", "--json")] == ["a"]
    run("merge", "repo/dev", "main")
    assert raw("cat", "repo/main/a") == "2"
    run("tag", "create", "repo/v1", "lake://repo/main~1")
    run("reset", "repo/main", "--to", "lake://repo/v1")
    assert raw("cat", "repo/main/a") == "1"
    run("cherry-pick", "repo/main", "repo/dev")
    for args in (["diff", "repo/main"], ["merge", "repo/dev"], ["tag", "create", "repo/v2"], ["revert", "repo/main"],
                 ["reset", "repo/main", "--to"], ["branch", "create", "repo/b", "--source"]):
        assert "one repository" in run(*args, "lake://other/main", status=USAGE), args


def test_errors_are_one_line_and_json_is_json(run, raw):
    assert json.loads(raw("ls", "lake://repo/main", "--json")) == []
    assert run("ls", "lake://repo/none", status=1).count("\n") == 1
