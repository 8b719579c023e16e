"""The column of others' labels of an item: its values, its weight, and no leak."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds import (
    Annotations,
    RankerCV,
    load,
    save,
    split_within_users,
)
from likeminds.baselines import ConsensusOnly, Popularity, PopularityWithFeatures
from likeminds.data.splits import folds_within_users
from likeminds.rankers.baselines.popularity import labelled_items, popularities
from likeminds.schools import Explanation

PULL, RIDGE = 2.0, 1e-3


def small(seed, weights=True):
    rng = np.random.default_rng(seed)
    return Annotations(
        users=[f"person-{i}" for i in rng.integers(5, size=60)],
        items=rng.integers(9, size=60),  # some twice by the same person
        labels=rng.random(60) < 0.4,
        features=rng.standard_normal((9, 2)),
        weights=rng.uniform(0.1, 3.0, 60) if weights else None,
    )


def shared(seed=0, users=80, items=30, per_person=24):
    """Return a crowd that judges the same items, which have features and something beyond."""
    rng = np.random.default_rng(seed)
    X, beyond = rng.standard_normal((items, 4)), 1.5 * rng.standard_normal(items)
    person = np.repeat(np.arange(users), per_person)
    item = np.concatenate([rng.permutation(items)[:per_person] for _ in range(users)])
    score = X[item] @ [1.0, -1.0, 0.5, 0.0] + beyond[item] + rng.logistic(size=len(item))
    return Annotations(users=person, items=item, labels=score > 0, features=X)


def log_odds(rows, crowd, shares, weights):
    """Return the definition of c from some of the rows."""
    if not rows.any():
        return 0.0
    n, k = weights[rows].sum(), (weights * crowd.labels)[rows].sum()
    q = np.average(shares[crowd.user_codes[rows]], weights=weights[rows])
    return np.log((k + PULL * q) / (n - k + PULL * (1 - q))) - np.log(q / (1 - q))


def beyond_features(crowd, left_out):
    """Return each item's popularity without a person, less its ridge regression on features."""
    weights = np.ones(len(crowd)) if crowd.weights is None else crowd.weights
    shares = [
        (1 + (weights * crowd.labels)[mine].sum()) / (2 + weights[mine].sum())
        for mine in (crowd.user_codes == i for i in range(crowd.n_users))
    ]
    shares = np.array(shares)
    items = np.unique(crowd.item_codes)
    said = [crowd.item_codes == j for j in items]
    others = crowd.user_codes != left_out
    c = np.array([log_odds(rows & others, crowd, shares, weights) for rows in said])
    trust, theirs = (
        np.array([n / (n + PULL) for n in (weights[rows & whose].sum() for rows in said)])
        for whose in (np.ones(len(crowd), dtype=bool), others)
    )
    X = crowd.features[items]
    Z = X - np.average(X, axis=0, weights=trust)
    Z /= np.sqrt(np.average(Z**2, axis=0, weights=trust))
    Z = np.column_stack([np.ones(len(Z)), Z])
    penalty = RIDGE * trust.sum() * np.diag([0.0, 1.0, 1.0])
    g = np.linalg.solve(Z.T @ (trust[:, None] * Z) + penalty, Z.T @ c)
    return dict(zip(items.tolist(), c - theirs * (Z @ g), strict=True))


@given(st.integers(0, 1000), st.booleans())
def test_column_is_the_opinion_of_all_others_by_a_double_loop(seed, weights):
    crowd = small(seed, weights)
    ids, item = labelled_items(crowd, "it")
    popularity, column = popularities(crowd, item, len(ids))
    everybody = beyond_features(crowd, left_out=-1)
    np.testing.assert_allclose(popularity, list(everybody.values()), atol=1e-9)
    without = [beyond_features(crowd, person) for person in range(crowd.n_users)]
    pairs = zip(crowd.user_codes.tolist(), crowd.item_codes.tolist(), strict=True)
    np.testing.assert_allclose(column, [without[i][j] for i, j in pairs], atol=1e-9)


