import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import minimize

from likeminds.components import (
    CappedLowRank,
    Clustered,
    Consensus,
    Group,
    LowRank,
    MeanRegularised,
    Personal,
    PerUser,
    SharedFeatures,
    Sparse,
    total_weights,
)

PEOPLE, FEATURES = 4, 3
COMPONENTS = [
    Consensus(0.7),
    Group(0.9, n_groups=0),
    Group(0.9, n_groups=1),
    Group(0.9, n_groups=2, shrinkage=0.3),
    Group(0.9, n_groups=3, shrinkage=0.9),
    Personal(0.8),
    SharedFeatures(0.8),
    Sparse(0.8),
    LowRank(0.8),
    LowRank(0.8, n_free=1),
    CappedLowRank(0.8, threshold=1.5),
    CappedLowRank(0.8, threshold=np.inf),
    Clustered(0.5, 0.2, n_clusters=1),
    Clustered(0.2, 0.5, n_clusters=2),
    Clustered(0.2, 0.5, n_clusters=3),
    MeanRegularised(0.7),
]
ids = [repr(component) for component in COMPONENTS]


def random_part(component, rng):
    return rng.standard_normal(component.zeros(PEOPLE, FEATURES).shape) * 2.0


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
@settings(max_examples=4)  # each minimises numerically from three starts
@given(seed=st.integers(0, 50), step=st.floats(0.05, 3.0))
@pytest.mark.seconds
def test_prox_beats_numerical_minimisation(component, seed, step):
    rng = np.random.default_rng(seed)
    point = random_part(component, rng)

    def cost(flat):
        part = flat.reshape(point.shape)
        return 0.5 * np.sum((part - point) ** 2) + step * component.value(part)

    found = component.prox(point, step)
    starts = [point, found + 0.1 * rng.standard_normal(point.shape), random_part(component, rng)]
    best = min(minimize(cost, start.ravel(), method="BFGS").fun for start in starts)
    assert cost(found.ravel()) <= best + 1e-9 * (1 + best)


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
@given(seed=st.integers(0, 50), step=st.floats(0.05, 3.0))
def test_prox_has_no_residual(component, seed, step):
    point = random_part(component, np.random.default_rng(seed))
    part = component.prox(point, step)
    # (point - part) / step is a subgradient at the prox: the residual against it is zero
    assert component.residual(part, (part - point) / step) <= 1e-10 * (1 + np.abs(point).max())


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
def test_residual_measures_the_distance(component):
    rng = np.random.default_rng(5)
    part = random_part(component, rng)
    slope = numerical_slope(component, part)
    push = rng.standard_normal(part.shape)
    assert component.residual(part, -slope) == pytest.approx(0.0, abs=1e-5)
    assert component.residual(part, push - slope) == pytest.approx(np.linalg.norm(push), rel=1e-4)


def numerical_slope(component, part, h=1e-6):
    slope = np.zeros_like(part)
    for where in np.ndindex(part.shape):
        step = np.zeros_like(part)
        step[where] = h
        slope[where] = (component.value(part + step) - component.value(part - step)) / (2 * h)
    return slope


@pytest.mark.parametrize(
    ("component", "distance"),
    [
        (Personal(1.0), 4.0),
        (SharedFeatures(1.0), np.hypot(np.hypot(0.6, 3.0) - 1, np.hypot(0.8, 4.0) - 1)),
        (Sparse(1.0), np.hypot(2.0, 3.0)),
        (LowRank(1.0), np.linalg.norm([0.6, 0.8, 3.0, 4.0]) - 1),
        (LowRank(1.0, n_free=1), np.linalg.norm([0.6, 0.8, 3.0, 4.0])),
        (CappedLowRank(1.0, threshold=0.5), np.linalg.norm([0.6, 0.8, 3.0, 4.0]) - 1),
    ],
    ids=repr,
)
def test_a_zero_part_forgives_small_gradients(component, distance):
    part = np.zeros((3, 2))
    gradient = np.array([[0.6, 0.8], [3.0, 4.0], [0.0, 0.0]])  # of rank one
    assert component.residual(part, gradient) == pytest.approx(distance)


def test_low_rank_forgives_across_its_directions_only():
    part = np.diag([3.0, 0.0, 0.0])
    assert LowRank(1.0).residual(part, np.diag([-1.0, 0.9, -0.5])) == pytest.approx(0.0)
    assert LowRank(1.0).residual(part, np.diag([-1.0, 1.5, -0.5])) == pytest.approx(0.5)
    assert LowRank(1.0).residual(part, np.diag([-0.8, 0.9, -0.5])) == pytest.approx(0.2)


@pytest.mark.parametrize(
    "component", [LowRank(0.7), SharedFeatures(0.7), Sparse(0.7), Personal(0.7)], ids=repr
)
@given(seed=st.integers(0, 50))
def test_the_silencing_penalty_is_the_smallest_that_silences(component, seed):
    gradient = random_part(component, np.random.default_rng(seed))
    alpha = component.silencing_alpha(gradient)
    nothing = np.zeros_like(gradient)
    assert type(component)(1.0001 * alpha).residual(nothing, gradient) == 0.0
    assert type(component)(0.99 * alpha).residual(nothing, gradient) > 0.0


