"""The Parquet files of a folder as one table that is read in pieces."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple

from likeminds._support.checks import listing
from likeminds._support.files import FileChangedError, readable
from likeminds.data.sources.reading import spread

_ENDINGS = (".parquet", ".pq")
# Rows that tell which columns there are.
_HEAD = 1024
# A Parquet file ends with the length of its footer (4 bytes) and a magic number (4 bytes).
_TAIL = 8


class Stamp(NamedTuple):
    """Version of a Parquet file: its size, time of modification, and a hash of its footer."""

    size: int
    modified: int
    footer: str

    @classmethod
    def of(cls, path: Path) -> "Stamp":
        """Return the version of a file; one without a footer is hashed by its last bytes."""
        with path.open("rb") as file:
            found = os.fstat(file.fileno())
            file.seek(max(found.st_size - _TAIL, 0))
            length = int.from_bytes(file.read(4), "little")
            file.seek(max(found.st_size - _TAIL - length, 0))
            digest = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
        return cls(found.st_size, found.st_mtime_ns, digest)


@dataclass(frozen=True)
class Piece:
    """Some rows of a file, as a pyarrow.Table.

    Attributes
    ----------
    file : Path
        The file.
    start : int
        The number of its first row there.
    table : pyarrow.Table
        The rows.
    """

    file: Path
    start: int
    table: Any

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Name the file in what is said of bad values."""
        try:
            yield
        except (ValueError, TypeError) as error:
            after = f", counted from row {self.start}" if self.start else ""
            raise ValueError(f"{self.file}{after}: {error}") from error


@dataclass(frozen=True)
class Parts:
    """Parquet files with the same columns.

    Attributes
    ----------
    folder : Path
        Where they are; or the only file.
    files : tuple of Path
        The files, in the order of their names.
    types : dict
        The type of each column.
    lengths : tuple of int
        The number of rows of each file.
    stamps : tuple of Stamp
        The version of each file: all passes read the same one, or raise `FileChangedError`.
    """

    folder: Path
    files: tuple[Path, ...]
    types: dict[str, Any]
    lengths: tuple[int, ...]
    stamps: tuple[Stamp, ...]

    @classmethod
    def of(cls, path: str | PathLike[str]) -> "Parts":
        """Find the files of a folder, and check that they have the same columns."""
        folder = Path(path)
        files = files_in(folder)
        types: dict[str, Any] = {}
        lengths, stamps = [], []
        for file in files:
            with _readable(file):
                stamps.append(Stamp.of(file))
            found, length = _shape_of(file)
            types = types or found
            _refuse_other_columns(file, found, files[0], types)
            lengths.append(length)
        if not sum(lengths):
            raise ValueError(f"The files in {folder} have no rows: there are no annotations.")
        return cls(folder, files, types, tuple(lengths), tuple(stamps))

    def __len__(self) -> int:
        return sum(self.lengths)

    @cached_property
    def head(self) -> Any:
        """A few rows, columns of lists spread out."""
        return next(self.pieces(list(self.types), _HEAD)).table

    def pieces(self, columns: Sequence[str], n_rows: int) -> Iterator[Piece]:
        """Read some columns, so many rows at a time; those of lists are spread out."""
        import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light
        from pyarrow import parquet  # noqa: PLC0415

        for file, length, stamp in zip(self.files, self.lengths, self.stamps, strict=True):
            start = 0
            _refuse_changed(file, stamp)
            with _readable(file), parquet.ParquetFile(file, pre_buffer=False) as parts:
                for batch in parts.iter_batches(n_rows, columns=list(columns)):
                    piece = Piece(file, start, pa.Table.from_batches([batch]))
                    with piece.blamed():
                        piece = replace(piece, table=spread(piece.table))
                    yield piece
                    start += len(batch)
            _refuse_changed(file, stamp)
            if start != length:
                raise ValueError(f"{file} says that it has {length:,} rows, but has {start:,}.")

    def sources(self, names: Iterable[str]) -> list[str]:
        """Return the columns of the files that some columns come from, those of lists included."""
        wanted = set(names)
        return [column for column in self.types if wanted & set(self._spread(column))]

    def _spread(self, column: str) -> list[str]:
        """Return what a column is called where lists are spread out."""
        there = self.head.column_names
        if column in there:
            return [column]
        return [c for c in there if c.startswith(column) and c[len(column) :].isdecimal()]


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet files of a folder, or the only one."""
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {folder}. Check its name.")
    if not readable(folder).is_dir():
        return (folder,)
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.suffix.lower() in _ENDINGS
        and not path.name.startswith(("_", "."))
        and not readable(path).is_dir()
    )
    if not found:
        raise ValueError(f"{folder} has no Parquet files ({' or '.join(_ENDINGS)}) to read.")
    divided = [path for path in found if "=" in str(path.parent.relative_to(folder))]
    if divided:
        raise ValueError(
            f"{divided[0]} is in a folder whose name stands for the value of a column, which is "
            "not read: write that column into the files."
        )
    return tuple(found)


def _shape_of(file: Path) -> tuple[dict[str, Any], int]:
    from pyarrow import parquet  # noqa: PLC0415 - keeps the import of likeminds light

    with _readable(file), parquet.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        # What pandas writes for its row index would otherwise become a feature.
        kept = [f for f in schema if f.name and not f.name.startswith("__index_level_")]
        return {field.name: field.type for field in kept}, opened.metadata.num_rows


def _refuse_changed(file: Path, stamp: Stamp) -> None:
    with _readable(file):
        now = Stamp.of(file)
    if now != stamp:
        raise FileChangedError(
            f"{file} has changed since the first pass over the labels: {_difference(stamp, now)}. "
            "Start again once it is written completely."
        )


def _difference(before: Stamp, now: Stamp) -> str:
    if before.size != now.size:
        return f"its size was {before.size:,} bytes and is {now.size:,}"
    return f"its {'footer' if before.footer != now.footer else 'time of modification'} differs"


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    import pyarrow as pa  # noqa: PLC0415 - keeps the import of likeminds light

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        hint = ""
        if file.suffix != ".parquet":
            hint = " With --memory or --dask, labels are Parquet files: a folder of them, or one."
        raise ValueError(f"{file} could not be read: {error}{hint}") from error


def _refuse_other_columns(
    file: Path, found: dict[str, Any], first: Path, types: dict[str, Any]
) -> None:
    lacking, more = [c for c in types if c not in found], [c for c in found if c not in types]
    if lacking or more:
        lacks = f"lacks {listing(lacking)}" if lacking else f"has {listing(more)} besides"
        raise ValueError(f"{file} {lacks}, unlike {first}: all files must have the same columns.")
    other = [f"{c} ({found[c]}, not {types[c]})" for c in types if found[c] != types[c]]
    if other:
        raise ValueError(
            f"{file} has columns of other types than {first}: {listing(other)}. Write all files "
            "with the same types."
        )
