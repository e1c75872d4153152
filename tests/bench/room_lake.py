"""lake/: staging beside the same rows by hand and beside lakeFS's earlier SQL way; commits beside the limit and beside
writers; GET, PUT and LIST beside a plain bucket; trees of ten million objects beside one million; lookups and branches
beside git; a restore of refs beside the same rows; builds, commits, diffs, merges and lookups beside DoltLite; memory of a
weir that has a large repository.

LAKE=objects (1000000) sets the size of the commits. FULL=1 also measures trees of ten times as many objects.
MEASURES=get4k,list measures only what begins with one of these names. MEASURES=one_commit takes a minute: it leaves out
all other loads on commits.

The folders of the loads stay until the end. A file system without a journal (ext4) makes a new file slowly for minutes
after many files were removed, because it looks for an inode that was not used recently; that would count as weir's CPU."""
import base64
import concurrent.futures
import json
import os
import re
import statistics
import tempfile
import time
import urllib.request

from lab import Measure, Unmeasured, median, ratios
from lake_doltlite import DoltLite
from lake_peers import Git, Postgres, child_cpu
from room_http import SMALL
from room_s3 import CLIENTS, guarded, keep, put_small, put_text, query_of, start_weir, wrk
from room_start import idle_rss
from room_store import start_durable_redis
from s3_client import headers

BOUNDS = {
    "lake/stage64_vs_db": (">=", 0.4), "lake/stage_batch_vs_db": (">=", 0.6),
    "lake/stage_redis_vs_raw": (">=", 0.6), "lake/stage_postgres_vs_raw": (">=", 0.45), "lake/stage64_vs_sql": (">=", 5),
    "lake/commit_1m_vs_limit": (">=", 0.4), "lake/long_commit_rate": (">=", 0.6),
    "lake/long_commit_p50": ("<=", 1.3), "lake/long_commit_p99": ("<=", 2.0),
    "lake/restore_vs_kv": ("<=", 3),
    "lake/lookup_vs_git": ("<=", 0.2), "lake/branch_vs_git": ("<=", 0.5),
    "lake/get4k_vs_local": ("<=", 1.6), "lake/put4k_vs_local": (">=", 0.45), "lake/list_vs_local": ("<=", 1.5),
}
DOLTLITE_BOUNDS = {f"lake/{name}_vs_doltlite": ("<=", bound) for name, bound in (
    ("build_1m", 1.0), ("one_commit_1m", 2.0), ("lookup", 1.0), ("diff", 1.0), ("merge", 1.0))}
GIT_SHOWN = ("lake/diff_vs_git", "lake/merge_vs_git")
MEMORY_BOUNDS = {"lake/idle_rss_1m": ("<=", 60)}
BOUNDS |= DOLTLITE_BOUNDS | MEMORY_BOUNDS
TREE_BOUNDS = {"one_commit": ("single", 1.3), "diff": ("diff", 1.5), "merge": ("merge", 1.5)}
if os.environ.get("FULL") == "1":
    BOUNDS |= {f"lake/{name}_10m_vs_1m": ("<=", bound) for name, (_, bound) in TREE_BOUNDS.items()}

COMMIT_ROUNDS = 3
LOOKUPS, BRANCHES, SINGLES = 20000, 200, 50
CHANGES = 10000  # of a diff and a merge
DUMPED = 200000  # commits of a dump
LISTED = 1000  # objects of a listing, which is one page


def wanted(*names):
    """Whether MEASURES asks for one of these measures."""
    asked = os.environ.get("MEASURES")
    return not asked or any(name.startswith(one) for name in names for one in asked.split(","))


def stage(lab, target, way, threads, batch=1, server=None):
    """Rate, and CPU of an operation in both processes."""
    figures, before = {}, server.cpu() if server else 0
    command = [lab.program("tests/bench/bench_lake_stage"), target, way, f"{lab.seconds:g}", str(threads), str(batch),
               lab.folder("stage")]
    own = child_cpu(lambda: figures.update(lab.run(command)))
    served = server.cpu() - before if server else 0
    figures["cpu_us"] = (own + served) / figures["ops"] * 1e6
    return figures


def rate(results, name):
    return (f"{median(results, name, 'rate') / 1000:.1f}k/s, p50 {median(results, name, 'p50_us') / 1000:.1f} ms, "
            f"{median(results, name, 'cpu_us'):.0f} us CPU")


def embedded(lab, way):
    return f"embedded:{os.path.join(lab.dir, 'stage-' + way)}"


