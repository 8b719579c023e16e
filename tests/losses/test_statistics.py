import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import naive
from crowds import make_crowd
from likeminds import Annotations, Statistics
from likeminds.losses import SquaredAUC
from likeminds.losses.rows import Rows


def quadratics(loss):
    """A, b, c of everybody, whatever form they are held in."""
    n_users, n_features = loss.shape
    A = np.empty((n_users, n_features, n_features))
    for j, unit in enumerate(np.eye(n_features)):
        A[:, :, j] = loss.apply(np.broadcast_to(unit, loss.shape))
    return A, loss.linear, loss.constant


def assert_equals_the_definition(annotations, loss, rtol=1e-10):
    A, b, c = quadratics(loss)
    for i, (rows, labels, weights) in enumerate(naive.by_user(annotations)):
        A_naive, b_naive, c_naive = naive.auc_quadratic(rows, labels, weights)
        size = max(np.abs(A_naive).max(), np.finfo(float).tiny)
        assert np.abs(A[i] - A_naive).max() <= rtol * size
        assert np.abs(b[i] - b_naive).max() <= rtol * max(np.abs(b_naive).max(), np.sqrt(size))
        assert c[i] == c_naive


@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
@given(seed=st.integers(0, 1000), far=st.booleans(), weighted=st.booleans())
@pytest.mark.seconds
def test_equal_to_the_double_loop_over_pairs(form, seed, far, weighted):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features=6, shift=1e6 if far else 0.0, weights=weighted)
    statistics = Statistics.from_annotations(crowd, form)
    assert_equals_the_definition(crowd, SquaredAUC().of(statistics))


def test_heavy_weights_on_few_rows_lose_no_digits():
    rng = np.random.default_rng(3)
    labels = np.arange(30) < 3
    crowd = Annotations(
        users=["ann"] * 30,
        items=None,
        labels=labels,
        features=rng.standard_normal((30, 4)) * np.where(labels, 1e3, 1.0)[:, None],
        weights=np.where(labels, 1e6, 1e-3),
    )
    assert_equals_the_definition(
        crowd, SquaredAUC().of(Statistics.from_annotations(crowd, "dense"))
    )


def test_form_is_chosen_per_person(crowd):
    statistics = Statistics.from_annotations(crowd)
    counts = np.bincount(crowd.user_codes)
    np.testing.assert_array_equal(statistics.dense.users, np.flatnonzero(counts >= 5))
    np.testing.assert_array_equal(statistics.rows.users, np.flatnonzero(counts < 5))


def test_factored_people_share_the_table():
    table = np.random.default_rng(0).standard_normal((4, 50))
    said = Annotations(
        users=["a", "a", "b", "b"], items=[0, 1, 1, 3], labels=[0, 1, 1, 0], features=table,
        features_per="item",
    )  # fmt: skip
    statistics = Statistics.from_annotations(said)
    assert np.shares_memory(statistics.rows.table, said.features)
    assert statistics.dense.scatter.size == 0
    assert_equals_the_definition(said, SquaredAUC().of(statistics))


@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
@given(seed=st.integers(0, 1000), far=st.booleans())
@pytest.mark.seconds
def test_merge_of_two_equals_all_at_once(form, seed, far):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, shift=1e6 if far else 0.0)
    first = rng.random(len(crowd)) < 0.5
    halves = [Statistics.from_annotations(crowd[half], form) for half in (first, ~first)]
    merged = halves[0].merge(halves[1])
    np.testing.assert_array_equal(merged.user_ids, crowd.user_ids)
    assert_equals_the_definition(crowd, SquaredAUC().of(merged))


def test_merge_makes_dense_whoever_has_enough_rows_together(crowd):
    first = np.arange(len(crowd)) % 2 == 0
    merged = Statistics.from_annotations(crowd[first]).update(crowd[~first])
    whole = Statistics.from_annotations(crowd)
    np.testing.assert_array_equal(merged.dense.users, whole.dense.users)
    np.testing.assert_allclose(merged.class_weight, whole.class_weight)


@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
def test_many_parts_make_the_whole_and_people_are_taken_out_of_it(crowd, form):
    parts = [Statistics.from_annotations(crowd[n::5], form) for n in range(5)]
    joined = Statistics.joined(parts[::-1])
    assert_equals_the_definition(crowd, SquaredAUC().of(joined))
    odd = np.arange(joined.n_users) % 2 == 1
    some = crowd.of_users(crowd.user_ids[odd])
    assert_equals_the_definition(some, SquaredAUC().of(joined.of_users(odd)))


