"""Everybody's posterior, given the prior: its mode and covariance (Laplace).

A person's weights are mean + L z with z ~ N(0, I) and L L' = Omega, so that in z the prior is
the identity. People with more rows than coordinates are solved in z (*primal*, matrices of
coordinates x coordinates), the others in the pulls a of their rows, z = X'a (*dual*, matrices
of rows x rows). Newton's method finds the mode; for the regression it takes one step.

Where features of items are learned, their uncertainty adds a penalty (see `crossed`): a
quadratic form in z, one for each person. It is part of their prior (`Held`), and what is
said above of z then holds of y, with z = A y.
"""

from dataclasses import dataclass

import numpy as np

from likeminds._support.arrays import Float
from likeminds._support.stacks import row_dots, times, times_back
from likeminds._support.visits import Own
from likeminds.prior.held import Held
from likeminds.prior.likelihoods import Curvature, Likelihood, Said
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import Task, TaskBlock, Tasks

# The gain at which Newton's method stops (see `find_mode`); in any case after so many steps
# and halvings.
_EXACT = 1e-9
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
        The variance of R' eta, where R R' is the likelihood's curvature.
    inner : array
        S itself (primal), or (I + R' X X' R)^-1 (dual).
    """

    log_determinant: Float
    total: Float
    variance: Float
    inner: Float


@dataclass(frozen=True)
class Primal:
    """People with at least as many rows as coordinates; the state is z (or y)."""

    rows: Float
    offset: Float
    held: Held | None = None

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

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Curvature) -> Float:
        """Return the state that Newton's method proposes."""
        del eta
        slope = times_back(self.rows, pull) - state
        precision = _plus_identity(_gram(curvature.times_root_back(self.rows)))
        return np.asarray(state + np.linalg.solve(precision, slope[:, :, None])[:, :, 0])

    def z(self, state: Float) -> Float:
        """Return everybody's z: the state, or A times it."""
        return state if self.held is None else self.held.of_vectors(state)

    def spread(self, curvature: Curvature) -> Spread:
        """Return everybody's posterior covariance."""
        scaled = curvature.times_root_back(self.rows)
        covariance, half = _inverse(_plus_identity(_gram(scaled)))
        variance = np.einsum("bnp,bnp->bn", scaled @ covariance, scaled)
        if self.held is None:
            return Spread(half, covariance.sum(axis=0), variance, covariance)
        total = self.held.around(covariance).sum(axis=0)
        return Spread(half + self.held.log_determinant, total, variance, covariance)

    def shift(self, spread: Spread, curvature: Curvature) -> Float:
        """Return how far the mode's state lies from the mean's, to first order: see `Moments`."""
        return times(spread.inner, times_back(self.rows, curvature.tilt(spread.variance)))

    def with_scores(self, spread: Spread, curvature: Curvature) -> Float:
        """Return the covariance of every row's eta with z, shape (b, n, p)."""
        del curvature
        crossed = self.rows @ spread.inner
        return np.asarray(crossed if self.held is None else self.held.of_rows(crossed))

    def seen_along(self, spread: Spread, curvature: Curvature, directions: Float) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        del curvature
        seen = _as_stack(directions, len(self.rows), self.held)
        return np.asarray(seen @ spread.inner @ seen.transpose(0, 2, 1))

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        precision = _plus_identity(_gram(curvature.times_root_back(self.rows)))
        values, vectors = np.linalg.eigh(precision)
        best = vectors[:, :, ::-1][:, :, :most].transpose(0, 2, 1)
        return best, 1.0 - 1.0 / np.maximum(values[:, ::-1][:, :most], 1.0)


