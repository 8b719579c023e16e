"""Shoes to pictures."""

import numpy as np
from numpy.typing import NDArray
from tools.sketch_shoes.curves import xy
from tools.sketch_shoes.inks import Canvas
from tools.sketch_shoes.ornaments import ornaments
from tools.sketch_shoes.scene import Body, Layer
from tools.sketch_shoes.shoe import Shoe
from tools.sketch_shoes.straps import far_straps, near_straps
from tools.sketch_shoes.trims import TRIMS, laces, tongue

# The share of the picture that a shoe fills at most, and the length of a foot of size one.
_FILLED = 0.88
_FOOT = 0.80


def layers_of(shoe: Shoe) -> list[Layer]:
    """Return all layers of a shoe, the farthest first; x towards the toe, y upwards."""
    body = Body(shoe)
    return [
        *tongue(body),
        *body.inside(),
        *far_straps(body),
        *body.bottom(),
        *body.cup(),
        *body.upper(),
        *TRIMS[shoe.trim](body),
        *laces(body),
        *near_straps(body),
        *ornaments(body),
    ]


def render(shoe: Shoe, size: int = 256) -> NDArray[np.uint8]:
    """Draw one shoe, its toe to the left, on a light background.

    Parameters
    ----------
    shoe : Shoe
    size : int
        Height and width of the picture, in pixels.

    Returns
    -------
    array of shape (size, size, 3), red, green and blue

    Examples
    --------
    >>> from tools.sketch_shoes.styles import draw_shoe
    >>> render(draw_shoe(0), size=64).shape
    (64, 64, 3)
    """
    layers = layers_of(shoe)
    solid = [layer for layer in layers if not layer.within]
    corners = np.concatenate([curve for layer in solid for curve in layer.curves])
    low, high = corners.min(axis=0), corners.max(axis=0)
    low[1] = min(low[1], 0.0)
    scale = size * min(_FOOT, _FILLED / float((high - low).max()))
    middle = (low + high) / 2
    canvas = Canvas(size, scale, shoe.seed)
    canvas.ground(size / 2 + scale * middle[1], scale * (high[0] - low[0]))
    for layer in layers:
        curves = [(curve - middle) * xy(-scale, -scale) + size / 2 for curve in layer.curves]
        canvas.paint(curves, layer.ink, name=layer.name, within=layer.within)
    return canvas.picture()
