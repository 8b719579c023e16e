"""The base class of extractors of features: batches, progress, and a cache on disk."""

import os
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin

from likeminds._util.console import progress_bar
from likeminds.features.feature_cache import (
    FeatureCache,
    Rows,
    digest,
    digest_of_array,
    digest_of_file,
)
from likeminds.features.images import as_images, scaled_down_to

Names = NDArray[np.object_]

# Parameters that do not change the features.
_HOW = {"batch_size", "cache", "progress", "n_threads"}


# Parameters are the fields of a dataclass, which its constructor stores as they are.
@dataclass(eq=False, repr=False, kw_only=True)
class Extractor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Base class of transformers of pictures or texts, each by itself.

    Nothing is learnt, so `transform` works without `fit`. Subclasses define `_extractor` and the
    names of the columns (`_names`).
    """

    batch_size: int = 32
    cache: str | os.PathLike[str] | None = None
    progress: bool = False

    def fit(self, X: Iterable[Any], y: ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn
        """Check the parameters and the inputs; nothing is learnt."""
        self._as_inputs(X)
        self._check()
        return self

    def transform(self, X: Iterable[Any]) -> Rows:
        """Return one row of features for each input, in single precision.

        With a ``cache``, inputs that were transformed before with the same parameters are
        read from there, whatever their names, and an interrupt loses nothing that is done.
        """
        inputs = self._as_inputs(X)
        self._check()
        if self.cache is None:
            return np.vstack([rows for _, rows in self._batches(inputs)])
        keys = self._digests(inputs)
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
    def _as_inputs(self, X: Iterable[Any]) -> list[Any]:
        """Return the inputs as a list; raise if one is not valid."""

    @abstractmethod
    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        """Return a function from one batch of inputs to their rows."""

    @abstractmethod
    def _digests(self, inputs: list[Any]) -> list[bytes]:
        """Return the digest of the content of each input."""

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of the columns."""

    def _check(self) -> None:
        positive_integer(self.batch_size, "batch_size")

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


class ImageExtractor(Extractor):
    """An extractor of features of pictures: paths of files, arrays, or some of both."""

    def _as_inputs(self, X: Iterable[Any]) -> list[Any]:
        return as_images(X)

    def _digests(self, inputs: list[Any]) -> list[bytes]:
        return list(map(digest_of_image, inputs))


def digest_of_image(image: Path | NDArray[Any]) -> bytes:
    """Return the digest of a picture; it depends on how far the picture is scaled down."""
    own = digest_of_array(image) if isinstance(image, np.ndarray) else digest_of_file(image)
    limit = scaled_down_to(image)
    return own if limit is None else digest(own, str(limit).encode())


def positive_integer(value: object, name: str) -> None:
    """Raise ValueError unless a value is a whole number from 1."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, but is {value!r}.")


def one_of(value: object, name: str, choices: Sequence[str]) -> None:
    """Raise ValueError unless a value is one of the choices."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, but is {value!r}.")
