import numpy as np
import pytest

import naive
from likeminds import Statistics, ThreeLevelRanker
from likeminds.losses import SquaredAUC
from likeminds.theory import generalization_bound, lipschitz_bound, lipschitz_constant


def hessian(crowd):
    """Hessian of the loss by (theta, G, P), from the definition."""
    quadratics = [naive.auc_quadratic(*person)[0] for person in naive.by_user(crowd)]
    U, d = len(quadratics), crowd.n_features
    J = np.zeros((U, d, d + 2 * U * d))
    for i in range(U):
        for start in (0, d + i * d, d + U * d + i * d):
            J[i][:, start : start + d] += np.eye(d)
    return sum(J[i].T @ quadratics[i] @ J[i] for i in range(U))


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_sharp_constant_is_the_largest_eigenvalue(crowd, form):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd, form))
    expected = np.linalg.eigvalsh(hessian(crowd))[-1]
    assert lipschitz_constant(loss) == pytest.approx(expected, rel=1e-8)


@pytest.mark.parametrize("form", ["dense", "factored"])
def test_theorem_1s_constant_as_written(crowd, form):
    ratios = []
    for rows, labels, weights in naive.by_user(crowd):
        if labels.all():
            continue
        norm = np.linalg.norm(rows * np.sqrt(weights)[:, None], ord=2)
        positive, negative = weights[labels].sum(), weights[~labels].sum()
        ratios.append((positive + negative) * norm**2 / (positive * negative))
    U = len(ratios)
    bound = lipschitz_bound(Statistics.from_annotations(crowd, form))
    assert bound == pytest.approx(3 * U * np.sqrt(2 * U + 1) * max(ratios), rel=1e-10)
    assert bound >= lipschitz_constant(SquaredAUC().of(Statistics.from_annotations(crowd)))


def test_theorem_1_in_other_units(crowd):
    statistics = Statistics.from_annotations(crowd)
    twice = lipschitz_bound(statistics, np.full(5, 0.5))
    assert twice == pytest.approx(4 * lipschitz_bound(statistics), rel=1e-12)


@pytest.fixture
def fitted(crowd):
    with pytest.warns(UserWarning, match="one class"):
        return ThreeLevelRanker(1.0, 1.0, 1.0, n_groups=1, tol=1e-3).fit(crowd)


@pytest.mark.parametrize("form", ["proved", "printed"])
def test_theorem_3_term_by_term(crowd, fitted, form):
    with pytest.warns(UserWarning, match="vacuous"):
        bound = generalization_bound(fitted, crowd, delta=0.1, form=form)
    U, start = 11, 11 / 2
    rows = crowd.X / fitted.scale_
    radius = np.linalg.norm(rows - rows.mean(axis=0), axis=1).max()
    sigma = np.linalg.svd(fitted.raw_group_ * fitted.scale_, compute_uv=False)[0]
    size = np.sqrt(start / 12) + np.sqrt(start / 1.0 + 1 * sigma**2) + start / 1.0
    zeta = radius * size
    chi = []
    loss = 0.0
    for w, (mine, labels, weights) in zip(fitted.coef_, naive.by_user(crowd), strict=True):
        loss += 2 * naive.auc_loss(mine, labels, w, weights)
        if not labels.all():
            n, positive = weights.sum(), weights[labels].sum()
            chi.append(n * (positive / n) * (1 - positive / n))
    assert bound.n_users == U
    assert bound.training_loss == pytest.approx(loss)
    # McDiarmid: a label of user i moves the loss by the largest change of a pair over n+ or n-.
    proved = form == "proved"
    slope = 2 * (1 + 2 * zeta) if proved else 2 * (1 + zeta)
    squared = sum(1 / c for c in chi) if proved else 1 / sum(chi)
    changes = (slope * 2 * zeta) ** 2 * squared
    assert bound.capacity == pytest.approx(
        sum(4 * np.sqrt(2) * size * radius * slope / np.sqrt(c) for c in chi)
    )
    assert bound.deviation == pytest.approx(5 * np.sqrt(changes * np.log(2 / 0.1) / 2))
    assert bound.value == bound.training_loss + bound.capacity + bound.deviation
    assert bound.is_vacuous
