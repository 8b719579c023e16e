"""Labels and comparisons, from options to annotations with the features of their items."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likeminds.cli._models import (
    FeatureTable,
    ModelItems,
    Names,
    distinct_names,
    find_names,
    has_features,
    item_column,
    read_texts,
    training_items,
    with_full_names,
    with_ids,
)
from likeminds.cli._options import NO_COMPARISONS, ComparisonOptions, LabelOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from likeminds.data.annotations import Annotations
    from likeminds.data.connectors.export_result import Sides
    from likeminds.features.picture_folder import Reduction
    from likeminds.rankers.capabilities import ReadableModel

Columns = dict[str, str | None]
# The columns of comparisons as a table of labels, in which each pair is a choice set.
_SIDES: Columns = dict.fromkeys(("attribute",)) | {
    role: role for role in ("user", "item", "label", "weight", "choice_set")
}


@dataclass(frozen=True)
class ReadLabels:
    """Annotations, with the reduction of pictures and the names of items, if any."""

    annotations: "Annotations"
    reduction: "Reduction | None" = None
    names: Names | None = None
    # Whether features are those of texts alone.
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

    ``model`` defines the features, and how labels are read; ``shown`` are its items. ``user`` is
    the user of tables without a column of users.
    """
    data.refuse_two_sources()
    refuse_two_inputs(data, pairs, texts)
    if texts is not None and data.images is not None:
        raise ValueError("Give --texts or --images, not both.")
    tables, exported = _read_tables(output, data, pairs, user)
    by_export = pairs.export is not None and texts == pairs.export[1]
    if by_export and not exported:
        raise ValueError(f"--texts: {texts} has no texts, only labels.")
    is_described = any(one is not None for one in (data.features, data.images, texts, model))
    ids_only = not is_described and any(columns is _SIDES for _, columns in tables)
    reader = _Reader(output, data, model, shown, texts, exported if by_export else None, ids_only)
    parts = [reader.read(table, columns) for table, columns in tables]
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
    """Refuse standard input for more than one table."""
    sources = (data.annotations, data.features, data.user_features, pairs.comparisons, texts)
    if sources.count("-") > 1:
        raise ValueError("Only one table can come from standard input.")


def _read_tables(
    output: Output, data: LabelOptions, pairs: ComparisonOptions, user: str | None
) -> tuple[list[tuple["pa.Table", Columns]], Names]:
    """Return tables of labels, each with its columns by role, and the texts of an export."""
    from likeminds.data.column_roles import id_texts
    from likeminds.data.sources import read_table

    tables: list[tuple[pa.Table, Columns]] = []
    texts: Names = {}
    if data.annotations is not None:
        table = read_table(data.annotations, id_texts(data.columns))
        table = _with_user(table, data.user, user)
        tables.append((table, _find_item_and_label(output, table, data.columns)))
    if pairs.comparisons is not None:
        tables.append((_read_comparisons(pairs, data.user, user), _SIDES))
    if pairs.of_attribute is not None and pairs.export is None:
        raise ValueError("--attribute chooses from an export: give --from, or leave it out.")
    if pairs.export is not None:
        exported, texts = _read_export(output, *pairs.export, pairs)
        tables += exported
    if not tables:
        raise ValueError("There are no labels: give --annotations, --comparisons, or --from.")
    return tables, texts


def _with_user(table: "pa.Table", column: str | None, user: str | None) -> "pa.Table":
    """Return a table with a column of users; where it has none, all rows are of one user."""
    import pyarrow as pa

    from likeminds.data.column_roles import find_column, id_of_choosers

    names = table.column_names
    column = column or find_column("user", names)
    column = column or id_of_choosers(names, find_column("alternative", names))
    if user is None or column is not None:
        return table
    return table.append_column("user", pa.array([user] * table.num_rows))


def _read_comparisons(pairs: ComparisonOptions, column: str | None, user: str | None) -> "pa.Table":
    from likeminds.data.column_roles import find_column, id_texts
    from likeminds.data.sources import read_table

    assert pairs.comparisons is not None
    names = {role: getattr(pairs, role) for role in ("winner", "loser", "tie", "strength")}
    names["user"] = column
    table = read_table(pairs.comparisons, id_texts(names))
    about = find_column("attribute", table.column_names)
    if about is not None and len(table[about].unique()) > 1:
        raise ValueError(
            f"The comparisons are about several attributes (column {about!r}), and are learned "
            "from one at a time: give a table of each."
        )
    return _as_sides(_with_user(table, column, user), names, pairs.tie_model)


