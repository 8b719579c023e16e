"""The map of people: a plane, or the axis that divides them."""

from dataclasses import replace

import numpy as np
import pytest

from likeminds import HierarchicalRanker, find_schools, load_electricity, make_schools
from likeminds.schools.population import WeightLevels
from likeminds.schools.user_map import levels_of_posterior, map_places, n_dimensions


@pytest.fixture(scope="module")
def one():
    crowd = make_schools(40, 20, 30, 6, n_schools=2, contested=0.5, random_state=0)
    return find_schools(HierarchicalRanker().fit(crowd.annotations), n_schools=1)


def placed(found, first, second, labels=None):
    """Return schools with people at these places."""
    places = np.column_stack([first, second])
    shares = (places**2).sum(axis=0) / (places**2).sum()
    axes = tuple(replace(found.axes[0], share=float(share)) for share in shares)
    return replace(found, coordinates=places, axes=axes)


def test_a_horseshoe_is_one_axis_and_a_cloud_is_a_plane(one):
    rng = np.random.default_rng(0)
    first = rng.uniform(-1, 1, len(one.user_ids))
    horseshoe = placed(one, first, np.sqrt(1 - first**2) - 0.78)
    cloud = placed(one, first, rng.uniform(-1, 1, len(one.user_ids)))
    assert (n_dimensions(horseshoe), n_dimensions(cloud)) == (1, 2)


def test_along_one_axis_people_are_heaped_up(one):
    first = np.repeat([-1.0, 0.0, 1.0, 2.0], 10)
    heaps = map_places(placed(one, first, 0.01 * first), np.ones(len(first), dtype=bool))
    assert heaps[:10, 1].tolist() == list(range(10))
    np.testing.assert_array_equal(heaps[:, 0], first)


@pytest.mark.seconds
def test_n_dimensions():
    simulation = make_schools(60, 40, 200, 12, n_schools=3, contested=0.5, random_state=0)
    assert n_dimensions(find_schools(HierarchicalRanker().fit(simulation.annotations))) == 2


@pytest.mark.seconds
def test_levels_of_posterior():
    ranker = HierarchicalRanker(n_groups=2).fit(load_electricity())
    levels = WeightLevels.of_ranker(ranker)
    new = levels_of_posterior(levels, ranker, ranker.user_posterior("household-001"))
    assert bool(np.allclose(new.coef[0], ranker.coef_[0]))
