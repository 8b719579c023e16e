"""Pictures to PNG files, without a library for it."""

import struct
import zlib
from os import PathLike
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.atomic_files import write_whole


def png_bytes(picture: ArrayLike) -> bytes:
    """Return a picture of bytes, (height, width, 3), as the content of a PNG file."""
    pixels = np.ascontiguousarray(picture, dtype=np.uint8)
    if pixels.ndim != 3 or pixels.shape[2] != 3:
        raise ValueError(f"picture must have the shape (height, width, 3), not {pixels.shape}.")
    height, width = pixels.shape[:2]
    # Filter 2, the difference to the row above: still backgrounds become zeros.
    rows = pixels.reshape(height, -1)
    changes = np.diff(rows, axis=0, prepend=np.zeros((1, rows.shape[1]), dtype=np.uint8))
    filtered = np.concatenate([np.full((height, 1), 2, dtype=np.uint8), changes], axis=1)
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    chunks = [
        _chunk(b"IHDR", header),
        _chunk(b"IDAT", zlib.compress(filtered.tobytes(), 9)),
        _chunk(b"IEND", b""),
    ]
    return b"\x89PNG\r\n\x1a\n" + b"".join(chunks)


def write_png(path: str | PathLike[str], picture: ArrayLike) -> None:
    """Write a picture of bytes, (height, width, 3), to a PNG file."""
    write_whole(Path(path), png_bytes(picture))


def _chunk(kind: bytes, data: bytes) -> bytes:
    checksum = zlib.crc32(kind + data)
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", checksum)
