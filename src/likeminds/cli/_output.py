"""Output of commands: results on standard output, messages on standard error."""

import json
import logging
import os
import re
import sys
import traceback
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields
from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

import typer

from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import rich_table
from likeminds._util.text_format import mask, visible
from likeminds.cli._options import ComparisonOptions, LabelOptions, LargeFitOptions

if TYPE_CHECKING:
    from pathlib import Path

    from rich.console import Console, RenderableType
    from rich.progress import Progress

    from likeminds.rankers.ranker import Ranker

Row = Mapping[str, Any]
# Shows the progress of a job, given its name, the amount done, and the total.
Show = Callable[..., None]

# Exit codes.
BAD_INPUT, FAILURE, INTERRUPTED = 2, 1, 130
_BAD_INPUT = (
    *(ValueError, TypeError, KeyError),
    *(FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError, PermissionError),
)
# The width of output that does not go to a terminal.
_WIDTH = 100
# Python arguments in messages, and the options that replace them.
_ARGUMENTS = re.compile(r"\b([a-z_]+)=(?:True\b|(['\"]?)([\w.-]*\w)?\2(?=[\s,.:;)]|$))")
_OPTIONS = {
    **{
        one.name: next(iter(one.metadata["option"].param_decls), f"--{one.name.replace('_', '-')}")
        for kind in (LabelOptions, ComparisonOptions, LargeFitOptions)
        for one in fields(kind)
        if one.default is None
    },
    **{
        name: f"--{name.replace('_', '-')}"
        for name in ("loss", "nominal", "repeats", "n_features", "n_users", "price", "unseen")
    },
    "attributes": "--attribute",
    "choice": "--label-column",
    "chosen": "--winner-column",
    "item_column": "--item-column",
    "items": "--features",
    "label_noise": "--noise",
    "memory_limit": "--memory",
    "n_folds": "--folds",
    "n_schools": "--schools",
    "rejected": "--loser-column",
    "test_size": "--holdout",
    "ties": "--tie-column",
    "with_data": "--keep-data",
}
# Arguments in messages of commands for which there is no option.
_PYTHON_ONLY = frozenset({"draws", "item_effects", "max_classes", "wide"})
_SUBJECT = re.compile(r"^(\w+(?=: no such column| names )|[a-z]+_\w+(?= must ))")
# Scikit-learn's message about a parameter that is not one of several words.
_CONSTRAINT = re.compile(
    r"The '(\w+)' parameter of \w+ must be a str among \{(.*?)\}.* Got (.*) instead\."
)
_OTHERWISE = {
    "Load one that save wrote; read a table of labels with Annotations.from_csv": (
        "Give one that fit wrote; a table of labels is read by fit, with --annotations"
    ),
    "Give each alternative a row, with likeminds.wide_to_long,": (
        "Name these as the columns do, with --alternatives (1=TRAIN,2=CAR),"
    ),
    "item_ids must be distinct": "Items of --features must be distinct",
    "attribute= to choose one": "--attribute to choose one",
    "grades=True": "--grades (1,2,3,4,5, say)",
    "user_features:": "--user-features:",
    "user_features must": "--user-features must",
    "save(..., with_data=True)": "fit --keep-data",
    "save it with_data=True": "fit with --keep-data",
}


