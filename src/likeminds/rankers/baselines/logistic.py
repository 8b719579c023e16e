"""Logistic regression per user or pooled over users."""

import warnings
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.losses.statistics import Statistics
from likeminds.rankers.baselines.ridge import grid
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import warn_of_one_class

linear_model: Any = LazyModule("sklearn.linear_model")

# The input is checked once, not again for each user.
_UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# Blocks of users for each worker: enough for an even load.
_BLOCKS_EACH = 4


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False)
class _LogisticRanker(Ranker):
    """Base of both, with standardised features."""

    C: float = 1.0
    _: KW_ONLY
    standardize: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "C": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="neither")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "verbose": ["boolean"],
    }

    def _measure(self, annotations: Annotations) -> Statistics:
        """Set the features' units; return statistics without a matrix per user."""
        statistics = Statistics.from_annotations(annotations, "factored")
        ones = np.ones(statistics.n_features)
        self.scale_ = statistics.feature_scale() if self.standardize else ones
        return statistics

    def _standardize(self, annotations: Annotations) -> FloatArray:
        # The intercept absorbs any shift, and the solver loses no digits near the origin.
        rows = annotations.X
        assert self.scale_ is not None
        return (rows - np.average(rows, axis=0, weights=annotations.weights)) / self.scale_

    def _model(self) -> Any:
        return linear_model.LogisticRegression(C=self.C, tol=self.tol, max_iter=self.max_iter)

    def _warn_of_early_stops(self, stopped: int, of: int) -> None:
        if stopped:
            warnings.warn(
                f"{stopped} of {counted(of, 'logistic regression')} stopped after "
                f"{counted(self.max_iter, 'iteration')}, before tol={self.tol:g} was reached. "
                "Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=4,
            )


@dataclass(eq=False, repr=False)
class LogisticPerUser(_LogisticRanker):
    """A logistic regression for each user (scikit-learn's, with an intercept).

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the ridge on each user's weights, as in
        `sklearn.linear_model.LogisticRegression`: it multiplies the sum over the user's rows.
    standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.
    tol, max_iter
        Stopping criteria of each regression.
    n_jobs : int, optional
        How many blocks of users are fitted at the same time (joblib).

    Attributes
    ----------
    coef_, consensus_, users_, scale_, classes_
        As in `ThreeLevelRanker`; the consensus is the mean over users. Users whose labels
        are of one class get the consensus.

    Examples
    --------
    >>> from likeminds import make_schools
    >>> crowd = make_schools(30, 10, 40, 6, 2, random_state=0).annotations
    >>> LogisticPerUser(C=0.1).fit(crowd).coef_.shape
    (30, 6)
    """

    n_jobs: int | None = field(default=None, kw_only=True)

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **_LogisticRanker._parameter_constraints,
        "n_jobs": [Integral, None],
    }

    def _fit_annotations(self, annotations: Annotations) -> None:
        statistics = self._measure(annotations)
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        able = np.flatnonzero(statistics.has_pairs)
        n_blocks = min(len(able), _BLOCKS_EACH * effective_n_jobs(self.n_jobs))
        blocks = np.array_split(able, n_blocks)
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_block)(annotations, users) for users in blocks
        )
        weights = np.vstack([part for part, _ in found])
        self._warn_of_early_stops(sum(stopped for _, stopped in found), len(able))
        self.users_ = annotations.user_ids
        self.consensus_ = weights.mean(axis=0)
        self.coef_ = np.tile(self.consensus_, (statistics.n_users, 1))
        self.coef_[able] = weights

    def _fit_block(self, annotations: Annotations, users: Index) -> tuple[Float, int]:
        """Return the weights of some users, and how many regressions stopped early."""
        order, offsets = annotations.user_index()
        weights, stopped = np.empty((len(users), annotations.n_features)), 0
        with warnings.catch_warnings(), config_context(**_UNCHECKED):
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            for row, user in zip(weights, users, strict=True):
                rows = annotations[order[offsets[user] : offsets[user + 1]]]
                model = self._model().fit(self._standardize(rows), rows.labels, rows.weights)
                row[:] = model.coef_[0] / self.scale_
                stopped += int(model.n_iter_[0] >= self.max_iter)
        return weights, stopped

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(C=(0.01, 0.1, 1.0, 10.0))


class PooledLogistic(_LogisticRanker):
    """One logistic regression over all rows (scikit-learn's, with an intercept).

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the ridge on the weights, as in
        `sklearn.linear_model.LogisticRegression`: it multiplies the sum over all rows.
    standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.
    tol, max_iter
        Stopping criteria of the regression.

    Attributes
    ----------
    coef_, consensus_, users_, scale_, classes_
        As in `ThreeLevelRanker`; each row of ``coef_`` is the consensus.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> PooledLogistic().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    def _fit_annotations(self, annotations: Annotations) -> None:
        counts = self._measure(annotations).class_weight.sum(axis=0)
        if not counts.all():
            raise ValueError(
                "All labels are of one class: a ranker needs positive and negative ones."
            )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # reported below
            model = self._model().fit(
                self._standardize(annotations), annotations.labels, annotations.weights
            )
        self._warn_of_early_stops(int(model.n_iter_[0] >= self.max_iter), 1)
        self.users_ = annotations.user_ids
        self.consensus_ = model.coef_[0] / self.scale_
        self.coef_ = np.tile(self.consensus_, (annotations.n_users, 1))

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(C=(1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0))
