"""Decompose a score by level and by feature, with its standard error."""

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable, Rows
from likeminds._util.text_format import signed, written_grade
from likeminds.rankers.item_table import (
    ItemsToRank,
    ItemTableView,
    columns_of,
    find_user,
    frames_of,
    gives_grades,
)

if TYPE_CHECKING:
    from likeminds.rankers.ranker import Ranker

LEVELS = ("consensus", "group", "personal")
# Half the width of a 90 % interval, in standard errors.
WIDTH = 1.645
# Features in the text; the table has all.
_MOST_PRINTED = 8


@dataclass(frozen=True, eq=False)
class ScoreDecomposition(ResultTable):
    """A score, decomposed by level and feature.

    The score is relative to the average item. It is the sum over levels and features of the weight
    times the item's difference from the average, plus the item effect.

    Attributes
    ----------
    user, item : id
        The user (None for the consensus) and the item.
    score : float
        The difference from the score of the average item.
    error : float or None
        The standard error, if the ranker has standard errors.
    probability : float or None
        The probability of a positive label, if scores are log-odds (see `predict_proba`).
    expected : float, str or None
        The expected grade, for models of grades (for words, the nearest word).
    levels : dict
        The parts of ``consensus``, ``group``, ``personal`` and ``item``, which add up to the score.
    features : tuple of dict
        The part of each feature, by level and in ``total``, with its ``value`` and the ``average``
        over items; largest parts first.
    frames : str
        The kind of table that `table` returns.
    """

    user: Hashable | None
    item: Hashable | None
    score: float
    error: float | None
    probability: float | None
    levels: dict[str, float]
    features: tuple[dict[str, Any], ...]
    frames: Frames = "pyarrow"
    expected: Any = None

    @property
    def interval(self) -> list[float] | None:
        """The 90 % interval of the score."""
        return interval(self.score, self.error)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as plain values, for JSON."""
        plain = ("user", "item", "score", "error", "interval", "probability", "expected")
        parts = {"levels": dict(self.levels), "features": [dict(one) for one in self.features]}
        return {name: getattr(self, name) for name in plain} | parts

    def to_arrow(self) -> "pa.Table":
        """Return a row per feature, and a last row for the item effect."""
        names = ("feature", "value", "average", *LEVELS, "total")
        rows: list[dict[str, Any]] = [*self.features]
        if self.levels["item"]:
            rows.append({"feature": "(the item itself)", "total": self.levels["item"]})
        columns = {name: [row.get(name) for row in rows] for name in names}
        kinds = [pa.string(), *[pa.float64()] * (len(names) - 1)]
        schema = pa.schema(list(zip(names, kinds, strict=True)))
        return pa.table(columns, schema=schema)

    def __str__(self) -> str:
        parts = [f"  {name:<10}{signed(value, 2)}" for name, value in self.levels.items()]
        moved = [
            f"  {one['feature']} = {one['value']:.3g} (average {one['average']:.3g}): "
            f"{signed(one['total'], 2)}"
            for one in self.features[:_MOST_PRINTED]
        ]
        by_feature = ["by feature, the largest part first:", *moved] if moved else []
        return "\n".join([self._headline(), *parts, *by_feature])

    def __repr__(self) -> str:
        return f"<{self._headline()}>"

    def _html_tables(self) -> Sequence[Rows]:
        levels = [{"level": name, "adds": value} for name, value in self.levels.items()]
        return levels, [{"feature": one["feature"], **one} for one in self.features]

    def _headline(self) -> str:
        whose = "All people" if self.user is None else self.user
        sure = ""
        if self.interval is not None:
            low, high = self.interval
            sure = f" (90 %: {signed(low, 2)} to {signed(high, 2)})"
        chance = "" if self.probability is None else f", chance of a yes {self.probability:.0%}"
        if self.expected is not None:
            chance = f", expected grade {written_grade(self.expected)}"
        return f"{whose} on {self.item}: {relative_to_average(self.score)}{sure}{chance}"


def relative_to_average(score: float) -> str:
    """Describe a score relative to the average item.

    Examples
    --------
    >>> relative_to_average(0.812), relative_to_average(-3.7)
    ('0.81 above the average item', '3.70 below the average item')
    """
    return f"{abs(score):.2f} {'below' if score < 0 else 'above'} the average item"


def interval(score: float, error: float | None) -> list[float] | None:
    """Return the 90 % interval of a score."""
    return None if error is None else [score - WIDTH * error, score + WIDTH * error]


def decompose_score(
    weights: Float, names: Sequence[str], row: Float, centre: Float, effect: float
) -> dict[str, Any]:
    """Return the ``score``, ``levels`` and ``features`` of `ScoreDecomposition`.

    Examples
    --------
    >>> weights = np.array([[1.0, 0.0], [0.5, 0.0], [0.0, -1.0]])
    >>> found = decompose_score(weights, ["a", "b"], np.array([2.0, 1.0]), np.zeros(2), 0.25)
    >>> found["score"], found["levels"]
    (2.25, {'consensus': 2.0, 'group': 1.0, 'personal': -1.0, 'item': 0.25})
    """
    parts = weights * (np.asarray(row, dtype=np.float64) - centre)
    total = parts.sum(axis=0)
    levels = dict(zip(LEVELS, parts.sum(axis=1).tolist(), strict=True)) | {"item": float(effect)}
    features = [
        {"feature": names[j], "value": float(row[j]), "average": float(centre[j])}
        | dict(zip(LEVELS, parts[:, j].tolist(), strict=True))
        | {"total": float(total[j])}
        for j in np.argsort(-np.abs(total), kind="stable").tolist()
    ]
    score = float(total.sum() + effect)
    return {"score": score, "levels": levels, "features": tuple(features)}


def explain(
    ranker: "Ranker", user: Hashable | None, item: Hashable, items: ItemsToRank | None = None
) -> ScoreDecomposition:
    """Decompose an item's score for a user by level and feature, with its standard error.

    Parameters
    ----------
    user : id or None
        The user, or None for the consensus.
    item : id
        The item.
    items : mapping from item to features, or Annotations, optional
        The items, whose average is the reference; by default the training items, if the model was
        saved with them.

    Returns
    -------
    ScoreDecomposition

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
    >>> offers = {"cheap": [7.0, 1, 1, 0, 0, 0], "dear": [9.0, 1, 1, 0, 0, 0]}
    >>> why = ranker.explain("household-001", "cheap", offers)
    >>> why.features[0]["feature"], why.score > 0
    ('price', True)
    """
    check_is_fitted(ranker)
    ranker = ranker._best_model
    if not ranker.has_levels:
        raise TypeError(
            f"{type(ranker).__name__} has no consensus, group and personal level. Use "
            "HierarchicalRanker or ThreeLevelRanker."
        )
    shown = ItemTableView.of(ranker, items)
    place = shown.place_of(item)
    row, row_id = shown.features[[place]], shown.ids[[place]]
    owner = None if user is None else ranker.users_[[find_user(ranker, user)]]
    found = decompose_score(
        _levels_of(ranker, user),
        columns_of(ranker),
        shown.rows[place],
        shown.rows.mean(axis=0),
        float(shown.effects[place] - shown.effects.mean()),
    )
    error = chance = expected = None
    if ranker.has_standard_errors:
        error = float(ranker.standard_error(row, owner, row_id)[0])
        if ranker.prior_ is not None and ranker.prior_.design.intercept:
            chance = float(ranker.predict_proba(row, owner, row_id)[0, 1])
    if gives_grades(ranker):
        expected = ranker.predict_grades(row, owner, row_id).typical.tolist()[0]
    frames = frames_of(ranker)
    return ScoreDecomposition(
        user, item, error=error, probability=chance, frames=frames, expected=expected, **found
    )


def _levels_of(ranker: "Ranker", user: Hashable | None) -> Float:
    """Return a user's weights by level, (3, p); weights of factors are in the group level."""
    shared = np.asarray(ranker.consensus_)
    if user is None:
        parts = np.stack([shared, 0.0 * shared, 0.0 * shared])
    else:
        place = find_user(ranker, user)
        parts = np.stack([shared, ranker.group_[place], ranker.personal_[place]])
    learned = ranker.item_posteriors()
    if learned is None or not learned.n_factors:
        return parts
    none = np.zeros(learned.n_factors)
    own = none if user is None else ranker.factor_weights_[place]
    return np.hstack([parts, np.stack([none, own, none])])
