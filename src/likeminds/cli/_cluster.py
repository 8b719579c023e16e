"""``likeminds fit --dask``: labels on the workers of a cluster."""

from pathlib import Path
from typing import Any

from likeminds.cli._fit_request import FitRequest
from likeminds.cli._labels import label_reading
from likeminds.cli._options import ClusterOptions
from likeminds.cli._output import Output
from likeminds.cli._signals import SignalledError


def fit_on_cluster(where: ClusterOptions, talk: Output, asked: FitRequest) -> Path:
    """Learn from Parquet or CSV files on a cluster, and save the model without its labels."""
    from likeminds._util.verbs import read_verb
    from likeminds.cluster import Shards
    from likeminds.cluster.client import cluster_at
    from likeminds.storage.folders import main_file
    from likeminds.storage.models import save, write_model
    from likeminds.storage.user_files import people_of

    source, target, verb = asked.folder("--dask"), asked.target, asked.verb
    if where.resume and where.checkpoint is None:
        raise ValueError("--resume goes on with a checkpoint: say which, with --checkpoint DIR.")
    options = _options(source, asked)
    options["statistics"] = _statistics_suffice(asked.ranker, options)
    assert where.dask is not None
    with cluster_at(where.dask) as client, talk.bar() as bar:
        task = bar.add_task("reading", total=None)
        shards = Shards.from_folder(source, client, tell=_ClusterProgress(bar, task), **options)
        talk.tell(f"{shards} on {len(client.nthreads())} workers")
        if where.checkpoint is not None:
            shards = shards.checkpointed(where.checkpoint, resume=where.resume)
        if where.people_apart:
            shards = shards.saved_to(target)
        try:
            model = asked.learn(asked.ranker, bar, task, lambda new: new.fit(shards))
        except SignalledError:
            if where.checkpoint is not None:
                talk.note(f"The same command with --resume goes on from {where.checkpoint}.")
            raise
        if where.resume and not shards.journal.replayed:
            talk.note(f"There was nothing to go on with in {where.checkpoint}: it began anew.")
    if verb is not None:
        model._best_model.verb_ = model.verb_ = read_verb(verb)
    if not where.people_apart:
        return save(model, target, with_data=False)
    if verb is not None:
        write_model(model, main_file(target), people=people_of(model))
    return target


def _statistics_suffice(ranker: Any, options: dict[str, Any]) -> bool:
    """Say whether statistics of partitions are all that has to be brought together."""
    from likeminds.rankers.statistics_rankers import StatisticsRanker

    by_median = options.get("threshold") == "median"  # of all that a person said
    return (
        isinstance(ranker, StatisticsRanker) and options["features"] is not None and not by_median
    )


class _ClusterProgress:
    """Shows how far reading is, and which visit there is; how far learning is, steps say."""

    def __init__(self, bar: Any, task: Any) -> None:
        self._bar, self._task = bar, task

    def __call__(self, what: str, done: int, total: int) -> None:
        if what.startswith("visit"):
            self._bar.update(self._task, description=f"{what}, {done} of {total} answers")
        else:
            self._bar.update(self._task, description=what, completed=done, total=total)


def _options(source: str, asked: FitRequest) -> dict[str, Any]:
    """Return what `Shards.from_folder` is told: columns by their usual names, and labels."""
    from likeminds.data.column_roles import as_frame, id_texts
    from likeminds.data.out_of_core.parquet_parts import ParquetParts
    from likeminds.data.tables import find_roles

    items, columns, names = asked.items, asked.columns, asked.names
    head = ParquetParts.of(source, id_texts(names)).head
    found, features = find_roles(as_frame(head), names, items.features)
    if found["item"] is None:
        raise ValueError("On a cluster, labels need a column that says which item they are about.")
    if found["attribute"] is not None:
        raise ValueError(
            f"Labels about several attributes ({found['attribute']}) are not learned on a cluster: "
            "give it those of one."
        )
    reading = label_reading(columns)
    if reading.pop("duplicates", None) not in {None, "keep"}:
        raise ValueError("--duplicates on a cluster: both labels count (keep).")
    reading.pop("reading")
    return {
        "features": items.features if items.features is not None else (features or None),
        "user": found["user"],
        **{role: found[role] for role in ("item", "label", "weight", "choice_set")},
        "user_features": columns.user_features,
        **reading,
    }
