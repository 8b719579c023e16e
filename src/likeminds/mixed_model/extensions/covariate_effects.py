"""Learning Gamma of W_i ~ N(theta + Gamma z_i, Omega), and its ridge penalties.

    J(mean, Omega, Gamma) = J of each user's labels around their own means
                            + 1/2 sum_c ridge_c |Gamma_c|^2

where Gamma_c are the columns of covariate c, in the units of the first guess. With first_i, what
`Moments.first` sums over users, the gradient of J by Gamma is -L^-T sum_i first_i z_i', and its
Hessian is about (L^-T K L^-1) (x) Z'Z, with K = I - (mean posterior covariance of z_i).
A step solves that; it is shortened until J falls. Steps alternate with those of the prior, which
see each user's Gamma z_i as given. The ridges make Gamma most likely (MacKay's fixed point, as
the consensus's does in `marginal_likelihood`): one for each covariate, so those without an
effect shrink to zero. They are learned in the first rounds; after that J never rises.
"""

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import ClassVar

import numpy as np

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.map_reduce import SumTuple
from likeminds._util.threads import one_blas_thread
from likeminds.data.covariates import CovariateEncoder, Covariates
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import MeanShifts
from likeminds.mixed_model.item_effects.item_responses import ItemEffects, ItemRows
from likeminds.mixed_model.laplace import EStepParams, WarmStart, WarmStarts
from likeminds.mixed_model.marginal_likelihood import PriorModel
from likeminds.mixed_model.numerics import LEAST_SHARE, SHORTER, SHORTEST
from likeminds.mixed_model.optimisers import PriorFit, first_guess
from likeminds.mixed_model.responses import ResponseBlock, Responses


@dataclass(frozen=True)
class CovariateEffects:
    """Effects of covariates on users' weights, learned from a crowd."""

    encoder: CovariateEncoder  # how covariates become z
    slopes: Float  # (p, k): Gamma
    ridges: Float  # (n_covariates,): the ridge penalty of the columns of each covariate
    scatter: Float  # (k, k): the covariance of z in the crowd
    # (p, p): the posterior covariance of Gamma z, on average over users.
    posterior_covariance: Float = field(metadata={"stored": "unsure"})

    @property
    def covariance(self) -> Float:
        """The covariance between users of Gamma z, shape (p, p)."""
        return np.asarray(self.slopes @ self.scatter @ self.slopes.T)

    def with_weights(self, n_weights: int) -> "CovariateEffects":
        """Return the same with so many weights in front, on which covariates have no effect."""
        return replace(
            self,
            slopes=np.pad(self.slopes, ((n_weights, 0), (0, 0))),
            posterior_covariance=np.pad(self.posterior_covariance, (n_weights, 0)),
        )

    def variance_reduction(self, size: int) -> Float:
        """Return a matrix K of few rows and so many columns, with K'K the covariance of Gamma z."""
        values, vectors = np.linalg.eigh(self.covariance)
        there = values > LEAST_SHARE * values.max(initial=1e-300)
        rows = (vectors[:, there] * np.sqrt(values[there])).T
        return np.pad(rows, ((0, 0), (0, size - rows.shape[1])))

    def shifts(self, covariates: Covariates | None, users: IdArray) -> Float:
        """Return Gamma z of users, by their ids, shape (n_users, p)."""
        return np.asarray(self.encoder.of_users(covariates, users) @ self.slopes.T)

    def examples(self, name: str) -> list[tuple[str | None, Float]]:
        """Return Gamma z by category, or of a standard deviation more; all else being average."""
        place = self.encoder.names.index(name)
        own = self.slopes[:, self.encoder.blocks == place]
        kinds, scale = self.encoder.categories[place], self.encoder.scales[place]
        if kinds is None:
            return [(None, column) for column in own.T]
        z = (np.eye(len(kinds)) - np.array(self.encoder.centres[place])) / (scale or 1.0)
        return list(zip(kinds, z @ own.T, strict=True))

    def covariance_by(self, name: str) -> Float:
        """Return the covariance between users of one covariate's part of Gamma z, shape (p, p)."""
        own = self.encoder.blocks == self.encoder.names.index(name)
        slopes = self.slopes[:, own]
        return np.asarray(slopes @ self.scatter[np.ix_(own, own)] @ slopes.T)


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
    # (q,): the unit of each row of Gamma: of the coordinates that go with covariates, the first
    # ones.
    unit: Float
    n_covariates: int  # how many covariates there are, with columns or without

    def shifts(self, slopes: Slopes) -> MeanShifts:
        """Return each user's Gamma z."""
        return MeanShifts(self.z, slopes.values * self.unit[:, None])

    def penalty(self, slopes: Slopes) -> float:
        """Return the ridge penalty of Gamma."""
        return 0.5 * float((slopes.ridges[self.blocks] * slopes.values**2).sum())

    def nothing(self) -> Slopes:
        """Return the start: Gamma is zero."""
        return Slopes(np.zeros((len(self.unit), self.z.shape[1])), np.ones(self.n_covariates))


