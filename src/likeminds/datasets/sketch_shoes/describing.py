"""The features of Shoes, for drawn shoes: kept on disk by what was drawn, not by its pixels."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from likeminds._version import __version__
from likeminds.datasets.sketch_shoes.album import Album

if TYPE_CHECKING:
    from likeminds.features.base import ImageExtractor

Rows = NDArray[np.float32]


def describe_album(
    album: Album, cache: str | os.PathLike[str] | None = None, progress: bool = False
) -> Rows:
    """Return GIST and colour histograms of all pictures, as `load_shoes` computes them.

    Parameters
    ----------
    album : Album
        The pictures. One that is in the cache is not drawn.
    cache : path, optional
        A folder to keep the values in. An interrupt loses nothing that is done.
    progress : bool
        Show a bar with the time left.

    Examples
    --------
    >>> from likeminds.datasets.sketch_shoes.styles import draw_shoe
    >>> describe_album(Album([draw_shoe(0), draw_shoe(1)], size=128)).shape
    (2, 542)
    """
    from likeminds.features.pictures import gist_and_colour  # noqa: PLC0415 - scikit-learn

    describe = _Describe(gist_and_colour({}))
    if cache is None:
        return np.vstack(list(_describe_all(album, describe, progress)))
    from likeminds.features.cache import FeatureCache, digest  # noqa: PLC0415 - scikit-learn

    recipes = [extractor._recipe() for extractor in describe.extractors]
    recipe = {"features": "SketchShoes", "drawn_by": __version__, "recipes": recipes}
    keys = [digest(repr(shoe).encode(), str(album.size).encode()) for shoe in album.shoes]
    with FeatureCache(Path(cache), recipe) as kept:
        missing = {k: shoe for k, shoe in zip(keys, album.shoes, strict=True) if k not in kept}
        new = list(missing)
        rest = Album(list(missing.values()), album.size, album.n_jobs)
        for rows in _describe_all(rest, describe, progress):
            kept.add(new[: len(rows)], rows)
            del new[: len(rows)]
    return kept.rows(keys)


class _Describe:
    """The extractors side by side, as a callable that can be sent to worker processes."""

    def __init__(self, extractors: "Sequence[ImageExtractor]") -> None:
        self.extractors = extractors

    def __call__(self, pictures: NDArray[np.uint8]) -> Rows:
        return np.hstack([extractor.transform(pictures) for extractor in self.extractors])


def _describe_all(album: Album, describe: _Describe, progress: bool) -> Iterator[Rows]:
    from likeminds._support.progress import progress_bar  # noqa: PLC0415 - keeps the import light

    with progress_bar(progress) as bar:
        task = bar.add_task("drawing and describing", total=len(album))
        for rows in album.map(describe):
            yield rows
            bar.update(task, advance=len(rows))
