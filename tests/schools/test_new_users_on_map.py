"""Newcomers on the map: somebody known is placed where they are known to be."""

import numpy as np
import pytest

from likeminds import HierarchicalRanker, ThreeLevelRanker, find_schools, make_schools
from likeminds.schools.population import WeightLevels
from likeminds.schools.user_map import NewUserProjection, levels_of_posterior


@pytest.fixture(scope="module")
def crowd():
    return make_schools(60, 30, 80, 8, n_schools=3, contested=0.6, random_state=1).annotations


@pytest.fixture(scope="module")
def ranker(crowd):
    return HierarchicalRanker().fit(crowd)


@pytest.fixture(scope="module")
def placing(ranker, crowd):
    return NewUserProjection(WeightLevels.of_ranker(ranker), find_schools(ranker, crowd))


def test_people_who_are_known_are_placed_where_they_are(placing):
    found = placing.place(placing.levels)
    np.testing.assert_allclose(found.coordinates, placing.schools.coordinates, atol=1e-8)
    np.testing.assert_allclose(found.level_shares, placing.schools.level_shares, atol=1e-12)
    np.testing.assert_allclose(found.membership.sum(axis=1), 1.0)
    same = found.membership.argmax(axis=1) == placing.schools.labels
    assert same.mean() > 0.95


def test_levels_of_one_person_are_those_of_the_crowd(ranker, placing):
    for person in (0, 17):
        alone = levels_of_posterior(
            placing.levels, ranker, ranker.user_posterior(ranker.users_[person])
        )
        np.testing.assert_allclose(alone.group[0], placing.levels.group[person], atol=1e-8)
        np.testing.assert_allclose(alone.personal[0], placing.levels.personal[person], atol=1e-8)


def test_somebody_without_labels_stands_for_the_consensus(ranker, placing):
    alone = levels_of_posterior(placing.levels, ranker, ranker.newcomer())
    assert placing.place(alone).level_shares[0].tolist() == pytest.approx(
        [1.0, 0.0, 0.0], abs=1e-12
    )


def test_labels_of_somebody_known_lead_a_newcomer_to_their_school(ranker, crowd, placing):
    right = 0
    for person in range(0, 60, 6):
        said = crowd.of_user(ranker.users_[person])
        alone = levels_of_posterior(placing.levels, ranker, ranker.newcomer(said))
        school = placing.place(alone).membership[0].argmax()
        right += int(school == placing.schools.labels[person])
    assert right >= 9


def test_newcomers_of_the_papers_ranker_have_levels_too(crowd):
    ranker = ThreeLevelRanker().fit(crowd)
    levels = WeightLevels.of_ranker(ranker)
    new = ranker.newcomer(crowd.of_user(ranker.users_[3]))
    alone = levels_of_posterior(levels, ranker, new)
    np.testing.assert_allclose(alone.coef, new.coef, atol=1e-8)


def test_nobody_unknown_has_beliefs(ranker):
    with pytest.raises(KeyError):
        ranker.user_posterior("nobody")
