"""Fit the prior to wide features: the consensus first, then leading directions.

Omega is s^2 I plus a few leading directions. The consensus and each direction have their own ridge
penalties, by maximum marginal likelihood. The loss of held-out users chooses the number of
directions (`model_selection.is_lower`). The result has a few coordinates: the consensus, the
leading directions, and the directions in which items differ most.
"""

from dataclasses import dataclass, replace

import numpy as np
from scipy.linalg import eigh_tridiagonal

from likeminds._util.array_types import Float, FloatArray
from likeminds._util.map_reduce import one_blas_thread
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.design import Design, leading_directions
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.likelihoods import Likelihood
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.marginal_likelihood import LEAST_KNOWN, LOW_RANK, MarginalLikelihood
from likeminds.mixed_model.model_selection import FEWEST_USERS, is_lower, only_users
from likeminds.mixed_model.optimisers import (
    EXACTER,
    ROUGH,
    PriorFit,
    descend,
    first_guess,
    first_model,
)
from likeminds.mixed_model.responses import Responses
from likeminds.mixed_model.wide_marginal_likelihood import (
    KernelRows,
    RowMoments,
    RowSpaceMatrix,
    WideMarginalLikelihood,
)
from likeminds.solvers.solver import Callback

# Coordinates of the fitted prior.
N_COORDINATES = 128


@dataclass(frozen=True)
class InformationSpectrum:
    """A quadrature of the eigenvalues of a positive semi-definite matrix (Lanczos)."""

    # (m,): eigenvalues, and the number that each represents.
    values: Float
    counts: Float

    @classmethod
    def of(cls, matrix: RowSpaceMatrix, n_features: int) -> "InformationSpectrum":
        """Estimate the spectrum of a matrix of features x features from its products with vectors.

        Examples
        --------
        >>> from types import SimpleNamespace
        >>> diagonal = SimpleNamespace(times=lambda v: np.arange(1.0, 5.0)[:, None] * v)
        >>> spectrum = InformationSpectrum.of(diagonal, 4)
        >>> float(round(spectrum.degrees_of_freedom(1.0), 6))    # 1/2 + 2/3 + 3/4 + 4/5
        2.716667
        """
        # With random vectors, the relative error of sums over eigenvalues falls with 1 / sqrt(d).
        if n_features <= 8:
            start = np.eye(n_features)
        else:
            rng = np.random.default_rng(0)
            start = rng.choice([-1.0, 1.0], size=(n_features, 8))
            start /= np.sqrt(n_features)
        each = n_features / start.shape[1]
        values, counts = [], []
        for diagonal, above in zip(*_lanczos(matrix, start), strict=True):
            found, vectors = eigh_tridiagonal(diagonal, above)
            values.append(np.maximum(found, 0.0))
            counts.append(each * vectors[0] ** 2)
        return cls(np.concatenate(values), np.concatenate(counts))

    def times(self, share: float) -> "InformationSpectrum":
        """Return the spectrum of a share of the information."""
        return InformationSpectrum(share * self.values, self.counts)

    def degrees_of_freedom(self, ridge: float) -> float:
        """Return the effective number of parameters under a ridge penalty."""
        return float(self.counts @ (self.values / (self.values + max(ridge, 1e-300))))

    def next_ridge(self, ridge: float, squares: float) -> float:
        """Return MacKay's update of a ridge, given the squared length of its parameters."""
        return max(self.degrees_of_freedom(ridge), LEAST_KNOWN) / max(squares, LEAST_KNOWN**2)


def _lanczos(matrix: RowSpaceMatrix, start: Float) -> tuple[Float, Float]:
    """Return the tridiagonal matrices of Lanczos' method, one for each column of a start."""
    n_features, n_vectors = start.shape
    n_steps = min(16, n_features)
    basis = np.zeros((n_steps, n_features, n_vectors))
    diagonals, off_diagonal = np.zeros((2, n_steps, n_vectors))
    vector = start
    for step in range(n_steps):
        basis[step] = vector
        product = matrix.times(vector)
        diagonals[step] = np.einsum("dv,dv->v", product, vector)
        for _ in range(2):  # orthogonal to all earlier ones, so eigenvalues are counted once
            earlier = np.einsum("sdv,dv->sv", basis[: step + 1], product)
            product -= np.einsum("sdv,sv->dv", basis[: step + 1], earlier)
        off_diagonal[step] = np.linalg.norm(product, axis=0)
        lasts = off_diagonal[step] > 1e-10 * np.maximum(np.abs(diagonals[0]), 1e-300)
        off_diagonal[step] *= lasts
        vector = np.where(lasts, product / np.where(lasts, off_diagonal[step], 1.0), 0.0)
    return diagonals.T, off_diagonal[:-1].T


