"""Sketch shoes: an image data set drawn on the fly, with a crowd that disagrees about it.

>>> from likeminds.datasets.sketch_shoes import draw_shoe, render
>>> render(draw_shoe(0, kind="pump")).shape
(256, 256, 3)
"""

from likeminds.datasets.sketch_shoes.album import Album, contact_sheet
from likeminds.datasets.sketch_shoes.dataset import SketchShoes, make_sketch_shoes
from likeminds.datasets.sketch_shoes.drawing import render
from likeminds.datasets.sketch_shoes.shoe import Shoe, Strap
from likeminds.datasets.sketch_shoes.styles import draw_shoe

__all__ = [
    "Album",
    "Shoe",
    "SketchShoes",
    "Strap",
    "contact_sheet",
    "draw_shoe",
    "make_sketch_shoes",
    "render",
]
