import numpy as np
import pytest
from scipy.optimize import approx_fprime

import naive
from likeminds import Statistics
from likeminds.losses import squared_auc


@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
def test_value_is_half_the_mean_over_pairs(crowd, form):
    loss = squared_auc(Statistics.from_annotations(crowd, form))
    W = np.random.default_rng(1).standard_normal(loss.shape)
    expected = sum(
        naive.auc_loss(rows, labels, w, weights)
        for w, (rows, labels, weights) in zip(W, naive.by_person(crowd), strict=True)
    )
    assert loss.value(W) == pytest.approx(expected, rel=1e-12)
    assert loss.value(W, loss.gradient(W)) == pytest.approx(expected, rel=1e-12)


def test_gradient_is_the_derivative_of_the_value(crowd):
    loss = squared_auc(Statistics.from_annotations(crowd))
    W = np.random.default_rng(1).standard_normal(loss.shape)
    numerical = approx_fprime(W.ravel(), lambda w: loss.value(w.reshape(loss.shape)), 1e-7)
    np.testing.assert_allclose(loss.gradient(W).ravel(), numerical, atol=1e-4)


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_scale_changes_the_unit_of_the_features(crowd, form):
    statistics = Statistics.from_annotations(crowd, form)
    scale = np.array([1.0, 2.0, 0.5, 3.0, 10.0])
    W = np.random.default_rng(1).standard_normal((crowd.n_people, 5))
    assert squared_auc(statistics, scale).value(W * scale) == pytest.approx(
        squared_auc(statistics).value(W)
    )


def test_one_class_people_have_no_loss(crowd):
    loss = squared_auc(Statistics.from_annotations(crowd))
    alone = np.flatnonzero(crowd.user_ids == "person-10")[0]
    W = np.ones(loss.shape)
    assert loss.constant[alone] == 0
    np.testing.assert_array_equal(loss.gradient(W)[alone], 0.0)
