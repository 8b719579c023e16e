"""Data sets as files that anything reads: annotations.csv, features.csv, pictures."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.atomic_files import folder_for, make_folder
from likeminds._util.lazy_imports import pa
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.sources import write_table
from likeminds.datasets.electricity import load_electricity
from likeminds.datasets.simulation import Simulation

# File and what is in it.
Written = dict[str, str]


def write_electricity(folder: str | PathLike[str]) -> Written:
    """Write the households' choices; an offer is an item, called by what it offers."""
    said = electricity_by_offer()
    root = make_folder(folder, "the tables")
    labels = {
        "person": said.users,
        "choice_set": said.choice_set_codes + 1 if said.choice_set_codes is not None else None,
        "item": said.items,
        "label": said.labels.astype(np.int8),
    }
    _write(root / "annotations.csv", labels)
    columns = _columns(said.feature_names, said.features)
    _write(root / "features.csv", {"item": said.item_ids} | columns)
    return _describe(said, "annotations.csv") | {
        "features.csv": f"{said.n_items} offers, {counted(said.n_features, 'feature')}"
    }


def electricity_by_offer() -> Annotations:
    """Return the households' choices; equal offers are one item, called by what it offers."""
    said = load_electricity()
    offers, codes = np.unique(said.features, axis=0, return_inverse=True)
    names = np.array([_offer(*offer) for offer in offers], dtype=object)
    return Annotations(
        said.users,
        names[codes.ravel()],
        said.labels,
        offers,
        choice_sets=said.choice_set_codes,
        item_ids=names,
        feature_names=said.feature_names,
        verb=said.verb,
    )


def write_simulation(simulation: Simulation, folder: str | PathLike[str]) -> Written:
    """Write simulated labels and features, and in truth.csv the school of each person."""
    said = simulation.annotations
    root = make_folder(folder, "the tables")
    people = np.array([f"person-{person:03d}" for person in said.user_ids], dtype=object)
    items = np.array([f"item-{item:04d}" for item in range(len(said.features))], dtype=object)
    labels = {
        "person": people[said.user_codes],
        "item": items[said.feature_rows],
        "label": said.labels.astype(np.int8),
    }
    _write(root / "annotations.csv", labels)
    _write(root / "features.csv", {"item": items} | _columns(said.feature_names, said.features))
    _write(root / "truth.csv", {"person": people, "school": simulation.school + 1})
    return _describe(said, "annotations.csv") | {
        "features.csv": f"{counted(len(items), 'item')}, {counted(said.n_features, 'feature')}",
        "truth.csv": "the school of each person (0: of their own)",
    }


def write_sketch_shoes(
    folder: str | PathLike[str],
    *,
    n_pictures: int,
    n_users: int,
    attributes: Iterable[str] | None = None,
    random_state: int = 0,
) -> Written:
    """Write labels, features and pictures of `make_sketch_shoes`, with the same parameters."""
    from likeminds.datasets.sketch_shoes import make_sketch_shoes  # noqa: PLC0415 - scikit-learn
    from likeminds.features.png import write_png  # noqa: PLC0415

    root = folder_for(folder, "the tables")
    shoes = make_sketch_shoes(
        n_pictures,
        n_users,
        min(50, n_pictures),
        attributes=attributes,
        random_state=random_state,
    )
    said = shoes.annotations
    pictures = make_folder(root / "images", "the pictures")
    for name, picture in zip(said.item_ids, shoes.pictures, strict=True):
        write_png(pictures / f"{name}.png", picture)
    labels = {
        "attribute": said.attributes,
        "person": said.users,
        "image": said.items,
        "label": said.labels.astype(np.int8),
    }
    _write(root / "annotations.csv", labels)
    columns = _columns(said.feature_names, said.features)
    _write(root / "features.csv", {"image": said.item_ids} | columns)
    return _describe(said, "annotations.csv") | {
        "features.csv": f"{counted(said.n_features, 'feature')} of the pixels",
        "images/": f"{counted(n_pictures, 'picture')} of {len(shoes.pictures[0])} pixels",
    }


def _offer(  # noqa: PLR0917 - the features of an offer, in their order
    price: float, years: float, local: float, known: float, by_hour: float, seasonal: float
) -> str:
    """Say what is offered, such as 7ct-5y-local."""
    rates = "hourly" if by_hour else "seasonal" if seasonal else f"{price:g}ct"
    company = "-local" if local else "-known" if known else ""
    return f"{rates}-{years:g}y{company}"


def _describe(said: Annotations, file: str) -> Written:
    people = counted(said.n_users, "person", "people")
    about = f", {counted(said.n_attributes, 'attribute')}" if said.n_attributes > 1 else ""
    return {file: f"{said.statements()} by {people}{about}"}


def _columns(names: Iterable[str], features: NDArray[Any]) -> dict[str, NDArray[Any]]:
    # Seven digits are more than a picture or a person tells.
    return {name: np.round(column, 7) for name, column in zip(names, features.T, strict=True)}


def _write(path: Path, columns: dict[str, Any]) -> None:
    write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
