"""Priors in each of their forms."""

import numpy as np

from learned_model import make_prior
from likeminds.mixed_model.gaussian_prior import GaussianPrior


def test_priors_of_any_covariance_and_their_truncation():
    rng = np.random.default_rng(0)
    root = rng.normal(size=(5, 5))
    prior = GaussianPrior.of_covariance(np.zeros(5), root @ root.T)
    np.testing.assert_allclose(prior.covariance, root @ root.T)
    np.testing.assert_allclose(prior.truncated(4, 4).covariance[:4, :4], (root @ root.T)[:4, :4])
    low = make_prior(rng, 5, 2)
    low = GaussianPrior(low.mean, low.loadings, np.full(5, 0.5))
    np.testing.assert_allclose(low.truncated(2, 5).covariance, low.covariance, atol=1e-12)
    directions = low.directions(2, 5)
    np.testing.assert_allclose(directions.T @ directions, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(directions @ directions.T @ low.loadings, low.loadings, atol=1e-12)


def test_prior_is_consistent():
    prior = make_prior(np.random.default_rng(0), 5, 2)
    np.testing.assert_allclose(prior.root @ prior.inverse_root, np.eye(5), atol=1e-12)
    spelled = np.diag(prior.residual) @ (np.eye(5) + prior.loadings @ prior.loadings.T)
    np.testing.assert_allclose(prior.covariance, spelled @ np.diag(prior.residual), atol=1e-12)
    rows = np.random.default_rng(1).normal(size=(2, 3, 5))
    np.testing.assert_allclose(prior.whitened(rows), rows @ prior.root)
