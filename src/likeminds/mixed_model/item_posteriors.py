"""Posteriors of what items add to scores beyond their features."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.checks import listing
from likeminds.data.identifiers import encode, join_ids, lookup
from likeminds.mixed_model.numerics import LEAST_KNOWN, LONGEST_LOG_STEP

# tau has a prior of its own, a gamma distribution of shape 1 + OFF_ZERO and no scale: like that of
# the residuals in `objective`, it keeps the maximum off zero, where intervals would be too narrow.
OFF_ZERO = 1.0
# Standard errors below its mean that something is larger with a probability of 95 %.
_SURELY = 1.645
# tau^2 is never nothing.
_LEAST_VARIANCE = 1e-8


def update_tau2(variance: float, squares: Float, doubt: Float, share: float = 1.0) -> float:
    """Return tau^2 after a step of scoring, as for Omega.

    ``squares`` are what is expected of b_j^2, ``doubt`` the posterior variances of b_j.
    """
    known = 1.0 - doubt / variance
    information = float((known**2).sum()) + LEAST_KNOWN * len(doubt) + OFF_ZERO
    growth = share * (float((squares / variance - 1.0).sum()) + OFF_ZERO) / information
    growth = float(np.clip(growth, -LONGEST_LOG_STEP, LONGEST_LOG_STEP))
    return max(variance * float(np.exp(growth)), _LEAST_VARIANCE)


def refuse_new_items(ids: IdArray | None, known: IdArray) -> None:
    """Refuse rows of items that nothing describes: neither features nor labels in training."""
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
    doubt: Float
    variance: float  # tau^2: the prior variance of b_j
    factors: Float  # (m, r): f_j
    unsure: Float  # (m, r, r): T_j, the posterior covariance of f_j
    # The share of T_j that is penalised in people's weights. All of it is too much where items
    # are well known (factors that help vanish), much less too little where they are not.
    share: float = 1.0

    @classmethod
    def unknown(cls, ids: IdArray, variance: float = 0.25) -> "ItemPosteriors":
        """Return items of which nothing is known, without factors."""
        n_items = len(ids)
        doubt = np.full(n_items, variance)
        none = np.zeros((n_items, 0))
        return cls(ids, np.zeros(n_items), doubt, variance, none, np.zeros((n_items, 0, 0)))

    @property
    def n_factors(self) -> int:
        """How many features are learned: r."""
        return int(self.factors.shape[1])

    def cost(self, known: Float, labelled: Bool) -> float:
        """Return what items add to J, given the information ``known`` about b_j."""
        b = self.effects[labelled]
        total = 0.5 * float(b @ b) / self.variance
        total += 0.5 * float(np.log1p(self.variance * known[labelled]).sum())
        total -= 0.5 * OFF_ZERO * float(np.log(self.variance))
        if self.n_factors:
            f, T = self.factors[labelled], self.unsure[labelled]
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

    def at_least(self, scores: Float) -> Float:
        """Return the scores that items have with a probability of 95 %, as far as they are theirs.

        Of thousands that one or two people judged, some were lucky, and would come before what
        hundreds like.
        """
        return np.asarray(scores - _SURELY * np.sqrt(self.doubt))

    def drawn(self, v: Float, rng: Generator) -> Float:
        """Draw what items add to scores beyond f'v, shape (m, draws), given v, (r, draws)."""
        n_draws = v.shape[1]
        scores = self.effects[:, None] + np.sqrt(self.doubt)[:, None] * rng.standard_normal(
            (len(self.effects), n_draws)
        )
        if self.n_factors:
            # The variance of (f - its mean)'v, given v.
            spread = np.einsum("as,jab,bs->js", v, self.unsure, v, optimize=True)
            scores += np.sqrt(np.maximum(spread, 0.0)) * rng.standard_normal(spread.shape)
        return np.asarray(scores)

    def of(self, ids: IdArray) -> "ItemPosteriors":
        """Return these items, in this order; for those not known here, the prior."""
        where = lookup(ids, self.ids, "items")
        known, r = where >= 0, self.n_factors
        return replace(
            self,
            ids=ids,
            effects=np.where(known, self.effects[where], 0.0),
            doubt=np.where(known, self.doubt[where], self.variance),
            factors=np.where(known[:, None], self.factors[where], 0.0),
            unsure=np.where(known[:, None, None], self.unsure[where], np.eye(r)),
        )

    def take(self, rows: Index) -> "ItemPosteriors":
        """Return some of the items, by their positions, which may repeat."""
        return replace(
            self,
            ids=self.ids[rows],
            effects=self.effects[rows],
            doubt=self.doubt[rows],
            factors=self.factors[rows],
            unsure=self.unsure[rows],
        )

    def nobody_knows(self, n_items: int) -> "ItemPosteriors":
        """Return items that nobody labelled."""
        r = self.n_factors
        return replace(
            self,
            ids=np.arange(n_items),
            effects=np.zeros(n_items),
            doubt=np.full(n_items, self.variance),
            factors=np.zeros((n_items, r)),
            unsure=np.repeat(np.eye(r)[None], n_items, axis=0),
        )

    def joined(self, other: "ItemPosteriors") -> "ItemPosteriors":
        """Return these items, and others after them."""
        return replace(
            self,
            ids=join_ids(self.ids, other.ids),
            effects=np.concatenate([self.effects, other.effects]),
            doubt=np.concatenate([self.doubt, other.doubt]),
            factors=np.concatenate([self.factors, other.factors]),
            unsure=np.concatenate([self.unsure, other.unsure]),
        )
