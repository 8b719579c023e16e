import numpy as np
import pytest

from learned_model import GaussianPrior, MarginalLikelihood, PriorModel, responses_of
from likeminds import make_schools
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.optimisers import ScoringStep, StepLength, evaluate_model, step


def start_of(annotations):
    responses, coordinates = responses_of(annotations)
    size = coordinates.size
    prior = GaussianPrior(np.zeros(size), np.zeros((size, 0)), np.ones(size))
    return MarginalLikelihood(
        responses,
        coordinates.n_weights,
        PriorModel(prior, LogisticLikelihood(), 1.0),
        np.ones(size),
    )


def too_long():
    """Return a pace whose next step is a hundred thousand whole ones."""
    pace = StepLength(1e5)
    for gain in (1.0, 1.0 - 1e-12):
        pace.record(1.0, gain)
    assert pace.factor == 1e5
    return pace


def test_a_step_that_is_too_long_is_not_taken_and_the_next_ones_are_shorter():
    objective = start_of(make_schools(60, 20, 100, 8, 2, random_state=0).annotations)
    at, pace = evaluate_model(objective, objective.model), too_long()
    for _ in range(6):  # near the end, where there is little to gain
        at = step(objective, at)
    assert evaluate_model(objective, ScoringStep(objective, at).to(1e5)).value > at.value

    new = step(objective, at, pace)
    assert new.value < at.value
    whole = step(objective, at)
    assert new.value == pytest.approx(whole.value, rel=1e-12)
    np.testing.assert_allclose(
        new.model.prior.covariance, whole.model.prior.covariance, rtol=1e-9, atol=1e-12
    )
    assert pace.was_single
    assert pace.factor == 1.0


def test_no_step_goes_uphill_and_they_end():
    objective = start_of(make_schools(60, 20, 100, 8, 2, random_state=0).annotations)
    at = evaluate_model(objective, objective.model)
    for _ in range(60):
        at, before = step(objective, at), at
        assert at.value <= before.value
    assert before.value - at.value <= 1e-9 * abs(at.value)
