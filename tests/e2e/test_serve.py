"""Starting, stopping and reloading."""
import base64
import json
import os
import pty
import re
import signal
import socket
import ssl
import stat
import subprocess

import pytest

from conftest import WEIR, clean_env, wait_for


def mode(path):
    return stat.S_IMODE(os.stat(path).st_mode)


def log_events(server):
    return [line for line in server.err.splitlines() if line]


def test_the_first_start_makes_the_folder_and_names_the_file_of_the_keys(server):
    access, secret = server.keys
    assert len(access) == 20 and len(secret) == 40
    assert f"show them by: cat {server.data}/credentials\n" in server.out
    assert secret not in server.out, "a journal is no place for a secret"
    assert mode(server.data) == 0o700
    assert mode(server.data / "credentials") == 0o600
    assert secret not in server.err
    assert server.get("/api/v1/version", keys=server.keys).status == 200


def test_the_first_start_on_a_terminal_shows_the_keys(tmp_path):
    ours, its = pty.openpty()
    process = subprocess.Popen([str(WEIR), "serve", "--data", "data", "--s3.listen", "off", "--api.listen", "127.0.0.1:0",
                                "--tracker.http", "off", "--tracker.udp", "off"], cwd=tmp_path, env=clean_env(),
                               stdin=subprocess.DEVNULL, stdout=its, stderr=subprocess.DEVNULL)
    os.close(its)
    shown = ""
    while "\ntry: " not in shown or not shown.endswith("\n"):
        shown += os.read(ours, 65536).decode().replace("\r\n", "\n")
    process.terminate()
    assert process.wait() == 0
    os.close(ours)
    lines = (tmp_path / "data/credentials").read_text().splitlines()
    access, secret = (line.split("=", 1)[1] for line in lines)
    assert f"  access  {access}\n" in shown and f"  secret  {secret}\n" in shown
    assert f"try: curl -u {access}:{secret} http://127.0.0.1:" in shown


def test_the_second_start_keeps_the_keys_and_does_not_show_them(serve):
    first = serve().ready()
    keys = first.keys
    assert first.stop() == 0
    second = serve(data=first.data).ready()
    assert second.keys == keys
    assert keys[1] not in second.out + second.err
    assert f"keys    in {first.data}/credentials" in second.out
    assert second.get("/api/v1/version", keys=keys).status == 200


def test_the_environment_sets_the_keys(serve):
    first = serve().ready()
    old = first.keys
    first.stop()
    env = {"WEIR_ACCESS_KEY": "admin", "WEIR_SECRET_KEY": "correct horse"}
    second = serve(data=first.data, env=env).ready()
    assert second.keys == ("admin", "correct horse")
    assert "correct horse" not in second.out + second.err
    assert second.get("/api/v1/version", keys=("admin", "correct horse")).status == 200
    assert second.get("/api/v1/version", keys=old).status == 401
    second.stop()
    assert mode(first.data / "credentials") == 0o600
    third = serve(data=first.data).ready()
    assert third.get("/api/v1/version", keys=("admin", "correct horse")).status == 200


def test_a_port_in_use_is_one_line_and_leaves_no_keys(serve):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        server = serve(listen=f"127.0.0.1:{port}")
        assert server.wait() == 2
    lines = server.err.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("weir: api.listen (flag --api.listen): ") and f"127.0.0.1:{port}" in lines[0] and "in use" in lines[0]
    assert server.out == ""
    assert not server.data.exists()


@pytest.mark.parametrize("key", ["s3.listen", "api.listen", "tracker.http", "tracker.udp"])
@pytest.mark.parametrize("has_data", [False, True])
def test_a_port_in_use_names_file_line_and_key(serve, tmp_path, key, has_data):
    room, name = key.split(".")
    (tmp_path / "own").mkdir()
    if has_data:
        (tmp_path / "own/data").mkdir(mode=0o700)
    with socket.socket(type=socket.SOCK_DGRAM if name == "udp" else socket.SOCK_STREAM) as taken:
        taken.bind(("127.0.0.1", 0))
        if name != "udp":
            taken.listen()
        address = f"127.0.0.1:{taken.getsockname()[1]}"
        config = tmp_path / "own/weir.yaml"
        config.write_text(f"# ports\n{room}:\n  {name}: {address}\n")
        others = [f"--{k}=127.0.0.1:0" for k in ("s3.listen", "api.listen", "tracker.http", "tracker.udp") if k != key]
        done = subprocess.run([str(WEIR), "serve", "--data", "data", "--config", str(config), *others], text=True,
                              cwd=tmp_path / "own", env=clean_env(), capture_output=True)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"weir: {key} ({config}:3): ") and address in done.stderr and "in use" in done.stderr
    assert os.listdir(tmp_path / "own/data") == ["lock"] if has_data else not (tmp_path / "own/data").exists()


