"""What rankers tuned by cross-validation share: folds, the race of candidates, the choice.

Each fold's rows are reduced to statistics once, and the statistics of its complement are a
merge. Candidates that fall behind are dropped early.
"""

from collections.abc import Callable, Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial, reduce
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval

from likeminds._support.arrays import Float, IdArray, Index
from likeminds._support.averages import nan_mean
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.data.splits import folds_within_people
from likeminds.losses.statistics import Form, Statistics
from likeminds.metrics.by_person import auc_by_person
from likeminds.rankers.base import Ranker
from likeminds.rankers.tuning.candidates import Candidate, plain

# The share of candidates that stays after each of the first folds, and the least number.
_KEEP, _KEEP_AT_LEAST = 1 / 4, 5


@dataclass(frozen=True)
class Fold:
    """One fold: what is held out, and the statistics of all the rest.

    A subclass says in ``_held_out_scores`` how candidates are fitted and what they make of
    the rows held out.
    """

    held_out: Annotations
    rest: Statistics
    user_ids: IdArray

    def follow(self, path: Sequence[Candidate]) -> Float:
        """Fit candidates one after the other.

        Returns the AUC of each person on what is held out, shape (candidates, people).
        """
        aucs = np.full((len(path), len(self.user_ids)), np.nan)
        if not self.rest.has_pairs.any():
            return aucs  # nothing to learn from
        rows = self.held_out
        seen = lookup(rows.user_ids, self.user_ids, "users")
        for row, scores in zip(aucs, self._held_out_scores(path), strict=True):
            row[seen] = auc_by_person(rows.labels, scores, rows.user_codes, rows.weights).values
        return aucs

    def _held_out_scores(self, path: Sequence[Candidate]) -> Iterator[Float]:
        raise NotImplementedError

    def _linear_scores(self, ranker: Ranker) -> Float:
        """Return the scores of the rows held out by weights that go with ``rest``."""
        weights = np.vstack([ranker.coef_, ranker.consensus_])
        rows = self.held_out
        person = lookup(rows.user_ids, self.rest.user_ids, "users")[rows.user_codes]
        return np.asarray(np.einsum("nd,nd->n", rows.X, weights[person]))


class TunedRanker(Ranker):
    """Base of the rankers whose parameters are chosen by cross-validation.

    A subclass lists its candidates, divides them into paths that are followed in one go, makes
    its folds, and fits itself to everything with the parameters chosen.
    """

    n_folds: int
    halving: bool
    one_standard_error: bool
    n_jobs: int | None
    random_state: int

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "param_grid": [dict, list, None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "halving": ["boolean"],
        "one_standard_error": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": [Integral],
    }

    def fit(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        groups: Iterable[Hashable] | None = None,
    ) -> Self:
        """Choose the parameters, then learn everybody's ranking from all rows.

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
        held_out = [annotations[number == k] for k in np.unique(number)]
        statistics = [Statistics.from_annotations(rows, self._form()) for rows in held_out]
        everything = reduce(Statistics.merge, statistics)
        candidates = self._candidates(everything)
        if candidates:
            _refuse_too_few(annotations, len(held_out), self.n_folds)
            folds = [
                self._fold(
                    held_out[k],
                    reduce(Statistics.merge, statistics[:k] + statistics[k + 1 :]),
                    everything.user_ids,
                    partial(annotations.take, number != k),
                )
                for k in range(self.n_folds)
            ]
            self._choose(candidates, self._race(candidates, folds))
        else:
            self._choose_nothing()
        self._refit(annotations, everything)

    def _form(self) -> Form:
        """Say in which form the statistics of the folds are wanted."""
        return "auto"

    def _candidates(self, statistics: Statistics) -> list[Candidate]:
        """Return the candidates, neighbours next to each other; none if nothing is tuned."""
        raise NotImplementedError

    def _paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:
        """Divide the candidates that are alive into paths, each followed in one go."""
        raise NotImplementedError

    def _fold(
        self,
        held_out: Annotations,
        rest: Statistics,
        user_ids: IdArray,
        training: Callable[[], Annotations],
    ) -> Fold:
        """Return a fold; ``training`` gives the rows of ``rest``, for those who need rows."""
        raise NotImplementedError

    def _refit(self, annotations: Annotations, everything: Statistics) -> None:
        """Fit to everything with ``best_params_``."""
        raise NotImplementedError

    def _simplest(self, candidates: list[Candidate], close: Index) -> int:  # noqa: ARG002
        """Return the simplest of some candidates: by default, the first."""
        return int(close.min())

    def _race(self, candidates: list[Candidate], folds: Sequence[Fold]) -> Float:
        """Return the AUC by candidate, fold and person; NaN where a candidate was dropped."""
        n_people = len(folds[0].user_ids)
        scores = np.full((len(candidates), len(folds), n_people), np.nan)
        alive = np.arange(len(candidates))
        # One fold, one more, then all the others: the field is thinned in between.
        everywhere = list(range(len(folds)))
        stages = [[0], [1], everywhere[2:]] if self.halving else [everywhere]
        for stage in stages:
            todo = [(k, path) for k in stage for path in self._paths(candidates, alive)]
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
                "pair to rank. Ask for fewer with n_folds=, or gather more labels per person."
            )
        finalists = np.flatnonzero(n_folds == n_folds.max())
        best = finalists[np.nanargmax(means[finalists])]
        if self.one_standard_error:
            close = finalists[means[finalists] >= means[best] - errors[best]]
            best = self._simplest(candidates, close)
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
            **{f"split{k}_test_score": nan_mean(scores[:, k]) for k in range(scores.shape[1])},
        }

    def _choose_nothing(self) -> None:
        self.best_index_, self.best_params_, self.best_score_ = 0, {}, float("nan")
        self.cv_results_ = {"params": [{}]}

    def _adopt(self, fitted: Ranker) -> None:
        """Take over what the best ranker learned."""
        for name, value in vars(fitted).items():
            if name.endswith("_"):
                setattr(self, name, value)


def _refuse_too_few(annotations: Annotations, n_filled: int, n_folds: int) -> None:
    if n_filled < n_folds:
        raise ValueError(
            f"n_samples={len(annotations)} are too few for {n_folds} folds: nobody has as "
            "many labels (or groups). Ask for fewer with n_folds=, or for none: HierarchicalRanker "
            "has nothing to tune."
        )


def _mean_over_people(scores: Float) -> tuple[Float, Float]:
    """Average over folds, then over people: mean and standard error by candidate."""
    each = nan_mean(scores.transpose(0, 2, 1))
    count = np.isfinite(each).sum(axis=1)
    mean = nan_mean(each)
    squares = nan_mean((each - mean[:, None]) ** 2)
    return mean, np.sqrt(squares / np.maximum(count - 1, 1))
