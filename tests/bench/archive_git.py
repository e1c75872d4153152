"""Git servers and repositories for the measures of the archive.

    archive_git.py FOLDER PORT    serves the repositories below FOLDER by `git http-backend`
"""
import bisect
import http.server
import itertools
import os
import random
import subprocess
import sys
import threading

ENV = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null",
       "LC_ALL": "C"}
PIECE = 1 << 20
MADE = "3"  # changes when the repositories change


def git(folder, *args, stdin=None):
    return subprocess.run(["git", *args], cwd=folder, env=ENV, input=stdin, check=True, capture_output=True).stdout


# --- repositories ---


class History:
    """Commits for fast-import. The objects have the numbers and sizes of those of a real project, valkey, which has
    110,594 objects in a pack of 149 MB, and 379 MB when every entry is inflated: 1.7 files and 1.2 folders change with a
    commit; a version of a file has 75 KB on average and 34 KB in the middle; nearly all versions are deltas."""
    POOL = 32 << 20  # bytes of text, from which all text is cut

    def __init__(self, seed, files):
        self.random = random.Random(seed)
        self.pool = self.text()
        self.files = [self.cut(min(600_000, int(self.random.lognormvariate(9.05, 1.3)) + 40)) for _ in range(files)]
        self.weights = list(itertools.accumulate(map(len, self.files)))  # large files change more often
        self.waiting = set(range(files))  # files that no commit has added yet
        self.folders = max(1, files // 66)
        self.number = self.marks = 0
        self.time = 1_600_000_000

    def text(self):
        words = ["".join(self.random.choices("abcdefghijklmnopqrstuvwxyz_", k=self.random.randrange(2, 11))) for _ in range(4096)]
        weights = list(itertools.accumulate((n + 2) ** -1.3 for n in range(len(words))))
        text = " ".join(self.random.choices(words, cum_weights=weights, k=1 << 20)).encode()
        out, size = [], 0
        while size < self.POOL:  # pieces of a text, in any order: as good as new text, and soon made
            at = self.random.randrange(len(text) - 400)
            out.append(text[at:at + self.random.randrange(100, 400)])
            size += len(out[-1])
        return b"\n".join(out)

    def cut(self, size):
        at = self.random.randrange(len(self.pool) - size)
        return self.pool[at:at + size]

    def change(self, file):
        """The next version of a file: some pieces are replaced."""
        data, left = self.files[file], min(len(self.files[file]), int(self.random.lognormvariate(8.8, 1.2)))
        while left > 0:
            size = min(left, self.random.randrange(200, 6000))
            at = self.random.randrange(max(1, len(data) - size))
            data = data[:at] + self.cut(size) + data[at + size:]
            left -= size
        self.files[file] = data

    def choose(self):
        """The files that one commit changes; they are mostly in one folder."""
        total = self.weights[-1]
        first = bisect.bisect_right(self.weights, self.random.randrange(total))
        chosen, more = {first}, self.random.choices((0, 1, 2, 4), (62, 22, 10, 6))[0]
        folder = range(first % self.folders, len(self.files), self.folders)
        chosen.update(self.random.choices(folder, [len(self.files[i]) for i in folder], k=more))
        return chosen

    def plan(self, commits, adds):
        """For each commit the files that it changes; `adds` of them add the files that are not there yet."""
        plan = [self.choose() for _ in range(commits)]
        for file in range(len(self.files)) if adds else ():
            plan[self.random.randrange(commits)].add(file)
        return plan

    def write(self, out, commits, begins_at=None):
        """All versions of a file follow each other, so that fast-import makes deltas of them."""
        plan = self.plan(commits, adds=not begins_at)
        marks = {}
        for number, file in sorted(((n, f) for n, files in enumerate(plan) for f in files), key=lambda at: (at[1], at[0])):
            if file not in self.waiting:
                self.change(file)
            self.waiting.discard(file)
            self.marks += 1
            marks[number, file] = self.marks
            out.write(b"blob\nmark :%d\ndata %d\n%s\n" % (self.marks, len(self.files[file]), self.files[file]))
        for number, files in enumerate(plan):
            self.time += 60
            message = self.cut(self.random.randrange(100, 600))
            out.write(b"commit refs/heads/main\ncommitter C <c@example> %d +0000\ndata %d\n%s\n" %
                      (self.time, len(message), message))
            if begins_at and number == 0:
                out.write(b"from %s\n" % begins_at)
            for file in sorted(files):
                out.write(b"M 100644 :%d d%02d/f%04d.c\n" % (marks[number, file], file % self.folders, file))


def import_commits(folder, history, count, begins_at=None):
    process = subprocess.Popen(["git", "fast-import", "--quiet", "--force", "--depth=50"], cwd=folder, env=ENV,
                               stdin=subprocess.PIPE)
    history.write(process.stdin, count, begins_at)
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
    history = History(seed, files=max(10, commits * 3 // 20))
    import_commits(folder, history, commits)
    all_commits, main = commits_of(folder), git(folder, "rev-parse", "main").decode().strip()
    git(folder, "update-ref", "-d", "refs/heads/main")
    step = len(all_commits) / max(1, refs - 1)
    names = [(f"refs/tags/n{i:06}" if i % 4 else f"refs/heads/n{i:06}", all_commits[int(i * step)]) for i in range(refs - 1)]
    pack_refs(folder, [*names, ("refs/heads/main", main)])
    git(folder, "repack", "-a", "-d", "-b", "-q")
    return history


def make_after(folder, before, commits, history):
    """The same repository, some commits later."""
    subprocess.run(["cp", "-r", before, folder], check=True)
    import_commits(folder, history, commits, git(folder, "rev-parse", "main").strip())


def repositories(cache, commits, refs, many_refs):
    """The folder with `large`, `after` (a hundred commits later) and `refs`. They are made once and kept in the build."""
    folder = os.path.join(cache, f"archive-{MADE}-{commits}-{refs}-{many_refs}")
    if not os.path.isdir(folder):
        making = folder + ".making"
        subprocess.run(["rm", "-rf", making], check=True)
        history = make_repository(os.path.join(making, "large"), commits, refs, 1)
        make_after(os.path.join(making, "after"), os.path.join(making, "large"), 100, history)
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
