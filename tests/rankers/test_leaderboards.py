"""Leaderboards against simulated truths, sampled posteriors and naive definitions."""

import numpy as np
import pytest

from likeminds import Annotations, HierarchicalRanker, find_schools, leaderboard
from likeminds.rankers import leaderboards
from likeminds.rankers.leaderboards import average_posterior, most_informative_pairs


def votes(seed=0, n_judges=60, n_models=8, n=3000):
    """Return votes of two schools on models whose better answers are longer, and the truth."""
    rng = np.random.default_rng(seed)
    worth = rng.normal(size=n_models)
    worth -= worth.mean()
    truth = np.stack([worth, worth[::-1]])
    judge, a = rng.integers(n_judges, size=n), rng.integers(n_models, size=n)
    b = (a + rng.integers(1, n_models, size=n)) % n_models
    length = rng.normal(size=(n, 2)) + 0.5 * np.column_stack([worth[a], worth[b]])
    school = judge % 2
    ahead = truth[school, a] - truth[school, b] + length[:, 0] - length[:, 1]
    first = rng.logistic(size=n) < ahead
    won, lost = np.where(first, a, b), np.where(first, b, a)
    sides = [np.where(first == k, length[:, 0], length[:, 1])[:, None] for k in (True, False)]
    crowd = Annotations.from_comparisons(
        judge, won, lost, features=tuple(sides), feature_names=["length"]
    )
    return crowd, truth


@pytest.fixture(scope="module")
def arena():
    crowd, truth = votes()
    return HierarchicalRanker(n_item_factors=1).fit(crowd), truth


def scores_of(board):
    return dict(zip(board.items.tolist(), board.scores, strict=True))


def test_leaderboards_of_everyone_schools_and_a_judge_recover_the_truth(arena):
    ranker, truth = arena
    schools = find_schools(ranker, n_schools=2)
    everyone = scores_of(leaderboard(ranker))
    mean = truth.mean(axis=0)
    assert np.corrcoef([everyone[k] for k in range(8)], mean)[0, 1] > 0.9
    for school in schools:
        members = schools.members(school.number)
        own = scores_of(leaderboard(ranker, members))
        expected = truth[int(np.mean(members % 2) > 0.5)]
        # Without length, which would favour the models with longer answers.
        assert np.corrcoef([own[k] for k in range(8)], expected)[0, 1] > 0.95
    judge = leaderboard(ranker, 0)
    assert judge.n_users == 1
    assert np.corrcoef([scores_of(judge)[k] for k in range(8)], truth[0])[0, 1] > 0.8
    widths = [np.mean(one.high - one.low) for one in (leaderboard(ranker), judge)]
    assert widths[0] < widths[1]


def test_intervals_hold_true_scores_and_ranks():
    inside, ranked = [], []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        worth = rng.normal(size=8)
        worth -= worth.mean()
        a = rng.integers(8, size=600)
        b = (a + rng.integers(1, 8, size=600)) % 8
        first = rng.logistic(size=600) < worth[a] - worth[b]
        judges = rng.integers(20, size=600)
        crowd = Annotations.from_comparisons(judges, np.where(first, a, b), np.where(first, b, a))
        board = leaderboard(HierarchicalRanker().fit(crowd), level=0.9)
        true = worth[board.items]
        rank = 1 + (worth > true[:, None]).sum(axis=1)
        inside += ((board.low <= true) & (true <= board.high)).tolist()
        ranked += ((board.rank_low <= rank) & (rank <= board.rank_high)).tolist()
    assert np.mean(inside) > 0.8  # 40 intervals of 90 %
    assert np.mean(ranked) > 0.8


def test_the_posterior_of_a_mean_is_that_of_independent_users(arena):
    ranker, _ = arena
    posterior, places = ranker._posterior_of(np.array([3, 5, 8]))
    mean = average_posterior(posterior, places)
    expected = sum(posterior.covariance(int(k)) for k in places) / 9
    np.testing.assert_allclose(mean.covariance(0), expected, atol=1e-6)
    np.testing.assert_allclose(mean.points[0], posterior.points[places].mean(axis=0))


def test_one_judge_has_the_rank_intervals_of_the_ranker():
    rng = np.random.default_rng(0)
    won = rng.integers(5, size=300)
    lost = (won + rng.integers(1, 5, size=300)) % 5
    crowd = Annotations.from_comparisons(rng.integers(6, size=300), won, lost)
    ranker = HierarchicalRanker().fit(crowd)
    board = leaderboard(ranker, 2, level=0.8)
    ids = ranker.training_items()[0]
    low, high = ranker.rank_interval(2, Annotations([2] * 5, ids, [1, 0, 1, 0, 1]), 0.8)
    found = dict(zip(board.items, zip(board.rank_low, board.rank_high, strict=True), strict=True))
    assert found == dict(zip(ids, zip(low, high, strict=True), strict=True))


def test_proposed_pairs_reduce_the_variance_most():
    rng = np.random.default_rng(1)
    scores, root = rng.normal(size=6), rng.normal(size=(6, 6))
    covariance = root @ root.T
    centring = np.eye(6) - 1 / 6
    best, least = None, np.inf
    for i in range(6):
        for j in range(i + 1, 6):
            contrast = np.eye(6)[i] - np.eye(6)[j]
            p = 1 / (1 + np.exp(-contrast @ scores))
            posterior = np.linalg.inv(
                np.linalg.inv(covariance) + p * (1 - p) * np.outer(contrast, contrast)
            )
            left = np.trace(centring @ posterior @ centring)
            if left < least:
                best, least = (i, j), left
    assert most_informative_pairs(scores, covariance, 1) == [best]
    assert len(set(most_informative_pairs(scores, covariance, 99))) == 15


def test_pairs_are_proposed_among_the_most_uncertain_of_many_items(arena, monkeypatch):
    ranker, _ = arena
    every = leaderboard(ranker, n_next=99)
    assert len(every.ask_next) == 28
    monkeypatch.setattr(leaderboards, "_CANDIDATES", 3)
    some = leaderboard(ranker, n_next=99)
    np.testing.assert_array_equal(some.rank_low, every.rank_low)
    widest = set(every.items[np.argsort(every.low - every.high)[:3]].tolist())
    assert {item for pair in some.ask_next for item in pair} == widest
    assert len(some.ask_next) == 3


def test_features_of_items_stay_if_others_differ_between_rows():
    features = {"a": [1.0], "b": [2.0]}
    for first, varies in (["a", "a"], False), (["a", "b"], True):
        said = Annotations.from_comparisons(
            ["ann"] * 2, ["a", "b"], ["b", "a"], features=features, shown_first=first
        )
        np.testing.assert_array_equal(leaderboards.varying_features(said), [False, varies])


def test_leaderboards_are_tables(arena):
    ranker, _ = arena
    board = leaderboard(ranker, n_next=2)
    assert board.to_pandas()["rank"].tolist() == list(range(1, 9))
    assert board.comparisons.sum() == 6000
    assert len(board.ask_next) == 2
