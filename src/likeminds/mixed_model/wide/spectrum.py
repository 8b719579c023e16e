"""Spectra of matrices that are only applied: ridge penalties, and leading directions.

Ridges follow MacKay's fixed point: ridge = (effective number of parameters) / (squared length).
With the eigenvalues h of the information, the former is sum h / (h + ridge). Sums over eigenvalues
are stochastic Lanczos quadrature: a few random vectors, a few products with each.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float
from likeminds.mixed_model.marginal_likelihood import PriorModel
from likeminds.mixed_model.numerics import LEAST_KNOWN
from likeminds.mixed_model.wide.wide_marginal_likelihood import RowMatrices, RowMoments

# Random vectors, and products with each. Sums over d eigenvalues are then within a few per cent
# of 1 / sqrt(d); fewer features than that many vectors are all asked.
_VECTORS, _PRODUCTS = 8, 16


@dataclass(frozen=True)
class InformationSpectrum:
    """Eigenvalues of a positive semi-definite matrix: a few that stand for all."""

    # (m,): eigenvalues, and how many each stands for.
    values: Float
    counts: Float

    @classmethod
    def of(cls, matrix: RowMatrices, n_features: int) -> "InformationSpectrum":
        """Find the spectrum of a matrix of features x features that is only applied.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> diagonal = SimpleNamespace(times=lambda v: np.arange(1.0, 5.0)[:, None] * v)
        >>> spectrum = InformationSpectrum.of(diagonal, 4)
        >>> float(round(spectrum.well_known(1.0), 6))    # 1/2 + 2/3 + 3/4 + 4/5
        2.716667
        """
        if n_features <= _VECTORS:
            start = np.eye(n_features)
        else:
            rng = np.random.default_rng(0)
            start = rng.choice([-1.0, 1.0], size=(n_features, _VECTORS))
            start /= np.sqrt(n_features)
        diagonals, beside = _lanczos(matrix, start)
        each = n_features / start.shape[1]
        values, counts = [], []
        for own, next_to in zip(diagonals.T, beside.T, strict=True):
            found, vectors = np.linalg.eigh(
                np.diag(own) + np.diag(next_to, 1) + np.diag(next_to, -1)
            )
            values.append(np.maximum(found, 0.0))
            counts.append(each * vectors[0] ** 2)
        return cls(np.concatenate(values), np.concatenate(counts))

    def times(self, share: float) -> "InformationSpectrum":
        """Return the spectrum of a share of the information."""
        return InformationSpectrum(share * self.values, self.counts)

    def well_known(self, ridge: float) -> float:
        """Return how many directions are known."""
        return float(self.counts @ (self.values / (self.values + max(ridge, 1e-300))))

    def ridge(self, ridge: float, squares: float) -> float:
        """Return the next ridge, given the last one and the squared length of what it holds."""
        return max(self.well_known(ridge), LEAST_KNOWN) / max(squares, LEAST_KNOWN**2)


def _lanczos(matrix: RowMatrices, start: Float) -> tuple[Float, Float]:
    """Return the tridiagonal matrices of Lanczos' method, one for each column of a start.

    Vectors are made orthogonal to all earlier ones, lest an eigenvalue be counted twice.
    """
    n_features, n_vectors = start.shape
    n_steps = min(_PRODUCTS, n_features)
    basis = np.zeros((n_steps, n_features, n_vectors))
    diagonals, beside = np.zeros((n_steps, n_vectors)), np.zeros((n_steps, n_vectors))
    vector = start
    for step in range(n_steps):
        basis[step] = vector
        product = matrix.times(vector)
        diagonals[step] = np.einsum("dv,dv->v", product, vector)
        for _ in range(2):
            earlier = np.einsum("sdv,dv->sv", basis[: step + 1], product)
            product -= np.einsum("sdv,sv->dv", basis[: step + 1], earlier)
        beside[step] = np.linalg.norm(product, axis=0)
        lasts = beside[step] > 1e-10 * np.maximum(np.abs(diagonals[0]), 1e-300)
        beside[step] *= lasts
        vector = np.where(lasts, product / np.where(lasts, beside[step], 1.0), 0.0)
    return diagonals, beside[:-1]


# Directions looked at beyond those asked for, and products with all of them.
_MORE, _KRYLOV_STEPS = 6, 3


def lowest(matrix: RowMatrices, n_features: int, n: int) -> tuple[Float, Float]:
    """Return the least eigenvalues and their eigenvectors, shape (d, n), by block Krylov steps."""
    n_tried = min(n + _MORE, n_features)
    start = np.random.default_rng(0).standard_normal((n_features, n_tried))
    blocks = [np.linalg.qr(start)[0]]
    for _ in range(_KRYLOV_STEPS):
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
    known = np.einsum("dn,dn->n", vectors, found.told.times(vectors)) / found.n_users
    variance = np.maximum(-values, 0.0) / found.n_users / np.maximum(known, 1e-300) ** 2
    return np.asarray(vectors * np.sqrt(variance))


def _n_other(found: RowMoments) -> int:
    return len(found.by_variance) - 1
