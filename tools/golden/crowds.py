"""The table of crowds: each is a function that fits and returns quantities by name.

Only public names are used, so the table outlives a change of internals. To add a crowd, write a
function, list it in `CROWDS`, and run ``python -m tools.golden --write NAME``.
"""

import tempfile
import warnings
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

import likeminds
from likeminds import (
    Annotations,
    HierarchicalRanker,
    RankerCV,
    ThreeLevelRanker,
    ThreeLevelRankerCV,
    baselines,
)

# Numbers, or words: a choice of the model, the items of a ranking.
Quantities = dict[str, ArrayLike]

# Users whose rows and weights are frozen.
_SHOWN = 4
# The baselines of the paper, from RMTL to RAMU, and simpler rankers.
_PAPER = ("RMTL", "RMTFL", "LassoMTL", "JFL", "CMTL", "COMT", "RAMU")
_SIMPLE = ("ConsensusOnly", "OnePerUser", "RidgeToConsensus", "PooledLogistic")
_SIMPLE += ("LogisticPerUser", "Popularity", "PopularityWithFeatures", "Factorisation")


# Crowds.


class _Made:
    """Users with weights of their own, who are shown items with features."""

    def __init__(self, seed: int, n_users: int, n_items: int, n_features: int, share: float = 1.0):
        self.rng = rng = np.random.default_rng(seed)
        self.camp = np.where(np.arange(n_users) % 2, 1.0, -1.0)
        self.X = rng.standard_normal((n_items, n_features))
        spread = np.linspace(1.2, 0.4, n_features)
        self.weights = 0.8 + spread * rng.standard_normal((n_users, n_features))
        self.weights[:, 0] += 0.8 * self.camp
        self.worth = 0.7 * rng.standard_normal(n_items)
        self.divides = rng.standard_normal(n_items)
        shown = rng.random((n_users, n_items)) < share
        self.user, self.item = np.nonzero(shown)
        self.users = np.array([f"u{n:02d}" for n in range(n_users)], dtype=object)
        self.items = np.array([f"i{n:02d}" for n in range(n_items)], dtype=object)

    def scores(self, of_features: float = 1.0, of_items: float = 0.0) -> np.ndarray:
        """Return the score of each row, with noise of the logistic distribution."""
        user, item = self.user, self.item
        seen = np.einsum("nd,nd->n", self.X[item], self.weights[user])
        own = self.worth[item] + self.camp[user] * self.divides[item]
        noise = self.rng.logistic(size=len(user))
        return np.asarray(of_features * seen + of_items * own + noise)

    def labels(self, of_features: float = 1.0, of_items: float = 0.0, **more: Any) -> Annotations:
        """Return who says yes to which item; items are shared if they have effects."""
        yes = self.scores(of_features, of_items) > 0.3
        return self.said(yes, of_features, of_items, **more)

    def grades(self, of_features: float, of_items: float) -> Annotations:
        """Return grades from 1 to 5."""
        grade = np.clip(np.round(3.0 + 0.8 * self.scores(of_features, of_items)), 1, 5)
        return self.said(grade, of_features, of_items)

    def said(
        self, labels: ArrayLike, of_features: float, of_items: float, **more: Any
    ) -> Annotations:
        users = self.users[self.user]
        if not of_features:
            return Annotations(users, self.items[self.item], labels, **more)
        if not of_items:
            return Annotations(users, None, labels, self.X[self.item], **more)
        items = {"item_ids": self.items, "features_per": "item"}
        return Annotations(users, self.items[self.item], labels, self.X, **items, **more)

    def sets(self, n_sets: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return the user of each choice set, its items, and the place of the chosen one."""
        user = np.repeat(np.arange(len(self.users)), n_sets)
        shown = np.array([self.rng.permutation(len(self.items))[:size] for _ in user])
        seen = np.einsum("nsd,nd->ns", self.X[shown], self.weights[user])
        seen += self.worth[shown]
        return user, shown, (seen + self.rng.gumbel(size=seen.shape)).argmax(axis=1)

    def table(self) -> dict[str, np.ndarray]:
        """Return features by item."""
        return dict(zip(self.items, self.X, strict=True))


def _choices(seed: int = 5, **more: Any) -> Annotations:
    made = _Made(seed, 40, 30, 3)
    user, shown, best = made.sets(8, 3)
    chosen = made.items[shown[np.arange(len(user)), best]]
    given = {"features": made.table(), "feature_names": ["price", "size", "speed"]} | more
    return Annotations.from_choices(made.users[user], made.items[shown], chosen, **given)


def _pairs(described: bool) -> Annotations:
    made = _Made(6, 30, 15, 3)
    user, shown, best = made.sets(12, 2)
    pair = made.items[shown]
    row = np.arange(len(user))
    given = {"features": made.table()} if described else {}
    ties = made.rng.random(len(user)) < 0.1
    return Annotations.from_comparisons(
        made.users[user], pair[row, best], pair[row, 1 - best], ties, **given
    )


def _labels_on_items() -> Annotations:
    return _Made(3, 40, 24, 3, share=0.7).labels(0.7, 1.2)


# Quantities.


def _weights(ranker: Any, said: Annotations) -> Quantities:
    """Return coefficients, scores and rankings."""
    first = said.user_ids[:_SHOWN]
    found: Quantities = {"scores": ranker.decision_function(said.of_users(first))}
    if hasattr(ranker, "coef_"):
        found["coefficients"] = ranker.coef_[:_SHOWN]
        found["consensus"] = ranker.consensus_
    return found


def _rankings(ranker: Any, said: Annotations) -> Quantities:
    """Return the best items of some users, and of the consensus."""
    who = [*said.user_ids[:2], None]
    return {f"ranking of {user}": _ids(ranker.rank(user, said, k=10).items) for user in who}


def _posterior(ranker: Any, said: Annotations) -> Quantities:
    """Return all that a learned prior says of some users, and what it selected."""
    rows = said.of_users(said.user_ids[:_SHOWN])
    found = _weights(ranker, said) | _rankings(ranker, said)
    found["deviations"] = ranker.standard_error(rows)
    found["selected"] = _ids(
        [ranker.loss_, ranker.covariance_, ranker.n_groups_, ranker.n_item_factors_]
    )
    if ranker.item_effects_:
        found["item effects"] = ranker.item_effect_
        found["deviations of item effects"] = ranker.item_effect_error_
    return found


def _fitted(ranker: Any, said: Annotations) -> Quantities:
    """Return the posterior, and probabilities."""
    rows = said.of_users(said.user_ids[:_SHOWN])
    found = _posterior(ranker.fit(said), said)
    return found | {"probabilities": ranker.predict_proba(rows)[:, 1]}


def _graded(ranker: Any, said: Annotations) -> Quantities:
    rows = said.of_users(said.user_ids[:2])
    found = _posterior(ranker.fit(said), said)
    if getattr(ranker, "grading_", None) is None:
        return found
    predicted = ranker.predict_grades(rows)
    return found | {"probabilities": predicted.probabilities, "expected": predicted.expected}


def _of_new_users(posterior: Any, rows: Annotations) -> Quantities:
    """Return the posteriors of new users."""
    return {
        "coefficients": posterior.coef,
        "scores": posterior.decision_function(rows, rows.users),
        "deviations": posterior.standard_error(rows, rows.users),
    }


def _named(name: str, found: Mapping[str, ArrayLike]) -> Quantities:
    return {f"{name}: {what}": value for what, value in found.items()}


def _ids(ids: Any) -> list[str]:
    return [str(each) for each in ids]


# The table.


def labels_with_features() -> Quantities:
    """Labels of rows, with weights of rows."""
    made = _Made(1, 40, 20, 4, share=0.6)
    return _fitted(
        HierarchicalRanker(),
        made.labels(weights=made.rng.uniform(0.5, 2.0, len(made.user))),
    )


def labels_with_items() -> Quantities:
    """Labels of shared items without features: item effects and factors."""
    return _fitted(HierarchicalRanker(), _Made(2, 50, 30, 1, share=0.8).labels(0.0, 1.5))


def labels_with_features_and_items() -> Quantities:
    """Labels of shared items with features."""
    return _fitted(HierarchicalRanker(n_item_factors=1), _labels_on_items())


def labels_by_squared_auc() -> Quantities:
    """Labels, learned by the squared AUC loss and a prior of low rank."""
    said = _Made(4, 30, 20, 4, share=0.7).labels()
    return _posterior(HierarchicalRanker(n_groups=1, loss="auc").fit(said), said)


def grades() -> Quantities:
    """Grades with features; held-out users select the likelihood."""
    return _graded(HierarchicalRanker(), _Made(7, 30, 20, 3, share=0.7).grades(1.0, 0.0))


def grades_with_items() -> Quantities:
    """Grades of shared items, by a cumulative logit."""
    said = _Made(8, 30, 20, 2, share=0.8).grades(0.6, 1.0)
    return _graded(HierarchicalRanker(loss="cumulative", n_item_factors=1), said)


def choices() -> Quantities:
    """Choices of one of three."""
    return _fitted(HierarchicalRanker(), _choices())


def choices_with_signs() -> Quantities:
    """Choices with a fixed weight, a censored one, and a simulated likelihood."""
    ranker = HierarchicalRanker(covariance="diagonal", fixed=["speed"], signs={"size": 1}, draws=50)
    return _fitted(ranker, _choices(9))


def comparisons() -> Quantities:
    """Pairs of items with features, with ties."""
    return _fitted(HierarchicalRanker(), _pairs(described=True))


def comparisons_by_ids() -> Quantities:
    """Pairs of items without features."""
    return _fitted(HierarchicalRanker(), _pairs(described=False))


def mixed() -> Quantities:
    """Users who label, and users who choose, in one fit."""
    made = _Made(10, 24, 30, 3)
    user, shown, best = made.sets(6, 3)
    chosen = made.items[shown[np.arange(len(user)), best]]
    sets = Annotations.from_choices(
        made.users[user], made.items[shown], chosen, features=made.table()
    )
    few = made.user % 2 == 0
    made.user, made.item = made.user[few], made.item[few]
    return _fitted(HierarchicalRanker(), made.labels(1.0, 0.5).concat(sets))


def wide() -> Quantities:
    """More features than rows of a user, learned in the space of the rows."""
    made = _Made(11, 24, 60, 300, share=0.4)
    made.weights /= 12.0
    said = made.labels()
    found = _fitted(HierarchicalRanker(wide=True), said)
    some = {name: np.asarray(found[name])[..., :20] for name in ("coefficients", "consensus")}
    return found | some


def covariates() -> Quantities:
    """Covariates of users."""
    made = _Made(12, 60, 40, 3, share=0.8)
    ages = made.rng.normal(40, 9, len(made.users))
    camps = np.where(made.camp < 0, "left", "right").tolist()
    known = zip(made.users, ages.tolist(), camps, strict=True)
    said = made.labels(
        user_features={user: {"age": age, "camp": camp} for user, age, camp in known}
    )
    ranker = HierarchicalRanker()
    found = _fitted(ranker, said)
    shares = ranker.explained_by_users_
    new = ranker.newcomer(user_features={"new": {"age": 30.0, "camp": "right"}})
    return found | {"explained": [shares[name] for name in sorted(shares)], "new user": new.coef}


def large_crowd_by_sample() -> Quantities:
    """8,000 users, the fewest of whom a sample learns the prior."""
    rng = np.random.default_rng(13)
    n_users, n_labels = 8000, 4
    user = np.repeat(np.arange(n_users), n_labels)
    X = rng.standard_normal((len(user), 2))
    weights = np.array([1.0, -0.5]) + rng.standard_normal((n_users, 2)) @ [[1.0, 0.3], [0.0, 0.6]]
    seen = np.einsum("nd,nd->n", X, weights[user])
    said = Annotations(user, None, seen + rng.logistic(size=len(user)) > 0, X)
    ranker = HierarchicalRanker(n_groups=1).fit(said)
    rows = said[:40]
    return {
        "consensus": ranker.consensus_,
        "coefficients": ranker.coef_[:20],
        "deviations": ranker.standard_error(rows),
        "probabilities": ranker.predict_proba(rows)[:, 1],
        "sample": [ranker.sampling_.n_learned, ranker.sampling_.n_asked],
    }


def two_dask_workers() -> Quantities:
    """Labels, and three levels, on two workers of a cluster in this process."""
    from distributed import Client  # noqa: PLC0415 - an extra

    from likeminds.cluster import Shards  # noqa: PLC0415

    said = _labels_on_items()
    named = {"item_ids": said.item_ids, "feature_names": said.feature_names}
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    rankers = {
        "labels": HierarchicalRanker(item_effects=False),
        "items": HierarchicalRanker(n_item_factors=0),
        "three levels": ThreeLevelRanker(tol=1e-8),
    }
    found: Quantities = {}
    with Client(**workers, dashboard_address=":0") as client:
        shards = Shards.from_parts([said[::2], said[1::2]], client, said.features, **named)
        for name, ranker in rankers.items():
            found |= _named(name, _weights(ranker.fit(shards), said))
    return found


def three_levels() -> Quantities:
    """Fit the model of the paper to labels and to grades."""
    found: Quantities = {}
    crowds = {
        "labels": _Made(1, 40, 20, 4, share=0.6).labels(),
        "grades": _Made(7, 30, 20, 3, share=0.7).grades(1.0, 0.0),
    }
    for name, said in crowds.items():
        ranker = ThreeLevelRanker(tol=1e-8).fit(said)
        parts = {"group": ranker.group_[:_SHOWN], "personal": ranker.personal_[:_SHOWN]}
        new = ranker.newcomer(said[:5]).coef
        found |= _named(name, _weights(ranker, said) | _rankings(ranker, said) | parts)
        found |= _named(name, {"new user": new, "objective": ranker.objective_})
    return found


def tuned() -> Quantities:
    """Parameters by cross-validation inside each user."""
    said = _Made(1, 30, 20, 3, share=0.6).labels()
    three = ThreeLevelRankerCV(random_state=0).fit(said)
    ridge = RankerCV(baselines.RidgeToConsensus(), random_state=0).fit(said)
    found = _named("ThreeLevelRankerCV", _weights(three, said))
    return found | _named("RidgeToConsensus", _weights(ridge, said))


def baselines_of_the_paper() -> Quantities:
    """RMTL to RAMU."""
    return _of_baselines(_PAPER)


def simple_baselines() -> Quantities:
    """Baselines with fewer parameters."""
    return _of_baselines(_SIMPLE)


def _of_baselines(names: tuple[str, ...]) -> Quantities:
    said = _labels_on_items()
    found: Quantities = {}
    for name in names:
        found |= _named(name, _weights(getattr(baselines, name)().fit(said), said))
    return found


def newcomers() -> Quantities:
    """Meet new users without labels and with a few, and choose what to ask them."""
    said = _labels_on_items()
    known, new = said.of_users(said.user_ids[:-3]), said.of_users(said.user_ids[-3:])
    ranker = HierarchicalRanker(n_item_factors=1).fit(known)
    few = ranker.newcomer(new[::3])
    catalogue = said.of_user(said.user_ids[0])
    return _named("few labels", _of_new_users(few, new)) | {
        "no labels": ranker.newcomer().coef,
        "next items": _ids(few.next_items(catalogue, user=new.user_ids[0], n=3)),
    }


def new_items() -> Quantities:
    """Meet new items, from a few labels of each."""
    said = _labels_on_items()
    late = np.isin(said.items, ["i21", "i22", "i23"])
    ranker = HierarchicalRanker(n_item_factors=1).fit(said[~late])
    few, rest = said[late][::2], said[late][1::2]
    found = ranker.new_items(few)
    return {
        "item effects": found.item_effect_[-3:],
        "deviations of item effects": found.item_effect_error_[-3:],
        "scores": found.decision_function(rest),
        "deviations": found.standard_error(rest),
        "probabilities": found.predict_proba(rest)[:, 1],
        "before": ranker.predict_proba(rest)[:, 1],
    }


def update() -> Quantities:
    """Labels that are added to a fitted model."""
    said = _Made(1, 30, 20, 3, share=0.6).labels()
    learned = HierarchicalRanker().fit(said[::2]).update(said[1::2])
    three = ThreeLevelRanker(tol=1e-8).fit(said[::2]).update(said[1::2])
    found = _named("HierarchicalRanker", _posterior(learned, said))
    return found | _named("ThreeLevelRanker", _weights(three, said))


def reloaded() -> Quantities:
    """Models that were saved and loaded."""
    said = _labels_on_items()
    graded = _Made(8, 30, 20, 2, share=0.8).grades(0.6, 1.0)
    rows = said.of_users(said.user_ids[:_SHOWN])
    with tempfile.TemporaryDirectory() as folder:

        def again(ranker: Any) -> Any:
            return likeminds.load(likeminds.save(ranker, Path(folder) / "model", with_data=True))

        learned = again(HierarchicalRanker(n_item_factors=1).fit(said))
        found = _named("labels", _posterior(learned, said))
        found["labels: probabilities"] = learned.predict_proba(rows)[:, 1]
        by_grade = again(HierarchicalRanker(loss="gaussian", n_item_factors=0).fit(graded))
        found |= _named("grades", _posterior(by_grade, graded))
        three = again(ThreeLevelRanker(tol=1e-8).fit(said))
        return found | _named("three levels", _weights(three, said))


CROWDS: dict[str, Callable[[], Quantities]] = {
    crowd.__name__: crowd
    for crowd in (
        labels_with_features,
        labels_with_items,
        labels_with_features_and_items,
        labels_by_squared_auc,
        grades,
        grades_with_items,
        choices,
        choices_with_signs,
        comparisons,
        comparisons_by_ids,
        mixed,
        wide,
        covariates,
        large_crowd_by_sample,
        two_dask_workers,
        three_levels,
        tuned,
        baselines_of_the_paper,
        simple_baselines,
        newcomers,
        new_items,
        update,
        reloaded,
    )
}


def quantities(name: str) -> dict[str, np.ndarray]:
    """Fit a crowd; return its quantities as arrays of numbers or of texts."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "The labels of .* one class only", UserWarning)
        return {what: np.asarray(value) for what, value in CROWDS[name]().items()}
