"""Health, readiness, metrics, authentication, errors."""
import base64
import json
import re
import socket

import conftest
import pytest
from conftest import wait_for


def parse_metrics(text):
    """Prometheus text to {name{labels}: value}; checks HELP, TYPE and the form of each line."""
    values, types, helps = {}, {}, set()
    for line in text.splitlines():
        if line.startswith("# HELP "):
            name, doc = line[7:].split(" ", 1)
            assert doc and name not in helps
            helps.add(name)
        elif line.startswith("# TYPE "):
            name, kind = line[7:].split(" ")
            assert kind in ("counter", "gauge") and name not in types
            types[name] = kind
        else:
            found = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"]*"(?:,[a-z]+="[^"]*")*\})? ([0-9.]+)', line)
            assert found, line
            assert found[1] in types and found[1] in helps, line
            assert types[found[1]] != "counter" or found[1].endswith("_total"), line
            assert line.rsplit(" ", 1)[0] not in values, line
            values[line.rsplit(" ", 1)[0]] = float(found[3])
    assert text.endswith("\n")
    return values


def test_health(server):
    answer = server.get("/healthz")
    assert (answer.status, answer.body) == (200, "ok\n")
    assert server.request("HEAD", "/healthz").status == 200


def test_ready_names_every_part(server):
    answer = server.get("/readyz")
    assert answer.status == 200
    assert json.loads(answer.body) == {"ready": True, "parts": {
        "archive": "ok", "db": "ok", "store": "ok", "store.appDB": "ok", "store.queueDB": "ok", "store.lockDB": "ok", "store.configDB": "ok", "store.swarmDB": "ok",
        "storage.local": "ok", "tracker": "ok"}}


def test_metrics(server):
    server.get("/readyz")
    answer = server.get("/metrics")
    assert answer.status == 200
    assert answer.headers["Content-Type"].startswith("text/plain; version=0.0.4")
    values = parse_metrics(answer.body)
    version = json.loads(server.get("/api/v1/version", keys=server.keys).body)["version"]
    assert values[f'weir_build_info{{version="{version}"}}'] == 1
    assert values['weir_ready{part="db"}'] == 1
    assert values["process_resident_memory_bytes"] > 1e6
    assert values["process_open_fds"] > 3 and values["process_threads"] > 1
    assert values["weir_db_changes_total"] >= 1 and values["weir_db_syncs_total"] >= 1
    assert "weir_db_disk_bytes" in values  # 0 until the first sorted file
    assert values['weir_http_connections{server="api"}'] >= 1
    before = values['weir_http_responses_total{server="api",class="4xx"}']
    requests = values['weir_http_requests_total{server="api"}']
    server.get("/nothing")
    values = parse_metrics(server.get("/metrics").body)
    assert values['weir_http_responses_total{server="api",class="4xx"}'] == before + 1
    assert values['weir_http_requests_total{server="api"}'] > requests


def error(answer):
    body = json.loads(answer.body)
    assert set(body) == {"error"} and set(body["error"]) == {"code", "message", "request_id"}
    assert body["error"]["request_id"]
    return body["error"]["code"]


def test_api_calls_need_the_keys(server):
    access, secret = server.keys
    for path in ("/api/v1", "/api/v1/version", "/api/v1/backup", "/api/v1/nothing"):
        answer = server.get(path)
        assert (answer.status, error(answer)) == (401, "unauthorized")
        assert answer.headers["WWW-Authenticate"] == 'Basic realm="weir"'
    for keys in ((access, "x" * 40), (access, secret[:-1]), (access, secret + "x"), ("x" * 20, secret), ("", "")):
        assert server.get("/api/v1/version", keys=keys).status == 401
    for header in ("Basic", "Basic !!!!", "Bearer abcd", "Basic " + "A" * 2000):
        assert server.get("/api/v1/version", headers={"Authorization": header}).status == 401
    assert secret not in server.err


def test_wrong_keys_are_slowed_down_and_counted(server):
    guesses = 0

    def guess():
        nonlocal guesses
        guesses += 1
        return server.get("/api/v1/version", keys=("someone", f"guess{guesses}"))
    assert [guess().status for _ in range(10)] == [401] * 10
    wait_for(lambda: guess().status == 429, "the bucket to be empty")
    wait_for(lambda: server.get("/api/v1/version", keys=server.keys).status == 200, "the bucket to fill")
    values = parse_metrics(server.get("/metrics").body)
    assert 10 <= values["weir_api_auth_failures_total"] < guesses
    assert server.get("/healthz").status == 200


def test_the_list_of_routes(server):
    routes = json.loads(server.get("/api/v1", keys=server.keys).body)["routes"]
    assert {r["path"] for r in routes if r["open"] and not r["own"]} >= {"/api/v1/auth/login", "/api/v1/healthcheck"}
    assert not any(r["open"] for r in routes if not r["own"] and "{repository}" in r["path"])
    routes = [r for r in routes if r["own"]]
    assert {(r["method"], r["path"]) for r in routes} >= {
        ("GET", "/healthz"), ("GET", "/readyz"), ("GET", "/metrics"), ("GET", "/api/v1"), ("POST", "/api/v1/backup"),
        ("DELETE", "/api/v1/users/{name}/keys/{access}"), ("POST", "/api/v1/storages/{name}/scrub")}
    assert {r["path"] for r in routes if r["open"]} == {"/healthz", "/readyz", "/metrics", "/notify/{storage}"}
    assert all(r["doc"].endswith(".") for r in routes)
    for route in routes:
        if route["method"] == "GET" and "{" not in route["path"]:
            assert server.get(route["path"], keys=server.keys).status == 200
            assert (server.get(route["path"]).status == 200) == route["open"]


