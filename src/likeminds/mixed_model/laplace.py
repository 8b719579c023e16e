"""Laplace's approximation: modes of users' posteriors by Newton's method, and their moments."""

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Own
from likeminds._util.per_user_arrays import EXACT, NEWTON_STEPS, CollectedRows, damped_step
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood, LossDerivatives
from likeminds.mixed_model.primal_dual import Dual, PosteriorCovariance, Primal, system_of
from likeminds.mixed_model.responses import PaddedRows, ResponseBlock, Responses, of_each_user

T = TypeVar("T")


@dataclass(frozen=True)
class WarmStart:
    """The modes of a block under an earlier prior, from which the next search starts."""

    residuals: Float  # (b, n): at the mode; with little information, they hardly change
    # (b, p): the modes of users with more rows than coordinates; with much information, they
    # hardly change.
    points: Float | None = None


@dataclass(frozen=True)
class PosteriorMode:
    """The current states of the Newton iterations of a block's users, or their modes."""

    data: PaddedRows
    system: Primal | Dual
    state: Float
    eta: Float  # (b, n): scores at the state
    derivatives: LossDerivatives  # of the labels' loss by eta
    penalty: Float  # (b,): minus the log-density of the prior, up to a constant
    prior: GaussianPrior | None = None
    matrices: Float | None = None  # `system.matrices` at the state, if computed

    @classmethod
    def at(
        cls, state: Float, data: PaddedRows, system: Primal | Dual, likelihood: Likelihood
    ) -> "PosteriorMode":
        """Evaluate the likelihood at a state."""
        eta = system.eta(state)
        return cls(data, system, state, eta, likelihood.at(eta, data), system.penalty(state, eta))

    @property
    def z(self) -> Float:
        """Each user's z at the state."""
        z, penalty = self.system.z(self.state), self.system.user_penalty
        return z if penalty is None or penalty.means is None else z + penalty.centre

    @property
    def covariance(self) -> PosteriorCovariance:
        """The posterior covariances."""
        return self.system.posterior_covariance(self.derivatives.curvature, self.matrices)

    @property
    def objective(self) -> Float:
        """Minus the logarithm of each user's marginal likelihood (Laplace approximation)."""
        matrices = self.matrices
        if matrices is None:
            matrices = self.system.matrices(self.derivatives.curvature)
        return self.derivatives.loss + self.penalty + self.system.log_determinant(matrices)

    @property
    def warm_start(self) -> WarmStart | None:
        """The start of the next search; None for quadratic losses, which need one step."""
        if self.data.places is None:
            return None
        if self.prior is None or isinstance(self.system, Dual):
            return WarmStart(self.derivatives.residuals)
        points = self.prior.means(self.data.users) + self.z @ self.prior.root.T
        return WarmStart(self.derivatives.residuals, points)


def find_mode(
    data: PaddedRows,
    prior: GaussianPrior,
    likelihood: Likelihood,
    warm_start: WarmStart | None = None,
    tol: float = EXACT,
    *,
    approximate: bool = False,
) -> PosteriorMode:
    """Find the posterior modes of a block by Newton's method, from an earlier mode if given.

    A user has converged after a gain below ``tol``, in units of log-likelihood. So has a user whose
    next step has a predicted gain below about the square of ``tol``. ``approximate`` steps come
    from an iterative solver.
    """
    system = system_of(data, prior, approximate=approximate and not likelihood.is_quadratic)
    start = _start(data, prior, system, warm_start)
    mode = PosteriorMode.at(start, data, system, likelihood)
    return replace(newton(mode, likelihood, tol), prior=prior)


def _start(
    data: PaddedRows, prior: GaussianPrior, system: Primal | Dual, warm_start: WarmStart | None
) -> Float:
    """Return the state to start from."""
    if warm_start is None:
        return system.start(np.zeros(data.weight.shape))
    points = warm_start.points
    # The number of item factors changes during a fit: such points have other coordinates.
    if points is None or points.shape[1] != len(prior.mean):
        return system.start(warm_start.residuals)
    z = np.asarray((points - prior.means(data.users)) @ prior.inverse_root.T)
    return z if system.user_penalty is None else z - system.user_penalty.centre


