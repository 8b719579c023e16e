"""Users' response styles, predicted grades, ties of pairs, and refinement of likelihoods by scores.

Pairs that may be tied follow the model of Davidson (1970):

    P(a wins) = exp(a) / Z,   P(tie) = nu exp((a + b) / 2) / Z,
    Z = exp(a) + exp(b) + nu exp((a + b) / 2)

A tie adds (a + b) / 2 + log(nu) - log(Z) to the log-likelihood: half a win of each item, and
log(nu). So pairs with ties are choices among two, and a tie is two choices with half the weight;
only Z differs from that of choices. log(nu) counts once per tie, that is, the share of ties times
per pair. Given that a pair is not tied, a wins as in the model of Bradley and Terry.
"""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq

from likeminds._util.array_types import Bool, Float, FloatArray, IdArray, Index
from likeminds._util.lazy_imports import pa
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import CollectedRows, drawn, row_dots
from likeminds._util.result_tables import ResultTable
from likeminds._util.text_format import counted
from likeminds.data.label_parsing import LabelReading
from likeminds.mixed_model.gaussian_prior import ROUNDING
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.laplace import EStepParams, WarmStart
from likeminds.mixed_model.likelihoods import (
    SAFE_EXPONENT,
    ChoiceCurvature,
    ChoiceLikelihood,
    DiagonalCurvature,
    LossDerivatives,
    Slopes,
    damping,
)
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.ordinal import CumulativeLogit, Graded, StandardNormal
from likeminds.mixed_model.responses import LabelResponses, PaddedRows, ResponseBlock, Responses

# The largest share of ties: if all pairs are tied, nu is infinite.
_MOST_TIED = 0.98
# Likelihoods are refined with about so many responses.
_MOST_RESPONSES = 20_000
# The quadrature of normal distributions.
_NODES, _WEIGHTS = np.polynomial.hermite_e.hermegauss(9)
_TINY = float(np.finfo(np.float64).tiny)


@dataclass(frozen=True)
class GradePredictions(ResultTable):
    """Distributions of grades.

    Attributes
    ----------
    grades : array of shape (n_grades,)
        The grades, from worst to best (with very many, the mean of each bin).
    probabilities : array of shape (n_rows, n_grades)
        The probability of each grade.
    expected : array of shape (n_rows,)
        The expected grade; for words, the mean of their positions from 0.
    """

    grades: IdArray
    probabilities: Float
    expected: Float

    @property
    def typical(self) -> NDArray[np.generic]:
        """The expected grade; for words, the word nearest to it."""
        if self.grades.dtype != object:
            return self.expected
        return np.asarray(self.grades[np.rint(self.expected).astype(np.intp)])

    def to_arrow(self) -> "pa.Table":
        """Return a table of pyarrow: the expected grade, and the probability of each."""
        columns = zip(self.grades.tolist(), self.probabilities.T, strict=True)
        return pa.table({"expected": self.typical} | {str(grade): p for grade, p in columns})

    def _headline(self) -> str:
        return f"Grades of {counted(len(self.expected), 'row')}"


