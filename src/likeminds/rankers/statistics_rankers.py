"""Base classes of rankers with a quadratic loss, which learn from statistics of rows."""

import warnings
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import iadd
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from likeminds._util.array_types import Bool, Float, IdArray, Index
from likeminds._util.map_reduce import Executor, SumTuple, UserBlock, in_order
from likeminds.components import Component
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.data.label_parsing import LabelReading
from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
from likeminds.losses import LOSSES, Loss, QuadraticLoss, as_loss
from likeminds.losses.statistics import AbstractStatistics, Form, Statistics
from likeminds.rankers.candidates import FromStatistics
from likeminds.rankers.ranker import Ranker, both_callbacks
from likeminds.rankers.training_checks import record_training, refuse_too_wide, warn_of_one_class
from likeminds.solvers import Solver
from likeminds.solvers.solver import Callback, Parts

if TYPE_CHECKING:
    from likeminds.rankers.training_data import SharedTable, TrainingData

# Statistics of at most this many bytes are merged, because passes over blocks take longer.
_MERGED_BYTES = 1 << 26


class StatisticsRanker(Ranker):
    """Base class of rankers that learn from statistics of rows.

    The weights are a sum of parts. Subclasses return the parts from ``_fit_loss``, and may set
    other fitted attributes in ``_set_parts``.
    """

    loss: str | Loss
    standardize: bool

    scale_: Float
    statistics_: Statistics | None
    group_: Float
    personal_: Float

    takes_updates = True
    _tuning = FromStatistics
    _takes_blocks = False  # whether statistics may stay in blocks
    _learned_from: ClassVar[str] = "statistics_"
    _nothing_to_add_to = (
        "This ranker has no statistics of its training data, because it was loaded from a file "
        "or fitted to many users on a cluster, so labels cannot be added. Fit it in one process, "
        "and save it with save(..., with_data=True)."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES)), Loss],
    }

    def _fit_more(self, more: Annotations) -> None:
        self._read_all()
        assert self.statistics_ is not None
        self._fit_statistics(self.statistics_.update(more))

    def _fit_annotations(self, annotations: Annotations) -> None:
        self.__dict__.pop("statistics_", None)  # remove statistics of an earlier fit
        graded = as_loss(self.loss).takes_grades
        self._fit_statistics(Statistics.from_annotations(annotations, graded=graded))

    def _fit_folder(self, folder: AnnotationFolder) -> None:
        """Fit to labels on disk, batch by batch if their statistics can be added."""
        if not folder.can_stream:
            super()._fit_folder(folder)
            return
        record_training(
            self, folder.feature_names, folder.reading, folder.verb, n_labels=len(folder)
        )
        self.__dict__.pop("statistics_", None)
        grades = folder.grades if as_loss(self.loss).takes_grades else None
        # Joining pieces takes three times their memory.
        batches, at_once = folder.batches(), folder.memory // 8
        self._fit_statistics(
            Statistics.from_batches(batches, folder.counts, grades, at_once=at_once)
        )

    def _learn_from(self, data: "TrainingData") -> None:
        """Fit to blocks of users; merge their statistics, unless they are too large."""
        self.__dict__.pop("statistics_", None)
        grades, table = data.counts.grades, data.table
        values = None if grades is None else grades.values
        how = as_loss(self.loss).takes_grades, values, table.reading
        blocks = data.rows.derive(_reduce_block, how)
        with_table = not table.per_item
        is_large = sum(blocks.map(_n_bytes, with_table)) > _MERGED_BYTES
        if is_large and self._takes_blocks:
            summary = StatisticsSummary.of(blocks, data.counts.user_ids)
            warn_of_one_class(summary.user_ids, summary.has_pairs)
            self._fit_blocks(summary, blocks)
        else:
            parts = list(blocks.map(_statistics_in, with_table))
            self._fit_statistics(join_statistics(parts, table))

    def _fit_statistics(self, statistics: Statistics) -> None:
        warn_of_one_class(statistics.user_ids, statistics.has_pairs)
        self._fit_blocks(statistics, UserBlock.of_all(statistics))
        self.statistics_ = statistics

    def _fit_blocks(
        self, summary: AbstractStatistics, blocks: Executor[UserBlock[Statistics]]
    ) -> None:
        """Fit to the statistics of users in blocks."""
        refuse_too_wide(type(self).__name__, summary.n_features)
        self.scale_ = self._scale_of(summary)
        loss = as_loss(self.loss).of_blocks(blocks, summary.n_users, self.scale_)
        parts = self._fit_loss(loss, summary)
        self.users_ = summary.user_ids
        self._set_parts(parts, summary.has_pairs)
        self._finalise(loss, summary, parts)

    def _measure(self, statistics: Statistics) -> QuadraticLoss:
        """Return the loss with features in units of ``scale_``."""
        refuse_too_wide(type(self).__name__, statistics.n_features)
        self.scale_ = self._scale_of(statistics)
        return as_loss(self.loss).of(statistics, self.scale_)

    def _scale_of(self, statistics: AbstractStatistics) -> Float:
        return statistics.feature_scale() if self.standardize else np.ones(statistics.n_features)

    def _fit_loss(self, loss: QuadraticLoss, summary: AbstractStatistics) -> Parts:
        """Return the parts that minimise the loss and the ranker's penalties."""
        raise NotImplementedError

    def _finalise(self, loss: QuadraticLoss, summary: AbstractStatistics, parts: Parts) -> None:
        """Set further attributes that depend on the parts; a subclass may override this."""

    def _set_parts(self, parts: Parts, has_pairs: Bool) -> None:
        """Set the fitted attributes, given parts in units of ``scale_``."""
        theta, G, P = (part / self.scale_ for part in parts)
        self.raw_consensus_, self.raw_group_, self.raw_personal_ = theta, G, P
        # Users without pairs get the consensus, so leave them out of the mean.
        mean_group = G[has_pairs].mean(axis=0)
        self.consensus_ = theta + mean_group
        self.group_ = np.where(has_pairs[:, None], G - mean_group, 0.0)
        self.personal_ = np.where(has_pairs[:, None], P, 0.0)
        self.coef_ = self.consensus_ + self.group_ + self.personal_


