"""The fitted prior, with the design and likelihood that posteriors of new users need."""

from dataclasses import dataclass, field, replace

import numpy as np

from likeminds._util.array_types import Float, IdArray
from likeminds.data.covariates import Covariates
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.covariate_effects import CovariateEffects
from likeminds.mixed_model.extensions.sign_constraints import LogNormalPrior
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.item_posteriors import ItemPosteriors
from likeminds.mixed_model.likelihoods import Likelihood, LogisticLikelihood


@dataclass(frozen=True)
class FittedPrior:
    """The prior of users' weights, with its design and likelihood."""

    design: Design = field(metadata={"stored": "coordinates"})
    prior: GaussianPrior
    likelihood: Likelihood
    # The prior with the uncertainty of its parameters. Both are conditional on covariates.
    inflated: GaussianPrior | None = field(default=None, metadata={"stored": "wider"})
    covariate_effects: CovariateEffects | None = field(default=None, metadata={"stored": "traits"})
    items: ItemPosteriors | None = None
    # (p,): 1 or -1 for weights of that sign or zero, else 0: see `sign_constraints`.
    signs: Float | None = None
    # The prior of logarithms, if some weights are log-normal; ``prior`` and ``inflated`` then have
    # the moments of weights.
    log_normal: LogNormalPrior | None = field(default=None, metadata={"stored": "logs"})

    @property
    def predictive(self) -> GaussianPrior:
        """The prior of users without covariates, with the uncertainty of its parameters."""
        own = self._own
        return (
            own
            if self.covariate_effects is None
            else own.widened(self.covariate_effects.covariance)
        )

    @property
    def _own(self) -> GaussianPrior:
        return self.prior if self.inflated is None else self.inflated

    @property
    def simulated(self) -> GaussianPrior:
        """The normal prior that users are drawn from, of logarithms for log-normal weights."""
        return self.prior if self.log_normal is None else self.log_normal.prior

    @property
    def marginal(self) -> GaussianPrior:
        """The prior with covariates integrated out."""
        if self.covariate_effects is None:
            return self.prior
        return self.prior.widened(self.covariate_effects.covariance)

    def shifts(self, covariates: Covariates | None, users: IdArray) -> Float | None:
        """Return the shifts of users' means by their covariates."""
        if self.covariate_effects is None:
            return None
        shifts = self.covariate_effects.shifts(covariates, users)
        # In files of earlier versions, covariates have no effect on weights of factors.
        return np.pad(shifts, ((0, 0), (0, len(self.prior.mean) - shifts.shape[1])))

    def variance_reduction(self, shifts: Float | None, n_users: int) -> Float:
        """Return matrices K by covariates, (n_users, m, p), as in `Posterior`.

        ``shifts`` are those of `shifts`: zero for users without covariates.
        """
        size = len(self.prior.mean)
        if self.covariate_effects is None or shifts is None:
            return np.zeros((n_users, 0, size))
        is_known = np.any(shifts != 0.0, axis=1)
        return np.asarray(is_known[:, None, None] * self.covariate_effects.variance_reduction(size))

    def levels(self, points: Float, n_groups: int) -> tuple[Float, Float]:
        """Return deviations of users' weights from the consensus: of the group, and personal."""
        n_weights, prior = self.design.n_weights, self.marginal
        directions = prior.directions(n_groups, n_weights)
        deviation = points[:, :n_weights] - prior.mean[:n_weights]
        group = deviation @ directions @ directions.T
        return self.design.weights(group), self.design.weights(deviation - group)

    def weights_by(self, name: str) -> list[tuple[str | None, Float]]:
        """Return the effect of a covariate on the weights of features, then of item factors.

        By each of its categories; by a standard deviation more where it is a number (None).
        """
        if self.covariate_effects is None:
            return []
        effects = self.covariate_effects.examples(name)
        return [
            (kind, np.append(self.design.weights(added), added[self.design.size :]))
            for kind, added in effects
        ]

    @property
    def explained_by_covariates(self) -> dict[str, float]:
        """Each covariate's share of the variance of scores between users."""
        if self.covariate_effects is None:
            return {}
        covariance, n_weights = self.marginal.covariance, self.design.n_weights
        spread = np.zeros_like(covariance)
        own = self.design.spread
        spread[:n_weights, :n_weights] = np.eye(n_weights) if own is None else own
        if self.items is not None and self.items.n_factors:
            size = self.design.size
            spread[size:, size:] = np.cov(self.items.factors, rowvar=False, bias=True)
        return self.covariate_effects.explained(covariance, spread)

    def of_single_labels(self, positive_share: float) -> "FittedPrior":
        """Return a prior fitted to choices, extended to labels of single items.

        Choices do not identify the intercept. Its prior mean is that of the labels in training,
        its standard deviation 2.
        """
        odds = float(np.log(positive_share / (1.0 - positive_share)))
        at = self.design.size
        return replace(
            self,
            design=replace(self.design, intercept=True),
            prior=self.prior.with_coordinate(odds, 2.0, at),
            inflated=self._own.with_coordinate(odds, 2.0, at),
            likelihood=LogisticLikelihood(),
            covariate_effects=None
            if self.covariate_effects is None
            else self.covariate_effects.with_coordinate(at),
            signs=None if self.signs is None else np.append(self.signs, 0.0),
            log_normal=None
            if self.log_normal is None
            else self.log_normal.with_coordinate(odds, 2.0),
        )
