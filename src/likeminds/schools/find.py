"""Find the schools of thought in a ranker's group level, and put them into words."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Float
from likeminds._util.result_tables import Frames
from likeminds._util.verbs import Verb
from likeminds.data.annotations import Annotations
from likeminds.metrics.severity import severity_of
from likeminds.rankers.capabilities import Capability, in_memory
from likeminds.rankers.ranker import Ranker
from likeminds.schools.descriptions import AXES_SHOWN, ITEMS_SHOWN, SchoolDescriptions
from likeminds.schools.items import Items
from likeminds.schools.mixture import Found, divide, mark_of, read_cache, write_cache
from likeminds.schools.mixture import MixturePartition as Partition
from likeminds.schools.result import LEVELS, Schools
from likeminds.schools.school_soft_labels import (
    SoftLabels,
    VoteMatrices,
    YesLogOdds,
    shares_of_groups,
)
from likeminds.schools.weight_levels import WeightLevels, as_ranker, loners, variance_shares

# The seed of results that are cached.
_SEED = 0
# If all users agree, the least personal share of a loner's variance.
_OF_THEIR_OWN = 0.05
# Items whose places differ less between users are not divisive.
_DIVIDED = 0.05
# The share of users at one end of a direction.
_END = 0.25


def find_schools(
    ranker: Ranker,
    annotations: Annotations | Items | None = None,
    n_schools: int | str = "auto",
    random_state: int | Generator | None = _SEED,
    *,
    texts: Mapping[Hashable, str] | None = None,
    labels: Annotations | None = None,
) -> Schools:
    """Find groups of users who rank alike, the features that set them apart, and loners.

    Users are divided by their positions in the strong directions of the ranker's group level, in
    the metric of the scores: users are near each other if their scores of the items deviate alike
    from the consensus, once all are scaled to be equally decided. Nothing is fitted again.

    Parameters
    ----------
    ranker : ranker
        Fitted, with a group level: `ThreeLevelRanker` (tuned or not), `HierarchicalRanker`, or a
        `DecomposedRanker` with a component called group or low_rank.
    annotations : Annotations or Items, optional
        Its items say how features vary and go together, and are shown as examples. By default
        those the ranker was fitted to, where it still has them; else features are taken as
        independent, with the spread the ranker measured, and no items are shown.
    n_schools : int or "auto", default="auto"
        How many schools; "auto" lets the data say (see `likeminds.schools.mixture`): maybe none.
    random_state : int or Generator, default=0
        Makes the result reproducible.
    texts : mapping from item id to str, optional
        Texts or names of items, by default those that the ranker keeps (`name_items`). Schools are
        named after items where features have no names that mean anything (x0, component_3).
    labels : Annotations, optional
        Labels for the soft labels: by default ``annotations``, or those the ranker has kept.

    Returns
    -------
    Schools

    Notes
    -----
    Users with few labels stand near the middle. If a model has its users in files, 20,000 of them
    are divided, drawn by hashes of their ids. More than 5,000 users are divided by a mixture
    fitted to a sample of so many.

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
    population = _Population.of_ranker(ranker, annotations, rng, texts=texts, labels=labels)
    levels, items, spread = population.levels, population.items, population.spread
    requested = _requested(n_schools, len(levels.users))
    found = None
    if requested is None and random_state == _SEED and items is not None:
        found = read_cache(as_ranker(population.ranker), population.mark, items)
    division, soft, disagreement = population.divided(requested, rng) if found is None else found
    verb: Verb = as_ranker(population.ranker).verb
    words = SchoolDescriptions(population.normalised, items, spread, division, soft, verb)
    n_found = len(words.added)
    frames: Frames = "pyarrow" if population.labels is None else population.labels.frames
    soft = None if soft is None else soft.of_schools(n_found, frames)
    coordinates, directions = population.coordinates
    level_shares, loner = variance_shares(levels, spread), loners(levels, spread)
    if not directions.size:
        # If all users agree, some are still a little further from the others than by chance.
        loner = loner & (level_shares[:, LEVELS.index("personal")] >= _OF_THEIR_OWN)
    return Schools(
        user_ids=levels.users,
        labels=division.labels if n_found else division.labels - 1,
        membership=division.membership[:, :n_found],
        schools=words.schools(),
        feature_names=levels.feature_names,
        feature_words=levels.words_over(items),
        strength=words.strength,
        feature_school=words.feature_school(),
        coordinates=coordinates,
        axes=words.axes(coordinates, directions),
        level_shares=level_shares,
        loner=loner,
        # Without a direction that is more than chance, the labels show no divisive items.
        divisive=()
        if items is None or not directions.size
        else tuple(one for one in items.judged(disagreement, ITEMS_SHOWN) if one.value >= _DIVIDED),
        agreed=() if items is None or soft is None else items.judged(soft.at_least, ITEMS_SHOWN),
        soft_labels=soft,
        spread=spread,
        criterion=division.criterion,
        agreement=division.agreement,
        suggested=requested is None,
        verb=verb,
        severity=severity_of(population.labels),
        frames=frames,
    )


