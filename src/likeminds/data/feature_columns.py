"""Features: columns of numbers, categories as zeros and ones, and the row of each label."""

import re
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple, cast

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import FloatArray, IdArray, Index
from likeminds._util.checks import as_matrix, as_names, listing, same_length
from likeminds._util.lazy_imports import nw, pa
from likeminds.data.column_roles import Frame, as_frame, refuse_unknown
from likeminds.data.identifiers import as_distinct, coerce_ids, lookup
from likeminds.data.sources import give_back

# The memory of columns with so many rows is given back as soon as they are read.
_MANY_ROWS = 1 << 20


class FiniteRows(NamedTuple):
    """Rows of features that were checked already: large ones are not passed over twice."""

    matrix: FloatArray


def feature_matrix(frame: Frame, columns: Sequence[str]) -> FloatArray:
    """Return columns of numbers (or true/false) as a matrix; name those that are not."""
    if not columns:  # items are known by their ids alone
        return np.zeros((len(frame), 0))
    return matrix_of(numeric_columns(frame, columns))


def numeric_columns(frame: Frame, columns: Sequence[str]) -> "list[nw.Series[Any]]":
    """Return columns of numbers (or true/false), one by one; name those that are not."""
    refuse_unknown(frame, columns, "features")
    kinds = frame.schema
    types = [kinds[column] for column in columns]
    bad = [c for c, t in zip(columns, types, strict=True) if not is_numeric(t)]
    if bad:
        raise ValueError(
            f"Features must be numbers, but these columns are not: {listing(bad)}. "
            "Leave them out, or encode them as numbers first (for instance one-hot)."
        )
    # Not one by one by their names, which takes as long as there are columns each time.
    return list(frame.select(nw.col(*columns)).iter_columns())


def matrix_of(columns: "list[nw.Series[Any]]") -> FloatArray:
    """Return columns as a matrix; empties the list, so each column is released once copied."""
    single = all(column.dtype == nw.Float32 for column in columns)
    n_rows, n_columns = len(columns[0]), len(columns)
    matrix = np.empty((n_rows, n_columns), dtype=np.float32 if single else np.float64)
    for position in reversed(range(n_columns)):
        column = columns.pop()
        matrix[:, position] = (column if single else column.cast(nw.Float64)).to_numpy()
        if n_rows >= _MANY_ROWS:
            del column
            give_back()
    return as_matrix(matrix, "features")


def is_numeric(dtype: "nw.dtypes.DType") -> bool:
    """Say whether a column of this type may be a feature: numbers, or true and false."""
    return dtype.is_numeric() or dtype == nw.Boolean


SEPARATOR = "|"
# A category that fewer items share says nothing about others that share it.
_FEWEST = 3
# More would be names rather than kinds.
_MOST_KINDS = 50
# "(no genres listed)" is not a genre.
_NOTHING = re.compile(r"\(no\b.*\)", re.IGNORECASE)


def encode_items(
    table: "pa.Table", key: str, known: Sequence[str] | None = None
) -> "tuple[pa.Table, list[str]]":
    """Encode lists and categories in a table of items as dummies; return other texts' names, too.

    ``known`` are the names of features of an earlier table, which has the same dummies.
    """
    columns: dict[str, Any] = {}
    left_out = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
        if name == key or not (pa.types.is_string(kind) or pa.types.is_large_string(kind)):
            columns[name] = column
            continue
        rows = [set((text or "").split(SEPARATOR)) - {""} for text in column.to_pylist()]
        start = f"{name}: "
        encoded = [one.removeprefix(start) for one in known or () if one.startswith(start)]
        categories = encoded or _categories(rows)
        if not categories:
            left_out.append(name)
        for category in categories:
            columns[start + category] = pa.array([int(category in row) for row in rows])
    return pa.table(columns), left_out


def _categories(rows: Sequence[set[str]]) -> list[str]:
    """Return the categories of a column, sorted; none where its texts are names."""
    words = sorted(word for word in set().union(*rows) if not _NOTHING.fullmatch(word))
    is_list = any(len(row) > 1 for row in rows)
    shared = len(words) * _FEWEST <= len(rows)
    return words if is_list or (shared and 1 < len(words) <= _MOST_KINDS) else []


class LinkedFeatures(NamedTuple):
    """A table of features, the ids of its items, and where each annotation points."""

    features: FloatArray
    feature_names: tuple[str, ...]
    item_ids: IdArray
    item_codes: Index
    feature_rows: Index
    features_per: str
    has_items: bool


