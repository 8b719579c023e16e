"""From options to labels and items."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

from likeminds.cli._models import reading_of
from likeminds.cli._options import Columns, ItemOptions, Pairs
from likeminds.cli._talk import Talk

if TYPE_CHECKING:
    import numpy as np

    from likeminds._support.arrays import IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.features.pictures import Reduction

NO_PAIRS = Pairs()
_ROLES = ("person", "item", "label", "attribute", "weight", "group")


@dataclass(frozen=True)
class ReadLabels:
    """What people said; how pictures were reduced, and what items are called, if that is known."""

    annotations: "Annotations"
    reduction: "Reduction | None" = None
    names: dict[Any, str] | None = None
    # Whether all that is known about items is what they say.
    words_only: bool = False


@dataclass(frozen=True)
class Shown:
    """Items and their features, as a model knows them; pictures go by the names of files."""

    ids: "IdArray"
    features: "np.ndarray[Any, Any]"
    pictures: bool = False
    # What items are called, by their ids, where that is more than the id.
    names: "dict[Any, str]" = field(default_factory=dict)


def read_said(  # noqa: PLR0917 - where everything comes from
    talk: Talk,
    source: str | None,
    items: ItemOptions,
    columns: Columns,
    model: Any = None,
    pairs: Pairs = NO_PAIRS,
    texts: str | None = None,
) -> ReadLabels:
    """Read labels with the features of their items; a model says which features it knows.

    ``texts`` is where one reads what items say: that becomes features, and is kept to be shown.
    """
    from likeminds.cli._pairs import NAMES, items_by_id

    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    refuse_several_from_stdin(source, items.features, columns.people, pairs.comparisons, texts)
    if texts is not None and items.images is not None:
        raise ValueError("Give --texts or --images, not both.")
    tables = _read_tables(talk, source, columns, pairs)
    compares = any(names is NAMES for _, names in tables)
    shown = None
    if compares and model is None and items == ItemOptions() and texts is None:
        shown = items_by_id(*((table, _item_column(table, names)) for table, names in tables))
    parts = [_annotated(talk, *one, items, columns, model, shown, texts) for one in tables]
    said = parts[0].annotations
    if len(parts) > 1 and said.grades is not None:
        said = said.choices()  # grades beside comparisons are preferences, too
    for part in parts[1:]:
        said = said.concat(part.annotations)
    said = said if model is None else said.written_as(model.people_)
    return replace(parts[0], annotations=said)


_Tables = list[tuple[Any, dict[str, str | None]]]


def _read_tables(talk: Talk, source: str | None, columns: Columns, pairs: Pairs) -> _Tables:
    """Return what people said, as tables with the names of their columns by role."""
    from likeminds.cli._pairs import NAMES, read_pairs
    from likeminds.data.columns import id_texts
    from likeminds.data.sources import read_table

    tables: _Tables = []
    if source is not None:
        names = {role: getattr(columns, role) for role in _ROLES}
        tables.append((read_table(source, id_texts(names)), names))
    if pairs.comparisons is not None:
        tables.append((read_pairs(pairs, columns.person), NAMES))
    if pairs.export is not None:
        tables += _read_export(talk, *pairs.export, columns.attribute)
    if not tables:
        raise ValueError("What did people say? Give --annotations, --comparisons, or --from.")
    return tables


def _read_export(talk: Talk, tool: str, path: str, attribute: str | None) -> _Tables:
    """Return labels and comparisons of an export, and say what was left out of it."""
    import pyarrow as pa

    from likeminds.cli._pairs import NAMES, as_sides
    from likeminds.data.columns import as_arrow
    from likeminds.data.connectors import read_export

    export = read_export(tool, path)
    talk.tell(str(export))
    tables: _Tables = []
    if export.labels or not export.comparisons:
        labels = export.to_table(attribute)
        names = {role: role if role in labels.column_names else None for role in _ROLES}
        asked = export.attributes if attribute is None else [attribute]
        if len(asked) == 1 and asked[0] not in labels.column_names:  # what was asked says the verb
            labels = labels.rename_columns({"label": asked[0]})
            names["label"] = asked[0]
        tables.append((labels, names))
    if export.comparisons:
        roles = ("person", "winner", "loser")
        columns = dict(zip(roles, map(list, zip(*export.comparisons, strict=True)), strict=True))
        compared = pa.table({role: as_arrow(ids) for role, ids in columns.items()})
        tables.append((as_sides(compared, dict(zip(roles, roles, strict=True))), NAMES))
    return tables


def _annotated(  # noqa: PLR0917 - what a table needs to be read
    talk: Talk,
    table: Any,
    names: dict[str, str | None],
    items: ItemOptions,
    columns: Columns,
    model: Any,
    shown: Any,
    texts: str | None = None,
) -> ReadLabels:
    """Return what one table says; ``shown`` are items that are known by their ids alone."""
    from likeminds.cli._pairs import NAMES
    from likeminds.data.annotations import Annotations

    options: dict[str, Any] = dict(names)
    known = None if model is None else [str(name) for name in model.feature_names_]
    reduction = called = None
    if items.images is not None:
        table, options["features"], reduction = _with_pictures(talk, table, names, items, model)
    elif items.features is not None:
        table, options["features"], called = _with_features(talk, table, names, items, known)
    elif known is not None and set(known) <= set(table.column_names):
        options["features"] = known
    elif known is not None:
        table, options["features"] = _with_kept(table, names, model, known)
    elif shown is not None:
        column = _item_column(table, names)
        options["features"] = shown.rename_columns([column, *shown.column_names[1:]])
    words_only = texts is not None and options.get("features") is None
    if texts is not None:
        options["features"], called = _with_texts(
            texts, table, _item_column(table, names), options.get("features")
        )
    options["people"] = columns.people
    if names is NAMES:  # pairs have no names that others could have, too
        said = Annotations.from_frame(table, **options)
        return ReadLabels(said.without_group_names(), reduction, called, words_only)
    options |= label_reading(table, names, columns, model)
    return ReadLabels(Annotations.from_frame(table, **options), reduction, called, words_only)


def read_shown(talk: Talk, items: ItemOptions, model: Any, item: str | None = None) -> Shown:
    """Read items to be ranked; without any, those that a model has kept of its training."""
    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    if items.images is not None:
        from likeminds.features.pictures import Reduction, picture_features

        reduction = Reduction.of_model(model)
        found = picture_features(items.images, progress=talk.shows_progress)
        return Shown(_as_ids(found.images), reduction(found.features), pictures=True)
    if items.features is not None:
        return _shown_in_table(talk, items.features, items.item_name, model, item)
    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "Which items? This model has kept none of those it has learned from: give --features "
            "or --images."
        )
    return kept


def refuse_several_from_stdin(*sources: str | None) -> None:
    """Say that standard input is one table, if it was named twice."""
    if sources.count("-") > 1:
        raise ValueError("Only one table can come from standard input.")


def _item_column(table: Any, names: dict[str, str | None]) -> str:
    from likeminds.data.columns import as_frame, find_columns

    column = find_columns(as_frame(table), names, ())["item"]
    if column is None:
        raise ValueError(
            "No column says which item a row is about. Name it with --item; there are "
            f"{', '.join(table.column_names)}."
        )
    return column


def _with_features(
    talk: Talk,
    table: Any,
    names: dict[str, str | None],
    items: ItemOptions,
    known: Sequence[str] | None,
) -> tuple[Any, Any, dict[Any, str] | None]:
    """Return the labels, the features a model knows, and what items are called."""
    from likeminds.cli._names import find_names, item_key, names_in
    from likeminds.data.columns import item_texts
    from likeminds.data.sources import read_table

    source = items.features
    assert source is not None
    column = _item_column(table, names)
    features = read_table(source, item_texts(column))
    key = item_key(features, column)
    names_column = find_names(features, key, items.item_name)
    called = names_in(features, key, names_column)
    features = _as_numbers(talk, features, key, known, names_column)
    if known is not None:
        features = features.select([key, *_known_columns(features, known, source)])
    features = features.rename_columns([column if c == key else c for c in features.column_names])
    return table, features, called


def _with_texts(source: str, table: Any, column: str, features: Any) -> tuple[Any, dict[Any, str]]:
    """Return features of what items say, beside others if there are any, and what they say."""
    import pyarrow as pa

    from likeminds._support.checks import listing
    from likeminds.cli._names import read_texts
    from likeminds.data.columns import as_arrow
    from likeminds.features.text import TextFeatures

    said = read_texts(source, column)
    kind = type(table[column][0].as_py())
    labelled = dict.fromkeys(table[column].to_pylist())
    ids = [*labelled, *(item for item in said if isinstance(item, kind) and item not in labelled)]
    if features is not None:
        row = {item: place for place, item in enumerate(features[column].to_pylist())}
        ids = [item for item in ids if item in row or item in labelled]
    silent = [item for item in labelled if item not in said]
    if silent:
        raise ValueError(f"{source} has no text for {listing(silent)}, which people judged.")
    words = TextFeatures(random_state=0).fit([said[item] for item in ids])
    matrix = words.transform([said[item] for item in ids])
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


def _as_numbers(
    talk: Talk, features: Any, key: str, known: Sequence[str] | None, names: str | None = None
) -> Any:
    """Return a table of items without texts, and say what became of the columns left out."""
    from likeminds._support.checks import listing
    from likeminds.data.item_columns import encode_items

    encoded = encode_items(features, key, known)
    if names in encoded.left_out:
        talk.tell(f"{names}: what items are called, and no feature.")
    others = [name for name in encoded.left_out if name != names]
    if others:
        talk.tell(
            f"{listing(others)}: texts, and no features. --texts shows them in explain and report."
        )
    return encoded.table


def _with_kept(
    table: Any, names: dict[str, str | None], model: Any, known: Sequence[str]
) -> tuple[Any, Any]:
    """Return the labels and the features of the items that a model has kept."""
    import pyarrow as pa

    from likeminds.data.columns import as_arrow

    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "What are the items like? Neither the labels nor the model say: give --features or "
            "--images."
        )
    column = _item_column(table, names)
    columns = dict(zip(known, kept.features.T, strict=True))
    return table, pa.table({column: as_arrow(kept.ids.tolist())} | columns)


def _known_columns(features: Any, known: Sequence[str], where: str) -> list[str]:
    from likeminds._support.checks import listing
    from likeminds._support.suggesting import did_you_mean

    there = set(features.column_names)
    missing = [name for name in known if name not in there]
    if missing:
        hint = did_you_mean(missing[0], sorted(there - set(known)))
        raise ValueError(f"{where} lacks features that the model knows: {listing(missing)}.{hint}")
    return list(known)


def _with_pictures(
    talk: Talk, table: Any, names: dict[str, str | None], items: ItemOptions, model: Any
) -> tuple[Any, Any, "Reduction"]:
    """Return the labels with full names of pictures, their features, and how these came about."""
    import pyarrow as pa

    from likeminds.features.pictures import Reduction, picture_features

    column = _item_column(table, names)
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


def label_reading(
    table: Any, names: dict[str, str | None], columns: Columns, model: Any = None
) -> dict[str, Any]:
    """Return how labels are read: as the model's were, which is positive, above which number."""
    options: dict[str, Any] = {"reading": None if model is None else reading_of(model)}
    if columns.positive is not None:
        from likeminds.data.columns import as_frame, find_columns

        label = find_columns(as_frame(table), names, ())["label"]
        values = table[label].unique().to_pylist()
        same = [value for value in values if str(value).lower() == columns.positive.lower()]
        options["positive"] = same[0] if same else columns.positive
    if columns.threshold is not None:
        options["threshold"] = _as_threshold(columns.threshold)
    if columns.grades is not None:
        options["grades"] = [word.strip() for word in columns.grades.split(",")]
    if columns.duplicates is not None:
        options["duplicates"] = columns.duplicates
    return options


def _as_threshold(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        if text != "median":
            raise ValueError(f"--threshold is a number or median, not {text!r}.") from None
        return text


def _shown_in_table(
    talk: Talk, source: str, named: str | None, model: Any, item: str | None
) -> Shown:
    from likeminds._support.secrets import mask
    from likeminds.cli._names import find_names, item_key, names_in, names_of
    from likeminds.data.columns import as_frame, item_texts, read_values
    from likeminds.data.identifiers import as_distinct
    from likeminds.data.sources import read_table
    from likeminds.data.tables import feature_matrix

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
    return Shown(ids, feature_matrix(frame, known), names=called or names_of(model))


def kept_items(model: Any) -> Shown | None:
    """Return the items a model has learned from, if it kept them."""
    from likeminds.cli._names import names_of

    if model.kept_ is None:
        return None
    ids, features = model.kept_.distinct_items()
    return Shown(ids, features, names=names_of(model))


def _as_ids(names: Sequence[str]) -> "IdArray":
    from likeminds.data.identifiers import as_id_array

    return as_id_array(list(names), "items")