def newton(mode: PosteriorMode, likelihood: Likelihood, tol: float) -> PosteriorMode:
    """Iterate Newton's method from a state."""
    system = mode.system
    # Converged users are frozen, so results do not depend on the partition into blocks.
    moves = np.ones(len(mode.state), dtype=np.bool_)
    for _ in range(NEWTON_STEPS):
        derivatives, matrices = mode.derivatives, mode.matrices
        if matrices is None and not system.approximate:
            matrices = system.matrices(derivatives.curvature)
            mode = replace(mode, matrices=matrices)
        whole, promised = system.newton(
            mode.state, mode.eta, derivatives.residuals, derivatives.curvature, matrices
        )
        # The predicted gain is about the square of the error after the step.
        moves &= promised > tol * min(tol, 1e-2)
        if not moves.any():
            break
        if _are_few(moves):
            return _continue_moving(mode, likelihood, np.flatnonzero(moves), tol)
        mode, gain = _step(mode, whole, likelihood, moves)
        if likelihood.is_quadratic:  # its matrices are the same everywhere
            return replace(mode, matrices=matrices)
        moves &= gain > tol
        if not moves.any():
            break
        if system.approximate and _are_few(moves):
            return _continue_moving(mode, likelihood, np.flatnonzero(moves), tol)
    return mode


def _are_few(moves: Bool) -> bool:
    """Return whether to continue with a smaller block: half of a large one has converged."""
    n_moving = np.count_nonzero(moves)
    return bool(n_moving < len(moves) >= 32 and n_moving <= 0.5 * len(moves))


def _step(
    mode: PosteriorMode, whole: Float, likelihood: Likelihood, moves: Bool
) -> tuple[PosteriorMode, Float]:
    """Take a damped Newton step for some users; return the states and the gains of all."""
    derivatives, penalty = mode.derivatives, mode.penalty

    def at(state: Float) -> tuple[PosteriorMode, Float]:
        new = PosteriorMode.at(state, mode.data, mode.system, likelihood)
        return new, (derivatives.loss - new.derivatives.loss) + (penalty - new.penalty)

    return damped_step(mode.state, whole, at, moves, 1.0 + np.abs(derivatives.loss))


def _continue_moving(
    mode: PosteriorMode, likelihood: Likelihood, moving: Index, tol: float
) -> PosteriorMode:
    """Find the modes of users who have not converged, as a block of their own."""
    some = replace(
        mode,
        data=of_each_user(mode.data, lambda part: part[moving]),
        system=mode.system.of(moving),
        state=mode.state[moving],
        eta=mode.eta[moving],
        derivatives=_of(mode.derivatives, moving),
        penalty=mode.penalty[moving],
        matrices=None if mode.matrices is None else mode.matrices[moving],
    )
    found = newton(some, likelihood, tol)
    matrices = found.matrices
    if matrices is None and mode.matrices is not None:
        matrices = found.system.matrices(found.derivatives.curvature)
    return replace(
        mode,
        state=_put(mode.state, moving, found.state),
        eta=_put(mode.eta, moving, found.eta),
        derivatives=_put(mode.derivatives, moving, found.derivatives),
        penalty=_put(mode.penalty, moving, found.penalty),
        matrices=_put(mode.matrices, moving, matrices),
    )


def _of(part: T, users: Index) -> T:
    """Return some users' part of an array, or of all arrays of a dataclass."""
    found: Any = part
    if isinstance(part, np.ndarray):
        found = part[users]
    elif is_dataclass(part):
        found = found.__class__(**{name: _of(each, users) for name, each in vars(part).items()})
    return cast("T", found)


def _put(part: T, users: Index, others: T) -> T:
    """Return an array, or a dataclass of arrays, with some users' parts replaced."""
    found: Any = part
    if isinstance(part, np.ndarray):
        found = part.copy()
        found[users] = others
    elif is_dataclass(part):
        new = vars(others)
        found = found.__class__(**{n: _put(each, users, new[n]) for n, each in vars(part).items()})
    return cast("T", found)


