"""A storage that remembers what it was asked, and all the names that a storage may read out of a request.

Storages do not agree on how a strange request is read: which of two versionId counts, whether %2F in a path is a slash,
which <Key> of an <Object> is removed. names_of() reads a request in all these ways at once: it gives a set of values for
each thing that a request names. A request whose sets have one member each means the same to every storage.
"""
import hashlib
import hmac
import html
import re
import socket
import threading
import time
import xml.etree.ElementTree as ET
from collections import namedtuple
from urllib.parse import quote, unquote, unquote_plus

MARK = "x-amz-meta-test-id"  # stands in every request of a client, and in none that weir makes by itself
Asked = namedtuple("Asked", "method target headers body")  # headers: [(name, value)], as they came
Names = namedtuple("Names", "methods buckets keys versions uploads sources")
CHANGES = {"PUT", "POST", "DELETE"}
REWRITES = {"x-original-url", "x-rewrite-url", "x-forwarded-prefix"}
METHODS = {"x-http-method-override", "x-http-method", "x-method-override"}


def header(asked, name):
    return next((v for n, v in asked.headers if n.lower() == name), None)


# --- the storage ---


class Recorder:
    """asked: requests of clients by their mark. looked: (bucket, key) of objects that weir itself has asked about."""

    def __init__(self, buckets):
        self.buckets, self.asked, self.looked, self.lock = buckets, [], set(), threading.Lock()
        self.listener = socket.create_server(("127.0.0.1", 0), backlog=256)
        self.url = "http://127.0.0.1:%d" % self.listener.getsockname()[1]
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        try:
            while True:
                peer = self.listener.accept()[0]
                threading.Thread(target=self.talk, args=(peer,), daemon=True).start()
        except OSError:
            pass  # closed by the test

    def talk(self, peer):
        with peer, peer.makefile("rb") as lines:
            while asked := read_request(lines):
                host = header(asked, "host").removesuffix(self.url[7:])
                if host:  # "bucket.": the same as if it stood in the path
                    asked = asked._replace(target="/" + host[:-1] + asked.target)
                with self.lock:
                    answer = self.answer(asked)
                peer.sendall(answer)

    def answer(self, asked):
        if header(asked, MARK):
            self.asked.append(asked)
            return respond(asked, 200, client_document(asked))
        bucket, _, key = asked.target.split("?")[0][1:].partition("/")
        if key:
            self.looked.add((unquote(bucket), unquote(key)))
        return respond(asked, *own_answer(asked, key, self.buckets))

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


def read_request(lines):
    first = lines.readline().decode("latin-1").split()
    if len(first) != 3:
        return None
    headers = []
    while line := lines.readline().decode("latin-1").rstrip("\r\n"):
        name, _, value = line.partition(":")
        headers.append((name, value.strip()))
    asked = Asked(first[0], first[1], headers, b"")
    return asked._replace(body=lines.read(int(header(asked, "content-length") or 0)))


def respond(asked, status, document=""):
    head = f"HTTP/1.1 {status} -\r\nContent-Length: {len(document)}\r\nETag: \"{'0' * 32}\"\r\n"
    head += "Last-Modified: Thu, 01 Jan 2026 00:00:00 GMT\r\nContent-Type: application/xml\r\n\r\n"
    return (head + ("" if asked.method == "HEAD" else document)).encode()


def client_document(asked):
    if header(asked, "x-amz-copy-source"):
        return f"<CopyObjectResult><ETag>\"{'0' * 32}\"</ETag></CopyObjectResult>"
    if "uploads" in asked.target:
        return "<InitiateMultipartUploadResult><UploadId>u</UploadId></InitiateMultipartUploadResult>"
    return "<DeleteResult/>" if "delete" in asked.target else ""


