"""The base class of rankers: fit, update, score and rank, as scikit-learn estimators."""

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.utils import ClassifierTags, Tags
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.metaestimators import available_if

from likeminds._util.array_types import Float, FloatArray, IdArray, Index
from likeminds._util.checks import as_weights
from likeminds._util.console import report_progress
from likeminds._util.map_reduce import of_rows
from likeminds.data.annotations import Annotations, LabelSource
from likeminds.data.out_of_core.annotation_folder import AnnotationFolder
from likeminds.losses.statistics import Statistics
from likeminds.metrics.concordance import mean_concordance
from likeminds.mixed_model.gaussian_prior import ItemPosteriors, refuse_new_items
from likeminds.rankers import item_table, ranking, score_decomposition
from likeminds.rankers.candidates import Candidate, FromRows
from likeminds.rankers.capabilities import NAMELESS, ReadableModel
from likeminds.rankers.training_checks import (
    as_annotations,
    record_update,
    refuse_extras,
    refuse_second_medians,
)
from likeminds.rankers.validation import (
    is_graded,
    item_ids_of,
    joint_reading,
    outcomes,
    rows_and_users,
    split_user_column,
)
from likeminds.solvers.solver import Callback

if TYPE_CHECKING:
    from likeminds.rankers.training_data import TrainingData

try:
    from sklearn import callback as _sklearn
except ImportError:  # before scikit-learn 1.9 only the plain function works
    _sklearn = None

CallbackSupport: Any = object if _sklearn is None else _sklearn.CallbackSupportMixin
Method = TypeVar("Method", bound=Callable[..., Any])
# Callbacks of scikit-learn end with the decorated method, also after an error.
with_callbacks: Callable[[Method], Method] = getattr(
    _sklearn, "with_callbacks", lambda method: method
)
# Scores are computed in pieces of this many rows, so weights are not copied for all rows.
_ROWS_AT_ONCE = 1 << 15


@contextmanager
def both_callbacks(ranker: "Ranker", plain: Callback | None) -> Iterator[Callback | None]:
    """Yield a function that calls the plain callback, the progress report and scikit-learn's."""
    shown = ranker.verbose and not ranker._is_trial
    watched = bool(vars(ranker).get("_skl_callbacks"))
    if not (shown or watched):
        yield plain
        return
    context = None
    if watched:
        context = ranker._init_callback_context(max_subtasks=None)
        context.call_on_fit_task_begin(estimator=ranker)
    with report_progress(shown, f"{type(ranker).__name__}, step") as tell:

        def callback(number: int, objective: float, residual: float) -> bool:
            tell(number, f"objective {objective:.6g}")
            stop = False
            if context is not None:
                step = context.subcontext(task_name=f"step {number}")
                step.call_on_fit_task_begin(estimator=ranker)
                stop = bool(step.call_on_fit_task_end(estimator=ranker))
            return stop or bool(plain and plain(number, objective, residual))

        yield callback
    if context is not None:
        context.call_on_fit_task_end(estimator=ranker)


