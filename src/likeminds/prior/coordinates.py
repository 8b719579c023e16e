"""Features as the prior sees them: centred, in units of their spread, without idle directions."""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float, FloatArray
from likeminds.data.annotations import Annotations

# Directions with less than this share of the strongest one's variance are rounding: no label
# says anything about them.
_IDLE = 1e-10
# Numbers that differ by less than this share of their size are equal but for rounding.
_ROUNDING = 2 * float(np.finfo(np.float64).eps)
# Rows of the table that are turned into double precision at a time.
_ROWS_AT_ONCE = 1 << 14


@dataclass(frozen=True)
class Coordinates:
    """Where features are measured from, in which units and along which directions.

    Attributes
    ----------
    origin, scale : arrays of shape (d,)
        The mean item, and the unit of each feature.
    basis : array of shape (d, q), or None
        Orthonormal directions in which items differ at all; None where they are all of them.
    intercept : bool
        Whether a constant one is the last coordinate.
    spread : array of shape (q, q), optional
        The covariance of the items that were labelled, in these coordinates; without it, the
        identity.
    """

    origin: Float
    scale: Float
    basis: Float | None
    intercept: bool
    spread: Float | None = None

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, *, standardize: bool, intercept: bool
    ) -> "Coordinates":
        """Measure the features of the items by the labels given to them."""
        weight = np.bincount(
            annotations.feature_rows,
            weights=annotations.weights,
            minlength=len(annotations.features),
        ).astype(np.float64)
        origin, unit, covariance = _moments(annotations.features, weight / weight.sum())
        differs = unit > 0
        if not differs.any():
            raise ValueError(
                "No feature differs between the items that were labelled, so that there is nothing "
                "to rank them by. Give features that differ, and labels of more than one item."
            )
        scale = np.ones(len(origin))
        if standardize:
            scale = np.where(differs, unit, 1.0) * np.sqrt(
                np.where(differs, covariance.diagonal(), 1.0)
            )
        shrink = unit / scale
        covariance = covariance * shrink[:, None] * shrink
        strength, directions = np.linalg.eigh(covariance)
        active = strength > _IDLE * max(strength[-1], np.finfo(np.float64).tiny)
        basis = None
        if not active.all():
            basis = directions[:, active][:, ::-1]
            covariance = np.diag(strength[active][::-1])
        return cls(origin, scale, basis, intercept, covariance)

    @property
    def n_weights(self) -> int:
        """How many coordinates are weights of features: q."""
        return len(self.scale) if self.basis is None else self.basis.shape[1]

    @property
    def size(self) -> int:
        """How many coordinates there are, the intercept included."""
        return self.n_weights + self.intercept

    def rows(self, features: FloatArray) -> Float:
        """Return features, shape (..., d), as rows of coordinates, shape (..., size)."""
        out = np.empty((*features.shape[:-1], self.size))
        moved = (features - self.origin) / self.scale
        out[..., : self.n_weights] = moved if self.basis is None else moved @ self.basis
        out[..., self.n_weights :] = 1.0
        return out

    def differences(self, features: FloatArray) -> Float:
        """Return differences of items, shape (..., d), in coordinates; no intercept, no origin."""
        out = np.zeros((*features.shape[:-1], self.size))
        moved = features / self.scale
        out[..., : self.n_weights] = moved if self.basis is None else moved @ self.basis
        return out

    def weights(self, points: Float) -> Float:
        """Return points, shape (..., size), as weights of the features, shape (..., d)."""
        inner = points[..., : self.n_weights]
        return np.asarray((inner if self.basis is None else inner @ self.basis.T) / self.scale)

    def points(self, weights: Float, intercept: Float) -> Float:
        """Return the points, shape (n, size), that have such weights and intercepts."""
        points = np.empty((len(weights), self.size))
        scaled = weights * self.scale
        points[:, : self.n_weights] = scaled if self.basis is None else scaled @ self.basis
        if self.intercept:
            points[:, -1] = intercept + weights @ self.origin
        return points


def _moments(table: FloatArray, share: Float) -> tuple[Float, Float, Float]:
    """Return the mean of the rows of a table, units, and their covariance in these units.

    Rows are weighted by their share. A unit is half the range of a column, and zero for one
    that does not differ by more than its rounding. Everything is measured from the middle of
    the range and in units, lest a large mean swallow a small spread, or a square be zero.
    """
    used = np.flatnonzero(share)
    parts = [used[start : start + _ROWS_AT_ONCE] for start in range(0, len(used), _ROWS_AT_ONCE)]
    low = np.min([table[part].min(axis=0) for part in parts], axis=0).astype(np.float64)
    high = np.max([table[part].max(axis=0) for part in parts], axis=0).astype(np.float64)
    middle, unit = low + (high - low) / 2, (high - low) / 2
    unit[unit <= _ROUNDING * np.maximum(np.abs(low), np.abs(high))] = 0.0
    inverse = np.divide(1.0, unit, out=np.zeros_like(unit), where=unit > 0)
    mean = sum(share[part] @ ((table[part] - middle) * inverse) for part in parts)
    covariance = np.zeros((len(unit), len(unit)))
    for part in parts:
        centred = ((table[part] - middle) * inverse - mean) * np.sqrt(share[part])[:, None]
        covariance += centred.T @ centred
    return middle + mean * unit, unit, covariance
