"""Table 2: running time with and without the efficient evaluation of the AUC loss."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.components import Component, Consensus, Group, Personal
from likeminds.data.annotations import Annotations
from likeminds.datasets import make_simulation
from likeminds.losses import SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.evaluations import (
    ThroughRows,
    UserRows,
    pair_bytes,
    pair_differences,
    pair_gradient,
    people_of,
)
from likeminds.paper.experiments.published import ROOM, SECONDS_ORIGINAL, SECONDS_OURS, SHARES
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture
from likeminds.paper.experiments.result_store import Job
from likeminds.paper.experiments.scale import SCALES
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.timing import in_turns, seconds
from likeminds.plots.figures import as_png, draw_line, name_axes, new_figure, put_legend_below
from likeminds.report.page import ReportTable
from likeminds.solvers import PaperSolver

WAYS = ("pairs", "rows", "statistics")
N_ITER = 50
N_GROUPS = 5
# lambda1, lambda2, lambda3 of the iterations that are timed.
PENALTIES = (1.0, 0.1, 0.05)


def run(setting: ExperimentSetting) -> ReportPart:
    """Time everything at 20 to 100 % of the data, one job at a time."""
    scale = setting.scale
    measured = [
        setting.store.one(
            Job(
                f"table2-{share}",
                measure_share,
                {
                    "sizes": scale.pairs.sizes,
                    "share": share,
                    "rounds": scale.rounds,
                    "seed": setting.seed,
                },
            )
        )
        for share in SHARES
    ]
    facts = _facts(measured) | {"paper_size": scale.pairs == SCALES["paper"].pairs}
    return ReportPart(
        key="table2",
        title="Table 2: what the efficient evaluation saves",
        found=_sentence(facts),
        pieces=[_table(measured), _picture(facts), _how(setting)],
        facts=facts,
    )


def measure_share(sizes: Sequence[int], share: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure a share of the simulation (a `Job`)."""
    n_users, n_samples, n_features, n_positive = sizes
    drawn = make_simulation(n_users, n_samples, n_features, n_positive, random_state=seed)
    return measure(share_of_each(drawn.annotations, share), rounds)