def changing_routes(server):
    """Every call that changes something and goes by an administrator's keys, with a name for each {parameter}."""
    for route in json.loads(server.get("/api/v1", keys=server.keys).body)["routes"]:
        if route["method"] != "GET" and not route["open"] and route["own"]:
            yield route["method"], re.sub(r"\{\w+\}", "x", route["path"])


def test_a_page_of_another_site_changes_nothing(server):
    host = server.url.split("://")[1]
    foreign = [{"Origin": "https://evil.example"}, {"Origin": "null"}, {"Origin": "http://" + host + "0"},
               {"Sec-Fetch-Site": "cross-site"}, {"Sec-Fetch-Site": "same-site", "Origin": server.url},
               {"Sec-Fetch-Site": ""}]
    own = [{"Origin": server.url}, {"Sec-Fetch-Site": "same-origin", "Origin": "https://console.example"},
           {"Sec-Fetch-Site": "none"}]
    routes = list(changing_routes(server))
    assert len(routes) > 30
    for method, path in routes:
        for headers in foreign:
            answer = server.request(method, path, body="{}", keys=server.keys, headers=headers)
            assert (answer.status, error(answer)) == (403, "cross_site"), (method, path, headers)
    for headers in own:  # there is no such storage
        assert server.post("/api/v1/storages/x/main", "{}", keys=server.keys, headers=headers).status == 404, headers
    storages = json.loads(server.get("/api/v1/storages", keys=server.keys).body)["storages"]
    name = storages[0]["name"]
    for headers in (foreign[0], foreign[3]):  # no body, as a plain form of HTML sends it
        assert server.request("POST", f"/api/v1/storages/{name}/main", keys=server.keys, headers=headers).status == 403
    assert json.loads(server.get("/api/v1/storages", keys=server.keys).body)["storages"] == storages
    assert server.get("/api/v1/storages", keys=server.keys, headers=foreign[0]).status == 200  # it changes nothing


def test_every_change_is_sent_as_json(server):
    for method, path in changing_routes(server):
        for kind in ("", "text/plain", "application/x-www-form-urlencoded", "application/jsonx"):
            answer = server.request(method, path, keys=server.keys, headers={"Content-Type": kind})
            assert (answer.status, error(answer)) == (415, "not_json"), (method, path, kind)
    headers = {"Content-Type": "Application/JSON; charset=utf-8"}
    assert server.request("POST", "/api/v1/storages/x/main", keys=server.keys, headers=headers).status == 404


def test_errors_are_json(server):
    keys = server.keys
    answer = server.get("/nothing")
    assert (answer.status, error(answer)) == (404, "not_found")
    answer = server.get("/api/v1/nothing", keys=keys)
    assert (answer.status, error(answer)) == (404, "not_found")
    assert "GET /api/v1 lists the calls" in json.loads(answer.body)["error"]["message"]
    answer = server.get("/api/v1/backup", keys=keys)
    assert (answer.status, error(answer), answer.headers["Allow"]) == (405, "method_not_allowed", "POST")
    assert json.loads(answer.body)["error"]["message"].endswith("it takes POST")
    answer = server.request("DELETE", "/healthz")
    assert (answer.status, answer.headers["Allow"]) == (405, "GET")


def test_status_shows_a_table_and_json(server, weir):
    where = ["--data", server.data, "--api.listen", server.url.removeprefix("http://")]
    run = weir("status", *where)
    assert run.returncode == 0, run.stderr
    assert run.stdout.splitlines()[0].split() == ["what", "value"]
    rows = {r["what"]: r["value"] for r in json.loads(weir("status", "--json", *where).stdout)}
    assert rows["api"] == server.url and rows["ready"] == "yes" and rows["db"] == "ok"
    assert rows["memory"].endswith(" MiB")
    assert weir("status", "--url", server.url).returncode == 0


def test_status_without_a_server_is_a_failure(weir):
    run = weir("status", "--url", "http://127.0.0.1:1")
    assert run.returncode == 1
    assert run.stderr.startswith("weir: status: no answer from the API at http://127.0.0.1:1: ") and len(run.stderr.splitlines()) == 1


def test_a_body_that_breaks_off_is_no_failure_of_ours(server):
    host, port = server.url.removeprefix("http://").split(":")
    token = base64.b64encode(":".join(server.keys).encode()).decode()
    with socket.create_connection((host, int(port)), 60) as connection:
        connection.sendall((f"POST /api/v1/backup HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\n"
                            "Content-Type: application/json\r\nContent-Length: 9\r\n\r\n{").encode())
        connection.shutdown(socket.SHUT_WR)
        assert connection.recv(100) == b""
    assert "error" not in server.err


@pytest.mark.parametrize("line", [
    "debug http.request path=/PASSKEYPASSKEY/announce", "warn x url=redis://:word@h:1", "info x header=Basic dXNlcjpwYXNz",
    "debug http.request path=/box/key?X-Amz-Signature=0", "warn x text=AWS4-HMAC-SHA256 Credential=a", "warn x url=/n?token=a"])
def test_a_secret_in_a_log_is_found(tmp_path, monkeypatch, line):
    log = tmp_path / "log"
    monkeypatch.setattr(conftest, "LOGS", [log, tmp_path / "gone"])
    monkeypatch.setattr(conftest, "SECRETS", {"PASSKEYPASSKEY"})
    log.write_text("info server.started version=1\ndebug http.request path=/box/key status=200\n")
    assert not list(conftest.leaks())
    log.write_text(line + "\n")
    assert len(list(conftest.leaks())) == 1
