"""Small pictures of items, from whatever the items' pictures are kept in."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TypeAlias

import numpy as np

from likeminds.features.images import Image, Picture, block_means, read_image

# Pictures by item id, or in the order of the items.
Pictures: TypeAlias = Mapping[Hashable, Image] | Sequence[Image]


def picture_of(images: Pictures | None, item: Hashable, row: int) -> Image | None:
    """Return the picture of an item, or None where there is none."""
    if images is None:
        return None
    if isinstance(images, Mapping):
        return images.get(item)
    if not 0 <= row < len(images):
        raise ValueError(
            f"There are {len(images)} pictures, but item {item!r} is in row {row} of the table of "
            "features (counted from 0). Pass one picture per row, or a mapping by item id."
        )
    return images[row]


def thumbnail(image: Image, size: int = 96) -> Picture:
    """Return a picture shrunk to at most ``size`` pixels, its shape kept.

    Shrinking is the mean of whole blocks of pixels, so that arrays need no library for it.
    """
    pixels: Picture = read_image(image)
    step = -(-max(pixels.shape[:2]) // size)
    if step == 1 or min(pixels.shape[:2]) < step:
        return np.asarray(pixels[::step, ::step])
    return block_means(pixels, step, step)
