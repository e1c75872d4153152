"""Bundles that real git has filled: stored, appended to, and read by git and by dulwich."""
import os
import subprocess

import pytest

from bundle_lab import ENV, Keeper, Repository, check_bundle, clone, digest, git, header_of
from conftest import free_port

pytest.importorskip("dulwich")

KEY = "a6/65/81/57/octocat/Hello-World.bundle"
SMALL = {"small": 4000, "lead": 1000, "part": 3000, "copy": 100000}  # so that small bundles go by part copies
SEEDS = int(os.environ.get("WEIR_SEEDS", "2"))


@pytest.fixture
def keep(tmp_path):
    keepers = []

    def start(name="data", **options):
        keepers.append(Keeper(tmp_path / name, **(options or SMALL)))
        return keepers[-1]

    yield start
    for k in keepers:
        if k.process.poll() is None:
            k.stop()


def synced(keeper, repository, now, objects, tmp_path, version=2, sha256=False):
    """One sync, and every check of what it has left."""
    what, numbers = keeper.sync(KEY, now, repository, version)
    objects |= repository.objects()
    refs = check_bundle(keeper.get(KEY), repository, objects, str(tmp_path / "clone"), sha256)
    assert keeper.do("uploads") == ["ok 0"]
    if what in ("appended", "header") and "max_wants" not in keeper.options:  # one write
        lead, small = int(keeper.options.get("lead", 5 << 20)), int(keeper.options.get("small", 16 << 20))
        again = 2 * lead if numbers["copied"] else small + 2 * lead  # a small bundle is written whole
        assert numbers["sent"] <= numbers["pack"] + numbers["header"] + again
    return what, numbers, refs


# --- a random history, synced fifty times ---


@pytest.mark.parametrize("seed", range(SEEDS))
def test_soak_random_pushes(keep, tmp_path, seed):
    sha256 = seed % 5 == 4
    repository = Repository(tmp_path / "repo", sha256=sha256, bitmaps=seed % 2 == 0, seed=seed)
    keeper, objects, past = keep(), set(), []
    for n in range(3):
        repository.commit(["main", "b0", "b1"][n])
    for i in range(50):
        now = 1000 + 10 * i
        for _ in range(repository.random.randrange(0, 5)):
            repository.step()
        synced(keeper, repository, now, objects, tmp_path, version=2 if seed % 4 < 2 else 0, sha256=sha256)
        past.append((now, repository.kept()))
    for now, refs in past:
        assert keeper.at(KEY, now) == refs
        assert keeper.at(KEY, now + 9) == refs
    # everything that was ever a tip can be reached in the clone
    copy = clone(keeper.get(KEY), str(tmp_path / "clone"))
    for _, refs in past:
        for oid in refs.values():
            git(copy, "cat-file", "-e", oid)


# --- the scenarios by name ---


def test_append_equals_fresh(keep, tmp_path):
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    for i in range(12):
        repository.commit("main")
        what, numbers, _ = synced(keeper, repository, 100 + i, objects, tmp_path)
        assert what == ("stored" if i == 0 else "appended") and numbers["appends"] == i
    fresh = keep("fresh")
    fresh.sync(KEY, 200, repository)
    one, two = clone(keeper.get(KEY), str(tmp_path / "one")), clone(fresh.get(KEY), str(tmp_path / "two"))
    listing = "cat-file", "--batch-all-objects", "--batch-check"
    assert git(one, *listing) == git(two, *listing)
    assert [r for r in header_of(keeper.get(KEY))[0] if not r[0].startswith("refs/weir/")] == header_of(fresh.get(KEY))[0]


def test_append_with_duplicates(keep, tmp_path):
    """A change and its revert, on a server without bitmaps: with thin packs this bundle could not be cloned."""
    repository, objects = Repository(tmp_path / "repo", bitmaps=False), set()
    keeper = keep()
    one, two = {"f": b"x" * 5000 + b"1"}, {"f": b"x" * 5000 + b"2"}
    for i in range(6):
        repository.commit("main", files=[one, two][i % 2])
        repository.gc()
        synced(keeper, repository, 100 + i, objects, tmp_path)


def test_append_after_force_push(keep, tmp_path):
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    first = repository.commit("main")
    lost = repository.commit("main")
    synced(keeper, repository, 100, objects, tmp_path)
    repository.git("update-ref", "refs/heads/main", repository.commit(parents=[first]))
    repository.gc()
    assert not repository.there(lost)
    _, _, refs = synced(keeper, repository, 200, objects, tmp_path)
    assert refs["refs/weir/200/was/heads/main"] == lost


def test_force_push_keeps_old_tip_of_a_ref_moved_back(keep, tmp_path):
    """No object is asked for, so only the header is written."""
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    first, last = repository.commit("main"), repository.commit("main")
    synced(keeper, repository, 100, objects, tmp_path)
    repository.git("update-ref", "refs/heads/main", first)
    what, numbers, refs = synced(keeper, repository, 200, objects, tmp_path)
    assert what == "appended" or (what == "header" and numbers["pack"] == 0)
    assert refs["refs/weir/200/was/heads/main"] == last
    assert synced(keeper, repository, 300, objects, tmp_path)[0] == "unchanged"


