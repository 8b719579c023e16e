"""The command line: ``likeminds COMMAND``."""

from pathlib import Path
from typing import Annotated, Any

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


@app.command()
def reproduce(  # noqa: PLR0917 - options, which nobody passes by position
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, fig3, fig4, fig5, drawings (Figures 1 and 2), ablation, "
            "or all."
        ),
    ] = "all",
    scale: Annotated[
        str, typer.Option(help="quick (minutes) or paper (15 repeats, about an hour).")
    ] = "quick",
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder of the report.")] = Path(
        "reproduced"
    ),
    shoes: Annotated[
        Path | None, typer.Option(help="A folder with the original Shoes data.")
    ] = None,
    sun: Annotated[Path | None, typer.Option(help="A folder with the original SUN data.")] = None,
    data: Annotated[
        list[Path] | None,
        typer.Option(
            help="A further data set for Table 3 (.csv, .parquet, .npz); may be repeated."
        ),
    ] = None,
    jobs: Annotated[
        int | None, typer.Option(help="Fits at the same time; by default one for each core.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Where data and splits start from.")] = 0,
) -> None:
    """Rebuild the tables and figures of the paper, and say what holds.

    What is finished is kept in the folder: an interrupted run continues where it was.

    Example: likeminds reproduce all --scale quick --out reproduced
    """
    from likeminds.experiments.command import reproduce as run  # noqa: PLC0415 - as above

    options: dict[str, Any] = {"shoes": shoes, "sun": sun, "data": data or (), "seed": seed}
    try:
        pages = run(what, scale, out, jobs=jobs, **options)
    except KeyboardInterrupt:
        typer.echo(f"Interrupted. What is finished is kept in {out}: the same command continues.")
        raise typer.Exit(130) from None
    typer.echo(f"Written: {', '.join(map(str, pages))}")
    typer.echo(f"Open {pages[-1]} in a browser; figures for programs are in {out}.")


def main() -> None:
    """Run the command line; bad input ends in one sentence and exit code 2."""
    try:
        app()
    except (
        ValueError,
        FileNotFoundError,
        IsADirectoryError,
        NotADirectoryError,
        PermissionError,
    ) as error:
        typer.secho(f"Error: {error}", fg="red", err=True)
        raise SystemExit(2) from error