def test_the_cap_is_taken_in_stages_that_lie_above_it():
    capped = CappedLowRank(2.0, threshold=1.0)
    rng = np.random.default_rng(0)
    at = rng.standard_normal((5, 4))
    stage = capped.stage(at)
    n_free = np.sum(np.linalg.svd(at, compute_uv=False) > 1.0)
    assert stage == LowRank(2.0, n_free)
    constant = 2.0 * n_free * 1.0
    assert stage.value(at) + constant == pytest.approx(capped.value(at))
    for _ in range(50):
        other = rng.uniform(0.1, 2.0) * rng.standard_normal((5, 4))
        assert stage.value(other) + constant >= capped.value(other) - 1e-12


@given(st.integers(1, 7), st.integers(1, 5), st.floats(0.1, 3.0), st.integers(0, 99))
def test_clustered_value_is_the_least_over_membership_matrices(n_users, k, rho2, seed):
    rng = np.random.default_rng(seed)
    part = rng.standard_normal((n_users, 3))
    k = min(k, n_users)
    clustered = Clustered(0.7, rho2, k)
    eta = rho2 / 0.7

    def penalty(M):
        return (
            0.7
            * eta
            * (1 + eta)
            * np.trace(part.T @ np.linalg.inv(eta * np.eye(n_users) + M) @ part)
        )

    M = clustered.matrix(part)
    eigenvalues = np.linalg.eigvalsh(M)
    assert eigenvalues.min() >= -1e-9
    assert eigenvalues.max() <= 1 + 1e-9
    assert np.trace(M) <= k + 1e-9  # what is left of the budget goes where W is zero
    assert clustered.value(part) == pytest.approx(penalty(M), rel=1e-9)
    for _ in range(20):
        Q, _ = np.linalg.qr(rng.standard_normal((n_users, n_users)))
        mu = rng.dirichlet(np.ones(n_users)) * k
        if mu.max() <= 1:
            assert penalty((Q * mu) @ Q.T) >= clustered.value(part) * (1 - 1e-9)


def test_clustered_needs_penalties():
    with pytest.raises(ValueError):
        Clustered(0.0, 1.0, 1)


class Ridge(PerUser):
    """A component of a user's own, with no residual of its own."""

    name = "ridge"

    def value(self, part):
        return 0.5 * np.sum(part**2)

    def prox(self, point, step):
        return point / (1 + step)


def test_the_residual_that_comes_for_free_vanishes_where_it_should():
    ridge, part = Ridge(), np.random.default_rng(0).standard_normal((4, 3))
    assert ridge.residual(part, -part) == pytest.approx(0.0, abs=1e-12)
    assert ridge.residual(part, 1.0 - part) == pytest.approx(0.5 * np.sqrt(12))


@given(
    st.integers(2, 7), st.integers(2, 7), st.integers(0, 3), st.floats(0.0, 0.5), st.integers(0, 99)
)
def test_group_value_is_that_of_the_singular_values(n_users, n_features, n_groups, shrink, seed):
    part = np.random.default_rng(seed).standard_normal((n_users, n_features))
    sigma = np.linalg.svd(part, compute_uv=False)
    expected = 0.5 * np.sum(sigma[n_groups:] ** 2) + shrink * np.sum(sigma[:n_groups] ** 2)
    assert Group(0.5, n_groups, shrink).value(part) == pytest.approx(expected, abs=1e-12)


@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 3), st.integers(0, 99))
def test_group_prox_is_proposition_2(n_users, n_features, n_groups, seed):
    point = np.random.default_rng(seed).standard_normal((n_users, n_features))
    n_groups = min(n_groups, n_users, n_features)
    U, sigma, Vt = np.linalg.svd(point, full_matrices=False)
    sigma[n_groups:] /= 1 + 2 * 0.3 * 0.5
    np.testing.assert_allclose(
        Group(0.5, n_groups).prox(point, 0.3), U @ np.diag(sigma) @ Vt, atol=1e-10
    )


@pytest.mark.parametrize("shape", [(3, 6), (6, 3)])
def test_group_of_low_rank_is_left_alone(shape):
    rank_one = np.outer(np.arange(1.0, shape[0] + 1), np.ones(shape[1]))
    np.testing.assert_allclose(Group(5.0, 2).prox(rank_one, 1.0), rank_one, atol=1e-12)
    assert Group(5.0, 2).value(rank_one) == pytest.approx(0.0, abs=1e-10)
    np.testing.assert_array_equal(Group(5.0, 2).prox(np.zeros(shape), 1.0), 0.0)


def test_group_refuses_more_shrinkage_than_penalty():
    with pytest.raises(ValueError):
        Group(0.1, 1, shrinkage=0.2)


def test_total_weights_adds_what_is_shared_to_everybody():
    total = total_weights([np.array([1.0, 2.0]), np.eye(2)], 2)
    np.testing.assert_array_equal(total, [[2.0, 2.0], [1.0, 3.0]])
