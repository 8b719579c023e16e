"""Predictions of a learned prior: probabilities of labels, grades and preferences."""

from collections.abc import Hashable, Iterable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, log_expit
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.choice_probabilities import calibrate_choices, chances_of_sets
from likeminds.mixed_model.item_posteriors import PredictionRows
from likeminds.mixed_model.likelihoods import VARIANCE_SCALES, damping, label_probability
from likeminds.mixed_model.ordinal import CumulativeLogit
from likeminds.mixed_model.ordinal_responses import GradePredictions
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.training_data import ScoredLabels, TrainingData
from likeminds.rankers.validation import find_users, is_graded, rows_and_users

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker

# Losses that learn from what was chosen among what was shown.
_OF_CHOICES = ("choice", "mixed")
# What a label may say of its own score, at most.
_MOST_TOLD = 0.9
# Labels (or rows of choice sets), and numbers of their features, that calibration uses.
_MOST_ROWS, _MOST_NUMBERS = 20_000, 8_000_000
# Rounds of alternation between how users use the scale of grades and the scale itself.
_ROUNDS = 8


def _may_have_log_odds(ranker: "PriorRanker") -> bool:
    """Say whether scores can be log-odds; those of the squared AUC loss never are."""
    return bool(ranker.loss != "auc")


@available_if(_may_have_log_odds)  # type: ignore[untyped-decorator]
def predict_proba(
    self: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
    items: Iterable[Hashable] | None = None,
) -> Float:
    """Return the probability of each label: that somebody says yes, or would choose an item.

    Scores m of the logistic loss are log-odds, with a variance s^2 that has what is not known about
    the person, and about the item: the probability is sigma(m / sqrt(1 + pi c s^2 / 8)), where c
    makes training labels most likely that are left out (``variance_scale_``), and is 1 for new
    users and items. docs/probabilities.md says how far it holds. Of grades, it is that of a
    grade above the one that divides them (see `predict_grades` for that of each). Of choices, it is
    that of being chosen among the rows of the same group.

    Parameters
    ----------
    X, users, items
        As in `decision_function`.

    Returns
    -------
    array of shape (n_rows, 2)
        Of the negative and of the positive label, as ``classes_``.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, make_schools
    >>> crowd = make_schools(30, 20, 40, 6, 2, random_state=0).annotations
    >>> ranker = HierarchicalRanker().fit(crowd)
    >>> chances = ranker.predict_proba(crowd)
    >>> chances.shape, bool(np.allclose(chances.sum(axis=1), 1.0))
    ((600, 2), True)
    """
    check_is_fitted(self)
    if self.grading_ is not None:
        positive = _of_grades(self, X, users, items)
    elif is_graded(self) or self.prior_.likelihood.is_quadratic:
        raise TypeError(
            "Scores that were learned as a regression are no log-odds, so that they say nothing "
            'about the probability of a label. Fit with another loss than "auc".'
        )
    elif self.loss_ in _OF_CHOICES and isinstance(X, Annotations) and _are_grouped(X):
        positive = _of_choices(self, X)
    elif self.prior_.design.intercept:
        positive = _of_labels(self, X, users, items)
    else:
        raise ValueError(
            "This ranker has learned from choices: what is chosen depends on what it is shown "
            "with. Pass Annotations whose choice_sets say what is shown together, or compare two "
            "items by probability_preferred."
        )
    return np.column_stack([1.0 - positive, positive])


