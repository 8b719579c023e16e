"""A latent-class logit: a few classes of users, each with coefficients of its own."""

import warnings
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._util.text_format import counted
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import GaussianPrior
from likeminds.mixed_model.latent_classes import (
    LatentClasses,
    LatentClassFit,
)
from likeminds.rankers.latent_class_model import LatentClassModel, class_covariance
from likeminds.rankers.training_checks import refuse_too_wide
from likeminds.rankers.training_data import TrainingData

# The fewest users of a class, where BIC chooses the number of classes.
_USERS_PER_CLASS = 5
_LOSSES = ("logistic", "choice", "mixed")


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False)
class LatentClassRanker(LatentClassModel):
    """Latent classes of users: a conditional logit of choices, or a logistic regression of labels.

    Each user belongs to one of a few classes, with probabilities given their labels. Classes have
    coefficients of their own. Scores are those of the classes, weighted by these probabilities.

    Parameters
    ----------
    n_classes : int or "auto", default="auto"
        The number of classes. "auto" adds classes until Schwarz's criterion (BIC) rises, as long
        as there are five users per class.
    loss : {"auto", "choice", "logistic", "mixed"}, default="auto"
        The likelihood, as in `HierarchicalRanker`. Grades count as labels above the threshold.
    max_classes : int, default=10
        The largest number of classes that "auto" tries.
    n_starts : int, default=20
        Random starts of the EM algorithm. The best one after 25 steps is continued.
    alpha : float, default=1e-3
        A ridge on coefficients of standardised features, and the pseudo-users of each class. It
        keeps estimates finite.
    standardize, unknown, user_column, verbose
        As in `ThreeLevelRanker`.
    tol : float, default=1e-6
        EM stops when a step gains less than this share of the objective. Newton's method follows.
    max_iter : int, default=500
        The largest number of EM steps.
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
        relative entropy is 1 where the class of every user is certain.
    selection_ : list of dict
        These numbers for each number of classes that was tried.
    coef_, consensus_, group_, personal_, users_, scale_, feature_names_
        As in `ThreeLevelRanker`: ``coef_`` is ``membership_ @ class_coef_``, ``consensus_`` is
        ``class_shares_ @ class_coef_``. The personal level is zero.
    objective_trace_, objective_, n_iter_, converged_ : array, float, int, bool
        The penalised log-likelihood by EM step, and after Newton's method at the end.

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

    _learned_from: ClassVar[str] = "annotations_"
    _nothing_to_add_to = (
        "This ranker was read from a file without its training data: more labels cannot be added "
        "to it. Save it with save(..., with_data=True); `newcomer` needs no training data."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_classes": [Interval(Integral, 1, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"auto", *_LOSSES})],
        "max_classes": [Interval(Integral, 1, None, closed="left")],
        "n_starts": [Interval(Integral, 1, None, closed="left")],
        "alpha": [Interval(Real, 0, None, closed="neither")],
        "standardize": ["boolean"],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "random_state": [Integral],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "verbose": ["boolean"],
    }

    def _fit_more(self, more: Annotations) -> None:
        assert self.annotations_ is not None
        self._fit_annotations(self.annotations_.concat(more))

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
        responses = data.tasks(loss, loss.likelihood, design, items=False)
        problem = LatentClasses.of(responses, loss.likelihood, annotations.n_users, self.alpha)
        # Optimise: EM and Newton's method for each number of classes.
        fitted = self._select(problem)
        if not fitted.converged:
            warnings.warn(
                f"The likelihood of {counted(fitted.parameters.n_classes, 'class', 'classes')} "
                "has no maximum that Newton's method reached, so standard errors are not "
                "reliable. Ask for fewer classes with n_classes=, or a larger alpha=.",
                ConvergenceWarning,
                stacklevel=4,
            )
        self.users_, self.annotations_ = annotations.user_ids, annotations
        self.loss_, self.scale_ = loss.name, design.scale
        self.positive_share_ = data.counts.n_positive / data.counts.n_labels
        self._set_classes(fitted, FittedPrior(design, _normal(fitted), loss.likelihood))

    def _select(self, problem: LatentClasses) -> LatentClassFit:
        """Return the fit with the requested number of classes, or the lowest BIC."""
        n_users = problem.n_users
        numbers = range(1, max(1, min(self.max_classes, n_users // _USERS_PER_CLASS)) + 1)
        if not isinstance(self.n_classes, str):
            if self.n_classes > n_users:
                raise ValueError(
                    f"n_classes is {self.n_classes}, but there are only {counted(n_users, 'user')}"
                    ': choose fewer classes, or n_classes="auto".'
                )
            numbers = range(self.n_classes, self.n_classes + 1)
        best: LatentClassFit | None = None
        self.selection_ = []
        for number in numbers:
            rng = np.random.default_rng(self.random_state)
            found = problem.fit(number, self.n_starts, rng, self.tol, self.max_iter)
            self.selection_.append(found.row())
            if best is not None and found.bic >= best.bic:
                break
            best = found
        assert best is not None
        return best

    def _set_classes(self, fitted: LatentClassFit, prior: FittedPrior) -> None:
        """Set the fitted attributes, coefficients in the units of the features."""
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
        self.membership_ = fitted.memberships
        self.coef_ = self.membership_ @ self.class_coef_
        self.intercept_ = self.membership_ @ self.class_intercept_
        self.consensus_ = self.class_shares_ @ self.class_coef_
        self.group_ = self.coef_ - self.consensus_
        self.personal_ = np.zeros_like(self.group_)
        self.prior_, self.n_groups_ = prior, min(self.n_classes_ - 1, n_weights)
        self.log_likelihood_, self.bic_ = fitted.log_likelihood, fitted.bic
        self.aic_, self.entropy_ = fitted.aic, fitted.entropy
        self.objective_trace_ = np.array(fitted.trace)
        self.objective_, self.n_iter_ = fitted.trace[-1], len(fitted.trace) - 1
        self.converged_ = fitted.converged


def _normal(fitted: LatentClassFit) -> GaussianPrior:
    """Return the mean and covariance of users' coefficients, with the uncertainty of classes."""
    shares, points = fitted.parameters.shares, fitted.parameters.points
    covariance = class_covariance(shares[None], points)[0]
    covariance += np.einsum("k,kpq->pq", shares, fitted.class_covariances())
    return GaussianPrior.of_covariance(shares @ points, covariance)
