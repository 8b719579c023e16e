"""Select, by held-out labels, the loss of grades, and whether users have weights of features."""

import warnings
from collections.abc import Iterable
from itertools import chain
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

# Candidate likelihoods of grades; the first is the default.
CANDIDATES = ("cumulative", "gaussian", "logistic", "median")
# Limits of the subsample: most users, most grades, enough users with any number of grades, and
# fewest users. Half of them are for training, half for testing.
_MOST_USERS, _MOST_GRADES, _ENOUGH_USERS, _FEWEST_USERS = 800, 12_000, 60, 20
_TOL = 1e-3
# The share of held-out grades of test users.
_HELD_OUT = 0.4
# Principal components that replace features in a trial of users' weights, and the most features
# that are tried as they are.
_COMPONENTS, _NARROW = 30, 100


def choose_grade_loss(ranker: "PriorRanker", data: TrainingData) -> tuple[str, dict[str, float]]:
    """Choose the likelihood of grades by held-out users; also return all scores.

    This is two-fold cross-validation over (a sample of) users, with rough fits without item
    factors. If the best candidate is not the default, both are compared again, with item factors.
    If there are fewer grades per user than features, fits have no leading directions. The score is
    the concordance of held-out grades of test users, as new users. The second fold leaves out
    candidates that are clearly worse in the first, and keeps their difference from the best. The
    default is chosen unless the 95 % interval of its difference from the best excludes zero.
    """
    n_users = len(data.counts.user_ids)
    if n_users < _FEWEST_USERS:
        return CANDIDATES[0], {}
    grades_each, halves = data.counts.n_labels / n_users, halves_of(data)
    if ranker.n_groups == "auto" and data.table.n_features > grades_each:
        ranker = clone(ranker).set_params(n_groups=0)
    plain = clone(ranker).set_params(n_item_factors=0)
    first = _try(plain, CANDIDATES, *halves)
    second = _try(plain, _not_behind(first), *halves[::-1])
    by_user = {name: np.concatenate([first[name], second[name]]) for name in second}
    scores = {name: _mean(values) for name, values in by_user.items()}
    best, default = max(scores, key=scores.__getitem__), CANDIDATES[0]
    if best != default and ranker.n_item_factors and data.is_shared:
        folds = [_try(ranker, (default, best), *order) for order in (halves, halves[::-1])]
        by_user = {name: np.concatenate([fold[name] for fold in folds]) for name in folds[0]}
    behind = {name: scores[best] + _mean(first[name] - first[best]) for name in CANDIDATES}
    if default in by_user and over_users(by_user[best] - by_user[default]).low <= 0.0:
        best = default
    return best, behind | scores


def halves_of(data: TrainingData) -> list[Annotations]:
    """Return the grades of two halves of (a sample of) users."""
    n_users = len(data.counts.user_ids)
    most = max(_MOST_GRADES * n_users / data.counts.n_labels, _ENOUGH_USERS)
    some = np.unique(np.linspace(0, n_users - 1, int(min(most, _MOST_USERS))).astype(np.intp))
    return [_for_trials(data.rows_of(some[first::2])) for first in (0, 1)]


def users_weigh_features(ranker: "PriorRanker", data: TrainingData) -> bool:
    """Return whether users' weights of features improve the prediction of held-out labels.

    Features are replaced by leading principal components, raw or (if ``ranker.standardize``)
    standardised. At most 100 features are tried as they are, too: leading components lose most of
    the signal of independent features. The alternative regresses item effects and factors on all
    features.
    """
    n_users = len(data.counts.user_ids)
    most = int(min(max(_MOST_GRADES * n_users / data.counts.n_labels, _ENOUGH_USERS), n_users))
    some = np.unique(np.linspace(0, n_users - 1, most).astype(np.intp))
    annotations = _for_trials(data.rows_of(some))
    if not are_shared(split_within_users(annotations, test_size=_HELD_OUT, random_state=0)[0]):
        return True
    centred = annotations.features - annotations.features.mean(axis=0)
    spread = centred.std(axis=0)
    scalings = [centred, centred[:, spread > 0] / spread[spread > 0]][: 1 + ranker.standardize]
    trials: Iterable[FloatArray] = (_leading(rows) for rows in scalings)
    if _COMPONENTS < annotations.n_features <= _NARROW:
        trials = chain([annotations.features], trials)
    without = _trial_scores(ranker, annotations, annotations.features, weighed=False)
    return any(
        np.nansum(_trial_scores(ranker, annotations, features, weighed=True) - without) > 0
        for features in trials
    )


