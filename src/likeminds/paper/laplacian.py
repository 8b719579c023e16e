"""Proposition 1: products with the Laplacian of the AUC graph, in linear time.

The graph joins every positive row of a person to every negative one, with weight
``w_p w_q / (w_+ w_-)`` (``1 / (n_+ n_-)`` when all rows count alike; ``w_+`` and ``w_-``
are the sums of the weights of each class). Its Laplacian L turns the squared AUC loss
into a quadratic form,

    1/2 (y - f)' L (y - f) = 1/2 mean over pairs of (1 - (f_p - f_q))^2,    y in {0, 1},

and has n^2 entries that nobody needs to write down.
"""

import numpy as np
from numpy.typing import ArrayLike

from likeminds._support.arrays import Float
from likeminds._support.checks import as_matrix, as_weights, same_length


def laplacian_product(A: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Return A'L, with one pass over the rows of A.

    Parameters
    ----------
    A : array of shape (n_rows, a)
        One row per label of the person.
    labels : array of shape (n_rows,)
        True (or 1) for a positive row, False (or 0) for a negative one.
    weights : array of shape (n_rows,), optional
        How much each row counts.

    Returns
    -------
    array of shape (a, n_rows)

    Examples
    --------
    >>> laplacian_product([[1.0], [2.0], [4.0]], [False, False, True])
    array([[-1.5, -1. ,  2.5]])
    """
    rows = np.asarray(as_matrix(A, "A"), dtype=np.float64)
    share = _class_shares(labels, weights, len(rows))
    means = share @ rows
    # A row of L has its own share on the diagonal and minus the shares of the other class
    # beside it, so L A is (the row - the mean of the other class) times the row's share.
    other_class = means[::-1]
    centred = np.where(share[1][:, None] > 0, rows - other_class[1], rows - other_class[0])
    product: Float = (share.sum(axis=0)[:, None] * centred).T
    return product


def laplacian_form(
    A: ArrayLike, B: ArrayLike, labels: ArrayLike, weights: ArrayLike | None = None
) -> Float:
    """Return A'LB, with one pass over the rows of A and B.

    Parameters
    ----------
    A, B : arrays of shape (n_rows, a) and (n_rows, b)
        One row per label of the person.
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
    form: Float = laplacian_product(left, labels, weights) @ centred
    return form


def explicit_laplacian(labels: ArrayLike, weights: ArrayLike | None = None) -> Float:
    """Return L itself, n x n: the definition, for tests and for small examples.

    Examples
    --------
    >>> explicit_laplacian([False, False, True])
    array([[ 0.5,  0. , -0.5],
           [ 0. ,  0.5, -0.5],
           [-0.5, -0.5,  1. ]])
    """
    share = _class_shares(labels, weights, len(np.asarray(labels)))
    affinity = np.outer(share[0], share[1]) + np.outer(share[1], share[0])
    laplacian: Float = np.diag(affinity.sum(axis=1)) - affinity
    return laplacian


def _class_shares(labels: ArrayLike, weights: ArrayLike | None, n_rows: int) -> Float:
    """Return, for the negatives and the positives, each row's share of its class."""
    positive = np.asarray(labels, dtype=bool)
    same_length(rows=range(n_rows), labels=positive)
    weight = as_weights(weights, n_rows)
    weight = np.ones(n_rows) if weight is None else weight
    by_class = np.stack([np.where(positive, 0.0, weight), np.where(positive, weight, 0.0)])
    total = by_class.sum(axis=1)
    if not total.all():
        raise ValueError(
            "The AUC graph needs labels of both classes: with one class there is no pair to rank."
        )
    shares: Float = by_class / total[:, None]
    return shares
