"""Ranking metrics by person, and tests of paired differences."""

from likeminds.metrics.by_person import auc_by_person, mean_auc, ndcg_at_k, precision_at_k
from likeminds.metrics.choices import ChoiceScores, score_choices
from likeminds.metrics.concordance import (
    concordance_by_person,
    kendall_tau_by_person,
    mean_concordance,
)

__all__ = [
    "ChoiceScores",
    "auc_by_person",
    "concordance_by_person",
    "kendall_tau_by_person",
    "mean_auc",
    "mean_concordance",
    "ndcg_at_k",
    "precision_at_k",
    "score_choices",
]