def test_heavy_labels_leave_no_rounding_behind():
    crowd = small(4)
    weights = np.where(np.arange(60) % 7 == 0, 1e12, crowd.weights)
    items = crowd.items.copy()
    items[59] = 100  # an item of one heavy label, of which others say nothing
    features = dict(enumerate(crowd.features)) | {100: crowd.features[0]}
    weights[59] = 1e12
    told = Annotations(crowd.users, items, crowd.labels, features, weights=weights)
    ids, item = labelled_items(told, "it")
    popularity, column = popularities(told, item, len(ids))
    assert np.isfinite(popularity).all()
    assert np.isfinite(column).all()
    assert np.abs(column).max() < 100
    assert column[59] == 0.0


def test_ones_own_labels_never_matter():
    crowd = small(3)
    mine = crowd.users == "person-2"
    order = np.flatnonzero(mine)
    flipped = crowd.labels.copy()
    flipped[order] = crowd.labels[order[::-1]]  # as many of each: only which is which changes
    assert (flipped != crowd.labels).any()
    ids, item = labelled_items(crowd, "it")
    columns = [
        popularities(crowd._with(labels=labels), item, len(ids))[1]
        for labels in (crowd.labels, flipped)
    ]
    np.testing.assert_allclose(columns[0][mine], columns[1][mine], atol=1e-12)
    assert not np.allclose(columns[0][~mine], columns[1][~mine])


def test_labels_at_random_teach_nothing():
    crowd = shared(1, users=150)
    crowd = crowd._with(labels=np.random.default_rng(2).random(len(crowd)) < 0.5)
    train, test = split_within_users(crowd, 0.3, 0)
    search = RankerCV(PopularityWithFeatures(), {"alpha": [1.0, 0.01]}).fit(train)
    assert abs(search.best_score_ - 0.5) < 0.03
    assert abs(search.score(test) - 0.5) < 0.03
    # Not even labels that were learned from are told by the popularities of the others.
    ids, item = labelled_items(train, "it")
    column = popularities(train, item, len(ids))[1]
    assert abs(np.corrcoef(column, train.labels)[0, 1]) < 0.05


def test_known_items_are_scored_by_all_labels_and_named_by_ids():
    crowd = shared(4)
    ranker = PopularityWithFeatures().fit(crowd)
    popularity = beyond_features_of(crowd)
    effects = ranker.decision_function(crowd) - crowd.X @ ranker.consensus_
    np.testing.assert_allclose(
        effects, ranker.item_weight_ * popularity[crowd.item_codes], atol=1e-9
    )
    scores = ranker.decision_function(crowd.X, crowd.users, items=crowd.items)
    np.testing.assert_array_equal(scores, ranker.decision_function(crowd))
    nameless = ranker.decision_function(crowd.X, crowd.users)
    np.testing.assert_allclose(nameless, crowd.X @ ranker.consensus_)
    with pytest.raises(ValueError):
        ranker.decision_function(crowd.X, crowd.users, items=["a"])


def beyond_features_of(crowd):
    ids, item = labelled_items(crowd, "it")
    return popularities(crowd, item, len(ids))[0]


def test_opinions_are_learned_anew_in_each_fold():
    crowd = shared(5, users=30)
    ranker = PopularityWithFeatures(1.0, unknown="consensus")
    search = RankerCV(ranker, {"alpha": [1.0]}, n_folds=3, halving=False).fit(crowd)
    number = folds_within_users(crowd, 3, 0)
    for k in range(3):
        fitted = ranker.fit(crowd[number != k])
        found = search.cv_results_[f"split{k}_test_score"][0]
        assert found == pytest.approx(fitted.score(crowd[number == k]), abs=1e-6)


def test_more_labels_change_opinions_as_if_fitted_at_once(tmp_path):
    crowd = shared(7, users=40)
    first, more = crowd[:600], crowd[600:]
    ranker = PopularityWithFeatures(unknown="consensus").fit(first)
    again = load(save(ranker, tmp_path / "m", with_data=True))
    np.testing.assert_array_equal(again.decision_function(more), ranker.decision_function(more))
    again.update(more)
    whole = PopularityWithFeatures().fit(crowd)
    assert again.item_weight_ == pytest.approx(whole.item_weight_)
    np.testing.assert_allclose(again.decision_function(crowd), whole.decision_function(crowd))


