"""The experiments of the paper, repeated, and recovery of its simulation's structure.

Theorems are in `likeminds.theory`, Proposition 1 in `likeminds.laplacian`.
"""

from likeminds.datasets.recovery import CoClusterRecovery, cocluster_recovery
from likeminds.paper.experiments.command import reproduce
from likeminds.rankers.three_level_search import PersonalPath, personal_path

__all__ = [
    "CoClusterRecovery",
    "PersonalPath",
    "cocluster_recovery",
    "personal_path",
    "reproduce",
]
