"""Console blocks of pages show what their commands print."""

import re

import pytest
from tools.command_line_page import BLOCK, answered
from tools.quoted_numbers import ROOT, pages

PAGES = [page for page in pages() if BLOCK.search(page.read_text())]


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_blocks_show_what_commands_print(page, tmp_path):
    text = page.read_text()
    answer = _comparable(answered(text, tmp_path))
    assert answer == _comparable(text), "python -m tools.command_line_page"


def _comparable(text):
    """Leave out seconds (the last column of comparisons) and digits that processors differ in."""
    text = re.sub(r" +\d+\.\d\d$", " s", text, flags=re.MULTILINE)
    return re.sub(r"(\d+\.\d{6})\d+", r"\1", text)


def test_commands_of_several_lines_are_run_as_one(tmp_path):
    block = "```console\n$ for n in 1 2; do\n    echo $n; done\nold\n$ echo a \\\n    b\n```"
    shown = "```console\n$ for n in 1 2; do\n    echo $n; done\n1\n2\n$ echo a \\\n    b\na b\n```"
    assert answered(block, tmp_path) == shown
