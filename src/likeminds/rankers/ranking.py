"""The best items for a person, as a short list."""

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeminds._support.arrays import Bool, Float, FloatArray, IdArray, Index
from likeminds._support.checks import listing
from likeminds._support.grammar import counted
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import as_id_array, lookup


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
        Their scores, which order them and have no meaning beyond.
    """

    person: Hashable | None
    items: IdArray
    scores: Float

    def __len__(self) -> int:
        return len(self.items)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        """Go through pairs of item and score."""
        return iter(list(zip(self.items.tolist(), self.scores.tolist(), strict=True)))

    def __repr__(self) -> str:
        whom = "everyone" if self.person is None else self.person
        return f"Ranking for {whom}: {listing(self.items)}"


def rank(
    ranker: Any,
    person: Hashable | None = None,
    items: Any = None,
    *,
    k: int | None = None,
    unseen: bool = False,
) -> Ranking:
    """Rank items for a person, or for everyone.

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
    ids, features = _shown(ranker, items)
    known = ranker.people_.tolist() if unseen or person is not None else []
    if person is not None and person not in known:
        raise KeyError(
            f"There is no person {person!r} in this model, which knows "
            f"{counted(len(known), 'person', 'people')}: newcomer(...) takes somebody new."
        )
    if unseen:
        fresh = ~judged_by(ranker, person, ids)
        ids, features = ids[fresh], features[fresh]
    owners = None
    if person is not None:
        owners = np.empty(len(ids), dtype=object)
        owners[:] = [person] * len(ids)
    if not len(ids):
        return Ranking(person, ids, np.empty(0))
    scores = ranker.decision_function(features, owners, items=ids)
    best = _best(scores, len(ids) if k is None else k)
    return Ranking(person, ids[best], scores[best])


def _shown(ranker: Any, items: Any) -> tuple[IdArray, FloatArray]:
    if items is None:
        items = ranker.kept_
        if items is None:
            raise ValueError(
                "Which items? This model has kept none of those it was fitted to: pass items=."
            )
    if isinstance(items, Annotations):
        return items.distinct_items()
    if not isinstance(items, Mapping):
        raise TypeError(
            "items must map each item to its features, or be Annotations, not "
            f"{type(items).__name__}."
        )
    return as_id_array(list(items), "items"), np.asarray(list(items.values()), dtype=np.float64)


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
