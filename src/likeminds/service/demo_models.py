"""Models to try the service with: made once, from what is bundled, and kept."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from likeminds._util.atomic_files import write_whole
from likeminds.data.annotations import Annotations
from likeminds.datasets import make_sketch_shoes
from likeminds.datasets.exports import write_electricity
from likeminds.features.png import png_bytes
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.multi_attribute import AttributeModel
from likeminds.service.statements import statements
from likeminds.storage.models import save

# Another number makes another demo: what was made by an earlier version is not taken for it.
_VERSION = 4
_SHOES, _PEOPLE, _EACH = 160, 60, 40
_ATTRIBUTES = ("comfortable", "fashionable", "open")


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
        of electricity contracts; or simulated votes on what a town should do, where the crowd
        alone tells what statements are like.
    folder : Path, optional
        Where it goes; by default into the user's cache.
    tell : callable
        Told what takes a while.
    """
    makers = {
        "shoes": _make_shoes,
        "electricity": _make_electricity,
        "statements": _make_statements,
    }
    if which not in makers:
        raise ValueError(f"There is no demo {which!r}; there are {', '.join(makers)}.")
    place = (_cache() if folder is None else folder) / f"{which}-{_VERSION}"
    (place / "state").mkdir(parents=True, exist_ok=True)
    return makers[which](place, tell)


def _make_shoes(place: Path, tell: Callable[[str], None]) -> Demo:
    demo = Demo(place / "shoes.likeminds", place / "state", place / "pictures", "Sketch shoes")
    if demo.model.exists():
        return demo
    tell(f"Fitting the labels of {_PEOPLE} simulated people on {_SHOES} shoes.")
    drawn = make_sketch_shoes(_SHOES, _PEOPLE, _EACH, attributes=_ATTRIBUTES, n_components=16)
    assert demo.pictures is not None
    demo.pictures.mkdir(exist_ok=True)
    ids = drawn.annotations.item_ids.tolist()
    for name, picture in zip(ids, drawn.pictures, strict=True):
        write_whole(demo.pictures / f"{name}.png", png_bytes(picture))
    model = AttributeModel(HierarchicalRanker()).fit(drawn.annotations)
    model.name_items(
        {
            name: f"{kind.capitalize()}, no. {int(name[-5:])}"
            for name, kind in zip(ids, drawn.kinds, strict=True)
        }
    )
    save(model, demo.model, with_data=True)
    return demo


def _make_electricity(place: Path, tell: Callable[[str], None]) -> Demo:
    demo = Demo(place / "electricity.likeminds", place / "state", None, "Electricity contracts")
    if demo.model.exists():
        return demo
    tell("Fitting the choices of 361 households.")
    write_electricity(place)
    said = Annotations.from_csv(place / "annotations.csv", features=place / "features.csv")
    model = HierarchicalRanker().fit(said)
    save(model, demo.model, with_data=True)
    return demo


def _make_statements(place: Path, tell: Callable[[str], None]) -> Demo:
    demo = Demo(place / "statements.likeminds", place / "state", None, "What should the town do?")
    if demo.model.exists():
        return demo
    votes, texts = statements()
    tell(f"Fitting the votes of {votes.n_people} simulated residents on {len(texts)} statements.")
    model = HierarchicalRanker(n_item_factors=2).fit(votes)
    model.name_items(texts)
    save(model, demo.model, with_data=True)
    return demo


def _cache() -> Path:
    there = os.environ.get("XDG_CACHE_HOME")
    return (Path(there) if there else Path.home() / ".cache") / "likeminds" / "demo"
