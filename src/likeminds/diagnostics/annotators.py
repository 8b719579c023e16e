"""Verdicts about annotators: agreeing, different, reversed, constant or random."""

import warnings
from collections.abc import Hashable, Mapping
from dataclasses import replace

import numpy as np
from scipy.special import expit, ndtr
from sklearn.base import clone

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import encode_pairs
from likeminds.data.label_parsing import count_labels
from likeminds.data.splits import folds_within_users
from likeminds.diagnostics.answer_models import (
    fit_attentive,
    p_few_runs,
    p_same_answer,
    speed_weights,
)
from likeminds.diagnostics.strata import Strata, auc_interval, auc_variance, midranks
from likeminds.diagnostics.verdicts import (
    AGREES,
    CONSTANT,
    DIFFERENT,
    RANDOM,
    REVERSED,
    UNCLEAR,
    Diagnostics,
)
from likeminds.metrics.inter_annotator_agreement import agreement
from likeminds.metrics.paired import discoveries
from likeminds.metrics.severity import are_chosen, calibrate
from likeminds.mixed_model.item_effects.item_responses import labelled_by
from likeminds.mixed_model.new_posteriors import new_item_posteriors
from likeminds.rankers.capabilities import checked_ranker, with_consensus
from likeminds.rankers.prior_ranker import PriorRanker
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.validation import user_positions

# Folds share training labels, which correlates their AUCs. For a function learned from a user's
# labels alone, the variance of the mean is up to twice that of independent folds.
_SHARED_FOLDS = 2.0
_TWO_SIDED = 1.96
# A perfect ranking must be this many standard deviations from chance for labels to be enough.
_CLEAR = 3.0
# The fewest users for fitting the distribution of attentive users.
_FEWEST_USERS = 10
# From this many users and labels on, all folds use one learned prior.
_MANY_USERS, _MANY_LABELS = 200, 20_000
# Bootstrap draws for the intervals of agreement.
_DRAWS = 200
# Parameters whose chosen value is a fitted attribute, with an underscore.
_CHOSEN = ("n_groups", "n_item_factors", "loss", "covariance")


def diagnose(
    ranker: Ranker,
    annotations: Annotations,
    *,
    n_folds: int | None = 5,
    level: float = 0.05,
    random_state: int = 0,
    seconds: Mapping[Hashable, float] | None = None,
) -> Diagnostics:
    """Find annotators who agree, differ, are reversed, constant or random.

    Held-out labels are scored twice: by the consensus, and by the user's own function fitted to the
    rest. Users whose own function predicts them better are different, however far from the
    consensus. Only unpredictable users are random.

    Parameters
    ----------
    ranker : ranker
        A fitted ranker of this library.
    annotations : Annotations
        The training labels; or, with ``n_folds=None``, other labels of the same users.
    n_folds : int or None, default=5
        The number of folds; for each, the ranker is fitted again with its parameters. With at least
        200 users and 20,000 labels, a learned prior is kept, and only posteriors are computed
        again. If None, the ranker is not refitted, and ``annotations`` must be held-out labels.
    level : float, default=0.05
        The false discovery rate (Benjamini and Hochberg) of each test: "predictable", "different",
        "random", "constant" and "reversed".
    random_state : int, default=0
        Seed of the assignment of labels to folds.
    seconds : mapping from user to float, optional
        Median response times. Fast users need less evidence for "constant": p-values are divided by
        weights (Genovese, Roeder and Wasserman, 2006).

    Returns
    -------
    Diagnostics

    Notes
    -----
    Labels are compared inside folds, or for choices inside choice sets. Grades are
    split at each user's own median, so strict and lenient users are treated alike. The test against
    chance uses the variance of the AUC of a random order. It is doubled for a user's own function,
    because folds share training labels. Random users fail this test at ``level`` without
    correction, also with the consensus reversed. They are also predicted worse than attentive
    users, whose AUCs are modelled as normal.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, diagnose, make_schools
    >>> annotations = make_schools(40, 40, 200, 6, 1, random_state=0).annotations
    >>> diagnose(ThreeLevelRanker().fit(annotations), annotations)
    <40 people: 39 agrees, 0 different, 0 reversed, 0 constant, 0 random, 1 unclear; ...>
    """
    if not 0 < level < 1:
        raise ValueError(f"level must lie between 0 and 1, but is {level}.")
    checked_ranker(ranker)
    scores = np.empty((2, len(annotations)))
    fold: Index = np.zeros(len(annotations), dtype=np.intp)
    if n_folds is None:
        scores[:] = _both_scores(ranker, annotations)
    else:
        fold = folds_within_users(annotations, n_folds, random_state)
        for k in np.unique(fold):
            train, held_out = annotations[fold != k], annotations[fold == k]
            if _is_large(ranker, annotations):
                scores[:, fold == k] = _scores_without(ranker, train, held_out)
            else:
                scores[:, fold == k] = _both_scores(_fit_again(ranker, train), held_out)
    times = np.full(annotations.n_users, np.nan)
    if seconds is not None:
        times[:] = [seconds.get(user, np.nan) for user in annotations.user_ids.tolist()]
    strata = _strata(annotations, fold)
    found = _judge(annotations, strata, scores, level, times, held_out=n_folds is None)
    shared = annotations.has_items and bool((labelled_by(annotations) > 1).any())
    if are_chosen(annotations) or not shared:
        return found
    return replace(found, agreement=agreement(annotations, n_bootstrap=_DRAWS))


