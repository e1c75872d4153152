"""A git server of our own for tests: `git http-backend` behind an HTTP server on loopback, every answer scriptable.

    lab = GitLab(tmp_path / "git")
    repo = lab.repo("octocat/Hello-World", commits=20)          # a bare repository, served at lab.url("octocat/Hello-World")
    repo.commit(3); repo.branch("topic"); repo.tag("v1")
    lab.answer("git-upload-pack", cut(1000), times=1)            # the next fetch is cut after 1,000 bytes of its body
    ...
    assert lab.count("POST", "git-upload-pack") == 2
    lab.stop()

A script is a function of (call, body): `call` is the Call below, `body` gives the pieces of the answer that `git
http-backend` makes (it runs only when they are asked for). A script writes the answer by call.head(), call.piece() and
call.end(), or returns pieces, which are then sent with the usual head. The functions status(), redirect(), cut(),
in_pieces(), edit(), forever() and raw() make the usual scripts. Every request is kept in lab.seen with the bytes that it
was answered with. `lab.v0_only`, `lab.preamble`, `lab.latency`, `lab.users` and
`lab.may_push` hold for all requests.
"""
import base64
import gzip
import http.server
import os
import pathlib
import re
import socket
import ssl
import struct
import subprocess
import sys
import threading
import traceback

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
       "GIT_AUTHOR_NAME": "A", "GIT_AUTHOR_EMAIL": "a@example", "GIT_COMMITTER_NAME": "C", "GIT_TERMINAL_PROMPT": "0",
       "GIT_COMMITTER_EMAIL": "c@example", "LC_ALL": "C"}
PIECE = 64 * 1024


class Seen:
    """A request: `body` is inflated, `sent` counts the bytes of the answer's body so far."""

    def __init__(self, method, path, headers, body):
        self.method, self.path, self.headers, self.body, self.sent = method, path, headers, body, 0

    def __repr__(self):
        return f"{self.method} {self.path} {self.headers} {self.body[:100]} -> {self.sent}"


def git(*args, cwd=None, input=None, check=True, env=None):
    """Runs git without anybody's configuration, and returns its output as text."""
    done = subprocess.run(["git", *map(str, args)], cwd=cwd, input=input, capture_output=True, env={**ENV, **(env or {})})
    assert not check or done.returncode == 0, f"git {args}: {done.stderr.decode(errors='replace')}"
    return done.stdout.decode(errors="surrogateescape")


# --- repositories ---

