"""Read the tables of labels, comparisons, exports, features and texts given by options."""

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import likeminds
from likeminds._util.lazy_imports import np, pa
from likeminds._util.text_format import did_you_mean, listing, mask
from likeminds.cli._options import NO_COMPARISONS, ComparisonOptions, ItemOptions, LabelOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.rankers.capabilities import ReadableModel

Names = dict[Hashable, str]
Columns = dict[str, str | None]
# Usual names of the column with names of items.
_NAMES = ("title", "name")
# Usual names of the column of texts, if a table has several columns of texts.
_TEXTS = ("text", "title", "name", "statement", "comment-body")
# The index of a data frame in a file.
_INDEX = ("", "Unnamed: 0", "index")
# The arguments of `Annotations` for the rows of choice sets.
SetRows = dict[str, Any]


@dataclass(frozen=True)
class Dropped:
    """Columns that --drop leaves out of tables, and all columns of the tables."""

    names: Sequence[str]
    seen: set[str] = field(default_factory=set)

    def without(self, table: "pa.Table") -> "pa.Table":
        """Return a table without these columns."""
        self.seen.update(table.column_names)
        return table.drop_columns([name for name in self.names if name in table.column_names])

    def refuse_unknown(self) -> None:
        """Raise ValueError for columns that are not in any table."""
        unknown = [name for name in self.names if name not in self.seen]
        if unknown:
            raise ValueError(
                f"--drop: no such column(s) {listing(unknown)}; the columns are "
                f"{listing(sorted(self.seen))}.{did_you_mean(unknown[0], sorted(self.seen))}"
            )


def read_tables(
    output: Output,
    data: LabelOptions,
    pairs: ComparisonOptions,
    user: str | None,
    dropped: Dropped,
) -> tuple[list[tuple["pa.Table", Columns]], list[SetRows], Names]:
    """Return tables of labels (with columns by role), choice sets, and texts of an export."""
    from likeminds.data.column_roles import id_texts, usual_columns
    from likeminds.data.sources import read_table
    from likeminds.data.wide import is_wide

    tables: list[tuple[pa.Table, Columns]] = []
    sets: list[SetRows] = []
    texts: Names = {}
    if data.annotations is not None:
        table = dropped.without(read_table(data.annotations, id_texts(data.columns)))
        one_each = any(usual_columns(role, table.column_names) for role in ("item", "alternative"))
        wide = data.alternatives is not None or (not one_each and is_wide(table, data.label))
        table, columns = _with_user(table, data.user, user, wide), data.columns
        if wide:
            table, columns = _as_long(table, data)
            table = dropped.without(table)
        tables.append((table, _find_item_and_label(output, table, columns)))
    if pairs.comparisons is not None:
        sets.append(_read_comparisons(pairs, data.user, user))
    if pairs.of_attribute is not None and pairs.export is None:
        raise ValueError("--attribute selects from an export: give --from, or leave it out.")
    if pairs.export is not None:
        labels, choices, texts = _read_export(output, *pairs.export, pairs)
        tables, sets = tables + labels, sets + choices
    if not (tables or sets):
        ways = "" if pairs is NO_COMPARISONS else ", --comparisons, or --from"
        raise ValueError(f"There are no labels: give --annotations{ways}.")
    return tables, sets, texts


def _as_long(table: "pa.Table", data: LabelOptions) -> tuple["pa.Table", Columns]:
    """Return a table of one row per choice with a row per alternative, and its columns."""
    table = likeminds.wide_to_long(
        table,
        alternatives=data.wide_alternatives,
        choice=data.label,
        availability=data.availability,
        user=data.user,
        weight=data.weight,
    )
    made = ("user", "choice_set", "alternative", "label")
    return table, dict.fromkeys(data.columns) | {role: role for role in made}


def _with_user(
    table: "pa.Table", column: str | None, user: str | None, wide: bool = False
) -> "pa.Table":
    """Return a table with a column of users; add one with a single user if it is missing."""
    from likeminds.data.column_roles import find_column, id_of_choosers

    names = table.column_names
    column = column or find_column("user", names)
    column = column or id_of_choosers(names, "" if wide else find_column("alternative", names))
    if user is None or column is not None:
        return table
    return table.append_column("user", pa.array([user] * table.num_rows))


def _read_comparisons(pairs: ComparisonOptions, column: str | None, user: str | None) -> SetRows:
    from likeminds.data.choice_sets import preference_arguments
    from likeminds.data.column_roles import find_column, id_texts
    from likeminds.data.sources import read_table

    assert pairs.comparisons is not None
    names = {role: getattr(pairs, role) for role in ("winner", "loser", "tie", "strength")}
    names["user"] = column
    table = read_table(pairs.comparisons, id_texts(names))
    about = find_column("attribute", table.column_names)
    if about is not None and len(table[about].unique()) > 1:
        raise ValueError(
            f"The comparisons have several attributes (column {about!r}): give a table of one."
        )
    return preference_arguments(_with_user(table, column, user), names, pairs.tie_model, {})


