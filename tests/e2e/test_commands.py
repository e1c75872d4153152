"""The command line: help, usage errors, and what is written from the tables."""
import json
import subprocess

import pytest

from conftest import ROOT, WEIR


def test_without_a_command_the_overview_is_an_error(weir):
    run = weir()
    assert run.returncode == 2
    assert "usage: weir COMMAND" in run.stderr and "serve" in run.stderr
    assert run.stdout == ""


@pytest.mark.parametrize("args", [["help"], ["--help"], ["-h"]])
def test_the_overview_lists_every_command(weir, args):
    run = weir(*args)
    assert run.returncode == 0
    for command in ("serve", "status", "backup", "config", "help", "version"):
        assert f"\n  {command}" in run.stdout


@pytest.mark.parametrize("args", [["help", "serve"], ["serve", "--help"], ["serve", "-h"]])
def test_help_of_a_command_has_usage_flags_and_examples(weir, args):
    run = weir(*args)
    assert run.returncode == 0
    assert run.stdout.startswith("usage: weir serve [FLAGS]\n")
    for part in ("--config FILE", "--data PATH", "--only ROLE,...", "examples:"):
        assert part in run.stdout


def test_version(weir):
    assert weir("version").stdout == weir("--version").stdout
    assert weir("version").stdout.startswith("weir 0.")


@pytest.mark.parametrize("args, text", [
    (["sevre"], "weir: no command 'sevre'; did you mean 'serve'?"),
    (["frobnicate"], "weir: no command 'frobnicate'; `weir help` lists them"),
    (["help", "cofnig"], "weir: no command 'cofnig'; did you mean 'config'?"),
    (["config", "--jsn"], "weir: config: no flag --jsn; did you mean --json?"),
    (["config", "--log.levle=info"], "weir: config: no flag --log.levle; did you mean --log.level?"),
    (["version", "--log.level=info"], "weir: version: no flag --log.level; `weir help version` lists them"),
    (["config", "-x"], "weir: config: no flag -x; `weir help config` lists the flags"),
    (["config", "--config"], "weir: config: --config needs a value"),
    (["config", "--json=yes"], "weir: config: --json takes no value"),
    (["config", "more"], "weir: config: unexpected argument 'more'; `weir help config` says more"),
    (["backup"], "weir: backup needs DIR; `weir help backup` says more"),
    (["serve", "--only", "gateway,cook"],
     "weir: serve: --only takes gateway, worker, tracker, archive (commas between several), not 'cook'"),
])
def test_wrong_use_is_one_line_and_status_2(weir, args, text):
    run = weir(*args)
    assert (run.returncode, run.stderr, run.stdout) == (2, text + "\n", "")


@pytest.mark.parametrize("group, commands", [("store", ["status", "accept", "restore"]), ("lake", ["repo create", "commit"]),
                                             ("lake branch", ["create", "protect"])])
def test_a_group_alone_shows_its_commands(weir, group, commands):
    words = group.split()
    run, asked, helped = weir(*words), weir(*words, "--help"), weir("help", *words)
    assert (run.returncode, run.stdout, asked.returncode, asked.stderr) == (2, "", 0, "")
    assert run.stderr == asked.stdout and asked.stdout.startswith(f"usage: weir {group} COMMAND")
    assert asked.stdout.endswith(helped.stdout)
    for command in commands:
        assert f"  {group} {command} " in asked.stdout


def test_the_man_page_has_no_roff_errors_and_every_key(weir):
    page = weir("help", "--man").stdout
    keys = [row["key"] for row in json.loads(weir("config", "--json").stdout)]
    for key in keys:
        assert key in page.replace("\\-", "-")
    assert page.startswith(".TH WEIR 1")
    for section in ("NAME", "SYNOPSIS", "COMMANDS", "CONFIGURATION", "SIGNALS", "ENVIRONMENT", "FILES", "EXIT STATUS"):
        assert f"\n.SH {section}\n" in page


def complete(*words):
    """What bash would offer for the last word."""
    script = subprocess.run([WEIR, "help", "--completion"], capture_output=True, text=True, check=True).stdout
    line = " ".join(f"'{w}'" for w in words)
    script += f"\nCOMP_WORDS=({line}); COMP_CWORD={len(words) - 1}; _weir; printf '%s\\n' \"${{COMPREPLY[@]}}\"\n"
    run = subprocess.run(["bash", "-eu", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    return run.stdout.split()


def test_completion_of_commands_flags_and_values():
    assert complete("weir", "") == [
        "serve", "status", "backup", "user", "storage", "bucket", "webhook", "store", "task", "shard", "replicate",
        "switch", "diff", "torrent", "swarm", "lake", "archive", "config", "help", "version"]
    assert complete("weir", "s") == ["serve", "status", "storage", "store", "shard", "switch", "swarm"]
    assert complete("weir", "config", "--js") == ["--json"]
    assert complete("weir", "serve", "--log.l") == ["--log.level"]
    assert complete("weir", "serve", "--log.level", "") == ["debug", "info", "warn", "error"]
    assert complete("weir", "serve", "--log.level", "=", "d") == ["debug"]
    assert complete("weir", "serve", "--only", "") == ["gateway", "worker", "tracker", "archive"]
    assert complete("weir", "help", "ser") == ["serve"]
    assert "--secret_key" not in complete("weir", "serve", "--")


@pytest.mark.parametrize("flag, page", [("--commands", "docs/commands.md"), ("--keys", "docs/config.md"),
                                        ("--api", "docs/api.md")])
def test_generated_pages_are_not_stale(weir, flag, page):
    assert weir("help", flag).stdout == (ROOT / page).read_text(), f"run: weir help {flag} > {page}"


def test_the_sample_configuration_is_valid_and_holds_the_defaults(weir, tmp_path):
    sample = weir("help", "--sample").stdout
    (tmp_path / "as-is.yaml").write_text(sample)
    lines = [line[1:] if line.startswith("#") and not line.startswith("# ") else line for line in sample.splitlines()]
    (tmp_path / "all.yaml").write_text("\n".join(lines))
    rows = json.loads(weir("config", "--json", "--config", "as-is.yaml").stdout)
    assert {row["source"] for row in rows} == {"default"}
    set_rows = json.loads(weir("config", "--json", "--config", "all.yaml").stdout)
    assert [(r["key"], r["value"]) for r in set_rows] == [(r["key"], r["value"]) for r in rows]
    assert all(row["source"].startswith("all.yaml:") for row in set_rows)


def test_output_that_cannot_be_written_is_a_failure(tmp_path):
    with open("/dev/full", "w") as full:
        run = subprocess.run([WEIR, "config"], stdout=full, stderr=subprocess.PIPE, text=True, cwd=tmp_path)
    assert run.returncode == 1
    assert run.stderr == "weir: the output could not be written\n"
