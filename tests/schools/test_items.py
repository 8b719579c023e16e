"""Examples of `likeminds.schools.items`."""

import numpy as np

from likeminds import load_electricity
from likeminds.schools.items import Items


def test_items_of_annotations():
    offers = Items.of_annotations(load_electricity(), np.random.default_rng(0))
    assert len(offers.ids) < 1000  # of 17,232 rows
