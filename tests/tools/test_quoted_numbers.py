"""Numbers on pages are those of the JSON files that benchmarks wrote."""

import pytest
from tools.quoted_numbers import QUOTED, ROOT, pages, renewed


@pytest.mark.parametrize("page", pages(), ids=lambda page: str(page.relative_to(ROOT)))
def test_quoted_numbers_are_those_of_the_files(page):
    text = page.read_text()
    assert renewed(text) == text, "python -m tools.quoted_numbers"


def test_pages_quote_numbers():
    assert sum(len(QUOTED.findall(page.read_text())) for page in pages()) > 50


def test_numbers_are_formatted_and_averaged():
    path = "groups/*/groups"
    assert renewed(f"7.1<!--shared-items#{path}:.1f-->") == f"2.0<!--shared-items#{path}:.1f-->"
    path = "hierarchical_crowd/tables/1/rows/groups found/1"
    assert renewed(f"9<!--benchmarks#{path}:d-->.") == f"2<!--benchmarks#{path}:d-->."


def test_pipes_that_would_end_cells_are_replaced():
    path = "groups/*/groups"
    assert renewed(f"2<!--shared-items#{path}|.1f-->") == f"2.0<!--shared-items#{path}:.1f-->"
