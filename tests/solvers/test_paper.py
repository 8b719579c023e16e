import numpy as np
import pytest

import naive
from crowds import make_crowd
from likeminds import Annotations, Statistics, ThreeLevelRanker
from likeminds.components import (
    Consensus,
    Group,
    Personal,
    objective,
    optimality_residual,
    zero_parts,
)
from likeminds.losses import SquaredAUC
from likeminds.solvers import (
    AUTHORS_PROGRAM,
    SOLVERS,
    FastSolver,
    PaperSolver,
)
from likeminds.theory import convergence_certificate


def three_levels(lambda1, lambda2, lambda3, n_groups, lambda4=0.0):
    return [Consensus(lambda1), Group(lambda2, n_groups, lambda4), Personal(lambda3)]


def reference_problem(reference, case):
    said = Annotations(
        users=reference["user"], items=None, labels=reference["y"], features=reference["X"]
    )
    value = {name: reference[f"authors_{case}_{name}"] for name in _AUTHORS}
    components = three_levels(
        float(value["lambda1"]),
        float(value["lambda2"]),
        float(value["lambda3"]),
        int(value["kappa"]),
    )
    return SquaredAUC().of(Statistics.from_annotations(said)), components, value


_AUTHORS = ["lambda1", "lambda2", "lambda3", "kappa", "theta", "G", "P", "W", "objective", "loss"]


@pytest.mark.parametrize("case", [1, 2, 3])
def test_objective_at_the_authors_solution_is_theirs(reference, case):
    loss, components, authors = reference_problem(reference, case)
    parts = (authors["theta"], authors["G"].T, authors["P"].T)
    assert objective(loss, components, parts) == pytest.approx(authors["objective"], rel=1e-9)
    assert loss.value(authors["W"].T) == pytest.approx(authors["loss"], rel=1e-9)


@pytest.mark.parametrize("case", [1, 2, 3])
@pytest.mark.slow
def test_paper_ends_at_or_below_the_authors(reference, case):
    loss, components, authors = reference_problem(reference, case)
    solution = PaperSolver().solve(loss, components, tol=0.0, max_iter=3000)
    assert solution.objective <= authors["objective"]
    assert objective(loss, components, solution.parts) == pytest.approx(solution.objective)


@pytest.mark.parametrize("case", [1, 2, 3])
def test_authors_program_step_for_step(reference, case):
    loss, components, authors = reference_problem(reference, case)
    solution = SOLVERS["authors"].solve(loss, components, tol=1e-4)
    trace = reference[f"authors_{case}_objective_trace"]
    np.testing.assert_allclose(solution.history.objective[:-1], trace, rtol=1e-12)
    assert solution.converged
    assert solution.objective == pytest.approx(authors["objective"], rel=1e-12)
    for part, name in zip(solution.parts, ("theta", "G", "P"), strict=True):
        np.testing.assert_allclose(part, authors[name].T, atol=1e-11)


