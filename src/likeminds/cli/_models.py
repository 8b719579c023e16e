"""Models on the command line: rankers by attribute, users and items by id, item features."""

from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

from likeminds.cli._options import ItemOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    import pyarrow as pa

    from likeminds._util.array_types import FloatArray, IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.capabilities import ReadableModel
    from likeminds.rankers.ranker import Ranker

Names = dict[Hashable, str]
Rows = list[dict[str, Any]]

# Columns of texts that are names of items.
_NAMES = ("title", "name")
# Which of several columns of texts has the texts of items.
_TEXTS = ("text", "title", "name", "statement", "comment-body")
# The index of a data frame in a file.
_INDEX = ("", "Unnamed: 0", "index")
# Ids that a mistaken one is compared with.
_COMPARED = 100_000


def rankers_of(model: "ReadableModel", attribute: str | None = None) -> dict[str, "Ranker"]:
    """Return the rankers by attribute: one of them, or all."""
    if attribute is None:
        return dict(model.rankers_)
    if not model.has_attributes:
        raise ValueError(
            f"This model has no attributes, so there is no {attribute!r}: leave out --attribute."
        )
    return {attribute: model._ranker_of(attribute)}


def the_ranker_of(model: "ReadableModel", attribute: str | None) -> tuple[str, "Ranker"]:
    """Return one ranker and its attribute; several need --attribute."""
    rankers = rankers_of(model, attribute)
    if len(rankers) > 1:
        raise ValueError(f"Which attribute? Give --attribute: {', '.join(rankers)}.")
    return next(iter(rankers.items()))


def training_labels(rankers: "Mapping[str, Ranker]") -> dict[str, "Annotations"]:
    """Return the labels that rankers were fitted to, by attribute."""
    labels = {name: ranker._best_model.training_annotations_ for name, ranker in rankers.items()}
    found = {name: part for name, part in labels.items() if part is not None}
    if len(found) < len(labels):
        raise ValueError(
            "This model was saved without its labels: give --annotations, or fit with --keep-data."
        )
    return found


def by_attribute(annotations: "Annotations") -> dict[str, "Annotations"]:
    """Return annotations by attribute; without attributes, under an empty name."""
    if annotations.attribute_ids is None:
        return {"": annotations}
    return {str(name): part for name, part in annotations.by_attribute().items()}


def joined(tables: Mapping[str, Rows]) -> Rows:
    """Return the rows of tables by attribute as one table."""
    return [about(name) | row for name, rows in tables.items() for row in rows]


def about(attribute: str) -> dict[str, str]:
    """Return the attribute as a column of a table; none where the model has none."""
    return {"attribute": attribute} if attribute else {}


def find_user(text: str, users: "IdArray") -> Hashable:
    """Return the user with an id, which is written as a text."""
    from likeminds._util.checks import did_you_mean, listing
    from likeminds.data.id_coercion import coerce_ids
    from likeminds.data.identifiers import lookup

    place = lookup(coerce_ids([text], users, "user"), users, "user")[0]
    if place < 0:
        hint = did_you_mean(text, users[:_COMPARED].tolist())
        raise ValueError(f"There is no user {text!r}; there are {listing(users)}.{hint}")
    found: Hashable = users[place : place + 1].tolist()[0]
    return found


def find_item(text: str, ids: "IdArray", names: Mapping[Hashable, str]) -> Hashable:
    """Return the item with an id or a name; suggest others if there is none."""
    from likeminds.rankers.item_table import places_of_items

    place = int(places_of_items([text], ids, names)[0])
    found: Hashable = ids[place : place + 1].tolist()[0]
    return found


def parts_of(annotations: "Annotations", model: "ReadableModel") -> dict[str, "Annotations"]:
    """Return labels by the attributes of a model."""
    from likeminds._util.checks import listing

    if not model.has_attributes:
        if annotations.n_attributes > 1:
            raise ValueError(
                f"These labels are about {annotations.n_attributes} attributes, but the model "
                "tells none apart."
            )
        return dict.fromkeys(model.rankers_, annotations)
    if annotations.attribute_ids is None:
        attributes = list(model.rankers_)
        if len(attributes) > 1:
            raise ValueError(
                f"The model is about {listing(attributes)}, but no column says which of them a "
                "label is about. Name it with --attribute-column."
            )
        return {attributes[0]: annotations}
    return by_attribute(annotations)