@dataclass(frozen=True)
class Dual:
    """People with fewer rows than coordinates; the state is the pulls of their rows."""

    rows: Float
    offset: Float
    gram: Float
    held: Held | None = None

    def start(self, pulls: Float) -> Float:
        """Return the state that has these pulls."""
        return pulls

    def eta(self, state: Float) -> Float:
        """Return everybody's eta."""
        return self.offset + times(self.gram, state)

    def penalty(self, state: Float, eta: Float) -> Float:
        """Return half the squared length of z = X'a."""
        return 0.5 * row_dots(state, eta - self.offset)

    def newton(self, state: Float, eta: Float, pull: Float, curvature: Curvature) -> Float:
        """Return the state that Newton's method proposes."""
        del state
        wanted = curvature.times_root(curvature.times_root_back(eta - self.offset)) + pull
        right = curvature.times_root_back(times(self.gram, wanted))
        solved = np.linalg.solve(self.inner(curvature), right[:, :, None])[:, :, 0]
        return np.asarray(wanted - curvature.times_root(np.asarray(solved)))

    def z(self, state: Float) -> Float:
        """Return everybody's z."""
        inner = times_back(self.rows, state)
        return inner if self.held is None else self.held.of_vectors(inner)

    def spread(self, curvature: Curvature) -> Spread:
        """Return everybody's posterior covariance."""
        inner, half = _inverse(self.inner(curvature))
        n_people, n_rows, size = self.rows.shape
        scaled = curvature.times_root_back(self.rows)
        whole = n_people * np.eye(size)
        if self.held is not None:
            scaled, whole = self.held.of_rows(scaled), self.held.squared()
            half = half + self.held.log_determinant
        reduced = (inner @ scaled).reshape(n_people * n_rows, size)
        total = whole - scaled.reshape(n_people * n_rows, size).T @ reduced
        return Spread(half, total, 1.0 - np.einsum("bnn->bn", inner), inner)

    def shift(self, spread: Spread, curvature: Curvature) -> Float:
        """Return how far the mode's state lies from the mean's, to first order: see `Moments`."""
        slope = curvature.tilt(spread.variance)
        less = times(spread.inner, curvature.times_root_back(times(self.gram, slope)))
        return np.asarray(slope - curvature.times_root(less))

    def with_scores(self, spread: Spread, curvature: Curvature) -> Float:
        """Return the covariance of every row's eta with z, shape (b, n, p)."""
        scaled = curvature.times_root_back(self.rows)
        back = curvature.times_root_back(self.gram).transpose(0, 2, 1)
        crossed = self.rows - back @ (spread.inner @ scaled)
        return np.asarray(crossed if self.held is None else self.held.of_rows(crossed))

    def seen_along(self, spread: Spread, curvature: Curvature, directions: Float) -> Float:
        """Return the covariances of directions' z, (b, r, r); directions have shape (p, r)."""
        seen = _as_stack(directions, len(self.rows), self.held)
        scaled = curvature.times_root_back(self.rows) @ seen.transpose(0, 2, 1)
        known = scaled.transpose(0, 2, 1) @ spread.inner @ scaled
        return np.asarray(seen @ seen.transpose(0, 2, 1) - known)

    def information(self, curvature: Curvature, most: int) -> tuple[Float, Float]:
        """Return the directions of z known best, (b, most, p), and 1 - their variances."""
        values, vectors = np.linalg.eigh(self.inner(curvature))
        values, vectors = values[:, ::-1][:, :most], vectors[:, :, ::-1][:, :, :most]
        known = values > 1.0 + 1e-12
        scale = np.where(known, 1.0 / np.sqrt(np.maximum(values - 1.0, 1e-300)), 0.0)
        best = (vectors * scale[:, None, :]).transpose(0, 2, 1)
        scaled = curvature.times_root_back(self.rows)
        return best @ scaled, np.where(known, 1.0 - 1.0 / values, 0.0)

    def inner(self, curvature: Curvature) -> Float:
        """Return I + R' X X' R."""
        half = curvature.times_root_back(self.gram).transpose(0, 2, 1)
        return _plus_identity(curvature.times_root_back(half))


@dataclass(frozen=True)
class Mode:
    """The modes of a block's posteriors."""

    task: Task
    system: Primal | Dual
    state: Float
    said: Said
    penalty: Float

    @property
    def kept(self) -> Float | None:
        """The pulls to start from next time; none where one step leads there from anywhere."""
        return None if self.task.places is None else self.said.pull


def find_mode(
    task: Task,
    prior: Prior,
    likelihood: Likelihood,
    pulls: Float | None = None,
    *,
    gain: float = _EXACT,
) -> Mode:
    """Find the modes of a block, from the pulls of an earlier pass if there are any.

    Newton's method ends when nobody gains more than ``gain``, in units of log-likelihood; one
    more step would gain about its square.
    """
    system = system_of(task, prior)
    start = system.start(np.zeros(task.weight.shape) if pulls is None else pulls)
    return newton(task, system, likelihood, start, gain)


def system_of(task: Task, prior: Prior) -> Primal | Dual:
    """Return the primal or dual system of a block, with rows whitened by the prior."""
    rows = prior.whitened(task.rows)
    offset = task.rows @ prior.mean
    if prior.shifts is not None:
        offset += times(task.rows, prior.shifts[task.people])
    held = None
    if task.offset is not None:
        offset += task.offset
    if task.held is not None:
        held = Held.of_precision(task.held, prior.root[-task.held.shape[1] :])
        rows = held.of_rows(rows)
    if task.beyond is not None:
        gram = rows @ rows.transpose(0, 2, 1) + prior.beyond * task.beyond
        return Dual(rows, offset, gram, held)
    if rows.shape[1] < rows.shape[2]:
        return Dual(rows, offset, rows @ rows.transpose(0, 2, 1), held)
    return Primal(rows, offset, held)


