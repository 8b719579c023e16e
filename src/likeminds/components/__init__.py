"""Components of a user's weights: the levels, each with its penalty.

A ranker is a list of components. Each has one *part* (an array), adds it to all users' weights, and
defines its penalty. A new component is a class with the methods of `Component`; `PerUser` defines
some of them.
"""

from likeminds.components.component import (
    Component,
    Consensus,
    Group,
    Personal,
    PerUser,
    Spectral,
    Staged,
    gradient_scale,
    objective,
    optimality_residual,
    top_directions,
    total_weights,
    zero_parts,
)
from likeminds.components.multi_task import (
    CappedLowRank,
    Clustered,
    LowRank,
    MeanRegularised,
    SharedFeatures,
    Sparse,
)

__all__ = [
    "CappedLowRank",
    "Clustered",
    "Component",
    "Consensus",
    "Group",
    "LowRank",
    "MeanRegularised",
    "PerUser",
    "Personal",
    "SharedFeatures",
    "Sparse",
    "Spectral",
    "Staged",
    "gradient_scale",
    "objective",
    "optimality_residual",
    "top_directions",
    "total_weights",
    "zero_parts",
]