def test_deleted_branch_and_emptied_repo(keep, tmp_path):
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    main, side = repository.commit("main"), repository.commit("side")
    synced(keeper, repository, 100, objects, tmp_path)
    repository.git("update-ref", "-d", "refs/heads/side")
    what, _, refs = synced(keeper, repository, 200, objects, tmp_path)
    assert what == "header" and refs["refs/weir/200/was/heads/side"] == side
    repository.git("update-ref", "-d", "refs/heads/main")
    what, _ = keeper.sync(KEY, 300, repository)
    assert what == "header"
    copy = clone(keeper.get(KEY), str(tmp_path / "clone"))
    assert git(copy, "rev-parse", "refs/weir/300/was/heads/main").strip() == main
    assert keeper.at(KEY, 250) == {"refs/heads/main": main} and keeper.at(KEY, 300) == {}


@pytest.mark.parametrize("sha256", [False, True])
def test_empty_repo_49_bytes(keep, tmp_path, sha256):
    repository, objects = Repository(tmp_path / "repo", sha256=sha256), set()
    keeper = keep()
    assert keeper.sync(KEY, 100, repository)[0] == "stored"
    path = keeper.get(KEY)
    assert os.path.getsize(path) == (83 if sha256 else 49)
    subprocess.run(["git", "bundle", "verify", path], env=ENV, cwd=repository.folder, check=True, capture_output=True)
    clone(path, str(tmp_path / "clone"))
    assert keeper.sync(KEY, 150, repository)[0] == "unchanged"
    repository.commit("main")
    assert synced(keeper, repository, 200, objects, tmp_path, sha256=sha256)[0] == "appended"


def test_default_branch_last_line(keep, tmp_path):
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    tip = repository.commit("main")
    for name in ("aaa", "zzz", "trunk"):
        repository.git("update-ref", f"refs/heads/{name}", tip)
    repository.git("symbolic-ref", "HEAD", "refs/heads/trunk")
    synced(keeper, repository, 100, objects, tmp_path)
    copy = clone(keeper.get(KEY), str(tmp_path / "clone"))
    assert git(copy, "symbolic-ref", "HEAD").strip() == "refs/heads/trunk"


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("sha256", [False, True])
@pytest.mark.parametrize("bitmaps", [False, True])
def test_sha256_repo_v3_and_all_servers(keep, tmp_path, version, sha256, bitmaps):
    repository, objects = Repository(tmp_path / "repo", sha256=sha256, bitmaps=bitmaps, seed=9), set()
    keeper = keep()
    for i in range(4):
        for _ in range(3):
            repository.commit(["main", "side"][i % 2])
        repository.gc()
        synced(keeper, repository, 100 + i, objects, tmp_path, version, sha256)


def test_prereq_must_be_commit(keep, tmp_path):
    """Tags, trees and blobs are good haves, and no bundle of weir has a prerequisite."""
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep()
    tip = repository.commit("main")
    repository.git("tag", "blob", repository.blob(b"a blob"))
    repository.git("tag", "tree", repository.git("rev-parse", tip + "^{tree}").strip())
    repository.git("tag", "-a", "-m", "x", "note", tip)
    repository.git("tag", "-a", "-m", "x", "nested", "note")
    repository.git("update-ref", "refs/notes/commits", repository.commit(parents=[]))
    repository.git("update-ref", "refs/pull/1/head", repository.commit(parents=[tip]))
    repository.git("update-ref", "refs/pull/1/merge", repository.commit(parents=[tip]))
    synced(keeper, repository, 100, objects, tmp_path)
    repository.git("tag", "-f", "blob", repository.blob(b"another"))
    repository.git("tag", "-f", "-a", "-m", "y", "nested", "note")
    repository.commit("main")
    what, _, refs = synced(keeper, repository, 200, objects, tmp_path)
    assert what == "appended" and "refs/pull/1/head" in refs and "refs/pull/1/merge" not in refs


def test_more_tips_than_one_request_names(keep, tmp_path):
    repository, objects = Repository(tmp_path / "repo"), set()
    keeper = keep(**SMALL, max_wants=7)
    for i in range(20):
        repository.git("update-ref", f"refs/heads/b{i}", repository.commit(parents=[]))
    synced(keeper, repository, 100, objects, tmp_path)
    was = repository.kept()
    for i in range(20):
        repository.commit(f"b{i}")
    what, _, refs = synced(keeper, repository, 200, objects, tmp_path)
    assert what == "appended"
    assert {n: o for n, o in refs.items() if n.startswith("refs/weir/200/was/")} == \
        {n.replace("refs/", "refs/weir/200/was/", 1): o for n, o in was.items()}
    assert keeper.at(KEY, 150) == was


