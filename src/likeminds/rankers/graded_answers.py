"""Grades and a learned prior: which likelihood, and what grades people would give."""

import warnings
from collections.abc import Hashable, Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, FloatArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.metrics.concordance import concordance_by_user
from likeminds.metrics.paired import over_users
from likeminds.mixed_model.item_effects.item_responses import are_shared
from likeminds.mixed_model.item_posteriors import PredictionRows
from likeminds.mixed_model.ordinal import CumulativeLogit
from likeminds.mixed_model.ordinal_responses import GradePredictions
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers.candidates.folds import was_interrupted
from likeminds.rankers.label_validation import rows_and_users
from likeminds.rankers.training_data import ScoredLabels, TrainingData

# The likelihoods of grades that are tried; the first where there are too few people to choose.
CANDIDATES = ("cumulative", "gaussian", "logistic", "median")
# So many people take part at most, and no more of them than have so many grades together (but as
# many as it takes to tell): half of them learn, and the others judge. And how exactly.
_MOST_PEOPLE, _MOST_GRADES, _ENOUGH_PEOPLE, _FEWEST_PEOPLE = 800, 12_000, 60, 20
_TOL = 1e-3
# The share of the others' grades that they are judged by.
_HELD_OUT = 0.4
# Labels, and numbers of their features, from which it is learned what scores say of labels.
_MOST_ROWS, _MOST_NUMBERS = 20_000, 8_000_000
_ROUNDS = 8
# Principal components that stand for features in a trial of users' weights.
_COMPONENTS = 30


def choose_grade_loss(ranker: Any, data: TrainingData) -> tuple[str, dict[str, float]]:
    """Return the likelihood of grades that ranks best for held-out people, and all scores.

    Each is learned, roughly and without learned features of items, from one half of (a sample of)
    the people; the others are newcomers, judged by the concordance of grades that are held out.
    Nor are directions looked for where people have fewer grades than there are features: that takes
    most of the time there, and finds what is none.
    Then the halves change places, for all but those that were clearly behind; their score is as
    far behind the best as it was then.
    """
    n_users = len(data.about.user_ids)
    if n_users < _FEWEST_PEOPLE:
        return CANDIDATES[0], {}
    grades_each = data.about.n_labels / n_users
    most = int(min(max(_MOST_GRADES / grades_each, _ENOUGH_PEOPLE), _MOST_PEOPLE))
    some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
    halves = [_sorted(data.rows_of(some[first::2])) for first in (0, 1)]
    if ranker.n_groups == "auto" and data.about.n_features > grades_each:
        ranker = clone(ranker).set_params(n_groups=0)
    first = _try(ranker, CANDIDATES, *halves)
    second = _try(ranker, _not_behind(first), *halves[::-1])
    scores = {name: _mean(np.concatenate([first[name], second[name]])) for name in second}
    best = max(scores, key=scores.__getitem__)
    behind = {name: scores[best] + _mean(first[name] - first[best]) for name in CANDIDATES}
    return best, behind | scores


def users_weigh_features(ranker: Any, data: TrainingData) -> bool:
    """Tell whether held-out labels of known users are ranked better by users' weights of features.

    The weights are of the leading principal components, which stand for features too many to try
    with: of features as they are or, if ``ranker.standardize``, standardised. The other candidate
    regresses item effects and factors on all features. Users are a sample.
    """
    n_users = len(data.about.user_ids)
    most = int(min(max(_MOST_GRADES * n_users / data.about.n_labels, _ENOUGH_PEOPLE), n_users))
    some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
    said = _sorted(data.rows_of(some))
    if not are_shared(split_within_users(said, test_size=_HELD_OUT, random_state=0)[0]):
        return True
    centred = said.features - said.features.mean(axis=0)
    spread = centred.std(axis=0)
    ways = [centred, centred[:, spread > 0] / spread[spread > 0]]
    without = _trial_concordance(ranker, said, said.features, weighed=False)
    return any(
        np.nansum(_trial_concordance(ranker, said, _leading(rows), weighed=True) - without) > 0
        for rows in ways[: 1 + ranker.standardize]
    )


def _leading(rows: Float) -> Float:
    left, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray((left * lengths)[:, :_COMPONENTS])


