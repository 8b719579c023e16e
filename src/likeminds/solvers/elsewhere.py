"""People who are not in this process: what a ranker and its solver ask of where they are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from likeminds._support.arrays import Float, IdArray
from likeminds.losses.quadratic import Loss, LossOfPeople
from likeminds.losses.statistics import StatisticsOfPeople
from likeminds.solvers.decomposing import Decomposed


class LossElsewhere(LossOfPeople):
    """The loss of people who are not in this process."""

    @abstractmethod
    def decompose(self, memory: int) -> Decomposed:
        """Return their eigenvectors, which stay with them: as many as fit into ``memory``."""


@dataclass(frozen=True)
class StatisticsElsewhere(StatisticsOfPeople, ABC):
    """Statistics that stay where they are, of which only what is here is known here."""

    user_ids: IdArray
    origin: Float
    class_weight: Float

    @abstractmethod
    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""

    @abstractmethod
    def loss(self, kind: Loss, scale: Float) -> LossElsewhere:
        """Return the loss of everybody's weights, with features in these units."""
