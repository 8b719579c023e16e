"""The paper's Table 2: pairs one by one, Proposition 1 through the rows, and the statistics."""

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from benchmarks.floor import MIDDLE, N_GROUPS, components_of
from benchmarks.results import Result, Table
from likeminds import Annotations, Statistics, make_simulation
from likeminds._threads import one_blas_thread
from likeminds.experiments.evaluations import (
    Person,
    ThroughRows,
    pair_bytes,
    pair_differences,
    pair_gradient,
    people_of,
)
from likeminds.experiments.timing import in_turns, seconds
from likeminds.losses import squared_auc
from likeminds.rows import Float
from likeminds.solvers import PaperSolver

SHARES = (20, 40, 60, 80, 100)
# Seconds, from the paper; its own machine had no room for the pairs of all samples.
PAPER_PAIRS = (18.57, 74.22, 151.86, 268.55, None)
PAPER_EFFICIENT = (3.06, 5.50, 8.65, 12.46, 15.82)
N_ITER = 50
ROOM = 24 * 2**30


def run(quick: bool) -> Result:
    """Time one gradient, and some iterations of the published solver, three ways."""
    size = (20, 100, 10, 10) if quick else (100, 5000, 80, 100)
    annotations = make_simulation(*size, random_state=0).annotations
    measured = [
        _measure(_share_of_each(annotations, share), repeats=1 if quick else 5) for share in SHARES
    ]
    return Result(
        title="The paper's Table 2",
        compares=(
            "Shares of the samples of the paper's simulation: seconds per gradient through all "
            "pairs as the definition says, through the rows (Proposition 1), and through the "
            f"statistics, and seconds of {N_ITER} iterations of the published solver."
        ),
        tables=[_gradients(measured), _iterations(measured)],
        goals=[],
        notes=[
            "Pairs are made one person at a time, outside of the clock, because those of "
            "everybody do not fit; what they would take at once is in the table.",
            "Pairs and rows are timed with all BLAS threads and with one: the faster counts.",
            f"The {N_ITER} iterations through pairs are computed: seconds per gradient times the "
            "number of gradients that the same iterations took, and nothing for the solver's own "
            "work, which favours the pairs. The others are measured.",
            "The paper's seconds are quoted from it: another machine and another number of "
            "iterations, so only how they grow is comparable.",
        ],
        series={
            "shares": list(SHARES),
            "gradient": {
                way: [m["gradient"][way] for m in measured]
                for way in ("pairs", "rows", "statistics")
            },
        },
    )


def _share_of_each(annotations: Annotations, share: int) -> Annotations:
    """Keep a share of everybody's positive and negative rows."""
    keep = np.zeros(len(annotations), dtype=bool)
    stratum = 2 * annotations.user_codes + annotations.labels
    for rows in np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1]):
        keep[rows[: max(1, len(rows) * share // 100)]] = True
    return annotations[keep]


def _measure(annotations: Annotations, repeats: int) -> dict:
    people = people_of(annotations)
    statistics = squared_auc(Statistics.from_annotations(annotations, "dense"))
    through_rows = ThroughRows.of(statistics, people)
    W = np.random.default_rng(0).normal(size=statistics.shape)
    gradient = in_turns(
        {
            "rows": lambda: through_rows.gradient(W),
            "rows, one thread": lambda: _alone(lambda: through_rows.gradient(W)),
            "statistics": lambda: _alone(lambda: statistics.gradient(W)),
        },
        repeats,
    )
    gradient["rows"] = min(gradient["rows"], gradient.pop("rows, one thread"))
    gradient["pairs"] = _pairs_seconds(people, W)
    components = components_of(MIDDLE, N_GROUPS)
    solution = PaperSolver().solve(statistics, components, tol=0.0, max_iter=N_ITER)
    n_gradients = 1 + N_ITER + round(np.log2(solution.history.step_constant[-1]))
    iterations = in_turns(
        {
            "rows": lambda: PaperSolver().solve(through_rows, components, tol=0, max_iter=N_ITER),
            "statistics": lambda: PaperSolver().solve(
                statistics, components, tol=0, max_iter=N_ITER
            ),
        },
        max(1, repeats // 2),
    )
    iterations["pairs"] = n_gradients * gradient["pairs"]
    return {"gradient": gradient, "iterations": iterations, "bytes": pair_bytes(people)}


def _pairs_seconds(people: list[Person], W: Float) -> float:
    """Return the time of loss and gradient of everybody, their pairs being in memory."""
    total = 0.0
    for person, w in zip(people, W, strict=True):
        differences = pair_differences(person)
        work = partial(pair_gradient, differences, w)
        total += min(seconds(work), seconds(work), seconds(lambda work=work: _alone(work)))
    return total


def _alone(work: Callable[[], Any]) -> None:
    """Work with one BLAS thread, as the solvers do; on a busy machine several are slower."""
    with one_blas_thread():
        work()


def _gradients(measured: list[dict]) -> Table:
    rows = []
    for share, m in zip(SHARES, measured, strict=True):
        gradient, size = m["gradient"], m["bytes"]
        fits = f"{size / 2**30:.2f}" + ("" if size <= ROOM else " (does not fit)")
        ratios = [gradient["pairs"] / gradient[way] for way in ("rows", "statistics")]
        rows.append(
            [f"{share} %", fits, *(gradient[w] for w in ("pairs", "rows", "statistics")), *ratios]
        )
    columns = ["samples", "pairs, GiB", "gradient, pairs, s", "rows, s", "statistics, s"]
    return {"columns": [*columns, "pairs / rows", "pairs / statistics"], "rows": rows}


def _iterations(measured: list[dict]) -> Table:
    rows = []
    quoted = zip(SHARES, measured, PAPER_PAIRS, PAPER_EFFICIENT, strict=True)
    for share, m, paper_pairs, paper_efficient in quoted:
        times = m["iterations"]
        ratios = [times["pairs"] / times[way] for way in ("rows", "statistics")]
        paper = [paper_pairs, paper_efficient, paper_pairs and paper_pairs / paper_efficient]
        rows.append([f"{share} %", *(times[w] for w in ("pairs", "rows", "statistics")), *ratios])
        rows[-1].extend(paper)
    columns = ["samples", f"{N_ITER} iterations, pairs, s", "rows, s", "statistics, s"]
    columns += ["pairs / rows", "pairs / statistics"]
    columns += ["paper: original, s", "paper: theirs, s", "paper: ratio"]
    return {"columns": columns, "rows": rows}
