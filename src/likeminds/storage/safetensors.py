"""Arrays in one safetensors file: written as a stream, memory-mapped, with checksums.

Any safetensors reader can open the file. The safetensors library copies each array, hides the bytes
of the header, and does not replace files atomically. This module maps large files into memory, and
writes arrays in pieces without copying them.

Each array and the header have checksums (of the header, with zeros for its own checksum). They
detect damage and accidental changes. They are not signatures: a program that changes the file can
write a new checksum.
"""

import hashlib
import json
import math
import mmap
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import cached_property
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import FileVersion, write_whole

_CODES = {
    np.dtype(kind): code
    for kind, code in (
        *(("<f8", "F64"), ("<f4", "F32"), ("<f2", "F16"), ("|b1", "BOOL")),
        *(("<i8", "I64"), ("<i4", "I32"), ("<i2", "I16"), ("|i1", "I8")),
        *(("<u8", "U64"), ("<u4", "U32"), ("<u2", "U16"), ("|u1", "U8")),
    )
}
_TYPES = {code: kind for kind, code in _CODES.items()}

# Files up to this size are read and checked as a whole. Arrays of larger files are mapped into
# memory, and checked when they are first used.
READ_AT_ONCE = 1 << 26
# The most bytes of a header, which has names of features and attributes, and a few hundred bytes
# per array. A hundred thousand features take 2 MiB; two thousand attributes, 15 MiB. An attacker's
# header takes up to forty times its length in memory when parsed.
LONGEST_HEADER = 1 << 25
# The greatest depth of a JSON tree; models have about ten levels.
_DEEPEST = 100
_PIECE = 1 << 24
_LENGTH = 8  # bytes of the header's length
_METADATA = "__metadata__"
_NO_CHECKSUM = "0" * 64
# Errors of code that reads a damaged file.
_OF_CONTENT = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, OSError)


class ModelFileError(ValueError):
    """A file that this version cannot read as a model."""


def write_arrays(
    target: Path,
    arrays: Mapping[str, NDArray[Any]],
    metadata: Mapping[str, str],
    replacing: FileVersion | None = None,
) -> FileVersion:
    """Write arrays and metadata to one file, atomically and in pieces (see `write_whole`)."""
    # Large types first, so all arrays are aligned.
    order = sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name))
    layout, end = {}, 0
    for name in order:
        begin, end = end, end + arrays[name].nbytes
        dtype, shape = arrays[name].dtype, list(arrays[name].shape)
        if dtype not in _CODES:
            raise TypeError(
                f"{name} has type {dtype}, which cannot be saved. Convert it to numbers."
            )
        layout[name] = {"dtype": _CODES[dtype], "shape": shape, "data_offsets": [begin, end]}
    sums = json.dumps({name: _checksum(_pieces(arrays[name])) for name in order})
    texts = {"checksum": _NO_CHECKSUM, "checksums": sums, **metadata}
    header = json.dumps({_METADATA: texts, **layout}).encode()
    header += b" " * (-len(header) % _LENGTH)
    if len(header) > LONGEST_HEADER:
        raise ValueError(
            f"The names of the features and attributes take {len(header):,} bytes, more than the "
            f"limit of {LONGEST_HEADER:,}. Shorten the names, or save several models."
        )
    header = header.replace(_NO_CHECKSUM.encode(), _checksum([header]).encode(), 1)

    def content() -> Iterator[bytes | memoryview]:
        yield len(header).to_bytes(_LENGTH, "little")
        yield header
        for name in order:
            yield from _pieces(arrays[name])

    return write_whole(target, content(), replacing=replacing)


