"""A Gaussian mixture of users: the number of schools, memberships, stability, and their cache.

Schools are a mixture of normal distributions with one common covariance. Their number has the best
integrated completed likelihood (Biernacki, Celeux and Govaert, 2000): the Bayesian information
criterion plus twice the entropy of the memberships. So schools must be separated: a cloud of users
without a gap is one component, even with a long tail.
"""

import hashlib
import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from sklearn.exceptions import ConvergenceWarning
from threadpoolctl import threadpool_limits

from likeminds._util.array_types import Bool, Float, Index
from likeminds.rankers.capabilities import Capability
from likeminds.rankers.ranker import Ranker
from likeminds.schools.population import Population, as_ranker, items_of
from likeminds.schools.school_soft_labels import (
    SoftLabels,
    VoteMatrices,
    YesLogOdds,
    shares_of_groups,
)

if TYPE_CHECKING:
    from sklearn.mixture import GaussianMixture

# The least variance inside a school, as a share of the mean variance. Without it, weak directions
# could be cut into schools.
_FLOOR = 0.1
# The fewest members of a school, and their smallest share, if n_schools is automatic.
_FEWEST, _SMALLEST = 5, 0.05
_MOST_SCHOOLS = 8
# More users than this are represented by a sample of this size.
_MOST_USERS = 5_000
_STARTS, _STEPS = 3, 200
# The gap between two schools: the window in which users are counted, as a share of the distance of
# the means, and by how many standard deviations users must be fewer midway.
_WINDOW, _GAP = 1 / 6, 1.0
_RESAMPLES = 20
# The seed of results that are cached.
SEED = 0
AXES_SHOWN = 3
# The share of users at one end of a direction.
_END = 0.25
# Arrays of `SoftLabels` and their names in files.
_SHARES = {
    **{name: name for name in ("n_votes", "share", "error", "by_school", "error_by_school")},
    "at_ends": "ends",
    "error_at_ends": "doubt",
}

# A partition, its soft labels, and the disagreement about each item.
Found = tuple["MixturePartition", SoftLabels | None, Float]


@dataclass(frozen=True, eq=False)
class MixturePartition:
    """Users divided into schools, the largest first."""

    membership: Float  # probabilities, (n_users, n_schools)
    criterion: dict[int, float]  # by number of schools; lowest is best, inf is ruled out
    # By school: the mean over resampled users of the Jaccard index with the most similar school.
    stability: Float
    agreement: float  # the mean over resampled users of the adjusted Rand index

    @property
    def labels(self) -> Index:
        """The most likely school of each user."""
        return np.asarray(self.membership.argmax(axis=1))


def divide(points: Float, n_schools: int | None, rng: Generator) -> MixturePartition:
    """Divide users into schools by their coordinates; None chooses the number by the criterion."""
    n_users, n_directions = points.shape
    if not n_directions or not points.any():
        return MixturePartition(np.ones((n_users, 1)), {1: 0.0}, np.ones(1), 1.0)
    sample = points
    if n_users > _MOST_USERS:
        sample = points[rng.choice(n_users, _MOST_USERS, replace=False)]
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


def _fit_mixture(points: Float, k: int, floor: float, rng: Generator) -> "GaussianMixture":
    from sklearn.mixture import GaussianMixture  # noqa: PLC0415 - not needed with a cache

    mixture = GaussianMixture(
        k,
        covariance_type="tied",
        reg_covar=floor,
        n_init=_STARTS,
        max_iter=_STEPS,
        random_state=int(rng.integers(1 << 31)),
    )
    with warnings.catch_warnings():
        # Too few distinct points or slow convergence: the criterion decides.
        warnings.simplefilter("ignore", ConvergenceWarning)
        # The matrices are too small for threads.
        with threadpool_limits(1):
            return mixture.fit(points)


def _criterion(mixture: "GaussianMixture", points: Float, *, ruled: bool) -> float:
    membership = mixture.predict_proba(points)
    sizes = np.bincount(membership.argmax(axis=1), minlength=mixture.n_components)
    smallest = max(_FEWEST, _SMALLEST * len(points))
    if ruled and mixture.n_components > 1 and sizes.min() < smallest:
        return float("inf")
    if ruled and not _are_separated(mixture, points, membership.argmax(axis=1)):
        return float("inf")
    entropy = -(membership * np.log(np.maximum(membership, 1e-300))).sum()
    return float(mixture.bic(points) + 2.0 * entropy)


def _are_separated(mixture: "GaussianMixture", points: Float, labels: Index) -> bool:
    """Check that there are fewer users between any two schools than in either.

    A component may fit the tail of one cloud, and recur in resampled users, although there is no
    gap. So users of two schools are projected on their linear discriminant. Users near the middle
    must be fewer than near either mean, by more than chance.
    """
    for a in range(mixture.n_components):
        for b in range(a):
            step = mixture.means_[b] - mixture.means_[a]
            best = np.linalg.solve(mixture.covariances_, step)
            both = points[(labels == a) | (labels == b)]
            place = (both - mixture.means_[a]) @ best / (step @ best)
            at_first, between, at_second = (
                int((np.abs(place - middle) < _WINDOW).sum()) for middle in (0.0, 0.5, 1.0)
            )
            fewer = min(at_first, at_second)
            if fewer - between <= _GAP * np.sqrt(fewer + between):
                return False
    return True


