"""Schools of thought: found where there are some, and not where there are none."""

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.metrics import adjusted_rand_score

from likeminds import (
    Annotations,
    AttributeModel,
    DecomposedRanker,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    diagnose,
    find_schools,
    load_electricity,
    make_schools,
)
from likeminds.components import Consensus, Group, Personal
from likeminds.metrics.paired import discoveries
from likeminds.rankers.baselines import CMTL, JFL, RMTL
from likeminds.schools.mixture import divide
from likeminds.schools.population import Items, WeightLevels
from likeminds.schools.school_names import leading, name_deviation, strengths

pytestmark = pytest.mark.seconds


def crowd(n_schools, seed=0, n_users=120, **options):
    options = {"contested": 0.5} | options
    return make_schools(n_users, 40, 300, 16, n_schools, random_state=seed, **options)


def three_levels(simulation, n_groups):
    return ThreeLevelRanker(n_groups=n_groups).fit(simulation.annotations)


@pytest.mark.parametrize("n_schools", [2, 3, pytest.param(5, marks=pytest.mark.slow)])
@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
def test_true_schools_are_found_and_counted(n_schools, seed):
    simulation = crowd(n_schools, seed)
    # One direction more than there are: the number of schools is not the number of groups.
    found = find_schools(three_levels(simulation, n_schools), simulation.annotations)
    assert len(found) == n_schools
    assert adjusted_rand_score(simulation.school, found.labels) >= 0.9
    assert found.agreement > 0.9
    assert min(school.stability for school in found.schools) > 0.8


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_people_who_agree_are_no_schools(seed):
    simulation = crowd(1, seed)
    found = find_schools(three_levels(simulation, 2), simulation.annotations)
    assert len(found) == 0
    assert list(found) == []
    assert "No" in repr(found)
    assert found.membership.shape == (len(found.user_ids), 0)
    assert set(found.labels.tolist()) == {-1}
    assert set(found.users()["school"].to_pylist()) == {0}
    assert found.of_user(found.user_ids[0]) is None
    with pytest.raises(KeyError, match="no schools were found"):
        found[1]


@pytest.mark.parametrize("n_schools", [pytest.param(1, marks=pytest.mark.slow), 3])
def test_the_learned_prior_finds_them_too(n_schools):
    simulation = crowd(n_schools, seed=3)
    found = find_schools(HierarchicalRanker().fit(simulation.annotations))
    assert len(found) == (n_schools if n_schools > 1 else 0)
    assert adjusted_rand_score(simulation.school, found.labels) >= 0.9
    assert found.agreed  # the ranker still has its annotations, and so its items
    assert bool(found.divisive) == bool(found.axes)


@pytest.mark.slow
def test_tuned_and_decomposed_rankers():
    simulation = crowd(2, n_users=60)
    grid = {"alpha_group": [1.0], "n_groups": [1, 2]}
    rankers = [
        ThreeLevelRankerCV(grid, n_folds=2),
        DecomposedRanker([Consensus(0.1), Group(1.0, 1), Personal(1.0)], loss="auc"),
        RankerCV(RMTL(), {"alpha_low_rank": [0.1]}, n_folds=2),
        CMTL(),
    ]
    for ranker in rankers:
        fitted = ranker.fit(simulation.annotations)
        found = find_schools(fitted, simulation.annotations, n_schools=2)
        assert adjusted_rand_score(simulation.school, found.labels) >= 0.9, ranker
        levels = WeightLevels.of_ranker(fitted)
        np.testing.assert_allclose(levels.coef, fitted.coef_, atol=1e-12)


def test_a_ranker_without_a_group_level_is_refused():
    simulation = crowd(2, n_users=20)
    with pytest.raises(TypeError):
        find_schools(JFL().fit(simulation.annotations))
    with pytest.raises(TypeError, match="got str"):
        find_schools("a model")


@pytest.mark.parametrize("use", [find_schools, diagnose])
def test_models_of_several_attributes_are_refused(use):
    model = AttributeModel(HierarchicalRanker()).fit({"a": crowd(2, n_users=20).annotations})
    with pytest.raises(TypeError, match="one of its rankers_"):
        use(model, crowd(2, n_users=20).annotations)


def test_bad_requests_are_refused():
    simulation = crowd(2, n_users=20)
    ranker = three_levels(simulation, 1)
    found = find_schools(ranker)
    with pytest.raises(KeyError):
        found[3]
    with pytest.raises(KeyError):
        found.of_user("nobody")


