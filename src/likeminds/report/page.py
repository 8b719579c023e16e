"""One self-contained HTML page: no script, no file beside it, light or dark, fit to print.

Everything here takes plain text and escapes it; what is already HTML is marked as `Html`.
"""

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape
from typing import Any

from likeminds.plots.dark_mode import darken
from likeminds.plots.figures import as_png, require_matplotlib

_CSS = """
:root { color-scheme: light dark; --ink: #1b1f24; --paper: #ffffff; --faint: #5b6570;
  --line: #d9dee3; --wash: #f4f6f8; --accent: #0072b2; }
@media (prefers-color-scheme: dark) { :root { --ink: #e6e9ec; --paper: #15181c; --faint: #a2abb5;
  --line: #343b43; --wash: #1e2329; --accent: #56b4e9; } }
* { box-sizing: border-box; }
body { margin: 0; background: var(--paper); color: var(--ink);
  font: 1rem/1.55 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif; }
main { max-width: 62rem; margin: 0 auto; padding: 2.5rem 1.25rem 4rem; }
.kicker { color: var(--faint); font-size: .95rem; margin: 0 0 .4rem; }
h1 { font-size: clamp(1.6rem, 4.2vw, 2.5rem); line-height: 1.15; letter-spacing: -.015em;
  margin: 0 0 1rem; max-width: 24em; text-wrap: balance; }
h2 { font-size: 1.4rem; margin: 3rem 0 .5rem; padding-top: 1rem; line-height: 1.25;
  border-top: 1px solid var(--line); }
h3 { font-size: 1.1rem; margin: 1.5rem 0 .35rem; line-height: 1.3; }
p, ul, ol { margin: .5rem 0; max-width: 46rem; }
.lead { font-size: 1.15rem; max-width: 48rem; }
.note, figcaption, caption, footer { color: var(--faint); font-size: .9rem; }
a { color: var(--accent); }
code { background: var(--wash); padding: .1rem .3rem; border-radius: 4px; font-size: .9em; }
nav ul { display: flex; flex-wrap: wrap; gap: .25rem 1.25rem; padding: 0; list-style: none; }
.numbers { display: flex; flex-wrap: wrap; gap: 1rem 2.2rem; margin: 1.5rem 0; padding: 0;
  list-style: none; max-width: none; }
.numbers strong { display: block; font-size: 1.7rem; line-height: 1.2; font-weight: 650;
  font-variant-numeric: tabular-nums; }
.numbers li { color: var(--faint); font-size: .9rem; line-height: 1.35; max-width: 9.5rem; }
.numbers strong { color: var(--ink); }
.wide { overflow-x: auto; margin: .75rem 0; }
table { border-collapse: collapse; font-size: .93rem; font-variant-numeric: tabular-nums; }
caption { text-align: left; padding-bottom: .35rem; }
th, td { padding: .3rem .9rem .3rem 0; text-align: left; vertical-align: top;
  border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
th.number, td.number { text-align: right; }
td.number { white-space: nowrap; }
figure { margin: 1.25rem 0; overflow-x: auto; }
figure > picture > img { display: block; max-width: 100%; height: auto; }
.strip { display: flex; flex-wrap: wrap; gap: .6rem; margin: .5rem 0; padding: 0;
  list-style: none; max-width: none; }
.strip li { width: 6.4rem; font-size: .8rem; color: var(--faint); overflow-wrap: anywhere; }
.strip img { display: block; width: 100%; height: auto; border-radius: 4px; background: #ffffff; }
.strip.text li { width: 13.5rem; padding: .5rem .6rem; background: var(--wash);
  border-radius: 6px; color: var(--ink); }
.strip.text .value, .strip .value { color: var(--faint); display: block; }
.cards { display: grid; grid-template-columns: repeat(auto-fit, minmax(min(100%, 19rem), 1fr));
  gap: 1rem; margin: 1rem 0; }
.card { background: var(--wash); border-radius: 8px; padding: .25rem 1.1rem .8rem;
  border-top: 5px solid var(--line); min-width: 0; }
.card .strip li { width: 5.3rem; }
.card .strip.text li { background: var(--paper); width: 12.5rem; }
.card h3, .card h4 { margin: .8rem 0 .35rem; font-size: 1.1rem; line-height: 1.3; }
details { margin: .75rem 0; }
details > summary { cursor: pointer; color: var(--accent); }
footer { margin-top: 3rem; border-top: 1px solid var(--line); padding-top: .75rem; }
@media (max-width: 40rem) {
  main { padding: 1.25rem 1rem 3rem; }
  figure > picture > img { max-width: none; width: 40rem; }
  figure.fits > picture > img { max-width: 100%; width: 100%; }
  .strip.text li, .card .strip.text li { width: 100%; }
  .numbers { gap: .75rem 1.75rem; }
}
@media print {
  :root { --ink: #000; --paper: #fff; --faint: #444; --line: #bbb; --wash: #fff;
    --accent: #000; color-scheme: light; }
  html { font-size: 11.5px; }
  main { max-width: none; padding: 0; }
  .cards { grid-template-columns: repeat(auto-fit, minmax(5.6cm, 1fr)); }
  .card { border: 1px solid var(--line); border-top-width: 4px; }
  figure > picture > img { max-width: 100%; max-height: 16cm; width: auto; }
  figure, .card, tr, .strip li { break-inside: avoid; }
  h2, h3 { break-after: avoid; }
  /* A section's first words stay with what they speak of, short lists and tables stay whole. */
  p { break-inside: avoid; }
  h2 + p, caption { break-after: avoid; }
  .strip:not(:has(li:nth-child(17))) { break-inside: avoid; }
  table:not(:has(tbody tr:nth-child(17))) { break-inside: avoid; }
  tbody tr:nth-child(-n+3) { break-after: avoid; }
  tbody tr:nth-last-child(-n+3) { break-before: avoid; }
  /* What is folded away cannot be opened on paper. */
  nav, footer, details:not([open]), section:not(:has(> :not(h2, details))) { display: none; }
}
"""
# Pixels of the page to an inch of a picture; files have twice as many, for sharp screens.
_PIXELS, _SHARP = 110, 1.6
# What is narrower is a phone.
_PHONE = "(max-width: 40rem)"