@dataclass(frozen=True)
class ResponseStyle:
    """The response styles of users: with the same score, one gives a 5 and another a 7."""

    grading: CumulativeLogit
    reading: LabelReading  # the reading of grades, with their words if they are words

    def predict(self, eta: Float, variance: Float, users: Index) -> GradePredictions:
        """Return predicted grades (-1: of a new user), given scores and their variances."""
        grading, words = self.grading, self.reading.grades
        use, added = grading.scale_use(users)
        chances = grading.chances(eta + added, variance, use)
        levels: NDArray[np.generic] = grading.scale.levels
        if words:
            levels = np.array(words, dtype=object)[levels.astype(np.intp)]
        return GradePredictions(levels, chances, chances @ grading.scale.levels)

    def slopes(self, grades: FloatArray, users: Index) -> Slopes:
        """Return the slopes of the losses of grades as a function of their scores."""
        use, added = self.grading.scale_use(users)
        codes = self.grading.scale.codes(grades)
        return lambda scores: self.grading.slopes(scores + added, codes, use)

    def some(self, users: slice | Index) -> "ResponseStyle":
        """Return the response styles of some users."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = None if shifts is None else shifts[users]
        return replace(self, grading=replace(grading, use=grading.use[users], shifts=shifts))

    def of_unknown_users(self, n_users: int) -> "ResponseStyle":
        """Return the typical response style, for users without grades."""
        usual = replace(self.grading, use=np.ones(n_users), shifts=np.zeros(n_users))
        return replace(self, grading=usual)

    def of_newcomers(self, grades: FloatArray, users: Index, eta: Float) -> "ResponseStyle":
        """Return the response styles of new users, given their grades and scores."""
        grading, shifts = self.grading, self.grading.shifts
        shifts = np.zeros(1) if shifts is None else shifts
        usual = replace(grading.of_users(grades, users), shifts=None)
        codes = grading.scale.codes(grades)
        variance = float((shifts**2).mean())
        return replace(self, grading=usual.with_shifts(codes, users, eta, variance=variance))


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
        """Return nu for a share of ties, if scores have a variance of about one."""
        first = cls(1.0, min(float(tie_share), _MOST_TIED))
        return first.refined(np.zeros(1), np.full(1, 2.0), np.ones(1))

    def refined(self, difference: Float, variance: Float, weight: Float) -> "DavidsonLikelihood":
        """Return the nu that maximises the expected log-likelihood.

        The differences of the scores of pairs are N(difference, variance). At the maximum, the
        expected number of ties equals the observed one.
        """

        def excess(log_nu: float) -> float:
            chance = replace(self, nu=float(np.exp(log_nu))).tie_chance(difference, variance)
            return float(weight @ chance / weight.sum()) - self.tie_share

        return replace(self, nu=float(np.exp(brentq(excess, -SAFE_EXPONENT, SAFE_EXPONENT))))

    def tie_chance(self, difference: Float, variance: Float) -> Float:
        """Return the probability of a tie if scores differ by N(difference, variance)."""
        spread, found = np.sqrt(variance), np.zeros(np.shape(difference))
        for node, weight in zip(_NODES, _WEIGHTS / _WEIGHTS.sum(), strict=True):
            total = self._log_total(0.5 * (difference + node * spread))
            found += weight * np.exp(np.log(self.nu) - total)
        return found

    def at(self, eta: Float, data: PaddedRows) -> LossDerivatives:
        """Return the loss and its derivatives."""
        if data.set_size != 2:
            return super().at(eta, data)
        half = 0.5 * (eta[:, ::2] - eta[:, 1::2])
        total = self._log_total(half)
        won, lost, tie = (np.exp(part - total) for part in (half, -half, np.log(self.nu)))
        h = np.maximum(won * lost + 0.25 * tie * (1.0 - tie), _TINY)
        wins = np.stack([won + 0.5 * tie, lost + 0.5 * tie], axis=2)
        factor = h / np.maximum(wins.prod(axis=2), h)
        chance, weight = wins.reshape(eta.shape), data.weight * np.repeat(factor, 2, axis=1)
        curvature = DavidsonCurvature(chance, weight, 2, np.repeat(0.25 * tie / h, 2, axis=1))
        loss = row_dots(data.weight[:, ::2], total - half - self.tie_share * np.log(self.nu))
        return LossDerivatives(loss, data.weight * (data.response - chance), curvature)

    def each(
        self,
        eta: Float,
        response: Float,
        users: Index,  # noqa: ARG002 - scores mean the same for all users
        variance: Float | float = 0.0,
    ) -> Float:
        """Return the loss of every row, given its lead over the other item, with a variance."""
        half = 0.5 * eta / damping(variance)
        return np.asarray(self._log_total(half) - (2.0 * response - 1.0) * half)

    def response_losses(self, eta: Float, data: PaddedRows) -> Float:
        """Return the unweighted loss of each pair, in its first row."""
        losses = self.each(self.row_scores(eta, data), data.response, data.users[:, None])
        return np.where(data.response > 0, losses, 0.0)

    def expected_information(self, eta: Float) -> Float:
        """Return the information of one more comparison, by the lead over the other item."""
        total = self._log_total(0.5 * eta)
        tie = np.exp(np.log(self.nu) - total)
        return np.asarray(np.exp(-2.0 * total) + 0.25 * tie * (1.0 - tie))

    def _log_total(self, half: Float) -> Float:
        """Return log(exp(d/2) + exp(-d/2) + nu), given half the difference of two scores."""
        return np.asarray(np.logaddexp(np.logaddexp(half, -half), np.log(self.nu)))


def refine_likelihood(
    responses: Responses, learned: PriorFit, n_rows: int, shifts: Float | None = None
) -> Graded | DavidsonLikelihood:
    """Return a likelihood refined by scores that were learned with a rough one.

    ``shifts`` are the shifts of users' means: see `covariate_effects`.
    """
    likelihood = learned.model.likelihood
    assert isinstance(likelihood, Graded | DavidsonLikelihood)
    params = EStepParams(learned.model.prior.shifted(shifts), likelihood)
    if isinstance(responses, ItemEffects) and learned.items is not None:
        responses = responses.with_items(learned.items)
    work = _some_pairs
    if not isinstance(likelihood, DavidsonLikelihood):
        work = _errors if isinstance(likelihood, StandardNormal) else _some_scores
    state = (params, _MOST_RESPONSES / max(n_rows, 1))
    found: CollectedRows
    with one_blas_thread():
        found, _ = responses.map_reduce(work, state, learned.warm_starts.own)
    return likelihood.refined(*found.in_order())


def _errors(
    block: ResponseBlock, state: tuple[EStepParams, float], warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return each user's number of grades, and the sum of squared errors of their scores."""
    params, _ = state
    likelihood, data = params.likelihood, block.data
    assert isinstance(likelihood, StandardNormal)
    eta, variance = _scores_and_variances(block, params, warm_start)
    there = data.weight > 0
    expected = likelihood.standardised(data.response.astype(np.intp), data.users[:, None])
    squares = np.where(there, (expected - eta) ** 2 + variance, 0.0).sum(axis=1)
    return CollectedRows([data.users], [[there.sum(axis=1).astype(np.float64), squares]]), None


