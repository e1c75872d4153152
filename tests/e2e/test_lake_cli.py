"""The commands of the lake: weir lake ... against a running weir."""
import json

import pytest

from conftest import runner, wait_for
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


def put(run, tmp_path, path, data="data", branch="main"):
    file = tmp_path / "upload"
    file.write_text(data)
    return run("cp", file, f"lake://repo/{branch}/{path}", "--json")[0]


def paths(run, place="lake://repo/main"):
    return [row["path"] for row in run("ls", place, "--recursive", "--json")]


def test_repositories(run):
    made = run("repo", "create", "other", "s3://lake-data/other", "--branch", "trunk", "--json")[0]
    assert made["id"] == "other" and made["default_branch"] == "trunk" and made["created"].endswith("Z")
    assert [r["id"] for r in run("repo", "list", "--json")] == ["other", "repo"]
    assert [r["id"] for r in run("repo", "list", "--prefix", "o", "--json")] == ["other"]
    assert run("repo", "show", "lake://other", "--json") == [made] == run("repo", "show", "other", "--json")
    assert "storage_namespace" in run("repo", "list")
    assert "already exists" in run("repo", "create", "repo", "s3://lake-data/x", status=1)
    assert "is not there" in run("repo", "create", "third", "s3://none/x", status=1)
    run("repo", "delete", "lake://other")
    assert "repository not found" in run("repo", "show", "other", status=1)


def test_a_purged_repository_leaves_no_object(run, server, tmp_path):
    run("repo", "create", "brief", "s3://lake-data/brief")
    file = tmp_path / "f"
    file.write_text("x")
    run("cp", file, "lake://brief/main/f")
    run("commit", "lake://brief/main", "--message", "m")
    run("repo", "delete", "brief", "--purge")
    s3 = server.s3()
    wait_for(lambda: "Contents" not in s3.list_objects_v2(Bucket="lake-data", Prefix="brief/"), "the purge")
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
    assert "--message" in run("commit", "lake://repo/main", status=1)
    assert "KEY=VALUE" in run("commit", "lake://repo/main", "--message", "m", "--meta", "k", status=1)
    assert "--max takes" in run("log", "lake://repo/main", "--max", "no", status=1)


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
    assert "one repository" in run("diff", "lake://repo/main", "lake://other/dev", status=1)


def test_merge_revert_cherry_pick_and_reset(run, raw, tmp_path):
    put(run, tmp_path, "a", "1")
    run("commit", "lake://repo/main", "--message", "one")
    run("branch", "create", "lake://repo/dev")
    put(run, tmp_path, "a", "2", branch="dev")
    run("commit", "lake://repo/dev", "--message", "two")
    put(run, tmp_path, "a", "3")
    run("commit", "lake://repo/main", "--message", "three")
    assert "both sides have changed a" in run("merge", "lake://repo/dev", "lake://repo/main", status=1)
    done = run("merge", "lake://repo/dev", "lake://repo/main", "--strategy", "source-wins", "--message", "M", "--json")[0]
    assert run("show", "lake://repo/main", "--json")[0]["id"] == done["reference"]
    assert raw("cat", "lake://repo/main/a") == "2"
    assert "one repository" in run("merge", "lake://repo/dev", "lake://x/main", status=1)
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
    assert "lake://REPO/REF/PATH" in run("cat", "lake://repo/main", status=1)
    run("rm", "lake://repo/main/b")
    assert paths(run) == ["dir/a.txt"]
    run("rm", "lake://repo/main/dir/", "--recursive")
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
    assert "--recursive" in run("cp", tmp_path / "folder", "lake://repo/main/x", status=1)
    assert "neither" in run("cp", tmp_path / "a", tmp_path / "b", status=1)
    assert "inside one repository" in run("cp", "lake://repo/main/copy", "lake://other/main/copy", status=1)


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
    assert "--days" in gc("rules", "lake://repo", "--branch", "main=1", status=1)
    rules = gc("rules", "lake://repo", "--days", "30", "--branch", "main=365", "--json")
    assert rules == [{"branch_id": "*", "retention_days": 30}, {"branch_id": "main", "retention_days": 365}]
    assert gc("rules", "lake://repo", "--json") == rules
    gc("rules", "lake://repo", "--remove")
    file = tmp_path / "f"
    file.write_text("x")
    command("lake", "cp", file, "lake://repo/main/f")
    command("lake", "rm", "lake://repo/main/f")
    gc("run", "lake://repo")
    wait_for(lambda: gc("report", "lake://repo", "--json")[0]["stage"] == "done", "the collection")
    assert gc("report", "lake://repo", "--json")[0]["bodies_removed"] == 1


def test_imports(run, raw, server):
    s3 = server.s3()
    s3.create_bucket(Bucket="source")
    for key in ("dir/a", "dir/b", "one"):
        s3.put_object(Bucket="source", Key=key, Body=key.encode())
    done = run("import", "s3://source/dir/", "lake://repo/main/in/", "--message", "M", "--meta", "k=v", "--json")[0]
    assert done["completed"] == "yes" and done["ingested_objects"] == 2
    assert run("show", "lake://repo/main", "--json")[0]["id"] == done["commit_id"]
    run("import", "s3://source/one", "lake://repo/main/one", "--object")
    assert paths(run) == ["in/a", "in/b", "one"] and raw("cat", "lake://repo/main/one") == "one"
    started = run("import", "s3://source/dir/", "lake://repo/main/in/", "--no-wait", "--json")[0]
    assert started["id"]
    assert "no bucket" in run("import", "s3://none/x", "lake://repo/main/x", status=1)


def test_places_that_are_malformed(run):
    for text in ("lake://", "lake:///main", ""):
        assert "is not a place in the lake" in run("repo", "show", text, status=1)
    assert "write lake://REPO/REF" in run("log", "lake://repo", status=1)


def test_errors_are_one_line_and_json_is_json(run, raw):
    assert json.loads(raw("ls", "lake://repo/main", "--json")) == []
    assert run("ls", "lake://repo/none", status=1).count("\n") == 1
