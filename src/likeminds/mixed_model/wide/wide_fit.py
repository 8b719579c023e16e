"""Fit the prior to wide features: the consensus first, then leading directions.

Omega is s^2 I plus a few leading directions. The consensus and each direction have a ridge penalty
of their own, by maximum marginal likelihood. The number of directions is chosen by the loss of
held-out users (`model_selection.is_lower`). The result is kept in a few coordinates: the consensus,
the leading directions, and the directions in which items differ most.
"""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._util.array_types import Bool, Float, FloatArray
from likeminds._util.map_reduce import one_blas_thread
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design, leading_directions
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.marginal_likelihood import LOW_RANK, MarginalLikelihood, PriorModel
from likeminds.mixed_model.model_selection import FEWEST_USERS, grow_while_lower
from likeminds.mixed_model.numerics import LEAST_KNOWN
from likeminds.mixed_model.optimisers import (
    EXACTER,
    ROUGH,
    PriorFit,
    descend,
    first_guess,
    first_model,
)
from likeminds.mixed_model.responses import Responses
from likeminds.mixed_model.wide.kernel_rows import KernelRows
from likeminds.mixed_model.wide.wide_marginal_likelihood import (
    RowMatrices,
    RowMoments,
    WideMarginalLikelihood,
)
from likeminds.solvers.solver import Callback


@dataclass(frozen=True)
class InformationSpectrum:
    """Eigenvalues of a positive semi-definite matrix: a few that stand for all."""

    # (m,): eigenvalues, and how many each stands for.
    values: Float
    counts: Float

    @classmethod
    def of(cls, matrix: RowMatrices, n_features: int) -> "InformationSpectrum":
        """Find the spectrum of a matrix of features x features that is only applied.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> diagonal = SimpleNamespace(times=lambda v: np.arange(1.0, 5.0)[:, None] * v)
        >>> spectrum = InformationSpectrum.of(diagonal, 4)
        >>> float(round(spectrum.well_known(1.0), 6))    # 1/2 + 2/3 + 3/4 + 4/5
        2.716667
        """
        # Random vectors, and products with each. Sums over d eigenvalues are then within a few per
        # cent of 1 / sqrt(d); fewer features than that many vectors are all asked.
        if n_features <= 8:
            start = np.eye(n_features)
        else:
            rng = np.random.default_rng(0)
            start = rng.choice([-1.0, 1.0], size=(n_features, 8))
            start /= np.sqrt(n_features)
        diagonals, beside = _lanczos(matrix, start)
        each = n_features / start.shape[1]
        values, counts = [], []
        for own, next_to in zip(diagonals.T, beside.T, strict=True):
            found, vectors = np.linalg.eigh(
                np.diag(own) + np.diag(next_to, 1) + np.diag(next_to, -1)
            )
            values.append(np.maximum(found, 0.0))
            counts.append(each * vectors[0] ** 2)
        return cls(np.concatenate(values), np.concatenate(counts))

    def times(self, share: float) -> "InformationSpectrum":
        """Return the spectrum of a share of the information."""
        return InformationSpectrum(share * self.values, self.counts)

    def well_known(self, ridge: float) -> float:
        """Return how many directions are known."""
        return float(self.counts @ (self.values / (self.values + max(ridge, 1e-300))))

    def ridge(self, ridge: float, squares: float) -> float:
        """Return the next ridge, given the last one and the squared length of what it holds."""
        return max(self.well_known(ridge), LEAST_KNOWN) / max(squares, LEAST_KNOWN**2)


