"""Sketch shoes: bundled pictures of drawn shoes, and labels of simulated users who disagree."""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from importlib.resources import files
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from likeminds._util.array_types import Bool, Float
from likeminds._util.checks import refuse_outside_unit
from likeminds.data.annotations import Annotations
from likeminds.datasets.paper_images import ENOUGH_LABELS, SHOES_VARIANCE, ImageCrowd
from likeminds.datasets.simulation import refuse_below
from likeminds.features.reduction import Reduce, component_names

Int = NDArray[np.intp]
Pictures = NDArray[np.uint8]
Opinion = dict[str, float]
# Weights of traits: the consensus, and what each school adds.
AttributeOpinions = tuple[Opinion, dict[str, Opinion]]

_DATA = files("likeminds.datasets") / "data"
_STORED = json.loads(_DATA.joinpath("sketch_shoes.json").read_text())
TRAITS = tuple(_STORED["traits"])
OPINIONS: dict[str, AttributeOpinions] = {
    name: (shared, schools) for name, (shared, schools) in _STORED["opinions"].items()
}
ATTRIBUTES = tuple(OPINIONS)


@dataclass(frozen=True, eq=False, repr=False)
class SketchShoes:
    """Drawn shoes, simulated labels, and the true weights.

    Attributes
    ----------
    annotations : Annotations
        Labels of each attribute, with features computed from the pixels. Items are
        "shoe-00000", ...; users are "person-000", ...
    pictures : array of shape (n_pictures, 96, 96, 3)
        The pictures.
    kinds : tuple of str
        The kind of each shoe, such as "oxford".
    attributes, trait_names : tuple of str
        The names of the attributes, and of the columns of ``traits``.
    traits : array of shape (n_pictures, n_traits)
        Standardised visible traits, which are not features: use them to check a fitted model.
    schools : array of shape (n_users, n_attributes)
        The school of each user on each attribute, -1 for users without one.
    weights : array of shape (n_users, n_attributes, n_traits)
        Each user's weights of the traits: consensus + school + personal.
    consensus : array of shape (n_attributes, n_traits)
        The weights that all users share.
    """

    annotations: Annotations
    pictures: Pictures
    kinds: tuple[str, ...]
    attributes: tuple[str, ...]
    trait_names: tuple[str, ...]
    traits: Float
    schools: Int
    weights: Float
    consensus: Float

    def as_crowd(
        self, reduce: float | None = SHOES_VARIANCE, min_labels: int = ENOUGH_LABELS
    ) -> ImageCrowd:
        """Return the labels as `load_shoes` does, without users with few labels.

        Parameters
        ----------
        reduce : float or None
            The share of the variance that `ImageCrowd.split` keeps
            (``n_components=None`` gives the features of Shoes).
        min_labels : int
            The least number of labels of each kind per user and attribute.
        """
        return ImageCrowd(self.annotations.with_enough_labels(min_labels), reduce)

    def __repr__(self) -> str:
        kinds = len(set(self.kinds))
        return f"SketchShoes: {len(self.kinds):,} pictures of {kinds} kinds; {self.annotations!r}"


