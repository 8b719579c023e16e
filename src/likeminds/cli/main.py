"""The program: its commands, and how it starts."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from likeminds._version import __version__
from likeminds.cli._command import app
from likeminds.cli._output import print_error
from likeminds.cli._signals import run_to_the_end

# The modules with commands, in the order in which the help lists them.
for _module in (
    "start",
    "fit",
    "update",
    "evaluate",
    "agreement",
    "compare",
    "rank",
    "newcomer",
    "explain",
):
    import_module(f"likeminds.cli.{_module}")
for _module in ("share", "serve", "check"):
    import_module(f"likeminds.cli.{_module}")


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"likeminds {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool,
        typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    pass


# Options after which any number of numbers may come.
_SEVERAL_NUMBERS = ("--shots",)

# No terminal has more columns, and tables are not padded to more.
_WIDEST = 10_000

# Bad usage, by whatever name the installed version of typer has for it.
_UsageError: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input ends in one sentence and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        What follows the name of the program; by default what the shell passed.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    for name in ("COLUMNS", "LINES"):  # unset where they are not of a usable size
        size = os.environ.get(name, "")
        if not (size.isascii() and size.isdigit() and 0 < int(size[:9]) <= _WIDEST):
            os.environ.pop(name, None)
    raise SystemExit(run_to_the_end(lambda: _run(words)))


def _run(words: list[str]) -> int:
    try:
        code = app(_spread_numbers(words), prog_name="likeminds", standalone_mode=False)
    except _UsageError as error:
        wrong = " ".join(str(error.format_message()).split())
        names = {str(command.name) for command in app.registered_commands}
        known = f"{words[0]} " if words and words[0] in names else ""
        end = "" if wrong.endswith(("?", ".")) else "."
        print_error(f"Error: {wrong}{end} See likeminds {known}--help.")
        return 2
    return code if isinstance(code, int) else 0


def _spread_numbers(words: Sequence[str]) -> list[str]:
    """Let an option of several numbers be written once: --shots 0 5 10.

    Examples
    --------
    >>> _spread_numbers(["evaluate", "--shots", "0", "5", "--json"])
    ['evaluate', '--shots', '0', '--shots', '5', '--json']
    """
    spread: list[str] = []
    within = False
    for word in words:
        if within and word.isdecimal() and spread[-1] not in _SEVERAL_NUMBERS:
            spread.append(next(iter(_SEVERAL_NUMBERS)))
        within = word in _SEVERAL_NUMBERS or (within and word.isdecimal())
        spread.append(word)
    return spread
