"""SUN: pictures of scenes, and what people say of them, in five attributes."""

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

_NETWORK = "inception_v3.onnx"


def _inception(root: Path, options: dict[str, Any]) -> "list[ImageExtractor]":
    from likeminds.features import inception_v3  # noqa: PLC0415 - imports scikit-learn

    return [inception_v3(root / _NETWORK, **options)]


_SUN = FolderKind(
    title="SUN",
    attributes={
        "cluttered": ("CL", "cluttered space"),
        "modern": ("MO",),
        "opening area": ("OP", "open area"),
        "rustic": ("RU",),
        "soothe": ("SO", "soothing"),
    },
    reduce=0.9,
    extractors=_inception,
    needs=(_NETWORK,),
)


def load_sun(
    folder: str | os.PathLike[str],
    *,
    attributes: Iterable[str] | None = None,
    min_labels: int = ENOUGH_LABELS,
    reduce: float | None = _SUN.reduce,
    positive: Hashable | None = None,
    cache: bool | str | os.PathLike[str] = True,
    progress: bool = False,
) -> ImageCrowd:
    """Read the SUN data with personal labels from a folder, and prepare them as the paper does.

    The folder is laid out as for `likeminds.load_shoes`: ``annotations.csv``, and
    ``images/`` or features computed before. Of pictures, the 2,048 values of Inception-V3's
    second-last layer are computed, by the network in ``inception_v3.onnx`` in the folder
    (docs/features.md has the three lines that make it; needs ``likeminds[onnx]``). People
    with fewer than 8 labels of either kind are removed, and principal components keep 90 %
    of the variance, for each attribute by itself: see `ImageCrowd.split`.

    Parameters
    ----------
    folder : path
        Where the files are.
    attributes : list of str, optional
        Some of cluttered, modern, opening area, rustic and soothe; the paper's abbreviations
        (CL, MO, OP, RU, SO) will do. By default all.
    min_labels, reduce, positive, cache, progress
        As in `likeminds.load_shoes`.

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
        _SUN,
        attributes=attributes,
        min_labels=min_labels,
        reduce=reduce,
        positive=positive,
        options={"cache": cache, "progress": progress},
    )
