"""Diagnostics of annotators: agreeing, different, reversed, constant or random labels."""

from likeminds.diagnostics.annotators import diagnose
from likeminds.diagnostics.strata import auc_interval
from likeminds.diagnostics.verdicts import MEANINGS, UNUSUAL, VERDICTS, Diagnostics

__all__ = ["MEANINGS", "UNUSUAL", "VERDICTS", "Diagnostics", "auc_interval", "diagnose"]
