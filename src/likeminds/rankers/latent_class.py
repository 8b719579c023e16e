"""A latent-class logit: a few classes of users, each with its coefficients."""

import warnings
from collections.abc import Hashable
from dataclasses import KW_ONLY, dataclass, field
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit, ndtr
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, Index
from likeminds._util.result_tables import Row, Table
from likeminds._util.text_format import counted
from likeminds.choice_models.specification import find_feature
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.latent_classes import (
    ClassNewcomers,
    ClassParameters,
    LatentClasses,
    LatentClassFit,
)
from likeminds.mixed_model.losses import PRIOR_LOSSES
from likeminds.mixed_model.user_posteriors import FittedPrior
from likeminds.rankers import newcomers
from likeminds.rankers.item_table import Ids, ItemRows
from likeminds.rankers.probabilities import likelier_classes, refuse_choices
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.training_checks import as_annotations, refuse_too_wide
from likeminds.rankers.training_data import TrainingData
from likeminds.rankers.validation import rows_and_users

# The fewest users per class, if BIC chooses the number of classes.
_USERS_PER_CLASS = 5
_LOSSES = ("logistic", "choice", "mixed")


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class LatentClassRanker(Ranker):
    """Latent classes of users: a conditional logit of choices, or a logistic regression of labels.

    Each user belongs to one of a few classes, with probabilities given their labels. Each class has
    its coefficients. A user's score is the mean over classes, weighted by these probabilities.

    Parameters
    ----------
    n_classes : int or "auto", default="auto"
        The number of classes. "auto" adds classes until Schwarz's criterion (BIC) rises, up to one
        class per five users.
    loss : {"auto", "choice", "logistic", "mixed"}, default="auto"
        The likelihood, as in `HierarchicalRanker`. Grades above the threshold count as positive.
    max_classes : int, default=10
        The most classes that "auto" tries. If BIC still falls there, `fit` warns.
    n_starts : int, default=20
        The number of random starts of the EM algorithm. Only the best after 25 steps continues.
    alpha : float, default=1e-3
        The ridge on coefficients of standardised features, and the number of pseudo-users of each
        class. It keeps estimates finite.
    standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.
    tol : float, default=1e-6
        EM stops when a step gains less than this share of the objective. Newton's method follows.
    max_iter : int, default=500
        The most EM steps.
    random_state : int, default=0
        The seed of the random starts.

    Attributes
    ----------
    n_classes_ : int
        The number of classes.
    class_shares_, class_share_errors_ : arrays of shape (n_classes_,)
        The shares of classes, the largest first, and their standard errors.
    class_coef_, class_coef_errors_ : arrays of shape (n_classes_, n_features)
        Coefficients of classes, in the units of the features, and their standard errors.
    class_covariance_ : array of shape (n_classes_, n_features, n_features)
        The covariance of each class's coefficients.
    class_intercept_ : array of shape (n_classes_,)
        Intercepts of classes (zeros for choices).
    membership_ : array of shape (n_users, n_classes_)
        The probability that each user belongs to each class, given their labels.
    log_likelihood_, bic_, aic_, entropy_ : float
        The log-likelihood of the labels and its criteria; BIC counts users as observations. The
        relative entropy is 1 if the class of every user is certain.
    selection_ : list of dict
        These criteria for each number of classes tried.
    coef_, consensus_, group_, personal_, users_, scale_, feature_names_
        As in `ThreeLevelRanker`. ``coef_`` is ``membership_ @ class_coef_``, and ``consensus_`` is
        ``class_shares_ @ class_coef_``. The personal level is zero.
    objective_trace_, objective_, n_iter_, converged_ : array, float, int, bool
        The penalised log-likelihood by EM step, and at the end, after Newton's method.

    Examples
    --------
    >>> from likeminds import LatentClassRanker, load_electricity
    >>> ranker = LatentClassRanker(2, n_starts=5).fit(load_electricity())
    >>> ranker.class_shares_.round(2), round(ranker.log_likelihood_, 1)
    (array([0.51, 0.49]), -4526.8)
    >>> ranker.membership_.shape
    (361, 2)
    """

    n_classes: int | str = "auto"
    loss: str = "auto"
    _: KW_ONLY
    max_classes: int = 10
    n_starts: int = 20
    alpha: float = 1e-3
    standardize: bool = True
    tol: float = 1e-6
    max_iter: int = 500
    random_state: int = 0
    unknown: str = "error"
    user_column: int | str | None = None
    verbose: bool = False

    # Fitted attributes that may be None in other rankers.
    prior_: FittedPrior = field(init=False)
    loss_: str = field(init=False)

    newcomer = newcomers.newcomer
    takes_updates = takes_newcomers = has_part_worths = True
    _nothing_to_add_to = (
        "This ranker was loaded without its training data, so labels cannot be added. Save it with "
        "save(..., with_data=True), or use `newcomer`, which needs no training data."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_classes": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"auto", *_LOSSES})],
        "max_classes": [Interval(Integral, 1, None, closed="left")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "random_state": [Integral],
    }

    def _fit_annotations(self, annotations: Annotations) -> None:
        # Validate: the labels, the loss and the number of classes.
        refuse_too_wide(type(self).__name__, annotations.n_features)
        data = TrainingData.of(annotations)
        loss = data.loss(self.loss)
        data.refuse_one_class(informs=loss.one_class_informs)
        # Design: coordinates of the features, and responses by user.
        design = data.coordinates(
            standardize=self.standardize, intercept=loss.has_intercept, every=False, most=None
        )
        responses = data.responses(loss, loss.likelihood, design, items=False)
        problem = LatentClasses.of(responses, loss.likelihood, annotations.n_users, self.alpha)
        # Optimise: EM and Newton's method for each number of classes.
        fitted = self._select(problem)
        if not fitted.converged:
            warnings.warn(
                f"Newton's method did not converge for "
                f"{counted(fitted.parameters.n_classes, 'class', 'classes')}, so standard errors "
                "are not reliable. Use fewer classes (n_classes=) or a larger alpha=.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.users_, self.annotations_ = annotations.user_ids, annotations
        self.loss_, self.scale_ = loss.name, design.scale
        self.positive_share_ = data.counts.n_positive / data.counts.n_labels
        self._set_classes(fitted, FittedPrior(design, fitted.normal_prior(), loss.likelihood))
        if self._bic_still_falls and self.n_classes_ == self.max_classes:
            warnings.warn(
                f"BIC still falls at {self.n_classes_} classes, the most that were tried. To try "
                f"more, raise max_classes={self.max_classes}.",
                UserWarning,
                stacklevel=4,
            )

    @property
    def _bic_still_falls(self) -> bool:
        """Whether "auto" stopped at its limit, and not because BIC rose."""
        return len(self.selection_) == self.n_classes_ > 1

    def _select(self, problem: LatentClasses) -> LatentClassFit:
        """Return the fit with the requested number of classes, or the lowest BIC."""
        n_users, asked = problem.n_users, self.n_classes
        if isinstance(asked, str):
            most = max(1, min(self.max_classes, n_users // _USERS_PER_CLASS))
        elif asked > n_users:
            raise ValueError(
                f"n_classes is {asked}, but there are only {counted(n_users, 'user')}. Choose "
                'fewer classes, or n_classes="auto".'
            )
        fits: list[LatentClassFit] = []
        for number in range(1, most + 1) if isinstance(asked, str) else [asked]:
            rng = np.random.default_rng(self.random_state)
            fits.append(problem.fit(number, self.n_starts, rng, self.tol, self.max_iter))
            if len(fits) > 1 and fits[-1].criteria["bic"] >= fits[-2].criteria["bic"]:
                break
        self.selection_ = [one.criteria for one in fits]
        return min(fits, key=lambda one: one.criteria["bic"])

    def _set_classes(self, fitted: LatentClassFit, prior: FittedPrior) -> None:
        """Set the fitted attributes, with coefficients in the units of the features."""
        design, points = prior.design, fitted.parameters.points
        n_weights = design.n_weights
        self.n_classes_ = fitted.parameters.n_classes
        self.class_points_, self.class_shares_ = points, fitted.parameters.shares
        self.class_share_errors_ = fitted.share_errors()
        self.class_coef_ = design.weights(points)
        by_class = fitted.class_covariances()[:, :n_weights, :n_weights]
        maps = design.weights(np.eye(n_weights, design.size))
        self.class_covariance_ = np.asarray(maps.T @ by_class @ maps)
        variances = np.einsum("kdd->kd", self.class_covariance_)
        self.class_coef_errors_ = np.sqrt(np.maximum(variances, 0.0))
        at_origin = points[:, n_weights : design.size].sum(axis=1)
        from_origin = self.class_coef_ @ design.origin if design.intercept else 0.0
        self.class_intercept_ = np.asarray(at_origin - from_origin)
        self.membership_ = fitted.evaluated.memberships
        self.coef_ = self.membership_ @ self.class_coef_
        self.intercept_ = self.membership_ @ self.class_intercept_
        self.consensus_ = self.class_shares_ @ self.class_coef_
        self.group_ = self.coef_ - self.consensus_
        self.personal_ = np.zeros_like(self.group_)
        self.prior_, self.n_groups_ = prior, min(self.n_classes_ - 1, n_weights)
        criteria = fitted.criteria
        self.log_likelihood_, self.bic_ = criteria["log_likelihood"], criteria["bic"]
        self.aic_, self.entropy_ = criteria["aic"], criteria["entropy"]
        self.objective_trace_ = np.array(fitted.trace)
        self.objective_, self.n_iter_ = fitted.trace[-1], len(fitted.trace) - 1
        self.converged_ = fitted.converged

    def predict(self, X: ItemRows, users: Ids = None) -> NDArray[Any]:
        """Predict yes-no labels: the positive class if its probability is above one half.

        Parameters
        ----------
        X, users
            As in `decision_function`.

        Returns
        -------
        array of shape (n_rows,)
            Labels, as in ``classes_``.
        """
        check_is_fitted(self)
        refuse_choices(self, X)
        return likelier_classes(self, self.predict_proba(X, users))

    def predict_proba(self, X: ItemRows, users: Ids = None) -> Float:
        """Return the probability of a positive label, or of being chosen among the choice set.

        It is the mean over classes, weighted by the user's membership. With
        ``unknown="consensus"``, new users have the shares of classes as membership.

        Parameters
        ----------
        X, users
            As in `decision_function`.

        Returns
        -------
        array of shape (n_rows, 2)
            Probabilities of the negative and of the positive label, as in ``classes_``.
        """
        rows, positions = rows_and_users(self, X, users)
        member = np.vstack([self.membership_, self.class_shares_])[positions]
        eta = rows @ self.class_coef_.T + self.class_intercept_
        sets = X.choice_set_codes if isinstance(X, Annotations) else None
        if sets is None and not self.prior_.design.intercept:
            raise ValueError(
                "This ranker was fitted to choices, which depend on all items shown. Pass "
                "Annotations with choice_sets."
            )
        chances = expit(eta)
        if sets is not None and self.loss_ != "logistic":
            assert isinstance(X, Annotations)
            sign = 1.0 if X.picks_worst is None else np.where(X.picks_worst, -1.0, 1.0)[:, None]
            alone = (np.bincount(sets)[sets] == 1) & self.prior_.design.intercept
            chances[~alone] = _softmax(sign * eta, sets)[~alone]
        positive = np.einsum("nk,nk->n", member, chances)
        return np.column_stack([1.0 - positive, positive])

    def memberships(
        self,
        X: ItemRows,
        y: ArrayLike | None = None,
        users: Ids = None,
        sample_weight: ArrayLike | None = None,
    ) -> Float:
        """Return the probabilities of classes for known or new users, given their labels.

        Parameters
        ----------
        X, y, users, sample_weight
            As in `fit`.

        Returns
        -------
        array of shape (n_users, n_classes_)
            A row for each user, in the order of `Annotations.user_ids`.
        """
        check_is_fitted(self)
        annotations = as_annotations(self, X, y, users, sample_weight, reset=False)
        return self._newcomers().evaluate(annotations).memberships

    def log_likelihood(self, annotations: Annotations | None = None) -> float:
        """Return the log-likelihood of labels, with classes summed out.

        Parameters
        ----------
        annotations : Annotations, optional
            Labels of any users; by default the training data (``log_likelihood_``).
        """
        check_is_fitted(self)
        if annotations is None:
            return self.log_likelihood_
        found = self._newcomers().evaluate(as_annotations(self, annotations, reset=False))
        return float(found.log_likelihoods.sum())

    def summary(self) -> Table:
        """Return the coefficients of classes with standard errors, z, p and shares.

        Returns
        -------
        Table
            A table with ``to_pandas``, ``to_polars`` and ``to_dict``.
        """
        check_is_fitted(self)
        errors = self.class_coef_errors_
        values = np.divide(self.class_coef_, errors, out=np.zeros_like(errors), where=errors > 0)
        p = 2.0 * ndtr(-np.abs(values))
        rows = self._rows(coefficient=self.class_coef_, error=errors, z=values, p=p)
        n_parameters = self.class_points_.size + self.n_classes_ - 1
        title = (
            f"{counted(self.n_classes_, 'latent class', 'latent classes')}: log-likelihood "
            f"{self.log_likelihood_:.1f}, {n_parameters} parameters, AIC {self.aic_:.1f}, "
            f"BIC {self.bic_:.1f}, entropy {self.entropy_:.2f}"
        )
        shares = ", ".join(
            f"class {k} {share:.1%} (error {error:.1%})"
            for k, (share, error) in enumerate(
                zip(self.class_shares_, self.class_share_errors_, strict=True), start=1
            )
        )
        notes = [f"Shares: {shares}."]
        if self._bic_still_falls:
            notes.append("BIC still falls at this number of classes. More may fit better.")
        return Table(title, rows, tuple(notes))

    def wtp(self, price: Hashable) -> Table:
        """Return the willingness to pay of each class: minus coefficient over price coefficient.

        Parameters
        ----------
        price : str or int
            The name or position of the price feature.

        Returns
        -------
        Table
            Ratios, with standard errors by the delta method.
        """
        check_is_fitted(self)
        at, cov = find_feature(price, self.feature_names_, "price"), self.class_covariance_
        paid = self.class_coef_[:, [at]]
        ratio = -self.class_coef_ / paid
        own, both = np.einsum("kdd->kd", cov), cov[:, at]
        variance = (own + ratio**2 * own[:, [at]] + 2.0 * ratio * both) / paid**2
        kept = [j for j in range(len(own[0])) if j != at]
        table = {"willingness to pay": ratio, "error": np.sqrt(np.maximum(variance, 0.0))}
        title = f"Willingness to pay, in units of {self.feature_names_[at]}"
        return Table(title, self._rows(kept, **table))

    def _rows(self, features: list[int] | None = None, **columns: Float) -> list[Row]:
        names = [str(name) for name in self.feature_names_]
        chosen = range(len(names)) if features is None else features
        return [
            {"class": str(k + 1), "feature": names[j]}
            | {name: float(values[k, j]) for name, values in columns.items()}
            for k in range(self.n_classes_)
            for j in chosen
        ]

    def _newcomers(self) -> ClassNewcomers:
        parameters = ClassParameters(self.class_shares_, self.class_points_)
        loss = PRIOR_LOSSES[self.loss_]
        return ClassNewcomers(self.prior_, parameters, loss, self.positive_share_)


def _softmax(eta: Float, sets: Index) -> Float:
    """Return the probability of each row in its set, column by column."""
    highest = np.full((int(sets.max()) + 1, eta.shape[1]), -np.inf)
    np.maximum.at(highest, sets, eta)
    terms = np.exp(eta - highest[sets])
    total = np.zeros_like(highest)
    np.add.at(total, sets, terms)
    return np.asarray(terms / total[sets])
