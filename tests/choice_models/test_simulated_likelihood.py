"""The slope of the simulated likelihood, against differences."""

import numpy as np
import pytest

from crowds import make_choices
from likeminds import HierarchicalRanker
from likeminds.choice_models.importance_sampling import ImportanceSampler, SimulationProblem
from likeminds.choice_models.simulated_likelihood import LikelihoodSurface, covariance_parameters
from likeminds.mixed_model.losses import PRIOR_LOSSES


@pytest.mark.parametrize("kind", ["full", "diagonal", "low_rank"])
@pytest.mark.parametrize("constant", [[], [1]])
@pytest.mark.parametrize("log", [0.0, -1.0])
def test_gradient_is_that_of_differences(kind, constant, log):
    crowd, _ = make_choices([1.0, -1.0, 0.5], np.eye(3), n_users=12, n_sets=4)
    ranker = HierarchicalRanker(covariance="full").fit(crowd)
    loss = PRIOR_LOSSES["choice"]
    responses = loss.responses(crowd, ranker.prior_.design)
    varies = np.setdiff1d(np.arange(3), constant)
    signs = np.array([0.0, 1.0, 0.0])[varies]
    constant = np.array(constant, dtype=np.intp)
    logs = np.array([0.0, 0.0, log])[varies]
    problem = SimulationProblem(responses, loss.likelihood, varies, constant, 3, signs, logs)
    at = problem.coefficients(ranker.prior_.prior)
    surface = LikelihoodSurface(
        ImportanceSampler(problem, at, 40), at, covariance_parameters(kind, problem, at, 1)
    )
    start = surface.start + 0.1 * np.random.default_rng(0).standard_normal(len(surface.start))
    steps = 1e-6 * np.eye(len(start))
    expected = [(surface(start + e)[0] - surface(start - e)[0]) / 2e-6 for e in steps]
    np.testing.assert_allclose(surface(start)[1], expected, rtol=1e-5, atol=1e-5)
