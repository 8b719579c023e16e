"""Features of the pictures in a folder, as a model knows them: shapes and colours, reduced.

A model that was fitted to pictures keeps the principal components of their features, so that it
can rank other pictures later: ``model.pictures_``.
"""

import os
from collections.abc import Sequence
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
    def of_model(cls, model: Any) -> "Reduction":
        """Return the reduction that a model was fitted with."""
        known = model.pictures_
        if known is None:
            raise ValueError(
                "This model was not taught with pictures, so it cannot be shown any: give it "
                "features= of the items."
            )
        return cls(known["mean"], known["components"])

    def as_known(self) -> dict[str, Any]:
        """Return the reduction as a model keeps it, in its ``pictures_``."""
        return {"features": _KIND, "mean": self.mean, "components": self.components}

    def names(self) -> list[str]:
        """Return what the components are called."""
        return component_names(len(self.components))

    def __call__(self, features: FloatArray) -> FloatArray:
        """Return the components of some rows."""
        return np.asarray((features - self.mean) @ self.components.T)


def picture_features(
    folder: str | os.PathLike[str], wanted: Sequence[str] | None = None, *, progress: bool = False
) -> ItemFeatures:
    """Compute the features of the pictures in a folder, or read them where that was done before."""
    root = Path(folder)
    cache = root / CACHE if os.access(root, os.W_OK) else None
    options = {"cache": cache, "progress": progress}
    return compute_features(root, wanted, gist_and_colour(options))


def gist_and_colour(options: dict[str, Any]) -> list[ImageExtractor]:
    """Return what computes shapes and colours, as the paper does for Shoes."""
    return [GIST(**options), ColourHistogram("lab", bins=10, **options)]


def compute_features(
    folder: Path, wanted: Sequence[str] | None, extractors: list[ImageExtractor]
) -> ItemFeatures:
    """Compute the features of the wanted pictures of a folder (None: of all)."""
    paths = {path.relative_to(folder).as_posix(): path for path in list_images(folder)}
    names = list(paths) if wanted is None else find_names(wanted, list(paths), folder)
    images = [paths[name] for name in names]
    features = np.hstack([extractor.transform(images) for extractor in extractors])
    columns = [name for extractor in extractors for name in extractor.get_feature_names_out()]
    return ItemFeatures(names, features, tuple(columns))
