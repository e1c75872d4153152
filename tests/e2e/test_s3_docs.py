"""docs/s3.md names every operation of the gateway's table, and says truly which are there."""
import re

from conftest import ROOT

ROW = re.compile(r"\{S3_OP_(\w+),\s*HTTP_\w+,\s*LEVEL_\w+,\s*(?:(?:\"[\w-]+\"|NULL),\s*){3}(\w+),")


def operations():
    """name -> whether a function stands behind it."""
    table = (ROOT / "src/s3/gateway/gateway_table.c").read_text()
    return {name: fn != "NULL" for name, fn in ROW.findall(table)}


def documented():
    """name -> what the column "local" says."""
    text = (ROOT / "docs/s3.md").read_text().split("## Operations")[1].split("\n## ")[0]
    rows = re.findall(r"^\| ([A-Z][\w, ]*?) \| (.*?) \|", text, re.M)
    return {name: local for names, local in rows for name in names.split(", ")}


def test_every_operation_is_documented_once_and_none_besides():
    assert len(operations()) > 70
    assert set(operations()) == set(documented())


def test_what_is_not_there_says_no():
    pages = documented()
    assert {name for name, there in operations().items() if not there} == {n for n, local in pages.items() if local == "no"}
