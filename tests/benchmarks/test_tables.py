"""Tables that benchmarks write into pages are those of their JSON files."""

import json
from pathlib import Path

import pytest
from benchmarks.command import BENCHMARKS

from benchmarks import crowd_peers, grades, nominal, page, pairs, shared_page

DOCS = Path(__file__).parents[2] / "docs"


def of_pairs(found):
    return pairs.tables(found["rows"])


def of_crowd_peers(found):
    written = crowd_peers.table(found["trials"], found["seeds"])
    return written[written.index("| data") :]  # what is before has today's date


def of_shared_items(found):
    return "\n\n".join(part for part in shared_page._parts(found) if part)


TABLES = [
    ("grades.json", "grades.md", grades.as_table),
    ("nominal.json", "how-to/nominal.md", nominal.table),
    ("pairs.json", "how-to/comparisons.md", of_pairs),
    ("crowd-peers.json", "crowd-peers.md", of_crowd_peers),
    ("shared-items.json", "shared-items-measured.md", of_shared_items),
]


@pytest.mark.parametrize(("file", "page", "table"), TABLES, ids=[row[0] for row in TABLES])
def test_pages_have_the_tables_of_the_files(file, page, table):
    written = table(json.loads((DOCS / file).read_text(encoding="utf-8")))
    assert written.count("|") > 30
    assert written in (DOCS / page).read_text(encoding="utf-8")


def test_the_page_of_benchmarks_is_written_from_its_file(tmp_path):
    results = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    ordered = {name: results[name] for name in BENCHMARKS if name in results}
    page.write_page(ordered, tmp_path / "page.md", None)
    assert (tmp_path / "page.md").read_text() == (DOCS / "benchmarks.md").read_text()
