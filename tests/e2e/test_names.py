"""Names on the wire are the names that were judged (docs/forward.md, F13).

Clients that sign, presign or do not sign send random and hostile requests through weir to two storages that remember
what arrives. What arrives means the same to every storage, and is what was asked for; it is at the storage of the
bucket's route, it is of no blocked bucket, and weir comes by itself to look at every key of the replicated bucket that
it changed. Or nothing arrives. The test knows nothing of weir's inside.
"""
import concurrent.futures
import os
import random
import re
import secrets
from urllib.parse import unquote, urlsplit

import pytest

import names_lab
from conftest import runner, wait_for
from names_lab import CHANGES, MARK, Recorder, names_of, send, signed

SEED = int(os.environ.get("WEIR_SEED", secrets.randbelow(2**32)))
REQUESTS = 1000
# Where requests for a bucket go: `near` is the main storage, `watched` is replicated to `far`, `local` is a folder.
PLACES = {"here": "near", "watched": "near", "blocked": None, "elsewhere": "far", "kept": "local"}
ALICE = ("AKIAALICE", "secret-of-alice")

PATHS = """/{b}%2F{k} /{b}%2f{k}/x /{b}%2F{k}%2Fx /here%2F..%2F{b}/{k} /%2E%2E/{b}/{k} /./{b}/{k} /../{b}/{k} //{b}/{k} /:{b}/{k}
/%3A{b}/{k} /t:{b}/{k} /t%3a{b}/{k} /::{b}/{k} /{b}:/{k} /{b}%00/{k} /{b}%5C{k}/x /{b}%3F/{k} /{b}%20/{k} /{b}+/{k} /{b}%23/{k}
/{b};x=y/{k} /{B}/{k} /{b}./{k} /{b}%252F{k} /here/../{b}/{k} /here/%2E%2E/{b}/{k} /here/..%2F{b}%2F{k} /{b}/x/../{k}
/{b}/./{k} /{b}//{k} /{b}/{k}/ /{b}/%2F{k} /{b}/{k}%252Fx /{b}/{k}+x /{b}/{k}%2Bx /{b}/{k}%3Fx /{b}/{k};v=1 /{b}/{k}\\x
/{b}/{k}%5Cx /{b}/{k}%C3%BC /{b}/{k}:x /{b}/{k}%2Fx/%2F/y /{e}/{k} http://127.0.0.1/{b}/{k} /{b}%C3%BC/{k} /{b}/{k}%2""".split()
HOSTS = """{b}.s3.test {B}.s3.test {b}.S3.Test {b}.s3.test. {b}.s3.test:80 {b}.s3.test.:80 {b}%2Fx.s3.test x%2F{b}.s3.test
t:{b}.s3.test t%3A{b}.s3.test {b}..s3.test .{b}.s3.test {b}.web.test s3.test %2E%2E.s3.test""".split()
QUERIES = """versionId={v}&versionId=w %76ersionId={v} versionId={v}&%76ersionId=w versionid={v} partNumber=1&uploadId=u1
uploadId=u1&partNumber=2&uploadId=u2 partNumber=1&uploadId=u1&%75ploadId=u2 tagging acl tagging&acl uploads&uploadId=u1 metrics
select append&position=0 x-amz-copy-source=/blocked/s X-Amz-Copy-Source=/blocked/s new=1 renameObject;versionId={v}
versionId={v};versionId=w versionId={v}%26versionId=w""".split()
BATCH_QUERIES = ["delete", "delete=", "delete&logging", "logging&delete", "delete&metrics", "acl&delete", "delete&x=1",
                 "%64elete", "Delete", "DELETE=1"]
SOURCES = """/{s}/{k} {s}/{k} {s}%2F{k} %2F{s}%2F{k} /{s}/{k}?versionId=v9 :{s}/{k} /:{s}/{k} %3A{s}/{k} t:{s}/{k} /t%3A{s}%2F{k}
//{s}/{k} %2F%2F{s}/{k} here%2F..%2F{s}/{k} {s}/{k}?x=1 {s}/{k}?versionId=a&versionId=b {s}/{k}?x=1&versionId=b {s}/{k}+x
{s}/{k}%2Bx arn:aws:s3:::{s}/{k} {s} {s}/{k}%3FversionId=v {s}/{k}?versionId=a%2Fb {s}%5C{k} ../{s}/{k} {s}/{k}?versionId=""".split()
OTHER_SOURCES = ["x_amz_copy_source", "X-Amz_Copy-Source", "x-goog-copy-source", "x-amz-rename-source"]
REWRITES = [("X-HTTP-Method-Override", "DELETE"), ("X-Original-URL", "/blocked/k"), ("X-Rewrite-URL", "/blocked/k"),
            ("X-Forwarded-Host", "blocked.s3.test"), ("X-Method-Override", "PUT")]
