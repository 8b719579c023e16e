"""Shoes: pictures of an online shop, and what people say of them, in seven attributes."""

import os
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeminds.datasets.image_folders import (
    ENOUGH_LABELS,
    FolderKind,
    ImageCrowd,
    load_folder,
)

if TYPE_CHECKING:
    from likeminds.features.extractor import ImageExtractor


def _extractors(
    root: Path,  # noqa: ARG001 - needs nothing from the folder
    options: dict[str, Any],
) -> "list[ImageExtractor]":
    from likeminds.features.picture_folder import gist_and_colour  # noqa: PLC0415 - imports scikit-learn

    return gist_and_colour(options)


# The share of the variance that the paper keeps.
SHOES_VARIANCE = 0.99

_SHOES = FolderKind(
    title="Shoes",
    attributes={
        "brown": ("BR",),
        "comfortable": ("CM",),
        "fashionable": ("FA",),
        "formal": ("FM",),
        "open": ("OP",),
        "ornate": ("ON",),
        "pointy": ("PT",),
    },
    reduce=SHOES_VARIANCE,
    extractors=_extractors,
)


def load_shoes(
    folder: str | os.PathLike[str],
    *,
    attributes: Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = SHOES_VARIANCE,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the Shoes data from a folder, and prepare them as the paper does.

    The data are not ours to give away. Whoever has them puts into the folder

    - ``annotations.csv`` (or ``.parquet``) with columns ``attribute``, ``person``, ``image``
      and ``label`` (1 and 0, or 1 and -1);
    - ``images/`` with the pictures; or ``features.npy``, ``.mat``, ``.parquet`` or ``.csv``
      with features computed before: docs/features.md has the details.

    Of pictures, GIST (512 values) and a histogram of colours (Lab, 10 bins per channel) are
    computed. People with fewer than 8 labels of either kind about an attribute are removed
    there. Principal components keep 99 % of the variance, for each attribute by itself, and
    are found in training pictures only: see `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        Where the files are.
    attributes : list of str, optional
        Some of brown, comfortable, fashionable, formal, open, ornate and pointy; the
        paper's abbreviations (BR, CM, FA, FM, OP, ON, PT) will do. By default all.
    min_labels : int
        How many labels of each kind a person must have given.
    reduce : float or None
        The share of the variance to keep; None keeps the features as they are.
    positive : hashable, optional
        Which of two labels is the positive one, if they are not 1 and 0 or 1 and -1.
    cache : bool or path
        Keep computed features, by default in ``.features`` in the folder.
    progress : bool
        Show how far the features are.

    Returns
    -------
    ImageCrowd

    Raises
    ------
    FileNotFoundError
        When the folder lacks something; the message says what.
    """
    return load_folder(
        folder,
        _SHOES,
        attributes=attributes,
        min_labels=min_labels,
        reduce=reduce,
        positive=positive,
        options={"cache": cache, "progress": progress},
    )
