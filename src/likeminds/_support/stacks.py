"""Algebra of stacks: one small matrix or vector per person, all people at once."""

import numpy as np

from likeminds._support.arrays import Float


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


def lift_diagonal(matrices: Float, share: float) -> Float:
    """Add a share of its trace to each matrix's diagonal, so that none is singular."""
    lift = share * np.einsum("ijj->i", matrices) + 1e-200
    return np.asarray(matrices + lift[:, None, None] * np.eye(matrices.shape[-1]))
