"""``likeminds fit --memory``: labels that do not fit in memory."""

import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from likeminds.cli._data import label_reading
from likeminds.cli._options import Columns, ItemOptions, OnDisk
from likeminds.cli._talk import Talk


def fit_large(  # noqa: PLR0917 - what a fit needs
    talk: Talk,
    on_disk: OnDisk,
    source: str | None,
    items: ItemOptions,
    columns: Columns,
    ranker: Any,
    target: Path,
    *,
    learn: Callable[..., Any],
    refused: Mapping[str, Any],
    verb: str | None,
) -> Path:
    """Learn from a folder of Parquet files, and save the model without its labels.

    An interrupted fit leaves the labels that are grouped by person already, where all of them
    are: the same command finds them again.
    """
    from likeminds.data.stored.folder import AnnotationFolder
    from likeminds.storage.models import save

    given = [option for option, value in refused.items() if value is not None]
    given += ["--images"] if items.images is not None else []
    if given or source is None:
        said = f"leave out {', '.join(given)}" if given else "name it with --annotations"
        raise ValueError(f"--memory is for a folder of labels in Parquet files: {said}.")
    roles = ("person", "item", "label", "attribute", "weight", "group")
    scratch = on_disk.scratch or target.with_name(f"{target.name}.scratch")
    names = {role: getattr(columns, role) for role in roles}
    with talk.bar() as bar:
        task = bar.add_task("reading", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        folder = AnnotationFolder(
            source, memory_limit=str(on_disk.memory), scratch=scratch, progress=tell
        )
        reading = label_reading(folder.parts.head, names, columns)
        options = {**names, **reading, "features": items.features, "people": columns.people}
        folder.options = {**options, "verb": verb}  # type: ignore[typeddict-item]
        talk.tell(f"{folder}, {len(folder.user_ids):,} people")
        model = learn(ranker, bar, task, lambda new: new.fit(folder))
    # A hash of all labels would take as much memory as they do.
    model.__dict__.pop("annotations_", None)
    path = save(model, target, with_data=False)
    if on_disk.scratch is None:
        shutil.rmtree(scratch, ignore_errors=True)
    return path
