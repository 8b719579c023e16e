"""The best items for one user, or for each of many users.

For many users, single-precision scores select candidates, which double-precision scores then rank.
The result is exact, at half the cost.
"""

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa
from likeminds._util.map_reduce import ThreadExecutor
from likeminds._util.per_user_arrays import times
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_arrow
from likeminds.data.identifiers import encode, lookup
from likeminds.rankers.item_table import (
    ItemsToRank,
    ItemTableView,
    find_user,
    frames_of,
    gives_grades,
    user_at,
    user_weights,
)

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

# Bytes of the scores of a block of users; each thread has one block.
_BLOCK_BYTES = 1 << 25
# The most candidates: per rank, plus a constant.
_EACH, _MORE = 4, 64
# Users per block of predicted grades.
_GRADED_AT_ONCE = 256


@dataclass(frozen=True, eq=False)
class Ranking(ResultTable):
    """Items for one user, the best first.

    Attributes
    ----------
    user : hashable or None
        The user, or None for the consensus.
    items : array of shape (n_items,)
        The ids of items, best first.
    scores : array of shape (n_items,)
        Scores, in arbitrary units; for the consensus, lower bounds (see `rank`).
    expected : array of shape (n_items,), optional
        The expected grade of each item, for models of grades (for words, the nearest word).
    names : mapping
        Names of items by their ids, if the model has names.
    frames : str
        The kind of table that `table` returns.
    """

    user: Hashable | None
    items: IdArray
    scores: Float
    frames: Frames = "pyarrow"
    expected: NDArray[Any] | None = None
    names: Mapping[Any, str] = field(default_factory=dict)

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        """Iterate over pairs of item and score."""
        return iter(list(zip(self.items.tolist(), self.scores.tolist(), strict=True)))

    def _columns(self) -> dict[str, NDArray[Any]]:
        columns = {"rank": np.arange(1, len(self) + 1), "item": self.items}
        if self.names:
            names = [self.names.get(item) for item in self.items.tolist()]
            columns["name"] = np.array(names, dtype=object)
        columns["score"] = self.scores
        return columns if self.expected is None else columns | {"expected": self.expected}

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per item: rank, item, name, score and expected grade."""
        columns = self._columns()
        values = (column.tolist() for column in columns.values())
        return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow with the columns of `rows`."""
        return pa.table(self._columns() | {"item": as_arrow(self.items.tolist())})

    def __repr__(self) -> str:
        called = [self.names.get(item, item) for item in self.items.tolist()]
        return f"{self._headline()}: {listing(called)}"

    def _headline(self) -> str:
        return f"Ranking for {'everyone' if self.user is None else self.user}"


def rank(
    ranker: "Ranker",
    user: Hashable | None = None,
    items: ItemsToRank | None = None,
    *,
    k: int | None = None,
    unseen: bool = False,
) -> Ranking:
    """Rank items for a user, or for all users together.

    Without a user, items are sorted by the lower 95 % bound of their consensus scores, so items
    with few labels do not come first by chance. `decision_function` returns expected scores.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    user : hashable, optional
        The user; by default the consensus.
    items : mapping from item to features, or Annotations, optional
        The items; by default the training items, if the model was saved with them.
    k : int, optional
        The number of best items to return; all by default.
    unseen : bool
        Whether to leave out items that the user labelled in training.

    Returns
    -------
    Ranking

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
    >>> offers = {"cheap": [7.0, 1, 1, 0, 0, 0], "dear": [9.0, 1, 1, 0, 0, 0]}
    >>> ranker.rank("household-001", offers)
    Ranking for household-001: cheap, dear
    """
    shown = ItemTableView.of(ranker, items)
    ids, features = shown.ids, shown.features
    if user is not None:
        user = user_at(ranker, find_user(ranker, user))
    if unseen:
        fresh = ~are_labelled_by(ranker, user, ids)
        ids, features = ids[fresh], features[fresh]
    frames, names = frames_of(ranker), shown.names
    if not len(ids):
        return Ranking(user, ids, np.empty(0), frames, names=names)
    owners = None if user is None else repeated(user, len(ids))
    if user is None:
        scores = lower_bounds(ranker, features, ids)
    else:
        scores = ranker.decision_function(features, owners, items=ids)
    best = best_of(scores, len(ids) if k is None else k)
    whose = None if owners is None else owners[best]
    expected = expected_grades(ranker, features[best], whose, ids[best])
    return Ranking(user, ids[best], scores[best], frames, expected, names)


