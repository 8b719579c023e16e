import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowds import make_crowd
from likeminds import Statistics
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
    objective,
    optimality_residual,
)
from likeminds.losses import LOSSES, LeastSquares
from likeminds.solvers import (
    AcceleratedSolver,
    FastSolver,
    PaperSolver,
)

pytestmark = pytest.mark.seconds

CONVEX = [
    [Consensus(0.3)],
    [Sparse(0.05)],
    [SharedFeatures(0.1)],
    [LowRank(0.1), Personal(0.05)],
    [SharedFeatures(0.1), Personal(0.05)],
    [Clustered(0.3, 0.1, 2)],
    [Consensus(0.1), Personal(0.05), Sparse(0.1)],
    [MeanRegularised(0.2)],
]
CAPPED = [CappedLowRank(0.1, threshold=0.4)]
NOT_CONVEX = [
    [MeanRegularised(0.5), Group(0.3, 1)],
    [LowRank(0.1, n_free=1)],
    CAPPED,
    [Consensus(0.1), Group(0.5, 2, 0.1), Personal(0.2)],
]
everything = pytest.mark.parametrize("components", CONVEX + NOT_CONVEX, ids=repr)
every_loss = pytest.mark.parametrize("name", LOSSES)


@pytest.fixture
def crowd():
    """People with two labels and three features: still hard, but with an end in sight."""
    return make_crowd(np.random.default_rng(7), n_features=3)


def made(name, crowd, form="auto"):
    return LOSSES[name].of(Statistics.from_annotations(crowd, form), None)


@every_loss
@everything
@pytest.mark.slow
def test_ends_at_a_critical_point(crowd, name, components):
    loss = made(name, crowd)
    solution = AcceleratedSolver().solve(loss, components, tol=1e-6, max_iter=20_000)
    assert solution.converged
    assert not solution.interrupted
    assert optimality_residual(loss, components, solution.parts) <= 1.1e-6
    assert objective(loss, components, solution.parts) == pytest.approx(solution.objective)


@every_loss
@pytest.mark.parametrize("components", [c for c in CONVEX + NOT_CONVEX if c != CAPPED], ids=repr)
def test_never_goes_up(crowd, name, components):
    loss = made(name, crowd)
    trace = AcceleratedSolver().solve(loss, components, tol=1e-7).history.objective
    assert (np.diff(trace) <= 1e-12 * np.abs(trace[0])).all()


@pytest.mark.parametrize(
    ("name", "components"), list(zip([*LOSSES] * len(CONVEX), CONVEX, strict=False)), ids=repr
)
@pytest.mark.slow
def test_agrees_with_the_published_algorithm_where_there_is_one_minimum(crowd, name, components):
    loss = made(name, crowd)
    slow = PaperSolver().solve(loss, components, tol=1e-5, max_iter=50_000)
    quick = AcceleratedSolver().solve(loss, components, tol=1e-5, max_iter=50_000)
    assert slow.converged
    assert quick.objective == pytest.approx(slow.objective, rel=1e-5)
    assert quick.n_iter <= slow.n_iter


def test_forms_and_threads_lead_to_the_same_solution():
    crowd = make_crowd(np.random.default_rng(2))
    parts = [
        AcceleratedSolver().solve(made("auc", crowd, form), [LowRank(0.1), Personal(0.05)]).parts
        for form in ("dense", "factored", "factored")
    ]
    for one, other, again in zip(*parts, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-8)
        np.testing.assert_array_equal(other, again)


def test_starting_at_the_solution_stays_there(crowd):
    loss, components = made("auc", crowd), [LowRank(0.1), Personal(0.05)]
    solution = AcceleratedSolver().solve(loss, components, tol=1e-8, max_iter=20_000)
    again = AcceleratedSolver().solve(loss, components, start=solution.parts, tol=1e-6)
    assert again.n_iter <= 2
    assert again.objective == pytest.approx(solution.objective, rel=1e-10)


def test_a_callback_stops_it(crowd):
    seen = []
    solution = AcceleratedSolver().solve(
        made("auc", crowd),
        [Sparse(0.01)],
        callback=lambda *step: seen.append(step) or len(seen) == 3,
    )
    assert solution.interrupted
    assert [number for number, _, _ in seen] == [1, 2, 3]
    assert seen[-1][1] == solution.objective


def test_an_interrupt_keeps_what_was_found(crowd):
    def interrupt(number, *_):
        if number == 4:
            raise KeyboardInterrupt

    solution = AcceleratedSolver().solve(made("auc", crowd), [Sparse(0.01)], callback=interrupt)
    assert solution.interrupted
    assert solution.n_iter == 4
    assert solution.objective < solution.history.objective[0]


# RAMU's stages


