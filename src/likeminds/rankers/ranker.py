"""The base of all rankers: fit, update, score and rank, as scikit-learn's estimators do."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils.metaestimators import available_if

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_weights
from likeminds._util.console import report_progress
from likeminds._util.map_reduce import of_rows
from likeminds.data.annotations import Annotations
from likeminds.data.label_source import LabelSource
from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
from likeminds.losses.statistics import Statistics
from likeminds.metrics.concordance import mean_concordance
from likeminds.mixed_model.item_posteriors import ItemPosteriors, refuse_new_items
from likeminds.rankers import ranking, score_decomposition, similarity
from likeminds.rankers.candidates import Candidate, FromRows
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.rankers.item_table import summary_html
from likeminds.rankers.validation import (
    as_annotations,
    is_graded,
    item_ids_of,
    joint_reading,
    outcomes,
    record_update,
    refuse_extras,
    refuse_second_medians,
    rows_and_users,
    split_user_column,
)
from likeminds.solvers.solver import Callback

try:
    from sklearn import callback as _sklearn
except ImportError:  # before scikit-learn 1.9 there are none: the plain function still works
    _sklearn = None

CallbackSupport: Any = object if _sklearn is None else _sklearn.CallbackSupportMixin
Method = TypeVar("Method", bound=Callable[..., Any])

# Scores are computed in pieces of this many rows: weights are not copied for all rows.
_ROWS_AT_ONCE = 1 << 15


def with_callbacks(method: Method) -> Method:
    """Let scikit-learn's callbacks end with the method, however it ends."""
    if _sklearn is None:
        return method
    managed: Method = _sklearn.with_callbacks(method)
    return managed


