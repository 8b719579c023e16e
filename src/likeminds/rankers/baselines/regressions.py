"""Ridge and logistic regressions: one for all users, one per user, or shrunk to a consensus."""

import warnings
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass, field
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from joblib import Parallel, delayed
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval

from likeminds._util.array_types import Float, Index
from likeminds._util.lazy_imports import LazyModule
from likeminds._util.per_user_arrays import (
    EXACT,
    damped_newton,
    lift_diagonal,
    row_dots,
    solve,
    times,
    times_back,
)
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.losses import Loss, QuadraticLoss
from likeminds.losses.quadratic import spectra, spectrum_of_factors
from likeminds.losses.rows import POSITIVE, RowBlock, Rows
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.rankers.training_checks import warn_of_one_class
from likeminds.solvers.solver import Parts


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class _RidgeRanker(StatisticsRanker):
    """Base class of baselines with one penalty."""

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
    """Return all combinations; values of the last name change fastest."""
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
    """Ridge regression towards a consensus: the three-level model with ridge deviations only.

    It minimises sum_i [l_i(theta + v_i) + alpha |v_i|^2] + n_users alpha_consensus |theta|^2 over
    theta and v_i. Eliminating the v_i leaves one linear system.

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
        # With v_i eliminated, the loss of user i is 1/2 theta'M theta - theta'M A^-1 b with M = 2
        # alpha A (A + 2 alpha)^-1. In the eigenbasis, these are the divisions below.
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

# Added to the diagonals of Hessians, relative to their trace.
_LIFT = 1e-13


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class _LogisticRanker(Ranker):
    """Base class of logistic rankers, with standardised features."""

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
        users, weights, stopped = self._fit_parts(annotations, statistics)
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
    ) -> tuple[Index | slice, Float, int]:
        """Return users, weights (one row for all, or one per user), and how many fits stopped."""
        raise NotImplementedError


@dataclass(eq=False, repr=False)
class LogisticPerUser(_LogisticRanker):
    """A logistic regression for each user, with an intercept, by Newton's method.

    Parameters
    ----------
    C : float, default=1.0
        Inverse of the ridge on each user's weights, as in
        `sklearn.linear_model.LogisticRegression`. It multiplies the sum of losses of the user's
        rows.
    standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.
    tol
        A regression has converged if its largest gradient, per unit of C and of its rows' weight,
        is below this, as in scikit-learn.
    max_iter
        The most Newton steps.
    n_jobs : int, optional
        The number of blocks of users fitted in parallel (joblib).

    Attributes
    ----------
    coef_, consensus_, users_, scale_, classes_
        As in `ThreeLevelRanker`; the consensus is the mean over users. Users with labels of one
        class get the consensus.

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
        self,
        annotations: Annotations,  # noqa: ARG002
        statistics: Statistics,
    ) -> tuple[Index, Float, int]:
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        rows = statistics.rows.of(statistics.has_pairs[statistics.rows.users])
        found = Parallel(n_jobs=self.n_jobs)(
            delayed(self._fit_block)(rows, chosen, statistics.origin) for chosen in rows.plan()
        )
        users, weights, stopped = zip(*found, strict=True)
        order = np.argsort(np.concatenate(users))
        return np.concatenate(users)[order], np.vstack(weights)[order], sum(stopped)

    def _fit_block(self, rows: Rows, chosen: Index, origin: Float) -> tuple[Index, Float, int]:
        """Return users, their weights, and how many fits stopped early."""
        assert self.scale_ is not None
        block = rows.block(chosen, origin)
        problem = _LogisticProblem.of(block, self.scale_, self.C)
        z, stopped = problem.minimise(self.tol, self.max_iter)
        return block.users, problem.weights(z) / self.scale_, stopped


@dataclass(frozen=True)
class _LogisticProblem:
    """Logistic regressions of some users, with rows in coordinates of their span."""

    basis: Float | None  # of each user's span, in rows; None for features themselves
    design: Float  # coordinates, and ones; shape (b, n, m + 1)
    positive: Float  # 1 or 0, shape (b, n)
    weight: Float  # C times the weight of each row, shape (b, n); zero for padding

    @classmethod
    def of(cls, block: RowBlock, scale: Float, C: float) -> "_LogisticProblem":
        weight = block.weight.sum(axis=1)
        # The intercept absorbs any shift, and sums lose no digits near the origin.
        mean = times_back(block.rows, weight) / weight.sum(axis=1)[:, None]
        rows = (block.rows - mean[:, None]) * (weight > 0)[:, :, None] / scale
        basis, (_, n_rows, n_features) = None, rows.shape
        if n_rows < n_features:
            # The minimum is a combination of the rows, so there are fewer unknowns than features.
            basis = spectrum_of_factors(block.users, rows, weight).basis
            rows = rows @ basis.transpose(0, 2, 1)
        design = np.concatenate([rows, np.ones((*rows.shape[:2], 1))], axis=2)
        positive = (block.weight[:, POSITIVE] > 0).astype(np.float64)
        return cls(basis, design, positive, C * weight)

    def minimise(self, tol: float, max_iter: int) -> tuple[Float, int]:
        """Return the coordinates with the intercept last, and how many fits stopped early."""
        start = np.zeros((len(self.design), self.design.shape[2]))
        enough = max(EXACT, tol**2)
        z, scores = damped_newton(start, self._at, self._step, enough=enough, n_steps=max_iter)
        slope = np.abs(self._slope(z, expit(scores))).max(axis=1)
        return z, int((slope > tol * self.weight.sum(axis=1)).sum())

    def weights(self, z: Float) -> Float:
        """Return the weights of features."""
        return z[:, :-1] if self.basis is None else times_back(self.basis, z[:, :-1])

    def _at(self, z: Float) -> tuple[tuple[Float, Float], Float]:
        scores = times(self.design, z)
        loss = np.logaddexp(0.0, scores) - self.positive * scores
        return (z, scores), row_dots(self.weight, loss) + 0.5 * (z[:, :-1] ** 2).sum(axis=1)

    def _slope(self, z: Float, odds: Float) -> Float:
        slope = times_back(self.design, self.weight * (self.positive - odds))
        slope[:, :-1] -= z[:, :-1]
        return slope

    def _step(self, found: tuple[Float, Float]) -> Float:
        z, scores = found
        odds = expit(scores)
        rows = np.sqrt(self.weight * odds * (1.0 - odds))[:, :, None] * self.design
        hessian = rows.transpose(0, 2, 1) @ rows
        features = np.arange(z.shape[1] - 1)
        hessian[:, features, features] += 1.0
        right = self._slope(z, odds)[:, :, None]
        return solve(lift_diagonal(hessian, _LIFT), right)[:, :, 0]


@dataclass(eq=False, repr=False)
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
    ) -> tuple[slice, Float, int]:
        if not statistics.class_weight.sum(axis=0).all():
            raise ValueError("All labels are of one class. Pass positive and negative labels.")
        assert self.scale_ is not None
        model = linear_model.LogisticRegression(C=self.C, tol=self.tol, max_iter=self.max_iter)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # counted instead
            # The intercept absorbs any shift, and the solver loses no digits near the origin.
            moved = annotations.X - np.average(annotations.X, axis=0, weights=annotations.weights)
            model.fit(moved / self.scale_, annotations.labels, annotations.weights)
        return slice(None), model.coef_ / self.scale_, int(model.n_iter_[0] >= self.max_iter)
