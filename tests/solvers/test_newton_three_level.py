"""The default solver, against the definition, the published algorithm, and itself."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from crowds import make_crowd
from likeminds import Annotations, Statistics, make_schools
from likeminds.components import Consensus, Group, Personal, objective, optimality_residual
from likeminds.losses import LOSSES, SquaredAUC
from likeminds.solvers import (
    AcceleratedSolver,
    FastSolver,
    PaperSolver,
)

pytestmark = pytest.mark.seconds

LAMBDAS = [1e-4, 1e3]  # those between are drawn by the test above


def three_levels(lambda1, lambda2, lambda3, n_groups, lambda4=0.0):
    return [Consensus(lambda1), Group(lambda2, n_groups, lambda4), Personal(lambda3)]


def random_problem(seed):
    """Few or many labels and people, correlated features, more features than labels."""
    rng = np.random.default_rng(seed)
    n_users, d = rng.choice([3, 8, 30]), rng.choice([2, 5, 12])
    n_labels = rng.choice([4, 8, 40])
    correlated = rng.standard_normal((d, d)) if rng.random() < 0.5 else np.eye(d)
    rows = rng.standard_normal((n_users * n_labels, d)) @ correlated
    weights = rng.standard_normal((n_users, d)) + rng.standard_normal(d)
    users = np.repeat(np.arange(n_users), n_labels)
    scores = np.einsum("nd,nd->n", rows, weights[users]) + rng.standard_normal(len(users))
    labels = scores > 0
    labels[::n_labels], labels[1::n_labels] = True, False
    loss = SquaredAUC().of(
        Statistics.from_annotations(
            Annotations(users=users, items=None, labels=labels, features=rows)
        )
    )
    lambdas = 10.0 ** rng.uniform(-4, 3, 3)
    n_groups = int(rng.integers(0, min(10, n_users, d) + 1))
    shrinkage = lambdas[1] * rng.choice([0.0, 0.1, 0.9, 1.0])
    return loss, three_levels(*lambdas, n_groups, shrinkage)


@settings(max_examples=15)
@given(st.integers(0, 10_000))
def test_never_above_the_published_algorithm(seed):
    loss, components = random_problem(seed)
    fast = FastSolver().solve(loss, components, tol=1e-6, max_iter=200)
    # The published algorithm chooses where to go; the accelerated one gets there sooner, to where
    # thousands of its steps would lead.
    paper = PaperSolver().solve(loss, components, tol=1e-9, max_iter=100)
    ahead = AcceleratedSolver().solve(loss, components, start=paper.parts, tol=1e-9, max_iter=150)
    assert ahead.objective <= paper.objective * (1 + 1e-9)
    assert fast.objective <= ahead.objective * (1 + 1e-9) + 1e-12


@pytest.mark.parametrize("lambda1", LAMBDAS)
@pytest.mark.parametrize("lambda2", LAMBDAS)
@pytest.mark.parametrize("lambda3", LAMBDAS)
@pytest.mark.parametrize("n_groups", [0, 2])
def test_ends_at_a_critical_point(crowd, lambda1, lambda2, lambda3, n_groups):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    components = three_levels(lambda1, lambda2, lambda3, n_groups, 0.1 * lambda2)
    solution = FastSolver().solve(loss, components, tol=1e-5, max_iter=200)
    assert solution.converged
    assert solution.residual == optimality_residual(loss, components, solution.parts)
    assert solution.residual <= 1e-5
    assert solution.objective == objective(loss, components, solution.parts)
    assert (np.diff(solution.history.objective) <= 1e-10 * solution.history.objective[0]).all()
    assert len(solution.history.objective) == solution.n_iter + 1


@pytest.mark.parametrize("case", [1, 2, 3])
def test_ends_below_the_authors(reference, case):
    said = Annotations(
        users=reference["user"], items=None, labels=reference["y"], features=reference["X"]
    )
    numbers = [float(reference[f"authors_{case}_lambda{i}"]) for i in (1, 2, 3)]
    components = three_levels(*numbers, int(reference[f"authors_{case}_kappa"]))
    loss = SquaredAUC().of(Statistics.from_annotations(said))
    solution = FastSolver().solve(loss, components, tol=1e-8)
    assert solution.converged
    assert solution.n_iter < 20
    assert solution.objective <= reference[f"authors_{case}_objective"]


@pytest.mark.parametrize("zero", [0, 1, 2])
def test_levels_without_penalty(crowd, zero):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    lambdas = np.ones(3)
    lambdas[zero] = 0.0
    components = three_levels(*lambdas, 1)
    solution = FastSolver().solve(loss, components, tol=1e-4)
    assert solution.converged
    assert np.isfinite(solution.objective)


def test_shrinkage_like_the_penalty_is_plain_ridge(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    shrunk = FastSolver().solve(loss, three_levels(1.0, 0.5, 0.3, 3, 0.5), tol=1e-9)
    plain = FastSolver().solve(loss, three_levels(1.0, 0.5, 0.3, 0), tol=1e-9)
    assert shrunk.objective == pytest.approx(plain.objective, rel=1e-12)


def test_forms_lead_to_the_same_solution():
    crowd = make_crowd(np.random.default_rng(2))
    solutions = [
        FastSolver().solve(
            SquaredAUC().of(Statistics.from_annotations(crowd, form)),
            three_levels(1.0, 0.5, 0.2, 2, 0.1),
            tol=1e-10,
        )
        for form in ("dense", "factored", "auto")
    ]
    for other in solutions[1:]:
        for ours, theirs in zip(solutions[0].parts, other.parts, strict=True):
            np.testing.assert_allclose(ours, theirs, atol=1e-7)


def test_warm_start_is_taken(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    components = three_levels(1.0, 0.5, 0.2, 2)
    first = FastSolver().solve(loss, components, tol=1e-8)
    again = FastSolver().solve(loss, components, start=first.parts, tol=1e-7)
    assert again.n_iter <= 1
    assert again.objective == pytest.approx(first.objective, rel=1e-10)


@pytest.mark.parametrize(
    ("name", "lambda3"), [("auc", 0.02), ("auc", 10.0), ("least_squares", 0.02)]
)
def test_a_crowd_too_large_for_memory_reaches_the_same(name, lambda3):
    crowd = make_schools(600, 8, 100, 12, 3, random_state=0).annotations
    loss = LOSSES[name].of(Statistics.from_annotations(crowd), None)
    components = three_levels(6.0, 0.5, lambda3, 2, 0.05)
    whole = FastSolver().solve(loss, components, tol=1e-6)
    sampled = FastSolver(memory=8 * 12 * 9 * 200).solve(loss, components, tol=1e-6)
    assert sampled.converged
    assert sampled.objective == pytest.approx(whole.objective, rel=1e-6)
    np.testing.assert_allclose(
        sampled.parts[0] + sampled.parts[1] + sampled.parts[2],
        whole.parts[0] + whole.parts[1] + whole.parts[2],
        atol=1e-3,
    )


def test_other_components_are_refused(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    with pytest.raises(TypeError):
        FastSolver().solve(loss, [Consensus(1.0), Personal(1.0)])


@pytest.mark.parametrize("n_groups", [0, 2])
def test_silencing_is_the_least_penalty_without_a_personal_level(n_groups):
    crowd = make_schools(20, 20, 60, 6, 2, contested=0.5, random_state=0).annotations
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    solver, prohibitive = FastSolver(), three_levels(0.01, 1.0, 1e3, n_groups)
    decomposition = solver.decompose(loss)
    without = solver.descend(decomposition, prohibitive, tol=1e-8)
    assert 0.0 < without.silencing < 1e3
    for share, expected in ((1.001, True), (0.98, False)):
        levels = three_levels(0.01, 1.0, share * without.silencing, n_groups)
        found = solver.descend(decomposition, levels, start=without.parts, tol=1e-8)
        assert (not found.parts[2].any()) == expected
        assert np.isfinite(found.silencing) == expected
    gradient = loss.gradient(without.parts[0] + without.parts[1])
    assert np.linalg.norm(gradient, axis=1).max() == pytest.approx(without.silencing, rel=1e-6)
