"""Words and examples for schools and for the directions in which users differ."""

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds._util.verbs import Verb
from likeminds.schools.items import Items, JudgedItem
from likeminds.schools.mixture import MixturePartition
from likeminds.schools.result import Axis, School
from likeminds.schools.school_names import are_telling, leading, name_deviation, strengths
from likeminds.schools.school_soft_labels import BOUND, SoftLabels
from likeminds.schools.weight_levels import WeightLevels

ITEMS_SHOWN, AXES_SHOWN = 8, 3


@dataclass(frozen=True, eq=False)
class SchoolDescriptions:
    """Words and examples for schools, and for the directions in which users differ."""

    levels: WeightLevels  # all users being equally decided
    items: Items | None
    spread: Float
    division: MixturePartition
    soft: SoftLabels | None
    verb: Verb

    @cached_property
    def added(self) -> Float:
        """The mean group level of each school: (n_schools, n_features), no rows for one part."""
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

    @cached_property
    def sizes(self) -> Index:
        """The number of users in each school."""
        return np.bincount(self.division.labels, minlength=len(self.added))

    def feature_school(self) -> Index:
        """Return the school that each feature sets apart most, -1 for none."""
        found = np.full(self.strength.shape[1], -1)
        for own in self.strength:
            named = leading(own)
            found[named] = np.abs(self.strength[:, named]).argmax(axis=0)
        return found

    def schools(self) -> tuple[School, ...]:
        """Put the schools into words."""
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
        """Put the strong directions of the group level into words."""
        squares = (coordinates**2).mean(axis=0)
        steps = (np.sqrt(squares)[:, None] * directions)[:AXES_SHOWN]
        found = []
        for n, strength in enumerate(strengths(steps, self.spread)):
            low, high = self._names_of_ends(n, steps[n], strength)
            found.append(Axis(float(squares[n] / squares.sum()), low, high, strength, steps[n]))
        return tuple(found)

    def _name_of_school(self, n: int, rest: Float) -> str:
        added, strength, soft = self.added[n], self.strength[n], self.soft
        if self.items is None or are_telling(strength, self.levels.feature_names):
            return self._named(added, strength)
        if soft is None:
            own, others = self.items.places(self.levels.consensus + np.stack([added, rest]))
            return self.items.name_by_difference(own, others, 0.0 * own)
        outside = self.sizes * (np.arange(len(self.sizes)) != n)
        part = (outside / max(outside.sum(), 1))[:, None]
        others = (part * soft.by_school).sum(axis=0)
        variance = soft.error_by_school[n] ** 2 + (part**2 * soft.error_by_school**2).sum(axis=0)
        return self.items.name_by_difference(soft.by_school[n], others, BOUND * np.sqrt(variance))

    def _names_of_ends(self, n: int, step: Float, strength: Float) -> tuple[str, str]:
        words = self._named(-step, -strength), self._named(step, strength)
        if self.items is None or are_telling(strength, self.levels.feature_names):
            return words
        if self.soft is None:
            ends = self.items.places(self.levels.consensus + np.stack([-step, step]))
            margin = 0.0 * ends[0]
        else:
            ends = self.soft.at_ends[n]
            margin = BOUND * np.sqrt((self.soft.error_at_ends[n] ** 2).sum(axis=0))
        # One end dislikes what the other likes: naming both for each end would say it twice.
        for liked_only in (True, False):
            low = self.items.name_by_difference(ends[0], ends[1], margin, liked_only=liked_only)
            high = self.items.name_by_difference(ends[1], ends[0], margin, liked_only=liked_only)
            if low and high:
                break
        return low or words[0], high or words[1]

    def _named(self, added: Float, strength: Float) -> str:
        names, consensus = self.levels.feature_names, self.levels.consensus
        binary = np.zeros(len(names), np.bool_) if self.items is None else self.items.binary
        return name_deviation(added, consensus, strength, names, binary, self.verb)

    def _examples(self, added: Float, rest: Float) -> dict[str, tuple[JudgedItem, ...]]:
        if self.items is None:
            return {"typical": (), "divisive": ()}
        own, others = self.items.places(self.levels.consensus + np.stack([added, rest]))
        difference = own - others
        divisive = (
            self.items.judged(np.abs(difference), ITEMS_SHOWN, difference)
            if difference.any()
            else ()
        )
        return {"typical": self.items.judged(own, ITEMS_SHOWN), "divisive": divisive}
