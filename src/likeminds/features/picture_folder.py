"""Features of the pictures in a folder: GIST and colours, reduced to principal components.

A model that was fitted to pictures stores the components in ``pictures_``, to rank new pictures.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import FloatArray
from likeminds.data.item_features import ItemFeatures, find_names
from likeminds.features.colour import ColourHistogram
from likeminds.features.extractor import ImageExtractor
from likeminds.features.gist import GIST
from likeminds.features.images import list_images
from likeminds.features.reduction import Reduce, component_names

CACHE = ".features"
_KIND = "GIST and Lab colour histogram"
# The share of the variance that the paper keeps of them.
SHARE_KEPT = 0.99


class Reduction(NamedTuple):
    """Principal components: rows of features minus ``mean``, times ``components``'."""

    mean: FloatArray
    components: FloatArray

    @classmethod
    def of(cls, features: FloatArray, share: float = SHARE_KEPT) -> "Reduction":
        """Keep a share of the variance of some rows of features."""
        found = Reduce(share).fit(np.asarray(features, dtype=np.float64))
        return cls(found.mean_, found.components_)

    @classmethod
    def from_attribute(cls, stored: Mapping[str, FloatArray] | None) -> "Reduction":
        """Return the reduction in the fitted attribute ``pictures_`` of a model."""
        if stored is None:
            raise ValueError(
                "This model was not fitted to pictures, so it cannot score any: pass features= of "
                "the items."
            )
        return cls(stored["mean"], stored["components"])

    def as_attribute(self) -> dict[str, Any]:
        """Return the reduction as the fitted attribute ``pictures_`` of a model."""
        return {"features": _KIND, "mean": self.mean, "components": self.components}

    def names(self) -> list[str]:
        """Return the names of the components."""
        return component_names(len(self.components))

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return the components of some rows."""
        return np.asarray((features - self.mean) @ self.components.T)


def picture_features(
    folder: str | os.PathLike[str], names: Sequence[str] | None = None, *, progress: bool = False
) -> ItemFeatures:
    """Compute the features of the pictures in a folder, or read them from the cache."""
    root = Path(folder)
    cache = root / CACHE if os.access(root, os.W_OK) else None
    options = {"cache": cache, "progress": progress}
    return compute_features(root, names, gist_and_colour(options))


def gist_and_colour(options: dict[str, Any]) -> list[ImageExtractor]:
    """Return the extractors that the paper uses for Shoes."""
    return [GIST(**options), ColourHistogram("lab", bins=10, **options)]


def compute_features(
    folder: Path, names: Sequence[str] | None, extractors: list[ImageExtractor]
) -> ItemFeatures:
    """Compute the features of pictures of a folder, by default of all."""
    paths = {path.relative_to(folder).as_posix(): path for path in list_images(folder)}
    names = list(paths) if names is None else find_names(names, list(paths), folder)
    images = [paths[name] for name in names]
    features = np.hstack([extractor.transform(images) for extractor in extractors])
    columns = [name for extractor in extractors for name in extractor.get_feature_names_out()]
    return ItemFeatures(names, features, tuple(columns))
