"""Candidates of a search: fits to folds for each kind of ranker, and successive halving.

Each ranker has a class such as `FromRows` or `FromStatistics` in ``_tuning``. Its method
``_default_grid(statistics)`` returns the default candidates, strongest penalties first.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.console import report_progress
from likeminds._util.per_user_arrays import nan_mean
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.losses import QuadraticLoss, as_loss
from likeminds.losses.statistics import Form, Statistics
from likeminds.metrics.concordance import concordance_by_user

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker
    from likeminds.rankers.statistics_rankers import StatisticsRanker

Candidate = dict[str, Any]
R = TypeVar("R", bound="Ranker")
S = TypeVar("S", bound="StatisticsRanker")
T = TypeVar("T")

# The tolerance (a relative residual) of fits to statistics in a search. Rankers of rows define tol
# differently.
_TOL = 1e-3
# Parameters of fits in a search: fast, silent, and with scores for unknown users.
_SEARCH_PARAMETERS = {"warm_start": True, "unknown": "consensus", "verbose": False}
# The share of candidates kept after each of the first folds, and the fewest.
_REMAINING_SHARE, _LEAST_REMAINING = 1 / 4, 5
# Rows and weights of this many labels fit into the processor's cache.
_ROWS_AT_A_TIME = 1024
# Parameters that determine the loss, and bytes per fold for rows of users with few labels.
_LOSS_PARAMETERS = ("loss", "standardize")
_MEMORY = 1 << 26


@dataclass(frozen=True)
class Split:
    """Held-out rows, all users, and statistics of the training rows with a function for these."""

    held_out: Annotations
    rest: Statistics
    user_ids: IdArray
    training: Callable[[], Annotations]
    # Losses shared by candidates, with the parameters that determine them.
    cache: list[tuple[Candidate, Any]] = field(default_factory=list)

    @cached_property
    def rows(self) -> Annotations:
        """The rows that are not held out."""
        return self.training()

    def loss_of(
        self, ranker: "StatisticsRanker", prepare: Callable[[QuadraticLoss], T]
    ) -> tuple[Float, T]:
        """Return the ranker's scale, and its loss after ``prepare``, cached for all candidates."""
        values = {name: getattr(ranker, name) for name in _LOSS_PARAMETERS}
        found = next((shared for cached, shared in self.cache if cached == values), None)
        if found is None:
            loss = prepare(ranker._measure(self.rest))
            found = ranker.scale_, loss
            self.cache.append((values, found))
        return found


@dataclass(frozen=True)
class FromRows(Generic[R]):
    """The search for a ranker that learns from rows."""

    ranker: R

    # The form of the folds' statistics; rows do not need matrices.
    form: ClassVar[Form] = "factored"

    @property
    def graded(self) -> bool:
        """Whether the statistics of the folds are by grade."""
        return False

    def arrange(self, candidates: list[Candidate], statistics: Statistics) -> list[Candidate]:  # noqa: ARG002
        """Return the admissible candidates, in the order of fitting."""
        return candidates

    def simplicity(self, candidate: Candidate) -> tuple[float, ...]:  # noqa: ARG002
        """Return a key that orders candidates from simple to complex."""
        return ()

    def paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:  # noqa: ARG002
        """Divide the remaining candidates into paths, each fitted in sequence."""
        if "warm_start" in self.ranker.get_params(deep=False):
            return [alive.tolist()]
        return [[c] for c in alive.tolist()]

    def follow(self, split: Split, path: Sequence[Candidate]) -> Float:
        """Return the held-out AUC (for grades, the concordance) by candidate and user."""
        aucs = np.full((len(path), len(split.user_ids)), np.nan)
        if not split.rest.has_pairs.any():
            return aucs  # no labels to learn from
        rows = split.held_out
        places = lookup(rows.user_ids, split.user_ids, "users")
        for row, scores in zip(aucs, self._held_out_scores(split, path), strict=True):
            found = concordance_by_user(rows.outcomes, scores, rows.user_codes, rows.weights)
            row[places] = found.values
        return aucs

    def _held_out_scores(self, split: Split, path: Sequence[Candidate]) -> Iterator[Float]:
        """Fit each candidate from scratch (or, with a warm start, from its predecessor)."""
        ranker = self._trial()
        for candidate in path:
            ranker.set_params(**candidate)
            with warnings.catch_warnings():  # the final fit repeats warnings that still apply
                warnings.simplefilter("ignore", ConvergenceWarning)
                warnings.filterwarnings("ignore", ".*one class only", UserWarning)
                scores = self._fit_and_score(ranker, split)
            if was_interrupted(ranker):
                raise KeyboardInterrupt
            yield scores

    def _fit_and_score(self, ranker: R, split: Split) -> Float:
        return np.asarray(ranker.fit(split.rows).decision_function(split.held_out))

    def _trial(self, **values: object) -> R:
        """Return the ranker for fits of a search, with these values of parameters that exist."""
        values = _SEARCH_PARAMETERS | values
        names = self.ranker.get_params(deep=False)
        ranker: R = clone(self.ranker)
        ranker.set_params(**{n: v for n, v in values.items() if n in names})
        return ranker

    def fit(self, ranker: R, rows: Callable[[], Annotations], statistics: Statistics) -> None:  # noqa: ARG002
        """Fit the ranker, with the chosen parameters, to all rows."""
        ranker.fit(rows())


