"""Words and examples for the schools of a crowd, and for the directions in which it differs."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.random import Generator

from likeminds._util.array_types import Float
from likeminds._util.verbs import LIKE, Verb
from likeminds.data.annotations import Annotations
from likeminds.schools.items import Items, JudgedItem
from likeminds.schools.mixture import MixturePartition
from likeminds.schools.result import Axis, School
from likeminds.schools.school_names import (
    are_telling,
    leading,
    name_deviation,
    strengths,
)
from likeminds.schools.school_soft_labels import BOUND, SoftLabels, VoteMatrices, shares_of_groups
from likeminds.schools.weight_levels import WeightLevels, as_ranker
from likeminds.schools.yes_log_odds import YesLogOdds

ITEMS_SHOWN = 8
_AXES_SHOWN = 3
# The share of the crowd that stands at one end of a direction.
_END = 0.25


def soft_labels_of(
    ranker: Any,
    items: Items,
    said: Annotations | None,
    *,
    division: MixturePartition,
    coordinates: Float,
    rng: Generator,
) -> SoftLabels | None:
    """Predict who says yes; None where scores are no log-odds and no labels calibrate them."""
    liking = YesLogOdds.of_ranker(ranker, items, said)
    if liking is None:
        return None
    votes = VoteMatrices.of_annotations(said, as_ranker(ranker).users_, items)
    n_users, n_schools = division.membership.shape
    everybody = np.ones((1, n_users), dtype=np.bool_)
    schools = division.labels == np.arange(n_schools)[:, None]
    axes = coordinates[:, :_AXES_SHOWN].T
    low, high = np.quantile(axes, [_END, 1.0 - _END], axis=1)[:, :, None]
    ends = np.stack([axes <= low, axes >= high], axis=1).reshape(-1, n_users)
    # A school may be empty where more were asked for than there are.
    groups = np.concatenate([everybody, schools | ~schools.any(axis=1)[:, None], ends])
    share, error = shares_of_groups(liking, votes, groups, rng)
    own, shape = slice(1, 1 + n_schools), (len(axes), 2, len(items))
    return SoftLabels(
        items=items.ids,
        rows=items.rows,
        n_votes=np.asarray(votes.said.sum(axis=0)).astype(np.intp),
        share=share[0],
        error=error[0],
        by_school=share[own],
        error_by_school=error[own],
        at_ends=share[own.stop :].reshape(shape),
        error_at_ends=error[own.stop :].reshape(shape),
    )


@dataclass(frozen=True, eq=False)
class SchoolCrowd:
    """People in schools.

    Attributes
    ----------
    levels : WeightLevels
        Their weights, all people being equally decided.
    items : Items or None
        What they are about.
    spread : array of shape (n_features, n_features)
        The covariance of the items' features.
    division : MixturePartition
        The schools.
    soft : SoftLabels or None
        What they would say.
    verb : Verb
        What they do with items.
    """

    levels: WeightLevels
    items: Items | None
    spread: Float
    division: MixturePartition
    soft: SoftLabels | None
    verb: Verb = LIKE

    @cached_property
    def added(self) -> Float:
        """The mean group level of each school's members: (n_schools, n_features).

        A division into one part has no schools.
        """
        division = self.division
        n_parts = division.membership.shape[1]
        added = np.zeros((n_parts if n_parts > 1 else 0, len(self.spread)))
        for school in np.unique(division.labels) if n_parts > 1 else ():
            added[school] = self.levels.group[division.labels == school].mean(axis=0)
        return added

    @cached_property
    def strength(self) -> Float:
        """How much each feature matters to what a school adds: (n_schools, n_features)."""
        return strengths(self.added, self.spread)

    def schools(self) -> tuple[School, ...]:
        """Put the schools into words."""
        added, strength, division = self.added, self.strength, self.division
        if not len(added):
            return ()
        sizes = np.bincount(division.labels, minlength=len(added))
        # What everybody outside of a school wants, as their own mean.
        total = sizes @ added
        rest = (total - sizes[:, None] * added) / np.maximum(sizes.sum() - sizes, 1)[:, None]
        return tuple(
            School(
                number=n + 1,
                name=self._name_of_school(n, rest[n]),
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
        for n, strength in enumerate(strengths(steps, self.spread)):
            low, high = self._names_of_ends(n, steps[n], strength)
            found.append(Axis(float(squares[n] / squares.sum()), low, high, strength, steps[n]))
        return tuple(found)

    def _name_of_school(self, n: int, rest: Float) -> str:
        added, strength = self.added[n], self.strength[n]
        if self.items is None or self._is_telling(strength):
            return self._named(added, strength)
        if self.soft is None:
            own, others = self.items.places(self.levels.consensus + np.stack([added, rest]))
            return self.items.name_apart(own, others, 0.0 * own)
        soft = self.soft
        sizes = np.bincount(self.division.labels, minlength=len(self.added))
        outside = sizes * (np.arange(len(sizes)) != n)
        part = (outside / max(outside.sum(), 1))[:, None]
        others = (part * soft.by_school).sum(axis=0)
        variance = soft.error_by_school[n] ** 2 + (part**2 * soft.error_by_school**2).sum(axis=0)
        doubt = BOUND * np.sqrt(variance)
        return self.items.name_apart(soft.by_school[n], others, doubt)

    def _names_of_ends(self, n: int, step: Float, strength: Float) -> tuple[str, str]:
        words = self._named(-step, -strength), self._named(step, strength)
        if self.items is None or self._is_telling(strength):
            return words
        if self.soft is None:
            ends = self.items.places(self.levels.consensus + np.stack([-step, step]))
            doubt = 0.0 * ends[0]
        else:
            ends = self.soft.at_ends[n]
            doubt = BOUND * np.sqrt((self.soft.error_at_ends[n] ** 2).sum(axis=0))
        # What one end likes, the other likes less: naming both for each end would say it twice.
        for liked_only in (True, False):
            low = self.items.name_apart(ends[0], ends[1], doubt, liked_only=liked_only)
            high = self.items.name_apart(ends[1], ends[0], doubt, liked_only=liked_only)
            if low and high:
                break
        return low or words[0], high or words[1]

    def _is_telling(self, strength: Float) -> bool:
        return are_telling(strength, self.levels.feature_names)

    def _named(self, added: Float, strength: Float) -> str:
        names, consensus = self.levels.feature_names, self.levels.consensus
        no = np.zeros(len(names), dtype=np.bool_)
        binary = no if self.items is None else self.items.binary
        return name_deviation(added, consensus, strength, names, binary, self.verb)

    def _examples(self, added: Float, rest: Float) -> dict[str, tuple[JudgedItem, ...]]:
        if self.items is None:
            return {"typical": (), "divisive": ()}
        own, others = self.items.places(self.levels.consensus + np.stack([added, rest]))
        apart = own - others
        divisive = self.items.judged(np.abs(apart), ITEMS_SHOWN, apart) if apart.any() else ()
        return {"typical": self.items.judged(own, ITEMS_SHOWN), "divisive": divisive}
