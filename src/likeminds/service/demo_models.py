"""Demo models of the service: fitted once to bundled data, and cached."""

import csv
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np

from likeminds._util.atomic_files import write_whole
from likeminds.data.annotations import Annotations
from likeminds.datasets import make_sketch_shoes
from likeminds.datasets.exports import write_electricity
from likeminds.features.images import png_bytes
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.multi_attribute import AttributeModel
from likeminds.storage.models import save

# Increase this with every change of a demo, so a cached one of an earlier version is not served.
_VERSION = 5
_SHOES, _PEOPLE, _EACH = 160, 60, 40
_ATTRIBUTES = ("comfortable", "fashionable", "open")


_Fit = Callable[[Path, Callable[[str], None]], AttributeModel | HierarchicalRanker]


class Demo(NamedTuple):
    """A demo: the model's file, the folder of the service's state, pictures, and a title."""

    model: Path
    state: Path
    pictures: Path | None
    title: str


def make_demo(which: str, folder: Path | None, tell: Callable[[str], None]) -> Demo:
    """Make a demo, or return the cached one.

    Parameters
    ----------
    which : {"shoes", "electricity", "statements"}
        Bundled pictures of drawn shoes, with simulated labels; the bundled choices
        of electricity contracts; or simulated votes on what a town should do, without features.
    folder : Path, optional
        The folder to write to; by default the user's cache.
    tell : callable
        Called with a sentence about each longer step.
    """
    makers: dict[str, tuple[str, _Fit]] = {
        "shoes": ("Sketch shoes", _fit_shoes),
        "electricity": ("Electricity contracts", _fit_electricity),
        "statements": ("What should the town do?", _fit_statements),
    }
    if which not in makers:
        raise ValueError(f"There is no demo {which!r}; there are {', '.join(makers)}.")
    title, fit = makers[which]
    place = (_cache() if folder is None else folder) / f"{which}-{_VERSION}"
    (place / "state").mkdir(parents=True, exist_ok=True)
    model = place / f"{which}.likeminds"
    if not model.exists():
        save(fit(place, tell), model, with_data=True)
    pictures = place / "pictures"
    return Demo(model, place / "state", pictures if pictures.exists() else None, title)


def _fit_shoes(place: Path, tell: Callable[[str], None]) -> AttributeModel:
    tell(f"Fitting the labels of {_PEOPLE} simulated people on {_SHOES} shoes.")
    drawn = make_sketch_shoes(_SHOES, _PEOPLE, _EACH, attributes=_ATTRIBUTES, n_components=16)
    (place / "pictures").mkdir(exist_ok=True)
    ids = drawn.annotations.item_ids.tolist()
    for name, picture in zip(ids, drawn.pictures, strict=True):
        write_whole(place / "pictures" / f"{name}.png", png_bytes(picture))
    model = AttributeModel(HierarchicalRanker()).fit(drawn.annotations)
    kinds = zip(ids, drawn.kinds, strict=True)
    model.name_items({id_: f"{kind.capitalize()}, no. {int(id_[-5:])}" for id_, kind in kinds})
    return model


def _fit_electricity(place: Path, tell: Callable[[str], None]) -> HierarchicalRanker:
    tell("Fitting the choices of 361 households.")
    write_electricity(place)
    choices = Annotations.from_csv(place / "annotations.csv", features=place / "features.csv")
    return HierarchicalRanker().fit(choices)


def _fit_statements(place: Path, tell: Callable[[str], None]) -> HierarchicalRanker:
    del place
    votes, texts = statements()
    tell(f"Fitting the votes of {votes.n_users} simulated residents on {len(texts)} statements.")
    model = HierarchicalRanker(n_item_factors=2).fit(votes)
    model.name_items(texts)
    return model


def _cache() -> Path:
    there = os.environ.get("XDG_CACHE_HOME")
    return (Path(there) if there else Path.home() / ".cache") / "likeminds" / "demo"


_RESIDENTS, _SHOWN, _SPREAD = 120, 0.6, 0.5


def statements() -> tuple[Annotations, Mapping[str, str]]:
    """Return simulated votes, and the texts of the statements.

    Examples
    --------
    >>> votes, texts = statements()
    >>> votes.n_users, votes.n_features, len(texts)
    (120, 0, 32)
    """
    rng = np.random.default_rng(0)
    # Each statement has three weights: the consensus, and two questions that divide users (cars or
    # not, and whether the town should do more or spend less).
    with (Path(__file__).parent / "statements.csv").open(newline="") as file:
        texts, *columns = zip(*list(csv.reader(file))[1:], strict=True)
    liked, *axes = np.array(columns, dtype=np.float64)
    # Three camps: for cars and against spending, against cars and for spending, the others.
    camps = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]])
    stands = camps[rng.integers(0, len(camps), _RESIDENTS)]
    stands = stands + _SPREAD * rng.standard_normal(stands.shape)
    chance = 1.0 / (1.0 + np.exp(-(liked + stands @ np.array(axes))))
    users, shown = np.nonzero(rng.random(chance.shape) < _SHOWN)
    names = [f"statement-{number:02d}" for number in range(1, len(texts) + 1)]
    votes = Annotations(
        users=[f"resident-{one:03d}" for one in users],
        items=[names[one] for one in shown],
        labels=rng.random(len(users)) < chance[users, shown],
        verb="agree with",
    )
    return votes, dict(zip(names, texts, strict=True))