@dataclass(frozen=True)
class ModelItems:
    """Items and their features, in the order of a model's features."""

    ids: "IdArray"
    features: "FloatArray"
    # Whether ids are names of picture files.
    pictures: bool = False
    names: Names = field(default_factory=dict)

    @property
    def by_id(self) -> dict[Hashable, "FloatArray"]:
        """The features of each item."""
        return dict(zip(self.ids.tolist(), self.features, strict=True))

    def named(self, item: Hashable) -> dict[str, Any]:
        """Return an item, and its name where items have names, as columns of a table."""
        return {"item": item} | ({"name": self.names.get(item)} if self.names else {})


def read_items(
    output: Output, items: ItemOptions, model: "ReadableModel", item: str | None = None
) -> ModelItems:
    """Read items to be ranked; by default those of the model's training data."""
    items.refuse_two_sources()
    if items.images is not None:
        from likeminds.data.identifiers import as_id_array
        from likeminds.features.picture_folder import Reduction, picture_features

        reduction = Reduction.from_attribute(model.pictures_)
        found = picture_features(items.images, progress=not output.quiet)
        ids = as_id_array(list(found.images), "items")
        return ModelItems(ids, reduction(found.features), pictures=True)
    if items.features is not None:
        from likeminds._util.text_format import mask
        from likeminds.data.column_roles import as_frame, read_values
        from likeminds.data.feature_columns import feature_matrix
        from likeminds.data.identifiers import as_distinct

        features = FeatureTable.read(output, items, item or "item", model)
        frame = as_frame(features.table)
        ids = read_values(frame, features.key, as_ids=True)
        return ModelItems(
            as_distinct(ids, f"The items in {mask(items.features)}"),
            feature_matrix(frame, [name for name in frame.columns if name != features.key]),
            names=features.names or model.item_names,
        )
    trained = training_items(model)
    if trained is None:
        raise ValueError(
            "Which items? This model was saved without its items: give --features or --images."
        )
    return trained


def training_items(model: "ReadableModel") -> ModelItems | None:
    """Return the items of a model's training data, if it has them."""
    trained = model.training_items()
    return None if trained is None else ModelItems(*trained, names=model.item_names)


class FeatureTable(NamedTuple):
    """A table of features, its column of item ids, and the names of items, if it has any."""

    table: "pa.Table"
    key: str
    names: Names | None

    @classmethod
    def read(
        cls, output: Output, items: ItemOptions, column: str, model: "ReadableModel | None"
    ) -> "FeatureTable":
        """Read --features, in the order of the model's; ``column`` has the items of labels."""
        from likeminds._util.checks import did_you_mean, listing
        from likeminds._util.text_format import mask
        from likeminds.data.column_roles import item_texts
        from likeminds.data.feature_columns import encode_items
        from likeminds.data.sources import read_table

        assert items.features is not None
        features = None if model is None else [str(name) for name in model.feature_names_]
        by_name = column.lower() in _NAMES
        table = read_table(items.features, item_texts("item" if by_name else column))
        key = _item_key(table, column)
        names = find_names(table, key, items.item_name)
        named = None
        if names is not None:
            both = zip(table[key].to_pylist(), table[names].to_pylist(), strict=True)
            named = {item: str(name) for item, name in both if name is not None}
        encoded = encode_items(table, key, features)
        if names in encoded.left_out:
            output.hint(f"Using column {names!r} as item names, not as a feature.")
        texts = [name for name in encoded.left_out if name != names]
        if texts:
            output.hint(
                f"{listing(texts)}: texts, not features. --texts shows them in explain and report."
            )
        if features is None:
            return cls(encoded.table, key, named)
        columns = set(encoded.table.column_names)
        missing = [name for name in features if name not in columns]
        if missing:
            hint = did_you_mean(missing[0], sorted(columns - set(features)))
            raise ValueError(
                f"{mask(items.features)} lacks features of the model: {listing(missing)}.{hint}"
            )
        return cls(encoded.table.select([key, *features]), key, named)