def _leading(rows: Float) -> Float:
    left, lengths, _ = np.linalg.svd(rows, full_matrices=False)
    return np.asarray((left * lengths)[:, :_COMPONENTS])


def _trial_scores(
    ranker: "PriorRanker", annotations: Annotations, features: FloatArray, *, weighed: bool
) -> Float:
    """Return each user's log-likelihood of held-out labels, or the concordance if uncalibrated."""
    names = tuple(map(str, range(features.shape[1])))
    train, test = split_within_users(
        annotations._with(features=features, feature_names=names),
        test_size=_HELD_OUT,
        random_state=0,
    )
    form = "low_rank" if weighed else "none"
    with warnings.catch_warnings(action="ignore"):  # the final fit repeats these warnings
        quick = _fit_trial(ranker, train, covariance=form, loss=ranker.loss_)
        if quick.loss_ == "logistic" and test.grades is None:
            given = quick.predict_proba(test)[np.arange(len(test)), test.labels.astype(np.intp)]
            sums = np.bincount(test.user_codes, np.log(given), minlength=test.n_users)
            return np.asarray(sums, dtype=np.float64)
        scores = quick.decision_function(test)
    return concordance_by_user(test.outcomes, scores, test.users).values


def _fit_trial(ranker: "PriorRanker", train: Annotations, **parameters: object) -> "PriorRanker":
    """Return a copy with other parameters, fitted roughly."""
    quick: PriorRanker = clone(ranker).set_params(
        tol=max(ranker.tol, _TOL), callback=None, verbose=False, unknown="consensus", **parameters
    )
    quick._is_trial = True
    quick.fit(train)
    if was_interrupted(quick):
        raise KeyboardInterrupt
    return quick


def _try(
    ranker: "PriorRanker", candidates: Iterable[str], train: Annotations, test: Annotations
) -> dict[str, Float]:
    """Return the concordance of each test user, by candidate."""
    labelled, held_out = split_within_users(test, test_size=_HELD_OUT, random_state=0)
    return {name: _judge(ranker, name, train, labelled, held_out) for name in candidates}


def _judge(
    ranker: "PriorRanker",
    loss: str,
    train: Annotations,
    labelled: Annotations,
    held_out: Annotations,
) -> Float:
    """Return the concordance of each test user's held-out grades."""
    with warnings.catch_warnings(action="ignore"):  # the final fit repeats these warnings
        quick = _fit_trial(ranker, train, loss=loss)
        scores = quick.newcomer(labelled).decision_function(held_out, held_out.users)
    return concordance_by_user(held_out.outcomes, scores, held_out.users).values


def _not_behind(by_user: dict[str, Float]) -> list[str]:
    """Return the candidates whose 95 % interval of the paired difference includes the best."""
    best = max(by_user.values(), key=_mean)
    differences = {name: over_users(values - best) for name, values in by_user.items()}
    return [name for name, found in differences.items() if not found.high < 0.0]


def _mean(values: Float) -> float:
    return float(np.nanmean(values))


def _for_trials(annotations: Annotations) -> Annotations:
    """Return labels for trials, sorted by user and item."""
    # Leave out covariates, which take time and help all candidates alike.
    order = np.lexsort((annotations.outcomes, annotations.item_codes, annotations.user_codes))
    return annotations[order]._with(user_features=None)
