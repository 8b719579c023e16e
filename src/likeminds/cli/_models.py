"""Models, as the commands see them: one ranker, or one for each of several attributes."""

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from likeminds.data.annotations import Annotations
    from likeminds.data.label_parsing import LabelReading
    from likeminds.rankers.capabilities import ReadableModel


def open_model(path: Path) -> Any:
    """Read a model."""
    from likeminds.storage.models import load

    return load(path)


def keep_schools_of(model: "ReadableModel") -> None:
    """Keep with a model what takes long to find out about its crowd, for explain and report."""
    from likeminds.schools.find import keep_schools

    for ranker in model.rankers_.values():
        keep_schools(ranker)


def rankers_of(model: "ReadableModel", attribute: str | None = None) -> dict[str, Any]:
    """Return the rankers by attribute: one of them, or all."""
    if attribute is None:
        return dict(model.rankers_)
    if not model.has_attributes:
        raise ValueError(
            f"This model tells no attributes apart, so that there is no {attribute!r}: leave "
            "out --attribute."
        )
    return {attribute: model._ranker_of(attribute)}


def verbs_of(model: "ReadableModel") -> dict[str, str | None]:
    """Return what people do with items, by attribute, where that is known."""
    return {name: ranker._best_model._learned("verb_") for name, ranker in model.rankers_.items()}


def the_ranker_of(model: "ReadableModel", attribute: str | None) -> tuple[str, Any]:
    """Return one ranker and its attribute; ask where there are several."""
    rankers = rankers_of(model, attribute)
    if len(rankers) > 1:
        raise ValueError(f"Which attribute? Give --attribute: {', '.join(rankers)}.")
    return next(iter(rankers.items()))


def parts_of(said: "Annotations", model: "ReadableModel") -> dict[str, "Annotations"]:
    """Return labels by attribute, as a model tells them apart."""
    from likeminds._util.checks import listing

    if not model.has_attributes:
        if said.n_attributes > 1:
            raise ValueError(
                f"These labels are about {said.n_attributes} attributes, but the model tells "
                "none apart."
            )
        return dict.fromkeys(model.rankers_, said)
    if said.attribute_ids is None:
        known = list(model.rankers_)
        if len(known) > 1:
            raise ValueError(
                f"The model is about {listing(known)}, but no column says which of them a label "
                "is about. Name it with --attribute-column."
            )
        return {known[0]: said}
    return {str(name): part for name, part in said.by_attribute().items()}


def reading_of(model: "ReadableModel") -> "LabelReading | None":
    """Return how a model's labels were read; None if it does not know, or by attribute only."""
    found = {ranker._learned("label_reading_") for ranker in model.rankers_.values()}
    return found.pop() if len(found) == 1 else None