def _trial_concordance(
    ranker: Any, said: Annotations, features: FloatArray, *, weighed: bool
) -> Float:
    """Return each user's concordance on held-out labels; ``weighed``: users weigh features."""
    names = tuple(map(str, range(features.shape[1])))
    train, test = split_within_users(
        said._with(features=features, feature_names=names), test_size=_HELD_OUT, random_state=0
    )
    form = "low_rank" if weighed else "auto"
    quick = _trial(ranker, weighed=weighed, covariance=form, loss=ranker.loss_)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit will say it again
        quick.fit(train)
        if was_interrupted(quick):
            raise KeyboardInterrupt
        scores = quick.decision_function(test)
    return concordance_by_user(test.outcomes, scores, test.users).values


def _trial(ranker: Any, *, weighed: bool, **parameters: Any) -> Any:
    """Return a copy that is fitted roughly, without a word, to be judged by its scores.

    Unless ``weighed``, item effects are regressed on features too many for users to weigh.
    """
    quick = clone(ranker).set_params(
        tol=max(ranker.tol, _TOL), callback=None, verbose=False, unknown="consensus", **parameters
    )
    quick._is_trial, quick._weighs_features = True, weighed
    return quick


def _try(
    ranker: Any, candidates: Iterable[str], learners: Annotations, others: Annotations
) -> dict[str, Float]:
    """Return everybody's concordance, by the likelihood that was learned."""
    asked, held_out = split_within_users(others, test_size=_HELD_OUT, random_state=0)
    return {name: _judge(ranker, name, learners, asked, held_out) for name in candidates}


def _not_behind(by_user: dict[str, Float]) -> list[str]:
    """Return those whose 95 % interval, person by person, does not rule out the best."""
    best = max(by_user.values(), key=_mean)
    apart = {name: over_users(values - best) for name, values in by_user.items()}
    return [name for name, found in apart.items() if not found.high < 0.0]


def _mean(values: Float) -> float:
    return float(np.nanmean(values))


def _sorted(said: Annotations) -> Annotations:
    """Return labels in the order of people and items, by which what is held out is drawn."""
    return said[np.lexsort((said.outcomes, said.item_codes, said.user_codes))]


def _judge(
    ranker: Any, loss: str, learners: Annotations, asked: Annotations, held_out: Annotations
) -> Float:
    """Return the concordance of every newcomer's grades that are held out."""
    quick = _trial(ranker, weighed=False, loss=loss, n_item_factors=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the final fit will say it again
        quick.fit(learners)
        if was_interrupted(quick):
            raise KeyboardInterrupt
        scores = quick.newcomer(asked).decision_function(held_out, held_out.users)
    return concordance_by_user(held_out.outcomes, scores, held_out.users).values


def predict_grades(  # the method of every ranker with a learned prior
    self: Any,
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
    posterior, seen, places, _ = seen_from(self, X, users, items)
    return posterior.grades(seen, places)


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


def learn_grading(ranker: Any, data: TrainingData) -> CumulativeLogit:
    """Learn how grades follow from the scores of a ranker that is fitted."""
    found = CumulativeLogit.given(data.grades_given())
    some = some_scored(ranker, data)
    assert some.said.grades is not None
    codes = found.scale.codes(some.said.grades)
    for _ in range(_ROUNDS):
        found = found.with_shifts(codes, some.people, some.scores)
        use, added = found.ways(some.people)
        found = found.refined(codes, use, some.scores + added, some.variances, free_slope=True)
    return found


def some_scored(ranker: Any, data: TrainingData) -> ScoredLabels:
    """Return some labels with the scores of a ranker that is fitted."""
    found = data.scored_there()
    if found is None:
        about = data.about
        said = data.some_rows(share_scored(about.n_features, about.n_labels))
        found = ScoredLabels(said, *scores_and_variances(ranker, said, None))
    return found


def share_scored(n_features: int, n_labels: int) -> float:
    """Return the share of labels from which it is learned what scores say of labels."""
    return min(_MOST_ROWS, _MOST_NUMBERS // max(n_features, 1)) / n_labels


def scores_and_variances(
    ranker: Any,
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Float, Float, Index]:
    """Return scores from the common zero of all people, their variances, and the people."""
    posterior, seen, places, people = seen_from(ranker, X, users, items)
    return (*posterior.from_zero(seen, places), people)


def seen_from(
    ranker: Any,
    X: ArrayLike | Annotations,
    users: Iterable[Hashable] | None,
    items: Iterable[Hashable] | None = None,
) -> tuple[Posterior, PredictionRows, Index, Index]:
    """Return posteriors, rows as people see them, and whose rows are: among these, and of all."""
    rows, people = rows_and_users(ranker, X, users)
    posterior, places = ranker._posterior_of(people)
    return posterior, posterior.see(rows, ranker._item_ids(X, items, rows)), places, people
