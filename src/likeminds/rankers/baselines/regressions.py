"""Ridge and logistic regressions: one for all users, one per user, or shrunk to a consensus."""

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed, effective_n_jobs
from sklearn import config_context
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from likeminds._util.array_types import Float, Index
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.losses import Loss, QuadraticLoss
from likeminds.losses.quadratic import spectra
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.rankers.training_checks import warn_of_one_class
from likeminds.solvers.solver import Parts


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class _RidgeRanker(StatisticsRanker):
    """Base of the baselines with one penalty."""

    alpha: float = 0.01
    _: KW_ONLY
    loss: str | Loss = "auc"
    standardize: bool = True
    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    _has_steps = False
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha": [Interval(Real, 0, None, closed="neither")],
    }


def grid(**values: Sequence[float]) -> list[dict[str, Any]]:
    """Return all combinations, the last name's values changing fastest."""
    return [dict(zip(values, chosen, strict=True)) for chosen in product(*values.values())]


class ConsensusOnly(_RidgeRanker):
    """One ranking for all users: minimises sum_i l_i(theta) + n_users alpha |theta|^2.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge on the weights, per user.
    loss, standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    coef_, consensus_, group_, personal_, users_, scale_, classes_
        As in `ThreeLevelRanker`; each row of ``coef_`` is the consensus.
    """

    _grid = grid(alpha=(1.0, 0.1, 0.01, 0.001, 0.0001))

    def _fit_loss(self, loss: QuadraticLoss, _: AbstractStatistics) -> Parts:
        n_users, n_features = loss.shape
        ridge = 2.0 * self.alpha * n_users * np.eye(n_features)
        theta = np.linalg.solve(loss.total_matrix() + ridge, loss.linear.sum(axis=0))
        zeros = np.zeros(loss.shape)
        return theta, zeros, zeros


class OnePerUser(_RidgeRanker):
    """A separate ranking per user: minimises l_i(w) + alpha |w|^2 for each user i.

    Parameters
    ----------
    alpha : float, default=0.01
        Ridge on each user's weights.
    loss, standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    coef_, consensus_, group_, personal_, users_, scale_, classes_
        As in `ThreeLevelRanker`; the consensus is the mean over users.
    """

    _grid = grid(alpha=(10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003))

    def _fit_loss(self, loss: QuadraticLoss, _: AbstractStatistics) -> Parts:
        weights = np.zeros(loss.shape)
        for part in spectra(loss):
            weights[part.users] = part.back(part.slope / (part.curvature + 2.0 * self.alpha))
        return np.zeros(loss.shape[1]), weights, np.zeros(loss.shape)


@dataclass(eq=False, repr=False)
class RidgeToConsensus(_RidgeRanker):
    """Ridge deviations from a consensus: the three-level model without groups or personal level.

    Minimises sum_i [l_i(theta + v_i) + alpha |v_i|^2] + n_users alpha_consensus |theta|^2 over
    theta and the v_i: one linear system after the v_i are eliminated.

    Parameters
    ----------
    alpha : float, default=1.0
        Ridge on each user's deviation from the consensus.
    alpha_consensus : float, default=0.001
        Ridge on the consensus, per user.
    loss, standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    coef_, consensus_, group_, personal_, users_, scale_, classes_
        As in `ThreeLevelRanker`; the deviations are in ``group_``.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> RidgeToConsensus().fit(load_electricity()).consensus_.shape
    (6,)
    """

    alpha: float = 1.0
    alpha_consensus: float = 0.001

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha_consensus": [Interval(Real, 0, None, closed="left")],
    }

    _grid = grid(
        alpha=(30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003),
        alpha_consensus=(0.01, 0.0001),
    )

    def _fit_loss(self, loss: QuadraticLoss, _: AbstractStatistics) -> Parts:
        # With v_i eliminated, the loss of user i is 1/2 theta'M theta - theta'M A^-1 b with
        # M = 2 alpha A (A + 2 alpha)^-1: in the eigenbasis, the divisions below.
        n_users, n_features = loss.shape
        matrix = 2.0 * self.alpha_consensus * n_users * np.eye(n_features)
        right = np.zeros(n_features)
        blocks = list(spectra(loss))
        for part in blocks:
            share = 2.0 * self.alpha / (part.curvature + 2.0 * self.alpha)
            matrix += part.weighted_sum(share * part.curvature)
            right += part.back(share * part.slope).sum(axis=0)
        theta: Float = np.asarray(np.linalg.solve(matrix, right), dtype=np.float64)
        deviation = np.zeros(loss.shape)
        for part in blocks:
            residual = part.slope - part.curvature * part.into(theta)
            deviation[part.users] = part.back(residual / (part.curvature + 2.0 * self.alpha))
        return theta, deviation, np.zeros(loss.shape)


