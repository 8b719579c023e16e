"""The modes of people's posteriors, by Newton's method; for the regression it takes one step."""

from collections.abc import Callable
from dataclasses import dataclass, is_dataclass, replace
from typing import Any, TypeVar

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds.mixed_model.blocks import PaddedRows, of_each_user
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood, LossDerivatives
from likeminds.mixed_model.primal_dual import Dual, PosteriorCovariance, Primal, system_of

T = TypeVar("T")

# The gain at which Newton's method stops (see `find_mode`); steps and halvings are limited.
EXACT = 1e-9
_LEFT = 1e-2
NEWTON_STEPS = 100
_HALVINGS = 40
# Where no more than this share of a block still moves, it goes on by itself; not if the block is
# so small that calls cost more than what they compute.
_FEW, _SMALL = 0.5, 32


@dataclass(frozen=True)
class WarmStart:
    """What a block keeps of its modes, to start from under another prior."""

    # (b, n): the pulls of the rows. Little information makes modes follow the prior, and pulls
    # last.
    pull: Float
    # (b, p): the modes themselves, of people with more rows than coordinates. Much information
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
    said: LossDerivatives
    penalty: Float
    prior: GaussianPrior | None = None  # the prior, where the system is in its coordinates
    matrices: Float | None = None  # the system's matrices there, where they have been made

    @classmethod
    def at(
        cls, state: Float, task: PaddedRows, system: Primal | Dual, likelihood: Likelihood
    ) -> "PosteriorMode":
        """Return what is said at a state."""
        eta = system.eta(state)
        return cls(task, system, state, eta, likelihood.at(eta, task), system.penalty(state, eta))

    @property
    def spread(self) -> PosteriorCovariance:
        """The posterior covariances."""
        return self.system.spread(self.said.curvature, self.matrices)

    @property
    def objective(self) -> Float:
        """Minus the logarithm of everybody's marginal likelihood (Laplace approximation)."""
        matrices = self.matrices
        if matrices is None:
            matrices = self.system.matrices(self.said.curvature)
        return self.said.loss + self.penalty + self.system.log_determinant(matrices)

    @property
    def kept(self) -> WarmStart | None:
        """Where to start from next time; nothing where one step leads there from anywhere."""
        if self.task.places is None:
            return None
        if self.prior is None or isinstance(self.system, Dual):
            return WarmStart(self.said.pull)
        points = self.prior.means(self.task.people) + self.state @ self.prior.root.T
        return WarmStart(self.said.pull, points)


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

    Newton's method ends when nobody has gained more than ``gain``, in units of log-likelihood, or
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
        return system.start(kept.pull)
    return np.asarray((points - prior.means(task.people)) @ prior.inverse_root.T)


def newton(
    task: PaddedRows, system: Primal | Dual, likelihood: Likelihood, state: Float, enough: float
) -> PosteriorMode:
    """Find the modes of a block from a state: see `find_mode`."""
    return _newton(PosteriorMode.at(state, task, system, likelihood), likelihood, enough)


def _newton(mode: PosteriorMode, likelihood: Likelihood, enough: float) -> PosteriorMode:
    """Find the modes of a block from where the search is."""
    system = mode.system
    # Whoever has arrived stays, so that nobody's mode depends on who else is in the block.
    moves = np.ones(len(mode.state), dtype=np.bool_)
    for _ in range(NEWTON_STEPS):
        said, matrices = mode.said, mode.matrices
        if matrices is None and not system.nearly:
            matrices = system.matrices(said.curvature)
            mode = replace(mode, matrices=matrices)
        whole, promised = system.newton(mode.state, mode.eta, said.pull, said.curvature, matrices)
        moves &= promised > enough * min(enough, _LEFT)
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
        if system.nearly and _are_few(moves):
            return _without_the_others(mode, likelihood, np.flatnonzero(moves), enough)
    return mode


def _are_few(moves: Bool) -> bool:
    """Say whether those who still move go on by themselves."""
    n_moving = np.count_nonzero(moves)
    return bool(n_moving < len(moves) >= _SMALL and n_moving <= _FEW * len(moves))


def _step(
    mode: PosteriorMode, whole: Float, likelihood: Likelihood, moves: Bool
) -> tuple[PosteriorMode, Float]:
    """Let some users take a Newton step; return the modes and the gains of all."""
    said, penalty = mode.said, mode.penalty

    def at(state: Float) -> tuple[PosteriorMode, Float]:
        new = PosteriorMode.at(state, mode.task, mode.system, likelihood)
        return new, (said.loss - new.said.loss) + (penalty - new.penalty)

    return damped_step(mode.state, whole, at, moves, 1.0 + np.abs(said.loss))


def damped_step(
    state: Float, step: Float, at: Callable[[Float], tuple[T, Float]], moves: Bool, scale: Float
) -> tuple[T, Float]:
    """Halve the steps of users whose objective rises; return the last evaluation and its gains.

    ``at`` evaluates a state and returns each user's gain; rises below rounding, relative to
    ``scale``, do not count. Users who do not move keep their state.
    """
    share = moves.astype(np.float64)
    for _ in range(_HALVINGS):
        new, gain = at(state + share[:, None] * step)
        rises = gain < -1e-9 * scale
        if not rises.any():
            break
        share = np.where(rises, 0.5 * share, share)
    return new, gain


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
        said=_of(mode.said, moving),
        penalty=mode.penalty[moving],
        matrices=None if mode.matrices is None else mode.matrices[moving],
    )
    found = _newton(some, likelihood, enough)
    matrices = found.matrices
    if matrices is None and mode.matrices is not None:
        matrices = found.system.matrices(found.said.curvature)
    return replace(
        mode,
        state=_put(mode.state, moving, found.state),
        eta=_put(mode.eta, moving, found.eta),
        said=_put(mode.said, moving, found.said),
        penalty=_put(mode.penalty, moving, found.penalty),
        matrices=_put(mode.matrices, moving, matrices),
    )


def _of(part: Any, people: Index) -> Any:
    """Return some people's part of an array, or of all arrays of a dataclass."""
    if isinstance(part, np.ndarray):
        return part[people]
    if not is_dataclass(part):
        return part
    parts = {name: _of(each, people) for name, each in vars(part).items()}
    kind: Any = type(part)
    return kind(**parts)


def _put(part: Any, people: Index, others: Any) -> Any:
    """Return the same with some people's part replaced by others."""
    if isinstance(part, np.ndarray):
        part = part.copy()
        part[people] = others
        return part
    if not is_dataclass(part):
        return part
    parts = {name: _put(each, people, getattr(others, name)) for name, each in vars(part).items()}
    kind: Any = type(part)
    return kind(**parts)
