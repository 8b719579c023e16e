"""Candidates of the three-level ranker: regularisation paths with warm starts.

One eigendecomposition of the statistics of a fold's complement serves all candidates.
"""

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from likeminds._util.array_types import Float, Index
from likeminds.components import Component
from likeminds.losses import QuadraticLoss
from likeminds.losses.statistics import Statistics
from likeminds.rankers.candidates import (
    Candidate,
    Fold,
    FromStatistics,
    Split,
    StatisticsFold,
)
from likeminds.solvers import FastSolver, Solution
from likeminds.solvers.eigendecomposition import Eigendecomposition
from likeminds.solvers.solver import Callback, Parts

if TYPE_CHECKING:
    from likeminds.rankers.three_level import ThreeLevelRanker

# The default grid: penalties as multiples of the defaults of ThreeLevelRanker.
_ALPHA_CONSENSUS = (1e-4, 1e-2)
_ALPHA_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_SHRINKAGE_SHARE = (0.0, 0.03, 0.1, 0.3)
_N_GROUPS = (1, 2, 4)
# Without groups; the last one leaves the consensus only.
_ALPHA_WITHOUT_GROUPS_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0, 1000.0)
# Candidates are compared at this tolerance, after at most so many steps.
_TOL, _STEPS = 1e-2, 20
# Parameters that the eigenvectors depend on.
_LOSS_PARAMETERS = ("loss", "standardize")


def default_grid(alpha_group: float) -> list[Candidate]:
    """Return candidates from separate rankings to the consensus only, around a penalty."""
    with_groups = [
        {
            "alpha_consensus": alpha,
            "alpha_group": times * alpha_group,
            "group_shrinkage": share * times * alpha_group,
            "n_groups": n_groups,
        }
        for alpha in _ALPHA_CONSENSUS
        for times in _ALPHA_GROUP_TIMES
        for share in _SHRINKAGE_SHARE
        for n_groups in _N_GROUPS
    ]
    without = [
        {
            "alpha_consensus": alpha,
            "alpha_group": times * alpha_group,
            "group_shrinkage": 0.0,
            "n_groups": 0,
        }
        for alpha in _ALPHA_CONSENSUS
        for times in _ALPHA_WITHOUT_GROUPS_TIMES
    ]
    return without + with_groups


@dataclass(frozen=True)
class ThreeLevels(FromStatistics["ThreeLevelRanker"]):
    """How to tune the three-level ranker: paths of neighbours, from few groups to many."""

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
                "No candidate of param_grid is admissible: group_shrinkage must not be larger "
                f"than alpha_group, nor n_groups than {most}."
            )
        return _snake(sorted(admissible, key=self.simplicity), self.simplicity)

    def simplicity(self, candidate: Candidate) -> tuple[float, ...]:
        """Order candidates from simple to complex: few groups and large penalties first."""
        alpha = candidate.get("alpha_group")
        alpha = 1.0 if alpha is None else alpha
        return (
            candidate.get("n_groups") or 0,
            -candidate.get("alpha_consensus", 0.0),
            -candidate.get("alpha_personal", 0.0),
            -candidate.get("group_shrinkage", 0.0) / (alpha or 1.0),
            -alpha,
        )

    def paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:
        """Divide the remaining candidates into a path for each number of groups."""
        by_groups: dict[int | None, list[int]] = {}
        for c in alive.tolist():
            by_groups.setdefault(candidates[c].get("n_groups"), []).append(c)
        return list(by_groups.values())

    def fold(self, split: Split) -> Fold["ThreeLevelRanker"]:
        """Return a fold whose one eigendecomposition serves all candidates."""
        return _DecomposedFold(self._with(tol=_TOL, max_iter=_STEPS), split)


def _snake(
    ordered: list[Candidate], simplicity: Callable[[Candidate], tuple[float, ...]]
) -> list[Candidate]:
    """Reverse every other run of decreasing penalties, so neighbours are close."""
    path: list[Candidate] = []
    for number, (_, run) in enumerate(groupby(ordered, key=lambda c: simplicity(c)[:-1])):
        path.extend(run if number % 2 == 0 else reversed(list(run)))
    return path


@dataclass(frozen=True)
class _DecomposedFold(StatisticsFold["ThreeLevelRanker"]):
    """A fold with a cache of units and eigenvectors, by the parameters of the loss."""

    _cache: list[tuple[Candidate, Float, Eigendecomposition]] = field(default_factory=list)

    def _held_out_scores(self, path: Sequence[Candidate]) -> Iterator[Float]:
        """Fit each candidate from its predecessor's solution."""
        ranker, last = copy(self.ranker), None
        for candidate in path:
            ranker.set_params(**candidate)
            statistics = self.split.rest
            decomposition = self._decompose(ranker)
            solver, levels = _PathSolver(decomposition, last), ranker._levels(statistics)
            solution = ranker._solve(solver, decomposition.loss, levels, statistics.user_ids)
            if solution.interrupted:
                raise KeyboardInterrupt
            last = solution.parts
            ranker._set_parts(last, statistics.has_pairs)
            yield self._linear_scores(ranker, statistics)

    def _decompose(self, ranker: "ThreeLevelRanker") -> Eigendecomposition:
        """Set the ranker's units; return the eigenvectors of its loss."""
        values = {name: getattr(ranker, name) for name in _LOSS_PARAMETERS}
        for cached, scale, decomposition in self._cache:
            if cached == values:
                ranker.scale_ = scale
                return decomposition
        decomposition = FastSolver().decompose(ranker._measure(self.split.rest))
        self._cache.append((values, ranker.scale_, decomposition))
        return decomposition


@dataclass(frozen=True)
class _PathSolver:
    """A solver with given eigenvectors and a given start."""

    decomposition: Eigendecomposition
    last: Parts | None

    def solve(
        self,
        loss: QuadraticLoss,  # noqa: ARG002 - the decomposition has it
        components: Sequence[Component],
        *,
        start: Parts | None = None,  # noqa: ARG002 - `last` is used
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Solution:
        return FastSolver(n_starts=1).solve_decomposed(
            self.decomposition,
            components,
            start=self.last,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
