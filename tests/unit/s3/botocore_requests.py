#!/usr/bin/python3
"""Random requests, signed by botocore, one JSON object a line: what a client of another make sends.

    botocore_requests.py COUNT SEED

Offline. Leaves with 77 when botocore is not installed.
"""
import json
import random
import sys
from urllib.parse import quote, urlsplit

try:
    import botocore.auth
    import botocore.awsrequest
    import botocore.credentials
except ImportError:
    sys.exit(77)

ACCESS, SECRET = "AKIAIOSFODNN7EXAMPLE", "wJalrXUtnFEMI/K7MDENG/bPxRfiCYEXAMPLEKEY"
ALPHABET = "abcXYZ019-_.~ /+&=%$!*'();:@,?#[]üñ漢\\\"<>|^`{}"
PARAMETERS = ["acl", "uploads", "versionId", "partNumber", "uploadId", "prefix", "marker", "delimiter", "max-keys",
              "response-content-type", "list-type", "tagging"]
KINDS = ["v4", "v4-query", "v2", "v2-query"]


def word(pick, low=0, high=12, alphabet=ALPHABET):
    return "".join(pick.choice(alphabet) for _ in range(pick.randint(low, high)))


def request(pick):
    path = "/bucket/" + quote(word(pick, 1), safe="/~")
    names = pick.sample(PARAMETERS, pick.randint(0, 4))
    query = "&".join(quote(n) + (pick.choice(["", "="]) if pick.random() < .2 else "=" + quote(word(pick, 1), safe="~"))
                     for n in names)
    headers = {"Host": "127.0.0.1:9000"}
    if pick.random() < .5:
        headers["x-amz-meta-" + word(pick, 1, 5, "abcXYZ-")] = word(pick, 0, 20, "ab  c,\t;=")
    if pick.random() < .3:
        headers["Content-Type"] = "text/plain; charset=utf-8"
    url = "http://127.0.0.1:9000" + path + ("?" + query if query else "")
    body = word(pick).encode() if pick.random() < .5 else b""
    method = pick.choice(["GET", "HEAD", "PUT", "DELETE", "POST"])
    return botocore.awsrequest.AWSRequest(method=method, url=url, headers=headers, data=body)


def sign(kind, made, pick):
    keys = botocore.credentials.Credentials(ACCESS, SECRET)
    region = pick.choice(["us-east-1", "eu-central-1", "x"])
    signer = {
        "v4": lambda: botocore.auth.S3SigV4Auth(keys, "s3", region),
        "v4-query": lambda: botocore.auth.S3SigV4QueryAuth(keys, "s3", region, expires=pick.randint(60, 604800)),
        "v2": lambda: botocore.auth.HmacV1Auth(keys),
        "v2-query": lambda: botocore.auth.HmacV1QueryAuth(keys, expires=3600),
    }[kind]()
    signer.add_auth(made)


def main():
    count, seed = int(sys.argv[1]), int(sys.argv[2])
    pick = random.Random(seed)
    for i in range(count):
        made, kind = request(pick), KINDS[i % len(KINDS)]
        if kind.endswith("query"):
            made.data = b""
        sign(kind, made, pick)
        url = urlsplit(made.url)
        print(json.dumps({"kind": kind, "method": made.method, "path": url.path, "query": url.query,
                          "headers": [[k, v] for k, v in made.headers.items()]}))


if __name__ == "__main__":
    main()
