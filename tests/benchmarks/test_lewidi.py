"""The benchmark of LeWiDi scores: on a tiny simulated crowd, and the tables of its page."""

import json

import numpy as np
import pytest
from benchmarks.accuracy import ROOT
from benchmarks.lewidi import (
    BEGIN,
    END,
    METHODS,
    PAGE,
    Task,
    as_tables,
    main,
    most_frequent,
    scores,
)


@pytest.mark.slow
def test_submissions_are_scored_with_baselines(tmp_path):
    page = tmp_path / PAGE
    page.parent.mkdir()
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    main(["--quick", "--out", str(tmp_path)])
    assert page.read_text().startswith(f"before\n{BEGIN}\n| grades |")
    found = json.loads((tmp_path / "lewidi.json").read_text())
    assert list(found["grades"]) == list(METHODS)
    apart = {m: r["normalised absolute distance"]["mean"] for m, r in found["grades"].items()}
    assert apart["HierarchicalRanker"] < 0.5 * apart["most frequent label"]


def test_the_page_has_the_tables_of_the_file():
    text = (ROOT / "docs" / PAGE).read_text(encoding="utf-8")
    results = json.loads((ROOT / "docs" / "lewidi.json").read_text())
    assert f"{BEGIN}\n{as_tables(results)}\n{END}" in text


def test_scores_are_means_over_items():
    rows = {"user": np.array([0, 1, 0, 1, 2]), "item": np.array([0, 0, 1, 1, 2])}
    rows["label"] = np.array([1.0, 3.0, 1.0, 5.0, 5.0])
    task = Task(rows, rows["item"] == 0, np.arange(1.0, 6.0), ["a", "b", "c"])
    found = scores(task, most_frequent(task))
    # Items 1 and 2, all predicted as 1: distances of (0 + 4) / 2 and 4 grades.
    assert found["Wasserstein distance"] == pytest.approx(3.0)
    assert found["normalised absolute distance"] == pytest.approx(0.75)
