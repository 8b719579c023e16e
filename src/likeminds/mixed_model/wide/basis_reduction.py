"""What was learned from wide features, in a few coordinates: memory of people x few.

The coordinates are the consensus, the leading directions, and the directions in which items
differ most. A person's posterior along them is exact: what their rows have beyond them enters by
its inner products. Beyond them, people are what the prior says.
"""

from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Float, FloatArray
from likeminds._util.threads import one_blas_thread
from likeminds.mixed_model.blocks import Responses
from likeminds.mixed_model.design import Design, leading_directions
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.lbfgs import PriorFit, first_guess
from likeminds.mixed_model.marginal_likelihood import MarginalLikelihood, PriorModel
from likeminds.mixed_model.wide.kernel_rows import KernelRows
from likeminds.mixed_model.wide.spectrum import InformationSpectrum

# Coordinates that are kept.
KEPT = 128
# Items that say which they are, at most.
_ITEMS = 4096


def few_coordinates(learned: PriorFit, rows: KernelRows, coordinates: Design) -> Design:
    """Return coordinates that hold the mean, the leading directions, and most of the items."""
    every = max(1, len(rows.table) // _ITEMS)
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
        return replace(learned, pulls=WarmStarts())
    model = learned.model
    prior, n_weights = model.prior, wide.n_weights
    B = prior.loadings * prior.residual[:, None]
    mean = np.append(few.basis.T @ prior.mean[:n_weights], prior.mean[n_weights:])
    residual = np.append(np.full(few.n_weights, prior.residual[0]), prior.residual[n_weights:])
    directions = np.vstack([few.basis.T @ B[:n_weights], B[n_weights:]])
    narrow = GaussianPrior(
        mean, directions / residual[:, None], residual, beyond=float(prior.residual[0]) ** 2
    )
    return replace(learned, model=replace(model, prior=narrow, centre=0.0), pulls=WarmStarts())


def with_doubt(
    learned: PriorFit, tasks: Responses, few: Design, spectrum: InformationSpectrum, n_weights: int
) -> PriorFit:
    """Add how unsure the mean is: along the coordinates, and on average beyond them."""
    model: PriorModel = learned.model
    unit = first_guess(few.size, few.n_weights)
    objective = MarginalLikelihood(tasks, few.n_weights, model, unit, shape=learned.shape)
    with one_blas_thread():
        unsure = objective.covariance_of_mean(model, objective.visit(model))
    n_beyond = n_weights - few.n_weights
    total = float(spectrum.counts @ (1.0 / (spectrum.values + model.ridge)))
    inside = float(unsure.diagonal()[: few.n_weights].sum())
    beyond = max(total - inside, 0.0) / n_beyond if n_beyond else 0.0
    return replace(learned, unsure=unsure, unsure_beyond=beyond, pulls=objective.pulls)


def _covariance(items: FloatArray) -> Float:
    centred = np.asarray(items - items.mean(axis=0), dtype=np.float64)
    return np.asarray(centred.T @ centred / len(centred))
