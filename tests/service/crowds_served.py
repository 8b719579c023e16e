"""Tiny models of every kind, as the service meets them."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from likeminds import Annotations, HierarchicalRanker, save

N_PEOPLE, N_ITEMS = 24, 16
TITLES = {
    f"film-{n}": f"{name} ({1950 + n})" for n, name in enumerate(["Heat", "Fargo, The", "M"] * 6)
}


def votes_on(rng: Any, strength: float = 2.0) -> tuple[Any, Any, Any, Any]:
    """Return people, items, and the scores of a crowd with two camps, shape (n, m) raveled."""
    camp = np.where(np.arange(N_PEOPLE) % 2, 1.0, -1.0)[:, None]
    features = np.column_stack([np.arange(N_ITEMS) % 2, rng.random(N_ITEMS)])
    scores = strength * camp * (features[:, 0] - 0.5) + features[:, 1]
    users, items = np.nonzero(np.ones((N_PEOPLE, N_ITEMS)))
    return users, items, scores[users, items] + rng.logistic(size=len(users)), features


def films(*, features: bool = True, titles: bool = True) -> Any:
    """Return a ranker of stars from 0.5 to 5 in halves."""
    users, items, scores, rows = votes_on(np.random.default_rng(0))
    stars = np.clip(np.round(2 * (2.5 + 0.7 * scores)) / 2, 0.5, 5)
    said = Annotations(
        [f"user-{n}" for n in users],
        [f"film-{n}" for n in items],
        stars,
        rows if features else None,
        item_ids=[f"film-{n}" for n in range(N_ITEMS)] if features else None,
        feature_names=["comedy", "length"] if features else None,
    )
    ranker = HierarchicalRanker().fit(said)
    ranker.name_items(TITLES if titles else None)
    return ranker


def deliberation(*, texts: bool = True, graded: bool = False) -> Any:
    """Return a ranker of votes: agree and disagree, or also pass, without features."""
    users, items, scores, _ = votes_on(np.random.default_rng(1))
    words = np.where(scores > 0.5, "agree", "disagree").astype(object)
    more: dict[str, Any] = {"positive": "agree"}
    if graded:
        words[np.abs(scores - 0.5) < 0.3] = "pass"
        more = {"grades": ["disagree", "pass", "agree"]}
    said = Annotations(users, [f"s{n}" for n in items], words, verb="agree with", **more)
    ranker = HierarchicalRanker().fit(said)
    if texts:
        ranker.name_items({f"s{n}": f'Pay for "park {n}" with less money.' for n in range(N_ITEMS)})
    return ranker


def ratings() -> Any:
    """Return a ranker of grades from -10 to 10, more than fit on buttons."""
    users, items, scores, _ = votes_on(np.random.default_rng(2))
    grades = np.clip(np.round(4 * scores), -10, 10)
    return HierarchicalRanker().fit(Annotations(users, items, grades, grades=True))


def choices(*, features: bool = True) -> Any:
    """Return a ranker of choices among four offers."""
    users, items, scores, rows = votes_on(np.random.default_rng(3))
    sets = len(users) // 4
    best = np.zeros(len(users), dtype=bool)
    best[4 * np.arange(sets) + scores.reshape(sets, 4).argmax(axis=1)] = True
    said = Annotations(
        users,
        [f"offer-{n}" for n in items],
        best,
        rows if features else np.eye(N_ITEMS),
        choice_sets=np.repeat(np.arange(sets), 4),
        item_ids=[f"offer-{n}" for n in range(N_ITEMS)],
        feature_names=["local", "price"] if features else None,
    )
    return HierarchicalRanker(loss="choice").fit(said)


def comparisons() -> Any:
    """Return a ranker of pairs of items that have ids alone."""
    users, items, scores, _ = votes_on(np.random.default_rng(4))
    pairs = scores.reshape(-1, 2)
    best = (pairs == pairs.max(axis=1, keepdims=True)).ravel()
    said = Annotations(
        users,
        items,
        best,
        np.eye(N_ITEMS),
        choice_sets=np.repeat(np.arange(len(users) // 2), 2),
        item_ids=np.arange(N_ITEMS),
    )
    return HierarchicalRanker(loss="choice").fit(said)


def likes(*, alike: bool = False) -> Any:
    """Return a ranker of likes by people who differ, or who do not."""
    rng = np.random.default_rng(5)
    users, items, scores, rows = votes_on(rng, 0.0 if alike else 3.0)
    said = Annotations(users, items, scores > 0.5, rows, item_ids=np.arange(N_ITEMS))
    return HierarchicalRanker().fit(said)


KINDS: dict[str, Callable[[], Any]] = {
    "stars with titles and features": films,
    "stars with titles alone": lambda: films(features=False),
    "stars with bare ids": lambda: films(features=False, titles=False),
    "votes with texts": deliberation,
    "votes with bare ids": lambda: deliberation(texts=False),
    "votes in three grades": lambda: deliberation(graded=True),
    "many grades": ratings,
    "choices with features": choices,
    "choices by id": lambda: choices(features=False),
    "comparisons by id": comparisons,
    "likes with pictures": likes,
    "likes of people who do not differ": lambda: likes(alike=True),
}


def model_of(kind: str, folder: Path) -> Path:
    """Return the file of a model of a kind."""
    return save(KINDS[kind](), folder / f"{kind.replace(' ', '-')}.likeminds", with_data=True)
