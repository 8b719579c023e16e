"""Coordinates of the prior: features centred, scaled, without directions of no variance."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode, lookup
from likeminds.mixed_model.gaussian_prior import ROUNDING, ItemPosteriors

# Tables are read by so many numbers at a time, which fit in the processor's cache.
_FEW_NUMBERS = 1 << 17


@dataclass(frozen=True)
class Design:
    """An affine map of features: its origin, units and directions."""

    # (d,): the mean item, and the unit of each feature.
    origin: Float
    scale: Float
    # (d, q): orthonormal directions in which items differ; None for all directions.
    basis: Float | None
    intercept: bool  # whether a constant one is the last coordinate
    # (q, q): the covariance of the items that were labelled, in these coordinates; without it,
    # the identity.
    spread: Float | None = None
    # The mean squared length of items' parts beyond the basis; 0 if there are none.
    beyond: float = 0.0

    @classmethod
    def of_table(
        cls,
        table: FloatArray,
        weight: Float,
        *,
        standardize: bool,
        intercept: bool,
        every: bool = False,
        most: int | None = None,
    ) -> "Design":
        """Fit a design to the rows of a table, weighted by their labels.

        With ``every``, keep all directions, even those in which items do not differ, and leave out
        ``spread``. ``most`` is the largest number of leading directions to keep.
        """
        if not table.shape[1]:
            return cls(np.zeros(0), np.ones(0), None, intercept, np.zeros((0, 0)))
        items = _Centred.of(table, weight / weight.sum())
        differs = items.unit > 0
        if not differs.any():
            raise ValueError(
                "No feature differs between the items that were labelled, so they cannot be "
                "ranked by features. Give features that differ, and labels of more than one item."
            )
        scale = np.ones(len(differs))
        if standardize:
            scale = np.where(differs, items.unit, 1.0) * np.sqrt(
                np.where(differs, items.variance, 1.0)
            )
        if every:
            return cls(items.mean, scale, None, intercept)
        basis, covariance = items.directions(items.unit / scale, most)
        return cls(items.mean, scale, basis, intercept, covariance)

    def without_weights(self) -> "Design":
        """Return coordinates of the same features without any of their directions."""
        return replace(self, basis=np.zeros((len(self.scale), 0)), spread=np.zeros((0, 0)))

    @property
    def n_weights(self) -> int:
        """The number of coordinates that are weights of features: q."""
        return len(self.scale) if self.basis is None else self.basis.shape[1]

    @property
    def size(self) -> int:
        """The number of coordinates, the intercept included."""
        return self.n_weights + self.intercept

    def moved(self, features: FloatArray, chosen: Index) -> FloatArray:
        """Return rows of features centred and scaled, in the features' own precision."""
        moved = np.empty((len(chosen), len(self.scale)), dtype=features.dtype)
        origin, unit = self.origin.astype(features.dtype), (1.0 / self.scale).astype(features.dtype)
        at_once = max(1, _FEW_NUMBERS // len(unit))
        for start in range(0, len(chosen), at_once):
            part = slice(start, start + at_once)
            np.subtract(features[chosen[part]], origin, out=moved[part])
            moved[part] *= unit
        return moved

    def rows(self, features: FloatArray) -> Float:
        """Return features, shape (..., d), as rows of coordinates, shape (..., size)."""
        out = np.empty((*features.shape[:-1], self.size))
        moved = (features - self.origin) / self.scale
        out[..., : self.n_weights] = moved if self.basis is None else moved @ self.basis
        out[..., self.n_weights :] = 1.0
        return out

    def products_beyond(self, features: FloatArray, rows: Float) -> Float | None:
        """Return the inner products, (..., n, n), of features' parts beyond their ``rows``.

        Features have shape (..., n, d), and ``rows`` are their coordinates. Return None without
        such parts.
        """
        if not self.beyond:
            return None
        moved = (features - self.origin) / self.scale
        inside = rows[..., : self.n_weights]
        return np.asarray(_gram(moved) - _gram(inside))

    def squares_beyond(self, features: FloatArray) -> Float:
        """Return squared lengths of the parts of items' differences, (n, d), beyond the basis."""
        if self.basis is None or not self.beyond:
            return np.zeros(len(features))
        moved = features / self.scale
        moved -= (moved @ self.basis) @ self.basis.T
        return np.asarray(np.einsum("nd,nd->n", moved, moved))

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


@dataclass(frozen=True)
class PredictionRows:
    """Some items, one to a row."""

    # (n, p): coordinates less those of the average item, so the intercept's is zero; item factors
    # come last.
    rows: Float
    items: ItemPosteriors | None = None  # one for each row
    is_named: bool = False  # whether the items' ids are given
    # (n, d): features, if items differ beyond the coordinates.
    features: FloatArray | None = None

    @classmethod
    def of(
        cls,
        features: FloatArray,
        design: Design,
        items: ItemPosteriors | None,
        ids: IdArray | None = None,
    ) -> "PredictionRows":
        """Return rows of features in coordinates; ``ids`` are those of their items."""
        rows = design.differences(features - design.origin)
        if items is None:
            return cls(rows, features=features if design.beyond else None)
        if ids is None:
            own, is_named = items.prior_of(len(rows)), False
        else:
            codes, distinct = encode(ids, "items")
            own, is_named = items.of(distinct).take(codes), True
        return cls(np.hstack([rows, own.factors]), own, is_named)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Index) -> "PredictionRows":
        """Return some of the rows."""
        own = None if self.items is None else self.items.take(chosen)
        features = None if self.features is None else self.features[chosen]
        return PredictionRows(self.rows[chosen], own, self.is_named, features)

    @property
    def effects(self) -> Float:
        """The item effect b of each row."""
        return np.zeros(len(self.rows)) if self.items is None else self.items.effects

    def is_known(self, items: ItemPosteriors | None) -> Bool:
        """Return which rows are of labelled items; all, if items are known by features alone."""
        if self.items is None or items is None:
            return np.ones(len(self.rows), dtype=np.bool_)
        if not self.is_named:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(lookup(self.items.ids, items.ids, "items") >= 0)

    def same_as(self, other: "PredictionRows") -> Bool:
        """Return whether the items of both are the same, row by row."""
        if self.items is None or other.items is None or not (self.is_named and other.is_named):
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(self.items.ids == other.items.ids, dtype=np.bool_)

    def variance(self, v: Float, covariance: Float) -> Float:
        """Return the variance of each row's b + f'v, given that of v: (n, r) and (n, r, r)."""
        if self.items is None:
            return np.zeros(len(self.rows))
        second = covariance + v[:, :, None] * v[:, None, :]
        return np.asarray(
            self.items.effect_variance
            + np.einsum("nab,nab->n", self.items.factor_covariance, second)
        )


