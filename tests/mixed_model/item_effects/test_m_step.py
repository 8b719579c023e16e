"""What all want of learned factors becomes the items' own effect."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from learned_model import LOW_RANK, GaussianPrior, first_model, tasks_with_items
from likeminds import Annotations
from likeminds.mixed_model.item_effects.e_step import ItemMarginalLikelihood
from likeminds.mixed_model.item_effects.m_step import with_centred_factors
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
    tasks, coordinates = tasks_with_items(
        said,
        1e-6,
        factors=quality[:, None],
        factor_covariance=np.full((n_items, 1, 1), 1e-3),
    )
    model = first_model(coordinates.size, coordinates.n_weights, LogisticLikelihood())
    model = replace(model, prior=model.prior.with_coordinate(0.0, 2.0))
    objective = ItemMarginalLikelihood(tasks, coordinates.n_weights, model, model.prior.residual)
    at = evaluate_model(objective, model)

    moved, centred = with_centred_factors(objective, at)
    everybody = moved.tasks.items.effects / quality  # what all weigh, in the items' effects
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
    tasks, coordinates = tasks_with_items(
        said,
        1e-6,
        factors=factors @ turn.T,
        factor_covariance=np.repeat(1e-3 * np.eye(2)[None], n_items, axis=0),
    )
    model = first_model(coordinates.size, coordinates.n_weights, LogisticLikelihood())
    covariance = np.eye(3)
    covariance[1:, 1:] = turn @ np.diag([1.8**2, 1.5**2]) @ turn.T
    model = replace(model, prior=GaussianPrior.of_covariance(np.zeros(3), covariance))
    objective = ItemMarginalLikelihood(tasks, coordinates.n_weights, model, model.prior.residual)
    at = evaluate_model(objective, model)

    moved, centred = with_centred_factors(objective, at)
    everybody = (model.prior.root @ at.moments.first) / n_users
    assert everybody[1:] @ turn[:, 0] == pytest.approx(1.5, abs=0.3)
    np.testing.assert_allclose(moved.tasks.items.effects, factors @ turn.T @ everybody[1:])
    everybody[0] = 0.0
    left = covariance - np.outer(everybody, everybody)
    np.testing.assert_allclose(centred.prior.covariance, left, atol=1e-9)
    # A form with fewer numbers keeps its own, and the variances are those of what is left.
    fewer = replace(objective, structure=LOW_RANK)
    _, centred = with_centred_factors(fewer, at)
    np.testing.assert_allclose(centred.prior.covariance.diagonal(), left.diagonal())
    assert centred.prior.rank == model.prior.rank
