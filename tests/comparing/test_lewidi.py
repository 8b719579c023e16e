"""Submissions to LeWiDi: their format, and the predictions in them."""

import ast

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, LatentClassRanker, make_schools, write_lewidi


def read(path):
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    return {item: ast.literal_eval(values) for item, values in lines}


def test_soft_and_perspectivist_labels_of_yes_or_no(tmp_path):
    crowd = make_schools(30, 12, 20, 6, 2, random_state=0).annotations
    train = crowd.of_users(crowd.user_ids[:25].tolist())
    ranker = LatentClassRanker(2, n_starts=2).fit(train)
    soft, own = map(read, write_lewidi(ranker, crowd, tmp_path, "MP"))
    ranker.unknown = "consensus"  # the file has predictions for unknown annotators
    chances = ranker.predict_proba(crowd)
    assert len(soft) == len(own) == crowd.n_items
    for item in crowd.item_ids.tolist():
        rows = crowd.items == item
        np.testing.assert_allclose(soft[str(item)], chances[rows].mean(axis=0), atol=1e-9)
        assert own[str(item)] == (chances[rows, 1] > 0.5).astype(int).tolist()
    assert (tmp_path / "MP_test_soft.tsv").exists()


def test_grades_have_all_levels_of_the_scale(tmp_path):
    rng = np.random.default_rng(0)
    users, items = np.divmod(np.arange(300), 15)
    X = rng.normal(size=(15, 2))
    grades = np.clip(np.round(3 + X[items, 0] + 0.5 * rng.normal(size=300)), 2, 5)
    features = {f"i{j}": X[j] for j in range(15)}
    crowd = Annotations(users, [f"i{j}" for j in items], grades, features)
    ranker = HierarchicalRanker(n_groups=0, loss="cumulative", item_effects=False).fit(crowd)
    soft, own = map(read, write_lewidi(ranker, crowd, tmp_path, "CSC", levels=[1, 2, 3, 4, 5]))
    assert all(len(row) == 5 and row[0] == 0 for row in soft.values())
    assert all(sum(row) == pytest.approx(1.0) for row in soft.values())
    mine = ranker.predict_grades(crowd[crowd.items == "i3"])
    np.testing.assert_allclose(soft["i3"][1:], mine.probabilities.mean(axis=0), atol=1e-9)
    for label, row in zip(own["i3"], mine.probabilities, strict=True):
        below = sum(p for grade, p in zip(mine.grades, row, strict=True) if grade < label)
        assert below < 0.5 <= below + row[list(mine.grades).index(label)] + 1e-12
    with pytest.raises(ValueError, match="levels must include"):
        write_lewidi(ranker, crowd, tmp_path, "CSC", levels=[1, 2, 3])


def test_rows_without_items_are_refused(tmp_path):
    X, y = np.random.default_rng(0).normal(size=(40, 2)), np.arange(40) % 2 == 0
    crowd = Annotations(np.arange(40) % 4, None, y, X, features_per="row")
    ranker = LatentClassRanker(1).fit(crowd)
    with pytest.raises(ValueError, match="items="):
        write_lewidi(ranker, crowd, tmp_path, "MP")
