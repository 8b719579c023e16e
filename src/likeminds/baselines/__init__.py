"""Baselines: those of the paper, and simpler ones (in `likeminds.rankers.baselines`)."""

from likeminds.rankers.baselines import *  # noqa: F403
from likeminds.rankers.baselines import __all__ as __all__
