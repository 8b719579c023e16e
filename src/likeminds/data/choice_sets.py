"""Comparisons, rankings and choices as choice sets: the arguments of `Annotations`."""

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from itertools import chain, compress
from os import PathLike
from typing import Any, Literal, NamedTuple, TypedDict, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, as_names, as_weights, listing, same_length
from likeminds._util.lazy_imports import nw
from likeminds.data import tables
from likeminds.data.alternatives import as_available, position_columns
from likeminds.data.coded_labels import CodedLabels
from likeminds.data.column_roles import ID_ROLES, as_frame, find_columns, id_texts, read_values
from likeminds.data.identifiers import as_id_array, encode, is_missing, join_ids
from likeminds.data.sources import read_table

# The argument that names the column of a role in a table of preferences.
_ARGUMENTS = {"winner": "chosen", "loser": "rejected", "tie": "ties"}
# How ties of pairs are modelled: see `Annotations.from_comparisons`.
TieModel = Literal["davidson", "half"]


class ItemArguments(TypedDict, total=False):
    """The keyword arguments about items and users."""

    features: object
    item_ids: Iterable[Hashable] | None
    feature_names: Sequence[str] | None
    user_features: object


class ChoiceOptions(ItemArguments, total=False):
    """The keyword arguments that all constructors of choices have in common."""

    shown_first: Iterable[Hashable] | None
    shown_last: Iterable[Hashable] | None


def _about_items(options: ChoiceOptions) -> ItemArguments:
    """Return the options without the items shown first and last."""
    shown = ("shown_first", "shown_last")
    return cast("ItemArguments", {k: v for k, v in options.items() if k not in shown})


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
    if features is None:  # items have ids only
        ids = encode(items, "items")[1]
        matrix: FloatArray = np.zeros((len(ids), 0))
    elif isinstance(features, CodedLabels):
        if features.features_per != "item":
            raise ValueError("features= must be annotations with one row of features per item.")
        ids, matrix, names = features.item_ids, features.features, features.feature_names
    else:
        ids, matrix, names = tables.item_table(features, item_ids, feature_names)
    if none is not None and names and none not in ids.tolist():
        # The outside option has zeros, and a column of its own.
        matrix = np.pad(matrix, ((0, 1), (0, 1)))
        matrix[-1, -1] = 1.0
        ids = join_ids(ids, as_id_array([none], "none"))
        names = as_names([*names, str(none)], matrix.shape[1])
    described = {"features": matrix, "feature_names": names, "features_per": "item"}
    return described | {"items": items, "item_ids": ids, "user_features": user_features}


class ChoiceSet(NamedTuple):
    """Items of which the first was chosen: the best, or the worst.

    ``who`` is the position of the user in the list of users.
    """

    who: int
    items: list[Hashable]
    worst: bool


def set_arguments(
    sets: Sequence[ChoiceSet],
    users: IdArray,
    strength: ArrayLike | None,
    options: ChoiceOptions,
    none: Hashable | None = None,
) -> dict[str, Any]:
    """Return the arguments of annotations, one row per item of a set."""
    if not sets:
        raise ValueError("There are no choices: users and the items shown are empty.")
    codes = np.repeat(np.arange(len(sets)), [len(one.items) for one in sets])
    who = np.array([one.who for one in sets])[codes]
    worst = np.array([one.worst for one in sets])[codes]
    weights = as_weights(strength, len(users), "strength")
    items = as_id_array(chain.from_iterable(one.items for one in sets), "items")
    positions = position_columns(options, items, who)
    return item_arguments(items, none, **_about_items(options)) | {
        **positions,
        "users": users[who],
        "labels": (np.diff(codes, prepend=-1) > 0) ^ worst,
        "choice_sets": codes,
        "weights": None if weights is None else weights[who],
        "picks_worst": worst if worst.any() else None,
    }


def ranking_sets(
    n_users: int,
    rankings: Iterable[Iterable[Any]],
    shown: Iterable[Iterable[Hashable]] | None,
) -> list[ChoiceSet]:
    """Return each ranking as a chain of choices: the best of all, the best of the rest, ..."""
    sets = []
    orders = [_tiers(ranking) for ranking in rankings]
    menus = None if shown is None else [_as_list(items, "set") for items in shown]
    optional = {} if menus is None else {"shown": menus}
    same_length(users=range(n_users), rankings=orders, **optional)
    for who, tiers in enumerate(orders):
        ranked = list(chain.from_iterable(tiers))
        _refuse_twice(ranked, f"Ranking {who}")
        if menus is not None:
            _refuse_not_shown(ranked, menus[who], f"Ranking {who}")
            named = set(ranked)
            rest = [item for item in dict.fromkeys(menus[who]) if item not in named]
            tiers.extend([rest] if rest else [])
        if len(tiers) < 2:
            raise ValueError(
                f"Ranking {who} (counted from 0) puts no item above another. Drop it, or pass "
                "shown= with all items that were shown."
            )
        for place, tier in enumerate(tiers[:-1], 1):
            below = list(chain.from_iterable(tiers[place:]))
            sets += [ChoiceSet(who, [item, *below], worst=False) for item in tier]
    return sets


