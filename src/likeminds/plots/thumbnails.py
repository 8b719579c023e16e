"""Pictures of items as labels, for features without meaningful names."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.features.images import Picture, Pictures, picture_of, thumbnail
from likeminds.plots.figures import require_matplotlib
from likeminds.schools.population import Items
from likeminds.schools.school_names import is_made

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Images: TypeAlias = Pictures | None

# The size of pictures in points, as labels of rows and at ends of axes, and their number there.
_LABEL_SIZE, _END_SIZE, _AT_AN_END = 26.0, 44.0, 3
_GAP = 4.0
_BETWEEN_SIZE, _BETWEEN_WIDTH = 7.5, 52.0


@dataclass(frozen=True, eq=False)
class ThumbnailItems:
    """Items with pictures."""

    items: Items
    images: Images

    @classmethod
    def of(cls, items: Items | None, images: Images) -> "ThumbnailItems | None":
        """Return items with pictures; None if either is missing."""
        return None if items is None or images is None else cls(items, images)

    def shows(self, feature: int) -> bool:
        """Return whether pictures label a feature: it was computed, and both ends have some."""
        return is_made(self.items.feature_names[feature]) and all(self.ends_of(feature))

    def ends_of(self, feature: int) -> tuple[list[Picture], list[Picture]]:
        """Return the pictures of the items with most, and least, of a feature."""
        return self.extremes(self.items.features[:, feature], 1)

    def extremes(self, values: FloatArray, n: int) -> tuple[list[Picture], list[Picture]]:
        """Return the pictures of the items with the highest and the lowest values."""
        order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")
        return self._some(order, n), self._some(order[::-1], n)

    def _some(self, order: Index, n: int) -> list[Picture]:
        ids, rows = self.items.ids, self.items.rows
        pictures = (picture_of(self.images, ids[i], int(rows[i])) for i in order.tolist())
        return [thumbnail(one) for one in islice((p for p in pictures if p is not None), n)]


def label_rows(
    axes: "Axes", features: Sequence[int], words: Sequence[str], pictured: ThumbnailItems | None
) -> None:
    """Label the rows of axes, each of a feature: with words, or with pictures of its ends."""
    shown = {}
    if pictured is not None:
        shown = {row: pictured.ends_of(j) for row, j in enumerate(features) if pictured.shows(j)}
    names = ["" if row in shown else text for row, text in enumerate(words)]
    axes.set_yticks(range(len(names)), names)
    for row, (most, least) in shown.items():
        _put(axes, least[0], (0.0, row), (-_GAP, 0.0), _LABEL_SIZE, (1.0, 0.5))
        axes.annotate(
            "rather than",
            (0.0, row),
            (-(2 * _GAP + _LABEL_SIZE + _BETWEEN_WIDTH / 2), 0.0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_BETWEEN_SIZE,
        )
        far = -(3 * _GAP + _LABEL_SIZE + _BETWEEN_WIDTH)
        _put(axes, most[0], (0.0, row), (far, 0.0), _LABEL_SIZE, (1.0, 0.5))


def label_ends(
    axes: "Axes", pictured: ThumbnailItems, weights: Float, *, upwards: bool, share: float = 1.0
) -> None:
    """Show the favourite items at both ends of an axis; ``share`` scales the pictures."""
    high, low = pictured.extremes(pictured.items.features @ weights, _AT_AN_END)
    size, away = _END_SIZE * max(share, 0.5), -6.0
    for pictures, end in ((low, 0.0), (high, 1.0)):
        for n, picture in enumerate(pictures):
            along = (_GAP + n * (size + _GAP)) * (1 - 2 * end)
            where, offset, align = (end, 0.0), (along, away), (end, 1.0)
            if upwards:
                where, offset, align = where[::-1], offset[::-1], align[::-1]
            _put(axes, picture, where, offset, size, align, xycoords="axes fraction")


def _put(  # noqa: PLR0917 - what, where and how large
    axes: "Axes",
    picture: Picture,
    where: tuple[float, float],
    offset: tuple[float, float],
    size: float,
    align: tuple[float, float],
    xycoords: str | tuple[str, str] = ("axes fraction", "data"),
) -> None:
    """Draw a picture with an offset, in points, from a place of the axes."""
    box = require_matplotlib("offsetbox")
    zoom = size / max(picture.shape[:2])
    image = box.OffsetImage(picture, zoom=zoom, interpolation="antialiased")
    style = {"boxcoords": "offset points", "frameon": False, "pad": 0.0, "annotation_clip": False}
    places = {"xybox": offset, "xycoords": xycoords, "box_alignment": align}
    axes.add_artist(box.AnnotationBbox(image, where, **places, **style))
