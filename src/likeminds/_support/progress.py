"""How far a long job is, on stderr, and the time left."""

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn


def progress_bar(shown: bool) -> Progress:
    """Return a bar that goes away when it is done; one that is not shown costs nothing.

    Parameters
    ----------
    shown : bool
        Whether anybody wants to see it.
    """
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        disable=not shown,
        transient=True,
    )
