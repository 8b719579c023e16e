"""Soft labels: the predicted share of yes to an item, of all users and of each school."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.random import Generator
from scipy import sparse

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.result_tables import Frames, ResultTable
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.metrics.severity import calibrate
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.ranker import Ranker
from likeminds.schools.population import Items, as_ranker

# The normal quantile of one-sided 95 % bounds.
BOUND = 1.645
# With more users than this, answers are predicted for a sample of this size, with at least _FEWEST
# of every group.
_MOST_USERS, _FEWEST = 1_000, 20
# Numbers computed at a time.
_AT_ONCE = 1 << 21
_CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class SoftLabels(ResultTable):
    """The predicted shares of users who say yes to items.

    Users who labelled an item count by their labels, other users by predictions.

    Attributes
    ----------
    items, rows : arrays of shape (n_items,)
        The items, and their rows in the table of features, ascending.
    n_votes : array of shape (n_items,)
        The number of users who labelled each item.
    share, error : arrays of shape (n_items,)
        The share of all users who say yes, and its standard error.
    by_school, error_by_school : arrays of shape (n_schools, n_items)
        The same for each school; no rows if there are no schools.
    at_ends, error_at_ends : arrays of shape (n_axes, 2, n_items)
        The same for users at the low and the high end of each direction.
    """

    items: IdArray
    rows: Index
    n_votes: Index
    share: Float
    error: Float
    by_school: Float
    error_by_school: Float
    at_ends: Float
    error_at_ends: Float
    frames: Frames = "pyarrow"

    @cached_property
    def at_least(self) -> Float:
        """The lowest of the schools' lower 95 % bounds of the share of yes.

        Without schools, the lowest bound of all users and of both ends of every direction. An item
        that most users like may still divide them.
        """
        share, error = self.by_school, self.error_by_school
        if not len(share):
            n_items = len(self.items)
            share = np.vstack([self.share, self.at_ends.reshape(-1, n_items)])
            error = np.vstack([self.error, self.error_at_ends.reshape(-1, n_items)])
        return np.asarray(np.clip((share - BOUND * error).min(axis=0), 0.0, 1.0))

    def of_schools(self, n_schools: int, frames: Frames) -> "SoftLabels":
        """Return the shares of the first ``n_schools`` schools, with tables of type ``frames``."""
        own, error = self.by_school[:n_schools], self.error_by_school[:n_schools]
        return replace(self, by_school=own, error_by_school=error, frames=frames)

    def of_row(self, row: int) -> dict[str, Any]:
        """Return votes, shares and errors of the item in a row of the table of features."""
        place = int(np.searchsorted(self.rows, row))
        return {
            "votes": int(self.n_votes[place]),
            "at_least": float(self.at_least[place]),
            "share": float(self.share[place]),
            "error": float(self.error[place]),
            "by_school": self.by_school[:, place].tolist(),
            "error_by_school": self.error_by_school[:, place].tolist(),
        }

    def to_arrow(self) -> pa.Table:
        """Return a table of pyarrow with a row per item: votes, shares and standard errors."""
        columns: dict[str, Any] = {
            "item": self.items.tolist(),
            "votes": self.n_votes,
            "share": self.share,
            "error": self.error,
            "at_least": self.at_least,
        }
        both = zip(self.by_school, self.error_by_school, strict=True)
        for number, (share, error) in enumerate(both, start=1):
            columns |= {f"school_{number}": share, f"error_{number}": error}
        return pa.table(columns)

    def _headline(self) -> str:
        return f"Shares of people who would say yes to {counted(len(self.items), 'item')}"


@dataclass(frozen=True, eq=False)
class YesLogOdds:
    """The log-odds of a yes by each user to each item, and their variance."""

    rows: Float  # the items in the coordinates of the weights: (n_items, p)
    weights: Float  # (n_users, p)
    intercept: Float  # (n_users,)
    variance: Float  # of an item's log-odds for a user without labels; zero if unknown
    information: FloatArray | None  # K, (n_users, m, p): labels reduce the variance of x by |K x|^2
    shared: Float  # the part of an item's variance that is common to all users
    offset: Float  # item effects

    @classmethod
    def of_ranker(
        cls, ranker: object, items: Items, annotations: Annotations | None
    ) -> "YesLogOdds | None":
        """Return a ranker's log-odds; None if scores are not log-odds and cannot be calibrated.

        Scores that are not log-odds are calibrated to the labels by logistic regression, with one
        slope and an intercept for each user.
        """
        fitted = as_ranker(ranker)
        slope, intercept = 1.0, fitted.intercept_
        if fitted.loss_ != "logistic" or intercept is None:
            found = None if annotations is None else _calibrate_to(fitted, annotations)
            if found is None:
                return None
            slope, intercept = found
        features = np.asarray(items.features, dtype=np.float64)[:, : len(fitted.feature_names_)]
        zeros = np.zeros(len(features))
        if not Capability.UNCERTAINTY.of(fitted):
            learned = fitted.item_posteriors()
            offset = zeros if learned is None else slope * learned.of(items.ids).effects
            return cls(features, slope * fitted.coef_, intercept, zeros, None, zeros, offset)
        prior = fitted.prior_
        rows = prior.design.rows(features)
        # Divide intercepts, which are log-odds, by the slope, because points are multiplied by it
        # below.
        points = prior.design.points(fitted.coef_, intercept / max(slope, _CLOSE))
        item_variance = offset = zeros
        if prior.items is not None:
            own, size = prior.items.of(items.ids), prior.design.size
            rows = np.hstack([rows, own.factors])
            points = np.hstack([points, fitted.factor_weights_])
            # The uncertainty of factors is weighted by the covariance of their weights.
            weight_covariance = prior.prior.covariance[size:, size:]
            item_variance = own.effect_variance + np.einsum(
                "nab,ab->n", own.factor_covariance, weight_covariance
            )
            offset = own.effects
        whole, certain = prior.predictive.root, prior.marginal.root
        variance, without_mean = (np.square(rows @ root).sum(axis=1) for root in (whole, certain))
        # The variance of the mean, as in `GaussianPrior.predictive`.
        shared = np.maximum(variance - without_mean, 0.0) / (1 + fitted.n_groups_)
        if prior.design.intercept:
            intercept = np.zeros(len(points))
        else:
            intercept = intercept + slope * (fitted.coef_ @ prior.design.origin)
        return cls(
            rows,
            slope * points,
            intercept,
            slope**2 * (variance + item_variance),
            slope * fitted.information_,
            slope**2 * (shared + item_variance),
            slope * offset,
        )

    def of_users(self, users: Index) -> tuple[Float, Float]:
        """Return probabilities of a yes, (n, n_items), and their derivatives by the log-odds."""
        log_odds = self.weights[users] @ self.rows.T + self.intercept[users, None] + self.offset
        variance = np.repeat(self.variance[None], len(users), axis=0)
        if self.information is not None:
            rows = self.rows.astype(np.float32)
            for place, user in enumerate(users.tolist()):
                reduced = rows @ np.asarray(self.information[user], dtype=np.float32).T
                variance[place] -= np.einsum("nm,nm->n", reduced, reduced)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        probability = label_probability(log_odds, deviation)
        damped = probability * (1.0 - probability) / np.sqrt(1.0 + np.pi / 8.0 * deviation**2)
        return probability, damped


def _calibrate_to(ranker: Ranker, annotations: Annotations) -> tuple[float, Float] | None:
    """Return slope and intercepts that turn scores into log-odds; None without both labels."""
    users = lookup(annotations.user_ids, ranker.users_, "users")[annotations.user_codes]
    weight = _weights(annotations)
    counted_rows = (users >= 0) & (weight > 0)
    labels = annotations.labels[counted_rows]
    if not labels.any() or labels.all():
        return None
    scores = np.asarray(ranker.decision_function(annotations), dtype=np.float64)[counted_rows]
    n_users = len(ranker.users_)
    return calibrate(scores, labels, users[counted_rows], n_users, weight[counted_rows])


def _weights(annotations: Annotations) -> Float:
    weights = annotations.weights
    return np.ones(len(annotations)) if weights is None else np.asarray(weights, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class VoteMatrices:
    """Sparse matrices (n_users, n_items): ones for votes, and shares of yes."""

    voted: sparse.csr_array
    yes: sparse.csr_array

    @classmethod
    def of_annotations(
        cls, annotations: Annotations | None, users: IdArray, items: Items
    ) -> "VoteMatrices":
        """Use the labels of known users; average several labels of one item."""
        shape = (len(users), len(items))
        if annotations is None:
            return cls(sparse.csr_array(shape), sparse.csr_array(shape))
        owner = lookup(annotations.user_ids, users, "users")[annotations.user_codes]
        about, weight = items.positions_of(annotations), _weights(annotations)
        counts = (owner >= 0) & (about >= 0) & (weight > 0)
        where = (owner[counts], about[counts])
        total = sparse.csr_array((weight[counts], where), shape=shape)
        positive = weight[counts] * annotations.labels[counts]
        yes = sparse.csr_array((positive, where), shape=shape)
        total.sum_duplicates()
        yes.sum_duplicates()
        yes.data = yes.data / total.data  # both have the same entries in the same order
        total.data = np.ones_like(total.data)
        return cls(total, yes)


def shares_of_groups(
    odds: YesLogOdds, votes: VoteMatrices, groups: Bool, rng: Generator
) -> tuple[Float, Float]:
    """Return each group's predicted share of yes to each item, and its standard error.

    ``groups`` (n_groups, n_users) are masks. The error has three parts: the Bernoulli variance of
    users without a vote, the shared variance of an item's log-odds, and the variance of sampling
    users.
    """
    member = groups.astype(np.float64)
    size = member.sum(axis=1)[:, None]
    n_items = len(odds.rows)
    voted, yes = (np.asarray((part.T @ member.T).T) for part in (votes.voted, votes.yes))
    # Sums over users without a vote, by group and item.
    number, total, squares, chance, slope = np.zeros((5, len(groups), n_items))
    sampled, step = _sampled(groups, rng), max(1, _AT_ONCE // max(n_items, 1))
    for start in range(0, len(sampled), step):
        users = sampled[start : start + step]
        silent, members = 1.0 - votes.voted[users].toarray(), member[:, users]
        p, derivative = (silent * part for part in odds.of_users(users))
        number += members @ silent
        total += members @ p
        squares += members @ p**2
        chance += members @ (p * (1.0 - p))
        slope += members @ derivative
    missing = np.maximum(size - voted, 0.0)
    # If all sampled users have voted, use their mean for users without a vote.
    those = np.maximum(number, 1.0)
    mean = np.where(number > 0, total / those, yes / np.maximum(voted, 1.0))
    within = np.maximum(squares / those - mean**2, 0.0)
    unsampled = np.maximum(missing - number, 0.0)
    variance = missing * (chance / those) + missing * unsampled * within / those
    variance += (missing * slope / those) ** 2 * odds.shared
    return (yes + missing * mean) / size, np.sqrt(variance) / size


def _sampled(groups: Bool, rng: Generator) -> Index:
    n_users = groups.shape[1]
    if n_users <= _MOST_USERS:
        return np.arange(n_users)
    order = rng.permutation(n_users)
    few = [order[members[order]][:_FEWEST] for members in groups]
    return np.unique(np.concatenate([order[:_MOST_USERS], *few]))
