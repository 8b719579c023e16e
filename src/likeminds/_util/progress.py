"""Progress of a long job on stderr, with the time left: a bar, or lines where it is piped."""

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import perf_counter
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, Task, TextColumn
from rich.text import Text

from likeminds._util.console import SafeConsole

# Called with what is done, a description, and the share of the work, if that is not done / total.
Tell = Callable[..., None]


class _Bar(Progress):
    """A bar that expects all work to take as long per share as the work done, since the start.

    rich extrapolates the last 30 seconds, which misleads where some fits take seconds and some
    minutes.
    """

    def update(self, task_id: Any, *, share: float | None = None, **change: Any) -> None:
        task = self._tasks[task_id]
        if change.get("completed", task.completed) < task.completed:  # the next phase of the job
            self.reset(task_id)
        if change.get("total", 0) is None:  # which rich takes for "as before"
            task.total = None
        super().update(task_id, **change)
        if share is None:
            share = task.completed / task.total if task.total else 0.0
        if share > 0 and share != task.fields.get("share"):
            super().update(task_id, share=share, lasts=(task.elapsed or 0.0) / share)


class _Clock(ProgressColumn):
    """The time left; the time taken where the end is unknown."""

    def render(self, task: Task) -> Text:
        taken = task.elapsed or 0.0
        if task.total is None:
            return Text(in_words(taken))
        if "lasts" not in task.fields:
            return Text("")
        return Text(f"about {in_words(max(task.fields['lasts'] - taken, 0.0))} left")


def in_words(seconds: float) -> str:
    """Return a duration in seconds, minutes or hours.

    Examples
    --------
    >>> in_words(42.3), in_words(600), in_words(10_000)
    ('42 s', '10 min', '2.8 h')
    """
    if seconds < 120:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def progress_bar(
    shown: bool, clock: Callable[[], float] = perf_counter, console: Console | None = None
) -> Progress:
    """Return a bar that goes away when it is done; one that is not shown costs nothing.

    Parameters
    ----------
    shown : bool
        Whether to draw it.
    clock : callable, optional
        Returns the time in seconds.
    console : Console, optional
        Where to draw it, by default on stderr. Lines printed on it stay above the bar.
    """
    return _Bar(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        _Clock(),
        console=console or SafeConsole(stderr=True),
        disable=not shown,
        transient=True,
        get_time=clock,
    )


@contextmanager
def expected_information(
    shown: bool,
    what: str,
    total: int | None = None,
    clock: Callable[[], float] = perf_counter,
    console: Console | None = None,
) -> Iterator[Tell]:
    """Yield a function that reports progress: ``tell(done, description, share=None)``.

    Parameters
    ----------
    shown : bool
        Whether to report at all.
    what : str
        What is counted, as in "3 of 8 fits".
    total : int, optional
        How many there are. Without it, lines come once in a second at most.
    clock : callable, optional
        Returns the time in seconds.
    console : Console, optional
        Where a bar is drawn, by default on stderr.
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
                left = taken / (share or done / total) - taken
                line = f"{done} of {total} {what} ({description}), about {in_words(left)} left"
            sys.stderr.write(f"{line}\n")
            sys.stderr.flush()

        yield tell
