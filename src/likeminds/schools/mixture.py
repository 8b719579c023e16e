"""A Gaussian mixture of people: the number of schools, memberships, and stability.

Schools are a mixture of normal distributions with one common covariance: people differ inside
each school as they do inside any other. The number is that with the best integrated completed
likelihood (Biernacki, Celeux and Govaert, 2000): the Bayesian information criterion plus twice
the entropy of the memberships, so that schools must not only fit but stand apart. Opinions that
are spread out without a gap are one school, also where they have a long tail.
"""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from likeminds._util.array_types import Bool, Float, Index

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

# Inside a school, people differ in every direction by at least this share of the mean variance:
# without it, a direction that hardly matters could be cut into schools.
_FLOOR = 0.1
# A school that is suggested, not asked for, has at least so many members, and this share.
_FEWEST, _SMALLEST = 5, 0.05
_MOST_SCHOOLS = 8
# More people than these are represented by a sample of so many.
_MOST_PEOPLE = 5_000
_STARTS, _STEPS = 3, 200
# Between two schools: how far from a place people still count, as a share of the way from one to
# the other, and by how many standard deviations they must be fewer half way.
_WINDOW, _GAP = 1 / 6, 1.0
_RESAMPLES = 20


@dataclass(frozen=True, eq=False)
class MixturePartition:
    """People divided into schools, the largest first.

    Attributes
    ----------
    membership : array of shape (n_users, n_schools)
        How likely each person belongs to each school.
    criterion : dict
        The criterion by number of schools tried; the least is best, infinity is ruled out.
    stability : array of shape (n_schools,)
        Of each school: the mean, over resampled crowds, of the members in common with the most
        similar school found there over the members of either (Jaccard).
    agreement : float
        The mean over resampled crowds of the adjusted Rand index with the division found.
    """

    membership: Float
    criterion: dict[int, float]
    stability: Float
    agreement: float

    @property
    def labels(self) -> Index:
        """The most likely school of each person."""
        return np.asarray(self.membership.argmax(axis=1))


def divide(points: Float, n_schools: int | None, rng: Generator) -> MixturePartition:
    """Divide people into schools by where they stand; None lets the data say how many.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> camps = np.repeat([[-3.0, 0.0], [3.0, 0.0]], 50, axis=0) + rng.standard_normal((100, 2))
    >>> divide(camps, None, rng).membership.shape
    (100, 2)
    >>> divide(rng.standard_normal((100, 2)), None, rng).membership.shape
    (100, 1)
    """
    n_users, n_directions = points.shape
    if not n_directions or not points.any():
        return _all_alike(n_users)
    sample = points
    if n_users > _MOST_PEOPLE:
        sample = points[rng.choice(n_users, _MOST_PEOPLE, replace=False)]
    most = max(1, min(_MOST_SCHOOLS, len(sample) // _FEWEST))
    tried = range(1, most + 1) if n_schools is None else (n_schools,)
    floor = _FLOOR * float((sample**2).mean())
    mixtures = {k: _fit_mixture(sample, k, floor, rng) for k in tried}
    criterion = {k: _criterion(m, sample, ruled=n_schools is None) for k, m in mixtures.items()}
    best = mixtures[min(criterion, key=lambda k: criterion[k])]
    membership = best.predict_proba(points)
    order = np.argsort(-np.bincount(membership.argmax(axis=1), minlength=best.n_components))
    membership = membership[:, order]
    stability, agreement = _stability(sample, best, rng)
    return MixturePartition(membership, criterion, stability[order], agreement)


def _all_alike(n_users: int) -> MixturePartition:
    return MixturePartition(np.ones((n_users, 1)), {1: 0.0}, np.ones(1), 1.0)


def _fit_mixture(points: Float, k: int, floor: float, rng: Generator) -> "GaussianMixture":
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - who kept the schools needs none

    mixture = GaussianMixture(
        k,
        covariance_type="tied",
        reg_covar=floor,
        n_init=_STARTS,
        max_iter=_STEPS,
        random_state=int(rng.integers(1 << 31)),
    )
    with warnings.catch_warnings():
        # Fewer distinct points than schools, or slow last steps: the criterion judges both.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # Crowds are small for a matrix: threads would spend most of the time waiting.
        with threadpool_limits(1):
            return mixture.fit(points)


def _criterion(mixture: "GaussianMixture", points: Float, *, ruled: bool) -> float:
    membership = mixture.predict_proba(points)
    sizes = np.bincount(membership.argmax(axis=1), minlength=mixture.n_components)
    smallest = max(_FEWEST, _SMALLEST * len(points))
    if ruled and mixture.n_components > 1 and sizes.min() < smallest:
        return float("inf")
    if ruled and not _stand_apart(mixture, points, membership.argmax(axis=1)):
        return float("inf")
    entropy = -(membership * np.log(np.maximum(membership, 1e-300))).sum()
    return float(mixture.bic(points) + 2.0 * entropy)


def _stand_apart(mixture: "GaussianMixture", points: Float, labels: Index) -> bool:
    """Say whether there are fewer people between any two schools than in either.

    A tail of one cloud fits as a school of its own, and comes back in resampled crowds; but from
    the cloud to its tail there is no gap. People of two schools are put on the line from one mean
    to the other (in the direction that tells them apart best), and those near the middle must be
    fewer than those near either mean, by more than chance.
    """
    for a in range(mixture.n_components):
        for b in range(a):
            way = mixture.means_[b] - mixture.means_[a]
            best = np.linalg.solve(mixture.covariances_, way)
            both = points[(labels == a) | (labels == b)]
            place = (both - mixture.means_[a]) @ best / (way @ best)
            here, between, there = (
                int((np.abs(place - middle) < _WINDOW).sum()) for middle in (0.0, 0.5, 1.0)
            )
            fewer = min(here, there)
            if fewer - between <= _GAP * np.sqrt(fewer + between):
                return False
    return True


def _stability(points: Float, found: "GaussianMixture", rng: Generator) -> tuple[Float, float]:
    """Return Jaccard index by school, and adjusted Rand index, means over bootstrap samples."""
    from sklearn.metrics import adjusted_rand_score  # noqa: PLC0415 - see _fit_mixture

    k = found.n_components
    if k == 1:
        return np.ones(1), 1.0
    labels = found.predict(points)
    mine = labels == np.arange(k)[:, None]
    likeness = np.empty((_RESAMPLES, k))
    agreement = np.empty(_RESAMPLES)
    for i in range(_RESAMPLES):
        drawn = points[rng.integers(len(points), size=len(points))]
        again = _fit_mixture(drawn, k, found.reg_covar, rng).predict(points)
        likeness[i] = _jaccard(mine, again == np.arange(k)[:, None]).max(axis=1)
        agreement[i] = adjusted_rand_score(labels, again)
    return likeness.mean(axis=0), float(agreement.mean())


def _jaccard(first: Bool, second: Bool) -> Float:
    """Return the Jaccard index of all pairs of sets."""
    both = first.astype(np.float64) @ second.T.astype(np.float64)
    either = first.sum(axis=1)[:, None] + second.sum(axis=1) - both
    return np.asarray(both / np.maximum(either, 1))
