"""Crowds who judge the same items, read from ``NAME.npz`` or simulated."""

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.accuracy import reduced
from likeminds import Annotations, load_electricity, split_within_users
from likeminds._util.array_types import Bool, Float, Index
from likeminds.features import TextFeatures
from likeminds.paper.experiments.data_sets import fewer_users

# In the order in which they are measured: the quick ones first.
NAMES = (
    "verbagg",
    "trolley",
    "polis_brexit",
    "polis_taxes",
    "offensive",
    "polis_football",
    "polis_uber",
    "faces_3dsk",
    "london_faces",
    "jokes",
    "movies",
    "electricity",
    "landmine",
)
# Items do not repeat: there is nothing to learn about them but their features.
ALONE = ("electricity", "landmine")
# Of these, so many people take part, drawn at random: the others would take hours.
MOST_PEOPLE = {"london_faces": 300}
# People with fewer labels of either kind are left out of the scores.
_FEWEST = 3
_TEST = 0.3
# What a data set is called whose items are described by their texts, too.
_TEXTS = ", with texts"


@dataclass(frozen=True, eq=False)
class SharedCrowd:
    """People and what they said about items.

    Attributes
    ----------
    name : str
        What it is called in the tables.
    said : Annotations
        Who said what.
    texts : array of shape (n_items,), optional
        What items say, in the order of the items' ids 0, 1, ...
    polis_group : array of shape (n_users,), optional
        Polis's own group of each person, in the order of the ids; NaN for none.
    passes : array of shape (n_passes, 2), optional
        People and items where they would not say.
    family : str
        The data set it is a part of.
    words_only : bool
        Whether features are those of texts alone, which are taken as they are, as by ``--texts``.
    """

    name: str
    said: Annotations
    texts: np.ndarray | None = None
    polis_group: Float | None = None
    passes: Index | None = None
    family: str = ""
    words_only: bool = False

    @property
    def counted(self) -> Bool:
        """Whose AUC counts: people with enough labels of both kinds."""
        positive = np.bincount(self.said.user_codes, self.said.labels, self.said.n_users)
        number = np.bincount(self.said.user_codes, minlength=self.said.n_users)
        return np.minimum(positive, number - positive) >= _FEWEST

    def within(self, seed: int) -> tuple[Annotations, Annotations]:
        """Hold out a part of everybody's labels."""
        return split_within_users(self.said, _TEST, random_state=seed)

    def whole_items(self, seed: int) -> tuple[Annotations, Annotations]:
        """Hold out whole items; all are described by their texts, learnt from the others'."""
        n_items = len(self.texts)
        drawn = np.random.default_rng(seed).permutation(n_items)
        new = np.zeros(n_items, dtype=np.bool_)
        new[drawn[: round(_TEST * n_items)]] = True
        described = with_texts(self, ~new).said
        held_out = new[described.items.astype(np.intp)]
        return described[~held_out], described[held_out]


def with_texts(crowd: SharedCrowd, known: Bool | None = None) -> SharedCrowd:
    """Describe items by their texts; the vocabulary is that of the known ones, by default all."""
    known = np.ones(len(crowd.texts), dtype=np.bool_) if known is None else known
    words = TextFeatures(random_state=0).fit(crowd.texts[known].tolist())
    said = Annotations(
        crowd.said.users,
        crowd.said.items,
        crowd.said.labels,
        features=words.transform(crowd.texts.tolist()).astype(np.float64),
        item_ids=np.arange(len(crowd.texts)),
        feature_names=words.get_feature_names_out().tolist(),
    )
    return replace(crowd, said=said, words_only=True)


def read_crowds(folder: Path | None, only: Collection[str] | None = None) -> Iterator[SharedCrowd]:
    """Yield the crowds of a folder, all or ``only`` some families; say which are absent."""
    for name in NAMES:
        path = None if folder is None else folder / f"{name}.npz"
        if only is not None and not {name, f"{name}{_TEXTS}"} & set(only):
            continue
        if path is not None and path.is_file():
            yield from read_crowds_of(path)
        elif name == "electricity":
            yield SharedCrowd(name, load_electricity(), family=name)
        else:
            print(f"{name} is left out: there is no {name}.npz in the folder of data.")


