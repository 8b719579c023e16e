"""``likeminds report``: one page about a model."""

from pathlib import Path
from typing import Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import ItemOptions, LabelColumns, Model, Texts
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, FIT


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    ask = "likeminds report power.likeminds --out power.html"
    command(app, panel="Ask", examples=[DATA, FIT, ask])(report)


def report(
    talk: Output,
    *,
    model: Model,
    out: Annotated[Path, typer.Option("--out", "-o", help="The page: an .html file.")],
    items: ItemOptions,
    columns: LabelColumns,
    annotations: Annotated[
        str | None,
        typer.Option(
            "--annotations",
            "-a",
            help="What the model has learned from, where it has not kept it.",
            rich_help_panel="Data",
        ),
    ] = None,
    texts: Texts = None,
    title: Annotated[str | None, typer.Option(help="What the page is called.")] = None,
    schools: Annotated[
        int | None, typer.Option(min=1, help="How many schools; by default the data say.")
    ] = None,
    diagnostics: Annotated[
        bool,
        typer.Option(
            help="Judge accuracy and annotators, which takes five more fits for each attribute."
        ),
    ] = True,
) -> None:
    """Write one self-contained HTML page about a model: schools, people, accuracy, pictures.

    With --images, items are shown as thumbnails.
    """
    from likeminds._util.atomic_files import place_for
    from likeminds.cli._id_lookup import read_texts
    from likeminds.cli._labels import read_said
    from likeminds.cli._models import open_model, rankers_of
    from likeminds.report import write_report

    place_for(out, "the report")
    known = open_model(model)
    said = None
    called = (known.item_names or None) if texts is None else read_texts(texts)
    if annotations is not None:
        said = read_said(talk, annotations, items, columns, known).annotations
    if diagnostics and said is None and known.kept_ is None:
        talk.note("the model has kept no labels to judge people by: --annotations gives them.")
    elif diagnostics:
        fits = 5 * len(rankers_of(known))
        talk.note(
            f"judging the people takes up to {fits} more fits; --no-diagnostics leaves them out."
        )
    with talk.bar() as bar:
        bar.add_task("writing", total=None)
        page = write_report(
            known,
            out,
            said,
            _thumbnails(items.images),
            title or f"What people make of it: {model.stem}",
            n_schools="auto" if schools is None else schools,
            diagnostics=diagnostics,
            texts=called,
        )
    size = page.stat().st_size
    talk.result({"model": str(model), "page": str(page), "bytes": size})
    talk.tell(f": {size / 1e6:.1f} MB, everything in this one file", head=str(page))
    talk.remark("Open it in a browser.")


def _thumbnails(folder: Path | None) -> dict[Any, Path] | None:
    """Return the pictures of the items, by all the names that items may have."""
    if folder is None:
        return None
    from likeminds.features.images import list_images

    found: dict[Any, Path] = {}
    for path in list_images(folder):
        found[path.relative_to(folder).as_posix()] = path
        found.setdefault(path.stem, path)
    return found
