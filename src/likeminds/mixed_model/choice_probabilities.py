"""The probability that an item is chosen in its choice set, under the posterior."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import order_by
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.mixed_model.likelihoods import SAFE_EXPONENT, VARIANCE_SCALES, damping
from likeminds.mixed_model.new_posteriors import without_choices
from likeminds.mixed_model.posterior import Posterior

# The number of folds of choices for the scale of variances.
_FOLDS = 5


@dataclass(frozen=True)
class SetDifferences:
    """Rows of choice sets, each with the others of its set."""

    # (n,): the positions of the two rows.
    row: Index
    other: Index
    # (n,): the mean and variance of the other's score less the row's, negated for worst choices.
    mean: Float
    variance: Float

    @classmethod
    def of(
        cls, posterior: Posterior, annotations: Annotations, scores: Float, users: Index
    ) -> "SetDifferences":
        """Return the differences of all ordered pairs of rows in one set."""
        sets = annotations.choice_set_codes
        assert sets is not None
        if annotations.picks_worst is not None:
            scores = np.where(annotations.picks_worst, -scores, scores)
        order, offsets = order_by(sets, int(sets.max()) + 1)
        size, begin = np.diff(offsets)[sets[order]], offsets[sets[order]]
        pairs = []
        for step in range(1, int(size.max())):
            # Pair every row of a set with the one ``step`` places later, cyclically.
            place = np.flatnonzero(step < size)
            later = begin[place] + (place - begin[place] + step) % size[place]
            pairs.append((order[place], order[later]))
        row, other = (np.concatenate(part) for part in zip(*pairs, strict=True))
        targets = posterior.prediction_rows(
            annotations.X, annotations.items if annotations.has_items else None
        )
        spread = posterior.deviation(targets.take(row), users[row], less=targets.take(other))
        return cls(row, other, scores[other] - scores[row], spread**2)

    def chances(self, scale: Float | float, sets: Index) -> Float:
        """Return the probability of each row; those of a set sum to one."""
        differences = self.mean / damping(scale * self.variance)
        exponentials = np.exp(np.minimum(differences, SAFE_EXPONENT))
        chance = 1.0 / (1.0 + np.bincount(self.row, weights=exponentials, minlength=len(sets)))
        return np.asarray(chance / np.bincount(sets, weights=chance)[sets])


def chances_of_sets(
    posterior: Posterior, annotations: Annotations, scores: Float, users: Index, scale: float = 1.0
) -> Float | None:
    """Return for each row the probability that it is chosen in its set; None without log-odds.

    This is the mean of 1 / (1 + sum of exp(score of another - its score)) over the posterior. Each
    difference is divided by sqrt(1 + pi/8 its variance), after MacKay, and probabilities are scaled
    to sum to one. For a pair, it is `Posterior.chance_preferred`. If the worst is chosen, scores
    are negated.
    """
    if posterior.likelihood.is_quadratic or annotations.choice_set_codes is None:
        return None
    if np.bincount(annotations.choice_set_codes).max() < 2:
        return np.ones(len(annotations))
    differences = SetDifferences.of(posterior, annotations, scores, users)
    in_training = posterior.prediction_rows(
        annotations.X, annotations.items if annotations.has_items else None
    ).is_known(posterior.items)
    in_training &= users >= 0
    return differences.chances(
        np.where(in_training[differences.row] & in_training[differences.other], scale, 1.0),
        annotations.choice_set_codes,
    )


def calibrate_choices(
    posteriors: Callable[[Annotations], Posterior], annotations: Annotations
) -> float:
    """Return the scale of variances that maximises the likelihood of held-out choices.

    ``posteriors`` returns users' posteriors, given labels. Posteriors given the other folds, and
    items `without_choices`, predict each fold. Leaving out single choices of users by one Newton
    step is not enough: if these are nearly certain, it overstates the accuracy.
    """
    sets = annotations.choice_set_codes
    if sets is None:  # choices among all of a user's labels
        return 1.0
    _, first, size = np.unique(sets, return_index=True, return_counts=True)
    order = np.argsort(annotations.user_codes[first], kind="stable")
    fold = np.empty(len(first), dtype=np.intp)
    fold[order] = np.arange(len(first)) % _FOLDS
    fold = np.where(size > 1, fold, -1)[sets]  # single rows are labels
    if annotations.tied is not None:  # probabilities are for pairs that are not tied
        fold = np.where(annotations.tied, -1, fold)
    likely = np.zeros(len(VARIANCE_SCALES))
    for out in (fold == each for each in range(_FOLDS)):
        if not out.any() or out.all():
            continue
        posterior, test = posteriors(annotations[~out]), annotations[out]
        users = lookup(test.users, posterior.users, "users")
        known = users >= 0
        if not known.any():
            continue
        test, users = test[known], users[known]
        posterior = replace(posterior, items=without_choices(posterior, test, users))
        rows = posterior.prediction_rows(test.X, test.items if test.has_items else None)
        differences = SetDifferences.of(posterior, test, posterior.eta(rows, users), users)
        weights = 1.0 if test.weights is None else test.weights[test.chosen]
        assert test.choice_set_codes is not None
        for k, scale in enumerate(VARIANCE_SCALES):
            chances = differences.chances(scale, test.choice_set_codes)
            likely[k] += (weights * np.log(chances[test.chosen])).sum()
    # Without held-out choices of users who have others, the scale is 1.
    return float(VARIANCE_SCALES[int(np.argmax(likely))]) if likely.any() else 1.0
