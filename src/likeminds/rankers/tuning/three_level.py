"""Cross-validation of the three-level ranker, without touching the rows again.

One eigendecomposition of the statistics of a fold's complement serves all candidates, which
form paths along which each starts from its neighbour's solution.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.model_selection import ParameterGrid
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._support.arrays import Float, IdArray, Index
from likeminds.components import Component
from likeminds.data.annotations import Annotations
from likeminds.losses import LOSSES, Loss, QuadraticLoss, as_loss
from likeminds.losses.statistics import Statistics
from likeminds.prior.crowd import Crowd
from likeminds.rankers import newcomers
from likeminds.rankers.fitting import GrowingRanker, StatisticsRanker
from likeminds.rankers.folding_in import FoldingIn
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.tuning.candidates import Candidate, default_grid, paths, simplicity, snake
from likeminds.rankers.tuning.folds import Fold, TunedRanker
from likeminds.solvers import FastSolver, Solution
from likeminds.solvers.base import Callback, Parts
from likeminds.solvers.fast import Decomposition

Grid = Mapping[str, Sequence[Any]]

# Candidates are compared at this tolerance: much finer than what tells them apart.
_TOL, _STEPS = 1e-2, 20


class ThreeLevelRankerCV(GrowingRanker, TunedRanker):
    """The three-level ranker with its penalties chosen by cross-validation.

    Folds are made inside each person: stratified by label, or by whole groups where rows
    were shown together. A candidate's score is the mean over people of their AUC, averaged
    over folds. `update` adds labels without a new search: the parameters stay.

    Parameters
    ----------
    param_grid : dict or list of dicts, optional
        Lists of values of ``alpha_consensus``, ``alpha_group``, ``alpha_personal``,
        ``n_groups`` and ``group_shrinkage``; all combinations are candidates, except those
        that `ThreeLevelRanker` refuses (more shrinkage than penalty, too many groups). By
        default about 130 candidates that cover all of them but ``alpha_personal``, from
        "everybody alone" to "consensus only".
    n_folds : int, default=5
        Number of folds.
    halving : bool, default=True
        Drop three quarters of the candidates after the first fold, and again after the second.
        Without it every candidate sees every fold.
    one_standard_error : bool, default=False
        Take the simplest candidate within one standard error of the best: fewest groups, then
        largest penalties.
    loss, standardize, unknown, user_column
        As in `ThreeLevelRanker`.
    tol, max_iter
        Of the final fit, as in `ThreeLevelRanker`.
    n_jobs : int, optional
        How many paths are followed at the same time (joblib).
    random_state : int, default=0
        Which rows fall into which fold.

    Attributes
    ----------
    best_params_ : dict
        The parameters chosen.
    best_score_ : float
        Their mean AUC over folds.
    cv_results_ : dict of arrays
        ``params``, ``mean_test_score``, ``standard_error`` (over people), ``n_folds`` (how many
        folds the candidate saw), ``split0_test_score`` and so on (NaN where dropped before),
        ``rank_test_score``.
    coef_, consensus_, group_, personal_, users_, ...
        All fitted attributes of `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import ThreeLevelRankerCV, make_schools
    >>> crowd = make_schools(20, 20, 50, 6, 2, random_state=0).annotations
    >>> ranker = ThreeLevelRankerCV(
    ...     {"alpha_group": [0.3, 1.0, 3.0], "n_groups": [0, 1]}, n_folds=3
    ... ).fit(crowd)
    >>> sorted(ranker.best_params_)
    ['alpha_group', 'n_groups']
    >>> len(ranker.cv_results_["params"])
    6
    """

    statistics_: Statistics

    crowd_: Crowd
    knee_: float

    newcomer = newcomers.newcomer
    _learned_from = StatisticsRanker._learned_from
    _nothing_to_add_to = StatisticsRanker._nothing_to_add_to
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedRanker._parameter_constraints,
        "loss": [StrOptions(set(LOSSES)), Loss],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
    }

    def __init__(
        self,
        param_grid: Grid | Sequence[Grid] | None = None,
        *,
        n_folds: int = 5,
        halving: bool = True,
        one_standard_error: bool = False,
        loss: str | Loss = "auc",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        unknown: str = "consensus",
        user_column: int | str | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.param_grid = param_grid
        self.n_folds = n_folds
        self.halving = halving
        self.one_standard_error = one_standard_error
        self.loss = loss
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def _newcomers(self) -> FoldingIn:
        return FoldingIn(self.crowd_, as_loss(self.loss), self.knee_)

    def _fold(
        self,
        held_out: Annotations,
        rest: Statistics,
        user_ids: IdArray,
        training: Callable[[], Annotations],  # noqa: ARG002 - the statistics are enough
    ) -> Fold:
        return _ThreeLevelFold(held_out, rest, user_ids, self.loss, self.standardize)

    def _paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:
        return paths(candidates, alive)

    def _simplest(self, candidates: list[Candidate], close: Index) -> int:
        return int(min(close, key=lambda c: simplicity(candidates[c])))

    def _refit(self, annotations: Annotations, everything: Statistics) -> None:  # noqa: ARG002
        best = ThreeLevelRanker(
            **self.best_params_,
            loss=self.loss,
            standardize=self.standardize,
            tol=self.tol,
            max_iter=self.max_iter,
            unknown=self.unknown,
        )
        best._fit_statistics(everything)
        self._adopt(best)

    def _fit_more(self, more: Annotations) -> None:
        self._refit(more, self.statistics_.update(more))

    def _candidates(self, statistics: Statistics) -> list[Candidate]:
        """Return the admissible candidates, neighbours next to each other."""
        default = ThreeLevelRanker()
        default._levels(statistics)
        if self.param_grid is None:
            grid = default_grid(default.alpha_group_)
        else:
            grid = list(ParameterGrid(self.param_grid))
        most = min(statistics.n_people, statistics.n_features)
        admissible = [
            candidate
            for candidate in grid
            if candidate.get("group_shrinkage", 0.0)
            <= candidate.get("alpha_group", default.alpha_group_)
            and candidate.get("n_groups", 0) <= most
        ]
        if not admissible:
            raise ValueError(
                "No candidate of param_grid is admissible: group_shrinkage must not be larger "
                f"than alpha_group, nor n_groups than {most}."
            )
        return snake(sorted(admissible, key=simplicity))


@dataclass(frozen=True)
class _ThreeLevelFold(Fold):
    """A fold whose one eigendecomposition serves all candidates."""

    loss: str | Loss
    standardize: bool

    def _held_out_scores(self, path: Sequence[Candidate]) -> Iterator[Float]:
        """Fit each candidate from its predecessor's solution."""
        solver = _PathSolver(self._decomposition)
        for candidate in path:
            yield self._linear_scores(self._fitted(candidate, solver))

    @cached_property
    def _scale(self) -> Float:
        return self.rest.feature_scale() if self.standardize else np.ones(self.rest.n_features)

    @cached_property
    def _decomposition(self) -> Decomposition:
        return FastSolver().decompose(as_loss(self.loss).of(self.rest, self._scale))

    def _fitted(self, candidate: Candidate, solver: "_PathSolver") -> ThreeLevelRanker:
        ranker = ThreeLevelRanker(**candidate, solver=solver, tol=_TOL, max_iter=_STEPS)
        ranker.scale_ = self._scale
        solution = ranker._solve(self._decomposition.loss, self.rest)
        ranker._set_parts(solution.parts, self.rest.has_pairs)
        return ranker


@dataclass
class _PathSolver:
    """A solver that keeps the eigenvectors, and starts where it last stopped."""

    decomposition: Decomposition
    last: Parts | None = None

    def solve(
        self,
        loss: QuadraticLoss,  # noqa: ARG002 - it is the decomposition's
        components: Sequence[Component],
        *,
        start: Parts | None = None,  # noqa: ARG002 - the last solution is
        tol: float = 1e-5,
        max_iter: int = 1000,
        callback: Callback | None = None,
    ) -> Solution:
        solution = FastSolver(n_starts=1).solve_decomposed(
            self.decomposition,
            components,
            start=self.last,
            tol=tol,
            max_iter=max_iter,
            callback=callback,
        )
        if solution.interrupted:
            raise KeyboardInterrupt
        self.last = solution.parts
        return solution
