"""What a person's labels are weighed against."""

from dataclasses import dataclass

from likeminds.hierarchical.coordinates import Coordinates
from likeminds.hierarchical.likelihoods import Likelihood
from likeminds.hierarchical.prior import Prior


@dataclass(frozen=True)
class Crowd:
    """What is known about people before they say anything.

    Attributes
    ----------
    coordinates, likelihood
        How items are seen, and what labels say.
    prior : Prior
        What people are like.
    predictive : Prior
        The same, with what is not known about the prior itself.
    """

    coordinates: Coordinates
    prior: Prior
    likelihood: Likelihood
    predictive: Prior
