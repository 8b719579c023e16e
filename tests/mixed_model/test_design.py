"""Features as the prior sees them, wherever they lie and however small their spread."""

import tracemalloc

import numpy as np
import pytest

from learned_model import coordinates_of
from likeminds import Annotations, HierarchicalRanker, make_schools

CROWD = make_schools(20, 30, 30, 4, 2, contested=0.5, random_state=0).annotations


def moved(features):
    return Annotations(
        users=CROWD.users,
        items=CROWD.items,
        labels=CROWD.labels,
        features=features,
        item_ids=CROWD.item_ids,
        features_per="item",
    )


@pytest.mark.parametrize("standardize", [True, False])
def test_moments_are_those_of_the_labels(standardize):
    found = coordinates_of(CROWD, standardize=standardize, intercept=True)
    rows = CROWD.X
    np.testing.assert_allclose(found.origin, rows.mean(axis=0))
    scale = rows.std(axis=0) if standardize else np.ones(rows.shape[1])
    np.testing.assert_allclose(found.scale, scale)
    np.testing.assert_allclose(found.spread, np.cov((rows / scale).T, bias=True), atol=1e-12)


@pytest.mark.parametrize("loss", ["logistic", "auc"])
@pytest.mark.parametrize("shift", [3e6, 1e12])
@pytest.mark.slow
def test_a_large_mean_does_not_swallow_a_small_spread(loss, shift):
    features = np.round(CROWD.features * 1024) / 1024  # so that moving them loses nothing
    before = HierarchicalRanker(loss=loss).fit(moved(features))
    after = HierarchicalRanker(loss=loss).fit(moved(features + shift * np.eye(4)[0]))
    np.testing.assert_allclose(after.coef_, before.coef_, rtol=1e-3, atol=1e-3)


def test_a_tiny_spread_is_a_spread():
    before = HierarchicalRanker().fit(CROWD)
    after = HierarchicalRanker().fit(moved(CROWD.features * 2.0**-600))
    np.testing.assert_allclose(after.coef_ * 2.0**-600, before.coef_, rtol=1e-6)


def test_what_is_constant_but_for_rounding_has_no_weight():
    features = np.array(CROWD.features)
    features[:, 0] = 0.3
    features[::2, 0] = 0.1 + 0.2
    found = HierarchicalRanker().fit(moved(features))
    assert not found.coef_[:, 0].any()
    assert found.coef_[:, 1:].any()


@pytest.mark.parametrize("loss", ["logistic", "auc"])
def test_nothing_that_differs_is_said_in_a_sentence(loss):
    with pytest.raises(ValueError):
        HierarchicalRanker(loss=loss).fit(moved(np.full_like(CROWD.features, 2.0)))


def test_a_single_item_is_said_in_a_sentence():
    said = Annotations(users=[1, 1, 2], items=[0, 0, 0], labels=[1, 0, 1], features=[[1.0, 2.0]])
    with pytest.raises(ValueError):
        HierarchicalRanker().fit(said)


@pytest.mark.parametrize("standardize", [True, False])
def test_few_items_of_many_features_need_no_square_matrix(standardize):
    features = np.random.default_rng(0).normal(size=(len(CROWD.item_ids), 2000))
    tracemalloc.start()
    found = coordinates_of(moved(features), standardize=standardize, intercept=True)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 8 * 2000**2 / 2
    rows = moved(features).X
    scale = rows.std(axis=0) if standardize else np.ones(2000)
    np.testing.assert_allclose(found.scale, scale)
    centred = (rows - rows.mean(axis=0)) / scale
    np.testing.assert_allclose(found.basis.T @ found.basis, np.eye(found.n_weights), atol=1e-10)
    np.testing.assert_allclose(centred @ found.basis @ found.basis.T, centred, atol=1e-9)
    along = centred @ found.basis
    np.testing.assert_allclose(found.spread, along.T @ along / len(along), atol=1e-9)


def test_idle_directions_are_left_out():
    rng = np.random.default_rng(0)
    base = rng.normal(size=(60, 3))
    features = np.hstack([base, base[:, :1] - base[:, 1:2], np.full((60, 1), 7.0)])
    labels = base[:, 0] + base[:, 1] > 0
    crowd = Annotations(
        users=np.repeat(np.arange(6), 10), items=None, labels=labels, features=features
    )
    coordinates = coordinates_of(crowd, standardize=True, intercept=True)
    assert (coordinates.n_weights, coordinates.size) == (3, 4)
    point = rng.normal(size=4)
    np.testing.assert_allclose(
        coordinates.rows(features)[:, :3] @ point[:3],
        (features - coordinates.origin) @ coordinates.weights(point),
        atol=1e-10,
    )
    ranker = HierarchicalRanker(n_groups=0).fit(crowd)
    assert ranker.score(crowd) > 0.95
    assert ranker.standard_error(features, crowd.users).max() < 100
