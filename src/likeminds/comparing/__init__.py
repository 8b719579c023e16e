"""Compare rankers on the same splits of your own data."""
