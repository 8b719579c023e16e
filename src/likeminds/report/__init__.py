"""One page about a model: who wants what, who thinks alike, and how far to trust it."""

from likeminds.report.builder import write_report

__all__ = ["write_report"]
