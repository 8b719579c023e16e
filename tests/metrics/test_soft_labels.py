"""Distances of soft labels against scipy's and against loops."""

import numpy as np
from scipy import stats

from likeminds.metrics import manhattan_distance, soft_labels, wasserstein_distance


def test_distances_are_scipys_and_those_of_the_definition():
    rng = np.random.default_rng(0)
    levels = np.array([1.0, 2.0, 4.0, 7.0])
    first, second = rng.dirichlet(np.ones(4), 6), rng.dirichlet(np.ones(4), 6)
    expected = [
        stats.wasserstein_distance(levels, levels, p, q) for p, q in zip(first, second, strict=True)
    ]
    np.testing.assert_allclose(wasserstein_distance(first, second, levels), expected)
    np.testing.assert_allclose(manhattan_distance(first, second), np.abs(first - second).sum(1))


def test_soft_labels_are_shares_of_what_was_said():
    items, shares = soft_labels([5, 5, 1], ["b", "b", "a"], levels=[1, 3, 5], weights=[1, 3, 2])
    assert items.tolist() == ["a", "b"]
    assert shares.tolist() == [[1, 0, 0], [0, 0, 1]]
    _, shares = soft_labels([5, 1], ["b", "b"], weights=[1, 3])
    assert shares.tolist() == [[0.75, 0.25]]