def measure_stages(lab):
    redis, postgres = start_durable_redis(lab, "redis-lake"), Postgres(lab)
    results = lab.interleave({
        "lake": lambda: stage(lab, embedded(lab, "lake"), "lake", 64),
        "db": lambda: stage(lab, embedded(lab, "hand"), "hand", 64),
        "lake, batches": lambda: stage(lab, embedded(lab, "lake"), "lake", 4, 1000),
        "db, batches": lambda: stage(lab, embedded(lab, "hand"), "hand", 4, 1000),
        "lake on redis": lambda: stage(lab, f"redis:unix://{redis.path}", "lake", 64, server=redis),
        "redis": lambda: stage(lab, f"redis:unix://{redis.path}", "hand", 64, server=redis),
        "lake on postgres": lambda: stage(lab, f"postgres:{postgres.url}", "lake", 64, server=postgres.server),
        "libpq": lambda: stage(lab, f"postgres:{postgres.url}", "hand", 64, server=postgres.server),
        "sql": lambda: stage(lab, f"postgres:{postgres.url}", "sql", 64, server=postgres.server),
    })
    for name, ours, peer in (("stage64_vs_db", "lake", "db"), ("stage_batch_vs_db", "lake, batches", "db, batches"),
                             ("stage_redis_vs_raw_rate", "lake on redis", "redis"),
                             ("stage_postgres_vs_raw_rate", "lake on postgres", "libpq"), ("stage64_vs_sql", "lake", "sql"),
                             ("stage_postgres_vs_sql", "lake on postgres", "sql")):
        yield Measure("lake/" + name, ratios(results, ours, peer, "rate"), rate(results, ours), rate(results, peer))
    for name, ours, peer in (("stage_redis_vs_raw", "lake on redis", "redis"),
                             ("stage_postgres_vs_raw", "lake on postgres", "libpq")):
        yield Measure("lake/" + name, ratios(results, peer, ours, "cpu_us"),
                      *(f"{median(results, one, 'cpu_us'):.0f} us CPU" for one in (ours, peer)))
    lab.stop(redis)
    postgres.remove(lab)


def only_one_commit():
    asked = os.environ.get("MEASURES")
    return bool(asked) and all(one.startswith("one_commit") for one in asked.split(","))


def new_folder(lab, name):
    return tempfile.mkdtemp(prefix=name + "-", dir=lab.dir)


def commit(lab, objects):
    return lab.run([lab.program("tests/bench/bench_lake_commit"), new_folder(lab, "commit"), str(objects), f"{lab.seconds:g}",
                    "64", *["one_commit"] * only_one_commit()])


def middle_of(rounds, figure):
    return statistics.median(one[figure] for one in rounds)


def measure_one_commit(rounds):
    yield Measure("lake/one_commit", [one["one_commit_cpu_us"] / 1000 for one in rounds],
                  f"{middle_of(rounds, 'one_commit_seconds') / SINGLES * 1000:.1f} ms", unit=" ms CPU")


def measure_commits(git, rounds, lab):
    def middle(figure):
        return middle_of(rounds, figure)

    def over(name, ours, peer, unit, scale=1):
        return Measure("lake/" + name, [one[ours] / one[peer] for one in rounds], f"{middle(ours) / scale:.3g} {unit}",
                       f"{middle(peer) / scale:.3g} {unit}")
    yield Measure("lake/commit_1m_vs_limit", [one["limit_cpu"] / one["commit_cpu"] for one in rounds],
                  f"{middle('commit_cpu'):.2f} s CPU, {middle('commit_seconds'):.2f} s", f"{middle('limit_cpu'):.2f} s CPU")
    yield over("long_commit_rate", "beside_rate", "alone_rate", "k/s", 1000)
    yield over("long_commit_p50", "half_beside_p50_us", "half_alone_p50_us", "ms", 1000)
    yield over("long_commit_p99", "half_beside_p99_us", "half_alone_p99_us", "ms", 1000)
    for name, figure, peers in (("lookup", "lookup_cpu_us", [git.lookups(lab.random, LOOKUPS) for _ in rounds]),
                                ("branch", "branch_cpu_us", [git.make_branches(BRANCHES) for _ in rounds])):
        yield Measure(f"lake/{name}_vs_git", [one[figure] / peer for one, peer in zip(rounds, peers)],
                      f"{middle(figure):.1f} us CPU", f"{statistics.median(peers):.1f} us CPU")
    yield from measure_one_commit(rounds)
    for name in ("commits_one_branch", "commits_eight_branches"):
        yield Measure(f"lake/{name}", [200 / one[name + "_seconds"] for one in rounds], f"{middle(name + '_cpu_us'):.0f} us CPU",
                      unit="/s")


def measure_git_trees(git, trees, rounds):
    """Without a bound: the same changes of as many names, by git."""
    for name, peers in zip(("diff", "merge"), git.diff_and_merge(len(rounds))):
        ours = trees[name + "_cpu_us"] * CHANGES / 1e6
        yield Measure(f"lake/{name}_vs_git", [ours / peer for peer in peers], f"{ours * 1000:.1f} ms CPU",
                      f"{statistics.median(peers) * 1000:.0f} ms CPU")


