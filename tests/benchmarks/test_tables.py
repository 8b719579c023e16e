"""Tables that benchmarks write into pages are those of their JSON files."""

import json
from pathlib import Path

import pytest
from benchmarks.command import BENCHMARKS
from benchmarks.tables import with_table

from benchmarks import (
    accuracy,
    choice_models,
    cluster_growth,
    cluster_shuffle,
    crowd_followers,
    crowd_peers,
    grade_losses,
    grades,
    item_spread,
    mixed_logit,
    new_items,
    nominal,
    page,
    pairs,
    shared_page,
    shared_speed,
    ties,
)

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
    ("ties.json", "how-to/comparisons.md", ties.as_table),
    ("crowd-peers.json", "crowd-peers.md", of_crowd_peers),
    ("shared-items.json", "shared-items-measured.md", of_shared_items),
]


@pytest.mark.parametrize(("file", "page", "table"), TABLES, ids=[row[0] for row in TABLES])
def test_pages_have_the_tables_of_the_files(file, page, table):
    written = table(json.loads((DOCS / file).read_text(encoding="utf-8")))
    assert written.count("|") > 30
    assert written in (DOCS / page).read_text(encoding="utf-8")


MARKED = [
    ("choice-models", "xlogit.md", choice_models.table),
    ("cluster-growth", "cluster.md", cluster_growth.as_tables),
    ("cluster-shuffle", "cluster.md", cluster_shuffle.table),
    ("crowd-followers", "item-effects.md", crowd_followers.as_table),
    ("grade-losses", "item-effects.md", grade_losses.as_table),
    ("item-spread", "item-effects.md", item_spread.as_table),
    ("new-items", "item-effects.md", new_items.as_table),
    ("shared-speed", "item-effects.md", shared_speed.as_table),
]


@pytest.mark.parametrize(("name", "page", "table"), MARKED, ids=[row[0] for row in MARKED])
def test_pages_have_the_tables_of_the_files_between_marks(name, page, table):
    folder = DOCS / "development"
    written = table(json.loads((folder / f"{name}.json").read_text(encoding="utf-8")))
    assert written.count("|") > 10
    text = (folder / page).read_text(encoding="utf-8")
    assert with_table(text, f"development/{name}", written) == text


@pytest.mark.parametrize(("name", "module"), [("accuracy", accuracy), ("mixed-logit", mixed_logit)])
def test_whole_pages_are_those_of_their_files(name, module):
    found = json.loads((DOCS / f"{name}.json").read_text(encoding="utf-8"))
    assert module.as_page(found) == (DOCS / f"{name}.md").read_text(encoding="utf-8")


def test_the_page_of_benchmarks_is_written_from_its_file(tmp_path):
    results = json.loads((DOCS / "benchmarks.json").read_text(encoding="utf-8"))
    ordered = {name: results[name] for name in BENCHMARKS if name in results}
    page.write_page(ordered, tmp_path / "page.md", None)
    assert (tmp_path / "page.md").read_text() == (DOCS / "benchmarks.md").read_text()
