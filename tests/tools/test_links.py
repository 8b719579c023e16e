"""Links between pages lead somewhere, on the site and where Markdown is read in the repository."""

import re

import pytest
from tools.quoted_numbers import ROOT, pages

CODE = re.compile(r"^```.*?^```$|``.*?``|`[^`\n]*`", re.DOTALL | re.MULTILINE)
LINK = re.compile(r"\]\(([^)\s]+)\)")
EVERYWHERE = [*pages(), ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md"]


def anchors(page):
    """Return the anchors of a page's headings, as GitHub and MyST make them."""
    text = CODE.sub(lambda code: code[0] if "\n" not in code[0] else "", page.read_text())
    titles = re.findall(r"^#{1,6} (.+)$", text, re.MULTILINE)
    plain = (re.sub(r"[^\w\- ]", "", re.sub(r"\]\([^)]*\)", "", title)) for title in titles)
    named = re.findall(r"^\(([\w-]+)\)=$", text, re.MULTILINE)
    return {*(title.strip().lower().replace(" ", "-") for title in plain), *named}


def broken(page):
    """Yield the links of a page that lead nowhere."""
    for link in LINK.findall(CODE.sub("", page.read_text())):
        path, _, anchor = link.partition("#")
        if re.match(r"[a-z]+:", link):
            continue
        target = (page.parent / path).resolve() if path else page
        wrong = not target.exists()
        if wrong or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            yield link


@pytest.mark.parametrize("page", EVERYWHERE, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_to_files_and_headings(page):
    assert list(broken(page)) == []


def test_broken_links_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        "# One heading\n[a](#one-heading) [b](#two) [c](none.md) `[d](none)` [e](page.md)\n"
    )
    assert list(broken(page)) == ["#two", "none.md"]
