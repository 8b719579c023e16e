"""The Parquet or CSV files of a folder as one table that is read in pieces."""

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from likeminds._util.atomic_files import FileChangedError, readable
from likeminds._util.checks import listing
from likeminds._util.lazy_imports import pa, parquet
from likeminds.data.sources.files import Texts, csv_batches, csv_shape, spread

if TYPE_CHECKING:
    Types = dict[str, pa.DataType]  # by column

_CSV = (".csv", ".csv.gz")
_ENDINGS = (".parquet", ".pq", *_CSV)
# Rows that are read to find the columns.
_HEAD = 1024
# A Parquet file ends with the length of its footer (4 bytes) and a magic number (4 bytes).
_TAIL, _MAGIC = 8, b"PAR1"
# Bytes at the end of other files that are hashed.
_END = 1 << 12


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
            length, magic = int.from_bytes(file.read(4), "little"), file.read(4)
            length = length if magic == _MAGIC else _END
            file.seek(max(found.st_size - _TAIL - length, 0))
            digest = hashlib.blake2b(file.read(), digest_size=16).hexdigest()
        return cls(found.st_size, found.st_mtime_ns, digest)


@dataclass(frozen=True)
class TablePart:
    """Some rows of a file, from its row ``start`` on."""

    file: Path
    start: int
    table: "pa.Table"

    @contextmanager
    def blamed(self) -> Iterator[None]:
        """Name the file in errors about values."""
        try:
            yield
        except (ValueError, TypeError) as error:
            after = f", counted from row {self.start}" if self.start else ""
            raise ValueError(f"{self.file}{after}: {error}") from error


@dataclass(frozen=True)
class ParquetParts:
    """Parquet or CSV files with the same columns."""

    folder: Path  # or the only file
    files: tuple[Path, ...]  # in the order of their names
    types: "Types"  # columns of other types are cast
    lengths: tuple[int, ...]
    stamps: tuple[Stamp, ...]  # all passes read the same versions, or raise FileChangedError

    @classmethod
    def of(cls, path: str | PathLike[str], texts: Texts = lambda _: ()) -> "ParquetParts":
        """Find the files of a folder, and check that they have the same columns.

        ``texts`` returns the columns that hold ids. They are texts in CSV, and if they are texts in
        one file and whole numbers in another.
        """
        folder = Path(path)
        files = files_in(folder)
        types: dict[str, pa.DataType] = {}
        lengths, stamps = [], []
        for file in files:
            with _readable(file):
                stamps.append(Stamp.of(file))
                found, length = _shape_of(file, texts)
            types = types or found
            _refuse_other_columns(file, found, files[0], types)
            ids = set(texts(list(types)))
            common = {c: _common_type(types[c], found[c], c in ids) for c in types}
            other = [f"{c} ({found[c]}, not {types[c]})" for c in types if common[c] is None]
            if other:
                raise ValueError(
                    f"{file} has columns of other types than {files[0]}: {listing(other)}. Write "
                    "all files with the same types."
                )
            types = {c: kind for c, kind in common.items() if kind is not None}
            lengths.append(length)
        if not sum(lengths):
            raise ValueError(f"The files in {folder} have no rows: there are no annotations.")
        return cls(folder, files, types, tuple(lengths), tuple(stamps))

    def __len__(self) -> int:
        return sum(self.lengths)

    @cached_property
    def head(self) -> "pa.Table":
        """The first rows, with columns of lists spread out."""
        return next(self.pieces(list(self.types), _HEAD)).table

    def pieces(self, columns: Sequence[str], n_rows: int) -> Iterator[TablePart]:
        """Read some columns, ``n_rows`` rows at a time; columns of lists are spread out."""
        for file, length, stamp in zip(self.files, self.lengths, self.stamps, strict=True):
            start = 0
            _refuse_changed(file, stamp)
            with _readable(file), _batches(file, self.types, columns, n_rows) as batches:
                for batch in batches:
                    typed = pa.schema([(name, self.types[name]) for name in batch.schema.names])
                    piece = TablePart(file, start, pa.Table.from_batches([batch]).cast(typed))
                    with piece.blamed():
                        piece = replace(piece, table=spread(piece.table))
                    yield piece
                    start += len(batch)
            _refuse_changed(file, stamp)
            if start != length:
                raise ValueError(f"{file} has {start:,} rows, but its footer states {length:,}.")

    def sources(self, names: Iterable[str]) -> list[str]:
        """Return the columns of the files that some columns are read from."""
        requested = set(names)
        from_lists = requested - self.types.keys()
        return [
            column
            for column in self.types
            if column in requested
            or any(n.startswith(column) and n[len(column) :].isdecimal() for n in from_lists)
        ]


