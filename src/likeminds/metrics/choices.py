"""Accuracy and log loss of choices, comparisons and rankings, by user."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float
from likeminds._util.checks import as_vector
from likeminds.data.coded_labels import CodedLabels
from likeminds.metrics.by_user import MetricByUser, ratio


class ChoiceScores(NamedTuple):
    """Accuracy and log loss of predicted choices, by user."""

    accuracy: MetricByUser
    log_loss: MetricByUser


def score_choices(
    annotations: CodedLabels, scores: ArrayLike, chances: ArrayLike | None = None
) -> ChoiceScores:
    """Evaluate scores on choices, comparisons or rankings.

    Parameters
    ----------
    annotations : Annotations
        Choice sets with one chosen row each (`Annotations.from_comparisons`, ...).
    scores : array of shape (n_rows,)
        Scores of the rows; the log loss takes them as log-odds.
    chances : array of shape (n_rows,), optional
        The probability that each row is chosen in its choice set. By default, it is proportional
        to exp(score), which ignores the uncertainty of scores.

    Returns
    -------
    ChoiceScores
        ``accuracy``: the share of a user's choices whose item has the highest score, or the lowest
        if the worst was chosen; ties share a point. ``log_loss``: the mean of -log(probability of
        the chosen item). Both are weighted.

    Examples
    --------
    >>> from likeminds import Annotations
    >>> pairs = Annotations.from_comparisons(["ann"] * 2 + ["bob"], list("aba"), list("bcc"))
    >>> points = {"a": 2.0, "b": 2.0, "c": 1.0}
    >>> found = score_choices(pairs, [points[item] for item in pairs.items])
    >>> found.accuracy.values
    array([0.75, 1.  ])
    >>> found.log_loss.values.round(3)
    array([0.503, 0.313])
    """
    sets, chosen = annotations.choice_set_codes, annotations.chosen
    if sets is None:
        raise ValueError("There are no choice sets. Pass choices, as made by from_comparisons.")
    n_sets = int(sets.max()) + 1
    if (np.bincount(sets[chosen], minlength=n_sets) != 1).any():
        raise ValueError(
            "Some choice sets do not have exactly one chosen row, so they are not choices. Drop or "
            "correct them."
        )
    first = np.zeros(n_sets, dtype=np.intp)
    first[sets[chosen]] = np.flatnonzero(chosen)
    height = as_vector(scores, "scores", length=len(sets)).astype(np.float64)
    if annotations.picks_worst is not None:
        height = np.where(annotations.picks_worst, -height, height)
    top = np.full(n_sets, -np.inf)
    np.maximum.at(top, sets, height)
    is_top = height == top[sets]
    right = np.where(is_top[first], 1.0 / np.bincount(sets, is_top), 0.0)
    loss = top + np.log(np.bincount(sets, np.exp(height - top[sets]))) - height[first]
    if chances is not None:
        given = as_vector(chances, "chances", length=len(sets)).astype(np.float64)
        loss = -np.log(np.maximum(given[first], np.finfo(np.float64).tiny))
    weight = np.ones(n_sets) if annotations.weights is None else annotations.weights[first]
    users = annotations.user_codes[first]
    total = np.bincount(users, weight, minlength=annotations.n_users)

    def by_user(values: Float) -> MetricByUser:
        summed = np.bincount(users, weight * values, minlength=annotations.n_users)
        return MetricByUser(annotations.user_ids, ratio(summed, total))

    return ChoiceScores(by_user(right), by_user(loss))