@dataclass(frozen=True)
class FromStatistics(FromRows[S]):
    """The search for a ranker that learns from statistics, which merge across folds."""

    form: ClassVar[Form] = "auto"

    @property
    def graded(self) -> bool:
        """Whether the loss is one of grades."""
        return as_loss(self.ranker.loss).takes_grades

    def _trial(self, **values: object) -> S:
        tol = max(_TOL, self.ranker.get_params(deep=False).get("tol", 0.0))
        return super()._trial(**{"tol": tol} | values)

    def _prepare(self, loss: QuadraticLoss) -> Any:
        """Return the loss in a form for all candidates."""
        return loss.cache(_MEMORY)

    def _fit_and_score(self, ranker: S, split: Split) -> Float:
        ranker.scale_, loss = split.loss_of(ranker, self._prepare)
        parts = ranker._fit_loss(loss, split.rest)
        ranker.users_ = split.rest.user_ids
        ranker._set_parts(parts, split.rest.has_pairs)
        return linear_scores(ranker, split)

    def fit(self, ranker: S, rows: Callable[[], Annotations], statistics: Statistics) -> None:  # noqa: ARG002
        """Fit the ranker, with the chosen parameters, to the statistics of all rows."""
        ranker._fit_statistics(statistics)


def linear_scores(ranker: "StatisticsRanker", split: Split) -> Float:
    """Return the scores of the held-out rows by the weights of the statistics' users."""
    weights = np.vstack([ranker.coef_, ranker.consensus_])
    rows = split.held_out
    user = lookup(rows.user_ids, split.rest.user_ids, "users")[rows.user_codes]
    scores = np.empty(len(rows))
    for start in range(0, len(rows), _ROWS_AT_A_TIME):
        some = slice(start, start + _ROWS_AT_A_TIME)
        X = rows.features[rows.feature_rows[some]]
        scores[some] = np.einsum("nd,nd->n", X, weights[user[some]])
    return scores


def plain_values(candidate: Candidate) -> Candidate:
    """Return the candidate with Python's own numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in candidate.items()
    }


def was_interrupted(ranker: object) -> bool:
    """Return whether Ctrl-C ended a fit early; rankers of this library then only warn."""
    solution = getattr(ranker, "solution_", None)
    return bool(getattr(ranker, "_interrupted", False) or getattr(solution, "interrupted", False))


def successive_halving(
    tuning: FromRows[R],
    candidates: list[Candidate],
    splits: Sequence[Split],
    *,
    halving: bool,
    n_jobs: int | None,
    verbose: bool = False,
) -> Float:
    """Return the AUC by candidate, fold and user; NaN after a candidate was dropped."""
    scores = np.full((len(candidates), len(splits), len(splits[0].user_ids)), np.nan)
    alive = np.arange(len(candidates))
    # Fit one fold, a second, then all others, and drop candidates in between.
    numbers = list(range(len(splits)))
    stages = [[0], [1], numbers[2:]] if halving else [numbers]
    total, done, remaining = 0, 0, len(alive)
    for stage in stages:
        total, remaining = total + remaining * len(stage), min(remaining, _n_next(remaining))
    with report_progress(verbose, "fits of the search", total) as report:
        for stage in stages:
            todo = [(k, path) for k in stage for path in tuning.paths(candidates, alive)]
            found = Parallel(n_jobs=n_jobs, return_as="generator")(
                delayed(tuning.follow)(splits[k], [candidates[c] for c in path]) for k, path in todo
            )
            for (k, path), values in zip(todo, found, strict=True):
                scores[path, k] = values
                done += len(path)
                report(done, f"fold {k + 1}")
            means = mean_over_users(scores[alive])[0]
            if stage is not stages[-1]:
                best = np.argsort(-means, kind="stable")[: _n_next(len(alive))]
                alive = np.sort(alive[best])
    return scores


def _n_next(n_candidates: int) -> int:
    return max(_LEAST_REMAINING, round(_REMAINING_SHARE * n_candidates))


def choose(results: dict[str, Any], simplicity: Sequence[tuple[float, ...]] | None) -> int:
    """Return the best candidate with all folds, or by the one-standard-error rule."""
    means, n_folds = results["mean_test_score"], results["n_folds"]
    if not np.isfinite(means).any():
        raise ValueError(
            "No fold has labels of both classes in training and held-out rows. Pass fewer folds "
            "with n_folds=, or collect more labels per user."
        )
    finalists = np.flatnonzero(n_folds == n_folds.max())
    best = finalists[np.nanargmax(means[finalists])]
    if simplicity is None:
        return int(best)
    close = finalists[means[finalists] >= means[best] - results["standard_error"][best]]
    return int(min(close, key=lambda c: simplicity[c]))


def as_results(candidates: list[Candidate], scores: Float) -> dict[str, Any]:
    """Return ``cv_results_`` in the form of scikit-learn's searches."""
    n_folds = np.isfinite(scores).any(axis=2).sum(axis=1)
    means, errors = mean_over_users(scores)
    order = np.lexsort([-means, -n_folds])
    return {
        "params": candidates,
        "mean_test_score": means,
        "standard_error": errors,
        "n_folds": n_folds,
        "rank_test_score": np.argsort(order) + 1,
        **{f"split{k}_test_score": nan_mean(scores[:, k]) for k in range(scores.shape[1])},
    }


def mean_over_users(scores: Float) -> tuple[Float, Float]:
    """Return mean and standard error by candidate, averaged over folds, then users."""
    by_user = nan_mean(scores.transpose(0, 2, 1))
    count = np.isfinite(by_user).sum(axis=1)
    mean = nan_mean(by_user)
    squares = nan_mean((by_user - mean[:, None]) ** 2)
    return mean, np.sqrt(squares / np.maximum(count - 1, 1))
