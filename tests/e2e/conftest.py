"""Fixtures that start the real binary in a new folder, on a free port, and end it by its process id."""
import base64
import collections
import http.client
import json
import os
import pathlib
import random
import re
import signal
import socket
import ssl
import subprocess
import threading
import time
import urllib.parse

import pytest

ROOT = pathlib.Path(__file__).resolve().parents[2]
BUILD = pathlib.Path(os.environ.get("WEIR_BUILD", ROOT / "build/release"))
WEIR = BUILD / "weir"
MEMORY_FILES = BUILD.absolute() / "tests/tools/memory_files.so"
CLIENTS = threading.Lock()  # boto3 makes clients of its default session in one thread at a time only
DEADLINE = 120  # seconds; generous: a sanitizer build on a busy machine is slow
SHORT_PAUSE, LONG_PAUSE = 0.02, 0.25  # seconds between two polls
# Seconds between two changes of a client that goes on while a test does something else. Without a pause each client would
# take a core from the suites that run beside.
PACE = 0.02


def wait_for(condition, what, seconds=DEADLINE):
    """Polls until condition() is true, and returns its value. A poll takes CPU time from the suites that run beside, so
    the pauses grow: they are an eighth of the time that has passed, between the two limits."""
    began = time.monotonic()
    while True:
        value = condition()
        if value:
            return value
        passed = time.monotonic() - began
        assert passed < seconds, f"gave up waiting for {what}"
        time.sleep(min(max(SHORT_PAUSE, passed / 8), LONG_PAUSE))


def clean_env(**more):
    """The environment of this process without weir's variables, plus `more`. A value of None removes a variable."""
    env = {k: v for k, v in os.environ.items() if not k.startswith("WEIR_") and k != "NOTIFY_SOCKET"}
    if "TESTS_IN_MEMORY" in os.environ and MEMORY_FILES.exists():
        env["LD_PRELOAD"] = str(MEMORY_FILES)
    env.update(more)
    return {k: v for k, v in env.items() if v is not None}


def check_sanitizers(err):
    assert "Sanitizer" not in err and "runtime error" not in err, err


def free_port():
    """A free port below 32768, where the kernel begins to hand out ports by itself. So while a server is down between two
    starts, nobody else gets its port by chance, and a client that tries to reach the server cannot connect to itself."""
    while True:
        port = random.randrange(10240, 32768)
        with socket.socket() as s:
            s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                s.bind(("127.0.0.1", port))
                return port
            except OSError:
                continue


Response = collections.namedtuple("Response", "status headers body")

# --- no secret is in a log (docs/security.md) ---
#
# Every log that a suite's servers write is kept, and searched when the suite has ended. It must contain none of the
# secrets that the suite has used, and nothing that looks like a signature or a credential. The servers log at level
# debug, unless the suite measures something.

LOGS = []       # files
SECRETS = set()
SECRET_NAMES = {"secret_key", "secret", "passkey", "token", "password"}
SECRET_FLAGS = re.compile(r"--(?:[\w.]*\.)?(?:secret[-_]key|secret|passkey|password)(?:=(.*))?$")
CREDENTIALS = re.compile(r"AWS4-HMAC-SHA256\s|X-Amz-(?:Signature|Credential)|[?&]Signature=|\bAWS \w+:|\bBasic [\w+/=]{8}"
                         r"|\bBearer |token=|://[^/\s\"]*:[^/\s\"@]+@", re.I)


def secret(value):
    """Adds a secret to those that no log may contain, and returns it."""
    if len(value) >= 8:
        SECRETS.add(value)
    return value


def note_secrets(value):
    """Adds the secrets that a value read from JSON contains."""
    if isinstance(value, list):
        for one in value:
            note_secrets(one)
    elif isinstance(value, dict):
        for name, one in value.items():
            if name in SECRET_NAMES and isinstance(one, str):
                secret(one)
            note_secrets(one)


def note_secrets_in(text):
    """Adds the secrets that a text contains, which may be JSON or YAML."""
    try:
        note_secrets(json.loads(text))
    except ValueError:
        for name, value in re.findall(r"\b(\w+)[:=] *\"?([^\s\",}]+)", text):
            note_secrets({name: value})


def note_secrets_of(args, env):
    """Adds the secrets of a command: in its flags, in its environment, and in the address of a Redis."""
    args = [str(a) for a in args]
    for i, arg in enumerate(args):
        if found := SECRET_FLAGS.match(arg):
            secret(found.group(1) or (args + [""])[i + 1])
        if found := re.search(r"redis\S*://[^/@]*:([^/@]+)@", arg):
            secret(urllib.parse.unquote(found.group(1)))
    for name, value in (env or {}).items():
        if name.startswith("WEIR_") and "SECRET" in name:
            secret(value or "")