def own_answer(asked, key, buckets):
    """Buckets that are there, and no object in them."""
    query = asked.target.partition("?")[2]
    if asked.method in ("PUT", "DELETE", "POST"):
        return 200 if asked.method == "PUT" else 204, ""
    if key:
        return 404, "<Error><Code>NoSuchKey</Code></Error>"
    if asked.target.split("?")[0] == "/":
        rows = "".join(f"<Bucket><Name>{b}</Name><CreationDate>2026-01-01T00:00:00.000Z</CreationDate></Bucket>" for b in buckets)
        return 200, f"<ListAllMyBucketsResult><Owner><ID>o</ID></Owner><Buckets>{rows}</Buckets></ListAllMyBucketsResult>"
    for name, root in (("versioning", "VersioningConfiguration"), ("versions", "ListVersionsResult"),
                       ("uploads", "ListMultipartUploadsResult"), ("location", "LocationConstraint")):
        if name in query:
            return 200, f"<{root}/>"
    if "list-type" in query or not query:
        return 200, "<ListBucketResult><KeyCount>0</KeyCount><IsTruncated>false</IsTruncated></ListBucketResult>"
    return (404, "<Error><Code>NoSuchTagSet</Code></Error>") if "tagging" in query else (
        501, "<Error><Code>NotImplemented</Code></Error>")


# --- what a storage may read ---


def steps_taken(path):
    """With its . and .. gone, as browsers and many servers do it."""
    out = []
    for step in path.split("/")[1:]:
        if step == "..":
            out = out[:-1]
        elif step != ".":
            out.append(step)
    return "/" + "/".join(out)


def split(path):
    bucket, _, key = path[1:].partition("/")
    return bucket, key


def paths_of(asked):
    """(bucket, key) by each reading; a path that something on the way rewrites is one, unless the signature shows it."""
    path = asked.target.split("?")[0]
    bucket, key = split(path)
    found = {(unquote(bucket), unquote(key)), split(unquote(path))}
    found |= {split(unquote(v.split("?")[0])) for n, v in asked.headers if n.lower() in REWRITES}
    if not header(asked, "authorization"):
        found.add(split(steps_taken(unquote(path))))
    found |= {(b.rpartition(":")[2], k) for b, k in found if ":" in b}
    host = (header(asked, "x-forwarded-host") or header(asked, "x-host") or "").split(".")[0]
    return found | ({(host, unquote(path[1:]))} if host else set())


def values_of(query, name):
    """First and last, by any spelling; names of sub-resources in any case."""
    fold = str.lower if name == "delete" else str
    found = [unquote_plus(v) for n, _, v in (p.partition("=") for p in query.split("&")) if fold(unquote_plus(n)) == name]
    return {found[0], found[-1]} if found else {None}


def sources_read(text):
    """(bucket, key, version), as AWS, Ceph and others cut it."""
    found = set()
    for where, params in ((text.partition("?")[0], text.partition("?")[2]), (text.partition("?versionId=")[0], text)):
        version = values_of(params.rpartition("?")[2], "versionId").pop()
        for plain in (unquote(where), unquote_plus(where)):
            bucket, _, key = (plain[1:] if plain.startswith("/") else plain).partition("/")
            found.add((bucket.rpartition(":")[2], key, version))
    return found


def sources_of(asked, query):
    texts = [v for n, v in asked.headers
             if re.search("(copy|rename)-source$", n.lower().replace("_", "-")) and not n.lower().startswith("x-amz-meta-")]
    texts += [v for v in values_of(query, "x-amz-copy-source") if v]
    return {source for text in texts for source in sources_read(text)} or {None}


def local(name):
    return name.rpartition("}")[2]


def batches_of(body):
    """((key, version), ...) of a DeleteObjects by each reading."""
    objects = [o for o in ET.fromstring(body).iter() if local(o.tag) == "Object"]
    found = set()
    for which in (0, -1):
        def text(of, name):
            there = [e for e in of if local(e.tag) == name]
            return there[which].text if there else None
        found.add(tuple((text(o, "Key"), text(o, "VersionId")) for o in objects))
    raw = body.decode()
    keys = [html.unescape(k) for k in re.findall("<Key>(.*?)</Key>", raw, re.S)]
    versions = [re.search("<VersionId>(.*?)</VersionId>", o, re.S) for o in re.findall("<Object>.*?</Object>", raw, re.S)]
    found.add(tuple((k, v and html.unescape(v[1])) for k, v in zip(keys, versions)))
    return found | ({tuple((k, None) for k in keys)} if len(keys) != len(versions) else set())


