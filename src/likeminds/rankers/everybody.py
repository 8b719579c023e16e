"""The best items for each of many people: products of blocks, and few numbers looked at twice."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from likeminds._support.arrays import Float, Index
from likeminds.rankers.ranking import Ranking
from likeminds.rankers.shown import ShownItems

# What the scores of a block of people take.
_BLOCK_BYTES = 1 << 26


def rank_everybody(ranker: Any, items: Any = None, *, k: int = 10) -> Iterator[Ranking]:
    """Rank items for everybody, a block of people at a time.

    Parameters
    ----------
    ranker : Ranker
        A fitted one.
    items : mapping from item to features, or Annotations, optional
        What is ranked; without them, the items it was fitted to, where it has kept them.
    k : int, default=10
        How many of the best of each person's.

    Yields
    ------
    Ranking
        One for each person, in the order of ``users_``; the same as `rank` returns.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> offers = {"cheap": [7.0, 1, 1, 0, 0, 0], "dear": [9.0, 1, 1, 0, 0, 0]}
    >>> next(ranker.rank_everybody(offers, k=1))
    Ranking for household-001: cheap
    """
    shown = ShownItems.of(ranker, items)
    ids, features = shown.ids, shown.features
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    if not len(ids):
        raise ValueError("There are no items to rank.")
    rows, weights = np.asarray(features, dtype=np.float64), ranker.coef_
    known = ranker.learned_items()
    if known is not None:
        of_items = known.of(ids)
        one = np.ones((len(weights), 1))
        rows = np.hstack([rows, of_items.effects[:, None]])
        weights = np.hstack([weights, one])
        if known.n_factors:
            rows = np.hstack([rows, of_items.factors])
            weights = np.hstack([weights, ranker.factor_weights_])
    people = ranker.people_.tolist()
    columns = np.ascontiguousarray(rows.T)
    size = max(1, _BLOCK_BYTES // (8 * len(ids)))
    for start in range(0, len(people), size):
        scores = weights[start : start + size] @ columns
        places = best_of_each(scores, k)
        for person, best, mine in zip(people[start : start + size], places, scores, strict=True):
            yield Ranking(person, ids[best], mine[best])


def best_of_each(scores: Float, k: int) -> Index:
    """Return the places of the k best of each row, in order; equal ones as they came.

    Who is among the k best of a row is in one of the k chunks with the best maxima: each of
    the others has k numbers before it. So all numbers are looked at once, for maxima of
    chunks, and few a second time.

    Examples
    --------
    >>> best_of_each(np.array([[3.0, 1.0, 3.0, 7.0], [0.0, 0.0, 0.0, 0.0]]), 2)
    array([[3, 0],
           [0, 1]])
    """
    n_rows, n_items = scores.shape
    k = min(k, n_items)
    width = max(1, int(np.sqrt(n_items / k)))
    n_chunks = n_items // width
    if n_chunks <= k:
        return np.argsort(-scores, axis=1, kind="stable")[:, :k]
    whole = scores[:, : n_chunks * width].reshape(n_rows, n_chunks, width)
    chunks = np.sort(_first(whole.max(axis=2), k), axis=1)
    near = (chunks[:, :, None] * width + np.arange(width)).reshape(n_rows, -1)
    rest = np.broadcast_to(np.arange(n_chunks * width, n_items), (n_rows, n_items % width))
    near = np.concatenate([near, rest], axis=1)
    found = _first(np.take_along_axis(scores, near, axis=1), k)
    return np.take_along_axis(near, found, axis=1)


def _first(values: Float, k: int) -> Index:
    """Return the places of the k largest of each row, in order."""
    return np.argsort(-values, axis=1, kind="stable")[:, :k]
