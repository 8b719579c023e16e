"""Rankers of a model by attribute, and its users and items by id."""

from collections.abc import Hashable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from likeminds._util.array_types import IdArray
    from likeminds.data.annotations import Annotations
    from likeminds.rankers.capabilities import ReadableModel
    from likeminds.rankers.ranker import Ranker

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
    """Return one ranker and its attribute; ask where there are several."""
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


def about(attribute: str) -> dict[str, str]:
    """Return the attribute as a column of a table; none where the model has none."""
    return {"attribute": attribute} if attribute else {}


def find_user(text: str, known: "IdArray") -> Hashable:
    """Return the user with an id, which is written as a text."""
    from likeminds._util.checks import did_you_mean, listing
    from likeminds.data.id_coercion import write_as_known
    from likeminds.data.identifiers import lookup

    place = lookup(write_as_known([text], known, "user"), known, "user")[0]
    if place < 0:
        hint = did_you_mean(text, known[:_COMPARED].tolist())
        raise ValueError(f"There is no user {text!r}; there are {listing(known)}.{hint}")
    found: Hashable = known[place : place + 1].tolist()[0]
    return found


def find_item(text: str, ids: "IdArray", names: Mapping[Hashable, str]) -> Hashable:
    """Return the item with an id or a name; suggest others if there is none."""
    from likeminds.rankers.item_table import places_of_items

    place = int(places_of_items([text], ids, names)[0])
    found: Hashable = ids[place : place + 1].tolist()[0]
    return found


def parts_of(annotations: "Annotations", model: "ReadableModel") -> dict[str, "Annotations"]:
    """Return labels by attribute, as a model tells them apart."""
    from likeminds._util.checks import listing

    if not model.has_attributes:
        if annotations.n_attributes > 1:
            raise ValueError(
                f"These labels are about {annotations.n_attributes} attributes, but the model "
                "tells none apart."
            )
        return dict.fromkeys(model.rankers_, annotations)
    if annotations.attribute_ids is None:
        known = list(model.rankers_)
        if len(known) > 1:
            raise ValueError(
                f"The model is about {listing(known)}, but no column says which of them a label "
                "is about. Name it with --attribute-column."
            )
        return {known[0]: annotations}
    return {str(name): part for name, part in annotations.by_attribute().items()}
