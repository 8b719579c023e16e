"""What `ThreeLevelRanker.fit` takes, and how often the solver's starts miss the lowest minimum."""

from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context
from statistics import median
from typing import NamedTuple

import numpy as np

from benchmarks.floor import products, products_in_threads
from benchmarks.results import Result, at_most
from likeminds import Annotations, Statistics, ThreeLevelRanker, make_schools, make_simulation
from likeminds._util.array_types import Float
from likeminds._util.map_reduce import in_this_thread, n_cores
from likeminds.components import Component, Consensus, Group, Personal
from likeminds.losses import SquaredAUC
from likeminds.paper.experiments.table2 import rows_by_user
from likeminds.paper.experiments.timing import in_turns
from likeminds.solvers import FastSolver
from likeminds.solvers.newton_three_level import Eigendecomposition
from likeminds.solvers.solver import Parts, Solution

# A solution this much (relative) above the best known one has missed it.
GAP = 1e-6
TOL = 1e-7
# Fewer problems are solved sooner than processes are started.
_WORTH_PROCESSES = 10


class Random(NamedTuple):
    """A problem to be solved."""

    decomposition: Eigendecomposition
    components: list[Component]


def run(quick: bool) -> Result:
    """Measure arrays to weights over the floor."""
    size = (20, 100, 10, 10) if quick else (100, 5000, 80, 100)
    times = _times(size, 1 if quick else 15)
    floor = min(times[name] for name in times if name.startswith("floor"))
    return Result(
        title="From arrays to weights",
        compares=(
            f"The paper's simulation, {size[0]} people x {size[1]:,} rows x {size[2]} features: "
            "ThreeLevelRanker from arrays to coef_, over one pass of BLAS X'X on the same rows "
            "(the floor)."
        ),
        tables=[
            {
                "columns": ["step", "seconds", "times the floor"],
                "rows": [[name, taken, taken / floor] for name, taken in times.items()],
            }
        ],
        goals=[at_most("arrays to coef_ over the floor", 4, times["fit"] / floor, judge=not quick)],
        notes=["The fit has the default tolerance."],
        series={},
    )


def run_minima(quick: bool) -> Result:
    """Measure how far above the best known minima the solver ends."""
    n_easy, n_hard, n_starts = (2, 1, 2) if quick else (60, 50, 20)
    gaps = {"random": _gaps(easy, n_easy, n_starts), "harder": _gaps(hard, n_hard, n_starts)}
    missed = {kind: float(np.mean(np.array(found) > GAP)) for kind, found in gaps.items()}
    return Result(
        title="Local minima",
        compares=(
            f"How often ThreeLevelRanker's solver ends more than {GAP:g} (relative) above the best "
            f"of {n_starts} more starts: on {n_easy} random problems, and on {n_hard} harder ones "
            "(60 to 300 people in schools, 60 features, 20 to 50 labels of each)."
        ),
        tables=[
            {
                "columns": ["problems", "how many", "missed", "median gap", "largest gap"],
                "rows": [
                    [kind, len(found), missed[kind], median(found), max(found)]
                    for kind, found in gaps.items()
                ],
            }
        ],
        goals=[],
        notes=[f"Objectives are compared at tol={TOL:g}."],
        series={"gaps": gaps},
    )


def _times(size: tuple[int, int, int, int], repeats: int) -> dict[str, float]:
    said = make_simulation(*size, random_state=0).annotations
    positions = rows_by_user(said)
    X, y, users = said.X, said.labels, said.users
    return in_turns(
        {
            "fit": lambda: ThreeLevelRanker().fit(X, y, users=users),
            "floor, BLAS threads": lambda: products(positions),
            "floor, threads over people": lambda: products_in_threads(positions),
        },
        repeats,
    )


def easy(seed: int) -> Random:
    """Return a small problem: few or many labels, people and features; any penalties."""
    rng = np.random.default_rng(seed)
    n_users, n_features, n_labels = (
        int(rng.choice(sizes)) for sizes in ((3, 8, 30), (2, 5, 12), (4, 8, 40))
    )
    n_groups = int(rng.integers(0, min(10, n_users, n_features) + 1))
    lambdas = 10.0 ** rng.uniform(-4, 3, 3)
    users = np.repeat(np.arange(n_users), n_labels)
    rows = rng.standard_normal((len(users), n_features))
    if rng.random() < 0.5:
        rows = rows @ rng.standard_normal((n_features, n_features))
    weights = rng.standard_normal((n_users, n_features)) + rng.standard_normal(n_features)
    scores = np.einsum("nd,nd->n", rows, weights[users]) + rng.standard_normal(len(users))
    labels = scores > 0
    labels[::n_labels], labels[1::n_labels] = True, False
    said = Annotations(users=users, items=None, labels=labels, features=rows)
    return _problem(said, lambdas, n_groups)


def hard(seed: int) -> Random:
    """Return schools whose members have fewer labels than there are features."""
    rng = np.random.default_rng(seed)
    n_users, n_labels, n_groups = (int(rng.integers(*r)) for r in ((60, 301), (20, 51), (1, 6)))
    said = make_schools(n_users, n_labels, 500, 60, random_state=rng).annotations
    # The ranker's own penalties, each up to three times smaller or larger.
    usual = np.array([0.001 * n_users, 0.3 + 60 / n_labels, 1.0])
    return _problem(said, usual * 10.0 ** rng.uniform(-0.5, 0.5, 3), n_groups)


def _problem(said: Annotations, lambdas: Float, n_groups: int) -> Random:
    loss = SquaredAUC().of(Statistics.from_annotations(said))
    components = [Consensus(lambdas[0]), Group(lambdas[1], n_groups), Personal(lambdas[2])]
    return Random(FastSolver().decompose(loss), components)


def _gaps(make: Callable[[int], Random], n_problems: int, n_starts: int) -> list[float]:
    """Return the gaps of problems, which a process for each core takes one after the other."""
    work = partial(_gap_of, make, n_starts)
    if n_problems < _WORTH_PROCESSES:
        return [work(seed) for seed in range(n_problems)]
    with ProcessPoolExecutor(n_cores(), get_context("spawn")) as pool:
        return list(pool.map(work, range(n_problems)))


def _gap_of(make: Callable[[int], Random], n_starts: int, seed: int) -> float:
    with in_this_thread():  # the cores have problems of their own
        return gap(make(seed), n_starts)


def gap(problem: Random, n_starts: int) -> float:
    """Return how far, relative, the solver's objective is above the best of many starts."""
    found = _solve(problem)
    best = min(_solve(problem, start).objective for start in _more(found, n_starts))
    # Where everything can be fitted, the objective is rounding: that is no gap.
    at_zero = 0.5 * float(problem.decomposition.loss.constant.sum())
    return max(found.objective - best, 0.0) / max(best, 1e-4 * at_zero)


def _more(found: Solution, n_starts: int) -> Iterator[Parts]:
    """Yield starts: in turns levels at random, and the solution with noise as large as itself."""
    theta, group, personal = found.parts
    size = float(np.abs(group).mean() + np.abs(theta).mean())
    for seed in range(n_starts):
        rng = np.random.default_rng(seed)
        noise = size * rng.standard_normal(group.shape)
        yield theta * (seed % 2), group * (seed % 2) + noise, personal


def _solve(problem: Random, start: Parts | None = None) -> Solution:
    return FastSolver().solve(*problem, start=start, tol=TOL)
