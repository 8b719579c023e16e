"""Every benchmark runs at tiny sizes and says what it should; nothing here looks at a clock."""

import json
import math
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from benchmarks.command import main

from benchmarks import accuracy

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
NAMES = [
    "floor",
    "starts",
    "minima",
    "table2",
    "growth",
    "tuning",
    "auc",
    "baselines",
    "peers",
    "hierarchical",
    "hierarchical_crowd",
    "models",
    "newcomers",
    "wide",
    "latency",
    "service",
    "cluster",
    "crowd",
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    out = tmp_path_factory.mktemp("benchmarks")
    command = [sys.executable, "-m", "benchmarks", "--quick", "--here", "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    return out


@pytest.fixture(scope="module")
def results(folder):
    return json.loads((folder / "benchmarks.json").read_text())


def test_all_but_the_million_run(results):
    assert list(results) == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_result_is_complete(results, name):
    result = results[name]
    assert result["quick"]
    assert result["title"]
    assert result["compares"]
    assert result["peak_gib"] > 0
    assert result["blas_threads"] >= 1
    for table in result["tables"]:
        assert table["rows"]
        assert {len(row) for row in table["rows"]} == {len(table["columns"])}


@pytest.mark.parametrize("name", NAMES)
def test_numbers_are_finite_and_not_negative(results, name):
    cells = [cell for t in results[name]["tables"] for row in t["rows"] for cell in row]
    numbers = [cell for cell in cells if isinstance(cell, int | float)]
    assert numbers
    assert all(math.isfinite(number) and number >= 0 for number in numbers)


def test_goals_are_measured_but_not_judged_at_tiny_sizes(results):
    goals = [goal for result in results.values() for goal in result["goals"]]
    assert goals
    assert all(goal["met"] is None for goal in goals)
    assert all(goal["measured"] is None or goal["measured"] >= 0 for goal in goals)


def test_aucs_agree_with_scikit_learn(results):
    assert results["auc"]["series"]["apart"] < 1e-12


def test_page_has_a_section_for_each(folder):
    page = (folder / "benchmarks.md").read_text()
    assert all(f"(`{name}`)" in page for name in NAMES)
    assert "their numbers mean nothing" in page


def test_picture_is_drawn_or_its_absence_explained(folder):
    drawn = (folder / "benchmarks.png").exists()
    assert drawn == (find_spec("matplotlib") is not None)
    assert drawn != ("matplotlib is not installed" in (folder / "benchmarks.md").read_text())


def test_page_is_drawn_again_from_what_is_kept(folder, results):
    (folder / "benchmarks.md").unlink()
    assert main(["--redraw", "--out", str(folder)]) == 0
    assert "(`floor`)" in (folder / "benchmarks.md").read_text()
    assert json.loads((folder / "benchmarks.json").read_text()) == results


def test_one_can_be_run_again_without_the_others(folder, results, monkeypatch):
    monkeypatch.chdir(ROOT)
    assert main(["--quick", "--only", "auc", "--out", str(folder)]) == 0
    again = json.loads((folder / "benchmarks.json").read_text())
    assert list(again) == list(results)
    assert again["floor"] == results["floor"]


@pytest.mark.filterwarnings("ignore")  # as in the program, where warnings are notes
def test_the_page_of_accuracies(tmp_path, monkeypatch):
    every = accuracy.rankers()
    names = ("RMTL", "RAMU, without an intercept", "ThreeLevelRankerCV", "Popularity")
    monkeypatch.setattr(accuracy, "rankers", lambda: {name: every[name] for name in names})
    rng = np.random.default_rng(0)
    user = np.repeat(np.arange(12), 24)
    columns = {
        "X": rng.standard_normal((20, 3)),
        "user": user,
        "item": rng.integers(20, size=len(user)),
        "label": rng.integers(2, size=len(user)),
        "group": np.arange(len(user)),
        "attribute": np.tile(["open", "comfortable"], len(user) // 2),
    }
    np.savez(tmp_path / "made_up.npz", **columns)
    folders = ["--data", str(tmp_path), "--cache", str(tmp_path / "c"), "--out", str(tmp_path)]
    accuracy.main([*folders, "--repeats", "1", "--users", "8", "--jobs", "1"])
    page = (tmp_path / "accuracy.md").read_text()
    assert "| ranker | electricity | made_up |" in page
    assert "**comfortable**: 8 people" in page
    for name in names:
        assert f"| {name} | " in page
    assert (tmp_path / "accuracy.png").stat().st_size > 10_000
