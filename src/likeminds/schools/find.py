"""Find the schools of thought in a ranker's group level, and name them."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.random import Generator
from scipy.special import ndtr

from likeminds._util.array_types import Bool, Float, Index
from likeminds._util.result_tables import Frames
from likeminds.data.annotations import Annotations
from likeminds.metrics.paired import discoveries
from likeminds.metrics.severity import severity_of
from likeminds.rankers.capabilities import in_memory
from likeminds.rankers.ranker import Ranker
from likeminds.schools.mixture import (
    AXES_SHOWN,
    SEED,
    MixturePartition,
    divide_population,
    read_cache,
)
from likeminds.schools.population import (
    Items,
    JudgedItem,
    Population,
    WeightLevels,
    as_ranker,
    items_of,
    score_variances,
)
from likeminds.schools.result import LEVELS, Axis, School, Schools, variance_shares
from likeminds.schools.school_names import are_telling, leading, strengths
from likeminds.schools.school_soft_labels import BOUND, SoftLabels

ITEMS_SHOWN = 8
# If all users agree, the least personal share of an outlier's variance.
_OF_THEIR_OWN = 0.05
# Items whose ranks differ less between users are not divisive.
_DIVIDED = 0.05
# The false discovery rate among outliers, unless some personal levels are exactly zero.
_FALSE_LONERS = 0.05
# The ratio of standard deviation to median absolute deviation of a normal distribution.
_NORMAL = 1.4826


def find_schools(
    ranker: Ranker,
    annotations: Annotations | Items | None = None,
    n_schools: int | str = "auto",
    random_state: int | Generator | None = SEED,
    *,
    texts: Mapping[Hashable, str] | None = None,
    labels: Annotations | None = None,
) -> Schools:
    """Find groups of users who rank alike, the features that set them apart, and outliers.

    Users are clustered by their positions in the strong directions of the ranker's group level.
    Users are close if their scores deviate alike from the consensus, after scaling all users'
    scores to about the same spread. The ranker is not refitted.

    Parameters
    ----------
    ranker : ranker
        Fitted, with a group level: `ThreeLevelRanker` (tuned or not), `HierarchicalRanker`, or a
        `DecomposedRanker` with a component called group or low_rank.
    annotations : Annotations or Items, optional
        The items that define variances and correlations of features, and serve as examples. By
        default, those kept in the ranker. Without items, features are assumed independent, with the
        scale measured by the ranker, and there are no examples.
    n_schools : int or "auto", default="auto"
        The number of schools; "auto" chooses it, possibly 0, by a criterion (see
        `likeminds.schools.mixture`).
    random_state : int or Generator, default=0
        The seed.
    texts : mapping from item id to str, optional
        Texts or names of items, by default those kept in the ranker (`name_items`). Schools are
        named after items if feature names have no meaning (x0, component_3).
    labels : Annotations, optional
        Labels for the soft labels: by default ``annotations``, or those kept in the ranker.

    Returns
    -------
    Schools

    Notes
    -----
    Users with few labels lie near the middle. If a model keeps its users in files,
    20,000 of them are used, drawn by hashes of their ids. With more than 5,000 users, the mixture
    is fitted to a sample of 5,000.

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, find_schools, make_schools
    >>> simulation = make_schools(60, 40, 200, 12, n_schools=3, contested=0.5, random_state=0)
    >>> ranker = ThreeLevelRanker().fit(simulation.annotations)
    >>> schools = find_schools(ranker, simulation.annotations)
    >>> len(schools), [school.size for school in schools]
    (3, [20, 20, 20])
    """
    rng = np.random.default_rng(random_state)
    ranker = in_memory(as_ranker(ranker))
    items = items_of(ranker, annotations, rng, texts)
    given = annotations if isinstance(annotations, Annotations) else None
    population = Population(ranker, items, given if labels is None else labels)
    levels, spread = population.levels, population.spread
    requested = _requested(n_schools, len(levels.users))
    found = read_cache(population) if requested is None and random_state == SEED else None
    division, soft, disagreement = found or divide_population(population, requested, rng)
    words = _Descriptions(population, division, soft)
    n_found = len(words.added)
    known = population.known_labels
    frames: Frames = "pyarrow" if known is None else known.frames
    soft = None if soft is None else soft.of_schools(n_found, frames)
    coordinates, directions = population.coordinates
    level_shares, outlier = variance_shares(levels, spread), _outliers(levels, spread)
    if not directions.size:
        # Even if all users agree, a few differ slightly more than by chance.
        outlier = outlier & (level_shares[:, LEVELS.index("personal")] >= _OF_THEIR_OWN)
    return Schools(
        user_ids=levels.users,
        labels=division.labels if n_found else division.labels - 1,
        membership=division.membership[:, :n_found],
        schools=words.schools(),
        feature_names=levels.feature_names,
        feature_words=population.feature_words,
        strength=words.strength,
        feature_school=words.feature_school(),
        coordinates=coordinates,
        axes=words.axes(coordinates, directions),
        level_shares=level_shares,
        outlier=outlier,
        # Without a direction stronger than chance, the labels show no divisive items.
        divisive=()
        if items is None or not directions.size
        else tuple(one for one in items.judged(disagreement, ITEMS_SHOWN) if one.value >= _DIVIDED),
        agreed=() if items is None or soft is None else items.judged(soft.at_least, ITEMS_SHOWN),
        soft_labels=soft,
        spread=spread,
        criterion=division.criterion,
        agreement=division.agreement,
        suggested=requested is None,
        verb=population.verb,
        severity=severity_of(known),
        frames=frames,
    )


def _requested(n_schools: int | str, n_users: int) -> int | None:
    if n_schools == "auto":
        return None
    if isinstance(n_schools, str) or not 1 <= n_schools <= n_users:
        raise ValueError(
            f'n_schools must be "auto" or a number from 1 to the number of users, {n_users}, '
            f"but is {n_schools!r}."
        )
    return int(n_schools)


@dataclass(frozen=True, eq=False)
class _Descriptions:
    """Names and examples of schools, and of the directions in which users differ."""

    population: Population
    division: MixturePartition
    soft: SoftLabels | None

    @property
    def levels(self) -> WeightLevels:
        return self.population.normalised

    @cached_property
    def added(self) -> Float:
        """The mean group level of each school, (n_schools, n_features); no rows for one school."""
        division = self.division
        n_parts = division.membership.shape[1]
        added = np.zeros((n_parts if n_parts > 1 else 0, len(self.levels.consensus)))
        for school in np.unique(division.labels) if n_parts > 1 else ():
            added[school] = self.levels.group[division.labels == school].mean(axis=0)
        return added

    @cached_property
    def strength(self) -> Float:
        """The effect of each feature on each school's deviation: (n_schools, n_features)."""
        return strengths(self.added, self.population.spread)

    @cached_property
    def sizes(self) -> Index:
        """The number of users in each school."""
        return np.bincount(self.division.labels, minlength=len(self.added))

    def feature_school(self) -> Index:
        """Return the school that each feature distinguishes most, or -1."""
        found = np.full(self.strength.shape[1], -1)
        for own in self.strength:
            named = leading(own)
            found[named] = np.abs(self.strength[:, named]).argmax(axis=0)
        return found

    def schools(self) -> tuple[School, ...]:
        """Return the schools with names and examples."""
        added, strength, sizes = self.added, self.strength, self.sizes
        if not len(added):
            return ()
        # The mean of the users outside of each school.
        total = sizes @ added
        rest = (total - sizes[:, None] * added) / np.maximum(sizes.sum() - sizes, 1)[:, None]
        return tuple(
            School(
                number=n + 1,
                name=self._name_of_school(n, rest[n]),
                size=int(sizes[n]),
                share=float(sizes[n] / sizes.sum()),
                stability=float(self.division.stability[n]),
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
        """Return the strong directions of the group level with names."""
        squares = (coordinates**2).mean(axis=0)
        steps = (np.sqrt(squares)[:, None] * directions)[:AXES_SHOWN]
        found = []
        for n, strength in enumerate(strengths(steps, self.population.spread)):
            low, high = self._names_of_ends(n, steps[n], strength)
            found.append(Axis(float(squares[n] / squares.sum()), low, high, strength, steps[n]))
        return tuple(found)

    def _name_of_school(self, n: int, rest: Float) -> str:
        items, soft = self.population.items, self.soft
        names = self.levels.feature_names
        if items is None or soft is None or are_telling(self.strength[n], names):
            return name_of(self.population, self.added[n], self.levels.consensus, rest)
        outside = self.sizes * (np.arange(len(self.sizes)) != n)
        part = (outside / max(outside.sum(), 1))[:, None]
        others = (part * soft.by_school).sum(axis=0)
        variance = soft.error_by_school[n] ** 2 + (part**2 * soft.error_by_school**2).sum(axis=0)
        return items.name_by_difference(soft.by_school[n], others, BOUND * np.sqrt(variance))

    def _names_of_ends(self, n: int, step: Float, strength: Float) -> tuple[str, str]:
        items, shared = self.population.items, self.levels.consensus
        by_features = self.population.named_by_features
        words = by_features(-step, shared, -strength), by_features(step, shared, strength)
        if items is None or are_telling(strength, self.levels.feature_names):
            return words
        if self.soft is None:
            ends = items.places(shared + np.stack([-step, step]))
            margin = 0.0 * ends[0]
        else:
            ends = self.soft.at_ends[n]
            margin = BOUND * np.sqrt((self.soft.error_at_ends[n] ** 2).sum(axis=0))
        # One end dislikes the items that the other likes, so name each item once.
        for liked_only in (True, False):
            low = items.name_by_difference(ends[0], ends[1], margin, liked_only=liked_only)
            high = items.name_by_difference(ends[1], ends[0], margin, liked_only=liked_only)
            if low and high:
                break
        return low or words[0], high or words[1]

    def _examples(self, added: Float, rest: Float) -> dict[str, tuple[JudgedItem, ...]]:
        items = self.population.items
        if items is None:
            return {"typical": (), "divisive": ()}
        own, others = items.places(self.levels.consensus + np.stack([added, rest]))
        difference = own - others
        n_divisive = ITEMS_SHOWN if difference.any() else 0
        divisive = items.judged(np.abs(difference), n_divisive, difference)
        return {"typical": items.judged(own, ITEMS_SHOWN), "divisive": divisive}


def name_of(
    population: Population, added: Float, shared: Float, others: Float | float = 0.0
) -> str:
    """Name a deviation from shared weights after features, or else after items.

    The items are those ranked most differently with ``shared + added`` than with ``shared +
    others``.
    """
    strength, items = strengths(added[None], population.spread)[0], population.items
    if items is None or are_telling(strength, population.levels.feature_names):
        return population.named_by_features(added, shared, strength)
    own, rest = items.places(np.stack([shared + added, shared + others]))
    return items.name_by_difference(own, rest, 0.0 * own)


def _outliers(levels: WeightLevels, spread: Float) -> Bool:
    """Return users whose personal level is nonzero (if exact), or larger than by chance.

    If the personal level is exactly zero for most users, users with a nonzero level are outliers.
    Otherwise the cube root of its variance is nearly normal for ordinary users (Wilson and
    Hilferty). Its mean and deviation come from the median and the median absolute deviation. The
    false discovery rate is 5 % (Benjamini and Hochberg).
    """
    if levels.own is not None:
        return levels.own
    size = score_variances(levels.personal, spread)
    if size.max(initial=0.0) <= 1e-12 * score_variances(levels.coef, spread).max(initial=0.0):
        return np.zeros(len(size), dtype=np.bool_)
    root = np.cbrt(size)
    middle = np.median(root)
    width = _NORMAL * np.median(np.abs(root - middle))
    if not width:
        return np.asarray(root > middle)
    return discoveries(ndtr(-(root - middle) / width), _FALSE_LONERS)
