"""Answers that do not depend on the item: nearly always the same one, or long runs of each."""

import numpy as np
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.per_user_arrays import order_by

# A person whose rarer answer has at most this share gives nearly always the same answer.
_RARE = 0.05
# Rows are not in the order of answering if so many people have few runs, as in a sorted file.
_SORTED, _LEVEL = 0.2, 0.05


def p_same_answer(yes: Bool, chance: Float, people: Index, n_users: int) -> Float:
    """Return how likely typical raters would give the rarer answer as seldom as each person.

    Parameters
    ----------
    yes, chance, people : arrays of shape (n_rows,)
        The answer, the probability of a yes by a rater with the crowd's threshold, and who.
    n_users : int
        How many people there are.

    Returns
    -------
    array of shape (n_users,)
        The tail of the Poisson binomial distribution of each person's rarer answer; 1 where that
        is not rare.

    Examples
    --------
    >>> yes = np.array([True] * 10 + [True, False] * 5)
    >>> p_same_answer(yes, np.full(20, 0.5), np.repeat([0, 1], 10), 2).round(3)
    array([0.001, 1.   ])
    """
    found = np.ones(n_users)
    order, offsets = order_by(people, n_users)
    for person in range(n_users):
        rows = order[offsets[person] : offsets[person + 1]]
        n_yes = int(yes[rows].sum())
        rarer = min(n_yes, len(rows) - n_yes)
        if not len(rows) or rarer > _RARE * len(rows):
            continue
        other = chance[rows] if n_yes == rarer else 1.0 - chance[rows]
        counts = np.zeros(rarer + 1)  # probabilities of 0, 1, ... rarer answers
        counts[0] = 1.0
        for probability in other:
            counts[1:] += probability * (counts[:-1] - counts[1:])
            counts[0] *= 1.0 - probability
        found[person] = counts.sum()
    return found


def p_few_runs(yes: Bool, people: Index, n_users: int) -> Float:
    """Return how likely a random order of each person's answers has as few runs.

    That is the test of Wald and Wolfowitz (1940), by the normal approximation. Where many people
    have few runs, rows are sorted rather than in the order of answering: then all get NaN, and
    so do people who always give the same answer.

    Examples
    --------
    >>> yes = np.array([True] * 8 + [False] * 8 + [True, False, False, True] * 20)
    >>> bool(p_few_runs(yes, np.repeat(np.arange(6), 16), 6)[0] < 0.01)
    True
    """
    order, _ = order_by(people, n_users)
    owner, answers = people[order], yes[order]
    begins = np.ones(len(answers), dtype=np.bool_)
    begins[1:] = (owner[1:] != owner[:-1]) | (answers[1:] != answers[:-1])
    runs, n = np.bincount(owner[begins], minlength=n_users), np.bincount(owner, minlength=n_users)
    n_yes = np.bincount(owner, answers, minlength=n_users)
    pairs = 2.0 * n_yes * (n - n_yes)
    found = np.full(n_users, np.nan)
    both = (pairs > 0) & (n > 2)
    mean = 1.0 + pairs[both] / n[both]
    variance = pairs[both] * (pairs[both] - n[both]) / (n[both] ** 2 * (n[both] - 1.0))
    found[both] = ndtr((runs[both] + 0.5 - mean) / np.sqrt(np.maximum(variance, 1e-12)))
    if both.any() and (found[both] <= _LEVEL).mean() > _SORTED:
        found[:] = np.nan
    return found
