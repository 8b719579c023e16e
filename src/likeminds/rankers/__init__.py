"""Rankers: estimators that learn a ranking function for each user."""
