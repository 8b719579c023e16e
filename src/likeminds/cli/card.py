"""``likeminds card``: a README for a model that is shared."""

from pathlib import Path
from typing import Annotated

import typer

from likeminds.cli._command import command
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds card power.likeminds --out README.md"
    command(app, panel="Ask", examples=[DATA, FIT, ask])(card)


def card(
    talk: Output,
    *,
    model: Annotated[Path, typer.Argument(help="The model, a file that fit wrote.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="The card, in Markdown; else it is printed.")
    ] = None,
    name: Annotated[str | None, typer.Option(help="What the model is called.")] = None,
    license_name: Annotated[
        str | None, typer.Option("--license", help="Under which licence it may be used.")
    ] = None,
) -> None:
    """Write a model card: what the model is, what it learned from, how good and how limited it is.

    The metadata at its head is what places that share models read.
    """
    from likeminds._util.atomic_files import place_for, write_whole
    from likeminds.report.model_card import model_card
    from likeminds.storage.models import read_card

    if out is not None:
        place_for(out, "the card")
    known = read_card(model)
    text = model_card(known, name or model.stem, file=model.name, license_name=license_name)
    if out is not None:
        write_whole(out, text.encode())
        talk.tell(": the model's card", head=str(out))
    elif not talk.as_json:
        talk.tell(text)
    talk.result({"model": str(model), "out": None if out is None else str(out), "card": text})
