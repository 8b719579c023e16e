"""Base classes of the rankers that take more labels, and of those with a quadratic loss."""

import warnings
from collections.abc import Hashable, Iterable
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import StrOptions

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds._util.checks import listing
from likeminds._util.map_reduce import Executor, UserBlock
from likeminds._util.text_format import counted
from likeminds.components import Component
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
from likeminds.losses import LOSSES, Loss, QuadraticLoss, as_loss
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.rankers.callbacks import both_callbacks, with_callbacks
from likeminds.rankers.candidates.folds import FromStatistics
from likeminds.rankers.label_validation import as_annotations, note_more, places_of
from likeminds.rankers.ranker import Ranker
from likeminds.solvers import Solution, Solver
from likeminds.solvers.solver import Callback, Parts


class UpdatableRanker(Ranker):
    """Base of the rankers that take more labels later.

    A subclass says what it keeps of those it has learned from, and adds to it in ``_fit_more``.
    """

    _learned_from: ClassVar[str]
    _nothing_to_add_to: ClassVar[str]

    @with_callbacks
    def update(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add labels, of people known or new, to those seen before.

        The result is that of fitting everything at once; where rows merge into statistics, no
        row is touched twice and the solver starts from where it was. The first call is a `fit`.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.

        Returns
        -------
        self

        Examples
        --------
        >>> from likeminds import ThreeLevelRanker, load_electricity
        >>> households = load_electricity()
        >>> ranker = ThreeLevelRanker().fit(households[:8000])
        >>> len(ranker.update(households[8000:]).users_)
        361
        """
        self._refuse_to_grow()
        if not hasattr(self, "users_"):
            return self.fit(X, y, users, sample_weight)
        if not hasattr(self, self._learned_from):
            raise ValueError(self._nothing_to_add_to)
        self._validate_params()
        more = as_annotations(self, X, y, users, sample_weight, reset=False)
        self._refuse_second_medians(more)
        self._fit_more(more)
        note_more(self, more)
        return self

    # The name that scikit-learn's tools call.
    partial_fit = update

    def _refuse_to_grow(self) -> None:
        """Refuse more labels, where a ranker takes none after all: by default it does."""

    def _refuse_second_medians(self, more: Annotations) -> None:
        """Refuse ratings above a median by people whose other ratings are not known any more."""
        reading = getattr(self, "label_reading_", None)
        if reading is None or reading.threshold != "median":
            return
        known = more.user_ids[places_of(self, more.user_ids) >= 0]
        if known.size:
            raise ValueError(
                "Labels were read as ratings above a person's own median, which is another one "
                f"with more ratings: those of {listing(known)} cannot be added. Fit all ratings "
                "at once."
            )

    def _fit_more(self, more: Annotations) -> None:
        """Learn from the earlier labels and from more."""
        raise NotImplementedError


class StatisticsRanker(UpdatableRanker):
    """Base of the rankers that see the rows once, as statistics.

    The weights are a sum of parts, which a solver finds, given the list of components of a
    subclass (or which the subclass finds itself, in ``_fit_loss``). The parts are those of
    three levels, consensus + group + personal, or what a subclass makes of them in ``_set_parts``.
    """

    loss: str | Loss
    standardize: bool
    tol: float
    max_iter: int
    warm_start: bool
    callback: Callback | None

    scale_: Float
    statistics_: Statistics
    group_: Float
    personal_: Float

    _tuning = FromStatistics
    _has_steps = True
    _learned_from = "statistics_"
    _nothing_to_add_to = (
        "This ranker does not have the statistics of its training data, since it was read from a "
        "file, or fitted to many people on a cluster: more labels cannot be added to it. They can "
        "where it was fitted in one process, and saved with save(..., with_data=True)."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": [StrOptions(set(LOSSES)), Loss],
        "standardize": ["boolean"],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
    }

    def _fit_more(self, more: Annotations) -> None:
        self._fit_statistics(self.statistics_.update(more))

    def _fit_annotations(self, annotations: Annotations | AnnotationFolder) -> None:
        self.__dict__.pop("statistics_", None)  # a fit starts afresh
        self._fit_statistics(self._reduce(annotations))

    def _in_reach(self, folder: AnnotationFolder) -> Annotations | AnnotationFolder:
        """Return labels on disk as they are, where statistics of pieces of them add up."""
        return folder if folder.can_stream else folder.annotations()

    def _reduce(self, said: Annotations | AnnotationFolder) -> Statistics:
        graded = as_loss(self.loss).takes_grades
        if isinstance(said, Annotations):
            return Statistics.from_annotations(said, graded=graded)
        grades = said.grades if graded else None
        # Putting pieces together takes three times what they have.
        at_once = said.memory // 8
        return Statistics.from_batches(said.batches(), said.counts, grades, at_once=at_once)

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
        self._fit_newcomer_prior(loss, summary, parts)

    def _measure(self, statistics: Statistics) -> QuadraticLoss:
        """Return the loss in the units chosen."""
        self.scale_ = self._scale_of(statistics)
        return as_loss(self.loss).of(statistics, self.scale_)

    def _scale_of(self, statistics: AbstractStatistics) -> Float:
        return statistics.feature_scale() if self.standardize else np.ones(statistics.n_features)

    def _fit_loss(self, loss: QuadraticLoss, statistics: AbstractStatistics) -> Parts:
        """Return the parts that minimise the loss and the ranker's penalties."""
        return self._note(self._solve(loss, statistics))

    def _note(self, solution: Solution) -> Parts:
        """Keep what a solver has found, and return the parts; warn if it is not the minimum."""
        if solution.interrupted:
            warnings.warn(
                f"Interrupted after {solution.n_iter} iterations: these are the best levels so "
                f"far, with an optimality residual of {solution.residual:.1e}.",
                ConvergenceWarning,
                stacklevel=7,
            )
        elif not solution.converged:
            warnings.warn(
                f"Stopped after {solution.n_iter} iterations with an optimality residual of "
                f"{solution.residual:.1e}, above tol={self.tol:g}. Increase max_iter or tol.",
                ConvergenceWarning,
                stacklevel=7,
            )
        self.solution_ = solution
        self.objective_ = solution.objective
        self.objective_trace_ = solution.history.objective
        self.n_iter_ = solution.n_iter
        self.converged_ = solution.converged
        return solution.parts

    def _set_parts(self, parts: Parts, has_pairs: Bool) -> None:
        """Make the fitted attributes of the parts, which are in units of ``scale_``."""
        theta, G, P = (part / self.scale_ for part in parts)
        self.raw_consensus_, self.raw_group_, self.raw_personal_ = theta, G, P
        # People without pairs have no loss and get the consensus: they are not part of the
        # mean, and their own deviation is zero.
        mean_group = G[has_pairs].mean(axis=0)
        self.consensus_ = theta + mean_group
        self.group_ = np.where(has_pairs[:, None], G - mean_group, 0.0)
        self.personal_ = np.where(has_pairs[:, None], P, 0.0)
        self.coef_ = self.consensus_ + self.group_ + self.personal_

    def _fit_newcomer_prior(
        self, loss: QuadraticLoss, statistics: AbstractStatistics, parts: Parts
    ) -> None:
        """Learn from the solution what is needed later, beside the parts: by default nothing."""

    def _solve(self, loss: Any, statistics: Any) -> Solution:
        # Of whatever kind the solver and the components of a subclass take.
        with both_callbacks(self, self.callback) as callback:
            return self._solver().solve(
                loss,
                self._components(loss, statistics),
                start=self._last_parts(statistics.user_ids),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )

    def _solver(self) -> Solver:
        raise NotImplementedError

    def _components(self, loss: QuadraticLoss, statistics: AbstractStatistics) -> list[Component]:
        raise NotImplementedError

    def _fitted_parts(self) -> list[Float]:
        """Return the parts of the last fit, in the units of the features."""
        raise NotImplementedError

    def _last_parts(self, user_ids: IdArray) -> Parts | None:
        """Return the last solution, if it is to be continued (zero for new people)."""
        continued = self.warm_start or hasattr(self, "statistics_")
        if not continued or not hasattr(self, "users_"):
            return None
        if self.coef_.shape[1] != len(self.scale_):
            return None
        where = lookup(user_ids, self.users_, "users")
        known = (where >= 0)[:, None]
        return tuple(
            (part if part.ndim == 1 else np.where(known, part[where], 0.0)) * self.scale_
            for part in self._fitted_parts()
        )


# A matrix of features x features may take this much; solvers hold several.
_MOST_BYTES = 1 << 31
# Of more features than this, what they take is said before; and about how many matrices they hold.
_MANY, _MATRICES = 1024, 8


def refuse_too_wide(ranker: str, n_features: int) -> None:
    """Say what solvers need before they ask for it: matrices of features x features."""
    needed = 8 * n_features**2
    if n_features > _MANY and needed <= _MOST_BYTES:
        warnings.warn(
            f"{ranker} works with matrices of features x features: with {n_features:,} features "
            f"they take about {_MATRICES * needed / (1 << 30):.1f} GiB, and a step as long as "
            "their products. Reduce the features first (likeminds.features.Reduce), or use "
            "HierarchicalRanker, which works in the space of the labels.",
            UserWarning,
            stacklevel=7,
        )
    if needed > _MOST_BYTES:
        raise ValueError(
            f"{ranker} works with matrices of features x features, and one for {n_features} "
            f"features takes {needed / (1 << 30):.0f} GiB. Reduce the features first "
            "(likeminds.features.Reduce), or use HierarchicalRanker, which works in the space of "
            "the labels."
        )


def warn_of_one_class(user_ids: IdArray, has_pairs: Bool) -> None:
    """Name the people who have no pair to rank; refuse where nobody has one."""
    if not has_pairs.any():
        raise ValueError(
            "Everybody's labels are of one class, so there is no pair to rank: a ranker "
            "needs at least one person with a positive and a negative label."
        )
    if not has_pairs.all():
        people = user_ids[~has_pairs]
        warnings.warn(
            f"The labels of {counted(len(people), 'person', 'people')} are of one class only, "
            f"which says nothing about a ranking; they get the consensus: {listing(people)}.",
            UserWarning,
            stacklevel=5,
        )
