"""Wide tables as long ones: users by items, and choices with a column per alternative."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from os import PathLike
from string import Formatter
from typing import Any, cast

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.checks import listing, same_length
from likeminds._util.lazy_imports import pa
from likeminds.data.alternatives import as_available, refuse_chosen
from likeminds.data.column_roles import (
    Frame,
    as_arrow,
    as_frame,
    find_column,
    is_usual,
    read_values,
    refuse_unknown,
    with_index,
)
from likeminds.data.feature_columns import is_frame
from likeminds.data.identifiers import as_distinct, encode, missing_rows
from likeminds.data.tables import item_table


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
    alternatives: Sequence[Hashable] | Mapping[Hashable, Hashable],
    choice: str,
    columns: str = "{feature}_{alternative}",
    availability: str | None = None,
    user: str | None = None,
    absent: float = 0.0,
) -> Any:
    """Turn a table with one row per choice into one with a row per alternative.

    `likeminds.Annotations.from_frame` reads the result and adds alternative-specific constants;
    ``features=[...]`` names the features where some are called like something else (a weight).

    Parameters
    ----------
    frame : data frame
        One row per choice; features of alternatives are in columns of their own.
    alternatives : list, or mapping to names
        What could be chosen, as the columns name it; a mapping goes from what is in the column
        ``choice`` to these names ({1: "train", 2: "car"}).
    choice : str
        The column that says what was chosen.
    columns : str, default="{feature}_{alternative}"
        How the features' columns are called. All that fit are read.
    availability : str, optional
        How columns are called that say whether an alternative was available
        ("{alternative}_AV"): those with 0 are left out. By default, columns of a feature called
        AV, avail, available or availability.
    user : str, optional
        The column of people; by default one with a usual name. Without any, each row is a
        person of its own.
    absent : float, default=0.0
        The value of a feature that an alternative has no column for.

    Returns
    -------
    pyarrow.Table
        With columns person, choice_set, alternative, label, and the features.

    Examples
    --------
    >>> import pyarrow
    >>> wide = pyarrow.table({"user": ["ann", "bob"], "price_tea": [2, 3], "price_milk": [1, 4],
    ...                       "chosen": ["tea", "milk"]})
    >>> long = wide_to_long(wide, alternatives=["tea", "milk"], choice="chosen")
    >>> long.select(["user", "alternative", "label", "price"]).to_pylist()[:2]
    [{'user': 'ann', 'alternative': 'tea', 'label': 1, 'price': 2.0}, \
{'user': 'ann', 'alternative': 'milk', 'label': 0, 'price': 1.0}]
    """
    table = as_frame(frame)
    refuse_unknown(table, [choice], "choice")
    names = _names(alternatives)
    _check_pattern(columns, "columns", {"feature", "alternative"})
    features = _features(table, columns, list(names.values()))
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
    if user is not None:
        refuse_unknown(table, [user], "user")
    user = user or find_column("user", table.columns)
    users = np.arange(len(table)) if user is None else read_values(table, user, as_ids=True)
    alternative_ids = as_arrow(list(names.values()))
    long: dict[str, Any] = {
        "user": as_arrow(users[row].tolist()),
        "choice_set": row,
        "alternative": alternative_ids.take(pa.array(place)),
        "label": (chosen[row] == place).astype(np.int64),
    }
    for feature, by_alternative in features.items():
        found = [_numbers(table, name, absent) for name in by_alternative]
        long[feature] = np.column_stack(found)[row, place]
    return pa.table(long)


def _names(alternatives: Sequence[Hashable] | Mapping[Hashable, Hashable]) -> dict[Any, Any]:
    names = alternatives if isinstance(alternatives, Mapping) else {a: a for a in alternatives}
    if len(names) < 2 or len(set(names.values())) < len(names):
        raise ValueError("alternatives must be two or more, and each must be there once.")
    return dict(names)


def _check_pattern(pattern: str, argument: str, fields: set[str]) -> None:
    if {name for _, name, _, _ in Formatter().parse(pattern) if name is not None} != fields:
        described = " and ".join(f"{{{name}}}" for name in sorted(fields))
        raise ValueError(f"{argument} must contain {described}, but is {pattern!r}.")


def _features(table: Frame, pattern: str, names: Sequence[Hashable]) -> dict[str, list[str | None]]:
    """Return, for each feature, its column for each alternative, or None."""
    found: dict[str, list[str | None]] = {}
    for position, alternative in enumerate(names):
        before, _, after = pattern.replace("{alternative}", str(alternative)).partition("{feature}")
        for column in table.columns:
            inner = column[len(before) : len(column) - len(after)]
            if inner and column == f"{before}{inner}{after}":
                found.setdefault(inner, [None] * len(names))[position] = column
    if not found:
        raise ValueError(
            f"No column is called like {pattern!r} with one of the alternatives {listing(names)}; "
            f"there are {listing(table.columns)}. Pass columns= to say how they are called."
        )
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
            f"Column {choice!r} has {listing(unknown)}, which is none of the alternatives "
            f"{listing(list(names))}. Add it to them, or drop its rows."
        )
    return np.array(places, dtype=np.intp)[codes]


def _availability(
    table: Frame,
    pattern: str | None,
    names: Sequence[Hashable],
    features: Mapping[str, list[str | None]],
) -> list[str | None]:
    """Return the column of each alternative's availability; None where there is none."""
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
