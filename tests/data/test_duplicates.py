import numpy as np
import pytest

from likeminds import Annotations

PEOPLE = ["ann", "ann", "bob", "ann", "ann"]
ITEMS = ["cat", "cat", "cat", "dog", "cat"]
LABELS = [1, 1, 0, 0, 0]


def judged(duplicates, **changes):
    columns = {"users": PEOPLE, "items": ITEMS, "labels": LABELS}
    columns |= {"features": {"cat": [1.0], "dog": [2.0]}}
    return Annotations(**columns | changes, duplicates=duplicates)


def test_every_row_counts_unless_asked_otherwise():
    assert len(judged("keep")) == 5
    assert judged("keep").weights is None


def test_equal_judgements_become_one_that_weighs_as_much():
    said = judged("weights", weights=[0.5, 2.0, 1.0, 3.0, 4.0])
    rows = zip(said.users, said.items, said.labels.tolist(), said.weights.tolist(), strict=True)
    assert list(rows) == [
        ("ann", "cat", True, 2.5),
        ("bob", "cat", False, 1.0),
        ("ann", "dog", False, 3.0),
        ("ann", "cat", False, 4.0),  # the opposite is no duplicate
    ]
    assert judged("weights").weights.tolist() == [2.0, 1.0, 1.0, 1.0]


def test_nothing_changes_where_nothing_comes_twice():
    once = {"users": PEOPLE[:1], "items": ITEMS[:1], "labels": LABELS[:1]}
    assert judged("weights", **once).weights is None
    assert len(judged("error", **once)) == 1


def test_other_ways_with_duplicates_are_refused():
    with pytest.raises(ValueError):
        judged("drop")


@pytest.mark.parametrize("column", ["attributes", "choice_sets"])
def test_another_question_or_another_choice_is_no_duplicate(column):
    assert len(judged("error", **{column: [1, 2, 1, 1, 3]})) == 5


def test_rows_without_items_are_never_duplicates():
    assert len(judged("error", items=None, features=np.ones((5, 1)))) == 5


def test_different_features_cannot_become_one_row():
    rows = np.arange(5.0)[:, None]
    with pytest.raises(ValueError):
        judged("weights", features=rows, features_per="row")
