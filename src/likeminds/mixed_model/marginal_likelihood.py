"""The objective of the prior's parameters: minus the log marginal likelihood; its gradient.

    J(mean, B, s, v) = sum_i [loss_i + |z_i|^2 / 2 + log |S_i^-1| / 2]
                       + ridge/2 |theta|^2 + (priors of B, s and v)

at the modes z_i, where theta is the mean without its intercept and B = D F are the leading
directions. The moments are those of `laplace.Moments`. The gradient of J by Omega is ``1/2 L^-T (U
I - second) L^-1``, and the gradient by the mean is ``-L^-T first``. So the stationary points of J
are the fixed points of the EM algorithm that matches these moments. A quasi-Newton method needs far
fewer passes over the users.
"""

from dataclasses import dataclass, field, replace

import numpy as np

from likeminds._util.array_types import Float
from likeminds.mixed_model.gaussian_prior import GaussianPrior, MeanShifts
from likeminds.mixed_model.laplace import (
    EStepParams,
    Moments,
    WarmStarts,
    losses_by_user,
    sum_moments,
)
from likeminds.mixed_model.likelihoods import GaussianLikelihood, Likelihood
from likeminds.mixed_model.responses import Responses

# Standard deviations have priors, in units of the first guess, with which scores differ by about
# one. OFF_ZERO: residuals have a gamma prior of shape 1 + OFF_ZERO. The likelihood is so flat near
# zero that its maximum often lies there, with intervals too narrow. The prior moves it off zero by
# about one standard error (Chung et al. 2013 take a shape of 2; 3 gives intervals of ranks their
# nominal coverage). FAR is the scale of all these priors. It only matters if labels can be
# separated perfectly, so the likelihood has no maximum.
FAR = 10.0
OFF_ZERO = 2.0
# The least reliability of a direction: without it, steps that divide by the information would be
# too long.
LEAST_KNOWN = 1e-3


@dataclass(frozen=True)
class CovarianceStructure:
    """The form of Omega, and the pseudo-users who shrink it: see `optimisers`."""

    # "diagonal"; "low_rank": a few directions and a residual; "none": users do not weigh features.
    kind: str = "full"
    pseudo: float = 0.1  # pseudo-users who shrink Omega, as a share of the users
    own: bool = False  # whether they have Omega's own variances, not one for all weights
    # The variance of their factor weights, so weak factors do not vanish; None is Omega's own.
    factor_variance: float | None = None

    @property
    def has_directions(self) -> bool:
        """Whether Omega is a few directions and a residual."""
        return self.kind == "low_rank"


FULL = CovarianceStructure()
DIAGONAL = CovarianceStructure("diagonal", own=True)
LOW_RANK = CovarianceStructure("low_rank")
NO_WEIGHTS = CovarianceStructure("none")


@dataclass(frozen=True)
class PriorModel:
    """A prior, the likelihood of labels, and the ridge penalty of the consensus."""

    prior: GaussianPrior
    likelihood: Likelihood
    ridge: float  # the consensus is N(centre, I / ridge)
    centre: Float | float = 0.0  # (n_weights,)


