"""The multi-task baselines of the paper, each a list of components with penalties.

Default penalties are multiples of a unit. For norms, the unit is the smallest penalty at which the
part is zero. For squares, it is the mean curvature of the loss. ``components_`` has the values
used.
"""

from collections.abc import Callable
from dataclasses import Field, dataclass, field, fields
from itertools import chain, product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likeminds.components import (
    CappedLowRank,
    Clustered,
    Component,
    Group,
    LowRank,
    MeanRegularised,
    Personal,
    SharedFeatures,
    Sparse,
)
from likeminds.losses import QuadraticLoss, as_loss
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.rankers.candidates import Candidate
from likeminds.rankers.decomposed import ComponentsRanker
from likeminds.rankers.three_level_path import NewtonSearch
from likeminds.solvers import CoClusteredSolver
from likeminds.solvers.newton_three_level import Eigendecomposition
from likeminds.solvers.solver import Parts

# Candidates for tuning, as multiples of the unit.
_SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
_FEW_SHARES = (0.3, 0.1, 0.03, 0.01, 0.003)
_PERSONAL_SHARES = (1.0, 0.3, 0.1, 0.03)  # at 1, the personal part is zero

_SHARED_DOC = """
    {parameters}
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    {parts} : array of shape (n_users, n_features)
        The parts of the weights.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.
    """


def mean_curvature(loss: QuadraticLoss) -> float:
    """Return the mean over users and features of the loss's curvature."""
    return float(np.trace(loss.total_matrix())) / (loss.shape[0] * loss.shape[1]) or 1.0


def silencing(
    kind: type[LowRank] | type[Personal] | type[SharedFeatures] | type[Sparse],
) -> Callable[[QuadraticLoss], float]:
    """Return a function from the loss to the smallest penalty at which such a part is zero."""
    return lambda loss: kind(1.0).silencing_alpha(loss.linear)


def _typical_weight(loss: QuadraticLoss) -> float:
    """Return the order of magnitude of singular values of weights: slope over curvature."""
    return silencing(LowRank)(loss) / mean_curvature(loss)


def _penalty(
    unit: Callable[[QuadraticLoss], float],
    usual: float = 0.03,
    tried: tuple[float, ...] = _FEW_SHARES,
    closed: str = "left",
) -> float | None:
    """Declare a penalty by its unit, default and candidates in that unit, and range."""
    how = {
        "range": Interval(Real, 0, None, closed=closed),
        "default": lambda loss: usual * unit(loss),
        "candidates": lambda loss: (np.array(tried) * unit(loss)).tolist(),
    }
    return field(default=None, metadata=how)


def _count(
    usual: Callable[[QuadraticLoss], int],
    tried: tuple[int, ...],
    most: Callable[[QuadraticLoss], int],
) -> int | None:
    """Declare a number of clusters or groups by its default, and candidates up to a limit."""
    how = {
        "range": Interval(Integral, tried[0], None, closed="left"),
        "default": usual,
        "candidates": lambda loss: [number for number in tried if number <= most(loss)],
    }
    return field(default=None, metadata=how)


