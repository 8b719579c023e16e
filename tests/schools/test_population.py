"""Examples of `likeminds.schools.population`."""

import numpy as np

from likeminds import ThreeLevelRanker, load_electricity
from likeminds.schools.explanations import likeness
from likeminds.schools.population import Items, WeightLevels, score_variances


def test_weight_levels_of_ranker():
    levels = WeightLevels.of_ranker(ThreeLevelRanker().fit(load_electricity()))
    assert (levels.group.shape, levels.n_directions) == ((361, 6), 2)


def test_score_variances():
    found = score_variances(np.array([[2.0, 0.0], [1.0, 1.0]]), np.eye(2))
    assert found.tolist() == [4.0, 2.0]


def test_likeness():
    weights = np.array([[2.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    found = likeness(weights, np.array([1.0, 0.0]), np.eye(2))
    np.testing.assert_allclose(found, [1.0, np.sqrt(0.5), 0.0])


def test_items_of_annotations():
    offers = Items.of_annotations(load_electricity(), np.random.default_rng(0))
    assert len(offers.ids) < 1000  # of 17,232 rows
