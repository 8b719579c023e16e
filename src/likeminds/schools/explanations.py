"""Facts about all users, one user, a school or an item, as plain values for all outputs."""

from collections.abc import Hashable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import did_you_mean
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.rankers.capabilities import in_memory
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.ranking import best_of, expected_grades, repeated
from likeminds.schools.find import find_schools, name_of
from likeminds.schools.population import Items, Population, items_of, score_variances
from likeminds.schools.result import Facts, Schools, named_shares, plain_items, position_of
from likeminds.schools.school_names import are_named, strengths, wishes

# With fewer users, `halves` is None.
_FEWEST = 10
_FEW = 5


@dataclass(frozen=True, eq=False)
class Explanation(Population):
    """Facts about the users and items of a ranker with a group level.

    Attributes
    ----------
    ranker : ranker
        Fitted, with a group level.
    items : Items or None
        The items, if they are known.
    labels : Annotations or None
        Labels of the items; by default those kept in the ranker.
    n_schools : int or "auto"
        The number of schools, as in `find_schools`.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> explained = Explanation.of_ranker(HierarchicalRanker(n_groups=1).fit(load_electricity()))
    >>> [one["wish"] for one in explained.consensus[:2]]
    ['no seasonal rates', 'no time of day rates']
    >>> round(explained.user("household-001")["likeness"], 1)
    0.3
    """

    n_schools: int | str = "auto"

    @classmethod
    def of_ranker(
        cls,
        ranker: Ranker,
        annotations: Annotations | None = None,
        n_schools: int | str = "auto",
        texts: Mapping[Hashable, str] | None = None,
    ) -> "Explanation":
        """Use the items of some annotations, by default of those kept in the ranker."""
        ranker = in_memory(ranker)
        return cls(ranker, items_of(ranker, annotations, texts=texts), annotations, n_schools)

    @cached_property
    def schools(self) -> Schools:
        """The schools, as `find_schools` finds them."""
        return find_schools(self.ranker, self.items, self.n_schools, labels=self.labels)

    @cached_property
    def halves(self) -> Schools | None:
        """The best division in two if users differ gradually; else None."""
        if self.schools or not self.schools.axes or len(self.levels.users) < _FEWEST:
            return None
        return find_schools(self.ranker, self.items, 2, labels=self.labels)

    @cached_property
    def unit(self) -> Float:
        """The standard deviation of each feature over the items."""
        return np.sqrt(self.spread.diagonal())

    @cached_property
    def likeness(self) -> Float:
        """The correlation of each user's scores with the consensus; see `likeness`."""
        return likeness(self.levels.coef, self.levels.consensus, self.spread)

    @cached_property
    def disagreement(self) -> Float:
        """The disagreement about each item; none without items."""
        rng = np.random.default_rng(0)
        return np.zeros(0) if self.items is None else self.items.disagreement(self.levels.coef, rng)

    @cached_property
    def consensus(self) -> list[Facts]:
        """Wishes of the consensus, strongest first, and how far each moves scores."""
        strength = strengths(self.levels.consensus[None], self.spread)[0]
        names = self.levels.feature_names
        if self._has_names:
            strength = np.where([are_named([name]) for name in names], strength, 0.0)
        found = wishes(strength, names, self.binary, self.verb)
        return [{"wish": words, "strength": value} for words, value in found]

    @property
    def _has_names(self) -> bool:
        return any(are_named([name]) for name in self.levels.feature_names)

    def population(self) -> Facts:
        """Return facts about the consensus and about differences between users."""
        n_items = 0 if self.items is None else len(self.items)
        facts: Facts = {"items": n_items, "consensus": self.consensus, "users_by": self.covariates}
        if self.items is not None and not self._has_names:
            scores = self.items.features @ self.levels.consensus
            for name, key in (("best", scores), ("worst", -scores)):
                judged = self.items.judged(_at_least(self.items, key), _FEW, scores)
                facts[name] = plain_items(judged, "score")
        return facts | self.schools.to_dict()

    def about_items(self, which: str) -> Facts:
        """Return the predicted share of yes to each item, of all users and of each school.

        "agreed" sorts by the share that would say yes ``everywhere`` (in every school, or at both
        ends of every axis), "divisive" by disagreement. ``liked_by_all`` counts the items with
        lower bounds above one half everywhere. ``items`` has facts as in `Schools.to_dict`.
        """
        items, found = self.items, self.schools
        soft = found.soft_labels
        if items is None or soft is None:
            raise ValueError(
                "Predicted shares of yes need items, and their labels or a HierarchicalRanker "
                "whose scores are log-odds. Save the model with its data, or pass annotations."
            )
        key = {"agreed": soft.at_least, "divisive": self.disagreement}[which]
        judged = items.judged(key, len(items), self.disagreement)
        plain = zip(plain_items(judged, "spread"), judged, strict=True)
        return {
            "which": which,
            "verb": self.verb.many(),
            "schools": [{"number": s.number, "name": s.name} for s in found],
            "everywhere": found.everywhere,
            "liked_by_all": int((soft.at_least > 0.5).sum()),
            "items": [facts | soft.of_row(one.row) for facts, one in plain],
        }

    @cached_property
    def covariates(self) -> list[Facts]:
        """Covariates of users, and the wishes associated with each; empty without covariates.

        ``share`` is the explained share of all disagreement. ``goes_with`` has the wishes
        associated with one standard deviation more of a number, or with a category.
        """
        prior = self.ranker._best_model.prior_
        traits = None if prior is None else prior.covariate_effects
        if traits is None:
            return []
        shares, shared = self.ranker._best_model.explained_by_users_, self.levels.consensus

        def wants(added: Float) -> str:
            # Covariates affect given features only; these come first.
            return name_of(self, np.pad(added, (0, len(shared) - len(added))), shared)

        found = [
            {
                "covariate": name,
                "share": share,
                "goes_with": [
                    {"of": "more" if kind is None else kind, "wants": wants(added)}
                    for kind, added in prior.weights_by(name)
                ],
            }
            for name, share in shares.items()
            if name not in traits.encoder.silent  # the fit warned of these
        ]
        return sorted(found, key=lambda one: -float(one["share"]))

    def user(self, user: Hashable) -> Facts:
        """Return a user's school, level shares, differences from the consensus, and best items."""
        found = self.schools
        school, place = found.of_user(user), position_of(user, found.user_ids)
        own, shared = self.levels.coef[place], self.levels.consensus
        decided = self.normalised.consensus  # of scores scaled to the same spread
        facts: Facts = {
            "user": user,
            "verb": self.verb.many(),
            "school": None if school is None else school.to_dict(),
            "membership": None if school is None else float(found.membership[place].max()),
            "level_shares": named_shares(found.level_shares[place]),
            "outlier": bool(found.outlier[place]),
            "likeness": float(self.likeness[place]),
            "differs": name_of(self, self.normalised.coef[place] - decided, decided),
            "features": self._features(own),
            "severity": None if found.severity is None else found.severity.of_user(user),
        }
        if self.items is not None:
            by_user, by_all = self.items.features @ own, self.items.features @ shared
            both = {"": (by_user, user), "_by_consensus": (_at_least(self.items, by_all), None)}
            for whose, (scores, who) in both.items():
                best = best_of(scores, _FEW)
                facts[f"best{whose}"] = self.items.ids[best].tolist()
                facts[f"expected{whose}"] = self._grades(self.items, best, who)
            judged = self.judged_by(user)
            facts["labelled"] = [item for item in facts["best"] if item in judged]
            named = dict.fromkeys(facts["best"] + facts["best_by_consensus"])
            facts["texts"] = {item: text for item in named if (text := self.items.text_of(item))}
        return facts

    def judged_by(self, user: Hashable) -> set[Any]:
        """Return the items that a user has labelled; an empty set without stored labels."""
        labels = self.known_labels
        if self.items is None or labels is None or user not in labels.user_ids.tolist():
            return set()
        places = self.items.positions_of(labels.of_user(user))
        return set(self.items.ids[places[places >= 0]].tolist())

    def school(self, number: int) -> Facts:
        """Return a school's features, members and items."""
        members = self.schools.members(number).tolist()
        facts = self.schools[number].to_dict()
        words = dict(zip(self.levels.feature_names, self.feature_words, strict=True))
        called = {name: words[name] for name in facts["features"]}
        return facts | {"verb": self.verb.many(), "words": called, "members": members}

    def item(self, item: Hashable) -> Facts:
        """Return an item's rank by the consensus and each school, and the users at both ends."""
        items, found = self.items, self.schools
        row = -1 if items is None else int(lookup([item], items.ids, "items")[0])
        if items is None or row < 0:
            hint = "" if items is None else did_you_mean(item, items.ids.tolist())
            raise KeyError(f"{item!r} is not among the {len(items or ())} items.{hint}")
        by_user = items.places(self.levels.coef)[:, row]
        order = np.argsort(-by_user, kind="stable")
        by_school = [float(items.places(school.weights[None])[0, row]) for school in found]
        text = items.text_of(item)
        return ({"item": item} if text is None else {"item": item, "text": text}) | {
            "consensus": float(items.places(self.levels.consensus[None])[0, row]),
            "spread": float(by_user.std()),
            "more_divisive_than": float((self.disagreement < self.disagreement[row]).mean()),
            "schools": [
                {"number": school.number, "name": school.name, "beats": beats}
                for school, beats in zip(found, by_school, strict=True)
            ],
            "reasons": self._reasons(items, row),
            "liked_by": _users_by_share(found.user_ids, by_user, order[:_FEW]),
            "disliked_by": _users_by_share(found.user_ids, by_user, order[::-1][:_FEW]),
        }

    def _features(self, own: Float) -> list[Facts]:
        """Return the weights of a user and of the consensus, times each feature's deviation."""
        shared, own_scaled = self.levels.consensus * self.unit, own * self.unit
        order = np.argsort(-np.abs(own_scaled - shared), kind="stable")
        return self._by_feature(order, own=own_scaled, consensus=shared)

    def _reasons(self, items: Items, row: int) -> list[Facts]:
        """Return the features that move an item's consensus score, strongest first."""
        shared = self.levels.consensus
        moved = shared * (items.features[row] - items.centre)
        size = float(np.sqrt(shared @ self.spread @ shared))
        order = np.argsort(-np.abs(moved), kind="stable")[:_FEW]
        return self._by_feature(order, value=items.features[row], moves=moved / (size or np.inf))

    def _by_feature(self, order: Index, **values: FloatArray) -> list[Facts]:
        """Return facts about some features, in this order."""
        names, words = self.levels.feature_names, self.feature_words
        return [
            {"feature": names[j], "words": words[j]}
            | {name: float(column[j]) for name, column in values.items()}
            for j in order.tolist()
        ]

    def _grades(self, items: Items, rows: Index, user: Hashable | None) -> list[Any] | None:
        """Return the expected grades of some items; None if labels are not grades."""
        ranker = self.ranker._best_model
        features = items.features[rows][:, : len(ranker.feature_names_)]
        owners = None if user is None else repeated(user, len(rows))
        found = expected_grades(ranker, features, owners, items.ids[rows])
        return None if found is None else found.tolist()


def _at_least(items: Items, scores: Float) -> Float:
    """Return lower bounds of consensus scores; see `rank`."""
    return scores if items.learned is None else items.learned.lower_bound(scores)


def _users_by_share(users: IdArray, beats: Float, places: Index) -> list[Facts]:
    chosen = zip(users[places].tolist(), beats[places].tolist(), strict=True)
    return [{"user": user, "beats": share} for user, share in chosen]


def likeness(weights: Float, consensus: Float, spread: Float) -> Float:
    """Return the correlation over items of each user's scores with consensus scores.

    1 is the same ranking, -1 the reverse. If only one of the two varies, the value is 0; if neither
    varies, 1.
    """
    own, shared = (np.sqrt(score_variances(w, spread)) for w in (weights, consensus[None]))
    size = own * shared
    together = weights @ (spread @ consensus) / np.where(size > 0, size, 1.0)
    return np.asarray(np.where(size > 0, together, own == shared), dtype=np.float64)
