import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import minimize

from likeminds.components import Consensus, Group, Personal, total_weights

PEOPLE, FEATURES = 4, 3
COMPONENTS = [
    Consensus(0.7),
    Group(0.9, n_groups=0),
    Group(0.9, n_groups=1),
    Group(0.9, n_groups=2, shrinkage=0.3),
    Group(0.9, n_groups=3, shrinkage=0.9),
    Personal(0.8),
]
ids = [f"{type(c).__name__}-{getattr(c, 'n_groups', '')}" for c in COMPONENTS]


def random_part(component, rng):
    return rng.standard_normal(component.zeros(PEOPLE, FEATURES).shape) * 2.0


@pytest.mark.parametrize("component", COMPONENTS, ids=ids)
@given(seed=st.integers(0, 50), step=st.floats(0.05, 3.0))
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


def test_personal_forgives_small_gradients_at_zero():
    personal = Personal(1.0)
    part = np.zeros((3, 2))
    gradient = np.array([[0.6, 0.8], [3.0, 4.0], [0.0, 0.0]])
    assert personal.residual(part, gradient) == pytest.approx(4.0)


@given(
    st.integers(2, 7), st.integers(2, 7), st.integers(0, 3), st.floats(0.0, 0.5), st.integers(0, 99)
)
def test_group_value_is_that_of_the_singular_values(n_people, n_features, n_groups, shrink, seed):
    part = np.random.default_rng(seed).standard_normal((n_people, n_features))
    n_groups = min(n_groups, n_people, n_features)
    sigma = np.linalg.svd(part, compute_uv=False)
    expected = 0.5 * np.sum(sigma[n_groups:] ** 2) + shrink * np.sum(sigma[:n_groups] ** 2)
    assert Group(0.5, n_groups, shrink).value(part) == pytest.approx(expected, abs=1e-12)


@given(st.integers(2, 7), st.integers(2, 7), st.integers(0, 3), st.integers(0, 99))
def test_group_prox_is_proposition_2(n_people, n_features, n_groups, seed):
    point = np.random.default_rng(seed).standard_normal((n_people, n_features))
    n_groups = min(n_groups, n_people, n_features)
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
    with pytest.raises(ValueError, match="group_shrinkage"):
        Group(0.1, 1, shrinkage=0.2)


def test_total_weights_adds_what_is_shared_to_everybody():
    total = total_weights([np.array([1.0, 2.0]), np.eye(2)], 2)
    np.testing.assert_array_equal(total, [[2.0, 2.0], [1.0, 3.0]])