def test_contested_features_are_those_that_set_schools_apart():
    simulation = crowd(3, n_users=150, contested=0.25)
    found = find_schools(three_levels(simulation, 2), simulation.annotations)
    contested = simulation.group.any(axis=0)
    said = found.feature_school >= 0
    assert (said & ~contested).sum() <= 1
    assert (said & contested).sum() >= 3
    for position, school in enumerate(found.schools):
        members = simulation.group[found.labels == position].mean(axis=0)
        strongest = found.feature_names.index(next(iter(school.features)))
        assert np.abs(members).argsort()[-2:].tolist().count(strongest) == 1
        assert np.sign(members[strongest]) == np.sign(school.features[f"x{strongest}"])


def test_what_was_found_fits_together():
    simulation = crowd(3)
    found = find_schools(three_levels(simulation, 2), simulation.annotations)
    assert [school.number for school in found] == [1, 2, 3]
    assert sum(school.size for school in found) == 120
    np.testing.assert_allclose(found.membership.sum(axis=1), 1)
    np.testing.assert_allclose(found.level_shares.sum(axis=1), 1)
    assert (found.level_shares >= 0).all()
    assert set(found.members(2)) == set(found.user_ids[found.labels == 1])
    assert found.of_user(found.members(2)[0]) is found[2]
    table = found.users()
    assert table.num_rows == 120
    assert table["school"].to_pylist() == (found.labels + 1).tolist()
    assert json.loads(json.dumps(found.to_dict()))["n_schools"] == 3
    assert str(found).startswith("3 schools of thought among 120 people\n  1. ")


def test_items_of_a_school_are_liked_by_it_and_not_by_others():
    simulation = crowd(2)
    found = find_schools(three_levels(simulation, 1), simulation.annotations)
    scores = simulation.annotations.features @ simulation.coef.T
    places = scores.argsort(axis=0).argsort(axis=0) / (len(scores) - 1)
    for position, school in enumerate(found.schools):
        mine = found.labels == position
        typical = [judged.row for judged in school.typical]
        assert places[typical][:, mine].mean() > 0.9
        for judged in school.divisive:
            apart = places[judged.row, mine].mean() - places[judged.row, ~mine].mean()
            assert np.sign(apart) == np.sign(judged.value)
            assert abs(apart) > 0.4
    divisive = [judged.row for judged in found.divisive]
    assert places[divisive].std(axis=1).mean() > 1.5 * places.std(axis=1).mean()


def test_items_of_a_part_are_those_it_has_labels_of():
    whole = load_electricity()
    part = whole[100:140]
    items = Items.of_annotations(part, np.random.default_rng(0))
    for item, row in zip(items.ids, items.rows, strict=True):
        assert item in part.items
        np.testing.assert_array_equal(whole.features[row], whole.X[whole.items == item][0])
    assert len(items) == len(np.unique(part.X, axis=0))


def test_more_decided_people_are_of_the_same_school():
    simulation = crowd(2)
    ranker = three_levels(simulation, 1)
    plain = find_schools(ranker, simulation.annotations)
    louder = np.where(np.arange(120) % 2, 1.0, 5.0)[:, None]
    ranker.group_ = louder * (ranker.consensus_ + ranker.group_) - ranker.consensus_
    again = find_schools(ranker, simulation.annotations)
    assert adjusted_rand_score(plain.labels, again.labels) == 1.0


def test_the_same_seed_finds_the_same():
    simulation = crowd(3)
    ranker = three_levels(simulation, 2)
    first, second = (find_schools(ranker, simulation.annotations) for _ in range(2))
    np.testing.assert_array_equal(first.membership, second.membership)
    assert first.to_dict() == second.to_dict()


@pytest.mark.slow
def test_electricity_has_no_camps_but_directions():
    ranker = HierarchicalRanker().fit(load_electricity())
    found = find_schools(ranker)
    assert len(found) == 0
    assert "differ gradually" in str(found)
    assert "time of day rates" in found.axes[0].low
    asked = find_schools(ranker, n_schools=3)
    assert len(asked) == 3
    assert not asked.suggested
    assert asked.agreement < 0.8  # and says itself that the cut is arbitrary


