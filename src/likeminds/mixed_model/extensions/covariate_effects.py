"""Effects of users' covariates: Gamma of W_i ~ N(theta + Gamma z_i, Omega), with ridge penalties.

    J(mean, Omega, Gamma) = J of each user's labels around their own means
                            + 1/2 sum_c ridge_c |Gamma_c|^2

where Gamma_c are the columns of covariate c, in the units of the first guess. W_i are weights of
features, the intercept, and weights of item factors: the units of their rows follow those of the
factors. The gradient of J by Gamma is -L^-T sum_i first_i z_i', with the terms first_i of
`Moments.first`. Its Hessian is about (L^-T K L^-1) (x) Z'Z, with K = I - (mean posterior covariance
of z_i). Newton steps, which are shortened until J falls, alternate with steps of the prior, given
each user's Gamma z_i. The ridges maximise the evidence (MacKay's fixed point, as for the consensus
in `marginal_likelihood`): one for each covariate, so those without an effect shrink to zero. They
are estimated in the first rounds; after that J never rises.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.map_reduce import SumTuple, one_blas_thread
from likeminds.data.covariates import CovariateEncoder, Covariates
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import ROUNDING, MeanShifts
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.laplace import EStepParams, WarmStart, WarmStarts
from likeminds.mixed_model.marginal_likelihood import PriorModel
from likeminds.mixed_model.optimisers import SHORTER, SHORTEST, PriorFit, first_guess
from likeminds.mixed_model.responses import ResponseBlock, Responses


@dataclass(frozen=True)
class CovariateEffects:
    """Estimated effects of covariates on users' weights."""

    encoder: CovariateEncoder  # the encoder of covariates as z
    slopes: Float  # (p, k): Gamma
    ridges: Float  # (n_covariates,): the ridge penalty of the columns of each covariate
    scatter: Float  # (k, k): the covariance of z over users
    # (p, p): the posterior covariance of Gamma z, on average over users.
    posterior_covariance: Float = field(metadata={"stored": "unsure"})

    @property
    def covariance(self) -> Float:
        """The covariance between users of Gamma z, shape (p, p)."""
        return np.asarray(self.slopes @ self.scatter @ self.slopes.T)

    def with_weights(self, n_weights: int) -> "CovariateEffects":
        """Prepend weights on which covariates have no effect."""
        return replace(
            self,
            slopes=np.pad(self.slopes, ((n_weights, 0), (0, 0))),
            posterior_covariance=np.pad(self.posterior_covariance, (n_weights, 0)),
        )

    def with_coordinate(self, at: int) -> "CovariateEffects":
        """Insert a coordinate on which covariates have no effect."""
        covariance = np.insert(np.insert(self.posterior_covariance, at, 0.0, 0), at, 0.0, 1)
        slopes = np.insert(self.slopes, at, 0.0, axis=0)
        return replace(self, slopes=slopes, posterior_covariance=covariance)

    def transformed(self, matrix: Float) -> "CovariateEffects":
        """Return the effects on coordinates that are linear functions of these, shape (p, p)."""
        covariance = matrix @ self.posterior_covariance @ matrix.T
        return replace(self, slopes=matrix @ self.slopes, posterior_covariance=covariance)

    def variance_reduction(self, size: int) -> Float:
        """Return K of few rows and ``size`` columns, with K'K the covariance of Gamma z."""
        values, vectors = np.linalg.eigh(self.covariance)
        positive = values > ROUNDING * values.max(initial=1e-300)
        rows = (vectors[:, positive] * np.sqrt(values[positive])).T
        return np.pad(rows, ((0, 0), (0, size - rows.shape[1])))

    def shifts(self, covariates: Covariates | None, users: IdArray) -> Float:
        """Return Gamma z of users, by their ids, shape (n_users, p)."""
        return np.asarray(self.encoder.of_users(covariates, users) @ self.slopes.T)

    def examples(self, name: str) -> list[tuple[str | None, Float]]:
        """Return Gamma z of each category, or for one standard deviation more of a number."""
        number = self.encoder.names.index(name)
        slopes = self.slopes[:, self.encoder.blocks == number]
        categories, scale = self.encoder.categories[number], self.encoder.scales[number]
        if categories is None:
            return [(None, column) for column in slopes.T]
        z = (np.eye(len(categories)) - np.array(self.encoder.centres[number])) / (scale or 1.0)
        return list(zip(categories, z @ slopes.T, strict=True))

    def covariance_by(self, name: str) -> Float:
        """Return the covariance between users of one covariate's part of Gamma z, shape (p, p)."""
        own = self.encoder.blocks == self.encoder.names.index(name)
        slopes = self.slopes[:, own]
        return np.asarray(slopes @ self.scatter[np.ix_(own, own)] @ slopes.T)

    def explained(self, covariance: Float, spread: Float) -> dict[str, float]:
        """Return each covariate's share of the variance of scores."""
        whole, size = float((spread * covariance).sum()) or 1.0, len(self.slopes)
        return {
            name: float((spread[:size, :size] * self.covariance_by(name)).sum()) / whole
            for name in self.encoder.names
        }


