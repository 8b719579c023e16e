"""Inter-annotator agreement: Krippendorff's alpha, Fleiss' and Cohen's kappa, ICC.

A low alpha has two possible causes: noise, or predictable disagreement. The coefficients do not
distinguish them. Disagreement is predictable if a ranking per user predicts held-out labels better
than one ranking for all.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from scipy import sparse

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.lazy_imports import pa
from likeminds._util.result_tables import Frames, ResultTable
from likeminds.data.annotations import Annotations
from likeminds.metrics.by_user import ratio

if TYPE_CHECKING:
    import pyarrow

Level = Literal["nominal", "ordinal", "interval"]
LEVELS: tuple[Level, ...] = ("nominal", "ordinal", "interval")
# Denominators up to this are rounding errors.
_LEAST = 1e-12
# Cohen's kappa is a mean over pairs of users: its interval has fewer draws, and is left out with
# many users.
_MOST_DRAWS, _MOST_USERS = 200, 200
# Weights of items that are drawn at a time.
_MOST_WEIGHTS = 2_000_000
# Krippendorff's bounds of alpha for reliable labels and for tentative conclusions.
_RELIABLE, _TENTATIVE = 0.8, 0.667


@dataclass(frozen=True)
class Coefficient:
    """A coefficient of agreement with a bootstrap interval over items; NaN if undefined."""

    name: str
    value: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class Agreement(ResultTable):
    """Coefficients of inter-annotator agreement.

    Attributes
    ----------
    coefficients : tuple of Coefficient
        Krippendorff's alpha by level of measurement, Fleiss' kappa, Cohen's kappa and ICC(1), each
        with a 95 % interval. Cohen's kappa is the mean over pairs of users, weighted by their
        common items.
    users : array of shape (n_users,)
        The annotators.
    kappa_by_user : array of shape (n_users,)
        Each user's mean Cohen's kappa with the other users, weighted by common items.
    n_items, n_labels : int
        Items that two users or more labelled, and their labels.
    """

    coefficients: tuple[Coefficient, ...]
    users: IdArray
    kappa_by_user: Float
    n_items: int
    n_labels: int
    frames: Frames = "pyarrow"

    def __getitem__(self, name: str) -> Coefficient:
        return next(found for found in self.coefficients if found.name == name)

    def to_arrow(self) -> "pyarrow.Table":
        """Return one row per coefficient; null if it is undefined."""
        names, *columns = zip(*(vars(one).values() for one in self.coefficients), strict=True)
        numbers = [pa.array(column, from_pandas=True) for column in columns]
        return pa.table([pa.array(names), *numbers], names=["name", "value", "low", "high"])

    def by_user(self) -> "pyarrow.Table":
        """Return each user's mean Cohen's kappa with the other users."""
        return pa.table({"user": self.users, "kappa": self.kappa_by_user})

    def reading(self) -> str:
        """Interpret Krippendorff's alpha in a sentence; for grades, the ordinal alpha."""
        alpha = [one for one in self.coefficients if one.name.startswith("alpha")][:2][-1]
        if np.isnan(alpha.value):
            return "All labels are the same, so the coefficients are not defined."
        level = (
            "reliable labels"
            if alpha.value >= _RELIABLE
            else "labels for tentative conclusions"
            if alpha.value >= _TENTATIVE
            else f"too low to take one label per item as the truth (below {_TENTATIVE})"
        )
        return (
            f"Krippendorff's {alpha.name} is {alpha.value:.2f}, where 1 is full agreement and 0 is "
            f"chance: {level}."
        )

    def _headline(self) -> str:
        return (
            f"Agreement of {len(self.users):,} annotators on {self.n_items:,} items with "
            f"{self.n_labels:,} labels"
        )

    def __str__(self) -> str:
        rows = [
            f"  {one.name:<28} {one.value:6.3f}  [{one.low:.3f}, {one.high:.3f}]"
            for one in self.coefficients
        ]
        return "\n".join([self._headline(), *rows, self.reading()])