def _some_scores(
    block: ResponseBlock, state: tuple[EStepParams, float], warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return bins, response styles, scores and their variances, of some grades."""
    params, share = state
    likelihood, data = params.likelihood, block.data
    assert isinstance(likelihood, CumulativeLogit)
    eta, variance = _scores_and_variances(block, params, warm_start)
    some = _drawn(block, share) & (data.weight > 0)
    user = np.nonzero(some)[0]
    codes = data.response[some].astype(np.intp)
    numbers = [codes, likelihood.use[data.users][user], eta[some], variance[some]]
    return CollectedRows([data.users[user]], [numbers]), None


def _drawn(block: ResponseBlock, share: float) -> Bool:
    """Draw some rows of a block, by their users and the rows of the table of features."""
    labels = block.responses.labels if isinstance(block.responses, ItemRows) else block.responses
    assert isinstance(labels, LabelResponses)
    data = labels.data(block.number)
    number: Index = np.append(labels.rows.index, 0)[data.places]
    users = np.repeat(data.users, number.shape[1])
    return drawn(share, users, number.ravel()).reshape(number.shape)


def _some_pairs(
    block: ResponseBlock, state: tuple[EStepParams, float], warm_start: WarmStart | None
) -> tuple[CollectedRows, None]:
    """Return differences of scores, their variances and weights, of some pairs of a block."""
    params, share = state
    data = block.data
    eta, variance = _scores_and_variances(block, params, warm_start)
    n_users, n_pairs = data.weight[:, ::2].shape
    user = np.repeat(np.arange(n_users), n_pairs)
    some = drawn(2.0 * share, data.users[user], np.tile(np.arange(n_pairs), n_users))
    weight = data.weight[:, ::2].ravel()
    some &= weight > 0
    numbers = [eta.ravel()[some], variance.ravel()[some], weight[some]]
    return CollectedRows([data.users[user[some]]], [numbers]), None


def _scores_and_variances(
    block: ResponseBlock, params: EStepParams, warm_start: WarmStart | None
) -> tuple[Float, Float]:
    """Return each user's scores and their posterior variances; for pairs, those of differences."""
    mode = params.mode_of(block, warm_start)
    curvature, eta, variance = mode.derivatives.curvature, mode.eta, mode.covariance.variance
    known = np.maximum(curvature.diagonal, ROUNDING)
    if not isinstance(curvature, DiagonalCurvature):
        eta, known = eta[:, ::2] - eta[:, 1::2], known[:, ::2]
        variance = variance[:, ::2] + variance[:, 1::2]
    # Labels without information do not bound the variance.
    return eta, np.minimum(variance / known, 10.0)