def names_of(asked):
    query = asked.target.partition("?")[2]
    paths = paths_of(asked)
    methods = {asked.method} | {v for n, v in asked.headers if n.lower() in METHODS}
    keys = {((k, None),) if k else () for _, k in paths}
    if asked.method == "POST" and paths != {("", "")} and values_of(query, "delete") != {None}:
        keys = batches_of(asked.body)
    if asked.method == "POST" and any(n.lower() == "content-type" and "form-data" in v for n, v in asked.headers):
        keys |= {((k.decode(), None),) for k in re.findall(b'name="key"\r\n\r\n(.*?)\r\n', asked.body)}
    return Names(methods, {b for b, _ in paths}, keys, values_of(query, "versionId"), values_of(query, "uploadId"),
                 sources_of(asked, query))


# --- a client that signs anything ---


def recoded(text, safe, plus=False):
    return quote((unquote_plus if plus else unquote)(text, errors="surrogateescape"), safe=safe, errors="surrogateescape")


def canonical_query(query):
    pairs = sorted((recoded(n, "", True), recoded(v, "", True)) for n, _, v in
                   (p.partition("=") for p in query.split("&") if p) if n != "X-Amz-Signature")
    return "&".join(f"{n}={v}" for n, v in pairs)


def signature(keys, method, path, query, headers, stamp, payload):
    """headers: [(name, value)]. All of them are signed."""
    names = sorted({n.lower() for n, _ in headers})
    lines = "".join(f"{n}:{','.join(v for m, v in headers if m.lower() == n)}\n" for n in names)
    text = "\n".join([method, recoded(path, "/"), canonical_query(query), lines, ";".join(names), payload])
    scope = f"{stamp[:8]}/us-east-1/s3/aws4_request"
    to_sign = "\n".join(["AWS4-HMAC-SHA256", stamp, scope, hashlib.sha256(text.encode()).hexdigest()])
    key = b"AWS4" + keys[1].encode()
    for part in (stamp[:8], "us-east-1", "s3", "aws4_request", to_sign):
        key = hmac.new(key, part.encode(), "sha256").digest()
    return key.hex(), ";".join(names), f"{keys[0]}/{scope}"


def signed(keys, style, method, target, headers, body):
    """(target, headers) of the request with a signature in its head ("head") or its query ("query"), or without (None)."""
    where, path, query = re.match(r"(https?://[^/]*)?([^?]*)\??(.*)", target, re.S).groups()
    stamp = time.strftime("%Y%m%dT%H%M%SZ", time.gmtime())
    payload = hashlib.sha256(body).hexdigest()
    if style == "head":
        headers = headers + [("x-amz-date", stamp), ("x-amz-content-sha256", payload)]
        made, names, credential = signature(keys, method, path, query, headers, stamp, payload)
        return target, headers + [("Authorization", f"AWS4-HMAC-SHA256 Credential={credential}, SignedHeaders={names}, "
                                                    f"Signature={made}")]
    if style == "query":
        names = ";".join(sorted({n.lower() for n, _ in headers}))
        query += ("&" if query else "") + "&".join([
            "X-Amz-Algorithm=AWS4-HMAC-SHA256", f"X-Amz-Credential={keys[0]}%2F{stamp[:8]}%2Fus-east-1%2Fs3%2Faws4_request",
            f"X-Amz-Date={stamp}", "X-Amz-Expires=600", f"X-Amz-SignedHeaders={quote(names, safe='')}"])
        made = signature(keys, method, path, query, headers, stamp, "UNSIGNED-PAYLOAD")[0]
        return f"{where or ''}{path}?{query}&X-Amz-Signature={made}", headers
    return target, headers


def send(address, method, target, headers, body):
    """The status of the answer."""
    head = "".join(f"{n}: {v}\r\n" for n, v in headers)
    with socket.create_connection(address, 60) as peer:
        peer.sendall(f"{method} {target} HTTP/1.1\r\n{head}Content-Length: {len(body)}\r\nConnection: close\r\n\r\n"
                     .encode("latin-1") + body)
        answer = b""
        while piece := peer.recv(65536):
            answer += piece
    return int(answer.split(b" ", 2)[1]), answer
