"""What there is to say about a ranker, as plain values: a crowd, a person, a school, an item."""

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._support.arrays import Float
from likeminds.cli._data import Shown, as_known
from likeminds.schools import School, Schools, find_schools
from likeminds.schools.items import Items
from likeminds.schools.levels import Levels
from likeminds.schools.naming import wishes

Facts = dict[str, Any]

_LEVELS = ("consensus", "group", "personal")
_FEW = 5


@dataclass(frozen=True)
class Explained:
    """A ranker and what is known about its items.

    Attributes
    ----------
    ranker : ranker
        With a group level.
    shown : Shown or None
        The items, where there are any.
    n_schools : int or "auto"
        How many schools there are to be.
    """

    ranker: Any
    shown: Shown | None
    n_schools: int | str

    @cached_property
    def schools(self) -> Schools:
        """Who thinks alike."""
        return find_schools(self.ranker, self._as_annotations(), self.n_schools)

    @cached_property
    def levels(self) -> Levels:
        """Everybody's weights, taken apart."""
        return Levels.of_ranker(self.ranker)

    @cached_property
    def items(self) -> Items:
        """The items, or a sentence where there are none."""
        if self.shown is None:
            raise ValueError(
                "Which items? This model has kept none of those it has learned from: give "
                "--features or --images."
            )
        rows = np.arange(len(self.shown.ids))
        return Items(self.shown.ids, rows, self.shown.features, self.levels.feature_names)

    def _as_annotations(self) -> Any:
        """Return the items as annotations: one label, which nobody looks at."""
        from likeminds.data.annotations import Annotations

        if self.shown is None:
            return None
        return Annotations(
            users=[0],
            items=[self.shown.ids[0]],
            labels=[True],
            features=self.shown.features,
            item_ids=self.shown.ids,
            feature_names=self.levels.feature_names,
            features_per="item",
        )

    def crowd(self) -> Facts:
        """Say what all agree on, and how people differ."""
        found = self.schools
        return {
            "people": len(found.users),
            "items": 0 if self.shown is None else len(self.shown.ids),
            "consensus": self._wishes(self.levels.consensus),
            "schools": [self._brief(school) for school in found.schools],
            "agreement": found.agreement,
            "axes": [{"share": a.share, "low": a.low, "high": a.high} for a in found.axes],
            "standing": dict(zip(_LEVELS, found.standing.mean(axis=0).tolist(), strict=True)),
            "loners": found.loners.tolist(),
            "divisive": [{"item": j.item, "spread": j.value} for j in found.divisive[:_FEW]],
        }

    def person(self, text: str) -> Facts:
        """Say where somebody stands, what they want differently, and what they like best."""
        found = self.schools
        person = as_known(text, found.users, "person")
        place = int(np.flatnonzero(found.users == person)[0])
        own = self.levels.coef[place]
        facts: Facts = {
            "person": person,
            "school": self._brief(found.of_person(person)),
            "membership": float(found.membership[place].max()),
            "standing": dict(zip(_LEVELS, found.standing[place].tolist(), strict=True)),
            "loner": bool(found.loner[place]),
            "likeness": self._likeness(own),
            "features": self._features(own),
        }
        if self.shown is not None:
            for name, weights in (("best", own), ("best_by_consensus", self.levels.consensus)):
                facts[name] = self._best(weights)
        return facts

    def school(self, number: int) -> Facts:
        """Say what a school wants, who is in it, and what it likes."""
        found = self.schools
        school = found[number]
        return self._brief(school) | {
            "features": school.features,
            "typical": [{"item": j.item, "beats": j.value} for j in school.typical[:_FEW]],
            "divisive": [{"item": j.item, "places": j.value} for j in school.divisive[:_FEW]],
            "members": found.members(number).tolist(),
        }

    def item(self, text: str) -> Facts:
        """Say how an item is seen by all, by each school, and by those who differ most."""
        items, found = self.items, self.schools
        name = as_known(text, items.ids, "item")
        row = int(np.flatnonzero(items.ids == name)[0])
        everybody = items.places(self.levels.coef)[:, row]
        order = np.argsort(-everybody, kind="stable")
        liked, disliked = order[:_FEW], order[::-1][:_FEW]
        return {
            "item": name,
            "consensus": float(items.places(self.levels.consensus[None])[0, row]),
            "spread": float(everybody.std()),
            "more_divisive_than": self._more_divisive_than(row),
            "schools": [
                {"number": s.number, "name": s.name, "beats": float(p)}
                for s, p in zip(found.schools, self._by_school(row), strict=True)
            ],
            "reasons": self._reasons(row),
            "liked_by": [{"person": found.users[i], "beats": float(everybody[i])} for i in liked],
            "disliked_by": [
                {"person": found.users[i], "beats": float(everybody[i])} for i in disliked
            ],
        }

    def _by_school(self, row: int) -> Float:
        weights = np.stack([school.weights for school in self.schools.schools])
        return np.asarray(self.items.places(weights)[:, row])

    def _more_divisive_than(self, row: int) -> float:
        apart = self.items.disagreement(self.levels.coef, np.random.default_rng(0))
        return float((apart < apart[row]).mean())

    def _reasons(self, row: int) -> list[Facts]:
        """Return what moves the item up or down for the consensus, strongest first."""
        moved = self.levels.consensus * (self.items.features[row] - self.items.centre)
        unit = float(np.sqrt(self.levels.consensus @ self.items.spread @ self.levels.consensus))
        order = np.argsort(-np.abs(moved), kind="stable")[:_FEW]
        return [
            {
                "feature": self.levels.feature_names[j],
                "value": float(self.items.features[row, j]),
                "moves": float(moved[j] / unit) if unit else 0.0,
            }
            for j in order
        ]

    def _brief(self, school: School) -> Facts:
        return {
            "number": school.number,
            "name": school.name,
            "people": school.size,
            "share": school.share,
            "stability": school.stability,
        }

    @cached_property
    def _unit(self) -> Float:
        """How much each feature varies over the items."""
        if self.shown is None:
            return np.asarray(self.levels.scale)
        return np.sqrt(self.items.spread.diagonal())

    def _wishes(self, weights: Float) -> list[Facts]:
        """Put weights into words, strongest first."""
        yes_or_no = np.zeros(len(weights), dtype=bool)
        if self.shown is not None:
            yes_or_no = self.items.binary
        found = wishes(weights, self._unit, self.levels.feature_names, yes_or_no)
        return [{"wish": words, "strength": strength} for words, strength in found]

    def _features(self, own: Float) -> list[Facts]:
        """Return own weights beside the consensus's, per spread of the feature."""
        shared, mine = self.levels.consensus * self._unit, own * self._unit
        order = np.argsort(-np.abs(mine - shared), kind="stable")
        names = self.levels.feature_names
        return [
            {"feature": names[j], "own": float(mine[j]), "consensus": float(shared[j])}
            for j in order
        ]

    def _likeness(self, own: Float) -> float:
        """Return the correlation of somebody's scores of the items with the consensus's."""
        spread = np.diag(self._unit**2) if self.shown is None else self.items.spread
        shared = self.levels.consensus
        size = float(np.sqrt((own @ spread @ own) * (shared @ spread @ shared)))
        return float(own @ spread @ shared / size) if size else 0.0

    def _best(self, weights: Float) -> list[Any]:
        scores = self.items.features @ weights
        return list(self.items.ids[np.argsort(-scores, kind="stable")[:_FEW]])
