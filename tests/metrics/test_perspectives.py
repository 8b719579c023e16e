"""Scores of LeWiDi against loops over items and annotators."""

import numpy as np
import pytest

from likeminds.metrics import (
    absolute_distance_by_user,
    cross_entropy,
    error_rate_by_user,
    manhattan_distance,
    wasserstein_distance,
)


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    users = rng.permutation(np.repeat(["ann", "bob", "cem"], [5, 9, 16]))
    return rng.integers(1, 7, 30), rng.integers(1, 7, 30), users


def test_errors_of_annotators_are_those_of_loops(rows):
    labels, predicted, users = rows
    rates, distances = {}, {}
    for user in ("ann", "bob", "cem"):
        mine = [i for i in range(30) if users[i] == user]
        rates[user] = sum(labels[i] != predicted[i] for i in mine) / len(mine)
        distances[user] = sum(abs(int(labels[i]) - int(predicted[i])) / 5 for i in mine) / len(mine)
    found = error_rate_by_user(labels, predicted, users)
    assert dict(zip(found.users.tolist(), found.values, strict=True)) == pytest.approx(rates)
    found = absolute_distance_by_user(labels, predicted, users, levels=range(1, 7))
    assert dict(zip(found.users.tolist(), found.values, strict=True)) == pytest.approx(distances)
    assert found.mean == pytest.approx(np.mean(list(distances.values())))
    words = error_rate_by_user(["yes", "no"], ["yes", "yes"], ["ann", "ann"])
    assert words.values.tolist() == [0.5]


def test_distances_of_soft_labels_are_those_of_loops():
    rng = np.random.default_rng(1)
    given, guessed = rng.dirichlet(np.ones(4), (2, 7))
    for one in range(7):
        naive = -sum(t * np.log(p) for t, p in zip(given[one], guessed[one], strict=True))
        assert cross_entropy(given, guessed)[one] == pytest.approx(naive)
        naive = sum(abs(t - p) for t, p in zip(given[one], guessed[one], strict=True))
        assert manhattan_distance(given, guessed)[one] == pytest.approx(naive)
        naive = sum(abs(given[one, : k + 1].sum() - guessed[one, : k + 1].sum()) for k in range(3))
        assert wasserstein_distance(given, guessed)[one] == pytest.approx(naive)
    assert np.isfinite(cross_entropy([[0.5, 0.5]], [[1.0, 0.0]])).all()
