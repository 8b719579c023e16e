"""Likelihoods of grades, against their definitions; and rankers that learn from them."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit

from crowds import make_grades
from likeminds import Annotations, HierarchicalRanker, load, save
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.losses import GRADE_LOSSES
from likeminds.mixed_model.ordinal import CumulativeLogit, GradeCounts, GradeScale, StandardNormal
from likeminds.mixed_model.responses import PaddedRows

pytestmark = pytest.mark.seconds

SEVERAL = 30


@pytest.fixture
def graded():
    """Grades, from 0 to 4, of three people, and a block of them."""
    rng = np.random.default_rng(0)
    codes, users = rng.integers(0, 5, (3, 12)), np.repeat(np.arange(3), 12)
    data = PaddedRows(
        users=np.arange(3),
        rows=np.zeros((3, 12, 1)),
        response=codes.astype(float),
        weight=rng.random((3, 12)),
        comparisons=np.full(3, 12.0),
    )
    return codes, users, data


def likelihoods(codes, users):
    grades = codes.ravel().astype(float)
    first = CumulativeLogit.given(GradeCounts.of(grades, users))
    yield replace(first, use=np.array([0.5, 1.0, 2.0]), slope=1.0)
    yield StandardNormal.given(GradeCounts.of(grades, users))


def test_pull_and_curvature_are_derivatives(graded):
    codes, users, data = graded
    eta = np.random.default_rng(1).standard_normal(codes.shape)
    for likelihood in likelihoods(codes, users):

        def value(flat, likelihood=likelihood):
            return likelihood.at(flat.reshape(codes.shape), data).loss.sum()

        def slope(flat, likelihood=likelihood):
            return -likelihood.at(flat.reshape(codes.shape), data).residuals.ravel()

        said = likelihood.at(eta, data)
        np.testing.assert_allclose(
            -said.residuals.ravel(), approx_fprime(eta.ravel(), value), atol=1e-5
        )
        h = (slope(eta.ravel() + 1e-6) - slope(eta.ravel() - 1e-6)) / 2e-6
        np.testing.assert_allclose(said.curvature.root.ravel() ** 2, h, atol=1e-6)
        assert (said.curvature.root**2 <= likelihood.curvature_bound * data.weight + 1e-12).all()
        higher = likelihood.at(eta + 1e-5, data).curvature.root ** 2
        bend = (np.log(higher) - np.log(said.curvature.root**2)) / 1e-5
        variance = np.full(codes.shape, 2.0)
        np.testing.assert_allclose(said.curvature.grad_half_logdet(variance), bend, atol=1e-3)


def test_loss_is_minus_the_log_probability_of_the_definition(graded):
    codes, users, data = graded
    cumulative, normal = likelihoods(codes, users)
    eta = np.random.default_rng(1).standard_normal(codes.shape)
    padded = np.concatenate([[-np.inf], cumulative.cuts, [np.inf]])
    for i, s in enumerate(cumulative.use):
        chance = expit(s * padded[codes[i] + 1] - eta[i]) - expit(s * padded[codes[i]] - eta[i])
        expected = -data.weight[i] @ np.log(chance)
        assert cumulative.at(eta, data).loss[i] == pytest.approx(expected)
        own = (codes[i] - normal.centres[i]) / normal.spreads[i]
        expected = 0.5 * data.weight[i] @ (own - eta[i]) ** 2
        assert normal.at(eta, data).loss[i] == pytest.approx(expected)
    for likelihood in (cumulative, normal):
        each = likelihood.each(eta.ravel(), codes.ravel(), users).reshape(codes.shape)
        by_user = (data.weight * each).sum(axis=1)
        np.testing.assert_allclose(likelihood.at(eta, data).loss, by_user)


def test_with_two_grades_a_cumulative_logit_is_logistic(graded):
    codes, users, data = graded
    data = replace(data, response=(codes > 2).astype(float))
    two = CumulativeLogit.given(GradeCounts.of((codes > 2).ravel().astype(float), users))
    two = replace(two, cuts=np.zeros(1))
    eta = np.random.default_rng(1).standard_normal(codes.shape)
    ours, theirs = two.at(eta, data), LogisticLikelihood().at(eta, data)
    np.testing.assert_allclose(ours.loss, theirs.loss)
    np.testing.assert_allclose(ours.curvature.root, theirs.curvature.root)
    np.testing.assert_allclose(
        two.expected_information(eta[0]), LogisticLikelihood().expected_information(eta[0])
    )


def simulated(rng, n_users=40, n=60):
    """Scores, and grades from 1 to 6 with cuts that some people spread twice as far."""
    users = np.repeat(np.arange(n_users), n)
    eta = 2.0 * rng.standard_normal(len(users))
    cuts, use = np.array([-2.5, -1.0, 0.0, 1.5, 2.0]), np.where(np.arange(n_users) % 2, 2.0, 0.5)
    noisy = eta + rng.logistic(size=len(users))
    return users, eta, 1.0 + (noisy[:, None] > use[users, None] * cuts).sum(axis=1), cuts, use


def test_cuts_and_slope_are_recovered_from_scores():
    users, eta, grades, cuts, use = simulated(np.random.default_rng(0), n_users=200)
    first = replace(CumulativeLogit.given(GradeCounts.of(grades, users)), use=use)
    none = np.zeros(len(eta))
    found = first.refined(first.scale.codes(grades), use[users], eta / 3.0, none, free_slope=True)
    np.testing.assert_allclose(found.cuts, cuts, atol=0.15)
    assert found.slope == pytest.approx(3.0, abs=0.1)
    fixed = first.refined(first.scale.codes(grades), use[users], eta, none, free_slope=False)
    np.testing.assert_allclose(fixed.cuts, cuts, atol=0.15)
    assert fixed.slope == 1.0
    chances = fixed.chances(eta, none, use[users])
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    assert (chances @ fixed.scale.levels).mean() == pytest.approx(grades.mean(), abs=0.05)


def test_no_grade_is_impossible():
    users, _, grades, *_ = simulated(np.random.default_rng(0), n_users=20)
    model = CumulativeLogit.given(GradeCounts.of(grades, users))
    eta, one = np.array([-60.0, 60.0]), np.ones(2)
    chances = model.chances(eta, 0.0 * one, one)
    assert (chances > 0.0).all()
    np.testing.assert_allclose(chances.sum(axis=1), 1.0)
    mirrored = replace(model, cuts=-model.cuts[::-1]).chances(-eta, 0.0 * one, one)
    np.testing.assert_allclose(chances, mirrored[:, ::-1], rtol=1e-9)


def test_how_people_use_the_scale():
    users, _, grades, _, use = simulated(np.random.default_rng(1))
    scale = GradeScale.given(GradeCounts.of(grades, users))
    spreads = scale.spreads(GradeCounts.of(grades, users))
    assert spreads[use < 1].mean() > 1.2 * spreads[use > 1].mean()
    alike = GradeScale.given(
        GradeCounts.of(np.tile([1.0, 2.0, 3.0], 20), np.repeat(np.arange(20), 3))
    )
    assert alike.differ == 0.0
    two = GradeCounts.of(np.array([1.0, 3.0]), np.array([0, 0]))
    assert alike.spreads(two).tolist() == [alike.spread]


def test_very_many_grades_are_binned_by_rank():
    rng = np.random.default_rng(0)
    grades = np.round(np.exp(rng.normal(size=2000)), 6)
    scale = GradeScale.given(GradeCounts.of(grades, rng.integers(0, 50, 2000)))
    codes = scale.codes(grades)
    assert len(scale.levels) == 20
    assert set(np.bincount(codes)) <= {99, 100, 101}
    assert (np.diff(scale.levels) > 0).all()
    order = np.argsort(grades)
    assert (np.diff(codes[order]) >= 0).all()


@pytest.mark.parametrize("loss", [*GRADE_LOSSES, "logistic"])
def test_rankers_learn_from_grades_with_items_and_newcomers(loss, tmp_path):
    said = make_grades(np.random.default_rng(0))
    old, new = said[said.user_codes < SEVERAL - 2], said[said.user_codes >= SEVERAL - 2]
    ranker = HierarchicalRanker(loss=loss, n_item_factors=0, n_groups=0, unknown="consensus").fit(
        old
    )
    assert ranker.item_effects_
    assert ranker.score(old) > 0.75
    guess = ranker.newcomer(new).decision_function(new)
    assert guess.shape == (len(new),)
    predicted = ranker.predict_grades(old)
    assert predicted.grades.tolist() == [1, 2, 3, 4, 5, 6, 7]
    np.testing.assert_allclose(predicted.probabilities.sum(axis=1), 1.0)
    assert np.abs(predicted.expected - old.grades).mean() < 1.4
    assert np.corrcoef(predicted.expected, old.grades)[0, 1] > 0.7
    assert ranker.predict_grades(new).expected.std() > 0.1
    save(ranker, tmp_path / "model")
    again = load(tmp_path / "model").predict_grades(old)
    np.testing.assert_array_equal(again.expected, predicted.expected)


@pytest.mark.parametrize("loss", GRADE_LOSSES)
def test_newcomers_to_a_crowd_that_grades_may_say_yes_or_no(loss):
    said = make_grades(np.random.default_rng(0))
    ranker = HierarchicalRanker(loss=loss, n_item_factors=0, n_groups=0).fit(said)
    somebody = said.of_user(3)
    liked = somebody.grades > np.median(somebody.grades)
    plain = somebody._with(grades=None, reading=None, labels=liked)
    new = ranker.newcomer(plain)
    by_grade = ranker.newcomer(somebody).decision_function(somebody)
    assert np.corrcoef(new.decision_function(somebody), by_grade)[0, 1] > 0.8
    same = ranker.newcomer(somebody.X, somebody.grades), ranker.newcomer(somebody.X, liked)
    assert np.corrcoef(same[0].coef[0], same[1].coef[0])[0, 1] > 0.8


def test_new_items_are_known_by_their_grades():
    said = make_grades(np.random.default_rng(3), n_users=40)
    fresh = said.item_codes >= 28
    ranker = HierarchicalRanker(loss="gaussian", n_item_factors=0, n_groups=0)
    whole = ranker.fit(said).item_effect_
    wiser = ranker.fit(said[~fresh]).new_items(said[fresh])
    assert wiser.items_.tolist() == list(range(40))
    assert np.corrcoef(wiser.item_effect_[28:], whole[28:])[0, 1] > 0.7
    with pytest.raises(ValueError):
        ranker.new_items(Annotations([1, 2], [99, 99], [0, 1], {99: [0.0, 0, 0]}))


@pytest.mark.parametrize("loss", ["cumulative", "gaussian"])
def test_grades_go_with_covariates_and_without_items(loss):
    said = make_grades(np.random.default_rng(0), n_users=24)
    ages = {person: {"age": float(person % 5)} for person in range(24)}
    ranker = HierarchicalRanker(loss=loss, n_item_factors=0, n_groups=0)
    ranker.fit(said.with_user_features(ages))
    assert set(ranker.explained_by_users_) == {"age"}
    assert ranker.newcomer(users=["x"], user_features={"x": {"age": 2.0}}).coef.shape == (1, 3)
    ranker.set_params(item_effects=False).fit(said)
    assert not ranker.item_effects_
    assert ranker.score(said) > 0.7
    first, second = said.X[:5], said.X[5:10]
    chance = ranker.probability_preferred(first, second, said.users[:5])
    np.testing.assert_allclose(
        ranker.probability_preferred(second, first, said.users[:5]), 1 - chance
    )
    with pytest.raises(ValueError):
        ranker.log_likelihood(said)


def test_words_are_predicted_as_words_and_yes_or_no_has_no_grades():
    said = make_grades(np.random.default_rng(2))
    words = np.array(["bad", "poor", "fair", "good"])
    code = np.minimum((said.grades - 1) // 2, 3).astype(int)
    graded = Annotations(said.users, said.items, words[code], said.features, grades=words.tolist())
    ranker = HierarchicalRanker(loss="cumulative", n_item_factors=0, n_groups=0).fit(graded)
    assert ranker.predict_grades(graded).grades.tolist() == words.tolist()
    plain = Annotations(said.users, said.items, code > 1, said.features)
    ranker = HierarchicalRanker(n_item_factors=0, n_groups=0).fit(plain)
    with pytest.raises(ValueError):
        ranker.predict_grades(plain)
    with pytest.raises(ValueError):
        HierarchicalRanker(loss="cumulative").fit(plain)


def test_slopes_are_those_of_the_loss():
    rng = np.random.default_rng(0)
    users = np.repeat(np.arange(4), 30)
    grades = np.clip(np.round(3 + rng.normal(size=120)), 1, 5)
    grading = replace(CumulativeLogit.given(GradeCounts.of(grades, users)), slope=1.3)
    codes, eta, step = grading.scale.codes(grades), rng.normal(size=120), 1e-4
    at = [grading.each(eta + move, codes, users) for move in (-step, 0.0, step)]
    slope, curvature = grading.slopes(eta, codes, grading.use[users])
    assert np.allclose(slope, (at[0] - at[2]) / (2 * step), atol=1e-6)
    assert np.allclose(curvature, (at[0] - 2 * at[1] + at[2]) / step**2, atol=1e-5)


@pytest.mark.parametrize("loss", ["cumulative", "gaussian", "logistic"])
def test_newcomers_get_the_grades_that_they_would_give(loss):
    said = make_grades(np.random.default_rng(5), n_users=40)
    known, new = said[said.user_codes < 30], said[said.user_codes >= 30]
    ranker = HierarchicalRanker(loss=loss, n_groups=0, n_item_factors=0, unknown="consensus").fit(
        known
    )
    place = np.arange(len(new)) % 2 == 0
    told, rest = new[place], new[~place]
    found = ranker.newcomer(told).predict_grades(rest)
    assert np.allclose(found.probabilities.sum(axis=1), 1.0)
    strangers = ranker.predict_grades(rest)
    assert (
        np.abs(found.expected - rest.grades).mean()
        < np.abs(strangers.expected - rest.grades).mean()
    )
    nobody = ranker.newcomer(users=["somebody"]).predict_grades(rest, ["somebody"] * len(rest))
    assert np.allclose(nobody.expected, strangers.expected)
    person = known.user_ids[3]
    mine = known.of_user(person)
    about = ranker.user_posterior(person).predict_grades(mine)
    assert np.allclose(about.probabilities, ranker.predict_grades(mine).probabilities)


def test_grades_tell_more_of_a_new_item_than_which_are_above_the_cut():
    rng = np.random.default_rng(2)
    liked, fresh = rng.normal(size=40), 30
    users = np.repeat(np.arange(40), 40)
    items = np.tile(np.arange(40), 40)
    grades = np.clip(np.round(5 + 2 * liked[items] + rng.normal(size=1600)), 1, 9)
    said = Annotations(users, items, grades)
    ranker = HierarchicalRanker(loss="cumulative", n_item_factors=0)
    ranker.fit(said[items < fresh])
    late = said[(items >= fresh) & (users < 3)]
    apart = []
    for told in (late, late._with(grades=np.where(late.labels, 9.0, 1.0))):
        found = ranker.new_items(told)
        apart.append(np.corrcoef(found.item_effect_[fresh:], liked[fresh:])[0, 1])
    assert apart[0] > 0.8
    assert apart[0] > apart[1]
    assert (found.item_effect_error_[fresh:] > ranker.item_effect_error_.max()).all()


def test_shifts_are_found_from_far_away():
    grades = np.concatenate([np.tile([1.0, 2, 3, 4, 5], 20), np.repeat([1.0, 4, 5], [2, 40, 200])])
    users = np.concatenate([np.repeat(np.arange(10), 10), np.full(242, 10)])
    first = CumulativeLogit.given(GradeCounts.of(grades, users))
    codes, eta = first.scale.codes(grades), np.zeros(len(grades))
    near = first.with_shifts(codes, users, eta, variance=9.0)
    far = replace(first, shifts=np.full(11, 3.0)).with_shifts(codes, users, eta, variance=9.0)
    np.testing.assert_allclose(far.shifts, near.shifts, atol=1e-3)


def test_utilities_are_means_between_the_cuts():
    cuts, use, eta = np.array([-1.0, 0.5]), np.array([1.5]), np.array([0.8, 0.8, 0.8])
    scale = GradeScale(np.array([1.0, 2.0]), np.array([1.0, 2.0, 3.0]), 1.0, 0.0, 2.0)
    grading = CumulativeLogit(scale, cuts, use, slope=2.0)
    found = grading.utility(eta, np.array([0, 1, 2]), np.zeros(3, dtype=int))
    grid = np.linspace(-60, 60, 1_200_001)
    density = expit(grid - 1.6) * expit(1.6 - grid)
    grade = np.searchsorted(1.5 * cuts, grid)
    means = [np.average(grid[grade == k], weights=density[grade == k]) / 2.0 for k in range(3)]
    np.testing.assert_allclose(found, means, atol=1e-4)
    yes = LogisticLikelihood().utility(
        np.array([3.0, 3.0]), np.array([1, 0]), np.zeros(2, dtype=int)
    )
    assert yes[0] > 3.0
    assert yes[1] < 0.0