def read_crowds_of(path: Path) -> Iterator[SharedCrowd]:
    """Yield the crowd of a file, or several of them: one for each attribute."""
    with np.load(path, allow_pickle=False) as archive:
        columns = {name: archive[name] for name in archive.files}
    said, asked = _annotations(columns)
    said = fewer_users(said, MOST_PEOPLE.get(path.stem, said.n_users))
    crowd = SharedCrowd(path.stem, said, columns.get("text"), family=path.stem)
    if "vote" in columns:
        passes = np.column_stack([columns["user"], columns["item"]])[~asked]
        group = columns["polis_group"].astype(np.float64)
        crowd = replace(crowd, polis_group=group, passes=passes)
    if said.n_attributes > 1:
        for attribute, part in said.by_attribute().items():
            yield replace(crowd, name=f"{path.stem}, {attribute}", said=part)
        return
    yield crowd
    if path.stem == "offensive":
        again = f"offensive{_TEXTS}"
        yield replace(with_texts(crowd), name=again, family=again)


def _annotations(columns: dict[str, np.ndarray]) -> tuple[Annotations, Bool]:
    """Return the labels, and which rows have one."""
    user, item, group = columns["user"], columns["item"], columns.get("group")
    asked = np.ones(len(user), dtype=np.bool_)
    if "label" in columns:
        label = columns["label"]
    elif "vote" in columns:
        asked = columns["vote"] != 0
        label = columns["vote"] > 0
    else:
        label = above_own_median(user, columns["grade"])
    features = columns.get("X")
    described: dict[str, Any] = {}
    if "rows" in columns:
        rows = columns["rows"][asked].astype(np.float64)
        described = {"features": rows, "features_per": "row"}
    elif features is not None and features.shape[1]:
        described = {
            "features": features.astype(np.float64),
            "item_ids": np.arange(len(features)),
            "feature_names": columns["features"].tolist(),
        }
    said = Annotations(
        users=user[asked],
        items=item[asked],
        labels=label[asked],
        **described,
        choice_sets=None if group is None or len(np.unique(group)) == len(group) else group,
        attributes=columns.get("attribute"),
    )
    return (reduced(said) if said.n_features else said), asked


def above_own_median(user: Index, grade: Float) -> Bool:
    """Say which grades are above the person's own median."""
    _, place = np.unique(user, return_inverse=True)
    order = np.argsort(place, kind="stable")
    ends = np.cumsum(np.bincount(place))
    parts = np.split(grade[order], ends[:-1])
    return np.asarray(grade > np.array([np.median(part) for part in parts])[place])


def simulated(seed: int = 0) -> Iterator[SharedCrowd]:
    """Yield a tiny conversation of two camps, and as tiny a crowd whose items do not repeat."""
    rng = np.random.default_rng(seed)
    n_users, n_items = 40, 30
    camp = np.repeat([-1.0, 1.0], n_users // 2)
    subject = rng.integers(3, size=n_items)
    liked = np.array([1.5, -0.5, 0.0])[subject] + rng.normal(0, 0.5, n_items)
    divides = np.array([0.0, 1.5, -1.5])[subject]
    words = (["clean water", "schools for all"], ["higher taxes"], ["lower wages", "fewer rules"])
    texts = np.array([f"{rng.choice(words[s])} in street {j}" for j, s in enumerate(subject)])
    chance = 1 / (1 + np.exp(-(liked + camp[:, None] * divides)))
    user, item = np.nonzero(rng.random(chance.shape) < 0.7)
    label = rng.random(len(user)) < chance[user, item]
    asked = rng.random(len(user)) < 0.9
    yield SharedCrowd(
        "camps",
        Annotations(user[asked], item[asked], label[asked]),
        texts,
        (camp > 0).astype(np.float64),
        np.column_stack([user, item])[~asked],
        family="camps",
    )
    X = rng.normal(size=(n_users * 12, 3))
    user = np.repeat(np.arange(n_users), 12)
    label = rng.random(len(X)) < 1 / (1 + np.exp(-2 * X[:, 0] - camp[user] * X[:, 1]))
    said = Annotations(user, np.arange(len(X)), label, X, item_ids=np.arange(len(X)))
    yield SharedCrowd("alone", said, family="alone")
