import numpy as np
import pytest
from scipy.optimize import approx_fprime

import naive
from crowds import make_crowd
from likeminds import Statistics
from likeminds.losses.quadratic import LOSSES, least_squares, least_squares_raw, squared_auc

every_loss = pytest.mark.parametrize("name", LOSSES)


@every_loss
@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
@pytest.mark.parametrize("weights", [True, False])
def test_value_is_that_of_the_definition(name, form, weights):
    crowd = make_crowd(np.random.default_rng(7), shift=3.0, weights=weights)
    loss = LOSSES[name](Statistics.from_annotations(crowd, form), None)
    W = np.random.default_rng(1).standard_normal(loss.shape)
    expected = naive.total_loss(crowd, W, name)
    assert loss.value(W) == pytest.approx(expected, rel=1e-10)
    assert loss.value(W, loss.gradient(W)) == pytest.approx(expected, rel=1e-10)


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_gradient_is_the_derivative_of_the_value(crowd, name, form):
    loss = LOSSES[name](Statistics.from_annotations(crowd, form), None)
    W = np.random.default_rng(1).standard_normal(loss.shape)
    numerical = approx_fprime(W.ravel(), lambda w: loss.value(w.reshape(loss.shape)), 1e-7)
    np.testing.assert_allclose(loss.gradient(W).ravel(), numerical, rtol=1e-4, atol=2e-4)


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_scale_changes_the_unit_of_the_features(crowd, name, form):
    statistics = Statistics.from_annotations(crowd, form)
    scale = np.array([1.0, 2.0, 0.5, 3.0, 10.0])
    W = np.random.default_rng(1).standard_normal((crowd.n_people, 5))
    scaled, plain = LOSSES[name](statistics, scale), LOSSES[name](statistics, None)
    assert scaled.value(W * scale) == pytest.approx(plain.value(W))


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_total_matrix_is_the_sum(crowd, name, form):
    loss = LOSSES[name](Statistics.from_annotations(crowd, form), None)
    everybody_alike = np.ones((crowd.n_people, 1))
    columns = [loss.apply(everybody_alike * unit).sum(axis=0) for unit in np.eye(5)]
    np.testing.assert_allclose(loss.total_matrix(), columns, rtol=1e-10, atol=1e-10)


def test_one_class_people_have_no_pairs_and_no_loss(crowd):
    loss = squared_auc(Statistics.from_annotations(crowd))
    alone = np.flatnonzero(crowd.user_ids == "person-10")[0]
    W = np.ones(loss.shape)
    assert loss.constant[alone] == 0
    np.testing.assert_array_equal(loss.gradient(W)[alone], 0.0)


def test_one_class_people_have_nothing_to_explain_beside_an_intercept(crowd):
    loss = least_squares(Statistics.from_annotations(crowd))
    alone = np.flatnonzero(crowd.user_ids == "person-10")[0]
    assert loss.constant[alone] == 0
    np.testing.assert_allclose(loss.linear[alone], 0.0, atol=1e-12)


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_only_without_an_intercept_the_origin_matters(form):
    W = np.random.default_rng(1).standard_normal((12, 5))
    near, far = (
        Statistics.from_annotations(make_crowd(np.random.default_rng(7), shift=shift), form)
        for shift in (0.0, 5.0)
    )
    assert squared_auc(far).value(W) == pytest.approx(squared_auc(near).value(W))
    assert least_squares(far).value(W) == pytest.approx(least_squares(near).value(W))
    assert least_squares_raw(far).value(W) > 2 * least_squares_raw(near).value(W)