@pytest.mark.slow
def test_loners_by_the_learned_prior():
    found = true = false = 0
    for seed in range(4):
        simulation = crowd(2, seed, n_users=100, n_loners=8, personal_strength=0.2)
        said = find_schools(HierarchicalRanker(n_groups=1).fit(simulation.annotations)).outlier
        found += (said & (simulation.school < 0)).sum()
        false += (said & (simulation.school >= 0)).sum()
        true += (simulation.school < 0).sum()
    assert found > 0.2 * true
    assert false <= max(2, 0.15 * (found + false))


def test_loners_of_the_three_levels_are_those_with_a_personal_part():
    simulation = crowd(2, n_users=40)
    ranker = ThreeLevelRanker(alpha_personal=0.05, n_groups=1).fit(simulation.annotations)
    found = find_schools(ranker)
    assert found.outlier.any()
    np.testing.assert_array_equal(found.outlier, ranker.personal_.any(axis=1))


def test_nobody_differs():
    annotations = crowd(1, n_users=12).annotations
    ranker = ThreeLevelRanker(n_groups=0, alpha_group=1e6).fit(annotations)
    ranker.group_ = np.zeros_like(ranker.group_)
    ranker.personal_ = np.zeros_like(ranker.personal_)
    found = find_schools(ranker, annotations)
    assert len(found) == 0
    assert found.axes == ()
    assert "No difference between rankings that these labels can show" in repr(found)
    np.testing.assert_array_equal(found.level_shares, np.tile([1.0, 0.0, 0.0], (12, 1)))
    np.testing.assert_allclose([judged.value for judged in found.divisive], 0, atol=1e-9)


def test_rows_with_equal_features_are_one_item():
    annotations = Annotations(
        users=["a", "a", "b", "b"],
        items=None,
        labels=[1, 0, 1, 0],
        features=[[1.0], [2.0], [2.0], [1.0]],
    )
    items = Items.of_annotations(annotations, np.random.default_rng(0))
    assert items.ids.tolist() == [0, 1]
    assert items.spread.tolist() == [[0.25]]


def test_disagreement_is_that_of_places():
    rng = np.random.default_rng(0)
    annotations = crowd(2, n_users=10).annotations
    items = Items.of_annotations(annotations, rng)
    coef = rng.standard_normal((10, 16))
    found = items.disagreement(coef, rng)
    scores = coef @ annotations.features.T
    exact = (scores.argsort(axis=1).argsort(axis=1) / (scores.shape[1] - 1)).std(axis=0)
    np.testing.assert_allclose(found, exact, atol=0.05)
    two_minds = items.disagreement(np.vstack([coef[0], -coef[0]]), rng)
    assert two_minds.max() == pytest.approx(0.5, abs=0.01)


def test_names():
    names, no = ["price", "green"], np.array([False, True])
    said = [
        name_deviation(deviation, consensus, strengths(deviation[None], np.eye(2))[0], names, no)
        for deviation, consensus in (
            (np.array([1.0, -1.0]), np.array([-2.0, -2.0])),
            (np.array([1.0, 1.0]), np.array([-2.0, -2.0])),
            (np.array([1.0, -1.0]), np.array([-0.5, 0.1])),
            (np.zeros(2), np.ones(2)),
        )
    ]
    assert said == [
        "cares less about low price, insists on no green",
        "cares less about low price, minds green less",
        "wants high price and no green",
        "",
    ]


@given(st.integers(1, 20), st.integers(0, 20), st.floats(0.1, 1e6))
def test_as_many_features_lead_as_are_equally_strong(n, others, size):
    strength = np.concatenate([np.full(n, -size), np.zeros(others)])
    assert leading(strength).tolist() == list(range(n))


@given(st.lists(st.floats(0, 1), max_size=30), st.floats(0.01, 0.5))
def test_discoveries_are_those_of_benjamini_and_hochberg(p_values, level):
    found = discoveries(np.array(p_values), level)
    ordered = sorted(p_values)
    passing = [p for i, p in enumerate(ordered, 1) if p <= level * i / len(p_values)]
    limit = max(passing, default=-1.0)
    assert found.tolist() == [p <= limit for p in p_values]


def test_few_people_are_divided_as_asked():
    points = np.array([[0.0], [0.1], [5.0]])
    division = divide(points, 2, np.random.default_rng(0))
    assert division.labels.tolist() == [0, 0, 1]
    assert divide(points, None, np.random.default_rng(0)).labels.tolist() == [0, 0, 0]
