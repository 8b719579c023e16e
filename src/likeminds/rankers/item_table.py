"""Items to rank, with features and effects; similar users and items."""

from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import did_you_mean, listing
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable, html_page, html_table
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_arrow
from likeminds.data.identifiers import as_id_array, coerce_ids, encode, lookup
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.rankers.validation import find_users

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

# The most ids to search for similar ids.
_COMPARED = 100_000


@dataclass(frozen=True, eq=False)
class ItemTableView:
    """Distinct items with their features, effects and factors."""

    ranker: "Ranker"
    ids: IdArray
    features: FloatArray

    @classmethod
    def of(cls, ranker: "Ranker", items: "ItemsToRank | None") -> "ItemTableView":
        """Return the table of a mapping to features, of annotations, or by default of training."""
        check_is_fitted(ranker)
        if isinstance(items, ItemTableView):
            return cls(ranker, items.ids, items.features)
        if items is None:
            kept = ranker.training_items()
            if kept is None:
                raise ValueError("This model was saved without its training items. Pass items=.")
            return cls(ranker, *kept)
        if isinstance(items, Annotations):
            return cls(ranker, *items.distinct_items())
        if not isinstance(items, Mapping):
            raise TypeError(
                "items must be a mapping from items to features, or Annotations, not "
                f"{type(items).__name__}."
            )
        rows = np.asarray(list(items.values()), dtype=np.float64)
        return cls(ranker, as_id_array(list(items), "items"), rows)

    def __len__(self) -> int:
        return len(self.ids)

    @cached_property
    def names(self) -> dict[Any, str]:
        """Names of items, by their ids."""
        return dict(self.ranker.item_names)

    def place_of(self, item: Hashable) -> int:
        """Return the position of an item, by id or name; raise KeyError with suggestions."""
        return int(self.places_of([item])[0])

    def places_of(self, items: Sequence[Hashable]) -> Index:
        """Return the positions of items, by their ids or names."""
        return places_of_items(items, self.ids, self.names)

    @cached_property
    def learned(self) -> ItemPosteriors | None:
        """Posteriors of item effects; items without a score raise an error."""
        found: ItemPosteriors | None = self.ranker._best_model.item_posteriors_of(self.ids)
        return found

    @cached_property
    def rows(self) -> Float:
        """The features and learned factors: (n_items, p)."""
        features = np.asarray(self.features, dtype=np.float64)
        return features if self.learned is None else np.hstack([features, self.learned.factors])

    @cached_property
    def effects(self) -> Float:
        """Item effects; zeros if the model has none."""
        return np.zeros(len(self)) if self.learned is None else self.learned.effects


ItemsToRank = Mapping[Any, ArrayLike] | Annotations | ItemTableView
# Rows of features with or without labels, and the id of each row's user or item.
ItemRows = ArrayLike | Annotations
Ids = Iterable[Hashable] | None


def gives_grades(ranker: "Ranker") -> bool:
    """Return whether a ranker predicts grades."""
    return ranker._best_model.grading_ is not None


def places_of_items(items: Sequence[Hashable], ids: IdArray, names: Mapping[Any, str]) -> Index:
    """Return the positions of items among ids, by id or name.

    Examples
    --------
    >>> ids = np.array(["f1", "f2"], dtype=object)
    >>> places_of_items(["f2", "Heat (1995)"], ids, {"f1": "Heat (1995)"})
    array([1, 0])
    """
    codes, distinct = encode(items, "items")
    places = lookup(coerce_ids(distinct, ids, "items"), ids, "items")
    if (places < 0).any() and names:
        called: dict[str, list[int]] = {}
        there = lookup(list(names), ids, "items").tolist()
        for name, place in zip(names.values(), there, strict=True):
            called.setdefault(name, []).extend([place] if place >= 0 else [])
        for row in np.flatnonzero(places < 0).tolist():
            matches = called.get(str(distinct[row]), [])
            if len(matches) > 1:
                raise ValueError(
                    f"{len(matches)} items are called {distinct[row]!r}: {listing(ids[matches])}. "
                    "Use the id."
                )
            places[row] = matches[0] if matches else -1
    missing = distinct[places < 0].tolist()
    if missing:
        hint = did_you_mean(missing[0], [*names.values(), *ids[:_COMPARED].tolist()])
        raise KeyError(
            f"There is no item {listing(list(map(repr, missing)))} among these "
            f"{counted(len(ids), 'item')}: {listing(ids)}.{hint}"
        )
    return places[codes]


