"""Compare rankers on the same splits of one's own data."""
