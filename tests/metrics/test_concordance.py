"""Concordance and Kendall's tau against loops over pairs, and against scipy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import kendalltau

from likeminds.metrics import auc_by_user
from likeminds.metrics.concordance import (
    concordance_by_user,
    kendall_tau_by_user,
    mean_concordance,
)

ROWS = st.lists(
    st.tuples(st.integers(0, 3), st.integers(0, 4), st.integers(-3, 3), st.sampled_from([0.5, 2])),
    min_size=1,
    max_size=40,
)


def _by_a_loop(grades, scores, weights):
    right = total = 0.0
    for a in range(len(grades)):
        for b in range(len(grades)):
            if grades[a] > grades[b]:
                pair = weights[a] * weights[b]
                total += pair
                right += pair * ((scores[a] > scores[b]) + 0.5 * (scores[a] == scores[b]))
    return right / total if total else np.nan


@given(ROWS)
def test_concordance_is_what_a_loop_over_pairs_gives(rows):
    users, grades, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    found = concordance_by_user(grades, scores, users, weights)
    for person, value in zip(found.users, found.values, strict=True):
        mine = users == person
        expected = _by_a_loop(grades[mine], scores[mine], weights[mine])
        np.testing.assert_allclose(value, expected, rtol=1e-12)


@given(ROWS)
def test_with_two_grades_it_is_the_auc(rows):
    users, grades, scores, weights = (np.array(column) for column in zip(*rows, strict=True))
    high = (grades > 1).astype(int)
    found = concordance_by_user(high, scores, users, weights).values
    np.testing.assert_allclose(found, auc_by_user(high > 0, scores, users, weights).values)


def test_kendalls_tau_is_scipys():
    rng = np.random.default_rng(0)
    users, grades = rng.integers(0, 3, 90), rng.integers(0, 5, 90)
    for scores in (rng.integers(0, 9, 90), rng.normal(size=90)):
        found = kendall_tau_by_user(grades, scores, users).values
        expected = [kendalltau(grades[users == i], scores[users == i]).statistic for i in range(3)]
        np.testing.assert_allclose(found, expected)


def test_everybody_with_one_grade_has_no_concordance():
    with pytest.raises(ValueError):
        mean_concordance([3, 3], [0.1, 0.2], ["ann", "ann"])
