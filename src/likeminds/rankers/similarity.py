"""Users with similar rankings, and items with similar scores over users."""

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Float, IdArray
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.column_roles import as_arrow
from likeminds.rankers.item_table import (
    ItemsToRank,
    ItemTableView,
    find_user,
    frames_of,
    user_weights,
)

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


@dataclass(frozen=True, eq=False)
class Similarity(ResultTable):
    """Users similar to a user, or items similar to an item, the most similar first.

    Attributes
    ----------
    of : id
        The user or item of the query.
    ids : array of shape (n,)
        The similar users or items.
    likeness : array of shape (n,)
        Correlations of scores: 1 is the same ranking, -1 the reverse.
    what : str
        "users" or "items".
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
        """Iterate over pairs of id and likeness."""
        return iter(list(zip(self.ids.tolist(), self.likeness.tolist(), strict=True)))

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow with columns user (or item) and likeness."""
        ids = {self.what.removesuffix("s"): as_arrow(self.ids.tolist())}
        return pa.table(ids | {"likeness": self.likeness})

    def __repr__(self) -> str:
        return f"{self._headline()}: {listing(self.ids)}"

    def _headline(self) -> str:
        return f"{self.what.capitalize()} most like {self.of}"


def similar_users(
    ranker: "Ranker", user: Hashable, k: int | None = 10, items: ItemsToRank | None = None
) -> Similarity:
    """Return the users with the most similar rankings of the items.

    Likeness is the correlation of two users' scores over the items. The consensus is part of it,
    and for users with few labels most of it.

    Parameters
    ----------
    user : id
        The user of the query.
    k : int or None, default=10
        The number of users; None returns all.
    items : mapping from item to features, or Annotations, optional
        The ranked items; by default those in training, if the model was saved with them.

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
    weights = np.column_stack([user_weights(ranker), np.ones(len(ranker.users_))])
    moved = np.column_stack([shown.rows, shown.effects])
    moved -= moved.mean(axis=0)
    likeness = _correlations(weights, moved.T @ moved / len(shown), place)
    return _most_similar(ranker.users_, likeness, place, k, what="users", frames=frames_of(ranker))


def similar_items(
    ranker: "Ranker", item: Hashable, k: int | None = 10, items: ItemsToRank | None = None
) -> Similarity:
    """Return the items with the most similar scores over users.

    Likeness is the correlation of two items' scores over the users. Item effects, which are the
    same for all users, have no part in it.

    Parameters
    ----------
    item : id
        The item of the query.
    k : int or None, default=10
        The number of items; None returns all.
    items : mapping from item to features, or Annotations, optional
        The candidates and the item itself; by default the items in training, if the model was
        saved with them.

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
    weights = user_weights(ranker)
    weights = weights - weights.mean(axis=0)
    rows = shown.rows - shown.rows.mean(axis=0)
    likeness = _correlations(rows, weights.T @ weights / len(weights), place)
    return _most_similar(shown.ids, likeness, place, k, what="items", frames=frames_of(ranker))


def _correlations(vectors: Float, metric: Float, place: int) -> Float:
    """Return the correlation of each vector with the one at a position; 0 without variance."""
    reached = vectors @ metric
    size = np.sqrt(np.maximum(np.einsum("nd,nd->n", reached, vectors), 0.0))
    whole = size * size[place]
    together = reached @ vectors[place]
    found = np.where(whole > 0, together / np.where(whole > 0, whole, 1.0), 0.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _most_similar(
    ids: IdArray, likeness: Float, place: int, k: int | None, *, what: str, frames: Frames
) -> Similarity:
    """Return the k most similar, without the query itself."""
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    order = np.argsort(-likeness, kind="stable")
    best = order[order != place][:k]
    return Similarity(ids[[place]].tolist()[0], ids[best], likeness[best], what, frames)
