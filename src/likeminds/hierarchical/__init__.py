"""A learned prior over people: the ranker with nothing to tune, and what it is sure of."""

from likeminds.hierarchical.beliefs import Beliefs
from likeminds.hierarchical.ranker import HierarchicalRanker

__all__ = ["Beliefs", "HierarchicalRanker"]
