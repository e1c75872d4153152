"""Configuration: layers, sources, masks, and each mistake by its line."""
import json

import pytest


def rows(run):
    assert run.returncode == 0, run.stderr
    return {row["key"]: (row["value"], row["source"]) for row in json.loads(run.stdout)}


def test_flags_over_environment_over_file_over_defaults(weir, tmp_path):
    (tmp_path / "weir.yaml").write_text("log:\n  level: debug\n  format: json\napi.listen: :1\n")
    found = rows(weir("config", "--json", "--api.listen", ":3",
                      env={"WEIR_LOG_LEVEL": "warn", "WEIR_API_LISTEN": ":2"}))
    assert found["log.format"] == ("json", "./weir.yaml:3")
    assert found["log.level"] == ("warn", "environment WEIR_LOG_LEVEL")
    assert found["api.listen"] == (":3", "flag --api.listen")
    assert found["s3.listen"] == ("127.0.0.1:9000", "default")


def test_where_the_file_is_looked_for(weir, tmp_path):
    for name in ("weir.yaml", "env.yaml", "flag.yaml"):
        (tmp_path / name).write_text(f"data: {name}\n")
    assert rows(weir("config", "--json"))["data"] == ("weir.yaml", "./weir.yaml:1")
    env = {"WEIR_CONFIG": "env.yaml"}
    assert rows(weir("config", "--json", env=env))["data"] == ("env.yaml", "env.yaml:1")
    assert rows(weir("config", "--json", "--config=flag.yaml", env=env))["data"] == ("flag.yaml", "flag.yaml:1")


def test_camel_case_keys_have_plain_variables(weir):
    found = rows(weir("config", "--json", env={"WEIR_STORE_REDIS_APPDB": "7"}))
    assert found["store.redis.appDB"] == ("7", "environment WEIR_STORE_REDIS_APPDB")


def test_secrets_are_masked(weir):
    env = {"WEIR_ACCESS_KEY": "AKIAEXAMPLE", "WEIR_SECRET_KEY": "correct-horse",
           "WEIR_STORE_REDIS_URL": "redis://me:battery@127.0.0.1:1"}
    for args in (["config"], ["config", "--json"]):
        run = weir(*args, env=env)
        assert run.returncode == 0
        for secret in ("AKIAEXAMPLE", "correct-horse", "battery"):
            assert secret not in run.stdout + run.stderr
    assert rows(weir("config", "--json", env=env))["store.redis.url"][0] == "redis://me:***@127.0.0.1:1"


def test_the_table_is_aligned(weir):
    lines = weir("config").stdout.splitlines()
    assert lines[0].split() == ["key", "value", "source"]
    column = lines[0].index("source")
    assert all(line[column - 1] == " " and line[column] != " " for line in lines)
    assert "\033" not in "".join(lines)


ADDRESS = "an address such as 127.0.0.1:9000, [::1]:9000, :9000 or unix:/path, or off"


@pytest.mark.parametrize("command", ["config", "serve"])
@pytest.mark.parametrize("yaml, problems", [
    ("s3:\n  listn: :80\n", ["weir.yaml:2: 's3.listn' is not a key; did you mean s3.listen?"]),
    ("s3.listen: here\n", [f"weir.yaml:1: s3.listen must be {ADDRESS}; it is 'here'"]),
    ("log.level: loud\nstore.engine: x\n",
     ["weir.yaml:1: log.level must be one of debug, info, warn or error; it is 'loud'",
      "weir.yaml:2: store.engine must be one of embedded or redis; it is 'x'"]),
    ("log.level: info\nlog.level: info\n", ["weir.yaml:2: log.level is given twice; first on line 1"]),
    ("log: &a {}\n", ["weir.yaml:1: anchors (&name) are not allowed"]),
    ("log: [a]\n", ["weir.yaml:1: lists are not allowed; no key takes one"]),
    ("a: 'b\n", ["weir.yaml:2: not valid YAML: found unexpected end of stream"]),
    ("s3.tls.cert: x\n", ["weir.yaml:1: s3.tls.cert is set but s3.tls.key is not; set both or none"]),
])
def test_a_wrong_file_is_told_by_line_and_nothing_starts(weir, tmp_path, command, yaml, problems):
    (tmp_path / "weir.yaml").write_text(yaml)
    run = weir(command, "--config", "weir.yaml", "--data", "data")
    assert run.returncode == 2
    assert run.stderr.splitlines() == ["weir: " + p for p in problems]
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("args, env, problem", [
    (["--db.cache=1k"], {}, "flag --db.cache: db.cache must be a size such as 64KiB or 16MiB, from 1MiB to 1TiB; "
                            "it is '1k'"),
    ([], {"WEIR_SHUTDOWN_TIMEOUT": "soon"}, "environment WEIR_SHUTDOWN_TIMEOUT: shutdown.timeout must be a duration "
                                            "such as 500ms, 30s or 5m, from 0ms to 1h; it is 'soon'"),
    ([], {"WEIR_LOG_LEVL": "info"}, "environment WEIR_LOG_LEVL: not a key; did you mean WEIR_LOG_LEVEL?"),
    (["--secret_key=correct-horse"], {}, "flag --secret_key: secrets are not taken from flags, which everybody can "
                                         "see with ps; use the file or the environment"),
    ([], {"WEIR_SECRET_KEY": "correct-horse"}, "environment WEIR_SECRET_KEY: secret_key is set but access_key is not; "
                                               "set both or none"),
    (["--config=none.yaml"], {}, "opening none.yaml: No such file or directory"),
])
def test_a_wrong_flag_or_variable_is_told(weir, args, env, problem):
    run = weir("config", *args, env=env)
    assert (run.returncode, run.stderr) == (2, f"weir: {problem}\n")
