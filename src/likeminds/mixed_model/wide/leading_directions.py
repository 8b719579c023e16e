"""Where people differ most: leading directions of matrices that are only applied."""

import numpy as np

from likeminds._util.array_types import Float
from likeminds.mixed_model.marginal_likelihood import PriorModel
from likeminds.mixed_model.wide.wide_marginal_likelihood import RowMatrices, RowMoments

# Directions looked at beyond those asked for, and products with all of them.
_MORE, _PRODUCTS = 6, 3


def lowest(matrix: RowMatrices, n_features: int, n: int) -> tuple[Float, Float]:
    """Return the least eigenvalues and their eigenvectors, shape (d, n), by block Krylov steps."""
    n_tried = min(n + _MORE, n_features)
    start = np.random.default_rng(0).standard_normal((n_features, n_tried))
    blocks = [np.linalg.qr(start)[0]]
    for _ in range(_PRODUCTS):
        if len(blocks) * n_tried < n_features:
            blocks.append(np.linalg.qr(matrix.times(blocks[-1]))[0])
    basis = np.linalg.qr(np.hstack(blocks)[:, :n_features])[0]
    values, vectors = np.linalg.eigh(basis.T @ matrix.times(basis))
    return values[:n], basis @ vectors[:, :n]


def first_directions(model: PriorModel, found: RowMoments, n: int) -> Float:
    """Return directions B, shape (d, n), along which more variance would help most.

    The gradient by the variance along a direction, over the information about it, is a step of
    scoring: see `mixed_model.fisher_scoring`.
    """
    values, vectors = lowest(found.missing, len(model.prior.mean) - _n_other(found), n)
    known = np.einsum("dn,dn->n", vectors, found.told.times(vectors)) / found.n_people
    variance = np.maximum(-values, 0.0) / found.n_people / np.maximum(known, 1e-300) ** 2
    return np.asarray(vectors * np.sqrt(variance))


def _n_other(found: RowMoments) -> int:
    return len(found.by_variance) - 1
