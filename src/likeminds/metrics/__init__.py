"""Ranking metrics by user, and tests of paired differences."""

from likeminds.metrics.by_user import auc_by_user, mean_auc, ndcg_at_k, precision_at_k
from likeminds.metrics.choices import ChoiceScores, score_choices
from likeminds.metrics.concordance import concordance_by_user, kendall_tau_by_user, mean_concordance
from likeminds.metrics.inter_annotator_agreement import Agreement, agreement
from likeminds.metrics.soft_labels import (
    absolute_distance_by_user,
    cross_entropy,
    error_rate_by_user,
    manhattan_distance,
    soft_labels,
    wasserstein_distance,
)

__all__ = [
    "Agreement",
    "ChoiceScores",
    "absolute_distance_by_user",
    "agreement",
    "auc_by_user",
    "concordance_by_user",
    "cross_entropy",
    "error_rate_by_user",
    "kendall_tau_by_user",
    "manhattan_distance",
    "mean_auc",
    "mean_concordance",
    "ndcg_at_k",
    "precision_at_k",
    "score_choices",
    "soft_labels",
    "wasserstein_distance",
]
