"""Popularity: the share of positive labels that others gave to the same item."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from numbers import Integral
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import StrOptions

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact, lookup
from likeminds.losses.statistics import Statistics
from likeminds.rankers.ranker import Ranker


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False, kw_only=True)
class Popularity(Ranker):
    """An item's score is the share of positive labels that it got from other users.

    A user's own labels never count in their own scores, so training rows are scored like new
    ones. Items are identified by their ids or, in plain arrays, by their features. Items without
    labels of other users get the share of positive labels over all items.

    Parameters
    ----------
    unknown : {"error", "consensus"}, default="error"
        Users and items not seen in training raise an error, or get the share of positive labels
        of all users, and over all items.
    user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    item_ids_ : array of shape (n_items,)
        The labelled items, if rows had ids of items.
    items_ : array of shape (n_items, n_features)
        The features of distinct items, if rows had no ids.
    item_counts_ : array of shape (n_items, 2)
        How many labels (or how much weight) an item got, and how many positive ones.
    own_pairs_ : array of shape (n_pairs,)
        The labelled pairs: position of the user times number of items, plus that of the item.
    own_counts_ : array of shape (n_pairs, 2)
        Labels, and positive labels, of each pair.
    overall_share_ : float
        The share of positive labels over all items.
    users_, classes_
        As in `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import Annotations
    >>> crowd = Annotations(
    ...     users=["ann", "bob", "zoe", "ann"],
    ...     items=["cat", "cat", "cat", "dog"],
    ...     labels=[1, 1, 0, 0],
    ...     features={"cat": [1.0], "dog": [2.0]},
    ... )
    >>> Popularity().fit(crowd).decision_function(crowd)
    array([0.5, 0.5, 1. , 0.5])
    """

    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _needs_no_features = True
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "verbose": ["boolean"],
    }

    @property
    def scores_by_weights(self) -> bool:
        """False: scores are shares of other users' labels."""
        return False

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of the training items, if rows had ids."""
        return self.item_ids_

    def _item_ids(
        self, X: Any, items: Iterable[Hashable] | None, rows: FloatArray
    ) -> IdArray | None:
        """Return the id of each row's item; refuse unknown items, by their ids or features."""
        if self.scorable_ids() is not None:
            return super()._item_ids(X, items, rows)
        new = np.flatnonzero(self._places_of_rows(rows) < 0)
        if self.unknown == "error" and len(new):
            raise ValueError(
                f"Unknown item(s): no training item has the features of row(s) {listing(new)}. "
                'Leave them out, or set unknown="consensus", which scores them as average.'
            )
        return None

    def _places_of_rows(self, rows: FloatArray) -> Index:
        """Return the positions of items by their features; -1 for unknown ones."""
        position = {row: item for item, row in enumerate(_as_keys(self.items_))}
        return np.array([position.get(row, -1) for row in _as_keys(rows)], dtype=np.intp)

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        """Return the share of positive labels that each row's item got from other users."""
        by_id = self.scorable_ids() is not None
        item = places_of_items(self, items) if by_id else self._places_of_rows(rows)
        counts = np.where((item >= 0)[:, None], self.item_counts_[item], 0.0)
        counts -= self._own(users, item)
        total, positive = counts.T
        # After the subtraction of weights, a small remainder is rounding.
        others = total > 1e-9 * self.item_counts_[item, 0]
        return np.where(others, positive / np.where(others, total, 1.0), self.overall_share_)

    def _own(self, users: Index, item: Index) -> Float:
        """Return the labels, and the positive ones, that users gave to items themselves."""
        pair = np.where((users >= 0) & (item >= 0), users * len(self.item_counts_) + item, -1)
        place = np.searchsorted(self.own_pairs_, pair)
        place[place == len(self.own_pairs_)] = 0
        known = self.own_pairs_[place] == pair
        return np.where(known[:, None], self.own_counts_[place], 0.0)

    def _fit_annotations(self, annotations: Annotations) -> None:
        weight = np.ones(len(annotations))
        if annotations.weights is not None:
            weight[:] = annotations.weights
        counts = np.column_stack([weight, weight * annotations.labels])
        for name in ("items_", "item_ids_"):  # a fit starts afresh
            self.__dict__.pop(name, None)
        items, of_row = _items(annotations)
        known_by, n_items = "ids" if annotations.has_items else "features", len(items)
        setattr(self, "item_ids_" if annotations.has_items else "items_", items)
        pairs = annotations.user_codes * n_items + of_row
        self.own_pairs_, own = np.unique(pairs, return_inverse=True)
        if annotations.n_users > 1 and len(self.own_pairs_) == n_items:
            raise ValueError(
                f"None of the {n_items} items is shared by two people (items are known "
                f"by their {known_by}), so there are no labels of others to predict from. "
                "Popularity needs items that several people labelled."
            )
        self.item_counts_ = sums_by(of_row, counts, n_items)
        self.own_counts_ = sums_by(own, counts, len(self.own_pairs_))
        self.overall_share_ = float(counts[:, 1].sum() / counts[:, 0].sum())
        self.users_ = annotations.user_ids

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return []  # nothing to tune


def labelled_items(annotations: Annotations, ranker: str) -> tuple[IdArray, Index]:
    """Return the ids of labelled items, and each row's position among them."""
    if not annotations.has_items:
        raise ValueError(
            f"{ranker} knows items by their ids, and these rows do not say which item they are "
            "about. Pass Annotations with items=."
        )
    item, used = compact(annotations.item_codes, annotations.n_items)
    return annotations.item_ids[used], item


def places_of_items(ranker: Ranker, items: IdArray | None) -> Index:
    """Return each row's position among the ranker's ``item_ids_``; -1 for new items."""
    if items is None or ranker.item_ids_ is None:
        raise ValueError(
            f"{type(ranker).__name__} knows items by their ids, and these rows do not say which "
            "item they are about. Pass Annotations with items=, or items= beside the features."
        )
    return lookup(items, ranker.item_ids_, "items")


def features_of_items(annotations: Annotations, item: Index, n_items: int) -> Float:
    """Return the features of each labelled item: the mean of its rows."""
    if annotations.features_per == "item":
        used = np.unique(annotations.item_codes)
        return np.asarray(annotations.features[used], dtype=np.float64)
    total = np.zeros((n_items, annotations.n_features))
    np.add.at(total, item, annotations.X)
    return np.asarray(total / np.bincount(item, minlength=n_items)[:, None])


def sums_by(codes: Index, values: Float, n_codes: int) -> Float:
    """Return the sums of rows of ``values`` that have the same code, shape (n_codes, k)."""
    return np.column_stack([np.bincount(codes, column, n_codes) for column in values.T])


def has_shared_items(annotations: Annotations) -> bool:
    """Tell whether two users labelled the same item (by its id, or else its features)."""
    items, of_row = _items(annotations)
    return len(np.unique(annotations.user_codes * len(items) + of_row)) > len(items)


def _items(annotations: Annotations) -> tuple[IdArray, Index]:
    """Return the labelled items, by id or else features, and each row's position among them."""
    if annotations.has_items:
        return labelled_items(annotations, "Popularity")
    place, used = compact(annotations.feature_rows, len(annotations.features))
    table = np.asarray(annotations.features[used], dtype=np.float64)
    items, code = np.unique(table, axis=0, return_inverse=True)
    return items, code.ravel()[place]


def _as_keys(rows: FloatArray) -> list[bytes]:
    # Adding zero turns -0.0 into 0.0: equal numbers must have equal bytes.
    return [row.tobytes() for row in np.asarray(rows, dtype=np.float64) + 0.0]
