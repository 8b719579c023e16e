"""What all see in an item, divided between its features and its own effect."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import multivariate_normal

from learned_model import OFF_ZERO, ItemPosteriors
from likeminds import Annotations, HierarchicalRanker
from likeminds.diagnostics.annotators import refittable
from likeminds.mixed_model.item_effects import feature_regression
from likeminds.mixed_model.item_effects.feature_regression import (
    ItemFeatureRegression,
    ItemObservations,
    regress_items_on_features,
    single_labels,
)


def make_items(n_items=12, seed=0):
    rng = np.random.default_rng(seed)
    X, y, noise = rng.normal(size=(n_items, 3)), rng.normal(size=n_items), rng.random(n_items)
    alone = single_labels(rng.integers(1, 4, n_items))
    return X, alone, y, noise


def test_the_cost_is_that_of_all_else_integrated_out():
    X, alone, y, noise = make_items()
    others = np.column_stack([np.ones(12), alone])

    def by_definition(spread, variance):
        whole = spread * X @ X.T + others @ others.T / 0.01 + np.diag(variance + noise)
        density = multivariate_normal(np.zeros(12), whole).logpdf(y)
        return -density - 0.5 * OFF_ZERO * np.log(spread * variance)

    items = ItemObservations(np.column_stack([X, others]), 3, y, noise)
    first, second = np.array([0.3, 0.7]), np.array([2.0, 0.1])
    apart = items.cost(np.log(first))[0] - items.cost(np.log(second))[0]
    assert apart == pytest.approx(by_definition(*first) - by_definition(*second))


def test_the_slope_is_that_of_the_cost():
    X, alone, y, noise = make_items()
    items = ItemObservations(np.column_stack([X, np.ones(12), alone]), 3, y, noise)
    for logs in ([0.3, -1.0], [-4.0, 2.0]):
        naive = approx_fprime(np.array(logs), lambda at: items.cost(at)[0], 1e-6)
        np.testing.assert_allclose(items.cost(np.array(logs))[1], naive, atol=1e-4)


def test_being_judged_alone_is_zero_for_the_average_label():
    counts = np.array([1, 1, 5, 20])
    alone = single_labels(counts)
    assert counts @ alone == pytest.approx(0.0)
    assert alone[0] - alone[2] == 1.0


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_features_get_what_is_theirs(strength):
    rng = np.random.default_rng(1)
    X, theta = rng.normal(size=(200, 5)), strength * np.array([1.0, -1.0, 0.5, 0.0, 0.0])
    noise = np.full(200, 0.1)
    y = 3.0 + X @ theta + rng.normal(0, 0.8, 200) + rng.normal(0, np.sqrt(0.1), 200)
    found = ItemFeatureRegression.of(X, y, noise, np.zeros(200))
    assert found.intercept == pytest.approx(3.0, abs=0.2)
    assert np.abs(found.theta - theta).max() < 0.2
    assert found.variance == pytest.approx(0.64, abs=0.2)


@pytest.mark.slow
def test_known_items_keep_their_scores_and_features_lose_what_is_not_theirs(monkeypatch):
    """With few items and many features the point estimate fits noise, for which new items pay."""
    rng = np.random.default_rng(0)
    user, item = np.repeat(np.arange(60), 30), np.tile(np.arange(30), 60)
    lengths = []
    for _ in range(3):
        liked, X = rng.normal(0, 1.5, 30), rng.normal(size=(30, 26))
        said = rng.random(len(user)) < 1 / (1 + np.exp(-liked[item]))
        crowd = Annotations(user, item, said, X, item_ids=np.arange(30))
        found = []
        for divide in (regress_items_on_features, lambda learned, *_: (learned, np.eye(27))):
            monkeypatch.setattr(
                "likeminds.rankers.hierarchical_fit.regress_items_on_features", divide
            )
            ranker = HierarchicalRanker(n_groups=0, n_item_factors=0).fit(crowd)
            found.append((X @ ranker.consensus_, X @ ranker.consensus_ + ranker.item_effect_))
        lengths.append([consensus.std() for consensus, _ in found])
        assert np.corrcoef(found[0][1], found[1][1])[0, 1] > 0.98
    divided, learned = np.mean(lengths, axis=0)
    assert divided < 0.6 * learned


@pytest.mark.slow
def test_authors_who_agree_with_their_own_statements_teach_features_nothing():
    """Statements that nobody but their author has seen are agreed with, whatever they say."""
    rng = np.random.default_rng(0)
    n_users, n_seen, n_own, n_new, d = 120, 60, 120, 200, 20
    X = rng.normal(size=(n_seen + n_own + n_new, d))
    X[n_seen : n_seen + n_own, 0] += 2.0  # what is not shown to others reads differently
    told = X @ rng.normal(size=d) / np.sqrt(d)
    liked = told + 0.7 * rng.normal(size=len(X))
    user, item = np.nonzero(rng.random((n_users, n_seen)) < 0.3)
    said = rng.random(len(user)) < 1 / (1 + np.exp(-liked[item]))
    own = n_seen + np.arange(n_own)
    crowd = Annotations(
        np.concatenate([user, rng.integers(n_users, size=n_own)]),
        np.concatenate([item, own]),
        np.concatenate([said, np.ones(n_own, dtype=bool)]),
        X,
        item_ids=np.arange(len(X)),
    )
    found = [
        X @ HierarchicalRanker(n_item_factors=0).fit(a).consensus_
        for a in (crowd, crowd[: len(user)])
    ]
    with_own, without = (np.corrcoef(x[-n_new:], told[-n_new:])[0, 1] for x in found)
    assert with_own > without - 0.05


def test_more_features_than_items_are_as_many_as_items():
    rng = np.random.default_rng(0)
    X, y, noise, none = rng.normal(size=(12, 30)), rng.normal(size=12), np.ones(12), np.zeros(12)
    found = ItemFeatureRegression.of(X, y, noise, none)
    items = ItemObservations(np.column_stack([X, np.ones(12), none]), 30, y, noise)
    solved = np.linalg.solve(*items.normal_equations(found.spread, found.variance))
    np.testing.assert_allclose(found.theta, solved[:30], atol=1e-8)
    assert items.minimise_cost()[0][0] == pytest.approx(np.log(found.spread), 1e-3)


@pytest.mark.parametrize("strength", [0.0, 1.0])
def test_features_pay_where_they_tell_something(strength):
    rng = np.random.default_rng(2)
    X = rng.normal(size=(60, 5))
    y = strength * X[:, 0] + rng.normal(size=60)
    gain = ItemFeatureRegression.of(X, y, np.full(60, 0.1), np.zeros(60)).gain
    assert gain > 5.0 if strength else gain < 1.0


def test_what_is_left_of_factors_is_their_posterior_around_what_features_predict():
    rng = np.random.default_rng(3)
    known = np.stack([A @ A.T for A in rng.normal(size=(4, 2, 2))])
    said, predicted, unit = rng.normal(size=(4, 2)), rng.normal(size=(4, 2)), np.array([0.5, 1.0])

    def posterior(mean, precision):
        """The naive one: labels that say N(said, 1 / known), and a prior."""
        covariance = np.linalg.inv(known + precision)
        pull = np.einsum("jab,jb->ja", known, said) + mean @ precision
        return np.einsum("jab,jb->ja", covariance, pull), covariance

    factors, unsure = posterior(np.zeros((4, 2)), np.eye(2))
    before = ItemPosteriors(np.arange(4), np.zeros(4), np.ones(4), 1.0, factors, unsure)
    left = feature_regression._residual_factors(before, predicted, unit)
    expected, covariance = posterior(predicted, np.diag(1.0 / unit**2))
    np.testing.assert_allclose(predicted + unit * left.factors, expected)
    np.testing.assert_allclose(unit[:, None] * left.factor_covariance * unit, covariance)


def crowd_divided(told, seed=0):
    """Statements that divide people, in which words tell a share; new ones, and their truth."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(100, 40)) / np.sqrt(1.0 + np.arange(40))
    X /= np.linalg.norm(X, axis=1, keepdims=True)
    words = X @ rng.normal(size=40)
    divides = np.sqrt(told) * words / words.std() + np.sqrt(1.0 - told) * rng.normal(size=100)
    scores = rng.normal(size=100) + 1.5 * np.outer(rng.normal(size=100), divides)
    user, item = np.nonzero(rng.random((100, 60)) < 0.4)
    said = rng.random(len(user)) < 1 / (1 + np.exp(-scores[user, item]))
    crowd = Annotations(user, item, said, X[:60], item_ids=np.arange(60))
    return crowd, X[60:], scores[:, 60:]