def _stability(points: Float, found: "GaussianMixture", rng: Generator) -> tuple[Float, float]:
    """Return mean Jaccard indices by school, and mean adjusted Rand index, by bootstrap."""
    from sklearn.metrics import adjusted_rand_score  # noqa: PLC0415 - see _fit_mixture

    k = found.n_components
    if k == 1:
        return np.ones(1), 1.0
    labels = found.predict(points)
    members = labels == np.arange(k)[:, None]
    likeness = np.empty((_RESAMPLES, k))
    agreement = np.empty(_RESAMPLES)
    for i in range(_RESAMPLES):
        drawn = points[rng.integers(len(points), size=len(points))]
        again = _fit_mixture(drawn, k, found.reg_covar, rng).predict(points)
        likeness[i] = _jaccard(members, again == np.arange(k)[:, None]).max(axis=1)
        agreement[i] = adjusted_rand_score(labels, again)
    return likeness.mean(axis=0), float(agreement.mean())


def _jaccard(first: Bool, second: Bool) -> Float:
    """Return the Jaccard index of all pairs of sets."""
    both = first.astype(np.float64) @ second.T.astype(np.float64)
    either = first.sum(axis=1)[:, None] + second.sum(axis=1) - both
    return np.asarray(both / np.maximum(either, 1))


def _mark_of(population: Population) -> str:
    """Return a checksum of all inputs of a partition and its soft labels."""
    levels, items, annotations = population.levels, population.items, population.known_labels
    assert items is not None
    digest = hashlib.sha256()
    parts: list[Any] = [levels.consensus, levels.group, levels.personal, items.features, items.rows]
    if annotations is not None:
        parts += [annotations.user_codes, annotations.item_codes, annotations.labels]
        parts += [] if annotations.weights is None else [annotations.weights]
    for part in parts:
        array = np.ascontiguousarray(part)
        digest.update(f"{array.dtype.str} {array.shape} ".encode())
        digest.update(array.data)
    return digest.hexdigest()


def keep_schools(ranker: Ranker) -> None:
    """Cache a ranker's partition into schools and its soft labels, in the ranker.

    `find_schools` with the ranker's own items and labels then takes a fraction of the time. The
    cache is saved with the ranker's data. A cache for other weights or labels is not used. For a
    ranker without items, nothing is cached.
    """
    fitted = as_ranker(ranker)
    if not Capability.LEVELS.of(fitted) or fitted.training_annotations_ is None:
        return
    rng = np.random.default_rng(SEED)
    population = Population(ranker, items_of(ranker, None, rng))
    division, soft, disagreement = divide_population(population, None, rng)
    tried = sorted(division.criterion)
    values = np.array([division.criterion[k] for k in tried])
    finite = np.isfinite(values)
    cached: dict[str, Any] = {
        "mark": _mark_of(population),
        "membership": division.membership,
        "stability": division.stability,
        "agreement": float(division.agreement),
        # Files cannot store infinity, which marks numbers of schools that are ruled out.
        "tried": np.array(tried),
        "ruled_out": ~finite,
        "criterion": np.where(finite, values, 0.0),
        "apart": disagreement,
    }
    if soft is not None:
        cached |= {stored_as: getattr(soft, name) for name, stored_as in _SHARES.items()}
    fitted.cached_schools_ = cached


def read_cache(population: Population) -> Found | None:
    """Return a ranker's cached partition, if made from these users, items and labels."""
    cached, items = as_ranker(population.ranker).cached_schools_, population.items
    if cached is None or items is None or cached["mark"] != _mark_of(population):
        return None
    values = np.where(cached["ruled_out"], np.inf, cached["criterion"])
    criterion = dict(zip(cached["tried"].tolist(), values.tolist(), strict=True))
    rest = (cached["stability"], cached["agreement"])
    division = MixturePartition(cached["membership"], criterion, *rest)
    soft = None
    if "share" in cached:
        shares = {name: cached[stored_as] for name, stored_as in _SHARES.items()}
        soft = SoftLabels(items.ids, items.rows, **shares)
    return division, soft, cached["apart"]


def divide_population(population: Population, n_schools: int | None, rng: Generator) -> Found:
    """Partition users; compute soft labels of the schools, and disagreement about items."""
    points, items = population.coordinates[0], population.items
    division = divide(points, n_schools, rng)
    if items is None:
        return division, None, np.zeros(0)
    soft = _soft_labels(population, points, division, rng)
    return division, soft, items.disagreement(population.levels.coef, rng)


def _soft_labels(
    population: Population, points: Float, division: MixturePartition, rng: Generator
) -> SoftLabels | None:
    """Predict shares of yes; None if scores are not log-odds and no labels calibrate them."""
    items, labels = population.items, population.known_labels
    assert items is not None
    odds = YesLogOdds.of_ranker(population.ranker, items, labels)
    if odds is None:
        return None
    votes = VoteMatrices.of_annotations(labels, population.levels.users, items)
    n_users, n_schools = division.membership.shape
    all_users = np.ones((1, n_users), dtype=np.bool_)
    schools = division.labels == np.arange(n_schools)[:, None]
    axes = points[:, :AXES_SHOWN].T
    low, high = np.quantile(axes, [_END, 1.0 - _END], axis=1)[:, :, None]
    ends = np.stack([axes <= low, axes >= high], axis=1).reshape(-1, n_users)
    # A school may be empty if more were requested than exist.
    groups = np.concatenate([all_users, schools | ~schools.any(axis=1)[:, None], ends])
    share, error = shares_of_groups(odds, votes, groups, rng)
    own, shape = slice(1, 1 + n_schools), (len(axes), 2, len(items))
    return SoftLabels(
        items=items.ids,
        rows=items.rows,
        n_votes=np.asarray(votes.voted.sum(axis=0)).astype(np.intp),
        share=share[0],
        error=error[0],
        by_school=share[own],
        error_by_school=error[own],
        at_ends=share[own.stop :].reshape(shape),
        error_at_ends=error[own.stop :].reshape(shape),
    )