class ArrayFile:
    """A file of arrays, open for reading.

    ``header_only`` leaves out the arrays; ``mapped`` also maps a small file. ``metadata`` has the
    texts in the header, and ``version`` identifies the file. ``is_whole`` is True if the file was
    read at once, not mapped. ``users`` are the files of users in its folder.
    """

    def __init__(self, path: Path, *, header_only: bool = False, mapped: bool = False) -> None:
        self.path = path
        self._read: dict[str, NDArray[Any]] = {}
        self._made: dict[str, Any] = {}
        self.users: Any = None
        with self.errors_of_content(), path.open("rb") as file:
            found = os.fstat(file.fileno())
            self.version, size = FileVersion.of(found), found.st_size
            self._header = self._read_header(file, size)
            header = parse(self._header)
            self.metadata: dict[str, str] = header.pop(_METADATA)
            self._start = _LENGTH + len(self._header)
            self._layout = _checked_layout(header, size - self._start)
            self._content: Any = None
            self.is_whole = size <= READ_AT_ONCE and not mapped
            if self.is_whole and not header_only:
                file.seek(0)
                self._content = file.read()
            elif not header_only:
                self._content = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)

    def _read_header(self, file: BinaryIO, size: int) -> bytes:
        n_bytes = int.from_bytes(length := file.read(_LENGTH), "little")
        first = file.read(1)
        if first not in {b"", b"\0", b"{", b"["}:
            raise ModelFileError(
                f"{self.path} is not a model file. Load one that save wrote; read a table of "
                "labels with Annotations.from_csv."
            )
        if len(length) < _LENGTH or not 0 < n_bytes <= size - _LENGTH:
            raise ValueError("it ends within its header")
        if n_bytes > LONGEST_HEADER:
            raise ValueError(
                f"its header has {n_bytes:,} bytes, more than the limit of {LONGEST_HEADER:,}"
            )
        return first + file.read(n_bytes - 1)

    @property
    def names(self) -> list[str]:
        """The names of the arrays."""
        return list(self._layout)

    def was_read(self, name: str) -> bool:
        """Return whether an array was read, and its checksum verified."""
        return name in self._read

    def let_go(self) -> None:
        """Release the memory of a mapped file, which is read again on the next access."""
        if sys.platform == "linux" and isinstance(self._content, mmap.mmap):
            self._content.madvise(mmap.MADV_DONTNEED)

    def check_unchanged(self) -> None:
        """Raise if a mapped file was changed in place: reading a truncated one is fatal."""
        if not isinstance(self._content, mmap.mmap):
            return
        if self._content.size() < self.version.size:
            raise self.incomplete("it was truncated in place")
        with suppress(FileNotFoundError):
            now = FileVersion.of(self.path.stat())
            if now[:2] == self.version[:2] and now != self.version:
                raise self.incomplete("it was overwritten in place")

    def incomplete(self, why: object) -> ModelFileError:
        """Return the error for an incomplete or damaged file."""
        return ModelFileError(
            f"{self.path} is not a complete likeminds model: {why}. Save it again."
        )

    @contextmanager
    def errors_of_content(self) -> Iterator[None]:
        """Turn any error that the file's content causes into a `ModelFileError`."""
        try:
            yield
        except ModelFileError:
            raise
        except _OF_CONTENT as error:
            raise self.incomplete(error) from error
        except RecursionError as error:
            raise self.incomplete("it is nested too deeply") from error

    def not_finite(self, name: str) -> ModelFileError:
        """Return the error for an attribute with NaN or infinity."""
        return ModelFileError(
            f"{self.path} cannot be used, because {name} has NaN or infinite numbers. Fit the "
            "model again."
        )

    def check_header(self) -> None:
        """Raise if the header does not match its checksum."""
        written = self.metadata.get("checksum")
        if not isinstance(written, str) or len(written) != len(_NO_CHECKSUM):
            raise self.incomplete("its header has no checksum")
        blank = self._header.replace(written.encode(), _NO_CHECKSUM.encode(), 1)
        if _checksum([blank]) != written:
            raise self._refuse_changed("header")

    def array(self, name: str) -> NDArray[Any]:
        """Return a read-only view of an array; its checksum is verified on first use."""
        if name not in self._read:
            dtype, shape, begin = self._layout[name]
            array = np.ndarray(shape, dtype, buffer=self._content, offset=self._start + begin)
            if _checksum(_pieces(array)) != self._checksums.get(name):
                raise self._refuse_changed(f"array {name!r}")
            self._read[name] = array
        return self._read[name]

    def made(self, name: str, make: Callable[[NDArray[Any]], Any]) -> Any:
        """Return the object made from an array, cached by the array's name."""
        if name not in self._made:
            self._made[name] = make(self.array(name))
        return self._made[name]

    @cached_property
    def _checksums(self) -> dict[str, str]:
        sums: dict[str, str] = parse(self.metadata["checksums"])
        return sums

    def _refuse_changed(self, what: str) -> ModelFileError:
        return ModelFileError(
            f"{self.path} was changed since it was saved: the checksum of its {what} differs. "
            "Save it again."
        )


