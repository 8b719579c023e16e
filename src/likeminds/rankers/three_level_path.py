"""Candidates of the three-level ranker, on regularisation paths with warm starts.

All candidates share one eigendecomposition of the training statistics of a fold.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, groupby, product
from typing import TYPE_CHECKING

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds.components import Component
from likeminds.losses import QuadraticLoss
from likeminds.losses.statistics import Statistics
from likeminds.rankers.candidates import Candidate, FromStatistics, S, Split, linear_scores
from likeminds.rankers.ranker import both_callbacks
from likeminds.solvers import FastSolver
from likeminds.solvers.newton_three_level import Eigendecomposition
from likeminds.solvers.solver import Parts

if TYPE_CHECKING:
    from likeminds.rankers.three_level import ThreeLevelRanker

# The default grid: penalties as multiples of the defaults of ThreeLevelRanker.
_ALPHA_CONSENSUS = (1e-4, 1e-2)
_ALPHA_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_SHRINKAGE_SHARE = (0.0, 0.03, 0.1, 0.3)
_N_GROUPS = (1, 2, 4)
# Without groups; the last leaves only the consensus.
_ALPHA_WITHOUT_GROUPS_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0, 1000.0)
# Candidates are compared at this tolerance, or after this many steps.
_TOL, _STEPS = 1e-2, 20


def default_grid(alpha_group: float) -> list[Candidate]:
    """Return candidates around a penalty, from separate rankings to the consensus only."""
    without = product(_ALPHA_CONSENSUS, _ALPHA_WITHOUT_GROUPS_TIMES, (0.0,), (0,))
    with_groups = product(_ALPHA_CONSENSUS, _ALPHA_GROUP_TIMES, _SHRINKAGE_SHARE, _N_GROUPS)
    return [
        {
            "alpha_consensus": alpha,
            "alpha_group": times * alpha_group,
            "group_shrinkage": share * times * alpha_group,
            "n_groups": n_groups,
        }
        for alpha, times, share, n_groups in chain(without, with_groups)
    ]


@dataclass(frozen=True)
class NewtonSearch(FromStatistics[S]):
    """The search for rankers with `FastSolver`, with a path for each number of groups."""

    def paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:
        """Divide the remaining candidates into a path for each number of groups."""
        by_groups: dict[int | None, list[int]] = {}
        for c in alive.tolist():
            by_groups.setdefault(candidates[c].get("n_groups"), []).append(c)
        return list(by_groups.values())

    def _trial(self, **values: object) -> S:
        return super()._trial(**{"tol": _TOL, "max_iter": _STEPS} | values)

    def _prepare(self, loss: QuadraticLoss) -> Eigendecomposition:
        return FastSolver().decompose(loss)


@dataclass(frozen=True)
class ThreeLevels(NewtonSearch["ThreeLevelRanker"]):
    """The search for the three-level ranker, on paths of neighbours from few groups to many."""

    def arrange(self, candidates: list[Candidate], statistics: Statistics) -> list[Candidate]:
        """Return the admissible candidates, sorted into a path of neighbours."""
        usual = self.ranker._usual_alpha(statistics)
        most = min(statistics.n_users, statistics.n_features)
        defaults = self.ranker.get_params(deep=False)
        admissible = []
        for candidate in candidates:
            values = defaults | candidate
            alpha = usual if values["alpha_group"] is None else values["alpha_group"]
            if values["group_shrinkage"] <= alpha and (values["n_groups"] or 0) <= most:
                admissible.append(candidate)
        if candidates and not admissible:
            raise ValueError(
                "No candidate of param_grid is admissible. group_shrinkage must be at most "
                f"alpha_group, and n_groups at most {most}."
            )
        return _snake(sorted(admissible, key=self.simplicity), self.simplicity)

    def simplicity(self, candidate: Candidate) -> tuple[float, ...]:
        """Return a key that sorts candidates: few groups and large penalties first."""
        alpha = candidate.get("alpha_group")
        alpha = 1.0 if alpha is None else alpha
        return (
            candidate.get("n_groups") or 0,
            -candidate.get("alpha_consensus", 0.0),
            -candidate.get("alpha_personal", 0.0),
            -candidate.get("group_shrinkage", 0.0) / (alpha or 1.0),
            -alpha,
        )

    def _held_out_scores(self, split: Split, path: Sequence[Candidate]) -> Iterator[Float]:
        """Fit each candidate from its predecessor's solution, in shared coordinates.

        If no user has a personal level, the solution is reused for all larger penalties on it.
        """
        ranker: ThreeLevelRanker = self._trial()
        solver = FastSolver(n_starts=1)
        last: Parts | None = None
        known: dict[tuple[Component, ...], tuple[float, Float]] = {}
        for candidate in path:
            ranker.set_params(**candidate)
            ranker.scale_, decomposition = split.loss_of(ranker, self._prepare)
            levels = ranker._levels(split.rest)
            others = tuple(levels[:-1])
            silencing, scores = known.get(others, (np.inf, np.empty(0)))
            if ranker.alpha_personal < silencing:
                with both_callbacks(ranker, ranker.callback) as callback:
                    found = solver.descend(
                        decomposition,
                        levels,
                        start=last,
                        tol=ranker.tol,
                        max_iter=ranker.max_iter,
                        callback=callback,
                    )
                if found.interrupted:
                    raise KeyboardInterrupt
                last = found.parts
                ranker._set_parts(last, split.rest.has_pairs)
                scores = linear_scores(ranker, split)
                known[others] = found.silencing, scores
            yield scores


def _snake(
    ordered: list[Candidate], simplicity: Callable[[Candidate], tuple[float, ...]]
) -> list[Candidate]:
    """Reverse every other run of decreasing penalties, so neighbours are close."""
    path: list[Candidate] = []
    for number, (_, run) in enumerate(groupby(ordered, key=lambda c: simplicity(c)[:-1])):
        path.extend(run if number % 2 == 0 else reversed(list(run)))
    return path
