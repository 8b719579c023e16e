"""The console of all output to a terminal: control characters are escaped."""

import os
import shlex
import shutil
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from likeminds._util.text_format import visible


class SafeConsole(Console):
    """A console that shows control characters as escapes.

    Tables and progress bars, too, render their cells as `rich.text.Text`, which is where
    characters are escaped. With ``NO_COLOR`` set, no styles are written.

    Parameters
    ----------
    **options
        Those of `rich.console.Console`.
    """

    def __init__(self, **options: Any) -> None:
        if os.environ.get("NO_COLOR"):
            options["color_system"] = None
        super().__init__(**options)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Render a text with its control characters escaped, and anything else as it is."""
        if isinstance(renderable, Text):
            safe = visible(renderable.plain)
            if safe != renderable.plain:
                renderable = Text(safe, style=renderable.style, overflow="fold")
        return super().render(renderable, options)


def program() -> str:
    """Return how this command was called, as a shell would call it again from this folder.

    That is likeminds where the shell finds this very program by its name, else its path.

    Examples
    --------
    >>> program()
    'likeminds'
    """
    name = "likeminds"
    called = Path(sys.argv[0])
    if called.stem != name or not called.is_file():
        return name
    found = shutil.which(name)
    if found is not None and Path(found).samefile(called):
        return name
    path = os.path.relpath(called)
    return shlex.quote(str(called) if path.startswith("..") else path)
