"""How a ranker is tuned: in which order its candidates are tried, and how they meet a fold.

Every ranker names its way in ``_tuning``: a class like `FromRows` or `FromStatistics`, which are
those of the rankers that learn from rows and of those that learn from statistics. Its grid, if it
has any, is what ``_default_grid(statistics)`` returns: candidates, the strongest penalties first.
"""

import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar

import numpy as np
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from likeminds._util.array_types import Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.losses import as_loss
from likeminds.losses.statistics import Form, Statistics
from likeminds.metrics.concordance import concordance_by_user

Candidate = dict[str, Any]

# Candidates are compared at this tolerance, much finer than what tells them apart. It is that
# of a relative residual; what a ranker that learns from rows means by its tol is its own affair.
_TOL = 1e-3


@dataclass(frozen=True)
class Split:
    """What is held out, and the statistics of all the rest.

    Attributes
    ----------
    held_out : Annotations
        The rows held out.
    rest : Statistics
        Of all other rows.
    user_ids : array
        Everybody, also those who are not in this fold.
    training : callable
        Returns the other rows, for those who need them.
    """

    held_out: Annotations
    rest: Statistics
    user_ids: IdArray
    training: Callable[[], Annotations]


@dataclass(frozen=True)
class Fold:
    """One fold of a ranker.

    A subclass says in ``_held_out_scores`` how candidates are fitted and what they make of
    the rows held out.
    """

    ranker: Any
    split: Split

    def follow(self, path: Sequence[Candidate]) -> Float:
        """Fit candidates one after the other.

        Returns the AUC of each person on what is held out (of grades, the concordance), shape
        (candidates, people).
        """
        everybody = self.split.user_ids
        aucs = np.full((len(path), len(everybody)), np.nan)
        if not self.split.rest.has_pairs.any():
            return aucs  # nothing to learn from
        rows = self.split.held_out
        seen = lookup(rows.user_ids, everybody, "users")
        for row, scores in zip(aucs, self._held_out_scores(path), strict=True):
            found = concordance_by_user(rows.outcomes, scores, rows.user_codes, rows.weights)
            row[seen] = found.values
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
        """Return the scores of the rows held out by weights that go with the statistics."""
        weights = np.vstack([ranker.coef_, ranker.consensus_])
        rows = self.split.held_out
        person = lookup(rows.user_ids, statistics.user_ids, "users")[rows.user_codes]
        return np.asarray(np.einsum("nd,nd->n", rows.X, weights[person]))


@dataclass(frozen=True)
class FromRows:
    """How a ranker is tuned that learns from rows, and what others may do in another way."""

    ranker: Any

    # In which form the statistics of the folds are wanted: rows need no matrices.
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
        """Return those candidates that can be fitted, in the order to try them."""
        return candidates

    def simplicity(self, candidate: Candidate) -> tuple[float, ...]:  # noqa: ARG002
        """Return what orders candidates from simple to complex; among equals the first is it."""
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
        everybody: Callable[[], Annotations],
        statistics: Statistics,  # noqa: ARG002
    ) -> None:
        """Fit the ranker with the parameters chosen to everything."""
        ranker.fit(everybody())

    def _with(self, **wanted: Any) -> Any:
        """Return the ranker with other parameters, as far as it has them."""
        has = self.ranker.get_params(deep=False)
        return clone(self.ranker).set_params(**{n: v for n, v in wanted.items() if n in has})


# What makes a fit among many quick, and strangers welcome.
_RACING = {"warm_start": True, "unknown": "consensus", "verbose": False}


@dataclass(frozen=True)
class FromStatistics(FromRows):
    """How a ranker is tuned that learns from statistics: a fold's complement is a merge."""

    form: ClassVar[Form] = "auto"

    @property
    def graded(self) -> bool:
        """Whether the loss is one of grades."""
        return as_loss(self.ranker.loss).takes_grades

    def fold(self, split: Split) -> Fold:
        """Return a fold that needs no rows but those held out."""
        tol = max(_TOL, getattr(self.ranker, "tol", 0.0))
        return StatisticsFold(self._with(**_RACING, tol=tol), split)

    def fit(
        self,
        ranker: Any,
        everybody: Callable[[], Annotations],  # noqa: ARG002
        statistics: Statistics,
    ) -> None:
        """Fit the ranker with the parameters chosen to everything."""
        ranker._fit_statistics(statistics)


def plain_values(candidate: Candidate) -> Candidate:
    """Return the candidate with Python's own numbers."""
    return {
        name: value.item() if isinstance(value, np.generic) else value
        for name, value in candidate.items()
    }


def was_interrupted(ranker: Any) -> bool:
    """Say whether Ctrl-C ended a fit early, which a ranker of ours survives with a warning."""
    solved = getattr(getattr(ranker, "solution_", None), "interrupted", False)
    return bool(solved or getattr(ranker, "_interrupted", False))


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep to oneself what the final fit will say again, if it is still true then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        yield
