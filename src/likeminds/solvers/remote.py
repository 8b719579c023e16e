"""People who are not in this process: what a ranker and its solver ask of where they are."""

from abc import ABC, abstractmethod
from dataclasses import dataclass

from likeminds._util.array_types import Float, IdArray
from likeminds.losses import Loss
from likeminds.losses.quadratic import AbstractQuadraticLoss
from likeminds.losses.statistics import AbstractStatistics
from likeminds.solvers.eigendecomposition import AbstractEigendecomposition


class RemoteLoss(AbstractQuadraticLoss):
    """The loss of people who are not in this process."""

    @abstractmethod
    def decompose(self, memory: int) -> AbstractEigendecomposition:
        """Return their eigenvectors, which stay with them: as many as fit into ``memory``."""


@dataclass(frozen=True)
class RemoteStatistics(AbstractStatistics, ABC):
    """Statistics that stay where they are, of which only what is here is known here."""

    user_ids: IdArray
    origin: Float
    class_weight: Float

    @abstractmethod
    def feature_scale(self) -> Float:
        """Return the standard deviation of each feature over all rows (1 if constant)."""

    @abstractmethod
    def loss(self, kind: Loss, scale: Float) -> RemoteLoss:
        """Return the loss of everybody's weights, with features in these units."""
