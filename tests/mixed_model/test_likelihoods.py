"""Chances of a yes, given scores that are not known exactly."""

import numpy as np
import pytest
from scipy.special import expit

from likeminds.mixed_model.likelihoods import label_probability


def test_the_mean_of_the_logistic_function_over_a_normal_distribution():
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    for mean in (-3.0, 0.0, 0.7, 4.0):
        for deviation in (0.0, 0.5, 2.0, 4.0):
            exact = expit(mean + deviation * nodes) @ weights / weights.sum()
            near = label_probability(np.array([mean]), np.array([deviation]))[0]
            assert near == pytest.approx(exact, abs=0.02)
