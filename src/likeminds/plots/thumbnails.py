"""Pictures of items in place of words: what a component of pictures is, is best shown."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.features.small_pictures import picture_of, thumbnail
from likeminds.plots.figures import require_matplotlib
from likeminds.schools.items import Items
from likeminds.schools.school_names import is_made

# Points that a picture takes, as the label of a row and at the end of an axis; how many there are.
LABEL_SIZE, _END_SIZE, _AT_AN_END = 26.0, 44.0, 3
_GAP = 4.0
_BETWEEN = "rather than"
_BETWEEN_SIZE, _BETWEEN_WIDTH = 7.5, 52.0


class ThumbnailItems:
    """Items with pictures.

    Parameters
    ----------
    items : Items
        The items.
    images : mapping from item id to picture, or sequence in the order of the items
        Paths or arrays.
    """

    def __init__(self, items: Items, images: Any) -> None:
        self._items, self._images = items, images

    @classmethod
    def of(cls, items: Items | None, images: Any) -> "ThumbnailItems | None":
        """Return items with pictures, where there are both."""
        return None if items is None or images is None else cls(items, images)

    def shows(self, feature: int) -> bool:
        """Tell whether a feature is best shown: a program made it, and items have pictures."""
        return is_made(self._items.feature_names[feature]) and all(self.ends_of(feature))

    def ends_of(self, feature: int, n: int = 1) -> tuple[list[Any], list[Any]]:
        """Return the pictures of the items that have most, and least, of a feature."""
        return self.extremes(self._items.features[:, feature], n)

    def extremes(self, values: FloatArray, n: int) -> tuple[list[Any], list[Any]]:
        """Return the pictures of the items with the highest and the lowest values."""
        order = np.argsort(-np.asarray(values, dtype=np.float64), kind="stable")
        return self._some(order, n), self._some(order[::-1], n)

    def along(self, weights: Float) -> tuple[list[Any], list[Any]]:
        """Return the pictures at the ends of a direction: the most liked there, first the high."""
        return self.extremes(self._items.features @ weights, _AT_AN_END)

    def _some(self, order: Index, n: int) -> list[Any]:
        found: list[Any] = []
        for place in order.tolist():
            picture = picture_of(self._images, self._items.ids[place], int(self._items.rows[place]))
            if picture is not None:
                found.append(thumbnail(picture))
            if len(found) == n:
                break
        return found


def label_rows(
    axes: Any, features: Sequence[int], words: Sequence[str], pictured: ThumbnailItems
) -> None:
    """Label the rows of axes, each of a feature: in words, or those that were made by pictures.

    Parameters
    ----------
    axes : matplotlib Axes
        Whose y axis counts the rows.
    features : sequence of int
        The feature of each row.
    words : sequence of str
        What is said of the feature of each row.
    pictured : ThumbnailItems
        The items.
    """
    shown = [pictured.shows(feature) for feature in features]
    told = ["" if show else text for show, text in zip(shown, words, strict=True)]
    axes.set_yticks(range(len(told)), told)
    for row in np.flatnonzero(shown).tolist():
        most, least = pictured.ends_of(features[row])
        _put(axes, least[0], (0.0, row), (-_GAP, 0.0), LABEL_SIZE, (1.0, 0.5))
        middle = -(2 * _GAP + LABEL_SIZE + _BETWEEN_WIDTH / 2)
        axes.annotate(
            _BETWEEN,
            (0.0, row),
            (middle, 0.0),
            xycoords=("axes fraction", "data"),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=_BETWEEN_SIZE,
        )
        far = -(3 * _GAP + LABEL_SIZE + _BETWEEN_WIDTH)
        _put(axes, most[0], (0.0, row), (far, 0.0), LABEL_SIZE, (1.0, 0.5))


def label_ends(
    axes: Any, pictured: ThumbnailItems, weights: Float, *, upwards: bool, share: float = 1.0
) -> None:
    """Show at both ends of an axis what people there want; ``share`` is that of the usual size."""
    high, low = pictured.along(weights)
    size = _END_SIZE * max(share, 0.5)
    for pictures, at_end in ((low, False), (high, True)):
        for n, picture in enumerate(pictures):
            along = _GAP + n * (size + _GAP)
            along = -along if at_end else along
            away = -6.0
            where, offset = (
                ((0.0, float(at_end)), (away, along))
                if upwards
                else (
                    (float(at_end), 0.0),
                    (along, away),
                )
            )
            start = 1.0 if at_end else 0.0
            align = (1.0, start) if upwards else (start, 1.0)
            _put(axes, picture, where, offset, size, align, xycoords="axes fraction")


def _put(  # noqa: PLR0917 - what, where and how large
    axes: Any,
    picture: Any,
    where: tuple[float, float],
    offset: tuple[float, float],
    size: float,
    align: tuple[float, float],
    xycoords: Any = ("axes fraction", "data"),
) -> None:
    """Put a picture so many points beside a place of the axes."""
    box = require_matplotlib("offsetbox")
    image = box.OffsetImage(
        picture, zoom=size / max(picture.shape[:2]), interpolation="antialiased"
    )
    axes.add_artist(
        box.AnnotationBbox(
            image,
            where,
            xybox=offset,
            xycoords=xycoords,
            boxcoords="offset points",
            box_alignment=align,
            frameon=False,
            pad=0.0,
            annotation_clip=False,
        )
    )