@dataclass(frozen=True)
class MarginalLikelihood:
    """J per user as a function of one vector, whose entries are of about the same size."""

    responses: Responses
    n_weights: int  # the number of coordinates that are weights; one more is the intercept
    model: PriorModel  # the start, which gives the vector its layout
    unit: Float  # (p,): the units of the mean and the leading directions
    warm_starts: WarmStarts = field(default_factory=WarmStarts)
    mode_tol: float = 1e-3  # the tolerance of `laplace.find_mode`
    structure: CovarianceStructure = FULL
    shifts: MeanShifts | None = None  # of users' means, by their covariates: `covariate_effects`
    user_weight: float = 1.0  # the number of users that each represents: see `fit_prior`
    approximate: bool = False  # see `laplace.find_mode`

    @property
    def n_users(self) -> float:
        """The number of users, times their weight."""
        return self.user_weight * self.responses.n_users

    @property
    def start(self) -> Float:
        """The vector of the model."""
        prior, likelihood = self.model.prior, self.model.likelihood
        directions = prior.loadings * (prior.residual / self.unit)[:, None]
        residual = self._one_each(prior.residual)
        precision = [likelihood.precision] if isinstance(likelihood, GaussianLikelihood) else []
        logs = np.log([*residual, *precision])
        return np.concatenate([prior.mean / self.unit, directions.ravel(), logs])

    @property
    def n_logs(self) -> int:
        """The number of entries, the last ones, that are logarithms."""
        return len(self.start) - len(self.unit) * (1 + self.model.prior.rank)

    def model_at(self, vector: Float) -> PriorModel:
        """Return the model that a vector encodes."""
        size, rank = len(self.unit), self.model.prior.rank
        mean, directions, logs = np.split(vector, [size, size + size * rank])
        residual = np.full(size, np.exp(logs[0]))
        residual[self.n_weights :] = np.exp(logs[1 : 1 + size - self.n_weights])
        likelihood = self.model.likelihood
        if isinstance(likelihood, GaussianLikelihood):
            likelihood = GaussianLikelihood(float(np.exp(logs[-1])))
        loadings = directions.reshape(size, rank) * (self.unit / residual)[:, None]
        prior = GaussianPrior(mean * self.unit, loadings, residual)
        return replace(self.model, prior=prior, likelihood=likelihood)

    def e_step(self, model: PriorModel) -> Moments:
        """Return the moments of the users' posteriors (Laplace approximation)."""
        moments = sum_moments(self.responses, self.e_step_params(model), self.warm_starts)
        return moments if self.user_weight == 1.0 else moments.times(self.user_weight)

    def losses(self, model: PriorModel) -> Float:
        """Return minus the log marginal likelihood alone, by user."""
        params = self.e_step_params(model)
        return self.user_weight * losses_by_user(self.responses, params, self.warm_starts)

    def e_step_params(self, model: PriorModel) -> EStepParams:
        """Return the parameters of an E step."""
        prior = model.prior.shifted(self.shifts)
        return EStepParams(prior, model.likelihood, self.mode_tol, self.approximate)

    @property
    def n_factors(self) -> int:
        """The number of coordinates, the last ones, that are weights of item factors."""
        return 0

    @property
    def n_free(self) -> int:
        """The number of coordinates with a mean: all but the weights of item factors."""
        return len(self.unit) - self.n_factors

    def item_penalty(self, moments: Moments) -> float:  # noqa: ARG002
        """Return the items' part of J: see `item_effects.em_steps.ItemMarginalLikelihood`."""
        return 0.0

    def value(self, model: PriorModel, moments: Moments) -> float:
        """Return J, not divided by the number of users."""
        return float(self.value_at(model, moments.objective) + self.item_penalty(moments))

    def value_at(self, model: PriorModel, objective: float) -> float:
        """Return J without the items' part, given minus the log marginal likelihood."""
        far = model.prior.residual / self.unit / FAR
        directions = model.prior.loadings * far[:, None]
        own = self._one_each(far - OFF_ZERO * np.log(model.prior.residual))
        penalty = self.ridge_penalty(model)
        return float(objective + penalty + own.sum() + 0.5 * (directions**2).sum())

    def mean_deviation(self, model: PriorModel) -> Float:
        """Return the consensus minus its prior mean."""
        return np.asarray(model.prior.mean[: self.n_weights] - model.centre)

    def ridge_penalty(self, model: PriorModel) -> float:
        """Return the ridge penalty of the consensus."""
        deviation = self.mean_deviation(model)
        return 0.5 * model.ridge * float(deviation @ deviation)

    def _one_each(self, numbers: Float) -> Float:
        """Return the entry that all weights share, and the intercept's if there is one."""
        return np.array([numbers[0], *numbers[self.n_weights :]])

    def __call__(self, vector: Float) -> tuple[float, Float]:
        """Return J per user, and its gradient."""
        model = self.model_at(vector)
        moments = self.e_step(model)
        value, gradient = self.value(model, moments), self.gradient(model, moments)
        return value / moments.n_users, gradient / moments.n_users

    def gradient(self, model: PriorModel, moments: Moments) -> Float:
        """Return the gradient of J by the vector, not divided by the number of users."""
        prior = model.prior
        # Twice the gradient by Omega in the basis of L; then D times that by Omega times D.
        deficit = moments.n_users * np.eye(len(moments.first)) - moments.second
        inner = 0.5 * prior.inverse_middle @ deficit @ prior.inverse_middle
        by_directions = 2.0 * (inner @ prior.loadings) / prior.residual[:, None]
        by_residual = 2.0 * inner.diagonal()
        logs = np.array([by_residual[: self.n_weights].sum(), *by_residual[self.n_weights :]])
        by_mean = -prior.inverse_root.T @ moments.first
        found = self.penalised_gradient(model, by_mean, by_directions, logs)
        if isinstance(model.likelihood, GaussianLikelihood):
            found = np.append(found, slope_by_log_precision(moments, model.likelihood))
        return found

    def penalised_gradient(
        self, model: PriorModel, by_mean: Float, by_directions: Float, by_logs: Float
    ) -> Float:
        """Return the gradient of J, given that of the loss by mean, B and log residuals."""
        mean, unit = by_mean.copy(), self.unit[:, None]
        mean[: self.n_weights] += model.ridge * self.mean_deviation(model)
        mean[self.n_free :] = 0.0
        directions = by_directions * unit + model.prior.scaled_loadings / unit / FAR**2
        logs = by_logs + self._one_each(model.prior.residual / self.unit / FAR - OFF_ZERO)
        return np.concatenate([mean * self.unit, directions.ravel(), logs])

    def covariance_of_mean(self, model: PriorModel, moments: Moments) -> Float:
        """Return the posterior covariance of the mean, shape (p, p), given all else.

        The consensus itself is N(0, I / ridge), and the information about the mean is
        L^-T (U I - sum of S_i) L^-1.
        """
        information, free = self.information_about_mean(model, moments), self.n_free
        covariance = np.zeros_like(information)
        values, axes = np.linalg.eigh(information[:free, :free])
        # A pseudo-inverse: eigenvalues below this share of the largest are rounding.
        positive = np.abs(values) > 1e-15 * np.abs(values).max(initial=0.0)
        covariance[:free, :free] = (axes[:, positive] / values[positive]) @ axes[:, positive].T
        return covariance

    def information_about_mean(self, model: PriorModel, moments: Moments) -> Float:
        """Return the information about the mean, shape (p, p)."""
        inverse, weights = model.prior.inverse_root, slice(0, self.n_weights)
        whitened = moments.n_users * np.eye(len(inverse)) - moments.covariance
        information = inverse.T @ whitened @ inverse
        information[weights, weights] += model.ridge * np.eye(self.n_weights)
        return np.asarray(information)

    def learn_ridge(self, model: PriorModel, moments: Moments) -> float:
        """Return the ridge that makes the consensus most likely (MacKay's fixed point)."""
        variances = self.covariance_of_mean(model, moments).diagonal()[: self.n_weights]
        degrees_of_freedom = self.n_weights - model.ridge * float(variances.sum())
        deviation = self.mean_deviation(model)
        return max(degrees_of_freedom, LEAST_KNOWN) / max(float(deviation @ deviation), LEAST_KNOWN)


def slope_by_log_precision(moments: Moments, likelihood: GaussianLikelihood) -> float:
    """Return the derivative of J by the logarithm of a regression's precision."""
    squares = 2.0 * moments.loss + moments.comparisons * np.log(likelihood.precision)
    explained = moments.n_users * len(moments.first) - np.trace(moments.covariance)
    return float(0.5 * (squares + explained - moments.comparisons))
