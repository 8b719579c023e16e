"""Pairs that may be tied: the model of Davidson (1970).

    P(a wins) = exp(a) / Z,   P(tie) = nu exp((a + b) / 2) / Z,
    Z = exp(a) + exp(b) + nu exp((a + b) / 2)

A tie adds (a + b) / 2 + log(nu) - log(Z) to the log-likelihood: half a win of each item, and
log(nu). So pairs with ties are choices among two, of which ties are two with half the weight; only
Z differs from that of choices. log(nu) counts once per tie, that is, the share of ties times per
pair. Given that a pair is not tied, a wins as in the model of Bradley and Terry.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.optimize import brentq

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import CollectedRows, drawn, row_dots
from likeminds.mixed_model.item_effects.item_responses import ItemEffects
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import (
    SAFE_EXPONENT,
    ChoiceCurvature,
    ChoiceLikelihood,
    LossDerivatives,
    damping,
)
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import PaddedRows, ResponseBlock, Responses

# The largest share of ties: where all pairs are tied, nu is infinite.
_MOST_TIED = 0.98
# nu is learned from about so many pairs.
_MOST_PAIRS = 20_000
# The quadrature of normal distributions.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class DavidsonCurvature(ChoiceCurvature):
    """H = w h (1, -1)(1, -1)' of each pair, with h = p q + t (1 - t) / 4.

    p and q are the probabilities that the items win, and t that of a tie. That is H of a choice
    with the chances p + t / 2 and q + t / 2, times a factor below one in ``weight``.
    """

    bend: Float  # (b, n): t / (4 h)

    def grad_half_logdet(self, variance: Float) -> Float:
        """Return the gradient of half the log-determinant."""
        pairs = variance.reshape(len(variance), -1, 2).sum(axis=2)
        slope = (0.5 - self.chance) * (1.0 - 0.5 * self.bend)
        return np.asarray(slope * np.repeat(pairs, 2, axis=1))


@dataclass(frozen=True)
class DavidsonLikelihood(ChoiceLikelihood):
    """log(Z) - (eta of the winner, or the mean of both), times the weight of the pair.

    Larger sets of new users are choices without ties.
    """

    nu: float
    tie_share: float  # the share of pairs that are tied

    @classmethod
    def of_share(cls, tie_share: float) -> "DavidsonLikelihood":
        """Return nu for a share of ties, where scores have a variance of about one."""
        first = cls(1.0, min(float(tie_share), _MOST_TIED))
        return first.refined(np.zeros(1), np.full(1, 2.0), np.ones(1))

    def refined(self, difference: Float, variance: Float, weight: Float) -> "DavidsonLikelihood":
        """Return the nu that maximises the expected log-likelihood.

        The differences of the scores of pairs are N(difference, variance). At the maximum, as many
        ties are expected as there are.
        """

        def excess(log_nu: float) -> float:
            chance = replace(self, nu=float(np.exp(log_nu))).tie_chance(difference, variance)
            return float(weight @ chance / weight.sum()) - self.tie_share

        return replace(self, nu=float(np.exp(brentq(excess, -SAFE_EXPONENT, SAFE_EXPONENT))))

    def tie_chance(self, difference: Float, variance: Float) -> Float:
        """Return the probability of a tie where scores differ by N(difference, variance)."""
        spread, found = np.sqrt(variance), np.zeros(np.shape(difference))
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            total = self._log_total(0.5 * (difference + node * spread))
            found += weight * np.exp(np.log(self.nu) - total)
        return found

    def at(self, eta: Float, task: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        if task.set_size != 2:
            return super().at(eta, task)
        half = 0.5 * (eta[:, ::2] - eta[:, 1::2])
        total = self._log_total(half)
        won, lost, tie = (np.exp(part - total) for part in (half, -half, np.log(self.nu)))
        h = np.maximum(won * lost + 0.25 * tie * (1.0 - tie), _TINY)
        wins = np.stack([won + 0.5 * tie, lost + 0.5 * tie], axis=2)
        factor = h / np.maximum(wins.prod(axis=2), h)
        chance, weight = wins.reshape(eta.shape), task.weight * np.repeat(factor, 2, axis=1)
        curvature = DavidsonCurvature(chance, weight, 2, np.repeat(0.25 * tie / h, 2, axis=1))
        loss = row_dots(task.weight[:, ::2], total - half - self.tie_share * np.log(self.nu))
        return LossDerivatives(loss, task.weight * (task.response - chance), curvature)

    def each(
        self,
        eta: Float,
        response: Float,
        users: Index,  # noqa: ARG002 - to all of them, scores mean the same
        variance: Float | float = 0.0,
    ) -> Float:
        """Return the loss of every row by its lead over the other, with some variance."""
        half = 0.5 * eta / damping(variance)
        return np.asarray(self._log_total(half) - (2.0 * response - 1.0) * half)

    def response_losses(self, eta: Float, task: PaddedRows) -> Float:
        """Return the unweighted loss of each pair, in its first row."""
        losses = self.each(self.row_scores(eta, task), task.response, task.users[:, None])
        return np.where(task.response > 0, losses, 0.0)

    def expected_information(self, eta: Float) -> Float:
        """Return the information of one more comparison, by the lead over the other item."""
        total = self._log_total(0.5 * eta)
        tie = np.exp(np.log(self.nu) - total)
        return np.asarray(np.exp(-2.0 * total) + 0.25 * tie * (1.0 - tie))

    def _log_total(self, half: Float) -> Float:
        """Return log(exp(d/2) + exp(-d/2) + nu), given half the difference of two scores."""
        return np.asarray(np.logaddexp(np.logaddexp(half, -half), np.log(self.nu)))


def refine_ties(
    tasks: Responses, learned: PriorFit, n_rows: int, shifts: Float | None = None
) -> DavidsonLikelihood:
    """Return the likelihood with nu for the scores that were learned with another nu."""
    likelihood = learned.model.likelihood
    assert isinstance(likelihood, DavidsonLikelihood)
    terms = EStepParams(learned.model.prior.shifted(shifts), likelihood)
    if isinstance(tasks, ItemEffects) and learned.items is not None:
        tasks = tasks.with_items(learned.items)
    found: CollectedRows
    with one_blas_thread():
        state = (terms, 2 * _MOST_PAIRS / max(n_rows, 1))
        found, _ = tasks.map_reduce(_some_pairs, state, learned.warm_starts.own)
    return likelihood.refined(*found.in_order())


def _some_pairs(
    block: ResponseBlock, state: tuple[EStepParams, float], warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return differences of scores, their variances and weights, of some pairs of a block."""
    terms, share = state
    mode = terms.mode_of(block, warm_start)
    task = mode.task
    n_users, n_pairs = task.weight[:, ::2].shape
    user = np.repeat(np.arange(n_users), n_pairs)
    some = drawn(share, task.users[user], np.tile(np.arange(n_pairs), n_users))
    weight = task.weight[:, ::2].ravel()
    some &= weight > 0
    known = np.maximum(mode.derivatives.curvature.diagonal[:, ::2].ravel(), 1e-12)
    variance = mode.covariance.variance.reshape(-1, 2).sum(axis=1) / known
    difference = (mode.eta[:, ::2] - mode.eta[:, 1::2]).ravel()
    numbers = [difference[some], np.minimum(variance[some], 10.0), weight[some]]
    return CollectedRows([task.users[user[some]]], [numbers]), None
