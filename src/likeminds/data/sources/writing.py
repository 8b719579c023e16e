"""Write tables as CSV, Parquet, Arrow and JSON, by the ending of the file's name."""

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

from likeminds._util.atomic_files import place_for, write_whole
from likeminds._util.lazy_imports import pa, parquet
from likeminds._util.lazy_rows import LazyRows
from likeminds._util.text_format import visible
from likeminds.data.sources.files import MISSING

# Delimiters, quotes, and spaces at the ends, which some readers remove.
_TO_QUOTE = re.compile(r'[",\r\n]|^\s|\s$')


def write_table(table: "pa.Table", target: str | PathLike[str]) -> str:
    """Write a pyarrow.Table as CSV, Parquet, Arrow, JSON or JSON Lines, by the name's ending.

    Parameters
    ----------
    table : pyarrow.Table
        The table to write.
    target : str or path
        A name that ends in .csv, .parquet (.pq), .arrow (.feather), .json or .jsonl; ``-`` is CSV
        on standard output.

    Returns
    -------
    str
        The name.
    """
    name = fspath(target)
    if name == "-":
        text = _csv(table).decode()
        # Control characters are escaped on a terminal, but not in a pipe.
        sys.stdout.write(visible(text) if sys.stdout.isatty() else text)
        return name
    write_whole(as_written(name), _WRITERS[Path(name).suffix.lower()](table))
    return name


def as_written(target: str | PathLike[str]) -> Path:
    """Return the target of a table; raise ValueError before any work if it is unsuitable."""
    path = Path(fspath(target))
    if path.suffix.lower() not in _WRITERS:
        raise ValueError(
            f"Cannot write a table to {path}: end its name in {', '.join(_WRITERS)}, or give - for "
            "CSV on standard output."
        )
    return place_for(path, "the table")


def plain(value: object) -> object:
    """Convert values for JSON, without NaN, infinity and NumPy's types."""
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
    # pyarrow's writer quotes every text; Python's does not quote carriage returns, nor texts that
    # read as missing.
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
