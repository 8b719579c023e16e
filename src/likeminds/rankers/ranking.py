"""The best items for a person, as a short list."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeminds._support.arrays import Bool, Float, IdArray, Index
from likeminds._support.checks import listing
from likeminds._support.frames import Frames, as_kind
from likeminds._support.html import html_page, html_table
from likeminds.data.columns import as_arrow
from likeminds.data.identifiers import as_id_array, lookup
from likeminds.rankers.shown import ShownItems, frames_of, person_at, place_of_person


@dataclass(frozen=True, eq=False)
class Ranking:
    """Items for one person, the best first.

    Attributes
    ----------
    person : hashable or None
        For whom; None is the consensus.
    items : array of shape (n_items,)
        Ids, the best first.
    scores : array of shape (n_items,)
        Their scores, which order them and have no meaning beyond; of the consensus, what they
        surely are (see `rank`).
    frames : str
        The kind of table that `table` returns.
    """

    person: Hashable | None
    items: IdArray
    scores: Float
    frames: Frames = "pyarrow"

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        """Go through pairs of item and score."""
        return iter(list(zip(self.items.tolist(), self.scores.tolist(), strict=True)))

    def table(self) -> Any:
        """Return a table with columns rank, item and score."""
        import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

        ranks, items = np.arange(1, len(self) + 1), as_arrow(self.items.tolist())
        return as_kind(pa.table({"rank": ranks, "item": items, "score": self.scores}), self.frames)

    def __repr__(self) -> str:
        return f"{self._headline()}: {listing(self.items)}"

    def _repr_html_(self) -> str:
        rows = [{"rank": n, "item": i, "score": s} for n, (i, s) in enumerate(self, start=1)]
        return html_page(self._headline(), html_table(rows))

    def _headline(self) -> str:
        return f"Ranking for {'everyone' if self.person is None else self.person}"


def rank(
    ranker: Any,
    person: Hashable | None = None,
    items: Any = None,
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
    person : hashable, optional
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
    shown = ShownItems.of(ranker, items)
    ids, features = shown.ids, shown.features
    if person is not None:
        person = person_at(ranker, place_of_person(ranker, person))
    if unseen:
        fresh = ~judged_by(ranker, person, ids)
        ids, features = ids[fresh], features[fresh]
    owners = None
    if person is not None:
        owners = np.empty(len(ids), dtype=object)
        owners[:] = [person] * len(ids)
    frames = frames_of(ranker)
    if not len(ids):
        return Ranking(person, ids, np.empty(0), frames)
    if person is None:
        scores = sure_scores(ranker, features, ids)
    else:
        scores = ranker.decision_function(features, owners, items=ids)
    best = _best(scores, len(ids) if k is None else k)
    return Ranking(person, ids[best], scores[best], frames)


def sure_scores(ranker: Any, features: Any, ids: IdArray) -> Float:
    """Return by how much, at least, all want items: less the more is left open about each."""
    scores = np.asarray(ranker.decision_function(features, items=ids))
    known = ranker.chosen_.learned_items()
    return scores if known is None else known.of(ids).at_least(scores)


def judged_by(ranker: Any, person: Hashable | None, ids: IdArray) -> Bool:
    """Tell which items a person has judged in what the ranker was fitted to."""
    said = ranker.kept_
    if person is None or said is None:
        raise ValueError(
            "What somebody has not seen yet is known of persons only, and by models that have kept "
            "their labels."
        )
    there = said.of_person(person).items if person in said.user_ids.tolist() else ids[:0]
    seen = as_id_array(list(dict.fromkeys(there.tolist())), "items")
    return np.asarray(lookup(ids, seen, "items") >= 0)


def _best(scores: Float, k: int) -> Index:
    """Return the places of the best, in order; equal ones as they came."""
    if k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    if k < len(scores):
        # Only the best are sorted: of a million items, ten.
        bar = np.partition(scores, len(scores) - k)[len(scores) - k]
        able = np.flatnonzero(scores >= bar)
        return able[np.argsort(-scores[able], kind="stable")][:k]
    return np.argsort(-scores, kind="stable")
