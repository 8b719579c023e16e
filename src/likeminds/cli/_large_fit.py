"""``likeminds fit --memory`` and ``--dask``: labels on disk, or on the workers of a cluster."""

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.text_format import read_verb
from likeminds.cli._options import ComparisonOptions, LabelOptions, LargeFitOptions
from likeminds.cli._output import Output, learn_watched
from likeminds.cli.main import SignalledError

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker


@dataclass(frozen=True)
class LargeFit:
    """A fit of labels in a folder: the labels, the ranker, and the file of the model."""

    output: Output
    options: LargeFitOptions
    data: LabelOptions
    pairs: ComparisonOptions
    ranker: "Ranker"
    target: Path
    verb: str | None

    def run(self, unsupported: Mapping[str, object]) -> Path:
        """Fit, save the model without its labels, and return its path."""
        option = "--memory" if self.options.dask is None else "--dask"
        refused = [name for name, value in unsupported.items() if value is not None]
        on_disk, source = self.options.dask is None, self.data.annotations
        if on_disk and source is None:
            source = self.pairs.comparisons
        elif self.pairs.comparisons is not None:
            refused.append("--comparisons")
        if refused or source is None:
            fix = f"leave out {', '.join(refused)}" if refused else "name them with --annotations"
            raise ValueError(f"{option} is for labels in Parquet or CSV files: {fix}.")
        return (self._on_disk if on_disk else self._on_cluster)(source)

    def _on_disk(self, source: str) -> Path:
        """Fit from disk; an interrupted fit leaves the grouped labels for the same command."""
        target, columns = self.target, self.data.columns
        sides = ("winner", "loser", "tie", "strength", "tie_model")
        pairs = {name: getattr(self.pairs, name) for name in sides}
        scratch = self.options.scratch or target.with_name(f"{target.name}.scratch")
        with self.output.progress("reading") as show:
            folder = likeminds.AnnotationFolder(
                source,
                memory_limit=str(self.options.memory),
                scratch=scratch,
                progress=show,
                **pairs,
                **columns,  # type: ignore[arg-type]
            )
            tables = {"features": self.data.features, "user_features": self.data.user_features}
            reading = columns | self.data.label_reading() | tables
            folder.options = {**reading, "verb": self.verb}  # type: ignore[typeddict-item]
            self.output.show(f"{folder}, {len(folder.user_ids):,} people")
            try:
                model = learn_watched(self.ranker, show, lambda new: new.fit(folder))
            except (KeyboardInterrupt, SignalledError):
                if any(scratch.glob("grouped-*")):
                    self.output.show(
                        f"Labels are grouped in {scratch}: run the same command to resume."
                    )
                raise
        # A hash of all labels would take as much memory as they do.
        model.__dict__.pop("annotations_", None)
        path = likeminds.save(model, target, with_data=False)
        if self.options.scratch is None:
            shutil.rmtree(scratch, ignore_errors=True)
        return path

    def _on_cluster(self, source: str) -> Path:
        from likeminds.cluster import Shards
        from likeminds.cluster.client import cluster_at

        options, output = self.options, self.output
        checkpoint = options.checkpoint
        if options.resume and checkpoint is None:
            raise ValueError("--resume needs a checkpoint: name its folder with --checkpoint DIR.")
        reading = self._reading(source)
        assert options.dask is not None
        with cluster_at(options.dask) as client, output.progress("reading") as show:
            shards = Shards.from_folder(source, client, tell=show, **reading)
            output.show(f"{shards} on {len(client.nthreads())} workers")
            if checkpoint is not None:
                shards = shards.checkpointed(checkpoint, resume=options.resume)
            if options.user_files:
                shards = shards.saved_to(self.target)
            try:
                model = learn_watched(self.ranker, show, lambda new: new.fit(shards))
            except SignalledError:
                if checkpoint is not None:
                    output.note(f"Run the same command with --resume to resume from {checkpoint}.")
                raise
            if options.resume and not shards.journal.replayed:
                output.note(
                    f"{checkpoint} had no checkpoint, so the fit started from the beginning."
                )
        return self._saved(model)

    def _saved(self, model: Any) -> Path:
        """Save a model fitted on a cluster; if workers wrote its users, add only the verb."""
        from likeminds.storage.models import main_file, write_model
        from likeminds.storage.user_files import user_files_of

        if self.verb is not None:
            model._best_model.verb_ = model.verb_ = read_verb(self.verb)
        if not self.options.user_files:
            return likeminds.save(model, self.target, with_data=False)
        if self.verb is not None:
            write_model(model, main_file(self.target), users=user_files_of(model))
        return self.target

    def _reading(self, source: str) -> dict[str, Any]:
        """Return the options of `Shards.from_folder`: columns by their usual names, and labels."""
        from likeminds.data.column_roles import as_frame, id_texts
        from likeminds.data.out_of_core.parquet_parts import ParquetParts
        from likeminds.data.tables import find_roles
        from likeminds.rankers.statistics_rankers import StatisticsRanker

        data = self.data
        head = ParquetParts.of(source, id_texts(data.columns)).head
        found, columns = find_roles(as_frame(head), data.columns, data.features)
        if found["item"] is None:
            raise ValueError("On a cluster, labels need a column of items: give --item-column.")
        if found["attribute"] is not None:
            raise ValueError(
                f"On a cluster, labels must have one attribute, but column {found['attribute']!r} "
                "has attributes. Give labels of one, without this column."
            )
        reading = data.label_reading()
        if reading.pop("duplicates", None) not in {None, "keep"}:
            raise ValueError("On a cluster, --duplicates must be keep.")
        reading.pop("reading")
        features = data.features if data.features is not None else (columns or None)
        # A median needs all labels of a user, which may be in several partitions.
        suffices = features is not None and reading.get("threshold") != "median"
        return {
            "features": features,
            **{role: found[role] for role in ("user", "item", "label", "weight", "choice_set")},
            "user_features": data.user_features,
            **reading,
            "statistics": suffices and isinstance(self.ranker, StatisticsRanker),
        }
