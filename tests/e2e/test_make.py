"""The front door: make install and make help, on what is built already."""
import subprocess

from conftest import BUILD, ROOT, WEIR


def make(*args):
    return subprocess.run(["make", "--no-print-directory", "-C", str(ROOT), *args], capture_output=True, text=True)


def test_help_names_the_targets():
    text = make("help").stdout
    for target in ("run", "test", "bench", "chaos", "fuzz", "install"):
        assert f"make {target}" in text


def test_install_puts_everything_in_its_place(tmp_path):
    for _ in range(2):  # again is fine
        run = make("install-files", f"DESTDIR={tmp_path}", "PREFIX=/usr", f"BUILD={BUILD}")
        assert run.returncode == 0, run.stderr
    assert (tmp_path / "usr/bin/weir").read_bytes() == WEIR.read_bytes()
    assert (tmp_path / "usr/share/man/man1/weir.1").read_text().startswith(".TH WEIR 1")
    assert "complete -F _weir weir" in (tmp_path / "usr/share/bash-completion/completions/weir").read_text()
    unit = (tmp_path / "usr/lib/systemd/system/weir.service").read_text()
    assert "ExecStart=/usr/bin/weir serve " in unit and "@" not in unit
    config = tmp_path / "etc/weir/weir.yaml"
    assert "#s3.listen: 127.0.0.1:9000" in config.read_text()
    config.write_text("log.level: warn\n")
    assert make("install-files", f"DESTDIR={tmp_path}", "PREFIX=/usr", f"BUILD={BUILD}").returncode == 0
    assert config.read_text() == "log.level: warn\n"


def test_a_second_build_does_nothing_and_needs_no_network():
    command = ["make", "--no-print-directory", "-C", str(ROOT), "weir", f"BUILD={BUILD}"]
    alone = ["unshare", "--map-root-user", "--net", "--"]
    if subprocess.run([*alone, "true"], capture_output=True).returncode == 0:
        command = alone + command
    before = WEIR.stat().st_mtime_ns
    run = subprocess.run(command, capture_output=True, text=True)
    assert (run.returncode, run.stderr) == (0, "")
    assert run.stdout in ("", "ninja: no work to do.\n")
    assert WEIR.stat().st_mtime_ns == before
