"""Moments of censored weights, against draws."""

import numpy as np

from likeminds.choice_models.estimates import keep_signs


def test_moments_of_censored_numbers_are_those_of_draws():
    mean, deviation, signs = np.array([-0.5, 0.3, 2.0]), np.array([1.0, 0.5, 0.0]), [-1, -1, 1]
    drawn = mean + deviation * np.random.default_rng(0).standard_normal((400_000, 3))
    drawn[drawn * signs < 0] = 0.0
    found = keep_signs(mean, deviation, np.array(signs, dtype=float))
    np.testing.assert_allclose(found[0], drawn.mean(axis=0), atol=0.005)
    np.testing.assert_allclose(found[1], drawn.std(axis=0), atol=0.005)
