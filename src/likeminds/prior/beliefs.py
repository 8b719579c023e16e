"""What is believed about people: their weights, and how sure that is."""

from collections import deque
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr

from likeminds._support.arrays import Float, FloatArray, IdArray, Index
from likeminds._support.checks import as_matrix, listing
from likeminds._support.stacks import solve
from likeminds._support.threads import one_blas_thread
from likeminds.data.identifiers import lookup
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crowd import Crowd
from likeminds.prior.likelihoods import Curvature, Likelihood
from likeminds.prior.posterior import Dual, Primal, over_blocks, solved, system_of
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import Tasks

# Rankings drawn from a posterior to see how far an item's rank may move.
_DRAWS = 2000
# Rows whose uncertainty is computed at a time: nobody's is copied for all rows.
_ROWS_AT_ONCE = 1 << 12


@dataclass(frozen=True, eq=False)
class Beliefs:
    """Posterior distributions of some people's weights: normal, by Laplace's approximation.

    A person's covariance is Omega - K'K with a matrix K of few rows: the prior's, less what the
    labels say about the directions they say most about.

    Attributes
    ----------
    users : array of shape (n_people,)
        Who they are.
    points : array of shape (n_people, p)
        Modes, in coordinates, with the intercept last where there is one.
    known : array of shape (n_people, m, p)
        The matrices K.
    coordinates, prior, likelihood
        What the numbers refer to; the prior with what is not known about it.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
    >>> somebody = households.of_person("household-007")
    >>> belief = ranker.newcomer(somebody.X[:8], somebody.labels[:8])
    >>> belief.coef.shape, belief.decision_function(somebody.X[8:10]).shape
    ((1, 6), (2,))
    >>> bool((belief.standard_error(somebody.X) > 0).all())
    True
    """

    users: IdArray
    points: Float
    known: FloatArray
    coordinates: Coordinates
    prior: Prior
    likelihood: Likelihood

    @classmethod
    def given(cls, crowd: Crowd, users: IdArray, points: Float, known: FloatArray) -> "Beliefs":
        """Return what is believed about people, given what the crowd is like."""
        return cls(users, points, known, crowd.coordinates, crowd.predictive, crowd.likelihood)

    @property
    def coef(self) -> Float:
        """Weights of the features, shape (n_people, n_features)."""
        return self.coordinates.weights(self.points)

    @property
    def intercept(self) -> Float:
        """What to add to a score to get the log-odds of a positive label, shape (n_people,)."""
        at_origin = self.points[:, self.coordinates.n_weights :].sum(axis=1)
        return np.asarray(at_origin - self.coef @ self.coordinates.origin)

    def decision_function(self, X: ArrayLike, users: Iterable[Hashable] | None = None) -> Float:
        """Score items, each for its person (without ``users``, for the only one there is)."""
        rows, people = self._rows(X, users)
        return np.asarray(np.einsum("nd,nd->n", rows, self.coef[people]))

    def standard_error(self, X: ArrayLike, users: Iterable[Hashable] | None = None) -> Float:
        """Return how uncertain the scores are, as seen from the average item's score."""
        rows, people = self._rows(X, users)
        return self.deviation(rows - self.coordinates.origin, people)

    def probability_above(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability that item a of each row ranks above item b."""
        return self.chance_above(*self._differences(a, b, users))

    def probability_preferred(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability that, of items a and b of each row, a gets the better label."""
        return self.chance_preferred(*self._differences(a, b, users))

    def rank_interval(
        self, items: ArrayLike, user: Hashable | None = None, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return the lowest and highest rank (1 is best) that each item may have for a person."""
        rows, people = self._rows(items, None if user is None else [user] * len(np.asarray(items)))
        return self.ranks(rows, int(people[0]), level)

    def next_items(self, items: ArrayLike, user: Hashable | None = None, n: int = 1) -> Index:
        """Return which items to ask a person about next, the most telling first."""
        rows, people = self._rows(items, None if user is None else [user] * len(np.asarray(items)))
        return self.most_telling(rows, int(people[0]), n)

    def deviation(self, differences: FloatArray, people: Index) -> Float:
        """Return standard deviations of scores of differences of items (-1: of a stranger)."""
        variance = np.empty(len(differences))
        for start in range(0, len(differences), _ROWS_AT_ONCE):
            piece = slice(start, start + _ROWS_AT_ONCE)
            rows, owner = self.coordinates.differences(differences[piece]), people[piece]
            whitened = rows @ self.prior.root
            total = np.einsum("np,np->n", whitened, whitened)
            seen = np.einsum("nmp,np->nm", self.known[owner], rows)
            less = np.einsum("nm,nm->n", seen, seen)
            variance[piece] = total - np.where(owner >= 0, less, 0.0)
        return np.sqrt(np.maximum(variance, 0.0))

    def chance_above(self, differences: FloatArray, people: Index) -> Float:
        """Return the probability that the scores of differences of items are positive."""
        deviation = self.deviation(differences, people)
        # Two equal items are certain to be tied.
        apart = np.where(deviation > 0, deviation, np.inf)
        return np.asarray(ndtr(self._apart(differences, people) / apart))

    def chance_preferred(self, differences: FloatArray, people: Index) -> Float:
        """Return the probability that the first item of each difference gets the better label."""
        if self.likelihood.is_quadratic:
            raise TypeError(
                "Scores that were learned as a regression are no log-odds, so that they say "
                'nothing about the probability of a label. Fit with loss="logistic" or "choice".'
            )
        deviation = self.deviation(differences, people)
        return label_probability(self._apart(differences, people), deviation)

    def ranks(self, items: FloatArray, person: int, level: float) -> tuple[Index, Index]:
        """Return a credible interval of each item's rank, from rankings drawn at random."""
        if not 0 < level < 1:
            raise ValueError(f"level must lie between 0 and 1, but is {level}.")
        rows = self.coordinates.differences(items - self.coordinates.origin)
        values, vectors = np.linalg.eigh(self.covariance(person))
        root = vectors * np.sqrt(np.maximum(values, 0.0))
        draws = np.random.default_rng(0).standard_normal((len(root), _DRAWS))
        scores = rows @ (self._point(person)[:, None] + root @ draws)
        place = np.empty(scores.shape, dtype=np.intp)
        np.put_along_axis(place, np.argsort(-scores, axis=0), np.arange(len(rows))[:, None], axis=0)
        outside = 0.5 * (1.0 - level)
        low = np.quantile(place, outside, axis=1, method="inverted_cdf")
        high = np.quantile(place, 1.0 - outside, axis=1, method="inverted_cdf")
        return low.astype(np.intp) + 1, high.astype(np.intp) + 1

    def most_telling(self, items: FloatArray, person: int, n: int) -> Index:
        """Choose, one after the other, the items whose labels shrink the uncertainty most.

        The uncertainty is the sum over the items of the variance of the score, as seen from
        their mean score; a label takes away what it tells about it on average (to first order).
        """
        if not 1 <= n <= len(items):
            raise ValueError(f"n must be between 1 and the number of items, but is {n}.")
        rows = self.coordinates.rows(items)
        contrasts = self.coordinates.differences(items - items.mean(axis=0))
        wanted = contrasts.T @ contrasts
        covariance, telling = self.covariance(person), self._curvature(rows, person)
        chosen: list[int] = []
        for _ in range(n):
            reached = rows @ covariance
            gain = telling * np.einsum("mp,mp->m", reached @ wanted, reached)
            gain /= 1.0 + telling * np.einsum("mp,mp->m", reached, rows)
            gain[chosen] = -np.inf
            best = int(gain.argmax())
            step, weight = reached[best], telling[best]
            covariance = covariance - np.outer(step, step) * weight / (
                1.0 + weight * float(step @ rows[best])
            )
            chosen.append(best)
        return np.array(chosen)

    def covariance(self, person: int) -> Float:
        """Return a person's covariance in coordinates, shape (p, p); -1 is a stranger."""
        if person < 0:
            return self.prior.covariance
        known = self.known[person].astype(np.float64)
        return np.asarray(self.prior.covariance - known.T @ known)

    def _apart(self, differences: FloatArray, people: Index) -> Float:
        """Return the scores of differences of items (-1: of a stranger)."""
        weights = np.vstack([self.coef, self.coordinates.weights(self.prior.mean)])
        return np.asarray(np.einsum("nd,nd->n", differences, weights[people]))

    def _differences(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None
    ) -> tuple[FloatArray, Index]:
        first, people = self._rows(a, users)
        second = as_matrix(b, "b")
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        return first - second, people

    def _point(self, person: int) -> Float:
        return self.prior.mean if person < 0 else np.asarray(self.points[person])

    def _curvature(self, rows: Float, person: int) -> Float:
        """Return how much a label of each item would tell."""
        return self.likelihood.telling(rows @ self._point(person))

    def _rows(self, X: ArrayLike, users: Iterable[Hashable] | None) -> tuple[FloatArray, Index]:
        rows = as_matrix(X, "X")
        if rows.shape[1] != len(self.coordinates.origin):
            raise ValueError(
                f"X has {rows.shape[1]} features, but there are {len(self.coordinates.origin)}."
            )
        if users is None:
            if len(self.users) > 1:
                raise ValueError(
                    f"There are {len(self.users)} people: say with users= whose scores to give."
                )
            return rows, np.zeros(len(rows), dtype=np.intp)
        people = lookup(users, self.users, "users")
        if len(people) != len(rows):
            raise ValueError(f"users has {len(people)} entries, but X has {len(rows)} rows.")
        if (people < 0).any():
            strangers = np.asarray(list(users), dtype=object)[people < 0]
            raise ValueError(f"Nothing is known about {listing(np.unique(strangers.astype(str)))}.")
        return rows, people


def label_probability(log_odds: Float, deviation: Float) -> Float:
    """Return the probability of a positive label where its log-odds are only known roughly.

    The mean of the logistic function over a normal distribution, by MacKay's approximation.

    Parameters
    ----------
    log_odds, deviation : arrays of one shape
        The mean of the log-odds, and their standard deviation.

    Examples
    --------
    >>> label_probability(np.array([2.0, 2.0]), np.array([0.0, 3.0])).round(2)
    array([0.88, 0.72])
    """
    return np.asarray(expit(log_odds / np.sqrt(1.0 + np.pi / 8.0 * np.square(deviation))))


def posterior_of(
    tasks: Tasks,
    n_people: int,
    crowd: Crowd,
    *,
    pulls: Float,
    rank: int,
    shifts: Float | None = None,
) -> tuple[Float, NDArray[np.float32]]:
    """Return everybody's mode and matrix K, of at most ``rank`` rows; see `Beliefs`.

    The mode is that of the prior; the uncertainty has what is not known about the prior, too.
    """
    prior = crowd.prior if shifts is None else replace(crowd.prior, shifts=shifts)
    predictive = prior if crowd.wider is None else crowd.wider
    size = len(prior.mean)
    points = prior.means(np.arange(n_people))
    known = np.zeros((n_people, min(rank, size), size), dtype=np.float32)

    def settle(number: int) -> None:
        # Every block has people of its own, so that threads do not meet; and nothing as large
        # as a block is left behind.
        task = tasks.task(number)
        earlier = None if task.places is None else pulls[task.places]
        mode = solved(task, prior, crowd.likelihood, earlier)
        points[task.people] = prior.means(task.people) + mode.system.z(mode.state) @ prior.root.T
        system = mode.system if predictive is prior else system_of(task, predictive)
        inner = _known(system, mode.said.curvature, known.shape[1])
        known[task.people, : inner.shape[1]] = inner @ predictive.root.T

    with one_blas_thread():
        deque(over_blocks(settle, tasks), maxlen=0)
    return points, known


def _known(system: Primal | Dual, curvature: Curvature, most: int) -> Float:
    """Return matrices K of at most so many rows, (b, m, p), with the covariance I - K'K of z."""
    if isinstance(system, Dual) and system.rows.shape[1] <= most:
        # Where there is room for all rows, a Cholesky factor does what eigenvectors would.
        factor: Float = np.asarray(np.linalg.cholesky(system.inner(curvature)), dtype=np.float64)
        return solve(factor, curvature.times_root_back(system.rows))
    directions, shrunk = system.information(curvature, most)
    return np.asarray(np.sqrt(shrunk)[:, :, None] * directions)