def tree(lab, objects):
    return lab.run([lab.program("tests/bench/bench_lake_tree"), new_folder(lab, "tree"), str(objects)])


def measure_trees(lab, objects):
    rounds = [(tree(lab, objects), tree(lab, 10 * objects)) for _ in range(min(COMMIT_ROUNDS, lab.rounds))]
    for name, (figure, _) in TREE_BOUNDS.items():
        pairs = [(small[figure + "_cpu_us"], large[figure + "_cpu_us"]) for small, large in rounds]
        yield Measure(f"lake/{name}_10m_vs_1m", [large / small for small, large in pairs],
                      *(f"{statistics.median(pair[i] for pair in pairs):.2f} us CPU a change" for i in (1, 0)))


def refs(lab):
    return lab.run([lab.program("tests/bench/bench_lake_refs"), new_folder(lab, "refs"), str(DUMPED)])


def measure_refs(lab):
    rounds = [refs(lab) for _ in range(lab.rounds)]

    def text(name):
        return " s, ".join(f"{statistics.median(one[name + figure] for one in rounds):.2f}" for figure in ("_seconds", "_cpu")) + " s CPU"
    yield Measure("lake/restore_vs_kv", [one["restore_cpu"] / one["hand_cpu"] for one in rounds], text("restore"), text("hand"))
    yield Measure("lake/dump", [one["dump_cpu_us"] for one in rounds], text("dump"), unit=" us CPU a ref")


def measure_one_commit_doltlite(lab, rounds, peer):
    """The peer is measured as often as weir was."""
    ones = [peer.singles(lab.random, SINGLES) for _ in rounds]
    yield Measure("lake/one_commit_1m_vs_doltlite",
                  [run["one_commit_cpu_us"] / 1e6 / one for run, one in zip(rounds, ones)],
                  f"{middle_of(rounds, 'one_commit_cpu_us') / 1000:.2f} ms CPU", f"{statistics.median(ones) * 1000:.2f} ms CPU")


def measure_doltlite(lab, objects, rounds, trees):
    """The commits and the trees were measured before, on the same objects."""
    peer = DoltLite(lab, objects)
    built = peer.build()
    yield from measure_one_commit_doltlite(lab, rounds, peer)
    if only_one_commit():
        return
    whole = middle_of(rounds, "fill_cpu") + middle_of(rounds, "commit_cpu")
    found = peer.lookups(lab.random, LOOKUPS)
    diff, merge = peer.diff_and_merge()
    yield Measure("lake/build_1m_vs_doltlite", [trees["build_cpu"] / built], f"{trees['build_cpu']:.2f} s CPU",
                  f"{built:.2f} s CPU")
    yield Measure("lake/load_1m_vs_doltlite", [whole / built], f"{whole:.2f} s CPU", f"{built:.2f} s CPU")
    yield Measure("lake/lookup_vs_doltlite", [run["lookup_cpu_us"] / 1e6 / found for run in rounds],
                  f"{middle_of(rounds, 'lookup_cpu_us'):.1f} us CPU", f"{found * 1e6:.1f} us CPU")
    for name, seconds in (("diff", diff), ("merge", merge)):
        ours = trees[name + "_cpu_us"] * CHANGES / 1e6
        yield Measure(f"lake/{name}_vs_doltlite", [ours / seconds], f"{ours * 1000:.1f} ms CPU", f"{seconds * 1000:.0f} ms CPU")


# --- memory ---

def import_all(weir, api, bucket):
    """Imports every object of the bucket into the repository, and waits."""
    path = "/repositories/large/branches/main/import"
    done = json.loads(api_call(weir, api, path, {"commit": {"message": "all"}, "paths": [
        {"type": "common_prefix", "path": f"s3://{bucket}/", "destination": ""}]}))
    while not (status := json.loads(api_call(weir, api, f"{path}?id={done['id']}")))["completed"]:
        if "error" in status:
            raise Unmeasured(f"import: {status['error']['message']}")
        time.sleep(0.5)
    return status["ingested_objects"]


def measure_memory(lab, objects):
    data = lab.folder("large")
    lab.run([lab.program("tests/bench/bench_local"), data, "fill", "source", "root", str(objects)])
    weir = start_weir(lab, "weir-large", data)
    api = api_of(lab, weir)
    weir.need("PUT", "/lake-data")
    api_call(weir, api, "/repositories", {"name": "large", "storage_namespace": "s3://lake-data/large"})
    if (count := import_all(weir, api, "source")) != objects:
        raise Unmeasured(f"{count} of {objects} objects were imported")
    lab.stop(weir.server)
    held, threads = idle_rss(lab, data)
    yield Measure("lake/idle_rss_1m", [held], f"{threads} threads", unit=" MB")


