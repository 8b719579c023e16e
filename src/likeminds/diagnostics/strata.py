"""AUC inside strata: compare only labels that were held out together.

Each fold of a user's labels is scored by another fit. If labels are random, they are in random
order inside each fold. The AUC inside folds is then unbiased, with known variance; this does not
hold between folds.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds.data.identifiers import encode_pairs
from likeminds.metrics.by_user import ratio


@dataclass(frozen=True, eq=False)
class Strata:
    """Labels with their users and strata; a stratum has labels of one user."""

    owner: Index
    stratum: Index
    positive: Bool
    n_users: int

    @property
    def counts(self) -> tuple[Float, Float]:
        """The numbers of positive and negative labels of each stratum."""
        n = int(self.stratum.max(initial=-1)) + 1
        positive = _sums(self.stratum[self.positive], None, n)
        return positive, _sums(self.stratum, None, n) - positive

    def n_pairs(self) -> Float:
        """Return each user's number of pairs of a positive and a negative in one stratum."""
        positive, negative = self.counts
        return self._by_user(positive * negative)

    def beaten(self, scores: Float) -> Float:
        """Return, for each label, how many of the other kind in its stratum score lower."""
        # This is the rank in the stratum less the rank among its kind. Ties count half.
        own_kind = 2 * self.stratum + self.positive
        return midranks(self.stratum, scores) - midranks(own_kind, scores)

    def auc(self, scores: Float) -> Float:
        """Return the share of each user's pairs in the right order; NaN without pairs."""
        right = self.beaten(scores)[self.positive]
        total = _sums(self.owner[self.positive], right, self.n_users)
        return ratio(total, self.n_pairs())

    def chance_variance(self) -> Float:
        """Return the variance of each user's AUC if labels are in random order."""
        positive, negative = self.counts
        pairs = positive * negative
        return ratio(self._by_user(pairs * (positive + negative + 1) / 12), self.n_pairs() ** 2)

    def difference_variance(self, first: Float, second: Float) -> Float:
        """Return the variance of the difference of two AUCs (DeLong and others, 1988)."""
        difference = self.beaten(first) - self.beaten(second)
        found = np.zeros(self.n_users)
        for kind in (self.positive, ~self.positive):
            owner, values = self.owner[kind], difference[kind]
            n = _sums(owner, None, self.n_users)
            mean = ratio(_sums(owner, values, self.n_users), n)
            squares = _sums(owner, (values - mean[owner]) ** 2, self.n_users)
            found += ratio(n * squares, n - 1.0)
        return ratio(found, self.n_pairs() ** 2)

    def _by_user(self, values: Float) -> Float:
        owner_of = np.zeros(len(values), dtype=np.intp)
        owner_of[self.stratum] = self.owner
        return _sums(owner_of, values, self.n_users)


def auc_interval(
    auc: Float, n_positive: Float, n_negative: Float, z: float | Float = 1.96
) -> tuple[Float, Float]:
    """Return a score interval (an inverted test) for each AUC, which also suits few labels.

    It has all values at most z standard errors away, by the variance of Hanley and McNeil (1982) at
    that value (Newcombe, 2006). So a perfect ranking of ten labels gets a wide interval.

    Examples
    --------
    >>> low, high = auc_interval(np.array([1.0, 1.0]), np.array([3, 30]), np.array([7, 70]))
    >>> low.round(2), high
    (array([0.6 , 0.95]), array([1., 1.]))
    """
    grid = np.linspace(0.0, 1.0, 1001)
    deviation = np.sqrt(auc_variance(grid, n_positive[:, None], n_negative[:, None]))
    wide = np.broadcast_to(np.asarray(z), auc.shape)[:, None] * deviation
    inside = np.abs(auc[:, None] - grid) <= wide + 5e-4
    low = grid[inside.argmax(axis=1)]
    high = grid[::-1][inside[:, ::-1].argmax(axis=1)]
    defined = np.isfinite(auc) & (n_positive > 0) & (n_negative > 0)
    return np.where(defined, low, np.nan), np.where(defined, high, np.nan)


def auc_variance(auc: Float, n_positive: Float, n_negative: Float) -> Float:
    """Return the variance of an estimated AUC whose true value is ``auc``."""
    half = 0.5 * (n_positive + n_negative) - 1.0
    spread = 1.0 + half * ((1.0 - auc) / (2.0 - auc) + auc / (1.0 + auc))
    return np.asarray(auc * (1.0 - auc) * spread / np.maximum(n_positive * n_negative, 1.0))


def midranks(codes: Index, scores: Float) -> Float:
    """Return the rank of each score within its code, from 1; ties get their mean rank."""
    tie = encode_pairs(codes, np.unique(scores, return_inverse=True)[1])
    in_tie, in_code = np.bincount(tie), np.bincount(codes)
    before, offsets = np.cumsum(in_tie) - in_tie, np.cumsum(in_code) - in_code
    return np.asarray(before[tie] - offsets[codes] + 0.5 * (in_tie[tie] + 1))


def _sums(codes: Index, values: Float | None, n: int) -> Float:
    """Return the sum (or, without values, the number) of values of each code."""
    return np.bincount(codes, values, minlength=n).astype(np.float64)