def labels_of_rows(annotations: Annotations) -> Float:
    """Return the sum of the labels' weights for each row of the table of features."""
    return np.bincount(
        annotations.feature_rows, weights=annotations.weights, minlength=len(annotations.features)
    ).astype(np.float64)


@dataclass(frozen=True)
class _Centred:
    """The rows of a table with a positive share, less their mean.

    A unit is half the range of a column, and zero for a column that is constant up to rounding.
    Columns are centred at the middle of their range and divided by their unit. So large means do
    not hide small spreads, and squares do not underflow.
    """

    table: FloatArray
    share: Float
    middle: Float
    unit: Float
    shift: Float

    @classmethod
    def of(cls, table: FloatArray, share: Float) -> "_Centred":
        parts = _parts(share, table.shape[1])
        low = np.min([table[part].min(axis=0) for part in parts], axis=0).astype(np.float64)
        high = np.max([table[part].max(axis=0) for part in parts], axis=0).astype(np.float64)
        middle, unit = low + (high - low) / 2, (high - low) / 2
        # Numbers that differ by less than this share of their size are equal up to rounding.
        rounding = 2.0 * float(np.finfo(np.float64).eps)
        unit[unit <= rounding * np.maximum(np.abs(low), np.abs(high))] = 0.0
        rough = cls(table, share, middle, unit, np.zeros(len(unit)))
        shift = sum(np.sqrt(share[part]) @ rough.rows(part) for part in parts)
        return cls(table, share, middle, unit, np.asarray(shift))

    @property
    def mean(self) -> Float:
        """The mean row."""
        return np.asarray(self.middle + self.shift * self.unit)

    def rows(self, part: Index) -> Float:
        """Return rows, in units, each times the root of its share."""
        inverse = np.divide(1.0, self.unit, out=np.zeros_like(self.unit), where=self.unit > 0)
        centred = (self.table[part] - self.middle) * inverse - self.shift
        return np.asarray(centred * np.sqrt(self.share[part])[:, None])

    @property
    def _parts(self) -> list[Index]:
        return _parts(self.share, len(self.unit))

    @property
    def variance(self) -> Float:
        """The variance of each column, in units."""
        return np.asarray(sum((self.rows(part) ** 2).sum(axis=0) for part in self._parts))

    def directions(self, shrink: Float, most: int | None = None) -> tuple[Float | None, Float]:
        """Return orthonormal directions in which rows times ``shrink`` differ, strongest first.

        None means all directions, unchanged. The covariance along them comes second. If rows are
        few or ``most`` is small, no matrix of columns x columns is formed.
        """
        if most is not None and most < min(int(np.count_nonzero(self.share)), len(shrink)):
            rows = np.vstack([self.rows(part) * shrink for part in self._parts])
            basis = leading_directions(rows, most)
            inside = rows @ basis
            strength, turn = np.linalg.eigh(inside.T @ inside)
            active = _active(strength)
            return basis @ turn[:, active][:, ::-1], np.diag(strength[active][::-1])
        if 2 * np.count_nonzero(self.share) <= len(shrink):
            used = np.flatnonzero(self.share)
            _, length, directions = np.linalg.svd(self.rows(used) * shrink, full_matrices=False)
            active = _active(length**2)
            return directions[active].T, np.diag(length[active] ** 2)
        covariance = np.zeros((len(shrink), len(shrink)))
        for part in self._parts:
            rows = self.rows(part) * shrink
            covariance += rows.T @ rows
        strength, vectors = np.linalg.eigh(covariance)
        active = _active(strength)
        if active.all():
            return None, covariance
        return vectors[:, active][:, ::-1], np.diag(strength[active][::-1])


