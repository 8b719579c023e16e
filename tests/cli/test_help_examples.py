"""Every example of the help texts does what it says."""

from functools import cache
from shutil import copytree

import pytest

from commands import commands_in, run, run_line
from likeminds.cli import app
from likeminds.cli.main import broken

NAMES = [command.name for command in app.registered_commands]


@pytest.fixture(scope="module")
def helps(tmp_path_factory):
    folder = tmp_path_factory.mktemp("help")
    return {name: run(folder, name, "--help") for name in NAMES}


@pytest.fixture(scope="module")
def folder_after(tmp_path_factory):
    """Return the folder that lines leave behind; what many examples begin with runs once."""

    @cache
    def after(*lines):
        folder = tmp_path_factory.mktemp("examples")
        if lines:
            copytree(after(*lines[:-1]), folder, dirs_exist_ok=True)
            done = run_line(folder, lines[-1])
            assert done.code == 0, f"{lines[-1]}\n{done.out}\n{done.err}"
        return folder

    return after


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.slow
def test_examples_of_the_help_work(name, helps, folder_after):
    examples = commands_in(helps[name].out)
    assert any(line.startswith(f"likeminds {name}") for line in examples)
    folder_after(*examples)


@pytest.mark.parametrize("name", NAMES)
def test_every_command_can_talk_to_programs_and_be_quiet(name, helps):
    for option in ("--json", "--quiet", "--debug"):
        assert option in helps[name].out


def test_lines_of_the_help_can_be_copied(helps):
    for done in helps.values():
        for line in done.out.splitlines():
            assert len(line) <= 100
        assert "\\" in helps["fit"].out


def test_long_commands_are_broken_where_a_shell_reads_on():
    line = "likeminds fit --annotations a.csv --features f.csv --out m --holdout 0.2"
    assert commands_in(f"$ {broken(line, 30)}") == [line]
