"""The problem that is left when deviations are eliminated: its slope and curvature."""

import numpy as np
import pytest

from likeminds import Statistics
from likeminds.losses import SquaredAUC
from likeminds.solvers import FastSolver
from likeminds.solvers.trust_region import ReducedHessian, evaluate, horizontal
from likeminds.solvers.variable_projection import Penalty


@pytest.mark.parametrize("personal", [0.05, 0.3, 5.0])
def test_gradient_and_hessian_of_the_reduced_problem(crowd, personal):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    penalty = Penalty(ridge=0.5, weak=0.4, personal=personal, strong=0.05, n_groups=2)
    problem, _ = FastSolver().decompose(loss).problems(penalty)
    rng = np.random.default_rng(0)
    B, _ = np.linalg.qr(rng.standard_normal((5, 2)))
    theta = rng.standard_normal(5)
    point = evaluate(problem, theta, B)
    hessian = ReducedHessian(problem, point)

    def at(T, t):
        moved, R = np.linalg.qr(B + t * T[1:].T)
        return evaluate(problem, theta + t * T[0], moved, R.T, point.block_fits)

    for _ in range(3):
        T = horizontal(rng.standard_normal((3, 5)), B)
        h = 1e-5
        slope = (at(T, h).value - at(T, -h).value) / (2 * h)
        assert np.vdot(point.gradient, T) == pytest.approx(slope, rel=1e-6, abs=1e-8)
        h = 1e-3
        curvature = (at(T, h).value - 2 * point.value + at(T, -h).value) / h**2
        assert np.vdot(T, hessian(T)) == pytest.approx(curvature, rel=1e-3, abs=1e-5)
        assert np.vdot(T, hessian.precondition(T)) > 0
