"""The learned prior with all that new users' posteriors need."""

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
    """The prior of users without labels, with the coordinates and likelihood it goes with."""

    # The coordinates of items, and the likelihood of labels.
    design: Design = field(metadata={"stored": "coordinates"})
    prior: GaussianPrior  # the distribution of users' weights
    likelihood: Likelihood
    # The same, with the uncertainty of its own parameters; both are around what goes with
    # users' covariates.
    inflated: GaussianPrior | None = field(default=None, metadata={"stored": "wider"})
    covariate_effects: CovariateEffects | None = field(default=None, metadata={"stored": "traits"})
    # Posteriors of the items' effects and factors, where several users labelled an item.
    items: ItemPosteriors | None = None
    # (p,): 1 or -1 for weights whose sign is known, and that may be zero, else 0: see
    # `mixed_model.extensions.sign_constraints`.
    signs: Float | None = None
    # The distribution of logarithms, where some weights are log-normal; ``prior`` and ``wider``
    # then have the moments of weights.
    log_normal: LogNormalPrior | None = field(default=None, metadata={"stored": "logs"})

    @property
    def predictive(self) -> GaussianPrior:
        """The prior with the uncertainty of its own parameters, where that is known.

        Like `all users`, it is that of users whose covariates are not known.
        """
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
        """The normal distribution that users are drawn from: of logarithms, where there are."""
        return self.prior if self.log_normal is None else self.log_normal.prior

    @property
    def marginal(self) -> GaussianPrior:
        """The prior of users whose covariates are not known."""
        if self.covariate_effects is None:
            return self.prior
        return self.prior.widened(self.covariate_effects.covariance)

    def shifts(self, covariates: Covariates | None, users: IdArray) -> Float | None:
        """Return how far users' means are from that of all, by their covariates."""
        if self.covariate_effects is None:
            return None
        return self.covariate_effects.shifts(covariates, users)

    def variance_reduction(self, shifts: Float | None, n_users: int) -> Float:
        """Return what covariates tell of users: matrices K, (n_users, m, p), as in `Posterior`.

        ``shifts`` are those of `shifts`: zero for users of whom nothing is known.
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
        """Return the effect of a covariate on the weights of features.

        By each of its categories; by a standard deviation more where it is a number (None).
        """
        if self.covariate_effects is None:
            return []
        told = self.covariate_effects.examples(name)
        return [(kind, self.design.weights(added[None])[0]) for kind, added in told]

    def of_single_labels(self, positive_share: float) -> "FittedPrior":
        """Return the crowd for labels of single items, where it was learned from choices.

        A choice says nothing about the odds of liking the average item. They are one more
        coordinate, near those of the labels in training.
        """
        odds = float(np.log(positive_share / (1.0 - positive_share)))
        at = self.design.size
        # How far users' log-odds of liking the average item may be from the crowd's.
        return replace(
            self,
            design=replace(self.design, intercept=True),
            prior=self.prior.with_coordinate(odds, 2.0, at),
            inflated=self._own.with_coordinate(odds, 2.0, at),
            likelihood=LogisticLikelihood(),
            signs=None if self.signs is None else np.append(self.signs, 0.0),
            log_normal=None
            if self.log_normal is None
            else self.log_normal.with_coordinate(odds, 2.0),
        )
