"""Laplace's approximation: modes of users' posteriors by Newton's method, and their moments."""

from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypeVar, cast

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.map_reduce import Own
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood, LossDerivatives
from likeminds.mixed_model.numerics import EXACT, NEWTON_STEPS, damped_step
from likeminds.mixed_model.primal_dual import Dual, PosteriorCovariance, Primal, system_of
from likeminds.mixed_model.responses import PaddedRows, ResponseBlock, Responses, of_each_user

T = TypeVar("T")


@dataclass(frozen=True)
class WarmStart:
    """What a block keeps of its modes, to start from under another prior."""

    # (b, n): the pulls of the rows. Little information makes modes follow the prior, and pulls
    # last.
    residuals: Float
    # (b, p): the modes themselves, of users with more rows than coordinates. Much information
    # makes them last.
    points: Float | None = None


@dataclass(frozen=True)
class PosteriorMode:
    """The modes of a block's posteriors, or where the search for them is."""

    # The labels, and the equations that they make with the prior.
    task: PaddedRows
    system: Primal | Dual
    # The system's state, and the scores (b, n) there.
    state: Float
    eta: Float
    # What labels say there, and what the prior costs (b,).
    derivatives: LossDerivatives
    penalty: Float
    prior: GaussianPrior | None = None  # the prior, where the system is in its coordinates
    matrices: Float | None = None  # the system's matrices there, where they have been made

    @classmethod
    def at(
        cls, state: Float, task: PaddedRows, system: Primal | Dual, likelihood: Likelihood
    ) -> "PosteriorMode":
        """Evaluate the likelihood at a state."""
        eta = system.eta(state)
        return cls(task, system, state, eta, likelihood.at(eta, task), system.penalty(state, eta))

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
        """Where to start from next time; nothing where one step leads there from anywhere."""
        if self.task.places is None:
            return None
        if self.prior is None or isinstance(self.system, Dual):
            return WarmStart(self.derivatives.residuals)
        points = self.prior.means(self.task.users) + self.state @ self.prior.root.T
        return WarmStart(self.derivatives.residuals, points)


def find_mode(
    task: PaddedRows,
    prior: GaussianPrior,
    likelihood: Likelihood,
    kept: WarmStart | None = None,
    *,
    gain: float = EXACT,
    nearly: bool = False,
) -> PosteriorMode:
    """Find the modes of a block, from what it has kept of an earlier pass, if there was one.

    Newton's method ends when no user has gained more than ``gain``, in units of log-likelihood, or
    would gain more than about its square: so much is left by either. Steps are solved for
    ``nearly`` in a large crowd, unless one is all there is.
    """
    system = system_of(task, prior, nearly=nearly and not likelihood.is_quadratic)
    start = _start(task, prior, system, kept)
    return replace(newton(task, system, likelihood, start, gain), prior=prior)


def _start(
    task: PaddedRows, prior: GaussianPrior, system: Primal | Dual, kept: WarmStart | None
) -> Float:
    """Return the state to start from."""
    if kept is None:
        return system.start(np.zeros(task.weight.shape))
    points = kept.points
    # Features of items that are learned come and go: points of other coordinates are of no use.
    if points is None or points.shape[1] != len(prior.mean):
        return system.start(kept.residuals)
    return np.asarray((points - prior.means(task.users)) @ prior.inverse_root.T)


def newton(
    task: PaddedRows, system: Primal | Dual, likelihood: Likelihood, state: Float, enough: float
) -> PosteriorMode:
    """Find the modes of a block from a state: see `find_mode`."""
    return _newton(PosteriorMode.at(state, task, system, likelihood), likelihood, enough)


def _newton(mode: PosteriorMode, likelihood: Likelihood, enough: float) -> PosteriorMode:
    """Find the modes of a block from where the search is."""
    system = mode.system
    # Whoever has arrived stays, so no user's mode depends on who else is in the block.
    moves = np.ones(len(mode.state), dtype=np.bool_)
    for _ in range(NEWTON_STEPS):
        derivatives, matrices = mode.derivatives, mode.matrices
        if matrices is None and not system.approximate:
            matrices = system.matrices(derivatives.curvature)
            mode = replace(mode, matrices=matrices)
        whole, promised = system.newton(
            mode.state, mode.eta, derivatives.residuals, derivatives.curvature, matrices
        )
        # What a step promises is about the square of what it leaves.
        moves &= promised > enough * min(enough, 1e-2)
        if not moves.any():
            break
        if _are_few(moves):
            return _without_the_others(mode, likelihood, np.flatnonzero(moves), enough)
        mode, gain = _step(mode, whole, likelihood, moves)
        if likelihood.is_quadratic:  # its matrices are the same everywhere
            return replace(mode, matrices=matrices)
        moves &= gain > enough
        if not moves.any():
            break
        if system.approximate and _are_few(moves):
            return _without_the_others(mode, likelihood, np.flatnonzero(moves), enough)
    return mode


