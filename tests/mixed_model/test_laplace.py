"""Modes are the same wherever the search starts, and whoever else is in the block."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

import naive
from crowds import make_crowd
from learned_model import GaussianPrior, coordinates_of, make_prior, responses_of
from likeminds import load_electricity, make_schools
from likeminds.mixed_model import laplace
from likeminds.mixed_model.laplace import find_mode
from likeminds.mixed_model.likelihoods import ChoiceCurvature, ChoiceLikelihood, LogisticLikelihood
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.mixed_model.primal_dual import Dual, Primal

# Names of losses, labels of each person and features: more labels than features, and fewer.
CASES = [("logistic", 30, 6), ("logistic", 10, 40), ("choice", 0, 0)]


def block_of(name, n_labels, n_features):
    if name == "choice":
        said = load_electricity()
        said = said.of_users(said.user_ids[:90])
    else:
        said = make_schools(90, n_labels, 500, n_features, 2, random_state=0).annotations
    responses, coordinates = responses_of(said, name)
    return responses.data(0), coordinates.size


def prior_of(size, seed):
    rng = np.random.default_rng(seed)
    return GaussianPrior(
        rng.normal(size=size), rng.normal(size=(size, 2)), rng.uniform(0.3, 1.0, size)
    )


def likelihood_of(name):
    return ChoiceLikelihood() if name == "choice" else LogisticLikelihood()


@pytest.mark.parametrize("case", CASES)
def test_nobody_depends_on_who_still_moves(case, monkeypatch):
    """Those who have not arrived go on by themselves: the same steps, to the last digit."""
    data, size = block_of(*case)
    rules = [lambda moves: False, laplace._are_few, lambda moves: not moves.all()]
    found = []
    for rule in rules:
        monkeypatch.setattr(laplace, "_are_few", rule)
        found.append(find_mode(data, prior_of(size, 0), likelihood_of(case[0])))
    for other in found[1:]:
        np.testing.assert_array_equal(other.state, found[0].state)
        np.testing.assert_array_equal(other.derivatives.loss, found[0].derivatives.loss)


def test_nobody_depends_on_who_else_has_few_or_many_labels():
    """Steps of a large crowd are nearly solved for, in one of two ways: each has their own."""
    said = make_schools(90, 9, 500, 6, 2, random_state=0).annotations
    said = said[np.random.default_rng(0).random(len(said)) < 0.8]
    loss, prior = PRIOR_LOSSES["logistic"], prior_of(7, 0)
    coordinates = coordinates_of(said)

    def modes_of(some):
        responses = loss.responses(some, coordinates)
        for number in range(len(responses.plan)):
            data = responses.data(number)
            found = find_mode(data, prior, LogisticLikelihood(), tol=1e-3, approximate=True)
            names = some.user_ids[data.users].tolist()
            yield from zip(names, found.system.z(found.state), strict=True)

    together = dict(modes_of(said))
    assert len(together) == 90
    for some in (said.user_ids[:30], said.user_ids[30:]):
        for who, mode in modes_of(said.of_users(some)):
            np.testing.assert_allclose(mode, together[who], rtol=0, atol=1e-12)


def test_one_step_is_solved_for_exactly_where_it_is_all_there_is():
    data, size = block_of("auc", 10, 40)
    near, exact = (
        find_mode(data, prior_of(size, 0), PRIOR_LOSSES["auc"].likelihood, approximate=nearly)
        for nearly in (True, False)
    )
    np.testing.assert_array_equal(near.state, exact.state)


@pytest.mark.parametrize("case", CASES)
def test_modes_do_not_depend_on_where_the_search_starts(case):
    data, size = block_of(*case)
    before = find_mode(data, prior_of(size, 0), likelihood_of(case[0]))
    assert isinstance(before.system, Dual if case[1:] == (10, 40) else Primal)
    kept = before.warm_start
    assert kept is not None
    assert (kept.points is None) == isinstance(before.system, Dual)
    prior = prior_of(size, 1)
    found = find_mode(data, prior, likelihood_of(case[0]), kept)
    expected = find_mode(data, prior, likelihood_of(case[0]))
    np.testing.assert_allclose(
        found.derivatives.loss + found.penalty, expected.derivatives.loss + expected.penalty
    )
    np.testing.assert_allclose(
        found.system.z(found.state), expected.system.z(expected.state), atol=1e-4
    )


def test_points_of_the_same_prior_are_where_the_search_ends():
    data, size = block_of(*CASES[0])
    prior = prior_of(size, 0)
    before = find_mode(data, prior, LogisticLikelihood())
    np.testing.assert_allclose(
        laplace._start(data, prior, before.system, before.warm_start), before.state, atol=1e-9
    )


def test_choices_weigh_matrices_alike_in_either_order():
    rng = np.random.default_rng(0)
    chance = rng.dirichlet(np.ones(4), size=(3, 5)).reshape(3, 20)
    curvature = ChoiceCurvature(chance, rng.uniform(size=(3, 5)).repeat(4, axis=1), 4)
    rows = rng.normal(size=(3, 20, 6))
    turned = np.ascontiguousarray(rows.transpose(0, 2, 1)).transpose(0, 2, 1)
    np.testing.assert_allclose(
        curvature.times_root_back(turned), curvature.times_root_back(rows), atol=1e-14
    )


@pytest.mark.parametrize("case", CASES)
def test_what_the_search_leaves_is_what_modes_have(case):
    """Matrices that the search has made on its way are those at its end, whoever moved last."""
    data, size = block_of(*case)
    mode = find_mode(data, prior_of(size, 0), likelihood_of(case[0]), tol=1e-3)
    again = mode.system.posterior_covariance(mode.derivatives.curvature)
    np.testing.assert_allclose(mode.covariance.total, again.total, rtol=1e-9)
    objective = mode.derivatives.loss + mode.penalty + again.log_determinant
    np.testing.assert_allclose(mode.objective, objective, rtol=1e-9)


def test_scores_far_from_zero_do_not_overflow():
    data, _ = block_of("choice", 0, 0)
    eta = np.random.default_rng(0).normal(size=data.weight.shape)
    near, far = ChoiceLikelihood().at(eta, data), ChoiceLikelihood().at(eta + 2000.0, data)
    np.testing.assert_allclose(far.loss, near.loss, atol=1e-8)
    np.testing.assert_allclose(far.residuals, near.residuals, atol=1e-8)


@pytest.mark.parametrize("case", CASES)
def test_steps_that_are_nearly_solved_lead_to_the_same_modes(case):
    """Few products with everybody's matrix instead of its inverse: large crowds are in a hurry."""
    data, size = block_of(*case)
    prior, likelihood = prior_of(size, 0), likelihood_of(case[0])
    exact = find_mode(data, prior, likelihood)
    rows, offset = exact.system.rows, exact.system.offset
    system = Dual(rows, offset, rows @ rows.transpose(0, 2, 1), approximate=True)
    for gain, apart in ((laplace.EXACT, 1e-4), (1e-5, 5e-3)):
        start = laplace.PosteriorMode.at(np.zeros_like(data.weight), data, system, likelihood)
        found = laplace.newton(start, likelihood, gain)
        np.testing.assert_allclose(found.eta, exact.eta, atol=apart * np.abs(exact.eta).max())


