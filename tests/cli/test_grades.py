"""Grades on the command line: what is measured is called what it is."""

import numpy as np
import pytest

from commands import run, told


@pytest.fixture(scope="module")
def stars(tmp_path_factory):
    folder = tmp_path_factory.mktemp("stars")
    rng = np.random.default_rng(0)
    liked = rng.normal(size=15)
    lines = ["person,item,label"]
    for i in range(16):
        given = np.clip(np.round(3 + liked + 0.7 * rng.normal(size=15)), 1, 5)
        lines += [f"p{i},s{j},{given[j]:.0f}" for j in range(15)]
    (folder / "stars.csv").write_text("\n".join(lines) + "\n")
    ask = ("fit", "-a", "stars.csv", "--loss", "cumulative", "--holdout", "0.3")
    done = run(folder, *ask, "--out", "s.likeminds")
    assert done.code == 0
    return folder, done


def test_fit_tells_the_concordance(stars):
    _, done = stars
    assert "Concordance, held-out grades: 0." in done.out
    assert "AUC" not in done.out


def test_evaluate_tells_the_concordance(stars):
    folder, _ = stars
    ask = ("evaluate", "--model", "s.likeminds", "-a", "stars.csv")
    (total,) = told(folder, *ask)["scores"]
    assert 0.6 < total["consensus_concordance"] <= 1.0
    assert "auc" not in total
    assert "unequal grades" in run(folder, *ask).out
    (seen,) = told(folder, *ask, "--shots", "0")["scores"]
    assert seen["concordance"] == pytest.approx(total["concordance"])


def test_compare_tells_the_concordance(stars):
    folder, _ = stars
    ask = ("compare", "-a", "stars.csv", "--ranker", "Popularity", "--repeats", "1")
    assert "mean concordance" in run(folder, *ask).out
    (found,) = told(folder, *ask)["comparisons"]
    assert found["measure"] == "concordance"
    assert 0.5 < found["rankers"][0]["mean_score"] <= 1.0


@pytest.mark.slow
def test_the_report_says_where_grades_are_cut(stars):
    folder, _ = stars
    assert run(folder, "report", "--model", "s.likeminds", "--out", "s.html").code == 0
    assert "Grades above 2 count as a yes." in (folder / "s.html").read_text()
