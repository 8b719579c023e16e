"""``likeminds export``: what people would say of each item, back into the labelling tool."""

from pathlib import Path
from typing import Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import Attribute, Model
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds export power.likeminds --out offers.csv"
    command(app, panel="Ask", examples=[DATA, FIT, ask])(export)


def export(
    talk: Output,
    *,
    model: Model,
    out: Annotated[
        Path,
        typer.Option(
            "--out",
            "-o",
            help="The file: a table (.csv, .jsonl, .json, .parquet), or JSON with --back-to.",
        ),
    ],
    back_to: Annotated[
        tuple[str, str] | None,
        typer.Option(
            "--back-to",
            metavar="TOOL FILE",
            help="Write predictions for label-studio, or suggestions for argilla; FILE is the "
            "export that the labels came from.",
        ),
    ] = None,
    annotators: Annotated[
        str | None,
        typer.Option(
            help="Also write how far each annotator can be relied on, as a table; this takes five "
            "more fits for each attribute.",
        ),
    ] = None,
    attribute: Attribute = None,
) -> None:
    """Write soft labels: which share of people would say yes to each item.

    Those who judged an item count as they did, all others as the model predicts. With --back-to,
    the likelier label and the share of people who would give it go back into the labelling tool.
    """
    from likeminds._util.atomic_files import place_for, write_whole
    from likeminds.cli._models import open_model, rankers_of
    from likeminds.cli._tables import arrow_table
    from likeminds.data.connectors.write_back import return_to
    from likeminds.data.sources import as_written, write_table

    place_for(out, "soft labels")
    if back_to is None:
        as_written(str(out))
    if annotators is not None:
        as_written(annotators)
    known = open_model(model)
    rankers = rankers_of(known, attribute)
    soft = {name: _soft_labels(ranker) for name, ranker in rankers.items()}
    if back_to is None:
        rows = [row for name, one in soft.items() for row in _rows(name, one)]
        write_table(arrow_table(rows), str(out))
    else:
        asked = [_question(name, rankers[name], one) for name, one in soft.items()]
        write_whole(out, return_to(*back_to, asked))
    n_items = sum(len(one.items) for one in soft.values())
    found: dict[str, Any] = {"model": str(model), "file": str(out), "items": n_items}
    if annotators is not None:
        people = [row for name, one in rankers.items() for row in _annotators(name, one)]
        write_table(arrow_table(people), annotators)
        found |= {"annotators": annotators, "people": len(people)}
    talk.result(found)
    talk.tell(f": soft labels of {n_items:,} items", head=str(out))
    if annotators is not None:
        talk.tell(f": {len(people):,} annotators", head=str(annotators))


def _soft_labels(ranker: Any) -> Any:
    from likeminds.schools.find import find_schools

    found = find_schools(ranker).soft_labels
    if found is None:
        raise ValueError(
            "Nothing says who would say yes to which item: the model has kept no items. Fit it "
            "with --keep-data."
        )
    return found


def _rows(attribute: str, soft: Any) -> list[dict[str, Any]]:
    about = {"attribute": attribute} if attribute else {}
    return [about | row for row in soft.table().to_pylist()]


def _question(name: str, ranker: Any, soft: Any) -> Any:
    from likeminds.data.connectors.write_back import ExportQuestion

    reading = ranker._learned("label_reading_")
    if reading is None or reading.positive is None or reading.grades is not None:
        raise ValueError(
            "Only choices between two labels go back into a labelling tool; these labels are "
            "ratings or true and false. Leave out --back-to for a table of shares."
        )
    shares = dict(zip(soft.items.tolist(), soft.share.tolist(), strict=True))
    return ExportQuestion(name or None, str(reading.positive), str(reading.negative), shares)


def _annotators(attribute: str, ranker: Any) -> list[dict[str, Any]]:
    from likeminds.diagnostics import diagnose

    said = ranker._best_model.kept_
    if said is None:
        raise ValueError("--annotators needs labels, and this model has kept none.")
    about = {"attribute": attribute} if attribute else {}
    return [about | row for row in diagnose(ranker, said).table().to_pylist()]
