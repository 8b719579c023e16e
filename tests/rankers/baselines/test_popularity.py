import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import Annotations, load, save
from likeminds.baselines import Popularity


def shared_items(seed, weights=True):
    rng = np.random.default_rng(seed)
    n_rows, n_items = 60, 9
    return Annotations(
        users=[f"person-{i}" for i in rng.integers(5, size=n_rows)],
        items=rng.integers(n_items, size=n_rows),  # some twice by the same person
        labels=rng.random(n_rows) < 0.4,
        features=rng.standard_normal((n_items, 2)).round(1) + 0.0,
        weights=rng.uniform(0.1, 3.0, n_rows) if weights else None,
    )


def share_of_others(crowd, person, item):
    """The definition: over everybody else's labels of the item, the share of positive ones."""
    weights = np.ones(len(crowd)) if crowd.weights is None else crowd.weights
    others = (crowd.users != person) & (crowd.items == item)
    others = others if others.any() else np.ones(len(crowd), dtype=bool)
    return np.average(crowd.labels[others], weights=weights[others])


@given(st.integers(0, 1000), st.booleans())
def test_score_is_the_share_of_others(seed, weights):
    crowd = shared_items(seed, weights)
    scores = Popularity().fit(crowd).decision_function(crowd)
    rows = zip(crowd.users, crowd.items, strict=True)
    expected = [share_of_others(crowd, person, item) for person, item in rows]
    np.testing.assert_allclose(scores, expected, atol=1e-12)


def test_ones_own_labels_never_matter():
    crowd = shared_items(0)
    mine = crowd.users == "person-2"
    flipped = crowd._with(labels=crowd.labels ^ mine)
    shares = [Popularity().fit(c).decision_function(crowd)[mine] for c in (crowd, flipped)]
    np.testing.assert_allclose(*shares)


def test_items_with_equal_features_are_different_items():
    crowd = Annotations(
        users=["ann", "bob", "ann", "bob"],
        items=["heat", "dusk", "dusk", "heat"],
        labels=[1, 0, 0, 1],
        features={"heat": [1.0], "dusk": [1.0]},
    )
    ranker = Popularity().fit(crowd)
    assert ranker.decision_function(crowd).tolist() == [1.0, 0.0, 0.0, 1.0]
    scores = ranker.decision_function([[1.0], [1.0]], ["ann", "ann"], items=["dusk", "heat"])
    assert scores.tolist() == [0.0, 1.0]
    with pytest.raises(ValueError):
        ranker.decision_function([[1.0]])
    with pytest.raises(ValueError):
        ranker.decision_function(crowd, items=crowd.items)


def test_plain_arrays_know_items_by_their_features():
    crowd = shared_items(1, weights=False)
    assert len(np.unique(crowd.features, axis=0)) == len(crowd.features)
    ranker = Popularity().fit(crowd.X, crowd.labels, users=crowd.users)
    expected = Popularity().fit(crowd).decision_function(crowd)
    np.testing.assert_array_equal(ranker.decision_function(crowd.X, users=crowd.users), expected)


def test_strangers_get_everybodys_share_and_new_items_the_overall_one():
    crowd = Annotations(
        users=["ann", "bob", "ann"], items=None, labels=[1, 0, 1], features=[[0.0], [-0.0], [5.0]]
    )
    ranker = Popularity(unknown="consensus").fit(crowd)
    items = np.array([[0.0], [5.0], [7.0]])
    np.testing.assert_allclose(ranker.decision_function(items), [0.5, 1.0, 2 / 3])
    np.testing.assert_allclose(ranker.decision_function(items, ["eve"] * 3), [0.5, 1.0, 2 / 3])
    np.testing.assert_allclose(ranker.decision_function(items, ["ann"] * 3), [0.0, 2 / 3, 2 / 3])


def test_items_that_nobody_shares_are_refused():
    rows = np.arange(4.0)[:, None]
    with pytest.raises(ValueError):
        Popularity().fit(rows, [0, 1, 0, 1], users=[0, 0, 1, 1])
    alone = Popularity().fit(rows, [0, 1, 1, 1])
    np.testing.assert_array_equal(alone.decision_function(rows), np.full(4, 0.75))


def test_saved_and_loaded(tmp_path):
    crowd = shared_items(2)
    ranker = Popularity().fit(crowd)
    again = load(save(ranker, tmp_path / "m"))
    np.testing.assert_array_equal(again.decision_function(crowd), ranker.decision_function(crowd))
    assert again.score(crowd) == ranker.score(crowd)
