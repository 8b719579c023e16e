"""Figure 4: objective and steps, for the printed algorithm, its authors' program and ours."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from time import process_time
from typing import Any, cast

import numpy as np

from likeminds.components import Component
from likeminds.datasets import make_simulation
from likeminds.losses import QuadraticLoss, SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    ReportPicture,
    draw_panels,
)
from likeminds.paper.experiments.setting import ExperimentSetting, Job
from likeminds.paper.experiments.timing import timed
from likeminds.paper.experiments.trials import simulation_parameters
from likeminds.paper.theory import convergence_certificate, generalization_bound
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.report.page import ReportTable
from likeminds.solvers import (
    AUTHORS_PROGRAM,
    AcceleratedSolver,
    FastSolver,
    PaperSolver,
    Solver,
    StepHistory,
)

PAPER, AUTHORS = "the paper's, as printed", "the authors' program"
ACCELERATED, FAST = "accelerated, ours", "Newton, ours (the default)"
_FIRST_ORDER: Mapping[str, Solver] = {
    PAPER: PaperSolver(),
    AUTHORS: AUTHORS_PROGRAM,
    ACCELERATED: AcceleratedSolver(),
}
# Objectives closer than this share to the lowest are drawn as if they had reached it.
_FLOOR = 1e-12
# How close to the lowest objective counts as there, for the table.
_NEAR = 1e-4
# Increases of the objective below this share of the first are rounding.
_ROUNDING = 1e-12
# Far more steps than Newton's method takes.
_MOST_NEWTON_STEPS = 100


def run(setting: ExperimentSetting) -> ReportPart:
    """Follow four solvers on the simulation, with the penalties of Table 1."""
    parameters = simulation_parameters(setting, setting.simulation().annotations)
    arguments = {
        "sizes": tuple(setting.scale.simulation),
        "iterations": setting.scale.iterations,
        "parameters": parameters,
        "seed": setting.seed,
    }
    found = setting.store.one(Job("fig4", follow, arguments))
    solvers = found.pop("solvers")
    facts = found | _summary(solvers)
    return ReportPart(
        key="fig4",
        title="Figure 4: convergence",
        found=_sentence(facts),
        pieces=[_picture(solvers, facts), _table(facts), _how(setting, parameters)],
        facts=facts,
    )


def follow(
    sizes: Sequence[int], iterations: int, parameters: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return objective and length of steps by iteration, and the theorems (a `Job`)."""
    drawn = make_simulation(*sizes, random_state=seed)
    ranker = ThreeLevelRanker(**parameters)
    statistics = Statistics.from_annotations(drawn.annotations, "dense")
    loss = SquaredAUC().of(statistics, statistics.feature_scale())
    components = ranker._levels(statistics)
    solutions = {
        name: timed(
            partial(solver.solve, loss, components, tol=0.0, max_iter=iterations), process_time
        )
        for name, solver in _FIRST_ORDER.items()
    }
    solvers: dict[str, Any] = {
        name: {
            "objective": solution.history.objective.tolist(),
            "steps": np.sqrt(
                cast("StepHistory", solution.history).squared_steps.sum(axis=1)
            ).tolist(),
            "seconds": seconds,
        }
        for name, (solution, seconds) in solutions.items()
    }
    solvers[FAST] = _newton(loss, components)
    certificate = convergence_certificate(solutions[PAPER][0].history)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the bound is vacuous is one of the claims
        bound = generalization_bound(ranker.fit(drawn.annotations), drawn.annotations).value
    return {
        "solvers": solvers,
        "theorem_2": certificate.holds,
        "theorem_2_claims": list(certificate.claims),
        "theorem_3": bound,
        "n_users": drawn.annotations.n_users,
    }


def _newton(loss: QuadraticLoss, components: Sequence[Component]) -> dict[str, Any]:
    """Run it whole, and again for 1, 2, ... steps, because it records no iterates."""
    solution, seconds = timed(
        lambda: FastSolver().solve(loss, components, tol=1e-8, max_iter=_MOST_NEWTON_STEPS),
        process_time,
    )
    decomposition = FastSolver().decompose(loss)
    places = [
        FastSolver().solve(decomposition, components, tol=1e-8, max_iter=k).parts
        for k in range(1, solution.n_iter + 1)
    ]
    lengths = [
        float(np.sqrt(sum(np.sum((b - a) ** 2) for a, b in zip(before, after, strict=True))))
        for before, after in pairwise(places)
    ]
    return {
        "objective": solution.history.objective.tolist(),
        "steps": [float("nan"), *lengths],
        "seconds": seconds,
    }


