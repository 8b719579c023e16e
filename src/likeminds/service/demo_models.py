"""Models to try the service with: fitted once to bundled data, and cached."""

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

# A changed demo needs another number, so the one of an earlier version is not served.
_VERSION = 4
_SHOES, _PEOPLE, _EACH = 160, 60, 40
_ATTRIBUTES = ("comfortable", "fashionable", "open")


_Fit = Callable[[Path, Callable[[str], None]], AttributeModel | HierarchicalRanker]


class Demo(NamedTuple):
    """What is served: the model, the folder of its state, its pictures, and its name."""

    model: Path
    state: Path
    pictures: Path | None
    title: str


def make_demo(which: str, folder: Path | None, tell: Callable[[str], None]) -> Demo:
    """Make a demo, or find the one that was made before.

    Parameters
    ----------
    which : {"shoes", "electricity", "statements"}
        Bundled pictures of drawn shoes, with simulated labels; the bundled choices
        of electricity contracts; or simulated votes on what a town should do, without features.
    folder : Path, optional
        Where it goes; by default into the user's cache.
    tell : callable
        Told what takes a while.
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


# Each statement, how much all like it, and how much two questions divide people about it: cars or
# not, and whether the town should do more or spend less.
_STATEMENTS: tuple[tuple[str, float, float, float], ...] = (
    ("Plant a tree for every one that is felled.", 1.4, -0.4, 0.0),
    ("Close the market square to cars on Saturdays.", 0.2, -1.6, 0.0),
    ("Build a car park behind the station.", 0.0, 1.5, -0.3),
    ("Turn one lane of the ring road into a cycle path.", -0.1, -1.8, -0.4),
    ("Make parking free for residents.", 0.5, 1.3, 0.0),
    ("Lower the speed limit to 30 in all side streets.", 0.3, -1.3, 0.0),
    ("Widen the bridge to four lanes.", -0.6, 1.7, -0.8),
    ("Let buses run until midnight.", 1.0, -0.3, -0.9),
    ("Charge lorries for crossing the centre.", 0.3, -1.0, 0.3),
    ("Put chargers for electric cars in every quarter.", 0.3, 0.4, -1.1),
    ("Mend the pavements before anything else.", 1.3, 0.0, 0.3),
    ("Keep the open-air pool, whatever it costs.", 0.7, 0.0, -1.4),
    ("Cut the property tax, even if the library opens less.", -0.7, 0.3, 1.8),
    ("Borrow for a new school now.", 0.3, 0.0, -1.7),
    ("Sell the old barracks to the highest bidder.", -0.5, 0.4, 1.5),
    ("Publish every invoice above 1,000.", 1.1, 0.0, 0.7),
    ("Pay for the street festival from the town's money.", 0.1, 0.0, -1.3),
    ("Leave posts unfilled when clerks retire.", -0.4, 0.2, 1.6),
    ("Give every child a free place in a sports club.", 0.8, 0.0, -1.2),
    ("Build no new house outside the ring road.", -0.1, -1.1, 0.4),
    ("Let the theatre live from its tickets alone.", -0.3, 0.2, 1.5),
    ("Open the town hall on one evening a week.", 1.2, 0.0, -0.1),
    ("Rent bicycles at every bus stop.", 0.2, -1.2, -0.6),
    ("Switch half of the street lights off after midnight.", -0.2, -0.5, 0.9),
    ("More benches in the shade.", 1.4, -0.2, -0.2),
    ("Fine people who leave litter in the park.", 0.9, 0.0, 0.3),
    ("A petrol station has no place near a school.", 0.2, -1.0, 0.0),
    ("Bring the tram back.", 0.0, -1.1, -1.4),
    ("Ask residents before any project above a million.", 0.9, 0.0, 1.0),
    ("Let shops open on Sundays.", 0.0, 0.7, 0.4),
    ("Clean the river's banks together once a year.", 1.3, -0.3, 0.0),
    ("Mow the verges less often, for the bees.", 0.3, -0.8, 0.4),
)
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
    _, liked, *axes = (np.array(column) for column in zip(*_STATEMENTS, strict=True))
    # Three camps: for cars and against spending, against cars and for spending, the others.
    camps = np.array([[1.0, 1.0], [-1.0, -1.0], [-1.0, 1.0]])
    stands = camps[rng.integers(0, len(camps), _RESIDENTS)]
    stands = stands + _SPREAD * rng.standard_normal(stands.shape)
    chance = 1.0 / (1.0 + np.exp(-(liked + stands @ np.array(axes))))
    people, shown = np.nonzero(rng.random(chance.shape) < _SHOWN)
    names = [f"statement-{number:02d}" for number in range(1, len(_STATEMENTS) + 1)]
    votes = Annotations(
        users=[f"resident-{one:03d}" for one in people],
        items=[names[one] for one in shown],
        labels=rng.random(len(people)) < chance[people, shown],
        verb="agree with",
    )
    texts = {name: text for name, (text, *_) in zip(names, _STATEMENTS, strict=True)}
    return votes, texts