def _lanczos(matrix: RowMatrices, start: Float) -> tuple[Float, Float]:
    """Return the tridiagonal matrices of Lanczos' method, one for each column of a start.

    Vectors are made orthogonal to all earlier ones, lest an eigenvalue be counted twice.
    """
    n_features, n_vectors = start.shape
    n_steps = min(16, n_features)
    basis = np.zeros((n_steps, n_features, n_vectors))
    diagonals, beside = np.zeros((n_steps, n_vectors)), np.zeros((n_steps, n_vectors))
    vector = start
    for step in range(n_steps):
        basis[step] = vector
        product = matrix.times(vector)
        diagonals[step] = np.einsum("dv,dv->v", product, vector)
        for _ in range(2):
            earlier = np.einsum("sdv,dv->sv", basis[: step + 1], product)
            product -= np.einsum("sdv,sv->dv", basis[: step + 1], earlier)
        beside[step] = np.linalg.norm(product, axis=0)
        lasts = beside[step] > 1e-10 * np.maximum(np.abs(diagonals[0]), 1e-300)
        beside[step] *= lasts
        vector = np.where(lasts, product / np.where(lasts, beside[step], 1.0), 0.0)
    return diagonals, beside[:-1]


def lowest(matrix: RowMatrices, n_features: int, n: int) -> tuple[Float, Float]:
    """Return the least eigenvalues and their eigenvectors, shape (d, n), by block Krylov steps."""
    # Directions looked at beyond those asked for, and products with all of them.
    n_tried = min(n + 6, n_features)
    start = np.random.default_rng(0).standard_normal((n_features, n_tried))
    blocks = [np.linalg.qr(start)[0]]
    for _ in range(3):
        if len(blocks) * n_tried < n_features:
            blocks.append(np.linalg.qr(matrix.times(blocks[-1]))[0])
    basis = np.linalg.qr(np.hstack(blocks)[:, :n_features])[0]
    values, vectors = np.linalg.eigh(basis.T @ matrix.times(basis))
    return values[:n], basis @ vectors[:, :n]


def first_directions(model: PriorModel, found: RowMoments, n: int) -> Float:
    """Return directions B, shape (d, n), along which more variance would help most.

    The gradient by the variance along a direction, over the information about it, is a step of
    scoring: see `mixed_model.optimisers`.
    """
    values, vectors = lowest(found.missing, len(model.prior.mean) - _n_other(found), n)
    known = np.einsum("dn,dn->n", vectors, found.told.times(vectors)) / found.n_users
    variance = np.maximum(-values, 0.0) / found.n_users / np.maximum(known, 1e-300) ** 2
    return np.asarray(vectors * np.sqrt(variance))


def _n_other(found: RowMoments) -> int:
    return len(found.by_variance) - 1


# Coordinates that are kept.
KEPT = 128


