"""What Table 3 is about: Shoes or what stands in for it, SUN, and what a user points to."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from likeminds.data.annotations import Annotations
from likeminds.datasets import ImageCrowd, load_shoes, load_sun, make_sketch_shoes
from likeminds.paper.experiments.published import SHOES, SUN, TABLE_3_SHOES, TABLE_3_SUN
from likeminds.paper.experiments.real_data import read_data
from likeminds.paper.experiments.setting import ExperimentSetting

# Where a data set has more features than items, components keep this share of the variance.
_VARIANCE = 0.99
# Of larger crowds that a user points to, this many people take part.
_MOST_PEOPLE = 300


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set of one or several attributes.

    Attributes
    ----------
    name : str
        What it is called.
    attributes : mapping from name to Annotations
        The labels of each.
    share : float or None
        The share of the variance that components of training items keep.
    paper : mapping from algorithm to figures by attribute
        The paper's, where the data is the paper's or stands in for it.
    stands_in : bool
        Whether it stands in for the paper's data.
    """

    name: str
    attributes: Mapping[str, Annotations]
    share: float | None
    paper: Mapping[str, Mapping[str, float]]
    stands_in: bool = False


def crowds(setting: ExperimentSetting) -> list[DataSet]:
    """Return all data sets of a run; what is missing or wrong is said before anything is fitted."""
    found = [_shoes(setting)]
    if setting.sun is not None:
        crowd = load_sun(setting.sun)
        found.append(_of_images("SUN", crowd, _by_attribute(TABLE_3_SUN, SUN)))
    for path in setting.data:
        parts = list(read_data(path, _MOST_PEOPLE))
        wide = any(part.annotations.n_features > part.annotations.n_items for part in parts)
        attributes = {part.attribute or part.name: part.annotations for part in parts}
        found.append(DataSet(path.stem, attributes, _VARIANCE if wide else None, {}))
    return found


def _shoes(setting: ExperimentSetting) -> DataSet:
    paper = _by_attribute(TABLE_3_SHOES, SHOES)
    if setting.shoes is not None:
        crowd = load_shoes(setting.shoes)
        return _of_images("Shoes", crowd, paper)
    size = setting.scale.shoes
    drawn = make_sketch_shoes(
        size.n_pictures,
        size.n_users,
        size.pictures_each,
        attributes=size.attributes,
        n_components=None,
        random_state=setting.seed,
    )
    return _of_images("Sketch shoes", drawn.as_crowd(), paper, stands_in=True)


def _of_images(
    name: str,
    crowd: ImageCrowd,
    paper: Mapping[str, Mapping[str, float]],
    stands_in: bool = False,
) -> DataSet:
    attributes = {
        attribute: _labelled_items(crowd.of_attribute(attribute)) for attribute in crowd.attributes
    }
    return DataSet(name, attributes, crowd.reduce, paper, stands_in)


def _labelled_items(annotations: Annotations) -> Annotations:
    """Leave out features of items without labels: they would be sent to every worker process."""
    used, place = np.unique(annotations.item_codes, return_inverse=True)
    items = annotations.item_ids[used]
    return Annotations(
        users=annotations.users,
        items=items[place],
        labels=annotations.labels,
        features=annotations.features[used],
        item_ids=items,
        feature_names=annotations.feature_names,
        features_per="item",
    )


def _by_attribute(
    table: Mapping[str, tuple[float, ...]], attributes: tuple[str, ...]
) -> dict[str, dict[str, float]]:
    return {name: dict(zip(attributes, row, strict=True)) for name, row in table.items()}