def test_rows_that_say_nothing_of_items_are_refused_and_lone_items_warned_of():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 2)), rng.random(40) < 0.5
    with pytest.raises(ValueError):
        PopularityWithFeatures().fit(X, y, users=np.arange(40) % 4)
    lone = Annotations(users=np.arange(40) % 4, items=np.arange(40), labels=y, features=X)
    with pytest.warns(UserWarning, match="item effects"):
        ranker = PopularityWithFeatures().fit(lone)
    assert ranker.item_weight_ == 0.0
    plain = ConsensusOnly().fit(lone).decision_function(lone)
    np.testing.assert_allclose(ranker.decision_function(lone), plain)


def test_what_all_see_in_items_is_explained(tmp_path):
    crowd = shared(9, users=30)
    ranker = PopularityWithFeatures().fit(crowd)
    explained = Explanation.of_ranker(ranker)
    assert "popularity" in explained.levels.feature_names
    everybody = explained.levels.coef @ explained.items.features.T
    scores = ranker.decision_function(crowd)
    places = explained.items.positions_of(crowd)
    np.testing.assert_allclose(everybody[crowd.user_codes, places], scores)
    reasons = explained.item(crowd.items[0])["reasons"]
    assert "popularity" in {one["feature"] for one in reasons}
    again = load(save(ranker, tmp_path / "m"))
    assert Explanation.of_ranker(again, crowd).item(crowd.items[0])["reasons"] == reasons


def test_grades_gain_from_what_others_said():
    crowd = shared(10)
    rng = np.random.default_rng(10)
    beyond = 2.0 * rng.standard_normal(crowd.n_items)
    score = crowd.X[:, 0] + beyond[crowd.item_codes] + rng.logistic(size=len(crowd))
    graded = Annotations(
        users=crowd.users,
        items=crowd.items,
        labels=np.clip(np.round(3 + score), 1, 5),
        features=dict(zip(crowd.items, crowd.X, strict=True)),
    )
    assert graded.grades is not None
    train, test = split_within_users(graded, 0.3, 0)
    scores = [one.fit(train).score(test) for one in (PopularityWithFeatures(), ConsensusOnly())]
    assert scores[0] > scores[1] + 0.02


def test_the_consensus_sees_items_as_strangers_do():
    crowd = shared(11, users=30)
    one = PopularityWithFeatures(unknown="consensus")
    for ranker in (one, RankerCV(one, {"alpha": [0.1]})):
        ranker.fit(crowd)
        stranger = ranker.decision_function(crowd.X, ["nobody"] * len(crowd), items=crowd.items)
        np.testing.assert_allclose(ranker.consensus_scores(crowd), stranger)


def test_a_ridge_shrinks_the_weight_of_others_labels():
    crowd = shared(3)
    ranker, weak = (PopularityWithFeatures(0.1, alpha_item=a).fit(crowd) for a in (0.5, 100.0))
    assert abs(weak.item_weight_) < 0.1 * abs(ranker.item_weight_)


def test_popularity_with_features_knows_new_items_and_beats_either_alone():
    rng = np.random.default_rng(4)
    X, beyond = rng.standard_normal((40, 3)), rng.standard_normal(40)
    person, item = np.repeat(np.arange(60), 24), rng.integers(40, size=1440)
    score = X[item].sum(axis=1) + beyond[item] + rng.logistic(size=1440)
    crowd = Annotations(users=person, items=item, labels=score > 0, features=X)
    old = crowd[crowd.item_codes < 30]
    train, test = split_within_users(old, 0.5, 0)
    both, popular, features = (
        RankerCV(one, n_folds=3).fit(train)
        for one in (PopularityWithFeatures(), Popularity(unknown="consensus"), ConsensusOnly())
    )
    assert both.score(test) >= max(popular.score(test), features.score(test))
    new = crowd[crowd.item_codes >= 30]
    assert both.score(new) > 0.7
    assert popular.score(new) == 0.5