def parse(text: str | bytes) -> Any:
    """Parse JSON of limited depth, so recursion over it stays below the interpreter's limit."""
    value = json.loads(text)
    _refuse_deep(value, _DEEPEST)
    return value


def _refuse_deep(value: object, levels: int) -> None:
    if not isinstance(value, dict | list):
        return
    if not levels:
        raise ValueError("it is nested too deeply")
    for part in value.values() if isinstance(value, dict) else value:
        if isinstance(part, dict | list):
            _refuse_deep(part, levels - 1)


def tag(value: object) -> object:
    """Return an id as a JSON value."""
    # JSON has no tuples, so a list stands for a tuple; lists cannot be ids.
    return [tag(part) for part in value] if isinstance(value, tuple) else value


def untag(value: object) -> object:
    """Return an id from its JSON value."""
    return tuple(untag(part) for part in value) if isinstance(value, list) else value


def _checked_layout(
    header: Mapping[str, Any], size: int
) -> dict[str, tuple[np.dtype[Any], tuple[int, ...], int]]:
    """Return type, shape and offset of each array, if they fill the file without gaps."""
    layout, reached = {}, 0
    for name, entry in sorted(header.items(), key=lambda item: item[1]["data_offsets"]):
        if entry["dtype"] not in _TYPES:
            raise ValueError(f"array {name!r} has an unknown type")
        dtype, shape = _TYPES[entry["dtype"]], tuple(entry["shape"])
        begin, end = entry["data_offsets"]
        if not all(
            isinstance(number, int) and 0 <= number < 1 << 63 for number in (*shape, begin, end)
        ):
            raise ValueError(f"array {name!r} has an invalid shape or offset")
        if begin != reached or end - begin != math.prod(shape) * dtype.itemsize:
            raise ValueError(f"array {name!r} has the wrong offset or size")
        layout[name], reached = (dtype, shape, begin), end
    if reached != size:
        raise ValueError(f"its arrays take {reached} bytes, but the file has {size}")
    return layout


def _pieces(array: NDArray[Any]) -> Iterator[memoryview]:
    """Yield the bytes of an array, without a copy of all of them."""
    if not array.size:
        return
    if array.flags.c_contiguous:
        content = array.data.cast("B")
        for start in range(0, len(content), _PIECE):
            yield content[start : start + _PIECE]
        return
    rows = max(1, _PIECE * len(array) // array.nbytes)
    for start in range(0, len(array), rows):
        yield np.ascontiguousarray(array[start : start + rows]).data.cast("B")


def _checksum(pieces: Iterable[bytes | memoryview]) -> str:
    digest = hashlib.sha256()
    for piece in pieces:
        digest.update(piece)
    return digest.hexdigest()


def all_finite(array: NDArray[Any]) -> bool:
    """Return whether all numbers of an array are finite, with little memory."""
    if array.dtype.kind != "f" or not array.size:
        return True
    rows = np.atleast_1d(array)
    step = max(1, _PIECE * len(rows) // rows.nbytes)
    pieces = (rows[start : start + step] for start in range(0, len(rows), step))
    return all(bool(np.isfinite(piece).all()) for piece in pieces)
