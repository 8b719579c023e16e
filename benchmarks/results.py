"""What a benchmark returns: tables and goals as plain data, which JSON can hold."""

from typing import Any, TypedDict


class Goal(TypedDict):
    """Something we want, and what was measured; ``met`` is None where it was not judged."""

    what: str
    bound: float
    direction: str
    measured: float | None
    met: bool | None


class Table(TypedDict):
    """Column titles, and rows of words and numbers (None where there is no number)."""

    columns: list[str]
    rows: list[list[Any]]


class Result(TypedDict):
    """One benchmark's results; ``series`` is what the picture is drawn from."""

    title: str
    compares: str
    tables: list[Table]
    goals: list[Goal]
    notes: list[str]
    series: dict[str, Any]


def at_most(what: str, bound: float, measured: float | None, *, judge: bool) -> Goal:
    """Return the goal that a number is small; tiny sizes are not judged."""
    met = measured is not None and measured <= bound if judge else None
    return Goal(what=what, bound=bound, direction="at most", measured=measured, met=met)


def at_least(what: str, bound: float, measured: float | None, *, judge: bool) -> Goal:
    """Return the goal that a number is large; tiny sizes are not judged."""
    met = measured is not None and measured >= bound if judge else None
    return Goal(what=what, bound=bound, direction="at least", measured=measured, met=met)