def agreement(
    annotations: Annotations,
    levels: Sequence[Level] | None = None,
    *,
    n_bootstrap: int = 1000,
    random_state: int = 0,
) -> Agreement:
    """Return coefficients of inter-annotator agreement, with bootstrap intervals over items.

    Parameters
    ----------
    annotations : Annotations
        Labels, grades or classes (``nominal=``). If a user labels an item twice, the later label
        wins.
    levels : sequence of {"nominal", "ordinal", "interval"}, optional
        The levels of measurement for Krippendorff's alpha. By default, all for grades, and
        "nominal" for classes, which have no ICC, and for yes and no: there, all levels agree.
    n_bootstrap : int, default=1000
        The number of bootstrap samples of items for the intervals; 0 for no intervals.
    random_state : int, default=0
        Makes the bootstrap reproducible.

    Returns
    -------
    Agreement

    Examples
    --------
    >>> from likeminds import Annotations
    >>> annotations = Annotations(
    ...     users=["ann", "bob", "cid"] * 3, items=["x"] * 3 + ["y"] * 3 + ["z"] * 3,
    ...     labels=[1, 1, 0, 0, 0, 0, 1, 1, 1],
    ... )
    >>> round(agreement(annotations, n_bootstrap=0)["alpha (nominal)"].value, 3)
    0.6
    """
    if not annotations.has_items:
        raise ValueError("Agreement needs items that several users labelled: pass items=.")
    if levels is None:
        levels = LEVELS[:1] if annotations.grades is None else LEVELS
    if annotations.is_nominal and set(levels) > {"nominal"}:
        raise ValueError("Classes have no order: leave out levels=, whose default is nominal.")
    unknown = [level for level in levels if level not in LEVELS]
    if unknown:
        raise ValueError(f"levels must be some of {', '.join(LEVELS)}, not {unknown[0]!r}.")
    table = _LabelTable.of(annotations)
    rng = np.random.default_rng(random_state)
    n_items = len(table.counts)
    parts: dict[str, list[Float]] = {}
    kappa: Float | None = None
    n_kappas = 1 + (_MOST_DRAWS if table.n_users <= _MOST_USERS else 0)
    for block in _resampled(n_items, n_bootstrap, rng):
        found = {f"alpha ({level})": _alpha(table, level, block) for level in levels}
        found["Fleiss' kappa"] = _fleiss(table, block)
        if not annotations.is_nominal:
            found["ICC(1)"] = _icc(table, block)
        sums = [_kappa_sums(table, row) for row in block[:n_kappas]]
        n_kappas -= len(sums)
        kappa = sums[0] if kappa is None else kappa
        found["Cohen's kappa, mean of pairs"] = np.array([ratio(*s.sum(axis=1)) for s in sums])
        for name, values in found.items():
            parts.setdefault(name, []).append(values)
    return Agreement(
        tuple(_coefficient(name, np.concatenate(values)) for name, values in parts.items()),
        annotations.user_ids,
        np.full(table.n_users, np.nan) if kappa is None else ratio(*kappa),
        n_items,
        int(table.counts.sum()),
        annotations.frames,
    )


