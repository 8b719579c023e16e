"""Probabilities of pairs of items: which ranks higher, which is preferred, and ties."""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING

from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.item_posteriors import PredictionRows
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.validation import rows_and_users

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker


def probability_above(
    self: "PriorRanker",
    a: ArrayLike | Annotations,
    b: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
) -> Float:
    """Return the probability that item ``a`` of each row ranks above item ``b``.

    It compares scores, not labels: see `probability_preferred`.

    Parameters
    ----------
    a, b : arrays of shape (n_rows, n_features), or Annotations
        The items.
    users : array of shape (n_rows,), optional
        The user of each row, as in `decision_function`.

    Returns
    -------
    array of shape (n_rows,)

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
    >>> cheap, dear = [[7.0, 1, 1, 0, 0, 0]], [[9.0, 1, 1, 0, 0, 0]]
    >>> bool(ranker.probability_above(cheap, dear, ["household-001"])[0] > 0.5)
    True
    """
    posterior, one, other, positions = _pairs(self, a, b, users)
    return posterior.chance_above(one, other, positions)


def probability_preferred(
    self: "PriorRanker",
    a: ArrayLike | Annotations,
    b: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
) -> Float:
    """Return the probability that item ``a`` of each row gets the better label of the two.

    That is the probability that ``a`` is chosen, or gets the positive label if one of the two
    does. Labels are noisy even if scores are known exactly; `probability_above` is about scores.

    Parameters
    ----------
    a, b, users
        As in `probability_above`.

    Returns
    -------
    array of shape (n_rows,)
    """
    posterior, one, other, positions = _pairs(self, a, b, users)
    return posterior.chance_preferred(one, other, positions)


def probability_tied(
    self: "PriorRanker",
    a: ArrayLike | Annotations,
    b: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
) -> Float:
    """Return the probability that items ``a`` and ``b`` of each row are tied.

    It needs comparisons with ties: see `Annotations.from_comparisons`. Item ``a`` wins with the
    probability `probability_preferred` if the pair is not tied.

    Parameters
    ----------
    a, b, users
        As in `probability_above`.

    Returns
    -------
    array of shape (n_rows,)
    """
    posterior, one, other, positions = _pairs(self, a, b, users)
    return posterior.chance_tied(one, other, positions)


def _pairs(
    ranker: "PriorRanker",
    a: ArrayLike | Annotations,
    b: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
) -> tuple[Posterior, PredictionRows, PredictionRows, Index]:
    first, positions = rows_and_users(ranker, a, users)
    second, _ = rows_and_users(ranker, b, users)
    if first.shape != second.shape:
        raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
    posterior, positions = ranker._posterior_of(positions)
    one, other = (
        posterior.prediction_rows(rows, ranker._item_ids(X, None, rows))
        for rows, X in ((first, a), (second, b))
    )
    return posterior, one, other, positions
