"""Item effects and factors in choices: gradients, recovery, new users and new items."""

from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest
from scipy.special import expit

from learned_model import (
    EStepParams,
    ItemPosteriors,
    WarmStarts,
    coordinates_of,
    first_model,
)
from likeminds import Annotations, HierarchicalRanker, load, save
from likeminds.mixed_model.item_effects.em_steps import item_effect_moments
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.likelihoods import ChoiceLikelihood
from likeminds.mixed_model.losses import PRIOR_LOSSES, discount_labels
from likeminds.mixed_model.new_posteriors import without_choices

N_ITEMS, N_USERS = 8, 12


def make_pairs(n_users, n_items, each, *, factor=0.0, seed=0):
    """Return comparisons without features, the effects of items, and their factor."""
    rng = np.random.default_rng(seed)
    b, f = rng.normal(size=n_items), rng.normal(size=n_items)
    v = factor * rng.normal(size=n_users)
    user = np.repeat(np.arange(n_users), each)
    one = rng.integers(n_items, size=len(user))
    other = (one + rng.integers(1, n_items, size=len(user))) % n_items
    score = b + np.outer(v, f)
    wins = rng.random(len(user)) < expit(score[user, one] - score[user, other])
    winner, loser = np.where(wins, one, other), np.where(wins, other, one)
    return Annotations.from_comparisons(user, winner, loser), b, f


def answers(kind, seed=3):
    """Return small annotations of one kind of answer, with two features per item."""
    rng = np.random.default_rng(seed)
    features = dict(enumerate(rng.normal(size=(N_ITEMS, 2))))
    users = np.repeat(np.arange(N_USERS), 4)
    shown = [rng.choice(N_ITEMS, 4, replace=False).tolist() for _ in users]
    if kind == "best and worst":
        best, worst = [one[0] for one in shown], [one[1] for one in shown]
        return Annotations.from_best_worst(users, shown, best, worst, features=features)
    if kind == "sets of four":
        return Annotations.from_choices(users, shown, [one[2] for one in shown], features=features)
    first, second = [one[0] for one in shown], [one[1] for one in shown]
    pairs = Annotations.from_comparisons(users, first, second, features=features)
    if kind == "pairs":
        return pairs
    labels = rng.random(len(users)) < 0.5
    alone = Annotations(
        users, first, labels, features, choice_sets=[f"alone {k}" for k in range(len(users))]
    )
    return alone.without_choice_set_names().concat(pairs)


@pytest.mark.parametrize("kind", ["pairs", "sets of four", "best and worst", "mixed"])
def test_slope_by_an_effect_is_that_of_the_objective(kind):
    said = answers(kind)
    loss = PRIOR_LOSSES["mixed" if kind == "mixed" else "choice"]
    coordinates = coordinates_of(said, intercept=loss.has_intercept)
    rng = np.random.default_rng(1)
    items = replace(
        ItemPosteriors.unknown(said.item_ids, 0.5), effects=rng.normal(size=said.n_items)
    )
    responses = ItemEffects.of(loss.responses(said, coordinates, items=True), items)
    prior = first_model(coordinates.size, coordinates.n_weights, ChoiceLikelihood()).prior

    def visit(effects):
        moved = responses.with_items(replace(items, effects=effects))
        return item_effect_moments(
            moved, EStepParams(prior, ChoiceLikelihood(), 1e-12), WarmStarts()
        )

    step, found = 1e-4, visit(items.effects).sums.gradient
    for item in range(4):
        there, back = items.effects.copy(), items.effects.copy()
        there[item] += step
        back[item] -= step
        naive = (visit(there).objective - visit(back).objective) / (2 * step)
        assert -found[item] == pytest.approx(naive, abs=1e-4)


def correlation(ranker, values, found):
    return np.corrcoef(values[ranker.items_.astype(int)], found)[0, 1]


def test_effects_and_factors_of_compared_items_are_recovered():
    said, b, f = make_pairs(150, 20, 30, factor=1.5)
    ranker = HierarchicalRanker(n_item_factors=1).fit(said)
    assert ranker.loss_ == "choice"
    assert correlation(ranker, b, ranker.item_effect_) > 0.95
    assert abs(correlation(ranker, f, ranker.item_factors_[:, 0])) > 0.9


@pytest.fixture(scope="module")
def compared():
    said, b, _ = make_pairs(60, 12, 20, factor=1.5)
    return HierarchicalRanker(n_item_factors=1).fit(said), said, b


def test_new_users_compare(compared):
    ranker, _, _ = compared
    order = np.argsort(ranker.item_factors_[:, 0])
    low, high = ranker.items_[order[:3]], ranker.items_[order[-3:]]
    zoe = Annotations.from_comparisons(["zoe"] * 3, high, low)
    belief, consensus = ranker.newcomer(zoe), ranker.consensus_scores(zoe)
    scores = belief.decision_function(zoe)
    gain = np.where(zoe.labels, 1.0, -1.0) @ (scores - consensus)
    assert gain > 0.1
    assert (belief.standard_error(zoe) > 0).all()