def lowest_eigenvectors(matrix: RowSpaceMatrix, n_features: int, n: int) -> tuple[Float, Float]:
    """Return the least eigenvalues and their eigenvectors, shape (d, n), by block Krylov steps."""
    # More directions than needed, and three products with all of them.
    n_tried = min(n + 6, n_features)
    start = np.random.default_rng(0).standard_normal((n_features, n_tried))
    blocks = [np.linalg.qr(start)[0]]
    for _ in range(3):
        if len(blocks) * n_tried < n_features:
            blocks.append(np.linalg.qr(matrix.times(blocks[-1]))[0])
    basis = np.linalg.qr(np.hstack(blocks)[:, :n_features])[0]
    values, vectors = np.linalg.eigh(basis.T @ matrix.times(basis))
    return values[:n], basis @ vectors[:, :n]


@dataclass(frozen=True)
class FittedWideModel:
    """A rough fit: the objective at its model, the moments there, and the information."""

    objective: WideMarginalLikelihood
    moments: RowMoments
    spectrum: InformationSpectrum


def learn_wide(
    loss: PriorLoss,
    annotations: Annotations,
    design: Design,
    n_groups: int | None,
    *,
    likelihood: Likelihood,
    centre: Float | float,
    tol: float,
    max_iter: int,
    callback: Callback | None = None,
) -> tuple[PriorFit, Responses, Design]:
    """Fit the prior in the space of rows; return it, and the labels, in a few coordinates."""
    rows, n_weights = KernelRows.of_annotations(annotations, loss, design), design.n_weights
    model = first_model(design.size, n_weights, likelihood, centre)
    model = replace(model, ridge=float(n_weights))
    unit = model.prior.residual
    start = WideMarginalLikelihood(rows, n_weights, model, unit, structure=LOW_RANK)
    at = fit_with_ridges(start)
    criterion: list[float] = []
    if n_groups is None:
        n_groups, criterion = choose_n_directions(at)
    if n_groups:
        at = fit_with_ridges(with_directions(at, n_groups), at.spectrum)
    exact = replace(at.objective, mode_tol=min(at.objective.mode_tol, EXACTER * tol))
    found = descend(exact, tol=tol, max_iter=max_iter, callback=callback)
    found = replace(found, n_groups=n_groups, criterion=criterion, structure=LOW_RANK)
    few = reduced_design(design, found.model.prior, rows)
    responses = loss.responses(annotations, few)
    found = _projected(found, few, n_weights)
    return _with_mean_covariance(found, responses, few, at.spectrum, n_weights), responses, few


def fit_with_ridges(
    objective: WideMarginalLikelihood,
    spectrum: InformationSpectrum | None = None,
    n_rounds: int = 4,
) -> FittedWideModel:
    """Fit a model roughly, in alternation with its ridges.

    The spectrum of the information hardly changes from round to round: it is found once.
    """
    for _ in range(n_rounds):
        model = descend(objective, tol=ROUGH, max_iter=20).model
        moments = objective.row_moments(model)
        if spectrum is None:
            spectrum = InformationSpectrum.of(moments.information, objective.n_weights)
        new = _with_ridges(replace(objective, model=model), moments, spectrum)
        change = np.append(new.ridges, new.model.ridge) / np.append(objective.ridges, model.ridge)
        objective = new
        # Ridges that change by less than this share have converged.
        if np.abs(np.log(change)).max() < 0.05:
            break
    assert spectrum is not None
    return FittedWideModel(objective, moments, spectrum)


def _with_ridges(
    objective: WideMarginalLikelihood, moments: RowMoments, spectrum: InformationSpectrum
) -> WideMarginalLikelihood:
    """Return the objective with updated ridges of the consensus and the directions."""
    model = objective.model
    away = objective.mean_deviation(model)
    ridge = spectrum.next_ridge(model.ridge, float(away @ away))
    B = model.prior.scaled_loadings[: objective.n_weights]
    # Directions along which labels say little about users have less information.
    ridges = [
        spectrum.times(float(share)).next_ridge(last, float(b @ b))
        for last, b, share in zip(objective.ridges, B.T, _known_along(moments, B), strict=True)
    ]
    return replace(objective, model=replace(model, ridge=ridge), ridges=np.array(ridges))


def _known_along(moments: RowMoments, directions: Float) -> Float:
    """Return the mean information of a user about weights along directions, (d, k): (k,)."""
    if not directions.size:
        return np.zeros(0)
    products = moments.information.times(directions)
    return np.asarray(np.einsum("dk,dk->k", directions, products) / moments.n_users)


def with_directions(at: FittedWideModel, n: int) -> WideMarginalLikelihood:
    """Return the objective with so many directions, at a good start.

    The directions are those in which J falls most with their variance. Their variances are a step
    of scoring, the gradient over the information: see `optimisers`.
    """
    objective, model, n_weights = at.objective, at.objective.model, at.objective.n_weights
    values, vectors = lowest_eigenvectors(at.moments.by_covariance, n_weights, n)
    known = np.maximum(_known_along(at.moments, vectors), 1e-300)
    variance = np.maximum(-values, 0.0) / at.moments.n_users / known**2
    B = np.zeros((len(model.prior.mean), n))
    B[:n_weights] = vectors * np.sqrt(variance)
    prior = replace(model.prior, loadings=B / model.prior.residual[:, None])
    return replace(
        objective,
        model=replace(model, prior=prior),
        ridges=np.full(n, model.ridge),
        warm_starts=objective.warm_starts.copy(),
    )


