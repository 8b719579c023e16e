"""Loaders of the paper's pictures, Shoes and SUN, from a folder of the user."""

import os
from collections.abc import Hashable, Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from likeminds.datasets.image_folders import ENOUGH_LABELS, FolderKind, ImageCrowd, load_folder

if TYPE_CHECKING:
    from likeminds.features.extractor import ImageExtractor

# The shares of the variance that the paper keeps.
SHOES_VARIANCE, SUN_VARIANCE = 0.99, 0.9
_NETWORK = "inception_v3.onnx"


def _gist_and_colour(_: Path, options: dict[str, Any]) -> "list[ImageExtractor]":
    from likeminds.features.picture_folder import gist_and_colour  # noqa: PLC0415 - scikit-learn

    return gist_and_colour(options)


def _inception(root: Path, options: dict[str, Any]) -> "list[ImageExtractor]":
    from likeminds.features import inception_v3  # noqa: PLC0415 - imports scikit-learn

    return [inception_v3(root / _NETWORK, **options)]


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
    extractors=_gist_and_colour,
)
_SUN = FolderKind(
    title="SUN",
    attributes={
        "cluttered": ("CL", "cluttered space"),
        "modern": ("MO",),
        "opening area": ("OP", "open area"),
        "rustic": ("RU",),
        "soothe": ("SO", "soothing"),
    },
    extractors=_inception,
    needs=(_NETWORK,),
)


def load_shoes(
    folder: str | os.PathLike[str],
    *,
    attributes: str | Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = SHOES_VARIANCE,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the Shoes data from a folder, and prepare them as the paper does.

    The data cannot be bundled. The folder has

    - ``annotations.csv`` (or ``.parquet``) with columns ``attribute``, ``person``, ``image``
      and ``label`` (1 and 0, or 1 and -1);
    - ``images/`` with the pictures; or ``features.npy``, ``.mat``, ``.parquet`` or ``.csv``
      with features computed before: the page on features has the details.

    Of pictures, GIST (512 values) and a histogram of colours (Lab, 10 bins per channel) are
    computed. Users with fewer than 8 labels of either kind about an attribute are removed
    there. Principal components keep 99 % of the variance, for each attribute by itself, and
    are found in training pictures only: see `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        Where the files are.
    attributes : str or list of str, optional
        Some of brown, comfortable, fashionable, formal, open, ornate and pointy, or the
        paper's abbreviations (BR, CM, FA, FM, OP, ON, PT). By default all.
    min_labels : int
        How many labels of each kind a user must have given.
    reduce : float or None
        The share of the variance to keep; None keeps the features as they are.
    positive : hashable, optional
        Which of two labels is the positive one, if they are not 1 and 0 or 1 and -1.
    cache : bool or path
        Keep computed features, by default in ``.features`` in the folder.
    progress : bool
        Show a progress bar.

    Returns
    -------
    ImageCrowd

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names it.
    """
    options = {"cache": cache, "progress": progress}
    return load_folder(folder, _SHOES, attributes, min_labels, reduce, positive, options)


def load_sun(
    folder: str | os.PathLike[str],
    *,
    attributes: str | Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = SUN_VARIANCE,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the SUN data with personal labels from a folder, and prepare them as the paper does.

    The folder is laid out as for `likeminds.load_shoes`: ``annotations.csv``, and
    ``images/`` or features computed before. For pictures, the 2,048 values of Inception-V3's
    second-last layer are computed, by the network in ``inception_v3.onnx`` in the folder
    (the page on features has the three lines that make it; needs ``likeminds[onnx]``). Users
    with fewer than 8 labels of either kind are removed, and principal components keep 90 %
    of the variance, for each attribute by itself: see `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        Where the files are.
    attributes : str or list of str, optional
        Some of cluttered, modern, opening area, rustic and soothe, or the paper's abbreviations
        (CL, MO, OP, RU, SO). By default all.
    min_labels, reduce, positive, cache, progress
        As in `likeminds.load_shoes`.

    Returns
    -------
    ImageCrowd

    Raises
    ------
    FileNotFoundError
        If a file is missing; the message names it.
    """
    options = {"cache": cache, "progress": progress}
    return load_folder(folder, _SUN, attributes, min_labels, reduce, positive, options)