def expected_grades(
    ranker: "Ranker", features: FloatArray, users: IdArray | None, ids: IdArray
) -> NDArray[Any] | None:
    """Return the expected grade of each row, or the nearest word; None without grades."""
    if not gives_grades(ranker):
        return None
    return np.asarray(ranker._best_model.predict_grades(features, users, ids).typical)


def repeated(user: Hashable, n: int) -> IdArray:
    """Return an array with an id of any type, n times."""
    users = np.empty(n, dtype=object)
    users[:] = [user] * n
    return users


def lower_bounds(ranker: "Ranker", features: FloatArray, ids: IdArray) -> Float:
    """Return lower 95 % bounds of the consensus scores of items."""
    scores = np.asarray(ranker.decision_function(features, items=ids))
    known = ranker._best_model.item_posteriors()
    return scores if known is None else known.of(ids).lower_bound(scores)


def are_labelled_by(ranker: "Ranker", user: Hashable | None, ids: IdArray) -> Bool:
    """Return whether a user labelled each item in training."""
    annotations = ranker.training_annotations_
    if user is None or annotations is None:
        raise ValueError(
            "unseen=True needs a user, and a model saved with its training labels (with_data=True)."
        )
    return among_labels_of(annotations, user, ids)


def among_labels_of(annotations: Annotations, user: Hashable, ids: IdArray) -> Bool:
    """Return whether a user labelled each item."""
    if user not in annotations.user_ids.tolist():
        return np.zeros(len(ids), dtype=np.bool_)
    labelled = encode(annotations.of_user(user).items, "items")[1]
    return np.asarray(lookup(ids, labelled, "items") >= 0)


def best_of(scores: Float, k: int) -> Index:
    """Return the positions of the k best scores, in order; ties keep their order."""
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    if k < len(scores):
        bar = np.partition(scores, len(scores) - k)[len(scores) - k]
        able = np.flatnonzero(scores >= bar)
        return able[np.argsort(-scores[able], kind="stable")][:k]
    return np.argsort(-scores, kind="stable")


