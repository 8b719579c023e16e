"""The program: registration of commands, signals, and exit codes."""

import dataclasses
import inspect
import io
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any, get_type_hints

import typer

from likeminds._util.lazy_imports import load_later
from likeminds._version import __version__
from likeminds.cli._options import OutputOptions
from likeminds.cli._output import Output, print_error

Work = Callable[..., None]

app = typer.Typer(
    help="Learn personal rankings from few labels per user: a consensus, groups of users who "
    "rank alike, and personal preferences.\n\n\b\nStart here:\n$ likeminds demo",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)

# The first lines of many examples.
DATA = "likeminds data electricity --out power"
FIT = (
    "likeminds fit --annotations power/annotations.csv --features power/features.csv "
    "--out power.likeminds"
)
# Commands of this panel query a model, in one thread. Scikit-learn imports these modules, which
# they do not need, and whose import takes longer than most commands.
_QUICK, _SLOW_MODULES = "Ask", ("pandas", "scipy.stats")
# An option that any number of numbers may follow.
_SEVERAL_NUMBERS = "--shots"
# Terminals have fewer columns: larger values of COLUMNS are ignored.
_WIDEST = 10_000
# A shell adds this to the number of the signal that ended a program.
_BY_SIGNAL = 128
_SIGNAL_NAMES = {"SIGINT": "Interrupted", "SIGTERM": "Terminated", "SIGHUP": "Hung up"}
# A signal in a critical section is sent again after this many seconds.
_SOON = 0.05
_WAIT = threading.Condition.wait.__code__
_LOCKING = {threading.Condition.__enter__.__code__, threading.Condition.__exit__.__code__}
# Bad usage: the class has different names in versions of typer.
_UsageError: type[Any] = next(
    kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException"
)


def command(panel: str, *examples: str) -> Callable[[Work], Work]:
    """Register a function as a command.

    Its first parameter is the `Output`. A parameter whose type is a dataclass stands for the fields
    of the dataclass as options. The decorator adds ``--json``, ``--quiet`` and ``--debug``, appends
    the examples to the help, and turns errors into one sentence and an exit code.
    """

    def register(work: Work) -> Work:
        hints = {
            name: kind for name, kind in get_type_hints(work).items() if isinstance(kind, type)
        }
        groups = {name: kind for name, kind in hints.items() if dataclasses.is_dataclass(kind)}

        def run(**values: object) -> None:
            def collected(kind: type) -> Any:
                return kind(**{one.name: values.pop(one.name) for one in dataclasses.fields(kind)})

            options = {parameter: collected(kind) for parameter, kind in groups.items()}
            output = Output(**vars(collected(OutputOptions)))
            if panel == _QUICK:
                load_later(*_SLOW_MODULES)
            output.run(lambda: work(output, **values, **options))

        parameters: list[inspect.Parameter] = []
        for parameter in list(inspect.signature(work).parameters.values())[1:]:
            grouped = parameter.name in groups
            parameters += _parameters(groups[parameter.name]) if grouped else [parameter]
        signature = inspect.Signature([*parameters, *_parameters(OutputOptions)])
        run.__signature__ = signature  # type: ignore[attr-defined]
        lines = "\n".join(broken(f"$ {example}") for example in examples)
        # \b keeps the lines of a paragraph as they are.
        text = f"{inspect.getdoc(work)}\n\n\b\nExample:\n{lines}"
        app.command(work.__name__, help=text, rich_help_panel=panel)(run)
        return work

    return register


def _parameters(kind: type) -> list[inspect.Parameter]:
    return [
        inspect.Parameter(
            one.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=one.metadata["option"],
            annotation=one.type,
        )
        for one in dataclasses.fields(kind)
    ]


def broken(command_line: str, width: int = 74) -> str:
    r"""Break a long command into lines that a shell joins.

    Examples
    --------
    >>> print(broken("likeminds rank power.likeminds --top 3", 34))
    likeminds rank power.likeminds \
        --top 3
    """
    lines = [""]
    for part in re.split(r" (?=--)", command_line):
        if lines[-1] and len(lines[-1]) + len(part) >= width:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return " \\\n".join(lines)


