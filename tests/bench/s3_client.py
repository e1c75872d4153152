"""Requests to S3 as the measurements need them: signed by version 4, sent once, or kept in a file for a load
program."""
import datetime
import hashlib
import hmac
import http.client
import urllib.parse

EMPTY = hashlib.sha256(b"").hexdigest()
REGION = "us-east-1"


class Keys:
    def __init__(self, access, secret):
        self.access, self.secret = access, secret

    def signing_key(self, day):
        key = ("AWS4" + self.secret).encode()
        for part in (day, REGION, "s3", "aws4_request"):
            key = hmac.new(key, part.encode(), hashlib.sha256).digest()
        return key


def headers(keys, method, host, path, query="", body_hash=EMPTY, more=()):
    """The request's headers, Authorization among them. Without keys: what a stranger sends."""
    if not keys:
        return [("Host", host), *more]
    time = datetime.datetime.now(datetime.timezone.utc).strftime("%Y%m%dT%H%M%SZ")
    day = time[:8]
    signed = sorted([("host", host), ("x-amz-content-sha256", body_hash), ("x-amz-date", time),
                     *((name.lower(), value) for name, value in more)])
    names = ";".join(name for name, _ in signed)
    canonical = "\n".join([method, path, query, *(f"{name}:{value}" for name, value in signed), "", names, body_hash])
    scope = f"{day}/{REGION}/s3/aws4_request"
    text = "\n".join(["AWS4-HMAC-SHA256", time, scope, hashlib.sha256(canonical.encode()).hexdigest()])
    signature = hmac.new(keys.signing_key(day), text.encode(), hashlib.sha256).hexdigest()
    return [*signed, ("Authorization", f"AWS4-HMAC-SHA256 Credential={keys.access}/{scope}, SignedHeaders={names}, "
                                       f"Signature={signature}")]


def query_of(parameters):
    return "&".join(f"{urllib.parse.quote(name, safe='')}={urllib.parse.quote(value, safe='')}"
                    for name, value in sorted(parameters.items()))


class Endpoint:
    """One server that speaks S3; `server` is the process that is measured."""

    def __init__(self, server, port, keys):
        self.server, self.port, self.keys, self.host = server, port, keys, f"127.0.0.1:{port}"

    def call(self, method, path, body=b"", more=(), query=""):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=120)
        try:
            sent = dict(headers(self.keys, method, self.host, path, query, hashlib.sha256(body).hexdigest(), more))
            connection.request(method, path + ("?" + query if query else ""), body=body, headers=sent)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def need(self, method, path, body=b"", more=(), query=""):
        status, text = self.call(method, path, body, more, query)
        if status not in (200, 204):
            raise RuntimeError(f"{method} {path}: {status} {text[:200]!r}")
        return text

    def raw(self, method, path, query="", body=b"", length=None, body_hash=None, signed=True):
        """The bytes of a request; with `length` the body is sent by somebody else."""
        length = len(body) if length is None else length
        body_hash = body_hash or hashlib.sha256(body).hexdigest()
        lines = [f"{method} {path}{'?' + query if query else ''} HTTP/1.1"]
        lines += [f"{name}: {value}" for name, value in
                  headers(self.keys if signed else None, method, self.host, path, query, body_hash)]
        if method == "PUT":
            lines.append(f"Content-Length: {length}")
        return "\r\n".join(lines).encode() + b"\r\n\r\n" + body


def keep(path, requests):
    """For bench_http_load -f and bench_http_push."""
    with open(path, "wb") as f:
        for request in requests:
            f.write(b"%d\n" % len(request) + request)
    return path
