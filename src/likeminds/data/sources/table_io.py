"""Read a table from a file, a database or standard input; write one, by the ending of its name."""

import io
import json
import math
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from os import PathLike, fspath
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import place_for, readable, write_whole
from likeminds._util.lazy_imports import compute, pa, parquet
from likeminds._util.lazy_rows import LazyRows
from likeminds._util.text_format import visible
from likeminds.data.sources import databases, files
from likeminds.data.sources.files import MISSING

SOURCES = (
    "a .csv, .parquet, .arrow (.feather), .npy or .npz file, - for CSV on standard input, or a "
    'database and a query: "sqlite:///FILE SELECT ...", "duckdb:///FILE SELECT ...", '
    '"postgresql://HOST/NAME SELECT ..."'
)


def read_npy(path: str | Path) -> Any:
    """Read one array: a matrix of features, row by row, or a structured array.

    Rows of a matrix are called by their number, in a column ``item``; columns are x0, x1, ...
    """
    array = load_numpy(path)
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
    archive = load_numpy(path)
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


def load_numpy(path: str | Path) -> Any:
    """Load an array or an archive of arrays; pickled objects are never read."""
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
        # Programs may be started without any, or may have closed it.
        if sys.stdin is None or getattr(sys.stdin, "closed", False):
            raise ValueError("There is no standard input to read: it is closed. Name a file.")
        return files.read_csv(sys.stdin.buffer, texts)
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


def spread(table: "pa.Table") -> "pa.Table":
    """Return a table with its columns of lists of numbers spread out."""
    kinds = (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list)
    spreads = [any(is_kind(field.type) for is_kind in kinds) for field in table.schema]
    if not any(spreads):
        return table
    columns: dict[str, Any] = {}
    for field, column, is_list in zip(table.schema, table.columns, spreads, strict=True):
        if not is_list:
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


# What ends a field or a line, and spaces at the ends, which some readers take away.
_TO_QUOTE = re.compile(r'[",\r\n]|^\s|\s$')


def write_table(table: "pa.Table", target: str | PathLike[str]) -> str:
    """Write a pyarrow.Table as CSV, Parquet, Arrow or JSON, by the ending of the name.

    Parameters
    ----------
    table : pyarrow.Table
        What to write.
    target : str or path
        A name that ends in .csv, .parquet (.pq), .arrow (.feather) or .json; ``-`` is CSV on
        standard output.

    Returns
    -------
    str
        The name.
    """
    name = fspath(target)
    if name == "-":
        text = _csv(table).decode()
        # A pipe gets the text as it is, a terminal gets it with control characters escaped.
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
        return name
    write_whole(as_written(name), _WRITERS[Path(name).suffix.lower()](table))
    return name


def as_written(target: str | PathLike[str]) -> Path:
    """Return where a table goes, or say what is in the way before any work."""
    path = Path(fspath(target))
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(
            f"{path} says not what it is to be: end its name in {', '.join(_WRITERS)}, or write - "
            "for CSV on standard output."
        )
    return place_for(path, "the table")


def plain(value: object) -> object:
    """Return what JSON can hold: no NaN, no infinity, nothing of NumPy's."""
    if isinstance(value, Mapping):
        return {str(key): plain(part) for key, part in value.items()}
    if isinstance(value, np.ndarray | np.generic | LazyRows):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None
    known = value is None or isinstance(value, bool | int | float | str)
    return value if known else str(value)


def _csv(table: "pa.Table") -> bytes:
    # Not pyarrow's writer, which puts every text in quotes; nor Python's, which leaves carriage
    # returns without, and texts that read as missing.
    rows: list[Iterable[Any]] = [table.column_names]
    for batch in table.to_batches():
        rows += zip(*(column.to_pylist() for column in batch.columns), strict=True)
    return "".join(f"{','.join(map(_field, row))}\n" for row in rows).encode()


def _field(value: object) -> str:
    if value is None:
        return ""
    text = str(value)
    if isinstance(value, str) and (_TO_QUOTE.search(text) or text in MISSING):
        return '"' + text.replace('"', '""') + '"'
    return text


def _parquet(table: "pa.Table") -> bytes:
    buffer = io.BytesIO()
    parquet.write_table(table, buffer)
    return buffer.getvalue()


def _arrow(table: "pa.Table") -> bytes:
    buffer = io.BytesIO()
    with pa.ipc.new_file(buffer, table.schema) as writer:
        writer.write_table(table)
    return buffer.getvalue()


_WRITERS: dict[str, Callable[[Any], bytes]] = {
    ".csv": _csv,
    ".parquet": _parquet,
    ".pq": _parquet,
    ".arrow": _arrow,
    ".feather": _arrow,
    ".json": lambda table: (json.dumps(plain(table.to_pylist()), indent=1) + "\n").encode(),
    ".jsonl": lambda table: b"".join(
        f"{json.dumps(plain(row))}\n".encode() for row in table.to_pylist()
    ),
}
