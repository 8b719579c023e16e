"""Models on the command line: rankers by attribute, users and items by id."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import likeminds
from likeminds._util.text_format import did_you_mean, listing, mask
from likeminds.cli._label_tables import FeatureTable, Names
from likeminds.cli._options import ItemOptions
from likeminds.cli._output import Output

if TYPE_CHECKING:
    from likeminds._util.array_types import FloatArray, IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.diagnostics import Diagnostics
    from likeminds.rankers.capabilities import ReadableModel
    from likeminds.rankers.ranker import Ranker

Rows = list[dict[str, Any]]

# The largest number of ids in which an unknown one is searched.
_COMPARED = 100_000


def rankers_of(model: "ReadableModel", attribute: str | None = None) -> dict[str, "Ranker"]:
    """Return rankers by attribute: all, or that of one attribute."""
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
        raise ValueError(
            f"The model has several attributes. Give --attribute: {', '.join(rankers)}."
        )
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
    """Return the attribute as a column of a table; none for models without attributes."""
    return {"attribute": attribute} if attribute else {}


def find_user(text: str, users: "IdArray") -> Hashable:
    """Return the user with an id, given as text."""
    from likeminds.data.identifiers import coerce_ids, lookup

    place = lookup(coerce_ids([text], users, "user"), users, "user")[0]
    if place < 0:
        hint = did_you_mean(text, users[:_COMPARED].tolist())
        raise ValueError(f"There is no user {text!r}; there are {listing(users)}.{hint}")
    found: Hashable = users[place : place + 1].tolist()[0]
    return found


def find_item(text: str, ids: "IdArray", names: Mapping[Hashable, str]) -> Hashable:
    """Return the item with an id or a name; the error for an unknown one suggests others."""
    from likeminds.rankers.item_table import places_of_items

    place = int(places_of_items([text], ids, names)[0])
    found: Hashable = ids[place : place + 1].tolist()[0]
    return found


def parts_of(annotations: "Annotations", model: "ReadableModel") -> dict[str, "Annotations"]:
    """Return labels by the attributes of a model."""
    if not model.has_attributes:
        if annotations.n_attributes > 1:
            raise ValueError(
                f"These labels have {annotations.n_attributes} attributes, but the model has none. "
                "Give the labels of one attribute."
            )
        return dict.fromkeys(model.rankers_, annotations)
    if annotations.attribute_ids is None:
        attributes = list(model.rankers_)
        if len(attributes) > 1:
            raise ValueError(
                f"The model has the attributes {listing(attributes)}, but the labels have no "
                "column of attributes. Name it with --attribute-column."
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
        """Return an item, and its name if items have names, as columns of a table."""
        return {"item": item} | ({"name": self.names.get(item)} if self.names else {})


def read_items(
    output: Output, items: ItemOptions, model: "ReadableModel", item: str | None = None
) -> ModelItems:
    """Read the items to rank; by default, those of the model's training data."""
    items.refuse_two_sources()
    if items.images is not None:
        from likeminds.data.identifiers import as_id_array
        from likeminds.features.reduction import picture_features, reduction_from_attribute

        reduction = reduction_from_attribute(model.pictures_)
        found = picture_features(items.images, progress=not output.quiet)
        ids = as_id_array(list(found.images), "items")
        return ModelItems(ids, reduction.transform(found.features.astype(float)), pictures=True)
    if items.features is not None:
        from likeminds.data.column_roles import as_frame, read_values
        from likeminds.data.identifiers import as_distinct
        from likeminds.data.tables import feature_matrix

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
        raise ValueError("This model was saved without its items: give --features or --images.")
    return trained


def training_items(model: "ReadableModel") -> ModelItems | None:
    """Return the items of a model's training data, if it has them."""
    trained = model.training_items()
    return None if trained is None else ModelItems(*trained, names=model.item_names)


def diagnose_annotators(
    model: "ReadableModel",
    labels: "dict[str, Annotations]",
    seconds: "Mapping[Hashable, float] | None" = None,
) -> "dict[str, Diagnostics]":
    """Return the diagnostics of annotators by attribute."""
    return {
        name: likeminds.diagnose(model._ranker_of(name), part, seconds=seconds)
        for name, part in labels.items()
    }


def without_verdicts(
    output: Output,
    verdicts: list[str],
    model: "ReadableModel",
    labels: "dict[str, Annotations]",
) -> "dict[str, Annotations]":
    """Return labels by attribute without annotators who have one of the verdicts; print these."""
    found = diagnose_annotators(model, labels)
    for name, one in found.items():
        for verdict in verdicts:
            users = listing(one.of(verdict)) if one.counts[verdict] else "none"
            head = f"{name}, left" if name else "Left"
            output.show(f"{head} out as {verdict}: {users}")
    return {name: found[name].leave_out(verdicts, part) for name, part in labels.items()}


def parse_verdicts(verdicts: str) -> list[str]:
    """Return the verdicts of an option; unknown ones raise ValueError."""
    from likeminds.diagnostics import VERDICTS

    chosen = [one.strip() for one in verdicts.split(",")]
    unknown = [one for one in chosen if one not in VERDICTS]
    if unknown:
        raise ValueError(f"--without takes {', '.join(VERDICTS)}, not {unknown[0]!r}.")
    return chosen
