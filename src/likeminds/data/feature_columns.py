"""Columns of numbers as a matrix of features."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import FloatArray
from likeminds._util.checks import as_matrix, listing
from likeminds._util.lazy_imports import nw
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
