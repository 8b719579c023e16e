"""The paper's ranker: consensus + group + personal, fitted to the squared AUC loss."""

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass, replace
from functools import cache, cached_property, partial
from numbers import Integral, Real
from threading import RLock
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import row_dots
from likeminds.components import (
    Component,
    Consensus,
    Group,
    Personal,
    top_directions,
    total_weights,
)
from likeminds.data.annotations import Annotations
from likeminds.losses import Loss, as_loss
from likeminds.losses.quadratic import QuadraticLoss, RowFactors, spectrum_of_factors
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.likelihoods import GaussianLikelihood
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.responses import InMemoryResponses, PaddedRows
from likeminds.mixed_model.user_posteriors import FittedPrior, posterior_of
from likeminds.rankers import newcomers
from likeminds.rankers.candidates import Candidate
from likeminds.rankers.capabilities import PendingReaders
from likeminds.rankers.statistics_rankers import IterativeRanker
from likeminds.rankers.three_level_path import ThreeLevels, default_grid
from likeminds.solvers import SOLVERS, FastSolver, Solver
from likeminds.solvers.solver import Parts
from likeminds.solvers.variable_projection import FitPoint, Penalty, fit_coordinates

# The number of users from whose residuals the precision is estimated.
_SAMPLE = 2000
# The rank of a new user's posterior covariance, as in `HierarchicalRanker`.
_COVARIANCE_RANK = 16
# The least residual variance, as a share of the variance along the strong directions.
_LEAST = 1e-6
# The default of n_groups, except on small data.
_USUAL_GROUPS = 2


