"""Posteriors of item effects and factors, rows to be scored, and new items from a few labels."""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.random import Generator
from scipy.special import expit

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.checks import listing
from likeminds._util.per_user_arrays import damped_newton, solve
from likeminds.data.identifiers import encode, join_ids, lookup
from likeminds.mixed_model.design import Design

# tau has a gamma prior of shape 1 + OFF_ZERO and no scale. Like the prior of the residuals in
# `marginal_likelihood`, it keeps the maximum off zero, where intervals would be too narrow.
OFF_ZERO = 1.0


def refuse_new_items(ids: IdArray | None, known: IdArray) -> None:
    """Refuse items with neither features nor labels in training."""
    if ids is None:
        raise ValueError(
            "This model knows items by their ids, and these rows do not say which item they are "
            "about. Pass Annotations with items=, or items= beside the rows."
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
    # The share of T_j that is penalised in users' weights. All of it is too much where items
    # are well known (factors that help vanish), much less too little where they are not.
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
        """How many features are learned: r."""
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


@dataclass(frozen=True)
class PredictionRows:
    """Some items, one to a row."""

    # (n, p): coordinates less those of the average item, so the intercept's is zero; item factors
    # come last.
    rows: Float
    items: ItemPosteriors | None = None  # one for each row
    is_named: bool = False  # whether the items' ids are given
    # (n, d): features, if items differ beyond the coordinates.
    features: FloatArray | None = None

    @classmethod
    def of(
        cls,
        features: FloatArray,
        design: Design,
        items: ItemPosteriors | None,
        ids: IdArray | None = None,
    ) -> "PredictionRows":
        """Return rows of features in coordinates; ``ids`` say which items they are of."""
        rows = design.differences(features - design.origin)
        if items is None:
            return cls(rows, features=features if design.beyond else None)
        if ids is None:
            own, is_named = items.prior_of(len(rows)), False
        else:
            codes, distinct = encode(ids, "items")
            own, is_named = items.of(distinct).take(codes), True
        return cls(np.hstack([rows, own.factors]), own, is_named)

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, chosen: Index) -> "PredictionRows":
        """Return some of the rows."""
        own = None if self.items is None else self.items.take(chosen)
        features = None if self.features is None else self.features[chosen]
        return PredictionRows(self.rows[chosen], own, self.is_named, features)

    @property
    def effects(self) -> Float:
        """B of each row's item."""
        return np.zeros(len(self.rows)) if self.items is None else self.items.effects

    def is_known(self, items: ItemPosteriors | None) -> Bool:
        """Return which rows are of items with labels; all are where items are features alone."""
        if self.items is None or items is None:
            return np.ones(len(self.rows), dtype=np.bool_)
        if not self.is_named:
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(lookup(self.items.ids, items.ids, "items") >= 0)

    def same_as(self, other: "PredictionRows") -> Bool:
        """Return where both are known to be one item."""
        if self.items is None or other.items is None or not (self.is_named and other.is_named):
            return np.zeros(len(self.rows), dtype=np.bool_)
        return np.asarray(self.items.ids == other.items.ids, dtype=np.bool_)

    def variance(self, v: Float, covariance: Float) -> Float:
        """Return the variance of each row's b + f'v, given that of v: (n, r) and (n, r, r)."""
        if self.items is None:
            return np.zeros(len(self.rows))
        second = covariance + v[:, :, None] * v[:, None, :]
        return np.asarray(
            self.items.effect_variance
            + np.einsum("nab,nab->n", self.items.factor_covariance, second)
        )


# Minus the slope of each label's loss by its score, and its curvature, as functions of all scores.
Slopes = Callable[[Float], tuple[Float, Float]]


def label_slopes(positive: Bool, scores: Float) -> tuple[Float, Float]:
    """Return `Slopes` of labels of yes or no; scores are their log-odds."""
    chance = expit(scores)
    return positive - chance, chance * (1.0 - chance)


