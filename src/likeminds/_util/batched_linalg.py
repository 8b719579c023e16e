"""Algebra of stacks: one small matrix or vector per person, all people at once."""

from collections.abc import Callable

import numpy as np

from likeminds._util.array_types import Float

_TINY = 1e-300
# Of matrices no larger than this, calls for each of them cost more than what they compute.
_FEW_ROWS = 10


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
    Whoever has arrived stays, so that nobody's answer depends on who else is asked.
    """
    found, left = np.zeros_like(right), right.copy()
    way, length = right.copy(), row_dots(right, right)
    enough = share**2 * length
    for _ in range(right.shape[1]):
        turned = times_matrix(way)
        share_of_way = length / np.maximum(row_dots(way, turned), _TINY)
        step = np.where(length > enough, share_of_way, 0.0)[:, None]
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


def half_log_determinant(matrices: Float) -> Float:
    """Return half of log |M_i|, shape (p,), of positive definite matrices (p, n, n)."""
    factor = np.linalg.cholesky(matrices)
    return np.asarray(np.log(np.einsum("ijj->ij", factor)).sum(axis=1))


def inverse_and_log(matrices: Float) -> tuple[Float, Float]:
    """Return M_i^-1, (p, n, n), and half of log |M_i|, (p,), of positive definite matrices.

    Examples
    --------
    >>> inverse, half = inverse_and_log(np.array([[[4.0, 2.0], [2.0, 2.0]]]))
    >>> inverse.round(6)
    array([[[ 0.5, -0.5],
            [-0.5,  1. ]]])
    >>> half.round(6)
    array([0.693147])
    """
    if matrices.shape[1] > _FEW_ROWS:
        inverse = np.asarray(np.linalg.inv(matrices), dtype=np.float64)
        return inverse, half_log_determinant(matrices)
    swept, pivots = _swept(np.array(matrices.transpose(1, 2, 0), order="C"))
    return np.ascontiguousarray(swept.transpose(2, 0, 1)), 0.5 * np.log(pivots).sum(axis=0)


def _swept(matrices: Float) -> tuple[Float, Float]:
    """Return the inverses of matrices (n, n, p), in place, and their pivots, (n, p).

    Gauss-Jordan elimination of all at once; positive definite matrices need no other order.
    """
    pivots = np.empty((len(matrices), matrices.shape[2]))
    for place, pivot in enumerate(pivots):
        pivot[:] = matrices[place, place]
        row, column = matrices[place] / pivot, matrices[:, place].copy()
        column[place] = 0.0
        matrices -= column[:, None] * row
        matrices[:, place] = column / -pivot
        matrices[place] = row
        matrices[place, place] = 1.0 / pivot
    return matrices, pivots
