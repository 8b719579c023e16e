"""Competitors for whom people differ in few directions: RMTL and RAMU."""

from dataclasses import dataclass
from itertools import product
from numbers import Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import Interval

from likeminds.components import (
    CappedLowRank,
    Component,
    LowRank,
    Personal,
)
from likeminds.losses import QuadraticLoss
from likeminds.rankers.baselines._multitask_base import (
    AT_LEAST_ZERO,
    FEW_SHARES,
    Competitor,
    Silenced,
    SumOfNorms,
    given_or_usual,
    silencing,
    typical_weight,
)


@dataclass(eq=False, repr=False)
class RMTL(SumOfNorms):
    """Robust multi-task learning: few directions for all, and people who stand outside.

    Minimises the loss at W = L + S plus alpha_low_rank times the trace norm of L plus
    alpha_personal times the sum over people of |S_i| (Chen, Zhou and Ye, KDD 2011).

    Parameters
    ----------
    alpha_low_rank, alpha_personal : float, optional
        The two penalties; by default 0.03 of those that leave nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    low_rank_part_, personal_part_ : arrays of shape (n_users, n_features)
        L and S.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> ranker = RMTL().fit(load_electricity())
    >>> sorted(ranker.parts_)
    ['low_rank', 'personal']
    """

    alpha_low_rank: float | None = None
    alpha_personal: float | None = None

    _kinds: ClassVar[dict[str, Silenced]] = {"alpha_low_rank": LowRank, "alpha_personal": Personal}


@dataclass(eq=False, repr=False)
class RAMU(Competitor):
    """Few directions, none shrunk for being strong: the trace norm with a cap.

    Minimises the loss plus alpha * sum_j min(sigma_j(W), threshold) in stages, in each of which
    the singular values above the threshold are free, until these no longer change (Han and
    Zhang, AAAI 2016). An infinite threshold gives the plain trace norm.

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 of the one that leaves nothing.
    threshold : float, optional
        The cap, in the units of standardised weights where ``standardize`` is true. By default
        0.3 of the largest singular value of everybody's slope over the mean curvature.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    low_rank_part_ : array of shape (n_users, n_features)
        The weights.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> RAMU().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    alpha: float | None = None
    threshold: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "alpha": AT_LEAST_ZERO,
        "threshold": [Interval(Real, 0, None, closed="both"), None],
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        alpha = given_or_usual(self.alpha, LowRank, loss)
        usual = 0.3 * typical_weight(loss)
        return [CappedLowRank(alpha, usual if self.threshold is None else self.threshold)]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        unit = typical_weight(loss)
        return [
            {"alpha": share * silencing(LowRank, loss), "threshold": times * unit}
            for times, share in product((3.0, 1.0, 0.3, 0.1), FEW_SHARES)
        ]
