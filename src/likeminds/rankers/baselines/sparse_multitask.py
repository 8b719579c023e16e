"""Competitors for whom few features matter: the lasso, JFL and rMTFL."""

from dataclasses import dataclass
from typing import ClassVar

from likeminds.components import Personal, SharedFeatures, Sparse
from likeminds.rankers.baselines._multitask_base import Silenced, SumOfNorms


@dataclass(eq=False, repr=False)
class LassoMTL(SumOfNorms):
    """The lasso for everybody: the loss plus alpha times the sum of the sizes of all weights.

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 of the one that leaves nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    sparse_part_ : array of shape (n_users, n_features)
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

    _kinds: ClassVar[dict[str, Silenced]] = {"alpha": Sparse}


@dataclass(eq=False, repr=False)
class JFL(SumOfNorms):
    """Joint feature learning: features that matter to all or to none.

    Minimises the loss plus alpha times the sum over features of the length of their column
    (Argyriou, Evgeniou and Pontil, 2008; Nie et al., 2010).

    Parameters
    ----------
    alpha : float, optional
        The penalty; by default 0.03 of the one that leaves nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    shared_part_ : array of shape (n_users, n_features)
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

    _kinds: ClassVar[dict[str, Silenced]] = {"alpha": SharedFeatures}


@dataclass(eq=False, repr=False)
class RMTFL(SumOfNorms):
    """Robust multi-task feature learning: features for all or none, and people outside.

    Minimises the loss at W = P + Q plus alpha_shared times the sum over features of the length
    of their column of P plus alpha_personal times the sum over people of |Q_i| (Gong, Ye and
    Zhang, KDD 2012).

    Parameters
    ----------
    alpha_shared, alpha_personal : float, optional
        The two penalties; by default 0.03 of those that leave nothing.
    loss, standardize, tol, max_iter, unknown, user_column, warm_start, callback, verbose
        As in `DecomposedRanker`.

    Attributes
    ----------
    shared_part_, personal_part_ : arrays of shape (n_users, n_features)
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

    _kinds: ClassVar[dict[str, Silenced]] = {
        "alpha_shared": SharedFeatures,
        "alpha_personal": Personal,
    }
