"""Cross-validation of the three-level ranker, without touching the rows again.

Each fold's rows are reduced to statistics once; the statistics of its complement are a merge,
and one eigendecomposition of them serves all candidates. Candidates form paths along which
each starts from its neighbour's solution, and those that fall behind are dropped early.
"""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, reduce
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.model_selection import ParameterGrid
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._ranker import Ranker
from likeminds.annotations import Annotations
from likeminds.candidates import Candidate, default_grid, paths, plain, simplicity, snake
from likeminds.components import Component
from likeminds.identifiers import IdArray, lookup
from likeminds.losses import QuadraticLoss, squared_auc
from likeminds.metrics import auc_by_person
from likeminds.rankers import ThreeLevelRanker
from likeminds.rows import Float
from likeminds.selection import folds_within_people
from likeminds.solvers import FastSolver, Solution
from likeminds.solvers.base import Callback, Parts
from likeminds.solvers.fast import Decomposition
from likeminds.statistics import Statistics

Grid = Mapping[str, Sequence[Any]]

# Candidates are compared at this tolerance: much finer than what tells them apart.
_TOL, _STEPS = 1e-2, 20
# The share of candidates that stays after each of the first folds, and the least number.
_KEEP, _KEEP_AT_LEAST = 1 / 4, 5


