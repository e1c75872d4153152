"""Git servers and repositories for the measures of the archive.

    archive_git.py FOLDER PORT    serves the repositories below FOLDER by `git http-backend`
"""
import http.server
import os
import random
import subprocess
import sys
import threading

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
       "LC_ALL": "C"}
PIECE = 1 << 20
MADE = "2"  # changes when the repositories change


def git(folder, *args, stdin=None):
    return subprocess.run(["git", *args], cwd=folder, env=ENV, input=stdin, check=True, capture_output=True).stdout


# --- repositories ---


class History:
    """A stream for fast-import: commits that change five files in three folders. A file has 32 KB on average. One version
    in six has a text of its own, the others differ from the last one in some words, so that most objects become deltas.
    The packs have the size of a real project's: valkey has 110,594 objects in 149 MB, which are 379 MB when every entry
    is inflated."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.words = ["".join(self.random.choices("abcdefghijklmnopqrstuvwxyz_", k=self.random.randrange(3, 11)))
                      for _ in range(4096)]
        self.text, self.number = [], 0

    def blob(self):
        if not self.text or self.random.random() < 0.16:
            self.text = self.random.choices(self.words, k=self.random.randrange(480, 8000))
        else:
            for _ in range(12):
                self.text[self.random.randrange(len(self.text))] = self.random.choice(self.words)
        return " ".join(self.text).encode()

    def commit(self, begins_at=None):
        self.number += 1
        out = [b"commit refs/heads/main\nmark :%d\ncommitter C <c@example> %d +0000\ndata 7\ncommit\n\n" %
               (self.number, 1_600_000_000 + 60 * self.number)]
        if begins_at:
            out.append(b"from %s\n" % begins_at)
        folders = self.random.sample(range(20), 3)
        for i in range(5):
            data = self.blob()
            out.append(b"M 100644 inline d%02d/f%02d.c\ndata %d\n" % (folders[i % 3], self.random.randrange(60), len(data)))
            out += [data, b"\n"]
        return b"".join(out)


def import_commits(folder, history, count, begins_at=None):
    process = subprocess.Popen(["git", "fast-import", "--quiet", "--force", "--depth=50", "--export-marks=marks"], cwd=folder,
                               env=ENV, stdin=subprocess.PIPE)
    for i in range(count):
        process.stdin.write(history.commit(begins_at if i == 0 else None))
    process.stdin.close()
    assert process.wait() == 0


def pack_refs(folder, refs):
    with open(os.path.join(folder, "packed-refs"), "w", encoding="utf-8") as f:
        f.write("# pack-refs with: peeled fully-peeled sorted \n")
        f.writelines(f"{oid} {name}\n" for name, oid in sorted(refs))


def commits_of(folder):
    return git(folder, "rev-list", "--reverse", "main").decode().split()


def make_repository(folder, commits, refs, seed):
    """`refs` tags and branches on commits of the history; one pack with a bitmap, as a server has it."""
    os.makedirs(folder)
    git(folder, "init", "-q", "--bare", "-b", "main", ".")
    git(folder, "config", "gc.auto", "0")
    import_commits(folder, History(seed), commits)
    all_commits, main = commits_of(folder), git(folder, "rev-parse", "main").decode().strip()
    git(folder, "update-ref", "-d", "refs/heads/main")
    step = len(all_commits) / max(1, refs - 1)
    names = [(f"refs/tags/n{i:06}" if i % 4 else f"refs/heads/n{i:06}", all_commits[int(i * step)]) for i in range(refs - 1)]
    pack_refs(folder, [*names, ("refs/heads/main", main)])
    git(folder, "repack", "-a", "-d", "-b", "-q")


def make_after(folder, before, commits, seed):
    """The same repository, some commits later."""
    subprocess.run(["cp", "-r", before, folder], check=True)
    history = History(seed)
    history.number = 1_000_000
    import_commits(folder, history, commits, git(folder, "rev-parse", "main").strip())


def repositories(cache, commits, refs, many_refs):
    """The folder with `large`, `after` (a hundred commits later) and `refs`. They are made once and kept in the build."""
    folder = os.path.join(cache, f"archive-{MADE}-{commits}-{refs}-{many_refs}")
    if not os.path.isdir(folder):
        making = folder + ".making"
        subprocess.run(["rm", "-rf", making], check=True)
        make_repository(os.path.join(making, "large"), commits, refs, 1)
        make_after(os.path.join(making, "after"), os.path.join(making, "large"), 100, 2)
        make_repository(os.path.join(making, "refs"), 1000, many_refs, 3)
        os.rename(making, folder)
    return folder


# --- the server ---


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self):
        path, _, query = self.path.partition("?")
        body = self.body()
        env = dict(ENV, GIT_PROJECT_ROOT=self.server.folder, GIT_HTTP_EXPORT_ALL="1", PATH_INFO=path, QUERY_STRING=query,
                   REQUEST_METHOD=self.command, CONTENT_TYPE=self.headers.get("Content-Type", ""),
                   CONTENT_LENGTH=str(len(body)), GIT_PROTOCOL=self.headers.get("Git-Protocol", ""),
                   HTTP_CONTENT_ENCODING=self.headers.get("Content-Encoding", ""), REMOTE_ADDR="127.0.0.1")
        child = subprocess.Popen(["git", "http-backend"], env=env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 pipesize=PIECE)
        feeder = threading.Thread(target=self.feed, args=(child.stdin, body))
        feeder.start()
        status, headers = 200, []
        while (line := child.stdout.readline().strip()):
            name, _, value = line.decode().partition(": ")
            status, headers = (int(value.split()[0]), headers) if name == "Status" else (status, [*headers, (name, value)])
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        while (piece := child.stdout.read1(PIECE)):
            self.wfile.write(b"%x\r\n" % len(piece))
            self.wfile.write(piece)
            self.wfile.write(b"\r\n")
        self.wfile.write(b"0\r\n\r\n")
        feeder.join()
        child.wait()

    def body(self):
        """git sends a long question in chunks."""
        if self.headers.get("Transfer-Encoding") != "chunked":
            return self.rfile.read(int(self.headers.get("Content-Length", 0)))
        pieces = []
        while (size := int(self.rfile.readline(), 16)):
            pieces.append(self.rfile.read(size))
            self.rfile.readline()
        self.rfile.readline()
        return b"".join(pieces)

    @staticmethod
    def feed(to, body):
        try:
            to.write(body)
            to.close()
        except BrokenPipeError:
            pass

    do_GET = do_POST = answer


if __name__ == "__main__":
    server = http.server.ThreadingHTTPServer(("127.0.0.1", int(sys.argv[2])), Handler)
    server.folder = sys.argv[1]
    server.serve_forever()