class Ranker(ReadableModel, CallbackSupport, BaseEstimator):  # type: ignore[misc]
    """Base class of rankers, with one vector of weights per user.

    A subclass fits ``users_``, ``coef_`` and ``consensus_`` in ``_fit_annotations``.
    """

    _tuning: ClassVar[type[FromRows[Any]]] = FromRows
    _has_steps: ClassVar[bool] = False  # otherwise `fit` is reported as one step
    _needs_no_features: ClassVar[bool] = False
    _is_trial: bool = False  # a fit of a search, without progress reports

    # The default candidates of a search, strongest penalties first; () for no search.
    _grid: ClassVar[Sequence[Candidate] | None] = None
    # Constraints of shared parameters; subclasses add constraints.
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "verbose": ["boolean"],
    }

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
    # The fitted attribute that `update` extends, and the error for models without it.
    _learned_from: ClassVar[str] = "annotations_"
    _nothing_to_add_to: ClassVar[str] = ""
    _interrupted: bool = False
    _positions: tuple[IdArray, Mapping[Hashable, int]]

    rank = ranking.rank
    rank_all = ranking.rank_all
    explain = score_decomposition.explain
    similar_users = item_table.similar_users
    similar_items = item_table.similar_items

    def __init_subclass__(cls, **arguments: Any) -> None:
        super().__init_subclass__(**arguments)
        own = cls.__dict__.get("_parameter_constraints", {})
        cls._parameter_constraints = super(cls, cls)._parameter_constraints | own

    @property
    def rankers_(self) -> dict[str, Any]:  # type: ignore[override]
        """The ranker itself, under the empty attribute name."""
        return {NAMELESS: self}

    @with_callbacks
    def fit(
        self,
        X: ArrayLike | Annotations | LabelSource["Ranker", object],
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Fit the ranking functions of all users.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, Annotations or LabelSource
            One row per label. With `Annotations`, leave out all other arguments; with an
            `AnnotationFolder` or `cluster.Shards`, labels need not fit in memory.
        y : array of shape (n_rows,)
            Two values, the larger one positive. With ``users``, more than two numbers are grades.
        users : array of shape (n_rows,), optional
            The user of each label. Without it or ``user_column``, all rows belong to one user.
        sample_weight : array of shape (n_rows,), optional
            The weight of each label.

        Returns
        -------
        self
        """
        self._validate_params()
        name, shown = type(self).__name__, self.verbose and not self._has_steps
        with report_progress(True, f"{name}, step") if shown else nullcontext() as tell:
            if isinstance(X, LabelSource):
                refuse_extras(y=y, users=users, sample_weight=sample_weight)
                X.fit_ranker(self)
            else:
                self._fit_annotations(as_annotations(self, X, y, users, sample_weight))
            if tell is not None:
                tell(1, "solved")
        return self

    def decision_function(
        self,
        X: ArrayLike | Annotations,
        users: Iterable[Hashable] | None = None,
        items: Iterable[Hashable] | None = None,
    ) -> Float:
        """Score each row for its user; higher scores rank higher.

        Scores order the items of one user; scores of different users are not comparable. Without
        ids, rows are scored as items without labels.

        Parameters
        ----------
        X : array of shape (n_rows, n_features), data frame, or Annotations
            The items.
        users : array of shape (n_rows,), optional
            The user of each row; by default the only training user, or else the consensus.
        items : array of shape (n_rows,), optional
            The id of each row's item, for rankers with item effects.

        Returns
        -------
        array of shape (n_rows,)
        """
        rows, positions = rows_and_users(self, X, users)
        return self._scores(rows, positions, self._item_ids(X, items, rows))

    def _item_ids(
        self, X: Any, items: Iterable[Hashable] | None, rows: FloatArray
    ) -> IdArray | None:
        """Return the id of each row's item; raise an error for items without a score."""
        ids = item_ids_of(X, items, len(rows))
        self._refuse_new_items(ids)
        return ids

    def _refuse_new_items(self, ids: IdArray | None) -> None:
        """Raise an error for items without a score, if ``unknown="error"``."""
        scorable = self.scorable_ids()
        if self.unknown == "error" and scorable is not None:
            refuse_new_items(ids, scorable)

    def scorable_ids(self) -> IdArray | None:
        """Return the ids of all scorable items; None if features score any item."""
        items = self.item_posteriors()
        return None if items is None or len(self.feature_names_) else items.ids

    def item_posteriors_of(self, ids: IdArray) -> ItemPosteriors | None:
        """Return the posteriors of some items; raise an error for items without a score."""
        self._refuse_new_items(ids)
        items = self.item_posteriors()
        return None if items is None else items.of(ids)

    def _scores(self, rows: FloatArray, users: Index, items: IdArray | None) -> Float:
        def score(some: slice) -> Float:
            return np.asarray(np.einsum("nd,nd->n", rows[some], self._weights_of(users[some])))

        return of_rows(score, len(rows), _ROWS_AT_ONCE) + self.item_scores(items, users)

    def _weights_of(self, users: Index) -> Float:
        """Return the weights of users (-1: consensus), without reading other users."""
        in_training = users >= 0
        if in_training.all():
            return self.coef_[users]
        # np.tile would return the read-only consensus itself if there are no features.
        weights = np.repeat(self.consensus_[np.newaxis], len(users), axis=0)
        if in_training.any():
            weights[in_training] = self.coef_[users[in_training]]
        return weights

    @property
    def scores_by_weights(self) -> bool:
        """Whether scores are ``coef_`` times features, plus item effects."""
        return True

    def item_scores(self, items: IdArray | None, users: Index) -> Float | float:
        """Return scores by item effects and factors; zero without item ids."""
        posteriors = self.item_posteriors()
        if items is None or posteriors is None:
            return 0.0
        weights = np.zeros((len(users), posteriors.n_factors))
        if posteriors.n_factors:
            in_training = users >= 0
            weights[in_training] = self.factor_weights_[users[in_training]]
        return posteriors.scores_of(items, weights)

    def consensus_scores(self, annotations: Annotations) -> Float:
        """Return consensus scores, with item effects."""
        n_rows = len(annotations)
        items, nobody = item_ids_of(annotations, None, n_rows), np.full(n_rows, -1)
        return np.asarray(self._best_model._scores(annotations.X, nobody, items))

    def item_posteriors(self) -> ItemPosteriors | None:
        """Return the posteriors of item effects; None without item effects."""
        return self.known_items_

    @property
    def item_effects_(self) -> bool:
        """Whether the model has item effects."""
        return self.item_posteriors() is not None

    def score(
        self,
        X: ArrayLike | Annotations | LabelSource["Ranker", object],
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> float:
        """Return the mean AUC over users with both classes; for grades, the mean concordance.

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
        """Add labels, of known or new users, to the training data; the first call fits.

        The result equals a fit to all labels at once.

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

    partial_fit = update  # the name in scikit-learn

    def _fit_more(self, more: Annotations) -> None:
        """Fit the ranker to its training data and more labels."""
        assert self.annotations_ is not None
        self._fit_annotations(self.annotations_.concat(more))

    def _fit_annotations(self, annotations: Annotations) -> None:
        raise NotImplementedError

    def _learn_from(self, data: "TrainingData") -> None:  # noqa: ARG002
        raise TypeError(
            f"{type(self).__name__} cannot be fitted on a cluster. Use HierarchicalRanker, or a "
            "ranker that learns from statistics, such as ThreeLevelRanker."
        )

    def _default_grid(self, statistics: Statistics) -> list[Candidate] | None:  # noqa: ARG002
        """Return the default candidates of a search, if any."""
        return None if self._grid is None else list(self._grid)

    def _fit_folder(self, folder: AnnotationFolder) -> None:
        self._fit_annotations(as_annotations(self, folder.annotations()))

    def __getstate__(self) -> Any:
        state = super().__getstate__()
        state.pop("_positions", None)
        return state

    def _repr_html_inner(self) -> str:
        """Return facts about the fit, followed by scikit-learn's diagram of parameters."""
        return item_table.summary_html(self) + str(super()._repr_html_inner())

    def _repr_mimebundle_(self, **options: Any) -> dict[str, str]:
        bundle: dict[str, str] = super()._repr_mimebundle_(**options)
        if "text/html" in bundle:
            bundle["text/html"] = item_table.summary_html(self) + bundle["text/html"]
        return bundle

    def __sklearn_tags__(self) -> Tags:
        # Labels are binary, as of a classifier, but rankers predict scores.
        tags: Tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        tags.classifier_tags = ClassifierTags(multi_class=False)
        return tags