def _read_export(
    output: Output, tool: str, path: str, pairs: ComparisonOptions
) -> tuple[list[tuple["pa.Table", Columns]], list[SetRows], Names]:
    """Return labels, choice sets and texts of an export; print its summary."""
    from likeminds.data.choice_sets import ChoiceOptions, comparison_arguments
    from likeminds.data.column_roles import LABEL_ROLES

    export, attribute = likeminds.read_export(tool, path), pairs.of_attribute
    if attribute is not None and export.categories:
        export = export.of_category(attribute)
    output.show(str(export))
    tables: list[tuple[pa.Table, Columns]] = []
    sets = []
    if export.labels or not (export.comparisons or export.choices):
        table = export.to_table(attribute)
        export.refuse_mixed(attribute)
        columns = {role: role if role in table.column_names else None for role in LABEL_ROLES}
        names = export.attributes if attribute is None else [attribute]
        if len(names) == 1 and names[0] not in table.column_names:  # the verb is read from it
            table, columns["label"] = table.rename_columns({"label": names[0]}), names[0]
        tables.append((table, columns))
    if export.comparisons:
        compared = zip(*export.comparisons, strict=True)
        given: SetRows = dict(zip(("users", "winners", "losers"), compared, strict=True))
        sides = tuple(map(np.array, zip(*export.features, strict=True))) or None
        given |= {"ties": export.ties or None, "tie_model": pairs.tie_model}
        style = ChoiceOptions(features=sides, feature_names=export.feature_names)
        sets.append(comparison_arguments(given, style if sides else {}))
    if export.choices:
        sets.append(export.choice_arguments())
    return tables, sets, export.texts


def _find_item_and_label(output: Output, table: "pa.Table", columns: Columns) -> Columns:
    """Return the columns by role; print guesses of the columns of items and labels."""
    from likeminds.data.column_roles import as_frame, find_column, find_columns, usual_columns

    if columns["item"] is None and find_column("item", table.column_names) is None:
        column = _find_names(table, find_column("user", table.column_names) or "", None)
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


class FeatureTable(NamedTuple):
    """A table of features, its column of item ids, and the names of items, if it has any."""

    table: "pa.Table"
    key: str
    names: Names | None

    @classmethod
    def read(
        cls,
        output: Output,
        items: ItemOptions,
        column: str,
        model: "ReadableModel | None",
        without: Callable[["pa.Table"], "pa.Table"] = lambda table: table,
    ) -> "FeatureTable":
        """Read --features in the model's order; ``column`` is the column of items of the labels."""
        from likeminds.data.column_roles import id_texts
        from likeminds.data.sources import read_table
        from likeminds.data.tables import encode_items

        assert items.features is not None
        features = None if model is None else [str(name) for name in model.feature_names_]
        id_columns = id_texts({"item": "item" if column.lower() in _NAMES else column})
        table = without(read_table(items.features, id_columns))
        key = _item_key(table, column)
        names = _find_names(table, key, items.item_name)
        named = None
        if names is not None:
            both = zip(table[key].to_pylist(), table[names].to_pylist(), strict=True)
            named = {item: str(name) for item, name in both if name is not None}
        encoded, left_out = encode_items(table, key, features)
        if names in left_out:
            output.hint(f"Using column {names!r} as item names, not as a feature.")
        texts = [name for name in left_out if name != names]
        if texts:
            output.hint(
                f"{listing(texts)}: texts, not features. --texts shows them in explain and report."
            )
        if features is None:
            return cls(encoded, key, named)
        columns = set(encoded.column_names)
        missing = [name for name in features if name not in columns]
        if missing:
            hint = did_you_mean(missing[0], sorted(columns - set(features)))
            raise ValueError(
                f"{mask(items.features)} lacks features of the model: {listing(missing)}.{hint}"
            )
        return cls(encoded.select([key, *features]), key, named)


def _find_names(table: "pa.Table", key: str, column: str | None) -> str | None:
    """Return the column with names of items; by default the only one called title or name."""
    columns = [name for name in table.column_names if name != key]
    if column is None:
        usual = [name for name in columns if name.lower() in _NAMES]
        return str(usual[0]) if len(usual) == 1 else None
    if column not in columns:
        raise ValueError(
            f"--item-name: there is no column {column!r}; the columns are {listing(columns)}."
            f"{did_you_mean(column, columns)}"
        )
    return column


def read_texts(source: str, column: str = "item", *, blank: bool = False) -> Names:
    """Read the texts of items, by id and by id as text; blank texts only with ``blank``."""
    from likeminds.data.column_roles import id_texts
    from likeminds.data.sources import read_table

    table = read_table(source, id_texts({"item": column}))
    key = _item_key(table, column)
    columns = [
        one.name
        for one in table.schema
        if one.name != key and (pa.types.is_string(one.type) or pa.types.is_large_string(one.type))
    ]
    usual = [name for name in columns if name.lower() in _TEXTS]
    if len(columns) > 1 and len(usual) == 1:
        columns = usual
    if len(columns) != 1:
        found = listing(columns) or "none"
        raise ValueError(
            f"{source} needs one column of texts in addition to {key}; it has {found}."
        )
    both = zip(table[key].to_pylist(), table[columns[0]].to_pylist(), strict=True)
    stripped = {item: (text or "").strip() for item, text in both}
    texts = {item: text for item, text in stripped.items() if text or blank}
    return {str(item): text for item, text in texts.items()} | texts


def _item_key(table: "pa.Table", column: str) -> str:
    """Return the column of a table of features or texts with the ids of items."""
    from likeminds.data.column_roles import COLUMN_NAMES, usual_columns

    matches = usual_columns("item", table.column_names)
    by_name = column.lower() in _NAMES and len(matches) == 1  # ids come before names
    if column in table.column_names and not by_name:
        return column
    if not matches and table.column_names[0] in _INDEX:
        matches = [table.column_names[0]]  # a data frame that was written with its index
    if len(matches) != 1:
        called = " or ".join(dict.fromkeys([column, *COLUMN_NAMES["item"][:2]]))
        raise ValueError(
            f"The table of features needs one column with the ids of the items, called {called}; "
            f"it has {listing(table.column_names)}.{did_you_mean(column, table.column_names)}"
        )
    return str(matches[0])
