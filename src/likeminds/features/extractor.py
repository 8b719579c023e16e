"""The base class of feature extractors, and its cache: a file per extractor and parameters."""

import hashlib
import json
import os
import time
import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from numbers import Integral
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save as to_bytes
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils._param_validation import Interval

from likeminds._util.atomic_files import write_whole
from likeminds._util.console import progress_bar
from likeminds.features.images import as_images, scaled_down_to

Rows = NDArray[np.float32]

# A crash loses at most this many seconds of work.
_SECONDS_BETWEEN_SAVES = 60.0
_DIGEST_SIZE = 16


def digest(*parts: bytes) -> bytes:
    """Return a collision-resistant hash (BLAKE2b) of some parts and their lengths."""
    content = hashlib.blake2b(digest_size=_DIGEST_SIZE)
    for part in parts:
        content.update(len(part).to_bytes(8, "little"))
        content.update(part)
    return content.digest()


def digest_of_file(path: Path) -> bytes:
    """Return the digest of a file's bytes, without reading it into memory at once."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, lambda: hashlib.blake2b(digest_size=16)).digest()


def digest_of_image(image: Path | NDArray[Any]) -> bytes:
    """Return the digest of a picture, which includes the limit to which it is scaled down."""
    if isinstance(image, np.ndarray):
        own = digest(f"{image.dtype.str} {image.shape}".encode(), image.tobytes())
    else:
        own = digest_of_file(image)
    limit = scaled_down_to(image)
    return own if limit is None else digest(own, str(limit).encode())


class FeatureCache(AbstractContextManager["FeatureCache"]):
    """Rows of features by the digest of their inputs.

    The file's name contains a digest of the recipe (the extractor and its parameters), so other
    parameters use another file. The file holds arrays only. It is written atomically once a minute,
    and when the ``with`` block ends, even by an exception.
    """

    def __init__(self, folder: str | Path, recipe: Mapping[str, Any]) -> None:
        self._recipe = json.dumps(recipe, sort_keys=True, default=str)
        name = f"{recipe['features']}-{digest(self._recipe.encode()).hex()[:16]}.safetensors"
        self.path = Path(folder) / name
        self._rows: dict[bytes, Rows] = {}
        self._unsaved = False
        self._last_saved = time.monotonic()
        self._read()

    def __contains__(self, key: bytes) -> bool:
        return key in self._rows

    def add(self, keys: Sequence[bytes], rows: Rows) -> None:
        """Add rows; the file is written if the last save is a minute ago, or at the block's end."""
        self._rows |= zip(keys, rows, strict=True)
        self._unsaved = True
        if time.monotonic() - self._last_saved > _SECONDS_BETWEEN_SAVES:
            self.save()

    def rows(self, keys: Iterable[bytes]) -> Rows:
        """Return the rows of these keys, in their order."""
        return np.stack([self._rows[key] for key in keys])

    def save(self) -> None:
        """Write the file if there are new rows."""
        if not self._unsaved:
            return
        self.path.parent.mkdir(parents=True, exist_ok=True)
        keys = np.frombuffer(b"".join(self._rows), dtype=np.uint8).reshape(-1, _DIGEST_SIZE)
        arrays: dict[str, NDArray[Any]] = {"keys": keys, "rows": np.stack([*self._rows.values()])}
        write_whole(self.path, to_bytes(arrays, metadata={"recipe": self._recipe}))
        self._unsaved, self._last_saved = False, time.monotonic()

    def __exit__(self, *_: object) -> None:
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
                f"The cache {self.path} is damaged, so its features are computed again.",
                UserWarning,
                stacklevel=4,
            )
            return
        self._rows = {key.tobytes(): row for key, row in zip(keys, rows, strict=True)}


Names = NDArray[np.object_]
POSITIVE = Interval(Integral, 1, None, closed="left")

# Parameters that do not change the features.
_HOW = {"batch_size", "cache", "progress", "n_threads"}


# Parameters are the fields of a dataclass, which its constructor stores as they are.
@dataclass(eq=False, repr=False, kw_only=True)
class Extractor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of stateless transformers of pictures or texts.

    Nothing is learned, so `transform` works without `fit`. Subclasses define `_extractor` and the
    names of the columns (`_names`).
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {"batch_size": [POSITIVE]}

    batch_size: int = 32
    cache: str | os.PathLike[str] | None = None
    progress: bool = False

    # A check that returns inputs as a list, and a function that returns the digest of one.
    _as_inputs: ClassVar["staticmethod[[Iterable[Any]], list[Any]]"] = staticmethod(as_images)
    _digest: ClassVar["staticmethod[[Any], bytes]"] = staticmethod(digest_of_image)

    def fit(self, X: Iterable[Any], y: ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn
        """Check the parameters and the inputs; nothing is learned."""
        self._as_inputs(X)
        self._check()
        return self

    def transform(self, X: Iterable[Any]) -> Rows:
        """Return one row of features for each input, in single precision.

        With a ``cache``, features of inputs that were transformed before with the same parameters
        are read from it, whatever their names. An interrupted run resumes.
        """
        inputs = self._as_inputs(X)
        self._check()
        if self.cache is None:
            return np.vstack([rows for _, rows in self._batches(inputs)])
        keys = list(map(self._digest, inputs))
        with FeatureCache(Path(self.cache), self._recipe()) as cache:
            missing = {k: t for k, t in zip(keys, inputs, strict=True) if k not in cache}
            new = list(missing)
            for part, rows in self._batches(list(missing.values())):
                cache.add(new[part], rows)
        return cache.rows(keys)

    def get_feature_names_out(self, input_features: object = None) -> Names:  # noqa: ARG002
        """Return the names of the columns."""
        return np.array(self._names(), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.requires_fit = False
        tags.no_validation = True
        return tags

    @abstractmethod
    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        """Return a function from one batch of inputs to their rows."""

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of the columns."""

    def _check(self) -> None:
        self._validate_params()

    def _recipe(self) -> dict[str, Any]:
        parameters = {k: v for k, v in self.get_params(deep=False).items() if k not in _HOW}
        return {"features": type(self).__name__, **parameters}

    def _batches(self, inputs: list[Any]) -> Iterator[tuple[slice, Rows]]:
        if not inputs:
            return
        extract = self._extractor()
        with progress_bar(self.progress) as bar:
            task = bar.add_task(type(self).__name__, total=len(inputs))
            for start in range(0, len(inputs), self.batch_size):
                part = slice(start, start + self.batch_size)
                yield part, extract(inputs[part])
                bar.update(task, advance=len(inputs[part]))