@dataclass(eq=False, repr=False, kw_only=True)
class PaperBaseline(ComponentsRanker):
    """Base class; subclasses declare parameters, components, and axes of the grid.

    The last axis of the grid changes fastest. Parameters of one axis change together.
    """

    _parts: ClassVar[tuple[tuple[type[Component], tuple[str, ...]], ...]]
    _axes: ClassVar[tuple[tuple[str, ...], ...]] = (("alpha",),)

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        own = {name: one for name, one in vars(cls).items() if isinstance(one, Field)}
        cls._parameter_constraints |= {n: [one.metadata["range"], None] for n, one in own.items()}
        if cls.__doc__:
            parts = ", ".join(f"{kind.name}_part_" for kind, _ in cls._parts)
            summary, _, parameters = cls.__doc__.rstrip().partition("\n\n    Parameters\n")
            shared = _SHARED_DOC.format(parameters=parameters.strip(), parts=parts)
            cls.__doc__ = f"{summary}\n\n    Parameters{shared}"

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        values = {}
        for one in fields(self):
            if one.metadata:
                given = getattr(self, one.name)
                values[one.name] = one.metadata["default"](loss) if given is None else given
        return [kind(*(values[name] for name in names)) for kind, names in self._parts]

    def _default_grid(self, statistics: Statistics) -> list[Candidate]:
        """Return candidates for the parameters, strong penalties first."""
        scale = statistics.feature_scale() if self.standardize else None
        loss = as_loss(self.loss).of(statistics, scale)
        tried = {one.name: one.metadata["candidates"](loss) for one in fields(self) if one.metadata}
        axes = [zip(*(tried[name] for name in names), strict=True) for names in self._axes]
        names = [name for axis in self._axes for name in axis]
        return [dict(zip(names, chain(*chosen), strict=True)) for chosen in product(*axes)]


@dataclass(eq=False, repr=False)
class RMTL(PaperBaseline):
    """Robust multi-task learning: a low-rank part, and a sparse part for outlying users.

    With W = L + S, it minimises loss(W) + alpha_low_rank |L|_* + alpha_personal sum_i |S_i|, where
    |L|_* is the trace norm (Chen, Zhou and Ye, KDD 2011).

    Parameters
    ----------
    alpha_low_rank, alpha_personal : float, optional
        The two penalties; by default 0.03 times the smallest with parts of zero.
    """

    alpha_low_rank: float | None = _penalty(silencing(LowRank))
    alpha_personal: float | None = _penalty(silencing(Personal), tried=_PERSONAL_SHARES)

    _parts = ((LowRank, ("alpha_low_rank",)), (Personal, ("alpha_personal",)))
    _axes = (("alpha_personal",), ("alpha_low_rank",))


@dataclass(eq=False, repr=False)
class RMTFL(PaperBaseline):
    """Robust multi-task feature learning: shared features, and a part for outlying users.

    With W = P + Q, it minimises loss(W) + alpha_shared sum_j |P_j| + alpha_personal sum_i |Q_i|.
    P_j is the column of feature j, Q_i the row of user i (Gong, Ye and Zhang, KDD 2012).

    Parameters
    ----------
    alpha_shared, alpha_personal : float, optional
        The two penalties; by default 0.03 times the smallest with parts of zero.
    """

    alpha_shared: float | None = _penalty(silencing(SharedFeatures))
    alpha_personal: float | None = _penalty(silencing(Personal), tried=_PERSONAL_SHARES)

    _parts = ((SharedFeatures, ("alpha_shared",)), (Personal, ("alpha_personal",)))
    _axes = (("alpha_personal",), ("alpha_shared",))


@dataclass(eq=False, repr=False)
class LassoMTL(PaperBaseline):
    """The lasso for all users: the loss plus alpha times the sum of absolute weights.

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 times the smallest with weights of zero.
    """

    alpha: float | None = _penalty(silencing(Sparse), tried=_SHARES)

    _parts = ((Sparse, ("alpha",)),)


@dataclass(eq=False, repr=False)
class JFL(PaperBaseline):
    """Joint feature learning: each feature has a weight for all users or for none.

    It minimises loss(W) + alpha sum_j |W_j|, where W_j is the column of feature j (Argyriou,
    Evgeniou and Pontil, 2008; Nie et al., 2010).

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 times the smallest with weights of zero.
    """

    alpha: float | None = _penalty(silencing(SharedFeatures), tried=_SHARES)

    _parts = ((SharedFeatures, ("alpha",)),)


