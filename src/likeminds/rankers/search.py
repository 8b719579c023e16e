"""Choose parameters by cross-validation within users, for all rankers.

Each fold's rows are reduced to statistics once. Training statistics merge those of the other folds.
"""

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from functools import partial, reduce
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils._param_validation import Interval
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.map_reduce import UserBlock
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.data.splits import folds_within_users
from likeminds.losses.statistics import Form, Statistics
from likeminds.mixed_model.gaussian_prior import ItemPosteriors
from likeminds.rankers import newcomers
from likeminds.rankers.candidates import (
    Candidate,
    FromRows,
    FromStatistics,
    Split,
    as_results,
    choose,
    plain_values,
    successive_halving,
)
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.statistics_rankers import join_statistics, statistics_of
from likeminds.rankers.training_checks import as_annotations, refuse_extras
from likeminds.rankers.training_data import SharedTable, TrainingData

model_selection: Any = LazyModule("sklearn.model_selection")

Grid = Mapping[str, Sequence[Any]]

# Attributes of the checked input, shared by the search and its ranker.
_OF_THE_INPUT = (
    *("classes_", "feature_names_", "feature_names_in_", "fitted_on_annotations_"),
    *("n_choices_", "n_features_in_", "n_labels_"),
)


# Parameters are the fields of a dataclass; see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class RankerCV(Ranker):
    """A ranker with its parameters chosen by cross-validation.

    Folds are made within users, stratified by label, or of whole choice sets. A candidate's score
    is the mean AUC over users, averaged over folds (for grades, the concordance). Rankers that
    learn from statistics read the rows only once, and candidates for `ThreeLevelRanker` share one
    eigendecomposition. `update` adds labels without a new search.

    Parameters
    ----------
    ranker : ranker
        The ranker to tune. Its parameters apply to those not in the grid.
    param_grid : dict or list of dicts, optional
        Lists of values of the ranker's parameters. All combinations are candidates, the simplest
        (strongest penalties) first. The default is the ranker's default grid. A ranker without
        parameters to tune is fitted without a search.
    n_folds : int, default=5
        The number of folds.
    halving : bool, default=True
        Whether to drop three quarters of the candidates (but keep the best five) after the first
        fold, and again after the second. If False, all candidates are fitted to all folds.
    one_standard_error : bool, default=False
        Whether to choose the simplest candidate within one standard error of the best.
    n_jobs : int, optional
        The number of parallel fits (joblib).
    random_state : int, default=0
        The seed of the assignment of rows to folds.
    verbose : bool, default=False
        Whether to print progress of the search, and then of the fit, on stderr.

    Attributes
    ----------
    best_estimator_ : ranker
        The ranker with the chosen parameters, fitted to all rows.
    best_params_ : dict
        The chosen parameters.
    best_index_ : int
        The index of the best candidate.
    best_score_ : float
        The mean AUC of the best candidate over folds; NaN without candidates.
    cv_results_ : dict of arrays
        ``params``, ``mean_test_score``, ``standard_error`` (over users), ``n_folds`` (by
        candidate), ``split0_test_score`` and so on (NaN after a candidate was dropped),
        ``rank_test_score``.
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

    ranker: Ranker
    param_grid: Grid | Sequence[Grid] | None = None
    _: KW_ONLY
    n_folds: int = 5
    halving: bool = True
    one_standard_error: bool = False
    n_jobs: int | None = None
    random_state: int = 0
    verbose: bool = False

    # The tuned ranker raises the error if labels cannot be added.
    _learned_from: ClassVar[str] = "users_"
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "ranker": [Ranker],
        "param_grid": [dict, list, None],
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "halving": ["boolean"],
        "one_standard_error": ["boolean"],
        "n_jobs": [Integral, None],
        "random_state": [Integral],
    }

    @property
    def _needs_no_features(self) -> bool:  # type: ignore[override]
        return self.ranker._needs_no_features

    @property
    def user_column(self) -> int | str | None:  # type: ignore[override]
        """The column of X with the user of each label, as in the ranker."""
        return self.ranker.user_column

    @property
    def takes_updates(self) -> bool:  # type: ignore[override]
        """Whether labels can be added to the tuned ranker."""
        return self.with_parameters({}).takes_updates

    @property
    def takes_newcomers(self) -> bool:  # type: ignore[override]
        """Whether the tuned ranker can score new users."""
        return self.with_parameters({}).takes_newcomers

    def with_parameters(self, parameters: Mapping[str, Any]) -> Ranker:
        """Return the unfitted ranker with other parameters."""
        ranker: Ranker = clone(self.ranker).set_params(**parameters)
        return ranker

    def fit(
        self,
        X: ArrayLike | Annotations | LabelSource[Ranker, object],
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
        choice_sets: Iterable[Hashable] | None = None,
    ) -> Self:
        """Choose the parameters, then fit the ranker to all rows.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `ThreeLevelRanker.fit`.
        choice_sets : array of shape (n_rows,), optional
            Rows of a user with the same value were shown together, and are in one fold.

        Returns
        -------
        self
        """
        self._validate_params()
        if isinstance(X, LabelSource):
            refuse_extras(y=y, users=users, sample_weight=sample_weight, choice_sets=choice_sets)
            X.fit_ranker(self)
        else:
            self._fit_annotations(
                as_annotations(self, X, y, users, sample_weight, choice_sets=choice_sets)
            )
        return self

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Score each row for its user, by the ranker with the chosen parameters.

        Parameters
        ----------
        X, users, items
            As in `ThreeLevelRanker.decision_function`.
        """
        check_is_fitted(self)
        return np.asarray(self._best_model.decision_function(X, users, items))

    def item_posteriors(self) -> ItemPosteriors | None:
        """Return the posteriors of item effects, if the ranker has them."""
        check_is_fitted(self)
        found: ItemPosteriors | None = self._best_model.item_posteriors()
        return found

    def update(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add labels, as in `ThreeLevelRanker.update`, without a new search.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.
        """
        Capability.UPDATES.require(self.with_parameters({}))
        super().update(X, y, users, sample_weight)
        return self

    newcomer = available_if(lambda search: search.takes_newcomers)(newcomers.newcomer)

    def _newcomers(self) -> newcomers.Newcomers:
        found: newcomers.Newcomers = self._best_model._newcomers()
        return found

    def _fit_annotations(self, annotations: Annotations) -> None:
        tuning = self._make_tuning()
        number = folds_within_users(annotations, self.n_folds, self.random_state)
        held_out = [annotations[number == k] for k in np.unique(number)]
        statistics = [
            Statistics.from_annotations(rows, tuning.form, graded=tuning.graded)
            for rows in held_out
        ]
        self._search(
            held_out, statistics, lambda k: annotations.take(number != k), lambda: annotations
        )

    def _learn_from(self, data: TrainingData) -> None:
        """Choose the parameters by merged statistics of folds, and held-out rows."""
        tuning = self._make_tuning()
        if not isinstance(tuning, FromStatistics):
            raise TypeError(
                f"{type(tuning.ranker).__name__} learns from rows, so it cannot be tuned on a "
                "cluster. Use a ranker that learns from statistics, such as ThreeLevelRanker."
            )
        how = self.n_folds, self.random_state, tuning.form, tuning.graded
        found = list(data.rows.map(_folds_in, how))
        folds = [[one[k] for one in found if k in one] for k in range(self.n_folds)]
        folds = [fold for fold in folds if fold]
        statistics = [join_statistics([one for one, _ in fold], data.table) for fold in folds]
        held_out = [data.table.joined([rows for _, rows in fold]) for fold in folds]
        self._search(held_out, statistics, lambda _: data.all_rows(), data.all_rows)

    def _search(
        self,
        held_out: Sequence[Annotations],
        statistics: list[Statistics],
        training: Callable[[int], Annotations],
        rows: Callable[[], Annotations],
    ) -> None:
        """Choose the parameters by folds, and fit the ranker with them.

        ``training`` returns the rows of all folds but one, and ``rows`` of all folds, for rankers
        that learn from rows.
        """
        tuning = self._make_tuning()
        everything = reduce(Statistics.merge, statistics)
        candidates = self._candidates(everything)
        if candidates:
            if len(held_out) < self.n_folds:
                raise ValueError(
                    f"n_samples={sum(map(len, held_out))} are too few for {self.n_folds} folds, "
                    "because no user has as many labels (or choice sets). Lower n_folds=, or use "
                    "HierarchicalRanker, which needs no tuning."
                )
            splits = []
            for k in range(self.n_folds):
                rest = reduce(Statistics.merge, statistics[:k] + statistics[k + 1 :])
                split = Split(held_out[k], rest, everything.user_ids, partial(training, k))
                splits.append(split)
            self._choose(candidates, splits, everything)
        else:
            self.best_index_, self.best_score_ = 0, float("nan")
            self.best_params_, self.cv_results_ = {}, {"params": [{}]}
        best = self.with_parameters(self.best_params_)
        best._validate_params()
        if self.verbose and "verbose" in best.get_params(deep=False):
            best.set_params(verbose=True)
        tuning.fit(best, rows, everything)
        self._share_input(best)
        self._adopt(best)

    def _choose(
        self,
        candidates: list[Candidate],
        splits: Sequence[Split],
        statistics: Statistics,  # noqa: ARG002
    ) -> None:
        """Choose among candidates by their scores on the splits of all ``statistics``."""
        tuning = self._make_tuning()
        scores = successive_halving(
            tuning,
            candidates,
            splits,
            halving=self.halving,
            n_jobs=self.n_jobs,
            verbose=self.verbose,
        )
        self.cv_results_: dict[str, Any] = as_results(candidates, scores)
        one_error = self.one_standard_error
        simplicity = [tuning.simplicity(c) for c in candidates] if one_error else None
        self.best_index_ = choose(self.cv_results_, simplicity)
        self.best_params_: Candidate = plain_values(candidates[self.best_index_])
        self.best_score_ = float(self.cv_results_["mean_test_score"][self.best_index_])

    def _make_tuning(self) -> FromRows[Any]:
        ranker = self.with_parameters({})
        return ranker._tuning(ranker)

    def _candidates(
        self, statistics: Statistics, given: Grid | Sequence[Grid] | None = None
    ) -> list[Candidate]:
        """Return the admissible candidates of a grid, by default ``param_grid``."""
        tuning = self._make_tuning()
        ranker, given = tuning.ranker, self.param_grid if given is None else given
        grid = (
            ranker._default_grid(statistics)
            if given is None
            else model_selection.ParameterGrid(given)
        )
        if grid is None:
            raise ValueError(
                f"{type(ranker).__name__} has no default grid. Pass param_grid=, a dict of lists "
                "of values."
            )
        for candidate in grid:  # raise here rather than in a worker
            self.with_parameters(candidate)._validate_params()
        return tuning.arrange(list(grid), statistics)

    def _fit_more(self, more: Annotations) -> None:
        self._adopt(self._best_model.update(more))

    def _share_input(self, best: Ranker) -> None:
        for name in _OF_THE_INPUT:
            best.__dict__.pop(name, None)
            if name in self.__dict__:
                setattr(best, name, getattr(self, name))

    def _adopt(self, best: Ranker) -> None:
        """Copy the fitted attributes of the best ranker."""
        self.best_estimator_ = best
        for name in best._fitted_names():
            if name not in _OF_THE_INPUT:
                setattr(self, name, getattr(best, name))


def _folds_in(
    block: UserBlock[Annotations], how: tuple[int, int, Form, bool], _own: None
) -> dict[int, tuple[Statistics, Annotations]]:
    """Return statistics and rows of a block by number of the fold."""
    n_folds, seed, form, graded = how
    number = folds_within_users(block.data, n_folds, seed)
    folds = {k: block.data[number == k] for k in np.unique(number).tolist()}
    return {
        k: (statistics_of(rows, graded, form), SharedTable.without(rows))
        for k, rows in folds.items()
    }
