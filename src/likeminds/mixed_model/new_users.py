"""People who come after the prior was learned: their labels meet it, and nothing is fitted anew."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.laplace_moments import WarmStarts
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.own_item_labels import Answered
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.user_posteriors import posterior_of


@dataclass(frozen=True)
class NewUserPosteriors:
    """Newcomers to a ranker with a learned prior.

    Attributes
    ----------
    crowd : FittedPrior
        The prior of newcomers' weights.
    loss : PriorLoss
        The loss of newcomers' labels.
    positive_share : float
        The share of positive labels in training.
    rank : int
        How many directions of the posterior covariance are kept.
    """

    crowd: FittedPrior
    loss: PriorLoss
    positive_share: float
    rank: int

    def fold_in(self, said: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return everybody's mode and matrix K; see `Posterior`."""
        said, crowd = self.loss.prepare_new_users(said, self.crowd)
        tasks, crowd = self.loss.of_newcomers(said, crowd, self.positive_share)
        shifts = crowd.shifts(said.people, said.user_ids)
        points, known = posterior_of(
            tasks, said.n_people, crowd, pulls=WarmStarts(), rank=self.rank, shifts=shifts
        )
        # Coordinates that only newcomers have served their purpose: scores need none of them.
        size = len(self.crowd.prior.mean)
        return points[:, :size], known[:, :, :size]

    def answered(self, said: Annotations, beliefs: Posterior) -> Answered | None:
        """Return the residuals of labelled items, where items are known by their ids."""
        if self.crowd.items is None or not said.has_items:
            return None
        said, crowd = self.loss.prepare_new_users(said, self.crowd)
        people = said.user_codes
        eta, _ = beliefs.from_zero(beliefs.see(said.X, said.items), people)
        likelihood: Any = crowd.likelihood
        utility = likelihood.utility(eta, said.outcomes, people)
        return Answered(people, said.items, utility - eta)
