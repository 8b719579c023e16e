"""What all want of learned factors becomes the items' own effect."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from crowds import make_votes
from learned_model import (
    LOW_RANK,
    EStepParams,
    GaussianPrior,
    WarmStarts,
    first_model,
    responses_with_items,
)
from likeminds import Annotations
from likeminds.mixed_model.fit_items import with_centred_factors
from likeminds.mixed_model.item_effects.em_steps import (
    ItemMarginalLikelihood,
    item_effect_moments,
)
from likeminds.mixed_model.likelihoods import LogisticLikelihood
from likeminds.mixed_model.optimisers import evaluate_model


def test_what_all_want_of_a_learned_feature_is_the_items_own():
    # As if a fit had put what all like into a learned feature that all weigh alike, none into b_j.
    rng = np.random.default_rng(0)
    n_users, n_items = 40, 30
    quality, weight = rng.normal(size=n_items), rng.normal(1.5, 0.3, size=n_users)
    user, item = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    labels = rng.random(len(user)) < expit(weight[user] * quality[item])
    said = Annotations(users=user, items=item, labels=labels)
    responses, coordinates = responses_with_items(
        said,
        1e-6,
        factors=quality[:, None],
        factor_covariance=np.full((n_items, 1, 1), 1e-3),
    )
    model = first_model(coordinates.size, coordinates.n_weights, LogisticLikelihood())
    model = replace(model, prior=model.prior.with_coordinate(0.0, 2.0))
    objective = ItemMarginalLikelihood(
        responses, coordinates.n_weights, model, model.prior.residual
    )
    at = evaluate_model(objective, model)

    moved, centred = with_centred_factors(objective, at)
    everybody = moved.responses.items.effects / quality  # what all weigh, in the items' effects
    assert everybody == pytest.approx(everybody[0])
    assert everybody[0] == pytest.approx((model.prior.root @ at.moments.first)[-1] / n_users)
    assert centred.prior.covariance[-1, -1] == pytest.approx(2.0**2 - everybody[0] ** 2)
    # Weights of the feature are centred now, and scores as good as they were.
    again = evaluate_model(moved, centred)
    left = (centred.prior.root @ again.moments.first)[-1] / n_users
    assert abs(left) < 0.1
    assert again.moments.loss < at.moments.loss + 0.01 * len(labels)
    assert with_centred_factors(moved, again) == (moved, centred)  # nothing more to move


@pytest.mark.parametrize("angle", [0.0, 0.8])
def test_what_all_want_is_the_items_own_whichever_way_factors_are_turned(angle):
    # Turned by 0.8, neither of the two weights is of one sign: what all want is spread over both.
    rng = np.random.default_rng(0)
    n_users, n_items = 40, 30
    factors = rng.normal(size=(n_items, 2))
    weights = rng.normal([1.5, 0.0], [0.3, 1.5], size=(n_users, 2))
    user, item = np.repeat(np.arange(n_users), n_items), np.tile(np.arange(n_items), n_users)
    labels = rng.random(len(user)) < expit((weights[user] * factors[item]).sum(axis=1))
    said = Annotations(users=user, items=item, labels=labels)
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    responses, coordinates = responses_with_items(
        said,
        1e-6,
        factors=factors @ turn.T,
        factor_covariance=np.repeat(1e-3 * np.eye(2)[None], n_items, axis=0),
    )
    model = first_model(coordinates.size, coordinates.n_weights, LogisticLikelihood())
    covariance = np.eye(3)
    covariance[1:, 1:] = turn @ np.diag([1.8**2, 1.5**2]) @ turn.T
    model = replace(model, prior=GaussianPrior.of_covariance(np.zeros(3), covariance))
    objective = ItemMarginalLikelihood(
        responses, coordinates.n_weights, model, model.prior.residual
    )
    at = evaluate_model(objective, model)

    moved, centred = with_centred_factors(objective, at)
    everybody = (model.prior.root @ at.moments.first) / n_users
    assert everybody[1:] @ turn[:, 0] == pytest.approx(1.5, abs=0.3)
    np.testing.assert_allclose(moved.responses.items.effects, factors @ turn.T @ everybody[1:])
    everybody[0] = 0.0
    left = covariance - np.outer(everybody, everybody)
    np.testing.assert_allclose(centred.prior.covariance, left, atol=1e-9)
    # A form with fewer numbers keeps its own, and the variances are those of what is left.
    fewer = replace(objective, structure=LOW_RANK)
    _, centred = with_centred_factors(fewer, at)
    np.testing.assert_allclose(centred.prior.covariance.diagonal(), left.diagonal())
    assert centred.prior.rank == model.prior.rank


def make_responses(said, n_factors=2, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(said.n_items, n_factors, n_factors))
    responses, coordinates = responses_with_items(
        said,
        0.25,
        effects=rng.normal(size=said.n_items),
        factors=rng.normal(size=(said.n_items, n_factors)),
        factor_covariance=root @ root.transpose(0, 2, 1) + 0.1 * np.eye(n_factors),
        share=0.4,
    )
    prior = first_model(coordinates.size, coordinates.n_weights, LogisticLikelihood()).prior
    for _ in range(n_factors):
        prior = prior.with_coordinate(0.0, 0.7)
    return responses, prior, coordinates


def test_sums_by_item_are_sums_over_labels():
    said, _ = make_votes(n_users=12, per_person=5)
    responses, prior, coordinates = make_responses(said)
    found = item_effect_moments(responses, EStepParams(prior, LogisticLikelihood()), WarmStarts())
    items, root, r = responses.items, prior.root, responses.items.n_factors
    known, bound = np.zeros(said.n_items), np.zeros((said.n_items, r, r))
    crossed = np.zeros((said.n_items, len(prior.mean)))
    slope = np.zeros((said.n_items, r))
    objective = 0.0
    for person in range(said.n_users):
        mine = said.user_codes == person
        item, y = said.item_codes[mine], said.labels[mine]
        rows = np.hstack([coordinates.rows(said.features)[item], items.factors[item]])
        held = np.zeros((len(prior.mean), len(prior.mean)))
        held[-r:, -r:] = items.share * 0.25 * items.factor_covariance[item].sum(axis=0)
        precision = np.linalg.inv(prior.covariance) + held
        w = prior.mean.copy()
        for _ in range(50):
            p = expit(rows @ w + items.effects[item])
            h = p * (1 - p)
            hessian = (rows * h[:, None]).T @ rows + precision
            gradient = rows.T @ (y - p) - np.linalg.inv(prior.covariance) @ (w - prior.mean)
            w = w + np.linalg.solve(hessian, gradient - held @ w)
        p = expit(rows @ w + items.effects[item])
        h = p * (1 - p)
        S = np.linalg.inv((rows * h[:, None]).T @ rows + precision)
        away = w - prior.mean
        eta = rows @ w + items.effects[item]
        objective += (np.logaddexp(0, eta) - y * eta).sum() + 0.5 * w @ held @ w
        objective += 0.5 * away @ np.linalg.inv(prior.covariance) @ away
        objective += 0.5 * np.linalg.slogdet(np.linalg.inv(S) @ prior.covariance)[1]
        second = S[-r:, -r:] + np.outer(w[-r:], w[-r:])
        for row, j in enumerate(item):
            known[j] += h[row] * (1 - h[row] * rows[row] @ S @ rows[row])
            crossed[j] += h[row] * np.linalg.solve(root, S @ rows[row])
            slope[j] += (y[row] - p[row]) * w[-r:] - h[row] * (S @ rows[row])[-r:]
            bound[j] += LogisticLikelihood.curvature_bound * second
    np.testing.assert_allclose(found.objective, objective, rtol=1e-9)
    np.testing.assert_allclose(found.sums.information, known, rtol=1e-6)
    np.testing.assert_allclose(found.sums.crossed, crossed, atol=1e-6)
    np.testing.assert_allclose(found.sums.by_factors, slope, atol=1e-6)
    np.testing.assert_allclose(found.sums.bound, bound, atol=1e-6)


def test_slope_by_an_effect_is_that_of_the_objective():
    said, _ = make_votes(n_users=15, per_person=6)
    responses, prior, _ = make_responses(said, n_factors=0)

    def visit(effects):
        moved = responses.with_items(replace(responses.items, effects=effects))
        return item_effect_moments(
            moved, EStepParams(prior, LogisticLikelihood(), 1e-12), WarmStarts()
        )

    step, b = 1e-4, responses.items.effects
    for item in range(5):
        there, back = b.copy(), b.copy()
        there[item] += step
        back[item] -= step
        naive = (visit(there).objective - visit(back).objective) / (2 * step)
        assert -visit(b).sums.gradient[item] == pytest.approx(naive, abs=1e-4)