@dataclass(frozen=True)
class PenalisedShifts:
    """Users' shifts Gamma z, and the ridge penalties of Gamma."""

    shifts: MeanShifts
    ridges: Float  # (n_covariates,): the ridge penalty of each covariate
    blocks: Index  # (k,): the covariate of each column

    @property
    def values(self) -> Float:
        """Gamma in units of the first guess."""
        return self.shifts.values

    @property
    def penalty(self) -> float:
        """The ridge penalty of Gamma."""
        return 0.5 * float((self.ridges[self.blocks] * self.values**2).sum())

    def with_values(self, values: Float) -> "PenalisedShifts":
        """Return another Gamma."""
        return replace(self, shifts=replace(self.shifts, values=values))

    def in_units_of(self, learned: PriorFit) -> "PenalisedShifts":
        """Return the same values in the units of factors that a fit ended with."""
        if learned.shifts is None:
            return self
        return replace(self, shifts=replace(self.shifts, unit=learned.shifts.unit))


def _block_derivatives(
    block: ResponseBlock, params: EStepParams, start: WarmStart | None
) -> tuple[SumTuple, WarmStart | None]:
    """Return a block's J, gradient by Gamma, posterior covariances, and information on items."""
    mode, shifts = params.mode_of(block, start), params.prior.shifts
    assert isinstance(shifts, MeanShifts)
    first, covariance = mode.z, mode.covariance
    if not params.likelihood.is_quadratic:
        first = first - mode.system.z(mode.system.shift(covariance, mode.derivatives.curvature))
    value = float((mode.derivatives.loss + mode.penalty + covariance.log_determinant).sum())
    information = np.zeros(0)
    if isinstance(block.responses, ItemRows):
        information = block.responses.information(block.number, mode, covariance)
    by_slopes = first.T @ shifts.z[mode.data.users]
    return SumTuple(value, by_slopes, covariance.total, information), mode.warm_start


class CovariateQuadratic:
    """J as a function of Gamma to second order, by sums over users at their own means.

    ``objective`` is J without the penalties. ``slope``, (p, k), is minus its gradient by Gamma in
    its units. ``information``, (p, p), is that of a user's labels about their mean, on average.
    """

    def __init__(
        self, responses: Responses, model: PriorModel, warm_starts: WarmStarts, at: PenalisedShifts
    ) -> None:
        prior = model.prior.shifted(at.shifts)
        params = EStepParams(prior, model.likelihood, 1e-7)  # the tolerance of modes
        found, warm_starts.own = responses.map_reduce(_block_derivatives, params, warm_starts.own)
        self.objective, first, spread, item_information = found
        if isinstance(responses, ItemEffects):
            self.objective += responses.items.cost(item_information, responses.labelled)
        inverse = prior.inverse_root * at.shifts.unit
        self.slope = inverse.T @ first
        self.information = inverse.T @ (np.eye(len(spread)) - spread / responses.n_users) @ inverse
        values, self._vectors = np.linalg.eigh(self.information)
        self._values, self._at = np.maximum(values, 0.0), at
        self._scatter = at.shifts.z.T @ at.shifts.z
        self._target = self.slope + self.information @ at.values @ self._scatter

    def _whitened(self, ridges: Float) -> tuple[Float, Float, Float]:
        """Return the scaling that makes all ridges one, with eigenvectors and eigenvalues."""
        root = 1.0 / np.sqrt(ridges[self._at.blocks])
        values, vectors = np.linalg.eigh(root[:, None] * self._scatter * root)
        return root, vectors, np.maximum(values, 0.0)

    def minimum(self, ridges: Float) -> tuple[Float, Float]:
        """Return the best Gamma, and the effective degrees of freedom of each covariate."""
        root, vectors, values = self._whitened(ridges)
        variance = 1.0 / (self._values[:, None] * values + 1.0)
        rotated = self._vectors.T @ (self._target * root) @ vectors * variance
        best = (self._vectors @ rotated @ vectors.T) * root
        freedom = ((1.0 - variance).sum(axis=0) * vectors**2).sum(axis=1)
        return best, self._by_covariate(freedom, len(ridges))

    def _by_covariate(self, numbers: Float, n_covariates: int) -> Float:
        summed = np.bincount(self._at.blocks, weights=numbers, minlength=n_covariates)
        return np.asarray(summed, dtype=np.float64)

    def maximise_evidence(self) -> PenalisedShifts:
        """Return the best Gamma with the ridges of the greatest evidence."""
        ridges = self._at.ridges
        # At most 500 steps of the fixed point; ridges stay between 1e-3 and 1e8.
        for _ in range(500):
            best, freedom = self.minimum(ridges)
            squares = self._by_covariate((best**2).sum(axis=0), len(ridges))
            new = np.clip(freedom / np.maximum(squares, 1e-300), 1e-3, 1e8)
            change = np.abs(np.log(new / ridges)).max()
            ridges = new
            if change < 1e-3:
                break
        return replace(self._at, ridges=ridges).with_values(self.minimum(ridges)[0])

    def posterior_covariance(self) -> Float:
        """Return the covariance of Gamma z in its units, on average over users, shape (p, p)."""
        _, _, values = self._whitened(self._at.ridges)
        variance = (values / (self._values[:, None] * values + 1.0)).sum(axis=1)
        return np.asarray((self._vectors * (variance / len(self._at.shifts.z))) @ self._vectors.T)


