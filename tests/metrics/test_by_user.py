"""The metrics agree with scikit-learn, person by person."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import ndcg_score, roc_auc_score

from likeminds.metrics import by_user as metrics
from likeminds.metrics.by_user import (
    MetricByUser,
    auc_by_user,
    mean_auc,
    ndcg_at_k,
    precision_at_k,
)


@st.composite
def rows_of_people(draw):
    """Rows in any order, with ties, people of all sizes and of one class only."""
    row = st.tuples(
        st.sampled_from(["ann", "bob", "cy", "di", "eve"]),
        st.booleans(),
        st.one_of(st.integers(-3, 3).map(float), st.floats(-1e6, 1e6)),
        st.one_of(st.just(0.0), st.floats(0.01, 10)),
    )
    users, labels, scores, weights = zip(*draw(st.lists(row, min_size=1, max_size=60)), strict=True)
    return np.array(users), np.array(labels), np.array(scores), np.array(weights)


def expected_by_person(users, reference):
    return np.array([reference(users == user) for user in np.unique(users)])


@given(rows_of_people())
def test_auc_is_that_of_scikit_learn_for_every_person(rows):
    users, labels, scores, _ = rows

    def reference(own):
        both = len(set(labels[own])) == 2
        return roc_auc_score(labels[own], scores[own]) if both else np.nan

    result = auc_by_user(labels, scores, users)
    assert result.users.tolist() == sorted(set(users.tolist()))
    np.testing.assert_allclose(result.values, expected_by_person(users, reference), atol=1e-12)


@given(rows_of_people())
def test_weighted_auc_is_that_of_scikit_learn_for_every_person(rows):
    users, labels, scores, weights = rows
    weights = weights + (not weights.any())

    def reference(own):
        seen = own & (weights > 0)
        if len(set(labels[seen])) < 2:
            return np.nan
        return roc_auc_score(labels[seen], scores[seen], sample_weight=weights[seen])

    result = auc_by_user(labels, scores, users, weights)
    np.testing.assert_allclose(result.values, expected_by_person(users, reference), atol=1e-12)
    assert np.nanmax(result.values, initial=0) <= 1


@given(rows_of_people(), st.integers(1, 12))
def test_ndcg_is_that_of_scikit_learn_for_every_person(rows, k):
    users, labels, scores, _ = rows

    def reference(own):
        if not labels[own].any():
            return np.nan
        return 1.0 if own.sum() == 1 else ndcg_score([labels[own]], [scores[own]], k=k)

    result = ndcg_at_k(labels, scores, users, k)
    np.testing.assert_allclose(result.values, expected_by_person(users, reference), atol=1e-12)


@given(rows_of_people(), st.integers(1, 12))
def test_precision_is_the_mean_over_the_orders_of_the_ties(rows, k):
    users, labels, scores, _ = rows

    def reference(own):
        # Every row's chance of being among the k best, from the scores alone.
        above = (scores[own] > scores[own][:, None]).sum(axis=1)
        tied = (scores[own] == scores[own][:, None]).sum(axis=1)
        places = min(k, own.sum())
        return np.clip((places - above) / tied, 0, 1) @ labels[own] / places

    result = precision_at_k(labels, scores, users, k)
    np.testing.assert_allclose(result.values, expected_by_person(users, reference), atol=1e-12)


def test_precision_without_ties_counts_the_best_rows():
    labels, scores = [1, 0, 1, 1, 0, 1], [6, 5, 4, 3, 2, 1]
    assert precision_at_k(labels, scores, [7] * 6, 3).values == pytest.approx([2 / 3])
    assert precision_at_k(labels, scores, [7] * 6, 100).values == pytest.approx([4 / 6])


@settings(max_examples=10)
@given(st.integers(0, 2**32 - 1))
def test_order_of_rows_and_size_of_blocks_do_not_matter(seed):
    rng = np.random.default_rng(seed)
    users = np.repeat(rng.permutation(40), rng.integers(1, 30, 40))
    labels, scores = rng.random(len(users)) < 0.4, rng.normal(size=len(users)).round(1)
    shuffled = rng.permutation(len(users))
    functions = [auc_by_user, lambda *rows: ndcg_at_k(*rows, 5)]
    for function in functions:
        whole = function(labels, scores, users)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(metrics, "_BLOCK_ROWS", 7)
            pieces = function(labels[shuffled], scores[shuffled], users[shuffled])
        np.testing.assert_array_equal(whole.users, pieces.users)
        np.testing.assert_allclose(whole.values, pieces.values, atol=1e-12)


def test_scores_one_rounding_apart_are_not_ties():
    close = np.array([1.0, np.nextafter(1.0, 2.0)])
    assert auc_by_user([0, 1], close, ["a", "a"]).values[0] == 1.0
    assert auc_by_user([1, 0], close, ["a", "a"]).values[0] == 0.0


def test_both_zeros_are_ties():
    assert auc_by_user([0, 1], [0.0, -0.0], ["a", "a"]).values[0] == 0.5


def test_single_precision_scores_give_the_same():
    rng = np.random.default_rng(0)
    scores, labels = rng.normal(size=300).astype(np.float32), rng.random(300) < 0.5
    users = rng.integers(0, 9, 300)
    single = auc_by_user(labels, scores, users)
    double = auc_by_user(labels, scores.astype(float), users)
    np.testing.assert_array_equal(single.values, double.values)


def test_very_uneven_people_are_each_judged_alone():
    rng = np.random.default_rng(0)
    users = np.repeat([3, 1, 2], [5000, 2, 37])
    labels, scores = np.arange(len(users)) % 2, rng.normal(size=len(users))
    expected = [roc_auc_score(labels[users == u], scores[users == u]) for u in (1, 2, 3)]
    np.testing.assert_allclose(auc_by_user(labels, scores, users).values, expected)


@pytest.mark.parametrize("labels", [[True, False], [1, 0], [1, -1], [1.0, 0.0], [5, 2]])
def test_the_larger_of_two_labels_is_the_positive_one(labels):
    assert mean_auc(labels, [0.9, 0.1], ["a", "a"]) == 1.0


@pytest.mark.parametrize(("label", "share"), [(1, 1.0), (0, 0.0), (-1, 0.0), (True, 1.0)])
def test_one_common_label_means_what_it_says(label, share):
    assert precision_at_k([label] * 3, [1, 2, 3], ["a"] * 3, 2).mean == share


def test_summary_is_over_the_people_for_whom_it_is_defined():
    users = ["a", "a", "b", "b", "c", "d", "d"]
    result = auc_by_user([0, 1, 0, 1, 1, 0, 0], [1, 2, 2, 1, 0, 3, 4], users)
    assert result.mean == 0.5
    assert result.standard_error == pytest.approx(0.5)
    assert result.n_defined == 2
    assert result.undefined.tolist() == ["c", "d"]
    assert mean_auc([0, 1, 0, 1, 1, 0, 0], [1, 2, 2, 1, 0, 3, 4], users) == 0.5


def test_summary_of_nobody_is_nan():
    result = auc_by_user([1, 1], [0.1, 0.2], ["a", "b"])
    assert math.isnan(result.mean)
    assert math.isnan(result.standard_error)
    assert math.isnan(MetricByUser(np.array([1]), np.array([0.7])).standard_error)


def test_class_without_weight_leaves_the_auc_undefined():
    result = auc_by_user([0, 1, 0, 1], [1, 2, 1, 2], [1, 1, 2, 2], weights=[0, 1, 1, 1])
    assert result.undefined.tolist() == [1]


def test_mean_auc_of_nobody_is_refused():
    with pytest.raises(ValueError):
        mean_auc([0, 1], [1, 2], ["a", "b"])


@pytest.mark.parametrize("metric", [precision_at_k, ndcg_at_k])
def test_k_must_be_a_positive_whole_number(metric):
    with pytest.raises(ValueError):
        metric([0, 1], [1, 2], [1, 1], 0)
    with pytest.raises(TypeError):
        metric([0, 1], [1, 2], [1, 1], 1.5)
