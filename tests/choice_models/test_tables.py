"""Numbers of the tables against their definitions."""

import numpy as np
import pytest

from likeminds.choice_models.estimates import keep_signs
from likeminds.choice_models.paying import fieller
from likeminds.choice_models.tables import Table


def test_moments_of_censored_numbers_are_those_of_draws():
    mean, deviation, signs = np.array([-0.5, 0.3, 2.0]), np.array([1.0, 0.5, 0.0]), [-1, -1, 1]
    drawn = mean + deviation * np.random.default_rng(0).standard_normal((400_000, 3))
    drawn[drawn * signs < 0] = 0.0
    found = keep_signs(mean, deviation, np.array(signs, dtype=float))
    np.testing.assert_allclose(found[0], drawn.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(found[1], drawn.std(axis=0), atol=0.005)


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


def test_html_is_escaped():
    html = Table("<b>", [{"a&b": "<script>"}], ("x < y",))._repr_html_()
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert "<p>x &lt; y</p>" in html
