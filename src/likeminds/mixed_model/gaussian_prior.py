"""Gaussian random effects: users' weights, and effects and factors of items.

Users' weights are N(mean, Omega), with Omega of low rank plus a residual:

    Omega = D (I + F F') D,      D = diag(s, ..., s, v)

where s is the standard deviation of a weight's residual and v that of the intercept's. As many
columns of F as coordinates less one make Omega any matrix. ``residual`` is the diagonal of D,
``loadings`` is F. Effects of items are N(0, tau^2), their factors N(0, I).
"""

from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds.data.identifiers import encode, join_ids, lookup

# Variances and curvatures below this share of the largest are rounding errors.
ROUNDING = 1e-10
# tau has a gamma prior of shape 1 + OFF_ZERO and no scale. Like the prior of the residuals in
# `marginal_likelihood`, it keeps the maximum off zero, where intervals would be too narrow.
OFF_ZERO = 1.0


@dataclass(frozen=True)
class MeanShifts:
    """The shift of each user's mean from that of all: Gamma z."""

    per_user: ClassVar = ("z",)

    z: Float  # (n_users, k): each user's covariates
    values: Float  # (p, k): Gamma, in units
    unit: Float  # (p,): the units of its rows

    @property
    def slopes(self) -> Float:
        """Gamma, shape (p, k)."""
        return np.asarray(self.values * self.unit[:, None])

    def __getitem__(self, users: Index) -> Float:
        return np.asarray(self.z[users] @ self.slopes.T)

    def padded(self, size: int) -> "MeanShifts":
        """Return the same with so many coordinates, of which the last ones are not moved."""
        more = size - len(self.values)
        values = np.pad(self.values, ((0, more), (0, 0)))
        return replace(self, values=values, unit=np.pad(self.unit, (0, more), constant_values=1.0))

    def rescaled(self, scale: Float) -> "MeanShifts":
        """Return the shifts of other units of the last coordinates."""
        first = len(self.unit) - len(scale)
        return replace(self, unit=np.append(self.unit[:first], self.unit[first:] * scale))


