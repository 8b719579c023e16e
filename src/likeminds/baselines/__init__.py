"""Baselines: those of the paper, and simpler ones (in `likeminds.rankers.baselines`)."""

from likeminds.rankers.baselines import (
    CMTL,
    COMT,
    JFL,
    RAMU,
    RMTFL,
    RMTL,
    ConsensusOnly,
    Factorisation,
    LassoMTL,
    LogisticPerUser,
    OnePerUser,
    PooledLogistic,
    Popularity,
    PopularityWithFeatures,
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
