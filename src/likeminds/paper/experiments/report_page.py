"""One report, twice: Markdown with pictures beside it, and one HTML file with all inside."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from likeminds._util.atomic_files import write_whole
from likeminds.paper.experiments.report_parts import ReportPart, ReportPicture, ReportTable
from likeminds.report.page import Html, image, page, paragraph, section, table, tag, text


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
        pieces: list[Html] = [paragraph(_inline(self.lead), kind="lead")]
        if self.verdicts is not None:
            pieces.append(section("What holds, what does not", *_html(self.verdicts)))
        for part in self.parts:
            inside = [paragraph(tag("strong", _inline(part.found)))]
            for piece in part.pieces:
                inside += _html(piece)
            inside.append(paragraph("Made by ", tag("code", self.commands[part.key]), kind="note"))
            pieces.append(section(part.title, *inside, anchor=part.key))
        pieces.append(section("How it was made", *_html(self.made_on)))
        contents = {part.key: part.title for part in self.parts}
        return page(self.title, *pieces, contents=contents)


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


def _html(piece: str | ReportTable | ReportPicture) -> list[Html]:
    if isinstance(piece, ReportTable):
        rows = [[_inline(cell) for cell in row] for row in piece.rows]
        caption = [paragraph(_inline(piece.caption), kind="note")] if piece.caption else []
        return [table([_inline(title) for title in piece.columns], rows), *caption]
    if isinstance(piece, ReportPicture):
        below = tag("figcaption", _inline(piece.caption))
        return [tag("figure", image(piece.png, piece.caption), below)]
    return [paragraph(_inline(piece))]


def _inline(words: str) -> Html:
    """Return text as HTML: escaped, with ``code`` and bold.

    Examples
    --------
    >>> _inline("a < b, **really**, in `code`")
    'a &lt; b, <strong>really</strong>, in <code>code</code>'
    """
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", text(words))
    return Html(re.sub(r"`(.+?)`", r"<code>\1</code>", safe))
