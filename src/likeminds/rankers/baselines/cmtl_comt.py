"""Competitors for whom people form clusters: CMTL and COMT."""

from dataclasses import dataclass
from itertools import product
from numbers import Integral
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from likeminds.components import (
    Clustered,
    Component,
    Group,
    MeanRegularised,
)
from likeminds.losses import QuadraticLoss
from likeminds.rankers.baselines._multitask_base import (
    AT_LEAST_ZERO,
    COUNT,
    MULTIPLES,
    POSITIVE,
    Competitor,
    mean_curvature,
)


@dataclass(eq=False, repr=False)
class CMTL(Competitor):
    """Clustered multi-task learning: people near a few centres.

    Minimises the loss plus rho1 eta (1 + eta) tr(W' (eta + M)^-1 W) over W and the matrix M of
    people x people with eigenvalues between 0 and 1 that sum up to ``n_clusters``; eta is
    rho2 / rho1 (Zhou, Chen and Ye, NIPS 2011: the convex relaxation of k-means).

    Parameters
    ----------
    rho1, rho2 : float, optional
        Penalty on the distance from the centres, and on everything; by default 1 and 0.1 times
        the loss's mean curvature.
    n_clusters : int, optional
        How many centres; by default 5, or as many as there are people.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    clustered_part_ : array of shape (n_users, n_features)
        The weights; ``components_[0].matrix(clustered_part_ * scale_)`` is M.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> CMTL(n_clusters=3).fit(load_electricity()).coef_.shape
    (361, 6)
    """

    rho1: float | None = None
    rho2: float | None = None
    n_clusters: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "rho1": POSITIVE,
        "rho2": POSITIVE,
        "n_clusters": [Interval(Integral, 1, None, closed="left"), None],
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        unit = mean_curvature(loss)
        return [
            Clustered(
                unit if self.rho1 is None else self.rho1,
                0.1 * unit if self.rho2 is None else self.rho2,
                min(5, loss.shape[0]) if self.n_clusters is None else self.n_clusters,
            )
        ]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        unit = mean_curvature(loss)
        return [
            {"rho1": first * unit, "rho2": second * unit, "n_clusters": n_clusters}
            for first, second, n_clusters in product(
                (10.0, 1.0), (1.0, 0.1, 0.01, 0.001), (1, 2, 5)
            )
            if n_clusters <= min(loss.shape)
        ]


@dataclass(eq=False, repr=False)
class COMT(Competitor):
    """Co-clustered multi-task learning: people near their mean, and schools of thought.

    Minimises the loss at W = P + Q plus alpha_mean * sum_i |P_i - mean of P|^2 plus alpha_group
    * sum_{j > n_groups} sigma_j(Q)^2 (Xu, Huang, Zhou, Chen and Ye, AAAI 2015).

    The two penalties act as one: what lies outside the mean and the strong directions is divided
    between P and Q at the price alpha_mean alpha_group / (alpha_mean + alpha_group) for its
    square. With that price as ``alpha_group``, no ridge on the consensus and no personal level,
    `ThreeLevelRanker` is the same model.

    Parameters
    ----------
    alpha_mean, alpha_group : float, optional
        The two penalties; by default the loss's mean curvature.
    n_groups : int, optional
        How many directions of Q are free; by default 2, or fewer on small data.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    near_mean_part_, group_part_ : arrays of shape (n_users, n_features)
        P and Q.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> ranker = COMT(n_groups=1).fit(load_electricity())
    >>> sorted(ranker.parts_)
    ['group', 'near_mean']
    """

    alpha_mean: float | None = None
    alpha_group: float | None = None
    n_groups: int | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "alpha_mean": AT_LEAST_ZERO,
        "alpha_group": AT_LEAST_ZERO,
        "n_groups": COUNT,
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        unit = mean_curvature(loss)
        return [
            MeanRegularised(unit if self.alpha_mean is None else self.alpha_mean),
            Group(
                unit if self.alpha_group is None else self.alpha_group,
                min(2, (min(loss.shape) - 1) // 2) if self.n_groups is None else self.n_groups,
            ),
        ]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        unit = mean_curvature(loss)
        return [
            {"alpha_mean": times * unit, "alpha_group": times * unit, "n_groups": n_groups}
            for n_groups, times in product((0, 1, 2, 4), MULTIPLES)
            if n_groups < min(loss.shape)
        ]