def _are_few(moves: Bool) -> bool:
    """Return whether those who still move go on by themselves."""
    n_moving = np.count_nonzero(moves)
    # Where no more than this share of a block still moves, it goes on by itself; not if the block
    # is so small that calls cost more than what they compute.
    return bool(n_moving < len(moves) >= 32 and n_moving <= 0.5 * len(moves))


def _step(
    mode: PosteriorMode, whole: Float, likelihood: Likelihood, moves: Bool
) -> tuple[PosteriorMode, Float]:
    """Let some users take a Newton step; return the modes and the gains of all."""
    derivatives, penalty = mode.derivatives, mode.penalty

    def at(state: Float) -> tuple[PosteriorMode, Float]:
        new = PosteriorMode.at(state, mode.task, mode.system, likelihood)
        return new, (derivatives.loss - new.derivatives.loss) + (penalty - new.penalty)

    return damped_step(mode.state, whole, at, moves, 1.0 + np.abs(derivatives.loss))


def _without_the_others(
    mode: PosteriorMode, likelihood: Likelihood, moving: Index, enough: float
) -> PosteriorMode:
    """Find the modes of those who still move, as a block of their own."""
    some = replace(
        mode,
        task=of_each_user(mode.task, lambda part: part[moving]),
        system=mode.system.of(moving),
        state=mode.state[moving],
        eta=mode.eta[moving],
        derivatives=_of(mode.derivatives, moving),
        penalty=mode.penalty[moving],
        matrices=None if mode.matrices is None else mode.matrices[moving],
    )
    found = _newton(some, likelihood, enough)
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
    """Return the same with some users' part replaced by others."""
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
    loss: float  # the part of it that is the labels' loss at the modes
    # (p,) and (p, p): sums over users of the first and second moments of z. They are those of
    # the Laplace approximation's gradient: at a stationary point of the objective, the mean of
    # the first is zero, and that of the second the identity.
    first: Float
    second: Float
    covariance: Float  # (p, p): the sum over users of the covariance of z
    n_users: float  # how many users there are
    comparisons: float  # how many observations their labels amount to

    def times(self, factor: float) -> "Moments":
        """Return the moments of so many times as many users."""
        return Moments(**{name: factor * part for name, part in vars(self).items()})

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.objective + other.objective,
            self.loss + other.loss,
            self.first + other.first,
            self.second + other.second,
            self.covariance + other.covariance,
            self.n_users + other.n_users,
            self.comparisons + other.comparisons,
        )


@dataclass(frozen=True)
class EStepParams:
    """What modes are found under: the state of a visit."""

    # The prior of weights, and the likelihood of labels.
    prior: GaussianPrior
    likelihood: Likelihood
    # How exactly: see `find_mode`.
    tol: float = EXACT
    approximate: bool = False

    def mode_of(self, block: ResponseBlock, kept: WarmStart | None) -> PosteriorMode:
        """Return the modes of a block, found from what it has kept."""
        return find_mode(
            block.task, self.prior, self.likelihood, kept, gain=self.tol, nearly=self.approximate
        )


@dataclass
class WarmStarts:
    """The pulls at each user's last mode, where the search for the next starts.

    They stay with the blocks; each visit replaces them.
    """

    own: Own = None

    def copy(self) -> "WarmStarts":
        """Return the same pulls, to be replaced apart from these."""
        return WarmStarts(self.own)


def moments(tasks: Responses, terms: EStepParams, warm_starts: WarmStarts) -> Moments:
    """Find each user's mode, and sum the moments."""
    found, warm_starts.own = tasks.map_reduce(_moments_of_block, terms, warm_starts.own)
    return found


def _moments_of_block(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[Moments, WarmStart | None]:
    mode = terms.mode_of(block, kept)
    found = moments_of(mode, terms.likelihood, mode.covariance)
    return found, mode.warm_start


def cost(tasks: Responses, terms: EStepParams, warm_starts: WarmStarts) -> float:
    """Find each user's mode, and return the objective of `Moments` alone."""
    found, warm_starts.own = tasks.map_reduce(_cost_of_block, terms, warm_starts.own)
    return found


def _cost_of_block(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[float, WarmStart | None]:
    mode = terms.mode_of(block, kept)
    return float(mode.objective.sum()), mode.warm_start


def moments_of(
    mode: PosteriorMode,
    likelihood: Likelihood,
    spread: PosteriorCovariance,
    shift: Float | None = None,
) -> Moments:
    """Return the moments of a block of users, given the modes of their posteriors.

    ``shift`` is how far their states are from the means', where that is known.
    """
    system, z = mode.system, mode.system.z(mode.state)
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
        float(mode.task.comparisons.sum()),
    )