def leading_directions(rows: FloatArray, n: int) -> Float:
    """Return orthonormal directions, (d, n), in which rows are longest: a randomised SVD.

    It uses two power iterations with eight more vectors than requested.
    """
    n_tried = min(n + 8, *rows.shape)
    start = np.random.default_rng(0).standard_normal((rows.shape[1], n_tried))
    basis = np.linalg.qr(start.astype(rows.dtype))[0]
    for _ in range(2):
        basis = np.linalg.qr(rows.T @ (rows @ basis))[0]
    _, _, turn = np.linalg.svd(rows @ basis, full_matrices=False)
    leading = np.asarray(basis @ turn.T, dtype=np.float64)
    if n_tried < n:  # there are no more
        more = np.random.default_rng(1).standard_normal((rows.shape[1], n - n_tried))
        leading = np.linalg.qr(np.hstack([leading, more]))[0]
    return leading[:, :n]


def _gram(rows: Float) -> Float:
    return np.asarray(rows @ np.swapaxes(rows, -1, -2))


def _active(strength: Float) -> Bool:
    return np.asarray(strength > ROUNDING * max(strength.max(), np.finfo(np.float64).tiny))


def _parts(share: Float, width: int) -> list[Index]:
    used = np.flatnonzero(share)
    # The number of rows that are converted to double precision at a time: long rows, if several,
    # fit in the processor's cache.
    at_once = 1 << 14 if width <= 256 else max(1, _FEW_NUMBERS // width)
    return [used[start : start + at_once] for start in range(0, len(used), at_once)]
