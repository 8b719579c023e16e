"""Every loss that a prior can be learned from goes through these."""

import numpy as np
import pytest
from scipy.optimize import approx_fprime

import naive
from crowds import make_crowd
from learned_model import coordinates_of, responses_of
from likeminds import HierarchicalRanker
from likeminds.mixed_model.losses import PRIOR_LOSSES, PriorLoss

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
every_loss = pytest.mark.parametrize("loss", PRIOR_LOSSES.values(), ids=PRIOR_LOSSES)


def blocks(crowd, loss):
    responses, _ = responses_of(crowd, loss.name)
    return [responses.data(number) for number in range(len(responses.plan))]


@every_loss
def test_value_is_that_of_the_definition(crowd, loss):
    coordinates = coordinates_of(crowd, intercept=loss.has_intercept)
    w = np.random.default_rng(1).standard_normal(coordinates.size)
    found = np.zeros(crowd.n_users)
    for data in blocks(crowd, loss):
        found[data.users] = loss.likelihood.at(data.rows @ w, data).loss
    cost = naive.PRIOR_LOSSES[loss.name]
    expected = [
        cost(coordinates.rows(features), labels, w, weights)
        for features, labels, weights in naive.by_user(crowd)
    ]
    np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@every_loss
def test_pull_and_curvature_are_derivatives(crowd, loss):
    data = blocks(crowd, loss)[0]
    shape = data.weight.shape
    eta = np.random.default_rng(1).standard_normal(shape)

    def value(flat):
        return loss.likelihood.at(flat.reshape(shape), data).loss.sum()

    def slope(flat):
        return -loss.likelihood.at(flat.reshape(shape), data).residuals.ravel()

    said = loss.likelihood.at(eta, data)
    numerical = approx_fprime(eta.ravel(), value, 1e-7)
    np.testing.assert_allclose(-said.residuals.ravel(), numerical, atol=1e-5)
    direction = np.random.default_rng(2).standard_normal(shape)
    along = (slope((eta + 1e-6 * direction).ravel()) - slope(eta.ravel())) / 1e-6
    bent = said.curvature.times_root(said.curvature.times_root_back(direction))
    np.testing.assert_allclose(bent.ravel(), along, atol=1e-4)


@every_loss
def test_whether_labels_of_one_class_teach(crowd, loss):
    ranker = HierarchicalRanker(n_groups=1, loss=loss.name, max_iter=5, tol=1e-2)
    ranker.fit(crowd)
    alone = ranker.users_.tolist().index("person-10")
    assert loss.one_class_informs != np.allclose(ranker.coef_[alone], ranker.consensus_, atol=1e-9)
    assert loss.has_intercept == bool(ranker.intercept_.any())


@every_loss
def test_newcomers_have_the_coordinates_of_the_crowd_first(crowd, loss):
    known = HierarchicalRanker(1, loss, max_iter=5, tol=1e-2).fit(crowd).prior_
    size = known.design.size
    responses, seen = loss.of_newcomers(crowd, known, 0.3)
    np.testing.assert_array_equal(seen.prior.mean[:size], known.prior.mean)
    assert seen.predictive is not None
    assert responses.data(0).rows.shape[2] == seen.design.size == len(seen.prior.mean)


@every_loss
def test_rankers_take_the_loss_itself(loss):
    crowd = make_crowd(np.random.default_rng(3), n_features=2)
    by_name, by_itself = (
        HierarchicalRanker(1, one, max_iter=5, tol=1e-2).fit(crowd) for one in (loss.name, loss)
    )
    np.testing.assert_array_equal(by_name.coef_, by_itself.coef_)
    few = crowd.of_user("person-08")
    np.testing.assert_array_equal(by_name.newcomer(few).coef, by_itself.newcomer(few).coef)


def test_a_loss_without_tasks_is_refused():
    class Nothing(PriorLoss):
        name = "nothing"

    with pytest.raises(TypeError):
        Nothing()
