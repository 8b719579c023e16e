"""Sizes at the edge: the page shows what was measured, within what it says."""

import json
from pathlib import Path

import pytest
from benchmarks.limits import CASES, as_table, work

DOCS = Path(__file__).parents[2] / "docs"


def test_the_page_has_the_table_and_nothing_is_beyond_it():
    found = json.loads((DOCS / "limits.json").read_text())
    assert as_table(found) in (DOCS / "large.md").read_text()
    assert set(found) == set(CASES)
    for case, told in found.items():
        *_, seconds, memory = CASES[case]
        assert told["cpu_seconds"] <= seconds
        assert told["peak_gib"] <= memory


@pytest.mark.parametrize("case", ["people", "user"])
def test_a_small_case_is_fitted_saved_and_loaded(case, capsys):
    assert work(case, 50) >= 50
    assert "load" in capsys.readouterr().out
