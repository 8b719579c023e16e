"""The two ways to solve for a person's weights are the same."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds.mixed_model.likelihoods import ChoiceCurvature, DiagonalCurvature
from likeminds.mixed_model.primal_dual import Dual, Primal
from likeminds.mixed_model.user_penalty import UserPenalty


def make_curvature(rng, kind):
    if kind == "diagonal":
        return DiagonalCurvature(np.sqrt(rng.uniform(0.05, 1, (3, 6))), rng.normal(size=(3, 6)))
    odds = rng.uniform(0.2, 1, (3, 2, 3))
    odds[0, 0, 2] = 0.0  # a set of two items, filled up
    chance = (odds / odds.sum(axis=2, keepdims=True)).reshape(3, 6)
    weight = np.repeat(rng.uniform(0.5, 2, (3, 2)), 3, axis=1) * (chance > 0)
    return ChoiceCurvature(chance, weight, 3)


@pytest.mark.parametrize("kind", ["diagonal", "chances"])
@given(seed=st.integers(0, 1000), is_held=st.booleans())
def test_primal_and_dual_are_the_same(kind, seed, is_held):
    rng = np.random.default_rng(seed)
    rows, offset = rng.normal(size=(3, 6, 4)), rng.normal(size=(3, 6))
    curvature = make_curvature(rng, kind)
    held, in_y = None, rows
    if is_held:
        root = rng.normal(size=(3, 2, 2))
        precision, directions = root @ root.transpose(0, 2, 1), rng.normal(size=(2, 4))
        held = UserPenalty(precision, directions, rng.normal(size=(3, 2)))
        in_y = held.of_rows(rows)
    primal = Primal(rows, offset, held)
    dual = Dual(in_y, offset, in_y @ in_y.transpose(0, 2, 1), held)
    warm, residuals = rng.normal(size=(3, 6)), rng.normal(size=(3, 6))
    states = primal.start(warm), dual.start(warm)
    np.testing.assert_allclose(primal.eta(states[0]), dual.eta(states[1]))
    eta = primal.eta(states[0])
    np.testing.assert_allclose(primal.penalty(states[0], eta), dual.penalty(states[1], eta))
    if held is not None:
        z = states[0] + held.centre
        v = held.means + z @ held.directions.T
        penalty = 0.5 * (z**2).sum(axis=1) + 0.5 * np.einsum("ba,bac,bc->b", v, held.precision, v)
        np.testing.assert_allclose(primal.penalty(states[0], eta), penalty)
    steps, promised = [], []
    for system, state in zip((primal, dual), states, strict=True):
        matrices = system.matrices(curvature)
        step, gain = system.newton(state, eta, residuals, curvature, matrices)
        steps.append(system.z(step))
        promised.append(gain)
    np.testing.assert_allclose(steps[0], steps[1], atol=1e-12)
    np.testing.assert_allclose(promised[0], promised[1])
    first, second = primal.posterior_covariance(curvature), dual.posterior_covariance(curvature)
    np.testing.assert_allclose(first.log_determinant, second.log_determinant)
    np.testing.assert_allclose(first.total, second.total, atol=1e-12)
    np.testing.assert_allclose(first.variance, second.variance, atol=1e-12)
    np.testing.assert_allclose(
        primal.z(primal.shift(first, curvature)),
        dual.z(dual.shift(second, curvature)),
        atol=1e-12,
    )
    np.testing.assert_allclose(first.with_scores, second.with_scores, atol=1e-12)
    scores = curvature.times_root_back(rows @ first.inner)  # of the primal, the covariance of z
    np.testing.assert_allclose(first.with_scores, scores, atol=1e-12)
    directions = rng.normal(size=(4, 2))
    np.testing.assert_allclose(
        primal.covariance_along(first, curvature, directions),
        dual.covariance_along(second, curvature, directions),
        atol=1e-12,
    )
    for most in (2, 4):
        kept = []
        for system in (primal.without_penalty(), dual.without_penalty()):
            directions, shrunk = system.information(curvature, most)
            kept.append(directions.transpose(0, 2, 1) @ (shrunk[:, :, None] * directions))
        np.testing.assert_allclose(kept[0], kept[1], atol=1e-10)
    if not is_held:
        np.testing.assert_allclose(np.eye(4) - kept[0].sum(axis=0) / 3, first.total / 3, atol=1e-10)
