"""How rankers enter a trial: on principal components or not, searching or settled."""

from collections.abc import Mapping
from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from likeminds._util.array_types import Float
from likeminds.data.annotations import Annotations
from likeminds.features.reduction import Reduce
from likeminds.rankers.registry import NamedRankers
from likeminds.rankers.tuning.search import RankerCV


class ComparedRanker(BaseEstimator):  # type: ignore[misc]
    """A ranker exactly as it is: `compare` would search for penalties of those that are given.

    Parameters
    ----------
    ranker : ranker
        Any that takes annotations.
    share : float, optional
        The share of the variance that the principal components keep, which are those of the
        training items; by default the ranker sees the features themselves.
    """

    def __init__(self, ranker: Any, share: float | None = None) -> None:
        self.ranker = ranker
        self.share = share

    def fit(self, annotations: Annotations) -> Self:
        """Find the components of the labelled items, and fit the ranker to them."""
        if self.share is not None:
            self.reduce_ = Reduce(self.share).fit(annotations)
        self.ranker_ = clone(self.ranker).fit(self._seen(annotations))
        # What tells the choice of a search, and that somebody interrupted the fit.
        for name in {"best_params_", "solution_"} & set(vars(self.ranker_)):
            setattr(self, name, getattr(self.ranker_, name))
        return self

    def decision_function(self, annotations: Annotations) -> Float:
        """Score the rows of annotations with the features that `fit` saw."""
        scores: Float = self.ranker_.decision_function(self._seen(annotations))
        return scores

    @property
    def searches(self) -> bool:
        """Whether it looks for its penalties itself."""
        return isinstance(self.ranker, RankerCV)

    def settle(self, parameters: Mapping[str, Any]) -> "ComparedRanker":
        """Return what a search would fit with these parameters."""
        ranker = self.ranker.with_parameters(parameters) if self.searches else self.ranker
        return ComparedRanker(ranker, self.share)

    def _seen(self, annotations: Annotations) -> Annotations:
        if self.share is None:
            return annotations
        reduced: Annotations = self.reduce_.transform(annotations)
        return reduced


def as_compared(named: NamedRankers, share: float | None = None) -> dict[str, ComparedRanker]:
    """Return all of them as rankers."""
    return {name: ComparedRanker(ranker, share) for name, ranker in named.items()}