def choice_slopes(
    chosen: Bool, sets: Index, sign: Float, nu: float, scores: Float
) -> tuple[Float, Float]:
    """Return `Slopes` of choices, row by row; a row that is alone in its set is a label.

    ``nu`` is that of ties of pairs: see `ordinal_responses`.
    """
    signed = sign * scores
    size = np.bincount(sets)
    highest = np.where(size == 1, 0.0, -np.inf)
    np.maximum.at(highest, sets, signed)
    exponentials = np.exp(signed - highest[sets])
    total = np.bincount(sets, weights=exponentials) + (size == 1) * np.exp(-highest)
    mean = np.bincount(sets, weights=signed - highest[sets]) / 2.0
    tie = (size == 2) * nu * np.exp(mean)
    chance = (exponentials + 0.5 * tie[sets]) / (total + tie)[sets]
    # In a pair with ties, the variance of an item's wins lacks a quarter of a tie's chance.
    tied = (tie / (total + tie))[sets]
    return sign * (chosen - chance), chance * (1.0 - chance) - 0.25 * tied


def fold_in(
    unknown: ItemPosteriors,
    item: Index,
    slopes: Slopes,
    *,
    bound: float,
    weight: FloatArray,
    eta: Float,
    score_variance: Float,
    v: Float,
) -> ItemPosteriors:
    """Return the posteriors of new items, given labels with scores eta of other parts.

    ``bound`` times the curvatures of rows bounds the Hessian: 2 where rows share a choice set, as
    its Hessian is diagonally dominant.
    """
    n_items, size = len(unknown.effects), 1 + unknown.n_factors
    new = item >= 0
    item, rows = item[new], np.column_stack([np.ones(new.sum()), v[new]])
    weight, score_variance = weight[new], score_variance[new]
    prior = np.append(1.0 / unknown.variance, np.ones(unknown.n_factors))
    order = np.argsort(item, kind="stable")
    starts = np.searchsorted(item[order], np.arange(n_items))

    def at(state: Float) -> tuple[tuple[Float, Float, Float], None]:
        scores = eta.copy()
        scores[new] += np.einsum("na,na->n", rows, state[item])
        residuals, h = (part[new] for part in slopes(scores))
        h = weight * h
        left = 1.0 / (1.0 + h * score_variance)
        residuals = left * weight * residuals
        slope = np.add.reduceat((rows * residuals[:, None])[order], starts, axis=0) - state * prior
        outer = (rows[:, :, None] * rows[:, None, :]) * (left * h)[:, None, None]
        return (state, slope, np.add.reduceat(outer[order], starts, axis=0)), None

    def step_of(found: tuple[Float, Float, Float]) -> Float:
        _, slope, information = found
        return solve(bound * information + np.diag(prior), slope[:, :, None])[:, :, 0]

    # Steps longer than a few units overshoot where labels are all alike.
    start = np.zeros((n_items, size))
    state, _, information = damped_newton(start, at, step_of, longest=2.0, enough=1e-8)
    covariance: Float = np.asarray(np.linalg.inv(information + np.diag(prior)))
    return replace(
        unknown,
        effects=state[:, 0],
        effect_variance=covariance[:, 0, 0],
        factors=state[:, 1:],
        factor_covariance=np.ascontiguousarray(covariance[:, 1:, 1:]),
    )


@dataclass(frozen=True)
class Answered:
    """The residuals of labelled items: E[eta + noise | label] - eta.

    A score eta is the mean utility of an item to a user. Its label also informs about the noise,
    the user's taste for this item alone.
    """

    users: Index  # (n,): the place of the user of each label
    items: IdArray  # (n,): the item of each label
    residuals: Float  # (n,): the residual of each label

    def at(self, users: Index, items: IdArray) -> Float:
        """Return the mean residual of each pair of user and item, zero without a label."""
        item, known = encode(self.items, "items")
        codes_of_items = lookup(items, known, "items")
        n = len(known)
        labelled, code = np.unique(self.users * n + item, return_inverse=True)
        mean = np.bincount(code, self.residuals) / np.bincount(code)
        pairs = users * n + codes_of_items
        place = np.minimum(np.searchsorted(labelled, pairs), len(labelled) - 1)
        return np.where((codes_of_items >= 0) & (labelled[place] == pairs), mean[place], 0.0)
