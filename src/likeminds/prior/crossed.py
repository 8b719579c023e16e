"""People crossed with items: what an item adds to every score, and features of items to be learned.

    eta_ij = x_j'W_i + a_i + b_j + f_j'v_i,     b_j ~ N(0, tau^2),  f_j ~ N(0, I)

To people, b_j is an offset and f_j is a few more columns of their rows, with the weights v_i. To
items, people are sums over labels. Neither side takes the other's estimate as exact. People
are integrated out of the likelihood of b_j: of a label's information h, the share 1 - h s^2 is
left, where s^2 is the variance of its score for that person. And as f_j is known only as
N(f_j, T_j), weights are penalised by the uncertainty of what they weigh: the mean of log(1 + exp)
exceeds its value at the mean by at most an eighth of the variance v_i'T_j v_i (Boehning's bound).
"""

from dataclasses import dataclass, replace
from functools import cached_property, reduce
from operator import add

import numpy as np
from scipy import sparse

from likeminds._support.arrays import Bool, Float, Index
from likeminds.data.annotations import Annotations
from likeminds.losses.rows import Rows
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.items import Items
from likeminds.prior.likelihoods import Diagonal, Likelihood
from likeminds.prior.posterior import Mode, Moments, Spread, find_mode, moments_of, over_blocks
from likeminds.prior.prior import Prior
from likeminds.prior.tasks import LabelTasks, Task

# The largest second derivative of log(1 + exp).
BEND = 0.25


