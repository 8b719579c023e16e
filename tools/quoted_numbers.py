"""Replace the numbers that pages quote by those of the benchmarks' JSON files.

python -m tools.quoted_numbers

A quoted number has its source behind it, in a comment that neither the site nor a repository's page
shows: ``70.8<!--shared-items#within/movies/methods/HierarchicalRanker/auc:.1%-->`` is the value at
this path of docs/shared-items.json. Formats are those of Python; the sign of per cent is left out.
A row of a table is found by its position, or by its first cell; ``*`` is the mean over all entries.
"""

import json
import re
from functools import cache
from pathlib import Path
from statistics import mean
from typing import Any

ROOT = Path(__file__).parents[1]
# A pipe would end the cell of a table: it is read, and written as a colon.
QUOTED = re.compile(r"[+-]?[\d.,]*\d<!--([\w/-]+)#([^|>]+)[|:]([^|:>]+?)-->")


def pages() -> list[Path]:
    """Return the Markdown files of the documentation, and the README."""
    built = {"_build", "api", "gallery", "notebooks"}
    found = (path for path in (ROOT / "docs").rglob("*.md"))
    return [ROOT / "README.md", *(p for p in found if not built & set(p.parts))]


def renewed(text: str) -> str:
    """Return a page with the numbers of today's files."""
    return QUOTED.sub(_quote, text)


def _quote(found: re.Match[str]) -> str:
    file, path, form = found.groups()
    value = _at(_results(file), path.split("/"))
    return f"{format(value, form).rstrip('%')}<!--{file}#{path}:{form}-->"


def _at(value: Any, keys: list[str]) -> Any:
    if not keys:
        return value
    key, *rest = keys
    if key == "*":
        return mean(_at(one, rest) for one in value.values())
    if isinstance(value, dict):
        return _at(value[key], rest)
    row = value[int(key)] if key.isdecimal() else next(row for row in value if row[0] == key)
    return _at(row, rest)


@cache
def _results(file: str) -> Any:
    return json.loads((ROOT / "docs" / f"{file}.json").read_text())


if __name__ == "__main__":
    for page in pages():
        page.write_text(renewed(page.read_text()))
