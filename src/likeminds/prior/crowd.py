"""What a person's labels are weighed against."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds._support.arrays import Float, IdArray
from likeminds.data.covariates import Covariates
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.items import Items
from likeminds.prior.likelihoods import Likelihood, Logistic
from likeminds.prior.prior import Prior
from likeminds.prior.traits import Traits

# How far people's log-odds of liking the average item may be from the crowd's.
_INTERCEPT_SPREAD = 2.0


@dataclass(frozen=True)
class Crowd:
    """What is known about people before they say anything.

    Attributes
    ----------
    coordinates, likelihood
        How items are seen, and what labels say.
    prior : Prior
        What people are like.
    wider : Prior, optional
        The same, with what is not known about the prior itself.
    traits : Traits, optional
        What covariates of people go with.
    items : Items, optional
        What is believed about items beyond their features, where they were seen by several.
    """

    coordinates: Coordinates
    prior: Prior
    likelihood: Likelihood
    wider: Prior | None = None
    traits: Traits | None = None
    items: Items | None = None

    @property
    def predictive(self) -> Prior:
        """What people are like, as far as it is known."""
        return self.prior if self.wider is None else self.wider

    @property
    def everybody(self) -> Prior:
        """What people are like of whom nothing is known, not even their covariates."""
        if self.traits is None:
            return self.prior
        whole = self.prior.covariance + self.traits.covariance
        return Prior.of_covariance(self.prior.mean, whole)

    def shifts(self, covariates: Covariates | None, people: IdArray) -> Float | None:
        """Return how far people's means are from that of all, by their covariates."""
        if self.traits is None:
            return None
        shifts = self.traits.shifts(covariates, people)
        more = len(self.prior.mean) - shifts.shape[1]  # coordinates that only newcomers have
        return np.pad(shifts, ((0, 0), (0, more)))

    def weights_by(self, name: str) -> list[tuple[str | None, Float]]:
        """Return what is added to the weights of features by a covariate.

        By each of its categories; by a standard deviation more where it is a number (None).
        """
        if self.traits is None:
            return []
        told = self.traits.examples(name)
        return [(kind, self.coordinates.weights(added[None])[0]) for kind, added in told]

    def of_single_labels(self, positive_share: float) -> "Crowd":
        """Return the crowd as labels of single items see it, where it was taught by choices.

        A choice says nothing about the odds of liking the average item. They are one more
        coordinate, near those of the labels that the crowd was taught with.
        """
        odds = float(np.log(positive_share / (1.0 - positive_share)))
        return replace(
            self,
            coordinates=replace(self.coordinates, intercept=True),
            prior=self.prior.with_coordinate(odds, _INTERCEPT_SPREAD),
            wider=self.predictive.with_coordinate(odds, _INTERCEPT_SPREAD),
            likelihood=Logistic(),
        )
