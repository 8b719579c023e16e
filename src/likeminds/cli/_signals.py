"""How the program ends: at a signal, at a pipe that nobody reads, with its streams closed."""

import io
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

from likeminds.cli._output import print_error

# What a shell says of a program that a signal ended.
_BY_A_SIGNAL = 128
_NAMES = {"SIGINT": "Interrupted", "SIGTERM": "Terminated", "SIGHUP": "Hung up"}
# After so many seconds, a signal that came at a bad moment comes again.
_SOON = 0.05
_WAIT = threading.Condition.wait.__code__
_LOCKING = {threading.Condition.__enter__.__code__, threading.Condition.__exit__.__code__}


class SignalledError(BaseException):
    """A signal that asks the program to end.

    It is no KeyboardInterrupt, which solvers take for a wish to stop with the best weights so
    far: a command ends, and what was there before stays.
    """

    def __init__(self, number: int) -> None:
        super().__init__(number)
        self.number = number


def run_to_the_end(run: Callable[[], int]) -> int:
    """Run the program, and return its exit code.

    Signals become exceptions, so that everything is cleaned up behind them. Who closes the pipe
    early has read enough: that is no error, and the exit code is that of other programs.
    """
    _fill_closed_streams()
    try:
        with _signals_raised():
            code = run()
            sys.stdout.flush()
    except SignalledError as asked:
        _say(f"{_NAMES[signal.Signals(asked.number).name]}.")
        return _BY_A_SIGNAL + asked.number
    except BrokenPipeError:
        return _nobody_reads()
    except SystemExit as ended:
        # So end typer and rich when they find that nobody reads.
        if isinstance(ended.__context__, BrokenPipeError):
            return _nobody_reads()
        raise
    except OSError as error:
        _forget_output()
        _say(f"Standard output: {error.strerror}." if error.strerror else str(error))
        return 1
    return code


def _say(text: str) -> None:
    with suppress(OSError):
        print_error(f"Error: {text}")


@contextmanager
def _signals_raised() -> Iterator[None]:
    former: dict[int, Any] = {}

    def raise_it(number: int, frame: FrameType | None) -> None:
        if not _is_bad_moment(frame):
            raise SignalledError(number)
        again = threading.Timer(_SOON, _send, [number])
        again.daemon = True
        again.start()

    if threading.current_thread() is threading.main_thread():
        for number in (getattr(signal, name, None) for name in _NAMES):
            # What somebody wants to be ignored (nohup does) stays so.
            if number and signal.getsignal(number) in {signal.SIG_DFL, signal.default_int_handler}:
                former[number] = signal.signal(number, raise_it)
    try:
        yield
    finally:
        for number, handler in former.items():
            signal.signal(number, handler)


def _is_bad_moment(frame: FrameType | None) -> bool:
    """Say whether an exception raised in a frame would be lost, or would leave a lock behind.

    Python prints and forgets what ``__del__`` raises. A `threading.Condition` that is interrupted
    while it takes or gives back its lock has the lock in the wrong state: it stays locked, or is
    released twice.
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
    """Send a signal to the main thread, which may be waiting for something."""
    if hasattr(signal, "pthread_kill"):
        ident = threading.main_thread().ident
        assert ident is not None
        signal.pthread_kill(ident, number)
    else:
        signal.raise_signal(number)


def _nobody_reads() -> int:
    _forget_output()
    return _BY_A_SIGNAL + getattr(signal, "SIGPIPE", 13)


def _forget_output() -> None:
    """Redirect standard output to the null device, where the buffers are flushed at exit."""
    with suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _fill_closed_streams() -> None:
    """Open the null device for closed standard streams, lest a file get their descriptors."""
    for descriptor in range(3):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest free descriptor
    if sys.stdout is None:
        sys.stdout = _Closed()
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w", encoding="utf-8")  # noqa: SIM115, PTH123 - to the end


class _Closed(io.TextIOBase):
    """A closed standard output: writing to it raises an error."""

    encoding = "utf-8"

    def write(self, _: str) -> int:
        raise OSError("Standard output is closed: there is nowhere to write to.")
