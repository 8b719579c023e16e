import numpy as np
import pytest
from scipy.optimize import minimize
from sklearn.exceptions import ConvergenceWarning

import naive
from crowds import make_crowd
from likeminds import load, save
from likeminds.baselines import LogisticPerUser, PooledLogistic

FAR = 40.0  # features far from zero must not disturb the solver
ONE_CLASS = 10  # the person whose labels are of one class only


@pytest.fixture
def crowd():
    return make_crowd(np.random.default_rng(3), shift=FAR, spread=3.0)


def minimiser(rows, labels, weights, C):
    """The definition: C times the weighted logistic losses, plus half the squared weights."""
    sign = np.where(labels, 1.0, -1.0)

    def cost(beta):
        margins = sign * (rows @ beta[1:] + beta[0])
        return C * weights @ np.logaddexp(0.0, -margins) + beta[1:] @ beta[1:] / 2

    return minimize(cost, np.zeros(rows.shape[1] + 1), tol=1e-10).x[1:]


@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
@pytest.mark.parametrize("n_features", [5, 12])  # with 12, most users have fewer labels
def test_each_person_alone_minimises_the_logistic_loss(n_features):
    crowd = make_crowd(np.random.default_rng(3), n_features, shift=FAR, spread=3.0)
    ranker = LogisticPerUser(C=0.3, tol=1e-8).fit(crowd)
    scale = np.sqrt(np.cov(crowd.X.T, aweights=crowd.weights, ddof=0).diagonal())
    np.testing.assert_allclose(ranker.scale_, scale)
    for person, (rows, labels, weights) in enumerate(naive.by_user(crowd)):
        if person != ONE_CLASS:
            expected = minimiser((rows - FAR) / scale, labels, weights, 0.3) / scale
            np.testing.assert_allclose(ranker.coef_[person], expected, atol=1e-5)


def test_one_class_people_get_the_mean_of_the_others_and_are_named(crowd):
    with pytest.warns(UserWarning, match="one class"):
        ranker = LogisticPerUser().fit(crowd)
    others = np.delete(ranker.coef_, ONE_CLASS, axis=0)
    np.testing.assert_allclose(ranker.consensus_, others.mean(axis=0))
    np.testing.assert_array_equal(ranker.coef_[ONE_CLASS], ranker.consensus_)


def test_pooled_minimises_the_logistic_loss_of_all_rows(crowd):
    ranker = PooledLogistic(C=0.01, tol=1e-8, standardize=False).fit(crowd)
    expected = minimiser(crowd.X - FAR, crowd.labels, crowd.weights, 0.01)
    np.testing.assert_allclose(ranker.consensus_, expected, atol=1e-5)
    np.testing.assert_array_equal(ranker.coef_, np.tile(ranker.consensus_, (12, 1)))
    np.testing.assert_array_equal(ranker.scale_, np.ones(5))


@pytest.mark.seconds
@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
def test_several_workers_reach_the_same(crowd):
    alone, together = (LogisticPerUser(n_jobs=n).fit(crowd) for n in (1, 2))
    np.testing.assert_allclose(together.coef_, alone.coef_, rtol=1e-10)


@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
@pytest.mark.parametrize(
    ("ranker", "stopped"), [(LogisticPerUser, "11 of 11"), (PooledLogistic, "1 of 1")]
)
def test_stopping_early_is_said_once(crowd, ranker, stopped):
    with pytest.warns(ConvergenceWarning) as said:
        ranker(C=100.0, max_iter=1).fit(crowd)
    assert sum(issubclass(warning.category, ConvergenceWarning) for warning in said) == 1


def test_one_class_alone_is_refused(crowd):
    positive = crowd[crowd.labels]
    with pytest.raises(ValueError):
        LogisticPerUser().fit(positive)
    with pytest.raises(ValueError):
        PooledLogistic().fit(positive)


@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
@pytest.mark.parametrize("ranker", [LogisticPerUser(), PooledLogistic()])
def test_saved_and_loaded(tmp_path, crowd, ranker):
    again = load(save(ranker.fit(crowd), tmp_path / "m"))
    np.testing.assert_array_equal(again.decision_function(crowd), ranker.decision_function(crowd))
