"""Everybody's posterior, given the prior: its mode, and how sure it is (Laplace).

A person's weights are mean + L z with z ~ N(0, I) and L L' = Omega, so that in z the prior is
the identity. People with more rows than coordinates are solved in z (*primal*, matrices of
coordinates x coordinates), the others in the pulls a of their rows, z = X'a (*dual*, matrices
of rows x rows). Newton's method finds the mode; for the regression it takes one step.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from functools import reduce
from operator import add

import numpy as np

from likeminds._stacks import row_dots, times, times_back
from likeminds._threads import in_threads
from likeminds.hierarchical.likelihoods import Likelihood
from likeminds.hierarchical.prior import Prior
from likeminds.hierarchical.tasks import Task, Tasks
from likeminds.rows import Float

# Newton's method ends when nobody gains more than this (in units of log-likelihood; the next
# step would gain about its square), and stops in any case after so many steps and halvings.
_GAIN = 1e-8
_STEPS = 100
_HALVINGS = 40


@dataclass(frozen=True)
class Spread:
    """The covariance S of z, and what is needed of it.

    Attributes
    ----------
    log_determinant : array of shape (b,)
        Half of log |S^-1|.
    total : array of shape (p, p)
        The sum of S over the people.
    variance : array of shape (b, n)
        The variance of eta.
    inner : array
        S itself (primal), or W^1/2 B^-1 W^1/2 (dual).
    """

    log_determinant: Float
    total: Float
    variance: Float
    inner: Float


@dataclass(frozen=True)
class Primal:
    """People with at least as many rows as coordinates; the state is z."""

    rows: Float
    offset: Float

    def start(self, pulls: Float) -> Float:
        """Return the state that has these pulls."""
        return times_back(self.rows, pulls)

    def eta(self, state: Float) -> Float:
        """Return everybody's eta."""
        return self.offset + times(self.rows, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z."""
        del eta
        return 0.5 * row_dots(state, state)

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Float) -> Float:
        """Return the state that Newton's method proposes."""
        del eta
        slope = times_back(self.rows, pull) - state
        return np.asarray(
            state + np.linalg.solve(self._precision(curvature), slope[:, :, None])[:, :, 0]
        )

    def z(self, state: Float) -> Float:
        """Return everybody's z: the state."""
        return state

    def spread(self, curvature: Float) -> Spread:
        """Return everybody's uncertainty."""
        precision = self._precision(curvature)
        covariance: Float = np.asarray(np.linalg.inv(precision), dtype=np.float64)
        variance = ((self.rows @ covariance) * self.rows).sum(axis=2)
        return Spread(
            _half_log_determinant(precision), covariance.sum(axis=0), variance, covariance
        )

    def shift(self, spread: Spread, bend: Float) -> Float:
        """Return how far the mode lies from the mean, to first order; see `Moments`."""
        return times(spread.inner, times_back(self.rows, 0.5 * bend * spread.variance))

    def information(self, curvature: Float, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        values, vectors = np.linalg.eigh(self._precision(curvature))
        best = vectors[:, :, ::-1][:, :, :most].transpose(0, 2, 1)
        return best, 1.0 - 1.0 / np.maximum(values[:, ::-1][:, :most], 1.0)

    def _precision(self, curvature: Float) -> Float:
        weighted = self.rows * curvature[:, :, None]
        precision = weighted.transpose(0, 2, 1) @ self.rows
        return _plus_identity(precision)


@dataclass(frozen=True)
class Dual:
    """People with fewer rows than coordinates; the state is the pulls of their rows."""

    rows: Float
    offset: Float
    gram: Float

    def start(self, pulls: Float) -> Float:
        """Return the state that has these pulls."""
        return pulls

    def eta(self, state: Float) -> Float:
        """Return everybody's eta."""
        return self.offset + times(self.gram, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z = X'a."""
        return 0.5 * row_dots(state, eta - self.offset)

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Float) -> Float:
        """Return the state that Newton's method proposes."""
        del state
        root = np.sqrt(curvature)
        wanted = curvature * (eta - self.offset) + pull
        right = root * times(self.gram, wanted)
        solved = np.linalg.solve(self._inner(root), right[:, :, None])[:, :, 0]
        return np.asarray(wanted - root * solved)

    def z(self, state: Float) -> Float:
        """Return everybody's z."""
        return times_back(self.rows, state)

    def spread(self, curvature: Float) -> Spread:
        """Return everybody's uncertainty."""
        root = np.sqrt(curvature)
        inner = self._inner(root)
        shrinking: Float = np.asarray(np.linalg.inv(inner), dtype=np.float64)
        shrinking *= root[:, :, None] * root[:, None, :]
        size = self.rows.shape[2]
        reduced = (shrinking @ self.rows).reshape(-1, size)
        total = len(self.rows) * np.eye(size) - self.rows.reshape(-1, size).T @ reduced
        variance = np.einsum("bnn->bn", self.gram) - ((self.gram @ shrinking) * self.gram).sum(2)
        return Spread(_half_log_determinant(inner), total, variance, shrinking)

    def shift(self, spread: Spread, bend: Float) -> Float:
        """Return how far the mode lies from the mean, to first order; see `Moments`."""
        slope = 0.5 * bend * spread.variance
        return times_back(self.rows, slope - times(spread.inner, times(self.gram, slope)))

    def information(self, curvature: Float, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        root = np.sqrt(curvature)
        values, vectors = np.linalg.eigh(self._inner(root))
        values, vectors = values[:, ::-1][:, :most], vectors[:, :, ::-1][:, :, :most]
        scale = 1.0 / np.sqrt(np.maximum(values - 1.0, 1e-300))
        known = values > 1.0 + 1e-12
        back = vectors * root[:, :, None] * np.where(known, scale, 0.0)[:, None, :]
        return back.transpose(0, 2, 1) @ self.rows, np.where(known, 1.0 - 1.0 / values, 0.0)

    def _inner(self, root: Float) -> Float:
        return _plus_identity(root[:, :, None] * self.gram * root[:, None, :])


@dataclass(frozen=True)
class Mode:
    """Where a block's posteriors have their maximum."""

    task: Task
    system: Primal | Dual
    state: Float
    eta: Float
    loss: Float
    penalty: Float


def solved(task: Task, prior: Prior, likelihood: Likelihood, pulls: Float | None = None) -> Mode:
    """Find the modes of a block, from the pulls of an earlier visit if there are any."""
    rows = prior.whitened(task.rows)
    offset = task.rows @ prior.mean
    system: Primal | Dual
    if rows.shape[1] < rows.shape[2]:
        system = Dual(rows, offset, rows @ rows.transpose(0, 2, 1))
    else:
        system = Primal(rows, offset)
    start = system.start(np.zeros(task.weight.shape) if pulls is None else pulls)
    return _newton(task, system, likelihood, start)


def _newton(task: Task, system: Primal | Dual, likelihood: Likelihood, state: Float) -> Mode:
    eta = system.eta(state)
    loss, penalty = likelihood.value(eta, task), system.penalty(state, eta)
    for _ in range(_STEPS):
        pull, curvature = likelihood.pull(eta, task)
        whole_step = system.newton(state, eta, pull, curvature) - state
        share = np.ones(len(state))
        for _ in range(_HALVINGS):
            new = state + share[:, None] * whole_step
            new_eta = system.eta(new)
            new_loss, new_penalty = likelihood.value(new_eta, task), system.penalty(new, new_eta)
            gain = (loss - new_loss) + (penalty - new_penalty)
            rises = gain < -1e-9 * (1.0 + np.abs(loss))
            if not rises.any():
                break
            share = np.where(rises, 0.5 * share, share)
        state, eta, loss, penalty = new, new_eta, new_loss, new_penalty
        if likelihood.is_quadratic or gain.max() <= _GAIN:
            break
    return Mode(task, system, state, eta, loss, penalty)


@dataclass(frozen=True)
class Moments:
    """What the crowd says about its prior.

    Attributes
    ----------
    objective : float
        Minus the logarithm of the marginal likelihood (Laplace approximation).
    loss : float
        The part of it that is the labels' loss at the modes.
    first, second : arrays of shape (p,) and (p, p)
        Sums over people of the first and second moments of z. They are those of the
        Laplace approximation's slope: at a stationary point of the objective, the mean of
        the first is zero, and that of the second the identity.
    spread : array of shape (p, p)
        The sum over people of the covariance of z.
    n_people : int
        How many people there are.
    comparisons : float
        How many observations their labels amount to.
    """

    objective: float
    loss: float
    first: Float
    second: Float
    spread: Float
    n_people: int
    comparisons: float

    def __add__(self, other: "Moments") -> "Moments":
        return Moments(
            self.objective + other.objective,
            self.loss + other.loss,
            self.first + other.first,
            self.second + other.second,
            self.spread + other.spread,
            self.n_people + other.n_people,
            self.comparisons + other.comparisons,
        )


def moments(tasks: Tasks, prior: Prior, likelihood: Likelihood, pulls: Float) -> Moments:
    """Visit everybody; ``pulls`` are where the visit starts, and are brought up to date."""

    def visit(number: int) -> Moments:
        task = tasks.task(number)
        earlier = None if task.places is None else pulls[task.places]
        mode = solved(task, prior, likelihood, earlier)
        found, pull = _moments(mode, likelihood)
        if task.places is not None:
            pulls[task.places] = pull
        return found

    return reduce(add, in_threads(visit, range(len(tasks.plan))))


def _moments(mode: Mode, likelihood: Likelihood) -> tuple[Moments, Float]:
    system, z = mode.system, mode.system.z(mode.state)
    pull, curvature = likelihood.pull(mode.eta, mode.task)
    spread = system.spread(curvature)
    second = z.T @ z + spread.total
    first = z.sum(axis=0)
    if not likelihood.is_quadratic:
        shift = system.shift(spread, likelihood.bend(mode.eta, curvature))
        crossed = shift.T @ z
        second -= crossed + crossed.T
        first = first - shift.sum(axis=0)
    objective = mode.loss + mode.penalty + spread.log_determinant
    found = Moments(
        float(objective.sum()),
        float(mode.loss.sum()),
        first,
        second,
        spread.total,
        len(z),
        float(mode.task.comparisons.sum()),
    )
    return found, pull


def modes(tasks: Tasks, prior: Prior, likelihood: Likelihood, pulls: Float) -> Iterator[Mode]:
    """Yield everybody's modes, a block at a time, from the pulls of an earlier visit."""

    def visit(number: int) -> Mode:
        task = tasks.task(number)
        return solved(task, prior, likelihood, None if task.places is None else pulls[task.places])

    return in_threads(visit, range(len(tasks.plan)))


def _plus_identity(matrices: Float) -> Float:
    diagonal = np.einsum("bii->bi", matrices)
    diagonal += 1.0
    return matrices


def _half_log_determinant(matrices: Float) -> Float:
    factor = np.linalg.cholesky(matrices)
    return np.asarray(np.log(np.einsum("bii->bi", factor)).sum(axis=1))