def _tiers(ranking: Iterable[Any]) -> list[list[Hashable]]:
    """Return the items of each place; several if they are tied."""
    tiers = (
        list(entry) if isinstance(entry, list | set | frozenset) else [entry]
        for entry in _as_list(ranking, "ranking")
    )
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
) -> list[ChoiceSet]:
    """Return the choices of the best item and, with ``worst``, of the worst among the others.

    A missing worst item means that only the best one was asked for.
    """
    menus = [_as_list(items, "set") for items in shown]
    picks = [none if is_missing(pick) else pick for pick in _as_list(chosen, "column")]
    worsts = None if worst is None else _as_list(worst, "column")
    optional = {} if worsts is None else {"worst": worsts}
    same_length(users=range(n_users), shown=menus, chosen=picks, **optional)
    sets = []
    for who, (menu, pick) in enumerate(zip(menus, picks, strict=True)):
        where = f"Choice {who}"
        _refuse_twice(menu, where)
        if pick is None:
            raise ValueError(
                f"{where} (counted from 0) has no chosen item. Pass none= (the id of the outside "
                "option), or drop the choice."
            )
        everything = menu if none is None or none in menu else [*menu, none]
        _refuse_not_shown([pick], everything, where)
        others = [item for item in everything if item != pick]
        if not others:
            raise ValueError(f"{where} (counted from 0) is among one item only. Drop it.")
        sets.append(ChoiceSet(who, [pick, *others], worst=False))
        if worsts is not None and not is_missing(worsts[who]):
            if worsts[who] == pick:
                raise ValueError(
                    f"{where} (counted from 0) has the same item, {pick}, as best and worst. "
                    "Drop or correct it."
                )
            _refuse_not_shown([worsts[who]], others, f"{where}, without its best item,")
            rest = [item for item in others if item != worsts[who]]
            if rest:
                sets.append(ChoiceSet(who, [worsts[who], *rest], worst=True))
    return sets


def only_available(
    shown: Iterable[Iterable[Hashable]], availability: Iterable[Iterable[bool]]
) -> list[list[Hashable]]:
    """Return the items of each choice that were available."""
    menus, free = ([_as_list(one, "set") for one in lists] for lists in (shown, availability))
    same_length(shown=menus, availability=free)
    allowed = []
    for number, (menu, available) in enumerate(zip(menus, free, strict=True)):
        same_length(**{f"shown[{number}]": menu, f"availability[{number}]": available})
        allowed.append(list(compress(menu, as_available(available, f"[{number}]"))))
    return allowed


def _refuse_twice(items: Sequence[Hashable], where: str) -> None:
    if any(map(is_missing, items)):
        raise ValueError(f"{where} (counted from 0) has an item without an id.")
    twice = [item for item, number in Counter(items).items() if number > 1]
    if twice:
        raise ValueError(f"{where} (counted from 0) has an item twice: {twice[0]}. List it once.")


def _refuse_not_shown(items: Iterable[Hashable], shown: Sequence[Hashable], where: str) -> None:
    available = set(shown)
    unknown = [item for item in items if item not in available]
    if unknown:
        raise ValueError(
            f"{where} (counted from 0) has an item that was not shown: {listing(unknown)}. The "
            f"items shown are {listing(shown)}."
        )


def difference_arguments(choices: CodedLabels) -> dict[str, Any]:
    """Return the arguments of annotations whose rows are the chosen item less each other item.

    Every second row and its label are negated; otherwise all labels would be of one class.
    """
    sets, is_chosen = choices.choice_set_codes, choices.chosen
    if sets is None or (np.bincount(sets[is_chosen], minlength=sets.max() + 1) != 1).any():
        raise ValueError("Differences need choices: choice sets with one chosen row each.")
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


def comparison_arguments(columns: Mapping[str, Any], options: ChoiceOptions) -> dict[str, Any]:
    """Return the arguments of annotations of pairs: users, winners, losers, ties, strength."""
    won, lost = (as_id_array(columns[name], name) for name in ("winners", "losers"))
    rows, sides = pair_rows(columns, won, lost)
    items = join_ids(won, lost)[sides]
    rows |= position_columns(options, items, sides % len(won))
    features = options.get("features")
    if isinstance(features, tuple) and len(features) == 2 and np.ndim(features[0]) == 2:
        stacked = _stack_two(*features, len(won))[sides]
        rows |= {"items": items, "features": stacked, "features_per": "row"}
        return rows | {name: options.get(name) for name in ("feature_names", "user_features")}
    return rows | item_arguments(items, **_about_items(options))


