"""From options to items and their features."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from likeminds.cli._options import ItemOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    import numpy as np

    from likeminds._util.array_types import IdArray
    from likeminds.features.picture_folder import Reduction


@dataclass(frozen=True)
class ModelItems:
    """Items and their features, as a model knows them; pictures go by the names of files."""

    ids: "IdArray"
    features: "np.ndarray[Any, Any]"
    pictures: bool = False
    # What items are called, by their ids, where that is more than the id.
    names: "dict[Any, str]" = field(default_factory=dict)

    def called(self, item: Any) -> dict[str, Any]:
        """Return an item, and its name where items have names, as columns of a table."""
        return {"item": item} | ({"name": self.names.get(item)} if self.names else {})


def read_shown(talk: Output, items: ItemOptions, model: Any, item: str | None = None) -> ModelItems:
    """Read items to be ranked; without any, those that a model has kept of its training."""
    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    if items.images is not None:
        from likeminds.features.picture_folder import Reduction, picture_features

        reduction = Reduction.of_model(model)
        found = picture_features(items.images, progress=talk.shows_progress)
        return ModelItems(_as_ids(found.images), reduction(found.features), pictures=True)
    if items.features is not None:
        return _shown_in_table(talk, items.features, items.item_name, model, item)
    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "Which items? This model has kept none of those it has learned from: give --features "
            "or --images."
        )
    return kept


def kept_items(model: Any) -> ModelItems | None:
    """Return the items a model has learned from, if it kept them."""
    kept = model.kept_items()
    if kept is None:
        return None
    ids, features = kept
    return ModelItems(ids, features, names=model.item_names)


def _shown_in_table(
    talk: Output, source: str, named: str | None, model: Any, item: str | None
) -> ModelItems:
    from likeminds._util.text_format import mask
    from likeminds.cli._id_lookup import find_names, item_key, names_in
    from likeminds.data.column_roles import as_frame, item_texts, read_values
    from likeminds.data.feature_columns import feature_matrix
    from likeminds.data.identifiers import as_distinct
    from likeminds.data.sources import read_table

    table = read_table(source, item_texts(item or "item"))
    key = item_key(table, item or "item")
    where = mask(source)
    names = [str(name) for name in model.feature_names_]
    names_column = find_names(table, key, named)
    called = names_in(table, key, names_column)
    table = _as_numbers(talk, table, key, names, names_column)
    known = _known_columns(table, names, where)
    frame = as_frame(table)
    ids = as_distinct(read_values(frame, key, as_ids=True), f"The items in {where}")
    return ModelItems(ids, feature_matrix(frame, known), names=called or model.item_names)


def _as_ids(names: Sequence[str]) -> "IdArray":
    from likeminds.data.identifiers import as_id_array

    return as_id_array(list(names), "items")


def item_column(table: Any, names: dict[str, str | None]) -> str:
    from likeminds.data.column_roles import as_frame, find_columns

    column = find_columns(as_frame(table), names, ())["item"]
    if column is None:
        raise ValueError(
            "No column says which item a row is about. Name it with --item-column; there are "
            f"{', '.join(table.column_names)}."
        )
    return column


def with_features(
    talk: Output,
    table: Any,
    names: dict[str, str | None],
    items: ItemOptions,
    known: Sequence[str] | None,
) -> tuple[Any, Any, dict[Any, str] | None]:
    """Return the labels, the features a model knows, and what items are called."""
    from likeminds.cli._id_lookup import find_names, is_name, item_key, names_in
    from likeminds.data.column_roles import item_texts
    from likeminds.data.sources import read_table

    source = items.features
    assert source is not None
    column = item_column(table, names)
    features = read_table(source, item_texts("item" if is_name(column) else column))
    key = item_key(features, column)
    names_column = find_names(features, key, items.item_name)
    called = names_in(features, key, names_column)
    features = _as_numbers(talk, features, key, known, names_column)
    if known is not None:
        features = features.select([key, *_known_columns(features, known, source)])
    table = _by_id(table, column, features[key].to_pylist(), called)
    features = features.rename_columns([column if c == key else c for c in features.column_names])
    return table, features, called


def _by_id(table: Any, column: str, ids: Sequence[Any], called: "dict[Any, str] | None") -> Any:
    """Return labels whose items have ids, where some go by the names of items."""
    from likeminds.data.column_roles import as_arrow
    from likeminds.data.identifiers import as_id_array
    from likeminds.rankers.item_table import places_of_items

    given = table[column].unique().to_pylist()
    if not called or set(given) <= set(ids) or set(given).isdisjoint(called.values()):
        return table
    known = as_id_array(list(ids), "items")
    meant = known[places_of_items(given, known, called)].tolist()
    by_name = dict(zip(given, meant, strict=True))
    found = as_arrow([by_name[value] for value in table[column].to_pylist()])
    return table.set_column(table.column_names.index(column), column, found)


@dataclass(frozen=True)
class TextSource:
    """Where texts come from, and what they are if they have been read."""

    source: str
    known: dict[Any, str] | None = None

    def read(self, column: str) -> dict[Any, str]:
        """Return what items say, by their ids."""
        from likeminds.cli._id_lookup import read_texts

        return read_texts(self.source, column) if self.known is None else self.known


def with_texts(
    texts: TextSource, table: Any, column: str, features: Any
) -> tuple[Any, dict[Any, str]]:
    """Return features of what items say, beside others if there are any, and what they say."""
    import pyarrow as pa

    from likeminds._util.checks import listing
    from likeminds.data.column_roles import as_arrow
    from likeminds.features.text import TextFeatures

    said = texts.read(column)
    kind = type(table[column][0].as_py())
    labelled = dict.fromkeys(table[column].to_pylist())
    ids = [*labelled, *(item for item in said if isinstance(item, kind) and item not in labelled)]
    if features is not None:
        row = {item: place for place, item in enumerate(features[column].to_pylist())}
        ids = [item for item in ids if item in row or item in labelled]
    silent = [item for item in labelled if item not in said]
    if silent:
        raise ValueError(f"{texts.source} has no text for {listing(silent)}, which people judged.")
    words = TextFeatures(random_state=0)
    matrix = words.fit_transform([said[item] for item in ids])
    columns = dict(zip(words.get_feature_names_out(), matrix.T, strict=True))
    made = pa.table({column: as_arrow(ids)} | columns)
    if features is not None:
        unknown = [item for item in labelled if item not in row]
        if unknown:
            raise ValueError(f"--features has no row for {listing(unknown)}, which people judged.")
        others = features.take([row[item] for item in ids]).drop_columns([column])
        for name in others.column_names:
            made = made.append_column(name, others[name])
    return made, {item: said[item] for item in ids}


def with_pictures(
    talk: Output, table: Any, names: dict[str, str | None], items: ItemOptions, model: Any
) -> tuple[Any, Any, "Reduction"]:
    """Return the labels with full names of pictures, their features, and how these came about."""
    import pyarrow as pa

    from likeminds.features.picture_folder import Reduction, picture_features

    column = item_column(table, names)
    called = [str(value) for value in table[column].to_pylist()]
    wanted = list(dict.fromkeys(called))
    assert items.images is not None
    found = picture_features(items.images, wanted, progress=talk.shows_progress)
    full = dict(zip(wanted, found.images, strict=True))
    rows = {name: row for row, name in enumerate(found.images)}
    reduction = Reduction.of(found.features) if model is None else Reduction.of_model(model)
    reduced = reduction(found.features[list(rows.values())])
    columns = {column: list(rows)} | dict(zip(reduction.names(), reduced.T, strict=True))
    place = table.column_names.index(column)
    named = table.set_column(place, column, pa.array([full[name] for name in called]))
    return named, pa.table(columns), reduction


def with_kept(
    table: Any, names: dict[str, str | None], model: Any, known: Sequence[str]
) -> tuple[Any, Any]:
    """Return the labels and the features of the items that a model has kept."""
    import pyarrow as pa

    from likeminds.data.column_roles import as_arrow

    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "What are the items like? Neither the labels nor the model say: give --features or "
            "--images."
        )
    column = item_column(table, names)
    table = _by_id(table, column, kept.ids.tolist(), kept.names)
    columns = dict(zip(known, kept.features.T, strict=True))
    return table, pa.table({column: as_arrow(kept.ids.tolist())} | columns)


def _as_numbers(
    talk: Output, features: Any, key: str, known: Sequence[str] | None, names: str | None = None
) -> Any:
    """Return a table of items without texts, and say what became of the columns left out."""
    from likeminds._util.checks import listing
    from likeminds.data.categorical_encoding import encode_items

    encoded = encode_items(features, key, known)
    if names in encoded.left_out:
        talk.tell(f"{names}: what items are called, and no feature.")
    others = [name for name in encoded.left_out if name != names]
    if others:
        talk.tell(
            f"{listing(others)}: texts, and no features. --texts shows them in explain and report."
        )
    return encoded.table


def _known_columns(features: Any, known: Sequence[str], where: str) -> list[str]:
    from likeminds._util.checks import did_you_mean, listing

    there = set(features.column_names)
    missing = [name for name in known if name not in there]
    if missing:
        hint = did_you_mean(missing[0], sorted(there - set(known)))
        raise ValueError(f"{where} lacks features that the model knows: {listing(missing)}.{hint}")
    return list(known)