@dataclass(frozen=True)
class CovariateDerivatives:
    """J and its derivatives by Gamma."""

    objective: float  # J, without the penalties
    slope: Float  # (p, k): minus the gradient of J by Gamma in its units
    # (p, p): the information of one user's labels about their mean, averaged, in units of
    # Gamma.
    known: Float


def ask(
    tasks: Responses,
    model: PriorModel,
    warm_starts: WarmStarts,
    regressors: Regressors,
    slopes: Slopes,
) -> CovariateDerivatives:
    """Find each user's mode around their own mean, and sum."""
    prior = model.prior
    # How exactly modes are found.
    terms = EStepParams(prior.shifted(regressors.shifts(slopes)), model.likelihood, 1e-7)
    found, warm_starts.own = tasks.map_reduce(_say, (terms, regressors), warm_starts.own)
    value, first, spread, known_of_items = found
    if isinstance(tasks, ItemEffects):
        value += tasks.items.cost(known_of_items, tasks.labelled)
    inverse = prior.inverse_root[:, : len(regressors.unit)] * regressors.unit
    known = np.eye(len(spread)) - spread / tasks.n_users
    return CovariateDerivatives(value, inverse.T @ first, inverse.T @ known @ inverse)


def _say(
    block: ResponseBlock, state: tuple[EStepParams, Regressors], kept: WarmStart | None
) -> tuple[SumTuple, WarmStart | None]:
    """Return a block's share of J, of its slope by Gamma, of spread, and of what items know."""
    terms, regressors = state
    mode = terms.mode_of(block, kept)
    curvature, first = mode.derivatives.curvature, mode.system.z(mode.state)
    spread = mode.covariance
    if not terms.likelihood.is_quadratic:
        first = first - mode.system.z(mode.system.shift(spread, curvature))
    value = float((mode.derivatives.loss + mode.penalty + spread.log_determinant).sum())
    known = np.zeros(0)
    if isinstance(block.tasks, ItemRows):
        known = block.tasks.information(block.number, mode, spread)
    return SumTuple(
        value, first.T @ regressors.z[mode.task.users], spread.total, known
    ), mode.warm_start


class CovariateQuadratic:
    """J as a function of Gamma to second order, around the Gamma of the last pass."""

    def __init__(
        self, derivatives: CovariateDerivatives, slopes: Slopes, regressors: Regressors
    ) -> None:
        values, self._vectors = np.linalg.eigh(derivatives.known)
        self._values = np.maximum(values, 0.0)
        self._scatter = regressors.z.T @ regressors.z
        self._blocks, self._n_users = regressors.blocks, len(regressors.z)
        self._target = derivatives.slope + derivatives.known @ slopes.values @ self._scatter

    def _turned(self, ridges: Float) -> tuple[Float, Float, Float]:
        """Return the scaling that makes all ridges one, with eigenvectors and eigenvalues."""
        root = 1.0 / np.sqrt(ridges[self._blocks])
        values, vectors = np.linalg.eigh(root[:, None] * self._scatter * root)
        return root, vectors, np.maximum(values, 0.0)

    def minimum(self, ridges: Float) -> tuple[Float, Float]:
        """Return the best Gamma, and the effective degrees of freedom of each covariate."""
        root, vectors, values = self._turned(ridges)
        doubt = 1.0 / (self._values[:, None] * values + 1.0)
        rotated = self._vectors.T @ (self._target * root) @ vectors * doubt
        best = (self._vectors @ rotated @ vectors.T) * root
        known = ((1.0 - doubt).sum(axis=0) * vectors**2).sum(axis=1)
        return best, self._by_covariate(known, len(ridges))

    def _by_covariate(self, numbers: Float, n_covariates: int) -> Float:
        summed = np.bincount(self._blocks, weights=numbers, minlength=n_covariates)
        return np.asarray(summed, dtype=np.float64)

    def settled(self, ridges: Float) -> Slopes:
        """Return the best Gamma with the ridges that make it most likely."""
        # Steps of the fixed point at most, how little it may still move, and bounds of the ridges.
        for _ in range(500):
            best, known = self.minimum(ridges)
            squares = self._by_covariate((best**2).sum(axis=0), len(ridges))
            new = np.clip(known / np.maximum(squares, 1e-300), 1e-3, 1e8)
            moved = np.abs(np.log(new / ridges)).max()
            ridges = new
            if moved < 1e-3:
                break
        return Slopes(self.minimum(ridges)[0], ridges)

    def posterior_covariance(self, ridges: Float) -> Float:
        """Return the covariance of Gamma z in its units, on average over users, shape (p, p)."""
        _, _, values = self._turned(ridges)
        doubt = (values / (self._values[:, None] * values + 1.0)).sum(axis=1) / self._n_users
        return np.asarray((self._vectors * doubt) @ self._vectors.T)


