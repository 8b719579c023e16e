"""People who rank alike, and items that the same people like."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.column_roles import as_arrow
from likeminds.rankers.item_table import (
    ItemsToRank,
    ItemTableView,
    find_user,
    frames_of,
    user_at,
    weights_of_all,
)

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


@dataclass(frozen=True, eq=False)
class Similarity(ResultTable):
    """People like a person, or items like an item, the most alike first.

    Attributes
    ----------
    of : id
        Whom, or what, they are like.
    ids : array of shape (n,)
        Who, or what, they are.
    likeness : array of shape (n,)
        Correlations of scores: 1 is the same ranking, -1 the reverse.
    what : str
        "people" or "items".
    frames : str
        The kind of table that `table` returns.
    """

    of: Hashable
    ids: IdArray
    likeness: Float
    what: str
    frames: Frames = "pyarrow"

    def __len__(self) -> int:
        return len(self.ids)

    def __iter__(self) -> Iterator[tuple[Any, float]]:
        """Go through pairs of id and likeness."""
        return iter(list(zip(self.ids.tolist(), self.likeness.tolist(), strict=True)))

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow with columns user (or item) and likeness."""
        column = {"people": "user", "items": "item"}[self.what]
        return pa.table({column: as_arrow(self.ids.tolist()), "likeness": self.likeness})

    def __repr__(self) -> str:
        return f"{self._headline()}: {listing(self.ids)}"

    def _headline(self) -> str:
        return f"{self.what.capitalize()} most like {self.of}"


def similar_users(
    ranker: "Ranker", user: Hashable, k: int | None = 10, items: ItemsToRank | None = None
) -> Similarity:
    """Return the people whose ranking of the items is most like somebody's.

    Likeness is the correlation, over the items, of two people's scores. It is about all of the
    ranking, what everybody agrees on included; of people with few labels that is most of it.

    Parameters
    ----------
    user : id
        Whom others are compared with.
    k : int or None, default=10
        How many; None is everybody.
    items : mapping from item to features, or Annotations, optional
        The items that are ranked; by default those that the ranker was fitted to, where it has
        kept them.

    Returns
    -------
    Similarity

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
    >>> len(ranker.similar_users("household-001", k=3))
    3
    """
    ranker = ranker._best_model
    place = find_user(ranker, user)
    shown = ItemTableView.of(ranker, items)
    weights = np.column_stack([weights_of_all(ranker), np.ones(len(ranker.users_))])
    moved = np.column_stack([shown.rows, shown.effects])
    moved -= moved.mean(axis=0)
    found = _correlations(weights, moved.T @ moved / len(shown), place)
    best = _others(found, place, k)
    one = user_at(ranker, place)
    return Similarity(one, ranker.users_[best], found[best], "people", frames_of(ranker))


def similar_items(
    ranker: "Ranker", item: Hashable, k: int | None = 10, items: ItemsToRank | None = None
) -> Similarity:
    """Return the items that are liked by the same people as an item.

    Likeness is the correlation, over the people, of the scores of two items: who likes one more
    than others do likes the other more than others do. What all see in an item plays no part.

    Parameters
    ----------
    item : id
        What others are compared with.
    k : int or None, default=10
        How many; None is all of them.
    items : mapping from item to features, or Annotations, optional
        The items among which to look, that one included; by default those that the ranker was
        fitted to, where it has kept them.

    Returns
    -------
    Similarity

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, make_schools
    >>> crowd = make_schools(40, 20, 30, 6, 2, random_state=0).annotations
    >>> ranker = HierarchicalRanker().fit(crowd)
    >>> ranker.similar_items(3, k=2).ids.shape
    (2,)
    """
    ranker = ranker._best_model
    shown = ItemTableView.of(ranker, items)
    place = shown.place_of(item)
    weights = weights_of_all(ranker)
    weights = weights - weights.mean(axis=0)
    rows = shown.rows - shown.rows.mean(axis=0)
    found = _correlations(rows, weights.T @ weights / len(weights), place)
    best = _others(found, place, k)
    one = shown.ids.tolist()[place]
    return Similarity(one, shown.ids[best], found[best], "items", frames_of(ranker))


def _correlations(vectors: Float, metric: Float, place: int) -> Float:
    """Return the correlation of each vector with the one at a place; 0 where one has no spread."""
    reached = vectors @ metric
    size = np.sqrt(np.maximum(np.einsum("nd,nd->n", reached, vectors), 0.0))
    whole = size * size[place]
    together = reached @ vectors[place]
    found = np.where(whole > 0, together / np.where(whole > 0, whole, 1.0), 0.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _others(likeness: Float, place: int, k: int | None) -> Index:
    """Return the places of the most alike, without the one they are compared with."""
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    order = np.argsort(-likeness, kind="stable")
    return np.asarray(order[order != place][:k])
