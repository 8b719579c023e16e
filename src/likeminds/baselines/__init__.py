"""Rankers to hold the others against, with the same verbs."""

from likeminds.baselines.clustered import CMTL, COMT
from likeminds.baselines.logistic import LogisticPerPerson, PooledLogistic
from likeminds.baselines.low_rank import RAMU, RMTL
from likeminds.baselines.popularity import Popularity
from likeminds.baselines.ridge import ConsensusOnly, OnePerPerson, RidgeToConsensus
from likeminds.baselines.sparse import JFL, RMTFL, LassoMTL

__all__ = [
    "CMTL",
    "COMT",
    "JFL",
    "RAMU",
    "RMTFL",
    "RMTL",
    "ConsensusOnly",
    "LassoMTL",
    "LogisticPerPerson",
    "OnePerPerson",
    "PooledLogistic",
    "Popularity",
    "RidgeToConsensus",
]
