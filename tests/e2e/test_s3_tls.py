"""The S3 endpoint over TLS: reload of the certificate, and buckets by their host."""
import http.client
import json
import re
import signal
import socket
import ssl

import pytest

from conftest import DEADLINE, wait_for
from test_serve import make_certificate

auth = pytest.importorskip("botocore.auth")
from botocore.awsrequest import AWSRequest  # noqa: E402
from botocore.credentials import Credentials  # noqa: E402

DOMAIN = "s3.test"


class ByName(http.client.HTTPSConnection):
    """Says `host` in the handshake and in the request, whatever the address is."""

    def __init__(self, host, address):
        super().__init__(host, address[1], timeout=DEADLINE, context=ssl._create_unverified_context())
        self.address = address

    def connect(self):
        self.sock = self._context.wrap_socket(socket.create_connection(self.address, DEADLINE), server_hostname=self.host)


def address_of(server):
    host, port = re.search(r"^  S3 +https://(\S+):(\d+)$", server.out, re.M).groups()
    return host, int(port)


def ask(server, method, host, path, body=b""):
    """A signed request; (status, body)."""
    host, port = host, address_of(server)[1]
    request = AWSRequest(method, f"https://{host}:{port}{path}", data=body)
    auth.S3SigV4Auth(Credentials(*server.keys), "s3", "us-east-1").add_auth(request)
    connection = ByName(host, address_of(server))
    try:
        connection.request(method, path, body=body, headers=dict(request.headers.items()))
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.fixture
def server(serve, tmp_path):
    make_certificate(tmp_path, "one")
    config = f"s3: {{domain: {DOMAIN}, tls: {{cert: {tmp_path}/cert.pem, key: {tmp_path}/key.pem}}}}\n"
    return serve(config=config).ready()


def test_a_bucket_is_reached_by_its_host_and_by_path(server):
    assert ask(server, "PUT", DOMAIN, "/box")[0] == 200
    assert ask(server, "PUT", f"box.{DOMAIN}", "/a/key", b"by host")[0] == 200
    assert ask(server, "GET", DOMAIN, "/box/a/key") == (200, b"by host")
    assert ask(server, "GET", f"box.{DOMAIN}", "/a/key") == (200, b"by host")
    status, body = ask(server, "GET", f"none.{DOMAIN}", "/a/key")
    assert status == 404 and b"NoSuchBucket" in body


def test_the_certificate_is_reloaded_while_connections_go_on(server, tmp_path):
    def served():
        return ssl.get_server_certificate(address_of(server))

    first = (tmp_path / "cert.pem").read_text()
    assert served() == first
    ask(server, "PUT", DOMAIN, "/box")
    old = ByName(DOMAIN, address_of(server))
    old.connect()
    make_certificate(tmp_path, "two")
    server.signal(signal.SIGHUP)
    second = (tmp_path / "cert.pem").read_text()
    wait_for(lambda: served() == second, "the new certificate")
    old.request("GET", "/box/none")
    assert old.getresponse().status == 403  # unsigned; the connection from before still serves
    old.close()
    (tmp_path / "cert.pem").write_text("nonsense")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.not_reloaded" in server.err, "the refusal")
    assert served() == second
    assert ask(server, "PUT", f"box.{DOMAIN}", "/key", b"x")[0] == 200


def test_plain_http_is_not_answered_on_a_tls_port(server):
    connection = http.client.HTTPConnection(*address_of(server), timeout=DEADLINE)
    with pytest.raises((OSError, http.client.HTTPException)):
        connection.request("GET", "/")
        connection.getresponse()
    connection.close()


def ask_as_anybody(server, path):
    connection = ByName(DOMAIN, address_of(server))
    try:
        connection.request("GET", path)
        return connection.getresponse().status
    finally:
        connection.close()


@pytest.mark.parametrize("operator, key, fits, other", [
    ("NumericLessThan", "s3:TlsVersion", "9.9", "1.2"),
    ("NumericGreaterThanEquals", "s3:TlsVersion", "1.2", "9.9"),
    ("StringEquals", "s3:TlsVersion", "1.3", "1.0"),
    ("Bool", "aws:SecureTransport", "true", "false"),
])
def test_a_policy_denies_by_the_connection(server, operator, key, fits, other):
    assert ask(server, "PUT", DOMAIN, "/box")[0] == 200
    assert ask(server, "PUT", DOMAIN, "/box/key", b"x")[0] == 200
    for value, status in ((fits, 403), (other, 200)):
        policy = {"Version": "2012-10-17", "Statement": [
            {"Effect": effect, "Principal": "*", "Action": "s3:GetObject", "Resource": "arn:aws:s3:::box/*", **more}
            for effect, more in (("Allow", {}), ("Deny", {"Condition": {operator: {key: value}}}))]}
        assert ask(server, "PUT", DOMAIN, "/box?policy", json.dumps(policy).encode())[0] == 204
        assert ask_as_anybody(server, "/box/key") == status, value
