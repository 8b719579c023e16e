"""Items known by their ids: which item a row is about, and what the crowd thinks of it.

The crowd's opinion of item j, as person i may know it, is what everybody else said,

    c_ij = log((k + m q) / (n - k + m (1 - q))) - log(q / (1 - q)),

where others gave n labels, k of them positive, q is the share that they say yes to at all, and m
pulls items with few labels to zero. What features predict of it is taken out,

    o_ij = c_ij - n / (n + m) z_j'g_i,

with g_i the ridge regression, over items, of the opinions without person i on the features z: no
label of a person takes part in any of their rows. The column is zero, and therefore neutral, for
items that nobody labelled, whose features keep all the weight that they deserve.
"""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact, lookup
from likeminds.losses.statistics import Statistics
from likeminds.mixed_model.item_posteriors import ItemPosteriors

# How many labels as expected pull every item's log-odds to zero: m above.
_PULL = 2.0
# The smallest share of labels that is expected of anybody to be positive, or to be negative.
_RARE = 1e-9
# Ridge of the regression of opinions on features of unit variance. It is small: what is left of
# features in the column is missing in their weights, which are all there is for new items.
_RIDGE = 1e-3


def labelled_items(annotations: Annotations, ranker: str) -> tuple[IdArray, Index]:
    """Return the ids of the items that somebody labelled, and each row's item among them."""
    if not annotations.has_items:
        raise ValueError(
            f"{ranker} knows items by their ids, and these rows do not say which item they are "
            "about. Pass Annotations with items=."
        )
    item, used = compact(annotations.item_codes, annotations.n_items)
    return annotations.item_ids[used], item


def places_of_items(ranker: Any, items: IdArray | None) -> Index:
    """Return each row's item among the ranker's ``item_ids_``; -1 for those new to it."""
    if items is None:
        raise ValueError(
            f"{type(ranker).__name__} knows items by their ids, and these rows do not say which "
            "item they are about. Pass Annotations with items=, or items= beside the features."
        )
    return lookup(items, ranker.item_ids_, "items")


def features_of_items(annotations: Annotations, item: Index, n_items: int) -> Float:
    """Return the features of each labelled item: of its rows the mean, where these differ."""
    if annotations.features_per == "item":
        used = np.unique(annotations.item_codes)
        return np.asarray(annotations.features[used], dtype=np.float64)
    total = np.zeros((n_items, annotations.n_features))
    np.add.at(total, item, annotations.X)
    return np.asarray(total / np.bincount(item, minlength=n_items)[:, None])


def sums_by(codes: Index, values: Float, n_codes: int) -> Float:
    """Return the sums of rows of ``values`` that have the same code, shape (n_codes, k)."""
    return np.column_stack([np.bincount(codes, column, n_codes) for column in values.T])


def with_column(annotations: Annotations, column: Float) -> Annotations:
    """Return annotations whose rows have one more feature, the last."""
    return annotations._with(
        features=np.column_stack([annotations.X, column]),
        feature_rows=np.arange(len(annotations)),
        feature_names=(*annotations.feature_names, "popularity"),
        features_per="row",
    )


@dataclass(frozen=True)
class ItemColumn:
    """The crowd's opinion of items beyond their features, as one more feature.

    Attributes
    ----------
    ids : array of shape (n_items,)
        The items that somebody labelled.
    opinion : array of shape (n_items,)
        What everybody thinks of them.
    statistics : Statistics
        Of the rows with the opinion of all others as their last feature.
    """

    ids: IdArray
    opinion: Float
    statistics: Statistics

    @classmethod
    def of_annotations(cls, annotations: Annotations, ranker: str, *, graded: bool) -> "ItemColumn":
        """Learn the opinions from everybody's labels."""
        ids, item = labelled_items(annotations, ranker)
        opinion, column = opinions(annotations, item, len(ids))
        wide = with_column(annotations, column)
        return cls(ids, opinion, Statistics.from_annotations(wide, graded=graded))

    @cached_property
    def features(self) -> Statistics:
        """The statistics without the column."""
        return self.statistics.without_last()

    def effects(self, weight: float) -> ItemPosteriors:
        """Return what items add to scores, given the weight of the column."""
        return replace(ItemPosteriors.unknown(self.ids, 0.0), effects=weight * self.opinion)


