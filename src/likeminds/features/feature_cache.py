"""Cache of computed features on disk, one file per extractor and its parameters."""

import hashlib
import json
import time
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes

from likeminds._util.atomic_files import write_whole

Rows = NDArray[np.float32]

# A crash, even of the machine, loses no more work than this.
_SECONDS_BETWEEN_SAVES = 60.0
_DIGEST_SIZE = 16


def digest(*parts: bytes) -> bytes:
    """Return a collision-resistant hash (BLAKE2b) of some parts, their lengths included."""
    content = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:
        content.update(len(part).to_bytes(8, "little"))
        content.update(part)
    return content.digest()


def digest_of_file(path: Path) -> bytes:
    """Return the digest of a file's bytes, without holding them all."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def digest_of_array(array: NDArray[Any]) -> bytes:
    """Return the digest of an array's values, shape and type."""
    header = f"{array.dtype.str} {array.shape}".encode()
    return digest(header, np.ascontiguousarray(array).tobytes())


class FeatureCache:
    """Rows of features by the digest of their inputs.

    The file's name has a digest of the recipe (which features, with which parameters), so
    other parameters use another file. It holds arrays only, no code, and is written atomically:
    when the ``with`` block ends, however it ends, and once a minute.
    """

    def __init__(self, folder: str | Path, recipe: Mapping[str, Any]) -> None:
        self._recipe = json.dumps(recipe, sort_keys=True, default=str)
        name = f"{recipe['features']}-{digest(self._recipe.encode()).hex()[:16]}.safetensors"
        self.path = Path(folder) / name
        self._places: dict[bytes, int] = {}
        self._blocks: list[Rows] = []
        self._unsaved = False
        self._last_saved = time.monotonic()
        self._read()

    def __contains__(self, key: bytes) -> bool:
        return key in self._places

    def add(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Remember some rows; they are on disk when the block ends, or a minute later."""
        start = len(self._places)
        self._places |= {key: start + position for position, key in enumerate(keys)}
        self._blocks.append(rows)
        self._unsaved = True
        if time.monotonic() - self._last_saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def rows(self, keys: Iterable[bytes]) -> Rows:
        """Return the rows of these keys, in their order."""
        table: Rows = np.vstack(self._blocks)[[self._places[key] for key in keys]]
        return table

    def save(self) -> None:
        """Write the file, if there are new rows."""
        if not self._unsaved:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(self._places), dtype=np.uint8).reshape(-1, _DIGEST_SIZE)
        self._blocks = [np.vstack(self._blocks)]
        arrays: dict[str, NDArray[Any]] = {"keys": keys, "rows": self._blocks[0]}
        write_whole(self.path, to_bytes(arrays, metadata={"recipe": self._recipe}))
        self._unsaved, self._last_saved = False, time.monotonic()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        where: TracebackType | None,
    ) -> None:
        self.save()

    def _read(self) -> None:
        if not self.path.exists():
            return
        try:
            with safe_open(self.path, framework="numpy") as file:
                keys, rows = file.get_tensor("keys"), file.get_tensor("rows")
            fit_together = keys.shape == (len(rows), _DIGEST_SIZE) and rows.ndim == 2
        except (SafetensorError, OSError):
            fit_together = False
        if not fit_together:
            warnings.warn(
                f"{self.path} is damaged: its features are computed again.",
                UserWarning,
                stacklevel=4,
            )
            return
        self._places = {key.tobytes(): position for position, key in enumerate(keys)}
        self._blocks = [rows]
