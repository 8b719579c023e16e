"""Hostile inputs, drawn from a seed, and a count of how the library takes them."""
