"""The squared AUC loss of grades against the double loop over pairs."""

import numpy as np
import pytest

import naive
from likeminds import Annotations, HierarchicalRanker, Statistics, ThreeLevelRanker
from likeminds.laplacian import explicit_laplacian, laplacian_form, laplacian_product
from likeminds.losses import LeastSquares, SquaredAUC


def crowd_of(rng, *, n_grades=4, weights=True, n=90, d=3):
    users = rng.integers(0, 5, n)
    grades = np.where(users == 4, 2, rng.integers(0, n_grades, n)).astype(float)
    return Annotations(
        users,
        None,
        grades,
        rng.normal(size=(n, d)) + 3.0,
        weights=rng.choice([0.0, 0.5, 2.0], n) if weights else None,
        grades=True,
    )


def by_a_loop(said, W):
    weights = np.ones(len(said)) if said.weights is None else said.weights
    return sum(
        naive.auc_loss_of_grades(said.X[mine], said.grades[mine], w, weights[mine])
        for w, mine in ((W[i], said.user_codes == i) for i in range(said.n_users))
    )


@pytest.mark.parametrize("form", ["auto", "dense", "factored"])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("n_grades", [2, 4, 40])
def test_value_and_gradient_are_those_of_all_pairs(form, weights, n_grades):
    said = crowd_of(np.random.default_rng(n_grades), n_grades=n_grades, weights=weights)
    loss = SquaredAUC().of(Statistics.from_annotations(said, form, graded=True))
    W = np.random.default_rng(1).standard_normal(loss.shape)
    assert loss.value(W) == pytest.approx(by_a_loop(said, W), rel=1e-10)
    step = 1e-6 * np.random.default_rng(2).standard_normal(W.shape)
    rise = by_a_loop(said, W + step) - by_a_loop(said, W - step)
    assert np.vdot(loss.gradient(W), step) == pytest.approx(rise / 2, rel=1e-5)


def test_targets_have_length_one_and_one_grade_has_no_loss():
    said = crowd_of(np.random.default_rng(0))
    statistics = Statistics.from_annotations(said, "factored", graded=True)
    loss = SquaredAUC().block(statistics, None, slice(None))
    for users, Z, target in loss.factors:
        np.testing.assert_allclose((target**2).sum(axis=1), users != 4)
        assert not Z[users == 4].any()
    assert loss.constant.tolist() == [1, 1, 1, 1, 0]


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_parts_with_other_grades_merge_exactly(form):
    said = crowd_of(np.random.default_rng(3), n_grades=6)
    low = said.grades < 3
    parts = [Statistics.from_annotations(said[rows], form, graded=True) for rows in (low, ~low)]
    whole = SquaredAUC().of(Statistics.from_annotations(said, form, graded=True))
    merged = SquaredAUC().of(parts[0].merge(parts[1]))
    W = np.random.default_rng(1).standard_normal(whole.shape)
    np.testing.assert_allclose(merged.gradient(W), whole.gradient(W), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_grades_become_yes_or_no(form):
    said = crowd_of(np.random.default_rng(3), n_grades=6)
    graded = Statistics.from_annotations(said, form, graded=True)
    found = SquaredAUC().of(graded.in_two_classes(graded.grades > said.reading.threshold))
    whole = SquaredAUC().of(Statistics.from_annotations(said, form))
    W = np.random.default_rng(1).standard_normal(whole.shape)
    np.testing.assert_allclose(found.gradient(W), whole.gradient(W), rtol=1e-9, atol=1e-9)


def test_the_laplacian_of_grades_gives_the_loss():
    rng = np.random.default_rng(0)
    grades, X, weights = rng.integers(0, 4, 30), rng.normal(size=(30, 3)), rng.random(30)
    L = explicit_laplacian(grades, weights)
    pairs = [(r, s) for r in range(30) for s in range(30) if grades[r] > grades[s]]
    share = np.array([weights[r] * weights[s] for r, s in pairs])
    share /= share.sum()
    apart = np.array([X[r] - X[s] for r, s in pairs])
    np.testing.assert_allclose(X.T @ L @ X, (apart * share[:, None]).T @ apart)
    np.testing.assert_allclose(laplacian_form(X, X, grades, weights), X.T @ L @ X)
    np.testing.assert_allclose(laplacian_product(X, grades, weights), X.T @ L, atol=1e-13)
    said = Annotations([0] * 30, None, grades, X, weights=weights)
    statistics = Statistics.from_annotations(said, "dense", graded=True)
    loss = SquaredAUC().block(statistics, None, slice(None))
    np.testing.assert_allclose(loss.matrices[0], X.T @ L @ X)
    np.testing.assert_allclose(loss.linear[0], share @ apart)


def test_other_losses_take_grades_as_yes_or_no():
    said = crowd_of(np.random.default_rng(0))
    with pytest.raises(ValueError):
        LeastSquares().of(Statistics.from_annotations(said, graded=True))


@pytest.mark.filterwarnings("ignore:.*one class only:UserWarning")
@pytest.mark.seconds
def test_rankers_take_grades_from_fit_to_newcomers():
    rng = np.random.default_rng(5)
    X, users = rng.normal(size=(400, 4)), np.repeat(np.arange(10), 40)
    W = np.array([1.0, -1, 0.5, 0]) + 0.5 * rng.normal(size=(10, 4))
    scores = np.einsum("nd,nd->n", X, W[users])
    grades = np.clip(np.round(4 + scores + 0.5 * rng.normal(size=400)), 1, 7)
    for kind in (ThreeLevelRanker(), HierarchicalRanker(n_groups=0)):
        ranker = kind.set_params(unknown="consensus")
        ranker.fit(X[users < 8], grades[users < 8], users[users < 8])
        assert ranker.score(X, grades, users) > 0.8
        new = ranker.newcomer(X[users == 8], grades[users == 8])
        assert new.decision_function(X[users == 9]).shape == (40,)
        ranker.update(X[users == 8], grades[users == 8], users[users == 8])
        assert ranker.score(X[users == 8], grades[users == 8], users[users == 8]) > 0.85
        with pytest.raises(ValueError):
            ranker.update(Annotations(users, None, grades > 4, X))
    whole = ThreeLevelRanker(tol=1e-8).fit(X, grades, users)
    parts = ThreeLevelRanker(tol=1e-8).fit(X[::2], grades[::2], users[::2])
    parts.update(X[1::2], grades[1::2], users[1::2])
    np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-4)
