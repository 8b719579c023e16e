import numpy as np
import pytest
from scipy.optimize import minimize

import naive
from likeminds import Statistics
from likeminds.baselines import ConsensusOnly, OnePerUser, RidgeToConsensus
from likeminds.losses import LOSSES
from likeminds.losses.quadratic import spectra

pytestmark = [
    pytest.mark.filterwarnings("ignore:.*one class only:UserWarning"),
    pytest.mark.seconds,
]


every_loss = pytest.mark.parametrize("loss", ["auc", "least_squares", "least_squares_raw"])


@every_loss
def test_consensus_only_minimises_the_pooled_loss(crowd, loss):
    ranker = ConsensusOnly(0.2, loss=loss, standardize=False).fit(crowd)

    def cost(theta):
        return naive.total_loss(crowd, np.tile(theta, (12, 1)), loss) + 12 * 0.2 * theta @ theta

    found = minimize(cost, np.zeros(5), tol=1e-10)
    np.testing.assert_allclose(ranker.consensus_, found.x, atol=1e-5)
    np.testing.assert_array_equal(ranker.coef_, np.tile(ranker.consensus_, (12, 1)))


def test_one_per_person_minimises_each_loss(crowd):
    ranker = OnePerUser(0.3, standardize=False).fit(crowd)
    for w, (rows, labels, weights) in zip(ranker.coef_, naive.by_user(crowd), strict=True):
        if not labels.all():
            A, b, _ = naive.auc_quadratic(rows, labels, weights)
            np.testing.assert_allclose(w, np.linalg.solve(A + 0.6 * np.eye(5), b), atol=1e-10)


@every_loss
@pytest.mark.seconds
def test_ridge_to_consensus_minimises_both_levels(crowd, loss):
    ranker = RidgeToConsensus(0.3, 0.1, loss=loss, standardize=False).fit(crowd)

    def cost(flat):
        theta, V = flat[:5], flat[5:].reshape(12, 5)
        value = naive.total_loss(crowd, theta + V, loss)
        return value + 0.3 * np.sum(V**2) + 12 * 0.1 * theta @ theta

    ours = np.concatenate([ranker.raw_consensus_, ranker.raw_group_.ravel()])
    found = minimize(cost, ours, tol=1e-9)
    assert cost(ours) <= found.fun + 1e-9


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored", "auto"])
def test_spectra_hold_everybodys_curvature(crowd, form, loss):
    loss = LOSSES[loss].of(Statistics.from_annotations(crowd, form), None)
    W = np.random.default_rng(0).standard_normal(loss.shape)
    applied, linear, total = np.zeros(loss.shape), np.zeros(loss.shape), np.zeros((5, 5))
    seen = []
    for part in spectra(loss):
        seen.extend(part.users)
        applied[part.users] = part.back(part.curvature * part.into(W[part.users]))
        linear[part.users] = part.back(part.slope)
        total += part.weighted_sum(part.curvature)
    assert sorted(seen) == list(range(12))
    np.testing.assert_allclose(applied, loss.apply(W), atol=1e-10)
    np.testing.assert_allclose(linear, loss.linear, atol=1e-10)
    np.testing.assert_allclose(total, loss.total_matrix(), atol=1e-10)
