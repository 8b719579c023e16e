"""Numerical constants that several modules of the mixed model share."""

# The share of a direction that counts as known, at least: without it, a step that divides by the
# information would be out of proportion.
LEAST_KNOWN = 1e-3
# Variances grow or shrink by at most exp(2) in a step of scoring.
LONGEST_LOG_STEP = 2.0
# Steps that do not lower J are shortened by this factor, and given up when they are this short.
SHORTER, SHORTEST = 0.4, 1e-3
# Variances less than this share of the largest are rounding.
LEAST_SHARE = 1e-10
# Curvatures and squares less than this are rounding.
ROUNDING = 1e-12
