"""Proposition 1: products with the Laplacian of the AUC graph, in linear time.

The graph joins every positive row of a user to every negative one. The weight is ``w_p w_q / (w_+
w_-)``, with the sums ``w_+`` and ``w_-`` of the weights of each class. With equal weights this is
``1 / (n_+ n_-)``. If labels are grades, it joins every two rows of unequal grades. The weight is
then ``w_r w_s / N``, with the weight N of all such pairs: see `losses.loss`. With its Laplacian L,
the squared AUC loss is a quadratic form,

    1/2 (y - f)' L (y - f) = 1/2 mean over pairs of (1 - (f_p - f_q))^2,    y in {0, 1},

which needs time linear in n, without the n^2 entries of L.
"""

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_matrix, as_weights, same_length
from likeminds.losses.loss import pair_weight

__all__ = ["explicit_laplacian", "laplacian_form", "laplacian_product"]


def laplacian_product(A: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Return A'L, with one pass over the rows of A.

    Parameters
    ----------
    A : array of shape (n_rows, a)
        One row per label of the user.
    labels : array of shape (n_rows,)
        True (or 1) for a positive row, False (or 0) for a negative one; or grades.
    weights : array of shape (n_rows,), optional
        The weight of each row.

    Returns
    -------
    array of shape (a, n_rows)

    Examples
    --------
    >>> laplacian_product([[1.0], [2.0], [4.0]], [False, False, True])
    array([[-1.5, -1. ,  2.5]])
    """
    rows = np.asarray(as_matrix(A, "A"), dtype=np.float64)
    weight, grade, pairs = _graph(labels, weights, len(rows))
    # A row of L has the weight of the other grades on its diagonal and minus their rows'
    # weights off it, all times its own weight.
    by_grade = weight * (grade == np.arange(grade.max() + 1)[:, None])
    total = by_grade.sum(axis=1)
    sums = by_grade @ rows
    others = (total.sum() - total)[grade, None] * rows - (sums.sum(axis=0) - sums)[grade]
    return np.asarray((weight[:, None] * others / pairs).T)


def laplacian_form(
    A: ArrayLike, B: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Return A'LB, with one pass over the rows of A and B.

    Parameters
    ----------
    A, B : arrays of shape (n_rows, a) and (n_rows, b)
        One row per label of the user.
    labels, weights
        As in `laplacian_product`.

    Returns
    -------
    array of shape (a, b)

    Examples
    --------
    >>> laplacian_form([[1.0], [2.0], [4.0]], [[1.0], [2.0], [4.0]], [False, False, True])
    array([[6.5]])
    """
    left, right = as_matrix(A, "A"), as_matrix(B, "B")
    same_length(A=left, B=right)
    # L annihilates constants: centring B leaves the product and removes the cancellation.
    centred = np.asarray(right, dtype=np.float64) - right[:1]
    return np.asarray(laplacian_product(left, labels, weights) @ centred)


def explicit_laplacian(labels: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Return the matrix L, n x n, by its definition, for tests and for small examples.

    Examples
    --------
    >>> explicit_laplacian([False, False, True])
    array([[ 0.5,  0. , -0.5],
           [ 0. ,  0.5, -0.5],
           [-0.5, -0.5,  1. ]])
    """
    weight, grade, pairs = _graph(labels, weights, len(np.asarray(labels)))
    affinity = np.outer(weight, weight) * (grade[:, None] != grade) / pairs
    return np.asarray(np.diag(affinity.sum(axis=1)) - affinity)


def _graph(labels: ArrayLike, weights: ArrayLike | None, n_rows: int) -> tuple[Float, Index, float]:
    """Return the weights of rows, the numbers of their grades, and the weight of all pairs."""
    grade = np.unique(np.asarray(labels), return_inverse=True)[1]
    same_length(rows=range(n_rows), labels=grade)
    given = as_weights(weights, n_rows)
    weight = np.ones(n_rows) if given is None else np.asarray(given, dtype=np.float64)
    by_grade = np.bincount(grade, weights=weight).astype(np.float64)
    pairs = float(pair_weight(by_grade[None])[0])
    if not pairs:
        raise ValueError(
            "The AUC graph needs labels of both classes: with one class there is no pair to rank."
        )
    return weight, grade, pairs
