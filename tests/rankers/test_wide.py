"""`HierarchicalRanker` on wide features, and with a consensus that is known already."""

import numpy as np
import pytest

import likeminds
from likeminds import Annotations, HierarchicalRanker

pytestmark = pytest.mark.seconds


def crowd_of_pairs(seed=0, n_users=60, n_pairs=24, d=40, strength=2.0):
    """Return pairs that two schools judge, those held out, and the consensus."""
    rng = np.random.default_rng(seed)
    users = np.repeat(np.arange(n_users), n_pairs)
    a, b = rng.normal(size=(2, len(users), d))
    theta, apart = rng.normal(size=(2, d)) / np.sqrt(d)
    school = np.where(np.arange(n_users) % 2, 1.0, -1.0)
    W = 2.0 * theta + strength * school[:, None] * apart
    eta = np.einsum("nd,nd->n", a - b, W[users])
    wins = (eta + rng.logistic(size=len(users)) > 0)[:, None]
    sides = np.where(wins, a, b), np.where(wins, b, a)
    test = np.arange(len(users)) % n_pairs >= n_pairs - 6

    def pairs(chosen):
        ids = np.arange(chosen.sum())
        features = tuple(side[chosen] for side in sides)
        return Annotations.from_comparisons(users[chosen], ids, ids + len(ids), features=features)

    return pairs(~test), pairs(test), 2.0 * theta


@pytest.fixture(scope="module")
def crowd():
    return crowd_of_pairs()


@pytest.fixture(scope="module")
def wide(crowd):
    return HierarchicalRanker(wide=True).fit(crowd[0])


def test_both_ways_rank_alike(crowd, wide):
    train, test, _ = crowd
    dense = HierarchicalRanker(covariance="low_rank", wide=False).fit(train)
    assert wide.wide_
    assert not dense.wide_
    scores = [ranker.decision_function(test) for ranker in (wide, dense)]
    assert np.corrcoef(scores)[0, 1] > 0.95
    assert wide.score(test) > dense.score(test) - 0.02
    assert wide.n_groups_ == dense.n_groups_ == 1
    errors = [ranker.standard_error(test.X, test.users) for ranker in (wide, dense)]
    assert 0.7 < np.median(errors[0] / errors[1]) < 1.4


def test_levels_add_up(wide):
    np.testing.assert_allclose(wide.coef_, wide.consensus_ + wide.group_ + wide.personal_)
    assert wide.directions_.shape == (1, 40)
    assert 0.5 < wide.explained_["group"] <= 1


def narrowed(monkeypatch, kept=12):
    monkeypatch.setattr("likeminds.mixed_model.wide_fit.N_COORDINATES", kept)


@pytest.mark.parametrize("kept", [12, 64])
def test_everything_works_in_few_coordinates(crowd, kept, monkeypatch, tmp_path):
    narrowed(monkeypatch, kept)
    train, test, _ = crowd
    ranker = HierarchicalRanker(wide=True, unknown="consensus").fit(train)
    assert ranker.prior_.design.n_weights == min(kept, 40)
    assert ranker.information_.shape[2] == min(kept, 40)
    again = likeminds.load(likeminds.save(ranker, tmp_path / "wide.likeminds"))
    np.testing.assert_array_equal(again.decision_function(test), ranker.decision_function(test))
    if kept < 40:
        assert "coef_" not in vars(ranker)
        assert "coef_" not in vars(again)
    weights = np.vstack([ranker.coef_, ranker.consensus_])
    users = [ranker.users_.tolist().index(user) for user in test.users]
    expected = np.einsum("nd,nd->n", test.X, weights[users])
    np.testing.assert_allclose(ranker.decision_function(test), expected, atol=1e-10)
    np.testing.assert_allclose(
        ranker.decision_function(few := test.X[:9], ["nobody"] * 9), few @ ranker.consensus_
    )
    np.testing.assert_array_equal(again.coef_, ranker.coef_)
    somebody = test.users[0]
    for asked in (ranker, again):
        low, high = asked.rank_interval(somebody, few)
        assert ((low >= 1) & (high <= 9) & (low <= high)).all()
        assert len(set(asked.next_items(somebody, few, n=3).tolist())) == 3
    error = ranker.standard_error(test)
    np.testing.assert_allclose(again.standard_error(test), error)
    strangers = ranker.standard_error(few, ["nobody"] * 9)
    assert (strangers > 0.9 * error[:9]).all()
    chance = ranker.probability_above(few[:4], few[4:8], [somebody] * 4)
    other_way = ranker.probability_above(few[4:8], few[:4], [somebody] * 4)
    np.testing.assert_allclose(chance + other_way, 1.0)


