"""One report, twice: Markdown with pictures beside it, and one HTML file with all inside."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from markupsafe import Markup, escape

from likeminds._util.atomic_files import write_whole
from likeminds.report.page import (
    Block,
    PagePicture,
    Paragraph,
    ReportTable,
    Section,
    inlined,
    page,
)


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


@dataclass(frozen=True)
class Report:
    """What is written down.

    Attributes
    ----------
    title : str
        The heading.
    lead : str
        The paragraph that a busy person can stop after.
    verdicts : ReportTable or None
        What holds of the paper's claims, and what does not.
    parts : sequence of ReportPart
        Tables and figures.
    commands : mapping from key of a part to str
        What makes it again.
    made_on : ReportTable
        Versions, machine, seeds, times.
    """

    title: str
    lead: str
    verdicts: ReportTable | None
    parts: Sequence[ReportPart]
    commands: Mapping[str, str]
    made_on: ReportTable

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``, its pictures, and ``name.html``; return the two pages."""
        pictures = [
            piece
            for part in self.parts
            for piece in part.pieces
            if isinstance(piece, ReportPicture)
        ]
        for picture in pictures:
            write_whole(folder / f"{picture.name}.png", picture.png)
        pages = {folder / f"{name}.md": self.to_markdown(), folder / f"{name}.html": self.to_html()}
        for path, content in pages.items():
            write_whole(path, content.encode())
        return list(pages)

    def to_markdown(self) -> str:
        """Return the report in Markdown; pictures are files beside it."""
        lines = [f"# {self.title}", self.lead]
        if self.verdicts is not None:
            lines += ["## What holds, what does not", *_table_markdown(self.verdicts)]
        for part in self.parts:
            lines += [f"## {part.title}", f"**{part.found}**"]
            for piece in part.pieces:
                lines += _markdown(piece)
            lines.append(f"Made by `{self.commands[part.key]}`.")
        lines += ["## How it was made", *_table_markdown(self.made_on)]
        return "\n\n".join(lines) + "\n"

    def to_html(self) -> str:
        """Return the report as one HTML page that needs no other file."""
        sections = [
            Section(
                part.title,
                [
                    Paragraph(_inline(part.found), strong=True),
                    *(block for piece in part.pieces for block in _html(piece)),
                    Paragraph(_inline(f"Made by `{self.commands[part.key]}`"), "note"),
                ],
                anchor=part.key,
            )
            for part in self.parts
        ]
        if self.verdicts is not None:
            sections.insert(0, Section("What holds, what does not", _html(self.verdicts)))
        sections.append(Section("How it was made", _html(self.made_on)))
        return page(self.title, [Paragraph(_inline(self.lead), "lead")], sections)


def _markdown(piece: str | ReportTable | ReportPicture) -> list[str]:
    if isinstance(piece, ReportTable):
        return _table_markdown(piece)
    if isinstance(piece, ReportPicture):
        return [f"![{piece.caption}]({piece.name}.png)", piece.caption]
    return [piece]


def _table_markdown(shown: ReportTable) -> list[str]:
    rows = [shown.columns, ["---"] * len(shown.columns), *shown.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["\n".join(lines), *([shown.caption] if shown.caption else [])]


def _html(piece: str | ReportTable | ReportPicture) -> list[Block]:
    if isinstance(piece, ReportTable):
        rows = [[_inline(cell) for cell in row] for row in piece.rows]
        caption = [Paragraph(_inline(piece.caption), "note")] if piece.caption else []
        return [ReportTable([_inline(title) for title in piece.columns], rows), *caption]
    if isinstance(piece, ReportPicture):
        return [PagePicture(inlined(piece.png), piece.caption, _inline(piece.caption))]
    return [_inline(piece)]


def _inline(words: str) -> Markup:
    """Return text as HTML: escaped, with ``code`` and bold.

    Examples
    --------
    >>> print(_inline("a < b, **really**, in `code`"))
    a &lt; b, <strong>really</strong>, in <code>code</code>
    """
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(words)))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", safe))


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
