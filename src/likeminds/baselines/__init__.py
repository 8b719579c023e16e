"""Rankers to hold the others against, with the same verbs."""

from likeminds.baselines.logistic import LogisticPerPerson, PooledLogistic
from likeminds.baselines.popularity import Popularity
from likeminds.baselines.ridge import ConsensusOnly, OnePerPerson, RidgeToConsensus

__all__ = [
    "ConsensusOnly",
    "LogisticPerPerson",
    "OnePerPerson",
    "PooledLogistic",
    "Popularity",
    "RidgeToConsensus",
]