# --- through S3, beside a plain bucket ---

def api_of(lab, weir):
    return re.search(r"API +(http://127\.0\.0\.1:\d+)", lab.output(weir.server)).group(1)


def api_call(weir, api, path, body=None):
    """POSTs the body; without one it is a GET."""
    login = base64.b64encode(f"{weir.keys.access}:{weir.keys.secret}".encode()).decode()
    sent = None if body is None else json.dumps(body).encode()
    request = urllib.request.Request(api + "/api/v1" + path, sent, headers={
        "Authorization": "Basic " + login, "Content-Type": "application/json"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return answer.read()


def start_lake(lab):
    """A weir with the bucket box and the repository repo, each with the same objects."""
    weir = start_weir(lab, "weir-lake")
    api = api_of(lab, weir)
    weir.need("PUT", "/box")
    weir.need("PUT", "/lake-data")
    api_call(weir, api, "/repositories", {"name": "repo", "storage_namespace": "s3://lake-data/repo"})
    body = os.urandom(SMALL)
    with concurrent.futures.ThreadPoolExecutor(CLIENTS) as pool:
        list(pool.map(lambda path: weir.need("PUT", path, body),
                      [f"{folder}/listed-{n:05}" for folder in ("/box", "/repo/main") for n in range(LISTED)]))
    api_call(weir, api, "/repositories/repo/branches/main/commits", {"message": "bench"})
    return weir


def get_signed(lab, weir, path):
    signed = [h for h in headers(weir.keys, "GET", weir.host, path) if h[0] != "host"]
    return wrk(lab, weir, path, signed)


def list_page(lab, weir, bucket, prefix):
    request = weir.raw("GET", bucket, query_of({"list-type": "2", "max-keys": str(LISTED), "prefix": prefix + "listed-"}))
    command = [lab.program("tests/bench/bench_http_load"), "-c", "1", "-t", f"{lab.seconds:g}", "-f",
               keep(os.path.join(lab.dir, "pages"), [request]), "127.0.0.1", str(weir.port)]
    figures = lab.served(weir.server, lambda: lab.run(command))
    figures["cpu_us"] = figures["cpu"] / figures["ops"] * 1e6
    return figures


def measure_s3(lab):
    weir, body = start_lake(lab), os.urandom(SMALL)
    loads = {
        "get4k": (lambda: get_signed(lab, weir, "/repo/main/listed-00500"),
                  lambda: get_signed(lab, weir, "/box/listed-00500")),
        "list": (lambda: list_page(lab, weir, "/repo", "main/"), lambda: list_page(lab, weir, "/box", "")),
        "put4k": (lambda: put_small(lab, weir, body, "/repo/main"), lambda: put_small(lab, weir, body)),
    }
    results = lab.interleave({key: load for name, (ours, peer) in loads.items() if wanted(name)
                              for key, load in ((name + ", lake", ours), (name, peer))})
    for name in filter(wanted, ("get4k", "list")):
        yield Measure(f"lake/{name}_vs_local", ratios(results, name + ", lake", name, "cpu_us"),
                      *(f"{median(results, one, 'cpu_us'):.0f} us CPU" for one in (name + ", lake", name)))
    if wanted("put4k"):
        yield Measure("lake/put4k_vs_local", ratios(results, "put4k, lake", "put4k", "rate"),
                      put_text(results, "put4k, lake"), put_text(results, "put4k"))
    lab.stop(weir.server)


def measure_all_commits(lab, objects):
    rounds, trees = [commit(lab, objects) for _ in range(min(COMMIT_ROUNDS, lab.rounds))], None
    if only_one_commit():
        yield from measure_one_commit(rounds)
    else:
        git, trees = Git(lab, objects), tree(lab, objects)
        yield from measure_commits(git, rounds, lab)
        yield from guarded(GIT_SHOWN, measure_git_trees, git, trees, rounds)
    yield from guarded(DOLTLITE_BOUNDS, measure_doltlite, lab, objects, rounds, trees)


def measure(lab):
    objects = int(os.environ.get("LAKE") or 1000000)
    if wanted("stage"):
        yield from measure_stages(lab)
    if wanted("get4k", "list", "put4k"):
        yield from measure_s3(lab)
    if wanted("commit", "long_commit", "lookup", "branch", "one_commit", "commits", "doltlite"):
        yield from measure_all_commits(lab, objects)
    if wanted("restore", "dump"):
        yield from measure_refs(lab)
    if wanted("idle_rss"):
        yield from guarded(MEMORY_BOUNDS, measure_memory, lab, objects)
    if os.environ.get("FULL") == "1" and wanted(*TREE_BOUNDS):
        yield from measure_trees(lab, objects)
