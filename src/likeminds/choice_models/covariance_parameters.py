"""Parametrisations of Omega by unconstrained vectors: full, scaled, low rank."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index

# Largest move of a log standard deviation, and of any other entry in units of one.
_LOG_REACH, _REACH = 1.0, 2.0


@dataclass(frozen=True)
class CovarianceParameters:
    """Matrices Omega near a first one, as a function of a vector."""

    start: Float  # the vector of the first matrix
    reach: Float  # how far each entry may move from there
    covariance: Callable[[Float], Float]
    # The gradient by the vector, at a vector, given the symmetric gradient by Omega.
    gradient: Callable[[Float, Float], Float]


def full_covariance(first: Float) -> CovarianceParameters:
    """Omega = R C C' R', with R R' the first one and C lower triangular, its diagonal an exp."""
    root = np.asarray(np.linalg.cholesky(first), dtype=np.float64)
    rows, columns = np.tril_indices(len(root))

    def triangle(vector: Float) -> Float:
        lower = np.zeros_like(root)
        lower[rows, columns] = vector
        np.fill_diagonal(lower, np.exp(lower.diagonal()))
        return lower

    def covariance(vector: Float) -> Float:
        whole = root @ triangle(vector)
        return np.asarray(whole @ whole.T)

    def gradient(vector: Float, by_covariance: Float) -> Float:
        lower = triangle(vector)
        by_lower = 2.0 * root.T @ by_covariance @ root @ lower
        np.fill_diagonal(by_lower, by_lower.diagonal() * lower.diagonal())
        return np.asarray(by_lower[rows, columns])

    reach = np.where(rows == columns, _LOG_REACH, _REACH)
    return CovarianceParameters(np.zeros(len(rows)), reach, covariance, gradient)


def scaled_covariance(first: Float) -> CovarianceParameters:
    """Omega = D R D, with R the first one and D = diag(exp(vector)): correlations stay."""

    def covariance(vector: Float) -> Float:
        return np.asarray(first * np.exp(vector[:, None] + vector))

    def gradient(vector: Float, by_covariance: Float) -> Float:
        return np.asarray(2.0 * (by_covariance * covariance(vector)).sum(axis=1))

    start = np.zeros(len(first))
    return CovarianceParameters(start, np.full(len(first), _LOG_REACH), covariance, gradient)


def low_rank_covariance(loadings: Float, residual: Float, groups: Index) -> CovarianceParameters:
    """Omega = B B' + diag(r^2), with B = diag(residual) loadings at first.

    Coordinates with the same number in ``groups`` share a factor of their residuals r.
    """

    def parts(vector: Float) -> tuple[Float, Float]:
        flat, logs = vector[: loadings.size], vector[loadings.size :]
        directions = flat.reshape(loadings.shape) * residual[:, None]
        return directions, residual * np.exp(logs)[groups]

    def covariance(vector: Float) -> Float:
        directions, deviations = parts(vector)
        return np.asarray(directions @ directions.T + np.diag(deviations**2))

    def gradient(vector: Float, by_covariance: Float) -> Float:
        directions, deviations = parts(vector)
        by_directions = 2.0 * by_covariance @ directions * residual[:, None]
        by_logs = np.bincount(groups, 2.0 * by_covariance.diagonal() * deviations**2)
        return np.concatenate([by_directions.ravel(), by_logs])

    n_logs = int(groups.max()) + 1
    start = np.concatenate([loadings.ravel(), np.zeros(n_logs)])
    reach = np.repeat([_REACH, _LOG_REACH], [loadings.size, n_logs])
    return CovarianceParameters(start, reach, covariance, gradient)
