"""The data sets of Table 3: Shoes and SUN or their stand-ins, and the user's files."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from likeminds.data.annotations import Annotations
from likeminds.datasets import ImageCrowd, load_shoes, load_sun, make_sketch_shoes
from likeminds.datasets.paper_images import SUN_VARIANCE
from likeminds.datasets.sketch_shoes import TRAITS, AttributeOpinions
from likeminds.paper.experiments.published import SHOES, SUN, TABLE_3_SHOES, TABLE_3_SUN
from likeminds.paper.experiments.setting import ExperimentSetting

# With more features than items, components keep this share of the variance.
_VARIANCE = 0.99
# Larger data sets are sampled to this many users.
_MOST_USERS = 300
# Users agree less on scenes than on shoes: in the paper, all algorithms are worse on SUN.
_SUN_NOISE, _N_SCHOOLS = 0.15, 3
_SUFFIXES = (".csv", ".parquet", ".npz")
_COLUMNS = ("X", "user", "item", "label")


@dataclass(frozen=True, eq=False)
class DataSet:
    """A data set of one or several attributes."""

    name: str
    attributes: Mapping[str, Annotations]
    share: float | None  # of the variance that components of training items keep
    paper: Mapping[str, Mapping[str, float]]  # the paper's figures, by algorithm and attribute
    stands_in_for: str = ""  # a data set of the paper

    @property
    def sizes(self) -> list[str]:
        """The sizes of the attributes in words, each once."""
        each = (
            f"{part.n_users} people, {len(part):,} labels, {part.n_items:,} items"
            for part in self.attributes.values()
        )
        return list(dict.fromkeys(each))

    @property
    def paper_attributes(self) -> list[str]:
        """The attributes that the paper has."""
        return [name for name in self.attributes if name in self.paper.get("Ours", {})]


def data_sets(setting: ExperimentSetting) -> list[DataSet]:
    """Return all data sets of a run; errors in them are raised before anything is fitted."""
    found = [_shoes(setting), _sun(setting)]
    for path in setting.data:
        attributes = read_data(path, _MOST_USERS)
        wide = any(part.n_features > part.n_items for part in attributes.values())
        found.append(DataSet(path.stem, attributes, _VARIANCE if wide else None, {}))
    return found


def _shoes(setting: ExperimentSetting) -> DataSet:
    if setting.shoes is not None:
        return _of_images("Shoes", load_shoes(setting.shoes), TABLE_3_SHOES, SHOES)
    *sizes, attributes = setting.scale.shoes
    drawn = make_sketch_shoes(
        *sizes, attributes=attributes, n_components=None, random_state=setting.seed
    )
    return _of_images("Sketch shoes", drawn.as_crowd(), TABLE_3_SHOES, SHOES, "Shoes")


def _sun(setting: ExperimentSetting) -> DataSet:
    if setting.sun is not None:
        return _of_images("SUN", load_sun(setting.sun), TABLE_3_SUN, SUN)
    *sizes, attributes = setting.scale.sun
    rng = np.random.default_rng(setting.seed)
    drawn = make_sketch_shoes(
        *sizes,
        attributes={name: random_opinions(rng) for name in attributes},
        label_noise=_SUN_NOISE,
        n_components=None,
        random_state=rng,
    )
    crowd = drawn.as_crowd(SUN_VARIANCE)
    return _of_images("Random attributes", crowd, TABLE_3_SUN, SUN, "SUN")


def random_opinions(rng: np.random.Generator) -> AttributeOpinions:
    """Draw weights of the traits for a consensus and three schools, of equal length on average."""

    def draw() -> dict[str, float]:
        return dict(zip(TRAITS, rng.normal(size=len(TRAITS)).tolist(), strict=True))

    return draw(), {str(number): draw() for number in range(_N_SCHOOLS)}


def _of_images(
    name: str,
    pictures: ImageCrowd,
    table: Mapping[str, tuple[float, ...]],
    columns: tuple[str, ...],
    stands_in_for: str = "",
) -> DataSet:
    labels = {each: _labelled_items(pictures.of_attribute(each)) for each in pictures.attributes}
    paper = {algorithm: dict(zip(columns, row, strict=True)) for algorithm, row in table.items()}
    return DataSet(name, labels, pictures.reduce, paper, stands_in_for)


def _labelled_items(annotations: Annotations) -> Annotations:
    """Leave out features of items without labels, to send less to worker processes."""
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


def read_data(path: Path, most_users: int | None = None) -> dict[str, Annotations]:
    """Return the attributes of a file, each with at most so many users, drawn at random.

    The file is a table for `Annotations.from_csv` or `from_parquet`, or an archive ``.npz``. The
    archive has ``X`` (items x features), and per label ``user``, ``item``, ``label`` (0 or 1) and
    optionally ``group`` and ``attribute``. A single attribute has the name of the file.
    """
    if path.suffix not in _SUFFIXES:
        raise ValueError(f"{path}: data sets are files that end in {', '.join(_SUFFIXES)}.")
    readers = {".csv": Annotations.from_csv, ".parquet": Annotations.from_parquet}
    whole = readers.get(path.suffix, _from_archive)(path)
    parts = whole.by_attribute() if whole.n_attributes > 1 else {path.stem: whole}
    most = whole.n_users if most_users is None else most_users
    return {str(name): fewer_users(rows, most) for name, rows in parts.items()}


def fewer_users(annotations: Annotations, most: int) -> Annotations:
    """Return the labels of at most so many users, drawn at random."""
    if annotations.n_users <= most:
        return annotations
    drawn = np.random.default_rng(0).permutation(annotations.user_ids)[:most]
    return annotations.of_users(drawn)


def _from_archive(path: Path) -> Annotations:
    if not path.is_file():
        raise FileNotFoundError(f"There is no file {path}.")
    with np.load(path, allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    missing = [name for name in _COLUMNS if name not in columns]
    if missing:
        raise ValueError(
            f"{path} has no {', '.join(missing)}; it needs {', '.join(_COLUMNS)}, and has "
            f"{', '.join(columns)}."
        )
    group = columns.get("group")
    return Annotations(
        users=columns["user"],
        items=columns["item"],
        labels=columns["label"],
        features=columns["X"].astype(np.float64),
        item_ids=np.arange(len(columns["X"])),
        # If every label is a group of its own, splits balance the labels instead.
        choice_sets=None if group is None or len(np.unique(group)) == len(group) else group,
        attributes=columns.get("attribute"),
    )
