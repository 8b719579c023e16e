"""Competitors for whom few features matter: the lasso, JFL and rMTFL."""

from dataclasses import dataclass
from typing import Any, ClassVar

from likeminds.baselines._competitor import (
    AT_LEAST_ZERO,
    SHARES,
    Competitor,
    given_or_usual,
    silencing,
    with_personal,
)
from likeminds.components import (
    Component,
    Personal,
    SharedFeatures,
    Sparse,
)
from likeminds.losses import QuadraticLoss


@dataclass(eq=False, repr=False)
class LassoMTL(Competitor):
    """The lasso for everybody: the loss plus alpha times the sum of the sizes of all weights.

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 of the one that leaves nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback
        As in `DecomposedRanker`.

    Attributes
    ----------
    sparse_part_ : array of shape (n_people, n_features)
        The weights.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> LassoMTL().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    alpha: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "alpha": AT_LEAST_ZERO,
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        return [Sparse(given_or_usual(self.alpha, Sparse, loss))]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        return [{"alpha": share * silencing(Sparse, loss)} for share in SHARES]


@dataclass(eq=False, repr=False)
class JFL(Competitor):
    """Joint feature learning: features that matter to all or to none.

    Minimises the loss plus alpha times the sum over features of the length of their column
    (Argyriou, Evgeniou and Pontil, 2008; Nie et al., 2010).

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 of the one that leaves nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback
        As in `DecomposedRanker`.

    Attributes
    ----------
    shared_part_ : array of shape (n_people, n_features)
        The weights.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> JFL().fit(load_electricity()).coef_.shape
    (361, 6)
    """

    alpha: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "alpha": AT_LEAST_ZERO,
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        return [SharedFeatures(given_or_usual(self.alpha, SharedFeatures, loss))]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        return [{"alpha": share * silencing(SharedFeatures, loss)} for share in SHARES]


@dataclass(eq=False, repr=False)
class RMTFL(Competitor):
    """Robust multi-task feature learning: features for all or none, and people outside.

    Minimises the loss at W = P + Q plus alpha_shared times the sum over features of the length
    of their column of P plus alpha_personal times the sum over people of |Q_i| (Gong, Ye and
    Zhang, KDD 2012).

    Parameters
    ----------
    alpha_shared, alpha_personal : float, optional
        The two penalties; by default 0.03 of those that leave nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback
        As in `DecomposedRanker`.

    Attributes
    ----------
    shared_part_, personal_part_ : arrays of shape (n_people, n_features)
        P and Q.
    coef_, consensus_, parts_, components_, objective_, ...
        As in `DecomposedRanker`.

    Examples
    --------
    >>> from likeminds import load_electricity
    >>> ranker = RMTFL().fit(load_electricity())
    >>> sorted(ranker.parts_)
    ['personal', 'shared']
    """

    alpha_shared: float | None = None
    alpha_personal: float | None = None

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **Competitor._parameter_constraints,
        "alpha_shared": AT_LEAST_ZERO,
        "alpha_personal": AT_LEAST_ZERO,
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        return [
            SharedFeatures(given_or_usual(self.alpha_shared, SharedFeatures, loss)),
            Personal(given_or_usual(self.alpha_personal, Personal, loss)),
        ]

    def _candidates(self, loss: QuadraticLoss) -> list[dict[str, Any]]:
        return with_personal("alpha_shared", SharedFeatures, loss)
