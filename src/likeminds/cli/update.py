"""``likeminds update``: more labels into a saved model."""

from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from likeminds.cli._options import ComparisonOptions, LabelOptions, Model, option
from likeminds.cli._output import Output
from likeminds.cli.fit import attribute_callback, learn_watched
from likeminds.cli.main import DATA, command

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.multi_attribute import AttributeModel
    from likeminds.rankers.ranker import Ranker


@command(
    "Learn",
    DATA,
    "head -n 8641 power/annotations.csv > first.csv",
    "sed 2,8641d power/annotations.csv > rest.csv",
    "likeminds fit --annotations first.csv --features power/features.csv --out first.likeminds",
    "likeminds update first.likeminds --annotations rest.csv --out all.likeminds",
)
def update(
    output: Output,
    *,
    model: Model,
    data: LabelOptions,
    pairs: ComparisonOptions,
    out: Annotated[
        Path | None,
        option("The file to write the updated model to; by default its own.", "--out", "-o"),
    ] = None,
) -> None:
    """Add labels, of known or new users, to a model that was saved with its data.

    The result is that of fitting everything at once. Features of known items may be left out
    where the model has them. Ids and labels are read as the model's were, and others are
    refused; choice sets in two tables are joined by their ids.
    """
    from likeminds._util.atomic_files import file_lock
    from likeminds._util.text_format import counted
    from likeminds.cli._labels import read_labels
    from likeminds.schools.find import keep_schools
    from likeminds.storage.folders import main_file
    from likeminds.storage.models import load, read_card, save, writable

    target = writable(model if out is None else out)
    if not read_card(model).get("takes_updates"):
        raise ValueError(
            f"{model} was saved without its labels, so nothing can be added to it: fit it with "
            "--keep-data, or use newcomer, which needs none of them."
        )
    in_place = target.exists() and target.samefile(model)
    lock = file_lock(
        main_file(model), lambda: output.note(f"waiting for another update of {model}.")
    )
    with lock if in_place else nullcontext():
        loaded = load(model)
        annotations = read_labels(output, data, pairs, model=loaded).annotations
        n_users, n_items = len(loaded.users_), _n_items(loaded)
        loaded = _learn(output, loaded, annotations)
        for ranker in loaded.rankers_.values():
            keep_schools(ranker)
        path = save(loaded, target, with_data=True, if_unchanged=in_place)
    card = read_card(path)
    new, new_items = len(loaded.users_) - n_users, _n_items(loaded) - n_items
    found = {"model": str(path), "added": len(annotations), "new_people": new}
    output.json(found | {"new_items": new_items, "card": card})
    of_items = f", {counted(new_items, 'new item')}" if new_items > 0 else ""
    output.show(
        f": added {annotations.statements()}, {counted(new, 'new person', 'new people')}{of_items}"
        f"; {card['people']:,} people in all",
        head=str(path),
    )


def _n_items(loaded: "Ranker | AttributeModel") -> int:
    """Return how many items have effects."""
    items = None if loaded.has_attributes else loaded.item_posteriors()
    return 0 if items is None else len(items.ids)


def _learn(output: Output, loaded: "Ranker | AttributeModel", annotations: "Annotations") -> Any:
    from likeminds.cli._models import parts_of
    from likeminds.rankers.capabilities import Capability

    parts = parts_of(annotations, loaded)
    with output.bar() as bar:
        task = bar.add_task("learning", total=None)
        if loaded.has_attributes:
            return loaded.update(parts, callback=attribute_callback(bar, task))
        Capability.UPDATES.require(loaded)
        return learn_watched(loaded, bar, task, lambda _: loaded.update(annotations))
