"""Files that are written whole or not at all."""

import os
import tempfile
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path


def write_whole(target: Path, content: bytes | Iterable[bytes | memoryview]) -> None:
    """Write to a neighbour first, flush it to disk, and rename it over the target.

    Content that is too large to hold twice comes in pieces.
    """
    pieces = [content] if isinstance(content, bytes) else content
    descriptor, scratch = tempfile.mkstemp(dir=target.parent, prefix=f".{target.name}.")
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
        Path(scratch).chmod(0o666 & ~_umask())
        Path(scratch).replace(target)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(scratch).unlink()
        raise


def place_for(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path if a file can go there; else say what is in the way, before any work."""
    target = Path(path)
    if target.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it to write {what} to.")
    if not target.parent.is_dir():
        raise FileNotFoundError(f"There is no folder {target.parent} to write {what} in.")
    return target


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
