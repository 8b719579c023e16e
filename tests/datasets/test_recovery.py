"""Co-clusters of a simulation against those of weights."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from likeminds import make_simulation
from likeminds.paper import cocluster_recovery


def adjusted_rand(first, second):
    """The index by its definition: pairs that both partitions join, against chance."""
    pairs = list(combinations(range(len(first)), 2))
    a = np.array([first[i] == first[j] for i, j in pairs])
    b = np.array([second[i] == second[j] for i, j in pairs])
    chance = a.sum() * b.sum() / len(pairs)
    return ((a & b).sum() - chance) / ((a.sum() + b.sum()) / 2 - chance)


@pytest.fixture(scope="module")
def simulation():
    return make_simulation(20, 10, 16, n_positive=2, group_spread=0.3, random_state=0)


def test_true_group_weights_have_the_true_coclusters(simulation):
    found = cocluster_recovery(simulation, simulation.group)
    assert found.users_index == found.features_index == 1.0
    assert len(np.unique(found.true_features)) == 5
    for feature, school in enumerate(found.true_features):
        mine = simulation.group[found.true_users == school, feature]
        assert (mine != 0).all()


def test_indices_are_adjusted_rand_indices(simulation):
    noise = np.random.default_rng(1).standard_normal(simulation.group.shape)
    found = cocluster_recovery(simulation, simulation.group + 4 * noise)
    assert found.users_index == pytest.approx(adjusted_rand(found.true_users, found.learned_users))
    assert found.features_index == pytest.approx(
        adjusted_rand(found.true_features, found.learned_features)
    )
    assert found.users_index < 1


def test_the_length_of_weights_does_not_count(simulation):
    lengths = np.random.default_rng(0).uniform(0.1, 10.0, (20, 1))
    found = cocluster_recovery(simulation, lengths * simulation.coef)
    assert found.cosine == pytest.approx(1.0)
    same = cocluster_recovery(simulation, simulation.coef)
    np.testing.assert_array_equal(found.learned_users, same.learned_users)


def test_users_without_a_school_do_not_count(simulation):
    school = np.where(np.arange(20) < 3, -1, simulation.school)
    found = cocluster_recovery(replace(simulation, school=school), simulation.group)
    assert (found.true_users[:3] == -1).all()
    assert found.users_index == 1.0


def test_weights_of_other_users_are_refused(simulation):
    with pytest.raises(ValueError, match="shape"):
        cocluster_recovery(simulation, simulation.coef[:5])
