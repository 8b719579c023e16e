"""Items to be scored: their coordinates, and the posteriors of their own effects."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds.data.identifiers import encode, lookup
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.item_posteriors import ItemPosteriors


@dataclass(frozen=True)
class PredictionRows:
    """Some items, one to a row."""

    # (n, p): coordinates, as seen from the average item: the intercept's is zero. The last ones
    # are the features that were learned.
    rows: Float
    # The posterior of each item, where items have effects of their own.
    own: ItemPosteriors | None = None
    is_named: bool = False  # whether it was said which items they are
    # (n, d): where items have something beyond the coordinates: their features.
    features: FloatArray | None = None

    @classmethod
    def of(
        cls,
        features: FloatArray,
        coordinates: Design,
        items: ItemPosteriors | None,
        ids: IdArray | None = None,
    ) -> "PredictionRows":
        """Return rows of features in coordinates; ``ids`` say which items they are of."""
        rows = coordinates.differences(features - coordinates.origin)
        if items is None:
            return cls(rows, features=features if coordinates.beyond else None)
        if ids is None:
            own, is_named = items.nobody_knows(len(rows)), False
        else:
            codes, distinct = encode(ids, "items")
            own, is_named = items.of(distinct).take(codes), True
        return cls(np.hstack([rows, own.factors]), own, is_named)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Index) -> "PredictionRows":
        """Return some of the rows."""
        own = None if self.own is None else self.own.take(chosen)
        features = None if self.features is None else self.features[chosen]
        return PredictionRows(self.rows[chosen], own, self.is_named, features)

    @property
    def effects(self) -> Float:
        """B of each row's item."""
        return np.zeros(len(self.rows)) if self.own is None else self.own.effects

    def is_known(self, items: ItemPosteriors | None) -> Bool:
        """Say which rows are of items with labels; all are where items are features alone."""
        if self.own is None or items is None:
            return np.ones(len(self.rows), dtype=np.bool_)
        if not self.is_named:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(lookup(self.own.ids, items.ids, "items") >= 0)

    def same_as(self, other: "PredictionRows") -> Bool:
        """Say where both are known to be one item."""
        if self.own is None or other.own is None or not (self.is_named and other.is_named):
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(self.own.ids == other.own.ids, dtype=np.bool_)

    def variance(self, v: Float, covariance: Float) -> Float:
        """Return the variance of each row's b + f'v, given that of v: (n, r) and (n, r, r)."""
        if self.own is None:
            return np.zeros(len(self.rows))
        second = covariance + v[:, :, None] * v[:, None, :]
        return np.asarray(self.own.doubt + np.einsum("nab,nab->n", self.own.unsure, second))
