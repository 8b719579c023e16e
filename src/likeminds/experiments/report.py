"""One report, twice: Markdown with pictures beside it, and one HTML file with all inside."""

import base64
import html
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from likeminds._files import write_whole
from likeminds.experiments.pieces import Part, Picture, Table

_STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; color: #1a1a1a; background: #fff;
       max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
h1 { line-height: 1.2; } h2 { margin-top: 3rem; border-bottom: 1px solid #ccc; }
.lead { font-size: 1.1rem; background: #f2f6fa; border-left: 4px solid #0072B2;
        padding: .8rem 1rem; }
.found { font-weight: 600; }
.wide { overflow-x: auto; }
table { border-collapse: collapse; margin: .5rem 0; font-size: .9rem; }
th, td { padding: .3rem .6rem; border-bottom: 1px solid #ddd; text-align: left;
         vertical-align: top; }
th { border-bottom: 2px solid #888; }
td + td { font-variant-numeric: tabular-nums; }
figure { margin: 1rem 0; } img { max-width: 100%; }
figcaption, .caption { color: #555; font-size: .9rem; }
code { background: #f4f4f4; padding: .1rem .3rem; font-size: .9em; }
.made { color: #555; font-size: .85rem; }
"""


@dataclass(frozen=True)
class Report:
    """What is written down.

    Attributes
    ----------
    title : str
        The heading.
    lead : str
        The paragraph that a busy person can stop after.
    verdicts : Table or None
        What holds of the paper's claims, and what does not.
    parts : sequence of Part
        Tables and figures.
    commands : mapping from key of a part to str
        What makes it again.
    made_on : Table
        Versions, machine, seeds, times.
    """

    title: str
    lead: str
    verdicts: Table | None
    parts: Sequence[Part]
    commands: Mapping[str, str]
    made_on: Table

    def write(self, folder: Path, name: str) -> list[Path]:
        """Write ``name.md``, its pictures, and ``name.html``; return the two pages."""
        pictures = [
            piece for part in self.parts for piece in part.pieces if isinstance(piece, Picture)
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
        body = [f"<h1>{_inline(self.title)}</h1>", f'<p class="lead">{_inline(self.lead)}</p>']
        if self.verdicts is not None:
            body += ["<h2>What holds, what does not</h2>", _table_html(self.verdicts)]
        for part in self.parts:
            body += [f'<h2 id="{part.key}">{_inline(part.title)}</h2>']
            body += [f'<p class="found">{_inline(part.found)}</p>']
            body += [_html(piece) for piece in part.pieces]
            body.append(f'<p class="made">Made by <code>{self.commands[part.key]}</code></p>')
        body += ["<h2>How it was made</h2>", _table_html(self.made_on)]
        return (
            '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">'
            '<meta name="viewport" content="width=device-width, initial-scale=1">'
            f"<title>{html.escape(self.title)}</title><style>{_STYLE}</style></head>\n<body>\n"
            + "\n".join(body)
            + "\n</body></html>\n"
        )


def _markdown(piece: str | Table | Picture) -> list[str]:
    if isinstance(piece, Table):
        return _table_markdown(piece)
    if isinstance(piece, Picture):
        return [f"![{piece.caption}]({piece.name}.png)", piece.caption]
    return [piece]


def _table_markdown(table: Table) -> list[str]:
    rows = [table.columns, ["---"] * len(table.columns), *table.rows]
    lines = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return ["\n".join(lines), *([table.caption] if table.caption else [])]


def _html(piece: str | Table | Picture) -> str:
    if isinstance(piece, Table):
        return _table_html(piece)
    if isinstance(piece, Picture):
        source = base64.b64encode(piece.png).decode()
        caption = _inline(piece.caption)
        alt = html.escape(piece.caption, quote=True)
        return (
            f'<figure><img alt="{alt}" src="data:image/png;base64,{source}">'
            f"<figcaption>{caption}</figcaption></figure>"
        )
    return f"<p>{_inline(piece)}</p>"


def _table_html(table: Table) -> str:
    head = "".join(f"<th>{_inline(cell)}</th>" for cell in table.columns)
    rows = [
        "<tr>" + "".join(f"<td>{_inline(cell)}</td>" for cell in row) + "</tr>"
        for row in table.rows
    ]
    caption = f'<p class="caption">{_inline(table.caption)}</p>' if table.caption else ""
    return (
        f'<div class="wide"><table><thead><tr>{head}</tr></thead>\n<tbody>'
        + "\n".join(rows)
        + f"</tbody></table></div>{caption}"
    )


def _inline(text: str) -> str:
    """Return text as HTML: escaped, with ``code`` and bold.

    Examples
    --------
    >>> _inline("a < b, **really**, in `code`")
    'a &lt; b, <strong>really</strong>, in <code>code</code>'
    """
    safe = html.escape(text, quote=False)
    safe = re.sub(r"\*\*(.+?)\*\*", r"<strong>\1</strong>", safe)
    return re.sub(r"`(.+?)`", r"<code>\1</code>", safe)
