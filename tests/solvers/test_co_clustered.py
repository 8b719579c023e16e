"""The Newton solver of COMT, held against proximal gradients."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from likeminds import Statistics, make_schools
from likeminds.components import Group, MeanRegularised, Personal, objective, optimality_residual
from likeminds.losses import LeastSquares
from likeminds.solvers import AcceleratedSolver, CoClusteredSolver, FastSolver

pytestmark = pytest.mark.seconds


def made(seed):
    crowd = make_schools(20, 30, 50, 6, 2, random_state=seed).annotations
    return LeastSquares().of(Statistics.from_annotations(crowd))


@settings(max_examples=10)
@given(st.integers(1, 9), st.sampled_from([0, 1, 2]), st.floats(0.0, 2.0), st.floats(0.01, 2.0))
def test_a_critical_point_of_the_two_components(seed, n_groups, first, second):
    loss, components = made(seed), [MeanRegularised(first), Group(second, n_groups)]
    found = CoClusteredSolver().solve(loss, components, tol=1e-6)
    assert found.converged
    assert optimality_residual(loss, components, found.parts) <= 1e-6
    assert found.objective == pytest.approx(objective(loss, components, found.parts), rel=1e-9)


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize("n_groups", [0, 1, 2])
def test_no_worse_than_proximal_gradients(seed, n_groups):
    loss, components = made(seed), [MeanRegularised(0.5), Group(0.3, n_groups)]
    slow = AcceleratedSolver().solve(loss, components, tol=1e-6, max_iter=20_000)
    users = FastSolver().decompose(loss)
    fast = CoClusteredSolver(users).solve(loss, components, tol=1e-6)
    assert fast.objective <= slow.objective * (1 + 1e-9)
    again = CoClusteredSolver(users).solve(loss, components, start=slow.parts, tol=1e-6)
    np.testing.assert_allclose(sum(again.parts), sum(slow.parts), atol=1e-4)


def test_other_components_are_refused():
    with pytest.raises(TypeError, match="MeanRegularised"):
        CoClusteredSolver().solve(made(1), [Group(1.0, 1), Personal(1.0)])
