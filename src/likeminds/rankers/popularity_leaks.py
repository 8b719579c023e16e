"""A column of popularity that was computed from the labels themselves, found before it flatters.

The share s_j of positive labels of an item is what all see in it plus chance. What is known about
an item beforehand can follow the first part alone: its squared correlation with s_j is at most the
reliability r of s_j, which two halves of the labels tell. A column that follows chance, too, was
computed from these labels, and every label takes part in its own prediction.
"""

import warnings

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.checks import listing
from likeminds.data.annotations import Annotations

# Items with two labels or more that it takes to judge a column, and at most so many of them.
_FEWEST, _MOST = 50, 20_000
# Where chance has a smaller part in the shares than this, the column does no harm.
_LEAST_CHANCE = 0.1
# How much of chance a column must follow.
_FOLLOWED = 0.5


def warn_of_popularity(said: Annotations, stacklevel: int = 5) -> None:
    """Warn of features that are the share of positive labels of each item, or much like it."""
    found = popularity_columns(said)
    if found:
        warnings.warn(
            f"{listing(found)}: computed from these labels? It follows how many people said yes to "
            "each item more closely than anything known beforehand could, so that every label "
            "predicts itself and held-out scores flatter. Leave it out: HierarchicalRanker learns "
            "what all see in an item by itself (docs/shared-items.md).",
            UserWarning,
            stacklevel=stacklevel,
        )


def popularity_columns(said: Annotations) -> list[str]:
    """Return the names of features that follow the share of positive labels, chance included.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> item = rng.integers(100, size=600)
    >>> yes = rng.random(600) < 0.5
    >>> share = np.bincount(item, yes, 100) / np.maximum(np.bincount(item, minlength=100), 1)
    >>> X = np.column_stack([share, rng.normal(size=100)])
    >>> said = Annotations(rng.integers(30, size=600), item, yes, X, features_per="item")
    >>> popularity_columns(said)
    ['x0']
    """
    if not said.has_items or not said.n_features:
        return []
    rng = np.random.default_rng(0)
    count = np.bincount(said.item_codes, minlength=said.n_items)
    items = np.flatnonzero(count >= 2)
    if len(items) > _MOST:
        items = np.sort(rng.choice(items, _MOST, replace=False))
    if len(items) < _FEWEST:
        return []
    share = np.bincount(said.item_codes, said.labels, said.n_items)[items] / count[items]
    reliable = _reliability(said, items, rng)
    if reliable > 1.0 - _LEAST_CHANCE or not share.std():
        return []
    features, constant = _features(said, items)
    explained = _correlations(features, share) ** 2
    suspect = constant & (explained > reliable + _FOLLOWED * (1.0 - reliable))
    return [said.feature_names[j] for j in np.flatnonzero(suspect).tolist()]


def _reliability(said: Annotations, items: Index, rng: np.random.Generator) -> float:
    """Return the reliability of shares: the correlation of two halves, after Spearman and Brown."""
    order = rng.permutation(len(said))
    codes, labels = said.item_codes[order], said.labels[order]
    by_item = np.argsort(codes, kind="stable")
    starts = np.concatenate([[0], np.cumsum(np.bincount(codes, minlength=said.n_items))])
    place = np.arange(len(codes)) - starts[codes[by_item]]
    shares = []
    for half in (0, 1):
        mine = by_item[place % 2 == half]
        total = np.bincount(codes[mine], minlength=said.n_items)[items]
        shares.append(np.bincount(codes[mine], labels[mine], said.n_items)[items] / total)
    if not shares[0].std() or not shares[1].std():
        return 0.0
    halves = max(float(np.corrcoef(shares[0], shares[1])[0, 1]), 0.0)
    return 2.0 * halves / (1.0 + halves)


def _features(said: Annotations, items: Index) -> tuple[Float, Bool]:
    """Return the features of items, and which are the same in all rows of an item.

    What leaves out each person's own label differs between the rows of an item.
    """
    if said.features_per == "item":
        features = np.asarray(said.features[items], dtype=np.float64)
        return features, np.ones(said.n_features, dtype=np.bool_)
    _, first = np.unique(said.item_codes, return_index=True)
    row_of = np.zeros(said.n_items, dtype=np.intp)
    row_of[said.item_codes[first]] = said.feature_rows[first]
    same = said.features[said.feature_rows] == said.features[row_of[said.item_codes]]
    features = np.asarray(said.features[row_of[items]], dtype=np.float64)
    return features, np.asarray(same.all(axis=0))


def _correlations(features: Float, share: Float) -> Float:
    moved = features - features.mean(axis=0)
    apart = share - share.mean()
    size = np.sqrt((moved**2).sum(axis=0) * (apart @ apart))
    return np.asarray(apart @ moved / np.where(size > 0, size, np.inf))