def keep_log(path):
    """Renames the log that an earlier server has written to `path`, so that it is searched, too."""
    if path.exists():
        kept = path.with_name(f"{path.name}.{len(LOGS)}")
        path.rename(kept)
        LOGS[:] = [kept if log == path else log for log in LOGS]
    LOGS.append(path)


def leaks():
    for log in filter(pathlib.Path.exists, LOGS):
        for line in log.read_text(errors="replace").splitlines():
            if CREDENTIALS.search(line) or any(value in line for value in SECRETS):
                yield f"{log}: {line[:300]}"


@pytest.fixture(scope="session", autouse=True)
def no_secret_is_in_a_log():
    yield
    found = list(leaks())
    assert not found, "secrets in logs:\n" + "\n".join(found[:20])


def log_level(args, config):
    """The environment that sets the log level to debug, unless the test sets a level itself or measures something."""
    named = any("log.level" in str(a) for a in args) or "log" in (config or "")
    measures = re.search(r"test_(swarm_)?load\.py", os.environ.get("PYTEST_CURRENT_TEST", "test_load.py"))
    return {} if named or measures else {"WEIR_LOG_LEVEL": "debug"}



class Server:
    """A running `weir serve`."""

    def __init__(self, folder, *args, env=None, config=None, listen="127.0.0.1:0", data=None, binary=WEIR):
        self.folder = folder
        self.data = pathlib.Path(data or folder / "data")
        self.args = [str(binary), "serve", "--data", str(self.data)]
        if not any("s3.listen" in str(a) for a in args):
            self.args += ["--s3.listen", "127.0.0.1:0"]
        for key in ("tracker.http", "tracker.udp"):
            if not any(key in str(a) for a in args):
                self.args += [f"--{key}", "127.0.0.1:0"]
        if listen:
            self.args += ["--api.listen", listen]
        if config is not None:
            self.config = folder / "weir.yaml"
            self.config.write_text(config)
            self.args += ["--config", str(self.config)]
        self.args += [str(a) for a in args]
        if any("store.redis.url" in a for a in self.args) and not any("store.redis.timeout" in a for a in self.args):
            self.args.append("--store.redis.timeout=30s")  # a busy machine keeps a Redis waiting that is well
        self.out_path, self.err_path = folder / "stdout", folder / "stderr"
        keep_log(self.err_path)
        note_secrets_of(args, env)
        note_secrets_in(config or "")
        env = {**log_level(args, config), **(env or {})}
        with open(self.out_path, "w") as out, open(self.err_path, "w") as err:
            self.process = subprocess.Popen(self.args, stdout=out, stderr=err, stdin=subprocess.DEVNULL,
                                            env=clean_env(**env), cwd=folder)

    @property
    def out(self):
        return self.out_path.read_text()

    @property
    def err(self):
        return self.err_path.read_text()

    @property
    def url(self):
        return re.search(r"^  API +(\S+)$", self.out, re.M).group(1)

    @property
    def s3_url(self):
        return re.search(r"^  S3 +(\S+)$", self.out, re.M).group(1)

    def s3(self, keys=None, **config):
        """A boto3 client of its S3 endpoint that never retries. Without `keys` it signs as the administrator."""
        import boto3
        from botocore.config import Config
        access, secret_key = keys or self.keys
        secret(secret_key)
        config = {"signature_version": "s3v4", **config}
        with CLIENTS:
            return boto3.client("s3", endpoint_url=self.s3_url, aws_access_key_id=access, aws_secret_access_key=secret_key,
                                region_name="us-east-1",
                                config=Config(s3={"addressing_style": "path"}, retries={"max_attempts": 0}, **config))

    @property
    def keys(self):
        lines = (self.data / "credentials").read_text().splitlines()
        access, value = (line.split("=", 1)[1] for line in lines)
        return access, secret(value)

    def ready(self):
        """Waits until the server answers, and returns self."""
        def answers():
            assert self.process.poll() is None, f"ended with {self.process.returncode}: {self.err}"
            if "  API " not in self.out or "\ntry: " not in self.out:
                return False
            try:
                return self.get("/healthz").status == 200
            except OSError:
                return False
        wait_for(answers, "/healthz")
        return self

    def request(self, method, path, body=None, keys=None, headers=None, context=None):
        url = urllib.parse.urlsplit(self.url)
        if url.scheme == "https":
            context = context or ssl._create_unverified_context()
            connection = http.client.HTTPSConnection(url.hostname, url.port, timeout=DEADLINE, context=context)
        else:
            connection = http.client.HTTPConnection(url.hostname, url.port, timeout=DEADLINE)
        headers = dict(headers or {})
        if keys:
            headers["Authorization"] = "Basic " + base64.b64encode(":".join(keys).encode()).decode()
        if isinstance(body, dict):
            body = json.dumps(body)
        if method != "GET":
            headers.setdefault("Content-Type", "application/json")
        try:
            connection.request(method, path, body=body, headers=headers)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if path.startswith("/api/"):
            note_secrets_in(body if isinstance(body, str) else "")
            note_secrets_in(text)
        return Response(answer.status, answer.headers, text)

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def metric(self, name):
        return float(re.search(rf"^{name} (\S+)$", self.get("/metrics").body, re.M).group(1))

    def box(self):
        """Makes the bucket box, and returns a client."""
        s3 = self.s3()
        s3.create_bucket(Bucket="box")
        return s3

    def post(self, path, body, **more):
        return self.request("POST", path, body=body, **more)

    def signal(self, number):
        os.kill(self.process.pid, number)

    def wait(self):
        return self.process.wait(timeout=DEADLINE)

    def stop(self):
        """Stops the server gracefully, and returns its exit status."""
        if self.process.poll() is None:
            self.signal(signal.SIGTERM)
        return self.wait()


