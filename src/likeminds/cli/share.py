"""``likeminds report``, ``card`` and ``export``: reports, model cards and soft labels."""

from collections.abc import Hashable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.atomic_files import place_for, write_whole
from likeminds.cli._label_tables import read_texts
from likeminds.cli._labels import read_labels
from likeminds.cli._models import (
    diagnose_annotators,
    joined,
    parse_verdicts,
    rankers_of,
    training_labels,
    without_verdicts,
)
from likeminds.cli._options import Attribute, LabelOptions, Model, NSchools, Texts, Without, option
from likeminds.cli._output import Output, write_rows
from likeminds.cli.main import DATA, FIT, command

if TYPE_CHECKING:
    from likeminds.data.connectors.labelling_tools import ExportQuestion
    from likeminds.rankers.capabilities import ReadableModel
    from likeminds.rankers.ranker import Ranker
    from likeminds.schools.school_soft_labels import SoftLabels


@command("Ask", DATA, FIT, "likeminds report power.likeminds --out power.html")
def report(
    output: Output,
    *,
    model: Model,
    out: Path = option("The page: an .html file.", "--out", "-o"),
    data: LabelOptions,
    texts: Texts = None,
    title: str | None = option("The title of the page.", default=None),
    schools: NSchools = None,
    diagnostics: bool = option(
        "Include accuracy and annotators, with five more fits for each attribute.", default=True
    ),
) -> None:
    """Write a self-contained HTML page about a model: schools, people, accuracy, pictures.

    Give the training labels with --annotations if the model was saved without them. With --images,
    items are shown as thumbnails.
    """
    if out.suffix.lower() not in {".html", ".htm"}:
        raise ValueError(f"The report is an HTML page: end {out} in .html.")
    place_for(out, "the report")
    loaded = likeminds.load(model)
    called = (loaded.item_names or None) if texts is None else read_texts(texts)
    annotations = None
    if data.annotations is not None:
        annotations = read_labels(output, data, model=loaded).annotations
    if diagnostics and annotations is None and loaded.training_annotations_ is None:
        output.note("the model has no labels for diagnostics: give --annotations.")
    elif diagnostics:
        fits = 5 * len(loaded.rankers_)
        output.note(f"diagnostics take up to {fits} more fits; --no-diagnostics leaves them out.")
    with output.progress("writing"):
        page = likeminds.write_report(
            loaded,
            out,
            annotations,
            None if data.images is None else _thumbnails(data.images),
            title or f"Report: {model.stem}",
            n_schools="auto" if schools is None else schools,
            diagnostics=diagnostics,
            texts=called,
        )
    size = page.stat().st_size
    output.json({"model": str(model), "page": str(page), "bytes": size})
    output.show(f": {size / 1e6:.1f} MB, all in one file", head=str(page))
    output.hint("Open it in a browser.")


def _thumbnails(folder: Path) -> dict[Hashable, Path]:
    """Return the pictures of the items, by full name and by name without folder and ending."""
    from likeminds.features.images import list_images

    found: dict[Hashable, Path] = {}
    for path in list_images(folder):
        found[path.relative_to(folder).as_posix()] = path
        found.setdefault(path.stem, path)
    return found


