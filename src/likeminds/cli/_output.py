"""How the commands talk: results on standard output, all else on standard error."""

import json
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cached_property
from typing import TYPE_CHECKING, Any

import typer

from likeminds._util.text_format import mask, visible

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress

# What is wrong with the input, and what is wrong otherwise.
BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130
_BAD_INPUT = (
    *(ValueError, TypeError, KeyError),
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
)
# Columns of a result that no terminal shows.
_WIDTH = 100
# Arguments of Python that a message names, and what they are called here.
_ROLES = (
    "user|item|label|attribute|weight|choice_set|alternative|availability|winner|loser|tie|strength"
)
# An argument that names a column, and one that does not; a column that is not there.
_ARGUMENTS = re.compile(
    rf"\b(?:({_ROLES})|user_features|positive|threshold|grades|features|loss|repeats)="
    r"(?=[\s,.:;)]|$)"
)
_NO_COLUMN = re.compile(rf"^(?:({_ROLES})): no such column")
_OTHERWISE = {
    "attribute= to choose it": "--attribute to choose it",
    "grades=True": "--grades (1,2,3,4,5, say)",
    "user_features:": "--user-features:",
    "user_features must": "--user-features must",
    "item_column=": "--item-column",
    "attributes=": "--attribute",
    "test_size=": "--holdout ",
    "n_folds=": "--folds",
}


class Output:
    """Output of a command: results, remarks, progress and errors, each to its stream.

    Parameters
    ----------
    as_json : bool
        Whether the result goes to standard output as JSON, and nothing else does.
    quiet : bool
        Whether progress and remarks are left out.
    debug : bool
        Whether an error is shown with its origin.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, debug: bool = False) -> None:
        self.as_json = as_json
        self.quiet = quiet
        self.debug = debug

    @cached_property
    def console(self) -> "Console":
        """Standard output, for people."""
        from likeminds._util.console import SafeConsole

        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH
        # Ids are shown as they are, whatever brackets they have.
        return SafeConsole(width=width, highlight=False, markup=False, emoji=False)

    def tell(self, thing: Any, *, head: str = "") -> None:
        """Show a result to people: a table, or a text, which may begin with a heading."""
        if self.as_json:
            return
        if head:
            from rich.text import Text

            thing = Text.assemble((head, "bold"), str(thing))
        self.console.print(thing)

    def remark(self, text: str) -> None:
        """Tell people what the result does not need: where it is, what to try next."""
        if not self.as_json and not self.quiet:
            self.console.print(text, soft_wrap=True)

    def note(self, text: str) -> None:
        """Tell on standard error what somebody should know."""
        if not self.quiet:
            complain(f"Note: {text}", "yellow")

    def result(self, found: Mapping[str, Any]) -> None:
        """Give the result to programs."""
        if self.as_json:
            from likeminds.data.sources.table_writer import plain

            typer.echo(json.dumps(plain(found), indent=1))

    @property
    def shows_progress(self) -> bool:
        """Whether anybody watches."""
        return not self.quiet and sys.stderr.isatty()

    def bar(self) -> "Progress":
        """Return a bar on standard error with the time left."""
        from likeminds._util.console import progress_bar

        return progress_bar(self.shows_progress)

    def answer_for(self, work: Callable[[], None]) -> None:
        """Do some work; what goes wrong is one sentence and an exit code."""
        try:
            with self._warnings_as_notes():
                work()
        except (typer.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            self._refuse("Interrupted.", INTERRUPTED)
        except _BAD_INPUT as error:
            self._refuse(in_options(sentence(error)), BAD_INPUT)
        except (ImportError, OSError) as error:
            self._refuse(str(error), FAILURE)
        except MemoryError:
            self._refuse("There is not enough memory for this.", FAILURE)
        except Exception as error:  # nobody wants to see a traceback unasked
            self._refuse(
                f"{type(error).__name__}: {error} (this should not happen; --debug shows where)",
                FAILURE,
            )

    @contextmanager
    def _warnings_as_notes(self) -> Iterator[None]:
        """Show warnings, and messages about how data was read, as notes."""
        logger, handler = logging.getLogger("likeminds.data"), logging.Handler()
        handler.emit = lambda record: self.note(record.getMessage())  # type: ignore[method-assign]
        logger.addHandler(handler)
        level = logger.level
        logger.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)
                warnings.showwarning = lambda message, *_, **__: self.note(str(message))
                yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(level)

    def _refuse(self, text: str, code: int) -> None:
        if self.debug:
            typer.echo(visible(mask(traceback.format_exc())), err=True, nl=False)
        complain(f"Error: {text}")
        raise typer.Exit(code)


def complain(text: str, colour: str = "red") -> None:
    """Say something on standard error, in colour if that is wanted, whatever ids are in it."""
    plain = False if os.environ.get("NO_COLOR") else None
    typer.secho(visible(mask(text)), fg=colour, err=True, color=plain)


def sentence(error: BaseException) -> str:
    """Return what an error says, without the quotes that a KeyError puts around it.

    Examples
    --------
    >>> sentence(KeyError("There is no school 7."))
    'There is no school 7.'
    """
    if isinstance(error, KeyError) and error.args:
        return str(error.args[0])
    return str(error)


def in_options(text: str) -> str:
    """Call the arguments of Python what they are called on the command line.

    Examples
    --------
    >>> in_options("Pass positive= to say which of two answers is the positive one.")
    'Pass --positive to say which of two answers is the positive one.'
    """
    for python, option in _OTHERWISE.items():
        text = text.replace(python, option)
    text = _NO_COLUMN.sub(lambda found: f"{_option(found)}: no such column", text)
    return _ARGUMENTS.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    name = found.group(1)
    return f"--{name or found.group()}{'-column' if name else ''}".replace("_", "-").rstrip("=")
