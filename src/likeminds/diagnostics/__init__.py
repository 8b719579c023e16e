"""Annotators judged by their labels: who agrees, who differs, who answers at random."""

from likeminds.diagnostics.people import VERDICTS, Diagnostics, diagnose
from likeminds.diagnostics.strata import auc_interval

__all__ = ["VERDICTS", "Diagnostics", "auc_interval", "diagnose"]
