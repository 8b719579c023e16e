"""The simulated likelihood against quadrature, and its gradient against differences."""

import numpy as np
import pytest
from scipy.special import expit, logsumexp

from crowds import make_choices
from likeminds import Annotations, HierarchicalRanker
from likeminds.choice_models.importance_sampling import (
    Coefficients,
    ImportanceSampler,
    SimulationProblem,
)
from likeminds.mixed_model.losses import PRIOR_LOSSES

# Nodes and weights for the mean over a standard normal distribution.
NODES, WEIGHTS = np.polynomial.hermite_e.hermegauss(80)
LOG_WEIGHTS = np.log(WEIGHTS / WEIGHTS.sum())


@pytest.fixture(scope="module")
def one_feature():
    crowd, _ = make_choices([1.0], [[2.0]], n_users=25, n_sets=5)
    return crowd, HierarchicalRanker(covariance="diagonal").fit(crowd)


def by_quadrature(crowd, ranker):
    """The log-likelihood of each person's choices, by Gauss-Hermite quadrature."""
    coordinates, prior = ranker.prior_.design, ranker.prior_.prior
    slopes = (prior.mean[0] + np.sqrt(prior.covariance[0, 0]) * NODES) / coordinates.scale[0]
    found = []
    for person in crowd.user_ids:
        own = crowd.of_user(person)
        total = np.zeros(len(NODES))
        for group in np.unique(own.choice_set_codes):
            rows = own.choice_set_codes == group
            scores = own.X[rows, :1].astype(float) * slopes
            total += scores[own.labels[rows]][0] - logsumexp(scores, axis=0)
        found.append(logsumexp(total + LOG_WEIGHTS))
    return np.array(found)


def test_choices_have_the_likelihood_of_quadrature(one_feature):
    crowd, ranker = one_feature
    exact = by_quadrature(crowd, ranker)
    found = ranker.log_likelihood(crowd, draws=4000)
    np.testing.assert_allclose(found.by_user, exact, atol=0.02)
    assert abs(found.value - exact.sum()) < 4 * found.error
    assert 0 < found.error < 0.1
    assert list(found.users) == list(crowd.user_ids)
    assert float(found) == found.value


def test_labels_have_the_likelihood_of_quadrature():
    rng = np.random.default_rng(3)
    users = np.repeat(np.arange(12), 10)
    X = rng.standard_normal((120, 1))
    said = rng.random(120) < expit(rng.standard_normal(12)[users] + 1.5 * X[:, 0])
    crowd = Annotations(users, None, said, X)
    ranker = HierarchicalRanker(item_effects=False, covariance="full").fit(crowd)
    prior, rows = ranker.prior_.prior, ranker.prior_.design.rows(crowd.X)
    grid = np.stack(np.meshgrid(NODES, NODES), axis=-1).reshape(-1, 2)
    log_weights = (LOG_WEIGHTS[:, None] + LOG_WEIGHTS).ravel()
    eta = rows @ (prior.mean + grid @ prior.root.T).T
    of_rows = np.where(crowd.labels[:, None], eta, 0.0) - np.logaddexp(0.0, eta)
    of_users = np.array([of_rows[users == i].sum(axis=0) for i in range(12)])
    exact = logsumexp(of_users + log_weights, axis=1)
    found = ranker.log_likelihood(draws=4000)
    np.testing.assert_allclose(found.by_user, exact, atol=0.02)


def test_error_is_that_of_other_seeds(one_feature):
    crowd, ranker = one_feature
    values = [ranker.log_likelihood(crowd, 50, random_state=s).value for s in range(20)]
    told = ranker.log_likelihood(crowd, 50).error
    assert 0.4 * told < np.std(values) < 2.5 * told


def test_weights_that_are_alike_enter_the_likelihood_exactly():
    # The expansion around fixed weights is exact where it is made.
    crowd, _ = make_choices([1.0, -1.0], np.eye(2), n_users=8, n_sets=4)
    ranker = HierarchicalRanker(covariance="full").fit(crowd)
    loss = PRIOR_LOSSES["choice"]
    responses = loss.responses(crowd, ranker.prior_.design)
    one = np.array([0], dtype=np.intp), np.array([1], dtype=np.intp)
    problem = SimulationProblem(responses, loss.likelihood, *one, 2, np.zeros(1), np.zeros(1))
    near = Coefficients(np.array([1.0]), np.eye(1), np.array([-0.5]))
    nearly = Coefficients(near.mean, near.covariance, near.fixed + 1e-3)
    expanded = ImportanceSampler(problem, near, 2000).at(nearly).value
    anew = ImportanceSampler(problem, nearly, 2000).at(nearly).value
    assert expanded == pytest.approx(anew, abs=1e-3)


def test_too_many_draws_are_refused(one_feature):
    crowd, ranker = one_feature
    with pytest.raises(ValueError):
        ranker.log_likelihood(crowd, draws=10**9)
