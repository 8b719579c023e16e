"""Read the labels and comparisons of options as annotations with the features of their items."""

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.lazy_imports import np, pa
from likeminds._util.text_format import counted, listing
from likeminds.cli._label_tables import (
    Columns,
    Dropped,
    FeatureTable,
    Names,
    SetRows,
    read_tables,
    read_texts,
)
from likeminds.cli._models import ModelItems, training_items
from likeminds.cli._options import NO_COMPARISONS, ComparisonOptions, LabelOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.features.reduction import Reduce
    from likeminds.rankers.capabilities import ReadableModel


@dataclass(frozen=True)
class ReadLabels:
    """Annotations, with the reduction of pictures and the names of items, if any."""

    annotations: "Annotations"
    reduction: "Reduce | None" = None
    names: Names | None = None
    # Whether all features are features of texts.
    words_only: bool = False


def read_labels(
    output: Output,
    data: LabelOptions,
    pairs: ComparisonOptions = NO_COMPARISONS,
    *,
    model: "ReadableModel | None" = None,
    texts: str | None = None,
    shown: ModelItems | None = None,
    user: str | None = None,
) -> ReadLabels:
    """Read labels and comparisons with the features of their items.

    ``model`` defines the features and the reading of labels, and ``shown`` are its items. ``user``
    is the user of tables without a column of users.
    """
    data.refuse_two_sources()
    refuse_two_inputs(data, pairs, texts)
    if texts is not None and data.images is not None:
        raise ValueError("Give --texts or --images, not both.")
    dropped = Dropped(data.drop or ())
    tables, sets, exported = read_tables(output, data, pairs, user, dropped)
    by_export = pairs.export is not None and texts == pairs.export[1]
    if by_export and not exported:
        raise ValueError(f"--texts: {texts} has no texts, only labels.")
    is_described = any(one is not None for one in (data.features, data.images, texts, model))
    ids_only = not is_described and bool(sets)
    exported_texts = exported if by_export else None
    reader = _Reader(output, data, model, shown, texts, exported_texts, ids_only, dropped)
    parts = [reader.read(table, columns) for table, columns in tables]
    parts += map(reader.read_sets, sets)
    dropped.refuse_unknown()
    annotations = parts[0].annotations
    if len(parts) > 1 and annotations.grades is not None:
        annotations = annotations.choices()  # grades and comparisons are both preferences
    for part in parts[1:]:
        annotations = annotations.concat(part.annotations)
    if model is not None and shown is None:
        annotations = annotations.written_as(model.users_)
    return replace(parts[0], annotations=annotations, names=parts[0].names or exported or None)


def refuse_two_inputs(
    data: LabelOptions, pairs: ComparisonOptions, texts: str | None = None
) -> None:
    """Raise ValueError if more than one table is from standard input."""
    sources = (data.annotations, data.features, data.user_features, pairs.comparisons, texts)
    if sources.count("-") > 1:
        raise ValueError("Only one table can come from standard input.")