def test_an_infinite_cap_is_the_trace_norm(crowd):
    loss = made("least_squares", crowd)
    capped, plain = (
        AcceleratedSolver().solve(loss, [component], tol=1e-8, max_iter=20_000)
        for component in (CappedLowRank(0.1, np.inf), LowRank(0.1))
    )
    np.testing.assert_allclose(capped.parts[0], plain.parts[0], atol=1e-12)


@settings(max_examples=15)
@given(st.integers(0, 30), st.floats(0.02, 0.3), st.floats(0.1, 2.0))
@pytest.mark.slow
def test_stages_end_where_the_set_above_the_cap_is_that_of_the_stage(seed, alpha, threshold):
    loss = made("least_squares", make_crowd(np.random.default_rng(seed), n_features=3))
    capped = CappedLowRank(alpha, threshold)
    solution = AcceleratedSolver().solve(loss, [capped], tol=1e-5, max_iter=20_000)
    # With a free direction and people of two labels, the minimum may lie at infinity.
    assert solution.residual <= 1e-4
    plain = AcceleratedSolver().solve(loss, [LowRank(alpha)], tol=1e-6, max_iter=20_000)
    value = objective(loss, [capped], plain.parts)
    assert solution.objective <= value * (1 + 1e-9)
    stage = capped.stage(solution.parts[0])
    by_admm = trace_norm_by_admm(loss, alpha, stage.n_free, solution.parts[0])
    assert objective(loss, [stage], (by_admm,)) == pytest.approx(
        objective(loss, [stage], solution.parts), rel=1e-4
    )


def trace_norm_by_admm(loss, alpha, n_free, start):
    """Minimise loss + alpha * (singular values after the first): slow, and by other means."""
    rho, steps = 0.3, 1500
    n_users, d = loss.shape
    units = [loss.apply(np.tile(unit, (n_users, 1))) for unit in np.eye(d)]
    matrices = np.stack(units, axis=2)
    Z, dual = start.copy(), np.zeros_like(start)
    for _ in range(steps):
        right = loss.linear + rho * (Z - dual)
        W = np.linalg.solve(matrices + rho * np.eye(d), right[:, :, None])[:, :, 0]
        left, sigma, right_vectors = np.linalg.svd(W + dual, full_matrices=False)
        shrunk = np.maximum(sigma - alpha / rho, 0)
        shrunk[:n_free] = sigma[:n_free]
        Z = (left * shrunk) @ right_vectors
        dual += W - Z
    return Z


# COMT: its two penalties act as one


@settings(max_examples=10)
@given(st.integers(1, 30), st.sampled_from([0, 1, 2]), st.floats(0.1, 2.0), st.floats(0.1, 2.0))
def test_comt_is_the_three_level_model_without_the_personal_level(seed, n_groups, first, second):
    loss = made("auc", make_crowd(np.random.default_rng(seed), n_features=3))
    comt = [MeanRegularised(first), Group(second, n_groups)]
    solution = AcceleratedSolver().solve(loss, comt, tol=1e-6, max_iter=5000)
    price = first * second / (first + second)
    levels = [Consensus(1e-9), Group(price, n_groups), Personal(1e6)]
    # The spectral tail is not convex: the other solver starts where this one ended, and stays.
    start = as_levels(solution.parts)
    assert objective(loss, levels, start) == pytest.approx(solution.objective, rel=1e-4)
    found = FastSolver().solve(loss, levels, tol=1e-5, max_iter=100, start=start)
    assert found.objective == pytest.approx(solution.objective, rel=1e-4)


def as_levels(parts):
    """The same weights as consensus, group and nothing personal."""
    P, Q = parts
    theta = P.mean(axis=0)
    return theta, P - theta + Q, np.zeros_like(P)


def test_comt_without_groups_is_ridge_towards_the_mean(crowd):
    loss = LeastSquares().of(Statistics.from_annotations(crowd))
    pulled = AcceleratedSolver().solve(
        loss, [MeanRegularised(0.5), Group(0.3, 0)], tol=1e-9, max_iter=50_000
    )
    alone = AcceleratedSolver().solve(
        loss, [MeanRegularised(0.5 * 0.3 / 0.8)], tol=1e-9, max_iter=50_000
    )
    np.testing.assert_allclose(sum(pulled.parts), alone.parts[0], atol=1e-5)


class Ridge(PerUser):
    """A component that knows only its value and its prox."""

    name = "ridge"

    def value(self, part):
        return 0.5 * np.sum(part**2)

    def prox(self, point, step):
        return point / (1 + step)


def test_a_component_of_ones_own_needs_a_value_and_a_prox(crowd):
    loss = made("least_squares", crowd)
    found = AcceleratedSolver().solve(loss, [Ridge()], tol=1e-10, max_iter=10_000).parts[0]
    np.testing.assert_allclose(loss.apply(found) + found, loss.linear, atol=1e-8)
    assert optimality_residual(loss, [Ridge()], (found,)) <= 1e-9