def test_saved_models_score_as_before(compared, tmp_path):
    ranker, said, _ = compared
    save(ranker, tmp_path / "m.likeminds")
    loaded = load(tmp_path / "m.likeminds")
    np.testing.assert_allclose(loaded.decision_function(said), ranker.decision_function(said))


def test_update_takes_new_users_and_items():
    said, _, _ = make_pairs(20, 6, 10)
    ranker = HierarchicalRanker(n_item_factors=0).fit(said)
    ranker.update(Annotations.from_comparisons(["new"] * 2, [0, 99], [1, 1]))
    assert 99 in ranker.items_.tolist()
    whole = said.concat(Annotations.from_comparisons(["new"] * 2, [0, 99], [1, 1]))
    expected = HierarchicalRanker(n_item_factors=0).fit(whole)
    np.testing.assert_allclose(ranker.item_effect_, expected.item_effect_, atol=1e-6)


def test_new_items_join_by_comparisons_with_known_ones():
    said, _, _ = make_pairs(80, 12, 25)
    fresh = 0
    sets = said.choice_set_codes
    late = np.isin(sets, sets[said.items == fresh])
    ranker = HierarchicalRanker(n_item_factors=0).fit(said[~late])
    wiser = ranker.new_items(said[late])
    place = wiser.items_.tolist().index(fresh)
    among_all = HierarchicalRanker(n_item_factors=0).fit(said)
    expected = among_all.item_effect_[among_all.items_.tolist().index(fresh)]
    assert wiser.item_effect_[place] == pytest.approx(expected, abs=0.2)
    assert 0 < wiser.item_effect_error_[place] < 0.5
    np.testing.assert_array_equal(wiser.item_effect_[:-1], ranker.item_effect_)
    with pytest.raises(ValueError):
        ranker.new_items(said[~late])


def test_uncertain_items_lower_the_weight_of_new_users_choices():
    said = Annotations.from_choices(["zoe"] * 2, [[0, 1, 2], [3, 4]], [0, 3])
    doubt = np.array([0.1, 0.2, 0.6, 0.5, 0.3])
    items = replace(ItemPosteriors.unknown(np.arange(5)), effect_variance=doubt)
    found = discount_labels(said, items, 0.25)
    for shown in (doubt[:3], doubt[3:]):
        variance = np.mean([one + other for one, other in combinations(shown, 2)])
        mine = np.isin(doubt[found.items], shown)
        np.testing.assert_allclose(found.weights[mine], 1 / (1 + 0.25 * variance))


@pytest.mark.seconds
@pytest.mark.parametrize("n_factors", [0, 1])
def test_items_without_some_choices_are_nearly_those_of_a_fit_without_them(n_factors):
    said, _, _ = make_pairs(60, 10, 30, factor=n_factors)
    out = np.isin(said.choice_set_codes, np.arange(0, said.choice_set_codes.max() + 1, 5))
    whole, part = (
        HierarchicalRanker(n_item_factors=n_factors).fit(one) for one in (said, said[~out])
    )
    posterior = whole.newcomer(said[~out])
    found = without_choices(posterior, said[out], said[out].user_codes)
    np.testing.assert_array_equal(found.ids, part.items_)
    far, near = (np.abs(one - part.item_effect_) for one in (whole.item_effect_, found.effects))
    assert near.mean() < 0.7 * far.mean()
    np.testing.assert_allclose(np.sqrt(found.effect_variance), part.item_effect_error_, rtol=0.1)
    # Without far too many choices, items have their prior at most.
    rows = np.tile(np.arange(len(said)), 5)
    nothing = without_choices(posterior, said.take(rows), said.user_codes[rows]).effect_variance
    prior = whole.prior_.items.variance
    assert (nothing > 0.8 * prior).all()
    assert (nothing <= prior * (1 + 1e-9)).all()


def test_two_new_items_in_one_set_are_told_apart():
    said, _, _ = make_pairs(40, 8, 15)
    ranker = HierarchicalRanker(n_item_factors=0).fit(said)
    users = said.user_ids[:30].tolist()
    wiser = ranker.new_items(Annotations.from_comparisons(users, ["good"] * 30, ["bad"] * 30))
    good, bad = (wiser.item_effect_[wiser.items_.tolist().index(name)] for name in ("good", "bad"))
    assert good == pytest.approx(-bad, abs=1e-6)
    assert good > 0.5


@pytest.mark.seconds
def test_many_items_need_no_features():
    said, b, _ = make_pairs(100, 1500, 150)
    ranker = HierarchicalRanker(n_item_factors=0).fit(said)
    assert ranker.coef_.shape == (100, 0)
    assert correlation(ranker, b, ranker.item_effect_) > 0.8