@dataclass(eq=False, repr=False)
class RAMU(PaperBaseline):
    """The trace norm with capped singular values: strong directions are not shrunk.

    It minimises loss(W) + alpha sum_j min(sigma_j(W), threshold) in stages (Han and Zhang, AAAI
    2016). In each stage, the singular values above the threshold have no penalty. Stages end when
    these values stay the same. An infinite threshold gives the plain trace norm.

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 times the smallest with weights of zero.
    threshold : float, optional
        The cap, in units of standardised weights if ``standardize`` is true. The default is 0.3
        times the largest singular value of users' gradients at zero, over the mean curvature.
    """

    alpha: float | None = _penalty(silencing(LowRank))
    threshold: float | None = _penalty(_typical_weight, 0.3, (3.0, 1.0, 0.3, 0.1), closed="both")

    _parts = ((CappedLowRank, ("alpha", "threshold")),)
    _axes = (("threshold",), ("alpha",))


@dataclass(eq=False, repr=False)
class CMTL(PaperBaseline):
    """Clustered multi-task learning: users near a few centres.

    It minimises loss(W) + rho1 eta (1 + eta) tr(W' (eta + M)^-1 W) over W and M, with eta = rho2 /
    rho1. M is a matrix of users x users whose eigenvalues are between 0 and 1 and sum up to
    ``n_clusters``. This is the convex relaxation of k-means (Zhou, Chen and Ye, NIPS 2011).
    ``components_[0].matrix(clustered_part_ * scale_)`` is M.

    Parameters
    ----------
    rho1, rho2 : float, optional
        Penalties on distances from the centres, and on all weights. The defaults are 1 and 0.1
        times the mean curvature of the loss.
    n_clusters : int, optional
        The number of centres; by default 5, or the number of users if that is smaller.
    """

    rho1: float | None = _penalty(mean_curvature, 1.0, (10.0, 1.0), closed="neither")
    rho2: float | None = _penalty(mean_curvature, 0.1, (1.0, 0.1, 0.01, 0.001), closed="neither")
    n_clusters: int | None = _count(
        lambda loss: min(5, loss.shape[0]), (1, 2, 5), lambda loss: min(loss.shape)
    )

    _parts = ((Clustered, ("rho1", "rho2", "n_clusters")),)
    _axes = (("rho1",), ("rho2",), ("n_clusters",))


@dataclass(eq=False, repr=False)
class COMT(PaperBaseline):
    """Co-clustered multi-task learning: users near their mean, and a group level.

    With W = P + Q, it minimises loss(W) + alpha_mean sum_i |P_i - mean of P|^2 + alpha_group sum_{j
    > n_groups} sigma_j(Q)^2 (L. Xu, A. Huang, J. Chen and E. Chen, AAAI 2015).

    Outside the mean and the strong directions, the two penalties act as one with the factor
    alpha_mean alpha_group / (alpha_mean + alpha_group). So `ThreeLevelRanker` is the same model,
    with that factor as ``alpha_group``, no ridge on the consensus and no personal level.

    Parameters
    ----------
    alpha_mean, alpha_group : float, optional
        The two penalties; by default the mean curvature of the loss.
    n_groups : int, optional
        The number of directions of Q without a penalty; by default 2, or fewer on small data.
    """

    alpha_mean: float | None = _penalty(mean_curvature, 1.0, (10.0, 3.0, 1.0, 0.3, 0.1))
    alpha_group: float | None = _penalty(mean_curvature, 1.0, (10.0, 3.0, 1.0, 0.3, 0.1))
    n_groups: int | None = _count(
        lambda loss: min(2, (min(loss.shape) - 1) // 2),
        (0, 1, 2, 4),
        lambda loss: min(loss.shape) - 1,
    )

    _parts = ((MeanRegularised, ("alpha_mean",)), (Group, ("alpha_group", "n_groups")))
    _axes = (("n_groups",), ("alpha_mean", "alpha_group"))

    _tuning = NewtonSearch

    def _fit_loss(
        self, loss: QuadraticLoss | Eigendecomposition, summary: AbstractStatistics
    ) -> Parts:
        solver = CoClusteredSolver()
        if isinstance(loss, Eigendecomposition):  # in a search
            solver, loss = CoClusteredSolver(loss, n_starts=1), loss.loss
        self.components_ = self._list_components(loss)
        return self._solve(solver, loss, self.components_, summary.user_ids)
