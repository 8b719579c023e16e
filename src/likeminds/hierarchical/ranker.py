"""The ranker with nothing to tune: people are draws from a prior that the crowd teaches."""

import warnings
from collections.abc import Hashable, Iterable
from numbers import Integral, Real
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likeminds._callbacks import both_callbacks, with_callbacks
from likeminds._fitting import _warn_of_one_class
from likeminds._ranker import Ranker
from likeminds.annotations import Annotations
from likeminds.hierarchical.beliefs import Beliefs, posterior_of
from likeminds.hierarchical.coordinates import Coordinates
from likeminds.hierarchical.learning import Learned, learn
from likeminds.hierarchical.likelihoods import Likelihood, Logistic, Regression
from likeminds.hierarchical.prior import Prior
from likeminds.hierarchical.tasks import AucTasks, LabelTasks, Tasks
from likeminds.rows import Float, Index, has_both_classes
from likeminds.solvers.base import Callback


class HierarchicalRanker(Ranker):
    """One ranking function per person, drawn from a prior that is learned from the crowd.

    Everybody's weights are W_i ~ N(theta, Omega), where Omega has a few leading directions and
    an equal residual in all others. theta, Omega, the number of directions, and how much the
    consensus is held back are learned by maximising the marginal likelihood of the labels
    (Laplace approximation; exact for ``loss="auc"``): there is nothing to tune. What a person's
    labels say is weighed against what the crowd is like, and the result comes with its
    uncertainty. A keyboard interrupt keeps the best prior found so far.

    Parameters
    ----------
    n_groups : int or "auto", default="auto"
        How many leading directions Omega has. "auto" adds one after the other while Akaike's
        criterion improves: what the labels of other people like these would cost.
    loss : {"logistic", "auc"}, default="logistic"
        "logistic": each label is a logistic regression with an intercept per person; people
        with labels of one class teach, too. "auc": the squared AUC loss of `ThreeLevelRanker`,
        as a regression whose precision is learned.
    standardize : bool, default=True
        Give all features unit variance first (undone in the coefficients).
    covariance_rank : int, default=16
        How many directions of each person's posterior covariance are kept: those the labels
        say most about. In the others, the prior's variance stands.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    max_iter : int, default=500
        Stop after this many steps in any case (with a warning).
    unknown : {"consensus", "error"}, default="consensus"
        What people get who were not seen in training.
    user_column : int or str, optional
        The column of X that says who gave the label, as in `ThreeLevelRanker`.
    callback : callable, optional
        Called as ``callback(step, objective, residual)`` after each step of the last descent;
        to return True is to stop.

    Attributes
    ----------
    users_, coef_, consensus_, group_, personal_, scale_, classes_, feature_names_
        As in `ThreeLevelRanker`: ``coef_ = consensus_ + group_ + personal_``. The group level
        is the part of a person's deviation in the leading directions, the personal level is
        the rest.
    intercept_ : array of shape (n_people,)
        What makes scores log-odds of a positive label (zeros for ``loss="auc"``).
    n_groups_ : int
        The number of leading directions.
    directions_ : array of shape (n_groups_, n_features)
        These directions, as weights of the features; strongest first.
    explained_ : dict
        The share of the disagreement about items (the variance of scores between people) that
        the "group" and the "personal" level explain.
    criterion_ : array
        Akaike's criterion, halved, by number of directions tried, from none.
    objective_, objective_trace_ : float, array
        Minus the log marginal likelihood, at the end and by step of the last descent.
    n_iter_, converged_ : int, bool
        Steps of the last descent, and whether it ended by ``tol``.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity, split_within_people
    >>> train, test = split_within_people(load_electricity(), random_state=0)
    >>> ranker = HierarchicalRanker().fit(train)
    >>> ranker.score(test) > 0.84
    True
    >>> sorted(ranker.explained_)
    ['group', 'personal']
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_groups": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"logistic", "auc"})],
        "standardize": ["boolean"],
        "covariance_rank": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "callback": [callable, None],
    }

    def __init__(
        self,
        n_groups: int | str = "auto",
        loss: str = "logistic",
        *,
        standardize: bool = True,
        covariance_rank: int = 16,
        tol: float = 1e-5,
        max_iter: int = 500,
        unknown: str = "consensus",
        user_column: int | str | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_groups = n_groups
        self.loss = loss
        self.standardize = standardize
        self.covariance_rank = covariance_rank
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.callback = callback

    @with_callbacks
    def partial_fit(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Add labels, of people known or new, and learn from all of them; the first is a `fit`.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.

        Returns
        -------
        self
        """
        if not hasattr(self, "users_"):
            return self.fit(X, y, users, sample_weight)
        if not hasattr(self, "annotations_"):
            raise ValueError(
                "This ranker was read from a file, which does not hold its training data: more "
                "labels cannot be added to it. `newcomer` needs none of it."
            )
        self._validate_params()
        more = self._as_annotations(X, y, users, sample_weight, reset=False)
        self._fit_annotations(self.annotations_.concat(more))
        return self

    def update(self, annotations: Annotations) -> Self:
        """Add annotations to those seen before: `partial_fit` by another name."""
        return self.partial_fit(annotations)

    def newcomer(
        self,
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Beliefs:
        """Return what labels say about people, given the crowd; nothing is learned anew.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`: the labels of one person, or of several with ``users``.

        Returns
        -------
        Beliefs
            Weights, scores, standard errors, and which items to ask about next.

        Examples
        --------
        >>> from likeminds import HierarchicalRanker, load_electricity
        >>> households = load_electricity()
        >>> ranker = HierarchicalRanker(n_groups=1).fit(households)
        >>> new = ranker.newcomer(households.X[:4], households.labels[:4])
        >>> new.next_items(households.X[4:40], n=2).shape
        (2,)
        """
        check_is_fitted(self)
        said = self._as_annotations(X, y, users, sample_weight, reset=False)
        known = self._beliefs()
        tasks = self._tasks(said, known.coordinates)
        points, information = posterior_of(
            tasks,
            said.n_people,
            known.prior,
            known.likelihood,
            pulls=np.zeros(tasks.n_places),
            rank=self.covariance_rank,
        )
        return Beliefs(
            said.user_ids, points, information, known.coordinates, known.prior, known.likelihood
        )

    def standard_error(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the standard error of each row's score, as seen from the average item's.

        Parameters
        ----------
        X, users
            As in `decision_function`. People not seen in training are as uncertain as the
            prior.

        Returns
        -------
        array of shape (n_rows,)
        """
        rows, people = self._rows_and_people(X, users)
        beliefs = self._beliefs()
        return beliefs.deviation(rows - beliefs.coordinates.origin, people)

    def probability_above(
        self, a: ArrayLike, b: ArrayLike, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability that item ``a`` of each row ranks above item ``b``.

        Parameters
        ----------
        a, b : arrays of shape (n_rows, n_features)
            The items.
        users : array of shape (n_rows,), optional
            For whom, as in `decision_function`.

        Returns
        -------
        array of shape (n_rows,)

        Examples
        --------
        >>> from likeminds import HierarchicalRanker, load_electricity
        >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
        >>> cheap, dear = [[7.0, 1, 1, 0, 0, 0]], [[9.0, 1, 1, 0, 0, 0]]
        >>> bool(ranker.probability_above(cheap, dear, ["household-001"])[0] > 0.5)
        True
        """
        first, people = self._rows_and_people(a, users)
        second, _ = self._rows_and_people(b, users)
        if first.shape != second.shape:
            raise ValueError(f"a has shape {first.shape}, but b has shape {second.shape}.")
        return self._beliefs().chance_above(first - second, people)

    def rank_interval(
        self, items: ArrayLike, user: Hashable, level: float = 0.9
    ) -> tuple[Index, Index]:
        """Return the lowest and the highest rank that each item may have for a person.

        Parameters
        ----------
        items : array of shape (n_items, n_features)
            What is ranked.
        user : id
            For whom.
        level : float, default=0.9
            The probability that an item's rank lies in its interval.

        Returns
        -------
        low, high : arrays of shape (n_items,)
            Ranks; 1 is best.
        """
        rows, people = self._rows_and_people(items, [user] * len(np.asarray(items)))
        return self._beliefs().ranks(rows, int(people[0]), level)

    def next_items(self, items: ArrayLike, user: Hashable, n: int = 1) -> Index:
        """Return which items to ask a person about next: those that tell most about the ranking.

        Parameters
        ----------
        items : array of shape (n_items, n_features)
            What can be asked about.
        user : id
            Whom to ask; of somebody new, only the prior is known. With labels at hand, use
            ``newcomer(X, y).next_items(items)``.
        n : int, default=1
            How many.

        Returns
        -------
        array of shape (n,)
            Positions among the items, the most telling first.
        """
        rows, people = self._rows_and_people(items, [user] * len(np.asarray(items)))
        return self._beliefs().most_telling(rows, int(people[0]), n)

    def _fit_annotations(self, annotations: Annotations) -> None:
        self._check_classes(annotations)
        logistic = self.loss == "logistic"
        coordinates = Coordinates.of_annotations(
            annotations, standardize=self.standardize, intercept=logistic
        )
        tasks = self._tasks(annotations, coordinates)
        with both_callbacks(self, self.callback) as callback:
            learned = learn(
                tasks,
                coordinates.n_weights,
                coordinates.size,
                self._asked_groups(coordinates.n_weights),
                logistic=logistic,
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
        self._warn_if_unfinished(learned)
        model = learned.model
        points, self.information_ = posterior_of(
            tasks,
            annotations.n_people,
            model.prior,
            model.likelihood,
            pulls=learned.pulls,
            rank=self.covariance_rank,
        )
        self.users_ = annotations.user_ids
        self.annotations_ = annotations
        self._set_prior(learned, coordinates)
        self._set_levels(points, model.prior, coordinates)

    def _tasks(self, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        labels = LabelTasks.of_annotations(annotations, coordinates)
        return labels if self.loss == "logistic" else AucTasks(labels)

    def _check_classes(self, annotations: Annotations) -> None:
        counted = annotations.labels
        if annotations.weights is not None:
            counted = counted[annotations.weights > 0]
        if counted.all() or not counted.any():
            raise ValueError(
                "Everybody's labels are of one class, so there is nothing to rank by: a ranker "
                "needs positive and negative labels."
            )
        if self.loss == "auc":
            weight = np.zeros((annotations.n_people, 2))
            np.add.at(
                weight,
                (annotations.user_codes, annotations.labels.astype(np.intp)),
                1.0 if annotations.weights is None else annotations.weights,
            )
            _warn_of_one_class(annotations.user_ids, has_both_classes(weight))

    def _asked_groups(self, n_weights: int) -> int | None:
        if isinstance(self.n_groups, str):
            return None
        if self.n_groups > n_weights:
            raise ValueError(
                f"n_groups is {self.n_groups}, but the items differ in {n_weights} direction(s) "
                f'only. Choose from 0 to {n_weights}, or "auto".'
            )
        return int(self.n_groups)

    def _warn_if_unfinished(self, learned: Learned) -> None:
        if learned.converged:
            return
        how = "Interrupted" if learned.interrupted else "Stopped"
        warnings.warn(
            f"{how} after {len(learned.trace) - 1} steps, before a step changed the objective by "
            f"less than tol={self.tol:g}: these are the best weights so far.",
            ConvergenceWarning,
            stacklevel=5,
        )

    def _set_prior(self, learned: Learned, coordinates: Coordinates) -> None:
        prior, likelihood = learned.model.prior, learned.model.likelihood
        self.prior_mean_ = prior.mean
        self.prior_loadings_ = prior.loadings
        self.prior_residual_ = prior.residual
        self.ridge_ = learned.model.ridge
        self.precision_ = likelihood.precision if isinstance(likelihood, Regression) else 1.0
        self.origin_ = coordinates.origin
        self.scale_ = coordinates.scale
        size = len(self.scale_)
        self.basis_ = np.eye(size) if coordinates.basis is None else coordinates.basis
        self.item_spread_ = coordinates.spread
        self.objective_trace_ = np.array(learned.trace)
        self.objective_ = learned.trace[-1]
        self.n_iter_ = len(learned.trace) - 1
        self.converged_ = learned.converged
        self.criterion_ = np.array([learned.criterion[k] for k in sorted(learned.criterion)])

    def _set_levels(self, points: Float, prior: Prior, coordinates: Coordinates) -> None:
        n_weights = coordinates.n_weights
        directions = prior.directions(n_weights)
        deviation = points[:, :n_weights] - prior.mean[:n_weights]
        group = deviation @ directions @ directions.T
        self.consensus_ = coordinates.weights(prior.mean)
        self.group_ = coordinates.weights(group)
        self.personal_ = coordinates.weights(deviation - group)
        self.coef_ = self.consensus_ + self.group_ + self.personal_
        self.directions_ = coordinates.weights(directions.T)
        self.n_groups_ = prior.rank
        at_origin = points[:, n_weights:].sum(axis=1)
        self.intercept_ = at_origin
        if coordinates.intercept:
            self.intercept_ = at_origin - self.coef_ @ coordinates.origin
        covariance = prior.covariance[:n_weights, :n_weights]
        projected = directions @ (directions.T @ covariance @ directions) @ directions.T
        whole = float((coordinates.spread * covariance).sum())
        share = float((coordinates.spread * projected).sum()) / whole if whole > 0 else 0.0
        self.explained_ = {"group": share, "personal": 1.0 - share}

    def _beliefs(self) -> Beliefs:
        """Put together again what the fitted attributes hold in pieces."""
        intercept = self.loss == "logistic"
        square = self.basis_.shape[0] == self.basis_.shape[1]
        basis = None if square else self.basis_
        coordinates = Coordinates(self.origin_, self.scale_, basis, self.item_spread_, intercept)
        prior = Prior(self.prior_mean_, self.prior_loadings_, self.prior_residual_)
        likelihood: Likelihood = Logistic() if intercept else Regression(self.precision_)
        points = np.empty((len(self.users_), coordinates.size))
        scaled = self.coef_ * self.scale_
        points[:, : coordinates.n_weights] = scaled if basis is None else scaled @ basis
        if intercept:
            points[:, -1] = self.intercept_ + self.coef_ @ self.origin_
        known: NDArray[np.floating] = self.information_
        return Beliefs(self.users_, points, known, coordinates, prior, likelihood)
