"""The terminal, as everything that is shown on it meets it."""

import os
from collections.abc import Iterable
from typing import Any

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment
from rich.text import Text

from likeminds._support.visible import visible


class Screen(Console):
    """A console on which no text can do more than be read.

    Whatever is printed comes by here as a text in the end, be it in a table or in a bar; its
    control characters are shown as escapes. With ``NO_COLOR`` set, nothing but text is written.

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
        """Render a text with its control characters shown, and anything else as it is."""
        if isinstance(renderable, Text):
            safe = visible(renderable.plain)
            if safe != renderable.plain:
                renderable = Text(safe, style=renderable.style, overflow="fold")
        return super().render(renderable, options)