class Ranker(ReadableModel, CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """Base of the rankers: one vector of weights per person.

    A subclass fits ``users_``, ``coef_`` and ``consensus_`` in ``_fit_annotations``.
    """

    _tuning: ClassVar[type[FromRows]] = FromRows
    # Whether fits report their steps themselves; those of others are reported as one step.
    _has_steps: ClassVar[bool] = False
    # Whether items may be known by their ids alone.
    _needs_no_features: ClassVar[bool] = False
    # Whether a fit is judged by its scores alone, and reports nothing.
    _is_trial: bool = False

    unknown: str
    user_column: int | str | None
    verbose: bool = False
    coef_: Float
    consensus_: Float
    factor_weights_: Float
    users_: IdArray
    classes_: NDArray[Any]
    fitted_on_annotations_: bool = False
    n_features_in_: int
    feature_names_in_: IdArray
    # The fitted attribute that `update` adds to, and the error where a model does not have it.
    _learned_from: ClassVar[str] = ""
    _nothing_to_add_to: ClassVar[str] = ""
    _interrupted: bool = False
    _positions: tuple[IdArray, Mapping[Hashable, int]]

    rank = ranking.rank
    rank_all = ranking.rank_all
    explain = score_decomposition.explain
    similar_users = similarity.similar_users
    similar_items = similarity.similar_items

    @property
    def rankers_(self) -> dict[str, Any]:  # type: ignore[override]
        """The ranker itself, by the name of its only attribute."""
        return {NAMELESS: self}

    @with_callbacks
    def fit(
        self,
        X: ArrayLike | Annotations | LabelSource["Ranker", object],
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Learn everybody's ranking.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, Annotations or LabelSource
            One row per label. With `Annotations`, leave out all other arguments; with an
            `AnnotationFolder` or `cluster.Shards`, labels need not fit in memory.
        y : array of shape (n_rows,)
            The labels, two values; the larger one is positive. More than two numbers are
            grades, where ``users`` say who gave them.
        users : array of shape (n_rows,), optional
            Who gave the label, as ids of any hashable kind. Without it, all rows are one
            person's (unless ``user_column`` names a column of X).
        sample_weight : array of shape (n_rows,), optional
            How much each label counts.

        Returns
        -------
        self
        """
        self._validate_params()
        shown = self.verbose and not self._has_steps
        with report_progress(shown, f"{type(self).__name__}, step") as tell:
            if isinstance(X, LabelSource):
                refuse_extras(y=y, users=users, sample_weight=sample_weight)
                X.fit_ranker(self)
            else:
                self._fit_annotations(as_annotations(self, X, y, users, sample_weight))
            tell(1, "solved")
        return self

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Score each row for its person: the higher, the more the item is to their liking.

        Scores order the items of one person; their zero means nothing, and those of two people
        are not comparable. Rows of features alone are scored as items nobody has labelled.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, or Annotations
            The items.
        users : array of shape (n_rows,), optional
            For whom each row is scored. Without it (and without ``user_column``), for the
            one person the ranker was fitted to, or for the consensus if there were several.
        items : array of shape (n_rows,), optional
            The id of each row's item, for rankers that know items by their ids. Rankers without
            features refuse items not seen in training, unless ``unknown="consensus"``.

        Returns
        -------
        array of shape (n_rows,)
        """
        rows, positions = rows_and_users(self, X, users)
        return self._scores(rows, positions, self._item_ids(X, items, rows))

    def _item_ids(
        self, X: Any, items: Iterable[Hashable] | None, rows: FloatArray
    ) -> IdArray | None:
        """Return the id of each row's item; refuse items of which nothing is known."""
        ids = item_ids_of(X, items, len(rows))
        self._refuse_new_items(ids)
        return ids

    def _refuse_new_items(self, ids: IdArray | None) -> None:
        """Refuse items that can only be scored as average, unless the caller asked for that."""
        known = self.scorable_ids()
        if self.unknown == "error" and known is not None:
            refuse_new_items(ids, known)

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of all items that have a score; None where features score any item."""
        known = self.item_posteriors()
        return None if known is None or len(self.feature_names_) else known.ids

    def item_posteriors_of(self, ids: IdArray) -> ItemPosteriors | None:
        """Return what was learned about some items; refuse items of which nothing is known."""
        self._refuse_new_items(ids)
        known = self.item_posteriors()
        return None if known is None else known.of(ids)

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        def score(some: slice) -> Float:
            weights = self._weights_of(users[some])
            return np.asarray(np.einsum("nd,nd->n", rows[some], weights))

        return of_rows(score, len(rows), _ROWS_AT_ONCE) + self.item_scores(items, users)

    def _weights_of(self, users: Index) -> Float:
        """Return the weights of people (-1: of all); who is not asked about is not read."""
        known = users >= 0
        if known.all():
            return self.coef_[users]
        # Not np.tile: without features it returns the consensus itself, read-only from a file.
        weights = np.repeat(self.consensus_[np.newaxis], len(users), axis=0)
        if known.any():
            weights[known] = self.coef_[users[known]]
        return weights

    @property
    def scores_by_weights(self) -> bool:
        """Whether scores are ``coef_`` times features, and what was learned about items."""
        return True

    def item_scores(self, items: IdArray | None, users: Index) -> Float | float:
        """Return what items add beyond features; zero where nobody says which they are."""
        known = self.item_posteriors()
        if items is None or known is None:
            return 0.0
        weights = np.zeros((len(users), known.n_factors))
        if known.n_factors:
            theirs = users >= 0
            weights[theirs] = self.factor_weights_[users[theirs]]
        return known.scores_of(items, weights)

    def consensus_scores(self, annotations: Annotations) -> Float:
        """Return scores by what all agree on; what they see in items is part of it."""
        items = item_ids_of(annotations, None, len(annotations))
        return np.asarray(
            self._best_model._scores(annotations.X, np.full(len(annotations), -1), items)
        )

    def item_posteriors(self) -> ItemPosteriors | None:
        """Return what was learned about items beyond their features; None for nothing."""
        return self.known_items_

    @property
    def item_effects_(self) -> bool:
        """Whether items have effects of their own."""
        return self.item_posteriors() is not None

    def score(
        self,
        X: ArrayLike | Annotations | LabelSource["Ranker", object],
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean over people of the AUC of their rows; of grades, of the concordance.

        People with labels of one kind only have no AUC and are left out of the mean.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.
        """
        if isinstance(X, LabelSource):
            refuse_extras(y=y, users=users, sample_weight=sample_weight)
            return X.score(self)
        scores = self.decision_function(X, users)
        if isinstance(X, Annotations):
            refuse_extras(y=y, users=users, sample_weight=sample_weight)
            joint_reading(self, X)
            return mean_concordance(X.outcomes, scores, X.users, X.weights)
        features, column = split_user_column(self, X)
        owners = column if users is None else users
        owners = np.zeros(len(scores), dtype=np.intp) if owners is None else owners
        graded = self.label_reading_ if is_graded(self) else None
        labels = outcomes(y, len(scores), self.classes_, graded)
        weights = as_weights(sample_weight, len(features))
        return mean_concordance(labels, scores, owners, weights)

    @available_if(lambda ranker: ranker.takes_updates)  # type: ignore[untyped-decorator]
    @with_callbacks
    def update(
        self,
        X: ArrayLike | Annotations | AnnotationFolder,
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
        if not self._fitted_names():
            return self.fit(X, y, users, sample_weight)
        if getattr(self, self._learned_from) is None:
            raise ValueError(self._nothing_to_add_to)
        self._validate_params()
        rows = X.annotations() if isinstance(X, AnnotationFolder) else X
        more = as_annotations(self, rows, y, users, sample_weight, reset=False)
        refuse_second_medians(self, more)
        self._fit_more(more)
        record_update(self, more)
        return self

    # The name that scikit-learn's tools call.
    partial_fit = update

    def _fit_more(self, more: Annotations) -> None:
        """Learn from the earlier labels and from more."""
        raise NotImplementedError

    def _fit_annotations(self, annotations: Annotations) -> None:
        raise NotImplementedError

    @property
    def has_default_grid(self) -> bool:
        """Whether a search has candidates where the caller gives none."""
        return type(self)._default_grid is not Ranker._default_grid

    def _default_grid(self, statistics: Statistics) -> list[Candidate] | None:  # noqa: ARG002
        """Return the candidates of a search; None where the caller has to give them."""
        return None

    def _fit_folder(self, folder: AnnotationFolder) -> None:
        """Fit to labels on disk: grouped by user, by default."""
        self._fit_annotations(as_annotations(self, folder.annotations()))

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_positions", None)
        return state

    def _repr_html_inner(self) -> str:
        """Return what was learned, above scikit-learn's diagram of the parameters."""
        return summary_html(self) + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = summary_html(self) + bundle["text/html"]
        return bundle

    def __sklearn_tags__(self) -> Tags:
        # Labels are two-valued, as a classifier's; but a ranker ranks, and predicts no label.
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags


@contextmanager
def both_callbacks(estimator: "Ranker", plain: Callback | None) -> Iterator[Callback | None]:
    """Yield one function that calls the plain callback, ``verbose``'s and scikit-learn's own."""
    shown = estimator.verbose and not estimator._is_trial
    watched = bool(getattr(estimator, "_skl_callbacks", None))
    if not (shown or watched):
        yield plain
        return
    context = estimator._init_callback_context(max_subtasks=None) if watched else None
    if context is not None:
        context.call_on_fit_task_begin(estimator=estimator)
    with report_progress(shown, f"{type(estimator).__name__}, step") as tell:

        def callback(number: int, objective: float, residual: float) -> bool:
            tell(number, f"objective {objective:.6g}")
            stop = False
            if context is not None:
                step = context.subcontext(task_name=f"step {number}")
                step.call_on_fit_task_begin(estimator=estimator)
                stop = bool(step.call_on_fit_task_end(estimator=estimator))
            return stop or bool(plain and plain(number, objective, residual))

        yield callback
    if context is not None:
        context.call_on_fit_task_end(estimator=estimator)
