"""Candidates of a search: how each kind of ranker fits them to a fold, and the race between them.

Each ranker names a class like `FromRows` or `FromStatistics` in ``_tuning``. Its grid, if it has
one, is what ``_default_grid(statistics)`` returns: candidates, the strongest penalties first.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.console import report_progress
from likeminds._util.per_user_arrays import nan_mean
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.losses import as_loss
from likeminds.losses.statistics import Form, Statistics
from likeminds.metrics.concordance import concordance_by_user

Candidate = dict[str, Any]

# The tolerance (a relative residual) at which candidates of statistics are compared, much finer
# than what tells them apart. The tol of a ranker that learns from rows has its own meaning.
_TOL = 1e-3
# Parameters of fits among many: quick, silent, and with scores for unknown users.
_RACING = {"warm_start": True, "unknown": "consensus", "verbose": False}
# The share of candidates that stays after each of the first folds, and the least number.
_KEEP, _KEEP_AT_LEAST = 1 / 4, 5


@dataclass(frozen=True)
class Split:
    """Rows held out, statistics of all others, all users, and a function returning the others."""

    held_out: Annotations
    rest: Statistics
    user_ids: IdArray
    training: Callable[[], Annotations]


@dataclass(frozen=True)
class Fold:
    """One fold of a ranker; a subclass fits candidates to it in ``_fit_and_score``."""

    ranker: Any
    split: Split

    def follow(self, path: Sequence[Candidate]) -> Float:
        """Fit candidates one after the other.

        Returns the AUC of each user on the rows held out (for grades, the concordance), shape
        (candidates, users).
        """
        users = self.split.user_ids
        aucs = np.full((len(path), len(users)), np.nan)
        if not self.split.rest.has_pairs.any():
            return aucs  # nothing to learn from
        rows = self.split.held_out
        places = lookup(rows.user_ids, users, "users")
        for row, scores in zip(aucs, self._held_out_scores(path), strict=True):
            found = concordance_by_user(rows.outcomes, scores, rows.user_codes, rows.weights)
            row[places] = found.values
        return aucs

    def _held_out_scores(self, path: Sequence[Candidate]) -> Iterator[Float]:
        """Fit each candidate anew (or, with a warm start, from its predecessor's solution)."""
        ranker = clone(self.ranker)
        for candidate in path:
            ranker.set_params(**candidate)
            with _without_warnings():
                scores = self._fit_and_score(ranker)
            if was_interrupted(ranker):
                raise KeyboardInterrupt
            yield scores

    def _fit_and_score(self, ranker: Any) -> Float:
        raise NotImplementedError


@dataclass(frozen=True)
class _RowsFold(Fold):
    """A fold of a ranker that needs the rows of the rest."""

    def _fit_and_score(self, ranker: Any) -> Float:
        return np.asarray(ranker.fit(self._rows).decision_function(self.split.held_out))

    @cached_property
    def _rows(self) -> Annotations:
        return self.split.training()


@dataclass(frozen=True)
class StatisticsFold(Fold):
    """A fold of a ranker that learns from statistics alone."""

    def _fit_and_score(self, ranker: Any) -> Float:
        ranker._fit_statistics(self.split.rest)
        return self._linear_scores(ranker, self.split.rest)

    def _linear_scores(self, ranker: Any, statistics: Statistics) -> Float:
        """Return the scores of the rows held out by weights of the statistics' users."""
        weights = np.vstack([ranker.coef_, ranker.consensus_])
        rows = self.split.held_out
        person = lookup(rows.user_ids, statistics.user_ids, "users")[rows.user_codes]
        return np.asarray(np.einsum("nd,nd->n", rows.X, weights[person]))


@dataclass(frozen=True)
class FromRows:
    """How to tune a ranker that learns from rows."""

    ranker: Any

    # The form of the folds' statistics: rows need no matrices.
    form: ClassVar[Form] = "factored"

    @property
    def graded(self) -> bool:
        """Whether the statistics of the folds are by grade."""
        return False

    def arrange(
        self,
        candidates: list[Candidate],
        statistics: Statistics,  # noqa: ARG002
    ) -> list[Candidate]:
        """Return the candidates that can be fitted, in the order to try them."""
        return candidates

    def simplicity(self, candidate: Candidate) -> tuple[float, ...]:  # noqa: ARG002
        """Return a key that orders candidates from simple to complex."""
        return ()

    def paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:  # noqa: ARG002
        """Divide the candidates that are alive into paths, each followed in one go."""
        if "warm_start" in self.ranker.get_params(deep=False):
            return [alive.tolist()]
        return [[c] for c in alive.tolist()]

    def fold(self, split: Split) -> Fold:
        """Return the fold of a split."""
        return _RowsFold(self._with(**_RACING), split)

    def fit(
        self,
        ranker: Any,
        rows: Callable[[], Annotations],
        statistics: Statistics,  # noqa: ARG002
    ) -> None:
        """Fit the ranker with the parameters chosen to all rows."""
        ranker.fit(rows())

    def _with(self, **wanted: object) -> Any:
        """Return the ranker with other parameters, as far as it has them."""
        has = self.ranker.get_params(deep=False)
        return clone(self.ranker).set_params(**{n: v for n, v in wanted.items() if n in has})


@dataclass(frozen=True)
class FromStatistics(FromRows):
    """How to tune a ranker that learns from statistics: a fold's complement is a merge."""

    form: ClassVar[Form] = "auto"

    @property
    def graded(self) -> bool:
        """Whether the loss is one of grades."""
        return as_loss(self.ranker.loss).takes_grades

    def fold(self, split: Split) -> Fold:
        """Return a fold that needs no rows but those held out."""
        tol = max(_TOL, self.ranker.get_params(deep=False).get("tol", 0.0))
        return StatisticsFold(self._with(**_RACING, tol=tol), split)

    def fit(
        self,
        ranker: Any,
        rows: Callable[[], Annotations],  # noqa: ARG002
        statistics: Statistics,
    ) -> None:
        """Fit the ranker with the parameters chosen to the statistics of all rows."""
        ranker._fit_statistics(statistics)


def plain_values(candidate: Candidate) -> Candidate:
    """Return the candidate with Python's own numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in candidate.items()
    }


def was_interrupted(ranker: object) -> bool:
    """Tell whether Ctrl-C ended a fit early, which our rankers survive with a warning."""
    solution = getattr(ranker, "solution_", None)
    return bool(getattr(ranker, "_interrupted", False) or getattr(solution, "interrupted", False))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Silence warnings that the final fit repeats, if they still hold then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        yield


def race(
    candidates: list[Candidate],
    folds: Sequence[Fold],
    paths: Callable[[list[Candidate], Index], list[list[int]]],
    *,
    halving: bool,
    n_jobs: int | None,
    verbose: bool = False,
) -> Float:
    """Return the AUC by candidate, fold and person; NaN where a candidate was dropped."""
    scores = np.full((len(candidates), len(folds), len(folds[0].split.user_ids)), np.nan)
    alive = np.arange(len(candidates))
    # One fold, one more, then all the others: the field is thinned in between.
    everywhere = list(range(len(folds)))
    stages = [[0], [1], everywhere[2:]] if halving else [everywhere]
    total, left = 0, len(alive)
    for stage in stages:
        total, left = total + left * len(stage), min(left, _n_kept(left))
    done = 0
    with report_progress(verbose, "fits of the search", total) as tell:
        for stage in stages:
            todo = [(k, path) for k in stage for path in paths(candidates, alive)]
            found = Parallel(n_jobs=n_jobs, return_as="generator")(
                delayed(folds[k].follow)([candidates[c] for c in path]) for k, path in todo
            )
            for (k, path), values in zip(todo, found, strict=True):
                scores[path, k] = values
                done += len(path)
                tell(done, f"fold {k + 1}")
            means = mean_over_users(scores[alive])[0]
            if stage is not stages[-1]:
                best = np.argsort(-means, kind="stable")[: _n_kept(len(alive))]
                alive = np.sort(alive[best])
    return scores


def _n_kept(n_candidates: int) -> int:
    return max(_KEEP_AT_LEAST, round(_KEEP * n_candidates))


def choose(scores: Float, simplicity: Sequence[tuple[float, ...]] | None) -> int:
    """Return the best candidate that saw all folds; or the simplest within a standard error.

    ``scores`` is what `race` returned, ``simplicity`` orders candidates from simple to complex.
    """
    n_folds = folds_seen(scores)
    means, errors = mean_over_users(scores)
    if not np.isfinite(means).any():
        raise ValueError(
            "No fold has labels of both classes on both sides: with one class there is no "
            "pair to rank. Ask for fewer with n_folds=, or gather more labels per person."
        )
    finalists = np.flatnonzero(n_folds == n_folds.max())
    best = finalists[np.nanargmax(means[finalists])]
    if simplicity is None:
        return int(best)
    close = finalists[means[finalists] >= means[best] - errors[best]]
    return int(min(close, key=lambda c: simplicity[c]))


def as_results(candidates: list[Candidate], scores: Float) -> dict[str, Any]:
    """Return what there is to know about the candidates, as scikit-learn's searches do."""
    n_folds = folds_seen(scores)
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


def folds_seen(scores: Float) -> Index:
    """Return how many folds each candidate saw."""
    return np.asarray(np.isfinite(scores).any(axis=2).sum(axis=1))


def mean_over_users(scores: Float) -> tuple[Float, Float]:
    """Average over folds, then over people: mean and standard error by candidate."""
    each = nan_mean(scores.transpose(0, 2, 1))
    count = np.isfinite(each).sum(axis=1)
    mean = nan_mean(each)
    squares = nan_mean((each - mean[:, None]) ** 2)
    return mean, np.sqrt(squares / np.maximum(count - 1, 1))
