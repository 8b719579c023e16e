"""Columns of numbers as a matrix of features."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from likeminds._util.array_types import FloatArray
from likeminds._util.checks import as_matrix, listing
from likeminds.data.column_roles import refuse_unknown
from likeminds.data.sources import give_back

if TYPE_CHECKING:
    import narwhals as nw

# The memory of columns with so many rows is given back as soon as they are read.
_MANY_ROWS = 1 << 20


class FiniteRows(NamedTuple):
    """Rows of features that were checked already: large ones are not passed over twice."""

    matrix: FloatArray


def feature_matrix(frame: "nw.DataFrame[Any]", columns: Sequence[str]) -> FloatArray:
    """Return columns of numbers (or true/false) as a matrix; name those that are not."""
    if not columns:  # items are known by their ids alone
        return np.zeros((len(frame), 0))
    return matrix_of(numeric_columns(frame, columns))


def numeric_columns(frame: "nw.DataFrame[Any]", columns: Sequence[str]) -> "list[nw.Series[Any]]":
    """Return columns of numbers (or true/false), one by one; name those that are not."""
    import narwhals as nw  # noqa: PLC0415 - keeps the import of likeminds light

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
    import narwhals as nw  # noqa: PLC0415 - keeps the import of likeminds light

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
    import narwhals as nw  # noqa: PLC0415 - keeps the import of likeminds light

    return dtype.is_numeric() or dtype == nw.Boolean