BATCHES = ["<Object><Key>{k}</Key><Key>{o}</Key></Object>", "<Object><Key>{k}<!--{o}--></Key></Object>",
           "<Object><Key><![CDATA[{k}]]></Key></Object>", '<Object><Key>{k}</Key><x:Key xmlns:x="urn:x">{o}</x:Key></Object>',
           '<Object><x:Key xmlns:x="urn:x">{k}</x:Key></Object>', "<Object><Key>&#107;{k}</Key></Object>",
           "<Object><Key>{k}<Key>{o}</Key></Key></Object>", '<Object Key="{o}"><Key>{k}</Key></Object>',
           "<Object><Key>{k}</Key><Key/></Object>", "<Object><Key/></Object><Object><Key>{k}</Key></Object>",
           "<Object><Key>{k}</Key></Object><Objects><Key>{o}</Key></Objects>", "<Object><Key>{k}<?x {o}?></Key></Object>",
           "<Object><VersionId>a</VersionId><Key>{k}</Key><VersionId>b</VersionId></Object>",
           "<Object><Key>{k}</Key><VersionId>a</VersionId></Object><Quiet>true</Quiet>",
           "<Object><Key>{k}</Key><Name>{o}</Name></Object>", "<Object><Key>{k}&amp;&lt;&#13;</Key></Object>",
           "<Object><Key>{k}</Key></Object><Object><Key>{o}</Key><VersionId/></Object>", "<Object><key>{o}</key><Key>{k}</Key></Object>",
           "<Object><Key>{k}</Key></Object>" + "<Object><Key>{o}</Key></Object>" * 1000, "</Delete><Delete><Object><Key>{k}</Key></Object>"]
FORMS = ["/{b}", "/{b}?logging", "/{b}?metrics", "/{b}?x=1", "/{b}/path-{k}", "/{b}/path-{k}?x=1", "/{b}?delete"]


