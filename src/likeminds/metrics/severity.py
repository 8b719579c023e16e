"""Rater severity: how readily users say yes, as shares and as intercepts of log-odds."""

from collections.abc import Hashable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit
from scipy.stats import chi2

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup

# The significance level of the test for differences in severity.
_LEVEL = 0.01
# Labels are choices if at least this share is in choice sets with both kinds of labels.
_MOSTLY = 0.5


@dataclass(frozen=True, eq=False)
class Severity:
    """The share of positive labels of each user."""

    users: IdArray
    share: Float
    n_labels: Index

    @property
    def differs(self) -> bool:
        """Whether shares differ by more than chance (a chi-squared test)."""
        mean = float(np.average(self.share, weights=self.n_labels))
        if len(self.share) < 2 or not 0.0 < mean < 1.0:
            return False
        squares = self.n_labels * (self.share - mean) ** 2 / (mean * (1.0 - mean))
        return bool(chi2.sf(squares.sum(), len(self.share) - 1) < _LEVEL)

    @property
    def strictest(self) -> int:
        """The position of the user with the smallest share; ties go to the most labels."""
        return self._first(self.share)

    @property
    def mildest(self) -> int:
        """The position of the user with the largest share."""
        return self._first(-self.share)

    def _first(self, share: Float) -> int:
        # Users with few labels come last: their shares may be extreme by chance.
        few = self.n_labels < 0.5 * np.median(self.n_labels)
        return int(np.lexsort((-self.n_labels, share, few))[0])

    @property
    def middle(self) -> tuple[float, float]:
        """The quartiles of the shares: the middle half of users lie between them."""
        low, high = np.quantile(self.share, [0.25, 0.75])
        return float(low), float(high)

    def of_user(self, user: Hashable) -> dict[str, object] | None:
        """Return one user's share and the quartiles of all; None for unknown users."""
        place = int(lookup([user], self.users, "users")[0])
        if place < 0:
            return None
        share, labels = float(self.share[place]), int(self.n_labels[place])
        return {"share": share, "labels": labels, "middle": list(self.middle)}

    def to_dict(self) -> dict[str, object]:
        """Return the ends and the middle half as plain values, for JSON."""
        ends = {"strictest": self.strictest, "mildest": self.mildest}
        named = {
            name: {"user": self.users[i : i + 1].tolist()[0], "share": float(self.share[i])}
            for name, i in ends.items()
        }
        return {"differs": self.differs, **named, "middle": list(self.middle)}

    def __str__(self) -> str:
        if not self.differs:
            return "thresholds differ no more than by chance"
        return f"thresholds differ: {self.spread}"

    @property
    def spread(self) -> str:
        """The ends and the middle half in words."""
        low, high = (
            f"{self.share[i]:.0%} ({self.users[i]})" for i in (self.strictest, self.mildest)
        )
        half = (
            "" if len(self.share) < 8 else ", the middle half {:.0%} to {:.0%}".format(*self.middle)
        )
        return f"from yes to {low} to yes to {high}{half}"


def are_chosen(annotations: Annotations) -> bool:
    """Return whether most labels come in choice sets with both kinds, as choices do."""
    if annotations.choice_set_codes is None:
        return False
    total = np.bincount(annotations.choice_set_codes)
    positive = np.bincount(annotations.choice_set_codes, annotations.labels)
    mixed = (positive > 0) & (positive < total)
    return bool(mixed[annotations.choice_set_codes].mean() >= _MOSTLY)


def severity_of(annotations: Annotations | None) -> Severity | None:
    """Return the severity of users; None for choices and without labels. High grades are yes."""
    if annotations is None or are_chosen(annotations):
        return None
    counts = annotations.label_counts()
    n_labels = counts.sum(axis=1)
    return Severity(annotations.user_ids, counts[:, 1] / n_labels, n_labels)


# Standard deviation of users' intercepts around their mean, in log-odds.
_READINESS = 1.0
_STEPS, _LONGEST, _CLOSE = 50, 2.0, 1e-8


def calibrate(
    scores: Float, labels: Bool, users: Index, n_users: int, weight: Float
) -> tuple[float, Float]:
    """Fit the log-odds of labels: one slope of the scores, and an intercept for each user.

    Intercepts have a normal prior around their mean, with a standard deviation of 1; the slope
    is not negative.
    """
    unit = float(scores.std()) or 1.0
    z = scores / unit
    both, own = np.zeros(2), np.zeros(n_users)

    def sums(values: Float) -> Float:
        return np.asarray(np.bincount(users, weights=values, minlength=n_users), dtype=np.float64)

    for _ in range(_STEPS):
        p = expit(both[0] * z + both[1] + own[users])
        slope, curvature = weight * (labels - p), weight * p * (1.0 - p)
        # Users' intercepts are eliminated from Newton's step (Schur complement).
        inner = sums(curvature) + 1.0 / _READINESS**2
        gradient = sums(slope) - own / _READINESS**2
        crossed = np.stack([sums(curvature * z), sums(curvature)])
        matrix = np.array([[curvature @ z**2, curvature @ z], [curvature @ z, curvature.sum()]])
        matrix = matrix - (crossed / inner) @ crossed.T + 1e-9 * np.eye(2) * (1.0 + curvature.sum())
        right = np.array([slope @ z, slope.sum()]) - crossed @ (gradient / inner)
        step = np.linalg.solve(matrix, right)
        step_own = (gradient - step @ crossed) / inner
        largest = float(np.abs(np.concatenate([step, step_own])).max())
        # The quadratic approximation of the loss does not hold for longer steps.
        damp = min(1.0, _LONGEST / max(largest, _CLOSE))
        both, own = both + damp * step, own + damp * step_own
        if largest < _CLOSE:
            break
    return max(float(both[0]), 0.0) / unit, both[1] + own
