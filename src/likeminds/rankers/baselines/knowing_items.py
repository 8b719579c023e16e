"""Items known by their ids: which item a row is about, and what its features are."""

from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np

from likeminds._support.arrays import Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact, lookup


def labelled_items(annotations: Annotations, ranker: str) -> tuple[IdArray, Index]:
    """Return the ids of the items that somebody labelled, and each row's item among them."""
    if not annotations.has_items:
        raise ValueError(
            f"{ranker} knows items by their ids, and these rows do not say which item they are "
            "about. Pass Annotations with items=."
        )
    item, used = compact(annotations.item_codes, annotations.n_items)
    return annotations.item_ids[used], item


def items_of_rows(ranker: Any, X: Any, items: Iterable[Hashable] | None, n_rows: int) -> Index:
    """Return each row's item among the ranker's ``item_ids_``; -1 for those new to it."""
    if isinstance(X, Annotations):
        if items is not None:
            raise ValueError("Annotations carry their own items: leave out items.")
        items = X.items if X.has_items else None
    if items is None:
        raise ValueError(
            f"{type(ranker).__name__} knows items by their ids, and these rows do not say which "
            "item they are about. Pass Annotations with items=, or items= beside the features."
        )
    item = lookup(items, ranker.item_ids_, "items")
    if len(item) != n_rows:
        raise ValueError(f"items has {len(item)} entries, but X has {n_rows} rows.")
    return item


def features_of_items(annotations: Annotations, item: Index, n_items: int) -> Float:
    """Return the features of each labelled item: of its rows the mean, where these differ."""
    if annotations.features_per == "item":
        used = np.unique(annotations.item_codes)
        return np.asarray(annotations.features[used], dtype=np.float64)
    total = np.zeros((n_items, annotations.n_features))
    np.add.at(total, item, annotations.X)
    return np.asarray(total / np.bincount(item, minlength=n_items)[:, None])
