"""Figure 4: how the objective and the steps shrink, for the paper's solver and ours."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
from time import perf_counter
from typing import Any, cast

import numpy as np

from likeminds.components import Component
from likeminds.data.annotations import Annotations
from likeminds.datasets import make_simulation
from likeminds.losses import QuadraticLoss, SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture
from likeminds.paper.experiments.result_store import Job
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.tuned_penalties import simulation_parameters
from likeminds.paper.theory import convergence_certificate, generalization_bound
from likeminds.plots.figures import as_png, draw_line, name_axes, new_figure, put_legend_below
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.report.page import ReportTable
from likeminds.solvers import AcceleratedSolver, FastSolver, PaperSolver
from likeminds.solvers.paper import PaperHistory
from likeminds.solvers.solver import Parts, Solution

PAPER, ACCELERATED, FAST = "the paper's", "accelerated, ours", "Newton, ours (the default)"
# Objectives closer than this share to the lowest are drawn as if they had reached it.
_FLOOR = 1e-12
# How close to the lowest objective counts as there, for the table.
_NEAR = 1e-4
# Far more steps than Newton's method takes.
_MOST_NEWTON_STEPS = 100


def run(setting: ExperimentSetting) -> ReportPart:
    """Follow three solvers on the simulation, with the penalties of Table 1."""
    parameters = simulation_parameters(setting, setting.simulation().annotations)
    found = setting.store.one(
        Job(
            "fig4",
            follow,
            {
                "sizes": setting.scale.simulation.sizes,
                "iterations": setting.scale.iterations,
                "parameters": parameters,
                "seed": setting.seed,
            },
        )
    )
    facts = found | _summary(found)
    return ReportPart(
        key="fig4",
        title="Figure 4: convergence",
        found=_sentence(facts),
        pieces=[_picture(found, facts), _table(found, facts), _how(setting, parameters)],
        facts={name: value for name, value in facts.items() if name != "solvers"},
    )


def follow(
    sizes: Sequence[int], iterations: int, parameters: Mapping[str, Any], seed: int
) -> dict[str, Any]:
    """Return objective and length of steps by iteration, and what the theorems say (a `Job`)."""
    n_users, n_samples, n_features, n_positive = sizes
    drawn = make_simulation(n_users, n_samples, n_features, n_positive, random_state=seed)
    ranker = ThreeLevelRanker(**parameters)
    statistics = Statistics.from_annotations(drawn.annotations, "dense")
    loss = SquaredAUC().of(statistics, statistics.feature_scale())
    components = ranker._levels(statistics)
    paper, seconds = _time_solver(PaperSolver(), loss, components, tol=0.0, max_iter=iterations)
    history = cast("PaperHistory", paper.history)
    solvers = {
        PAPER: {
            "objective": history.objective.tolist(),
            "steps": np.sqrt(history.squared_steps.sum(axis=1)).tolist(),
            "seconds": seconds,
        }
    }
    quick, seconds = _time_solver(
        AcceleratedSolver(), loss, components, tol=1e-8, max_iter=iterations
    )
    solvers[ACCELERATED] = {
        "objective": quick.history.objective.tolist(),
        "steps": [],
        "seconds": seconds,
    }
    solvers[FAST] = _newton(loss, components)
    certificate = convergence_certificate(history)
    return {
        "solvers": solvers,
        "theorem_2": certificate.holds,
        "theorem_3": _bound(ranker, drawn.annotations),
        "n_users": n_users,
    }


def _time_solver(
    solver: Any, loss: QuadraticLoss, components: Sequence[Component], **options: Any
) -> tuple[Solution, float]:
    start = perf_counter()
    solution: Solution = solver.solve(loss, components, **options)
    return solution, perf_counter() - start


def _newton(loss: QuadraticLoss, components: Sequence[Component]) -> dict[str, Any]:
    """Run it whole, and again for 1, 2, ... steps: it keeps no record of where it was."""
    options = {"tol": 1e-8, "max_iter": _MOST_NEWTON_STEPS}
    solution, seconds = _time_solver(FastSolver(), loss, components, **options)
    decomposition = FastSolver().decompose(loss)
    places: list[Parts] = [
        FastSolver().solve_decomposed(decomposition, components, tol=1e-8, max_iter=k).parts
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


def _bound(ranker: ThreeLevelRanker, annotations: Annotations) -> float:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it is vacuous is what we are going to say
        return generalization_bound(ranker.fit(annotations), annotations).value


def _summary(found: Mapping[str, Any]) -> dict[str, Any]:
    objectives = {name: np.array(s["objective"]) for name, s in found["solvers"].items()}
    lowest = min(float(values.min()) for values in objectives.values())
    paper = np.array(found["solvers"][PAPER]["objective"])
    steps = np.array(found["solvers"][PAPER]["steps"])
    return {
        "lowest": lowest,
        "gap": {name: float(v[-1] / lowest - 1) for name, v in objectives.items()},
        "steps_to_near": {
            name: _first(values <= lowest * (1 + _NEAR)) for name, values in objectives.items()
        },
        "seconds": {name: s["seconds"] for name, s in found["solvers"].items()},
        "n_iterations": {name: len(v) - 1 for name, v in objectives.items()},
        "objective_falls": bool((np.diff(paper) <= 1e-12 * paper[0]).all()),
        "steps_fall": float(np.mean(np.diff(steps) < 0)) if len(steps) > 1 else 1.0,
        "step_ratio": float(steps[-1] / steps.max()),
    }


def _first(there: Any) -> int | None:
    return int(np.argmax(there)) if there.any() else None


def _sentence(facts: Mapping[str, Any]) -> str:
    gap, taken = facts["gap"][PAPER], facts["n_iterations"]
    falls = "falls" if facts["objective_falls"] else "does not fall"
    return (
        f"The objective of the paper's solver {falls} at every one of {taken[PAPER]:,} "
        f"iterations, and its steps get shorter in {facts['steps_fall']:.0%} of them; it then is "
        f"{100 * gap:.2g} % above the lowest objective known. Newton's method, our default, ends "
        f"after {taken[FAST]} steps, {100 * facts['gap'][FAST]:.2g} % above it, in "
        f"{facts['seconds'][FAST]:.2g} s instead of {facts['seconds'][PAPER]:.2g} s."
    )


def _picture(found: Mapping[str, Any], facts: Mapping[str, Any]) -> ReportPicture:
    figure = new_figure(10, 4.3, shown=False)
    left, right = figure.subplots(1, 2)
    for place, (name, solver) in enumerate(found["solvers"].items()):
        excess = np.maximum(np.array(solver["objective"]) / facts["lowest"] - 1, _FLOOR)
        iterations = np.arange(len(excess))
        mark = max(1, len(excess) // 8)
        draw_line(left, place, np.maximum(iterations, 0.7), excess, name, markevery=mark)
        if solver["steps"]:
            steps = np.array(solver["steps"])
            steps = np.where(steps > 0, steps, np.nan)  # a log scale has no zero
            mark = max(1, len(steps) // 8)
            draw_line(right, place, 1 + np.arange(len(steps)), steps, name, markevery=mark)
    for axes in (left, right):
        axes.set_xscale("log")
        axes.set_yscale("log")
    name_axes(
        left,
        title=f"a) The paper's solver ends {100 * facts['gap'][PAPER]:.2g} % above the lowest",
        x="iteration (log scale)",
        y="objective above the lowest, relative",
    )
    name_axes(
        right,
        title="b) Length of each step",
        x="iteration (log scale)",
        y="length of the step in (θ, G, P)",
    )
    put_legend_below(figure, left)
    return ReportPicture(
        "fig4",
        as_png(figure),
        "Objective (left) and length of the steps (right) by iteration, both log scales. The "
        "accelerated solver keeps no record of its steps.",
    )


def _table(found: Mapping[str, Any], facts: Mapping[str, Any]) -> ReportTable:
    rows = []
    for name in found["solvers"]:
        near = facts["steps_to_near"][name]
        rows.append(
            [
                name,
                f"{facts['n_iterations'][name]:,}",
                f"{facts['seconds'][name]:.3g}",
                f"{facts['gap'][name]:.2e}",
                "never" if near is None else f"{near:,}",
            ]
        )
    return ReportTable(
        ["solver", "iterations", "seconds", "above the lowest", f"iterations to {_NEAR:g} above"],
        rows,
        "All three minimise the same objective, with the statistics in hand.",
    )


def _how(setting: ExperimentSetting, parameters: Mapping[str, Any]) -> str:
    shown = ", ".join(f"{name} = {value:.3g}" for name, value in parameters.items())
    return (
        f"The simulation of Table 1 ({setting.scale.simulation}), all rows, with the penalties "
        f"chosen there: {shown or 'the defaults'}. The paper's solver starts from zero; Newton's "
        "method from the best of its own starts, so that its first objective is lower."
    )
