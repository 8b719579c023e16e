"""Leaderboards: items with intervals of scores and ranks, for all users, a group or one user."""

from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import expit, ndtri

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.lazy_imports import pa
from likeminds._util.per_user_arrays import symmetric_root
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.annotations import Annotations
from likeminds.data.column_roles import as_arrow
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.item_table import ItemTableView, frames_of
from likeminds.rankers.validation import user_positions

if TYPE_CHECKING:
    import pyarrow

    from likeminds.rankers.ranker import Ranker


# The most items among which comparisons are proposed: matrices of items x items are needed.
_CANDIDATES = 1000


@dataclass(frozen=True, eq=False)
class Leaderboard(ResultTable):
    """Items by the mean score of some users, the best first, with intervals.

    Attributes
    ----------
    items : array of shape (n_items,)
        The items.
    scores, low, high : arrays of shape (n_items,)
        Log-odds of being preferred to the average item, and their credible intervals.
    rank_low, rank_high : arrays of shape (n_items,)
        Credible intervals of the ranks; 1 is best.
    comparisons : array of shape (n_items,)
        The sum of weights of these users' training comparisons (or labels) of each item.
    ask_next : list of pairs of items
        The comparisons that would be most informative about these users' scores.
    n_users : int
        The number of users whose scores are averaged.
    """

    items: IdArray
    scores: Float
    low: Float
    high: Float
    rank_low: Index
    rank_high: Index
    comparisons: Float
    ask_next: list[tuple[Any, Any]]
    n_users: int
    frames: Frames = "pyarrow"

    def __len__(self) -> int:
        return len(self.items)

    def to_arrow(self) -> "pyarrow.Table":
        """Return a row per item."""
        whole = not (self.comparisons % 1).any()  # weights may be fractions
        counts = self.comparisons.astype(np.int64) if whole else self.comparisons
        items = {"rank": np.arange(1, len(self) + 1), "item": as_arrow(self.items.tolist())}
        ranks = {"rank_low": self.rank_low, "rank_high": self.rank_high}
        scores = {"score": self.scores, "low": self.low, "high": self.high}
        return pa.table(items | ranks | scores | {"comparisons": counts})

    def _headline(self) -> str:
        return f"Leaderboard of {len(self):,} items by {self.n_users:,} users"


def leaderboard(
    ranker: "Ranker",
    users: Hashable | Iterable[Hashable] | None = None,
    *,
    level: float = 0.9,
    n_next: int = 5,
) -> Leaderboard:
    """Rank items by the mean score of some users, with intervals of scores and ranks.

    Parameters
    ----------
    ranker : HierarchicalRanker
        A fitted ranker, for example of comparisons, with stored labels or item effects.
    users : id or sequence of ids, optional
        One user, or several users, such as the members of a school; by default all.
    level : float, default=0.9
        The probability that a score or rank lies in its interval.
    n_next : int, default=5
        The number of comparisons to propose, of the 1,000 items with the most uncertain scores.

    Returns
    -------
    Leaderboard

    Notes
    -----
    Features that differ between rows of an item, such as the length of an answer, are set equal for
    all items. So differences in style do not count. Users' weights and items' effects are drawn
    from their posteriors, independently between items. Intervals do not allow for the shrinkage of
    scores. In simulations with two schools (``benchmarks/leaderboards.py``), 90 % intervals
    contained 82 to 89 % of the true scores of a school, and 97 to 99 % of the ranks.

    Examples
    --------
    >>> from likeminds import Annotations, HierarchicalRanker, leaderboard
    >>> votes = Annotations.from_comparisons(
    ...     ["ann", "bob", "cid"] * 20, ["x", "x", "y"] * 20, ["y", "z", "z"] * 20
    ... )
    >>> found = leaderboard(HierarchicalRanker().fit(votes))
    >>> found.items.tolist(), found.rank_low.tolist(), found.rank_high.tolist()
    (['x', 'y', 'z'], [1, 1, 2], [2, 3, 3])
    """
    model = ranker._best_model
    if model.prior_ is None:
        raise TypeError(
            f"A leaderboard needs posteriors, which {type(model).__name__} does not have. Fit a "
            "HierarchicalRanker."
        )
    if ranker.training_items() is None:
        raise ValueError(
            "This model has no items to rank, because it has no item effects, or was saved "
            "without its labels. Fit a HierarchicalRanker to comparisons of named items, with "
            "--keep-data."
        )
    view = ItemTableView.of(ranker, None)
    labels = model.training_annotations_
    features = view.features
    if labels is not None:
        features = np.where(varying_features(labels), model.prior_.design.origin, features)
    positions: Index = np.arange(len(model.users_))
    if users is not None:
        if isinstance(users, str) or not isinstance(users, Iterable):
            users = [users]
        positions = user_positions(model, users)
    posterior = average_posterior(*model._posterior_of(positions))
    targets = posterior.prediction_rows(features, view.ids)
    only = np.zeros(len(view), dtype=np.intp)
    scores = targets.rows @ posterior.points[0] + targets.effects
    scores -= scores.mean()
    low, high = posterior.ranks(targets, 0, level)
    deviation = posterior.deviation(targets, only)
    half = float(ndtri(0.5 + level / 2)) * deviation
    order = np.argsort(-scores, kind="stable")
    pairs: Sequence[tuple[int, int]] = ()
    candidates: Index = np.sort(np.argsort(-deviation, kind="stable")[:_CANDIDATES])
    if n_next:
        some = targets.take(candidates)
        own = posterior._of_items(some, only[candidates])
        covariance = some.rows @ posterior.covariance(0) @ some.rows.T + np.diag(own)
        pairs = most_informative_pairs(scores[candidates], covariance, n_next)
    counts: Float = np.zeros(len(view))
    if labels is not None and labels.has_items:
        mine = np.isin(labels.user_codes, positions)
        codes = lookup(labels.item_ids, view.ids, "items")[labels.item_codes[mine]]
        weights = np.ones(len(codes)) if labels.weights is None else labels.weights[mine]
        np.add.at(counts, codes[codes >= 0], weights[codes >= 0])
    return Leaderboard(
        view.ids[order],
        scores[order],
        (scores - half)[order],
        (scores + half)[order],
        low[order],
        high[order],
        counts[order],
        [tuple(view.ids[candidates[[i, j]]].tolist()) for i, j in pairs],
        len(positions),
        frames_of(ranker),
    )


