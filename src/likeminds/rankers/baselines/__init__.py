"""Baselines: simpler rankers, with the same methods, to compare with."""

from likeminds.rankers.baselines.factorisation import Factorisation
from likeminds.rankers.baselines.multitask import CMTL, COMT, JFL, RAMU, RMTFL, RMTL, LassoMTL
from likeminds.rankers.baselines.popularity import Popularity, PopularityWithFeatures
from likeminds.rankers.baselines.regressions import (
    ConsensusOnly,
    LogisticPerUser,
    OnePerUser,
    PooledLogistic,
    RidgeToConsensus,
)

__all__ = [
    "CMTL",
    "COMT",
    "JFL",
    "RAMU",
    "RMTFL",
    "RMTL",
    "ConsensusOnly",
    "Factorisation",
    "LassoMTL",
    "LogisticPerUser",
    "OnePerUser",
    "PooledLogistic",
    "Popularity",
    "PopularityWithFeatures",
    "RidgeToConsensus",
]
