"""A page about a model: preferences of users, schools, accuracy, and annotators."""

from likeminds.report.builder import write_report

__all__ = ["write_report"]
