import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from likeminds.laplacian import explicit_laplacian, laplacian_form, laplacian_product


@given(st.integers(2, 12), st.integers(1, 4), st.integers(1, 4), st.booleans(), st.integers(0, 99))
def test_products_equal_the_explicit_laplacian(n, a, b, weighted, seed):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) < rng.integers(1, n)
    rng.shuffle(labels)
    weights = rng.uniform(0.1, 3.0, n) if weighted else None
    A, B = rng.standard_normal((n, a)), rng.standard_normal((n, b))
    L = explicit_laplacian(labels, weights)
    np.testing.assert_allclose(laplacian_product(A, labels, weights), A.T @ L, atol=1e-13)
    np.testing.assert_allclose(laplacian_form(A, B, labels, weights), A.T @ L @ B, atol=1e-12)


def test_explicit_laplacian_is_the_graph_of_the_paper():
    labels = np.array([True, False, True, False, False])
    affinity = np.zeros((5, 5))
    for k in range(5):
        for m in range(5):
            if labels[k] != labels[m]:
                affinity[k, m] = 1 / (2 * 3)
    expected = np.diag(affinity.sum(axis=1)) - affinity
    np.testing.assert_allclose(explicit_laplacian(labels), expected)


def test_the_form_is_the_loss():
    rng = np.random.default_rng(0)
    labels = np.array([1, 0, 0, 1, 0], dtype=bool)
    scores = rng.standard_normal(5)
    gap = (labels - scores)[:, None]
    pairs = [(1 - (p - q)) ** 2 for p in scores[labels] for q in scores[~labels]]
    assert laplacian_form(gap, gap, labels)[0, 0] == pytest.approx(np.mean(pairs))


def test_zero_weight_rows_count_for_nothing():
    A = np.array([[1.0], [2.0], [5.0], [9.0]])
    labels = [False, True, False, True]
    with_zero = laplacian_form(A, A, labels, [1.0, 1.0, 0.0, 1.0])
    np.testing.assert_allclose(
        with_zero, laplacian_form(A[[0, 1, 3]], A[[0, 1, 3]], [False, True, True])
    )
