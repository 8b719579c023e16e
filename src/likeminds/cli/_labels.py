"""From options to labels."""

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from likeminds.cli._input_tables import read_tables
from likeminds.cli._items import (
    TextSource,
    item_column,
    with_features,
    with_kept,
    with_pictures,
    with_texts,
)
from likeminds.cli._models import reading_of
from likeminds.cli._options import ComparisonOptions, ItemOptions, LabelColumns
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.features.picture_folder import Reduction

NO_PAIRS = ComparisonOptions()


@dataclass(frozen=True)
class ReadLabels:
    """What people said; how pictures were reduced, and what items are called, if that is known."""

    annotations: "Annotations"
    reduction: "Reduction | None" = None
    names: dict[Any, str] | None = None
    # Whether all that is known about items is what they say.
    words_only: bool = False


def read_said(  # noqa: PLR0917 - where everything comes from
    talk: Output,
    source: str | None,
    items: ItemOptions,
    columns: LabelColumns,
    model: Any = None,
    pairs: ComparisonOptions = NO_PAIRS,
    texts: str | None = None,
) -> ReadLabels:
    """Read labels with the features of their items; a model says which features it knows.

    ``texts`` is where one reads what items say: that becomes features, and is kept to be shown. It
    may be the export that the labels come from, whose texts are shown in any case.
    """
    from likeminds.cli._comparisons import NAMES

    if items.features is not None and items.images is not None:
        raise ValueError("Give --features or --images, not both.")
    refuse_several_from_stdin(
        source, items.features, columns.user_features, pairs.comparisons, texts
    )
    if texts is not None and items.images is not None:
        raise ValueError("Give --texts or --images, not both.")
    tables, exported = read_tables(talk, source, columns, pairs)
    words = _words(texts, exported, pairs)
    compares = any(names is NAMES for _, names in tables)
    ids_only = compares and model is None and items == ItemOptions() and texts is None
    parts = [
        _annotated(talk, *one, items, columns, model, words, ids_only=ids_only) for one in tables
    ]
    said = parts[0].annotations
    if len(parts) > 1 and said.grades is not None:
        said = said.choices()  # grades beside comparisons are preferences, too
    for part in parts[1:]:
        said = said.concat(part.annotations)
    said = said if model is None else said.written_as(model.people_)
    return replace(parts[0], annotations=said, names=parts[0].names or exported or None)


def _words(
    texts: str | None, exported: dict[Any, str], pairs: ComparisonOptions
) -> TextSource | None:
    """Return where one learns what items say: a table of texts, or the export itself."""
    if texts is None:
        return None
    if pairs.export is None or texts != pairs.export[1]:
        return TextSource(texts)
    if not exported:
        raise ValueError(f"--texts: {texts} has no texts, only labels.")
    return TextSource(texts, exported)


def _annotated(  # noqa: PLR0917 - what a table needs to be read
    talk: Output,
    table: Any,
    names: dict[str, str | None],
    items: ItemOptions,
    columns: LabelColumns,
    model: Any,
    texts: TextSource | None = None,
    *,
    ids_only: bool = False,
) -> ReadLabels:
    """Read one table; with ``ids_only``, its columns hold no features."""
    from likeminds.cli._comparisons import NAMES
    from likeminds.data.annotations import Annotations

    options: dict[str, Any] = {**names, "user_features": columns.user_features}
    if names is not NAMES:
        options |= label_reading(columns, model)
        options |= {"constants": columns.constants, "base": columns.base}
        if texts is not None or items.images is not None:  # bad labels are told before long work
            Annotations.from_frame(table, **options, features=[])
    known = None if model is None else [str(name) for name in model.feature_names_]
    reduction = called = None
    if items.images is not None:
        table, options["features"], reduction = with_pictures(talk, table, names, items, model)
    elif items.features is not None:
        table, options["features"], called = with_features(talk, table, names, items, known)
    elif known is not None and _has_features(table, names, known):
        options["features"] = known
    elif known is not None:
        table, options["features"] = with_kept(table, names, model, known)
    elif ids_only:
        options["features"] = []
    words_only = texts is not None and options.get("features") is None
    if texts is not None:
        options["features"], called = with_texts(
            texts, table, item_column(table, names), options.get("features")
        )
    said = Annotations.from_frame(table, **options)
    if names is NAMES:  # pairs have no names that others could have, too
        said = said.without_choice_set_names()
    return ReadLabels(said, reduction, called, words_only)


def _has_features(table: Any, names: dict[str, str | None], known: list[str]) -> bool:
    """Say whether a table has the features that a model knows, constants of alternatives too."""
    from likeminds.data.column_roles import find_column

    here = set(table.column_names)
    column = names.get("alternative") or find_column("alternative", here)
    if column is not None:  # an alternative that these rows do not have is zero in all of them
        here |= {name for name in known if name.startswith(f"{column}: ")}
    return set(known) <= here


def refuse_several_from_stdin(*sources: str | None) -> None:
    """Say that standard input is one table, if it was named twice."""
    if sources.count("-") > 1:
        raise ValueError("Only one table can come from standard input.")


def label_reading(columns: LabelColumns, model: Any = None) -> dict[str, Any]:
    """Return how labels are read: as the model's were, which is positive, above which number."""
    options: dict[str, Any] = {"reading": None if model is None else reading_of(model)}
    if columns.positive is not None:
        options["positive"] = columns.positive
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
