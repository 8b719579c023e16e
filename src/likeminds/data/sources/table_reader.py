"""Read a table from wherever it is, by what its name looks like."""

import sys
from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any

from likeminds._util.atomic_files import readable
from likeminds._util.lazy_imports import LazyModule, pa
from likeminds.data.sources import databases, files, numpy_files

compute: Any = LazyModule("pyarrow.compute")

_CSV = (".csv", ".csv.gz")
# How each kind of file that knows types is read, by the ending of its name.
_READERS: dict[str, Callable[[Any], Any]] = {
    ".parquet": files.read_parquet,
    ".pq": files.read_parquet,
    ".arrow": files.read_arrow,
    ".feather": files.read_arrow,
    ".ipc": files.read_arrow,
    ".npy": numpy_files.read_npy,
    ".npz": numpy_files.read_npz,
}
SOURCES = (
    "a .csv, .parquet, .arrow (.feather), .npy or .npz file, - for CSV on standard input, or a "
    'database and a query: "sqlite:///FILE SELECT ...", "duckdb:///FILE SELECT ...", '
    '"postgresql://HOST/NAME SELECT ..."'
)


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
        f"{name if name.strip() else repr(name)} is no table that can be read. Give {SOURCES}."
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
                f"Column {field.name!r} holds lists of different lengths, which are no features."
            )
        width = lengths.pop() if lengths else 0
        columns |= {f"{field.name}{k}": compute.list_element(column, k) for k in range(width)}
    return pa.table(columns)
