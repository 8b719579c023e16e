"""Choice sets: of comparisons, rankings and labels, against their definitions."""

import numpy as np
import pytest
from scipy.special import logsumexp

from learned_model import Design, coordinates_of, responses_of
from likeminds import Annotations, HierarchicalRanker
from likeminds.data.coded_labels import are_choices
from likeminds.mixed_model.choice_responses import ChoiceBlocks
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.losses import are_mixed
from likeminds.rankers.training_data import TrainingData

FEATURES = dict(zip("abcd", np.random.default_rng(0).normal(size=(4, 3)), strict=True))
POINT = np.array([0.3, -1.1, 0.7, 0.4])  # the last is the intercept's


def cost(said, *, single=False, features=FEATURES):
    """Return everybody's minus log-likelihood at one point."""
    d = len(next(iter(features.values())))
    coordinates = Design(np.zeros(d), np.ones(d), None, intercept=single)
    responses = ChoiceBlocks.of_annotations(said, coordinates, single=single)
    found = np.zeros(said.n_users)
    for number in range(len(responses.plan)):
        data = responses.data(number)
        found[data.users] = ChoiceLikelihood().at(data.rows @ POINT[: coordinates.size], data).loss
    return found


def score(item):
    return float(FEATURES[item] @ POINT[:3])


def chosen_of(best, others, sign=1.0):
    scores = sign * np.array([score(item) for item in (best, *others)])
    return logsumexp(scores) - scores[0]


def test_pairs_are_bradley_terry():
    said = Annotations.from_comparisons(
        ["ann", "bob", "ann"], list("abc"), list("bca"), strength=[1.0, 2.0, 0.5], features=FEATURES
    )
    assert are_choices(said)
    expected = [chosen_of("a", "b") + 0.5 * chosen_of("c", "a"), 2.0 * chosen_of("b", "c")]
    np.testing.assert_allclose(cost(said), expected)


def test_ties_are_half_a_win_of_each():
    said = Annotations.from_comparisons(
        ["ann"] * 2,
        list("ab"),
        list("bc"),
        ties=[True, False],
        strength=[3.0, 1.0],
        features=FEATURES,
    )
    halves = 1.5 * chosen_of("a", "b") + 1.5 * chosen_of("b", "a")
    np.testing.assert_allclose(cost(said), [halves + chosen_of("b", "c")])


def test_rankings_are_plackett_luce():
    said = Annotations.from_rankings(
        ["ann", "bob"],
        [["d", "b", "a"], ["c", ["a", "b"]]],
        shown=[list("abcd")] * 2,
        features=FEATURES,
    )
    ann = chosen_of("d", "bac") + chosen_of("b", "ac") + chosen_of("a", "c")
    bob = chosen_of("c", "abd") + chosen_of("a", "d") + chosen_of("b", "d")
    np.testing.assert_allclose(cost(said), [ann, bob])


def test_best_and_worst_are_choices_of_the_score_and_of_the_reversed_score():
    said = Annotations.from_best_worst(["ann"], [list("abcd")], ["b"], ["c"], features=FEATURES)
    expected = chosen_of("b", "acd") + chosen_of("c", "ad", sign=-1.0)
    np.testing.assert_allclose(cost(said), [expected])
    assert are_choices(said)


def test_none_of_those_shown_is_one_more_item():
    said = Annotations.from_choices(
        ["ann", "bob"], [["a", "b"], ["b", "c"]], ["a", None], none="none", features=FEATURES
    )
    assert said.feature_names[-1] == "none"
    scores = np.array([score("a"), score("b"), POINT[3]])
    coordinates = Design(np.zeros(4), np.ones(4), None, intercept=False)
    data = ChoiceBlocks.of_annotations(said, coordinates).data(0)
    loss = ChoiceLikelihood().at(data.rows @ POINT, data).loss
    other = np.array([score("b"), score("c"), POINT[3]])
    expected = [logsumexp(scores) - scores[0], logsumexp(other) - other[2]]
    np.testing.assert_allclose(loss[np.argsort(data.users)], expected)


