"""Predictions of a learned prior: probabilities of labels, grades and pairs of items."""

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.choice_probabilities import chances_of_sets
from likeminds.mixed_model.design import PredictionRows
from likeminds.mixed_model.likelihoods import label_probability
from likeminds.mixed_model.ordinal import CumulativeLogit
from likeminds.mixed_model.ordinal_responses import GradePredictions
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.item_table import Ids, ItemRows
from likeminds.rankers.training_data import TrainingData
from likeminds.rankers.validation import is_graded, rows_and_users

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker


# For methods that need log-odds; with the squared AUC loss, scores are not log-odds.
_with_log_odds = available_if(lambda ranker: ranker.loss != "auc")
# Losses of choice sets.
_OF_CHOICES = ("choice", "mixed")
# Rounds of alternation between users' response styles and the scale of grades.
_ROUNDS = 8


@_with_log_odds  # type: ignore[untyped-decorator]
def predict_proba(self: "PriorRanker", X: ItemRows, users: Ids = None, items: Ids = None) -> Float:
    """Return the probability of a positive label, or of being chosen.

    With the logistic loss, scores m are log-odds with posterior variance s^2 of user and item. The
    probability is sigma(m / sqrt(1 + pi c s^2 / 8)). The scale c (``variance_scale_``) maximises
    the leave-one-out likelihood of training labels (for choices, the likelihood of five held-out
    folds). It is 1 for new users and items. For grades, `predict_proba` returns the probability of
    a grade above the threshold; `predict_grades` returns the probability of each grade. For
    choices, it is the probability of being chosen among the rows of the same choice set.

    Parameters
    ----------
    X, users, items
        As in `decision_function`.

    Returns
    -------
    array of shape (n_rows, 2)
        Probabilities of the negative and of the positive label, as in ``classes_``.

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
            "This loss is a regression, so scores are not log-odds and labels have no "
            'probability. Fit with loss="logistic", "choice" or "cumulative".'
        )
    elif self.loss_ in _OF_CHOICES and isinstance(X, Annotations) and _are_grouped(X):
        positive = _of_choices(self, X)
    elif self.prior_.design.intercept:
        positive = _of_labels(self, X, users, items)
    else:
        raise ValueError(
            "This ranker was fitted to choices, which depend on all items shown. Pass "
            "Annotations with choice_sets, or compare two items with probability_preferred."
        )
    return np.column_stack([1.0 - positive, positive])


@_with_log_odds  # type: ignore[untyped-decorator]
def predict(self: "PriorRanker", X: ItemRows, users: Ids = None, items: Ids = None) -> NDArray[Any]:
    """Predict labels: the positive class if its probability is above one half.

    Labels must have two classes. For grades, call `predict_grades`; for choices, `rank`.

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
        raise TypeError("predict is for yes-no labels, but these are grades. Call predict_grades.")
    refuse_choices(self, X)
    return likelier_classes(self, self.predict_proba(X, users, items))


def refuse_choices(ranker: Any, X: ItemRows) -> None:
    """Raise TypeError if labels are choices, which `predict` cannot predict row by row."""
    if ranker.loss_ in _OF_CHOICES and (_are_grouped(X) or not ranker.prior_.design.intercept):
        raise TypeError(
            "predict is for yes-no labels, but these are choices, which depend on all items shown. "
            "Call rank for the best item, or predict_proba for probabilities."
        )


def likelier_classes(ranker: Any, chances: Float) -> NDArray[Any]:
    """Return the class of each row with a probability above one half."""
    return np.asarray(ranker.classes_[(chances[:, 1] > 0.5).astype(int)])


def _of_labels(ranker: "PriorRanker", X: ItemRows, users: Ids, items: Ids) -> Float:
    posterior, rows, places, positions = prediction_rows(ranker, X, users, items)
    eta, variance = posterior.linear_predictor(rows, places)
    variance = variance * _variance_scales(ranker, positions, rows)
    return label_probability(eta, np.sqrt(variance))


def _variance_scales(ranker: "PriorRanker", users: Index, *rows: PredictionRows) -> Float:
    """Return the scale of each row's variance: 1 for new users (-1) and items."""
    items = ranker.prior_.items
    in_training = np.all([users >= 0, *(one.is_known(items) for one in rows)], axis=0)
    scale = ranker.variance_scale_
    return np.where(in_training, 1.0 if scale is None else scale, 1.0)


