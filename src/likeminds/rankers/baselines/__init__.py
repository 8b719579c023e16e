"""Baselines: rankers to compare others with, with the same methods."""

from likeminds.rankers.baselines.factorisation import Factorisation
from likeminds.rankers.baselines.logistic import LogisticPerUser, PooledLogistic
from likeminds.rankers.baselines.multitask import CMTL, COMT, JFL, RAMU, RMTFL, RMTL, LassoMTL
from likeminds.rankers.baselines.popularity import Popularity
from likeminds.rankers.baselines.popularity_with_features import PopularityWithFeatures
from likeminds.rankers.baselines.ridge import ConsensusOnly, OnePerUser, RidgeToConsensus

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
