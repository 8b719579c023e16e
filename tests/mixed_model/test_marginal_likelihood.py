"""What is minimised: its slope, and its numbers as a vector."""

import numpy as np
import pytest

from crowds import make_crowd
from learned_model import LIKELIHOODS, make_objective
from likeminds import make_schools
from likeminds.mixed_model.marginal_likelihood import LOW_RANK, MarginalLikelihood
from likeminds.mixed_model.responses import sample


@pytest.mark.parametrize("loss", LIKELIHOODS)
@pytest.mark.parametrize("n_features", [3, 12])
def test_slope_is_that_of_the_objective(loss, n_features):
    rng = np.random.default_rng(n_features)
    objective = make_objective(make_crowd(rng, n_features), rng, loss, rank=2)
    vector = objective.start
    for _ in range(3):  # until the modes are exact
        _, slope = objective(vector)
    step = 1e-4
    measured = [
        (objective(vector + step * e)[0] - objective(vector - step * e)[0]) / (2 * step)
        for e in np.eye(len(vector))
    ]
    np.testing.assert_allclose(slope, measured, rtol=1e-3, atol=1e-4)


def test_vector_and_model_are_the_same():
    rng = np.random.default_rng(3)
    objective = make_objective(make_crowd(rng), rng, rank=2)
    again = objective.model_at(objective.start)
    for name in ("mean", "loadings", "residual"):
        np.testing.assert_allclose(getattr(again.prior, name), getattr(objective.model.prior, name))


def test_people_who_stand_for_others_have_the_objective_of_as_many():
    said = make_schools(400, 20, 1000, 16, random_state=0).annotations
    start = make_objective(said, np.random.default_rng(0), rank=2)
    some = sample(start.responses, 50)
    one = MarginalLikelihood(some, start.n_weights, start.model, start.unit, structure=LOW_RANK)
    many = MarginalLikelihood(
        some, start.n_weights, start.model, start.unit, structure=LOW_RANK, user_weight=8.0
    )
    found, as_many = one.e_step(start.model), many.e_step(start.model)
    assert many.n_users == 400
    assert as_many.n_users == 8 * found.n_users
    assert as_many.objective == pytest.approx(8 * found.objective)
    np.testing.assert_allclose(as_many.second, 8 * found.second)
