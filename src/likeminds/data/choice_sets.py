"""Comparisons, rankings and choices as choice sets: the arguments of `Annotations`."""

from collections import Counter
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypedDict

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import as_names, as_weights, listing, same_length
from likeminds.data import tables
from likeminds.data.alternatives import as_available
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.identifiers import as_id_array, encode, is_missing, join_ids


class ChoiceOptions(TypedDict, total=False):
    """The keyword arguments that all constructors of choices have in common."""

    features: object
    item_ids: Iterable[Hashable] | None
    feature_names: Sequence[str] | None
    user_features: object


def item_arguments(
    items: IdArray,
    none: Hashable | None = None,
    *,
    features: object = None,
    item_ids: Iterable[Hashable] | None = None,
    feature_names: Sequence[str] | None = None,
    user_features: object = None,
) -> dict[str, Any]:
    """Return items and their features as arguments of Annotations; ``none`` is one more item."""
    names: tuple[str, ...] = ()
    if features is None:  # items are known by their ids alone
        ids = encode(items, "items")[1]
        matrix: FloatArray = np.zeros((len(ids), 0))
    elif isinstance(features, CodedLabels):
        if features.features_per != "item":
            raise ValueError("features= are annotations whose features are not by item.")
        ids, matrix, names = features.item_ids, features.features, features.feature_names
    else:
        ids, matrix, names = tables.item_table(features, item_ids, feature_names)
    if none is not None and names and none not in ids.tolist():
        # The item that is none of those shown is all zeros, with a column of its own.
        matrix = np.pad(matrix, ((0, 1), (0, 1)))
        matrix[-1, -1] = 1.0
        ids = join_ids(ids, as_id_array([none], "none"))
        names = as_names([*names, str(none)], matrix.shape[1])
    described = {"features": matrix, "feature_names": names, "features_per": "item"}
    return described | {"items": items, "item_ids": ids, "user_features": user_features}


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

    def arguments(
        self,
        users: IdArray,
        strength: ArrayLike | None,
        options: ChoiceOptions,
        none: Hashable | None = None,
    ) -> dict[str, Any]:
        """Return the arguments of annotations, one row per item of a set."""
        if not self.sizes:
            raise ValueError("There are no choices: users, and what they were shown, are empty.")
        sets = np.repeat(np.arange(len(self.sizes)), self.sizes)
        who = np.array(self.who)[sets]
        weights = as_weights(strength, len(users), "strength")
        worst = np.array(self.worst)[sets]
        return item_arguments(as_id_array(self.items, "items"), none, **options) | {
            "users": users[who],
            "labels": (np.diff(sets, prepend=-1) > 0) ^ worst,
            "choice_sets": sets,
            "weights": None if weights is None else weights[who],
            "picks_worst": worst if worst.any() else None,
        }


def ranking_sets(
    n_users: int,
    rankings: Iterable[Iterable[Any]],
    shown: Iterable[Iterable[Hashable]] | None,
) -> ChoiceSets:
    """Return a chain of sets for each ranking: the best of all, the best of the rest, ..."""
    sets = ChoiceSets()
    orders = [_tiers(ranking) for ranking in rankings]
    menus = None if shown is None else [_as_list(items, "set") for items in shown]
    optional = {} if menus is None else {"shown": menus}
    same_length(users=range(n_users), rankings=orders, **optional)
    for who, order in enumerate(orders):
        tiers, ranked = order, [item for tier in order for item in tier]
        _refuse_twice(ranked, f"Ranking {who}")
        if menus is not None:
            _refuse_not_shown(ranked, menus[who], f"Ranking {who}")
            named = set(ranked)
            rest = [item for item in dict.fromkeys(menus[who]) if item not in named]
            tiers = [*order, rest] if rest else order
        if len(tiers) < 2:
            raise ValueError(
                f"Ranking {who} (counted from 0) puts nothing above anything: it needs two "
                "items, or shown=, what else was shown."
            )
        for place, tier in enumerate(tiers[:-1], 1):
            below = [item for later in tiers[place:] for item in later]
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
    optional = {} if worsts is None else {"worst": worsts}
    same_length(users=range(n_users), shown=menus, chosen=picks, **optional)
    sets = ChoiceSets()
    for who, (menu, pick) in enumerate(zip(menus, picks, strict=True)):
        where = f"Choice {who}"
        _refuse_twice(menu, where)
        if pick is None:
            raise ValueError(
                f"{where} (counted from 0) has nothing chosen. Pass none= (what to call the "
                "choice of none of those shown), or drop it."
            )
        everything = menu if none is None or none in menu else [*menu, none]
        _refuse_not_shown([pick], everything, where)
        others = [item for item in everything if item != pick]
        if not others:
            raise ValueError(f"{where} (counted from 0) has one item only: there was no choice.")
        sets.add(who, pick, others, worst=False)
        if worsts is not None:
            if worsts[who] == pick:
                raise ValueError(
                    f"{where} (counted from 0) has the same item, {pick}, as best and worst. "
                    "Drop or correct it."
                )
            _refuse_not_shown([worsts[who]], others, f"{where}, without its best item,")
            rest = [item for item in others if item != worsts[who]]
            if rest:
                sets.add(who, worsts[who], rest, worst=True)
    return sets