@available_if(_may_have_log_odds)  # type: ignore[untyped-decorator]
def predict(
    self: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
    items: Iterable[Hashable] | None = None,
) -> NDArray[Any]:
    """Predict each label: the positive class where its probability is above one half.

    Only where labels are yes or no. Grades have `predict_grades`; a choice depends on all items
    that are shown, and `rank` finds the best of them.

    Parameters
    ----------
    X, users, items
        As in `decision_function`.

    Returns
    -------
    array of shape (n_rows,)
        Labels, as in ``classes_``.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, make_schools
    >>> crowd = make_schools(30, 20, 40, 6, 2, random_state=0).annotations
    >>> ranker = HierarchicalRanker().fit(crowd)
    >>> bool((ranker.predict(crowd) == crowd.labels).mean() > 0.6)
    True
    """
    check_is_fitted(self)
    if is_graded(self):
        raise TypeError("predict is for labels of yes or no, but these are grades: predict_grades.")
    if self.loss_ in _OF_CHOICES and (_are_grouped(X) or not self.prior_.design.intercept):
        raise TypeError(
            "predict is for labels of yes or no, but these are choices, which depend on all items "
            "that are shown: call rank for the best one, or predict_proba for probabilities."
        )
    return np.asarray(self.classes_[(self.predict_proba(X, users, items)[:, 1] > 0.5).astype(int)])


def probability_above(
    self: "PriorRanker",
    a: ArrayLike | Annotations,
    b: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
) -> Float:
    """Return the probability that item ``a`` of each row ranks above item ``b``.

    It is about scores, not labels: see `probability_preferred`.

    Parameters
    ----------
    a, b : arrays of shape (n_rows, n_features), or Annotations
        The items.
    users : array of shape (n_rows,), optional
        For whom, as in `decision_function`.

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

    Labels are not certain even where scores are: somebody who ranks ``a`` above ``b`` for
    sure may still say yes to ``b`` only. What is predicted here is which of the two is
    chosen, or gets the positive label where one of them does; `probability_above` is about
    scores.

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


def calibrate_variance_scale(ranker: "PriorRanker", data: TrainingData) -> float:
    """Return the share of scores' variance that makes labels most likely which are left out.

    Scores are modes, variances are Laplace's approximation, and they include what is not known
    about the prior: together they may be too careful, or not careful enough. A label is left out by
    taking its likelihood, a normal distribution of the score, out of the score's posterior.
    """
    if ranker.loss_ in _OF_CHOICES:
        return _calibrate_choices(ranker, data)
    some = scored_sample(ranker, data)
    annotations, eta, variance = some.annotations, some.scores, some.variances
    chance = expit(eta)
    told = np.minimum(chance * (1.0 - chance) * variance, _MOST_TOLD)
    variance = variance / (1.0 - told)
    eta = eta - variance * (annotations.labels - chance)
    towards = np.where(annotations.labels, eta, -eta)
    likely = [
        np.average(log_expit(towards / damping(c * variance)), weights=annotations.weights)
        for c in VARIANCE_SCALES
    ]
    return float(VARIANCE_SCALES[int(np.argmax(likely))])


def _calibrate_choices(ranker: "PriorRanker", data: TrainingData) -> float:
    """Return the same of choices, from those of some users."""
    n_users, n_rows = len(data.counts.user_ids), data.counts.n_labels
    most = int(np.ceil(n_users * min(1.0, _MOST_ROWS / n_rows)))
    annotations = data.rows_of(np.unique(np.linspace(0, n_users - 1, most).astype(np.intp)))
    sets = annotations.choice_set_codes
    in_sets = np.zeros(len(annotations), np.bool_) if sets is None else np.bincount(sets)[sets] > 1
    if not in_sets.any():  # choices among all of a user's labels
        return 1.0
    annotations = annotations[in_sets]
    posterior, users = ranker._posterior_of(find_users(ranker, annotations.users))
    return calibrate_choices(posterior, annotations, ranker.decision_function(annotations), users)


def _of_labels(
    ranker: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None,
) -> Float:
    posterior, seen, places, positions = prediction_rows(ranker, X, users, items)
    eta, variance = posterior.linear_predictor(seen, places)
    counts = ranker.variance_scale_
    if counts is not None:  # of people and items that are new, all of it does
        variance = variance * np.where(
            (positions >= 0) & seen.is_known(posterior.items), counts, 1.0
        )
    return label_probability(eta, np.sqrt(variance))


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


def _of_grades(
    ranker: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None,
) -> Float:
    chances, grading = grade_chances(ranker, X, users, items)
    assert ranker.label_reading_ is not None
    above = grading.scale.levels > float(ranker.label_reading_.threshold or 0.0)
    return np.asarray(chances[:, above].sum(axis=1))


def _are_grouped(X: ArrayLike | Annotations) -> bool:
    return isinstance(X, Annotations) and X.choice_set_codes is not None


def _of_choices(ranker: "PriorRanker", annotations: Annotations) -> Float:
    """Return the chance of each row in its choice set; rows of their own are labels."""
    users: Index = rows_and_users(ranker, annotations, None)[1]
    sets = annotations.choice_set_codes
    scores = ranker.decision_function(annotations)
    posterior, users = ranker._posterior_of(users)
    counts = ranker.variance_scale_
    chances = chances_of_sets(
        posterior, annotations, scores, users, 1.0 if counts is None else counts
    )
    assert chances is not None
    assert sets is not None
    alone = np.bincount(sets)[sets] == 1
    if alone.any() and ranker.prior_.design.intercept:
        chances[alone] = _of_labels(ranker, annotations[alone], None, None)
    return chances


def predict_grades(
    self: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None = None,
    items: Iterable[Hashable] | None = None,
) -> GradePredictions:
    """Return the grades that people would give: their probabilities, and the expected grade.

    People use the scale in their own way: with the same score, one gives a 5 and another a 7.
    That is part of the prediction; of people not seen in training the crowd's way is assumed.

    Parameters
    ----------
    X, users, items
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
    posterior, seen, places, _ = prediction_rows(self, X, users, items)
    return posterior.grades(seen, places)


