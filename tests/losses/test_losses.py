import numpy as np
import pytest
from scipy.optimize import approx_fprime

import naive
from crowds import make_crowd
from likeminds import Statistics, ThreeLevelRanker
from likeminds.losses import LOSSES, LeastSquares, LeastSquaresRaw, Loss, SquaredAUC

pytestmark = pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
every_loss = pytest.mark.parametrize("name", LOSSES)


@every_loss
@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
@pytest.mark.parametrize("weights", [True, False])
def test_value_is_that_of_the_definition(name, form, weights):
    crowd = make_crowd(np.random.default_rng(7), shift=3.0, weights=weights)
    loss = LOSSES[name].of(Statistics.from_annotations(crowd, form), None)
    W = np.random.default_rng(1).standard_normal(loss.shape)
    expected = naive.total_loss(crowd, W, name)
    assert loss.value(W) == pytest.approx(expected, rel=1e-10)
    assert loss.value(W, loss.gradient(W)) == pytest.approx(expected, rel=1e-10)


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_gradient_is_the_derivative_of_the_value(crowd, name, form):
    loss = LOSSES[name].of(Statistics.from_annotations(crowd, form), None)
    W = np.random.default_rng(1).standard_normal(loss.shape)
    numerical = approx_fprime(W.ravel(), lambda w: loss.value(w.reshape(loss.shape)), 1e-7)
    np.testing.assert_allclose(loss.gradient(W).ravel(), numerical, rtol=1e-4, atol=2e-4)


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_scale_changes_the_unit_of_the_features(crowd, name, form):
    statistics = Statistics.from_annotations(crowd, form)
    scale = np.array([1.0, 2.0, 0.5, 3.0, 10.0])
    W = np.random.default_rng(1).standard_normal((crowd.n_users, 5))
    scaled, plain = LOSSES[name].of(statistics, scale), LOSSES[name].of(statistics, None)
    assert scaled.value(W * scale) == pytest.approx(plain.value(W))


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_squares_are_twice_everybodys_own_loss(crowd, name, form):
    loss = LOSSES[name].of(Statistics.from_annotations(crowd, form))
    W = np.random.default_rng(0).normal(size=loss.shape)
    squares = loss.squares(W)
    assert squares.sum() == pytest.approx(2.0 * loss.value(W))
    one = W.copy()
    one[1:] = 0.0
    at_zero = loss.squares(np.zeros_like(W))
    changed = 2.0 * (loss.value(one) - loss.value(np.zeros_like(W)))
    assert squares[0] - at_zero[0] == pytest.approx(changed)


@every_loss
@pytest.mark.parametrize("form", ["dense", "factored"])
def test_total_matrix_is_the_sum(crowd, name, form):
    loss = LOSSES[name].of(Statistics.from_annotations(crowd, form), None)
    everybody_alike = np.ones((crowd.n_users, 1))
    columns = [loss.apply(everybody_alike * unit).sum(axis=0) for unit in np.eye(5)]
    np.testing.assert_allclose(loss.total_matrix(), columns, rtol=1e-10, atol=1e-10)


@every_loss
def test_dense_and_factored_agree(crowd, name):
    dense, factored = (
        LOSSES[name].of(Statistics.from_annotations(crowd, form)) for form in ("dense", "factored")
    )
    W = np.random.default_rng(1).standard_normal(dense.shape)
    np.testing.assert_allclose(dense.gradient(W), factored.gradient(W), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(dense.linear, factored.linear, rtol=1e-9, atol=1e-9)


@every_loss
def test_labels_said_thrice_count_thrice(crowd, name):
    """What newcomers' labels weigh: a loss times its weight is a sum over observations."""
    loss, thrice = LOSSES[name], crowd.concat(crowd).concat(crowd)
    W = np.random.default_rng(1).standard_normal((1, 5))
    for person in crowd.user_ids:
        (once, n_once), (often, n_often) = (
            _weighed(loss, said.of_user(person), W) for said in (crowd, thrice)
        )
        assert often == pytest.approx(3 * once)
        assert n_often == pytest.approx(3 * n_once)
        assert (n_once > 0) == (person != "person-10")  # labels of one class have nothing to say


def _weighed(loss, said, W):
    statistics = Statistics.from_annotations(said)
    weight, count = loss.weight_and_count(statistics.class_weight)
    return weight[0] * loss.of(statistics).value(W), count[0]


@every_loss
@pytest.mark.seconds
def test_rankers_take_the_loss_itself(crowd, name):
    by_name, by_itself = (
        ThreeLevelRanker(loss=loss, tol=1e-2).fit(crowd) for loss in (name, LOSSES[name])
    )
    np.testing.assert_array_equal(by_name.coef_, by_itself.coef_)
    few = crowd.of_user("person-08")
    np.testing.assert_array_equal(by_name.newcomer(few).coef, by_itself.newcomer(few).coef)


def test_a_loss_with_something_missing_is_refused():
    class Nameless(SquaredAUC):
        counts = Loss.counts

    with pytest.raises(TypeError):
        Nameless()


def test_one_class_people_have_no_pairs_and_no_loss(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    alone = np.flatnonzero(crowd.user_ids == "person-10")[0]
    W = np.ones(loss.shape)
    assert loss.constant[alone] == 0
    np.testing.assert_array_equal(loss.gradient(W)[alone], 0.0)


def test_one_class_people_have_nothing_to_explain_beside_an_intercept(crowd):
    loss = LeastSquares().of(Statistics.from_annotations(crowd))
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
    assert SquaredAUC().of(far).value(W) == pytest.approx(SquaredAUC().of(near).value(W))
    assert LeastSquares().of(far).value(W) == pytest.approx(LeastSquares().of(near).value(W))
    assert LeastSquaresRaw().of(far).value(W) > 2 * LeastSquaresRaw().of(near).value(W)
