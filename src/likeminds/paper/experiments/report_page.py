"""The report as Markdown with files of pictures, and as one HTML file."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from markupsafe import Markup, escape

from likeminds._util.atomic_files import write_whole
from likeminds.plots.figures import COLOURS, as_png, as_svg, draw_line, new_figure, set_title
from likeminds.report.page import Block, PagePicture, Paragraph, ReportTable, Section, inlined, page

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class ReportPicture:
    """A figure, written to ``name.png`` and ``name.svg``, and its caption and alternative text."""

    name: str
    figure: "Figure"
    caption: str

    @cached_property
    def png(self) -> bytes:
        """The content of the PNG file."""
        return as_png(self.figure)


Piece: TypeAlias = str | ReportTable | ReportPicture
# Plain numbers and texts, for the claims and for programs.
Facts: TypeAlias = Mapping[str, Any]


@dataclass(frozen=True)
class ReportPart:
    """One table or figure of the paper."""

    key: str  # what ``likeminds reproduce`` calls it
    title: str
    found: str  # the result, in a sentence or two
    pieces: Sequence[Piece]
    facts: Facts = field(default_factory=dict)


@dataclass(frozen=True)
class Report:
    """A summary, the verdicts on the paper's claims, the parts, and how they were made."""

    title: str
    lead: str
    verdicts: ReportTable | None
    parts: Sequence[ReportPart]
    commands: Mapping[str, str]  # that make each part again
    made_on: ReportTable  # versions, machine, seeds, times

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``, its pictures as PNG and SVG, and ``name.html``; return the pages."""
        for piece in (piece for part in self.parts for piece in part.pieces):
            if isinstance(piece, ReportPicture):
                write_whole(folder / f"{piece.name}.png", piece.png)
                write_whole(folder / f"{piece.name}.svg", as_svg(piece.figure))
        pages = {folder / f"{name}.md": self.to_markdown(), folder / f"{name}.html": self.to_html()}
        for path, content in pages.items():
            write_whole(path, content.encode())
        return list(pages)

    def to_markdown(self) -> str:
        """Return the report in Markdown; pictures are separate files."""
        lines = [f"# {self.title}", self.lead]
        if self.verdicts is not None:
            lines += ["## What holds, what does not", *_markdown(self.verdicts)]
        for part in self.parts:
            lines += [f"## {part.title}", f"**{part.found}**"]
            lines += [line for piece in part.pieces for line in _markdown(piece)]
            lines.append(f"Made by `{self.commands[part.key]}`.")
        lines += ["## How it was made", *_markdown(self.made_on)]
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


def _markdown(piece: Piece) -> list[str]:
    if isinstance(piece, ReportPicture):
        return [f"![{piece.caption}]({piece.name}.png)", piece.caption]
    if isinstance(piece, str):
        return [piece]
    rows = [piece.columns, ["---"] * len(piece.columns), *piece.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["\n".join(lines), *([piece.caption] if piece.caption else [])]


def _html(piece: Piece) -> list[Block]:
    if isinstance(piece, ReportPicture):
        return [PagePicture(inlined(piece.png), piece.caption, _inline(piece.caption))]
    if isinstance(piece, str):
        return [_inline(piece)]
    rows = [[_inline(cell) for cell in row] for row in piece.rows]
    caption = [Paragraph(_inline(piece.caption), "note")] if piece.caption else []
    return [ReportTable([_inline(title) for title in piece.columns], rows), *caption]


def _inline(words: str) -> Markup:
    """Return text as HTML: escaped, with ``code`` and bold."""
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(words)))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", safe))


def percent(value: float, digits: int = 2) -> str:
    """Return a share as a number of per cent, without the sign."""
    return f"{100 * value:.{digits}f}"


def points(difference: float) -> str:
    """Return a difference of shares in points, with its sign."""
    return f"{round(100 * difference, 1) + 0.0:+.1f}"  # never -0.0


def interval(mean: float, low: float, high: float) -> str:
    """Return a difference of shares and its interval, if it is known, in points."""
    return points(mean) + ("" if np.isnan(low) else f" [{points(low)}, {points(high)}]")


def plus_minus(mean: float, deviation: float) -> str:
    """Return a mean and its standard deviation, if it is known, in per cent."""
    return percent(mean) + ("" if np.isnan(deviation) else f" ± {percent(deviation)}")


def bold_if(text: str, condition: bool) -> str:
    """Return text, in bold if a condition holds."""
    return f"**{text}**" if condition else text


@dataclass(frozen=True)
class Panel:
    """Lines by name, each x and y, and the names of the axes."""

    lines: Mapping[str, tuple[Any, Any]]
    title: str
    x: str
    y: str
    log: str = ""  # which axes have a log scale: "x", "y", "xy"
    ticks: Sequence[int] | None = None
    spread: Mapping[str, Any] = field(default_factory=dict)  # half the width of a line's band


def draw_panels(
    name: str,
    caption: str,
    panels: Sequence[Panel],
    size: tuple[float, float],
    *,
    share_y: bool = False,
) -> ReportPicture:
    """Draw panels of lines side by side, with one legend below."""
    figure = new_figure(*size, shown=False)
    grid = figure.subplots(1, len(panels), sharey=share_y, squeeze=False)[0]
    for axes, panel in zip(grid, panels, strict=True):
        for place, (label, (x, y)) in enumerate(panel.lines.items()):
            if len(y):
                draw_line(axes, place, x, y, label, markevery=max(1, len(y) // 8))
            if label in panel.spread:
                band = y - panel.spread[label], y + panel.spread[label]
                axes.fill_between(x, *band, color=COLOURS[place], alpha=0.1, linewidth=0)
        axes.set(**{f"{axis}scale": "log" for axis in panel.log})
        if panel.ticks is not None:
            axes.set_xticks(panel.ticks, [f"{tick:,}" for tick in panel.ticks])
            axes.minorticks_off()
        set_title(axes, panel.title, grid="both").set(xlabel=panel.x, ylabel=panel.y)
    handles, labels = grid[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, frameon=False)
    return ReportPicture(name, figure, caption)
