"""The command line: ``likeminds COMMAND``."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds._version import __version__

app = typer.Typer(
    help="Learn what a crowd agrees on, what its schools of thought want differently, "
    "and who sees it their own way.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _show_version(wanted: bool) -> None:
    if wanted:
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


@app.command()
def demo(
    out: Annotated[
        Path, typer.Option("--out", "-o", help="Where the fitted model is saved.")
    ] = Path("electricity.likeminds"),
    seed: Annotated[int, typer.Option(help="Which choices are held out.")] = 0,
) -> None:
    """Fit 361 households' choices of electricity contracts, and tell what came out.

    Example: likeminds demo --out electricity.likeminds
    """
    # Imported here: scikit-learn takes longer to import than --help should take to answer.
    from likeminds.demo import run  # noqa: PLC0415

    run(out, seed)


def main() -> None:
    """Run the command line; bad input ends in one sentence and exit code 2."""
    try:
        app()
    except (ValueError, FileNotFoundError, IsADirectoryError, PermissionError) as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        raise SystemExit(2) from error
