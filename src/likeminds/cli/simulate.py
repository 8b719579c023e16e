"""``likeminds simulate``: a crowd whose truth is known."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Seed
from likeminds.cli._output import Output
from likeminds.cli.data import tell_written


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    examples = ["likeminds simulate --n-users 60 --schools 3 --out crowd"]
    command(app, panel="Start", examples=examples)(simulate)


def simulate(
    talk: Output,
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")],
    people: Annotated[int, typer.Option("--n-users", help="How many people.")] = 100,
    labels: Annotated[int, typer.Option("--n-labels", help="How many labels each.")] = 40,
    items: Annotated[
        int, typer.Option("--n-items", help="How many items there are to label.")
    ] = 400,
    features: Annotated[
        int, typer.Option("--n-features", help="How many features an item has.")
    ] = 12,
    schools: Annotated[int, typer.Option(help="How many schools of thought.")] = 3,
    loners: Annotated[int, typer.Option(help="How many belong to none.")] = 0,
    noise: Annotated[float, typer.Option(help="The share of labels that are slips.")] = 0.05,
    seed: Seed = 0,
) -> None:
    """Simulate people in schools of thought that contradict each other on some features."""
    from likeminds._util.atomic_files import folder_for
    from likeminds.datasets import make_schools
    from likeminds.datasets.exports import write_simulation

    folder_for(out, "the tables")
    simulation = make_schools(
        people,
        labels,
        items,
        features,
        schools,
        contested=0.5,
        n_loners=loners,
        label_noise=noise,
        random_state=seed,
    )
    tell_written(talk, out, write_simulation(simulation, out))