@dataclass(frozen=True)
class GaussianPrior:
    """A normal distribution of users' weights.

    Examples
    --------
    >>> prior = GaussianPrior(np.zeros(2), np.array([[3.0], [0.0]]), np.array([0.5, 0.5]))
    >>> prior.covariance
    array([[2.5 , 0.  ],
           [0.  , 0.25]])
    >>> np.allclose(prior.root @ prior.root.T, prior.covariance)
    True
    """

    per_user: ClassVar = ("shifts",)

    mean: Float  # (p,): the consensus, and last the mean intercept if there is one
    loadings: Float  # (p, k): the leading directions, in units of the residual
    residual: Float  # (p,): standard deviations of the residual
    # (n_users, p): the shift of each user's mean by covariates.
    shifts: "Float | MeanShifts | None" = None
    # The variance of weights in every direction beyond the coordinates: see `Design`.
    beyond: float = 0.0

    @classmethod
    def of_covariance(cls, mean: Float, covariance: Float, beyond: float = 0.0) -> "GaussianPrior":
        """Return the prior with any covariance: a residual as small as its least eigenvalue.

        Examples
        --------
        >>> prior = GaussianPrior.of_covariance(np.zeros(2), np.array([[2.0, 1.0], [1.0, 3.0]]))
        >>> prior.covariance.round(6)
        array([[2., 1.],
               [1., 3.]])
        """
        if not len(mean):
            return cls(mean, np.zeros((0, 0)), np.zeros(0), beyond=beyond)
        values, vectors = np.linalg.eigh(covariance)
        values = np.maximum(values, ROUNDING * values[-1])
        loadings = vectors[:, :0:-1] * np.sqrt(values[:0:-1] / values[0] - 1.0)
        return cls(mean, loadings, np.full(len(mean), np.sqrt(values[0])), beyond=beyond)

    def predictive(
        self, mean_covariance: Float, n_groups: int, mean_variance_beyond: float = 0.0
    ) -> "GaussianPrior":
        """Return the prior with the uncertainty of its mean and directions.

        A user is the mean plus coordinates times leading directions. Each direction is about as
        uncertain as the mean, and the coordinates have variance one, so each adds the covariance
        of the mean once more. Beyond the coordinates, only the mean's variance is added.
        """
        covariance = self.covariance + (1 + n_groups) * mean_covariance
        return GaussianPrior.of_covariance(
            self.mean, covariance, self.beyond + mean_variance_beyond
        )

    def widened(self, more: Float) -> "GaussianPrior":
        """Return the prior with a larger covariance of the first coordinates."""
        covariance, size = self.covariance, len(more)
        covariance[:size, :size] += more
        return GaussianPrior.of_covariance(self.mean, covariance, self.beyond)

    def with_coordinate(
        self, mean: float, deviation: float, at: int | None = None
    ) -> "GaussianPrior":
        """Return the prior with one more coordinate, independent of the others; last, or ``at``."""
        at = len(self.mean) if at is None else at
        loadings = np.insert(self.loadings, at, 0.0, axis=0)
        means, residual = np.insert(self.mean, at, mean), np.insert(self.residual, at, deviation)
        return GaussianPrior(means, loadings, residual, beyond=self.beyond)

    def shifted(self, shifts: "Float | MeanShifts | None") -> "GaussianPrior":
        """Return the prior with each user's shift of the mean, in the first coordinates."""
        if shifts is None:
            return self
        if isinstance(shifts, MeanShifts):
            return replace(self, shifts=shifts.padded(len(self.mean)))
        more = len(self.mean) - shifts.shape[1]
        return replace(self, shifts=np.pad(shifts, ((0, 0), (0, more))))

    def without_correlations(self) -> "GaussianPrior":
        """Return the prior with the same variances, and coordinates that are independent."""
        deviations = np.sqrt(self.covariance.diagonal())
        return GaussianPrior(self.mean, np.zeros((len(self.mean), 0)), deviations)

    def truncated(self, rank: int, n_weights: int) -> "GaussianPrior":
        """Return the prior with only its strongest directions, and the rest averaged."""
        covariance = self.covariance
        values, vectors = np.linalg.eigh(covariance[:n_weights, :n_weights])
        values, vectors = values[::-1], vectors[:, ::-1]
        rest = float(values[rank:].mean()) if rank < n_weights else float(values[-1])
        rest = max(rest, ROUNDING * float(values[0]))
        directions = np.zeros((len(covariance), rank))
        lengths = np.sqrt(np.maximum(values[:rank] - rest, ROUNDING * values[0]))
        directions[:n_weights] = vectors[:, :rank] * lengths
        crossed = covariance[n_weights:, :n_weights] @ vectors[:, :rank]
        directions[n_weights:] = crossed / lengths
        residual = np.full(len(covariance), np.sqrt(rest))
        whole = covariance.diagonal()[n_weights:]
        own = whole - (directions[n_weights:] ** 2).sum(axis=1)
        residual[n_weights:] = np.sqrt(np.maximum(own, 0.01 * whole))
        return GaussianPrior(self.mean, directions / residual[:, None], residual)

    def means(self, users: Index) -> Float:
        """Return users' means, shape (b, p), by their positions."""
        if self.shifts is None:
            return np.repeat(self.mean[None], len(users), axis=0)
        return np.asarray(self.mean + self.shifts[users])

    @property
    def rank(self) -> int:
        """The number of leading directions."""
        return int(self.loadings.shape[1])

    @cached_property
    def _leading(self) -> tuple[Float, Float]:
        """The left singular vectors of F, and the square roots of 1 + its squared values."""
        vectors, values, _ = np.linalg.svd(self.loadings, full_matrices=False)
        return vectors, np.sqrt(1.0 + values**2)

    @property
    def covariance(self) -> Float:
        """The matrix Omega."""
        return np.asarray(self.root @ self.root.T)

    @cached_property
    def root(self) -> Float:
        """A square matrix L with L L' = Omega."""
        vectors, lengths = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (lengths - 1.0)) @ vectors.T
        return np.asarray(self.residual[:, None] * inner)

    def whitened(self, rows: Float) -> Float:
        """Return rows @ root, shape (..., p), in time proportional to the rank."""
        if 2 * self.rank > len(self.mean):
            return np.asarray(rows @ self.root)
        vectors, lengths = self._leading
        scaled = rows * self.residual
        if self.rank:
            scaled += ((scaled @ vectors) * (lengths - 1.0)) @ vectors.T
        return np.asarray(scaled)

    def whitened_columns(self, columns: Float) -> Float:
        """Return columns, shape (b, p, n), times root from the left, each in one piece."""
        # For so few coordinates, multiplying by the whole root is faster, with fewer passes over
        # rows.
        if 2 * self.rank > len(self.mean) or len(self.mean) <= 32:
            return np.asarray(self.root.T @ columns)
        rows = self.whitened(columns.transpose(0, 2, 1))
        return np.ascontiguousarray(rows.transpose(0, 2, 1))

    @cached_property
    def inverse_root(self) -> Float:
        """The inverse of ``root``."""
        vectors, lengths = self._leading
        inner = np.eye(len(self.mean)) + (vectors * (1.0 / lengths - 1.0)) @ vectors.T
        return np.asarray(inner / self.residual)

    @cached_property
    def inverse_middle(self) -> Float:
        """The matrix (I + F F')^-1/2."""
        return np.asarray(self.inverse_root * self.residual)

    @property
    def scaled_loadings(self) -> Float:
        """B = D F, shape (p, k): the leading directions, in units of the weights."""
        return np.asarray(self.loadings * self.residual[:, None])

    def directions(self, rank: int, n_weights: int) -> Float:
        """Return an orthonormal basis, shape (n_weights, rank), of the leading directions."""
        _, vectors = np.linalg.eigh(self.covariance[:n_weights, :n_weights])
        leading = vectors[:, ::-1][:, :rank]
        if not rank:
            return np.asarray(leading)
        # The sign is arbitrary: the largest weight is positive.
        largest = np.abs(leading).argmax(axis=0)
        return np.asarray(leading * np.sign(leading[largest, np.arange(rank)]))