def files_in(folder: Path) -> tuple[Path, ...]:
    """Return the Parquet and CSV files of a folder, or the only one."""
    if not folder.exists():
        raise FileNotFoundError(f"There is no folder {folder}. Check its name.")
    if not readable(folder).is_dir():
        return (folder,)
    found = sorted(
        path
        for path in folder.rglob("*")
        if path.name.lower().endswith(_ENDINGS)
        and not path.name.startswith(("_", "."))
        and not readable(path).is_dir()
    )
    if not found:
        raise ValueError(f"{folder} has no Parquet or CSV files ({', '.join(_ENDINGS)}) to read.")
    divided = [path for path in found if "=" in str(path.parent.relative_to(folder))]
    if divided:
        raise ValueError(
            f"{divided[0]} is in a folder named after a column's value (partitioned data), which "
            "is not read. Write that column into the files."
        )
    return tuple(found)


@contextmanager
def _batches(
    file: Path, types: "Types", columns: Sequence[str], n_rows: int
) -> "Iterator[Iterable[pa.RecordBatch]]":
    """Open a file that is read some rows at a time."""
    if is_csv(file):
        with csv_batches(file, types) as found:
            yield (
                batch.select(list(columns)).slice(start, n_rows)
                for batch in found
                for start in range(0, len(batch), n_rows)
            )
        return
    with parquet.ParquetFile(file, pre_buffer=False) as parts:
        yield parts.iter_batches(n_rows, columns=list(columns))


def is_csv(file: str | PathLike[str]) -> bool:
    """Return whether a file is a CSV file, by its name."""
    return str(file).lower().endswith(_CSV)


def _shape_of(file: Path, texts: Texts) -> "tuple[Types, int]":
    if is_csv(file):
        return csv_shape(file, texts)
    with parquet.ParquetFile(file) as opened:
        schema = opened.schema_arrow
        # The row index that pandas writes would otherwise become a feature.
        columns = [f for f in schema if f.name and not f.name.startswith("__index_level_")]
        return {field.name: field.type for field in columns}, opened.metadata.num_rows


def _refuse_changed(file: Path, stamp: Stamp) -> None:
    with _readable(file):
        now = Stamp.of(file)
    if now != stamp:
        what = f"its {'footer' if stamp.footer != now.footer else 'time of modification'} differs"
        if stamp.size != now.size:
            what = f"its size was {stamp.size:,} bytes and is {now.size:,}"
        raise FileChangedError(
            f"{file} has changed since the first pass over the labels: {what}. Start again once "
            "it is written completely."
        )


@contextmanager
def _readable(file: Path) -> Iterator[None]:
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        hint = ""
        if not file.name.lower().endswith(_ENDINGS):
            hint = " With --memory or --dask, labels are one Parquet or CSV file, or a folder."
        raise ValueError(f"{file} could not be read: {error}{hint}") from error


def _refuse_other_columns(file: Path, found: "Types", first: Path, types: "Types") -> None:
    lacking, more = [c for c in types if c not in found], [c for c in found if c not in types]
    if lacking or more:
        lacks = f"lacks {listing(lacking)}" if lacking else f"also has {listing(more)}"
        raise ValueError(f"{file} {lacks}, unlike {first}: all files must have the same columns.")


def _common_type(first: "pa.DataType", second: "pa.DataType", is_id: bool) -> "pa.DataType | None":
    """Return the type that the columns of two files have without loss; None if there is none."""
    if first == second:
        return first
    plain = [_plain_type(kind) for kind in (first, second)]
    if plain[0] == plain[1]:
        return plain[0]
    if all(map(pa.types.is_integer, plain)):
        return pa.int64() if pa.uint64() not in plain else None
    if any(map(pa.types.is_string, plain)):
        return pa.string() if is_id and any(map(pa.types.is_integer, plain)) else None
    numbers = all(pa.types.is_integer(kind) or pa.types.is_floating(kind) for kind in plain)
    return pa.float64() if numbers and not is_id else None


def _plain_type(kind: "pa.DataType") -> "pa.DataType":
    kind = kind.value_type if pa.types.is_dictionary(kind) else kind
    return pa.string() if pa.types.is_large_string(kind) else kind
