"""likeminds: rankings for people who disagree.

Many people label the same kind of items with an attribute, and disagree. likeminds learns
one ranking function per person, the sum of what the crowd agrees on (consensus), what a
school of thought wants differently (group), and what is a person's own (personal).
"""

from likeminds._version import __version__

__all__ = ["__version__"]
