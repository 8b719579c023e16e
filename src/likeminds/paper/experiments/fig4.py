"""Figure 4: objective and steps, for the printed algorithm, its authors' program and ours."""

import warnings
from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds.comparing.runs import Job
from likeminds.components import Component
from likeminds.datasets import make_simulation
from likeminds.losses import QuadraticLoss, SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    draw_panels,
    make_part,
)
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.timing import timed
from likeminds.paper.experiments.trials import simulation_parameters
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.solvers import (
    AUTHORS_PROGRAM,
    AcceleratedSolver,
    FastSolver,
    PaperSolver,
    Solver,
)
from likeminds.theory import convergence_certificate, generalization_bound

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PAPER, AUTHORS = "the paper's, as printed", "the authors' program"
ACCELERATED, FAST = "accelerated, ours", "Newton, ours (the default)"
_FIRST_ORDER: Mapping[str, Solver] = {
    PAPER: PaperSolver(),
    AUTHORS: AUTHORS_PROGRAM,
    ACCELERATED: AcceleratedSolver(),
}
# Objectives closer than this share to the lowest are drawn as if they had reached it.
_FLOOR = 1e-12
# The distance from the lowest objective that counts as zero in the table.
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
    figures = {"fig4": _picture(solvers, facts)}
    return make_part("fig4", setting, facts, figures, parameters=parameters, near=f"{_NEAR:g}")


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
            "steps": np.sqrt(solution.history.squared_steps.sum(axis=1)).tolist(),
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
    """Run it whole, and again for 1, 2, ... steps, because it does not record iterates."""
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


def _picture(solvers: Mapping[str, Any], facts: Facts) -> "Figure":
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
    return draw_panels([left, right], (10, 4.3))
