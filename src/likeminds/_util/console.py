"""Output to a terminal: escaped control characters, and progress of long jobs on stderr."""

import os
import shlex
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from time import perf_counter
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    ProgressColumn,
    Task,
    TaskID,
    TextColumn,
)
from rich.segment import Segment
from rich.text import Text

from likeminds._util.text_format import visible

# Called with the number done, a description, and the share of work done (default: done / total).
Tell = Callable[..., None]
# Seconds between lines of progress in a pipe.
_SECONDS_BETWEEN_LINES = 10


class SafeConsole(Console):
    """A console of rich that shows control characters as escapes, and obeys ``NO_COLOR``."""

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        super().__init__(**options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Escape texts; cells of tables and progress bars, too, are rendered as texts."""
        if isinstance(renderable, Text):
            safe = visible(renderable.plain)
            if safe != renderable.plain:
                renderable = Text(safe, style=renderable.style, overflow="fold")
        return super().render(renderable, options)


def program() -> str:
    """Return the command that starts this program from this folder: its name, or its path."""
    name = "likeminds"
    called = Path(sys.argv[0])
    if called.stem != name or not called.is_file():
        return name
    found = shutil.which(name)
    if found is not None and Path(found).samefile(called):
        return name
    path = os.path.relpath(called)
    return shlex.quote(str(called) if path.startswith("..") else path)


class _Bar(Progress):
    """A bar whose time left is extrapolated from all work since the start.

    rich extrapolates the last 30 seconds, which is wrong if some fits take seconds and some
    minutes. In a pipe, a line on stderr every ten seconds replaces the bar.
    """

    def __init__(self, *columns: ProgressColumn, piped: bool, **options: Any) -> None:
        super().__init__(*columns, **options)
        self._piped, self._last_line = piped, self.get_time()

    def update(self, task_id: TaskID, *, share: float | None = None, **change: Any) -> None:
        task = self._tasks[task_id]
        if change.get("completed", task.completed) < task.completed:  # the next phase of the job
            self.reset(task_id)
        if change.get("total", 0) is None:  # rich takes None for "unchanged"
            task.total = None
        super().update(task_id, **change)
        if share is None:
            share = task.completed / task.total if task.total else 0.0
        if share > 0 and share != task.fields.get("share"):
            super().update(task_id, share=share, lasts=(task.elapsed or 0.0) / share)
        if self._piped and self.get_time() >= self._last_line + _SECONDS_BETWEEN_LINES:
            self._last_line = self.get_time()
            end = "" if task.total is None else f" of {task.total:g}"
            line = visible(f"{task.description} {task.completed:g}{end}, {_clock(task)}")
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()


class _Clock(ProgressColumn):
    """The time left; the time taken if the end is unknown."""

    def render(self, task: Task) -> Text:
        return Text(_clock(task))


def _clock(task: Task) -> str:
    taken = task.elapsed or 0.0
    if task.total is None:
        return in_words(taken)
    if "lasts" not in task.fields:
        return ""
    return f"about {in_words(max(task.fields['lasts'] - taken, 0.0))} left"


def in_words(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours."""
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def progress_bar(
    shown: bool, clock: Callable[[], float] = perf_counter, console: Console | None = None
) -> Progress:
    """Return a bar, on stderr or a console, that is removed when done; a pipe gets lines."""
    console = console or SafeConsole(stderr=True)
    piped = shown and not console.is_terminal
    return _Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Clock(),
        console=console,
        disable=piped or not shown,
        piped=piped,
        transient=True,
        get_time=clock,
    )


@contextmanager
def report_progress(
    shown: bool,
    what: str,
    total: int | None = None,
    clock: Callable[[], float] = perf_counter,
    console: Console | None = None,
) -> Iterator[Tell]:
    """Yield ``tell(done, description, share=None)``, which draws a bar, or writes lines to a pipe.

    ``what`` is counted, as in "3 of 8 fits". Without a total, lines come once a second at most.
    """
    piped, start = shown and not sys.stderr.isatty(), clock()
    with progress_bar(shown and not piped, clock, console) as bar:
        task = bar.add_task(what, total=total)
        last = -1.0

        def tell(done: int, description: str, share: float | None = None) -> None:
            nonlocal last
            bar.update(task, completed=done, description=description, share=share)
            taken = clock() - start
            if not piped or (total is None and last >= 0 and taken < last + 1):
                return
            last = taken
            if total is None:
                line = f"{what} {done}: {description}, {in_words(taken)}"
            else:
                left = in_words(taken / (share or done / total) - taken)
                time = f"about {left} left" if done < total else in_words(taken)
                line = f"{done} of {total} {what} ({description}), {time}"
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

        yield tell
