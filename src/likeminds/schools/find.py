"""Find the schools of thought in a ranker's group level."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Float, Index
from likeminds._util.result_tables import Frames
from likeminds.data.annotations import Annotations
from likeminds.metrics.severity import severity_of
from likeminds.rankers.capabilities import Capability, within_reach
from likeminds.schools.descriptions import ITEMS_SHOWN, SchoolCrowd, soft_labels_of
from likeminds.schools.items import Items, JudgedItem
from likeminds.schools.mixture import MixturePartition, divide
from likeminds.schools.result import LEVELS, Schools
from likeminds.schools.school_names import leading
from likeminds.schools.school_soft_labels import SoftLabels
from likeminds.schools.schools_cache import keep, kept, mark_of
from likeminds.schools.variance_shares import loners, shares
from likeminds.schools.weight_levels import WeightLevels, as_ranker

# What makes the result reproducible, unless somebody asks for another one.
_USUAL = 0
# The least share of what moves the scores of somebody who sees it their own way where all agree.
_OF_THEIR_OWN = 0.05
# Items whose places differ less between people divide nobody.
_DIVIDED = 0.05


def find_schools(
    ranker: Any,
    annotations: Annotations | Items | None = None,
    n_schools: int | str = "auto",
    random_state: int | Generator | None = _USUAL,
    *,
    texts: Mapping[Hashable, str] | None = None,
    said: Annotations | None = None,
) -> Schools:
    """Say who thinks alike, on which features, and who stands alone.

    People are divided by where they stand in the strong directions of the ranker's group level,
    in the metric of the scores: near are those whose scores of the items deviate alike from the
    consensus, once everybody is made equally decided. Nothing is fitted again.

    Parameters
    ----------
    ranker : ranker
        A fitted `ThreeLevelRanker` (or its tuned version), `HierarchicalRanker`, or
        `DecomposedRanker` with a group-like component.
    annotations : Annotations or Items, optional
        Its items say how features vary and go together, and are shown as examples. By default
        those the ranker was fitted to, where it still has them; else features are taken as
        independent, with the spread the ranker measured, and no items are shown.
    n_schools : int or "auto", default="auto"
        How many schools; "auto" lets the data say (see `likeminds.schools.mixture`), which may
        find none: people who differ gradually, or not at all.
    random_state : int or Generator, default=0
        Makes the result reproducible.
    texts : mapping from item id to str, optional
        What the items say, or are called; by default the names that the ranker keeps
        (`name_items`). Schools are named after the items that set them apart
        where features have no names that mean anything (x0, component_3), or there are none.
    said : Annotations, optional
        What people said about the items, for soft labels: by default ``annotations``, or what the
        ranker has kept.

    Returns
    -------
    Schools

    Notes
    -----
    People with few labels stand near the middle because little is known about them. Of a model
    whose people are in files, 20,000 of them are divided, drawn as if by chance by their ids.
    More than 5,000 people are divided by a mixture fitted to a sample of so many; 100,000 people
    with 64 features take seconds.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, find_schools, make_schools
    >>> crowd = make_schools(60, 40, 200, 12, n_schools=3, contested=0.5, random_state=0)
    >>> ranker = ThreeLevelRanker().fit(crowd.annotations)
    >>> schools = find_schools(ranker, crowd.annotations)
    >>> len(schools), [school.size for school in schools]
    (3, [20, 20, 20])
    >>> schools[1].divisive[0]._fields
    ('item', 'row', 'value', 'text')
    """
    rng = np.random.default_rng(random_state)
    ranker = within_reach(as_ranker(ranker))
    place = _UserPlaces.of_ranker(ranker, annotations, rng, texts=texts, said=said)
    levels, items, spread, alike = place.levels, place.items, place.spread, place.alike
    asked = _asked(n_schools, len(levels.users))
    found = None
    if asked is None and random_state == _USUAL and items is not None:
        found = kept(as_ranker(ranker), place.mark, items)
    division, soft, apart = place.divided(ranker, asked, rng) if found is None else found
    coordinates, directions = place.coordinates
    crowd = SchoolCrowd(alike, items, spread, division, soft, as_ranker(ranker).verb)
    frames: Frames = "pyarrow" if place.said is None else place.said.frames
    soft = None if soft is None else soft.of_schools(len(crowd.added), frames)
    standing, loner = shares(levels, spread), loners(levels, spread)
    if not directions.size:
        # Of people who all agree, some are a little further from the others than chance lets them.
        loner = loner & (standing[:, LEVELS.index("personal")] >= _OF_THEIR_OWN)
    return Schools(
        user_ids=levels.users,
        labels=division.labels if len(crowd.added) else division.labels - 1,
        membership=division.membership[:, : len(crowd.added)],
        schools=crowd.schools(),
        feature_names=levels.feature_names,
        feature_words=levels.words_over(items),
        strength=crowd.strength,
        feature_school=_feature_school(crowd.strength),
        coordinates=coordinates,
        axes=crowd.axes(coordinates, directions),
        standing=standing,
        loner=loner,
        # Where no direction is more than chance, nothing divides people that labels can show.
        divisive=() if items is None or not directions.size else _most_divisive(items, apart),
        agreed=() if items is None or soft is None else items.judged(soft.at_least, ITEMS_SHOWN),
        soft_labels=soft,
        spread=spread,
        criterion=division.criterion,
        agreement=division.agreement,
        suggested=asked is None,
        verb=as_ranker(ranker).verb,
        severity=severity_of(place.said),
        frames=frames,
    )


def keep_schools(ranker: Any) -> None:
    """Keep with a ranker what takes long to find out about the crowd it was fitted to.

    `find_schools` with the items and labels of the ranker, and all that is told from it, then
    take a fraction of the time, also when the ranker was saved with its data and read again. What
    was kept for other weights or labels is not used; a ranker without items keeps nothing.
    """
    chosen = as_ranker(ranker)
    if not Capability.LEVELS.of(chosen) or chosen.kept_ is None:
        return
    rng = np.random.default_rng(_USUAL)
    place = _UserPlaces.of_ranker(ranker, None, rng)
    keep(chosen, place.mark, *place.divided(ranker, None, rng))


@dataclass(frozen=True, eq=False)
class _UserPlaces:
    """Where people stand, with the items and labels that say so."""

    levels: WeightLevels
    items: Items | None
    said: Annotations | None

    @classmethod
    def of_ranker(
        cls,
        ranker: Any,
        annotations: Annotations | Items | None,
        rng: Generator,
        *,
        texts: Mapping[Hashable, str] | None = None,
        said: Annotations | None = None,
    ) -> "_UserPlaces":
        levels = WeightLevels.of_ranker(ranker)
        items = items_of(ranker, annotations, rng, texts)
        if items is not None:
            _refuse_other_features(levels, items)
        return cls(levels, items, labels_of(ranker, annotations) if said is None else said)

    @cached_property
    def spread(self) -> Float:
        return self.levels.spread_over(self.items)

    @cached_property
    def alike(self) -> WeightLevels:
        return self.levels.alike(self.spread)

    @cached_property
    def coordinates(self) -> tuple[Float, Float]:
        return self.alike.coordinates(self.spread)

    @property
    def mark(self) -> str:
        assert self.items is not None
        return mark_of(self.levels, self.items, self.said)

    def divided(
        self, ranker: Any, asked: int | None, rng: Generator
    ) -> tuple[MixturePartition, SoftLabels | None, Float]:
        coordinates = self.coordinates[0]
        division = divide(coordinates, asked, rng)
        if self.items is None:
            return division, None, np.zeros(0)
        soft = soft_labels_of(
            ranker, self.items, self.said, division=division, coordinates=coordinates, rng=rng
        )
        return division, soft, self.items.disagreement(self.levels.coef, rng)


def items_of(
    ranker: Any,
    annotations: Annotations | Items | None,
    rng: int | Generator = 0,
    texts: Mapping[Hashable, str] | None = None,
) -> Items | None:
    """Return the items of some annotations, by default of those the ranker has kept.

    Without ``texts``, items have the names that the ranker keeps.
    """
    known = as_ranker(ranker)
    if isinstance(annotations, Items):
        items = annotations
        known.learned_about(items.ids)
    else:
        said = labels_of(ranker, annotations)
        if said is None:
            return None
        items = Items.of_annotations(said, np.random.default_rng(rng)).among(known.scorable_ids())
    texts = texts or items.texts or ranker.item_names or None
    return replace(items, texts=texts, verb=known.verb).with_learned(known)


def labels_of(ranker: Any, annotations: Annotations | Items | None) -> Annotations | None:
    """Return the labels that were given, or else those that the ranker has kept."""
    return annotations if isinstance(annotations, Annotations) else as_ranker(ranker).kept_


def _most_divisive(items: Items, apart: Float) -> tuple[JudgedItem, ...]:
    found = items.judged(apart, ITEMS_SHOWN)
    return tuple(one for one in found if one.value >= _DIVIDED)


def _feature_school(strength: Float) -> Index:
    """Return the school that each feature sets apart most, -1 for none."""
    found = np.full(strength.shape[1], -1)
    for own in strength:
        named = leading(own)
        found[named] = np.abs(strength[:, named]).argmax(axis=0)
    return found


def _asked(n_schools: int | str, n_users: int) -> int | None:
    if n_schools == "auto":
        return None
    if isinstance(n_schools, str) or not 1 <= n_schools <= n_users:
        raise ValueError(
            f'n_schools must be "auto" or a number from 1 to the number of people, {n_users}, '
            f"but is {n_schools!r}."
        )
    return int(n_schools)


def _refuse_other_features(levels: WeightLevels, items: Items) -> None:
    if len(items.feature_names) != len(levels.feature_names):
        raise ValueError(
            f"The items have {len(items.feature_names)} features, but the ranker was fitted "
            f"to {len(levels.feature_names)}."
        )
