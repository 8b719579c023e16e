"""Comparisons of two items as choice sets: the arguments of `Annotations`."""

from collections.abc import Collection, Mapping
from os import PathLike
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Bool, FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, as_weights, listing, same_length
from likeminds._util.lazy_imports import nw
from likeminds.data.choice_sets import ChoiceOptions, item_arguments
from likeminds.data.column_roles import ID_ROLES, as_frame, find_columns, id_texts, read_values
from likeminds.data.identifiers import as_id_array, join_ids
from likeminds.data.sources import read_table

# The argument that names the column of a role in a table of preferences.
_ARGUMENTS = {"winner": "chosen", "loser": "rejected", "tie": "ties"}
# How ties of pairs are modelled: see `Annotations.from_comparisons`.
TieModel = Literal["davidson", "half"]


def comparison_arguments(columns: Mapping[str, Any], options: ChoiceOptions) -> dict[str, Any]:
    """Return the arguments of annotations of pairs: users, winners, losers, ties, strength."""
    won, lost = (as_id_array(columns[name], name) for name in ("winners", "losers"))
    rows, sides = _pair_rows(columns, won, lost)
    items = join_ids(won, lost)[sides]
    features = options.get("features")
    if isinstance(features, tuple) and len(features) == 2 and np.ndim(features[0]) == 2:
        stacked = _stack_two(*features, len(won))[sides]
        rows |= {"items": items, "features": stacked, "features_per": "row"}
        return rows | {name: options.get(name) for name in ("feature_names", "user_features")}
    return rows | item_arguments(items, **options)


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
    if options.get("features") is not None:
        raise ValueError(
            f"The columns {columns['winner']} and {columns['loser']} are features already: leave "
            "out features=."
        )
    stacked = _stack_two(won, lost, len(won))
    _refuse_equal(np.flatnonzero((won == lost).all(axis=1)))
    rows, sides = _pair_rows(values)
    rows |= {"items": None, "features": stacked[sides], "features_per": "row"}
    return rows | {"user_features": options.get("user_features")}


def _pair_rows(
    columns: Mapping[str, Any], winners: IdArray | None = None, losers: IdArray | None = None
) -> tuple[dict[str, Any], Index]:
    """Return the rows of pairs, and which of all winners, then losers, each row is.

    A tie is half a win of each, and marked unless ``tie_model`` is "half".
    """
    users = as_id_array(columns["users"], "users")
    n_pairs = len(users)
    if not n_pairs:
        raise ValueError("There are no comparisons: users, winners and losers are empty.")
    if winners is not None and losers is not None:
        same_length(users=users, winners=winners, losers=losers)
        _refuse_equal(np.flatnonzero(winners == losers), winners)
    weights = as_weights(columns.get("strength"), n_pairs, "strength")
    tied = np.flatnonzero(_as_ties(columns.get("ties"), n_pairs))
    tie_model = columns.get("tie_model", "davidson")
    if tie_model not in get_args(TieModel):
        raise ValueError(f'tie_model must be "davidson" or "half", but is {tie_model!r}.')
    pairs = np.concatenate([np.arange(n_pairs), tied])
    sides = np.column_stack([pairs, pairs + n_pairs])
    sides[n_pairs:] = sides[n_pairs:, ::-1]
    if tied.size:
        weights = np.ones(n_pairs) if weights is None else weights.copy()
        weights[tied] *= 0.5
    rows = {
        "users": users[np.repeat(pairs, 2)],
        "labels": np.tile([True, False], len(pairs)),
        "choice_sets": np.repeat(np.arange(len(pairs)), 2),
        "weights": None if weights is None else weights[np.repeat(pairs, 2)],
        "tied": None,
    }
    if tied.size and tie_model == "davidson":
        rows["tied"] = np.isin(pairs, tied).repeat(2)
    return rows, sides.ravel()


def _refuse_equal(same: Index, items: IdArray | None = None) -> None:
    """Refuse pairs of an item with itself."""
    if same.size:
        distinct = [] if items is None else list(dict.fromkeys(items[same].tolist()))
        names = f" ({listing(distinct)})" if distinct else ""
        raise ValueError(
            f"Comparison(s) {listing(same)}, counted from 0, have the same item{names} as winner "
            "and loser. Drop or correct them."
        )


def _as_ties(ties: ArrayLike | None, n_pairs: int) -> Bool:
    if ties is None:
        return np.zeros(n_pairs, dtype=np.bool_)
    array = np.asarray(ties)
    same_length(users=np.empty(n_pairs), ties=array)
    if not np.isin(array, [0, 1]).all():
        raise ValueError("ties must be true or false (or 1 and 0), one for each comparison.")
    return array.astype(np.bool_)


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
    """Return a column of vectors as a matrix; None where it is one of ids."""
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