@command(
    "Ask",
    DATA,
    FIT,
    "likeminds export power.likeminds --out offers.csv",
    "likeminds export power.likeminds --annotators annotators.csv",
)
def export(
    output: Output,
    *,
    model: Model,
    out: Path | None = option(
        "The file of soft labels: a table (.csv, .jsonl, .json, .parquet), or JSON with --back-to.",
        "--out",
        "-o",
        default=None,
    ),
    back_to: tuple[str, str] | None = option(
        "Write predictions for label-studio, or suggestions for argilla. FILE is the export of "
        "the labels.",
        metavar="TOOL FILE",
        default=None,
    ),
    annotators: str | None = option(
        "Write a table of the reliability of annotators, as diagnose does, with five more fits "
        "for each attribute.",
        default=None,
    ),
    without: Without = None,
    attribute: Attribute = None,
) -> None:
    """Write soft labels: the share of people who would say yes to each item.

    The share of an item uses the labels of users who labelled it, and predictions for all others.
    With --back-to, the likelier label and its share are written for the labelling tool. For classes
    without an order, each class has a column of shares.
    """
    from likeminds.data.sources import as_written

    if out is None and (annotators is None or back_to is not None):
        raise ValueError("Give --out for soft labels, --annotators for annotators, or both.")
    verdicts = [] if without is None else parse_verdicts(without)
    if out is not None:
        place_for(out, "soft labels")
        if back_to is None:
            as_written(str(out))
    if annotators is not None:
        as_written(annotators)
    loaded = likeminds.load(model)
    rankers = rankers_of(loaded, attribute)
    found: dict[str, Any] = {"model": str(model)}
    if verdicts:
        from likeminds.diagnostics.annotators import refittable

        kept = without_verdicts(output, verdicts, loaded, training_labels(rankers))
        rankers = {name: refittable(rankers[name]).fit(part) for name, part in kept.items()}
    if out is not None:
        found |= {"file": str(out), "items": _write_soft_labels(loaded, rankers, out, back_to)}
    if annotators is not None:
        diagnosed = diagnose_annotators(loaded, training_labels(rankers_of(loaded, attribute)))
        users = joined({name: one.to_arrow().to_pylist() for name, one in diagnosed.items()})
        write_rows(users, annotators)
        found |= {"annotators": annotators, "users": len(users)}
    output.json(found)
    if out is not None:
        output.show(f": soft labels of {found['items']:,} items", head=str(out))
    if annotators is not None:
        output.show(f": {found['users']:,} annotators", head=annotators)


def _write_soft_labels(
    model: "ReadableModel",
    rankers: "dict[str, Ranker]",
    out: Path,
    back_to: tuple[str, str] | None,
) -> int:
    """Write soft labels as a table, or for a labelling tool; return the number of items."""
    from likeminds.data.connectors.labelling_tools import return_to

    if isinstance(model, likeminds.NominalRanker) and back_to is None and rankers == model.rankers_:
        shares = model.soft_labels()
        write_rows(shares.to_arrow().to_pylist(), out)
        return len(shares.items)
    soft = {name: _soft_labels(ranker) for name, ranker in rankers.items()}
    if back_to is None:
        write_rows(joined({name: one.to_arrow().to_pylist() for name, one in soft.items()}), out)
    else:
        questions = [_question(name, rankers[name], one) for name, one in soft.items()]
        write_whole(out, return_to(*back_to, questions))
    return sum(len(one.items) for one in soft.values())


def _soft_labels(ranker: "Ranker") -> "SoftLabels":

    found = likeminds.find_schools(ranker).soft_labels
    if found is None:
        raise ValueError("Soft labels need the items of the training data: fit with --keep-data.")
    return found


def _question(name: str, ranker: "Ranker", soft: "SoftLabels") -> "ExportQuestion":
    from likeminds.data.connectors.labelling_tools import ExportQuestion

    reading = ranker.label_reading_
    if reading is None or reading.positive is None or reading.grades is not None:
        raise ValueError(
            "--back-to needs two labels with names, but these labels are ratings or true and "
            "false. Leave it out for a table of shares."
        )
    shares = dict(zip(soft.items.tolist(), soft.share.tolist(), strict=True))
    return ExportQuestion(name or None, str(reading.positive), str(reading.negative), shares)


@command("Ask", DATA, FIT, "likeminds card power.likeminds --out README.md")
def card(
    output: Output,
    *,
    model: Model,
    out: Path | None = option(
        "The Markdown file of the card; by default, it is printed.", "--out", "-o", default=None
    ),
    name: str | None = option("The name of the model.", default=None),
    license_name: str | None = option("Its licence.", "--license", default=None),
) -> None:
    """Write a model card: the model, its training data, its accuracy and its limits.

    The metadata at the top are in the format of model hubs.
    """
    from likeminds.report.model_card import model_card

    if out is not None:
        place_for(out, "the card")
    text = model_card(
        likeminds.read_card(model), name or model.stem, file=model.name, license_name=license_name
    )
    if out is None:
        output.show(text)
    else:
        write_whole(out, text.encode())
        output.show(": the model's card", head=str(out))
    output.json({"model": str(model), "out": None if out is None else str(out), "card": text})