def grade_chances(
    ranker: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Float, CumulativeLogit]:
    """Return the probability of each grade, shape (n_rows, n_grades), and how grades arise."""
    grading = ranker.grading_
    assert grading is not None
    eta, variance, positions = scores_and_variances(ranker, X, users, items)
    use, added = grading.scale_use(positions)
    return grading.chances(eta + added, variance, use), grading


def learn_grading(ranker: "PriorRanker", data: TrainingData) -> CumulativeLogit:
    """Learn how grades follow from the scores of a ranker that is fitted."""
    assert data.counts.grades is not None
    found = CumulativeLogit.given(data.counts.grades)
    some = scored_sample(ranker, data)
    assert some.annotations.grades is not None
    codes = found.scale.codes(some.annotations.grades)
    for _ in range(_ROUNDS):
        found = found.with_shifts(codes, some.users, some.scores)
        use, added = found.scale_use(some.users)
        found = found.refined(codes, use, some.scores + added, some.variances, free_slope=True)
    return found


def scored_sample(ranker: "PriorRanker", data: TrainingData) -> ScoredLabels:
    """Return some labels with the scores of a ranker that is fitted."""
    found = data.scored
    if found is None:
        annotations = data.sample_rows(scored_share(data.table.n_features, data.counts.n_labels))
        found = ScoredLabels(annotations, *scores_and_variances(ranker, annotations, None))
    return found


def scored_share(n_features: int, n_labels: int) -> float:
    """Return the share of labels from which it is learned what scores say of labels."""
    return min(_MOST_ROWS, _MOST_NUMBERS // max(n_features, 1)) / n_labels


def scores_and_variances(
    ranker: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Float, Float, Index]:
    """Return scores from the common zero of all people, their variances, and the people."""
    posterior, seen, places, positions = prediction_rows(ranker, X, users, items)
    return (*posterior.linear_predictor(seen, places), positions)


def prediction_rows(
    ranker: "PriorRanker",
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Posterior, PredictionRows, Index, Index]:
    """Return posteriors, rows as people see them, and whose rows are: among these, and of all."""
    rows, positions = rows_and_users(ranker, X, users)
    posterior, places = ranker._posterior_of(positions)
    return (
        posterior,
        posterior.prediction_rows(rows, ranker._item_ids(X, items, rows)),
        places,
        positions,
    )
