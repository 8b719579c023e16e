"""Ridge regressions in closed form: consensus only, one per user, and both."""

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import product
from numbers import Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likeminds._util.array_types import Float, IdArray
from likeminds.losses import Loss, QuadraticLoss
from likeminds.losses.quadratic import spectra
from likeminds.losses.statistics import Statistics
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.solvers.solver import Parts


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
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
        **StatisticsRanker._parameter_constraints,
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "verbose": ["boolean"],
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

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> ConsensusOnly().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    def _fit_loss(
        self,
        loss: QuadraticLoss,
        user_ids: IdArray,  # noqa: ARG002
    ) -> Parts:
        n_users, n_features = loss.shape
        ridge = 2.0 * self.alpha * n_users * np.eye(n_features)
        theta = np.linalg.solve(loss.total_matrix() + ridge, loss.linear.sum(axis=0))
        zeros = np.zeros(loss.shape)
        return theta, zeros, zeros

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(alpha=(1.0, 0.1, 0.01, 0.001, 0.0001))


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

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> OnePerUser().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    def _fit_loss(
        self,
        loss: QuadraticLoss,
        user_ids: IdArray,  # noqa: ARG002
    ) -> Parts:
        weights = np.zeros(loss.shape)
        for part in spectra(loss):
            weights[part.users] = part.back(part.slope / (part.curvature + 2.0 * self.alpha))
        return np.zeros(loss.shape[1]), weights, np.zeros(loss.shape)

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(alpha=(10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003, 0.001, 0.0003))


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
        **_RidgeRanker._parameter_constraints,
        "alpha_consensus": [Interval(Real, 0, None, closed="left")],
    }

    def _fit_loss(
        self,
        loss: QuadraticLoss,
        user_ids: IdArray,  # noqa: ARG002
    ) -> Parts:
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

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:  # noqa: ARG002
        return grid(
            alpha=(30.0, 10.0, 3.0, 1.0, 0.3, 0.1, 0.03, 0.01, 0.003),
            alpha_consensus=(0.01, 0.0001),
        )