@pytest.mark.slow
def test_people_differ_about_new_items_where_features_tell_what_divides(monkeypatch):
    crowd, new, truth = crowd_divided(told=0.6)
    together, known = [], []
    for divide in (feature_regression._regress_factors, lambda learned, *_: (learned, np.eye(27))):
        monkeypatch.setattr(feature_regression, "_regress_factors", divide)
        ranker = HierarchicalRanker(0, n_item_factors=1, standardize=False, tol=1e-3).fit(crowd)
        apart = (ranker.coef_ - ranker.consensus_) @ new.T
        together.append(np.corrcoef(apart.ravel(), (truth - truth.mean(axis=0)).ravel())[0, 1])
        known.append(ranker.decision_function(crowd))
        assert ranker.n_groups_ == 0
    assert together[0] > together[1] + 0.2
    # What is known of known items hardly changes.
    assert np.corrcoef(*known)[0, 1] > 0.99


def test_directions_that_lead_already_are_counted_once():
    first, second = np.eye(5)[:, :1], np.array([0.1, 2.0, 0.0, 0.0, 0.0])
    assert feature_regression._count_directions(first, [3.0 * first[:, 0]]) == 1
    assert feature_regression._count_directions(first, [second, 2.0 * second]) == 2
    assert feature_regression._count_directions(np.zeros((5, 0)), [second]) == 1


