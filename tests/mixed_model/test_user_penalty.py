"""Squares that are added to the prior's, against their definition."""

import numpy as np

from likeminds.mixed_model.user_penalty import UserPenalty


def test_held_is_a_square_on_top_of_the_prior():
    rng = np.random.default_rng(0)
    root, directions = rng.normal(size=(3, 2, 2)), rng.normal(size=(2, 5))
    precision = root @ root.transpose(0, 2, 1)
    held = UserPenalty(precision, directions)
    extra = directions.T @ precision @ directions
    inverse = np.linalg.inv(np.eye(5) + extra)
    np.testing.assert_allclose(held.added, extra)
    vectors = rng.normal(size=(3, 5))
    np.testing.assert_allclose(held.gradient(vectors), np.einsum("bij,bj->bi", extra, vectors))
    once = held.of_rows(np.repeat(np.eye(5)[None], 3, axis=0))
    np.testing.assert_allclose(held.of_rows(once.transpose(0, 2, 1)), inverse)
    np.testing.assert_allclose(held.squared(), inverse.sum(axis=0))
    np.testing.assert_allclose(held.log_determinant, 0.5 * np.linalg.slogdet(np.eye(5) + extra)[1])
    known = held.variance_reduction()
    np.testing.assert_allclose(np.eye(5) - known.transpose(0, 2, 1) @ known, inverse)