def test_uncertainty_beyond_the_coordinates_is_the_priors(crowd, monkeypatch):
    narrowed(monkeypatch)
    ranker = HierarchicalRanker(wide=True, unknown="consensus").fit(crowd[0])
    prior_, features = ranker.prior_, crowd[1].X[:50]
    coordinates, wider = prior_.design, prior_.predictive
    moved = (features - coordinates.origin) / coordinates.scale
    outside = moved - moved @ coordinates.basis @ coordinates.basis.T
    inside = np.einsum(
        "na,ab,nb->n", moved @ coordinates.basis, wider.covariance, moved @ coordinates.basis
    )
    variance = inside + wider.beyond * (outside**2).sum(axis=1)
    error = ranker.standard_error(features, ["nobody"] * 50)
    np.testing.assert_allclose(error, np.sqrt(variance), rtol=1e-8)


@pytest.mark.parametrize("kept", [12, 64])
def test_newcomers_have_the_posterior_of_people_seen(crowd, kept, monkeypatch):
    narrowed(monkeypatch, kept)
    train, test, _ = crowd
    ranker = HierarchicalRanker(wide=True).fit(train)
    somebody = train.user_ids[3]
    told = train.of_users([somebody])
    new = ranker.newcomer(told)
    place = ranker.users_.tolist().index(somebody)
    np.testing.assert_allclose(new.coef[0], ranker.coef_[place], atol=1e-5)
    judged = test.of_users([somebody])
    np.testing.assert_allclose(new.standard_error(judged), ranker.standard_error(judged), rtol=1e-4)


def test_newcomers_may_label_single_items(crowd, monkeypatch):
    narrowed(monkeypatch)
    ranker = HierarchicalRanker(wide=True).fit(crowd[0])
    X = crowd[1].X[:20]
    labels = X @ ranker.consensus_ > 0
    new = ranker.newcomer(X, labels)
    assert np.isfinite(new.decision_function(X)).all()
    assert (new.standard_error(X) < ranker.newcomer().standard_error(X)).all()


def test_more_labels_are_as_if_they_had_been_there(crowd):
    train, test, _ = crowd
    ranker = HierarchicalRanker(wide=True, n_groups=1).fit(train)
    both = HierarchicalRanker(wide=True, n_groups=1).fit(train.concat(test))
    np.testing.assert_allclose(ranker.update(test).coef_, both.coef_, atol=1e-6)


@pytest.mark.slow
def test_single_precision_is_enough():
    double, test, _ = crowd_of_pairs(3)
    single = double._with(features=double.features.astype(np.float32))
    scores = [
        HierarchicalRanker(wide=True, n_groups=1).fit(said).decision_function(test)
        for said in (double, single)
    ]
    assert np.corrcoef(scores)[0, 1] > 0.9999


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["agree", "noise"])
def test_crowds_that_do_not_differ_get_the_consensus(kind):
    train, test, theta = crowd_of_pairs(1, strength=0.0)
    if kind == "noise":
        rng = np.random.default_rng(0)
        labels = np.repeat(rng.random(len(train) // 2) < 0.5, 2)
        order = np.argsort(train.choice_set_codes, kind="stable")
        flipped = train.labels.copy()
        flipped[order] ^= labels
        train = train._with(labels=flipped)
    ranker = HierarchicalRanker(wide=True).fit(train)
    assert ranker.n_groups_ == 0
    spread = np.std(ranker.decision_function(test) - test.X @ ranker.consensus_)
    assert spread < 0.2
    if kind == "agree":
        assert np.corrcoef(ranker.consensus_, theta)[0, 1] > 0.8


@pytest.mark.parametrize("wide", [True, False])
def test_a_known_consensus_helps_where_labels_are_few(wide):
    train, test, theta = crowd_of_pairs(2, n_users=12, n_pairs=9, strength=0.0)
    plain, told, wrong = (
        HierarchicalRanker(wide=wide, n_groups=0, consensus=consensus).fit(train)
        for consensus in (None, theta, -theta)
    )
    assert told.score(test) > plain.score(test) + 0.02
    assert np.linalg.norm(told.consensus_ - theta) < np.linalg.norm(plain.consensus_ - theta)
    assert wrong.score(test) > 0.5 - (told.score(test) - 0.5)


@pytest.mark.slow
@pytest.mark.parametrize("wide", [True, False])
def test_a_known_consensus_of_zero_is_none(crowd, wide):
    plain, zero = (
        HierarchicalRanker(wide=wide, n_groups=1, consensus=consensus).fit(crowd[0])
        for consensus in (None, np.zeros(40))
    )
    np.testing.assert_array_equal(plain.coef_, zero.coef_)


def test_a_known_consensus_is_saved(crowd, tmp_path):
    ranker = HierarchicalRanker(wide=True, n_groups=0, consensus=crowd[2]).fit(crowd[0])
    again = likeminds.load(likeminds.save(ranker, tmp_path / "known.likeminds"))
    np.testing.assert_array_equal(again.consensus, crowd[2])
