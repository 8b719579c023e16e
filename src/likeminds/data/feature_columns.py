"""Columns as features: matrices of numbers, and categories as columns of zeros and ones."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import FloatArray
from likeminds._util.checks import as_matrix, listing
from likeminds._util.lazy_imports import nw, pa
from likeminds.data.column_roles import Frame, refuse_unknown
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
    """Return columns as a matrix; the list is empty then, so that they may go one by one."""
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
# "(no genres listed)" is no genre.
_NOTHING = re.compile(r"\(no\b.*\)", re.IGNORECASE)


@dataclass(frozen=True)
class EncodedItems:
    """A table of items whose features are all numbers."""

    table: Any
    left_out: tuple[str, ...]


def encode_items(table: "pa.Table", key: str, known: Sequence[str] | None = None) -> EncodedItems:
    """Turn texts in a table of items into numbers, where they are lists or categories."""
    columns: dict[str, Any] = {}
    left_out = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name == key or not _is_text(column):
            columns[name] = column
            continue
        words = [set((text or "").split(SEPARATOR)) - {""} for text in column.to_pylist()]
        wanted = _known_words(name, known) or _words_worth(words)
        if not wanted:
            left_out.append(name)
        for word in wanted:
            columns[_called(name, word)] = pa.array([int(word in row) for row in words])
    return EncodedItems(pa.table(columns), tuple(left_out))


def _is_text(column: "pa.ChunkedArray") -> bool:
    kind = column.type.value_type if pa.types.is_dictionary(column.type) else column.type
    return bool(pa.types.is_string(kind) or pa.types.is_large_string(kind))


def _called(column: str, word: str) -> str:
    return f"{column}: {word}"


def _known_words(column: str, known: Sequence[str] | None) -> list[str]:
    start = _called(column, "")
    return [name.removeprefix(start) for name in known or () if name.startswith(start)]


def _words_worth(rows: Sequence[set[str]]) -> list[str]:
    """Return the words of a column, sorted; none where they are names rather than kinds."""
    words = sorted(word for word in set().union(*rows) if not _NOTHING.fullmatch(word))
    is_list = any(len(row) > 1 for row in rows)
    shared = len(words) * _FEWEST <= len(rows)
    return words if is_list or (shared and 1 < len(words) <= _MOST_KINDS) else []