def usual_alpha_group(features_per_label: float) -> float:
    """Return the default penalty on the group level, given the number of features per label.

    Examples
    --------
    >>> usual_alpha_group(0.2)
    0.5
    """
    return 0.3 + features_per_label


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class ThreeLevelRanker(IterativeRanker):
    """One ranking function per user: consensus + group + personal.

    It minimises, over theta, G and P (Yang, Xu, Cao and Huang, AAAI 2019),

        sum_i l_i(theta + G_i + P_i) + lambda1 |theta|^2 + lambda2 sum_{j > n_groups} sigma_j(G)^2
            + lambda4 sum_{j <= n_groups} sigma_j(G)^2 + lambda3 sum_i |P_i|

    where sigma_j are singular values. The loss l_i is half the mean of (1 - difference of scores)^2
    over pairs of a positive and a negative row of user i. A keyboard interrupt keeps the best
    levels so far, with a warning.

    Parameters
    ----------
    alpha_consensus : float, default=0.001
        Ridge on the consensus, per user: lambda1 is ``alpha_consensus`` times the number of users.
    alpha_group : float, optional
        Penalty on the weak directions of the group level, the paper's lambda2. The default is 0.3
        plus the number of features per label of a user.
    alpha_personal : float, default=1.0
        Penalty on the personal level, the paper's lambda3. It makes this level zero for most users.
    n_groups : int, optional
        The number of strong directions of the group level, the paper's kappa. It is at most the
        number of users and of features. The default is 2, or fewer on small data.
    group_shrinkage : float, default=0.0
        Penalty on the strong directions, lambda4, at most ``alpha_group``. The paper's model has 0;
        small values help if users have few labels.
    loss : {"auc", "least_squares", "least_squares_raw"} or Loss, default="auc"
        "auc" is the paper's loss above. "least_squares" regresses labels of +-1 on features, with
        an intercept for each user. "least_squares_raw" has no intercept and is a sum over rows, so
        it needs larger penalties.
    standardize : bool, default=True
        Scale features to unit variance for the fit. Coefficients are in original units.
    solver : {"fast", "accelerated", "paper", "authors"} or Solver, default="fast"
        "fast" is Newton's method on the reduced problem. "accelerated" is the solver for any list
        of components. "paper" is the algorithm as printed, which takes thousands of iterations.
        "authors" is the authors' published program, with Nesterov momentum.
    tol : float, default=1e-4
        Stop when the optimality residual is below this. It is the length of a subgradient of the
        objective, over the length of the gradient of the loss at zero. With "authors", stop when
        the relative change of the objective is below this.
    max_iter : int, default=1000
        The most iterations; reaching it gives a warning.
    unknown : {"error", "consensus"}, default="error"
        Users not seen in training raise an error, or get consensus scores. Without features, new
        items raise an error, or get the score of an average item.
    user_column : int or str, optional
        The column of X with the user of each label, by position or name. It serves scikit-learn
        tools that do not pass ``users``.
    warm_start : bool, default=False
        Whether to start from the last solution instead of zero.
    callback : callable, optional
        Called as ``callback(step, objective, residual)`` after each step of the solver; return True
        to stop. Callbacks of scikit-learn (``set_callbacks``, since 1.9) are also called.
    verbose : bool, default=False
        Whether to print steps and objective on stderr.

    Attributes
    ----------
    users_ : array of shape (n_users,)
        The users seen in training.
    coef_ : array of shape (n_users, n_features)
        Users' weights: ``consensus_ + group_ + personal_``.
    consensus_ : array of shape (n_features,)
        Theta plus the mean of G.
    group_ : array of shape (n_users, n_features)
        The group level: G, centred.
    personal_ : array of shape (n_users, n_features)
        The personal level: P.
    raw_consensus_, raw_group_, raw_personal_ : arrays
        theta, G and P before centring. theta is not identified, because the strong directions of G
        have no penalty and can absorb it.
    alpha_group_, n_groups_ : float, int
        The values used.
    scale_ : array of shape (n_features,)
        The unit of each feature. The objective is a function of ``raw_* * scale_``.
    objective_ : float
        The minimum of the formula above, in units of ``scale_``.
    objective_trace_ : array
        The objective at the start and after each iteration.
    n_iter_ : int
        The number of iterations.
    converged_ : bool
        Whether the residual reached ``tol``.
    prior_, huber_threshold_ : FittedPrior, float
        For `newcomer`: the prior of new users' weights, with the precision of labels, and the
        length from which deviations have a linear penalty.
    n_labels_ : int
        The number of labels.
    statistics_ : Statistics
        The statistics of all labels, for `update`. Files have them if saved with
        ``with_data=True``. After a fit on a cluster, they stay there.
    final_steps_ : list of str
        Steps after the optimum: "centre_group" (moves the mean of G into theta, which does not
        change the objective).
    solution_ : Solution
        The result of the solver, with its history.
    classes_ : array of shape (2,)
        The two labels, the positive label last.
    feature_names_in_, n_features_in_
        As in scikit-learn.
    feature_names_ : array
        Names of the columns of ``coef_`` (those of X, less ``user_column``).

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = ThreeLevelRanker().fit(households)
    >>> [str(name) for name in ranker.feature_names_[ranker.consensus_ > 0]]
    ['local_company', 'known_company']
    """

    alpha_consensus: float = 0.001
    alpha_group: float | None = None
    alpha_personal: float = 1.0
    n_groups: int | None = None
    _: KW_ONLY
    group_shrinkage: float = 0.0
    solver: str | Solver = "fast"

    takes_newcomers = True
    _tuning = ThreeLevels
    newcomer = newcomers.newcomer
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "alpha_consensus": [Interval(Real, 0, None, closed="left")],
        "alpha_group": [Interval(Real, 0, None, closed="left"), None],
        "alpha_personal": [Interval(Real, 0, None, closed="left")],
        "n_groups": [Interval(Integral, 0, None, closed="left"), None],
        "group_shrinkage": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS)), HasMethods("solve")],
    }

    def _fit_loss(self, loss: QuadraticLoss, summary: AbstractStatistics) -> Parts:
        return self._solve(self._solver, loss, self._levels(summary), summary.user_ids)

    @property
    def _solver(self) -> Solver:
        return SOLVERS[self.solver] if isinstance(self.solver, str) else self.solver

    @property
    def _takes_blocks(self) -> bool:  # type: ignore[override]
        return isinstance(self._solver, FastSolver)

    def _levels(self, statistics: AbstractStatistics) -> list[Component]:
        n_users, n_features = statistics.n_users, statistics.n_features
        usual_alpha = self._usual_alpha(statistics)
        self.alpha_group_ = usual_alpha if self.alpha_group is None else self.alpha_group
        most = min(n_users, n_features)
        # At most about half the numbers of users and features.
        usual = min(_USUAL_GROUPS, (n_users - 1) // 2, n_features // 2)
        self.n_groups_ = usual if self.n_groups is None else self.n_groups
        if self.n_groups_ > most:
            raise ValueError(
                f"n_groups is {self.n_groups_}, but {n_users} users with {n_features} features "
                f"have at most {most} directions. Choose from 0 to {most}, or omit n_groups."
            )
        return [
            Consensus(self.alpha_consensus * n_users),
            Group(self.alpha_group_, self.n_groups_, self.group_shrinkage),
            Personal(self.alpha_personal),
        ]

    @staticmethod
    def _usual_alpha(statistics: AbstractStatistics) -> float:
        labels_each = float(statistics.class_weight.sum()) / statistics.n_users
        return usual_alpha_group(statistics.n_features / labels_each)

    def _default_grid(self, statistics: Statistics) -> list[Candidate]:
        return default_grid(self._usual_alpha(statistics))

    def _finalise(self, loss: QuadraticLoss, summary: AbstractStatistics, parts: Parts) -> None:
        """Estimate the precision of labels; compute the prior of new users on first use."""
        self.final_steps_ = ["centre_group"]  # in `_set_parts`
        assert self.n_groups_ is not None
        precision = self._precision(loss, summary.class_weight, parts)
        units = summary.origin, self.scale_
        prior = cache(
            partial(_newcomer_prior, parts, summary.has_pairs, self.n_groups_, units, precision)
        )
        threshold = 0.5 * self.alpha_personal / max(self.alpha_group_, 1e-12)
        # Deviations of typical length have a quadratic penalty.
        readers: dict[str, Callable[[], Any]] = {
            "prior_": prior,
            "huber_threshold_": lambda: max(
                threshold, float(np.linalg.norm(prior().prior.residual))
            ),
        }
        for name in readers:
            self.__dict__.pop(name, None)
        self._unread = PendingReaders(readers, RLock())

    def _precision(self, loss: QuadraticLoss, class_weight: Float, parts: Parts) -> float:
        """Return the inverse mean square of the residuals of evenly spaced users."""
        weight, count = as_loss(self.loss).weight_and_count(class_weight)
        some = slice(None, None, 1 + len(weight) // _SAMPLE)
        squares = float(weight[some] @ loss.squares(total_weights(parts, len(weight)))[some])
        observations = float(count[some].sum())
        # Keep the precision finite if all residuals are zero.
        return observations / max(squares, _LEAST * observations) if observations else 1.0

    def _newcomers(self) -> "ThreeLevelNewcomers":
        assert self.prior_ is not None
        return ThreeLevelNewcomers(self.prior_, as_loss(self.loss), self.huber_threshold_)

    def _fitted_parts(self) -> list[Float]:
        assert self.raw_personal_ is not None
        return [self.raw_consensus_, self.raw_group_, self.raw_personal_]


@one_blas_thread()
def _newcomer_prior(
    parts: Parts, has_pairs: Bool, n_groups: int, units: tuple[Float, Float], precision: float
) -> FittedPrior:
    """Estimate the prior of new users' weights from the levels of users with pairs."""
    theta, G, P = parts
    deviation = (G + P)[has_pairs]
    deviation -= deviation.mean(axis=0)
    B = top_directions(G, n_groups)
    C = deviation @ B
    n_users, n_features = deviation.shape
    covariance = C.T @ C / n_users
    residual = float(np.vdot(deviation, deviation) - np.vdot(C, C)) / n_users
    residual = max(residual, 0.0) / max(n_features - n_groups, 1)
    residual = max(residual, _LEAST * float(np.trace(covariance)) / n_features, 1e-12)
    variance, axes = np.linalg.eigh(covariance)
    loadings = B @ (axes * np.sqrt(np.maximum(variance, 0.0) / residual))
    return FittedPrior(
        Design(*units, None, intercept=False),
        GaussianPrior(
            theta + G[has_pairs].mean(axis=0), loadings, np.full(n_features, np.sqrt(residual))
        ),
        GaussianLikelihood(precision),
    )


@dataclass(frozen=True)
class ThreeLevelNewcomers:
    """Posteriors of new users, with weights consensus + B c + V and strong directions B.

    Both c and V have a Gaussian prior, estimated from training users. The squared loss is a
    regression with the precision of their residuals, so posteriors need one small linear system.
    Deviations V longer than the threshold are penalised by their length, not its square (see
    `solvers`).
    """

    fitted_prior: FittedPrior
    loss: Loss
    threshold: float

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return each user's mode and matrix K; see `Posterior`."""
        fitted_prior = self.fitted_prior
        graded = self.loss.takes_grades
        statistics = Statistics.from_annotations(annotations, "factored", graded=graded)
        weight, count = self.loss.weight_and_count(statistics.class_weight)
        factors = self.loss.block(statistics, fitted_prior.design.scale, slice(None)).factors
        points, known = posterior_of(
            _FactorResponses(factors, weight, count),
            annotations.n_users,
            fitted_prior,
            warm_starts=WarmStarts(),
            rank=_COVARIANCE_RANK,
        )
        if isinstance(fitted_prior.likelihood, GaussianLikelihood):
            weight = weight * fitted_prior.likelihood.precision
        self._refit_large_deviations(points, factors, weight, fitted_prior.prior)
        return points, known

    def answered(self, annotations: Annotations, posterior: Posterior) -> None:
        """Return None, because the squared loss is not a likelihood of labels."""

    def _refit_large_deviations(
        self, points: Float, factors: RowFactors, weight: Float, prior: GaussianPrior
    ) -> None:
        """Solve again for users whose deviation V exceeds the threshold."""
        residual = prior.inverse_middle @ prior.inverse_middle
        V = (points - prior.mean) @ residual
        beyond = row_dots(V, V) > self.threshold**2
        if not beyond.any():
            return
        variance = float(prior.residual[0]) ** 2
        penalty = Penalty(0.0, 0.5 / variance, self.threshold / variance, 0.5, prior.rank)
        directions = prior.scaled_loadings
        rows = factors.rows
        for users, Z, target in replace(factors, rows=rows.of(beyond[rows.users])):
            part = spectrum_of_factors(users, Z, target)
            counted = weight[users, None]
            part = replace(part, curvature=part.curvature * counted, slope=part.slope * counted)
            start = np.zeros((len(users), prior.rank))
            found = fit_coordinates(part, FitPoint(penalty, 1e-12, prior.mean, directions), start)
            deviations = part.back(found.deviations.v)
            points[users] = prior.mean + found.C @ directions.T + deviations


@dataclass(frozen=True)
class _FactorResponses(InMemoryResponses):
    """The factors of a quadratic loss as blocks of a regression."""

    factors: RowFactors
    weight: Float
    count: Float

    @property
    def n_users(self) -> int:
        """The number of users."""
        return len(self.factors.rows.users)

    @property
    def n_bytes(self) -> int:
        """The approximate size of all blocks."""
        rows = self.factors.rows
        return 8 * len(rows.index) * int(rows.table.shape[1])

    @cached_property
    def plan(self) -> Sequence[Index]:
        """The users of each block."""
        return list(self.factors.rows.plan())

    def data(self, number: int) -> PaddedRows:
        """Return one block."""
        users, Z, target = self.factors.of(self.plan[number])
        weight = np.repeat(self.weight[users, None], Z.shape[1], axis=1)
        return PaddedRows(users, Z, target, weight, self.count[users])

    def of_users(self, chosen: Bool) -> "_FactorResponses":
        """Raise NotImplementedError, because new users do not change the prior."""
        raise NotImplementedError
