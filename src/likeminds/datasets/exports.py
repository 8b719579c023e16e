"""Write data sets as annotations.csv, features.csv and pictures."""

from collections.abc import Iterable
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np

from likeminds._util.array_types import IdArray
from likeminds._util.atomic_files import folder_for, make_folder
from likeminds._util.lazy_imports import pa
from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.data.sources import write_table
from likeminds.datasets.electricity import load_electricity
from likeminds.datasets.simulation import Simulation

# The content of each file.
Written = dict[str, str]


def write_electricity(folder: str | PathLike[str]) -> Written:
    """Write the choices of `electricity_by_offer`."""
    annotations = electricity_by_offer()
    assert annotations.choice_set_codes is not None
    columns = {
        "user": annotations.users,
        "choice_set": annotations.choice_set_codes + 1,
        "item": annotations.items,
    }
    root = make_folder(folder, "the tables")
    features = f"{annotations.n_items} offers, {counted(annotations.n_features, 'feature')}"
    return _write_both(root, annotations, columns, annotations.item_ids, features)


def electricity_by_offer() -> Annotations:
    """Return the households' choices; equal offers become one item, named after its features."""
    choices = load_electricity()
    offers, codes = np.unique(choices.features, axis=0, return_inverse=True)
    names = np.array([_offer(*offer) for offer in offers], dtype=object)
    return Annotations(
        choices.users,
        names[codes.ravel()],
        choices.labels,
        offers,
        choice_sets=choices.choice_set_codes,
        item_ids=names,
        feature_names=choices.feature_names,
        verb=choices.verb,
    )


def write_simulation(simulation: Simulation, folder: str | PathLike[str]) -> Written:
    """Write simulated labels and features, and the school of each user to truth.csv."""
    annotations = simulation.annotations
    root = make_folder(folder, "the tables")
    users = np.array([f"person-{user:03d}" for user in annotations.user_ids], dtype=object)
    items = np.array(
        [f"item-{item:04d}" for item in range(len(annotations.features))], dtype=object
    )
    columns = {"user": users[annotations.user_codes], "item": items[annotations.feature_rows]}
    features = f"{counted(len(items), 'item')}, {counted(annotations.n_features, 'feature')}"
    written = _write_both(root, annotations, columns, items, features)
    _write(root / "truth.csv", {"user": users, "school": simulation.school + 1})
    return written | {"truth.csv": "the school of each person (0: no school)"}


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
    from likeminds.features.images import write_png  # noqa: PLC0415

    root, each = folder_for(folder, "the tables"), min(50, n_pictures)
    shoes = make_sketch_shoes(
        n_pictures, n_users, each, attributes=attributes, random_state=random_state
    )
    annotations = shoes.annotations
    pictures = make_folder(root / "images", "the pictures")
    for name, picture in zip(annotations.item_ids, shoes.pictures, strict=True):
        write_png(pictures / f"{name}.png", picture)
    columns = {
        "attribute": annotations.attributes,
        "user": annotations.users,
        "item": annotations.items,
    }
    features = f"{counted(annotations.n_features, 'feature')} of the pixels"
    return _write_both(root, annotations, columns, annotations.item_ids, features) | {
        "images/": f"{counted(n_pictures, 'picture')} of {len(shoes.pictures[0])} pixels"
    }


def _offer(  # noqa: PLR0917 - the features of an offer, in their order
    price: float, years: float, local: float, well_known: float, by_hour: float, seasonal: float
) -> str:
    """Return the name of an offer, such as 7ct-5y-local."""
    rates = "hourly" if by_hour else "seasonal" if seasonal else f"{price:g}ct"
    company = "-local" if local else "-known" if well_known else ""
    return f"{rates}-{years:g}y{company}"


def _write_both(
    root: Path, annotations: Annotations, columns: dict[str, Any], items: IdArray, features: str
) -> Written:
    """Write annotations.csv and features.csv; the last column has the items."""
    _write(root / "annotations.csv", columns | {"label": annotations.labels.astype(np.int8)})
    # More digits than these are noise.
    table = dict(zip(annotations.feature_names, np.round(annotations.features, 7).T, strict=True))
    _write(root / "features.csv", {list(columns)[-1]: items} | table)
    users = counted(annotations.n_users, "person", "people")
    n_attributes = annotations.n_attributes
    about = f", {counted(n_attributes, 'attribute')}" if n_attributes > 1 else ""
    return {
        "annotations.csv": f"{annotations.statements()} by {users}{about}",
        "features.csv": features,
    }


def _write(path: Path, columns: dict[str, Any]) -> None:
    write_table(pa.table({name: pa.array(values) for name, values in columns.items()}), path)