class Maker:
    """Requests by a seed: most have one strange part, some have none and some two."""

    def __init__(self, seed):
        self.random, self.count = random.Random(seed), 0

    def pick(self, plain, strange):
        return self.random.choice(strange) if self.strange and self.random.random() < self.strange else plain

    def make(self):
        r = self.random
        self.count += 1
        self.strange = r.choice([0, 0.4, 0.4, 0.8])
        self.fill = {"b": r.choice(list(PLACES)), "k": f"k{self.count}", "v": f"v{self.count}", "o": f"o{self.count}"}
        self.fill.update(B=self.fill["b"].upper(), e="".join(f"%{ord(c):02X}" for c in self.fill["b"]), s=r.choice(list(PLACES)))
        kind = r.choice([self.of_object, self.of_object, self.of_object, self.copy, self.batch, self.form])
        method, path, query, headers, body = kind()
        host, path = self.host(path)
        if kind != self.form:
            headers += [r.choice(REWRITES)] if self.strange and r.random() < 0.1 else []
        headers = [("Host", host), (MARK, str(self.count))] + headers
        style = None if kind == self.form else r.choice(["head", "head", "query", None])
        self.who = r.randrange(2)
        return method, path + ("?" + query if query else ""), headers, body, (style, self.who), not self.strange

    def host(self, path):
        """Of paths that begin with the bucket some go by its host."""
        plain = f"/{self.fill['b']}"
        if not path.startswith(plain) or path[len(plain):len(plain) + 1] not in ("/", "") or self.random.random() < 0.6:
            return "127.0.0.1", path
        return self.pick("{b}.s3.test", HOSTS).format(**self.fill), path[len(plain):] or "/"

    def of_object(self):
        method = self.pick(self.random.choice(["PUT", "GET", "HEAD", "DELETE"]), ["POST", "COPY", "PATCH"])
        query = self.pick(self.random.choice(["", "versionId={v}"]), QUERIES).format(**self.fill)
        if method == "PUT" and query.startswith("versionId") and not self.strange:
            query = ""
        return method, self.pick("/{b}/{k}", PATHS).format(**self.fill), query, [], b"body" if method == "PUT" else b""

    def copy(self):
        headers = [("x-amz-copy-source", self.pick("/{s}/{k}", SOURCES).format(**self.fill))]
        if self.strange and self.random.random() < 0.3:
            headers.insert(self.random.randrange(2), (self.pick("x-amz-copy-source", OTHER_SOURCES),
                                                      self.random.choice(SOURCES).format(**self.fill)))
        method = self.pick("PUT", ["GET", "POST"])
        query = self.pick("", ["partNumber=1&uploadId=u1", "acl", "select", "new=1"])
        return method, self.pick("/{b}/{k}", PATHS).format(**self.fill), query, headers, b""

    def batch(self):
        text = self.pick("<Object><Key>{k}</Key></Object><Object><Key>{o}</Key></Object>", BATCHES).format(**self.fill)
        doctype = self.pick("", ['<!DOCTYPE Delete [<!ENTITY e "x">]>', "<!-- <Key>x</Key> -->"])
        return ("POST", "/" + self.fill["b"], self.pick("delete", BATCH_QUERIES), [],
                f"{doctype}<Delete>{text}</Delete>".encode())

    def form(self):
        path, _, query = self.pick("/{b}", FORMS).format(**self.fill).partition("?")
        body = "".join(f'--X\r\nContent-Disposition: form-data; name="{n}"\r\n\r\n{v}\r\n' for n, v in
                       (("key", self.fill["k"]), (MARK, self.count), ("file", "bytes"))) + "--X--\r\n"
        types = self.pick([], [[("Content-Type", "text/plain")], [("Content-Type", "application/xml")]])
        kind = self.pick("multipart/form-data; boundary=X", ["Multipart/Form-Data; boundary=X", "text/plain"])
        return "POST", path, query, types + [("Content-Type", kind)], body.encode()


def meant(target, host):
    """Bucket and key that a request asks for; None: it asks for nothing that could be passed on."""
    path = urlsplit(target).path if target.startswith("http") else target.split("?")[0]
    name = host.partition(":")[0].rstrip(".").lower()
    if name.endswith(".web.test"):
        return None
    if name.endswith(".s3.test"):
        return name[:-len(".s3.test")], unquote(path[1:])
    bucket, _, key = path[1:].partition("/")
    bucket = unquote(bucket)
    return bucket[1:] if bucket.startswith(":") else bucket, unquote(key)


def source_meant(headers):
    text, at, version = dict(headers)["x-amz-copy-source"].partition("?versionId=")
    bucket, _, key = unquote(text).removeprefix("/").partition("/")
    return bucket.removeprefix(":"), key, unquote(version) if at else None


@pytest.fixture(params=["in the path", "in the host"])
def lab(serve, weir, request):
    """Names of buckets go to the storages in one of two ways."""
    stores = {"near": Recorder(PLACES), "far": Recorder(PLACES)}
    server = serve("--s3.domain", "s3.test", "--s3.website_domain", "web.test").ready()
    run = runner(server, weir)
    for name, store in stores.items():
        run("storage", "add", name, "--endpoint", store.url, "--user", "root", "--access-key", "AKIATHERE", "--secret-key",
            "secret-there", *(["--main"] if name == "near" else []),
            *(["--virtual-host"] if request.param == "in the host" else []))
    run("user", "add", "alice", "--access-key", ALICE[0], "--secret-key", ALICE[1])
    for name in stores:
        run("storage", "key", name, "alice", "--access-key", "AKIATHERE", "--secret-key", "secret-there")
    run("bucket", "route", "elsewhere", "far", "--user", "root")
    run("bucket", "route", "kept", "local", "--user", "root")
    server.s3().create_bucket(Bucket="kept")
    for name in stores:
        run("bucket", "route", "blocked", name, "--block")
    run("replicate", "add", "watched", "far", "--user", "root")
    wait_for(lambda: run("replicate", "list", "--json")[0]["state"] == "in sync", "the replication")
    yield server, stores
    for store in stores.values():
        store.close()