@dataclass(frozen=True)
class Moments:
    """Sums over users of the moments of their posteriors."""

    objective: float  # minus the logarithm of the marginal likelihood (Laplace approximation)
    loss: float  # the labels' part of it, at the modes
    # (p,) and (p, p): sums over users of the first and second moments of z, corrected so they give
    # the exact gradient of the Laplace approximation. At a stationary point of the objective, the
    # mean of the first is zero, and that of the second the identity.
    first: Float
    second: Float
    covariance: Float  # (p, p): the sum over users of the covariance of z
    n_users: float
    comparisons: float  # the effective number of observations

    def times(self, factor: float) -> "Moments":
        """Return the moments times a factor, as if there were more users."""
        return Moments(**{name: factor * part for name, part in vars(self).items()})

    def __add__(self, other: "Moments") -> "Moments":
        parts = vars(other)
        return Moments(**{name: part + parts[name] for name, part in vars(self).items()})


@dataclass(frozen=True)
class EStepParams:
    """The prior and likelihood of an E step, and the tolerance of modes: see `find_mode`."""

    prior: GaussianPrior
    likelihood: Likelihood
    tol: float = EXACT
    approximate: bool = False

    def mode_of(self, block: ResponseBlock, warm_start: WarmStart | None) -> PosteriorMode:
        """Return the posterior modes of a block."""
        return find_mode(
            block.data,
            self.prior,
            self.likelihood,
            warm_start,
            self.tol,
            approximate=self.approximate,
        )


@dataclass
class WarmStarts:
    """A `WarmStart` for each block; each pass over the users replaces them."""

    own: Own = None

    def copy(self) -> "WarmStarts":
        """Return the same warm starts, to be replaced independently of these."""
        return WarmStarts(self.own)


def sum_moments(responses: Responses, params: EStepParams, warm_starts: WarmStarts) -> Moments:
    """Find each user's posterior mode, and sum the moments."""
    found, warm_starts.own = responses.map_reduce(_moments_of_block, params, warm_starts.own)
    return found


def _moments_of_block(
    block: ResponseBlock, params: EStepParams, warm_start: WarmStart | None
) -> tuple[Moments, WarmStart | None]:
    mode = params.mode_of(block, warm_start)
    found = moments_of(mode, params.likelihood, mode.covariance)
    return found, mode.warm_start


def losses_by_user(responses: Responses, params: EStepParams, warm_starts: WarmStarts) -> Float:
    """Return each user's part of `Moments.objective`, in less time."""
    found: CollectedRows
    found, warm_starts.own = responses.map_reduce(_losses_of_block, params, warm_starts.own)
    return found.in_order()[0]


def _losses_of_block(
    block: ResponseBlock, params: EStepParams, warm_start: WarmStart | None
) -> tuple[CollectedRows, WarmStart | None]:
    mode = params.mode_of(block, warm_start)
    users = block.data.users
    return CollectedRows([users], [[mode.objective]]), mode.warm_start


def moments_of(
    mode: PosteriorMode,
    likelihood: Likelihood,
    spread: PosteriorCovariance,
    shift: Float | None = None,
) -> Moments:
    """Return the moments of a block, given the modes; ``shift`` is mode minus mean of states."""
    system, z = mode.system, mode.z
    second = z.T @ z + spread.total
    first = z.sum(axis=0)
    if not likelihood.is_quadratic:
        shift = system.z(
            system.shift(spread, mode.derivatives.curvature) if shift is None else shift
        )
        crossed = shift.T @ z
        second -= crossed + crossed.T
        first = first - shift.sum(axis=0)
    objective = mode.derivatives.loss + mode.penalty + spread.log_determinant
    return Moments(
        float(objective.sum()),
        float(mode.derivatives.loss.sum()),
        first,
        second,
        spread.total,
        len(z),
        float(mode.data.comparisons.sum()),
    )