def only_available(
    shown: Iterable[Iterable[Hashable]], availability: Iterable[Iterable[bool]]
) -> list[list[Hashable]]:
    """Return the items of each choice that were available."""
    menus, free = ([_as_list(one, "set") for one in lists] for lists in (shown, availability))
    same_length(shown=menus, availability=free)
    for number, (menu, available) in enumerate(zip(menus, free, strict=True)):
        same_length(**{f"shown[{number}]": menu, f"availability[{number}]": available})
    allowed = [as_available(available, f"[{number}]") for number, available in enumerate(free)]
    return [
        [item for item, is_available in zip(menu, available, strict=True) if is_available]
        for menu, available in zip(menus, allowed, strict=True)
    ]


def _refuse_twice(items: Sequence[Hashable], where: str) -> None:
    if any(map(is_missing, items)):
        raise ValueError(f"{where} (counted from 0) has an item without an id.")
    twice = [item for item, number in Counter(items).items() if number > 1]
    if twice:
        raise ValueError(f"{where} (counted from 0) has an item twice: {twice[0]}.")


def _refuse_not_shown(items: Iterable[Hashable], shown: Sequence[Hashable], where: str) -> None:
    available = set(shown)
    unknown = [item for item in items if item not in available]
    if unknown:
        raise ValueError(
            f"{where} (counted from 0) chose what was not shown: {listing(unknown)}; shown were "
            f"{listing(shown)}."
        )


def difference_arguments(choices: CodedLabels) -> dict[str, Any]:
    """Return the arguments of annotations whose rows are what was chosen less each other item.

    Every other row is turned round, and so is its label, lest all labels be of one class.
    """
    sets, is_chosen = choices.choice_set_codes, choices.chosen
    if sets is None or (np.bincount(sets[is_chosen], minlength=sets.max() + 1) != 1).any():
        raise ValueError(
            "There are differences of choices only: choice sets with one chosen in each."
        )
    first = np.zeros(int(sets.max()) + 1, dtype=np.intp)
    first[sets[is_chosen]] = np.flatnonzero(is_chosen)
    others = np.flatnonzero(~is_chosen)
    others = others[np.argsort(sets[others], kind="stable")]
    chosen = first[sets[others]]
    ahead = np.arange(len(others)) % 2 == 0
    better = choices.labels[chosen]  # else the worst was chosen, and the other one is better
    rows = choices.feature_rows
    differences = choices.features[rows[chosen]] - choices.features[rows[others]]
    return {
        "users": choices.users[others],
        "items": None,
        "labels": ahead,
        "features": differences
        * np.where(ahead == better, 1.0, -1.0)[:, None].astype(differences.dtype),
        "features_per": "row",
        "feature_names": choices.feature_names,
        "weights": None if choices.weights is None else choices.weights[others],
        "choice_sets": sets[others],
        "user_features": choices.user_features,
    }


def graded_sets(graded: CodedLabels, most: int, rng: Generator) -> tuple[Index, Index]:
    """Return the rows of sets, each an item and some that the user graded lower; and sizes."""
    if graded.grades is None:
        raise ValueError("These labels are not grades, so they cannot become choices.")
    if most < 1:
        raise ValueError(f"most must be at least 1, but is {most}.")
    rows: list[Index] = []
    order, offsets = graded.user_index()
    for user_rows in np.split(order, offsets[1:-1]):
        ordered = user_rows[np.argsort(graded.grades[user_rows], kind="stable")]
        grades = graded.grades[ordered]
        n_lower = np.searchsorted(grades, grades, side="left")
        for place in np.flatnonzero(n_lower).tolist():
            n = int(n_lower[place])
            lower = np.arange(n) if n <= most else rng.choice(n, most, replace=False)
            rows.append(np.append(ordered[place], ordered[np.sort(lower)]))
    if not rows:
        raise ValueError("No user gave two different grades, so there is nothing to choose from.")
    return np.concatenate(rows), np.array([len(one) for one in rows])