@pytest.mark.parametrize("first, second", [("s3.listen", "api.listen"), ("api.listen", "tracker.http")])
def test_one_port_of_two_keys_names_the_second_and_leaves_nothing(tmp_path, first, second):
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{free.getsockname()[1]}"
    keys = ("s3.listen", "api.listen", "tracker.http", "tracker.udp")
    done = subprocess.run([str(WEIR), "serve", "--data", "data",
                           *(f"--{k}={address if k in (first, second) else '127.0.0.1:0'}" for k in keys)],
                          text=True, cwd=tmp_path, env=clean_env(), capture_output=True)
    assert done.returncode == 2 and done.stdout == "" and done.stderr.count("\n") == 1
    assert done.stderr.startswith(f"weir: {second} (flag --{second}): ") and "in use" in done.stderr
    assert not (tmp_path / "data").exists()


def test_a_data_folder_in_use_names_the_process(serve, server):
    second = serve(data=server.data)
    assert second.wait() == 2
    assert len(second.err.splitlines()) == 1
    assert "in use" in second.err and str(server.process.pid) in second.err and str(server.data) in second.err
    assert server.get("/healthz").status == 200


def test_of_two_starts_at_once_exactly_one_runs(serve, tmp_path):
    data = tmp_path / "shared"
    servers = [serve(data=data) for _ in range(3)]
    wait_for(lambda: sum(s.process.poll() is not None for s in servers) == 2, "two to give up")
    assert sorted(s.process.poll() or 0 for s in servers) == [0, 2, 2]
    winner = next(s for s in servers if s.process.poll() is None).ready()
    assert winner.get("/api/v1/version", keys=winner.keys).status == 200


def test_a_folder_that_cannot_be_written_is_one_line(serve):
    server = serve(data="/proc/weir-data")
    assert server.wait() == 2
    assert len(server.err.splitlines()) == 1
    assert server.err.startswith("weir: the data folder /proc/weir-data cannot be used: ")


def test_a_newer_format_is_refused(serve):
    first = serve().ready()
    first.stop()
    version = next(p for p in (first.data / "db").iterdir() if p.is_file() and b"weir db" in p.read_bytes()[:64])
    version.write_text("weir db 999\n")
    second = serve(data=first.data)
    assert second.wait() == 2
    assert len(second.err.splitlines()) == 1 and "999" in second.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_graceful_stop(server, number):
    server.signal(number)
    assert server.wait() == 0
    assert "server.stopping" in server.err


BODY = json.dumps({"dir": "relative"})


def begin_backup(server, body=BODY):
    """A connection with a request whose handler runs and waits for the body."""
    host, port = server.url.removeprefix("http://").split(":")
    token = base64.b64encode(":".join(server.keys).encode()).decode()
    connection = socket.create_connection((host, int(port)), 60)
    connection.sendall((f"POST /api/v1/backup HTTP/1.1\r\nHost: x\r\nAuthorization: Basic {token}\r\n"
                        f"Content-Type: application/json\r\nExpect: 100-continue\r\n"
                        f"Content-Length: {len(body)}\r\n\r\n").encode())
    assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
    return connection


def test_a_stop_lets_a_running_request_finish(server):
    with begin_backup(server) as connection:
        server.signal(signal.SIGTERM)
        wait_for(lambda: "server.stopping" in server.err, "the stop to begin")
        connection.sendall(BODY.encode())
        answer = b""
        while piece := connection.recv(4096):
            answer += piece
    assert answer.startswith(b"HTTP/1.1 400 ") and b"absolute path" in answer
    assert server.wait() == 0


def test_a_stop_is_bounded(serve):
    server = serve("--shutdown.timeout", "100ms").ready()
    with begin_backup(server):
        server.signal(signal.SIGTERM)
        assert server.wait() in (0, 1)


def test_a_stop_does_not_wait_for_a_handler_that_hangs(serve):
    server = serve("--shutdown.timeout", "100ms", config="log.level: info\n").ready()
    server.config.unlink()
    os.mkfifo(server.config)  # nobody writes to it: copying it into the backup hangs
    body = json.dumps({"dir": str(server.folder / "copy")})
    with begin_backup(server, body) as connection:
        connection.sendall(body.encode())
        wait_for(lambda: list(server.folder.glob("copy.partial-*/credentials")), "the copy to hang")
        server.signal(signal.SIGTERM)
        assert server.wait() == 1
    assert "server.stop_forced" in server.err


def test_a_second_signal_does_not_wait(serve):
    server = serve("--shutdown.timeout", "1h").ready()
    with begin_backup(server):
        server.signal(signal.SIGTERM)
        wait_for(lambda: "server.stopping" in server.err, "the stop to begin")
        server.signal(signal.SIGTERM)
        assert server.wait() == -signal.SIGTERM


