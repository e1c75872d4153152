"""docs/swarm.md says truly which test each scenario of the tracker has."""
import re

from conftest import ROOT

ROW = re.compile(r"^\| (\d+) \| (\w+) \| (.*) \|$", re.M)
WHERE = re.compile(r"`([\w./]+)`(?: \(([\w/]+)\))?")


def test_each_scenario_is_in_the_file_that_is_told():
    rows = ROW.findall((ROOT / "docs/swarm.md").read_text().split("## Tested by")[1])
    assert len(rows) > 60
    for _, scenario, where in rows:
        places = WHERE.findall(where)
        assert places, scenario
        for path, other in places:
            text = (ROOT / "tests" / path).read_text()
            assert re.search(rf"{other}" if other else rf"(TEST\w*\(\w+,\s*|def test_){scenario}\b", text), (scenario, path)