def _resampled(n_items: int, n_draws: int, rng: np.random.Generator) -> Iterator[Float]:
    """Yield blocks of rows of item weights: all items once, then bootstrap samples of them."""
    yield np.ones((1, n_items))
    size = max(1, _MOST_WEIGHTS // n_items)
    for start in range(0, n_draws, size):
        n = min(size, n_draws - start)
        yield rng.multinomial(n_items, np.full(n_items, 1 / n_items), size=n).astype(np.float64)


def _coefficient(name: str, values: Float) -> Coefficient:
    low, high = np.nan, np.nan
    drawn = values[1:][np.isfinite(values[1:])]
    if len(drawn):
        low, high = np.quantile(drawn, [0.025, 0.975])
    return Coefficient(name, float(values[0]), float(low), float(high))


@dataclass(frozen=True)
class _LabelTable:
    """Labels of items with two labels or more: codes of users, items and distinct values."""

    user: Index
    item: Index
    value: Index
    levels: Float
    counts: Float
    n_users: int

    @classmethod
    def of(cls, annotations: Annotations) -> "_LabelTable":
        if annotations.is_nominal:  # the rows of the chosen classes
            annotations = annotations[annotations.labels]
            annotations = annotations._with(grades=annotations.attribute_codes)
        pairs = annotations.user_codes * annotations.n_items + annotations.item_codes
        # The last label of a user for an item wins.
        _, last = np.unique(pairs[::-1], return_index=True)
        rows = len(pairs) - 1 - last
        per_item = np.bincount(annotations.item_codes[rows], minlength=annotations.n_items)
        rows = rows[per_item[annotations.item_codes[rows]] > 1]
        if not len(rows):
            raise ValueError(
                "No item was labelled by two users, so agreement is not defined. Pass labels of "
                "the same items by several users."
            )
        _, item = np.unique(annotations.item_codes[rows], return_inverse=True)
        levels, value = np.unique(annotations.outcomes[rows].astype(float), return_inverse=True)
        counts = np.zeros((item.max() + 1, len(levels)))
        np.add.at(counts, (item, value), 1.0)
        return cls(annotations.user_codes[rows], item, value, levels, counts, annotations.n_users)

    @property
    def sizes(self) -> Float:
        """Return the number of labels of each item."""
        return np.asarray(self.counts.sum(axis=1))


def _alpha(table: _LabelTable, level: Level, weights: Float) -> Float:
    """Return Krippendorff's alpha for each row of item weights: 1 - D_observed / D_expected."""
    counts, sizes = table.counts, table.sizes
    totals = weights @ counts
    n = totals.sum(axis=1)
    if level == "nominal":
        observed = weights @ ((sizes**2 - (counts**2).sum(axis=1)) / (sizes - 1))
        expected = n**2 - (totals**2).sum(axis=1)
    else:
        # Ordinal values are mid-ranks among the labels of a draw, so each draw has its own.
        ranks = np.cumsum(totals, axis=1) - totals / 2
        values = ranks if level == "ordinal" else np.broadcast_to(table.levels, totals.shape)
        values = values - (totals * values).sum(axis=1, keepdims=True) / n[:, None]
        spread = sizes[:, None] * (counts @ values.T**2) - (counts @ values.T) ** 2
        observed = 2 * ((weights / (sizes - 1)) * spread.T).sum(axis=1)
        expected = 2 * n * (totals * values**2).sum(axis=1)
    return _one_minus((n - 1) * observed, expected)


def _fleiss(table: _LabelTable, weights: Float) -> Float:
    """Return Fleiss' kappa; items may have different numbers of labels."""
    sizes = table.sizes
    agreeing = ((table.counts**2).sum(axis=1) - sizes) / (sizes * (sizes - 1))
    observed = weights @ agreeing / weights.sum(axis=1)
    shares = weights @ table.counts
    expected = ((shares / shares.sum(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return _one_minus(1 - observed, 1 - expected)


def _icc(table: _LabelTable, weights: Float) -> Float:
    """Return the intraclass correlation ICC(1): one-way random effects of items."""
    sizes = table.sizes
    first, second = table.counts @ table.levels, table.counts @ table.levels**2
    n_items, n = weights.sum(axis=1), weights @ sizes
    within = weights @ (second - first**2 / sizes)
    between = weights @ (first**2 / sizes) - (weights @ first) ** 2 / n
    typical = (n - (weights @ sizes**2) / n) / np.maximum(n_items - 1, 1)
    mean_within = within / np.maximum(n - n_items, 1)
    mean_between = between / np.maximum(n_items - 1, 1)
    return ratio(mean_between - mean_within, mean_between + (typical - 1) * mean_within, _LEAST)


def _kappa_sums(table: _LabelTable, weights: Float) -> Float:
    """Return each user's sums of weighted kappas with other users, and of the weights."""
    shape = (table.n_users, len(table.counts))
    by_value = [
        sparse.csr_matrix(
            (np.ones(is_it.sum()), (table.user[is_it], table.item[is_it])), shape=shape
        )
        for is_it in (table.value == k for k in range(len(table.levels)))
    ]
    weighing = sparse.diags_array(weights)
    labelled = sum(by_value[1:], start=by_value[0])
    found = np.zeros((2, table.n_users))
    for start in range(0, table.n_users, _MOST_USERS):
        some = slice(start, start + _MOST_USERS)

        def common_items(one: Any, other: Any, rows: slice = some) -> Float:
            return np.asarray((one[rows] @ weighing @ other.T).todense(), dtype=np.float64)

        common = common_items(labelled, labelled)
        same, chance = np.zeros_like(common), np.zeros_like(common)
        for one in by_value:
            same += common_items(one, one)
            chance += common_items(one, labelled) * common_items(labelled, one)
        number = np.maximum(common, 1.0)
        kappa = _one_minus(1 - same / number, 1 - chance / number**2)
        rows = np.arange(len(common))
        common[rows, start + rows] = 0.0
        common[~np.isfinite(kappa)] = 0.0
        found[:, some] = np.where(common > 0, common * kappa, 0.0).sum(axis=1), common.sum(axis=1)
    return found


def _one_minus(numerator: Float, denominator: Float) -> Float:
    return np.asarray(1.0 - ratio(numerator, denominator, _LEAST))
