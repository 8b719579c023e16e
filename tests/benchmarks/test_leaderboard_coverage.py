"""The benchmark of leaderboards' intervals, and the numbers that the report quotes from it."""

import json
from importlib.resources import files

import pytest
from benchmarks.accuracy import ROOT
from benchmarks.leaderboards import SETTINGS, main


@pytest.mark.slow
def test_coverage_of_one_simulation(tmp_path):
    main(["--quick", "--out", str(tmp_path)])
    (found,) = json.loads((tmp_path / "leaderboards.json").read_text()).values()
    assert found["schools, ranks"] > 0.8
    assert 0.7 < found["schools, slope"] < 1.4


def test_the_report_quotes_the_measured_coverage():
    measured = json.loads((ROOT / "docs" / "leaderboards.json").read_text())
    assert list(measured) == list(SETTINGS)
    template = (files("likeminds") / "_util" / "templates" / "report.html").read_text()
    for what in ("scores", "ranks"):
        shares = [100 * one[f"schools, {what}"] for one in measured.values()]
        assert f"{min(shares):.0f} to {max(shares):.0f} % of the true {what}" in template
