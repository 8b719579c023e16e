"""``likeminds update``: more labels into a saved model."""

from contextlib import nullcontext
from pathlib import Path
from typing import Annotated, Any

import typer

from likeminds.cli._command import command
from likeminds.cli._options import ComparisonOptions, ItemOptions, LabelColumns, Model
from likeminds.cli._options import OptionalAnnotations as Source
from likeminds.cli._output import Output
from likeminds.cli.fit import DATA, learn_watched


def add_to(app: typer.Typer) -> None:
    """Add the command."""
    examples = [
        DATA,
        "head -n 8641 power/annotations.csv > first.csv",
        "sed 2,8641d power/annotations.csv > rest.csv",
        "likeminds fit --annotations first.csv --features power/features.csv --out first.likeminds",
        "likeminds update first.likeminds --annotations rest.csv --out all.likeminds",
    ]
    command(app, panel="Learn", examples=examples)(update)


def update(
    talk: Output,
    *,
    model: Model,
    annotations: Source = None,
    items: ItemOptions,
    columns: LabelColumns,
    pairs: ComparisonOptions,
    out: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Where the grown model goes; by default its own file."),
    ] = None,
) -> None:
    """Add labels, of people known or new, to a model that has kept its data.

    The result is that of fitting everything at once. Features of known items may be left out
    where the model has kept them. Ids and labels are read as the model knows them, and what does
    not fit is refused; choice sets in two tables are joined by their ids.
    """
    from likeminds._util.atomic_files import file_lock
    from likeminds._util.text_format import counted
    from likeminds.cli._labels import read_said
    from likeminds.cli._models import keep_schools_of, open_model
    from likeminds.storage.folders import main_file
    from likeminds.storage.models import read_card, save, writable

    target = writable(model if out is None else out)
    if not read_card(model).get("takes_updates"):
        raise ValueError(
            f"{model} does not hold what it has learned from, so that nothing can be added to "
            "it: fit it with --keep-data, or use newcomer, which needs none of it."
        )
    in_place = target.exists() and target.samefile(model)
    others = file_lock(
        main_file(model), lambda: talk.note(f"waiting for another update of {model}.")
    )
    with others if in_place else nullcontext():
        known = open_model(model)
        said = read_said(talk, annotations, items, columns, known, pairs).annotations
        before, items_before = len(known.people_), _n_items(known)
        known = _learn(talk, known, said)
        keep_schools_of(known)
        path = save(known, target, with_data=True, if_unchanged=in_place)
    card = read_card(path)
    new, new_items = len(known.people_) - before, _n_items(known) - items_before
    found = {"model": str(path), "added": len(said), "new_people": new, "new_items": new_items}
    talk.result(found | {"card": card})
    of_items = f", {counted(new_items, 'new item')}" if new_items > 0 else ""
    talk.tell(
        f": added {said.statements()}, {counted(new, 'new person', 'new people')}{of_items}; "
        f"{card['people']:,} people in all",
        head=str(path),
    )


def _n_items(known: Any) -> int:
    """Return how many items have effects of their own."""
    items = None if known.has_attributes else known.learned_items()
    return 0 if items is None else len(items.ids)


def _learn(talk: Output, known: Any, said: Any) -> Any:
    from likeminds.cli._models import parts_of

    parts = parts_of(said, known)
    with talk.bar() as bar:
        task = bar.add_task("learning", total=None)
        if known.has_attributes:
            return known.update(
                parts,
                callback=lambda name, done, total: bar.update(
                    task, description=f"{name} done", completed=done, total=total
                ),
            )
        return learn_watched(known, bar, task, lambda ranker: _grow(ranker, said))


def _grow(ranker: Any, said: Any) -> Any:
    from likeminds.rankers.capabilities import Capability

    Capability.UPDATES.require(ranker)
    return ranker.update(said)
