"""Results of benchmarks as JSON in docs, and their tables on pages, between two marks."""

import json
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[1] / "docs"


def publish(name: str, found: Any, page: Path, table: str) -> None:
    """Write docs/NAME.json, and the table that shows it into its page."""
    (DOCS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n", encoding="utf-8")
    text = page.read_text(encoding="utf-8")
    page.write_text(with_table(text, name, table), encoding="utf-8")


def with_table(text: str, name: str, table: str) -> str:
    """Return a page with a table between ``<!-- NAME: begin -->`` and ``<!-- NAME: end -->``."""
    before, rest = text.split(f"<!-- {name}: begin -->\n")
    _, after = rest.split(f"<!-- {name}: end -->")
    return f"{before}<!-- {name}: begin -->\n{table}\n<!-- {name}: end -->{after}"


def markdown(head: list[str], rows: list[list[str]]) -> str:
    """Return a table in Markdown."""
    return "\n".join(f"| {' | '.join(row)} |" for row in (head, ["---"] * len(head), *rows))
