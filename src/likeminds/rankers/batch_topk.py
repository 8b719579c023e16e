"""The best items for each of many people: products of blocks, and few numbers looked at twice.

Products are single precision, which says who may be among the best; who is, double precision says
of those few. So each score costs half of what it would, and the answer is the exact one.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import ThreadExecutor
from likeminds._util.per_user_arrays import times
from likeminds.rankers.item_table import ItemsToRank, ItemTableView, frames_of
from likeminds.rankers.ranking import Ranking, expected_grades, repeated

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

# What the scores of a block of people take; each thread has one.
_BLOCK_BYTES = 1 << 25
# Who may be among the best, at most, for each place among them; and for all.
_EACH, _MORE = 4, 64
# For so many people at a time, grades are predicted.
_GRADED_AT_ONCE = 256


def rank_all(
    ranker: "Ranker", items: ItemsToRank | None = None, *, k: int = 10
) -> Iterator[Ranking]:
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
        One for each person, in the order of ``users_``; the identity as `rank` returns.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> ranker = ThreeLevelRanker().fit(load_electricity())
    >>> offers = {"cheap": [7.0, 1, 1, 0, 0, 0], "dear": [9.0, 1, 1, 0, 0, 0]}
    >>> next(ranker.rank_all(offers, k=1))
    Ranking for household-001: cheap
    """
    shown = ItemTableView.of(ranker, items)
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    if not len(shown):
        raise ValueError("There are no items to rank.")
    people = ranker.people_.tolist()
    if not ranker._best_model.scores_by_weights:
        yield from (ranker.rank(person, items, k=k) for person in people)
        return
    rows = np.column_stack([shown.rows, shown.effects])
    found = _best_of_all(partial(_weights, ranker), len(people), rows, k)
    frames, names = frames_of(ranker), shown.names
    some = zip(people, found, strict=True)
    while block := list(islice(some, _GRADED_AT_ONCE)):
        best = np.concatenate([places for _, (places, _) in block])
        owners = np.concatenate([repeated(person, len(places)) for person, (places, _) in block])
        grades = expected_grades(ranker, shown.features[best], owners, shown.ids[best])
        for n, (person, (places, scores)) in enumerate(block):
            own = slice(n * len(places), (n + 1) * len(places))
            expected = None if grades is None else grades[own]
            yield Ranking(person, shown.ids[places], scores, frames, expected, names)


def _weights(ranker: "Ranker", some: slice) -> Float:
    """Return some people's weights of the items' rows; nobody else's are read."""
    weights = ranker.coef_[some]
    learned = ranker.learned_items()
    if learned is not None and learned.n_factors:
        weights = np.hstack([weights, ranker.factor_weights_[some]])
    return np.column_stack([weights, np.ones(len(weights))])


def best_items(weights: Float, rows: Float, k: int) -> Iterator[tuple[Index, Float]]:
    """Yield, for each person's weights, the places of the k best rows, in order, and their scores.

    Equal ones are in the order of the rows.

    Examples
    --------
    >>> weights, rows = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> [(best.tolist(), scores.tolist()) for best, scores in best_items(weights, rows, 1)]
    [([0], [2.0]), ([1], [2.0])]
    """
    return _best_of_all(weights.__getitem__, len(weights), rows, k)


def _best_of_all(
    weights_of: Callable[[slice], Float], n_users: int, rows: Float, k: int
) -> Iterator[tuple[Index, Float]]:
    def best(some: slice, table: _ItemTable, own: None) -> tuple[Index, Float]:  # noqa: ARG001
        return table.best(weights_of(some), min(k, len(rows)))

    size = max(1, _BLOCK_BYTES // (4 * len(rows)))
    blocks = [slice(start, start + size) for start in range(0, n_users, size)]
    for places, scores in ThreadExecutor(blocks).map(best, _ItemTable.of(rows)):
        yield from zip(places, scores, strict=True)


@dataclass(frozen=True)
class _ItemTable:
    """Items as rows, and as columns of single precision in units of the longest row."""

    rows: Float
    columns: NDArray[np.float32]

    @classmethod
    def of(cls, rows: Float) -> "_ItemTable":
        unit = np.sqrt(np.einsum("nd,nd->n", rows, rows).max(initial=0.0)) or 1.0
        return cls(rows, np.ascontiguousarray((rows / unit).T, dtype=np.float32))

    def best(self, weights: Float, k: int) -> tuple[Index, Float]:
        """Return the places of the k best of a block of people, in order, and their scores."""
        lengths = np.sqrt(np.einsum("bd,bd->b", weights, weights))
        units = np.where(lengths > 0, lengths, 1.0)[:, None]
        scores = (weights / units).astype(np.float32) @ self.columns
        # Rounding of both factors, of products and of sums, with some room.
        doubt = 0.6 * (weights.shape[1] + 4) * float(np.finfo(np.float32).eps)
        near = may_be_best(scores, 2.0 * doubt, k)
        if near is None:  # many are as good as equal
            exact = weights @ self.rows.T
            places = best_of_each(exact, k)
            return places, np.take_along_axis(exact, places, axis=1)
        exact = times(self.rows[near], weights)
        first = _first(exact, k)
        return np.take_along_axis(near, first, axis=1), np.take_along_axis(exact, first, axis=1)


def may_be_best(scores: NDArray[np.float32], doubt: float, k: int) -> Index | None:
    """Return the places, in their order, of those who may be among the k best of each row.

    These are all whose score is not below that of the k-th by more than ``doubt``; a few others
    may be with them. None, if there are too many of them.

    The k best of the maxima of chunks belong to k numbers: the k-th best is not below the least
    of them. So all numbers are looked at once, for maxima of chunks, and few a second time.
    """
    n_rows, n_items = scores.shape
    most = min(_EACH * k + _MORE, n_items)
    width = max(1, int(np.sqrt(n_items / most)))
    n_chunks = n_items // width
    if n_chunks <= most:
        return None
    # Numbers that are n_chunks apart make a chunk, so that maxima are taken of whole vectors.
    whole = scores[:, : n_chunks * width].reshape(n_rows, width, n_chunks)
    highest = whole.max(axis=1)
    bar = np.partition(highest, n_chunks - k, axis=1)[:, n_chunks - k] - np.float32(doubt)
    chunks = _above(highest, bar, most)
    if chunks is None:
        return None
    starts = np.arange(0, n_chunks * width, n_chunks)
    near = (starts[:, None] + chunks[:, None, :]).reshape(n_rows, -1)
    rest = np.broadcast_to(np.arange(n_chunks * width, n_items), (n_rows, n_items % n_chunks))
    near = np.concatenate([near, rest], axis=1)
    able = _above(np.take_along_axis(scores, near, axis=1), bar, most)
    return None if able is None else np.sort(np.take_along_axis(near, able, axis=1), axis=1)


def _above(values: NDArray[np.float32], bar: NDArray[np.float32], most: int) -> Index | None:
    """Return the places of those above a bar, as many in each row; None if one has too many."""
    counts = (values >= bar[:, None]).sum(axis=1)
    n = int(counts.max(initial=0))
    if n > most:
        return None
    return np.argpartition(values, values.shape[1] - n, axis=1)[:, values.shape[1] - n :]


def best_of_each(scores: Float, k: int) -> Index:
    """Return the places of the k best of each row, in order; equal ones as they came.

    Who is among the k best of a row is in one of the k chunks with the best maxima: each of
    the others has k numbers before it.

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
        return _first(scores, k)
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