def test_small_crowds_are_solved_exactly():
    data, size = block_of("logistic", 10, 40)
    prior = prior_of(size, 0)
    assert find_mode(data, prior, LogisticLikelihood()).system.approximate is False
    assert find_mode(data, prior, LogisticLikelihood(), approximate=True).system.approximate is True


def choice_cost(point, rows, labels, weights, prior):
    """Each positive label against itself and all negatives."""
    eta = rows @ point
    away = point - prior.mean
    loss = 0.5 * away @ np.linalg.solve(prior.covariance, away)
    for positive in np.flatnonzero(labels):
        among = np.exp(eta[positive]) + weights[~labels] @ np.exp(eta[~labels])
        loss += weights[positive] * (np.log(among) - eta[positive])
    return loss


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 9))
@settings(max_examples=12)
@pytest.mark.seconds
def test_modes_of_choices_are_those_of_the_definition(seed, n_features):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    responses, coordinates = responses_of(crowd, "choice")
    prior = make_prior(rng, coordinates.size)
    points = np.repeat(prior.mean[None], crowd.n_users, axis=0)
    for number in range(len(responses.plan)):
        mode = find_mode(responses.data(number), prior, ChoiceLikelihood())
        points[mode.data.users] += mode.system.z(mode.state) @ prior.root.T
        expected = [
            choice_cost(points[i], coordinates.rows(rows), labels, weights, prior)
            for i, (rows, labels, weights) in enumerate(naive.by_user(crowd))
            if i in mode.data.users
        ]
        assert (mode.derivatives.loss + mode.penalty).sum() == pytest.approx(sum(expected))
    for i, (features, labels, weights) in enumerate(naive.by_user(crowd)):
        told = (coordinates.rows(features), labels, weights, prior)
        # The cost is convex: from wherever one starts, the way leads to the one minimum.
        best = minimize(choice_cost, points[i], told, "BFGS", tol=1e-9)
        np.testing.assert_allclose(points[i], best.x, atol=2e-4)
