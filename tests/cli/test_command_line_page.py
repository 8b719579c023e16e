"""Every command of docs/command-line.md works, in a folder that was empty before."""

from pathlib import Path

import pytest

from commands import commands_in, run_line

PAGE = Path(__file__).parents[2] / "docs" / "command-line.md"


@pytest.mark.slow
def test_the_page_tells_the_story(tmp_path):
    lines = commands_in(PAGE.read_text())
    assert len(lines) > 15
    for line in lines:
        done = run_line(tmp_path, line)
        assert done.code == 0, f"{line}\n{done.out}\n{done.err}"
    for made in ("power.likeminds", "power.html", "shoes.likeminds", "shoes.html"):
        assert (tmp_path / made).stat().st_size > 10_000