class Repo:
    """A bare repository. Commits are made by fast-import, so that thousands take a second."""

    def __init__(self, path, format="sha1", bare=True):
        self.path, self.format, self.made, self.marks = pathlib.Path(path), format, 0, 0
        self.path.parent.mkdir(parents=True, exist_ok=True)
        git("init", "-q", "--bare", f"--object-format={format}", "-b", "main", self.path)
        for key, value in (("http.receivepack", "false"), ("uploadpack.allowFilter", "true"), ("gc.auto", "0"),
                           ("core.compression", "1")):
            git("config", key, value, cwd=self.path)

    def git(self, *args, **more):
        return git(*args, cwd=self.path, **more)

    def commit(self, count=1, ref="refs/heads/main", files=3, size=200, content=None):
        """Adds commits to a ref, each of which changes `files` files. `content(i)` gives the bytes of a file."""
        exists = self.git("rev-parse", "-q", "--verify", ref, check=False).strip()
        out = []
        for i in range(count):
            self.made += 1
            when = 1_700_000_000 + self.made * 60
            out.append(f"commit {ref}\ncommitter C <c@example> {when} +0000\n".encode())
            message = f"commit {self.made}\n".encode()
            out.append(b"data %d\n" % len(message) + message)
            if i == 0 and exists:
                out.append(f"from {exists}\n".encode())
            for f in range(files):
                data = content(self.made * files + f) if content else (f"{self.made} {f} ".encode() * (size // 8 + 1))[:size]
                out.append(f"M 100644 inline d{(self.made + f) % 7}/f{(self.made * 3 + f) % 50}\n".encode())
                out.append(b"data %d\n" % len(data) + data + b"\n")
        self.git("fast-import", "--quiet", "--force", input=b"".join(out))
        return self.git("rev-parse", ref).strip()

    def update(self, *changes):
        """Sets refs: each change is (name, id), and an id of None deletes the ref."""
        lines = "".join(f"update {name} {oid}\n" if oid else f"delete {name}\n" for name, oid in changes)
        self.git("update-ref", "--stdin", input=lines.encode())

    def refs_by_number(self, count, prefix="refs/tags/n"):
        """Makes many refs at once, each on a commit of its own. The file of packed refs is written by hand, because git
        takes minutes for a hundred thousand."""
        marks = self.path / "marks"
        out = []
        for i in range(count):
            message = b"n%d" % i
            out.append(b"reset refs/heads/main\n\ncommit refs/heads/main\nmark :%d\ncommitter C <c@example> %d +0000\n"
                       b"data %d\n%s\n" % (i + 1, 1_700_000_000 + i, len(message), message))
        self.git("fast-import", "--quiet", "--force", f"--export-marks={marks}", input=b"".join(out))
        ids = dict(line.split() for line in marks.read_text().splitlines())
        marks.unlink()
        self.update(("refs/heads/main", None))
        lines = [f"{ids[f':{i + 1}']} {prefix}{i:06}\n" for i in range(count)]
        (self.path / "packed-refs").write_text("# pack-refs with: peeled fully-peeled sorted \n" + "".join(lines))

    def pack(self, bitmaps):
        """Packs everything into one pack, with a bitmap or without one."""
        self.git("repack", "-adq", "--write-bitmap-index" if bitmaps else "--no-write-bitmap-index")

    def refs(self):
        return sorted(line for line in self.git("for-each-ref", "--format=%(objectname) %(refname)").splitlines())

    def objects(self):
        """All objects that refs lead to, as "<id> <type> <size>"."""
        ids = {line.split()[0] for line in self.git("rev-list", "--objects", "--all").splitlines()}
        ids |= {line.split()[0] for line in self.refs()}
        return sorted(self.git("cat-file", "--batch-check", input="".join(f"{i}\n" for i in ids).encode()).splitlines())


# --- packets ---

def pkt(data):
    data = data.encode() if isinstance(data, str) else data
    return b"%04x" % (len(data) + 4) + data


def band(number, data=b""):
    return pkt(bytes([number]) + (data.encode() if isinstance(data, str) else data))


FLUSH, DELIM = b"0000", b"0001"
ADVERT_TYPE = "application/x-git-upload-pack-advertisement"
RESULT_TYPE = "application/x-git-upload-pack-result"


# --- scripts ---

def status(code, body=b"", **headers):
    """An answer without git."""
    def script(call, answer):
        call.head(code, {"Content-Type": "text/plain", **{k.replace("_", "-"): v for k, v in headers.items()}})
        call.piece(body)
        call.end()
    return script


def redirect(to, code=302):
    """A redirect; `to` may be a function of the request's path."""
    def script(call, answer):
        call.head(code, {"Location": to(call.path) if callable(to) else to})
        call.end()
    return script


def cut(after, reset=False):
    """The answer of git, ended after so many bytes of its body: the connection is closed, or reset."""
    def script(call, answer):
        left = after
        call.head(200, call.git_headers())
        for piece in answer:
            call.piece(piece[:left])
            left -= len(piece)
            if left <= 0:
                break
        call.hang_up(reset)
    return script


def in_pieces(size, pause=0):
    """The answer of git, in chunks of `size` bytes."""
    def script(call, answer):
        whole = b"".join(answer)
        for at in range(0, len(whole), size):
            yield whole[at:at + size]
            if pause:
                call.wait(pause)
    return script


def edit(change):
    """The answer of git, changed as a whole: change(bytes) gives bytes."""
    def script(call, answer):
        yield change(b"".join(answer))
    return script


def forever(begin, piece, pause=0):
    """An answer that begins and then repeats a piece until the other side hangs up."""
    def script(call, answer):
        call.head(200, {"Content-Type": RESULT_TYPE if call.command == "POST" else ADVERT_TYPE})
        call.piece(begin)
        while call.lab.is_running:
            call.piece(piece)
            if pause:
                call.wait(pause)
    return script


def raw(text):
    """Bytes in place of an HTTP answer."""
    def script(call, answer):
        call.wfile.write(text)
        call.hang_up()
    return script


# --- the server ---

class Call(http.server.BaseHTTPRequestHandler):
    """One request. The pieces of an answer are sent as chunks, each at once."""
    protocol_version = "HTTP/1.1"
    lab = None
    timeout = 600

    def setup(self):
        super().setup()
        self.connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.lab.connections += 1

    def log_message(self, *args):
        pass

    def do_GET(self):
        self.answer()

    def do_POST(self):
        self.answer()

    def read_body(self):
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if self.headers.get("Transfer-Encoding") == "chunked":
            while size := int(self.rfile.readline().split(b";")[0], 16):
                body += self.rfile.read(size)
                self.rfile.readline()
            self.rfile.readline()
        return body

    def answer(self):
        self.is_chunked, self.backend, self.git_status, self.heads = False, None, 200, None
        self.body = self.read_body()
        body = gzip.decompress(self.body) if self.headers.get("Content-Encoding") == "gzip" else self.body
        self.seen = Seen(self.command, self.path, dict(self.headers), body)
        self.lab.note(self.seen)
        try:
            self.answer_by(self.lab.script_for(self))
        except OSError:
            self.close_connection = True
        finally:
            if self.backend:
                self.backend.kill()
                self.backend.wait()
                self.backend.stdout.close()

    def answer_by(self, script):
        if self.lab.latency:
            self.wait(self.lab.latency)
        if self.lab.users is not None and self.headers.get("Authorization") not in self.lab.logins():
            return status(401, b"who are you?", WWW_Authenticate='Basic realm="git"')(self, None)
        pieces = (script or self.lab.usual)(self, self.run_git())
        if pieces is not None:
            begun = False
            for piece in pieces:
                if not begun:
                    self.head(self.git_status, self.git_headers())
                begun = True
                self.piece(piece)
            if not begun:
                self.head(self.git_status, self.git_headers())
            self.end()

    # the answer of git

    def run_git(self):
        """Runs git http-backend; gives the pieces of its body. Its head is then in git_status and git_headers()."""
        path, _, query = self.path.partition("?")
        env = {**ENV, "GIT_PROJECT_ROOT": str(self.lab.root), "GIT_HTTP_EXPORT_ALL": "1", "PATH_INFO": path,
               "QUERY_STRING": query, "REQUEST_METHOD": self.command, "REMOTE_ADDR": "127.0.0.1",
               "CONTENT_TYPE": self.headers.get("Content-Type", ""), "CONTENT_LENGTH": str(len(self.body)),
               "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", "")}
        if self.lab.may_push:
            env.update(REMOTE_USER="me", GIT_CONFIG_COUNT="1", GIT_CONFIG_KEY_0="http.receivepack", GIT_CONFIG_VALUE_0="true")
        if not self.lab.v0_only:
            env["GIT_PROTOCOL"] = self.headers.get("Git-Protocol", "")
        self.backend = subprocess.Popen(["git", "http-backend"], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=env)
        threading.Thread(target=self.feed, args=(self.backend.stdin,), daemon=True).start()
        self.heads = {}
        while line := self.backend.stdout.readline().strip():
            name, _, value = line.decode().partition(":")
            self.heads[name.strip()] = value.strip()
        self.git_status = int(self.heads.pop("Status", "200").split()[0])
        while piece := self.backend.stdout.read1(PIECE):
            yield piece

    def feed(self, stdin):
        try:
            stdin.write(self.body)
            stdin.close()
        except OSError:
            pass

    def git_headers(self):
        if self.heads is None:
            return {"Content-Type": RESULT_TYPE if self.command == "POST" else ADVERT_TYPE}
        return self.heads

    # what scripts write

    def head(self, code, headers):
        self.send_response(code)
        for name, value in headers.items():
            self.send_header(name, str(value))
        self.is_chunked = "Content-Length" not in headers
        if self.is_chunked:
            self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        self.wfile.flush()

    def piece(self, data):
        if data:
            self.wfile.write(b"%x\r\n" % len(data) + data + b"\r\n" if self.is_chunked else data)
            self.wfile.flush()
            self.seen.sent += len(data)
            self.lab.bytes_out += len(data)

    def end(self):
        if self.is_chunked:
            self.wfile.write(b"0\r\n\r\n")

    def hang_up(self, reset=False):
        if reset:
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.close_connection = True

    def wait(self, seconds):
        """A pause that ends when the lab stops."""
        self.lab.stopping.wait(seconds)


class Server(http.server.ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128

    def handle_error(self, request, client_address):
        """A broken connection is part of the tests. Any other exception is a fault of a script, and is shown."""
        if not isinstance(sys.exc_info()[1], OSError):
            traceback.print_exc()


class GitLab:
    def __init__(self, root, host="127.0.0.1", tls=None):
        """`tls`: a pair of files, certificate and key."""
        self.root = pathlib.Path(root)
        self.root.mkdir(parents=True, exist_ok=True)
        self.seen, self.scripts, self.bytes_out, self.connections = [], [], 0, 0
        self.v0_only, self.preamble, self.latency, self.users, self.may_push = False, None, 0, None, False
        self.lock, self.stopping, self.is_running = threading.Lock(), threading.Event(), True
        self.server = Server((host, 0), type("LabCall", (Call,), {"lab": self}))
        if tls:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(*tls)
            self.server.socket = context.wrap_socket(self.server.socket, server_side=True)
        self.port = self.server.server_address[1]
        self.base = f"http{'s' if tls else ''}://{host}:{self.port}"
        threading.Thread(target=self.server.serve_forever, args=(0.05,), daemon=True).start()

    def url(self, name):
        return f"{self.base}/{name}.git"

    def repo(self, name, format="sha1", commits=0, bitmaps=None, **more):
        repo = Repo(self.root / f"{name}.git", format)
        if commits:
            repo.commit(commits, **more)
        if bitmaps is not None:
            repo.pack(bitmaps)
        return repo

    def answer(self, path, script, times=None, method=None):
        """Requests whose path the expression is found in are answered by the script; the newest script counts."""
        self.scripts.insert(0, [re.compile(path), method, times, script])

    def answer_as_usual(self):
        self.scripts.clear()

    def script_for(self, call):
        with self.lock:
            for rule in self.scripts:
                if rule[0].search(call.path) and rule[1] in (None, call.command) and rule[2] != 0:
                    rule[2] = None if rule[2] is None else rule[2] - 1
                    return rule[3]
        return None

    def usual(self, call, answer):
        """What git says, with or without the line `# service` before the advertisement as `preamble` wants it."""
        line = pkt("# service=git-upload-pack\n") + FLUSH
        if self.preamble is not None and call.command == "GET":
            answer = [b"".join(answer).removeprefix(line)]
            yield line if self.preamble else b""
        yield from answer

    def logins(self):
        return {"Basic " + base64.b64encode(f"{u}:{p}".encode()).decode() for u, p in self.users.items()}

    def note(self, seen):
        with self.lock:
            self.seen.append(seen)

    def count(self, method=None, path=""):
        with self.lock:
            return sum(1 for s in self.seen if method in (None, s.method) and re.search(path, s.path))

    def reset(self):
        """Forgets requests and scripts."""
        with self.lock:
            self.seen.clear()
        self.scripts.clear()
        self.bytes_out = self.connections = 0
        self.v0_only, self.preamble, self.latency, self.users, self.may_push = False, None, 0, None, False

    def stop(self):
        self.is_running = False
        self.stopping.set()
        self.server.shutdown()
        self.server.server_close()


class Listener:
    """A port on which nobody may arrive: it counts connections and keeps the first bytes of each."""

    def __init__(self, host="127.0.0.1"):
        self.arrived, self.is_running = [], True
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self.socket = socket.socket(family)
        self.socket.bind((host, 0))
        self.socket.listen(64)
        self.socket.settimeout(0.2)
        self.port = self.socket.getsockname()[1]
        self.url = f"http://{f'[{host}]' if ':' in host else host}:{self.port}"
        threading.Thread(target=self.run, daemon=True).start()

    def run(self):
        while self.is_running:
            try:
                connection, _ = self.socket.accept()
            except OSError:
                continue
            with connection:
                connection.settimeout(1)
                try:
                    self.arrived.append(connection.recv(65536))
                except OSError:
                    self.arrived.append(b"")

    def stop(self):
        self.is_running = False
        self.socket.close()


# --- oracles ---

def bundle_repo(bundle, folder, format="sha1"):
    """Clones a bundle with the system's git into a bare mirror, checks it, and returns it as a Repo."""
    git("clone", "-q", "--mirror", bundle, folder)
    git("fsck", "--strict", "--connectivity-only", cwd=folder)
    repo = Repo.__new__(Repo)
    repo.path, repo.format, repo.made = pathlib.Path(folder), format, 0
    return repo


def assert_same(bundle, source, folder):
    """The bundle has the refs and the objects of the source, and nothing else."""
    copy = bundle_repo(bundle, folder, source.format)
    assert copy.refs() == source.refs()
    assert copy.objects() == source.objects()
    head = git("symbolic-ref", "HEAD", cwd=source.path).strip()
    if any(line.endswith(" " + head) for line in source.refs()):
        assert git("symbolic-ref", "HEAD", cwd=folder).strip() == head
    return copy
