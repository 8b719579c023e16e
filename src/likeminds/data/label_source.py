"""Labels that are not one table in memory: in files, on a cluster, in another engine."""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

R_contra = TypeVar("R_contra", contravariant=True)
P_co = TypeVar("P_co", covariant=True)


class LabelSource(ABC, Generic[R_contra, P_co]):
    """Labels that rankers are fitted to and scored on in place of `Annotations`.

    The base of `AnnotationFolder`, `cluster.Shards` and `cluster.spark.SparkRows`, for rankers of
    one type, whose posteriors are of another.
    """

    @abstractmethod
    def fit_ranker(self, ranker: R_contra) -> None:
        """Fit a ranker, whose parameters were checked: ``ranker.fit(source)``."""

    @abstractmethod
    def score(self, ranker: R_contra) -> float:
        """Return the mean over users of the AUC of their rows: ``ranker.score(source)``."""

    @abstractmethod
    def newcomers(self, ranker: R_contra) -> P_co:
        """Return the posteriors of these users, as of new users: ``ranker.newcomer(source)``."""