def are_shared(annotations: Annotations) -> bool:
    """Say whether any item was labelled by two people."""
    if not annotations.has_items:
        return False
    pairs = np.unique(annotations.item_codes * annotations.n_people + annotations.user_codes)
    return bool((np.diff(pairs // annotations.n_people) == 0).any())


@dataclass(frozen=True)
class ItemSums:
    """Derivatives of J by the items' effects and factors: sums over labels.

    Attributes
    ----------
    slope, known : arrays of shape (m,)
        Minus the gradient of J by b_j, and its curvature, people integrated out.
    crossed : array of shape (m, p)
        The curvature by b_j and by the mean of z.
    slope_of_factors : array of shape (m, r)
        Minus the gradient of J by f_j.
    seen : array of shape (m, r, r)
        The sum over labels of h times the second moment of v_i.
    bound : array of shape (m, r, r)
        The same with a quarter for h.
    """

    slope: Float
    known: Float
    crossed: Float
    slope_of_factors: Float
    seen: Float
    bound: Float

    def __add__(self, other: "ItemSums") -> "ItemSums":
        return ItemSums(
            self.slope + other.slope,
            self.known + other.known,
            self.crossed + other.crossed,
            self.slope_of_factors + other.slope_of_factors,
            self.seen + other.seen,
            self.bound + other.bound,
        )


@dataclass(frozen=True)
class CrossedTasks:
    """Labels with the posteriors of their items.

    Attributes
    ----------
    labels : LabelTasks
        The labels; rows of features.
    item : array of shape (n_places,)
        The item of each place; the padding's is one past the last.
    items : Items
        Their posteriors.
    left_out : array of shape (n_places,), optional
        Labels that are left out of the likelihood.
    """

    labels: LabelTasks
    item: Index
    items: Items
    left_out: Bool | None = None

    @classmethod
    def of_annotations(
        cls, annotations: Annotations, coordinates: Coordinates, items: Items
    ) -> "CrossedTasks":
        """Group the labels by person, and keep which item each is about."""
        by_number = Rows.of_annotations(annotations, index=np.arange(len(annotations)))
        number = by_number.index
        rows = replace(by_number, index=annotations.feature_rows[number])
        item = np.append(annotations.item_codes[number], annotations.n_items)
        return cls(LabelTasks.of_rows(rows, coordinates), item, items)

    @classmethod
    def of_newcomers(
        cls, annotations: Annotations, coordinates: Coordinates, items: Items
    ) -> "CrossedTasks":
        """Take the labels of people not seen in training.

        The variance of an item lowers the information of its label: of h, as much is left as
        h / (1 + h variance).
        """
        if annotations.has_items:
            own = items.of(annotations.item_ids)
        else:
            own = items.nobody_knows(annotations.n_items)
        weight = 1.0 / (1.0 + BEND * own.doubt[annotations.item_codes])
        if annotations.weights is not None:
            weight = weight * annotations.weights
        return cls.of_annotations(annotations._with(weights=weight), coordinates, own)

    @property
    def n_people(self) -> int:
        """How many people have labels."""
        return self.labels.n_people

    @property
    def n_places(self) -> int:
        """One per label, and one for the padding."""
        return self.labels.n_places

    @property
    def n_bytes(self) -> int:
        """What all blocks together take."""
        size = self.labels.coordinates.size
        return self.labels.n_bytes * (size + self.items.n_factors) // max(size, 1)

    @property
    def plan(self) -> list[Index]:
        """The people of each block."""
        return self.labels.plan

    @cached_property
    def counts(self) -> Index:
        """How many labels each item has."""
        item = self.item[:-1] if self.left_out is None else self.item[~self.left_out]
        return np.bincount(item, minlength=len(self.items.effects) + 1)[: len(self.items.effects)]

    @cached_property
    def labelled(self) -> Bool:
        """Which items have labels."""
        return self.counts > 0

    def with_items(self, items: Items) -> "CrossedTasks":
        """Return the same labels, with other posteriors of the items."""
        new = replace(self, items=items)
        vars(new)["counts"] = self.counts
        vars(new)["labelled"] = self.labelled
        return new

    def sample(self, most: int) -> "CrossedTasks":
        """Return the labels of at most so many people, evenly spread."""
        labels = self.labels.sample(most)
        kept = np.isin(self.labels.rows.people, labels.rows.people)
        of_row = self.item[:-1][np.repeat(kept, self.labels.rows.counts)]
        return CrossedTasks(labels, np.append(of_row, self.item[-1]), self.items)

    def task(self, number: int) -> Task:
        """Return one block."""
        task = self.labels.task(number)
        item = self.item[task.places]
        task = replace(task, offset=np.append(self.items.effects, 0.0)[item])
        if self.left_out is not None:
            task = replace(task, weight=np.where(self.left_out[task.places], 0.0, task.weight))
        if not self.items.n_factors:
            return task
        r = self.items.n_factors
        factors = np.vstack([self.items.factors, np.zeros(r)])[item]
        per_label = np.vstack([self.items.unsure.reshape(-1, r * r), np.zeros(r * r)])[item]
        counted = self.items.share * BEND * task.weight[:, None, :]
        held = (counted @ per_label).reshape(-1, r, r)
        return replace(task, rows=np.concatenate([task.rows, factors], axis=2), held=held)


@dataclass(frozen=True)
class CrossedMoments(Moments):
    """Moments of the people's posteriors, and the sums by item."""

    sums: ItemSums

    def __add__(self, other: Moments) -> "CrossedMoments":
        assert isinstance(other, CrossedMoments)
        both = super().__add__(other)
        return CrossedMoments(**vars(both), sums=self.sums + other.sums)


def crossed_moments(
    tasks: CrossedTasks, prior: Prior, likelihood: Likelihood, pulls: Float, *, gain: float
) -> CrossedMoments:
    """Return what `posterior.moments` does, with the sums by item."""

    def visit(number: int) -> CrossedMoments:
        task = tasks.task(number)
        mode = find_mode(task, prior, likelihood, pulls[task.places], gain=gain)
        pulls[task.places] = mode.said.pull
        spread = mode.system.spread(mode.said.curvature)
        found = moments_of(mode, likelihood, spread)
        return _with_items(found, mode, spread, tasks, prior)

    return reduce(add, over_blocks(visit, tasks))


def _with_items(
    found: Moments, mode: Mode, spread: Spread, tasks: CrossedTasks, prior: Prior
) -> CrossedMoments:
    """Add a block's sums by item, and the effect of the items' variance on its moments."""
    curvature, system, items = mode.said.curvature, mode.system, tasks.items
    assert isinstance(curvature, Diagonal)
    h = curvature.root**2
    item = tasks.item[mode.task.places]
    with_scores = system.with_scores(spread, curvature)
    # People's means are not their modes: neither is the slope by what is added to their scores.
    moved = system.eta(system.shift(spread, curvature)) - system.offset
    pull = mode.said.pull - curvature.tilt(spread.variance) + h * moved
    by_item = _ByItem(item, len(items.effects))
    # The posterior variance of b_j adds to the people's: they share its items.
    weight = np.append(items.doubt, 0.0)[item] * h**2
    flat = with_scores.reshape(-1, with_scores.shape[2])
    shared = (flat * weight.reshape(-1, 1)).T @ flat
    r = items.n_factors
    sums = ItemSums(
        slope=by_item.sums(pull),
        known=by_item.sums(h * np.maximum(1.0 - spread.variance, 0.0)),
        crossed=by_item.sums_of_rows(h, with_scores),
        slope_of_factors=np.zeros((len(items.effects), r)),
        seen=np.zeros((len(items.effects), r, r)),
        bound=np.zeros((len(items.effects), r, r)),
    )
    if r:
        sums = _with_factors(sums, mode, spread, by_item, prior.root[-r:])
    values = vars(found) | {"second": found.second + shared}
    return CrossedMoments(**values, sums=sums)


def _with_factors(
    sums: ItemSums, mode: Mode, spread: Spread, by_item: "_ByItem", root: Float
) -> ItemSums:
    """Add a block's sums for the factors; ``root`` are the rows of L that make v of z."""
    curvature, system = mode.said.curvature, mode.system
    assert isinstance(curvature, Diagonal)
    h = curvature.root**2
    v = system.z(mode.state) @ root.T
    second = system.seen_along(spread, curvature, root.T) + v[:, :, None] * v[:, None, :]
    slope = by_item.sums_of_people(mode.said.pull, v)
    slope -= sums.crossed @ root.T
    return replace(
        sums,
        slope_of_factors=slope,
        seen=by_item.sums_of_people(h, second),
        bound=by_item.sums_of_people(BEND * mode.task.weight, second),
    )


class _ByItem:
    """Sums over the labels of a block, by item; ``item`` has shape (b, n)."""

    def __init__(self, item: Index, n_items: int) -> None:
        self._item = item.ravel()
        self._n_items = n_items
        self._n_people, self._n_rows = item.shape

    def sums(self, numbers: Float) -> Float:
        """Return sums of numbers, one per label."""
        total = np.bincount(self._item, weights=numbers.ravel(), minlength=self._n_items + 1)
        return np.asarray(total[:-1], dtype=np.float64)

    def sums_of_rows(self, weight: Float, rows: Float) -> Float:
        """Return weighted sums of rows, (b, n, p), one per label."""
        columns = np.arange(len(self._item))
        return self._summed(weight, columns, rows.reshape(len(columns), -1))

    def sums_of_people(self, weight: Float, numbers: Float) -> Float:
        """Return weighted sums of what people have, (b, ...), one weight per label."""
        columns = np.repeat(np.arange(self._n_people), self._n_rows)
        summed = self._summed(weight, columns, numbers.reshape(self._n_people, -1))
        return summed.reshape(-1, *numbers.shape[1:])

    def _summed(self, weight: Float, columns: Index, table: Float) -> Float:
        shape = (self._n_items + 1, len(table))
        matrix = sparse.csr_matrix((weight.ravel(), (self._item, columns)), shape=shape)
        return np.asarray(matrix @ table)[:-1]