def few_coordinates(learned: PriorFit, rows: KernelRows, coordinates: Design) -> Design:
    """Return coordinates that hold the mean, the leading directions, and most of the items."""
    # Items that say which they are, at most.
    every = max(1, len(rows.table) // 4096)
    items = rows.table[::every]
    n_weights = coordinates.n_weights
    if n_weights <= KEPT:
        return replace(coordinates, spread=_covariance(items))
    prior = learned.model.prior
    along = np.column_stack([prior.mean, prior.loadings * prior.residual[:, None]])[:n_weights]
    basis = np.linalg.qr(np.hstack([along, leading_directions(items, KEPT)]))[0][:, :KEPT]
    inside = np.asarray(items @ basis.astype(items.dtype), dtype=np.float64)
    beyond = (np.vdot(items, items) - np.vdot(inside, inside)) / len(items)
    # Whatever is left of items beyond the basis counts, were it only rounding.
    least = np.finfo(np.float64).tiny
    return replace(
        coordinates, basis=basis, spread=_covariance(inside), beyond=max(float(beyond), least)
    )


def in_few(learned: PriorFit, wide: Design, few: Design) -> PriorFit:
    """Return what was learned, in a few coordinates."""
    if few.basis is None:
        return replace(learned, warm_starts=WarmStarts())
    model = learned.model
    prior, n_weights = model.prior, wide.n_weights
    B = prior.loadings * prior.residual[:, None]
    mean = np.append(few.basis.T @ prior.mean[:n_weights], prior.mean[n_weights:])
    residual = np.append(np.full(few.n_weights, prior.residual[0]), prior.residual[n_weights:])
    directions = np.vstack([few.basis.T @ B[:n_weights], B[n_weights:]])
    narrow = GaussianPrior(
        mean, directions / residual[:, None], residual, beyond=float(prior.residual[0]) ** 2
    )
    return replace(
        learned, model=replace(model, prior=narrow, centre=0.0), warm_starts=WarmStarts()
    )


def with_doubt(
    learned: PriorFit, tasks: Responses, few: Design, spectrum: InformationSpectrum, n_weights: int
) -> PriorFit:
    """Add how unsure the mean is: along the coordinates, and on average beyond them."""
    model: PriorModel = learned.model
    unit = first_guess(few.size, few.n_weights)
    objective = MarginalLikelihood(tasks, few.n_weights, model, unit, structure=learned.structure)
    with one_blas_thread():
        unsure = objective.covariance_of_mean(model, objective.e_step(model))
    n_beyond = n_weights - few.n_weights
    total = float(spectrum.counts @ (1.0 / (spectrum.values + model.ridge)))
    inside = float(unsure.diagonal()[: few.n_weights].sum())
    beyond = max(total - inside, 0.0) / n_beyond if n_beyond else 0.0
    return replace(
        learned,
        mean_covariance=unsure,
        mean_variance_beyond=beyond,
        warm_starts=objective.warm_starts,
    )


def _covariance(items: FloatArray) -> Float:
    centred = np.asarray(items - items.mean(axis=0), dtype=np.float64)
    return np.asarray(centred.T @ centred / len(centred))


@dataclass(frozen=True)
class FittedWideModel:
    """A model with the ridges that suit it, and what was found on the way."""

    objective: WideMarginalLikelihood
    found: RowMoments
    spectrum: InformationSpectrum

    @property
    def model(self) -> PriorModel:
        """The model."""
        return self.objective.model


def learn_wide(
    rows: KernelRows,
    n_weights: int,
    size: int,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    centre: Float | float = 0.0,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, InformationSpectrum]:
    """Learn the prior; parameters are those of `mixed_model.fit_prior.learn`."""
    model = first_model(size, n_weights, likelihood, centre)
    model = replace(model, ridge=float(n_weights))
    unit = model.prior.residual
    start = WideMarginalLikelihood(rows, n_weights, model, unit, structure=LOW_RANK)
    at = settle(start)
    criterion: list[float] = []
    if n_groups is None:
        n_groups, criterion = count_directions(at)
    if n_groups:
        at = settle(with_directions(at, n_groups), at.spectrum)
    exact = replace(at.objective, mode_tol=min(at.objective.mode_tol, EXACTER * tol))
    found = descend(exact, tol=tol, max_iter=max_iter, callback=callback)
    found = replace(found, n_groups=n_groups, criterion=criterion, structure=LOW_RANK)
    return found, at.spectrum


def learn_in_rows(
    loss: PriorLoss,
    annotations: Annotations,
    coordinates: Design,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    centre: Float | float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, Responses, Design]:
    """Learn the prior; return it, and each user's labels, in a few coordinates."""
    rows = KernelRows.of_annotations(annotations, loss, coordinates)
    learned, spectrum = learn_wide(
        rows,
        coordinates.n_weights,
        coordinates.size,
        n_groups,
        likelihood=likelihood,
        centre=centre,
        tol=tol,
        max_iter=max_iter,
        callback=callback,
    )
    few = few_coordinates(learned, rows, coordinates)
    tasks = loss.tasks(annotations, few)
    learned = in_few(learned, coordinates, few)
    return with_doubt(learned, tasks, few, spectrum, coordinates.n_weights), tasks, few


def settle(
    objective: WideMarginalLikelihood,
    spectrum: InformationSpectrum | None = None,
    n_rounds: int = 4,
) -> FittedWideModel:
    """Learn a model roughly, with its ridges.

    The spectrum of the information hardly changes from round to round: it is found once.
    """
    # Rounds in which ridges are learned, and steps in each.
    for _ in range(n_rounds):
        model = descend(objective, tol=ROUGH, max_iter=20).model
        objective = replace(objective, model=model)
        found = objective.look(model)
        if spectrum is None:
            spectrum = InformationSpectrum.of(found.told, objective.n_weights)
        new = _with_ridges(objective, found, spectrum)
        moved = np.abs(np.log(_ridges(new) / _ridges(objective))).max()
        objective = new
        # Ridges that move by less than this share are learned.
        if moved < 0.05:
            break
    assert spectrum is not None
    return FittedWideModel(objective, found, spectrum)


def _ridges(objective: WideMarginalLikelihood) -> Float:
    return np.append(objective.ridges, objective.model.ridge)


def _with_ridges(
    objective: WideMarginalLikelihood, found: RowMoments, spectrum: InformationSpectrum
) -> WideMarginalLikelihood:
    model = objective.model
    away = objective.mean_deviation(model)
    ridge = spectrum.ridge(model.ridge, float(away @ away))
    B = objective.directions(model)[: objective.n_weights]
    # Labels tell the less of a direction, the less is known of where users are along it.
    known = np.einsum("dk,dk->k", B, found.told.times(B)) / found.n_users if B.size else ()
    ridges = [
        spectrum.times(float(share)).ridge(last, float(b @ b))
        for last, b, share in zip(objective.ridges, B.T, known, strict=True)
    ]
    return replace(objective, model=replace(model, ridge=ridge), ridges=np.array(ridges))


def with_directions(at: FittedWideModel, n: int) -> WideMarginalLikelihood:
    """Return the objective with so many directions more, at a good start."""
    objective, model = at.objective, at.model
    prior = model.prior
    B = np.zeros((len(prior.mean), n))
    B[: objective.n_weights] = first_directions(model, at.found, n)
    prior = replace(prior, loadings=B / prior.residual[:, None])
    ridges = np.full(n, model.ridge)
    warm_starts = objective.warm_starts.copy()
    return replace(
        objective, model=replace(model, prior=prior), ridges=ridges, warm_starts=warm_starts
    )


def count_directions(at: FittedWideModel) -> tuple[int, list[float]]:
    """Choose the number of directions by two-fold cross-validation; return it and all losses."""
    rows = at.objective.rows
    if rows.n_users < FEWEST_USERS:
        return 0, []
    # At random: the order of users may go with their tastes.
    place = np.random.default_rng(0).permutation(rows.n_users)
    # Users of both folds, at most.
    most = min(600, rows.n_users)
    one, other = place < most // 2, (place >= most // 2) & (place < most)
    folds = [_WideFold.of(at, *halves) for halves in ((one, other), (other, one))]

    def losses_of(n: int) -> Float:
        return np.concatenate([fold.cost(n) for fold in folds])

    # Numbers of directions tried, as long as each lowers the held-out loss by two standard errors.
    tried = [n for n in (0, 1, 2, 4, 8) if n <= at.objective.n_weights]
    return grow_while_lower(tried, losses_of, n_errors=2.0)


@dataclass(frozen=True)
class _WideFold:
    """A fit to one fold of users, and the objective of the held-out fold."""

    at: FittedWideModel
    other: WideMarginalLikelihood

    @classmethod
    def of(cls, at: FittedWideModel, one: Bool, other: Bool) -> "_WideFold":
        own = _only(at.objective, one)
        spectrum = at.spectrum.times(own.rows.n_users / at.found.n_users)
        return cls(settle(own, spectrum, 1), _only(at.objective, other))

    def cost(self, n: int) -> Float:
        """Return the held-out losses by user, with this many directions."""
        if not n:
            return self.other.look(self.at.model).objectives
        own = settle(with_directions(self.at, n), self.at.spectrum, 2)
        return self.other.look(own.model).objectives


def _only(objective: WideMarginalLikelihood, chosen: Bool) -> WideMarginalLikelihood:
    rows = objective.rows.of_users(chosen)
    return replace(objective, tasks=rows, warm_starts=WarmStarts())