def _read_export(
    output: Output, tool: str, path: str, pairs: ComparisonOptions
) -> tuple[list[tuple["pa.Table", Columns]], Names]:
    """Return labels, comparisons and texts of an export; print its summary."""
    import pyarrow as pa

    from likeminds.data.column_roles import LABEL_ROLES, as_arrow
    from likeminds.data.connectors import read_export

    export, attribute = read_export(tool, path), pairs.of_attribute
    if attribute is not None and export.categories:
        export = export.of_category(attribute)
    output.show(str(export))
    tables: list[tuple[pa.Table, Columns]] = []
    if export.labels or not export.comparisons:
        table = export.to_table(attribute)
        export.refuse_mixed(attribute)
        columns = {role: role if role in table.column_names else None for role in LABEL_ROLES}
        names = export.attributes if attribute is None else [attribute]
        if len(names) == 1 and names[0] not in table.column_names:  # the verb is read from it
            table, columns["label"] = table.rename_columns({"label": names[0]}), names[0]
        tables.append((table, columns))
    if export.comparisons:
        roles: Columns = {role: role for role in ("user", "winner", "loser")}
        ids = map(as_arrow, map(list, zip(*export.comparisons, strict=True)))
        compared = dict(zip(roles, ids, strict=True))
        if export.ties:
            roles |= {"tie": "tie"}
            compared["tie"] = pa.array(export.ties)
        style = export.features, export.feature_names
        tables.append((_as_sides(pa.table(compared), roles, pairs.tie_model, *style), _SIDES))
    return tables, export.texts


def _find_item_and_label(output: Output, table: "pa.Table", columns: Columns) -> Columns:
    """Return the columns by role; print which ones are guessed to be the item and the label."""
    from likeminds.data.column_roles import as_frame, find_column, find_columns, usual_columns

    if columns["item"] is None and find_column("item", table.column_names) is None:
        column = find_names(table, find_column("user", table.column_names) or "", None)
        if column is not None and column not in columns.values():
            output.hint(f"Using column {column!r} as the items.")
            columns |= {"item": column}
    if columns["label"] is None:
        label = find_columns(as_frame(table), columns, ())["label"]
        if label is not None and label not in usual_columns("label", table.column_names):
            output.hint(
                f"Using column {label!r} as the label, the only column left (--label-column "
                "names another)."
            )
    return columns


def _as_sides(
    table: "pa.Table",
    names: Columns,
    tie_model: str,
    features: "Sequence[Sides]" = (),
    feature_names: Sequence[str] = (),
) -> "pa.Table":
    """Return comparisons as labels: a row for each side of each pair, which is a choice set."""
    import numpy as np
    import pyarrow as pa

    from likeminds.data.column_roles import ID_ROLES, as_arrow, as_frame, find_columns, read_values
    from likeminds.data.comparisons import comparison_arguments

    frame = as_frame(table)
    values = {
        role: read_values(frame, name, as_ids=role in ID_ROLES)
        for role, name in find_columns(frame, names, ()).items()
        if name is not None
    }
    pairs = {"users": values["user"], "winners": values["winner"], "losers": values["loser"]}
    extra = {"ties": values.get("tie"), "strength": values.get("strength")}
    sides = tuple(map(np.array, zip(*features, strict=True))) if features else None
    given = pairs | extra | {"tie_model": tie_model}
    columns = comparison_arguments(given, {"features": sides})
    style = columns["features"].T if features else ()
    weight, tied = columns["weights"], columns["tied"]
    return pa.table(
        {
            "user": as_arrow(columns["users"].tolist()),
            "item": as_arrow(columns["items"].tolist()),
            "label": columns["labels"],
            "choice_set": columns["choice_sets"],
            "weight": np.ones(len(columns["labels"])) if weight is None else weight,
            "tied": np.zeros(len(columns["labels"]), np.bool_) if tied is None else tied,
        }
        | dict(zip(feature_names, style, strict=True))
    )