def find_names(table: "pa.Table", key: str, column: str | None) -> str | None:
    """Return the column with names of items; by default the only one called title or name."""
    from likeminds._util.checks import did_you_mean, listing

    columns = [name for name in table.column_names if name != key]
    if column is None:
        usual = [name for name in columns if name.lower() in _NAMES]
        return str(usual[0]) if len(usual) == 1 else None
    if column not in columns:
        raise ValueError(
            f"--item-name: there is no column {column!r}.{did_you_mean(column, columns)} "
            f"There are {listing(columns)}."
        )
    return column


def read_texts(source: str, column: str = "item", *, blank: bool = False) -> Names:
    """Read the texts of items by id, and by id as a text; without blank ones unless ``blank``."""
    import pyarrow as pa

    from likeminds._util.checks import listing
    from likeminds.data.column_roles import item_texts
    from likeminds.data.sources import read_table

    table = read_table(source, item_texts(column))
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
        found = f"there are {listing(columns)}" if columns else "there is none"
        raise ValueError(f"{source} needs one column of texts in addition to {key}, but {found}.")
    both = zip(table[key].to_pylist(), table[columns[0]].to_pylist(), strict=True)
    stripped = {item: (text or "").strip() for item, text in both}
    texts = {item: text for item, text in stripped.items() if text or blank}
    return {str(item): text for item, text in texts.items()} | texts


def _item_key(table: "pa.Table", column: str) -> str:
    """Return the column of a table of features or texts with the ids of items."""
    from likeminds._util.checks import did_you_mean, listing
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


def item_column(table: "pa.Table", columns: dict[str, str | None]) -> str:
    """Return the column of items in a table of labels."""
    from likeminds.data.column_roles import as_frame, find_columns

    column = find_columns(as_frame(table), columns, ())["item"]
    if column is None:
        raise ValueError(
            "No column says which item a row is about. Name it with --item-column; there are "
            f"{', '.join(table.column_names)}."
        )
    return column


def with_ids(
    table: "pa.Table", column: str, ids: Sequence[Hashable], names: Names | None, *, strict: bool
) -> "pa.Table":
    """Return labels with ids of items in place of names; with ``strict``, refuse unknown items."""
    from likeminds.data.identifiers import as_id_array
    from likeminds.rankers.item_table import places_of_items

    values = table[column].unique().to_pylist()
    named = names and not set(values) <= set(ids) and not set(values).isdisjoint(names.values())
    if not (named or strict):
        return table
    all_ids = as_id_array(list(ids), "items")
    found = all_ids[places_of_items(values, all_ids, names or {})].tolist()
    by_name = dict(zip(values, found, strict=True))
    return replaced(table, column, [by_name[value] for value in table[column].to_pylist()])


def replaced(table: "pa.Table", column: str, values: Iterable[Hashable]) -> "pa.Table":
    """Return a table with other values in a column."""
    from likeminds.data.column_roles import as_arrow

    place = table.column_names.index(column)
    return table.set_column(place, column, as_arrow(list(values)))


def distinct_names(table: "pa.Table", column: str) -> list[str]:
    """Return the distinct values of a column as texts, in their order."""
    return list(dict.fromkeys(str(value) for value in table[column].to_pylist()))


def with_full_names(
    table: "pa.Table", column: str, names: Sequence[str], files: Sequence[str]
) -> "pa.Table":
    """Replace names of pictures by the names of their files."""
    full = dict(zip(names, files, strict=True))
    return replaced(table, column, [full[str(value)] for value in table[column].to_pylist()])


def has_features(table: "pa.Table", columns: Mapping[str, str | None], names: list[str]) -> bool:
    """Tell whether a table has the features of a model, constants of alternatives included."""
    from likeminds.data.column_roles import find_column

    present = set(table.column_names)
    column = columns.get("alternative") or find_column("alternative", present)
    if column is not None:  # the constant of an absent alternative is zero
        present |= {name for name in names if name.startswith(f"{column}: ")}
    return set(names) <= present
