"""Posteriors and the marginal likelihood, against their definitions."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.integrate import dblquad
from scipy.optimize import minimize

import naive
from crowds import make_crowd
from learned_model import all_modes, make_prior, responses_of
from likeminds import Annotations
from likeminds.mixed_model.laplace import EStepParams, WarmStarts, sum_moments
from likeminds.mixed_model.likelihoods import GaussianLikelihood, LogisticLikelihood


def logistic_cost(point, rows, labels, weights, prior):
    eta = rows @ point
    away = point - prior.mean
    loss = weights @ (np.logaddexp(0, eta) - labels * eta)
    return loss + 0.5 * away @ np.linalg.solve(prior.covariance, away)


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 9), rank=st.integers(0, 3))
@settings(max_examples=8)
@pytest.mark.seconds
def test_modes_and_covariances_are_those_of_the_definition(seed, n_features, rank):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    responses, coordinates = responses_of(crowd)
    prior = make_prior(rng, coordinates.size, rank)
    points = all_modes(responses, prior, LogisticLikelihood())
    spread = np.zeros((coordinates.size, coordinates.size))
    for i, (features, labels, weights) in enumerate(naive.by_user(crowd)):
        rows = coordinates.rows(features)
        best = minimize(logistic_cost, prior.mean, (rows, labels, weights, prior), "BFGS", tol=1e-9)
        np.testing.assert_allclose(points[i], best.x, atol=2e-4)
        chance = 1 / (1 + np.exp(-rows @ points[i]))
        curvature = (rows * (weights * chance * (1 - chance))[:, None]).T @ rows
        spread += np.linalg.inv(curvature + np.linalg.inv(prior.covariance))
    found = sum_moments(responses, EStepParams(prior, LogisticLikelihood()), WarmStarts())
    np.testing.assert_allclose(
        prior.root @ found.covariance @ prior.root.T, spread, rtol=1e-5, atol=1e-6
    )


@pytest.mark.seconds
def test_objective_is_near_the_integral_it_approximates():
    rng = np.random.default_rng(0)
    rows, labels = rng.normal(size=(12, 1)), rng.random(12) < 0.5
    crowd = Annotations(users=["ann"] * 12, items=None, labels=labels, features=rows)
    responses, coordinates = responses_of(crowd)
    prior = make_prior(rng, 2)
    found = sum_moments(responses, EStepParams(prior, LogisticLikelihood()), WarmStarts())
    seen, normal = coordinates.rows(rows), 2 * np.pi * np.sqrt(np.linalg.det(prior.covariance))
    integral, _ = dblquad(
        lambda y, x: np.exp(-logistic_cost(np.array([x, y]), seen, labels, np.ones(12), prior)),
        -9, 9, -9, 9, epsabs=1e-12, epsrel=1e-6,
    )  # fmt: skip
    assert found.objective == pytest.approx(-np.log(integral / normal), abs=0.05)


@given(seed=st.integers(0, 1000), n_features=st.integers(1, 8))
def test_objective_of_the_auc_loss_is_the_exact_marginal(seed, n_features):
    rng = np.random.default_rng(seed)
    crowd = make_crowd(rng, n_features)
    responses, coordinates = responses_of(crowd, "auc")
    prior, precision = make_prior(rng, n_features), 3.0
    found = sum_moments(responses, EStepParams(prior, GaussianLikelihood(precision)), WarmStarts())
    expected = 0.0
    for features, labels, weights in naive.by_user(crowd):
        if labels.all() or not labels.any():
            continue
        plus, minus = weights[labels].sum(), weights[~labels].sum()
        strength = plus * minus / (plus + minus)
        A, b, c = naive.auc_quadratic(coordinates.rows(features), labels, weights)
        tau = precision * strength
        H = tau * A + np.linalg.inv(prior.covariance)
        right = tau * b + np.linalg.solve(prior.covariance, prior.mean)
        mode = np.linalg.solve(H, right)
        away = mode - prior.mean
        expected += 0.5 * tau * (mode @ A @ mode - 2 * b @ mode + c)
        expected += 0.5 * away @ np.linalg.solve(prior.covariance, away)
        expected += 0.5 * np.linalg.slogdet(H @ prior.covariance)[1] - strength * np.log(precision)
    assert found.objective == pytest.approx(expected, rel=1e-8)
