"""From options to labels and items."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from likeminds.cli._options import Columns, Items
from likeminds.cli._talk import Talk

if TYPE_CHECKING:
    import numpy as np

    from likeminds._support.arrays import IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.features.pictures import Reduction

_ROLES = ("person", "item", "label", "attribute", "weight", "group")


@dataclass(frozen=True)
class Said:
    """What people said, and how pictures were reduced, if there are any."""

    annotations: "Annotations"
    reduction: "Reduction | None" = None


@dataclass(frozen=True)
class Shown:
    """Items and their features, as a model knows them."""

    ids: "IdArray"
    features: "np.ndarray[Any, Any]"


def read_said(talk: Talk, source: str, items: Items, columns: Columns, model: Any = None) -> Said:
    """Read labels with the features of their items; a model says which features it knows."""
    from likeminds.data.annotations import Annotations
    from likeminds.data.sources import read_table

    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    _refuse_both_from_stdin(source, items.features)
    table = read_table(source)
    names = {role: getattr(columns, role) for role in _ROLES}
    options: dict[str, Any] = dict(names)
    known = None if model is None else [str(name) for name in model.feature_names_]
    reduction = None
    if items.images is not None:
        table, options["features"], reduction = _with_pictures(talk, table, names, items, model)
    elif items.features is not None:
        table, options["features"] = _with_features(table, names, items.features, known)
    elif known is not None and set(known) <= set(table.column_names):
        options["features"] = known
    elif known is not None:
        table, options["features"] = _with_kept(table, names, model, known)
    options |= label_reading(table, names, columns)
    return Said(Annotations.from_frame(table, **options), reduction)


def read_shown(talk: Talk, items: Items, model: Any, item: str | None = None) -> Shown:
    """Read items to be ranked; without any, those that a model has kept of its training."""
    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    if items.images is not None:
        from likeminds.features.pictures import Reduction, picture_features

        reduction = Reduction.of_model(model)
        found = picture_features(items.images, progress=talk.shows_progress)
        return Shown(_as_ids(found.images), reduction(found.features))
    if items.features is not None:
        return _shown_in_table(items.features, model, item)
    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "Which items? This model has kept none of those it has learned from: give --features "
            "or --images."
        )
    return kept


def as_known(text: str, known: "IdArray", what: str) -> Any:
    """Return the id that somebody means, who can write nothing but text."""
    from likeminds._support.checks import listing

    for value in known.tolist():
        if value == text or str(value) == text:
            return value
    raise ValueError(f"There is no {what} {text!r}; there are {listing(known)}.")


def _refuse_both_from_stdin(*sources: str | None) -> None:
    if sources.count("-") > 1:
        raise ValueError("Only one table can come from standard input.")


def _item_column(table: Any, names: dict[str, str | None]) -> str:
    from likeminds.data import tables

    column = tables.find_columns(tables.as_frame(table), names, ())["item"]
    if column is None:
        raise ValueError(
            "No column says which item a row is about. Name it with --item; there are "
            f"{', '.join(table.column_names)}."
        )
    return column


def _with_features(
    table: Any, names: dict[str, str | None], source: str, known: Sequence[str] | None
) -> tuple[Any, Any]:
    """Return both tables with item ids of one kind, and the features a model knows."""
    from likeminds.data.sources import read_table

    column = _item_column(table, names)
    features = read_table(source)
    key = item_key(features, column)
    if known is not None:
        features = features.select([key, *_known_columns(features, known, source)])
    features = features.rename_columns([column if c == key else c for c in features.column_names])
    return _of_one_kind(table, features, column)


def _with_kept(
    table: Any, names: dict[str, str | None], model: Any, known: Sequence[str]
) -> tuple[Any, Any]:
    """Return the labels and the features of the items that a model has kept."""
    import pyarrow as pa

    kept = kept_items(model)
    if kept is None:
        raise ValueError(
            "What are the items like? Neither the labels nor the model say: give --features or "
            "--images."
        )
    column = _item_column(table, names)
    columns = dict(zip(known, kept.features.T, strict=True))
    features = pa.table({column: pa.array(kept.ids.tolist())} | columns)
    return _of_one_kind(table, features, column)


def _of_one_kind(table: Any, features: Any, column: str) -> tuple[Any, Any]:
    """Make ids texts in both tables if they are in one of them: 7 here is "7" there."""
    import pyarrow as pa

    if table.schema.field(column).type == features.schema.field(column).type:
        return table, features
    both = []
    for part in (table, features):
        place = part.column_names.index(column)
        both.append(part.set_column(place, column, part[column].cast(pa.string())))
    return both[0], both[1]


def item_key(features: Any, column: str = "item") -> str:
    """Return the column of a table of features that names the items."""
    from likeminds._support.checks import listing
    from likeminds.data import tables

    if column in features.column_names:
        return column
    usual = tables.COLUMN_NAMES["item"]
    matches = [name for name in features.column_names if name.lower() in usual]
    if len(matches) != 1:
        raise ValueError(
            "The table of features needs one column with the ids of the items, called "
            f"{column} or {usual[0]}; it has {listing(features.column_names)}."
        )
    return str(matches[0])


def _known_columns(features: Any, known: Sequence[str], where: str) -> list[str]:
    from likeminds._support.checks import listing

    missing = [name for name in known if name not in features.column_names]
    if missing:
        raise ValueError(f"{where} lacks features that the model knows: {listing(missing)}.")
    return list(known)


def _with_pictures(
    talk: Talk, table: Any, names: dict[str, str | None], items: Items, model: Any
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


def label_reading(table: Any, names: dict[str, str | None], columns: Columns) -> dict[str, Any]:
    """Return how labels are read: which one is positive, or above which number."""
    options: dict[str, Any] = {}
    if columns.positive is not None:
        from likeminds.data import tables

        label = tables.find_columns(tables.as_frame(table), names, ())["label"]
        values = table[label].unique().to_pylist()
        same = [value for value in values if str(value).lower() == columns.positive.lower()]
        options["positive"] = same[0] if same else columns.positive
    if columns.threshold is not None:
        options["threshold"] = _as_threshold(columns.threshold)
    return options


def _as_threshold(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        if text != "median":
            raise ValueError(f"--threshold is a number or median, not {text!r}.") from None
        return text


def _shown_in_table(source: str, model: Any, item: str | None) -> Shown:
    from likeminds.data import tables
    from likeminds.data.identifiers import as_distinct
    from likeminds.data.sources import read_table

    table = read_table(source)
    key = item_key(table, item or "item")
    known = _known_columns(table, [str(name) for name in model.feature_names_], source)
    frame = tables.as_frame(table)
    ids = as_distinct(frame.get_column(key).to_numpy(), f"The items in {source}")
    return Shown(ids, tables.feature_matrix(frame, known))


def kept_items(model: Any) -> Shown | None:
    """Return the items a model has learned from, if it kept them."""
    return None if model.kept_ is None else _items_of(model.kept_)


def _items_of(said: "Annotations") -> Shown:
    """Return each item once; where rows have features of their own, by the first of its rows."""
    import numpy as np

    if said.features_per == "item":
        return Shown(said.item_ids, said.features)
    codes, first = np.unique(said.item_codes, return_index=True)
    return Shown(said.item_ids[codes], said.features[said.feature_rows[first]])


def _as_ids(names: Sequence[str]) -> "IdArray":
    from likeminds.data.identifiers import as_id_array

    return as_id_array(list(names), "items")
