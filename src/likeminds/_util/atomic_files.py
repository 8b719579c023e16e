"""Atomic writes of files, exclusive locks, and checks of paths to write to."""

import os
import secrets
import stat
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

try:
    import fcntl
except ImportError:  # Windows, which cannot lock a folder
    fcntl = None  # type: ignore[assignment]

# The largest length of a file's name, in bytes, on all common file systems.
_LONGEST_NAME = 255
# The folder in which Linux has a symbolic link for each file descriptor of this process.
_OPEN_FILES = Path("/proc/self/fd")


class FileChangedError(OSError):
    """A file that was replaced since it was read."""


class FileVersion(NamedTuple):
    """Identity of a file (device, inode, size, time of modification), to notice changes."""

    device: int
    inode: int
    size: int
    modified: int

    @classmethod
    def of(cls, found: os.stat_result) -> "FileVersion":
        """Return the version of a file from its stat result."""
        return cls(found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def write_whole(
    target: Path,
    content: bytes | Iterable[bytes | memoryview],
    *,
    replacing: FileVersion | None = None,
) -> FileVersion:
    """Write a file atomically: to a scratch file, flushed to disk and renamed over the target.

    An existing file keeps its mode, and its owner if that is allowed; a symbolic link stays, and
    its target is written. If the file system supports it, the scratch file has no name until it is
    complete (O_TMPFILE), so a killed process leaves no file. Large content comes in pieces. Returns
    the version written; raises FileChangedError if the current version is not ``replacing``.
    """
    place = _follow_links(target)
    pieces = [content] if isinstance(content, bytes) else content
    scratch = place.with_name(_scratch_name(place.name))
    try:
        before = _stat(place)
        descriptor = _open_scratch(scratch, 0o666 if before is None else 0o600)
        with os.fdopen(descriptor, "wb") as file:
            for piece in pieces:
                file.write(piece)
            file.flush()
            os.fsync(file.fileno())
            _give_name(file.fileno(), scratch)
        if before is not None:
            _make_alike(scratch, before)
        version = FileVersion.of(scratch.stat())
        with file_lock(place.parent):
            _refuse_another(target, _stat(place), replacing)
            scratch.replace(place)
    except BaseException:
        with suppress(FileNotFoundError):
            scratch.unlink()
        raise
    return version


@contextmanager
def file_lock(path: Path, waiting: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Hold an exclusive lock on a file or a folder, from reading it to replacing it.

    ``waiting`` is called when another process holds the lock. On systems without locks,
    `write_whole` still detects replaced files.
    """
    descriptor = None if fcntl is None else _lock_file(path, waiting)
    try:
        yield
    finally:
        if descriptor is not None:
            os.close(descriptor)


def readable(path: str | os.PathLike[str]) -> Path:
    """Return the path of a file or a folder; raise ValueError for pipes, sockets and devices."""
    found = Path(path)
    try:
        mode = found.stat().st_mode
    except OSError as error:
        if isinstance(error, PermissionError):
            raise
        raise FileNotFoundError(
            f"There is no file {found}. Check the name and the folder."
        ) from error
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):
        return found
    kind = "a pipe" if stat.S_ISFIFO(mode) else "a socket" if stat.S_ISSOCK(mode) else "a device"
    raise ValueError(
        f"{found} is {kind}, not a regular file. Write its content to a file first, or pass "
        "labels as CSV on standard input (named -)."
    )


def place_for(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path if a file can be written there; otherwise raise an error before any work."""
    target = Path(path)
    place = _follow_links(target)
    if place.is_dir():
        raise IsADirectoryError(f"{target} is a folder; name a file in it to write {what} to.")
    folder = place.parent if target.is_symlink() else target.parent
    if not folder.is_dir():
        raise FileNotFoundError(f"There is no folder {folder} to write {what} in. Create it.")
    if place.exists() and not os.access(place, os.W_OK):
        raise PermissionError(
            f"{target} is write-protected: give {what} another name, or change its permissions."
        )
    _refuse_unwritable(folder, what)
    return target


def folder_for(path: str | os.PathLike[str], what: str) -> Path:
    """Return the path of a folder to write to, existing or not; raise an error if impossible."""
    folder = Path(path)
    place = Path(os.path.realpath(folder))
    existing = next(part for part in (place, *place.parents) if part.exists())
    shown = folder if existing == place else existing
    if not existing.is_dir():
        raise NotADirectoryError(f"{shown} is a file; name a folder for {what}.")
    _refuse_unwritable(shown, what)
    return folder


def make_folder(path: str | os.PathLike[str], what: str) -> Path:
    """Return a folder to write to, created if missing."""
    folder = folder_for(path, what)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _follow_links(target: Path) -> Path:
    """Resolve symbolic links; raise ValueError for devices, pipes and circular links."""
    place = Path(os.path.realpath(target))
    if place.is_symlink():
        raise ValueError(f"{target} is a symbolic link to itself: name a file.")
    if place.exists() and not (place.is_file() or place.is_dir()):
        raise ValueError(f"{target} is a device or a pipe; name a file, which can be replaced.")
    return place


def _refuse_unwritable(folder: Path, what: str) -> None:
    try:  # unlike os.access, right for every user and file system
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise PermissionError(
            f"Cannot write to the folder {folder} ({error.strerror}): name another place for "
            f"{what}."
        ) from error


def _refuse_another(
    target: Path, found: os.stat_result | None, replacing: FileVersion | None
) -> None:
    if replacing is not None and (found is None or FileVersion.of(found) != replacing):
        raise FileChangedError(
            f"{target} was changed by another program since it was read, so it was not replaced."
        )


def _lock_file(path: Path, waiting: Callable[[], None]) -> int | None:
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY if path.is_dir() else os.O_RDWR)
        except PermissionError:
            if path.is_dir():  # a folder that can be written to but not read
                return None
            raise
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            waiting()
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:  # network file systems may have no locks
            os.close(descriptor)
            return None
        # The process that held the lock before may have replaced the file.
        if os.path.samestat(os.fstat(descriptor), path.stat()):
            return descriptor
        os.close(descriptor)


def _stat(place: Path) -> os.stat_result | None:
    try:
        return place.stat()
    except FileNotFoundError:
        return None


def _scratch_name(name: str) -> str:
    ending = f".{secrets.token_hex(8)}"
    start = os.fsencode(f".{name}")[: _LONGEST_NAME - len(ending)]
    return start.decode(errors="ignore") + ending


def _open_scratch(scratch: Path, mode: int) -> int:
    """Return the descriptor of a new file: an unnamed one (O_TMPFILE), else one of this name."""
    if sys.platform == "linux" and _OPEN_FILES.is_dir():
        with suppress(OSError):  # some file systems do not have them
            return os.open(scratch.parent, os.O_TMPFILE | os.O_WRONLY, mode)
    new = os.O_CREAT | os.O_EXCL | os.O_WRONLY | getattr(os, "O_BINARY", 0)
    return os.open(scratch, new, mode)


def _give_name(descriptor: int, scratch: Path) -> None:
    if scratch.exists():
        return
    folder = os.open(scratch.parent, os.O_PATH)
    try:  # dst_dir_fd makes Python call linkat, which follows the link in /proc
        os.link(
            _OPEN_FILES / str(descriptor), scratch.name, dst_dir_fd=folder, follow_symlinks=True
        )
    finally:
        os.close(folder)


def _make_alike(scratch: Path, before: os.stat_result) -> None:
    """Copy the mode of the earlier file, and its owner and group if allowed."""
    if sys.platform != "win32":
        for owner in (before.st_uid, -1):
            with suppress(PermissionError):
                os.chown(scratch, owner, before.st_gid)
                break
    scratch.chmod(stat.S_IMODE(before.st_mode))
