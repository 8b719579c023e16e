"""Principal components of features, and the features of the pictures in a folder."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy import linalg
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from likeminds._util.array_types import FloatArray
from likeminds.data.annotations import Annotations
from likeminds.data.item_features import ItemFeatures, find_names
from likeminds.features.descriptors import GIST, ColourHistogram
from likeminds.features.extractor import Extractor, Names
from likeminds.features.images import list_images


class Reduce(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Principal components: the fewest that keep a share of the variance.

    Inputs are arrays or `Annotations`. With annotations, `fit` uses each labelled item once, and
    `transform` returns annotations with the new features. In a scikit-learn pipeline with a ranker,
    it is fitted to training items only.

    Parameters
    ----------
    share : float
        The share of the variance to keep, above 0 and up to 1; the paper uses 0.99 for Shoes
        and 0.9 for SUN.

    Attributes
    ----------
    mean_ : array of shape (n_features,)
        Subtracted before the projection.
    components_ : array of shape (n_components_, n_features)
        Orthonormal directions, by decreasing variance.
    explained_variance_ratio_ : array of shape (n_components_,)
        The share of the variance of each component.
    n_components_ : int
        The number of components.

    Examples
    --------
    >>> from sklearn.pipeline import make_pipeline
    >>> from likeminds import ThreeLevelRanker, load_electricity, split_within_users
    >>> train, test = split_within_users(load_electricity(), random_state=0)
    >>> pipeline = make_pipeline(Reduce(0.9), ThreeLevelRanker()).fit(train)
    >>> pipeline[0].n_components_
    2
    >>> round(pipeline.score(test), 1)
    0.7
    """

    def __init__(self, share: float = 0.99) -> None:
        self.share = share

    def fit(self, X: ArrayLike | Annotations, y: ArrayLike | None = None) -> Self:  # noqa: ARG002
        """Find the components, from rows or from the labelled items of annotations."""
        if not 0 < self.share <= 1:
            raise ValueError(f"share must lie above 0 and up to 1, but is {self.share}.")
        # Each labelled row of the table counts once.
        rows = X.features[np.unique(X.feature_rows)] if isinstance(X, Annotations) else X
        values = validate_data(
            self, rows, dtype=[np.float64, np.float32], ensure_min_samples=2, ensure_min_features=1
        )
        self.mean_ = values.mean(axis=0, dtype=np.float64)
        centred = values - self.mean_
        largest = float(np.abs(values).max())
        if np.abs(centred).max() <= np.finfo(values.dtype).eps * largest:
            raise ValueError(
                f"All {len(values)} rows of features are equal, so no variance can be kept. Pass "
                "rows that differ."
            )
        self.components_, self.explained_variance_ratio_ = _components(centred, self.share)
        self.n_components_ = len(self.components_)
        return self

    def transform(self, X: ArrayLike | Annotations) -> Any:
        """Return rows, or annotations, with the components as features."""
        check_is_fitted(self)
        if isinstance(X, Annotations):
            reduced = self.transform(X.features)
            return X._with(
                features=reduced, feature_names=tuple(component_names(self.n_components_))
            )
        values = validate_data(self, X, dtype=[np.float64, np.float32], reset=False)
        return ((values - self.mean_) @ self.components_.T).astype(values.dtype, copy=False)

    def inverse_transform(self, X: ArrayLike) -> FloatArray:
        """Return the original features, up to the part of the variance that was dropped."""
        check_is_fitted(self)
        restored: FloatArray = np.asarray(X) @ self.components_ + self.mean_
        return restored

    def get_feature_names_out(self, input_features: object = None) -> Names:  # noqa: ARG002
        """Return the names of the components."""
        check_is_fitted(self)
        return np.array(component_names(self.n_components_), dtype=object)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float64", "float32"]
        return tags


def component_names(n: int) -> list[str]:
    """Return the names of n components."""
    return [f"component_{position}" for position in range(1, n + 1)]


def _components(centred: FloatArray, share: float) -> tuple[FloatArray, FloatArray]:
    """Return the directions that keep the share of the variance, and their shares of it."""
    few_rows = len(centred) < centred.shape[1]
    products = centred @ centred.T if few_rows else centred.T @ centred
    variances, vectors = linalg.eigh(products)
    ratio = variances[::-1].clip(0) / variances.clip(0).sum()
    # Rounding errors give variance to directions without any.
    n_real = int((ratio > len(ratio) * np.finfo(np.float64).eps).sum())
    n_kept = min(int(np.searchsorted(np.cumsum(ratio), share * (1 - 1e-12))) + 1, n_real)
    directions: FloatArray = vectors[:, ::-1][:, :n_kept]
    if few_rows:
        directions = linalg.qr(centred.T @ directions, mode="economic")[0]
    # Signs do not depend on the solver: the largest entry is positive.
    strongest = np.abs(directions).argmax(axis=0)
    directions = directions * np.sign(directions[strongest, np.arange(n_kept)])
    return directions.T, ratio[:n_kept]


CACHE = ".features"
_KIND = "GIST and Lab colour histogram"
# The share of the variance that the paper keeps of them.
_SHARE = 0.99


def reduction_of_pictures(features: FloatArray) -> Reduce:
    """Return a fitted reduction that keeps the paper's share of the variance of Shoes."""
    return Reduce(_SHARE).fit(np.asarray(features, dtype=np.float64))


def reduction_from_attribute(stored: Mapping[str, FloatArray] | None) -> Reduce:
    """Return the reduction in the fitted attribute ``pictures_`` of a model."""
    if stored is None:
        raise ValueError(
            "This model was not fitted to pictures, so it cannot score any: pass features= of "
            "the items."
        )
    found = Reduce(_SHARE)
    found.mean_, found.components_ = stored["mean"], stored["components"]
    found.n_components_, found.n_features_in_ = found.components_.shape
    return found


def reduction_as_attribute(reduction: Reduce) -> dict[str, Any]:
    """Return a reduction as the fitted attribute ``pictures_`` of a model."""
    return {"features": _KIND, "mean": reduction.mean_, "components": reduction.components_}


def picture_features(
    folder: str | os.PathLike[str], names: Sequence[str] | None = None, *, progress: bool = False
) -> ItemFeatures:
    """Compute the features of the pictures in a folder, or read them from the cache."""
    root = Path(folder)
    cache = root / CACHE if os.access(root, os.W_OK) else None
    return compute_features(root, names, gist_and_colour({"cache": cache, "progress": progress}))


def gist_and_colour(options: dict[str, Any]) -> list[Extractor]:
    """Return the extractors that the paper uses for Shoes."""
    return [GIST(**options), ColourHistogram("lab", bins=10, **options)]


def compute_features(
    folder: Path, names: Sequence[str] | None, extractors: list[Extractor]
) -> ItemFeatures:
    """Compute the features of pictures of a folder, by default of all."""
    paths = {path.relative_to(folder).as_posix(): path for path in list_images(folder)}
    names = list(paths) if names is None else find_names(names, list(paths), folder)
    images = [paths[name] for name in names]
    features = np.hstack([extractor.transform(images) for extractor in extractors])
    columns = [name for extractor in extractors for name in extractor.get_feature_names_out()]
    return ItemFeatures(names, features, tuple(columns))