class Output:
    """Output of a command: results, hints, progress and errors, each to its stream.

    With ``as_json``, the result is JSON on standard output and nothing else is printed there;
    ``quiet`` leaves out progress and hints; ``debug`` shows tracebacks.
    """

    def __init__(self, *, as_json: bool = False, quiet: bool = False, debug: bool = False) -> None:
        self.as_json, self.quiet, self.debug = as_json, quiet, debug
        self._noted: set[str] = set()

    @cached_property
    def console(self) -> "Console":
        """Standard output, with colours on a terminal."""
        from likeminds._util.console import SafeConsole

        width = None if sys.stdout.isatty() or "COLUMNS" in os.environ else _WIDTH
        # Ids are shown unchanged, including brackets.
        return SafeConsole(width=width, highlight=False, markup=False, emoji=False)

    def show(self, thing: "RenderableType", *, head: str = "") -> None:
        """Print a result as text, which may begin with a heading in bold."""
        if self.as_json:
            return
        if head:
            from rich.text import Text

            thing = Text.assemble((head, "bold"), str(thing))
        self.console.print(thing)

    def table(
        self, title: str, rows: Sequence[Row], *, digits: int | None = 3, signed: Sequence[str] = ()
    ) -> None:
        """Print rows with the same columns as a table.

        ``digits`` are decimals; with None, small numbers keep three digits.
        """
        if not self.as_json:
            self.console.print(rich_table(title, rows, digits=digits, signed=signed))

    def hint(self, text: str) -> None:
        """Print a line about the result: its file, commands to try next."""
        if not self.as_json and not self.quiet:
            self.console.print(text, soft_wrap=True)

    def note(self, text: str) -> None:
        """Print a note on standard error, once."""
        if not self.quiet and text not in self._noted:
            self._noted.add(text)
            print_error(f"Note: {text}", "yellow")

    def json(self, found: Row) -> None:
        """Print the result as JSON, if requested."""
        if self.as_json:
            from likeminds.data.sources.writing import plain

            typer.echo(json.dumps(plain(found), indent=1))

    def bar(self) -> "Progress":
        """Return a progress bar on standard error with the time left; a pipe gets lines."""
        from likeminds._util.console import progress_bar

        return progress_bar(not self.quiet)

    @contextmanager
    def progress(self, what: str) -> Iterator[Show]:
        """Yield ``show(what, done=0, total=None)``, which moves a progress bar."""
        with self.bar() as bar:
            task = bar.add_task(what, total=None)

            def show(what: str, done: int = 0, total: int | None = None) -> None:
                bar.update(task, description=what, completed=done, total=total)

            yield show

    def run(self, work: Callable[[], None]) -> None:
        """Run the body; an error becomes one sentence and an exit code."""
        try:
            with self._warnings_as_notes():
                work()
        except (typer.Exit, BrokenPipeError):
            raise
        except KeyboardInterrupt:
            self._fail("Interrupted.", INTERRUPTED)
        except _BAD_INPUT as error:
            self._fail(in_options(sentence(error)), BAD_INPUT)
        except (ImportError, OSError) as error:
            self._fail(str(error), FAILURE)
        except MemoryError:
            self._fail("There is not enough memory: use fewer labels, or --memory.", FAILURE)
        except Exception as error:  # --debug shows the traceback
            self._fail(
                f"{type(error).__name__}: {error} (a bug of likeminds; --debug shows where)",
                FAILURE,
            )

    @contextmanager
    def _warnings_as_notes(self) -> Iterator[None]:
        """Show warnings, and messages about data and fits, as notes."""
        loggers = [logging.getLogger(f"likeminds.{name}") for name in ("data", "rankers")]
        levels, handler = [logger.level for logger in loggers], logging.Handler()

        def note(message: object) -> None:
            self.note(in_options(str(message)))

        handler.emit = lambda record: note(record.getMessage())  # type: ignore[method-assign]
        for logger in loggers:
            logger.addHandler(handler)
            logger.setLevel(logging.INFO)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("default", UserWarning)
                warnings.showwarning = lambda message, *_, **__: note(message)
                yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.removeHandler(handler)
                logger.setLevel(level)

    def _fail(self, text: str, code: int) -> None:
        if self.debug:
            typer.echo(visible(mask(traceback.format_exc())), err=True, nl=False)
        print_error(f"Error: {text}")
        raise typer.Exit(code)

    def refuse_two_results(self, out: str | None) -> None:
        """Raise ValueError for two results in one stream, and for files that cannot be written."""
        if out == "-" and self.as_json:
            raise ValueError("--json and --out - both write to standard output: give one of them.")
        if out not in {None, "-"}:
            from likeminds.data.sources import as_written

            as_written(str(out))


def learn_watched(ranker: "Ranker", show: Show, work: "Callable[[Ranker], Ranker]") -> Any:
    """Fit a ranker; if it has a callback, show its steps."""
    show("learning")
    if "callback" not in ranker.get_params(deep=False):
        return work(ranker)
    steps = count(1)

    def show_step(step: int, objective: float, residual: float) -> bool:  # noqa: ARG001
        # A fit consists of several optimisations: their steps are counted together.
        show(f"learning (objective {objective:.6g}), step", next(steps))
        return False

    ranker.set_params(callback=show_step)
    try:
        return work(ranker)
    finally:
        # A function cannot be saved.
        ranker.set_params(callback=None)


def print_error(text: str, colour: str = "red") -> None:
    """Print on standard error, in colour unless NO_COLOR is set, with control codes escaped."""
    plain = False if os.environ.get("NO_COLOR") else None
    typer.secho(visible(mask(text)), fg=colour, err=True, color=plain)


def sentence(error: BaseException) -> str:
    """Return the message of an error, without the quotes that a KeyError puts around it.

    Examples
    --------
    >>> sentence(KeyError("There is no school 7."))
    'There is no school 7.'
    """
    return str(error.args[0] if isinstance(error, KeyError) and error.args else error)


def in_options(text: str) -> str:
    """Replace the arguments of Python in a message by options of the command line.

    Examples
    --------
    >>> in_options("Pass positive= with the positive one of two answers.")
    'Pass --positive with the positive one of two answers.'
    >>> in_options('Save it with_data=True, or set loss="logistic" or draws=500.')
    'Save it --keep-data, or set --loss logistic or draws=500 in Python.'
    >>> in_options("test_size must lie between 0 and 1, but is 2.0.")
    '--holdout must lie between 0 and 1, but is 2.0.'
    >>> in_options("The 'loss' parameter of A must be a str among {'auto'}. Got 'x' instead.")
    "--loss must be one of auto, not 'x'."
    """
    for python, option in _OTHERWISE.items():
        text = text.replace(python, option)
    text = _CONSTRAINT.sub(_one_of, text)
    text = _SUBJECT.sub(lambda found: _OPTIONS.get(found[1], found[1]), text)
    return _ARGUMENTS.sub(_option, text)


def _option(found: re.Match[str]) -> str:
    name, _, value = found.groups()
    if name in _PYTHON_ONLY:
        return f"{found[0]} in Python"
    return f"{_OPTIONS[name]} {value or ''}".rstrip() if name in _OPTIONS else found[0]


def _one_of(found: re.Match[str]) -> str:
    name, words, value = found.groups()
    words = ", ".join(sorted(re.findall(r"\w+", words)))
    return f"{_OPTIONS.get(name, name)} must be one of {words}, not {value}."


def write_rows(rows: Sequence[Row], out: "str | Path") -> None:
    """Write rows as a table to a file, by its ending; - is CSV on standard output."""
    from likeminds.data.column_roles import as_arrow
    from likeminds.data.sources import write_table

    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: as_arrow([row.get(name) for row in rows]) for name in names}
    write_table(pa.table(columns), out)
