"""The best deviation of one person, against numerical minimisation."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from likeminds.solvers.variable_projection import Penalty, deviate


@given(st.integers(0, 200), st.floats(0.05, 2.0), st.floats(0.02, 2.0))
def test_deviation_is_the_best_one(seed, weak, personal):
    rng = np.random.default_rng(seed)
    curvature = rng.uniform(0.0, 3.0, (1, 4))
    slope = curvature * rng.standard_normal((1, 4))
    x = rng.standard_normal((1, 4))
    penalty = Penalty(ridge=0.0, weak=weak, personal=personal, strong=0.0, n_groups=0)

    def cost(v):
        w = x[0] + v
        size = np.linalg.norm(v)
        huber = (
            weak * size**2
            if size <= penalty.threshold
            else personal * (size - penalty.threshold / 2)
        )
        return 0.5 * (w @ (curvature[0] * w) - 2 * slope[0] @ w) + huber

    found = deviate(curvature, slope, x, penalty)
    best = minimize(cost, np.zeros(4), tol=1e-12)
    assert found.value[0] == pytest.approx(cost(found.v[0]), rel=1e-12)
    assert found.value[0] <= best.fun + 1e-10


def test_huber_is_the_best_division_between_weak_group_and_personal():
    penalty = Penalty(ridge=0.0, weak=0.7, personal=0.9, strong=0.0, n_groups=0)
    for size in (0.1, penalty.threshold, 2.0):
        weak = np.linspace(0.0, size, 10_001)
        best = np.min(0.7 * weak**2 + 0.9 * (size - weak))
        huber = 0.7 * size**2 if size <= penalty.threshold else 0.9 * (size - penalty.threshold / 2)
        assert huber == pytest.approx(best, abs=1e-6)
