"""``likeminds fit --memory``: labels that do not fit in memory."""

import shutil
from pathlib import Path

from likeminds.cli._fit_request import FitRequest
from likeminds.cli._labels import label_reading
from likeminds.cli._options import OutOfCoreOptions
from likeminds.cli._output import Output
from likeminds.cli._signals import SignalledError


def fit_large(on_disk: OutOfCoreOptions, talk: Output, asked: FitRequest) -> Path:
    """Learn from a folder of Parquet or CSV files, and save the model without its labels.

    An interrupted fit leaves the labels that are grouped by person already, where all of them
    are: the same command finds them again.
    """
    from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
    from likeminds.storage.models import save

    source, target = asked.folder("--memory"), asked.target
    scratch = on_disk.scratch or target.with_name(f"{target.name}.scratch")
    names, columns = asked.names, asked.columns
    with talk.bar() as bar:
        task = bar.add_task("reading", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total)

        folder = AnnotationFolder(
            source,
            memory_limit=str(on_disk.memory),
            scratch=scratch,
            progress=tell,
            **names,  # type: ignore[arg-type]
        )
        reading = label_reading(columns)
        options = {
            **names,
            **reading,
            "features": asked.items.features,
            "user_features": columns.user_features,
        }
        folder.options = {**options, "verb": asked.verb}  # type: ignore[typeddict-item]
        talk.tell(f"{folder}, {len(folder.user_ids):,} people")
        try:
            model = asked.learn(asked.ranker, bar, task, lambda new: new.fit(folder))
        except (KeyboardInterrupt, SignalledError):
            if any(scratch.glob("grouped-*")):
                talk.tell(f"Labels are grouped in {scratch}: the same command goes on from there.")
            raise
    # A hash of all labels would take as much memory as they do.
    model.__dict__.pop("annotations_", None)
    path = save(model, target, with_data=False)
    if on_disk.scratch is None:
        shutil.rmtree(scratch, ignore_errors=True)
    return path
