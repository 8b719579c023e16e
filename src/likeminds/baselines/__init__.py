"""Rankers to hold the others against, with the same verbs."""

from likeminds.baselines.ridge import ConsensusOnly, OnePerPerson, RidgeToConsensus

__all__ = ["ConsensusOnly", "OnePerPerson", "RidgeToConsensus"]
