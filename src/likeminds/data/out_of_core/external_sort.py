"""External sort: rows are spilled to one file per range of positions, then written in order.

Rows come in any order, each with its position. They are appended to the spill file of their range.
Then one spill file after the other is read and written in order. At most one range is in memory,
and every file is written from its beginning to its end.
"""

import errno
import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from secrets import token_hex
from typing import Any

import numpy as np
from numpy.typing import DTypeLike, NDArray

from likeminds._util.array_types import Index
from likeminds._util.atomic_files import make_folder, write_whole

_DONE = "columns.json"
_PLACE = "place"

Record = NDArray[Any]


def find_grouped(folder: Path, order: dict[str, object]) -> dict[str, NDArray[Any]] | None:
    """Return columns that were written to a folder before, mapped into memory, or None."""
    try:
        written = json.loads((folder / _DONE).read_bytes())
        layout = written.pop("columns")
    except (OSError, ValueError, KeyError):
        return None
    if written != order:
        return None
    columns: dict[str, NDArray[Any]] = {}
    for name, (kind, shape) in layout.items():
        with suppress(OSError, ValueError):
            columns[name] = np.memmap(folder / name, dtype=kind, mode="r", shape=tuple(shape))
    return columns if len(columns) == len(layout) else None


class ExternalSort:
    """A sort of ``n_rows`` rows on disk, ``range_bytes`` of which are in memory at a time."""

    def __init__(self, kinds: Mapping[str, DTypeLike], n_rows: int, range_bytes: int) -> None:
        self.kind = np.dtype([(_PLACE, np.int64), *kinds.items()])
        self.n_rows = n_rows
        self.width = max(1, range_bytes // self.kind.itemsize)
        self.n_ranges = -(-n_rows // self.width)  # each has a spill file

    @property
    def n_bytes(self) -> int:
        """The largest number of bytes that all rows take on disk."""
        return 2 * self.n_rows * self.kind.itemsize

    def spill(self, folder: Path, places: Index, columns: Mapping[str, Record]) -> None:
        """Append rows to the spill files of their ranges."""
        order = np.argsort(places, kind="stable")
        record = np.empty(len(places), dtype=self.kind)
        record[_PLACE] = places[order]
        for name, values in columns.items():
            record[name] = values[order]
        ends = np.searchsorted(record[_PLACE], self.width * np.arange(1, self.n_ranges + 1))
        start = 0
        for number, end in enumerate(ends.tolist()):
            if end > start:
                with _spill(folder, number).open("ab") as file:
                    record[start:end].tofile(file)
            start = end

    def write_sorted(self, folder: Path, order: dict[str, object]) -> Iterator[int]:
        """Write the columns in order; yield the number of rows after each range.

        ``order`` defines the codes: `find_grouped` returns only columns that have the same.
        """
        layout = {}
        with ExitStack() as stack:
            names = [name for name in self.kind.names or () if name != _PLACE]
            files = {name: stack.enter_context((folder / name).open("wb")) for name in names}
            for k in range(self.n_ranges):
                record = np.fromfile(_spill(folder, k), dtype=self.kind)
                place = record[_PLACE] - k * self.width
                for name, file in files.items():
                    column = np.empty_like(record[name])
                    column[place] = record[name]
                    column.tofile(file)
                    layout[name] = (column.dtype.str, (self.n_rows, *column.shape[1:]))
                _spill(folder, k).unlink()
                yield len(record)
        write_whole(folder / _DONE, json.dumps({**order, "columns": layout}).encode())


def _spill(folder: Path, number: int) -> Path:
    return folder / f"spill-{number}"


@contextmanager
def working_folder(target: Path, n_bytes: int) -> Iterator[Path]:
    """Yield a folder that is renamed to ``target`` when complete, and deleted after an error."""
    made = not target.parent.exists()
    parent = make_folder(target.parent, "the grouped labels")
    free = shutil.disk_usage(parent).free
    if free < n_bytes:
        raise OSError(
            errno.ENOSPC,
            f"Grouping these labels takes {n_bytes / 1e9:.1f} GB on disk, but {parent} has "
            f"{free / 1e9:.1f} GB left. Name another folder with scratch=.",
        )
    folder = parent / f".{target.name}.{token_hex(4)}"
    folder.mkdir()
    try:
        yield folder
        shutil.rmtree(target, ignore_errors=True)
        folder.rename(target)
    except BaseException as error:
        shutil.rmtree(folder, ignore_errors=True)
        if made:
            with suppress(OSError):
                parent.rmdir()
        if isinstance(error, OSError) and error.errno == errno.ENOSPC:
            raise OSError(
                errno.ENOSPC,
                f"The disk of {parent} is full; the grouped labels were removed from it. Make "
                f"room ({n_bytes / 1e9:.1f} GB), or name another folder with scratch=.",
            ) from error
        raise
