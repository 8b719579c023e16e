"""Plots of models and experiments, drawn with matplotlib."""

from likeminds.plots.experiments import boxplot, cocluster_recovery, learning_curves, personal_path
from likeminds.plots.fitting import auc_by_user, convergence, cv_surface, reliability
from likeminds.plots.user_cards import user_card
from likeminds.plots.user_maps import heatmap, item_shares, leaderboards, people_map

__all__ = [
    "auc_by_user",
    "boxplot",
    "cocluster_recovery",
    "convergence",
    "cv_surface",
    "heatmap",
    "item_shares",
    "leaderboards",
    "learning_curves",
    "people_map",
    "personal_path",
    "reliability",
    "user_card",
]
