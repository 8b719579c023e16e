"""Everybody's posterior, given the prior: sums of the moments (Laplace), by mode and covariance."""

from dataclasses import dataclass

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import Own
from likeminds.mixed_model.blocks import ResponseBlock, Responses
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.map_newton import EXACT, PosteriorMode, WarmStart, find_mode
from likeminds.mixed_model.primal_dual import PosteriorCovariance


@dataclass(frozen=True)
class Moments:
    """Sums over people of the moments of their posteriors."""

    objective: float  # minus the logarithm of the marginal likelihood (Laplace approximation)
    loss: float  # the part of it that is the labels' loss at the modes
    # (p,) and (p, p): sums over people of the first and second moments of z. They are those of
    # the Laplace approximation's gradient: at a stationary point of the objective, the mean of
    # the first is zero, and that of the second the identity.
    first: Float
    second: Float
    spread: Float  # (p, p): the sum over people of the covariance of z
    n_users: float  # how many people there are
    comparisons: float  # how many observations their labels amount to

    def times(self, factor: float) -> "Moments":
        """Return the moments of so many times as many people."""
        return Moments(**{name: factor * part for name, part in vars(self).items()})

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.objective + other.objective,
            self.loss + other.loss,
            self.first + other.first,
            self.second + other.second,
            self.spread + other.spread,
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
    gain: float = EXACT
    nearly: bool = False

    def mode_of(self, block: ResponseBlock, kept: WarmStart | None) -> PosteriorMode:
        """Return the modes of a block, found from what it has kept."""
        return find_mode(
            block.task, self.prior, self.likelihood, kept, gain=self.gain, nearly=self.nearly
        )


@dataclass
class WarmStarts:
    """The pulls at everybody's last mode, where the search for the next starts.

    They stay with the blocks; each visit replaces them.
    """

    own: Own = None

    def copy(self) -> "WarmStarts":
        """Return the same pulls, to be replaced apart from these."""
        return WarmStarts(self.own)


def moments(tasks: Responses, terms: EStepParams, pulls: WarmStarts) -> Moments:
    """Find everybody's mode, and sum the moments."""
    found, pulls.own = tasks.map_reduce(_moments_of_block, terms, pulls.own)
    return found


def _moments_of_block(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[Moments, WarmStart | None]:
    mode = terms.mode_of(block, kept)
    found = moments_of(mode, terms.likelihood, mode.spread)
    return found, mode.kept


def cost(tasks: Responses, terms: EStepParams, pulls: WarmStarts) -> float:
    """Find everybody's mode, and return the objective of `Moments` alone."""
    found, pulls.own = tasks.map_reduce(_cost_of_block, terms, pulls.own)
    return found


def _cost_of_block(
    block: ResponseBlock, terms: EStepParams, kept: WarmStart | None
) -> tuple[float, WarmStart | None]:
    mode = terms.mode_of(block, kept)
    return float(mode.objective.sum()), mode.kept


def moments_of(
    mode: PosteriorMode,
    likelihood: Likelihood,
    spread: PosteriorCovariance,
    shift: Float | None = None,
) -> Moments:
    """Return the moments of a block of people, given the modes of their posteriors.

    ``shift`` is how far their states are from the means', where that is known.
    """
    system, z = mode.system, mode.system.z(mode.state)
    second = z.T @ z + spread.total
    first = z.sum(axis=0)
    if not likelihood.is_quadratic:
        shift = system.z(system.shift(spread, mode.said.curvature) if shift is None else shift)
        crossed = shift.T @ z
        second -= crossed + crossed.T
        first = first - shift.sum(axis=0)
    objective = mode.said.loss + mode.penalty + spread.log_determinant
    return Moments(
        float(objective.sum()),
        float(mode.said.loss.sum()),
        first,
        second,
        spread.total,
        len(z),
        float(mode.task.comparisons.sum()),
    )
