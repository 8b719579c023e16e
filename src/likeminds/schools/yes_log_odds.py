"""Log-odds that each person says yes to each item, for any kind of ranker."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.metrics.calibration import calibrate
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.rankers.capabilities import Capability
from likeminds.schools.items import Items
from likeminds.schools.weight_levels import as_ranker

_CLOSE = 1e-8


@dataclass(frozen=True, eq=False)
class YesLogOdds:
    """The log-odds of a yes by each person to each item, and their variance.

    Attributes
    ----------
    rows : array of shape (n_items, p)
        The items, in the coordinates of the weights.
    weights : array of shape (n_users, p)
        Everybody's weights.
    intercept : array of shape (n_users,)
        Everybody's intercept.
    variance : array of shape (n_items,)
        Predictive variance of the log-odds for somebody without labels; zero for rankers
        without uncertainty.
    known : array of shape (n_users, m, p), optional
        Everybody's K: the labels of a person reduce the variance of an item x by |K x|^2.
    shared : array of shape (n_items,)
        The part of an item's variance that is common to all people.
    offset : array of shape (n_items,) or float
        Item effects: what items add to everybody's log-odds beyond their features.
    """

    rows: Float
    weights: Float
    intercept: Float
    variance: Float
    known: FloatArray | None
    shared: Float
    offset: Float | float = 0.0

    @classmethod
    def of_ranker(cls, ranker: Any, items: Items, said: Annotations | None) -> "YesLogOdds | None":
        """Return a ranker's log-odds of items.

        Where its scores are no log-odds, they are calibrated to labels by logistic regression:
        one slope for all, and an intercept for each person. None without labels.
        """
        ranker = as_ranker(ranker)
        slope, intercept = 1.0, ranker._learned("intercept_")
        if ranker._learned("loss_") != "logistic" or intercept is None:
            found = None if said is None else _calibrate_to(ranker, said)
            if found is None:
                return None
            slope, intercept = found
        rows = np.asarray(items.features, dtype=np.float64)
        nothing = np.zeros(len(rows))
        weights = slope * ranker.coef_
        if not Capability.UNCERTAINTY.of(ranker):
            known, rows = ranker.learned_items(), rows[:, : len(ranker.feature_names_)]
            offset = nothing if known is None else slope * known.of(items.ids).effects
            return cls(rows, weights, intercept, nothing, None, nothing, offset)
        crowd = ranker.crowd_
        seen = crowd.coordinates.rows(rows[:, : len(ranker.feature_names_)])
        # Everything is multiplied by the slope below, and intercepts are log-odds already.
        points = crowd.coordinates.points(ranker.coef_, intercept / max(slope, _CLOSE))
        doubt, offset = nothing, nothing
        if crowd.items is not None:
            own, size = crowd.items.of(items.ids), crowd.coordinates.size
            seen, points = (
                np.hstack([seen, own.factors]),
                np.hstack([points, ranker.factor_weights_]),
            )
            weighed = crowd.prior.covariance[size:, size:]
            # Of what is not known about a factor, people see as much as they weigh it by.
            doubt = own.doubt + np.einsum("nab,ab->n", own.unsure, weighed)
            offset = own.effects
        whole, prior = crowd.predictive.root, crowd.everybody.root
        variance, certain = (np.square(seen @ root).sum(axis=1) for root in (whole, prior))
        # What is not known about the mean, as `GaussianPrior.predictive` has it.
        shared = np.maximum(variance - certain, 0.0) / (1 + ranker.n_groups_)
        if crowd.coordinates.intercept:
            intercept = np.zeros(len(points))
        else:
            intercept = intercept + slope * (ranker.coef_ @ crowd.coordinates.origin)
        return cls(
            seen,
            slope * points,
            intercept,
            slope**2 * (variance + doubt),
            slope * ranker.information_,
            slope**2 * (shared + doubt),
            slope * offset,
        )

    def of_users(self, people: Index) -> tuple[Float, Float]:
        """Return people's probabilities of a yes, and their derivatives by the log-odds.

        Returns
        -------
        probability, slope : arrays of shape (n_users, n_items)
        """
        log_odds = self.weights[people] @ self.rows.T + self.intercept[people, None] + self.offset
        variance = np.repeat(self.variance[None], len(people), axis=0)
        if self.known is not None:
            rows = self.rows.astype(np.float32)
            for place, person in enumerate(people.tolist()):
                seen = rows @ np.asarray(self.known[person], dtype=np.float32).T
                variance[place] -= np.einsum("nm,nm->n", seen, seen)
        deviation = np.sqrt(np.maximum(variance, 0.0))
        probability = label_probability(log_odds, deviation)
        damped = probability * (1.0 - probability) / np.sqrt(1.0 + np.pi / 8.0 * deviation**2)
        return probability, damped


def _calibrate_to(ranker: Any, said: Annotations) -> tuple[float, Float] | None:
    """Return slope and intercepts that turn scores into log-odds; None without both labels."""
    people = lookup(said.user_ids, ranker.users_, "users")[said.user_codes]
    counted = people >= 0
    if said.weights is not None:
        counted &= said.weights > 0
    labels = said.labels[counted]
    if not labels.any() or labels.all():
        return None
    weight = np.ones(len(labels))
    if said.weights is not None:
        weight[:] = said.weights[counted]
    scores = np.asarray(ranker.decision_function(said), dtype=np.float64)[counted]
    return calibrate(scores, labels, people[counted], len(ranker.users_), weight)
