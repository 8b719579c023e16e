"""Commands that pages show without running them have the commands and options that exist."""

import re
import shlex

import pytest
import typer
from tools.command_line_page import BLOCK
from tools.quoted_numbers import ROOT, pages

from likeminds.cli import app
from likeminds.cli.main import _spread_numbers

COMMANDS = typer.main.get_command(app).commands
BLOCKS = re.compile(r"^```(?:sh|text)\n(.*?)^```$|(?:^    .*\n)+", re.DOTALL | re.MULTILINE)
PLACEHOLDERS = {"...", "[OPTIONS]"}


def shown(text):
    """Return the commands in blocks that are not run, and in sentences."""
    rest = re.sub(r"^```python\n.*?^```$", "", BLOCK.sub("", text), flags=re.DOTALL | re.MULTILINE)
    lines = [
        line.strip()
        for block in BLOCKS.finditer(rest)
        for line in re.sub(r" *\\\n *", " ", block[0]).splitlines()
    ]
    inline = re.findall(r"`(likeminds [a-z][^`]*)`", BLOCKS.sub("", rest))
    return [line for line in [*lines, *inline] if re.match(r"likeminds [a-z]", line)]


def problem(line):
    """Return what is wrong with a command, None if nothing."""
    words = _spread_numbers(shlex.split(line, comments=True)[1:])
    name, *given = (word for word in words if word not in PLACEHOLDERS)
    if name not in COMMANDS:
        return f"no command {name}"
    command = COMMANDS[name]
    context = typer.Context(command, info_name=name)
    try:
        _, more, _ = command.make_parser(context).parse_args(list(given))
    except Exception as error:  # also raised for an option named without its value
        return str(error) if "No such option" in str(error) else None
    return f"too many arguments: {more}" if more else None


PAGES = [page for page in pages() if shown(page.read_text())]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_shown_commands_exist(page):
    found = {line: problem(line) for line in shown(page.read_text())}
    assert {line: said for line, said in found.items() if said} == {}


def test_wrong_commands_are_found():
    assert len(PAGES) > 20
    assert problem("likeminds fit --annotations a.csv --out m   # a remark") is None
    assert problem("likeminds guess m") == "no command guess"
    assert "--answers" in problem("likeminds fit --answers a.csv")
    assert "too many" in problem("likeminds rank one two three")
