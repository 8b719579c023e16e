"""What labels cannot show is not claimed: tails are no schools, batches are none, agreement is."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, find_schools
from likeminds.schools import Explanation
from likeminds.schools.mixture import divide

pytestmark = pytest.mark.seconds

CLOUDS = {
    "normal": lambda rng: rng.standard_normal((300, 2)),
    "one-sided tail": lambda rng: np.column_stack(
        [rng.gamma(1.0, size=300), 0.3 * rng.standard_normal(300)]
    ),
    "long tails": lambda rng: rng.standard_t(3, size=(300, 2)),
    "evenly spread": lambda rng: rng.uniform(size=(300, 1)),
}


@pytest.mark.parametrize("cloud", CLOUDS)
@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.slow
def test_people_who_differ_gradually_are_one_cloud(cloud, seed):
    rng = np.random.default_rng(seed)
    points = CLOUDS[cloud](rng)
    found = divide(points - points.mean(axis=0), None, rng)
    assert found.membership.shape[1] == 1


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.slow
def test_camps_with_a_gap_between_them_are_schools(seed):
    rng = np.random.default_rng(seed)
    camps = np.repeat([[0.0, 0.0], [6.0, 0.0], [0.0, 6.0]], [80, 40, 20], axis=0)
    found = divide(camps + rng.standard_normal(camps.shape), None, rng)
    assert np.abs(np.bincount(found.labels) - [80, 40, 20]).max() <= 2
    assert found.stability.min() > 0.9


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.slow
def test_a_crowd_that_agrees_but_saw_different_batches_has_no_schools(seed):
    rng = np.random.default_rng(seed)
    n_users, n_items, n_batches = 90, 90, 3
    features = rng.standard_normal((n_items, 4))
    # What all see in items beyond their features differs by batch, and so does what was shown.
    batch = np.arange(n_items) % n_batches
    score = features @ (1.0, -1.0, 0.5, 0.0) + rng.standard_normal(n_items)
    rows = [
        (person, item, rng.random() < 1 / (1 + np.exp(-2 * score[item])))
        for person in range(n_users)
        for item in rng.permutation(np.flatnonzero(batch == person % n_batches))[:20]
    ]
    users, items, labels = zip(*rows, strict=True)
    said = Annotations(users, items, labels, features, item_ids=range(n_items))
    found = find_schools(HierarchicalRanker().fit(said))
    assert len(found) == 0
    assert not found.outlier.any()
    assert str(found).startswith(
        "No difference between rankings that these labels can show: 90 people"
    )
    assert found.divisive == ()
    assert found.axes == ()


def test_nothing_divides_people_who_do_not_differ():
    rng = np.random.default_rng(0)
    features = rng.standard_normal((40, 3))
    users, items = np.repeat(np.arange(30), 20), np.tile(np.arange(40), 15)
    said = Annotations(users, items, features[items, 0] > 0, features, item_ids=range(40))
    found = find_schools(HierarchicalRanker(n_groups=0, item_effects=False).fit(said))
    assert found.divisive == ()
    assert found.axes == ()
    assert "No difference between rankings that these labels can show: 30 people" in str(found)


def gradual(seed=0):
    """Return people who rank by a mixture of two features, some of whom are strict."""
    rng = np.random.default_rng(seed)
    features = rng.standard_normal((60, 2))
    users, items = (
        np.repeat(np.arange(40), 45),
        np.concatenate([rng.permutation(60)[:45] for _ in range(40)]),
    )
    lean, ready = rng.uniform(-2, 2, 40), rng.normal(0, 1.5, 40)
    score = features[items, 0] + lean[users] * features[items, 1] + ready[users]
    return Annotations(users, items, score > 0.3 * rng.logistic(size=len(items)), features)


def test_people_who_differ_gradually_are_offered_two_schools_with_their_stability():
    said = gradual()
    ranker = HierarchicalRanker(n_groups=1, item_effects=False).fit(said)
    explained = Explanation.of_ranker(ranker, said, n_schools=1)
    halves = explained.halves
    assert len(halves) == 2
    assert not halves.suggested
    assert all(0 < school.stability <= 1 for school in halves.schools)
    assert Explanation.of_ranker(ranker, said, n_schools=2).halves is None


def test_people_who_rank_alike_may_differ_in_threshold():
    said = gradual()
    alike = HierarchicalRanker(n_groups=0, item_effects=False).fit(said)
    found = find_schools(alike)
    assert found.severity.differs
    assert "No difference between rankings" in str(found)
    assert str(found).count("thresholds differ") == 1
    assert found.severity.spread.startswith("from yes to ")
    assert found.to_dict()["severity"]["strictest"]["share"] < 0.3
