"""Wide tables as long ones: users by items, and choices with a column per alternative."""

import logging
from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from string import Formatter
from typing import Any, cast

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing, same_length
from likeminds._util.lazy_imports import nw, pa
from likeminds.data.alternatives import MOST_ALTERNATIVES, as_available, refuse_chosen
from likeminds.data.column_roles import (
    Frame,
    as_arrow,
    as_frame,
    find_column,
    id_of_choosers,
    is_usual,
    names_a_choice,
    read_values,
    refuse_unknown,
    with_index,
)
from likeminds.data.identifiers import as_distinct, encode, missing_rows
from likeminds.data.tables import is_frame, item_table

logger = logging.getLogger(__name__)

# Names of columns of features by alternative; the first pattern that fits is used.
_PATTERNS = (
    *("{feature}.{alternative}", "{feature}_{alternative}"),
    *("{alternative}_{feature}", "{alternative}.{feature}", "{feature}{alternative}"),
)


def matrix_arguments(
    matrix: object,
    users: Iterable[Hashable] | str | None,
    items: Iterable[Hashable] | None,
    features: object,
) -> dict[str, Any]:
    """Return the arguments of Annotations: see `Annotations.from_matrix`."""
    from scipy import sparse  # noqa: PLC0415 - takes long to import

    if is_frame(matrix):
        matrix, users, columns = _split_users(matrix, users)
        items = columns if items is None else items
    if sparse.issparse(matrix):
        stored = cast("sparse.coo_array", matrix).tocoo()
        shape, values, places = stored.shape, stored.data, (stored.row, stored.col)
    else:
        dense = np.asarray(matrix)
        if dense.ndim != 2:
            raise ValueError(f"matrix must be users by items, but has the shape {dense.shape}.")
        shape, values = dense.shape, dense.ravel()
        places = np.divmod(np.arange(dense.size), max(1, shape[1]))
    ids = [
        np.arange(size) if given is None else as_distinct(given, name)
        for size, given, name in zip(shape, (users, items), ("users", "items"), strict=True)
    ]
    same_length(**{"rows of matrix": range(shape[0]), "users": ids[0]})
    same_length(**{"columns of matrix": range(shape[1]), "items": ids[1]})
    present = np.delete(np.arange(len(values)), missing_rows(values))
    arguments = {
        "users": ids[0][places[0][present]],
        "items": ids[1][places[1][present]],
        "labels": values[present].tolist() if values.dtype.kind == "O" else values[present],
        "features": None,
    }
    if features is None:
        return arguments
    has_ids = isinstance(features, Mapping | str | PathLike) or is_frame(features)
    names = ("item_ids", "features", "feature_names")
    table = item_table(features, None if has_ids else ids[1], None)
    return arguments | dict(zip(names, table, strict=True)) | {"features_per": "item"}


def _split_users(
    frame: object, users: Iterable[Hashable] | str | None
) -> tuple[IdArray, Iterable[Hashable] | None, list[str]]:
    """Return the labels, the users and the items of a wide data frame."""
    table = as_frame(frame)
    column = users if isinstance(users, str) else None
    if users is None:
        column = find_column("user", table.columns)
    if users is None and column is None:
        before, table = table.columns, with_index(frame, "user")
        column = next((name for name in table.columns if name not in before), None)
    if column is not None:
        refuse_unknown(table, [column], "users")
        users, table = read_values(table, column, as_ids=True), table.drop(column)
    return table.to_numpy(), users, table.columns


