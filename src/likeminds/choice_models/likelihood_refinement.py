"""A learned prior taken to the maximum of the simulated likelihood, as the caller specifies it."""

from dataclasses import replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.threads import one_blas_thread
from likeminds.choice_models.importance_sampling import Coefficients, SimulationProblem
from likeminds.choice_models.simulated_likelihood import (
    Callback,
    LikelihoodSurface,
    maximise,
    surface_of,
)
from likeminds.choice_models.specification import Specification
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.optimisers import PriorFit
from likeminds.mixed_model.responses import Responses

# Where a mean starts that has the wrong sign, in standard deviations.
_NEAR_ZERO = 0.1
# Between what the variance of the logarithm of a weight starts.
_FIRST_VARIANCE = (0.05, 1.0)


def refine(
    specification: Specification,
    learned: PriorFit,
    tasks: Responses,
    coordinates: Design,
    *,
    shifts: Float | None,
    max_iter: int,
    callback: Callback | None = None,
) -> PriorFit:
    """Return the prior of the greatest simulated likelihood, from one that is near.

    After an interrupt it is the near one, in what is simulated.
    """
    if learned.interrupted and not specification.logs.any():
        return learned
    likelihood = learned.model.likelihood
    setting = specification.setting(tasks, likelihood, coordinates, shifts)
    specification.refuse_unidentified(tasks, likelihood, coordinates)
    start = _start(setting, learned.model.prior)
    kind, n_groups, n_draws = learned.shape.kind, learned.n_groups, specification.n_draws
    with one_blas_thread():
        found = maximise(
            setting,
            start,
            kind=kind,
            n_groups=n_groups,
            n_draws=n_draws,
            max_iter=0 if learned.interrupted else max_iter,
            callback=callback,
        )
        at = found.coefficients
        surface = surface_of(setting, at, kind, n_groups, n_draws)
        unsure = _covariance_of_mean(surface, setting)
    return replace(
        learned,
        model=replace(learned.model, prior=setting.prior(at)),
        trace=[-value for value in found.trace],
        converged=found.converged,
        interrupted=learned.interrupted or found.interrupted,
        pulls=WarmStarts(),
        unsure=unsure,
    )


def _start(setting: SimulationProblem, prior: GaussianPrior) -> Coefficients:
    """Return the coefficients in a prior, their means on the right side of zero.

    Log-normal weights get the mean that they had, and much the same variance.
    """
    at = setting.coefficients(prior)
    deviation = np.sqrt(at.covariance.diagonal())
    signs = setting.signs + setting.logs
    mean = np.where(signs * at.mean < 0, signs * _NEAR_ZERO * deviation, at.mean)
    if not setting.logs.any():
        return replace(at, mean=mean)
    is_log = setting.logs != 0
    size = np.where(is_log, np.maximum(np.abs(mean), _NEAR_ZERO * deviation), 1.0)
    variance = np.clip(np.log1p((deviation / size) ** 2), *_FIRST_VARIANCE)
    factor = np.where(is_log, setting.logs * np.sqrt(variance) / deviation, 1.0)
    mean = np.where(is_log, np.log(size) - 0.5 * variance, mean)
    return replace(at, mean=mean, covariance=at.covariance * np.outer(factor, factor))


def _covariance_of_mean(surface: LikelihoodSurface, setting: SimulationProblem) -> Float:
    """Return the covariance of the means and of the weights that do not vary, given Omega."""
    at = surface.at
    unit = np.concatenate([np.sqrt(at.covariance.diagonal()), np.ones(len(at.fixed))])
    inner = np.linalg.pinv(surface.information(len(unit)), hermitian=True)
    places = np.concatenate([setting.varies, setting.constant])
    covariance = np.zeros((len(places), len(places)))
    covariance[np.ix_(places, places)] = inner * np.outer(unit, unit)
    return covariance