def columns_of(ranker: "Ranker") -> tuple[str, ...]:
    """Return the names of the columns of `ItemTableView.rows`."""
    learned = ranker.item_posteriors()
    n_factors = 0 if learned is None else learned.n_factors
    names = [str(name) for name in ranker.feature_names_]
    return (*names, *(f"learned_{n}" for n in range(1, n_factors + 1)))


def user_weights(ranker: "Ranker", some: slice = slice(None)) -> Float:
    """Return users' weights of these columns, without reading other users."""
    learned, weights = ranker.item_posteriors(), np.asarray(ranker.coef_[some])
    if learned is None or not learned.n_factors:
        return weights
    return np.hstack([weights, ranker.factor_weights_[some]])


def find_user(ranker: "Ranker", user: Hashable) -> int:
    """Return the position of a user; raise KeyError with suggestions."""
    check_is_fitted(ranker)
    place = int(find_users(ranker, [user])[0])
    if place < 0:
        known = ranker.users_
        raise KeyError(
            f"There is no user {user!r} in this model, which has "
            f"{counted(len(known), 'user')}. Use newcomer(...) for a new user."
            f"{did_you_mean(user, known[:_COMPARED].tolist())}"
        )
    return place


def user_at(ranker: "Ranker", place: int) -> Any:
    """Return the id of the user at a position, as a plain Python object."""
    return ranker.users_[place : place + 1].tolist()[0]


def frames_of(ranker: "Ranker") -> Frames:
    """Return the kind of tables of the training data."""
    kept = ranker.training_annotations_
    return "pyarrow" if kept is None else kept.frames


def summary_html(ranker: "Ranker") -> str:
    """Return facts about a fitted ranker as HTML; an empty string if not fitted."""
    if not ranker._fitted_names():
        return ""
    items, n_users = ranker.item_posteriors(), len(ranker.users_)
    facts = {
        "users": n_users,
        "choices": ranker.n_choices_ or None,
        "labels": None if ranker.n_choices_ else ranker.n_labels_,
        "features": len(ranker.feature_names_),
        "items with effects": None if items is None else len(items.ids),
        "learned item factors": None if items is None else items.n_factors or None,
        "loss": ranker.loss_,
        "groups": ranker.n_groups_,
    }
    rows = [{"learned": name, "": value} for name, value in facts.items() if value is not None]
    title = f"{type(ranker).__name__} of {counted(n_users, 'person', 'people')}"
    return html_page(title, html_table(rows))


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

    Likeness is the correlation of two users' scores over the items. Scores include the consensus,
    which dominates for users with few labels.

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

    Likeness is the correlation of two items' scores over the users. It does not depend on item
    effects, which are the same for all users.

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
    """Return the correlation of each vector with the vector at a position; 0 without variance."""
    reached = vectors @ metric
    size = np.sqrt(np.maximum(np.einsum("nd,nd->n", reached, vectors), 0.0))
    whole = size * size[place]
    together = reached @ vectors[place]
    found = np.where(whole > 0, together / np.where(whole > 0, whole, 1.0), 0.0)
    return np.asarray(np.clip(found, -1.0, 1.0))


def _most_similar(
    ids: IdArray, likeness: Float, place: int, k: int | None, *, what: str, frames: Frames
) -> Similarity:
    """Return the k most similar ids, without the query."""
    if k is not None and k < 1:
        raise ValueError(f"k must be at least 1, but is {k}.")
    order = np.argsort(-likeness, kind="stable")
    best = order[order != place][:k]
    return Similarity(ids[[place]].tolist()[0], ids[best], likeness[best], what, frames)
