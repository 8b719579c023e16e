"""Rankers side by side on one's own data."""