@dataclass(frozen=True)
class _Reader:
    """Reads tables of labels, with the features that the options or a model name."""

    output: Output
    data: LabelOptions
    model: "ReadableModel | None"
    shown: ModelItems | None
    texts: str | None
    # Texts of an export, if --texts names its file.
    exported: Names | None
    # Whether items have no features.
    ids_only: bool

    def read(self, table: "pa.Table", columns: Columns) -> ReadLabels:
        """Return the annotations of one table."""
        from likeminds.data.annotations import Annotations

        data, model = self.data, self.model
        tied = None
        if columns is _SIDES:
            tied, table = table["tied"].to_numpy(), table.drop_columns("tied")
        options: dict[str, Any] = {**columns, "user_features": data.user_features}
        if columns is not _SIDES:
            options |= data.label_reading(model)
            options |= {"constants": data.constants, "base": data.base}
            if self.texts is not None or data.images is not None:  # refuse bad labels before that
                Annotations.from_frame(table, **options, features=[])
        table, features, names, reduction = self._with_features(table, columns)
        options["features"] = features
        words_only = self.texts is not None and features is None
        if self.texts is not None:
            column = item_column(table, columns)
            options["features"], names = self._with_texts(table, column, features)
        annotations = Annotations.from_frame(table, **options)
        if columns is _SIDES:  # numbers of pairs are not ids that another table could share
            annotations = annotations._with(choice_set_ids=None, tied=tied)
        return ReadLabels(annotations, reduction, names, words_only)

    def _with_features(
        self, table: "pa.Table", columns: Columns
    ) -> "tuple[pa.Table, Any, Names | None, Reduction | None]":
        """Return labels, features (a table, or columns of labels), item names, and reduction."""
        from likeminds.data.column_roles import find_column

        model, shown = self.model, self.shown
        if self.data.images is not None:
            return self._with_pictures(table, columns)
        if self.data.features is not None:
            column = item_column(table, columns)
            found = FeatureTable.read(self.output, self.data, column, model)
            ids = found.table[found.key].to_pylist()
            renamed = [column if c == found.key else c for c in found.table.column_names]
            table = with_ids(table, column, ids, found.names, strict=False)
            return table, found.table.rename_columns(renamed), found.names, None
        if model is None:
            return table, _own_features(table, columns) if self.ids_only else None, None, None
        names = [str(name) for name in model.feature_names_]
        by_id = columns["item"] or find_column("item", table.column_names)
        if (shown is None or by_id is None) and has_features(table, columns, names):
            return table, names, None, None
        items = training_items(model) if shown is None else shown
        if items is None:
            raise ValueError(
                "Neither the labels nor the model have features of these items: give --features or "
                "--images."
            )
        return *self._with_items(table, columns, items, names), None, None

    def _with_items(
        self, table: "pa.Table", columns: Columns, items: ModelItems, names: Sequence[str]
    ) -> tuple["pa.Table", "pa.Table"]:
        """Return labels with the ids of a model's items, and the features of these."""
        import pyarrow as pa

        from likeminds.data.column_roles import as_arrow

        column, ids = item_column(table, columns), items.ids.tolist()
        if items.pictures:
            from likeminds.data.item_features import find_names as find_files

            files = distinct_names(table, column)
            table = with_full_names(table, column, files, find_files(files, ids, "--images"))
        else:
            table = with_ids(table, column, ids, items.names, strict=items is self.shown)
        features = dict(zip(names, items.features.T, strict=True))
        return table, pa.table({column: as_arrow(ids)} | features)

    def _with_pictures(
        self, table: "pa.Table", columns: Columns
    ) -> "tuple[pa.Table, pa.Table, None, Reduction]":
        """Return the labels with full names of pictures, their features, and their reduction."""
        import pyarrow as pa

        from likeminds.features.picture_folder import Reduction, picture_features

        assert self.data.images is not None
        column = item_column(table, columns)
        files = distinct_names(table, column)
        found = picture_features(self.data.images, files, progress=not self.output.quiet)
        rows = {name: row for row, name in enumerate(found.images)}
        if self.model is None:
            reduction = Reduction.of(found.features)
        else:
            reduction = Reduction.from_attribute(self.model.pictures_)
        reduced = reduction(found.features[list(rows.values())])
        features = {column: list(rows)} | dict(zip(reduction.names(), reduced.T, strict=True))
        table = with_full_names(table, column, files, found.images)
        return table, pa.table(features), None, reduction

    def _with_texts(
        self, table: "pa.Table", column: str, features: "pa.Table | None"
    ) -> tuple["pa.Table", Names]:
        """Return features of texts, followed by other features, and the texts."""
        import pyarrow as pa

        from likeminds._util.checks import listing
        from likeminds._util.text_format import counted
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
                raise ValueError(f"{what} for {listing(missing)}, which people labelled.")
        blank = [item for item in ids if not texts[item]]
        if blank:
            self.output.note(
                f"{counted(len(blank), 'item')} with a blank text ({listing(blank)}): these "
                "have labels, but no words."
            )
        words = TextFeatures(random_state=0)
        matrix = words.fit_transform([texts[item] for item in ids])
        names, arrays = [column, *words.get_feature_names_out()], [as_arrow(ids), *matrix.T]
        if features is not None:
            further = features.take([row[item] for item in ids]).drop_columns([column])
            names, arrays = names + further.column_names, arrays + further.columns
        return pa.table(arrays, names=names), {item: texts[item] for item in ids if texts[item]}


def _own_features(table: "pa.Table", columns: Columns) -> list[str]:
    """Return the features of the sides of comparisons; none for other tables."""
    known = {*_SIDES, "tied"}
    return [name for name in table.column_names if name not in known and columns is _SIDES]
