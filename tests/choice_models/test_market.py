"""Intervals of ratios, against their definition."""

import numpy as np
import pytest

from likeminds.choice_models.market import fieller


def test_fieller_holds_the_ratios_that_are_not_ruled_out():
    a, b, far = 2.0, -1.5, 1.96
    covariance = np.array([[0.09, 0.02], [0.02, 0.04]])
    low, high = fieller(a, b, covariance, far)

    def apart(r):
        variance = covariance[0, 0] - 2 * r * covariance[0, 1] + r**2 * covariance[1, 1]
        return abs(a - r * b) / np.sqrt(variance)

    assert low < a / b < high
    assert [apart(low), apart(high)] == pytest.approx([far, far])
    assert apart(0.5 * (low + high)) < far < min(apart(low - 0.1), apart(high + 0.1))


def test_fieller_refuses_a_denominator_that_may_be_zero():
    with pytest.raises(ValueError):
        fieller(1.0, 0.1, np.diag([0.01, 0.04]), 1.96)
