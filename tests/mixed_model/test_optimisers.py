"""Steps never rise, and end where moments match."""

from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

from learned_model import DIAGONAL, LIKELIHOODS, make_objective
from likeminds import make_schools
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.marginal_likelihood import CovarianceStructure
from likeminds.mixed_model.optimisers import _pseudo_variances, descend, score


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_descent_never_rises_and_ends_where_moments_match(loss):
    crowd = make_schools(60, 30, 80, 4, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = descend(objective, tol=1e-12, max_iter=2000)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1
    found = objective.e_step(learned.model)
    # EM's fixed point: the mean of z is what the ridge asks for, and nothing else.
    theta = learned.model.prior.mean.copy()
    theta[objective.n_weights :] = 0
    pull = learned.model.prior.root.T @ (learned.model.ridge * theta)
    np.testing.assert_allclose(found.first, pull, atol=0.05)
    # Along the leading direction, second moments are the prior's.
    missing = found.n_users * np.eye(len(theta)) - found.second
    middle = learned.model.prior.inverse_middle
    leading = (middle @ missing @ middle) @ learned.model.prior.loadings
    scale = (learned.model.prior.residual / objective.unit) ** 2
    leading += learned.model.prior.loadings * scale[:, None] / 100  # their own prior
    assert np.abs(leading).max() < 1e-3 * found.n_users


@pytest.mark.parametrize("loss", LIKELIHOODS)
@pytest.mark.seconds
def test_scoring_never_rises_with_few_labels(loss):
    crowd = make_schools(30, 15, 80, 40, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = score(objective, tol=0.0, max_iter=20)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_scoring_never_rises_and_ends_where_moments_match(loss):
    crowd = make_schools(60, 30, 80, 4, 2, random_state=1, contested=1.0).annotations
    objective = make_objective(crowd, np.random.default_rng(0), loss)
    learned = score(objective, tol=1e-9, max_iter=400)
    assert (np.diff(learned.trace) <= 0).all()
    assert learned.trace[-1] < learned.trace[0] - 1
    assert learned.converged
    prior, found = learned.model.prior, objective.e_step(learned.model)
    theta = prior.mean.copy()
    theta[objective.n_weights :] = 0
    np.testing.assert_allclose(
        found.first, prior.root.T @ (learned.model.ridge * theta), atol=0.01 * found.n_users
    )
    # Second moments are the prior's, but for the pseudo-people's pull to equal variances.
    inverse = np.linalg.inv(prior.covariance)
    variances = 1.0 / inverse.diagonal()
    weights = slice(0, objective.n_weights)
    variances[weights] = objective.n_weights / inverse.diagonal()[weights].sum()
    pseudo = objective.structure.pseudo * found.n_users
    second = prior.root @ found.second @ prior.root.T + pseudo * np.diag(variances)
    expected = (found.n_users + pseudo) * prior.covariance
    np.testing.assert_allclose(second, expected, atol=0.02 * np.abs(expected).max())


@pytest.mark.parametrize("loss", LIKELIHOODS)
def test_variances_alone_are_learned_by_steps_that_never_rise(loss):
    rng = np.random.default_rng(2)
    objective = make_objective(
        make_schools(60, 24, 50, 3, 1, random_state=1).annotations, rng, loss, rank=0
    )
    found = score(replace(objective, structure=DIAGONAL), tol=1e-9, max_iter=80)
    assert (np.diff(found.trace) <= 0).all()
    prior = found.model.prior
    assert prior.rank == 0
    matched = objective.e_step(found.model)
    # Where variances are not at a bound, second moments are the prior's.
    inside = prior.residual > 1e-3 * prior.residual.max()
    second = matched.second.diagonal() / matched.n_users
    np.testing.assert_allclose(second[inside], 1.0, atol=2e-3)


def test_pseudo_users_with_a_fixed_variance_of_factor_weights_cost_least_there():
    structure = CovarianceStructure(factor_variance=0.1)
    objective = SimpleNamespace(n_weights=0, n_free=1, structure=structure)

    def penalty(variance):
        prior = GaussianPrior.of_covariance(np.zeros(3), np.diag([2.0, variance, variance]))
        log_determinant, variances = _pseudo_variances(prior, objective)
        return log_determinant - np.log(variances).sum()

    assert penalty(0.1) == pytest.approx(0, abs=1e-9)
    assert penalty(0.09) > 1e-3
    assert penalty(0.11) > 1e-3