def keep_schools(ranker: Ranker) -> None:
    """Cache with a ranker how its users divide, and their soft labels.

    `find_schools` with the ranker's own items and labels then takes a fraction of the time, also
    after the ranker was saved with its data and loaded. A cache for other weights or labels is not
    used; a ranker without items caches nothing.
    """
    fitted = as_ranker(ranker)
    if not Capability.LEVELS.of(fitted) or fitted.training_annotations_ is None:
        return
    rng = np.random.default_rng(_SEED)
    population = _Population.of_ranker(ranker, None, rng)
    write_cache(fitted, population.mark, population.divided(None, rng))


@dataclass(frozen=True, eq=False)
class _Population:
    """The weights of a ranker's users, with their items and labels."""

    ranker: Ranker
    levels: WeightLevels
    items: Items | None
    labels: Annotations | None

    @classmethod
    def of_ranker(
        cls,
        ranker: Ranker,
        annotations: Annotations | Items | None,
        rng: Generator,
        *,
        texts: Mapping[Hashable, str] | None = None,
        labels: Annotations | None = None,
    ) -> "_Population":
        levels = WeightLevels.of_ranker(ranker)
        items = items_of(ranker, annotations, rng, texts)
        if items is not None and len(items.feature_names) != len(levels.feature_names):
            raise ValueError(
                f"The items have {len(items.feature_names)} features, but the ranker was fitted "
                f"to {len(levels.feature_names)}."
            )
        return cls(
            ranker, levels, items, labels_of(ranker, annotations) if labels is None else labels
        )

    @cached_property
    def spread(self) -> Float:
        return self.levels.spread_over(self.items)

    @cached_property
    def normalised(self) -> WeightLevels:
        return self.levels.normalised(self.spread)

    @cached_property
    def coordinates(self) -> tuple[Float, Float]:
        return self.normalised.coordinates(self.spread)

    @property
    def mark(self) -> str:
        assert self.items is not None
        return mark_of(self.levels, self.items, self.labels)

    def divided(self, n_schools: int | None, rng: Generator) -> Found:
        division = divide(self.coordinates[0], n_schools, rng)
        if self.items is None:
            return division, None, np.zeros(0)
        soft = self._soft_labels(self.items, division, rng)
        return division, soft, self.items.disagreement(self.levels.coef, rng)

    def _soft_labels(self, items: Items, division: Partition, rng: Generator) -> SoftLabels | None:
        """Predict who says yes; None where scores are not log-odds and no labels calibrate them."""
        odds = YesLogOdds.of_ranker(self.ranker, items, self.labels)
        if odds is None:
            return None
        votes = VoteMatrices.of_annotations(self.labels, self.levels.users, items)
        n_users, n_schools = division.membership.shape
        all_users = np.ones((1, n_users), dtype=np.bool_)
        schools = division.labels == np.arange(n_schools)[:, None]
        axes = self.coordinates[0][:, :AXES_SHOWN].T
        low, high = np.quantile(axes, [_END, 1.0 - _END], axis=1)[:, :, None]
        ends = np.stack([axes <= low, axes >= high], axis=1).reshape(-1, n_users)
        # A school may be empty where more were requested for than there are.
        groups = np.concatenate([all_users, schools | ~schools.any(axis=1)[:, None], ends])
        share, error = shares_of_groups(odds, votes, groups, rng)
        own, shape = slice(1, 1 + n_schools), (len(axes), 2, len(items))
        return SoftLabels(
            items=items.ids,
            rows=items.rows,
            n_votes=np.asarray(votes.voted.sum(axis=0)).astype(np.intp),
            share=share[0],
            error=error[0],
            by_school=share[own],
            error_by_school=error[own],
            at_ends=share[own.stop :].reshape(shape),
            error_at_ends=error[own.stop :].reshape(shape),
        )


def items_of(
    ranker: Ranker,
    annotations: Annotations | Items | None,
    rng: int | Generator = 0,
    texts: Mapping[Hashable, str] | None = None,
) -> Items | None:
    """Return the items of some annotations, by default of those the ranker has kept.

    Without ``texts``, items have the names that the ranker keeps.
    """
    fitted = as_ranker(ranker)
    if isinstance(annotations, Items):
        items = annotations
        fitted.item_posteriors_of(items.ids)
    else:
        labels = labels_of(ranker, annotations)
        if labels is None:
            return None
        items = Items.of_annotations(labels, np.random.default_rng(rng))
        items = items.among(fitted.scorable_ids())
    texts = texts or items.texts or ranker.item_names or None
    return replace(items, texts=texts, verb=fitted.verb).with_learned(fitted)


def labels_of(ranker: Ranker, annotations: Annotations | Items | None) -> Annotations | None:
    """Return the labels that were given, or else those that the ranker has kept."""
    if isinstance(annotations, Annotations):
        return annotations
    stored: Annotations | None = as_ranker(ranker).training_annotations_
    return stored


def _requested(n_schools: int | str, n_users: int) -> int | None:
    if n_schools == "auto":
        return None
    if isinstance(n_schools, str) or not 1 <= n_schools <= n_users:
        raise ValueError(
            f'n_schools must be "auto" or a number from 1 to the number of people, {n_users}, '
            f"but is {n_schools!r}."
        )
    return int(n_schools)
