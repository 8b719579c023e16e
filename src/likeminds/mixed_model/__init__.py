"""The mathematics of a learned prior over users."""
