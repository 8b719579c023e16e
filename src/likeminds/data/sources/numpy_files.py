"""NumPy files as tables: .npy and .npz, never with pickled objects."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import readable
from likeminds._util.lazy_imports import pa


def read_npy(path: str | Path) -> Any:
    """Read one array: a matrix of features, row by row, or a structured array.

    Rows of a matrix are called by their number, in a column ``item``; columns are x0, x1, ...
    """
    array = _load(path)
    if not isinstance(array, np.ndarray):
        raise ValueError(f"{path} is an archive of arrays: call it .npz.")  # noqa: TRY004
    if array.dtype.names:
        return pa.table({name: pa.array(array[name]) for name in array.dtype.names})
    if array.ndim != 2 or array.dtype.kind not in "fiub":
        raise ValueError(
            f"{path} holds an array of {array.dtype} of shape {array.shape}. A table is a "
            "matrix of numbers, one row per item, or a structured array with named columns."
        )
    return as_table({"item": np.arange(len(array)), "x": array}, path)


def read_npz(path: str | Path) -> Any:
    """Read an archive of arrays of one length: vectors are columns, matrices several columns."""
    archive = _load(path)
    if isinstance(archive, np.ndarray):
        raise ValueError(f"{path} is a single array: call it .npy.")  # noqa: TRY004
    with archive:
        try:
            return as_table({name: archive[name] for name in archive.files}, path)
        except ValueError as error:
            if "pickle" not in str(error):
                raise
            raise ValueError(
                f"{path} holds pickled objects, which are never read. Save texts as arrays of "
                'text: array.astype("U").'
            ) from error


def as_table(arrays: Mapping[str, NDArray[Any]], where: object) -> Any:
    """Put arrays side by side: a matrix called ``x`` becomes the columns x0, x1, ..."""
    columns = {}
    for name, array in arrays.items():
        if array.ndim == 1:
            columns[name] = pa.array(array.tolist() if array.dtype.kind in "US" else array)
        elif array.ndim == 2:
            columns |= {f"{name}{k}": pa.array(array[:, k]) for k in range(array.shape[1])}
        else:
            raise ValueError(
                f"{where}: {name} has shape {array.shape}; columns of a table are vectors or "
                "matrices."
            )
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        found = ", ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"{where}: the arrays of one table have one length, but {found}.")
    return pa.table(columns)


def _load(path: str | Path) -> Any:
    file = readable(path)
    try:
        return np.load(file, allow_pickle=False)
    except (ValueError, OSError, EOFError) as error:
        raise ValueError(f"{path} cannot be read as NumPy's: {error}") from error
