"""Data sets: simulations with known weights, pictures, and real data.

>>> from likeminds.datasets import make_schools
>>> make_schools(n_users=4, n_labels=10, n_items=30, n_features=12, random_state=0).annotations
Annotations: 40 labels (30% positive) by 4 people on 26 of 30 items, 12 features
"""

from likeminds.datasets.electricity import load_electricity
from likeminds.datasets.paper_images import ImageCrowd, load_shoes, load_sun
from likeminds.datasets.simulation import Simulation, make_schools, make_simulation
from likeminds.datasets.sketch_shoes import SketchShoes, make_sketch_shoes

__all__ = [
    "ImageCrowd",
    "Simulation",
    "SketchShoes",
    "load_electricity",
    "load_shoes",
    "load_sun",
    "make_schools",
    "make_simulation",
    "make_sketch_shoes",
]
