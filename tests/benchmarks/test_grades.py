"""The benchmark of grades: on a tiny simulated crowd, and what it reads."""

import json

import numpy as np
import pytest
from benchmarks.grades import BEGIN, END, main, read_crowds, summarise


@pytest.mark.filterwarnings("ignore")
@pytest.mark.slow
def test_the_page_has_every_way_of_learning(tmp_path):
    page = tmp_path / "grades.md"
    page.write_text(f"before\n{BEGIN}\nold\n{END}\nafter\n")
    main(["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "kept")])
    text = page.read_text()
    assert text.startswith(f"before\n{BEGIN}\n| |")
    assert text.endswith(f"{END}\nafter\n")
    found = json.loads((tmp_path / "grades.json").read_text())["simulated"]
    assert set(found) >= {"cut", "grades", "cumulative", "three levels, grades"}
    assert all(0.6 < row["concordance"] < 1 for row in found.values())
    assert "concordance gained" not in found["cut"]
    before = (tmp_path / "grades.json").read_text()
    main(["--quick", "--out", str(tmp_path), "--cache", str(tmp_path / "kept")])
    assert (tmp_path / "grades.json").read_text() == before


def test_crowds_are_read_with_the_cut_that_is_theirs(tmp_path):
    user, item = np.repeat(np.arange(3), 8), np.tile(np.arange(8), 3)
    grade = np.tile(np.arange(8.0), 3)
    columns = {"user": user, "item": item, "grade": grade}
    np.savez(tmp_path / "jokes.npz", **columns)
    np.savez(tmp_path / "movies.npz", **columns, label=grade > 5, X=np.eye(8))
    jokes, movies = read_crowds(tmp_path)
    assert (jokes.name, movies.name) == ("jokes", "movies")
    assert jokes.cut.labels.tolist() == (grade > 3.5).tolist()
    assert movies.cut.labels.tolist() == (grade > 5).tolist()
    assert jokes.counted.all()
    assert not movies.counted.any()
    train, test = movies.split(10)
    assert sorted([*train, *test]) == list(range(24))


def test_gains_are_paired_over_people():
    def told(values):
        return {"concordance": values, "auc": values, "seconds": 1.0, "loss": "auc"}

    found = summarise({"a": {"cut": [told([0.5, 0.6, None])], "grades": [told([0.7, 0.6, None])]}})
    assert found["a"]["grades"]["concordance"] == pytest.approx(0.65)
    assert found["a"]["grades"]["auc gained"][0] == pytest.approx(0.1)