class ThreeLevelRankerCV(Ranker):
    """The three-level ranker with its penalties chosen by cross-validation.

    Folds are made inside each person: stratified by label, or by whole groups where rows
    were shown together. A candidate's score is the mean over people of their AUC, averaged
    over folds.

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
    standardize, unknown, user_column
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

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "param_grid": [dict, list, None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "halving": ["boolean"],
        "one_standard_error": ["boolean"],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "n_jobs": [Integral, None],
        "random_state": [Integral],
    }

    def __init__(
        self,
        param_grid: Grid | Sequence[Grid] | None = None,
        *,
        n_folds: int = 5,
        halving: bool = True,
        one_standard_error: bool = False,
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
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.n_jobs = n_jobs
        self.random_state = random_state

    def fit(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        groups: Iterable[Hashable] | None = None,
    ) -> Self:
        """Choose the penalties, then learn everybody's ranking from all rows.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `ThreeLevelRanker.fit`.
        groups : array of shape (n_rows,), optional
            Rows of a person with the same group were shown together, and fall into one fold.

        Returns
        -------
        self
        """
        self._validate_params()
        self._fit_annotations(self._as_annotations(X, y, users, sample_weight, groups))
        return self

    def _fit_annotations(self, annotations: Annotations) -> None:
        number = folds_within_people(annotations, self.n_folds, self.random_state)
        if len(np.unique(number)) < self.n_folds:
            raise ValueError(
                f"n_samples={len(annotations)} are too few for {self.n_folds} folds: nobody has as "
                "many labels (or groups). Lower n_folds."
            )
        held_out = [annotations[number == k] for k in range(self.n_folds)]
        statistics = [Statistics.from_annotations(rows) for rows in held_out]
        everything = reduce(Statistics.merge, statistics)
        folds = [
            _Fold(
                held_out[k],
                reduce(Statistics.merge, statistics[:k] + statistics[k + 1 :]),
                everything.user_ids,
                self.standardize,
            )
            for k in range(self.n_folds)
        ]
        candidates = self._candidates(everything)
        self._choose(candidates, self._race(candidates, folds))
        self._refit(everything)

    def _refit(self, everything: Statistics) -> None:
        best = ThreeLevelRanker(
            **self.best_params_,
            standardize=self.standardize,
            tol=self.tol,
            max_iter=self.max_iter,
            unknown=self.unknown,
        )
        best._fit_statistics(everything)
        for name, value in vars(best).items():
            if name.endswith("_"):
                setattr(self, name, value)

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

    def _race(self, candidates: list[Candidate], folds: list["_Fold"]) -> Float:
        """Return the AUC by candidate, fold and person; NaN where a candidate was dropped."""
        n_people = len(folds[0].user_ids)
        scores = np.full((len(candidates), len(folds), n_people), np.nan)
        alive = np.arange(len(candidates))
        # One fold, one more, then all the others: the field is thinned in between.
        everywhere = list(range(len(folds)))
        stages = [[0], [1], everywhere[2:]] if self.halving else [everywhere]
        for stage in stages:
            todo = [(k, path) for k in stage for path in paths(candidates, alive)]
            found = Parallel(n_jobs=self.n_jobs)(
                delayed(folds[k].follow)([candidates[c] for c in path]) for k, path in todo
            )
            for (k, path), values in zip(todo, found, strict=True):
                scores[path, k] = values
            means = _mean_over_people(scores[alive])[0]
            keep = max(_KEEP_AT_LEAST, round(_KEEP * len(alive)))
            if stage is not stages[-1]:
                alive = np.sort(alive[np.argsort(-means, kind="stable")[:keep]])
        return scores

    def _choose(self, candidates: list[Candidate], scores: Float) -> None:
        n_folds = np.isfinite(scores).any(axis=2).sum(axis=1)
        means, errors = _mean_over_people(scores)
        if not np.isfinite(means).any():
            raise ValueError(
                "No fold has labels of both classes on both sides: with one class there is no "
                "pair to rank. Lower n_folds, or gather more labels per person."
            )
        finalists = np.flatnonzero(n_folds == n_folds.max())
        best = finalists[np.nanargmax(means[finalists])]
        if self.one_standard_error:
            close = finalists[means[finalists] >= means[best] - errors[best]]
            best = min(close, key=lambda c: simplicity(candidates[c]))
        self.best_index_ = int(best)
        self.best_params_ = plain(candidates[best])
        self.best_score_ = float(means[best])
        order = np.lexsort([-means, -n_folds])
        self.cv_results_ = {
            "params": candidates,
            "mean_test_score": means,
            "standard_error": errors,
            "n_folds": n_folds,
            "rank_test_score": np.argsort(order) + 1,
            **{f"split{k}_test_score": _nan_mean(scores[:, k]) for k in range(scores.shape[1])},
        }


@dataclass(frozen=True)
class _Fold:
    """One fold: what is held out, and the statistics of all the rest."""

    held_out: Annotations
    rest: Statistics
    user_ids: IdArray
    standardize: bool

    def follow(self, path: Sequence[Candidate]) -> Float:
        """Fit candidates one after the other, each from its predecessor's solution.

        Returns the AUC of each person on what is held out, shape (candidates, people).
        """
        scores = np.full((len(path), len(self.user_ids)), np.nan)
        if not self.rest.has_pairs.any():
            return scores  # nothing to learn from
        solver = _PathSolver(self._decomposition)
        seen = lookup(self.held_out.user_ids, self.user_ids, "users")
        for row, candidate in zip(scores, path, strict=True):
            row[seen] = self._score(self._weights(candidate, solver))
        return scores

    @cached_property
    def _scale(self) -> Float:
        return self.rest.feature_scale() if self.standardize else np.ones(self.rest.n_features)

    @cached_property
    def _decomposition(self) -> Decomposition:
        return FastSolver().decompose(squared_auc(self.rest, self._scale))

    def _weights(self, candidate: Candidate, solver: "_PathSolver") -> Float:
        """Return everybody's weights, and in the last row the consensus."""
        ranker = ThreeLevelRanker(**candidate, solver=solver, tol=_TOL, max_iter=_STEPS)
        ranker.scale_ = self._scale
        solution = ranker._solve(self._decomposition.loss, self.rest)
        ranker._set_parts(solution.parts, self.rest.has_pairs)
        return np.vstack([ranker.coef_, ranker.consensus_])

    def _score(self, weights: Float) -> Float:
        rows, owner = self.held_out, self.held_out.user_codes
        person = lookup(rows.user_ids, self.rest.user_ids, "users")[owner]
        scores = np.einsum("nd,nd->n", rows.X, weights[person])
        return auc_by_person(rows.labels, scores, owner, rows.weights).values


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


def _mean_over_people(scores: Float) -> tuple[Float, Float]:
    """Average over folds, then over people: mean and standard error by candidate."""
    each = _nan_mean(scores.transpose(0, 2, 1))
    count = np.isfinite(each).sum(axis=1)
    mean = _nan_mean(each)
    squares = _nan_mean((each - mean[:, None]) ** 2)
    return mean, np.sqrt(squares / np.maximum(count - 1, 1))


def _nan_mean(values: Float) -> Float:
    """Average over the last axis what is not NaN; NaN where all is."""
    finite = np.isfinite(values)
    count = finite.sum(axis=-1)
    total = np.where(finite, values, 0.0).sum(axis=-1)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan)
