"""Selection by held-out labels: the loss of grades, and whether users weigh features."""

import warnings
from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np
from sklearn.base import clone

from likeminds._util.array_types import Float, FloatArray
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.metrics.concordance import concordance_by_user
from likeminds.metrics.paired import over_users
from likeminds.mixed_model.item_effects.item_responses import are_shared
from likeminds.rankers.candidates import was_interrupted
from likeminds.rankers.training_data import TrainingData

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker

# The likelihoods of grades that are tried; the first where there are too few people to choose.
CANDIDATES = ("cumulative", "gaussian", "logistic", "median")
# So many people take part at most, and no more of them than have so many grades together (but as
# many as it takes to tell): half of them learn, and the others judge. And how exactly.
_MOST_USERS, _MOST_GRADES, _ENOUGH_USERS, _FEWEST_USERS = 800, 12_000, 60, 20
_TOL = 1e-3
# The share of the others' grades that they are judged by.
_HELD_OUT = 0.4
# Principal components that stand for features in a trial of users' weights.
_COMPONENTS = 30


def choose_grade_loss(ranker: "PriorRanker", data: TrainingData) -> tuple[str, dict[str, float]]:
    """Return the likelihood of grades that ranks best for held-out people, and all scores.

    Each is learned, roughly and without learned features of items, from one half of (a sample of)
    the people; the others are newcomers, judged by the concordance of grades that are held out.
    Nor are directions looked for where people have fewer grades than there are features: that takes
    most of the time there, and finds what is none.
    Then the halves change places, for all but those that were clearly behind; their score is as
    far behind the best as it was then.
    """
    n_users = len(data.counts.user_ids)
    if n_users < _FEWEST_USERS:
        return CANDIDATES[0], {}
    grades_each = data.counts.n_labels / n_users
    most = int(min(max(_MOST_GRADES / grades_each, _ENOUGH_USERS), _MOST_USERS))
    some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
    halves = [_sorted(data.rows_of(some[first::2])) for first in (0, 1)]
    if ranker.n_groups == "auto" and data.table.n_features > grades_each:
        ranker = clone(ranker).set_params(n_groups=0)
    first = _try(ranker, CANDIDATES, *halves)
    second = _try(ranker, _not_behind(first), *halves[::-1])
    scores = {name: _mean(np.concatenate([first[name], second[name]])) for name in second}
    best = max(scores, key=scores.__getitem__)
    behind = {name: scores[best] + _mean(first[name] - first[best]) for name in CANDIDATES}
    return best, behind | scores


def users_weigh_features(ranker: "PriorRanker", data: TrainingData) -> bool:
    """Tell whether held-out labels of known users are ranked better by users' weights of features.

    The weights are of the leading principal components, which stand for features too many to try
    with: of features as they are or, if ``ranker.standardize``, standardised. The other candidate
    regresses item effects and factors on all features. Users are a sample.
    """
    n_users = len(data.counts.user_ids)
    most = int(min(max(_MOST_GRADES * n_users / data.counts.n_labels, _ENOUGH_USERS), n_users))
    some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
    annotations = _sorted(data.rows_of(some))
    if not are_shared(split_within_users(annotations, test_size=_HELD_OUT, random_state=0)[0]):
        return True
    centred = annotations.features - annotations.features.mean(axis=0)
    spread = centred.std(axis=0)
    ways = [centred, centred[:, spread > 0] / spread[spread > 0]]
    without = _trial_concordance(ranker, annotations, annotations.features, weighed=False)
    return any(
        np.nansum(_trial_concordance(ranker, annotations, _leading(rows), weighed=True) - without)
        > 0
        for rows in ways[: 1 + ranker.standardize]
    )


def _leading(rows: Float) -> Float:
    left, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray((left * lengths)[:, :_COMPONENTS])


def _trial_concordance(
    ranker: "PriorRanker", annotations: Annotations, features: FloatArray, *, weighed: bool
) -> Float:
    """Return each user's concordance on held-out labels; ``weighed``: users weigh features."""
    names = tuple(map(str, range(features.shape[1])))
    train, test = split_within_users(
        annotations._with(features=features, feature_names=names),
        test_size=_HELD_OUT,
        random_state=0,
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


def _trial(ranker: "PriorRanker", *, weighed: bool, **parameters: object) -> "PriorRanker":
    """Return a copy that is fitted roughly, without a word, to be judged by its scores.

    Unless ``weighed``, item effects are regressed on features too many for users to weigh.
    """
    quick: PriorRanker = clone(ranker).set_params(
        tol=max(ranker.tol, _TOL), callback=None, verbose=False, unknown="consensus", **parameters
    )
    quick._is_trial, quick._weighs_features = True, weighed
    return quick


def _try(
    ranker: "PriorRanker", candidates: Iterable[str], learners: Annotations, others: Annotations
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


def _sorted(annotations: Annotations) -> Annotations:
    """Return labels in the order of people and items, by which what is held out is drawn."""
    return annotations[
        np.lexsort((annotations.outcomes, annotations.item_codes, annotations.user_codes))
    ]


def _judge(
    ranker: "PriorRanker",
    loss: str,
    learners: Annotations,
    asked: Annotations,
    held_out: Annotations,
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