def test_authors_program_stops_one_step_after_a_small_change(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    history = AUTHORS_PROGRAM.solve(loss, three_levels(0.1, 0.5, 0.05, 2), tol=1e-3).history
    change = np.abs(np.diff(history.objective)) / history.objective[:-1]
    assert (change[:-2] > 1e-3).all()
    assert change[-2] <= 1e-3


def test_momentum_can_increase_the_objective_and_ends_at_a_critical_point(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    components = three_levels(1.0, 0.5, 0.2, 0)
    solution = PaperSolver(momentum=True).solve(loss, components, tol=1e-6, max_iter=5000)
    assert (np.diff(solution.history.objective) > 0).any()
    assert optimality_residual(loss, components, solution.parts) <= 1.1e-6
    assert solution.history.squared_steps.shape == (solution.n_iter, 3)


@pytest.mark.parametrize("lambdas", [(0.3, 0.2, 0.1, 0.0), (0.01, 1.0, 0.5, 0.2)])
def test_objective_is_the_papers(crowd, lambdas):
    rng = np.random.default_rng(0)
    lambda1, lambda2, lambda3, lambda4 = lambdas
    theta, G, P = rng.standard_normal(5), rng.standard_normal((12, 5)), np.zeros((12, 5))
    P[3] = rng.standard_normal(5)
    for form in ("dense", "factored"):
        loss = SquaredAUC().of(Statistics.from_annotations(crowd, form))
        components = three_levels(lambda1, lambda2, lambda3, 2, lambda4)
        assert objective(loss, components, (theta, G, P)) == pytest.approx(
            naive.objective(crowd, theta, G, P, lambdas=lambdas, n_groups=2), rel=1e-12
        )


@pytest.mark.parametrize("n_groups", [0, 2])
@pytest.mark.slow
def test_paper_converges_to_a_critical_point(crowd, n_groups):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    components = three_levels(1.0, 0.5, 0.2, n_groups, 0.1 * n_groups)
    solution = PaperSolver().solve(loss, components, tol=1e-8, max_iter=50_000)
    assert solution.converged
    assert optimality_residual(loss, components, solution.parts) <= 1.01e-8
    # what the step reports as its subgradient is one: the residual agrees
    assert solution.residual == pytest.approx(
        optimality_residual(loss, components, solution.parts), rel=0.5
    )


def test_theorem_2_holds_on_the_way(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    solution = PaperSolver(rho=1e-3, factor=1.5).solve(
        loss, three_levels(0.1, 0.5, 0.05, 2), max_iter=500, tol=0.0
    )
    assert solution.n_iter == 500
    assert solution.history.squared_steps.shape == (500, 3)
    assert (np.diff(solution.history.step_constant) >= 0).all()
    certificate = convergence_certificate(solution.history)
    assert certificate.claims == (True,) * 5
    assert certificate.holds
    lengths = np.sqrt(solution.history.squared_steps)
    np.testing.assert_allclose(certificate.last_steps, lengths[-1] / lengths.max(axis=0))
    assert certificate.residual == solution.residual
    reached = [np.linalg.norm(part) for part in solution.parts]
    np.testing.assert_allclose(solution.history.norms[-1], reached)
    assert (certificate.largest_norms >= reached).all()
    assert not convergence_certificate(solution.history, tol=1e-12).critical


@pytest.mark.parametrize(
    ("claim", "quantity", "entry", "value"),
    [
        (0, "objective", 3, 100.0),
        (1, "squared_steps", -1, 100.0),
        (2, "norms", -1, 100.0),
        (3, "residual", -1, 1.0),
        (4, "squared_steps", slice(None), 100.0),
    ],
)
def test_certificate_notices_what_fails(crowd, claim, quantity, entry, value):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    levels = three_levels(0.1, 0.5, 0.05, 2)
    history = PaperSolver().solve(loss, levels, tol=0.0, max_iter=300).history
    assert convergence_certificate(history).claims[claim]
    getattr(history, quantity)[entry] = value
    assert not convergence_certificate(history).claims[claim]


@pytest.mark.parametrize("solver", ["fast", "authors", "accelerated"])
def test_certificate_needs_the_history_of_the_printed_algorithm(crowd, solver):
    with pytest.warns(UserWarning, match="one class"):
        ranker = ThreeLevelRanker(solver=solver, tol=0.1).fit(crowd)
    for run in (ranker, ranker.solution_.history):
        with pytest.raises(TypeError, match='solver="paper"'):
            convergence_certificate(run)
    ranker.solution_ = None  # as read from a file
    with pytest.raises(ValueError, match="file"):
        convergence_certificate(ranker)


def test_starting_at_the_solution_stays_there(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    components = three_levels(1.0, 0.5, 0.2, 1)
    solution = FastSolver().solve(loss, components, tol=1e-10)
    again = PaperSolver().solve(loss, components, start=solution.parts, tol=1e-8)
    assert again.n_iter <= 2
    assert again.objective == pytest.approx(solution.objective, rel=1e-12)


def test_nothing_to_learn_stops_at_once():
    said = Annotations(
        users=["a", "a"], items=None, labels=[True, True], features=[[1.0], [2.0]]
    )  # no pairs
    loss = SquaredAUC().of(Statistics.from_annotations(said))
    solution = PaperSolver().solve(loss, [Consensus(1.0)])
    assert solution.converged
    assert solution.objective == 0.0


def test_zero_parts_have_the_shapes_of_the_levels(crowd):
    loss = SquaredAUC().of(Statistics.from_annotations(crowd))
    shapes = [part.shape for part in zero_parts(loss, three_levels(1, 1, 1, 1))]
    assert shapes == [(5,), (12, 5), (12, 5)]


@pytest.mark.parametrize(
    "bad", [{"rho": 0.0}, {"rho": -1.0}, {"factor": 1.0}, {"criterion": "time"}]
)
def test_line_search_needs_sensible_constants(bad):
    with pytest.raises(ValueError):
        PaperSolver(**bad)


def test_forms_lead_to_the_same_solution():
    crowd = make_crowd(np.random.default_rng(2))
    solutions = [
        PaperSolver().solve(
            SquaredAUC().of(Statistics.from_annotations(crowd, form)),
            three_levels(1.0, 0.5, 0.2, 2),
            max_iter=50,
            tol=0.0,
        )
        for form in ("dense", "factored")
    ]
    for dense, factored in zip(solutions[0].parts, solutions[1].parts, strict=True):
        np.testing.assert_allclose(dense, factored, atol=1e-10)