def changed_keys(asked, names):
    """Keys that this request changes; parts of uploads and tags that are only read change none."""
    query = asked.target.partition("?")[2]
    of_upload = "uploadId" in query or "uploads" in query
    if asked.method not in CHANGES or (of_upload and not (asked.method == "POST" and "uploadId" in query)):
        return set()
    return {key for batch in names.keys for key, _ in batch}


def judge(place, asked, request):
    """Of what arrived: that it can be read in one way alone, and that this is what was asked for."""
    method, target, headers, body, _, _ = request
    names = names_of(asked)
    assert all(len(values) == 1 for values in names), ("it can be read in two ways", names)
    bucket, keys, source = names.buckets.copy().pop(), names.keys.copy().pop(), names.sources.copy().pop()
    assert PLACES.get(bucket, "near") == place, "a bucket that is not here"
    form = any("form-data" in v.lower() for n, v in headers if n == "Content-Type")
    asked_for = meant(target, dict(headers)["Host"])
    assert asked_for and asked_for[0] == bucket, "another bucket"
    if "delete" in unquote(target) and bucket:
        known = set(re.findall("[ko][0-9]+", body.decode()))
        assert keys and {re.search("[ko][0-9]+", k)[0] for k, _ in keys} <= known, "other keys"
    elif not form:
        assert keys == (((asked_for[1], None),) if asked_for[1] else ()), "another key"
    assert names.methods == {"PUT" if form and asked.method == "PUT" else method}, "another method"
    assert source is None or (PLACES.get(source[0], "near") == place and source == source_meant(headers)), "another source"
    return names


def test_what_arrives_is_what_was_judged(lab):
    server, stores = lab
    print(f"WEIR_SEED={SEED}")
    users, address = (server.keys, ALICE), tuple(urlsplit(server.s3_url).netloc.split(":"))
    maker = Maker(SEED)
    requests = {str(n): maker.make() for n in range(1, REQUESTS + 1)}

    def play(request):
        method, target, headers, body, (style, who), _ = request
        return send(address, method, *signed(users[who], style, method, target, headers, body), body)

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        answers = dict(zip(requests, pool.map(play, requests.values())))
    arrived, to_see, wrong = set(), {}, []
    for place, store in stores.items():
        for asked in store.asked:
            mark = names_lab.header(asked, MARK)
            arrived.add(mark)
            try:
                names = judge(place, asked, requests[mark])
                if names.buckets == {"watched"}:
                    to_see.update({key: (requests[mark], asked) for key in changed_keys(asked, names)})
            except AssertionError as e:
                wrong.append((str(e.args[0] if e.args else e), requests[mark], asked))
    assert not wrong, f"seed {SEED}: {len(wrong)} of {REQUESTS}, such as\n" + "\n\n".join(
        "\n  ".join(map(str, w)) for w in wrong[:8])

    # Capture, seen from outside.
    def unseen():
        return {key for key in to_see if ("watched", key) not in stores["near"].looked}
    try:
        wait_for(lambda: not unseen(), "weir to look at what was changed")
    except AssertionError:
        raise AssertionError(f"seed {SEED}: never looked at: " + str([to_see[k] for k in unseen()][:8])) from None
    strays = [(p, n) for p, s in stores.items() for n in s.looked if PLACES.get(n[0], "near") != p and not (p == "far" and n[0] == "watched")]
    assert not strays, f"seed {SEED}: {strays[:8]}"

    # Ordinary requests do arrive.
    lost = [(r, answers[n]) for n, r in requests.items() if r[5] and n not in arrived and not is_refused(r)]
    assert not lost, f"seed {SEED}: {lost[:5]}"
    assert len(to_see) > 20 and len(arrived) > REQUESTS / 8, (len(to_see), len(arrived))


def is_refused(request):
    """Of a blocked bucket or a folder's, or a copy that is not within one storage: weir makes those itself."""
    bucket, _ = meant(request[1], dict(request[2])["Host"])
    source = dict(request[2]).get("x-amz-copy-source")
    return PLACES[bucket] not in ("near", "far") or (source and PLACES[source_meant(request[2])[0]] != PLACES[bucket])
