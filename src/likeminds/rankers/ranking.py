"""The best items for a person, as a short list."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.column_roles import as_arrow
from likeminds.data.identifiers import as_id_array, lookup
from likeminds.rankers.item_table import (
    ItemsToRank,
    ItemTableView,
    frames_of,
    gives_grades,
    place_of_user,
    user_at,
)

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


@dataclass(frozen=True, eq=False)
class Ranking(ResultTable):
    """Items for one person, the best first.

    Attributes
    ----------
    user : hashable or None
        For whom; None is the consensus.
    items : array of shape (n_items,)
        Ids, the best first.
    scores : array of shape (n_items,)
        Their scores, which order them and have no meaning beyond; for the consensus, the lower
        bounds of their scores (see `rank`).
    expected : array of shape (n_items,), optional
        The expected grade of each item, where the model learned from grades; for grades that are
        words, the word nearest to it.
    names : mapping
        What items are called, by their ids, where the model has names.
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
        """Go through pairs of item and score."""
        return iter(list(zip(self.items.tolist(), self.scores.tolist(), strict=True)))

    def rows(self) -> list[dict[str, Any]]:
        """Return a row per item: rank, item, its name, score and expected grade, as known."""
        expected = None if self.expected is None else self.expected.tolist()
        return [
            {"rank": place + 1, "item": item}
            | ({"name": self.names.get(item)} if self.names else {})
            | {"score": score}
            | ({} if expected is None else {"expected": expected[place]})
            for place, (item, score) in enumerate(self)
        ]

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow with the columns of `rows`."""
        ranks, items = np.arange(1, len(self) + 1), as_arrow(self.items.tolist())
        columns: dict[str, Any] = {"rank": ranks, "item": items}
        if self.names:
            columns["name"] = pa.array([self.names.get(one) for one in self.items.tolist()])
        columns["score"] = self.scores
        if self.expected is not None:
            columns["expected"] = self.expected
        return pa.table(columns)

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
    """Rank items for a person, or for everyone.

    For everyone, items are ranked by the score that each has with a probability of 95 % at least,
    as far as it is their own: among thousands that one or two people judged, some were lucky,
    and would come before what hundreds like. `decision_function` has the scores as expected.

    Parameters
    ----------
    ranker : Ranker
        A fitted one.
    user : hashable, optional
        For whom; without one, for the consensus.
    items : mapping from item to features, or Annotations, optional
        What is ranked; without them, the items it was fitted to, where it has kept them.
    k : int, optional
        How many of the best to return; all by default.
    unseen : bool
        Leave out what this person has judged in the data the model was fitted to.

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
        user = user_at(ranker, place_of_user(ranker, user))
    if unseen:
        fresh = ~judged_by(ranker, user, ids)
        ids, features = ids[fresh], features[fresh]
    frames, names = frames_of(ranker), shown.names
    if not len(ids):
        return Ranking(user, ids, np.empty(0), frames, names=names)
    owners = None if user is None else repeated(user, len(ids))
    if user is None:
        scores = sure_scores(ranker, features, ids)
    else:
        scores = ranker.decision_function(features, owners, items=ids)
    best = best_of(scores, len(ids) if k is None else k)
    whose = None if owners is None else owners[best]
    expected = expected_grades(ranker, features[best], whose, ids[best])
    return Ranking(user, ids[best], scores[best], frames, expected, names)


def expected_grades(
    ranker: "Ranker", features: Any, users: IdArray | None, ids: IdArray
) -> NDArray[Any] | None:
    """Return the expected grade of each row, or the nearest word; None for models of labels."""
    if not gives_grades(ranker):
        return None
    return np.asarray(ranker._best_model.predict_grades(features, users, ids).typical)


def repeated(user: Hashable, n: int) -> IdArray:
    """Return one id n times, whatever its type."""
    users = np.empty(n, dtype=object)
    users[:] = [user] * n
    return users


def sure_scores(ranker: "Ranker", features: Any, ids: IdArray) -> Float:
    """Return by how much, at least, all want items: less the more is left open about each."""
    scores = np.asarray(ranker.decision_function(features, items=ids))
    known = ranker._best_model.learned_items()
    return scores if known is None else known.of(ids).at_least(scores)


def judged_by(ranker: "Ranker", user: Hashable | None, ids: IdArray) -> Bool:
    """Tell which items a person has judged in what the ranker was fitted to."""
    said = ranker.kept_
    if user is None or said is None:
        raise ValueError(
            "What somebody has not seen yet is known of persons only, and by models that have kept "
            "their labels."
        )
    there = said.of_user(user).items if user in said.user_ids.tolist() else ids[:0]
    seen = as_id_array(list(dict.fromkeys(there.tolist())), "items")
    return np.asarray(lookup(ids, seen, "items") >= 0)


def best_of(scores: Float, k: int) -> Index:
    """Return the places of the best, in order; equal ones as they came."""
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    if k < len(scores):
        # Only the best are sorted: of a million items, ten.
        bar = np.partition(scores, len(scores) - k)[len(scores) - k]
        able = np.flatnonzero(scores >= bar)
        return able[np.argsort(-scores[able], kind="stable")][:k]
    return np.argsort(-scores, kind="stable")
