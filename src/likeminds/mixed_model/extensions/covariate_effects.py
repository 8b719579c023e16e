"""Effects of users' covariates: Gamma of W_i ~ N(theta + Gamma z_i, Omega), with ridge penalties.

    J(mean, Omega, Gamma) = J of each user's labels around their own means
                            + 1/2 sum_c ridge_c |Gamma_c|^2

where Gamma_c are the columns of covariate c, in the units of the first guess. W_i are weights of
features, the intercept, and weights of item factors: the units of their rows follow those of the
factors. The gradient of J by Gamma is -L^-T sum_i first_i z_i', with the terms first_i of
`Moments.first`. Its Hessian is about (L^-T K L^-1) (x) Z'Z, with K = I - (mean posterior
covariance of z_i). Newton steps, which
are shortened until J falls, alternate with steps of the prior, given each user's Gamma z_i. The
ridges maximise the evidence (MacKay's fixed point, as for the consensus in `marginal_likelihood`):
one for each covariate, so those without an effect shrink to zero. They are estimated in the first
rounds; after that J never rises.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

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

    encoder: CovariateEncoder  # how covariates become z
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
        """Return Gamma z by category, or for a standard deviation more; all else being average."""
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
class Slopes:
    """Gamma in units of the first guess, and its ridge penalties."""

    values: Float  # (p, k): Gamma, divided by ``unit``
    ridges: Float  # (n_covariates,): the ridge penalty of each covariate


@dataclass(frozen=True)
class Regressors:
    """Each user's covariates z, and the units of Gamma."""

    per_user: ClassVar = ("z",)

    z: Float  # (n_users, k): covariates, centred
    blocks: Index  # (k,): which covariate each column belongs to
    unit: Float  # (p,): the unit of each row of Gamma
    n_covariates: int  # with columns or without

    def shifts(self, slopes: Slopes) -> MeanShifts:
        """Return each user's Gamma z."""
        return MeanShifts(self.z, slopes.values, self.unit)

    def in_units_of(self, learned: PriorFit) -> "Regressors":
        """Return the same with the units of factors that a fit ended with."""
        return self if learned.shifts is None else replace(self, unit=learned.shifts.unit)

    def penalty(self, slopes: Slopes) -> float:
        """Return the ridge penalty of Gamma."""
        return 0.5 * float((slopes.ridges[self.blocks] * slopes.values**2).sum())

    def start(self) -> Slopes:
        """Return Gamma = 0."""
        return Slopes(np.zeros((len(self.unit), self.z.shape[1])), np.ones(self.n_covariates))


@dataclass(frozen=True)
class CovariateDerivatives:
    """J and its derivatives by Gamma."""

    objective: float  # J, without the penalties
    slope: Float  # (p, k): minus the gradient of J by Gamma in its units
    information: Float  # (p, p): of a user's labels about their mean, on average, in these units


def covariate_derivatives(
    responses: Responses,
    model: PriorModel,
    warm_starts: WarmStarts,
    regressors: Regressors,
    slopes: Slopes,
) -> CovariateDerivatives:
    """Sum the derivatives at each user's mode around their own mean."""
    prior = model.prior.shifted(regressors.shifts(slopes))
    params = EStepParams(prior, model.likelihood, 1e-7)  # the tolerance of modes
    found, warm_starts.own = responses.map_reduce(
        _block_derivatives, (params, regressors), warm_starts.own
    )
    value, first, spread, item_information = found
    if isinstance(responses, ItemEffects):
        value += responses.items.cost(item_information, responses.labelled)
    inverse = prior.inverse_root * regressors.unit
    information = np.eye(len(spread)) - spread / responses.n_users
    return CovariateDerivatives(value, inverse.T @ first, inverse.T @ information @ inverse)


def _block_derivatives(
    block: ResponseBlock, state: tuple[EStepParams, Regressors], start: WarmStart | None
) -> tuple[SumTuple, WarmStart | None]:
    """Return a block's J, gradient by Gamma, posterior covariances, and information on items."""
    params, regressors = state
    mode = params.mode_of(block, start)
    first, covariance = mode.z, mode.covariance
    if not params.likelihood.is_quadratic:
        first = first - mode.system.z(mode.system.shift(covariance, mode.derivatives.curvature))
    value = float((mode.derivatives.loss + mode.penalty + covariance.log_determinant).sum())
    information = np.zeros(0)
    if isinstance(block.responses, ItemRows):
        information = block.responses.information(block.number, mode, covariance)
    by_slopes = first.T @ regressors.z[mode.data.users]
    return SumTuple(value, by_slopes, covariance.total, information), mode.warm_start