def link_features(
    features: object,
    items: tuple[Index, IdArray] | None,
    n_rows: int,
    *,
    item_ids: Iterable[Hashable] | None = None,
    names: Sequence[str] | None = None,
    features_per: str = "auto",
) -> LinkedFeatures:
    """Find the row of features that each annotation is about.

    ``items`` are codes and distinct ids, or None if each annotation has an item of its own;
    the other parameters are those of `Annotations`.
    """
    if features is None:
        if items is None:
            raise ValueError(
                "There are neither features nor items: pass features=, or items= to say which item "
                "each row is about."
            )
        none = np.zeros((len(items[1]), 0))
        return LinkedFeatures(none, (), items[1], items[0], items[0], "item", True)
    if isinstance(features, Mapping):
        if item_ids is not None:
            raise ValueError("features is a mapping by item id already: leave item_ids out.")
        features, item_ids = list(features.values()), list(features)
    if items is not None and isinstance(features, np.ndarray) and features.shape[1:] == (0,):
        matrix: FloatArray = np.zeros((len(features), 0))  # known by their ids alone
        found_names: tuple[str, ...] | None = None
    else:
        matrix, found_names = read_matrix(features)
    names = as_names(found_names if names is None else names, matrix.shape[1])
    per = _features_per(features_per, items, item_ids, len(matrix), n_rows)
    every_row = np.arange(len(matrix))
    if per == "row" and len(matrix) != n_rows:
        raise ValueError(
            f"features has {len(matrix)} rows, but there are {n_rows} annotations. "
            "Give one row of features per annotation; or one per item, with items= and item_ids=."
        )
    if items is None:
        return LinkedFeatures(matrix, names, every_row, every_row, every_row, "row", False)
    codes, distinct = items
    if per == "row":
        return LinkedFeatures(matrix, names, distinct, codes, every_row, "row", True)
    if item_ids is None:
        _refuse_not_index(distinct, len(matrix))
        known, codes = every_row, distinct[codes].astype(np.intp)
    else:
        known = as_distinct(item_ids, "item_ids").copy()
        same_length(item_ids=known, features=matrix)
        codes = _positions(distinct, known)[codes]
    return LinkedFeatures(matrix, names, known, codes, codes, "item", True)


def is_frame(features: object) -> bool:
    """Tell whether features are a data frame of any library."""
    if isinstance(features, np.ndarray | list | tuple):
        return False
    return isinstance(nw.from_native(features, pass_through=True), nw.DataFrame | nw.LazyFrame)


def read_matrix(features: object) -> tuple[FloatArray, tuple[str, ...] | None]:
    """Return an array or a data frame as a matrix, and the names of its columns, if it has any."""
    if isinstance(features, FiniteRows):
        return features.matrix, None
    if is_frame(features):
        frame = as_frame(features)
        return feature_matrix(frame, frame.columns), tuple(map(str, frame.columns))
    return as_matrix(cast("ArrayLike", features), "features"), None


def _positions(distinct: IdArray, known: IdArray) -> Index:
    positions = lookup(coerce_ids(distinct, known, "items"), known, "items")
    if (positions < 0).any():
        raise ValueError(
            f"There are no features for item(s) {listing(distinct[positions < 0])}. "
            "Add them to the features, or drop the rows about these items."
        )
    return positions


def _features_per(
    features_per: str,
    items: tuple[Index, IdArray] | None,
    item_ids: Iterable[Hashable] | None,
    n_features: int,
    n_rows: int,
) -> str:
    if features_per not in {"auto", "item", "row"}:
        raise ValueError(f'features_per must be "auto", "item" or "row", not {features_per!r}.')
    if item_ids is not None and features_per == "row":
        raise ValueError('features with item ids are per item: leave out features_per="row".')
    if items is None and (item_ids is not None or features_per == "item"):
        raise ValueError("features are per item, so items= must say which item each row is about.")
    if features_per != "auto" or items is None:
        return "row" if items is None else features_per
    if item_ids is not None or n_features != n_rows:
        return "item"
    codes, distinct = items
    is_index = distinct.dtype.kind in "iu" and distinct.min() >= 0 and distinct.max() < n_features
    if is_index and not np.array_equal(distinct[codes], np.arange(n_features)):
        raise ValueError(
            f"There are as many rows of features as annotations ({n_features}), and items could "
            'be the numbers of these rows. Pass features_per="row" if row k of features belongs '
            'to annotation k, or features_per="item" if it belongs to item k.'
        )
    return "row"


def _refuse_not_index(distinct: IdArray, n_features: int) -> None:
    if distinct.dtype.kind not in "iu":
        raise ValueError(
            f"features has {n_features} rows, one per item, but items are not row numbers: "
            f"{listing([repr(value) for value in distinct.tolist()])}. "
            "Pass item_ids= to say which item each row of features describes."
        )
    outside = distinct[(distinct < 0) | (distinct >= n_features)]
    if outside.size:
        raise ValueError(
            f"items must be row numbers of features, 0 to {n_features - 1}, but there are also "
            f"{listing(outside)}. Pass item_ids= if items are not row numbers."
        )