@pytest.mark.slow
def test_factors_of_which_features_tell_nothing_stay_as_they_are(monkeypatch):
    crowd, _, _ = crowd_divided(told=0.0)
    found = []
    for divide in (feature_regression._regress_factors, lambda learned, *_: (learned, np.eye(27))):
        monkeypatch.setattr(feature_regression, "_regress_factors", divide)
        ranker = HierarchicalRanker(0, n_item_factors=1, standardize=False, tol=1e-3).fit(crowd)
        found.append(ranker.decision_function(crowd))
    np.testing.assert_array_equal(*found)


@pytest.mark.seconds
def test_features_too_many_for_people_to_weigh_describe_items_only():
    rng = np.random.default_rng(3)
    features, theta = rng.normal(size=(120, 40)), rng.normal(size=40) / 3
    users = np.repeat(np.arange(60), 25)
    items = np.concatenate([rng.permutation(100)[:25] for _ in range(60)])
    labels = rng.logistic(size=len(items)) < features[items] @ theta
    said = Annotations(users, items, labels, features)
    ranker, bare = HierarchicalRanker().fit(said), HierarchicalRanker()
    assert 40 * 41 / 2 < len(said) < 2.5 * 40 * 41 / 2
    bare.fit(Annotations(users, items, labels))
    assert ranker.objective_ == pytest.approx(bare.objective_)
    assert ranker.n_groups_ == 0
    shared = ranker.decision_function(features[100:])
    own = ranker.decision_function(features[100:], [0] * 20)
    assert np.ptp(own - shared) < 0.05
    new = features[100:] @ theta
    assert np.corrcoef(shared, new)[0, 1] > 0.5
    zero, one = (HierarchicalRanker(n_groups=n).fit(said) for n in (0, 1))
    assert zero.objective_ == pytest.approx(bare.objective_)
    assert (one.n_groups_, one.covariance_) == (1, "low_rank")
    # A fit with the parameters that were chosen is the same model.
    again = refittable(ranker).fit(said)
    assert (ranker.covariance_, again.covariance) == ("none", "none")
    np.testing.assert_allclose(again.decision_function(said), ranker.decision_function(said))
