import numpy as np
import pytest

from likeminds import Annotations, Statistics
from likeminds.losses import LOSSES
from likeminds.losses.common_weight import CommonWeightLoss


def crowd(seed=0):
    rng = np.random.default_rng(seed)
    return Annotations(
        users=rng.integers(5, size=60),
        items=None,
        labels=rng.random(60) < 0.4,
        features=rng.standard_normal((60, 4)) + 1.0,
        weights=rng.uniform(0.5, 2.0, 60),
    )


@pytest.fixture(params=["dense", "factored"])
def statistics(request):
    return Statistics.from_annotations(crowd(), request.param)


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_loss_given_the_last_weight_is_the_loss_of_all_features(statistics, name):
    scale = np.array([1.0, 2.0, 0.5, 3.0])
    whole = LOSSES[name].of(statistics, scale)
    rng, weight = np.random.default_rng(1), 0.7
    W = rng.standard_normal((5, 3))
    wide = np.column_stack([W, np.full(5, weight)])
    loss = CommonWeightLoss(whole).loss(weight)
    np.testing.assert_allclose(loss.value(W), whole.value(wide))
    np.testing.assert_allclose(loss.gradient(W), whole.gradient(wide)[:, :3], atol=1e-12)
    matrix = LOSSES[name].of(statistics.without_last(), scale[:3]).total_matrix()
    np.testing.assert_allclose(loss.total_matrix(), matrix)
    # A block makes the same targets as the sums that were kept.
    for people, Z, target in loss.factors:
        np.testing.assert_allclose(np.einsum("pnd,pn->pd", Z, target), loss.linear[people])


@pytest.mark.parametrize("name", sorted(LOSSES))
def test_the_weight_is_the_best_for_the_last_feature_alone(statistics, name):
    whole, alpha = LOSSES[name].of(statistics), 0.1
    best = CommonWeightLoss(whole).weight(alpha)

    def objective(weight):
        alone = np.column_stack([np.zeros((5, 3)), np.full(5, weight)])
        return whole.value(alone) + 5 * alpha * weight**2

    near = [objective(best + step) for step in (-1e-3, 0.0, 1e-3)]
    assert min(near) == near[1]


def test_a_column_of_zeros_gets_no_weight():
    said = crowd()
    features = said.features.copy()
    features[:, -1] = 0.0
    statistics = Statistics.from_annotations(said._with(features=features))
    assert CommonWeightLoss(LOSSES["auc"].of(statistics)).weight(0.0) == 0.0


def test_statistics_without_the_last_feature_are_those_of_the_others(statistics):
    said = crowd()
    fewer = said._with(features=said.features[:, :3], feature_names=said.feature_names[:3])
    expected = Statistics.from_annotations(fewer, statistics.form)
    found = statistics.without_last()
    np.testing.assert_allclose(found.feature_scale(), expected.feature_scale())
    np.testing.assert_allclose(found.dense.scatter, expected.dense.scatter, atol=1e-12)
    np.testing.assert_allclose(found.origin, expected.origin)