def make_sketch_shoes(
    n_pictures: int = 500,
    users_per_attribute: int = 200,
    pictures_each: int = 50,
    *,
    attributes: Iterable[str] | Mapping[str, AttributeOpinions] | None = None,
    loners: float = 0.05,
    label_noise: float = 0.05,
    n_components: int | None = 60,
    random_state: int | Generator | None = 0,
) -> SketchShoes:
    """Simulate users in schools who label the bundled pictures of 500 drawn shoes.

    The data replace the Shoes data of the paper, which cannot be bundled: seven attributes, 200
    users for each, 50 pictures per user. For every attribute, three schools weigh different traits:
    "open" means open at the toe, or backless, or cut low. Features are computed from the pixels.

    Parameters
    ----------
    n_pictures : int
        The number of shoes, at most 500.
    users_per_attribute, pictures_each : int
        The number of users, who label all attributes, and of the pictures that a user labels,
        which are drawn anew for each attribute.
    attributes : iterable of str, or mapping, optional
        Some of "brown", "comfortable", "fashionable", "formal", "open", "ornate", "pointy"; by
        default, all. Or a mapping from names of new attributes to pairs: the weights of traits that
        all users share, and a mapping from schools to the weights that they add.
    loners : float
        The share of users without a school, for each attribute.
    label_noise : float
        The probability that a label is flipped.
    n_components : int, optional
        The number of principal components of the features. None keeps the 542 features that
        `load_shoes` computes: GIST and a colour histogram.
    random_state : int or Generator, optional
        Makes the labels reproducible.

    Returns
    -------
    SketchShoes

    Examples
    --------
    >>> shoes = make_sketch_shoes(30, users_per_attribute=4, pictures_each=20,
    ...                           attributes=["open", "pointy"], n_components=12)
    >>> shoes.annotations
    Annotations: 160 labels (49% positive) by 4 people on 30 items, 12 features, 2 attributes
    >>> shoes.pictures[0].shape
    (96, 96, 3)
    >>> shoes.kinds[:3]
    ('sneaker', 'loafer', 'wedge sandal')
    """
    chosen = _chosen(attributes)
    names = tuple(chosen)
    refuse_outside_unit(loners=loners, label_noise=label_noise)
    rng = np.random.default_rng(random_state)
    stored = _bundle()
    refuse_below(
        1,
        users_per_attribute=users_per_attribute,
        n_components=1 if n_components is None else n_components,
    )
    refuse_below(2, pictures_each=pictures_each)
    refuse_below(pictures_each, n_pictures=n_pictures)
    if n_pictures > len(stored["kinds"]):
        raise ValueError(f"n_pictures must be at most {len(stored['kinds'])}, but is {n_pictures}.")
    traits = stored["traits"][:n_pictures].astype(np.float64)
    spread = traits.std(axis=0)
    traits = (traits - traits.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    features = stored["features"][:n_pictures].astype(np.float64)
    if n_components is not None:
        features = Reduce(1.0).fit(features).transform(features)[:, :n_components]
    n_loners = round(loners * users_per_attribute)
    opinions = [draw_opinions(rng, of, users_per_attribute, n_loners) for of in chosen.values()]
    schools, consensus, _, _ = zip(*opinions, strict=True)
    weights = [shared + group + personal for _, shared, group, personal in opinions]
    judged = [judge(rng, traits, one, pictures_each, label_noise) for one in weights]
    return SketchShoes(
        annotations=_annotations(names, judged, features, reduced=n_components is not None),
        pictures=stored["pictures"][:n_pictures],
        kinds=tuple(stored["kinds"][:n_pictures].tolist()),
        attributes=names,
        trait_names=TRAITS,
        traits=traits,
        schools=np.stack(schools, axis=1),
        weights=np.stack(weights, axis=1),
        consensus=np.stack(consensus),
    )


def _bundle() -> dict[str, NDArray[Any]]:
    """Return the bundled pictures with their kinds, traits and features."""
    from PIL import Image  # noqa: PLC0415 - keeps the import light

    with (
        _DATA.joinpath("sketch_shoes.npz").open("rb") as file,
        np.load(file, allow_pickle=False) as archive,
    ):
        stored = {name: archive[name] for name in archive.files}
    with _DATA.joinpath("sketch_shoes.webp").open("rb") as file, Image.open(file) as image:
        sheet = np.asarray(image.convert("RGB"))
    size, columns, n = int(stored["size"]), int(stored["columns"]), len(stored["kinds"])
    rows = sheet.reshape(-1, size, columns, size, 3).swapaxes(1, 2)
    return stored | {"pictures": rows.reshape(-1, size, size, 3)[:n]}


def _annotations(
    names: tuple[str, ...], judged: list[tuple[Int, Bool]], table: Float, *, reduced: bool
) -> Annotations:
    """Return all labels, ordered by attribute, user and picture."""
    shown = np.stack([pictures for pictures, _ in judged])
    n_attributes, n_users, each = shown.shape
    users = np.array([f"person-{number:03d}" for number in range(n_users)], dtype=object)
    items = np.array([f"shoe-{number:05d}" for number in range(len(table))], dtype=object)
    return Annotations(
        users=np.tile(np.repeat(users, each), n_attributes),
        items=items[shown.ravel()],
        labels=np.stack([labels for _, labels in judged]).ravel(),
        features=table,
        attributes=np.repeat(np.array(names, dtype=object), n_users * each),
        item_ids=items,
        feature_names=component_names(table.shape[1]) if reduced else None,
        features_per="item",
    )


def _chosen(
    attributes: Iterable[str] | Mapping[str, AttributeOpinions] | None,
) -> Mapping[str, AttributeOpinions]:
    if attributes is None:
        return OPINIONS
    if isinstance(attributes, Mapping):
        return attributes
    chosen = (attributes,) if isinstance(attributes, str) else tuple(attributes)
    unknown = [name for name in chosen if name not in ATTRIBUTES]
    if unknown or not chosen:
        raise ValueError(
            f"attributes must be some of {', '.join(ATTRIBUTES)}, but are {list(chosen)}."
        )
    return {name: OPINIONS[name] for name in chosen}


# Standard deviation of weights within a school, and the range of users' shares of positives.
_OWN = 0.12
_SHARES = (0.32, 0.58)


def draw_opinions(
    rng: Generator, opinions: AttributeOpinions, n_users: int, n_loners: int
) -> tuple[Int, Float, Float, Float]:
    """Draw the school of each user, and the consensus, school and personal weights."""
    shared, schools = opinions
    centres = np.array([_as_weights(opinion) for opinion in schools.values()])
    consensus = _as_weights(shared) + centres.mean(axis=0)
    centres -= centres.mean(axis=0)
    school = rng.permutation(np.arange(n_users) % len(centres))
    school[n_users - n_loners :] = -1
    group = np.where(school[:, np.newaxis] < 0, 0.0, centres[school])
    typical = np.linalg.norm(centres, axis=1).mean() / np.sqrt(len(TRAITS))
    spread = np.where(school < 0, typical, _OWN)[:, np.newaxis]
    personal = spread * rng.standard_normal((n_users, len(TRAITS)))
    return school, consensus, group, personal


def judge(
    rng: Generator, traits: Float, weights: Float, pictures_each: int, label_noise: float
) -> tuple[Int, Bool]:
    """Return the pictures that each user labels, and the labels: (n_users, pictures_each).

    A label is positive if the score is above the user's own threshold, a quantile of their scores
    of all pictures. Labels are then flipped with the probability ``label_noise``.
    """
    shares = rng.uniform(*_SHARES, len(weights))
    shown = np.empty((len(weights), pictures_each), dtype=np.intp)
    labels = np.empty(shown.shape, dtype=np.bool_)
    for user, own in enumerate(weights):
        scores = traits @ own
        shown[user] = np.sort(rng.choice(len(traits), pictures_each, replace=False))
        labels[user] = scores[shown[user]] > np.quantile(scores, 1 - shares[user])
    flipped = labels ^ (rng.random(labels.shape) < label_noise)
    return shown, flipped


def _as_weights(opinion: Opinion) -> Float:
    return np.array([opinion.get(name, 0.0) for name in TRAITS])