def refittable(ranker: Ranker) -> Ranker:
    """Return an unfitted ranker with the parameters used, including chosen parameters."""
    used = ranker._best_model
    fresh: Ranker = clone(used).set_params(user_column=None)
    parameters = fresh.get_params()
    for name in _CHOSEN:
        if isinstance(parameters.get(name), str) and parameters[name] == "auto":
            fresh.set_params(**{name: getattr(used, f"{name}_")})
    return fresh


def _fit_again(ranker: Ranker, annotations: Annotations) -> Ranker:
    with warnings.catch_warnings():
        # Users with training labels of one kind get the consensus. The original fit already warned
        # of covariates.
        for known in (".*of one class only", "These covariates are not used"):
            warnings.filterwarnings("ignore", message=known, category=UserWarning)
        fresh = refittable(ranker)
        if isinstance(fresh, PriorRanker):
            fresh._is_trial = True  # evaluated by its scores alone
        return fresh.fit(annotations)


def _is_large(ranker: Ranker, annotations: Annotations) -> bool:
    """Return whether one fold is too small to change the learned prior."""
    prior = ranker._best_model.prior_
    is_plain = prior is not None and prior.covariate_effects is None and prior.log_normal is None
    return is_plain and annotations.n_users >= _MANY_USERS and len(annotations) >= _MANY_LABELS


def _scores_without(ranker: Ranker, train: Annotations, held_out: Annotations) -> Float:
    """Return `_both_scores` from the fitted prior and posteriors without held-out labels."""
    model = with_consensus(ranker)
    assert model.prior_ is not None
    if model.prior_.items is not None:
        posterior, users = model._posterior_of(user_positions(model, train.users))
        # Known items would keep posteriors that depend on held-out labels.
        other = replace(model.prior_.items.prior_of(1), ids=np.array([object()]))
        posterior = replace(posterior, items=other)
        model.prior_ = replace(model.prior_, items=new_item_posteriors(posterior, train, users))
    consensus = model.consensus_scores(held_out)
    own, trained = consensus.copy(), np.isin(held_out.user_codes, train.user_codes)
    some = held_out[trained]
    own[trained] = model.newcomer(train).decision_function(some, some.users)
    return np.stack([consensus, own])


def _both_scores(ranker: Ranker, annotations: Annotations) -> Float:
    """Return scores by the consensus and by each user's own function, shape (2, n_rows)."""
    own = with_consensus(ranker).decision_function(annotations)
    return np.stack([ranker.consensus_scores(annotations), own])


def _strata(annotations: Annotations, fold: Index) -> Strata:
    stratum = encode_pairs(annotations.user_codes, fold)
    if annotations.choice_set_codes is not None and are_chosen(annotations):
        stratum = annotations.choice_set_codes
    users = annotations.user_codes
    # Grades are split at the user's median: with one threshold for all, strict and lenient users
    # would have labels of one kind.
    place = midranks(users, annotations.outcomes.astype(np.float64))
    above = 2.0 * place > np.bincount(users)[users] + 1.0
    return Strata(users, stratum, above, annotations.n_users)


