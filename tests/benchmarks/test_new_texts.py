"""New texts judged by known users."""

import numpy as np
import pytest
from benchmarks.new_texts import TFIDF, drawn, of_grades, own_mean, split, ways

from likeminds import Annotations

TEXTS = np.array([f"{word} text {j}" for j, word in enumerate(["good", "bad"] * 5)])


def said() -> Annotations:
    users, items = np.divmod(np.arange(30), 10)
    return Annotations(users, items, 1.0 + (users + items) % 5)


def test_new_texts_have_no_label_in_the_training_part():
    known = drawn(10, 0.3, seed=1)
    assert known.sum() == 7
    described = ways(TEXTS, None)
    assert list(described) == [TFIDF]
    train, test = split(said(), described[TFIDF](known), known)
    assert set(train.items) == set(np.flatnonzero(known))
    assert set(test.items) == set(np.flatnonzero(~known))
    assert len(train) + len(test) == 30


def test_errors_of_grades_are_on_a_scale_from_0_to_1():
    scale, grades = np.arange(1.0, 6.0), np.array([1.0, 3.0, 5.0])
    found = of_grades(2 * grades, grades + 1, grades, scale)
    assert found == {"correlation": pytest.approx(1.0), "error": pytest.approx(0.25)}


def test_own_mean_is_that_of_the_training_part():
    known = drawn(10, 0.3, seed=1)
    train, test = split(said(), ways(TEXTS, None)[TFIDF](known), known)
    means = [train.grades[train.users == user].mean() for user in test.users]
    expected = np.corrcoef(means, test.grades)[0, 1]
    assert own_mean(train, test)["correlation"] == pytest.approx(expected)
