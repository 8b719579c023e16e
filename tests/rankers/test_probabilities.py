"""Probabilities of labels: calibrated, in scikit-learn's shape, of grades and choices, too."""

from copy import copy

import numpy as np
import pytest
from scipy.special import expit

from likeminds import (
    Annotations,
    HierarchicalRanker,
    ThreeLevelRanker,
    load,
    load_electricity,
    make_schools,
    save,
)
from likeminds.rankers.probabilities import prediction_rows


def scores_and_variances(ranker, rows):
    """Return scores from the common zero of all users, and their variances."""
    posterior, predicted, places, _ = prediction_rows(ranker, rows, None)
    return posterior.linear_predictor(predicted, places)


def votes(n_users=150, n_items=60, shown=0.6, seed=0):
    """Simulate people who say yes by log-odds: of features, of the item, of the person."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_items, 2))
    weights = rng.normal([0.5, 0.0], 1.0, (n_users, 2))
    odds = weights @ X.T + rng.normal(0, 0.7, n_items) + rng.normal(0, 0.7, (n_users, 1))
    person, item = np.nonzero(rng.random(odds.shape) < shown)
    chance = 1 / (1 + np.exp(-odds[person, item]))
    said = Annotations(person, item, rng.random(len(item)) < chance, X, features_per="item")
    return said, chance


@pytest.fixture(scope="module")
def told():
    said, chance = votes()
    held_out = np.random.default_rng(0).random(len(said)) < 0.3
    ranker = HierarchicalRanker(n_item_factors=0).fit(said[~held_out])
    return ranker, said[held_out], chance[held_out]


def damped(eta, variance):
    """Return the mean of the logistic function over a normal distribution, nearly."""
    return expit(eta / np.sqrt(1 + np.pi / 8 * variance))


def calibration_error(chance, truth, n_bins=10):
    """Return the mean gap, over bins of equal size, of what was promised and what is true."""
    bins = np.array_split(np.argsort(chance), n_bins)
    return float(np.mean([abs(chance[b].mean() - truth[b].mean()) for b in bins]))


def log_loss(chance, truth):
    """Return the expected log loss, given the true chances (or the labels)."""
    return -(truth * np.log(chance) + (1 - truth) * np.log(1 - chance)).mean()


def test_what_is_promised_comes_true(told):
    ranker, test, truth = told
    chances = ranker.predict_proba(test)
    assert chances.shape == (len(test), 2)
    assert chances.sum(axis=1) == pytest.approx(1.0)
    assert calibration_error(chances[:, 1], truth) < 0.03


# Crowds of all kinds, none of them chosen for its outcome: few labels and many, steep and flat.
CROWDS = [
    {"shown": 0.6},
    {"shown": 0.2},
    {"n_users": 60, "n_items": 24, "shown": 1.0},
    {"n_users": 60, "n_items": 150, "shown": 0.3},
]


@pytest.mark.slow
def test_as_good_a_forecast_as_either_extreme():
    """Between all of the variance and none of it, what is learned is not beaten on the whole."""
    losses = {"known": [], "strangers": []}
    for seed in range(3):
        for kind in CROWDS:
            said, chance = votes(seed=seed, **kind)
            strange = said.user_codes < 0.2 * said.n_users
            held_out = ~strange & (np.random.default_rng(seed).random(len(said)) < 0.3)
            ranker = HierarchicalRanker(n_item_factors=0, unknown="consensus").fit(
                said[~strange & ~held_out]
            )
            for who, part in (("known", held_out), ("strangers", strange)):
                test, truth = said[part], chance[part]
                eta, variance = scores_and_variances(ranker, test)
                forecasts = (
                    ranker.predict_proba(test)[:, 1],
                    damped(eta, variance),
                    expit(eta),
                )
                losses[who].append([log_loss(one, truth) for one in forecasts])
    for who, found in losses.items():
        ours, careful, sure = np.mean(found, axis=0)
        assert ours < min(careful, sure) + 0.002, who
        assert ours < 0.5 * (careful + sure), who


def test_what_counts_is_learned_and_kept(told, tmp_path):
    ranker, test, _ = told
    assert 0.0 <= ranker.variance_scale_ <= 2.0
    again = load(save(ranker, tmp_path / "model.likeminds"))
    assert again.predict_proba(test) == pytest.approx(ranker.predict_proba(test))
    # Files of old say nothing of it: all of the variance counts.
    again.variance_scale_ = None
    eta, variance = scores_and_variances(ranker, test)
    assert again.predict_proba(test)[:, 1] == pytest.approx(damped(eta, variance), abs=1e-6)


def test_a_label_is_left_out_as_if_it_had_not_been_learned():
    """The approximation against refits without one label, of one person with a known prior."""
    said, _ = votes(n_users=60, n_items=40, shown=1.0, seed=3)
    ranker = HierarchicalRanker(n_groups=0, item_effects=False).fit(said)
    person, gaps, moved = said.user_ids[7], [], []
    own = said.of_user(person)
    eta, variance = scores_and_variances(ranker, own)
    chance = expit(eta)
    told = chance * (1.0 - chance) * variance
    for row in range(0, len(own), 4):
        rest = own[np.arange(len(own)) != row]
        refit = ranker.newcomer(rest)
        seen = refit.prediction_rows(own.X[row : row + 1])
        without = refit.linear_predictor(seen, np.zeros(1, dtype=np.intp))[0][0]
        quick = eta[row] - variance[row] / (1.0 - told[row]) * (own.labels[row] - chance[row])
        gaps.append(abs(quick - without))
        moved.append(abs(eta[row] - without))
    assert np.mean(gaps) < 0.25 * np.mean(moved)


def test_people_and_items_that_nobody_knows(told):
    ranker, test, truth = told
    # Of somebody new, the least is known: chances are nearer to one half.
    lenient = copy(ranker).set_params(unknown="consensus")
    stranger = lenient.predict_proba(test.X, ["somebody new"] * len(test), test.items)
    assert stranger[:, 1].std() < ranker.predict_proba(test)[:, 1].std()
    named = ranker.predict_proba(test.X, test.users, test.items)
    assert named == pytest.approx(ranker.predict_proba(test))
    unnamed = ranker.predict_proba(test.X, test.users)
    assert log_loss(named[:, 1], truth) < log_loss(unnamed[:, 1], truth)


def test_columns_are_the_classes():
    rng = np.random.default_rng(1)
    X, users = rng.normal(size=(400, 2)), np.repeat(np.arange(20), 20)
    y = np.where(X[:, 0] + rng.logistic(size=400) > 0, "yes", "no")
    ranker = HierarchicalRanker(n_groups=0).fit(X, y, users=users)
    assert ranker.classes_.tolist() == ["no", "yes"]
    assert ranker.predict_proba([[2.0, 0.0]], [3])[0, 1] > 0.6


def test_of_grades_above_the_one_that_divides_them():
    rng = np.random.default_rng(2)
    X, users = rng.normal(size=(600, 2)), np.repeat(np.arange(20), 30)
    stars = np.clip(np.round(3 + X[:, 0] + rng.normal(size=600)), 1, 5)
    ranker = HierarchicalRanker(n_groups=0, loss="cumulative").fit(X, stars, users)
    grades = ranker.predict_grades(X[:50], users[:50])
    above = grades.grades > ranker.label_reading_.threshold
    chance = ranker.predict_proba(X[:50], users[:50])[:, 1]
    assert chance == pytest.approx(grades.probabilities[:, above].sum(axis=1))
    without = HierarchicalRanker(n_groups=0, loss="auc").fit(X, stars, users)
    assert not hasattr(without, "predict_proba")


def test_of_choices_among_what_is_shown_together():
    households = load_electricity()
    some = households.of_users(households.user_ids[:40])
    ranker = HierarchicalRanker(n_groups=1).fit(some)
    chance = ranker.predict_proba(some)[:, 1]
    assert np.bincount(some.choice_set_codes, chance) == pytest.approx(1.0)
    assert chance[some.labels].mean() > 0.4
    with pytest.raises(ValueError):
        ranker.predict_proba(some.X[:4])


def test_labels_are_predicted_by_probabilities_above_one_half():
    crowd = make_schools(20, 20, 40, 6, 2, random_state=0).annotations
    ranker = HierarchicalRanker(n_groups=0).fit(crowd)
    chance = ranker.predict_proba(crowd)[:, 1]
    np.testing.assert_array_equal(ranker.predict(crowd), chance > 0.5)
    words = np.where(crowd.labels, "yes", "no")
    named = HierarchicalRanker(n_groups=0).fit(crowd.X, words, crowd.users)
    found = named.predict(crowd.X, crowd.users)
    assert set(found) == {"no", "yes"}
    expected = np.array(["no", "yes"])[(named.predict_proba(crowd.X, crowd.users)[:, 1] > 0.5) * 1]
    np.testing.assert_array_equal(found, expected)


def test_rankers_of_pairs_do_not_predict_labels():
    assert not hasattr(HierarchicalRanker(loss="auc"), "predict")
    assert not hasattr(ThreeLevelRanker(), "predict")
