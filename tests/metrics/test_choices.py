"""Accuracy and log loss of choices, against their definitions."""

import numpy as np
import pytest
from scipy.special import logsumexp

from likeminds import Annotations, load_electricity
from likeminds.metrics import score_choices


def test_choices_are_judged_set_by_set():
    homes = load_electricity()[:2000]
    scores = np.random.default_rng(0).normal(size=len(homes)).round(1)  # with ties
    found = score_choices(homes, scores)
    right, loss = {}, {}
    for group in np.unique(homes.choice_set_codes):
        rows = homes.choice_set_codes == group
        mine, chosen = scores[rows], scores[rows][homes.labels[rows]][0]
        person = homes.users[rows][0]
        tied = (mine == mine.max()).sum()
        right.setdefault(person, []).append((chosen == mine.max()) / tied)
        loss.setdefault(person, []).append(logsumexp(mine) - chosen)
    expected = [np.mean(right[person]) for person in found.accuracy.users]
    np.testing.assert_allclose(found.accuracy.values, expected)
    expected = [np.mean(loss[person]) for person in found.log_loss.users]
    np.testing.assert_allclose(found.log_loss.values, expected)


def test_probabilities_may_be_given():
    said = Annotations.from_comparisons(["ann"] * 2, ["a", "b"], ["b", "c"], strength=[3.0, 1.0])
    found = score_choices(said, [2.0, 0.5, 0.0, 1.0], chances=[0.6, 0.4, 0.2, 0.8])
    np.testing.assert_allclose(found.log_loss.values, [-0.75 * np.log(0.6) - 0.25 * np.log(0.2)])
    assert found.accuracy.values == [0.75]


def test_ties_are_half_right_and_the_worst_has_the_lowest_score():
    tied = Annotations.from_comparisons(["ann"], ["a"], ["b"], ties=[True])
    assert score_choices(tied, [3.0, 1.0, 1.0, 3.0]).accuracy.values == [0.5]
    said = Annotations.from_best_worst(["ann"], [list("abc")], ["a"], ["b"])
    points = {"a": 2.0, "b": -1.0, "c": 0.0}
    found = score_choices(said, [points[item] for item in said.items])
    assert found.accuracy.values == [1.0]
    best, worst = logsumexp([2.0, -1.0, 0.0]) - 2.0, logsumexp([1.0, 0.0]) - 1.0
    np.testing.assert_allclose(found.log_loss.values, [(best + worst) / 2])


def test_what_is_no_choice_is_refused():
    said = Annotations(["ann"] * 3, list("abc"), [1, 1, 0], choice_sets=[1, 1, 1])
    with pytest.raises(ValueError):
        score_choices(said, [1.0, 2.0, 3.0])
    with pytest.raises(ValueError):
        score_choices(said._with(choice_set_codes=None), [1.0, 2.0, 3.0])