def test_reload_takes_the_log_level_and_names_what_needs_a_restart(serve):
    server = serve(config="log.level: info\n").ready()
    server.config.write_text("log: {level: warn, format: json}\nhttp.threads: 99\n")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.needs_restart" in server.err, "the reload")
    line = next(json.loads(l) for l in log_events(server) if "config.needs_restart" in l)
    assert line["keys"] == "http.threads"
    assert "config.reloaded" not in server.err  # below the new level
    assert server.get("/healthz").status == 200


def test_reload_of_a_wrong_file_changes_nothing_and_says_why(serve):
    server = serve(config="log.level: info\n").ready()
    server.config.write_text("log.level: loud\n")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.not_reloaded" in server.err, "the refusal")
    assert "weir.yaml:1: log.level must be one of" in server.err
    server.config.write_text("log.level: info\n")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.reloaded" in server.err, "the reload")
    assert server.get("/healthz").status == 200


def make_certificate(folder, name):
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes",
                    "-keyout", folder / "key.pem", "-out", folder / "cert.pem", "-days", "2", "-subj", f"/CN={name}",
                    "-addext", "subjectAltName=IP:127.0.0.1"], check=True, capture_output=True)


def certificate_of(server):
    host, port = server.url.removeprefix("https://").split(":")
    return ssl.get_server_certificate((host, int(port)))


def test_tls_and_reload_of_the_certificate(serve, tmp_path, weir):
    make_certificate(tmp_path, "one")
    config = f"api.tls: {{cert: {tmp_path}/cert.pem, key: {tmp_path}/key.pem}}\n"
    server = serve(config=config).ready()
    assert server.url.startswith("https://")
    assert certificate_of(server) == (tmp_path / "cert.pem").read_text()
    make_certificate(tmp_path, "two")
    server.signal(signal.SIGHUP)
    wait_for(lambda: certificate_of(server) == (tmp_path / "cert.pem").read_text(), "the new certificate")
    good = (tmp_path / "cert.pem").read_text()
    (tmp_path / "cert.pem").write_text("nonsense")
    server.signal(signal.SIGHUP)
    wait_for(lambda: "config.not_reloaded" in server.err, "the refusal")
    assert certificate_of(server) == good
    (tmp_path / "cert.pem").write_text(good)
    run = weir("status", "--config", server.config, "--api.listen", server.url.removeprefix("https://"),
               "--data", server.data)
    assert run.returncode == 0, run.stderr


def test_a_wrong_certificate_is_one_line(serve, tmp_path):
    (tmp_path / "cert.pem").write_text("nonsense")
    server = serve("--api.tls.cert", tmp_path / "cert.pem", "--api.tls.key", tmp_path / "cert.pem")
    assert server.wait() == 2
    assert len(server.err.splitlines()) == 1 and "api.tls.cert" in server.err and "cert.pem" in server.err


def test_the_supervisor_is_told(serve, tmp_path):
    path = str(tmp_path / "notify")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as supervisor:
        supervisor.bind(path)
        supervisor.settimeout(60)
        server = serve(env={"NOTIFY_SOCKET": path})
        assert supervisor.recv(100) == b"READY=1"
        server.ready()
        server.signal(signal.SIGHUP)
        assert supervisor.recv(100).startswith(b"RELOADING=1\nMONOTONIC_USEC=")
        assert supervisor.recv(100) == b"READY=1"
        server.signal(signal.SIGTERM)
        assert supervisor.recv(100) == b"STOPPING=1"
        assert server.wait() == 0


def test_only_some_roles(serve):
    server = serve("--only", "gateway,worker").ready()
    assert "gateway,worker" in server.err
    assert server.get("/healthz").status == 200


def test_the_api_may_be_off(serve):
    server = serve(listen="off")
    wait_for(lambda: "server.started" in server.err, "the start")
    assert "  API" not in server.out
    assert server.stop() == 0


def test_the_api_on_a_unix_socket(serve, weir, tmp_path):
    listen = f"unix:{tmp_path}/api.sock"
    server = serve(listen=listen)
    wait_for(lambda: "\ntry: " in server.out, "the start")
    assert server.url == listen
    command = re.search(r"^try: (curl .+)$", server.out, re.M)[1]
    answer = subprocess.run(command.split() + ["-s"], capture_output=True, text=True)
    assert json.loads(answer.stdout)["ready"] is True, answer
    where = ("--api.listen", listen, "--data", server.data)
    assert weir("status", *where).returncode == 0
    assert weir("backup", *where, tmp_path / "copy").returncode == 0
    server.signal(signal.SIGKILL)
    server.wait()
    second = serve(listen=listen, data=server.data)  # the socket's file is still there
    wait_for(lambda: "\ntry: " in second.out, "the second start")
    third = serve(listen=listen)
    assert third.wait() == 2 and "api.sock" in third.err
    assert weir("status", *where).returncode == 0
    assert second.stop() == 0
