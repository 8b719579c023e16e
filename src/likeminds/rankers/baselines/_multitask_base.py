"""What the competitors of the paper share: each is a list of components.

Where a penalty is left out, it is a share of the smallest one that would leave nothing of its
part (trace norm, lengths), or a multiple of the loss's mean curvature (squares), so that it
means about the same on any data; ``components_`` says which it was.
"""

from dataclasses import dataclass
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.utils._param_validation import Interval

from likeminds.components import Component, LowRank, Personal, SharedFeatures, Sparse
from likeminds.losses import QuadraticLoss, as_loss
from likeminds.losses.statistics import Statistics
from likeminds.rankers.decomposed import ComponentsRanker

# Penalties where none are given, and candidates for tuning, as shares (see above).
USUAL_SHARE = 0.03
SHARES = (0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002)
FEW_SHARES = (0.3, 0.1, 0.03, 0.01, 0.003)
PERSONAL_SHARES = (1.0, 0.3, 0.1, 0.03)  # with the whole, nothing personal is left
MULTIPLES = (10.0, 3.0, 1.0, 0.3, 0.1)

# What parameters may be; None is "as usual".
AT_LEAST_ZERO: list[Any] = [Interval(Real, 0, None, closed="left"), None]
POSITIVE: list[Any] = [Interval(Real, 0, None, closed="neither"), None]
COUNT: list[Any] = [Interval(Integral, 0, None, closed="left"), None]


@dataclass(eq=False, repr=False, kw_only=True)
class Competitor(ComponentsRanker):
    """Base: a subclass says which penalties suit a loss, and which are worth trying."""

    def _default_grid(self, statistics: Statistics) -> list[dict[str, Any]]:
        """Return candidates for the penalties, strong ones first."""
        scale = statistics.feature_scale() if self.standardize else None
        return self._candidates(as_loss(self.loss).of(statistics, scale))

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        raise NotImplementedError


Silenced = type[LowRank] | type[Personal] | type[SharedFeatures] | type[Sparse]


@dataclass(eq=False, repr=False, kw_only=True)
class SumOfNorms(Competitor):
    """Base of the competitors whose penalties are norms: a subclass says which of what kind."""

    # The component that each parameter is the penalty of; one that is personal comes last.
    _kinds: ClassVar[dict[str, Silenced]]

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        penalties = dict.fromkeys(cls._kinds, AT_LEAST_ZERO)
        cls._parameter_constraints = Competitor._parameter_constraints | penalties

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        return [
            kind(given_or_usual(getattr(self, name), kind, loss))
            for name, kind in self._kinds.items()
        ]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        (name, kind), *personal = self._kinds.items()
        if not personal:
            return [{name: share * silencing(kind, loss)} for share in SHARES]
        ((own_name, own_kind),) = personal
        return [
            {name: share * silencing(kind, loss), own_name: own * silencing(own_kind, loss)}
            for own, share in product(PERSONAL_SHARES, FEW_SHARES)
        ]


def silencing(kind: Silenced, loss: QuadraticLoss) -> float:
    """Return the smallest penalty of a kind that leaves nothing."""
    return kind(1.0).silencing_alpha(loss.linear)


def given_or_usual(alpha: float | None, kind: Silenced, loss: QuadraticLoss) -> float:
    """Return the penalty that was given, or the usual share of the one that leaves nothing."""
    return USUAL_SHARE * silencing(kind, loss) if alpha is None else alpha


def mean_curvature(loss: QuadraticLoss) -> float:
    """Return the mean over people and features of the loss's curvature."""
    return float(np.trace(loss.total_matrix())) / (loss.shape[0] * loss.shape[1]) or 1.0


def typical_weight(loss: QuadraticLoss) -> float:
    """Return about how large a singular value of the weights gets: slope over curvature."""
    return silencing(LowRank, loss) / mean_curvature(loss)
