"""How well scores rank what each person likes, and what a difference is worth."""

from likeminds.metrics.by_person import auc_by_person, mean_auc, ndcg_at_k, precision_at_k

__all__ = ["auc_by_person", "mean_auc", "ndcg_at_k", "precision_at_k"]