@dataclass(frozen=True)
class ItemPopularity:
    """What everybody says of items, wherever their labels are.

    Attributes
    ----------
    everybody : array of shape (n_items, 3)
        The sums over labels of `sums_of_items`.
    features : array of shape (n_items, d)
        What items are like.
    """

    everybody: Float
    features: Float

    @cached_property
    def _whole(self) -> tuple[Float, Float]:
        return _log_odds(self.everybody, self.everybody[:, 0])

    @cached_property
    def _regression(self) -> tuple[Float, Float]:
        return _regression(self.features, self._whole[1])

    def of_everybody(self) -> Float:
        """Return the opinion of each item."""
        (whole, trust), (rows, fit) = self._whole, self._regression
        return np.asarray(whole - trust * (rows @ (fit @ whole)))

    def of_others(self, annotations: Annotations, item: Index) -> Float:
        """Return, for each row of some people, the opinion of its item by all others."""
        everybody, (whole, _), (rows, fit) = self.everybody, self._whole, self._regression
        n_items = len(everybody)
        pairs, of_row = np.unique(annotations.user_codes * n_items + item, return_inverse=True)
        person, judged = np.divmod(pairs, n_items)
        others = everybody[judged] - sums_by(of_row, _said(annotations), len(pairs))
        without, theirs = _log_odds(others, everybody[judged, 0])
        # Without a person, the opinions of the items they labelled are others, and so is the fit.
        change = fit.T[judged] * (without - whole[judged])[:, None]
        weights = fit @ whole + sums_by(person, change, annotations.n_people)
        beyond = without - theirs * np.einsum("nd,nd->n", rows[judged], weights[person])
        return np.asarray(beyond[of_row])


def sums_of_items(annotations: Annotations, item: Index, n_items: int) -> Float:
    """Return the weight of each item's labels, of the positive ones, and what was expected of it.

    All rows of a person have to be there.
    """
    return sums_by(item, _said(annotations), n_items)


def opinions(annotations: Annotations, item: Index, n_items: int) -> tuple[Float, Float]:
    """Return the opinion of each item by everybody, and that of each row's by all others."""
    everybody = sums_of_items(annotations, item, n_items)
    found = ItemPopularity(everybody, features_of_items(annotations, item, n_items))
    return found.of_everybody(), found.of_others(annotations, item)


def _said(annotations: Annotations) -> Float:
    """Return each row's weight, that if it is positive, and that times its person's usual share."""
    weight = np.ones(len(annotations))
    if annotations.weights is not None:
        weight[:] = annotations.weights
    said = np.column_stack([weight, weight * annotations.labels])
    by_person = sums_by(annotations.user_codes, said, annotations.n_people)
    share = (1.0 + by_person[:, 1]) / (2.0 + by_person[:, 0])
    return np.column_stack([said, weight * share[annotations.user_codes]])


def _log_odds(said: Float, weight: Float) -> tuple[Float, Float]:
    """Return c and n / (n + m), given n, k and the expected k; zeros where there are no labels.

    ``weight`` is that of all labels of the item.
    """
    total, positive, expected = np.maximum(said, 0.0).T
    # What is left after a subtraction of weights may be rounding, and no label at all.
    some = total > 1e-9 * weight
    usual = np.where(some, expected, 0.5) / np.where(some, total, 1.0)
    usual = np.clip(usual, _RARE, 1.0 - _RARE)
    positive = np.minimum(positive, total)
    above = (positive + _PULL * usual) / (total - positive + _PULL * (1.0 - usual))
    odds = np.where(some, np.log(above) - np.log(usual / (1.0 - usual)), 0.0)
    return odds, np.where(some, total / (total + _PULL), 0.0)


def _regression(features: Float, trust: Float) -> tuple[Float, Float]:
    """Return rows z, (n_items, d + 1), and the matrix that turns opinions into weights of them."""
    total = trust.sum()
    origin = trust @ features / total
    spread = np.sqrt(trust @ (features - origin) ** 2 / total)
    centred = (features - origin) / np.where(spread > 1e-12 * (1.0 + abs(origin)), spread, 1.0)
    matrix = centred.T @ (trust[:, None] * centred) / total + _RIDGE * np.eye(len(origin))
    slopes = np.linalg.solve(matrix, centred.T / total)
    # Features are centred, so that the intercept is found by itself.
    everywhere = np.ones(len(centred))
    return np.column_stack([everywhere, centred]), np.vstack([everywhere / total, slopes])