linear_model: Any = LazyModule("sklearn.linear_model")

# The input is checked once, not again for each user.
_UNCHECKED = {"assume_finite": True, "skip_parameter_validation": True}
# Blocks of users for each worker: enough for an even load.
_BLOCKS_EACH = 4


# Parameters are the fields of a dataclass: see `IterativeRanker`.
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
        "tol": [Interval(Real, 0, None, closed="neither")],
    }

    def _fit_annotations(self, annotations: Annotations) -> None:
        statistics = Statistics.from_annotations(annotations, "factored")
        ones = np.ones(statistics.n_features)
        self.scale_ = statistics.feature_scale() if self.standardize else ones
        users, found = self._fit_parts(annotations, statistics)
        weights, stopped = np.vstack([some for some, _ in found]), sum(count for _, count in found)
        if stopped:
            warnings.warn(
                f"{stopped} of {counted(len(weights), 'logistic regression')} stopped after "
                f"{counted(self.max_iter, 'iteration')}, before tol={self.tol:g} was reached. "
                "Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )
        self.users_, self.consensus_ = annotations.user_ids, weights.mean(axis=0)
        self.coef_ = np.tile(self.consensus_, (annotations.n_users, 1))
        self.coef_[users] = weights

    def _fit_parts(
        self, annotations: Annotations, statistics: Statistics
    ) -> tuple[Index | slice, list[tuple[Float, int]]]:
        """Return the users whose weights are found, and what `_fit_each` returned."""
        raise NotImplementedError

    def _fit_each(self, parts: Iterable[Annotations]) -> tuple[Float, int]:
        """Return the weights of a regression for each part, and how many stopped early."""
        model = linear_model.LogisticRegression(C=self.C, tol=self.tol, max_iter=self.max_iter)
        weights, stopped = [], 0
        assert self.scale_ is not None
        with warnings.catch_warnings(), config_context(**_UNCHECKED):
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            for rows in parts:
                # The intercept absorbs any shift, and the solver loses no digits near the origin.
                moved = rows.X - np.average(rows.X, axis=0, weights=rows.weights)
                model.fit(moved / self.scale_, rows.labels, rows.weights)
                weights.append(model.coef_[0] / self.scale_)
                stopped += int(model.n_iter_[0] >= self.max_iter)
        return np.array(weights), stopped


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
        The number of blocks of users fitted at the same time (joblib).

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
        "n_jobs": [Integral, None],
    }

    _grid = grid(C=(0.01, 0.1, 1.0, 10.0))

    def _fit_parts(
        self, annotations: Annotations, statistics: Statistics
    ) -> tuple[Index, list[tuple[Float, int]]]:
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        able = np.flatnonzero(statistics.has_pairs)
        n_blocks = min(len(able), _BLOCKS_EACH * effective_n_jobs(self.n_jobs))
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_block)(annotations, users) for users in np.array_split(able, n_blocks)
        )
        return able, found

    def _fit_block(self, annotations: Annotations, users: Index) -> tuple[Float, int]:
        order, offsets = annotations.user_index()
        return self._fit_each(annotations[order[offsets[u] : offsets[u + 1]]] for u in users)


class PooledLogistic(_LogisticRanker):
    """One logistic regression over all rows (scikit-learn's, with an intercept).

    Parameters
    ----------
    C, standardize, tol, max_iter, unknown, user_column, verbose
        As in `LogisticPerUser`; C multiplies the sum over all rows.

    Attributes
    ----------
    coef_, consensus_, users_, scale_, classes_
        As in `ThreeLevelRanker`; each row of ``coef_`` is the consensus.
    """

    _grid = grid(C=(1e-5, 1e-4, 1e-3, 1e-2, 0.1, 1.0))

    def _fit_parts(
        self, annotations: Annotations, statistics: Statistics
    ) -> tuple[slice, list[tuple[Float, int]]]:
        if not statistics.class_weight.sum(axis=0).all():
            raise ValueError(
                "All labels are of one class: a ranker needs positive and negative ones."
            )
        return slice(None), [self._fit_each([annotations])]
