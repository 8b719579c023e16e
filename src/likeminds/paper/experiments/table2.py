"""Table 2: running time with and without the efficient evaluation of the AUC loss."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from time import process_time
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.map_reduce import one_blas_thread
from likeminds.comparing.runs import Job
from likeminds.components import Component, Consensus, Group, Personal
from likeminds.data.annotations import Annotations
from likeminds.datasets import make_simulation
from likeminds.losses import QuadraticLoss, SquaredAUC
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.published import SHARES
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    draw_panels,
    make_part,
)
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
from likeminds.paper.experiments.timing import in_turns, seconds
from likeminds.solvers import AUTHORS_PROGRAM, PaperSolver

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# The evaluations of the loss.
EVALUATIONS = {
    "pairs": "all pairs",
    "rows": "Proposition 1, through the rows",
    "statistics": "sufficient statistics",
}
# The programs whose iterations are timed.
PROGRAMS = {**EVALUATIONS, "authors": "the authors' program"}
N_ITER = 50
N_GROUPS = 5
# lambda1, lambda2, lambda3 of the iterations that are timed.
PENALTIES = (1.0, 0.1, 0.05)


@dataclass(frozen=True)
class UserRows:
    """The rows of one user, as a contiguous array, and which are positive."""

    rows: Float
    positive: Bool


def rows_by_user(annotations: Annotations) -> list[UserRows]:
    """Return the rows of each user."""
    order, offsets = annotations.user_index()
    features = annotations.X[order].astype(np.float64, copy=False)
    labels = annotations.labels[order]
    return [UserRows(features[begin:end], labels[begin:end]) for begin, end in pairwise(offsets)]


@dataclass(frozen=True)
class ThroughRows(QuadraticLoss):
    """Proposition 1 as in the paper: two products with each user's rows, kept in memory."""

    users: list[UserRows]

    @classmethod
    def of(cls, loss: QuadraticLoss, users: list[UserRows]) -> "ThroughRows":
        """Take b and c from a loss that has them, and the rows for all products."""
        return cls(**vars(loss), users=users)

    def apply(self, W: Float) -> Float:
        """Return A_i w_i = X_i'L_i X_i w_i for every user."""
        product = np.empty(self.shape)
        for i, user in enumerate(self.users):
            scores, positive = user.rows @ W[i], user.positive
            n_positive = int(positive.sum())
            n_negative = len(positive) - n_positive
            mean_positive = scores[positive].sum() / n_positive
            mean_negative = (scores.sum() - mean_positive * n_positive) / n_negative
            liked, disliked = (scores - mean_negative) / n_positive, scores - mean_positive
            product[i] = np.where(positive, liked, disliked / n_negative) @ user.rows
        return product


def pair_differences(user: UserRows) -> Float:
    """Return x_p - x_q for every positive p and negative q, shape (n+ n-, d)."""
    positive, negative = user.rows[user.positive], user.rows[~user.positive]
    return np.asarray((positive[:, None, :] - negative[None, :, :]).reshape(-1, positive.shape[1]))


def pair_gradient(differences: Float, w: Float) -> tuple[float, Float]:
    """Return the loss and its gradient by their definitions, pair by pair."""
    residual = 1.0 - differences @ w
    return 0.5 * float(residual @ residual) / len(residual), -(residual @ differences) / len(
        residual
    )


def run(setting: ExperimentSetting) -> ReportPart:
    """Measure times at 20 to 100 % of the data, one job at a time."""
    scale = setting.scale
    sizes = {"sizes": tuple(scale.pairs), "rounds": scale.rounds, "seed": setting.seed}
    measured = [
        setting.store.one(Job(f"table2-{share}", measure_share, {"share": share, **sizes}))
        for share in SHARES
    ]
    facts = _facts(measured) | {"paper_size": scale.pairs == SCALES["paper"].pairs}
    return make_part("table2", setting, facts, {"table2": _picture(facts)}, n_iter=N_ITER)


def measure_share(sizes: Sequence[int], share: int, rounds: int, seed: int) -> dict[str, Any]:
    """Measure a share of the simulation (a `Job`)."""
    drawn = make_simulation(*sizes, random_state=seed)
    return measure(share_of_each(drawn.annotations, share), rounds)