# Parameters are the fields of a dataclass. Its constructor stores them unchanged, as scikit-learn
# requires.
@dataclass(eq=False, repr=False, kw_only=True)
class IterativeRanker(StatisticsRanker):
    """Base class of rankers with an iterative solver."""

    loss: str | Loss = "auc"
    standardize: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    unknown: str = "error"
    user_column: int | str | None = None
    warm_start: bool = False
    callback: Callback | None = None
    verbose: bool = False

    _has_steps = True

    def _solve(
        self,
        solver: Solver,
        loss: QuadraticLoss,
        components: Sequence[Component],
        user_ids: IdArray,
    ) -> Parts:
        """Run a solver, from the last solution in a warm start or an update."""
        with both_callbacks(self, self.callback) as callback:
            solution = solver.solve(
                loss,
                components,
                start=self._last_parts(user_ids),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
        if solution.interrupted or not solution.converged:
            what, how = "Stopped", f" above tol={self.tol:g}. Increase max_iter or tol"
            if solution.interrupted:
                what, how = "Interrupted", ". The levels are the best so far"
            warnings.warn(
                f"{what} after {solution.n_iter} iterations, with an optimality residual of "
                f"{solution.residual:.1e}{how}.",
                ConvergenceWarning,
                stacklevel=7,
            )
        self.solution_ = solution
        self.objective_ = solution.objective
        self.objective_trace_ = solution.history.objective
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        return solution.parts

    def _fitted_parts(self) -> list[Float]:
        """Return the parts of the last fit, in the units of the features."""
        raise NotImplementedError

    def _last_parts(self, user_ids: IdArray) -> Parts | None:
        """Return the last solution for a warm start or an update (zeros for new users)."""
        there = vars(self)
        continued = self.warm_start or "statistics_" in there
        if not continued or "users_" not in there or self.coef_.shape[1] != len(self.scale_):
            return None
        where = lookup(user_ids, self.users_, "users")
        known = (where >= 0)[:, None]
        return tuple(
            (part if part.ndim == 1 else np.where(known, part[where], 0.0)) * self.scale_
            for part in self._fitted_parts()
        )


@dataclass(frozen=True)
class StatisticsSummary(AbstractStatistics):
    """A summary of statistics that stay in blocks of users."""

    user_ids: IdArray
    origin: Float
    class_weight: Float
    sums: SumTuple

    @classmethod
    def of(cls, blocks: Executor[UserBlock[Statistics]], user_ids: IdArray) -> Self:
        """Sum up the statistics of blocks with the same origin."""
        parts = list(blocks.map(_summarise, None))
        weight = in_order(((users, weight) for users, weight, _, _ in parts), len(user_ids))
        sums = reduce(iadd, (sums for _, _, sums, _ in parts))
        return cls(user_ids, parts[0][3], weight, sums)

    def feature_sums(self) -> SumTuple:
        """Return the sums over all blocks."""
        return self.sums


def _summarise(
    block: UserBlock[Statistics], *_unused: None
) -> tuple[Index | slice, Float, SumTuple, Float]:
    found = block.data
    return block.users, found.class_weight, found.feature_sums(), found.origin


def _reduce_block(
    block: UserBlock[Annotations] | UserBlock[Statistics],
    how: tuple[bool, Float | None, LabelReading | None],
) -> Executor[UserBlock[Statistics]]:
    """Reduce the rows of a block to statistics, by the grades of all blocks or by yes or no."""
    graded, grades, reading = how
    if isinstance(block.data, Annotations):
        found = Statistics.from_annotations(block.data, graded=graded)
        found = found if grades is None else found.with_grades(grades)
    else:
        found = block.data
        if found.grades is not None and not graded:
            assert reading is not None
            assert isinstance(reading.threshold, float)
            found = found.in_two_classes(found.grades > reading.threshold)
    return UserBlock.of_some(found, block.users)


def _n_bytes(block: UserBlock[Statistics], with_table: bool, _own: None) -> int:
    """Return the approximate size of statistics in bytes."""
    rows = block.data.rows
    table = rows.table.nbytes if with_table else 0
    return int(block.data.dense.scatter.nbytes + 17 * len(rows.index) + table)


def _statistics_in(block: UserBlock[Statistics], with_table: bool, _own: None) -> Statistics:
    return block.data if with_table else _without_table(block.data)


def statistics_of(rows: Annotations, graded: bool, form: Form = "auto") -> Statistics:
    """Reduce rows to statistics without the table of items, for sending."""
    return _without_table(Statistics.from_annotations(rows, form, graded=graded))


def _without_table(found: Statistics) -> Statistics:
    return replace(found, rows=replace(found.rows, table=found.rows.table[:0]))


def join_statistics(parts: Sequence[Statistics], table: "SharedTable") -> Statistics:
    """Merge statistics of blocks; rows point into the shared table of items, if any."""
    if table.per_item:
        parts = [replace(one, rows=replace(one.rows, table=table.features)) for one in parts]
    return Statistics.joined(parts)
