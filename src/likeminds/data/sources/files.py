"""Tables in files: CSV, Parquet and Arrow."""

from collections.abc import Callable
from os import PathLike, fspath
from pathlib import Path
from typing import Any


def read_csv(source: Any) -> Any:
    """Read CSV with a header, from a path or a file that is open for bytes.

    pandas' row index, a column without name, is left out; empty cells are missing.
    """
    from pyarrow import csv  # noqa: PLC0415 - keeps the import of likeminds light

    empty_is_missing = csv.ConvertOptions(strings_can_be_null=True)
    return read_with(lambda file: csv.read_csv(file, convert_options=empty_is_missing), source)


def read_parquet(path: str | PathLike[str]) -> Any:
    """Read a Parquet file; pandas' row index is left out."""
    from pyarrow import parquet  # noqa: PLC0415 - keeps the import of likeminds light

    return read_with(parquet.read_table, path)


def read_arrow(path: str | PathLike[str]) -> Any:
    """Read an Arrow file (also called Feather or IPC), or a stream of Arrow batches in a file."""
    import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

    def read(name: str) -> Any:
        with pa.memory_map(name) as file:
            try:
                return pa.ipc.open_file(file).read_all()
            except pa.ArrowInvalid:
                file.seek(0)
                return pa.ipc.open_stream(file).read_all()

    return read_with(read, path)


def read_with(reader: Callable[[Any], Any], source: Any) -> Any:
    """Let a reader read; say in one sentence what is wrong with the file."""
    import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

    given = isinstance(source, str | PathLike)
    name = fspath(source) if given else "standard input"
    if given and not Path(source).exists():
        raise FileNotFoundError(f"There is no file {name}. Check the name and the folder.")
    try:
        table = reader(name if given else source)
    except (pa.ArrowException, OSError) as error:
        raise ValueError(f"{name} could not be read: {error}") from error
    # What pandas writes for its row index would otherwise become a feature.
    index = [c for c in table.column_names if c == "" or c.startswith("__index_level_")]
    return table.drop_columns(index)