@dataclass(frozen=True)
class _Reader:
    """Reader of tables of labels, with the features of the options or of a model."""

    output: Output
    data: LabelOptions
    model: "ReadableModel | None"
    shown: ModelItems | None
    texts: str | None
    # Texts of an export, if --texts names its file.
    exported: Names | None
    # Whether items have no features.
    ids_only: bool
    dropped: Dropped

    def read(self, table: "pa.Table", columns: Columns) -> ReadLabels:
        """Return the annotations of one table."""
        data = self.data
        options: dict[str, Any] = {**columns, "user_features": data.user_features}
        options |= data.label_reading(self.model) | {"constants": data.constants, "base": data.base}
        if self.texts is not None or data.images is not None:  # refuses bad labels first
            likeminds.Annotations.from_frame(table, **options, features=[])
        table, features, names, reduction = self._with_features(table, columns)
        annotations = likeminds.Annotations.from_frame(table, **options, features=features)
        return ReadLabels(annotations, reduction, names, self._words_only)

    def read_sets(self, rows: SetRows) -> ReadLabels:
        """Return the annotations of choice sets."""
        from likeminds.data.column_roles import as_arrow
        from likeminds.data.tables import read_items

        own = dict(zip(rows["feature_names"] or (), rows["features"].T, strict=True))
        items = {} if rows["items"] is None else {"item": as_arrow(rows["items"].tolist())}
        by_row = own if rows["features_per"] == "row" else {}
        table, features, names, reduction = self._with_features(
            pa.table(items | by_row), {"item": "item" if items else None}
        )
        if isinstance(features, pa.Table):
            rows |= read_items(features, "item", None) | {"features_per": "item"}
            rows["items"] = table["item"].to_pylist()
        elif by_row:
            chosen = np.column_stack([by_row[name] for name in features])
            rows |= {"features": chosen, "feature_names": features}
        annotations = likeminds.Annotations._of_sets(
            rows | {"user_features": self.data.user_features}
        )
        return ReadLabels(annotations, reduction, names, self._words_only)

    @property
    def _words_only(self) -> bool:
        return self.texts is not None and self.data.features is None

    def _with_features(
        self, table: "pa.Table", columns: Columns
    ) -> "tuple[pa.Table, Any, Names | None, Reduce | None]":
        """Return labels, features (a table, or columns of labels), item names, and reduction."""
        from likeminds.data.column_roles import find_column

        model, shown = self.model, self.shown
        if self.data.images is not None:
            return self._with_pictures(table, columns)
        features, named = None, None
        if self.data.features is not None:
            column = _item_column(table, columns)
            drop = self.dropped.without
            found = FeatureTable.read(self.output, self.data, column, model, drop)
            ids = found.table[found.key].to_pylist()
            renamed = [column if c == found.key else c for c in found.table.column_names]
            table = _with_ids(table, column, ids, found.names, strict=False)
            features, named = found.table.rename_columns(renamed), found.names
        if self.texts is not None:
            return table, *self._with_texts(table, _item_column(table, columns), features), None
        if features is not None:
            return table, features, named, None
        if model is None:
            sets = "label" not in columns  # whose other columns are features
            own = [name for name in table.column_names if sets and name != columns["item"]]
            return table, own if self.ids_only else None, None, None
        names = [str(name) for name in model.feature_names_]
        by_id = columns["item"] or find_column("item", table.column_names)
        if (shown is None or by_id is None) and _has_features(table, columns, names):
            return table, names, None, None
        items = training_items(model) if shown is None else shown
        if items is None:
            raise ValueError(
                "Neither the labels nor the model have features of these items. Give --features or "
                "--images."
            )
        return *self._with_items(table, columns, items, names), None, None

    def _with_items(
        self, table: "pa.Table", columns: Columns, items: ModelItems, names: Sequence[str]
    ) -> tuple["pa.Table", "pa.Table"]:
        """Return labels with the ids of a model's items, and the features of these."""
        from likeminds.data.column_roles import as_arrow

        column, ids = _item_column(table, columns), items.ids.tolist()
        if items.pictures:
            from likeminds.data.item_features import find_names as find_files

            labelled = table[column].unique().to_pylist()
            files = find_files(list(map(str, labelled)), ids, "--images")
            table = _with_values(table, column, dict(zip(labelled, files, strict=True)))
        else:
            table = _with_ids(table, column, ids, items.names, strict=items is self.shown)
        features = dict(zip(names, items.features.T, strict=True))
        return table, pa.table({column: as_arrow(ids)} | features)

    def _with_pictures(
        self, table: "pa.Table", columns: Columns
    ) -> "tuple[pa.Table, pa.Table, None, Reduce]":
        """Return the labels with full names of pictures, their features, and their reduction."""
        from likeminds.features.reduction import (
            picture_features,
            reduction_from_attribute,
            reduction_of_pictures,
        )

        assert self.data.images is not None
        column = _item_column(table, columns)
        labelled = table[column].unique().to_pylist()
        names, progress = list(map(str, labelled)), not self.output.quiet
        found = picture_features(self.data.images, names, progress=progress)
        rows = {name: row for row, name in enumerate(found.images)}
        if self.model is None:
            reduction = reduction_of_pictures(found.features)
        else:
            reduction = reduction_from_attribute(self.model.pictures_)
        reduced = reduction.transform(found.features[list(rows.values())])
        features = {column: list(rows)} | dict(
            zip(reduction.get_feature_names_out(), reduced.T, strict=True)
        )
        table = _with_values(table, column, dict(zip(labelled, found.images, strict=True)))
        return table, pa.table(features), None, reduction

    def _with_texts(
        self, table: "pa.Table", column: str, features: "pa.Table | None"
    ) -> tuple["pa.Table", Names]:
        """Return features of texts, followed by other features, and the texts."""
        from likeminds.data.column_roles import as_arrow
        from likeminds.features.text import TextFeatures

        assert self.texts is not None
        kind = type(table[column][0].as_py())
        labelled: Names = dict.fromkeys(table[column].to_pylist(), "")
        if self.exported is None:
            texts = read_texts(self.texts, column, blank=True)
        else:
            texts = labelled | self.exported
        unlabelled = (item for item in texts if isinstance(item, kind) and item not in labelled)
        ids = [*labelled, *unlabelled]
        row = {}
        if features is not None:
            row = {item: place for place, item in enumerate(features[column].to_pylist())}
            ids = [item for item in ids if item in row or item in labelled]
        for what, source in ((f"{self.texts} has no text", texts), ("--features has no row", row)):
            missing = [item for item in labelled if item not in source]
            if missing and (source is texts or features is not None):
                raise ValueError(f"{what} for {listing(missing)}, which have labels. Add them.")
        blank = [item for item in ids if not texts[item]]
        if blank:
            self.output.note(
                f"{counted(len(blank), 'item')} with a blank text ({listing(blank)}), whose "
                "features of texts are zero."
            )
        words = TextFeatures(random_state=0)
        matrix = words.fit_transform([texts[item] for item in ids])
        names, arrays = [column, *words.get_feature_names_out()], [as_arrow(ids), *matrix.T]
        if features is not None:
            further = features.take([row[item] for item in ids]).drop_columns([column])
            names, arrays = names + further.column_names, arrays + further.columns
        return pa.table(arrays, names=names), {item: texts[item] for item in ids if texts[item]}