def _show_version(requested: bool) -> None:
    if requested:
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


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line; bad input ends in one sentence and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        The words after the name of the program; by default, those of the shell.
    """
    words = sys.argv[1:] if arguments is None else list(arguments)
    for name in ("COLUMNS", "LINES"):  # unset if they are not usable sizes
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
        name = f"{words[0]} " if words and words[0] in names else ""
        end = "" if wrong.endswith(("?", ".")) else "."
        print_error(f"Error: {wrong}{end} See likeminds {name}--help.")
        return 2
    return code if isinstance(code, int) else 0


def _spread_numbers(words: Sequence[str]) -> list[str]:
    """Repeat an option before each of several numbers: --shots 0 5 10.

    Examples
    --------
    >>> _spread_numbers(["evaluate", "--shots", "0", "5", "--json"])
    ['evaluate', '--shots', '0', '--shots', '5', '--json']
    """
    spread: list[str] = []
    within = False
    for word in words:
        if within and word.isdecimal() and spread[-1] != _SEVERAL_NUMBERS:
            spread.append(_SEVERAL_NUMBERS)
        within = word == _SEVERAL_NUMBERS or (within and word.isdecimal())
        spread.append(word)
    return spread


class SignalledError(BaseException):
    """A signal that ends the program; unlike KeyboardInterrupt, solvers do not catch it."""

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_to_the_end(run: Callable[[], int]) -> int:
    """Run the program and return its exit code; signals and closed pipes end it without errors."""
    _fill_closed_streams()
    try:
        with _signals_raised():
            code = run()
            sys.stdout.flush()
    except SignalledError as signalled:
        _print_failure(f"{_SIGNAL_NAMES[signal.Signals(signalled.number).name]}.")
        return _BY_SIGNAL + signalled.number
    except BrokenPipeError:
        return _end_broken_pipe()
    except SystemExit as ended:
        # typer and rich raise it when a pipe is closed.
        if isinstance(ended.__context__, BrokenPipeError):
            return _end_broken_pipe()
        raise
    except OSError as error:
        _discard_output()
        _print_failure(f"Standard output: {error.strerror}." if error.strerror else str(error))
        return 1
    return code


def _print_failure(text: str) -> None:
    with suppress(OSError):
        print_error(f"Error: {text}")


@contextmanager
def _signals_raised() -> Iterator[None]:
    former: dict[int, Any] = {}

    def handle(number: int, frame: FrameType | None) -> None:
        if not _in_critical_section(frame):
            raise SignalledError(number)
        again = threading.Timer(_SOON, _send, [number])
        again.daemon = True
        again.start()

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name, None) for name in _SIGNAL_NAMES):
            # Signals that the parent process ignores (nohup) stay ignored.
            if number and signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
                former[number] = signal.signal(number, handle)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _in_critical_section(frame: FrameType | None) -> bool:
    """Return whether an exception in a frame would be lost, or would leave a lock behind.

    Python prints and drops exceptions of ``__del__``. An exception in a `threading.Condition`
    that acquires or releases its lock leaves the lock in the wrong state.
    """
    while frame is not None:
        if frame.f_code.co_name == "__del__" or frame.f_code in _LOCKING:
            return True
        # Until this name is assigned, nothing restores the lock that `wait` has released.
        if frame.f_code is _WAIT and "gotit" not in frame.f_locals:
            return True
        frame = frame.f_back
    return False


def _send(number: int) -> None:
    """Send a signal to the main thread, even if it is waiting."""
    if sys.platform == "win32":
        signal.raise_signal(number)
        return
    ident = threading.main_thread().ident
    assert ident is not None
    signal.pthread_kill(ident, number)


def _end_broken_pipe() -> int:
    _discard_output()
    return _BY_SIGNAL + getattr(signal, "SIGPIPE", 13)


def _discard_output() -> None:
    """Redirect standard output to the null device, where the buffers are flushed at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_closed_streams() -> None:
    """Open the null device for closed standard streams, so files do not get their descriptors."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
    if sys.stdout is None:
        sys.stdout = _ClosedOutput()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - to the end


class _ClosedOutput(io.TextIOBase):
    """A closed standard output: writing to it raises an error."""

    encoding = "utf-8"

    def write(self, _: str) -> int:
        raise OSError("Standard output is closed, so the result cannot be written.")
