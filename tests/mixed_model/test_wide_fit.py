"""The prior in the space of rows, against the way with matrices of features x features."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from learned_model import (
    LOW_RANK,
    FittedPrior,
    GaussianPrior,
    MarginalLikelihood,
    coordinates_of,
    first_model,
)
from likeminds import Annotations
from likeminds.mixed_model import wide_fit
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.mixed_model.optimisers import descend
from likeminds.mixed_model.user_posteriors import posterior_of
from likeminds.mixed_model.wide_fit import InformationSpectrum, learn_wide, lowest_eigenvectors
from likeminds.mixed_model.wide_marginal_likelihood import KernelRows, WideMarginalLikelihood

N_FEATURES = 30


def some_pairs(rng, n_users=25, n_pairs=8, d=N_FEATURES):
    users = np.repeat(np.arange(n_users), n_pairs)
    a, b = rng.normal(size=(2, len(users), d))
    theta = rng.normal(size=d) / 3
    wins = ((a - b) @ theta + rng.logistic(size=len(users)) > 0)[:, None]
    ids = np.arange(len(users))
    sides = np.where(wins, a, b), np.where(wins, b, a)
    return Annotations.from_comparisons(users, ids, ids + len(ids), features=sides)


def some_labels(rng, n_users=25, d=N_FEATURES):
    users = np.repeat(np.arange(n_users), rng.integers(3, 9, size=n_users))
    X = rng.normal(size=(len(users), d))
    labels = X @ rng.normal(size=d) / 3 + rng.logistic(size=len(users)) > 0
    weights = rng.uniform(0.5, 2.0, size=len(users))
    return Annotations(users, None, labels, X, features_per="row", weights=weights)


def some_choices(rng, n_users=12, d=N_FEATURES):
    n = n_users * 12
    users, sets = np.repeat(np.arange(n_users), 12), np.arange(n) // 4
    X = rng.normal(size=(n, d))
    labels = np.zeros(n, dtype=bool)
    labels[np.arange(0, n, 4) + rng.integers(0, 4, size=n // 4)] = True
    return Annotations(users, None, labels, X, choice_sets=sets, features_per="row")


CROWDS = {
    "pairs": (some_pairs, "choice"),
    "labels": (some_labels, "logistic"),
    "sets": (some_choices, "choice"),
    "positives": (some_labels, "choice"),
    "mixed": (lambda rng: some_pairs(rng).concat(some_labels(rng)._with(weights=None)), "mixed"),
}


def both_ways(said, loss, rng, rank=2):
    """Return the objective with matrices and the one in rows, at the same model."""
    coordinates = coordinates_of(said, intercept=loss.has_intercept)
    assert coordinates.basis is None
    size, n_weights = coordinates.size, coordinates.n_weights
    model = first_model(size, n_weights, loss.likelihood, rng.normal(size=n_weights) / 10)
    unit = model.prior.residual
    mean, loadings = rng.normal(size=size) / 5, rng.normal(size=(size, rank))
    model = replace(model, prior=GaussianPrior(mean, loadings, 1.3 * unit), ridge=3.0)
    exact = {"mode_tol": 1e-12, "structure": LOW_RANK}
    dense = MarginalLikelihood(loss.responses(said, coordinates), n_weights, model, unit, **exact)
    every = coordinates_of(said, every=True, intercept=loss.has_intercept)
    rows = KernelRows.of_annotations(said, loss, every)
    return dense, WideMarginalLikelihood(
        rows, n_weights, model, unit, ridges=np.zeros(rank), **exact
    )


@pytest.mark.parametrize("crowd", CROWDS)
def test_value_and_gradient_are_those_of_the_way_with_matrices(crowd):
    make, loss = CROWDS[crowd]
    rng = np.random.default_rng(0)
    dense, wide = both_ways(make(rng), PRIOR_LOSSES[loss], rng)
    value, slope = dense(dense.start)
    wide_value, wide_slope = wide(wide.start)
    assert wide_value == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(wide_slope, slope, rtol=1e-9, atol=1e-11)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), rank=st.integers(0, 3))
def test_the_gradient_is_that_of_the_value_with_ridges_of_directions(seed, rank):
    rng = np.random.default_rng(seed)
    _, wide = both_ways(some_labels(rng, 8, 6), PRIOR_LOSSES["logistic"], rng, rank)
    wide = replace(wide, ridges=rng.uniform(0.5, 5.0, size=rank))
    at, direction = wide.start, rng.normal(size=len(wide.start))
    step = 1e-5 * direction
    around = (wide(at + step)[0] - wide(at - step)[0]) / 2e-5
    assert wide(at)[1] @ direction == pytest.approx(around, rel=1e-5, abs=1e-7)


@pytest.mark.slow
def test_descents_of_both_ways_end_in_the_same_prior():
    rng = np.random.default_rng(1)
    said = some_pairs(rng, n_users=60, n_pairs=15, d=60)
    dense, wide = both_ways(said, PRIOR_LOSSES["choice"], rng, rank=1)
    model = replace(dense.model, ridge=60.0, centre=0.0)
    found = [
        descend(replace(way, model=model), tol=1e-14, max_iter=400).model.prior
        for way in (dense, wide)
    ]
    np.testing.assert_allclose(found[1].mean, found[0].mean, atol=2e-5)
    np.testing.assert_allclose(found[1].covariance, found[0].covariance, atol=2e-5)


def test_people_left_out_say_nothing():
    rng = np.random.default_rng(2)
    said = some_labels(rng)
    loss = PRIOR_LOSSES["logistic"]
    _, wide = both_ways(said, loss, rng)
    chosen = rng.random(said.n_users) < 0.5
    few = replace(wide, responses=wide.rows.of_users(chosen), warm_starts=type(wide.warm_starts)())
    one = said.of_users(said.user_ids[chosen].tolist())
    coordinates = coordinates_of(said, every=True)
    alone = replace(few, responses=KernelRows.of_annotations(one, loss, coordinates))
    assert few(few.start)[0] == pytest.approx(alone(alone.start)[0], rel=1e-12)


def information(wide):
    """Return the information about the mean as a matrix, and as it is applied."""
    found = wide.row_moments(wide.model).information
    return found.times(np.eye(wide.n_weights)), found


def test_ridges_are_those_of_the_whole_spectrum():
    rng = np.random.default_rng(3)
    _, wide = both_ways(some_pairs(rng, d=200), PRIOR_LOSSES["choice"], rng)
    matrix, applied = information(wide)
    for ridge in (0.1, 1.0, 10.0):
        exact = np.trace(matrix @ np.linalg.inv(matrix + ridge * np.eye(len(matrix))))
        assert InformationSpectrum.of(applied, 200).degrees_of_freedom(ridge) == pytest.approx(
            exact, rel=0.05
        )


def test_lowest_directions_are_eigenvectors():
    rng = np.random.default_rng(4)
    _, wide = both_ways(some_pairs(rng, d=40), PRIOR_LOSSES["choice"], rng)
    matrix = wide.row_moments(wide.model).by_covariance
    values = np.linalg.eigvalsh(matrix.times(np.eye(40)))
    found, vectors = lowest_eigenvectors(matrix, 40, 3)
    np.testing.assert_allclose(found, values[:3], rtol=1e-3)
    np.testing.assert_allclose(vectors.T @ vectors, np.eye(3), atol=1e-9)


@pytest.mark.parametrize("kind", ["pairs", "labels"])
def test_posteriors_in_few_coordinates_are_those_in_all(kind, monkeypatch):
    make, name = CROWDS[kind]
    said, loss = make(np.random.default_rng(5)), PRIOR_LOSSES[name]
    every = coordinates_of(said, every=True, intercept=loss.has_intercept)
    points, known, coordinates = [], [], []
    for kept in (N_FEATURES, 7):
        monkeypatch.setattr(wide_fit, "N_COORDINATES", kept)
        learned, responses, few = learn_wide(
            loss, said, every, 2, likelihood=loss.likelihood, centre=0.0, tol=1e-6, max_iter=100
        )
        crowd = FittedPrior(few, learned.model.prior, learned.model.likelihood)
        at, told = posterior_of(
            responses, said.n_users, crowd, warm_starts=learned.warm_starts, rank=99
        )
        points.append(at)
        known.append(np.einsum("pma,pmb->pab", told, told))
        coordinates.append(few)
    assert coordinates[0].basis is None
    assert coordinates[1].beyond > 0
    project = np.eye(every.size)[:, : every.n_weights] @ coordinates[1].basis
    project = np.column_stack([project, np.eye(every.size)[:, every.n_weights :]])
    np.testing.assert_allclose(points[1], points[0] @ project, atol=1e-6)
    np.testing.assert_allclose(known[1], project.T @ known[0] @ project, atol=1e-5)
