"""Everybody's curvature in its own eigenbasis, where ridge problems are divisions.

For person i, A_i = Q_i' diag(a_i) Q_i and b_i = Q_i' s_i, with orthonormal rows of Q_i. People
with few labels have as many rows as labels (through the small matrix Z_i Z_i', never d x d).
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.batched_linalg import times, times_back
from likeminds._util.map_reduce import ThreadExecutor
from likeminds.losses.quadratic import QuadraticLoss, RowFactors

# Eigenvalues below this share of a person's largest are rounding: they count as zero.
_NEGLIGIBLE = 1e-13
# Blocks of people that fit into the processor's cache, and give each core something to do.
_BLOCK_BYTES = 1 << 21


@dataclass(frozen=True)
class CurvatureSpectrum:
    """The curvature of some people who have the same number of eigen-directions.

    Attributes
    ----------
    people : array of shape (p,)
        Their positions among all people.
    basis : array of shape (p, r, d)
        The matrices Q_i; rows of zeros where the curvature is zero.
    curvature : array of shape (p, r)
        The eigenvalues a_i.
    slope : array of shape (p, r)
        The vectors s_i = Q_i b_i.
    """

    people: Index
    basis: Float
    curvature: Float
    slope: Float

    def into(self, vectors: Float) -> Float:
        """Return Q_i x_i, for one vector per person or one for all."""
        if vectors.ndim == 1:
            return np.asarray(self.basis @ vectors)
        return times(self.basis, vectors)

    def back(self, coordinates: Float) -> Float:
        """Return Q_i' y_i."""
        return times_back(self.basis, coordinates)

    def weighted_sum(self, weight: Float) -> Float:
        """Return the sum over people of Q_i' diag(weight_i) Q_i, shape (d, d)."""
        rows = (np.sqrt(weight)[:, :, None] * self.basis).reshape(-1, self.basis.shape[2])
        return np.asarray(rows.T @ rows)


def spectra(loss: QuadraticLoss) -> Iterator[CurvatureSpectrum]:
    """Yield everybody's spectrum: first those with matrices, then the others."""
    yield from spectra_of_matrices(loss)
    yield from spectra_of_factors(loss)


def spectra_of_matrices(loss: QuadraticLoss) -> Iterator[CurvatureSpectrum]:
    """Yield the spectra of people whose A_i is a matrix, a block at a time."""
    size = max(1, _BLOCK_BYTES // (8 * loss.shape[1] ** 2))
    starts = range(0, len(loss.dense_users), size)
    return ThreadExecutor([slice(start, start + size) for start in starts]).map(_of_matrices, loss)


def spectra_of_factors(loss: QuadraticLoss) -> Iterator[CurvatureSpectrum]:
    """Yield the spectra of people with few labels, a block at a time."""
    return ThreadExecutor(list(loss.factors.rows.plan())).map(_of_factors, loss.factors)


def _of_matrices(some: slice, loss: QuadraticLoss, own: None) -> CurvatureSpectrum:  # noqa: ARG001
    people = loss.dense_users[some]
    return spectrum_of_matrices(people, loss.matrices[some], loss.linear[people])


def _of_factors(chosen: Index, factors: RowFactors, own: None) -> CurvatureSpectrum:  # noqa: ARG001
    return spectrum_of_factors(*factors.of(chosen))


def spectrum_of_matrices(people: Index, matrices: Float, linear: Float) -> CurvatureSpectrum:
    """Return the spectrum of matrices A_i and vectors b_i."""
    curvature, vectors = np.linalg.eigh(matrices)
    keep = curvature > _NEGLIGIBLE * curvature[:, -1:]
    basis = np.ascontiguousarray(vectors.transpose(0, 2, 1)) * keep[:, :, None]
    return CurvatureSpectrum(people, basis, np.where(keep, curvature, 0.0), times(basis, linear))


def spectrum_of_factors(people: Index, Z: Float, target: Float) -> CurvatureSpectrum:
    """Return the spectrum of A_i = Z_i'Z_i, with b_i = Z_i't_i."""
    # Z = S diag(sqrt(a)) Q, so the eigenvectors S of the small Z Z' give Q = a^-1/2 S' Z.
    curvature, vectors = np.linalg.eigh(Z @ Z.transpose(0, 2, 1))
    keep = curvature > _NEGLIGIBLE * curvature[:, -1:]
    root = np.sqrt(np.where(keep, curvature, 1.0))
    basis = (vectors * (keep / root)[:, None, :]).transpose(0, 2, 1) @ Z
    slope = np.where(keep, times_back(vectors, target) * root, 0.0)  # Q Z't = sqrt(a) S't
    return CurvatureSpectrum(people, basis, np.where(keep, curvature, 0.0), slope)