def choose_n_directions(at: FittedWideModel) -> tuple[int, list[float]]:
    """Choose the number of directions by two-fold cross-validation; return it and all losses."""
    n_users = at.objective.rows.n_users
    if n_users < FEWEST_USERS:
        return 0, []
    # At random, as the order of users may depend on their tastes.
    place = np.random.default_rng(0).permutation(n_users)
    # Users of both folds, at most.
    most = min(600, n_users)
    halves = [
        only_users(at.objective, half)
        for half in (place < most // 2, (place >= most // 2) & (place < most))
    ]
    folds = [
        (fit_with_ridges(one, at.spectrum.times(one.rows.n_users / n_users), 1), other)
        for one, other in (
            halves,
            [replace(half, warm_starts=WarmStarts()) for half in halves[::-1]],
        )
    ]

    def losses_of(n: int) -> Float:
        losses = []
        for fitted, held_out in folds:
            own = fit_with_ridges(with_directions(fitted, n), fitted.spectrum, 2) if n else fitted
            losses.append(held_out.row_moments(own.objective.model).losses)
        return np.concatenate(losses)

    # Numbers of directions tried, as long as each lowers the held-out loss by two standard errors.
    best, lowest = 0, losses_of(0)
    totals = [float(lowest.sum())]
    for n in (1, 2, 4, 8):
        if n > at.objective.n_weights:
            break
        losses = losses_of(n)
        totals.append(float(losses.sum()))
        if not is_lower(losses, lowest, n_errors=2.0):
            break
        best, lowest = n, losses
    return best, totals


def reduced_design(design: Design, prior: GaussianPrior, rows: KernelRows) -> Design:
    """Return coordinates that hold the mean, the leading directions, and most of the items."""
    # At most 8191 items determine the directions.
    items = rows.table[:: max(1, len(rows.table) // 4096)]
    if design.n_weights <= N_COORDINATES:
        return replace(design, spread=_covariance(items))
    along = np.column_stack([prior.mean, prior.scaled_loadings])[: design.n_weights]
    directions = np.hstack([along, leading_directions(items, N_COORDINATES)])
    basis = np.linalg.qr(directions)[0][:, :N_COORDINATES]
    inside = np.asarray(items @ basis.astype(items.dtype), dtype=np.float64)
    beyond = (np.vdot(items, items) - np.vdot(inside, inside)) / len(items)
    # Products beyond the basis are computed even if they are rounding errors.
    least = np.finfo(np.float64).tiny
    return replace(
        design, basis=basis, spread=_covariance(inside), beyond=max(float(beyond), least)
    )


def _covariance(items: FloatArray) -> Float:
    centred = np.asarray(items - items.mean(axis=0), dtype=np.float64)
    return np.asarray(centred.T @ centred / len(centred))


def _projected(found: PriorFit, few: Design, n_weights: int) -> PriorFit:
    """Return a fit with ``n_weights`` weights in the coordinates of a reduced design."""
    found = replace(found, warm_starts=WarmStarts())
    if few.basis is None:
        return found
    prior, turn = found.model.prior, few.basis.T
    B, variance = prior.scaled_loadings, float(prior.residual[0]) ** 2
    mean = np.append(turn @ prior.mean[:n_weights], prior.mean[n_weights:])
    residual = np.append(np.full(few.n_weights, prior.residual[0]), prior.residual[n_weights:])
    loadings = np.vstack([turn @ B[:n_weights], B[n_weights:]]) / residual[:, None]
    narrow = GaussianPrior(mean, loadings, residual, beyond=variance)
    return replace(found, model=replace(found.model, prior=narrow, centre=0.0))


def _with_mean_covariance(
    found: PriorFit,
    responses: Responses,
    few: Design,
    spectrum: InformationSpectrum,
    n_weights: int,
) -> PriorFit:
    """Add the posterior covariance of the mean: along the coordinates, and beyond them."""
    model, unit = found.model, first_guess(few.size, few.n_weights)
    objective = MarginalLikelihood(responses, few.n_weights, model, unit, structure=LOW_RANK)
    with one_blas_thread():
        covariance = objective.covariance_of_mean(model, objective.e_step(model))
    n_beyond = n_weights - few.n_weights
    total = float(spectrum.counts @ (1.0 / (spectrum.values + model.ridge)))
    inside = float(covariance.diagonal()[: few.n_weights].sum())
    return replace(
        found,
        mean_covariance=covariance,
        mean_variance_beyond=max(total - inside, 0.0) / n_beyond if n_beyond else 0.0,
        warm_starts=objective.warm_starts,
    )