def varying_features(annotations: Annotations) -> Bool:
    """Return whether each feature differs between rows of an item."""
    if annotations.features_per == "item":
        return np.zeros(annotations.n_features, dtype=np.bool_)
    _, first, of_row = np.unique(annotations.item_codes, return_index=True, return_inverse=True)
    usual = annotations.features[annotations.feature_rows[first[of_row]]]
    return np.asarray((usual != annotations.X).any(axis=0))


def average_posterior(posterior: Posterior, users: Index) -> Posterior:
    """Return the posterior of the mean of some independent users, as that of one user."""
    n, whole = len(users), posterior.prior.covariance
    reduction = posterior.variance_reduction[users].astype(np.float64)
    explained = np.einsum("nmp,nmq->pq", reduction, reduction, optimize=True)
    # K'K is the prior covariance less that of the mean.
    root = symmetric_root(whole - (n * whole - explained) / n**2).T
    return replace(
        posterior,
        users=posterior.users[:1],
        points=posterior.points[users].mean(axis=0, keepdims=True),
        variance_reduction=root[None],
        response_style=None,
        answered=None,
    )


def most_informative_pairs(scores: Float, covariance: Float, n: int) -> Sequence[tuple[int, int]]:
    """Greedily choose the comparisons that reduce the variance of scores most.

    The variance is summed over items, of scores less the mean score. The expected reduction is to
    first order, by the information of a Bradley-Terry comparison.

    Examples
    --------
    >>> most_informative_pairs(np.array([3.0, 0.1, 0.0]), np.eye(3), 1)
    [(1, 2)]
    """
    chance = expit(scores[:, None] - scores[None, :])
    information = chance * (1.0 - chance)
    remaining = covariance.copy()
    above = np.triu(np.ones_like(covariance, dtype=np.bool_), k=1)
    chosen: list[tuple[int, int]] = []
    for _ in range(min(n, int(above.sum()))):
        centred = remaining - remaining.mean(axis=0)
        products = centred.T @ centred
        squares = np.add.outer(np.diag(products), np.diag(products)) - 2.0 * products
        variance = np.add.outer(np.diag(remaining), np.diag(remaining)) - 2.0 * remaining
        share = information / (1.0 + information * variance)
        gain = np.where(above, squares * share, -np.inf)
        i, j = (int(k) for k in np.unravel_index(gain.argmax(), gain.shape))
        chosen.append((i, j))
        above[i, j] = False
        step = remaining[i] - remaining[j]
        remaining = remaining - np.outer(step, step) * share[i, j]
    return chosen
