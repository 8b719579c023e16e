"""Algebra of stacks: one small matrix or vector per person, all people at once."""

from collections.abc import Callable

import numpy as np

from likeminds._support.arrays import Float

_TINY = 1e-300


def times(matrices: Float, vectors: Float) -> Float:
    """Return M_i x_i, shape (p, m), of matrices (p, m, n) and vectors (p, n)."""
    return np.asarray((matrices @ vectors[:, :, None])[:, :, 0])


def times_back(matrices: Float, vectors: Float) -> Float:
    """Return M_i' y_i, shape (p, n), of matrices (p, m, n) and vectors (p, m)."""
    return np.asarray((vectors[:, None, :] @ matrices)[:, 0])


def row_dots(x: Float, y: Float) -> Float:
    """Return the inner products of the rows, shape (p,)."""
    return np.asarray(np.einsum("ij,ij->i", x, y))


def solve(matrices: Float, right: Float) -> Float:
    """Return M_i^-1 R_i, shape (p, n, m), of matrices (p, n, n) and right sides (p, n, m)."""
    return np.asarray(np.linalg.solve(matrices, right), dtype=np.float64)


def solve_nearly(times_matrix: Callable[[Float], Float], right: Float, share: float) -> Float:
    """Return nearly M_i^-1 r_i, shape (p, n), by conjugate gradients.

    What is left of r_i is no longer than a share of it. M_i is symmetric and positive definite,
    and known by its products with vectors, of which few are needed where it is near the identity.
    """
    found, left = np.zeros_like(right), right.copy()
    way, length = right.copy(), row_dots(right, right)
    enough = share**2 * length
    for _ in range(right.shape[1]):
        turned = times_matrix(way)
        step = (length / np.maximum(row_dots(way, turned), _TINY))[:, None]
        found += step * way
        left -= step * turned
        before, length = length, row_dots(left, left)
        if (length <= enough).all():
            break
        way *= (length / np.maximum(before, _TINY))[:, None]
        way += left
    return found


def lift_diagonal(matrices: Float, share: float) -> Float:
    """Add a share of its trace to each matrix's diagonal, so that none is singular."""
    lift = share * np.einsum("ijj->i", matrices) + 1e-200
    return np.asarray(matrices + lift[:, None, None] * np.eye(matrices.shape[-1]))
