"""Components of a person's weights: the levels, each with its penalty.

A ranker is a list of components. Each owns one *part* (an array), adds it to everybody's
weights, and defines its penalty. A new component is one class with the methods of `Component`
(two of them come with `PerUser`); solvers ask for nothing else.

In the paper's symbols (Yang, Xu, Cao and Huang, AAAI 2019): `Consensus` is theta with
lambda1, `Group` is G with lambda2 and kappa, `Personal` is P with lambda3.
"""

from likeminds.components.component import Component, PerUser, total_weights
from likeminds.components.group import Group
from likeminds.components.group_norms import Personal, SharedFeatures, Sparse
from likeminds.components.k_means_relaxation import Clustered
from likeminds.components.low_rank import CappedLowRank, LowRank
from likeminds.components.ridges import Consensus, MeanRegularised
from likeminds.components.singular import top_directions

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
    "top_directions",
    "total_weights",
]