def _item_column(table: "pa.Table", columns: dict[str, str | None]) -> str:
    """Return the column of items in a table of labels."""
    from likeminds.data.column_roles import as_frame, find_columns

    column = find_columns(as_frame(table), columns, ())["item"]
    if column is None:
        raise ValueError(
            "There is no column of items. Name it with --item-column; the columns are "
            f"{', '.join(table.column_names)}."
        )
    return column


def _with_ids(
    table: "pa.Table", column: str, ids: Sequence[Hashable], names: Names | None, *, strict: bool
) -> "pa.Table":
    """Replace names of items by ids; with ``strict``, raise ValueError for unknown items."""
    from likeminds.data.identifiers import as_id_array
    from likeminds.rankers.item_table import places_of_items

    values = table[column].unique().to_pylist()
    named = names and not set(values) <= set(ids) and not set(values).isdisjoint(names.values())
    if not (named or strict):
        return table
    all_ids = as_id_array(list(ids), "items")
    found = all_ids[places_of_items(values, all_ids, names or {})].tolist()
    return _with_values(table, column, dict(zip(values, found, strict=True)))


def _with_values(table: "pa.Table", column: str, new: Mapping[Hashable, Hashable]) -> "pa.Table":
    """Replace the values of a column."""
    from likeminds.data.column_roles import as_arrow

    values = [new[value] for value in table[column].to_pylist()]
    return table.set_column(table.column_names.index(column), column, as_arrow(values))


def _has_features(table: "pa.Table", columns: Mapping[str, str | None], names: list[str]) -> bool:
    """Return whether a table has the features of a model, including constants of alternatives."""
    from likeminds.data.column_roles import find_column

    present = set(table.column_names)
    column = columns.get("alternative") or find_column("alternative", present)
    if column is not None:  # the constant of an absent alternative is zero
        present |= {name for name in names if name.startswith(f"{column}: ")}
    return set(names) <= present
