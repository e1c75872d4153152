"""DoltLite, a peer of the lake: SQLite with branches, commits and merges, on a tree that is split by content as weir's is.

Its program comes from the npm registry (@dolthub/doltlite). It needs glibc 2.38; where the machine's is older, it runs
under the loader of Debian 13's libc6, which is unpacked beside it and not installed."""
import lzma
import os
import platform
import re
import shutil
import subprocess
import urllib.request

from lab import Unmeasured
from lake_peers import CHANGED, FOLDER, child_cpu

PACKAGE = "@dolthub/doltlite@0.50.12"
GLIBC = (2, 38)
DEBIAN = "http://deb.debian.org/debian"
LIBRARIES = ("libc6", "zlib1g")

# Rows of the size and the randomness of weir's: a path, an identity of 32 bytes, an entry of 114.
ROW = """printf('table/date=%04d/part-%09d.parquet', value / 1000, value) AS path, randomblob(32) AS identity,
    printf('data/gk3d0hs9/01JD0000000000000000%s time size %s application/octet-stream',
           lower(hex(randomblob(5))), lower(hex(randomblob(16)))) AS data"""


def fetch_libraries(folder):
    """Debian 13's C library and zlib, unpacked into the folder."""
    with urllib.request.urlopen(f"{DEBIAN}/dists/trixie/main/binary-amd64/Packages.xz", timeout=60) as answer:
        packages = lzma.decompress(answer.read()).decode()
    for library in LIBRARIES:
        found = re.search(rf"^Package: {library}\n(?:.+\n)*?Filename: (\S+)", packages, re.M)
        path = os.path.join(folder, library + ".deb")
        with urllib.request.urlopen(f"{DEBIAN}/{found.group(1)}", timeout=60) as answer, open(path, "wb") as out:
            shutil.copyfileobj(answer, out)
        subprocess.run(["dpkg-deb", "-x", path, folder], check=True)


def install(lab):
    """The command that runs DoltLite. It is fetched once, into the build folder."""
    folder = os.path.join(lab.build, "doltlite")
    program = os.path.join(folder, "package/prebuilds/linux-x64/doltlite")
    libraries = os.path.join(folder, "usr/lib/x86_64-linux-gnu")
    is_old = tuple(map(int, platform.libc_ver()[1].split("."))) < GLIBC
    try:
        if not os.path.exists(program):
            os.makedirs(folder, exist_ok=True)
            subprocess.run(["npm", "pack", "--silent", PACKAGE], check=True, cwd=folder, capture_output=True)
            archive = next(name for name in os.listdir(folder) if name.endswith(".tgz"))
            subprocess.run(["tar", "xzf", archive], check=True, cwd=folder)
            os.chmod(program, 0o755)
        if is_old and not os.path.exists(libraries):
            fetch_libraries(folder)
    except (OSError, subprocess.CalledProcessError, AttributeError, StopIteration) as why:
        raise Unmeasured(f"DoltLite is left out: {PACKAGE} could not be fetched ({why})") from why
    loader = [os.path.join(libraries, "ld-linux-x86-64.so.2"), "--library-path", libraries] if is_old else []
    return [*loader, program]


class DoltLite:
    """A database with one table of `objects` rows. CPU is that of the whole process, without its start and without the
    making of the rows."""

    def __init__(self, lab, objects):
        self.command, self.objects = install(lab), objects
        self.file = os.path.join(lab.folder("doltlite"), "bench.db")
        self.run("CREATE TABLE t(path TEXT PRIMARY KEY, identity BLOB, data BLOB) WITHOUT ROWID;")
        self.start = self.cpu("SELECT 1;")

    def run(self, sql):
        done = subprocess.run([*self.command, "-bail", self.file], input=sql, capture_output=True, text=True)
        if done.returncode != 0 or done.stderr:
            raise Unmeasured(f"DoltLite: {(done.stderr or done.stdout)[-200:].strip()}")
        return done.stdout

    def cpu(self, sql):
        return child_cpu(lambda: self.run(sql))

    def build(self):
        """Seconds of CPU of a commit of all rows."""
        rows = f"SELECT {ROW} FROM generate_series(0, {self.objects - 1})"
        made = self.cpu(f"SELECT sum(length(path) + length(identity) + length(data)) FROM ({rows});")
        return self.cpu(f"INSERT INTO t {rows}; SELECT dolt_commit('-Am', 'all');") - made

    @staticmethod
    def change(first, last):
        return (f"UPDATE t SET identity = randomblob(32) WHERE path BETWEEN printf('table/date=%04d/part-%09d', "
                f"{first // 1000}, {first}) AND printf('table/date=%04d/part-%09d.parquet', {last // 1000}, {last});")

    def singles(self, random, count):
        """Seconds of CPU of a change and a commit of one object, synced."""
        asked = "".join(self.change(n, n) + "SELECT dolt_commit('-Am', 'one');"
                        for n in (random.randrange(self.objects) for _ in range(count)))
        return (self.cpu(asked) - self.start) / count

    def lookups(self, random, count):
        """Seconds of CPU of a lookup at the head."""
        wanted = ",".join(f"({random.randrange(self.objects)})" for _ in range(count))
        names = (f"CREATE TEMP TABLE w AS SELECT printf('table/date=%04d/part-%09d.parquet', column1 / 1000, column1) AS path "
                 f"FROM (VALUES {wanted});")
        found = "SELECT count(*), sum(length(data)) FROM w CROSS JOIN t USING (path);"
        return (self.cpu(names + found) - self.cpu(names)) / count

    def branch(self, name, first):
        """A branch with ten folders changed, at equal distances from `first` on."""
        step = self.objects // FOLDER // CHANGED
        folders = [(first + i * step) * FOLDER for i in range(CHANGED)]
        self.run(f"SELECT dolt_branch('{name}'); SELECT dolt_checkout('{name}');"
                 + "".join(self.change(at, at + FOLDER - 1) for at in folders) + f"SELECT dolt_commit('-Am', '{name}');")

    def diff_and_merge(self):
        """Seconds of CPU of a diff of 10,000 changes, and of a merge of as many on both sides."""
        self.branch("left", 1)
        self.run("SELECT dolt_checkout('main');")
        self.branch("right", 50)
        diff = self.cpu("SELECT count(*) FROM dolt_diff_t('main', 'left');") - self.start
        merge = self.cpu("SELECT dolt_checkout('right'); SELECT dolt_merge('left');") - self.start
        return diff, merge