class CovariateQuadratic:
    """J as a function of Gamma to second order."""

    def __init__(
        self, derivatives: CovariateDerivatives, slopes: Slopes, regressors: Regressors
    ) -> None:
        values, self._vectors = np.linalg.eigh(derivatives.information)
        self._values = np.maximum(values, 0.0)
        self._scatter = regressors.z.T @ regressors.z
        self._blocks, self._n_users = regressors.blocks, len(regressors.z)
        self._target = derivatives.slope + derivatives.information @ slopes.values @ self._scatter

    def _whitened(self, ridges: Float) -> tuple[Float, Float, Float]:
        """Return the scaling that makes all ridges one, with eigenvectors and eigenvalues."""
        root = 1.0 / np.sqrt(ridges[self._blocks])
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
        summed = np.bincount(self._blocks, weights=numbers, minlength=n_covariates)
        return np.asarray(summed, dtype=np.float64)

    def maximise_evidence(self, ridges: Float) -> Slopes:
        """Return the best Gamma with the ridges of the greatest evidence."""
        # Steps of the fixed point at most, its tolerance, and bounds of the ridges.
        for _ in range(500):
            best, freedom = self.minimum(ridges)
            squares = self._by_covariate((best**2).sum(axis=0), len(ridges))
            new = np.clip(freedom / np.maximum(squares, 1e-300), 1e-3, 1e8)
            change = np.abs(np.log(new / ridges)).max()
            ridges = new
            if change < 1e-3:
                break
        return Slopes(self.minimum(ridges)[0], ridges)

    def posterior_covariance(self, ridges: Float) -> Float:
        """Return the covariance of Gamma z in its units, on average over users, shape (p, p)."""
        _, _, values = self._whitened(ridges)
        variance = (values / (self._values[:, None] * values + 1.0)).sum(axis=1) / self._n_users
        return np.asarray((self._vectors * variance) @ self._vectors.T)


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
    regressors = Regressors(z, encoder.blocks, unit, len(encoder.names))
    slopes = regressors.start()

    def derivatives(slopes: Slopes) -> CovariateDerivatives:
        labels, items = responses, learned.items
        if isinstance(labels, ItemEffects) and items is not None:
            labels = labels.with_items(items)
        with one_blas_thread():
            return covariate_derivatives(
                labels, learned.model, learned.warm_starts, regressors, slopes
            )

    # Rounds that estimate the ridges and the structure of the prior again.
    for _ in range(2):
        if learned.interrupted:
            break
        quadratic = CovariateQuadratic(derivatives(slopes), slopes, regressors)
        slopes = quadratic.maximise_evidence(slopes.ridges)
        learned = learn(shifts=regressors.shifts(slopes), earlier=learned, anew=True)
        regressors = regressors.in_units_of(learned)
    cost = regressors.penalty(slopes)
    trace = [value + cost for value in learned.trace]
    # Rounds with constant ridges, at most.
    for _ in range(20):
        if learned.interrupted:
            break
        slopes = _step_slopes(derivatives, regressors, slopes)
        learned = learn(shifts=regressors.shifts(slopes), earlier=learned)
        regressors = regressors.in_units_of(learned)
        before, cost = trace[-1], regressors.penalty(slopes)
        trace += [value + cost for value in learned.trace]
        if before - trace[-1] <= tol * abs(trace[-1]):
            break
    quadratic = CovariateQuadratic(derivatives(slopes), slopes, regressors)
    unit = regressors.unit
    effects = CovariateEffects(
        encoder,
        slopes.values * unit[:, None],
        slopes.ridges,
        z.T @ z / len(z),
        quadratic.posterior_covariance(slopes.ridges) * np.outer(unit, unit),
    )
    # The number of directions is that of all differences between users.
    learned = replace(learned, trace=trace, n_groups=first.n_groups, criterion=first.criterion)
    return learned, effects


def _step_slopes(
    derivatives: Callable[[Slopes], CovariateDerivatives], regressors: Regressors, slopes: Slopes
) -> Slopes:
    """Return a better Gamma with the same ridges; J does not rise."""
    found = derivatives(slopes)
    before = found.objective + regressors.penalty(slopes)
    best, _ = CovariateQuadratic(found, slopes, regressors).minimum(slopes.ridges)
    share = 1.0
    while share > SHORTEST:
        new = replace(slopes, values=slopes.values + share * (best - slopes.values))
        if derivatives(new).objective + regressors.penalty(new) <= before:
            return new
        share *= SHORTER
    return slopes
