"""What a part of the report consists of: sentences, tables, pictures, and facts for the claims."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class ReportTable:
    """Words and numbers, already as they are to be read.

    Attributes
    ----------
    columns : sequence of str
        Titles.
    rows : sequence of sequences of str
        Cells; ``**`` around a text makes it bold.
    caption : str
        What it shows.
    """

    columns: Sequence[str]
    rows: Sequence[Sequence[str]]
    caption: str


@dataclass(frozen=True)
class ReportPicture:
    """A PNG file.

    Attributes
    ----------
    name : str
        Of the file, without ``.png``.
    png : bytes
        Its content.
    caption : str
        What it shows; also for those who do not see it.
    """

    name: str
    png: bytes
    caption: str


@dataclass(frozen=True)
class ReportPart:
    """One table or figure of the paper.

    Attributes
    ----------
    key : str
        What ``likeminds reproduce`` calls it.
    title : str
        Its heading.
    found : str
        What came out, in a sentence or two, composed of the results.
    pieces : sequence of str, ReportTable or ReportPicture
        What is shown, in order.
    facts : mapping
        Plain numbers and texts, for the claims and for programs.
    """

    key: str
    title: str
    found: str
    pieces: Sequence[str | ReportTable | ReportPicture]
    facts: Mapping[str, Any] = field(default_factory=dict)


def percent(value: float, digits: int = 2) -> str:
    """Return a share as a number of per cent, without the sign.

    Examples
    --------
    >>> percent(0.99654)
    '99.65'
    """
    return f"{100 * value:.{digits}f}"


def points(difference: float) -> str:
    """Return a difference of shares in points, with its sign.

    Examples
    --------
    >>> points(0.0123), points(-0.0001)
    ('+1.2', '+0.0')
    """
    return f"{round(100 * difference, 1) + 0.0:+.1f}"  # never -0.0


def plus_minus(mean: float, deviation: float) -> str:
    """Return a mean and its standard deviation, in per cent.

    Examples
    --------
    >>> plus_minus(0.99654, 0.0004), plus_minus(0.5, float("nan"))
    ('99.65 ± 0.04', '50.00')
    """
    spread = f" ± {percent(deviation)}" if deviation == deviation else ""  # noqa: PLR0124 - NaN
    return percent(mean) + spread
