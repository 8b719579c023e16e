"""What all extractors of features share: batches, progress, and a cache on disk."""

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

# Parameters that change how the work is done, but not what comes out.
_HOW = {"batch_size", "cache", "progress", "n_threads"}


# Parameters are the fields of a dataclass, which its constructor stores as they are.
@dataclass(eq=False, repr=False, kw_only=True)
class Extractor(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Turns things (pictures, texts) into rows of features, each by itself.

    Nothing is learnt, so `transform` works without `fit`, and a row does not depend on what
    else is in the batch. Subclasses say how (`_extractor`) and name the columns (`_names`).
    """

    batch_size: int = 32
    cache: str | os.PathLike[str] | None = None
    progress: bool = False

    def fit(self, X: Iterable[Any], y: ArrayLike | None = None) -> Self:  # noqa: ARG002 - scikit-learn
        """Check the parameters and what is to be transformed; there is nothing to learn."""
        self._as_things(X)
        self._check()
        return self

    def transform(self, X: Iterable[Any]) -> Rows:
        """Return one row of features for each thing, in single precision.

        With a ``cache``, things that were transformed before with the same parameters are
        read from there, whatever their names, and an interrupt loses nothing that is done.
        """
        things = self._as_things(X)
        self._check()
        if self.cache is None:
            return np.vstack([rows for _, rows in self._batches(things)])
        keys = self._digests(things)
        with FeatureCache(Path(self.cache), self._recipe()) as cache:
            missing = {k: t for k, t in zip(keys, things, strict=True) if k not in cache}
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
    def _as_things(self, X: Iterable[Any]) -> list[Any]:
        """Return what was given as a list, or say what is wrong with it."""

    @abstractmethod
    def _extractor(self) -> Callable[[Sequence[Any]], Rows]:
        """Return a function from one batch of things to their rows."""

    @abstractmethod
    def _digests(self, things: list[Any]) -> list[bytes]:
        """Return the digest of the content of each thing."""

    @abstractmethod
    def _names(self) -> list[str]:
        """Return the names of the columns."""

    def _check(self) -> None:
        positive_integer(self.batch_size, "batch_size")

    def _recipe(self) -> dict[str, Any]:
        kept = {k: v for k, v in self.get_params(deep=False).items() if k not in _HOW}
        return {"features": type(self).__name__, **kept}

    def _batches(self, things: list[Any]) -> Iterator[tuple[slice, Rows]]:
        if not things:
            return
        extract = self._extractor()
        with progress_bar(self.progress) as bar:
            task = bar.add_task(type(self).__name__, total=len(things))
            for start in range(0, len(things), self.batch_size):
                part = slice(start, start + self.batch_size)
                yield part, extract(things[part])
                bar.update(task, advance=len(things[part]))


class ImageExtractor(Extractor):
    """An extractor of features of pictures: paths of files, arrays, or some of both."""

    def _as_things(self, X: Iterable[Any]) -> list[Any]:
        return as_images(X)

    def _digests(self, things: list[Any]) -> list[bytes]:
        return list(map(digest_of_image, things))


def digest_of_image(image: Path | NDArray[Any]) -> bytes:
    """Return the digest of a picture; it depends on how far the picture is scaled down."""
    own = digest_of_array(image) if isinstance(image, np.ndarray) else digest_of_file(image)
    limit = scaled_down_to(image)
    return own if limit is None else digest(own, str(limit).encode())


def positive_integer(value: object, name: str) -> None:
    """Refuse what is no whole number from 1 on."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be a whole number from 1 on, but is {value!r}.")


def one_of(value: object, name: str, choices: Sequence[str]) -> None:
    """Refuse what is not among the choices, and name them."""
    if value not in choices:
        raise ValueError(f"{name} must be one of {', '.join(choices)}, but is {value!r}.")