def learn_with_covariates(  # noqa: PLR0917 - the data, and how to fit the prior to them
    covariates: Covariates,
    user_ids: IdArray,
    design: Design,
    responses: Responses,
    learn: Callable[..., PriorFit],
    tol: float,
) -> tuple[PriorFit, CovariateEffects | None]:
    """Fit the prior and, unless the covariates are constant, Gamma in alternation with it."""
    users = covariates.of(user_ids.tolist())
    encoder = CovariateEncoder.of(users)
    z = encoder(users)
    first = learned = learn()
    if not z.shape[1]:
        return learned, None
    n_factors = 0 if first.items is None else first.items.n_factors
    unit = np.append(first_guess(design.size, design.n_weights), first_guess(n_factors, 0))
    shifts = MeanShifts(z, np.zeros((len(unit), z.shape[1])), unit)
    at = PenalisedShifts(shifts, np.ones(len(encoder.names)), encoder.blocks)

    def quadratic(at: PenalisedShifts) -> CovariateQuadratic:
        labels, items = responses, learned.items
        if isinstance(labels, ItemEffects) and items is not None:
            labels = labels.with_items(items)
        with one_blas_thread():
            return CovariateQuadratic(labels, learned.model, learned.warm_starts, at)

    # These rounds estimate the ridges and the structure of the prior again.
    for _ in range(2):
        if learned.interrupted:
            break
        at = quadratic(at).maximise_evidence()
        learned = learn(shifts=at.shifts, earlier=learned, anew=True)
        at = at.in_units_of(learned)
    cost = at.penalty
    trace = [value + cost for value in learned.trace]
    # At most so many rounds have constant ridges.
    for _ in range(20):
        if learned.interrupted:
            break
        at = _step_slopes(quadratic, at)
        learned = learn(shifts=at.shifts, earlier=learned)
        at = at.in_units_of(learned)
        before, cost = trace[-1], at.penalty
        trace += [value + cost for value in learned.trace]
        if before - trace[-1] <= tol * abs(trace[-1]):
            break
    covariance, unit = quadratic(at).posterior_covariance(), at.shifts.unit
    effects = CovariateEffects(
        encoder, at.shifts.slopes, at.ridges, z.T @ z / len(z), covariance * np.outer(unit, unit)
    )
    # The first fit's number of directions is for all differences between users.
    learned = replace(learned, trace=trace, n_groups=first.n_groups, criterion=first.criterion)
    return learned, effects


def _step_slopes(
    quadratic: Callable[[PenalisedShifts], CovariateQuadratic], at: PenalisedShifts
) -> PenalisedShifts:
    """Return a better Gamma with the same ridges; J does not rise."""
    found = quadratic(at)
    before, (best, _) = found.objective + at.penalty, found.minimum(at.ridges)
    share = 1.0
    while share > SHORTEST:
        new = at.with_values(at.values + share * (best - at.values))
        if quadratic(new).objective + new.penalty <= before:
            return new
        share *= SHORTER
    return at