def test_merge_matches_people_of_any_kind_by_id():
    rows = np.arange(8.0)[:, None] ** 2
    ids = ["a", ("b", 1), 3, "a", ("b", 1), 3, "new", "new"]
    labels = [0, 1, 0, 1, 0, 1, 0, 1]
    parts = [
        Annotations(users=ids[i:j], items=None, labels=labels[i:j], features=rows[i:j])
        for i, j in [(0, 3), (3, 8)]
    ]
    merged = Statistics.from_annotations(parts[0]).update(parts[1])
    assert merged.user_ids.tolist() == ["a", ("b", 1), 3, "new"]
    b = SquaredAUC().of(merged).linear[:, 0]
    np.testing.assert_allclose(b, [9.0, 1.0 - 16.0, 25.0 - 4.0, 49.0 - 36.0])


def test_merge_refuses_other_features(crowd):
    other = make_crowd(np.random.default_rng(0), n_features=4)
    with pytest.raises(ValueError):
        Statistics.from_annotations(crowd).update(other)


def test_unknown_form_is_refused(crowd):
    with pytest.raises(ValueError):
        Statistics.from_annotations(crowd, "sparse")


def test_feature_scale_is_the_weighted_standard_deviation(crowd):
    rows = np.column_stack([crowd.X * [1, 10, 100, 1e-3, 1] + 1e5, np.full(len(crowd), 0.1)])
    said = Annotations(
        users=crowd.users, items=None, labels=crowd.labels, features=rows, weights=crowd.weights
    )
    mean = np.average(rows, axis=0, weights=crowd.weights)
    expected = np.sqrt(np.average((rows - mean) ** 2, axis=0, weights=crowd.weights))
    expected[-1] = 1.0  # constant
    for form in ("dense", "factored", "auto"):
        scale = Statistics.from_annotations(said, form).feature_scale()
        np.testing.assert_allclose(scale, expected, rtol=1e-6)


def test_rows_of_weight_zero_are_as_if_absent(crowd):
    weights = np.where(np.arange(len(crowd)) % 3 == 0, 0.0, crowd.weights)
    zeroed = Annotations(
        users=crowd.users, items=None, labels=crowd.labels, features=crowd.X, weights=weights
    )
    np.testing.assert_allclose(
        SquaredAUC()
        .of(Statistics.from_annotations(zeroed))
        .linear[np.isin(zeroed.user_ids, zeroed[weights > 0].user_ids)],
        SquaredAUC().of(Statistics.from_annotations(zeroed[weights > 0])).linear,
        atol=1e-12,
    )


def test_blocks_hand_out_every_row_once(crowd, monkeypatch):
    monkeypatch.setattr("likeminds.losses.rows._BLOCK_BYTES", 400)
    rows = Rows.group(
        crowd.features,
        index=crowd.feature_rows,
        positive=crowd.labels,
        weight=crowd.weights,
        users=crowd.user_codes,
        n_users=crowd.n_users,
    )
    blocks = list(rows.blocks(np.zeros(5)))
    assert len(blocks) > 3
    seen = np.concatenate([block.users for block in blocks])
    np.testing.assert_array_equal(np.sort(seen), np.arange(crowd.n_users))
    assert sum(block.weight.sum() for block in blocks) == pytest.approx(crowd.weights.sum())


@pytest.mark.parametrize("shift", [0.0, 3.0, 1e6])
@pytest.mark.parametrize("order", ["sorted", "within", "repeated"])
def test_rows_side_by_side_are_summed_in_place(shift, order, monkeypatch):
    monkeypatch.setattr("likeminds.losses.rows._BLOCK_BYTES", 1)  # one person at a time
    rng = np.random.default_rng(0)
    users = np.repeat([0, 1, 2], [20, 30, 25])
    rows = rng.standard_normal((75, 6)) * [1, 2, 3, 0.1, 1, 0] + shift  # one is constant
    rows[:, :5] += 0.3 * rng.standard_normal(5)
    said = Annotations(users=users, items=None, labels=rng.random(75) < 0.3, features=rows)
    if order == "within":
        said = said[np.concatenate([rng.permutation(20), 20 + rng.permutation(55)])]
    if order == "repeated":
        said = said[np.concatenate([[0, 0], np.arange(2, 75)])]
    assert_equals_the_definition(said, SquaredAUC().of(Statistics.from_annotations(said)))
    without = Annotations(users=said.users, items=None, labels=said.labels, features=said.X[:, :5])
    assert_equals_the_definition(without, SquaredAUC().of(Statistics.from_annotations(without)))
