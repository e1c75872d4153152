"""A real PostgreSQL that only one test uses, on a unix socket, ended by its process id."""
import glob
import os
import pathlib
import pwd
import shutil
import signal
import subprocess
import tempfile

import pytest

from conftest import free_port, wait_for


class Postgres:
    """The user weir may do everything in the database weir; its password is "hidden"."""

    def __init__(self):
        programs = sorted(glob.glob("/usr/lib/postgresql/*/bin"))
        self.programs = pathlib.Path(programs[-1]) if programs else pathlib.Path()
        self.user = "postgres" if os.geteuid() == 0 else None  # PostgreSQL refuses to run as root
        # That user cannot enter the folder of a test, nor TMPDIR, which belongs to the run of all tests.
        place = "/dev/shm" if self.user and os.path.isdir("/dev/shm") else None
        self.folder = pathlib.Path(tempfile.mkdtemp(prefix="weir-test-postgres-", suffix=f"-{os.getpid()}", dir=place))
        if self.user:
            shutil.chown(self.folder, self.user)
        self.port, self.process = free_port(), None
        self.run("initdb", "-D", self.folder / "data", "-U", "weir", "-A", "scram-sha-256", "-N",
                 "--pwfile", self.write("password", "hidden\n"))
        self.url = f"postgres://weir:hidden@/postgres?host={self.folder}&port={self.port}"
        self.start()

    def write(self, name, text):
        path = self.folder / name
        path.write_text(text)
        if self.user:
            shutil.chown(path, self.user)
        return path

    def run(self, program, *args):
        subprocess.run([str(self.programs / program), *map(str, args)], user=self.user, check=True, cwd="/",
                       stdout=subprocess.DEVNULL, env={"HOME": "/", "PATH": os.environ["PATH"]})

    def start(self):
        with open(self.folder / "log", "a", encoding="utf-8") as log:
            self.process = subprocess.Popen(
                [str(self.programs / "postgres"), "-D", str(self.folder / "data"), "-k", str(self.folder), "-p",
                 str(self.port), "-c", "listen_addresses=", "-c", "fsync=off"],
                user=self.user, stdout=log, stderr=log, cwd="/", env={"PATH": os.environ["PATH"]})
        wait_for(lambda: subprocess.run([str(self.programs / "pg_isready"), "-q", "-h", str(self.folder), "-p",
                                         str(self.port)], check=False).returncode == 0, "postgres")

    def query(self, statement, url=None):
        return subprocess.run([str(self.programs / "psql"), "-X", "-A", "-t", "-c", statement, url or self.url], check=True,
                              capture_output=True, text=True).stdout.strip()

    def stop(self):
        if self.process.poll() is None:
            os.kill(self.process.pid, signal.SIGINT)
        self.process.wait()

    def remove(self):
        self.stop()
        shutil.rmtree(self.folder, ignore_errors=True)


@pytest.fixture
def postgres():
    pwd.getpwnam("postgres")
    server = Postgres()
    yield server
    server.remove()
