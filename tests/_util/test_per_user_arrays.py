"""Arrays with an entry per user, against one user after the other."""

import numpy as np
import pytest

from learned_model import GaussianPrior
from likeminds._util.per_user_arrays import (
    CollectedRows,
    SubsetRows,
    drawn,
    hashes_of,
    inverse_and_log,
    nan_mean,
    of_users,
    order_by,
    restore_user_arrays,
    solve_nearly,
    split_user_arrays,
    times,
)
from likeminds.mixed_model.gaussian_prior import MeanShifts


@pytest.mark.parametrize("share", [0.3, 1e-2, 1e-12])
def test_what_is_nearly_solved_leaves_a_share(share):
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((7, 12, 5))
    matrices = np.eye(12) + roots @ roots.transpose(0, 2, 1)
    right = rng.standard_normal((7, 12))
    right[3] = 0.0
    found = solve_nearly(lambda vectors: times(matrices, vectors), right, share)
    left = np.linalg.norm(right - times(matrices, found), axis=1)
    assert (left <= 1.001 * share * np.linalg.norm(right, axis=1)).all()
    exact = np.linalg.solve(matrices, right[:, :, None])[:, :, 0]
    assert np.abs(found - exact).max() <= share * np.linalg.norm(right, axis=1).max()


def test_what_is_nearly_solved_does_not_depend_on_the_others():
    rng = np.random.default_rng(0)
    roots = rng.standard_normal((9, 12, 5)) * np.linspace(0.1, 3.0, 9)[:, None, None]
    matrices = np.eye(12) + roots @ roots.transpose(0, 2, 1)
    right = rng.standard_normal((9, 12))
    together = solve_nearly(lambda vectors: times(matrices, vectors), right, 0.1)
    for one in range(9):
        some = slice(one, one + 1)
        alone = solve_nearly(lambda v, some=some: times(matrices[some], v), right[some], 0.1)
        np.testing.assert_allclose(together[some], alone, rtol=0, atol=1e-13)


def test_the_identity_takes_one_product():
    calls = []

    def same(vectors):
        calls.append(len(vectors))
        return vectors

    right = np.arange(6.0).reshape(2, 3)
    np.testing.assert_array_equal(solve_nearly(same, right, 1e-3), right)
    assert calls == [2]


@pytest.mark.parametrize("size", [1, 6, 25])
def test_stacks_are_inverted(size):
    rng = np.random.default_rng(size)
    root = rng.normal(size=(7, size, 2 * size))
    matrices = root @ root.transpose(0, 2, 1) + np.eye(size)
    before = matrices.copy()
    inverse, half = inverse_and_log(matrices)
    np.testing.assert_allclose(inverse @ matrices, np.repeat(np.eye(size)[None], 7, 0), atol=1e-12)
    np.testing.assert_allclose(half, 0.5 * np.linalg.slogdet(matrices)[1])
    np.testing.assert_array_equal(matrices, before)


@pytest.mark.parametrize("n_codes", [3, 1 << 16, (1 << 16) + 1])
def test_rows_are_in_the_order_of_their_codes_and_else_as_they_were(n_codes):
    codes = np.random.default_rng(0).integers(n_codes, size=500)
    codes[:2] = n_codes - 1, 0
    order, offsets = order_by(codes, n_codes)
    np.testing.assert_array_equal(order, np.argsort(codes, kind="stable"))
    assert order.dtype == offsets.dtype == np.intp
    np.testing.assert_array_equal(offsets, np.append(0, np.bincount(codes).cumsum()))


def test_what_people_have_inside_of_what_people_have_is_taken_apart():
    z = np.arange(12.0).reshape(6, 2)
    prior = GaussianPrior(
        np.zeros(3), np.ones((3, 1)), np.ones(3), MeanShifts(z, np.ones((3, 2)), np.ones(3))
    )
    arrays = []
    apart = split_user_arrays((prior, "state"), arrays)
    assert len(arrays) == 1
    assert arrays[0] is z
    again = restore_user_arrays(apart, [z[:2]])[0]
    np.testing.assert_array_equal(again.shifts[np.array([1])], prior.shifts[np.array([1])])
    few = of_users(prior, np.array([4, 0]))
    np.testing.assert_array_equal(few.shifts.z, z[[4, 0]])


def test_labels_are_drawn_whatever_their_order():
    users, items = np.divmod(np.arange(1000), 20)
    some = drawn(0.2, users, items)
    np.testing.assert_array_equal(drawn(0.2, users[::-1], items[::-1]), some[::-1])
    assert drawn(1.0, users, items).all()


def test_collected_rows_are_put_in_the_order_of_users():
    found = CollectedRows([np.array([2, 0])], [[np.array([0.2, 0.0])]])
    found += CollectedRows([np.array([1])], [[np.array([0.1])]])
    np.testing.assert_array_equal(found.in_order(), [[0.0, 0.1, 0.2]])


def test_rows_of_a_subset_are_indexed_by_positions_among_all():
    rows = SubsetRows(np.array([0.4, 0.7]), np.array([4, 7]))
    assert rows[np.array([7, 4, 4])].tolist() == [0.7, 0.4, 0.4]


def test_means_of_finite_values():
    values = np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]])
    np.testing.assert_array_equal(nan_mean(values), [2.0, np.nan])


def test_hashes_depend_on_texts_and_the_seed():
    assert np.array_equal(hashes_of(["7", "ann"]), hashes_of([7, "ann"]))
    assert not np.array_equal(hashes_of(["ann"]), hashes_of(["ann"], 1))
    users, items = np.divmod(np.arange(1000), 20)
    assert drawn(0.2, users, items).sum() == 205
