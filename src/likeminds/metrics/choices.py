"""Accuracy and log loss of choices, comparisons and rankings, by person."""

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.checks import as_vector
from likeminds.data.coded_labels import CodedLabels
from likeminds.metrics.by_user import MetricByUser


class ChoiceScores(NamedTuple):
    """How well choices are predicted: the share of them, and minus the log probability."""

    accuracy: MetricByUser
    log_loss: MetricByUser


def score_choices(
    said: CodedLabels, scores: ArrayLike, chances: ArrayLike | None = None
) -> ChoiceScores:
    """Judge scores by choices: of a pair, by whether the winner scores higher.

    Parameters
    ----------
    said : Annotations
        Groups of rows, of each of which one was chosen (`Annotations.from_comparisons`, ...).
    scores : array of shape (n_rows,)
        Scores of the rows; log-odds, as far as the log loss is concerned.
    chances : array of shape (n_rows,), optional
        The probability that each row is chosen in its group. By default it is proportional to
        exp(score): as if scores were certain.

    Returns
    -------
    ChoiceScores
        ``accuracy``: the share of a person's choices whose item has the highest score (the
        lowest, where the worst was chosen; equal scores share a point). ``log_loss``: the mean
        of minus the logarithm of the probability of what was chosen. Choices count by weight.

    Examples
    --------
    >>> from likeminds import Annotations
    >>> said = Annotations.from_comparisons(["ann"] * 2 + ["bob"], list("aba"), list("bcc"))
    >>> points = {"a": 2.0, "b": 2.0, "c": 1.0}
    >>> found = score_choices(said, [points[item] for item in said.items])
    >>> found.accuracy.values
    array([0.75, 1.  ])
    >>> found.log_loss.values.round(3)
    array([0.503, 0.313])
    """
    groups = said.choice_set_codes
    if groups is None:
        raise ValueError("There are no choice sets, so these labels are not choices.")
    sets = _ScoredSets.of(groups, said.chosen)
    height = as_vector(scores, "scores", length=len(groups)).astype(np.float64)
    if said.picks_worst is not None:
        height = np.where(said.picks_worst, -height, height)
    top = sets.highest(height)
    is_top = height == top[groups]
    right = np.where(is_top[sets.first], 1.0 / sets.sums(is_top.astype(np.float64)), 0.0)
    loss = top + np.log(sets.sums(np.exp(height - top[groups]))) - height[sets.first]
    if chances is not None:
        given = as_vector(chances, "chances", length=len(groups)).astype(np.float64)
        loss = -np.log(np.maximum(given[sets.first], np.finfo(np.float64).tiny))
    weight = np.ones(len(sets.first))
    if said.weights is not None:
        weight[:] = said.weights[sets.first]
    people = said.user_codes[sets.first]
    return ChoiceScores(
        *(
            MetricByUser(said.user_ids, _mean(people, values, weight, said.n_users))
            for values in (right, loss)
        )
    )


class _ScoredSets(NamedTuple):
    """The group of each row, their number, and the row that was chosen in each."""

    groups: Index
    n_sets: int
    first: Index

    @classmethod
    def of(cls, groups: Index, chosen: Bool) -> "_ScoredSets":
        n_sets = int(groups.max()) + 1
        if (np.bincount(groups[chosen], minlength=n_sets) != 1).any():
            raise ValueError(
                "Some choice sets have not just one row that was chosen, so these labels are not "
                "choices."
            )
        first = np.zeros(n_sets, dtype=np.intp)
        first[groups[chosen]] = np.flatnonzero(chosen)
        return cls(groups, n_sets, first)

    def sums(self, values: Float) -> Float:
        """Return the sum over the rows of each set."""
        return np.bincount(self.groups, weights=values, minlength=self.n_sets).astype(np.float64)

    def highest(self, values: Float) -> Float:
        """Return the highest value of each set."""
        top = np.full(self.n_sets, -np.inf)
        np.maximum.at(top, self.groups, values)
        return top


def _mean(people: Index, values: Float, weight: Float, n_users: int) -> Float:
    total = np.bincount(people, weights=weight, minlength=n_users)
    summed = np.bincount(people, weights=weight * values, minlength=n_users)
    mean = np.full(n_users, np.nan)
    return np.asarray(np.divide(summed, total, out=mean, where=total > 0))