def refuse_new_items(ids: IdArray | None, known: IdArray) -> None:
    """Refuse items with neither features nor labels in training."""
    if ids is None:
        raise ValueError(
            "This model identifies items by their ids, which these rows lack. Pass Annotations "
            "with items=, or items= with the rows."
        )
    strange = lookup(ids, known, "items") < 0
    if strange.any():
        names = np.unique(ids[strange].astype(str))
        raise ValueError(
            f"Unknown item(s): {listing(names)}. This model has no features to score new items by: "
            'leave them out, fit with features, or set unknown="consensus" (evaluate --shots 0), '
            "which scores them as average."
        )


@dataclass(frozen=True)
class ItemPosteriors:
    """Posteriors of the items' effects and factors, and their prior."""

    ids: IdArray  # (m,): the ids of the items
    # (m,): b_j, and its posterior variance.
    effects: Float
    effect_variance: Float = field(metadata={"stored": "doubt"})
    variance: float  # tau^2: the prior variance of b_j
    factors: Float  # (m, r): f_j
    # (m, r, r): T_j, the posterior covariance of f_j.
    factor_covariance: Float = field(metadata={"stored": "unsure"})
    # The share of T_j that is penalised in users' weights. With a larger share, real factors vanish
    # if items are well known; with a much smaller one, spurious factors stay if they are not.
    share: float = 1.0

    @classmethod
    def unknown(cls, ids: IdArray, variance: float = 0.25) -> "ItemPosteriors":
        """Return the prior of items, without factors."""
        n_items = len(ids)
        doubt = np.full(n_items, variance)
        none = np.zeros((n_items, 0))
        return cls(ids, np.zeros(n_items), doubt, variance, none, np.zeros((n_items, 0, 0)))

    @property
    def n_factors(self) -> int:
        """The number of learned factors: r."""
        return int(self.factors.shape[1])

    def cost(self, known: Float, labelled: Bool) -> float:
        """Return the items' part of J, given the information ``known`` about b_j."""
        b = self.effects[labelled]
        total = 0.5 * float(b @ b) / self.variance
        total += 0.5 * float(np.log1p(self.variance * known[labelled]).sum())
        total -= 0.5 * OFF_ZERO * float(np.log(self.variance))
        if self.n_factors:
            f, T = self.factors[labelled], self.factor_covariance[labelled]
            apart = np.einsum("jaa->", T) - np.linalg.slogdet(T)[1].sum() - f.size
            total += 0.5 * (float(np.vdot(f, f)) + self.share * float(apart))
        return total

    def scores(self, v: Float) -> Float:
        """Return b + f'v of each item, given the weights v of each, shape (m, r)."""
        return np.asarray(self.effects + np.einsum("ja,ja->j", self.factors, v))

    def scores_of(self, ids: IdArray, v: Float) -> Float:
        """Return b + f'v of rows about items that may repeat, or be unknown here."""
        codes, distinct = encode(ids, "items")
        return self.of(distinct).take(codes).scores(v)

    def factors_of(self, ids: IdArray) -> Float:
        """Return f of rows about items that may repeat; zero for those unknown here."""
        codes, distinct = encode(ids, "items")
        return self.of(distinct).factors[codes]

    def lower_bound(self, scores: Float) -> Float:
        """Return the lower 95 % bounds of scores, given the uncertainty of item effects.

        Otherwise items with one or two favourable labels would rank first.
        """
        return np.asarray(scores - 1.645 * np.sqrt(self.effect_variance))

    def sample_scores(self, v: Float, rng: Generator) -> Float:
        """Draw items' scores less f'v, shape (m, draws), given v, (r, draws)."""
        n_draws = v.shape[1]
        scores = self.effects[:, None] + np.sqrt(self.effect_variance)[
            :, None
        ] * rng.standard_normal((len(self.effects), n_draws))
        if self.n_factors:
            # The variance of (f - its mean)'v, given v.
            spread = np.einsum("as,jab,bs->js", v, self.factor_covariance, v, optimize=True)
            scores += np.sqrt(np.maximum(spread, 0.0)) * rng.standard_normal(spread.shape)
        return np.asarray(scores)

    def of(self, ids: IdArray) -> "ItemPosteriors":
        """Return these items, in this order; for those not known here, the prior."""
        return self._at(lookup(ids, self.ids, "items"), ids)

    def take(self, rows: Index) -> "ItemPosteriors":
        """Return some of the items, by their positions, which may repeat."""
        return self._at(rows, self.ids[rows])

    def prior_of(self, n_items: int) -> "ItemPosteriors":
        """Return the prior of items without labels."""
        return self._at(np.full(n_items, -1), np.arange(n_items))

    def _at(self, rows: Index, ids: IdArray) -> "ItemPosteriors":
        """Return the items at some positions, by other ids; the prior at -1."""
        r = self.n_factors

        def at(part: Float, prior: Float) -> Float:
            return np.asarray(np.concatenate([part, prior[None]])[rows])

        return replace(
            self,
            ids=ids,
            effects=at(self.effects, np.zeros(())),
            effect_variance=at(self.effect_variance, np.asarray(self.variance)),
            factors=at(self.factors, np.zeros(r)),
            factor_covariance=at(self.factor_covariance, np.eye(r)),
        )

    def joined(self, other: "ItemPosteriors") -> "ItemPosteriors":
        """Return these items, and others after them."""
        return replace(
            self,
            ids=join_ids(self.ids, other.ids),
            effects=np.concatenate([self.effects, other.effects]),
            effect_variance=np.concatenate([self.effect_variance, other.effect_variance]),
            factors=np.concatenate([self.factors, other.factors]),
            factor_covariance=np.concatenate([self.factor_covariance, other.factor_covariance]),
        )
