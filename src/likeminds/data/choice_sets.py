"""Comparisons, rankings and choices as sets of items, of each of which one was chosen."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likeminds._util.array_types import Bool, FloatArray, IdArray, Index
from likeminds._util.checks import as_names, as_weights, listing, same_length
from likeminds.data import tables
from likeminds.data.alternatives import as_available
from likeminds.data.identifiers import as_distinct, as_id_array, encode, is_missing, join_ids
from likeminds.data.integer_coding import CodedLabels


class ItemTable(NamedTuple):
    """A row of features for each item, and the names of items and features."""

    ids: IdArray
    features: FloatArray
    names: tuple[str, ...]

    @classmethod
    def read(
        cls,
        features: Any,
        items: IdArray,
        item_ids: Iterable[Hashable] | None = None,
        names: Sequence[str] | None = None,
    ) -> "ItemTable":
        """Read features by item; without any, items are known by their ids alone."""
        if features is None:
            known = encode(items, "items")[1]
            return cls(known, np.zeros((len(known), 0)), ())
        if isinstance(features, CodedLabels):
            if features.features_per != "item":
                raise ValueError("features= are annotations whose features are not by item.")
            return cls(features.item_ids, features.features, features.feature_names)
        if isinstance(features, Mapping):
            features, item_ids = list(features.values()), list(features)
        elif item_ids is None and _is_table(features):
            found = tables.read_items(features, "item", None)
            features, item_ids = found["features"], found["item_ids"]
            names = names or found["feature_names"]
        matrix, found_names = tables.read_matrix(features)
        called = as_names(found_names if names is None else names, matrix.shape[1])
        ids: IdArray = np.arange(len(matrix))
        if item_ids is not None:
            ids = as_distinct(item_ids, "item_ids")
        same_length(item_ids=ids, features=matrix)
        return cls(ids, matrix, called)

    def with_none(self, none: Hashable) -> "ItemTable":
        """Add the item that is none of those shown: all zeros, with a column of its own."""
        if not self.names or none in self.ids.tolist():
            return self
        n_items, n_features = self.features.shape
        table = np.zeros((n_items + 1, n_features + 1), dtype=self.features.dtype)
        table[:-1, :-1] = self.features
        table[-1, -1] = 1.0
        ids = join_ids(self.ids, as_id_array([none], "none"))
        return ItemTable(ids, table, as_names([*self.names, str(none)], n_features + 1))


def _is_table(features: Any) -> bool:
    return isinstance(features, str | PathLike) or hasattr(features, "columns")


@dataclass
class ChoiceSets:
    """Sets of items, in each of which the first was chosen: the best, or the worst.

    ``who`` is the position, among those who were asked, of who chose.
    """

    who: list[int] = field(default_factory=list)
    items: list[Hashable] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)
    worst: list[bool] = field(default_factory=list)

    def add(self, who: int, chosen: Hashable, others: Sequence[Hashable], worst: bool) -> None:
        """Add a set."""
        self.who.append(who)
        self.items += [chosen, *others]
        self.sizes.append(1 + len(others))
        self.worst.append(worst)

    def columns(self, users: IdArray, strength: ArrayLike | None) -> dict[str, Any]:
        """Return the columns of annotations, one row per item of a set."""
        who, sizes = np.array(self.who), np.array(self.sizes)
        weights = as_weights(strength, len(users), "strength")
        first = np.concatenate([[0], np.cumsum(sizes)[:-1]])
        chosen = np.zeros(len(self.items), dtype=np.bool_)
        chosen[first] = True
        worst = np.repeat(np.array(self.worst), sizes)
        return {
            "users": users[np.repeat(who, sizes)],
            "items": as_id_array(self.items, "items"),
            "labels": chosen ^ worst,
            "choice_sets": np.repeat(np.arange(len(sizes)), sizes),
            "weights": None if weights is None else weights[np.repeat(who, sizes)],
            "picks_worst": worst if worst.any() else None,
        }


def pair_columns(
    users: Iterable[Hashable],
    winners: IdArray | None,
    losers: IdArray | None,
    ties: ArrayLike | None,
    strength: ArrayLike | None,
) -> tuple[dict[str, Any], Index]:
    """Return the columns of annotations, and which of all winners, then losers, each row is.

    A tie is half a win of each.
    """
    people = as_id_array(users, "users")
    n_pairs = len(people)
    if not n_pairs:
        raise ValueError("There are no comparisons: users, winners and losers are empty.")
    if winners is not None and losers is not None:
        same_length(users=people, winners=winners, losers=losers)
        refuse_equal(np.flatnonzero(winners == losers), winners)
    weights = as_weights(strength, n_pairs, "strength")
    tied = np.flatnonzero(_as_ties(ties, n_pairs))
    pairs = np.concatenate([np.arange(n_pairs), tied])
    sides = np.column_stack([pairs, pairs + n_pairs])
    sides[n_pairs:] = sides[n_pairs:, ::-1]
    if tied.size:
        weights = np.ones(n_pairs) if weights is None else weights.copy()
        weights[tied] *= 0.5
    columns = {
        "users": people[np.repeat(pairs, 2)],
        "labels": np.tile([True, False], len(pairs)),
        "choice_sets": np.repeat(np.arange(len(pairs)), 2),
        "weights": None if weights is None else weights[np.repeat(pairs, 2)],
    }
    return columns, sides.ravel()


def refuse_equal(same: Index, called: IdArray | None = None) -> None:
    """Refuse pairs of an item with itself."""
    if same.size:
        names = (
            "" if called is None else f" ({listing(list(dict.fromkeys(called[same].tolist())))})"
        )
        raise ValueError(
            f"Comparison(s) {listing(same)}, counted from 0, have the same item{names} as winner "
            "and loser. Drop or correct them."
        )


def _as_ties(ties: ArrayLike | None, n_pairs: int) -> Bool:
    if ties is None:
        return np.zeros(n_pairs, dtype=np.bool_)
    given = np.asarray(ties)
    same_length(users=np.empty(n_pairs), ties=given)
    if not np.isin(given, [0, 1]).all():
        raise ValueError("ties must be true or false (or 1 and 0), one for each comparison.")
    return given.astype(np.bool_)


def ranking_sets(
    n_users: int,
    rankings: Iterable[Iterable[Any]],
    shown: Iterable[Iterable[Hashable]] | None,
) -> ChoiceSets:
    """Return a chain of sets for each ranking: the best of all, the best of the rest, ..."""
    sets = ChoiceSets()
    orders = [_tiers(ranking) for ranking in rankings]
    everything = None if shown is None else [_as_list(items, "set") for items in shown]
    given = {} if everything is None else {"shown": everything}
    same_length(users=range(n_users), rankings=orders, **given)
    for who, places in enumerate(orders):
        tiers, ranked = places, [item for place in places for item in place]
        _refuse_twice(ranked, f"Ranking {who}")
        if everything is not None:
            _refuse_not_shown(ranked, everything[who], f"Ranking {who}")
            named = set(ranked)
            rest = [item for item in dict.fromkeys(everything[who]) if item not in named]
            tiers = [*tiers, rest] if rest else tiers
        if len(tiers) < 2:
            raise ValueError(
                f"Ranking {who} (counted from 0) puts nothing above anything: it needs two "
                "items, or shown=, what else was shown."
            )
        for place, tier in enumerate(tiers[:-1]):
            below = [item for later in tiers[place + 1 :] for item in later]
            for item in tier:
                sets.add(who, item, below, worst=False)
    return sets


def _tiers(ranking: Iterable[Any]) -> list[list[Hashable]]:
    """Return the items of each place; several, where they are tied."""
    tied = (list, set, frozenset)
    entries = _as_list(ranking, "ranking")
    tiers = [list(entry) if isinstance(entry, tied) else [entry] for entry in entries]
    return [tier for tier in tiers if tier]


def _as_list(items: Iterable[Any], what: str) -> list[Any]:
    if isinstance(items, str | bytes):
        raise TypeError(f"A {what} is a list of items, not the text {items!r}.")
    return list(items)


def choice_sets(
    shown: Iterable[Iterable[Hashable]],
    chosen: Iterable[Hashable],
    *,
    worst: Iterable[Hashable] | None = None,
    none: Hashable | None = None,
    n_users: int,
) -> ChoiceSets:
    """Return the sets of items that were shown; and those of the rest, the worst chosen."""
    menus = [_as_list(items, "set") for items in shown]
    picks = [none if is_missing(pick) else pick for pick in _as_list(chosen, "column")]
    worsts = None if worst is None else _as_list(worst, "column")
    given = {} if worsts is None else {"worst": worsts}
    same_length(users=range(n_users), shown=menus, chosen=picks, **given)
    sets = ChoiceSets()
    for who, (menu, pick) in enumerate(zip(menus, picks, strict=True)):
        _refuse_twice(menu, f"Choice {who}")
        if pick is None:
            raise ValueError(
                f"Choice {who} (counted from 0) has nothing chosen. Pass none= (what to call the "
                "choice of none of those shown), or drop it."
            )
        everything = menu if none is None or none in menu else [*menu, none]
        _refuse_not_shown([pick], everything, f"Choice {who}")
        others = _without(everything, pick, f"Choice {who}")
        sets.add(who, pick, others, worst=False)
        if worsts is not None:
            if worsts[who] == pick:
                raise ValueError(
                    f"Choice {who} (counted from 0) has the same item, {pick}, as best and worst. "
                    "Drop or correct it."
                )
            _refuse_not_shown([worsts[who]], others, f"Choice {who}, without its best item,")
            rest = _without(others, worsts[who])
            if rest:
                sets.add(who, worsts[who], rest, worst=True)
    return sets


def only_available(
    shown: Iterable[Iterable[Hashable]], availability: Iterable[Iterable[bool]]
) -> list[list[Hashable]]:
    """Return the items of each choice that were available."""
    menus, free = ([_as_list(one, "set") for one in given] for given in (shown, availability))
    same_length(shown=menus, availability=free)
    for number, (menu, there) in enumerate(zip(menus, free, strict=True)):
        same_length(**{f"shown[{number}]": menu, f"availability[{number}]": there})
    allowed = [as_available(there, f"[{number}]") for number, there in enumerate(free)]
    return [
        [item for item, is_there in zip(menu, there, strict=True) if is_there]
        for menu, there in zip(menus, allowed, strict=True)
    ]


def _without(items: Sequence[Hashable], one: Hashable, where: str | None = None) -> list[Hashable]:
    rest = [item for item in items if item != one]
    if where is not None and not rest:
        raise ValueError(f"{where} (counted from 0) has one item only: there was no choice.")
    return rest


def _refuse_twice(items: Sequence[Hashable], where: str) -> None:
    seen: set[Hashable] = set()
    for item in items:
        if is_missing(item):
            raise ValueError(f"{where} (counted from 0) has an item without an id.")
        if item in seen:
            raise ValueError(f"{where} (counted from 0) has an item twice: {item}.")
        seen.add(item)


def _refuse_not_shown(items: Iterable[Hashable], shown: Sequence[Hashable], where: str) -> None:
    known = set(shown)
    strange = [item for item in items if item not in known]
    if strange:
        raise ValueError(
            f"{where} (counted from 0) chose what was not shown: {listing(strange)}; shown were "
            f"{listing(shown)}."
        )


def are_choices(annotations: CodedLabels) -> bool:
    """Say whether rows came in groups of which just one each was chosen, counted alike."""
    groups = annotations.choice_set_codes
    if groups is None:
        return False
    chosen, _ = classes_by_set(groups, annotations)
    return bool((chosen == 1).all() and counted_alike(groups, annotations).all())


def counted_alike(groups: Index, annotations: CodedLabels) -> Bool:
    """Say of each group whether all of its rows weigh the same."""
    n_groups = int(groups.max()) + 1
    if annotations.weights is None:
        return np.ones(n_groups, dtype=np.bool_)
    least, most = np.full(n_groups, np.inf), np.zeros(n_groups)
    np.minimum.at(least, groups, annotations.weights)
    np.maximum.at(most, groups, annotations.weights)
    return np.asarray(least == most)


def classes_by_set(groups: Index, annotations: CodedLabels) -> tuple[Index, Index]:
    """Return how many rows of each group were chosen, and how many were not."""
    n_groups, chosen = int(groups.max()) + 1, annotations.chosen
    return (
        np.bincount(groups[chosen], minlength=n_groups),
        np.bincount(groups[~chosen], minlength=n_groups),
    )


def difference_columns(said: CodedLabels) -> dict[str, Any]:
    """Return the columns of annotations whose rows are what was chosen less each other item.

    Every other row is turned round, and so is its label, lest all labels be of one class.
    """
    groups = said.choice_set_codes
    if groups is None or (np.bincount(groups[said.chosen], minlength=groups.max() + 1) != 1).any():
        raise ValueError(
            "There are differences of choices only: choice sets with one chosen in each."
        )
    first = np.zeros(int(groups.max()) + 1, dtype=np.intp)
    first[groups[said.chosen]] = np.flatnonzero(said.chosen)
    others = np.flatnonzero(~said.chosen)
    others = others[np.argsort(groups[others], kind="stable")]
    chosen = first[groups[others]]
    ahead = np.arange(len(others)) % 2 == 0
    better = said.labels[chosen]  # else the worst was chosen, and the other one is better
    rows = said.feature_rows
    apart = said.features[rows[chosen]] - said.features[rows[others]]
    return {
        "users": said.users[others],
        "items": None,
        "labels": ahead,
        "features": apart * np.where(ahead == better, 1.0, -1.0)[:, None].astype(apart.dtype),
        "features_per": "row",
        "feature_names": said.feature_names,
        "weights": None if said.weights is None else said.weights[others],
        "choice_sets": groups[others],
    }


def lower_graded(
    grades: FloatArray, order: Index, offsets: Index, *, most: int, rng: Generator
) -> tuple[Index, Index]:
    """Return the rows of sets, each an item and some that the person graded lower; and sizes.

    ``order`` are the rows sorted by person, and ``offsets`` where each person starts.
    """
    if most < 1:
        raise ValueError(f"most must be at least 1, but is {most}.")
    rows: list[Index] = []
    for begin, end in zip(offsets[:-1].tolist(), offsets[1:].tolist(), strict=True):
        mine = order[begin:end]
        mine = mine[np.argsort(grades[mine], kind="stable")]
        n_lower = np.searchsorted(grades[mine], grades[mine], side="left")
        for place in np.flatnonzero(n_lower).tolist():
            n = int(n_lower[place])
            lower = np.arange(n) if n <= most else rng.choice(n, most, replace=False)
            rows.append(np.append(mine[place], mine[np.sort(lower)]))
    if not rows:
        raise ValueError("Nobody gave two different grades, so that there is nothing to choose.")
    return np.concatenate(rows), np.array([len(one) for one in rows])