def test_labels_and_comparisons_are_one_likelihood():
    pairs = Annotations.from_comparisons(["ann", "bob"], ["a", "b"], ["b", "c"], features=FEATURES)
    votes = Annotations(
        ["ann", "ann", "cid"], ["a", "d", "b"], [1, 0, 1], FEATURES, weights=[1.0, 2.0, 3.0]
    )
    both = votes.concat(pairs)
    assert are_mixed(both)
    assert not are_choices(both)
    assert TrainingData.of(both).loss("auto").name == "mixed"

    def label(item, yes):
        return np.logaddexp(0.0, -(1 if yes else -1) * (score(item) + POINT[3]))

    ann = label("a", yes=True) + 2.0 * label("d", yes=False) + chosen_of("a", "b")
    expected = [ann, chosen_of("b", "c"), 3.0 * label("b", yes=True)]
    np.testing.assert_allclose(cost(both, single=True), expected)


def test_an_item_that_is_compared_often_is_kept_once():
    rng = np.random.default_rng(0)
    first = rng.integers(4, size=500)
    second = (first + rng.integers(1, 4, size=500)) % 4
    names = np.array(list("abcd"))
    said = Annotations.from_comparisons(
        rng.integers(9, size=500), names[first], names[second], features=FEATURES
    )
    assert said.features.shape == (4, 3)
    coordinates = coordinates_of(said, intercept=False)
    responses = ChoiceBlocks.of_annotations(said, coordinates)
    assert responses.items.shape == (4, 3)
    assert responses.rows.table.shape == (500, 2 + 2 + 1)


@pytest.mark.parametrize("kind", ["labels", "pairs", "both"])
def test_newcomers_may_label_compare_or_both(kind):
    rng = np.random.default_rng(1)
    names = np.array(list("abcd"))
    users = rng.integers(30, size=400)
    first = rng.integers(4, size=400)
    second = (first + rng.integers(1, 4, size=400)) % 4
    tastes = rng.normal(size=(30, 3))
    values = np.array([FEATURES[name] for name in names])
    apart = np.einsum("nd,nd->n", values[first] - values[second], tastes[users])
    swap = apart + rng.logistic(size=400) < 0
    first, second = np.where(swap, second, first), np.where(swap, first, second)
    said = Annotations.from_comparisons(users, names[first], names[second], features=FEATURES)
    ranker = HierarchicalRanker().fit(said)
    assert ranker.loss_ == "choice"
    pairs = Annotations.from_comparisons(["new"] * 3, list("aab"), list("cdc"), features=said)
    votes = Annotations(["new"] * 2, ["a", "c"], [True, False], FEATURES)
    new = {"labels": votes, "pairs": pairs, "both": pairs.concat(votes)}[kind]
    belief = ranker.newcomer(new)
    before = ranker.newcomer().decision_function(np.array([FEATURES["a"], FEATURES["c"]]))
    after = belief.decision_function(np.array([FEATURES["a"], FEATURES["c"]]))
    assert after[0] - after[1] > before[0] - before[1]


def test_features_that_take_much_memory_become_coordinates_block_by_block(monkeypatch):
    rng = np.random.default_rng(2)
    won, lost = rng.normal(size=(2, 60, 3))
    said = Annotations.from_comparisons(
        rng.integers(5, size=60), range(60), range(60, 120), features=(won, lost)
    )
    coordinates = coordinates_of(said, intercept=False)
    at_once = ChoiceBlocks.of_annotations(said, coordinates)
    monkeypatch.setattr("likeminds.mixed_model.responses._KEPT_BYTES", 0)
    by_block = ChoiceBlocks.of_annotations(said, coordinates)
    assert at_once.is_ready
    assert not by_block.is_ready
    np.testing.assert_allclose(by_block.data(0).rows, at_once.data(0).rows)


def test_choices_are_made_within_groups_or_by_the_person():
    X = np.random.default_rng(0).normal(size=(7, 2))
    labels = [True, False, False, False, True, True, False]
    crowd = Annotations(
        users=["ann"] * 7, items=None, labels=labels, features=X, choice_sets=[1, 1, 1, 2, 2, 2, 2]
    )
    assert not are_choices(crowd)
    assert are_choices(crowd[:3])
    responses, _ = responses_of(crowd, "choice")
    data = responses.data(0)
    # Once one of three, and twice one of three: each positive label for itself.
    assert data.weight.tolist() == [[1] * 9]
    assert np.exp(data.log_count).tolist() == [[1] * 9]
    assert data.response.reshape(-1, 3).tolist() == [[1, 0, 0]] * 3
    # A group of negatives only: single items, and all of them are compared.
    responses, _ = responses_of(crowd[[0, 1, 3, 6]], "choice")
    assert np.exp(responses.data(0).log_count).tolist() == [[1] * 4]