class Html(str):
    """A piece of a page: HTML already, not to be escaped again."""

    __slots__ = ()


def text(value: object) -> Html:
    """Return a value as HTML: escaped, unless it is HTML already.

    Examples
    --------
    >>> text("a < b"), text(Html("<b>so</b>"))
    ('a &lt; b', '<b>so</b>')
    """
    return value if isinstance(value, Html) else Html(escape(str(value)))


def tag(name: str, *inside: object, **attributes: object) -> Html:
    """Return an element; ``class_`` is its class, attributes that are None are left out.

    Examples
    --------
    >>> tag("p", "1 < 2", class_="note")
    '<p class="note">1 &lt; 2</p>'
    """
    said = "".join(
        f' {key.rstrip("_")}="{escape(str(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    return Html(f"<{name}{said}>{join(inside)}</{name}>")


def join(parts: Iterable[object]) -> Html:
    """Return several pieces as one."""
    return Html("".join(text(part) for part in parts))


def paragraph(*inside: object, kind: str | None = None) -> Html:
    """Return a paragraph; kinds are "lead" and "note"."""
    return tag("p", *inside, class_=kind)


def section(title: str, *inside: object, anchor: str | None = None, level: int = 2) -> Html:
    """Return a heading and what belongs under it."""
    return tag("section", tag(f"h{level}", title, id=anchor), *inside)


def table(
    header: Sequence[str], rows: Iterable[Sequence[object]], caption: str | None = None
) -> Html:
    """Return a table; columns whose cells are all numbers, or start like one, go to the right.

    Examples
    --------
    >>> print(table(["who", "AUC"], [["ann", "0.91"]]))
    <div class="wide"><table><thead><tr><th>who</th><th class="number">AUC</th></tr></thead>...
    """
    cells = [[text(cell) for cell in row] for row in rows]
    kinds = [_kind([row[i] for row in cells]) for i in range(len(header))]
    top = tag("tr", *(tag("th", h, class_=k) for h, k in zip(header, kinds, strict=True)))
    body = [
        tag("tr", *(tag("td", c, class_=k) for c, k in zip(row, kinds, strict=True)))
        for row in cells
    ]
    above = [] if caption is None else [tag("caption", caption)]
    whole = tag("table", *above, tag("thead", top), tag("tbody", *body))
    return tag("div", whole, class_="wide")


def _kind(cells: Sequence[str]) -> str | None:
    filled = [cell for cell in cells if cell]
    numbers = all(cell.lstrip("+-\N{MINUS SIGN}(<[ ")[:1].isdigit() for cell in filled)
    return "number" if filled and numbers else None


def image(png: bytes, alt: str) -> Html:
    """Return a picture, inlined."""
    return Html(f'<img src="{_inlined(png)}" alt="{escape(alt)}">')


def picture(figure: Any, alt: str, caption: str | None = None, narrow: Any = None) -> Html:
    """Return a matplotlib Figure (or the figure of Axes), inlined for light and dark; it is closed.

    On paper it is always light; ``narrow`` is another figure of the same, for phones.
    """
    drawn = getattr(figure, "figure", None) or figure
    width = round(drawn.get_figwidth() * _PIXELS)
    small = [] if narrow is None else _sources(getattr(narrow, "figure", None) or narrow, _PHONE)
    light, *others = _sources(drawn)
    below = [] if caption is None else [tag("figcaption", caption)]
    image = f'<img src="{light[0]}" alt="{escape(alt)}" width="{width}">'
    sources = [
        f'<source srcset="{content}" media="{media}">'
        for content, media in [*reversed(small), *others]
    ]
    both = Html(f"<picture>{''.join(sources)}{image}</picture>")
    return tag("figure", both, *below, class_="fits" if small else None)


def _sources(figure: Any, media: str = "") -> list[tuple[str, str]]:
    """Return a figure, light and dark, and when to show which; the figure is closed."""
    dots, there = round(_PIXELS * _SHARP), f" and {media}" if media else ""
    light = _inlined(as_png(figure, dots)), f"screen{there}"
    dark = _inlined(as_png(darken(figure), dots))
    require_matplotlib().close(figure)
    return [light, (dark, f"screen{there} and (prefers-color-scheme: dark)")]


def _inlined(png: bytes) -> str:
    return f"data:image/png;base64,{base64.b64encode(png).decode()}"


def page(
    title: str,
    *inside: object,
    contents: Mapping[str, str] | None = None,
    kicker: str | None = None,
) -> str:
    """Return a whole page.

    Parameters
    ----------
    title : str
        What it is about; also its first heading.
    *inside : pieces
        What follows, in order.
    contents : mapping from anchor to words, optional
        Links to sections; they come after the first piece, which should be a first paragraph
        that a busy person can stop after.
    kicker : str, optional
        A line above the title: what the page is about.

    Examples
    --------
    >>> print(page("Shoes", paragraph("All is well.", kind="lead"))[:44])
    <!DOCTYPE html>
    <html lang="en">
    <head>
    <met
    """
    first, rest = inside[:1], inside[1:]
    links = [
        tag("li", tag("a", words, href=f"#{anchor}")) for anchor, words in (contents or {}).items()
    ]
    menu = [tag("nav", tag("ul", *links))] if links else []
    above = [] if kicker is None else [paragraph(kicker, kind="kicker")]
    body = tag("main", *above, tag("h1", title), *first, *menu, *rest)
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{_CSS}</style>\n</head>\n"
        f"<body>{body}</body>\n</html>\n"
    )
