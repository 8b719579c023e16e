"""Log-odds that each person says yes to each item, for any kind of ranker."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.special import expit

from likeminds._support.arrays import Bool, Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.prior.beliefs import label_probability
from likeminds.rankers.model import Ability
from likeminds.schools.items import Items
from likeminds.schools.levels import as_ranker

# How far people's readiness to say yes may lie from the crowd's, in log-odds: that of somebody
# with few labels is held back.
_READINESS = 1.0
_STEPS, _LONGEST, _CLOSE = 50, 2.0, 1e-8


@dataclass(frozen=True, eq=False)
class Liking:
    """The log-odds of a yes by each person to each item, and their variance.

    Attributes
    ----------
    rows : array of shape (n_items, p)
        The items, in the coordinates of the weights.
    weights : array of shape (n_people, p)
        Everybody's weights.
    intercept : array of shape (n_people,)
        Everybody's intercept.
    variance : array of shape (n_items,)
        Predictive variance of the log-odds for somebody without labels; zero for rankers
        without uncertainty.
    known : array of shape (n_people, m, p), optional
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
    def of_ranker(cls, ranker: Any, items: Items, said: Annotations | None) -> "Liking | None":
        """Return a ranker's log-odds of items.

        Where its scores are no log-odds, they are calibrated to labels by logistic regression:
        one slope for all, and an intercept for each person. None without labels.
        """
        ranker = as_ranker(ranker)
        slope, intercept = 1.0, ranker.learned("intercept_")
        if ranker.learned("loss_") != "logistic" or intercept is None:
            found = None if said is None else _calibrate_to(ranker, said)
            if found is None:
                return None
            slope, intercept = found
        rows = np.asarray(items.features, dtype=np.float64)
        nothing = np.zeros(len(rows))
        weights = slope * ranker.coef_
        if not Ability.UNCERTAINTY.of(ranker):
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
        # What is not known about the mean, as `Prior.predictive` has it.
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

    def of_people(self, people: Index) -> tuple[Float, Float]:
        """Return people's probabilities of a yes, and their derivatives by the log-odds.

        Returns
        -------
        probability, slope : arrays of shape (n_people, n_items)
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


def calibrate(
    scores: Float, labels: Bool, people: Index, n_people: int, weight: Float
) -> tuple[float, Float]:
    """Fit log-odds of labels: one slope of the scores for all, an intercept for each person.

    Intercepts have a normal prior around the crowd's, with a standard deviation of 1; the slope
    is not negative.

    Parameters
    ----------
    scores, labels, people, weight : arrays of shape (n_labels,)
        What was predicted, and what was said by whom (positions), and how much it counts.
    n_people : int
        How many people there are; who said nothing gets the crowd's intercept.

    Returns
    -------
    factor : float
    numbers : array of shape (n_people,)

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> scores, people = rng.standard_normal(4000), rng.integers(2, size=4000)
    >>> labels = rng.random(4000) < expit(2 * scores + np.array([-1, 1])[people])
    >>> factor, numbers = calibrate(scores, labels, people, 2, np.ones(4000))
    >>> bool(abs(factor - 2) < 0.2), bool((abs(numbers - [-1, 1]) < 0.2).all())
    (True, True)
    """
    unit = float(scores.std()) or 1.0
    z = scores / unit
    both, own = np.zeros(2), np.zeros(n_people)

    def sums(values: Float) -> Float:
        return np.asarray(np.bincount(people, weights=values, minlength=n_people), dtype=np.float64)

    for _ in range(_STEPS):
        p = expit(both[0] * z + both[1] + own[people])
        slope, bend = weight * (labels - p), weight * p * (1.0 - p)
        # People's intercepts are eliminated from Newton's step (Schur complement).
        inner = sums(bend) + 1.0 / _READINESS**2
        gradient = sums(slope) - own / _READINESS**2
        crossed = np.stack([sums(bend * z), sums(bend)])
        matrix = np.array([[bend @ z**2, bend @ z], [bend @ z, bend.sum()]])
        matrix = matrix - (crossed / inner) @ crossed.T + 1e-9 * np.eye(2) * (1.0 + bend.sum())
        right = np.array([slope @ z, slope.sum()]) - crossed @ (gradient / inner)
        step = np.linalg.solve(matrix, right)
        theirs = (gradient - step @ crossed) / inner
        largest = float(np.abs(np.concatenate([step, theirs])).max())
        # A longer step leaves the region where the quadratic model of the loss holds.
        damp = min(1.0, _LONGEST / max(largest, _CLOSE))
        both, own = both + damp * step, own + damp * theirs
        if largest < _CLOSE:
            break
    return max(float(both[0]), 0.0) / unit, both[1] + own
