"""Find the schools of thought in a ranker's group level."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator

from likeminds._support.arrays import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.schools.found import Axis, School, Schools
from likeminds.schools.items import Items, Judged
from likeminds.schools.levels import Levels, as_ranker
from likeminds.schools.mixture import Division, divide
from likeminds.schools.naming import leading, name_deviation, strengths
from likeminds.schools.standing import loners, shares

_ITEMS_SHOWN = 8
_AXES_SHOWN = 3
_EVERYBODY = "everybody"


def find_schools(
    ranker: Any,
    annotations: Annotations | Items | None = None,
    n_schools: int | str = "auto",
    random_state: int | Generator | None = 0,
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
        say one: people who differ gradually, or not at all.
    random_state : int or Generator, default=0
        Makes the result reproducible.

    Returns
    -------
    Schools

    Notes
    -----
    People with few labels stand near the middle because little is known about them.
    More than 5,000 people are divided by a mixture fitted to a sample of so many; 100,000 people
    with 64 features take seconds.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, find_schools, make_schools
    >>> crowd = make_schools(60, 40, 200, 12, n_schools=3, contested=0.5, random_state=0)
    >>> ranker = ThreeLevelRanker().fit(crowd.annotations)
    >>> schools = find_schools(ranker, crowd.annotations)
    >>> len(schools), [school.size for school in schools.schools]
    (3, [20, 20, 20])
    >>> schools[1].divisive[0]._fields
    ('item', 'row', 'value')
    """
    rng = np.random.default_rng(random_state)
    levels = Levels.of_ranker(ranker)
    asked = _asked(n_schools, len(levels.users))
    items = items_of(ranker, annotations, rng)
    if items is not None:
        _refuse_other_features(levels, items)
    spread = levels.spread_over(items)
    crowd = _Crowd(levels.alike(spread), items, spread)
    coordinates, directions = crowd.levels.coordinates(spread)
    division = divide(coordinates, asked, rng)
    strength = strengths(crowd.added(division), spread)
    return Schools(
        users=levels.users,
        labels=division.labels,
        membership=division.membership,
        schools=crowd.schools(division, strength),
        feature_names=levels.feature_names,
        strength=strength,
        feature_school=_feature_school(strength),
        coordinates=coordinates,
        axes=crowd.axes(coordinates, directions),
        standing=shares(levels, spread),
        loner=loners(levels, spread),
        divisive=() if items is None else _most_divisive(items, levels, rng),
        spread=spread,
        criterion=division.criterion,
        agreement=division.agreement,
        suggested=asked is None,
    )


def items_of(
    ranker: Any, annotations: Annotations | Items | None, rng: int | Generator = 0
) -> Items | None:
    """Return the items of some annotations, by default of those the ranker has kept."""
    if isinstance(annotations, Items):
        return annotations
    said = as_ranker(ranker).kept_ if annotations is None else annotations
    return None if said is None else Items.of_annotations(said, np.random.default_rng(rng))


@dataclass(frozen=True, eq=False)
class _Crowd:
    """People's levels, all equally decided, and the items they are about."""

    levels: Levels
    items: Items | None
    spread: Float

    def added(self, division: Division) -> Float:
        """Return what each school adds to the consensus, on average over its members."""
        n_schools = division.membership.shape[1]
        added = np.zeros((n_schools, len(self.spread)))
        if n_schools > 1:
            for school in np.unique(division.labels):
                added[school] = self.levels.group[division.labels == school].mean(axis=0)
        return added

    def schools(self, division: Division, strength: Float) -> tuple[School, ...]:
        added = self.added(division)
        sizes = np.bincount(division.labels, minlength=len(added))
        # What everybody outside of a school wants, as their own mean.
        total = sizes @ added
        rest = (total - sizes[:, None] * added) / np.maximum(sizes.sum() - sizes, 1)[:, None]
        return tuple(
            School(
                number=n + 1,
                name=self._named(added[n], strength[n]) or _EVERYBODY,
                size=int(sizes[n]),
                share=float(sizes[n] / sizes.sum()),
                stability=float(division.stability[n]),
                features={
                    self.levels.feature_names[j]: float(strength[n, j])
                    for j in leading(strength[n]).tolist()
                },
                weights=self.levels.consensus + added[n],
                **self._examples(added[n], rest[n]),
            )
            for n in range(len(added))
        )

    def axes(self, coordinates: Float, directions: Float) -> tuple[Axis, ...]:
        """Put the strong directions of the group level into words."""
        squares = (coordinates**2).mean(axis=0)
        steps = (np.sqrt(squares)[:, None] * directions)[:_AXES_SHOWN]
        found = []
        for square, step, strength in zip(
            squares, steps, strengths(steps, self.spread), strict=False
        ):
            low, high = (self._named(sign * step, sign * strength) for sign in (-1.0, 1.0))
            found.append(Axis(float(square / squares.sum()), low, high, strength))
        return tuple(found)

    def _named(self, added: Float, strength: Float) -> str:
        names, consensus = self.levels.feature_names, self.levels.consensus
        no = np.zeros(len(names), dtype=np.bool_)
        binary = no if self.items is None else self.items.binary
        return name_deviation(added, consensus, strength, names, binary)

    def _examples(self, added: Float, rest: Float) -> dict[str, tuple[Judged, ...]]:
        if self.items is None:
            return {"typical": (), "divisive": ()}
        own, others = self.items.places(self.levels.consensus + np.stack([added, rest]))
        apart = own - others
        divisive = self.items.judged(np.abs(apart), _ITEMS_SHOWN, apart) if apart.any() else ()
        return {"typical": self.items.judged(own, _ITEMS_SHOWN), "divisive": divisive}


def _most_divisive(items: Items, levels: Levels, rng: Generator) -> tuple[Judged, ...]:
    return items.judged(items.disagreement(levels.coef, rng), _ITEMS_SHOWN)


def _feature_school(strength: Float) -> Index:
    """Return the school that each feature sets apart most, -1 for none."""
    found = np.full(strength.shape[1], -1)
    for own in strength:
        found[leading(own)] = 0
    apart = found == 0
    found[apart] = np.abs(strength[:, apart]).argmax(axis=0)
    return found


def _asked(n_schools: int | str, n_people: int) -> int | None:
    if n_schools == "auto":
        return None
    if isinstance(n_schools, str) or not 1 <= n_schools <= n_people:
        raise ValueError(
            f'n_schools must be "auto" or a number from 1 to the number of people, {n_people}, '
            f"but is {n_schools!r}."
        )
    return int(n_schools)


def _refuse_other_features(levels: Levels, items: Items) -> None:
    if len(items.feature_names) != len(levels.feature_names):
        raise ValueError(
            f"The items have {len(items.feature_names)} features, but the ranker was fitted "
            f"to {len(levels.feature_names)}."
        )
