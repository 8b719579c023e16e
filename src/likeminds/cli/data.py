"""``likeminds data``: the bundled data as files."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Seed
from likeminds.cli._output import Output

_NAMES = ("electricity", "sketch-shoes")


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    examples = [
        "likeminds data electricity --out power",
        "likeminds data sketch-shoes --out shoes --pictures 60 --n-users 20 --attribute open",
    ]
    command(app, panel="Start", examples=examples)(data)


def data(
    talk: Output,
    *,
    name: Annotated[str, typer.Argument(help="electricity, or sketch-shoes.", show_default=False)],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write to.")],
    pictures: Annotated[int, typer.Option(help="Of sketch-shoes: pictures, at most 500.")] = 300,
    people: Annotated[
        int, typer.Option("--n-users", help="Of sketch-shoes: how many people label.")
    ] = 100,
    attribute: Annotated[
        list[str] | None, typer.Option(help="Of sketch-shoes: which; may be repeated.")
    ] = None,
    seed: Seed = 0,
) -> None:
    """Write bundled data as tables: annotations.csv, features.csv, and pictures.

    electricity: 361 households choose among electricity contracts, one of four offers at a time.
    sketch-shoes: drawn shoes, and people who disagree about which are comfortable, open, pointy.
    """
    from likeminds._util.atomic_files import folder_for
    from likeminds.datasets import exports

    if name not in _NAMES:
        raise ValueError(
            f"There is no bundled data called {name!r}; there are {', '.join(_NAMES)}."
        )
    folder_for(out, "the tables")
    if name == "electricity":
        written = exports.write_electricity(out)
    else:
        written = exports.write_sketch_shoes(
            out, n_pictures=pictures, n_users=people, attributes=attribute, random_state=seed
        )
    tell_written(talk, out, written)


def tell_written(talk: Output, out: Path, written: dict[str, str]) -> None:
    """Say what is where, and what to do with it."""
    talk.result({"folder": str(out), "files": written})
    for file, what in written.items():
        talk.tell(f"{out / file}: {what}")
    features = "--images " + str(out / "images") if "images/" in written else ""
    features = features or f"--features {out / 'features.csv'}"
    talk.remark(
        f"\nNext: likeminds fit --annotations {out / 'annotations.csv'} {features} "
        f"--out {out.name}.likeminds"
    )