@dataclass(frozen=True)
class FittedCovariateEffects:
    """The learned prior and Gamma."""

    learned: PriorFit  # the prior; its trace goes on with the rounds in which nothing but J counts
    # (p, k) and (p, p): Gamma, and the covariance of Gamma z.
    slopes: Float
    posterior_covariance: Float
    ridges: Float  # (n_covariates,): the ridge penalty of each covariate


def learn_traits(
    tasks: Responses,
    regressors: Regressors,
    learn: Callable[..., PriorFit],
    *,
    tol: float,
) -> FittedCovariateEffects:
    """Learn the prior and Gamma in alternation."""
    slopes = regressors.nothing()
    first = learned = learn()
    # Rounds in which the ridges, and the form of the prior, are learned anew.
    for _ in range(2):
        if learned.interrupted:
            break
        slopes = _quadratic(tasks, learned, regressors, slopes).settled(slopes.ridges)
        learned = learn(shifts=regressors.shifts(slopes), earlier=learned, anew=True)
    cost = regressors.penalty(slopes)
    trace = [value + cost for value in learned.trace]
    # Rounds with the ridges as they are, at most.
    for _ in range(20):
        if learned.interrupted:
            break
        slopes = _stepped(tasks, learned, regressors, slopes)
        learned = learn(shifts=regressors.shifts(slopes), earlier=learned)
        before, cost = trace[-1], regressors.penalty(slopes)
        trace += [value + cost for value in learned.trace]
        if before - trace[-1] <= tol * abs(trace[-1]):
            break
    doubt = _quadratic(tasks, learned, regressors, slopes).posterior_covariance(slopes.ridges)
    unit = regressors.unit[:, None]
    # How many directions users differ in is asked of all their differences.
    learned = replace(learned, trace=trace, n_groups=first.n_groups, criterion=first.criterion)
    return FittedCovariateEffects(
        learned, slopes.values * unit, doubt * unit * unit.T, slopes.ridges
    )


def learn_with_covariates(  # noqa: PLR0917 - what is learned from, and how
    covariates: Covariates,
    user_ids: IdArray,
    coordinates: Design,
    tasks: Responses,
    learn: Callable[..., PriorFit],
    tol: float,
) -> tuple[PriorFit, CovariateEffects | None]:
    """Learn the prior, and Gamma unless the covariates are constant."""
    users = covariates.of(user_ids.tolist())
    encoder = CovariateEncoder.of(users)
    z = encoder(users)
    if not z.shape[1]:
        return learn(), None
    unit = first_guess(coordinates.size, coordinates.n_weights)
    regressors = Regressors(z, encoder.blocks, unit, len(encoder.names))
    found = learn_traits(tasks, regressors, learn, tol=tol)
    scatter = z.T @ z / len(z)
    return found.learned, CovariateEffects(
        encoder, found.slopes, found.ridges, scatter, found.posterior_covariance
    )


def _derivatives(
    tasks: Responses, learned: PriorFit, regressors: Regressors, slopes: Slopes
) -> CovariateDerivatives:
    if isinstance(tasks, ItemEffects) and learned.items is not None:
        tasks = tasks.with_items(learned.items)
    with one_blas_thread():
        return ask(tasks, learned.model, learned.warm_starts, regressors, slopes)


def _quadratic(
    tasks: Responses, learned: PriorFit, regressors: Regressors, slopes: Slopes
) -> CovariateQuadratic:
    return CovariateQuadratic(_derivatives(tasks, learned, regressors, slopes), slopes, regressors)


def _stepped(tasks: Responses, learned: PriorFit, regressors: Regressors, slopes: Slopes) -> Slopes:
    """Return a better Gamma with the same ridges; J does not rise."""
    derivatives = _derivatives(tasks, learned, regressors, slopes)
    before = derivatives.objective + regressors.penalty(slopes)
    best, _ = CovariateQuadratic(derivatives, slopes, regressors).minimum(slopes.ridges)
    share = 1.0
    while share > SHORTEST:
        new = replace(slopes, values=slopes.values + share * (best - slopes.values))
        value = _derivatives(tasks, learned, regressors, new).objective + regressors.penalty(new)
        if value <= before:
            return new
        share *= SHORTER
    return slopes