def share_of_each(annotations: Annotations, share: int) -> Annotations:
    """Select a share, in per cent, of each user's positive and negative rows."""
    keep = np.zeros(len(annotations), dtype=bool)
    stratum = 2 * annotations.user_codes + annotations.labels
    for rows in np.split(np.argsort(stratum, kind="stable"), np.cumsum(np.bincount(stratum))[:-1]):
        keep[rows[: max(1, len(rows) * share // 100)]] = True
    return annotations[keep]


def measure(annotations: Annotations, rounds: int) -> dict[str, Any]:
    """Return seconds per gradient and of some iterations, and the bytes of all pairs."""
    users = rows_by_user(annotations)
    statistics = SquaredAUC().of(Statistics.from_annotations(annotations, "dense"))
    through_rows = ThroughRows.of(statistics, users)
    W = np.random.default_rng(0).normal(size=statistics.shape)
    gradient = in_turns(
        {
            "rows": lambda: _one_thread(lambda: through_rows.gradient(W)),
            "statistics": lambda: _one_thread(lambda: statistics.gradient(W)),
        },
        rounds,
        process_time,
    )
    gradient["pairs"] = _pairs_seconds(users, W)
    lambda1, lambda2, lambda3 = PENALTIES
    n_groups = min(N_GROUPS, *statistics.shape)
    components: list[Component] = [Consensus(lambda1), Group(lambda2, n_groups), Personal(lambda3)]
    iterate = partial(PaperSolver().solve, components=components, tol=0.0, max_iter=N_ITER)
    steps = iterate(statistics).history.step_constant
    n_gradients = 1 + N_ITER + round(np.log2(steps[-1]))
    iterations = in_turns(
        {
            "rows": lambda: iterate(through_rows),
            "statistics": lambda: iterate(statistics),
            "authors": lambda: AUTHORS_PROGRAM.solve(
                statistics, components, tol=0.0, max_iter=N_ITER
            ),
        },
        max(1, rounds // 2),
        process_time,
    )
    iterations["pairs"] = n_gradients * gradient["pairs"]
    pairs = sum(int(each.positive.sum()) * int((~each.positive).sum()) for each in users)
    n_bytes = 8 * statistics.shape[1] * pairs
    return {"gradient": gradient, "iterations": iterations, "bytes": n_bytes}


def _pairs_seconds(users: list[UserRows], W: Float) -> float:
    """Return the time of all losses and gradients, with the pairs in memory."""
    total = 0.0
    for user, w in zip(users, W, strict=True):
        work = partial(_one_thread, partial(pair_gradient, pair_differences(user), w))
        total += min(seconds(work, process_time) for _ in range(3))
    return total


def _one_thread(work: Callable[[], object]) -> None:
    """Work with one BLAS thread, as the solvers do."""
    with one_blas_thread():
        work()


def _facts(measured: Sequence[dict[str, Any]]) -> dict[str, Any]:
    iterations = {each: [m["iterations"][each] for m in measured] for each in PROGRAMS}
    ratios = {
        each: [p / t for p, t in zip(iterations["pairs"], times, strict=True)]
        for each, times in iterations.items()
    }
    return {
        "shares": list(SHARES),
        "iterations": iterations,
        "speed_up": ratios["rows"],
        "speed_up_statistics": ratios["statistics"],
        "speed_up_authors": ratios["authors"],
        "bytes": [m["bytes"] for m in measured],
    }


def _picture(facts: Facts) -> "Figure":
    times = facts["iterations"]
    grown = {each: taken[-1] / taken[0] for each, taken in times.items()}
    panel = Panel(
        {name: (facts["shares"], times[each]) for each, name in PROGRAMS.items()},
        f"Five times the data: pairs take {grown['pairs']:.0f} times as long, "
        f"statistics {grown['statistics']:.1f} times",
        "share of the data, per cent",
        f"processor seconds of {N_ITER} iterations",
        log="y",
        ticks=SHARES,
    )
    return draw_panels([panel], (8.5, 4))
