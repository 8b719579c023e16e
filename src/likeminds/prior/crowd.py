"""What a person's labels are weighed against."""

from dataclasses import dataclass, replace

import numpy as np

from likeminds.prior.coordinates import Coordinates
from likeminds.prior.likelihoods import Likelihood, Logistic
from likeminds.prior.prior import Prior

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
    """

    coordinates: Coordinates
    prior: Prior
    likelihood: Likelihood
    wider: Prior | None = None

    @property
    def predictive(self) -> Prior:
        """What people are like, as far as it is known."""
        return self.prior if self.wider is None else self.wider

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