def _summary(solvers: Facts) -> dict[str, Any]:
    objectives = {name: np.array(solver["objective"]) for name, solver in solvers.items()}
    lowest = min(float(values.min()) for values in objectives.values())
    near = {name: values <= lowest * (1 + _NEAR) for name, values in objectives.items()}
    steps_to_near = {k: int(np.argmax(v)) if v.any() else None for k, v in near.items()}
    taken = {name: len(values) - 1 for name, values in objectives.items()}
    seconds = {name: solver["seconds"] for name, solver in solvers.items()}
    increases = {
        name: int((np.diff(values) > _ROUNDING * values[0]).sum())
        for name, values in objectives.items()
    }
    authors = objectives[AUTHORS]
    small = np.abs(np.diff(authors)) <= _NEAR * authors[:-1]
    steps = np.array(solvers[PAPER]["steps"])
    return {
        "lowest": lowest,
        "gap": {name: float(v[-1] / lowest - 1) for name, v in objectives.items()},
        "steps_to_near": steps_to_near,
        "seconds": seconds,
        "seconds_to_near": {
            name: None if near is None else near / taken[name] * seconds[name]
            for name, near in steps_to_near.items()
        },
        "n_iterations": taken,
        "increases": increases,
        "authors_stop": int(np.argmax(small)) + 2 if small.any() else None,
        "objective_falls": not increases[PAPER],
        "steps_fall": float(np.mean(np.diff(steps) < 0)) if len(steps) > 1 else 1.0,
        "step_ratio": float(steps[-1] / steps.max()),
    }


def _sentence(facts: Facts) -> str:
    gap, taken, increases = facts["gap"], facts["n_iterations"], facts["increases"]
    falls = "falls" if facts["objective_falls"] else "does not fall"
    return (
        f"The objective of the algorithm as printed {falls} at every one of {taken[PAPER]:,} "
        f"iterations, and its steps get shorter in {facts['steps_fall']:.0%} of them. It then is "
        f"{100 * gap[PAPER]:.2g} % above the lowest objective known. The authors' program has "
        f"momentum: it is within {_NEAR:g} of the lowest after {_count(facts, AUTHORS)} "
        f"iterations, the printed algorithm after {_count(facts, PAPER)}. The program's objective "
        f"increases in {increases[AUTHORS]:,} of {taken[AUTHORS]:,} iterations. Theorem 2 is about "
        f"the algorithm as printed. Newton's method, our default, starts from a point of its own "
        f"and ends after {taken[FAST]} steps, {100 * gap[FAST]:.2g} % above the lowest."
    )


def _count(facts: Facts, name: str) -> str:
    near = facts["steps_to_near"][name]
    return f"more than {facts['n_iterations'][name]:,}" if near is None else f"{near:,}"


def _picture(solvers: Mapping[str, Any], facts: Facts) -> ReportPicture:
    objectives, lengths = {}, {}
    for name, solver in solvers.items():
        excess = np.maximum(np.array(solver["objective"]) / facts["lowest"] - 1, _FLOOR)
        steps = np.array(solver["steps"])
        objectives[name] = (np.maximum(np.arange(len(excess)), 0.7), excess)
        # A log scale has no zero.
        lengths[name] = (1 + np.arange(len(steps)), np.where(steps > 0, steps, np.nan))
    left = Panel(
        objectives,
        "a) Objective: excess over the lowest",
        "iteration (log scale)",
        "objective above the lowest, relative",
        log="xy",
    )
    right = Panel(
        lengths,
        "b) Length of each step",
        "iteration (log scale)",
        "length of the step in (θ, G, P)",
        log="xy",
    )
    caption = (
        "Objective (left; the start is drawn at 0.7) and length of the steps (right) by iteration, "
        "both log scales. Newton's method does not start from zero, as the others do. The "
        f"objective of the authors' program increases {facts['increases'][AUTHORS]:,} times."
    )
    return draw_panels("fig4", caption, [left, right], (10, 4.3))


def _table(facts: Facts) -> ReportTable:
    rows = [
        [
            name,
            f"{facts['n_iterations'][name]:,}",
            f"{facts['increases'][name]:,}",
            f"{facts['gap'][name]:.2e}",
            _count(facts, name),
            "-" if seconds is None else f"{seconds:.3g}",
        ]
        for name, seconds in facts["seconds_to_near"].items()
    ]
    stop = facts["authors_stop"]
    stops = "does not stop it" if stop is None else f"stops it after {stop:,} iterations"
    columns = ["solver", "iterations", "increases of the objective", "above the lowest"]
    return ReportTable(
        [*columns, f"iterations to {_NEAR:g} above", f"seconds to {_NEAR:g} above"],
        rows,
        "All four minimise the same objective, with the statistics in hand. Processor seconds are "
        "a share of those of all iterations. The authors' own criterion, a relative change of "
        f"{_NEAR:g}, {stops}.",
    )


def _how(setting: ExperimentSetting, parameters: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name} = {value:.3g}" for name, value in parameters.items())
    return (
        f"The simulation of Table 1 ({setting.scale.simulation}), all rows, with the penalties "
        f"chosen there: {shown or 'the defaults'}. Newton's method "
        "starts from the best of its own starts, so its first objective is lower; the others "
        "start from zero."
    )
