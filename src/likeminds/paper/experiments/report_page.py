"""The report: a template of Markdown for each part, written as Markdown and as one HTML file."""

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from statistics import mean
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup, escape

from likeminds._util.array_types import Float
from likeminds._util.atomic_files import write_whole
from likeminds._util.result_tables import render
from likeminds.paper.experiments import published
from likeminds.paper.experiments.setting import (
    MANY_LABELS,
    SCALES,
    ExperimentScale,
    ExperimentSetting,
)
from likeminds.plots.figures import COLOURS, as_png, as_svg, draw_line, new_figure, set_title
from likeminds.report.page import PagePicture, ReportTable, inlined

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Plain numbers and texts, for the claims and for programs.
Facts: TypeAlias = Mapping[str, Any]
_PICTURE = re.compile(r"!\[(.+)\]\((.+)\.png\)")


@dataclass(frozen=True)
class ReportPart:
    """One section of the report: blocks are paragraphs, tables and pictures in Markdown."""

    key: str  # its name in ``likeminds reproduce``
    title: str
    found: str  # the result, in a sentence or two
    blocks: Sequence[str]
    facts: Facts = field(default_factory=dict)
    figures: Mapping[str, "Figure"] = field(default_factory=dict)  # by the name of their file


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("likeminds.paper.experiments"),
        autoescape=False,  # Markdown; `write_report` escapes the HTML
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    own = (percent, points, interval, mean)
    environment.filters |= {function.__name__: function for function in own} | {"number": format}
    environment.globals |= {"table": markdown_table, "published": published}
    environment.globals |= {"SCALES": SCALES, "MANY_LABELS": MANY_LABELS}
    return environment


def make_part(
    key: str,
    setting: ExperimentSetting,
    facts: Facts,
    figures: Mapping[str, "Figure"] | None = None,
    **context: Any,
) -> ReportPart:
    """Fill in the template of a part, which sets ``title`` and ``found``, from facts and more."""
    values = {"f": facts, "scale": setting.scale, "seed": setting.seed, **context}
    filled: Any = _environment().get_template(f"{key}.md").make_module(values)
    (found,) = _blocks(filled.found)
    blocks = [*_blocks(str(filled)), f"Made by `{setting.command(key)}`."]
    return ReportPart(key, filled.title, found, blocks, facts, figures or {})


def phrase(name: str, scale: ExperimentScale) -> str:
    """Return a macro about the sizes, filled in."""
    macros: Any = _environment().get_template("macros.md").module
    return " ".join(str(getattr(macros, name)(scale)).split())


def _blocks(text: str) -> list[str]:
    """Return paragraphs, each in a line, and tables."""
    each = re.split(r"\n\s*\n", text.strip())
    return [block if block.startswith("|") else " ".join(block.split()) for block in each]


def markdown_table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table in Markdown."""
    cells = [columns, ["---"] * len(columns), *rows]
    lines = (" | ".join(str(cell).replace("|", "\\|") for cell in row) for row in cells)
    return "\n".join(f"| {line} |" for line in lines)


def write_report(
    folder: Path, name: str, title: str, lead: str, parts: Sequence[ReportPart]
) -> list[Path]:
    """Write ``name.md``, its pictures as PNG and SVG, and ``name.html``; return the pages."""
    pictures = {}
    for picture, figure in (pair for part in parts for pair in part.figures.items()):
        pictures[picture] = as_png(figure)
        write_whole(folder / f"{picture}.png", pictures[picture])
        write_whole(folder / f"{picture}.svg", as_svg(figure))

    def pictured(block: str) -> PagePicture:
        caption, picture = re.findall(_PICTURE, block)[0]
        return PagePicture(inlined(pictures[picture]), caption, _inline(caption))

    html = render(
        "paper.html",
        title=title,
        lead=lead,
        parts=parts,
        inline=_inline,
        tabled=_tabled,
        pictured=pictured,
    )
    pages = {folder / f"{name}.md": _markdown(title, lead, parts), folder / f"{name}.html": html}
    for path, content in pages.items():
        write_whole(path, content.encode())
    return list(pages)


def _markdown(title: str, lead: str, parts: Sequence[ReportPart]) -> str:
    lines = [f"# {title}", lead]
    for part in parts:
        lines += [f"## {part.title}", *([f"**{part.found}**"] if part.found else [])]
        for block in part.blocks:
            picture = _PICTURE.fullmatch(block)
            lines += [block, *([picture[1]] if picture else [])]
    return "\n\n".join(lines) + "\n"


def _tabled(block: str) -> ReportTable:
    header, _, *rows = (_cells(line) for line in block.splitlines())
    return ReportTable(header, rows)


def _cells(line: str) -> list[Markup]:
    cells = re.split(r"(?<!\\)\|", line)[1:-1]
    return [_inline(cell.strip().replace("\\|", "|")) for cell in cells]


def _inline(words: str) -> Markup:
    """Return text as HTML: escaped, with ``code`` and bold."""
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", str(escape(words)))
    return Markup(re.sub(r"`(.+?)`", r"<code>\1</code>", safe))


def percent(value: float, digits: int = 2) -> str:
    """Return a share as a number of per cent, without the sign."""
    return f"{100 * value:.{digits}f}"


def points(difference: float, digits: int = 1) -> str:
    """Return a difference of shares in points, with its sign."""
    return f"{round(100 * difference, digits) + 0.0:+.{digits}f}"  # never -0.0


def interval(difference: Sequence[float], digits: int = 1) -> str:
    """Return a difference of shares and its interval, if it is known, in points."""
    mean, low, high = (points(value, digits) for value in difference)
    return mean if np.isnan(difference[1]) else f"{mean} [{low}, {high}]"


def plus_minus(values: Float) -> str:
    """Return mean and standard deviation, if there are several values, in per cent."""
    deviation = f" ± {percent(float(values.std(ddof=1)))}" if len(values) > 1 else ""
    return percent(float(values.mean())) + deviation


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
    panels: Sequence[Panel], size: tuple[float, float], *, share_y: bool = False
) -> "Figure":
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
    return figure
