"""Fitted latent classes: probabilities, memberships of new users, and tables."""

from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Float, Index
from likeminds._util.text_format import counted
from likeminds.choice_models.text_tables import Row, Table
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.latent_classes import (
    ClassParameters,
    LatentClasses,
    with_intercept,
)
from likeminds.mixed_model.losses import PRIOR_LOSSES, PriorLoss
from likeminds.mixed_model.posterior import Posterior
from likeminds.rankers import newcomers
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.validation import as_annotations, rows_and_users


class ClassTable(Table):
    """A table with a row for each class and feature."""

    correlations: ClassVar[tuple[Row, ...]] = ()


class LatentClassModel(Ranker):
    """Base: predictions and tables of fitted classes."""

    takes_updates = takes_newcomers = has_part_worths = True

    n_classes_: int
    class_shares_: Float
    class_share_errors_: Float
    class_coef_: Float
    class_coef_errors_: Float
    class_covariance_: Float
    class_intercept_: Float
    class_points_: Float
    membership_: Float
    log_likelihood_: float
    bic_: float
    aic_: float
    entropy_: float
    selection_: list[dict[str, float]]
    positive_share_: float
    loss_: str
    prior_: FittedPrior
    group_: Float
    personal_: Float

    newcomer = newcomers.newcomer

    def predict_proba(
        self, X: ArrayLike | Annotations, users: Iterable[Hashable] | None = None
    ) -> Float:
        """Return the probability of a positive label, or of being chosen among the choice set.

        It is the mean of the probabilities of classes, weighted by the user's membership. New
        users have the shares of classes if ``unknown="consensus"``.

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
                "This ranker has learned from choices, which depend on all items shown: pass "
                "Annotations whose choice_sets say what is shown together."
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
        X: ArrayLike | Annotations,
        y: ArrayLike | None = None,
        users: Iterable[Hashable] | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Float:
        """Return the probabilities of classes of any users, given their labels.

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
        return self._newcomers().memberships(annotations)

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
        problem, parameters = self._newcomers().problem(
            as_annotations(self, annotations, reset=False)
        )
        return float(problem.log_likelihoods(parameters).sum())

    def summary(self) -> Table:
        """Return the coefficients of classes with standard errors, z values and shares.

        Returns
        -------
        Table
            A table with ``to_pandas``, ``to_polars`` and ``to_dict``.
        """
        check_is_fitted(self)
        errors = self.class_coef_errors_
        values = np.divide(self.class_coef_, errors, out=np.zeros_like(errors), where=errors > 0)
        rows = self._rows(coefficient=self.class_coef_, error=errors, z=values)
        n_parameters = self.class_points_.size + self.n_classes_ - 1
        title = (
            f"{counted(self.n_classes_, 'latent class', 'latent classes')}: log-likelihood "
            f"{self.log_likelihood_:.1f}, {n_parameters} parameters, BIC {self.bic_:.1f}, "
            f"entropy {self.entropy_:.2f}"
        )
        shares = ", ".join(
            f"class {k} {share:.1%} (error {error:.1%})"
            for k, (share, error) in enumerate(
                zip(self.class_shares_, self.class_share_errors_, strict=True), start=1
            )
        )
        notes = [f"Shares: {shares}."]
        if len(self.selection_) == self.n_classes_ > 1:
            notes.append("BIC still falls at max_classes: more classes may fit better.")
        return ClassTable(title, rows, tuple(notes))

    def wtp(self, price: str) -> Table:
        """Return each class's willingness to pay: minus the ratio of a coefficient to the price's.

        Parameters
        ----------
        price : str
            The feature that is the price.

        Returns
        -------
        Table
            Ratios, with standard errors by the delta method.
        """
        check_is_fitted(self)
        names = [str(name) for name in self.feature_names_]
        if price not in names:
            raise ValueError(f"{price!r} is not a feature; there are {', '.join(names)}.")
        at, cov = names.index(price), self.class_covariance_
        paid = self.class_coef_[:, [at]]
        ratio = -self.class_coef_ / paid
        own, both = np.einsum("kdd->kd", cov), cov[:, at]
        variance = (own + ratio**2 * own[:, [at]] + 2.0 * ratio * both) / paid**2
        kept = [j for j in range(len(names)) if j != at]
        table = {"willingness to pay": ratio, "error": np.sqrt(np.maximum(variance, 0.0))}
        return ClassTable(f"Willingness to pay, in units of {price}", self._rows(kept, **table))

    def _rows(self, features: list[int] | None = None, **columns: Float) -> list[Row]:
        names = [str(name) for name in self.feature_names_]
        chosen = range(len(names)) if features is None else features
        return [
            {"class": str(k + 1), "feature": names[j]}
            | {name: float(values[k, j]) for name, values in columns.items()}
            for k in range(self.n_classes_)
            for j in chosen
        ]

    def _newcomers(self) -> "ClassNewcomers":
        parameters = ClassParameters(self.class_shares_, self.class_points_)
        loss = PRIOR_LOSSES[self.loss_]
        return ClassNewcomers(self.prior_, parameters, loss, self.positive_share_)


def class_covariance(member: Float, points: Float) -> Float:
    """Return the covariance of class coefficients by membership, (n, p, p)."""
    mean = member @ points
    squares = np.einsum("nk,kp,kq->npq", member, points, points)
    return np.asarray(squares - mean[:, :, None] * mean[:, None, :])


def _softmax(eta: Float, sets: Index) -> Float:
    """Return the probability of each row in its set, column by column."""
    highest = np.full((int(sets.max()) + 1, eta.shape[1]), -np.inf)
    np.maximum.at(highest, sets, eta)
    terms = np.exp(eta - highest[sets])
    total = np.zeros_like(highest)
    np.add.at(total, sets, terms)
    return np.asarray(terms / total[sets])


@dataclass(frozen=True)
class ClassNewcomers:
    """New users, by the posterior probabilities of classes given their labels.

    Standard errors are those of a normal distribution with the variance of coefficients between
    classes, and are at most those of users without labels.
    """

    fitted_prior: FittedPrior
    parameters: ClassParameters
    loss: PriorLoss
    positive_share: float

    def problem(self, annotations: Annotations) -> tuple[LatentClasses, ClassParameters]:
        """Return the labels of new users, and classes in the coordinates of these labels."""
        prepared, prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        tasks, prior = self.loss.of_newcomers(prepared, prior, self.positive_share)
        # Choices do not identify an intercept: for single labels it is that of training labels.
        added = prior.prior.mean[self.fitted_prior.design.size :]
        parameters = with_intercept(self.parameters, added)
        return LatentClasses.of(tasks, prior.likelihood, annotations.n_users, 0.0), parameters

    def memberships(self, annotations: Annotations) -> Float:
        """Return the probabilities of classes, (n_users, K)."""
        problem, parameters = self.problem(annotations)
        return problem.memberships(parameters)

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return each user's mean coefficients and matrix K; see `Posterior`."""
        member, points = self.memberships(annotations), self.parameters.points
        shares = self.parameters.shares[None]
        reduction = class_covariance(shares, points) - class_covariance(member, points)
        values, vectors = np.linalg.eigh(reduction)
        roots = np.sqrt(np.maximum(values, 0.0))[:, :, None] * vectors.transpose(0, 2, 1)
        return member @ points, roots.astype(np.float32)

    def answered(self, annotations: Annotations, posterior: Posterior) -> None:
        """Return nothing: items have no effects of their own."""
