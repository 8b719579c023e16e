"""Items with their features: places by some weights, disagreement, names."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.text_format import LIKE, Verb
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.rankers.ranker import Ranker
from likeminds.schools.school_names import (
    LETTERS_IN_A_NAME,
    POPULARITY,
    name_by_items,
    name_feature,
    shorten,
)

# More items or users than these are represented by a sample of so many.
_MOST_ITEMS = 20_000
_MOST_USERS = 1_000
# Items whose scores are computed at a time.
_ITEMS_AT_ONCE = 4_096
# Names of two items that stand for a feature, as on the axis of a picture, are short.
_LETTERS_IN_A_PAIR = 28


class JudgedItem(NamedTuple):
    """An item, its row in the table of features, a value such as a score, and its text."""

    item: object
    row: int
    value: float
    text: str | None = None


def learned_names(items: ItemPosteriors) -> tuple[str, ...]:
    """Return names of learned columns: factors, and the item effect."""
    return (*(f"learned_{n}" for n in range(1, items.n_factors + 1)), POPULARITY)


@dataclass(frozen=True, eq=False)
class Items:
    """Distinct items with their features."""

    ids: IdArray
    rows: Index  # in the table of features they came from
    features: FloatArray
    feature_names: tuple[str, ...]
    texts: Mapping[Hashable, str] | None = None
    verb: Verb = LIKE
    learned: ItemPosteriors | None = None

    @classmethod
    def of_annotations(cls, annotations: Annotations, rng: Generator) -> "Items":
        """Take the distinct items, at most 20,000 of them, drawn at random."""
        rows = np.arange(len(annotations.features))
        by_item = annotations.features_per == "item"
        if not by_item:
            # A part of some annotations shares their table: not every row of it has a label.
            rows = np.unique(annotations.feature_rows)
            first = np.unique(annotations.features[rows], axis=0, return_index=True)[1]
            rows = rows[np.sort(first)]
        if len(rows) > _MOST_ITEMS:
            rows = np.sort(rng.choice(rows, _MOST_ITEMS, replace=False))
        ids = annotations.item_ids[rows] if by_item else _ids_of_rows(annotations, rows)
        return cls(ids, rows, annotations.features[rows], annotations.feature_names)

    def __len__(self) -> int:
        return len(self.ids)

    def among(self, ids: IdArray | None) -> "Items":
        """Return those of the items that are among some ids; all for None."""
        if ids is None:
            return self
        found = lookup(self.ids, ids, "items") >= 0
        rows, features = self.rows[found], self.features[found]
        return replace(self, ids=self.ids[found], rows=rows, features=features)

    def with_learned(self, ranker: Ranker) -> "Items":
        """Return the items with columns of a ranker's item factors and effects, if any."""
        learned = ranker.item_posteriors()
        if learned is None or len(self.feature_names) > len(ranker.feature_names_):
            return self
        posteriors = learned.of(self.ids)
        columns = np.column_stack([self.features, posteriors.factors, posteriors.effects])
        names = self.feature_names + learned_names(learned)
        return replace(self, features=columns, feature_names=names, learned=posteriors)

    def text_of(self, item: Hashable) -> str | None:
        """Return the text of an item, where there is one."""
        return None if self.texts is None else self.texts.get(item)

    def called(self, position: int, letters: int = LETTERS_IN_A_NAME) -> str:
        """Return an item's name in a sentence: the beginning of its text, or its id."""
        item = self.ids[position]
        text = self.text_of(item)
        if text is not None:
            return f'"{shorten(text, letters)}"'
        return shorten(str(item), letters) if isinstance(item, str) else f"item {item}"

    @cached_property
    def feature_words(self) -> tuple[str, ...]:
        """Words for each feature: see `likeminds.schools.school_names.name_feature`."""
        called = partial(self.called, letters=_LETTERS_IN_A_PAIR)
        columns = zip(self.feature_names, self.features.T, strict=True)
        return tuple(name_feature(name, values, called) for name, values in columns)

    def name_by_difference(
        self, own: Float, others: Float, margin: Float, *, liked_only: bool = False
    ) -> str:
        """Name users after items: see `likeminds.schools.school_names.name_by_items`."""
        return name_by_items(own, others, margin, self.called, self.verb, liked_only=liked_only)

    def positions_of(self, annotations: Annotations) -> Index:
        """Return the position of each label's item, -1 for others (by features per row)."""
        if annotations.features_per == "item":
            return lookup(annotations.item_ids, self.ids, "items")[annotations.item_codes]
        own = self.features[:, : annotations.n_features]
        where = {key: place for place, key in enumerate(_fingerprints(own))}
        rows, of_label = np.unique(annotations.feature_rows, return_inverse=True)
        found = [where.get(key, -1) for key in _fingerprints(annotations.features[rows])]
        return np.array(found, dtype=np.intp)[of_label]

    @cached_property
    def centre(self) -> Float:
        """The mean of the items' features."""
        return np.asarray(self.features.mean(axis=0, dtype=np.float64))

    @cached_property
    def spread(self) -> Float:
        """The covariance of the items' features."""
        moved = self.features - self.centre
        return np.asarray(moved.T @ moved / len(self), dtype=np.float64)

    @cached_property
    def binary(self) -> Bool:
        """Which features are yes or no: of two values, 0 and 1."""
        yes_or_no = (self.features == 0) | (self.features == 1)
        return np.asarray(yes_or_no.all(axis=0))

    def places(self, weights: Float) -> Float:
        """Return the shares of items that items beat, as if scores were normal, (n, n_items)."""
        scores = weights @ (self.features - self.centre).T
        deviation = np.sqrt(np.maximum(np.einsum("nd,nd->n", weights @ self.spread, weights), 0))
        return np.asarray(ndtr(scores / np.where(deviation > 0, deviation, np.inf)[:, None]))

    def disagreement(self, coef: Float, rng: Generator) -> Float:
        """Return the standard deviation over users of the share of items that each item beats.

        0 where all agree, 0.29 where it may stand anywhere, 0.5 where it is best for one half and
        worst for the other. Many users are sampled.
        """
        if len(coef) > _MOST_USERS:
            coef = coef[rng.choice(len(coef), _MOST_USERS, replace=False)]
        found = np.empty(len(self))
        for start in range(0, len(self), _ITEMS_AT_ONCE):
            piece = slice(start, start + _ITEMS_AT_ONCE)
            found[piece] = self._piece(piece).places(coef).std(axis=0)
        return found

    def judged(self, key: Float, n: int, values: Float | None = None) -> tuple[JudgedItem, ...]:
        """Return the n items with the highest keys, with their values (by default the keys)."""
        values = key if values is None else values
        best = np.argsort(-key, kind="stable")[:n].tolist()
        return tuple(
            JudgedItem(item, int(self.rows[i]), float(values[i]), self.text_of(item))
            for i, item in zip(best, self.ids[best].tolist(), strict=True)
        )

    def at_least(self, scores: Float) -> Float:
        """Return lower bounds of the consensus's scores: see `rank`."""
        return scores if self.learned is None else self.learned.lower_bound(scores)

    def _piece(self, piece: slice) -> "Items":
        part = Items(self.ids[piece], self.rows[piece], self.features[piece], self.feature_names)
        # Places are among all the items.
        part.__dict__.update(centre=self.centre, spread=self.spread)
        return part


def _fingerprints(features: FloatArray) -> list[bytes]:
    """Return a hashable key for each row, the same for the same numbers."""
    return [row.tobytes() for row in features.astype(np.float64) + 0.0]  # minus zero is zero


def _ids_of_rows(annotations: Annotations, rows: Index) -> IdArray:
    """Return an item that each of some rows of the table of features describes."""
    item_of = np.zeros(len(annotations.features), dtype=np.intp)
    item_of[annotations.feature_rows] = annotations.item_codes
    return annotations.item_ids[item_of[rows]]