@pytest.fixture
def serve(tmp_path):
    """serve(*args, ...) starts a Server in the test's folder. All of them are ended after the test."""
    started = []

    def start(*args, folder=None, **more):
        folder = folder or tmp_path / f"run{len(started)}"
        folder.mkdir(exist_ok=True)
        server = Server(folder, *args, **more)
        started.append(server)
        return server

    yield start
    for server in started:
        if server.process.poll() is None:
            os.kill(server.process.pid, signal.SIGKILL)
            server.process.wait()
    for server in started:
        check_sanitizers(server.err)


@pytest.fixture
def server(serve):
    """A Server that is ready."""
    return serve().ready()


@pytest.fixture
def weir(tmp_path):
    """weir(*args) runs a command in the test's folder and waits for its end."""
    def run(*args, env=None, cwd=None):
        done = subprocess.run([str(WEIR), *map(str, args)], capture_output=True, text=True, timeout=DEADLINE,
                              env=clean_env(**(env or {})), cwd=cwd or tmp_path)
        note_secrets_of(args, env)
        note_secrets_in(done.stdout)
        check_sanitizers(done.stderr)
        return done
    return run


def runner(server, weir):
    """A function that runs a command against the server: run("user", "list"). It returns the output, parsed for --json."""
    def run(*args, status=0):
        done = weir(*args, "--data", server.data, "--url", server.url)
        assert done.returncode == status, done.stderr
        if "--json" in args and status == 0:
            return json.loads(done.stdout)
        return done.stdout + done.stderr
    return run


def body(s3, key, **more):
    """The bytes of an object in the bucket box."""
    return s3.get_object(Bucket="box", Key=key, **more)["Body"].read()


class Redis:
    """A redis-server that only one test uses."""

    def __init__(self, folder, *args):
        self.folder, self.args, self.port, self.process = folder, args, free_port(), None
        self.start()

    def start(self):
        self.process = subprocess.Popen(
            ["redis-server", "--port", str(self.port), "--bind", "127.0.0.1", "--dir", str(self.folder), "--save", "",
             *self.args],
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

        def answers():
            assert self.process.poll() is None, "redis-server ended"
            try:
                with socket.create_connection(("127.0.0.1", self.port), 1) as s:
                    s.sendall(b"PING\r\n")
                    return s.recv(16).startswith(b"+PONG")
            except OSError:
                return False
        wait_for(answers, "redis-server")

    def kill(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGKILL)
        self.process.wait()


@pytest.fixture
def redis(tmp_path):
    folder = tmp_path / "redis"
    folder.mkdir()
    server = Redis(folder, "--appendonly", "yes")  # killed and started again it is the same one
    yield server
    server.kill()


def pytest_terminal_summary(terminalreporter):
    """Prints how long each test took, with its set-up, and the count, in the form that tests/run.py reads."""
    took = collections.Counter()
    for report in (r for reports in terminalreporter.stats.values() for r in reports if hasattr(r, "duration")):
        took[report.nodeid] += report.duration
    terminalreporter.ensure_newline()
    if "TEST_TIMES" in os.environ:
        for name, seconds in took.items():
            terminalreporter.write_line(f"took {seconds:.2f} s {name}")
    def count(*kinds):
        return sum(len(terminalreporter.stats.get(kind, [])) for kind in kinds)
    terminalreporter.write_line(
        f"{count('passed')} passed, {count('failed', 'error')} failed, {count('skipped')} skipped")
