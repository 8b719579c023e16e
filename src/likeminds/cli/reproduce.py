"""``likeminds reproduce``: the paper's tables and figures."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Seed
from likeminds.cli._output import Output
from likeminds.cli._signals import SignalledError


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    examples = ["likeminds reproduce fig3 --scale tiny --jobs 1 --out reproduced"]
    command(app, panel="Check", examples=examples)(reproduce)


def reproduce(
    talk: Output,
    *,
    what: Annotated[
        str,
        typer.Argument(
            help="table1, table2, table3, fig3, fig4, fig5, drawings (Figures 1 and 2), ablation, "
            "or all."
        ),
    ] = "all",
    scale: Annotated[
        str,
        typer.Option(
            help="quick (minutes), paper (15 repeats, about an hour), or tiny (to see it run)."
        ),
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
    seed: Seed = 0,
) -> None:
    """Rebuild the tables and figures of the paper, and say what holds.

    What is finished is kept in the folder: an interrupted run continues where it was.
    """
    from likeminds._util.console import SafeConsole
    from likeminds.paper.experiments.command import reproduce as run

    try:
        pages = run(
            what,
            scale,
            out,
            shoes=shoes,
            sun=sun,
            data=data or (),
            jobs=jobs,
            seed=seed,
            progress=talk.shows_progress,
            console=SafeConsole(stderr=True, quiet=talk.quiet),
        )
    except (KeyboardInterrupt, SignalledError):
        talk.note(f"what is finished is kept in {out}: the same command continues.")
        raise
    talk.result({"pages": [str(page) for page in pages], "folder": str(out)})
    talk.tell(f"Written: {', '.join(map(str, pages))}")
    talk.remark(f"Open {pages[-1]} in a browser; figures for programs are in {out}.")
