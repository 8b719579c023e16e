"""The probability that an item is chosen in its choice set, under the posterior."""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.per_user_arrays import order_by
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.likelihoods import SAFE_EXPONENT, VARIANCE_SCALES, damping
from likeminds.mixed_model.posterior import Posterior


@dataclass(frozen=True)
class SetDifferences:
    """Rows of choice sets, each with the others of its set."""

    # (n,): the positions of the two rows.
    row: Index
    other: Index
    # (n,): the mean and variance of the other's score less the row's, as the set was asked for.
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

    def chances(self, scale: Float | float, n_rows: int) -> Float:
        """Return the probability of each row, before those of a set are made to sum to one."""
        differences = self.mean / damping(scale * self.variance)
        terms = np.exp(np.minimum(differences, SAFE_EXPONENT))
        return np.asarray(1.0 / (1.0 + np.bincount(self.row, weights=terms, minlength=n_rows)))


def chances_of_sets(
    posterior: Posterior, annotations: Annotations, scores: Float, users: Index, scale: float = 1.0
) -> Float | None:
    """Return for each row the probability that it is chosen in its set; None without log-odds.

    The mean of 1 / (1 + sum of exp(score of another - its score)) over the posterior: each
    difference is divided by sqrt(1 + pi/8 its variance), after MacKay, and probabilities are made
    to sum to one. Of a pair that is `Posterior.chance_preferred`. Where the worst is chosen, scores
    are turned round.
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
    chance = differences.chances(
        np.where(in_training[differences.row] & in_training[differences.other], scale, 1.0),
        len(annotations),
    )
    total = np.bincount(annotations.choice_set_codes, weights=chance)
    return np.asarray(chance / total[annotations.choice_set_codes])


def calibrate_choices(
    posterior: Posterior, annotations: Annotations, scores: Float, users: Index
) -> float:
    """Return the scale of variances that maximises the leave-one-out likelihood of choices.

    A choice is left out by taking its information, that of a logistic regression for each
    difference, out of the posterior of the differences.
    """
    differences = SetDifferences.of(posterior, annotations, scores, users)
    chosen = annotations.chosen[differences.row]
    row, other = differences.row[chosen], differences.other[chosen]
    mean, variance = differences.mean[chosen], differences.variance[chosen]
    terms = np.bincount(
        row, weights=np.exp(np.minimum(mean, SAFE_EXPONENT)), minlength=len(annotations)
    )
    first = 1.0 / (1.0 + terms[row])
    second = first * np.exp(np.minimum(mean, SAFE_EXPONENT))
    # A choice contributes at most 90 % of the information about its difference.
    own_share = np.minimum(first * second / (first + second) * variance, 0.9)
    variance = variance / (1.0 - own_share)
    left = SetDifferences(row, other, mean + variance * second, variance)
    weights = None if annotations.weights is None else annotations.weights[annotations.chosen]
    likely = [
        np.average(np.log(left.chances(c, len(annotations))[annotations.chosen]), weights=weights)
        for c in VARIANCE_SCALES
    ]
    return float(VARIANCE_SCALES[int(np.argmax(likely))])
