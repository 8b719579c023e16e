"""``likeminds demo``."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Seed
from likeminds.cli._output import Output


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    command(app, panel="Start", examples=["likeminds demo --out electricity.likeminds"])(demo)


def demo(
    talk: Output,
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the fitted model is saved.")
    ] = Path("electricity.likeminds"),
    seed: Seed = 0,
) -> None:
    """Fit 361 households' choices of electricity contracts, and tell what came out."""
    from likeminds._util.console import SafeConsole
    from likeminds.cli.tour import run

    console = SafeConsole(quiet=talk.as_json)
    talk.result(run(out, seed, console, progress=talk.shows_progress))
