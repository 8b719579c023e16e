"""Log-normal weights: moments against draws, modes against what is around them."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from crowds import make_choices
from learned_model import GaussianPrior
from likeminds import HierarchicalRanker
from likeminds.mixed_model.extensions.sign_constraints import (
    find_mode_of_logs,
    logs_of_moments,
    moment_matched,
    moments_of_weights,
    variance_reductions,
    weights_of_logs,
)
from likeminds.mixed_model.losses import PRIOR_LOSSES

MEAN = np.array([-0.3, 0.2, 1.0, -2.0])
ROOT = 0.4 * np.array([[1, 0, 0, 0], [0.5, 1, 0, 0], [-0.4, 0.2, 1, 0], [0.3, 0.1, 0.2, 0.8]])
SIGNS = np.array([-1.0, 1.0, 0.0, 0.0])


def test_moments_are_those_of_draws():
    logs = MEAN + np.random.default_rng(0).standard_normal((400_000, 4)) @ ROOT.T
    weights = weights_of_logs(logs, SIGNS)
    assert (weights[:, 0] < 0).all()
    assert (weights[:, 1] > 0).all()
    mean, covariance = moments_of_weights(MEAN, ROOT @ ROOT.T, SIGNS)
    np.testing.assert_allclose(mean, weights.mean(axis=0), atol=5e-3)
    np.testing.assert_allclose(covariance, np.cov(weights.T), atol=1e-2)


@given(
    st.lists(st.floats(-2, 2), min_size=3, max_size=3),
    st.lists(st.floats(-0.8, 0.8), min_size=9, max_size=9),
    st.tuples(*[st.sampled_from([-1.0, 0.0, 1.0])] * 3),
)
def test_moments_are_undone(mean, root, signs):
    root, signs = np.reshape(root, (3, 3)), np.array(signs)
    covariance = root @ root.T + 0.01 * np.eye(3)
    there = moments_of_weights(np.array(mean), covariance, signs)
    back = logs_of_moments(*there, signs)
    np.testing.assert_allclose(back[0], mean, atol=1e-8)
    np.testing.assert_allclose(back[1], covariance, atol=1e-8)


def test_a_matched_prior_has_these_moments():
    prior = moment_matched(GaussianPrior.of_covariance(MEAN, ROOT @ ROOT.T), SIGNS)
    mean, covariance = moments_of_weights(MEAN, ROOT @ ROOT.T, SIGNS)
    np.testing.assert_allclose(prior.mean, mean)
    np.testing.assert_allclose(prior.covariance, covariance, rtol=1e-8, atol=1e-10)


def test_what_is_known_leaves_the_covariance():
    prior = GaussianPrior.of_covariance(MEAN, ROOT @ ROOT.T)
    less = 0.5 * prior.covariance
    less[0, 0] *= 0.7
    known = variance_reductions(less[None], prior, 4)[0]
    np.testing.assert_allclose(prior.covariance - known.T @ known, less, atol=1e-10)
    wide = variance_reductions(2.0 * prior.covariance[None], prior, 4)[0]
    np.testing.assert_allclose(wide, 0.0, atol=1e-7)


@pytest.fixture(scope="module")
def problem():
    crowd, _ = make_choices([-1.0, 1.0, 0.5], 0.5 * np.eye(3), n_users=15, n_sets=6)
    coordinates = HierarchicalRanker(n_groups=0).fit(crowd).prior_.design
    loss = PRIOR_LOSSES["choice"]
    data = loss.responses(crowd, coordinates).data(0)
    prior = GaussianPrior.of_covariance(MEAN[:3], (ROOT @ ROOT.T)[:3, :3])
    return data, prior, loss.likelihood


def cost(logs, signs, problem):
    """Minus the log-posterior of each person, by the definition."""
    data, prior, likelihood = problem
    away = logs - prior.mean
    eta = np.einsum("bnp,bp->bn", data.rows, weights_of_logs(logs, signs))
    inside = np.einsum("bp,pq,bq->b", away, np.linalg.inv(prior.covariance), away)
    return likelihood.at(eta, data).loss + 0.5 * inside


@pytest.mark.parametrize("signs", [[-1.0, 1.0, 0.0], [0.0, 1.0, 1.0], [0.0, 0.0, 0.0]])
def test_modes_are_the_best_nearby_and_curve_as_said(problem, signs):
    data, prior, likelihood = problem
    signs = np.array(signs)
    found = find_mode_of_logs(data, prior, likelihood, signs)
    least = cost(found.logs, signs, problem)
    rng = np.random.default_rng(0)
    for step in 0.03 * rng.standard_normal((60, 3)):
        assert (cost(found.logs + step, signs, problem) > least).all()
    root = np.linalg.cholesky(prior.covariance)
    h = 1e-3
    for a in range(3):
        for b in range(3):
            moved = [
                cost(found.logs + h * (s * root[:, a] + t * root[:, b]), signs, problem)
                for s, t in ((1, 1), (1, -1), (-1, 1), (-1, -1))
            ]
            second = (moved[0] - moved[1] - moved[2] + moved[3]) / (4 * h * h)
            np.testing.assert_allclose(found.precision[:, a, b], second, atol=2e-4)
