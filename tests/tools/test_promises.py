"""Each promise of security and serving, and each point of the audit, names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = {"security": "security.md", "serving": "how-to/serving.md"}


def promises(page):
    """Return the promises of a page: section, promise, and the tests."""
    text = (ROOT / "docs" / "development" / "promises.md").read_text()
    table = text.partition(f"\n## {page}\n")[2].partition("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return [
        (section, promise, re.findall(r"`([^`]+)`", tests)) for section, promise, tests in rows
    ][1:]


def exists(name):
    """Say whether there is a test of a name: file::function or file::class::method."""
    file, *inside = name.split("::")
    place = ROOT / file
    nodes = ast.parse(place.read_text()).body if place.is_file() else []
    for part in inside:
        found = [node for node in nodes if getattr(node, "name", None) == part]
        if not found:
            return False
        nodes = found[0].body
    return bool(inside) and bool(nodes)


@pytest.mark.parametrize("page", PAGES)
def test_every_promise_names_tests_that_exist(page):
    found = promises(page)
    assert found
    assert [promise for _, promise, tests in found if not tests] == []
    assert [test for *_, tests in found for test in tests if not exists(test)] == []


def test_every_point_of_the_audit_names_tests_that_exist():
    text = (ROOT / "docs" / "development" / "audit.md").read_text()
    tests = re.findall(r"`(tests/[^`]+)`", text)
    assert len(tests) > 20
    assert [test for test in tests if not exists(test)] == []


@pytest.mark.parametrize(
    ("page", "heading"), [("security", r"^\*\*([^*.]+)\.?\*\*"), ("serving", r"^## (.+)$")]
)
def test_every_section_has_promises_that_are_tested(page, heading):
    text = (ROOT / "docs" / PAGES[page]).read_text()
    sections = set(re.findall(heading, text, re.MULTILINE))
    assert len(sections) >= 5
    assert sections - {section for section, *_ in promises(page)} == set()