def _judge(
    annotations: Annotations,
    strata: Strata,
    scores: Float,
    level: float,
    seconds: Float,
    *,
    held_out: bool,
) -> Diagnostics:
    consensus, own = strata.auc(scores[0]), strata.auc(scores[1])
    chance = strata.chance_variance()
    own_chance = chance if held_out else _SHARED_FOLDS * chance
    p_consensus = _above(consensus - 0.5, chance)
    p_own = _above(own - 0.5, own_chance)
    p_better = _above(own - consensus, strata.difference_variance(scores[1], scores[0]))
    p_chance = np.minimum(2.0 * np.minimum(p_consensus, p_own), 1.0)
    labels = annotations.label_counts()
    counts = count_labels(strata.owner, strata.positive).astype(np.float64)
    # There are fewer comparisons inside strata than among all labels, so intervals are wider.
    fewer = np.sqrt(chance / auc_variance(np.full(len(own), 0.5), counts[:, 1], counts[:, 0]))
    low, high = auc_interval(own, counts[:, 1], counts[:, 0], z=_TWO_SIDED * fewer)
    p_attentive = _p_attentive(own, own_chance, counts)
    # Only users below chance are tested, so p-values are doubled.
    p_opposite = np.where(consensus < 0.5, 2.0 * _above(0.5 - consensus, chance), np.nan)
    predictable, better = discoveries(p_chance, level), discoveries(p_better, level)
    agrees = predictable & (p_consensus <= level) & ~better
    # Not corrected for multiple tests: at a level of 5 %, ten of 200 random users pass by chance.
    # Users who answer the opposite of the consensus are predictable, too.
    unpredictable = np.fmin(p_chance, p_opposite) > level
    careless = discoveries(p_attentive, level) & unpredictable
    found = [agrees, predictable & better, careless]
    verdict = np.select(found, [AGREES, DIFFERENT, RANDOM], UNCLEAR).astype("U9")
    readiness, p_constant = _thresholds(annotations, scores[0])
    constant = np.isin(verdict, (RANDOM, UNCLEAR)) & ~(p_chance <= level)
    p_constant = np.minimum(p_constant / speed_weights(seconds), 1.0)
    verdict[constant & discoveries(p_constant, level)] = CONSTANT
    # Members of another school are ranked better by their own function than by the opposite.
    variance = strata.difference_variance(scores[1], -scores[0])
    own_is_better = _above(own + consensus - 1.0, variance) <= level
    verdict[discoveries(p_opposite, level) & ~own_is_better] = REVERSED
    return Diagnostics(
        users=annotations.user_ids,
        verdict=verdict,
        consensus_auc=consensus,
        own_auc=own,
        low=low,
        high=high,
        n_labels=labels.sum(axis=1).astype(np.intp),
        positive_share=labels[:, 1] / labels.sum(axis=1),
        p_chance=p_chance,
        p_attentive=p_attentive,
        held_out=held_out,
        readiness=readiness,
        seconds=seconds,
        frames=annotations.frames,
    )


def _thresholds(annotations: Annotations, consensus: Float) -> tuple[Float, Float]:
    """Return users' log-odds of a yes less their mean, and p-values of constant answers."""
    labels, users, n = annotations.labels, annotations.user_codes, annotations.n_users
    if are_chosen(annotations) or not labels.any() or labels.all():
        return np.full(n, np.nan), np.full(n, np.nan)
    weight = np.ones(len(annotations))
    if annotations.weights is not None:
        weight[:] = annotations.weights
    factor, intercepts = calibrate(consensus, labels, users, n, weight)
    typical = expit(factor * consensus + np.median(intercepts))
    # Grades on one side of the threshold may still differ.
    _, answers = np.unique(annotations.outcomes, return_inverse=True)
    p_same = p_same_answer(labels, typical, users, n, answers)
    p_runs = p_few_runs(answers, users, n)
    return intercepts - intercepts.mean(), np.minimum(2.0 * np.fmin(p_same, p_runs), 1.0)


def _above(excess: Float, variance: Float) -> Float:
    """Return the upper tail probability of a normal excess; 1/2 if both are 0."""
    deviation = np.sqrt(variance)
    safe = np.where(deviation > 0, deviation, np.finfo(np.float64).tiny)
    return np.asarray(ndtr(-excess / safe))


def _p_attentive(auc: Float, chance: Float, counts: Float) -> Float:
    """Return the probabilities that an attentive user has so low an AUC."""
    found = np.full(len(auc), np.nan)
    clear = np.isfinite(auc) & (_CLEAR**2 * chance <= 0.25)
    if clear.sum() < _FEWEST_USERS:
        return found
    negative, positive = counts[clear].T
    typical = float(np.clip(np.median(auc[clear]), 0.5, 0.95))
    # Scale the variance of a random order inside strata to that of a typical AUC.
    expected, random = (
        auc_variance(np.full(len(positive), a), positive, negative) for a in (typical, 0.5)
    )
    noise = chance[clear] * expected / random
    attentive = fit_attentive(auc[clear], noise, chance[clear])
    found[clear] = ndtr((auc[clear] - attentive.mean) / np.sqrt(attentive.deviation**2 + noise))
    return found