def wide_to_long(
    frame: object,
    *,
    alternatives: Sequence[Hashable] | Mapping[Hashable, Hashable] | None = None,
    choice: str | None = None,
    columns: str | None = None,
    availability: str | None = None,
    user: str | None = None,
    weight: str | None = None,
    absent: float = 0.0,
) -> Any:
    """Turn a table with one row per choice into one with a row per alternative.

    `likeminds.Annotations.from_frame` reads the result and adds alternative-specific constants.
    Pass it ``features=[...]`` if a feature has the usual name of another role (weight).

    Parameters
    ----------
    frame : data frame
        One row per choice; features of alternatives are in columns of their own.
    alternatives : list, or mapping to names, optional
        The alternatives, as in the names of the columns; or a mapping from the values of the column
        ``choice`` to these names ({1: "train", 2: "car"}). By default, all that were chosen, and
        others with columns of the same features.
    choice : str, optional
        The column of the chosen alternative; by default, one called choice or chosen, or the only
        column of texts that occur in the names of the others.
    columns : str, optional
        The pattern of the features' columns: by default "{feature}.{alternative}",
        "{feature}_{alternative}", "{alternative}_{feature}", "{alternative}.{feature}" or
        "{feature}{alternative}", the first that fits. All that fit are read.
    availability : str, optional
        The pattern of columns with the availability of an alternative ("{alternative}_AV");
        alternatives with 0 are left out. By default, columns of a feature called AV, avail,
        available or availability.
    user : str, optional
        The column of users; by default, one with a usual name, or id. Without such a column, each
        row is a user of its own.
    weight : str, optional
        The column of the weights of choices; by default, one with a usual name.
    absent : float, default=0.0
        The value of a feature for alternatives without a column of it.

    Returns
    -------
    pyarrow.Table
        The columns user, choice_set, alternative, label, weight (if any), and the features.

    Examples
    --------
    >>> import pyarrow
    >>> wide = pyarrow.table({"user": ["ann", "bob"], "price_tea": [2, 3], "price_milk": [1, 4],
    ...                       "chosen": ["tea", "milk"]})
    >>> wide_to_long(wide).select(["user", "alternative", "label", "price"]).to_pylist()[:2]
    [{'user': 'ann', 'alternative': 'milk', 'label': 0, 'price': 1.0}, \
{'user': 'ann', 'alternative': 'tea', 'label': 1, 'price': 2.0}]
    """
    table = as_frame(frame)
    choice = choice or _choice_column(table)
    refuse_unknown(table, [choice], "choice")
    if alternatives is None:
        alternatives = _found_alternatives(table, choice) or _values(table, choice)
    names = _names(alternatives)
    columns = columns or _pattern_among(table, list(names.values())) or _PATTERNS[0]
    _check_pattern(columns, "columns", {"feature", "alternative"})
    features = _features(table, columns, list(names.values()))
    if not features:
        raise ValueError(
            f"No column fits {columns!r} with one of the alternatives "
            f"{listing(list(names.values()))}; the columns are {listing(table.columns)}. Pass "
            "columns= with their pattern."
        )
    free = _availability(table, availability, list(names.values()), features)
    features = {name: found for name, found in features.items() if not {*found} & {*free} - {None}}
    chosen = _chosen(table, choice, names)
    everywhere = np.ones(len(table), dtype=np.bool_)
    available = np.column_stack(
        [
            everywhere if column is None else as_available(read_values(table, column), column)
            for column in free
        ]
    )
    refuse_chosen(np.flatnonzero(~available[np.arange(len(chosen)), chosen]))
    row, place = np.nonzero(available)
    roles = {"user": user, "weight": weight}
    for role, name in roles.items():
        if name is not None:
            refuse_unknown(table, [name], role)
        roles[role] = name or find_column(role, table.columns)
    user = roles["user"] = roles["user"] or id_of_choosers(table.columns, choice)
    users = np.arange(len(table)) if user is None else read_values(table, user, as_ids=True)
    alternative_ids = as_arrow(list(names.values()))
    long: dict[str, Any] = {
        "user": as_arrow(users[row].tolist()),
        "choice_set": row,
        "alternative": alternative_ids.take(pa.array(place)),
        "label": (chosen[row] == place).astype(np.int64),
    }
    if roles["weight"] is not None:
        long["weight"] = _numbers(table, roles["weight"], 1.0)[row]
    for feature, by_alternative in features.items():
        found = [_numbers(table, name, absent) for name in by_alternative]
        long[feature] = np.column_stack(found)[row, place]
    logger.info(
        "One row per choice: %s is one of %s, with features in columns %s.%s",
        choice,
        listing(list(names.values())),
        columns,
        "" if available.all() else f" {int((~available).sum()):,} alternatives not available.",
    )
    used = {choice, *roles.values(), *free}.union(*features.values())
    same = [name for name in table.columns if name not in used]
    if same:
        logger.info("%s: the same for all alternatives, so not a feature.", listing(same))
    return pa.table(long)


def is_wide(frame: object, choice: str | None = None) -> bool:
    """Return whether a table has one row per choice, with alternatives in names of columns."""
    table = as_frame(frame)
    if choice is not None and choice not in table.columns:
        return False
    return bool(_fitting(table, [choice] if choice else table.columns))


def _choice_column(table: Frame) -> str:
    usual = [name for name in table.columns if names_a_choice(name)]
    found = usual if len(usual) == 1 else _fitting(table, table.columns)
    if len(found) != 1:
        raise ValueError(
            "No column is called choice or chosen. Pass choice= to name the column of the chosen "
            f"alternative; the columns are {listing(table.columns)}."
        )
    return found[0]