def rank_all(
    ranker: "Ranker", items: ItemsToRank | None = None, *, k: int = 10
) -> Iterator[Ranking]:
    """Rank items for each user, in blocks of users.

    Parameters
    ----------
    ranker : Ranker
        A fitted ranker.
    items : mapping from item to features, or Annotations, optional
        The items; by default the training items, if the model was saved with them.
    k : int, default=10
        The number of best items per user.

    Yields
    ------
    Ranking
        One per user, in the order of ``users_``.

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
        raise ValueError("items is empty. Pass at least one item to rank.")
    users = ranker.users_.tolist()
    if not ranker._best_model.scores_by_weights:
        yield from (ranker.rank(person, items, k=k) for person in users)
        return

    def weights_of(some: slice) -> Float:
        weights = user_weights(ranker, some)
        return np.column_stack([weights, np.ones(len(weights))])

    rows = np.column_stack([shown.rows, shown.effects])
    found = best_items(weights_of, len(users), rows, k)
    frames, names = frames_of(ranker), shown.names
    some = zip(users, found, strict=True)
    while block := list(islice(some, _GRADED_AT_ONCE)):
        best = np.concatenate([places for _, (places, _) in block])
        owners = np.concatenate([repeated(person, len(places)) for person, (places, _) in block])
        grades = expected_grades(ranker, shown.features[best], owners, shown.ids[best])
        for n, (person, (places, scores)) in enumerate(block):
            own = slice(n * len(places), (n + 1) * len(places))
            expected = None if grades is None else grades[own]
            yield Ranking(person, shown.ids[places], scores, frames, expected, names)


def best_items(
    weights_of: Callable[[slice], Float], n_users: int, rows: Float, k: int
) -> Iterator[tuple[Index, Float]]:
    """Yield the positions of each user's k best rows in order, and their scores.

    Ties are in the order of the rows.

    Examples
    --------
    >>> weights, rows = np.array([[1.0, 0.0], [0.0, 1.0]]), np.array([[2.0, 1.0], [1.0, 2.0]])
    >>> [best.tolist() for best, scores in best_items(weights.__getitem__, 2, rows, 1)]
    [[0], [1]]
    """

    def best(some: slice, table: _ItemTable, own: None) -> tuple[Index, Float]:  # noqa: ARG001
        return table.best(weights_of(some), min(k, len(rows)))

    size = max(1, _BLOCK_BYTES // (4 * len(rows)))
    blocks = [slice(start, start + size) for start in range(0, n_users, size)]
    for places, scores in ThreadExecutor(blocks).map(best, _ItemTable.of(rows)):
        yield from zip(places, scores, strict=True)


@dataclass(frozen=True)
class _ItemTable:
    """Items as rows, and as single-precision columns in units of the longest row."""

    rows: Float
    columns: NDArray[np.float32]

    @classmethod
    def of(cls, rows: Float) -> "_ItemTable":
        unit = np.sqrt(np.einsum("nd,nd->n", rows, rows).max(initial=0.0)) or 1.0
        return cls(rows, np.ascontiguousarray((rows / unit).T, dtype=np.float32))

    def best(self, weights: Float, k: int) -> tuple[Index, Float]:
        """Return positions and scores of the k best items for a block of users, in order."""
        lengths = np.sqrt(np.einsum("bd,bd->b", weights, weights))
        units = np.where(lengths > 0, lengths, 1.0)[:, None]
        scores = (weights / units).astype(np.float32) @ self.columns
        # A bound of rounding errors of factors, products and sums.
        error = 0.6 * (weights.shape[1] + 4) * float(np.finfo(np.float32).eps)
        near = best_candidates(scores, 2.0 * error, k)
        if near is None:  # many are nearly equal
            exact = weights @ self.rows.T
            places = np.stack([best_of(row, k) for row in exact])
            return places, np.take_along_axis(exact, places, axis=1)
        exact = times(self.rows[near], weights)
        first = np.argsort(-exact, axis=1, kind="stable")[:, :k]
        return np.take_along_axis(near, first, axis=1), np.take_along_axis(exact, first, axis=1)


def best_candidates(scores: NDArray[np.float32], error: float, k: int) -> Index | None:
    """Return the positions of candidates for the k best of each row; None if too many.

    Candidates are, in order, all scores at most ``error`` below the k-th best, and a few others.
    The k-th best score is at least the k-th best maximum of chunks, so most chunks are read only
    once.
    """
    n_rows, n_items = scores.shape
    most = min(_EACH * k + _MORE, n_items)
    width = max(1, int(np.sqrt(n_items / most)))
    n_chunks = n_items // width
    if n_chunks <= most:
        return None
    # A chunk has every n_chunks-th number, so maxima are computed over whole vectors.
    whole = scores[:, : n_chunks * width].reshape(n_rows, width, n_chunks)
    highest = whole.max(axis=1)
    bar = np.partition(highest, n_chunks - k, axis=1)[:, n_chunks - k] - np.float32(error)
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
    """Return positions of scores above a bar, equally many per row; None if too many."""
    counts = (values >= bar[:, None]).sum(axis=1)
    n = int(counts.max(initial=0))
    if n > most:
        return None
    return np.argpartition(values, values.shape[1] - n, axis=1)[:, values.shape[1] - n :]
