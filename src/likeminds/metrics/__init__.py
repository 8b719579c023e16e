"""Ranking metrics by person, and tests of paired differences."""

from likeminds.metrics.by_person import auc_by_person, mean_auc, ndcg_at_k, precision_at_k

__all__ = ["auc_by_person", "mean_auc", "ndcg_at_k", "precision_at_k"]
