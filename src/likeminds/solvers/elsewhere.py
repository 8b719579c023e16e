"""People who are not in this process: what a ranker and its solver ask of where they are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from likeminds._support.arrays import Bool, Float, IdArray
from likeminds.losses.quadratic import Loss, LossOfPeople
from likeminds.losses.rows import has_both_classes
from likeminds.solvers.decomposing import Decomposed


class LossElsewhere(LossOfPeople):
    """The loss of people who are not in this process."""

    @abstractmethod
    def decompose(self, memory: int) -> Decomposed:
        """Return their eigenvectors, which stay with them: as many as fit into ``memory``."""


@dataclass(frozen=True)
class StatisticsElsewhere(ABC):
    """Statistics that stay where they are, of which only what is here is known here.

    Attributes
    ----------
    user_ids : array of shape (n_people,)
        The ids of the people.
    origin : array of shape (n_features,)
        The point that means are measured from.
    class_weight : array of shape (n_people, 2)
        Number (or weight) of negatives and positives; or of each grade.
    """

    user_ids: IdArray
    origin: Float
    class_weight: Float

    @property
    def n_people(self) -> int:
        """How many people there are."""
        return len(self.user_ids)

    @property
    def n_features(self) -> int:
        """How many features an item has."""
        return len(self.origin)

    @property
    def has_pairs(self) -> Bool:
        """Who has labels of two kinds: the others have nothing to rank."""
        return has_both_classes(self.class_weight)

    @abstractmethod
    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""

    @abstractmethod
    def loss(self, kind: Loss, scale: Float) -> LossElsewhere:
        """Return the loss of everybody's weights, with features in these units."""
