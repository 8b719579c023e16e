"""Effects and factors of items: sums over people, against naive definitions."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import expit

from crowds import make_votes
from learned_model import EStepParams, WarmStarts, first_model, tasks_with_items
from likeminds.mixed_model.item_effects.e_step import item_effect_moments
from likeminds.mixed_model.item_effects.item_responses import CURVATURE_BOUND
from likeminds.mixed_model.likelihoods import LogisticLikelihood


def make_tasks(said, n_factors=2, seed=0):
    rng = np.random.default_rng(seed)
    root = rng.normal(size=(said.n_items, n_factors, n_factors))
    tasks, coordinates = tasks_with_items(
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
    return tasks, prior, coordinates


def test_sums_by_item_are_sums_over_labels():
    said, _ = make_votes(n_users=12, per_person=5)
    tasks, prior, coordinates = make_tasks(said)
    found = item_effect_moments(tasks, EStepParams(prior, LogisticLikelihood()), WarmStarts())
    items, root, r = tasks.items, prior.root, tasks.items.n_factors
    known, bound = np.zeros(said.n_items), np.zeros((said.n_items, r, r))
    crossed = np.zeros((said.n_items, len(prior.mean)))
    slope = np.zeros((said.n_items, r))
    objective = 0.0
    for person in range(said.n_users):
        mine = said.user_codes == person
        item, y = said.item_codes[mine], said.labels[mine]
        rows = np.hstack([coordinates.rows(said.features)[item], items.factors[item]])
        held = np.zeros((len(prior.mean), len(prior.mean)))
        held[-r:, -r:] = items.share * CURVATURE_BOUND * items.factor_covariance[item].sum(axis=0)
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
            bound[j] += CURVATURE_BOUND * second
    np.testing.assert_allclose(found.objective, objective, rtol=1e-9)
    np.testing.assert_allclose(found.sums.information, known, rtol=1e-6)
    np.testing.assert_allclose(found.sums.crossed, crossed, atol=1e-6)
    np.testing.assert_allclose(found.sums.by_factors, slope, atol=1e-6)
    np.testing.assert_allclose(found.sums.bound, bound, atol=1e-6)


def test_slope_by_an_effect_is_that_of_the_objective():
    said, _ = make_votes(n_users=15, per_person=6)
    tasks, prior, _ = make_tasks(said, n_factors=0)

    def visit(effects):
        moved = tasks.with_items(replace(tasks.items, effects=effects))
        return item_effect_moments(
            moved, EStepParams(prior, LogisticLikelihood(), 1e-12), WarmStarts()
        )

    step, b = 1e-4, tasks.items.effects
    for item in range(5):
        there, back = b.copy(), b.copy()
        there[item] += step
        back[item] -= step
        naive = (visit(there).objective - visit(back).objective) / (2 * step)
        assert -visit(b).sums.gradient[item] == pytest.approx(naive, abs=1e-4)