def share_of_each(annotations: Annotations, share: int) -> Annotations:
    """Keep a share, in per cent, of everybody's positive and negative rows."""
    keep = np.zeros(len(annotations), dtype=bool)
    stratum = 2 * annotations.user_codes + annotations.labels
    for rows in np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1]):
        keep[rows[: max(1, len(rows) * share // 100)]] = True
    return annotations[keep]


def measure(annotations: Annotations, rounds: int) -> dict[str, Any]:
    """Return seconds per gradient, and of some iterations, by way; and the bytes of all pairs."""
    people = people_of(annotations)
    statistics = SquaredAUC().of(Statistics.from_annotations(annotations, "dense"))
    through_rows = ThroughRows.of(statistics, people)
    W = np.random.default_rng(0).normal(size=statistics.shape)
    gradient = in_turns(
        {
            "rows": lambda: through_rows.gradient(W),
            "rows, one thread": lambda: _alone(lambda: through_rows.gradient(W)),
            "statistics": lambda: _alone(lambda: statistics.gradient(W)),
        },
        rounds,
    )
    gradient["rows"] = min(gradient["rows"], gradient.pop("rows, one thread"))
    gradient["pairs"] = _pairs_seconds(people, W)
    lambda1, lambda2, lambda3 = PENALTIES
    n_groups = min(N_GROUPS, *statistics.shape)
    components: list[Component] = [Consensus(lambda1), Group(lambda2, n_groups), Personal(lambda3)]
    iterate = partial(PaperSolver().solve, components=components, tol=0.0, max_iter=N_ITER)
    settled = iterate(statistics).history
    n_gradients = 1 + N_ITER + round(np.log2(settled.step_constant[-1]))  # type: ignore[attr-defined]
    iterations = in_turns(
        {"rows": lambda: iterate(through_rows), "statistics": lambda: iterate(statistics)},
        max(1, rounds // 2),
    )
    iterations["pairs"] = n_gradients * gradient["pairs"]
    return {"gradient": gradient, "iterations": iterations, "bytes": pair_bytes(people)}


def _pairs_seconds(people: list[UserRows], W: Float) -> float:
    """Return the time of loss and gradient of everybody, their pairs being in memory."""
    total = 0.0
    for person, w in zip(people, W, strict=True):
        differences = pair_differences(person)
        work = partial(pair_gradient, differences, w)
        total += min(seconds(work), seconds(work), seconds(partial(_alone, work)))
    return total


def _alone(work: Callable[[], Any]) -> None:
    """Work with one BLAS thread, as the solvers do; on a busy machine several are slower."""
    with one_blas_thread():
        work()


def _facts(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    iterations = {way: [m["iterations"][way] for m in measured] for way in WAYS}
    return {
        "shares": list(SHARES),
        "iterations": iterations,
        "speed_up": [p / r for p, r in zip(iterations["pairs"], iterations["rows"], strict=True)],
        "speed_up_statistics": [
            p / s for p, s in zip(iterations["pairs"], iterations["statistics"], strict=True)
        ],
        "bytes": [m["bytes"] for m in measured],
    }


def _sentence(facts: dict[str, Any]) -> str:
    few, many = facts["speed_up"][0], facts["speed_up"][-1]
    return (
        f"Proposition 1 makes {N_ITER} iterations {few:.0f} times faster at {SHARES[0]} % of the "
        f"data and {many:.0f} times at {SHARES[-1]} % (paper: 6 to 22 times, at 20 to 80 %). "
        "Statistics, which the paper does not use, make them "
        f"{facts['speed_up_statistics'][0]:,.0f} and {facts['speed_up_statistics'][-1]:,.0f} times "
        "faster."
    )


def _table(measured: Sequence[dict[str, Any]]) -> ReportTable:
    rows = []
    quoted = zip(SHARES, measured, SECONDS_ORIGINAL, SECONDS_OURS, strict=True)
    for share, m, original, ours in quoted:
        times, size = m["iterations"], m["bytes"]
        rows.append(
            [
                f"{share} %",
                "-" if original is None else f"{original:.2f}",
                f"{ours:.2f}",
                "-" if original is None else f"{original / ours:.1f}",
                *(f"{times[way]:.3g}" for way in WAYS),
                f"{times['pairs'] / times['rows']:.1f}",
                f"{times['pairs'] / times['statistics']:,.0f}",
                f"{size / 2**30:.2f}" + ("" if size <= ROOM else " (over 24)"),
            ]
        )
    columns = ["data", "paper: original, s", "paper: theirs, s", "paper: ratio"]
    columns += ["pairs, s", "Proposition 1, s", "statistics, s"]
    columns += ["pairs / Proposition 1", "pairs / statistics", "pairs at once, GiB"]
    return ReportTable(
        columns,
        rows,
        f"Seconds of {N_ITER} iterations of the published algorithm. The paper's are from another "
        "machine and another number of iterations: only how they grow is comparable.",
    )


def _picture(facts: dict[str, Any]) -> ReportPicture:
    grown = {way: times[-1] / times[0] for way, times in facts["iterations"].items()}
    figure = new_figure(7, 4, shown=False)
    axes = figure.subplots()
    names = ("all pairs", "Proposition 1, through the rows", "sufficient statistics")
    for place, (way, name) in enumerate(zip(WAYS, names, strict=True)):
        draw_line(axes, place, facts["shares"], facts["iterations"][way], name)
    axes.set_yscale("log")
    axes.set_xticks(SHARES)
    name_axes(
        axes,
        title=f"Five times the data: pairs take {grown['pairs']:.0f} times as long, "
        f"statistics {grown['statistics']:.1f} times",
        x="share of the data, per cent",
        y=f"seconds of {N_ITER} iterations",
    )
    put_legend_below(figure, axes)
    return ReportPicture("table2", as_png(figure), "Running time by share of the data, log scale.")


def _how(setting: ExperimentSetting) -> str:
    return (
        f"The simulation with {setting.scale.pairs}. Pairs are made one person at a time, outside "
        "of the clock, because those of everybody need not fit into memory. Their iterations are "
        "computed, as seconds of a gradient times the gradients that the same iterations took: "
        "that favours the pairs. Everything else is measured, medians of "
        f"{setting.scale.rounds} rounds in turns, with nothing else running from this program."
    )
