"""Cross-validation of any ranker: one search for all, so that all are tuned alike."""

import warnings
from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import ParameterGrid
from sklearn.utils.validation import check_is_fitted

from likeminds._support.arrays import Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Form, Statistics
from likeminds.rankers.base import Ranker
from likeminds.rankers.fitting import GrowingRanker
from likeminds.rankers.tuning.candidates import Candidate
from likeminds.rankers.tuning.folds import Fold, TunedRanker

Grid = Mapping[str, Sequence[Any]]

# Candidates are compared at this tolerance, much finer than what tells them apart. It is that
# of a relative residual; what a ranker that learns from rows means by its tol is its own affair.
_TOL = 1e-3
# What checking the input sets: it belongs to the search, and to the ranker it fits.
_OF_THE_INPUT = (
    "classes_",
    "feature_names_",
    "feature_names_in_",
    "fitted_on_annotations_",
    "n_features_in_",
    "n_labels_",
)


class RankerCV(TunedRanker):
    """A ranker with its parameters chosen by cross-validation.

    Folds are made inside each person: stratified by label, or by whole groups where rows
    were shown together. A candidate's score is the mean over people of their AUC, averaged
    over folds. Rankers that learn from statistics never see the rows again: a fold's
    complement is a merge. (`ThreeLevelRankerCV` does the same for the three-level model, and
    shares one eigendecomposition among its candidates.)

    Parameters
    ----------
    ranker : ranker
        What to tune, one of this library's; its own parameters hold where the grid has none.
    param_grid : dict or list of dicts, optional
        Lists of values of the ranker's parameters; all combinations are candidates, the
        simplest (strongest penalties) first. By default the ranker's own grid; a ranker with
        nothing to tune is simply fitted.
    n_folds : int, default=5
        Number of folds.
    halving : bool, default=True
        Drop three quarters of the candidates (but never the best five) after the first fold,
        and again after the second. Without it every candidate sees every fold.
    one_standard_error : bool, default=False
        Take the first candidate within one standard error of the best.
    n_jobs : int, optional
        How many fits run at the same time (joblib).
    random_state : int, default=0
        Which rows fall into which fold.

    Attributes
    ----------
    best_estimator_ : ranker
        The ranker with the parameters chosen, fitted to all rows.
    best_params_ : dict
        The parameters chosen.
    best_score_ : float
        Their mean AUC over folds; NaN where there was nothing to tune.
    cv_results_ : dict of arrays
        As in `ThreeLevelRankerCV`.
    coef_, consensus_, users_, ...
        All fitted attributes of the ranker.

    Examples
    --------
    >>> from likeminds import RankerCV, make_schools
    >>> from likeminds.rankers.baselines import RidgeToConsensus
    >>> crowd = make_schools(20, 20, 50, 6, 2, random_state=0).annotations
    >>> search = RankerCV(RidgeToConsensus(), {"alpha": [10.0, 1.0, 0.1]}, n_folds=3).fit(crowd)
    >>> sorted(search.best_params_)
    ['alpha']
    >>> search.coef_.shape
    (20, 6)
    """

    best_estimator_: Ranker

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **TunedRanker._parameter_constraints,
        "ranker": [Ranker],
    }

    def __init__(
        self,
        ranker: Ranker,
        param_grid: Grid | Sequence[Grid] | None = None,
        *,
        n_folds: int = 5,
        halving: bool = True,
        one_standard_error: bool = False,
        n_jobs: int | None = None,
        random_state: int = 0,
    ) -> None:
        self.ranker = ranker
        self.param_grid = param_grid
        self.n_folds = n_folds
        self.halving = halving
        self.one_standard_error = one_standard_error
        self.n_jobs = n_jobs
        self.random_state = random_state

    @property
    def user_column(self) -> int | str | None:  # type: ignore[override]
        """The column of X that says who gave the label, as the ranker has it."""
        return self.ranker.user_column

    def decision_function(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Score each row for its person, by the ranker with the parameters chosen.

        Parameters
        ----------
        X, users
            As in `ThreeLevelRanker.decision_function`.

        Returns
        -------
        array of shape (n_rows,)
        """
        check_is_fitted(self)
        return self.best_estimator_.decision_function(X, users)

    def update(self, annotations: Annotations) -> Self:
        """Add labels, of people known or new, without a new search: the parameters stay."""
        check_is_fitted(self)
        best = self.best_estimator_
        if not isinstance(best, GrowingRanker):
            raise TypeError(f"{type(best).__name__} takes no more labels: fit it to all of them.")
        best.update(annotations)
        before = self.n_labels_
        self._adopt(best)
        self.n_labels_ = before
        self._note_more(annotations)
        return self

    def _form(self) -> Form:
        # Who learns from rows needs no matrices.
        return "auto" if _learns_from_statistics(self.ranker) else "factored"

    def _candidates(self, statistics: Statistics) -> list[Candidate]:
        if self.param_grid is not None:
            grid: list[Candidate] = list(ParameterGrid(self.param_grid))
        elif hasattr(self.ranker, "_default_grid"):
            grid = self.ranker._default_grid(statistics)
        else:
            raise ValueError(
                f"{type(self.ranker).__name__} has no grid of its own: pass param_grid=, a "
                "dict of lists of values."
            )
        for candidate in grid:  # refused here rather than in a worker, half way through
            clone(self.ranker).set_params(**candidate)._validate_params()
        return grid

    def _paths(self, candidates: list[Candidate], alive: Index) -> list[list[int]]:  # noqa: ARG002
        one_by_one = [[c] for c in alive.tolist()]
        return [alive.tolist()] if "warm_start" in self.ranker.get_params() else one_by_one

    def _fold(
        self,
        held_out: Annotations,
        rest: Statistics,
        user_ids: IdArray,
        training: Callable[[], Annotations],
    ) -> Fold:
        rows = None if _learns_from_statistics(self.ranker) else training()
        return _RankerFold(held_out, rest, user_ids, _for_racing(self.ranker), rows)

    def _refit(self, annotations: Annotations, everything: Statistics) -> None:
        best = clone(self.ranker).set_params(**self.best_params_)
        best._validate_params()
        if _learns_from_statistics(best):
            best._fit_statistics(everything)
        else:
            best.fit(annotations)
        for name in _OF_THE_INPUT:
            vars(best).pop(name, None)
            if name in vars(self):
                setattr(best, name, getattr(self, name))
        self._adopt(best)
        self.best_estimator_ = best


@dataclass(frozen=True)
class _RankerFold(Fold):
    """A fold for any ranker, by statistics where it learns from them, by rows where not."""

    ranker: Ranker
    training: Annotations | None

    def _held_out_scores(self, path: Sequence[Candidate]) -> Iterator[Float]:
        ranker = clone(self.ranker)
        for candidate in path:
            ranker.set_params(**candidate)
            with _without_warnings():
                self._fit(ranker)
            if was_interrupted(ranker):
                raise KeyboardInterrupt
            yield (
                self._linear_scores(ranker)
                if self.training is None
                else np.asarray(ranker.decision_function(self.held_out))
            )

    def _fit(self, ranker: Any) -> None:
        if self.training is None:
            ranker._fit_statistics(self.rest)
        else:
            ranker.fit(self.training)


def was_interrupted(ranker: Any) -> bool:
    """Say whether Ctrl-C ended a fit early, which a ranker of ours survives with a warning."""
    return bool(getattr(getattr(ranker, "solution_", None), "interrupted", False))


def _learns_from_statistics(ranker: Ranker) -> bool:
    return hasattr(ranker, "_fit_statistics")


def _for_racing(ranker: Any) -> Ranker:
    """Return the ranker with what makes a fit among many quick, and strangers welcome."""
    given = ranker.get_params(deep=False)
    wanted: dict[str, Any] = {"warm_start": True, "unknown": "consensus"}
    if _learns_from_statistics(ranker):
        wanted["tol"] = max(_TOL, given.get("tol", 0.0))
    changes = {name: value for name, value in wanted.items() if name in given}
    racing: Ranker = clone(ranker).set_params(**changes)
    return racing


@contextmanager
def _without_warnings() -> Iterator[None]:
    """Keep to oneself what the final fit will say again, if it is still true then."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", ".*one class only", UserWarning)
        yield
