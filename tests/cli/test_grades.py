"""Grades on the command line: what is measured is called what it is."""

import numpy as np
import pyarrow.parquet as pq
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
    lines.append("p0,rare,3")
    (folder / "stars.csv").write_text("\n".join(lines) + "\n")
    ask = ("fit", "-a", "stars.csv", "--loss", "cumulative", "--holdout", "0.3")
    done = run(folder, *ask, "--out", "s.likeminds")
    assert done.code == 0
    return folder, done


def test_fit_tells_the_concordance(stars):
    _, done = stars
    assert "Concordance, held-out grades: 0." in done.out
    assert "AUC" not in done.out
    assert "left out" not in done.out + done.err


def test_explain_tells_a_users_threshold_and_no_weights_of_the_consensus(stars):
    folder, _ = stars
    done = run(folder, "explain", "s.likeminds", "--user", "p3")
    assert "Says yes to" in done.out
    assert "weights differ" not in done.out


def test_evaluate_tells_the_concordance(stars):
    folder, _ = stars
    ask = ("evaluate", "s.likeminds", "-a", "stars.csv")
    (total,) = told(folder, *ask)["scores"]
    assert 0.6 < total["consensus_concordance"] <= 1.0
    assert "auc" not in total
    assert "unequal grades" in run(folder, *ask).out
    (seen,) = told(folder, *ask, "--shots", "0")["scores"]
    assert seen["concordance"] == pytest.approx(total["concordance"])


def test_compare_tells_the_concordance(stars):
    folder, _ = stars
    ask = ("compare", "-a", "stars.csv", "--ranker", "Popularity", "--repeats", "1", "--jobs", "1")
    assert "mean concordance" in run(folder, *ask).out
    (found,) = told(folder, *ask)["comparisons"]
    assert found["measure"] == "concordance"
    assert 0.5 < found["rankers"][0]["mean_score"] <= 1.0


def test_fit_tells_a_baseline(stars):
    _, done = stars
    assert "baseline, one ranking for all: 0." in " ".join(done.out.split())


def test_everybody_s_rankings_have_expected_grades(stars):
    folder, _ = stars
    ask = ("rank", "s.likeminds", "--top", "2")
    rows = told(folder, *ask, "--each-user")["rankings"]
    alone = told(folder, *ask, "--user", "p3")["rankings"]
    for row, own in zip([row for row in rows if row["user"] == "p3"], alone, strict=True):
        assert row["item"] == own["item"]
        assert row["expected"] == pytest.approx(own["expected"])
    assert (
        f"{alone[0]['item']} ({alone[0]['expected']:.1f})" in run(folder, *ask, "--each-user").out
    )
    assert run(folder, *ask, "--each-user", "--out", "everybody").code == 0
    table = pq.read_table(folder / "everybody").to_pylist()
    assert [row["expected"] for row in table] == pytest.approx([row["expected"] for row in rows])


def test_a_person_s_explanation_has_expected_grades(stars):
    folder, _ = stars
    (found,) = told(folder, "explain", "s.likeminds", "--user", "p3")["explained"]
    ask = ("rank", "s.likeminds", "--top", "5", "--user", "p3")
    rows = told(folder, *ask)["rankings"]
    assert found["best"] == [row["item"] for row in rows]
    assert found["expected"] == pytest.approx([row["expected"] for row in rows])
    assert found["labelled"] == found["best"]
    shown = run(folder, "explain", "s.likeminds", "--user", "p3").out
    assert f"Rates highest: {rows[0]['item']} ({rows[0]['expected']:.1f})" in shown
    assert "Would rate" not in shown


@pytest.mark.slow
def test_the_report_says_where_grades_are_cut(stars):
    folder, _ = stars
    assert run(folder, "report", "s.likeminds", "--out", "s.html").code == 0
    assert "Grades above 2 count as a yes." in (folder / "s.html").read_text()


def test_unseen_items_are_those_that_newcomers_would_rate_highest(stars):
    folder, _ = stars
    (folder / "new.csv").write_text("item,label\ns1,5\ns2,1\n")
    ask = ("newcomer", "s.likeminds", "--annotations", "new.csv", "--top", "2")
    assert "Items that newcomer would rate highest" in run(folder, *ask).out
    assert "Items that newcomer rates highest" in run(folder, *ask, "--labelled").out


def test_rankings_have_the_number_of_ratings_and_explain_their_order(stars):
    folder, _ = stars
    explained = {}
    for top in (2, 16):
        ask = ("rank", "s.likeminds", "--top", str(top))
        rows, out = told(folder, *ask)["rankings"], run(folder, *ask).out
        grades = [row["expected"] for row in rows]
        explained[top] = "lower 95 % bound" in out
        assert explained[top] == (grades != sorted(grades, reverse=True))
        assert rows[0]["labels"] == 16
        assert "lower 95 % bound" not in run(folder, *ask, "--user", "p1").out
    assert explained == {2: False, 16: True}