def _of_grades(ranker: "PriorRanker", X: ItemRows, users: Ids, items: Ids) -> Float:
    grading, reading = ranker.grading_, ranker.label_reading_
    assert grading is not None
    assert reading is not None
    posterior, rows, places, positions = prediction_rows(ranker, X, users, items)
    eta, variance = posterior.linear_predictor(rows, places)
    use, added = grading.scale_use(positions)
    chances = grading.chances(eta + added, variance, use)
    above = grading.scale.levels > float(reading.threshold or 0.0)
    return np.asarray(chances[:, above].sum(axis=1))


def _are_grouped(X: ItemRows) -> bool:
    return isinstance(X, Annotations) and X.choice_set_codes is not None


def _of_choices(ranker: "PriorRanker", annotations: Annotations) -> Float:
    """Return the probability of each row in its choice set; single rows are labels."""
    sets, scores = annotations.choice_set_codes, ranker.decision_function(annotations)
    posterior, users = ranker._posterior_of(rows_and_users(ranker, annotations, None)[1])
    scale = 1.0 if ranker.variance_scale_ is None else ranker.variance_scale_
    chances = chances_of_sets(posterior, annotations, scores, users, scale)
    assert chances is not None
    assert sets is not None
    alone = np.bincount(sets)[sets] == 1
    if alone.any() and ranker.prior_.design.intercept:
        chances[alone] = _of_labels(ranker, annotations[alone], None, None)
    return chances


def predict_grades(
    self: "PriorRanker", X: ItemRows, users: Ids = None, items: Ids = None
) -> GradePredictions:
    """Predict grades: their probabilities, and the expected grade.

    Predictions include response styles, because users with equal scores may give different grades.
    New users get the mean response style.

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
    posterior, rows, places, _ = prediction_rows(self, X, users, items)
    return posterior.grades(rows, places)


def learn_grading(ranker: "PriorRanker", data: TrainingData) -> CumulativeLogit:
    """Fit the model of grades given the scores of a fitted ranker."""
    assert data.counts.grades is not None
    found = CumulativeLogit.given(data.counts.grades)
    some = data.scored_by(ranker)
    assert some.annotations.grades is not None
    codes = found.scale.codes(some.annotations.grades)
    for _ in range(_ROUNDS):
        found = found.with_shifts(codes, some.users, some.scores)
        use, added = found.scale_use(some.users)
        found = found.refined(codes, use, some.scores + added, some.variances, free_slope=True)
    return found


def prediction_rows(
    ranker: "PriorRanker", X: ItemRows, users: Ids, items: Ids = None
) -> tuple[Posterior, PredictionRows, Index, Index]:
    """Return posteriors, rows, and users' positions in these posteriors and in training."""
    rows, positions = rows_and_users(ranker, X, users)
    posterior, places = ranker._posterior_of(positions)
    predicted = posterior.prediction_rows(rows, ranker._item_ids(X, items, rows))
    return posterior, predicted, places, positions


def probability_above(self: "PriorRanker", a: ItemRows, b: ItemRows, users: Ids = None) -> Float:
    """Return the probability that item ``a`` of each row ranks above item ``b``.

    It compares scores; for labels, see `probability_preferred`.

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
    self: "PriorRanker", a: ItemRows, b: ItemRows, users: Ids = None
) -> Float:
    """Return the probability that item ``a`` of each row gets a better label than item ``b``.

    This is the probability that ``a`` is chosen, or gets the positive label if only one does. It
    allows for noise of labels; `probability_above` compares scores alone.

    Parameters
    ----------
    a, b, users
        As in `probability_above`.

    Returns
    -------
    array of shape (n_rows,)
    """
    posterior, one, other, positions = _pairs(self, a, b, users)
    scale = _variance_scales(self, positions, one, other)
    return posterior.chance_preferred(one, other, positions, scale)


def probability_tied(self: "PriorRanker", a: ItemRows, b: ItemRows, users: Ids = None) -> Float:
    """Return the probability that items ``a`` and ``b`` of each row are tied.

    It needs comparisons with ties (see `Annotations.from_comparisons`). If a pair is not tied, item
    ``a`` wins with the probability `probability_preferred`.

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
    ranker: "PriorRanker", a: ItemRows, b: ItemRows, users: Ids
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
