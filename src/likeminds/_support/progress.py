"""How far a long job is, on stderr, and the time left."""

from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from likeminds._support.screen import Screen


def progress_bar(shown: bool) -> Progress:
    """Return a bar that goes away when it is done; one that is not shown costs nothing.

    Parameters
    ----------
    shown : bool
        Whether anybody wants to see it.
    """
    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Screen(stderr=True),
        disable=not shown,
        transient=True,
    )
