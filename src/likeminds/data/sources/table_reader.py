"""Read a table from wherever it is, by what its name looks like."""

import sys
from collections.abc import Callable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import readable
from likeminds._util.lazy_imports import compute, pa
from likeminds.data.sources import databases, files

SOURCES = (
    "a .csv, .parquet, .arrow (.feather), .npy or .npz file, - for CSV on standard input, or a "
    'database and a query: "sqlite:///FILE SELECT ...", "duckdb:///FILE SELECT ...", '
    '"postgresql://HOST/NAME SELECT ..."'
)


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


_CSV = (".csv", ".csv.gz")
# How each kind of file that knows types is read, by the ending of its name.
_READERS: dict[str, Callable[[Any], Any]] = {
    ".parquet": files.read_parquet,
    ".pq": files.read_parquet,
    ".arrow": files.read_arrow,
    ".feather": files.read_arrow,
    ".ipc": files.read_arrow,
    ".npy": read_npy,
    ".npz": read_npz,
}


def read_table(source: str | PathLike[str], texts: files.Texts = files.no_texts) -> Any:
    """Read a table as a pyarrow.Table.

    Columns of lists of numbers, all of one length (an embedding, say), are spread out to one
    column for each number.

    Parameters
    ----------
    source : str or path
        The name of a file (CSV, Parquet, Arrow, NPY, NPZ, by its ending), ``-`` for CSV on
        standard input, or the address of a database, a space, and a query:
        ``"sqlite:///crowd.db SELECT person, item, label FROM labels"``. SQLite is always there,
        DuckDB and PostgreSQL are extras. Databases are opened for reading only.
    texts : callable, optional
        Returns, given the names of all columns, those that hold texts even where these look like
        numbers. It is asked about CSV only: all else knows the types of its columns.

    Returns
    -------
    pyarrow.Table
    """
    name = fspath(source)
    if name == "-":
        return files.read_csv(_standard_input(), texts)
    if databases.is_address(name):
        return spread(databases.read_query(name))
    databases.refuse_foreign(name)
    if name.lower().endswith(_CSV):
        return files.read_csv(name, texts)
    for ending, reader in _READERS.items():
        if name.lower().endswith(ending):
            return spread(reader(name))
    if Path(name).exists() and readable(name).is_dir():
        raise ValueError(
            f"{name} is a folder: name one of its files, or, to learn from a folder of Parquet "
            "or CSV files, say how: --memory 4GB (AnnotationFolder) or --dask local:2 (Shards)."
        )
    raise ValueError(
        f"{name if name.strip() else repr(name)} is not a table that can be read. Give {SOURCES}."
    )


def _standard_input() -> Any:
    # Programs may be started without any, or may have closed it.
    if sys.stdin is None or getattr(sys.stdin, "closed", False):
        raise ValueError("There is no standard input to read: it is closed. Name a file.")
    return sys.stdin.buffer


def spread(table: "pa.Table") -> "pa.Table":
    """Return a table with its columns of lists of numbers spread out."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    if not any(is_kind(field.type) for field in table.schema for is_kind in kinds):
        return table
    columns: dict[str, Any] = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        if not any(is_kind(field.type) for is_kind in kinds):
            columns[field.name] = column
            continue
        lengths = set(compute.list_value_length(column).to_pylist())
        if len(lengths) > 1 or None in lengths:
            raise ValueError(
                f"Column {field.name!r} holds lists of different lengths, which are not features."
            )
        width = lengths.pop() if lengths else 0
        columns |= {f"{field.name}{k}": compute.list_element(column, k) for k in range(width)}
    return pa.table(columns)
