"""Losses of everybody's weights, and the statistics they are made of."""
