"""Figure 4: how the objective and the steps shrink, for the paper's solver and ours."""

import warnings
from collections.abc import Mapping, Sequence
from itertools import pairwise
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
from likeminds.solvers import AcceleratedSolver, FastSolver, PaperHistory, PaperSolver

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
    n_users, n_samples, n_features, n_positive = sizes
    drawn = make_simulation(n_users, n_samples, n_features, n_positive, random_state=seed)
    ranker = ThreeLevelRanker(**parameters)
    statistics = Statistics.from_annotations(drawn.annotations, "dense")
    loss = SquaredAUC().of(statistics, statistics.feature_scale())
    components = ranker._levels(statistics)
    paper, seconds = timed(
        lambda: PaperSolver().solve(loss, components, tol=0.0, max_iter=iterations)
    )
    history = cast("PaperHistory", paper.history)
    solvers: dict[str, Any] = {
        PAPER: {
            "objective": history.objective.tolist(),
            "steps": np.sqrt(history.squared_steps.sum(axis=1)).tolist(),
            "seconds": seconds,
        }
    }
    quick, seconds = timed(
        lambda: AcceleratedSolver().solve(loss, components, tol=1e-8, max_iter=iterations)
    )
    objective = quick.history.objective.tolist()
    solvers[ACCELERATED] = {"objective": objective, "steps": [], "seconds": seconds}
    solvers[FAST] = _newton(loss, components)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that the bound is vacuous is one of the claims
        bound = generalization_bound(ranker.fit(drawn.annotations), drawn.annotations).value
    return {
        "solvers": solvers,
        "theorem_2": convergence_certificate(history).holds,
        "theorem_3": bound,
        "n_users": n_users,
    }


def _newton(loss: QuadraticLoss, components: Sequence[Component]) -> dict[str, Any]:
    """Run it whole, and again for 1, 2, ... steps, because it records no iterates."""
    solution, seconds = timed(
        lambda: FastSolver().solve(loss, components, tol=1e-8, max_iter=_MOST_NEWTON_STEPS)
    )
    decomposition = FastSolver().decompose(loss)
    places = [
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


def _summary(solvers: Facts) -> dict[str, Any]:
    objectives = {name: np.array(solver["objective"]) for name, solver in solvers.items()}
    lowest = min(float(values.min()) for values in objectives.values())
    near = {name: values <= lowest * (1 + _NEAR) for name, values in objectives.items()}
    paper, steps = objectives[PAPER], np.array(solvers[PAPER]["steps"])
    return {
        "lowest": lowest,
        "gap": {name: float(v[-1] / lowest - 1) for name, v in objectives.items()},
        "steps_to_near": {k: int(np.argmax(v)) if v.any() else None for k, v in near.items()},
        "seconds": {name: solver["seconds"] for name, solver in solvers.items()},
        "n_iterations": {name: len(v) - 1 for name, v in objectives.items()},
        "objective_falls": bool((np.diff(paper) <= 1e-12 * paper[0]).all()),
        "steps_fall": float(np.mean(np.diff(steps) < 0)) if len(steps) > 1 else 1.0,
        "step_ratio": float(steps[-1] / steps.max()),
    }


def _sentence(facts: Facts) -> str:
    gap, taken = facts["gap"], facts["n_iterations"]
    falls = "falls" if facts["objective_falls"] else "does not fall"
    return (
        f"The objective of the paper's solver {falls} at every one of {taken[PAPER]:,} "
        f"iterations, and its steps get shorter in {facts['steps_fall']:.0%} of them; it then is "
        f"{100 * gap[PAPER]:.2g} % above the lowest objective known. Newton's method, our default, "
        f"ends after {taken[FAST]} steps, {100 * gap[FAST]:.2g} % above it, in "
        f"{facts['seconds'][FAST]:.2g} s instead of {facts['seconds'][PAPER]:.2g} s."
    )


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
        f"a) The paper's solver ends {100 * facts['gap'][PAPER]:.2g} % above the lowest",
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
        "Objective (left) and length of the steps (right) by iteration, both log scales. The "
        "accelerated solver records no steps."
    )
    return draw_panels("fig4", caption, [left, right], (10, 4.3))


def _table(facts: Facts) -> ReportTable:
    rows = [
        [
            name,
            f"{facts['n_iterations'][name]:,}",
            f"{facts['seconds'][name]:.3g}",
            f"{facts['gap'][name]:.2e}",
            "never" if near is None else f"{near:,}",
        ]
        for name, near in facts["steps_to_near"].items()
    ]
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
        "method from the best of its own starts, so its first objective is lower."
    )