def _fitting(table: Frame, columns: Iterable[str]) -> list[str]:
    """Return the columns whose values are alternatives in the names of other columns.

    Numbers may also count features (x1, x2), so they need a column called choice or chosen.
    """
    return [
        name
        for name in columns
        if (table.schema[name] == nw.String or names_a_choice(name))
        and not {*_values(table, name)} <= {"0", "1"}
        and len(_found_alternatives(table, name)) > 1
    ]


def _values(table: Frame, choice: str) -> list[str]:
    return sorted(map(str, table[choice].drop_nulls().unique().to_list()))


def _found_alternatives(table: Frame, choice: str) -> list[str]:
    """Return the chosen alternatives, and others with columns of the same features."""
    chosen = _values(table, choice)
    pattern = _pattern_among(table, chosen) if len(chosen) <= MOST_ALTERNATIVES else None
    if pattern is None:
        return []
    shared = [
        {*_inner(table, pattern.replace("{feature}", feature), "{alternative}")}
        for feature, found in _features(table, pattern, chosen).items()
        if None not in found
    ]
    return sorted(set.intersection(*shared))


def _pattern_among(table: Frame, names: Sequence[Hashable]) -> str | None:
    """Return the pattern of the columns, if a feature has one for each alternative."""
    for pattern in _PATTERNS if names else ():
        if any(None not in found for found in _features(table, pattern, names).values()):
            return pattern
    return None


def _inner(table: Frame, pattern: str, gap: str) -> dict[str, str]:
    """Return the parts of names in the gap of a pattern, and their columns."""
    before, _, after = pattern.partition(gap)
    return {
        inner: column
        for column in table.columns
        if (inner := column[len(before) : len(column) - len(after)])
        and column == before + inner + after
    }


def _names(alternatives: Sequence[Hashable] | Mapping[Hashable, Hashable]) -> dict[Any, Any]:
    names = alternatives if isinstance(alternatives, Mapping) else {a: a for a in alternatives}
    if len(names) < 2 or len(set(names.values())) < len(names):
        found = listing(list(names.values()))
        raise ValueError(f"alternatives must be two or more distinct names, not {found}.")
    return dict(names)


def _check_pattern(pattern: str, argument: str, fields: set[str]) -> None:
    if {name for _, name, _, _ in Formatter().parse(pattern) if name is not None} != fields:
        described = " and ".join(f"{{{name}}}" for name in sorted(fields))
        raise ValueError(f"{argument} must contain {described}, but is {pattern!r}.")


def _features(table: Frame, pattern: str, names: Sequence[Hashable]) -> dict[str, list[str | None]]:
    """Return, for each feature, its column for each alternative, or None."""
    found: dict[str, list[str | None]] = {}
    for position, alternative in enumerate(names):
        named = pattern.replace("{alternative}", str(alternative))
        for feature, column in _inner(table, named, "{feature}").items():
            found.setdefault(feature, [None] * len(names))[position] = column
    return found


def _chosen(table: Frame, choice: str, names: Mapping[Any, Any]) -> Index:
    values = read_values(table, choice)
    codes, distinct = encode(values, choice)
    order = {key: place for place, key in enumerate(names)}
    order |= {str(key): place for place, key in enumerate(names)} | order
    places = [order.get(value, order.get(str(value), -1)) for value in distinct.tolist()]
    unknown = [value for value, place in zip(distinct.tolist(), places, strict=True) if place < 0]
    if unknown:
        raise ValueError(
            f"Column {choice!r} has {listing(unknown)}, which is not one of the alternatives "
            f"{listing(list(names))}. Add it to them, or drop its rows."
        )
    return np.array(places, dtype=np.intp)[codes]


def _availability(
    table: Frame,
    pattern: str | None,
    names: Sequence[Hashable],
    features: Mapping[str, list[str | None]],
) -> list[str | None]:
    """Return the column of each alternative's availability; None if there is none."""
    if pattern is None:
        usual = [found for name, found in features.items() if is_usual("availability", name)]
        return usual[0] if usual else [None] * len(names)
    _check_pattern(pattern, "availability", {"alternative"})
    columns = [pattern.format(alternative=name) for name in names]
    refuse_unknown(table, columns, "availability")
    return list(columns)


def _numbers(table: Frame, column: str | None, absent: float) -> Float:
    if column is None:
        return np.full(len(table), absent)
    try:
        return read_values(table, column).astype(np.float64)
    except (TypeError, ValueError) as error:
        raise ValueError(f"Column {column!r} must hold numbers: {error}") from error