def newton(
    task: Task, system: Primal | Dual, likelihood: Likelihood, state: Float, enough: float
) -> Mode:
    """Find the modes of a block from a state: see `find_mode`."""
    eta = system.eta(state)
    said, penalty = likelihood.at(eta, task), system.penalty(state, eta)
    # Whoever has arrived stays, so that nobody's mode depends on who else is in the block.
    moves = np.ones(len(state), dtype=np.bool_)
    for _ in range(_STEPS):
        whole_step = system.newton(state, eta, said.pull, said.curvature) - state
        share = moves.astype(np.float64)
        for _ in range(_HALVINGS):
            new = state + share[:, None] * whole_step
            new_eta = system.eta(new)
            new_said, new_penalty = likelihood.at(new_eta, task), system.penalty(new, new_eta)
            gain = (said.loss - new_said.loss) + (penalty - new_penalty)
            rises = gain < -1e-9 * (1.0 + np.abs(said.loss))
            if not rises.any():
                break
            share = np.where(rises, 0.5 * share, share)
        state, eta, said, penalty = new, new_eta, new_said, new_penalty
        moves &= gain > enough
        if likelihood.is_quadratic or not moves.any():
            break
    return Mode(task, system, state, said, penalty)


@dataclass(frozen=True)
class Moments:
    """Sums over people of the moments of their posteriors.

    Attributes
    ----------
    objective : float
        Minus the logarithm of the marginal likelihood (Laplace approximation).
    loss : float
        The part of it that is the labels' loss at the modes.
    first, second : arrays of shape (p,) and (p, p)
        Sums over people of the first and second moments of z. They are those of the
        Laplace approximation's gradient: at a stationary point of the objective, the mean of
        the first is zero, and that of the second the identity.
    spread : array of shape (p, p)
        The sum over people of the covariance of z.
    n_people : float
        How many people there are.
    comparisons : float
        How many observations their labels amount to.
    """

    objective: float
    loss: float
    first: Float
    second: Float
    spread: Float
    n_people: float
    comparisons: float

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
            self.n_people + other.n_people,
            self.comparisons + other.comparisons,
        )


@dataclass(frozen=True)
class Terms:
    """What modes are found under: the state of a visit.

    Attributes
    ----------
    prior, likelihood
        The prior of weights, and the likelihood of labels.
    gain : float
        How exactly: see `find_mode`.
    """

    prior: Prior
    likelihood: Likelihood
    gain: float = _EXACT

    def mode_of(self, block: TaskBlock, pulls: Float | None) -> Mode:
        """Return the modes of a block, found from the pulls it has kept."""
        return find_mode(block.task, self.prior, self.likelihood, pulls, gain=self.gain)


@dataclass
class Pulls:
    """The pulls at everybody's last mode, where the search for the next starts.

    They stay with the blocks; each visit replaces them.
    """

    own: Own = None

    def copy(self) -> "Pulls":
        """Return the same pulls, to be replaced apart from these."""
        return Pulls(self.own)


def moments(tasks: Tasks, terms: Terms, pulls: Pulls) -> Moments:
    """Find everybody's mode, and sum the moments."""
    found, pulls.own = tasks.visit(_moments_of_block, terms, pulls.own)
    return found


def _moments_of_block(
    block: TaskBlock, terms: Terms, pulls: Float | None
) -> tuple[Moments, Float | None]:
    mode = terms.mode_of(block, pulls)
    found = moments_of(mode, terms.likelihood, mode.system.spread(mode.said.curvature))
    return found, mode.kept


def moments_of(mode: Mode, likelihood: Likelihood, spread: Spread) -> Moments:
    """Return the moments of a block of people, given the modes of their posteriors."""
    system, z = mode.system, mode.system.z(mode.state)
    curvature = mode.said.curvature
    second = z.T @ z + spread.total
    first = z.sum(axis=0)
    if not likelihood.is_quadratic:
        shift = system.z(system.shift(spread, curvature))
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


def _as_stack(directions: Float, n_people: int, held: Held | None) -> Float:
    """Return directions, shape (p, r), in everybody's y: (b, r, p)."""
    stack = np.repeat(directions.T[None], n_people, axis=0)
    return stack if held is None else held.of_rows(stack)


def _plus_identity(matrices: Float) -> Float:
    diagonal = np.einsum("bii->bi", matrices)
    diagonal += 1.0
    return matrices


def _gram(rows: Float) -> Float:
    """Return X'X for each person."""
    return np.asarray(rows.transpose(0, 2, 1) @ rows)


def _inverse(matrices: Float) -> tuple[Float, Float]:
    """Return the inverses of matrices, and half the logarithms of their determinants."""
    factor = np.linalg.cholesky(matrices)
    half = np.log(np.einsum("bii->bi", factor)).sum(axis=1)
    return np.asarray(np.linalg.inv(matrices), dtype=np.float64), np.asarray(half)
