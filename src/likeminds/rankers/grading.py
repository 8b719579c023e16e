"""Grades and a learned prior: which likelihood, and what grades people would give."""

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from likeminds._support.arrays import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_people
from likeminds.metrics.concordance import concordance_by_person
from likeminds.prior.beliefs import Beliefs
from likeminds.prior.grading import CumulativeLogit
from likeminds.prior.seen import Seen
from likeminds.prior.ways import GradePredictions
from likeminds.rankers.candidates.folds import was_interrupted
from likeminds.rankers.inputs import item_ids_of

# The likelihoods of grades that are tried; the first where there are too few people to choose.
CANDIDATES = ("cumulative", "gaussian", "logistic", "median")
# So many people take part at most, and no more of them than have so many grades together (but as
# many as it takes to tell): half of them learn, and the others judge. And how exactly.
_MOST_PEOPLE, _MOST_GRADES, _ENOUGH_PEOPLE, _FEWEST_PEOPLE = 800, 12_000, 60, 20
_TOL = 1e-3
# The share of the others' grades that they are judged by.
_HELD_OUT = 0.4
# Rows from which the distribution of grades given scores is learned.
_MOST_ROWS = 20_000
_ROUNDS = 3


def choose_grade_loss(ranker: Any, annotations: Annotations) -> tuple[str, dict[str, float]]:
    """Return the likelihood of grades that ranks best for held-out people, and all scores.

    Each is learned, roughly and without learned features of items, from one half of (a sample of)
    the people; the others are newcomers, judged by the concordance of grades that are held out.
    Then the halves change places.
    """
    people = annotations.user_ids
    if len(people) < _FEWEST_PEOPLE:
        return CANDIDATES[0], {}
    grades_each = len(annotations) / len(people)
    most = int(min(max(_MOST_GRADES / grades_each, _ENOUGH_PEOPLE), _MOST_PEOPLE))
    some = people[np.unique(np.linspace(0, len(people) - 1, most).astype(np.intp))]
    halves = [annotations.of_people(some[first::2].tolist()) for first in (0, 1)]
    found: dict[str, list[Float]] = {name: [] for name in CANDIDATES}
    for learners, others in (halves, halves[::-1]):
        asked, held_out = split_within_people(others, test_size=_HELD_OUT, random_state=0)
        for name in CANDIDATES:
            found[name].append(_judge(ranker, name, learners, asked, held_out))
    scores = {name: float(np.nanmean(np.concatenate(parts))) for name, parts in found.items()}
    return max(scores, key=scores.__getitem__), scores


def _judge(
    ranker: Any, loss: str, learners: Annotations, asked: Annotations, held_out: Annotations
) -> Float:
    """Return the concordance of every newcomer's grades that are held out."""
    quick = clone(ranker).set_params(
        loss=loss, n_item_factors=0, tol=max(ranker.tol, _TOL), callback=None
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit will say it again
        quick.fit(learners)
        if was_interrupted(quick):
            raise KeyboardInterrupt
        scores = quick.newcomer(asked).decision_function(held_out, held_out.users)
    return concordance_by_person(held_out.outcomes, scores, held_out.users).values


def predict_grades(  # the method of every ranker with a learned prior
    self: Any, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
) -> GradePredictions:
    """Return the grades that people would give: their probabilities, and the expected grade.

    People use the scale in their own way: with the same score, one gives a 5 and another a 7.
    That is part of the prediction; of people not seen in training the crowd's way is assumed.

    Parameters
    ----------
    X, users
        As in `decision_function`.

    Returns
    -------
    GradePredictions

    Examples
    --------
    >>> import likeminds
    >>> rng = np.random.default_rng(0)
    >>> X, users = rng.normal(size=(600, 2)), np.repeat(np.arange(20), 30)
    >>> stars = np.clip(np.round(3 + X[:, 0] + rng.normal(size=600)), 1, 5)
    >>> ranker = likeminds.HierarchicalRanker(n_groups=0, loss="cumulative").fit(X, stars, users)
    >>> found = ranker.predict_grades([[-2.0, 0.0], [2.0, 0.0]], [3, 3])
    >>> found.grades.tolist(), found.expected.round().tolist()
    ([1.0, 2.0, 3.0, 4.0, 5.0], [1.0, 5.0])
    """
    check_is_fitted(self)
    beliefs, seen, people = seen_from(self, X, users)
    return beliefs.grades(seen, people)


def grade_chances(
    ranker: Any,
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Float, CumulativeLogit]:
    """Return the probability of each grade, shape (n_rows, n_grades), and how grades arise."""
    grading: CumulativeLogit = ranker.grading_
    eta, variance, people = scores_and_variances(ranker, X, users, items)
    use, added = grading.ways(people)
    return grading.chances(eta + added, variance, use), grading


def learn_grading(ranker: Any, annotations: Annotations) -> CumulativeLogit:
    """Learn how grades follow from the scores of a ranker that is fitted."""
    assert annotations.grades is not None
    grades, owners = annotations.grades, annotations.user_codes
    every = slice(None, None, 1 + len(annotations) // _MOST_ROWS)
    eta, variance, people = scores_and_variances(ranker, annotations[every], None)
    found = CumulativeLogit.first(grades, owners)
    codes = found.scale.codes(grades[every])
    for _ in range(_ROUNDS):
        found = found.with_shifts(codes, people, eta)
        added = found.ways(people)[1]
        found = found.refined(codes, people, eta + added, variance, free_slope=True)
    return found


def scores_and_variances(
    ranker: Any,
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Float, Float, Index]:
    """Return scores from the common zero of all people, their variances, and the people."""
    beliefs, seen, people = seen_from(ranker, X, users, items)
    return (*beliefs.from_zero(seen, people), people)


def seen_from(
    ranker: Any,
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Beliefs, Seen, Index]:
    """Return everybody's posteriors, rows as these see them, and the people of the rows."""
    rows, people = ranker._rows_and_people(X, users)
    beliefs: Beliefs = ranker._beliefs()
    return beliefs, beliefs.see(rows, item_ids_of(X, items, len(rows))), people
