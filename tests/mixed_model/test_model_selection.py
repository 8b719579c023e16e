"""The form of Omega is the one that foretells the labels of people it was not learned from."""

import numpy as np
import pytest
from scipy.special import expit

from likeminds import Annotations, HierarchicalRanker


def simulated(omega, seed, n_users=240, n_labels=30):
    rng = np.random.default_rng(seed)
    size = len(omega)
    weights = rng.multivariate_normal(np.full(size, 0.3), omega, size=n_users)
    users = np.repeat(np.arange(n_users), n_labels)
    features = rng.normal(size=(len(users), size))
    odds = np.einsum("nd,nd->n", features, weights[users])
    return Annotations(users, None, rng.random(len(users)) < expit(odds), features)


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.slow)])
@pytest.mark.seconds
def test_the_form_is_that_of_the_crowd(seed):
    rng = np.random.default_rng(10 + seed)
    one = rng.normal(size=10)
    few = HierarchicalRanker().fit(simulated(np.outer(one, one) / 4 + 0.01 * np.eye(10), seed))
    assert few.covariance_ == "low_rank"
    assert few.n_groups_ == 1
    axes = np.linalg.qr(rng.normal(size=(7, 7)))[0]
    omega = (axes * np.geomspace(5.0, 0.2, 7)) @ axes.T
    whole = HierarchicalRanker().fit(simulated(omega, seed, n_labels=40))
    assert whole.covariance_ == "full"


def test_weights_that_differ_in_variance_alone_are_no_directions():
    omega = np.diag([4.0, 2.0, 1.0, 0.5, 0.2, 0.05])
    said = simulated(omega, 3)
    whole = HierarchicalRanker().fit(said)
    assert whole.covariance_ == "full"
    correlation = whole.prior_.prior.covariance[:6, :6]
    deviations = np.sqrt(correlation.diagonal())
    correlation = correlation / np.outer(deviations, deviations)
    asked = HierarchicalRanker(covariance="diagonal").fit(said)
    np.testing.assert_allclose(
        deviations, np.sqrt(asked.prior_.prior.covariance.diagonal()[:6]), atol=0.25
    )
    assert np.abs(correlation - np.eye(6)).max() < 0.5


def test_few_people_or_labels_keep_omega_small():
    root = np.random.default_rng(0).normal(size=(6, 6))
    omega = root @ root.T
    assert HierarchicalRanker().fit(simulated(omega, 0, n_users=20)).covariance_ == "low_rank"
    few = simulated(omega, 0, n_users=40, n_labels=6)
    assert HierarchicalRanker().fit(few).covariance_ == "low_rank"


@pytest.mark.seconds
def test_weak_factors_beside_a_strong_one_do_not_vanish():
    rng = np.random.default_rng(0)
    strength = np.array([1.0] + [0.4] * 6)
    factors = rng.normal(size=(len(strength), 150))
    odds = rng.normal(size=150) + rng.normal(size=(150, len(strength))) * strength @ factors
    users, items = np.nonzero(rng.random(odds.shape) < 0.6)
    labels = rng.random(len(users)) < expit(odds[users, items])
    ranker = HierarchicalRanker().fit(Annotations(users, items, labels))
    assert ranker.n_item_factors_ >= len(strength)