def test_verify_passes_but_ours_fails(keep, tmp_path):
    """`git bundle verify` does not look at the pack. The next append does, and keeps what is there."""
    repository = Repository(tmp_path / "repo", seed=3)
    keeper = keep()
    for _ in range(6):
        repository.commit("main", size=4000)
    keeper.sync(KEY, 100, repository)
    size = os.path.getsize(keeper.get(KEY))
    repository.commit("main")
    for at in (header_of(keeper.get(KEY))[1] + 30, size // 2, size - 25, size - 1):
        keeper.do("flip", KEY, at)
        flipped = digest(keeper.get(KEY))
        subprocess.run(["git", "bundle", "verify", "-q", keeper.get(KEY)], env=ENV, cwd=repository.folder, check=True,
                       capture_output=True)
        answer = keeper.ask("sync", KEY, 200, repository.folder, 2)[-1]
        assert answer.startswith("error") and "damaged" in answer
        assert digest(keeper.get(KEY)) == flipped and keeper.do("uploads") == ["ok 0"]
        keeper.do("flip", KEY, at)
    keeper.do("flip", KEY, 40)  # in the header: an id of a ref
    assert "damaged" in keeper.ask("sync", KEY, 200, repository.folder, 2)[-1]
    keeper.do("flip", KEY, 40)
    assert keeper.sync(KEY, 200, repository)[0] == "appended"


@pytest.mark.parametrize("late", [2, 3])
def test_append_crash_keeps_old(keep, tmp_path, late):
    """The process is killed before and behind every call that changes something."""
    repository, objects = Repository(tmp_path / "repo", seed=5), set()
    keeper = keep()
    for _ in range(5):
        repository.commit("main", size=3000)
    synced(keeper, repository, 100, objects, tmp_path)
    repository.commit("main")
    before, call, done = digest(keeper.get(KEY)), 0, False
    while not done:
        call += 1
        keeper.do("fault", call, late)
        try:
            keeper.sync(KEY, 200, repository)
            done = True
        except EOFError:
            keeper.process.wait()
            keeper.start()
            done = digest(keeper.get(KEY)) != before  # killed behind the finish: the new one is there
            keeper.do("abort")
            assert done or digest(keeper.get(KEY)) == before
    assert call >= 5
    synced(keeper, repository, 300, objects, tmp_path)


def test_bundle_uri_clone_from_archive(keep, tmp_path):
    repository = Repository(tmp_path / "repo", seed=6)
    keeper = keep()
    for i in range(3):
        repository.commit("main")
        keeper.sync(KEY, 100 + i, repository)
    repository.commit("main")
    subprocess.run(["git", "clone", "-q", "--mirror", f"--bundle-uri={keeper.get(KEY)}", repository.folder,
                    str(tmp_path / "clone")], env=ENV, check=True, capture_output=True)
    assert git(str(tmp_path / "clone"), "rev-parse", "main") == repository.git("rev-parse", "main")


# --- large bundles, on this machine and behind S3 ---


def large(repository, mib):
    """A commit whose pack has about so many MiB."""
    repository.commit("main", files={f"large{i}": os.urandom(1 << 20) for i in range(mib)})


def grown(keeper, tmp_path):
    """Usual sizes: a bundle of 24 MiB, small and large appends, and a change of the header alone."""
    repository, objects = Repository(tmp_path / "repo", seed=8), set()
    large(repository, 24)
    keeper.sync(KEY, 100, repository)
    for i, mib in enumerate([0, 7, 0, 9, 0]):
        large(repository, mib) if mib else repository.commit("main")
        what, numbers = keeper.sync(KEY, 200 + i, repository)
        assert what == "appended" and numbers["copied"] >= 16 << 20, numbers
        assert numbers["read"] <= numbers["size"] + (1 << 20)
        assert numbers["sent"] <= numbers["pack"] + numbers["header"] + (10 << 20)
    repository.git("update-ref", "refs/heads/other", "refs/heads/main")
    what, numbers, _ = synced(keeper, repository, 300, objects, tmp_path)
    assert what == "header" and numbers["sent"] < 11 << 20


def test_large_bundles_in_a_folder(keep, tmp_path):
    grown(keep(walk=1), tmp_path)


def test_large_bundles_behind_s3(keep, serve, tmp_path):
    server = serve().ready()
    grown(keep(url=server.s3_url, access=server.keys[0], secret=server.keys[1], bucket="github-com"), tmp_path)


def test_large_bundles_in_a_sealed_bucket_behind_s3(keep, serve, tmp_path):
    server = serve("--s3.listen", f"127.0.0.1:{free_port()}").ready()
    s3 = server.s3()
    s3.create_bucket(Bucket="github-com")
    s3.put_bucket_encryption(Bucket="github-com", ServerSideEncryptionConfiguration={
        "Rules": [{"ApplyServerSideEncryptionByDefault": {"SSEAlgorithm": "AES256"}}]})
    grown(keep(url=server.s3_url, access=server.keys[0], secret=server.keys[1], bucket="github-com"), tmp_path)
    assert s3.head_object(Bucket="github-com", Key=KEY)["ServerSideEncryption"] == "AES256"