def preference_arguments(
    frame: object,
    names: Mapping[str, str | None],
    tie_model: TieModel,
    options: ChoiceOptions,
) -> dict[str, Any]:
    """Return the arguments of annotations of a table of pairs, by ids or by vectors."""
    if isinstance(frame, str | PathLike):
        frame = read_table(frame, id_texts(names))
    table = as_frame(frame)
    found = find_columns(table, names, (), _ARGUMENTS)
    columns = {role: name for role, name in found.items() if name is not None}
    won, lost = (_vectors(table.get_column(columns[role])) for role in ("winner", "loser"))
    by_id = won is None or lost is None
    values: dict[str, Any] = {
        f"{role}s": read_values(table, name, as_ids=role in ID_ROLES)
        for role, name in columns.items()
        if by_id or role not in {"winner", "loser"}
    }
    values |= {"strength": values.pop("strengths", None), "tie_model": tie_model}
    if won is None or lost is None:
        return comparison_arguments(values, options)
    named = ("features", "shown_first", "shown_last")
    useless = [name for name in named if options.get(name) is not None]
    if useless:
        raise ValueError(
            f"The columns {columns['winner']} and {columns['loser']} hold vectors of features: "
            f"leave out {useless[0]}=. Vectors may have a number for the position."
        )
    # Each vector is an item of its own.
    places = np.arange(len(won))
    values |= {"winners": places, "losers": places + len(won)}
    vectors = ChoiceOptions(features=(won, lost), user_features=options.get("user_features"))
    arguments = comparison_arguments(values, vectors) | {"items": None}
    _refuse_equal(np.flatnonzero((won == lost).all(axis=1)))
    return arguments


def pair_rows(
    columns: Mapping[str, Any], winners: IdArray, losers: IdArray
) -> tuple[dict[str, Any], Index]:
    """Return the rows of pairs, and the position of each row's item among winners, then losers.

    A tie is half a win of either item, and marked unless ``tie_model`` is "half".
    """
    users = as_id_array(columns["users"], "users")
    n_pairs = len(users)
    if not n_pairs:
        raise ValueError("There are no comparisons: users, winners and losers are empty.")
    same_length(users=users, winners=winners, losers=losers)
    _refuse_equal(np.flatnonzero(winners == losers), winners)
    weights = as_weights(columns.get("strength"), n_pairs, "strength")
    ties = columns.get("ties")
    is_tie = np.zeros(n_pairs) if ties is None else np.asarray(ties)
    same_length(users=users, ties=is_tie)
    if not np.isin(is_tie, [0, 1]).all():
        raise ValueError("ties must be true or false (or 1 and 0), one for each comparison.")
    tied = np.flatnonzero(is_tie)
    tie_model = columns.get("tie_model", "davidson")
    if tie_model not in get_args(TieModel):
        raise ValueError(f'tie_model must be "davidson" or "half", but is {tie_model!r}.')
    pairs = np.concatenate([np.arange(n_pairs), tied])
    sides = np.column_stack([pairs, pairs + n_pairs])
    sides[n_pairs:] = sides[n_pairs:, ::-1]
    if tied.size:
        weights = np.ones(n_pairs) if weights is None else weights.copy()
        weights[tied] *= 0.5
    marked = tied.size and tie_model == "davidson"
    rows = {
        "users": users[np.repeat(pairs, 2)],
        "labels": np.tile([True, False], len(pairs)),
        "choice_sets": np.repeat(np.arange(len(pairs)), 2),
        "weights": None if weights is None else weights[np.repeat(pairs, 2)],
        "tied": np.isin(pairs, tied).repeat(2) if marked else None,
    }
    return rows, sides.ravel()


def _refuse_equal(same: Index, items: IdArray | None = None) -> None:
    """Raise ValueError for pairs of an item with itself."""
    if same.size:
        names = "" if items is None else f" ({listing(list(dict.fromkeys(items[same].tolist())))})"
        raise ValueError(
            f"Comparison(s) {listing(same)}, counted from 0, have the same item{names} as winner "
            "and loser. Drop or correct them."
        )


def _stack_two(winners: ArrayLike, losers: ArrayLike, n_pairs: int) -> FloatArray:
    """Return the features of all winners, and then those of all losers."""
    first, second = (as_matrix(part, "features") for part in (winners, losers))
    if first.shape != second.shape or len(first) != n_pairs:
        raise ValueError(
            f"features of winners and losers have the shapes {first.shape} and {second.shape}, "
            f"but there are {n_pairs} pairs. Give one row for each pair in both."
        )
    return np.concatenate([first, second])


def _vectors(column: "nw.Series[Any]") -> FloatArray | None:
    """Return a column of vectors as a matrix; None for a column of ids."""
    values = column.to_list()
    if not values or not isinstance(values[0], list | tuple | np.ndarray):
        return None
    lengths = {len(value) if isinstance(value, Collection) else 0 for value in values}
    if len(lengths) > 1:
        raise ValueError(
            f"The vectors of column {column.name} have different lengths: "
            f"{listing(sorted(lengths))}. Give all the same number of features."
        )
    return as_matrix(np.array(values, dtype=np.float64), str(column.name))
