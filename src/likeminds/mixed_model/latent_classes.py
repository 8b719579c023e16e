"""Latent classes of users: a finite mixture of logits, fitted by EM and Newton's method.

A user i belongs to class k with probability pi_k, and then labels with its coefficients b_k:

    log L = sum_i log sum_k pi_k exp(-loss_i(b_k)).

A ridge on b_k and pseudo-users of each class, both tiny, keep estimates finite. The objective is
log L with these two; `LatentClassFit.criteria` has log L alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from likeminds._util.array_types import Float
from likeminds._util.per_user_arrays import EXACT, damped_newton, symmetric_root
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.gaussian_prior import ROUNDING, GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood, LossDerivatives
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.responses import PaddedRows, Responses, data_of
from likeminds.mixed_model.user_posteriors import FittedPrior

# EM steps of every start, before the best one is continued.
_FIRST_STEPS = 25


@dataclass(frozen=True)
class ClassParameters:
    """Shares of classes, (K,), and their coefficients in coordinates, (K, p)."""

    shares: Float
    points: Float

    @property
    def n_classes(self) -> int:
        """The number of classes."""
        return len(self.shares)

    def flat(self) -> Float:
        """Return all parameters: coefficients, then log-odds of shares to the last one."""
        return np.append(self.points.ravel(), np.log(self.shares[:-1] / self.shares[-1]))

    def at(self, flat: Float) -> "ClassParameters":
        """Return the parameters of `flat`."""
        odds = np.append(flat[self.points.size :], 0.0)
        points = flat[: self.points.size].reshape(self.points.shape)
        return ClassParameters(np.exp(odds - logsumexp(odds)), points)

    def by_share(self) -> "ClassParameters":
        """Return the same classes, the largest first."""
        order = np.argsort(-self.shares, kind="stable")
        return ClassParameters(self.shares[order], self.points[order])


@dataclass(frozen=True)
class LatentClasses:
    """The labels of users, their likelihood given coefficients, and the penalty."""

    blocks: tuple[PaddedRows, ...]
    likelihood: Likelihood
    n_users: int
    alpha: float  # the ridge on coefficients, and the pseudo-users of each class

    @classmethod
    def of(
        cls, responses: Responses, likelihood: Likelihood, n_users: int, alpha: float
    ) -> "LatentClasses":
        """Take the responses of all users."""
        return cls(tuple(responses.map(data_of, None)), likelihood, n_users, alpha)

    def evaluate(self, parameters: ClassParameters) -> "EvaluatedClasses":
        """Return the losses of all users in each class, with their derivatives."""
        found = [
            [self.likelihood.at(data.rows @ b, data) for b in parameters.points]
            for data in self.blocks
        ]
        return EvaluatedClasses(self, parameters, found)

    def fit(
        self, n_classes: int, n_starts: int, rng: np.random.Generator, tol: float, max_iter: int
    ) -> "LatentClassFit":
        """Fit classes from several random starts; continue the best one to the optimum."""
        size = self.blocks[0].rows.shape[2]
        pooled = self._maximise(ClassParameters(np.ones(1), np.zeros((1, size))))
        if n_classes == 1:
            return LatentClassFit(pooled, (pooled.objective,))
        shares = np.full(n_classes, 1.0 / n_classes)
        found = []
        for _ in range(n_starts):
            # Starts are the coefficients of a single class plus standard normal noise.
            points = pooled.parameters.points + rng.standard_normal((n_classes, size))
            start = ClassParameters(shares, points)
            found.append(self._em(start, tol, min(_FIRST_STEPS, max_iter)))
        best, first = max(found, key=lambda one: one[1][-1])
        parameters, trace = self._em(best, tol, max(max_iter - _FIRST_STEPS, 0))
        final = self.evaluate(self._maximise(parameters).parameters.by_share())
        return LatentClassFit(final, (*first, *trace[1:], final.objective))

    def _em(
        self, start: ClassParameters, tol: float, max_iter: int
    ) -> tuple[ClassParameters, list[float]]:
        """Take EM steps until the objective gains less than a share ``tol`` of itself."""
        evaluated = self.evaluate(start)
        trace = [evaluated.objective]
        for _ in range(max_iter):
            evaluated = self._em_step(evaluated)
            trace.append(evaluated.objective)
            if trace[-1] - trace[-2] <= tol * (1.0 + abs(trace[-1])):
                break
        return evaluated.parameters, trace

    def _em_step(self, evaluated: "EvaluatedClasses") -> "EvaluatedClasses":
        """Return all classes after one damped Newton step, users weighted by membership."""
        member = evaluated.memberships
        shares = member.sum(axis=0) + self.alpha
        shares = shares / shares.sum()

        def at(points: Float) -> tuple[EvaluatedClasses, Float]:
            new = self.evaluate(ClassParameters(shares, points))
            ridge = 0.5 * self.alpha * (points**2).sum(axis=1)
            return new, (member * new.losses).sum(axis=0) + ridge

        def step(found: EvaluatedClasses) -> Float:
            slope = np.einsum("nk,nkp->kp", member, found.scores)
            slope -= self.alpha * found.parameters.points
            return np.asarray(np.linalg.solve(found.curvature(member), slope[:, :, None])[:, :, 0])

        return damped_newton(evaluated.parameters.points, at, step, n_steps=1)

    def _maximise(self, start: ClassParameters) -> "EvaluatedClasses":
        """Return the classes after Newton's method on the objective itself."""

        def at(flat: Float) -> tuple[EvaluatedClasses, Float]:
            new = self.evaluate(start.at(flat[0]))
            return new, np.array([-new.objective])

        def step(found: EvaluatedClasses) -> Float:
            score, information = found.derivatives
            # Absolute eigenvalues make every step an ascent, also at a saddle point.
            values, vectors = np.linalg.eigh(information)
            lengths = np.maximum(np.abs(values), ROUNDING * np.abs(values).max())
            return np.asarray((vectors @ ((vectors.T @ score) / lengths))[None])

        return damped_newton(start.flat()[None], at, step)


@dataclass(frozen=True)
class EvaluatedClasses:
    """Losses of users in each class, at some parameters, with their derivatives."""

    problem: LatentClasses
    parameters: ClassParameters
    found: list[list[LossDerivatives]]  # by block of users, then by class

    @cached_property
    def losses(self) -> Float:
        """The loss of each user's labels in each class, (n_users, K); zero without labels."""
        losses = np.zeros((self.problem.n_users, len(self.parameters.points)))
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            losses[data.users] = np.column_stack([one.loss for one in classes])
        return losses

    @cached_property
    def scores(self) -> Float:
        """Minus the gradients of the losses by coefficients, (n_users, K, p)."""
        scores = np.zeros((self.problem.n_users, *self.parameters.points.shape))
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            for k, one in enumerate(classes):
                scores[data.users, k] = (one.residuals[:, None, :] @ data.rows)[:, 0]
        return scores

    def curvature(self, member: Float) -> Float:
        """Return the Hessians of losses weighted by membership, with the ridge, (K, p, p)."""
        size = self.parameters.points.shape[1]
        total = np.repeat(
            self.problem.alpha * np.eye(size)[None], len(self.parameters.points), axis=0
        )
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            for k, one in enumerate(classes):
                rows = one.curvature.times_root_back(data.rows)
                rows = rows * np.sqrt(member[data.users, k])[:, None, None]
                rows = rows.reshape(-1, size)
                total[k] += rows.T @ rows
        return total

    @cached_property
    def joint(self) -> Float:
        """The logarithm of the probability of labels and class, (n_users, K)."""
        return np.asarray(np.log(self.parameters.shares) - self.losses)

    @cached_property
    def log_likelihoods(self) -> Float:
        """The log-probability of each user's labels, (n_users,)."""
        return np.asarray(logsumexp(self.joint, axis=1))

    @cached_property
    def memberships(self) -> Float:
        """The posterior probabilities of classes, (n_users, K)."""
        return np.asarray(np.exp(self.joint - self.log_likelihoods[:, None]))

    @property
    def objective(self) -> float:
        """The penalised log-likelihood."""
        alpha = self.problem.alpha
        ridge = 0.5 * alpha * float((self.parameters.points**2).sum())
        prior = float(xlogy(alpha, self.parameters.shares).sum())
        return float(self.log_likelihoods.sum()) - ridge + prior

    @cached_property
    def derivatives(self) -> tuple[Float, Float]:
        """The gradient of the objective by `ClassParameters.flat`, and minus its Hessian.

        By Louis' identity: the information of labels and classes, less the variance of their
        score given the labels.
        """
        shares, points = self.parameters.shares, self.parameters.points
        n_classes, size = len(shares), points.size
        n_users, alpha = self.problem.n_users, self.problem.alpha
        member, scores = self.memberships, self.scores
        weighted = member[:, :, None] * scores
        flat = weighted.reshape(n_users, size)
        free = slice(0, n_classes - 1)
        slope = (weighted.sum(axis=0) - alpha * points).ravel()
        by_odds = (member - shares).sum(axis=0) + alpha * (1.0 - n_classes * shares)
        information = np.zeros((size + n_classes - 1, size + n_classes - 1))
        blocks = self.curvature(member) - np.einsum("nkp,nkq->kpq", weighted, scores)
        crossed = -np.einsum("nkp,nl->kpl", weighted, member)
        for k in range(n_classes):
            part = slice(k * points.shape[1], (k + 1) * points.shape[1])
            information[part, part] = blocks[k]
            crossed[k, :, k] += weighted[:, k].sum(axis=0)
        information[:size, :size] += flat.T @ flat
        information[:size, size:] = -crossed.reshape(size, n_classes)[:, free]
        information[size:, :size] = information[:size, size:].T
        total = n_users + n_classes * alpha
        odds = total * (np.diag(shares) - np.outer(shares, shares))
        odds -= np.diag(member.sum(axis=0)) - member.T @ member
        information[size:, size:] = odds[free, free]
        return np.append(slope, by_odds[free]), information


@dataclass(frozen=True)
class LatentClassFit:
    """Fitted classes, and the objective by step."""

    evaluated: EvaluatedClasses
    trace: tuple[float, ...]

    @property
    def parameters(self) -> ClassParameters:
        """The shares and coefficients of classes."""
        return self.evaluated.parameters

    @cached_property
    def criteria(self) -> dict[str, float]:
        """Criteria to compare numbers of classes; in BIC, users are the observations."""
        member, likelihood = self.evaluated.memberships, float(self.evaluated.log_likelihoods.sum())
        n_users, n_classes = member.shape
        n_free = self.parameters.points.size + n_classes - 1
        most_uncertain = n_users * float(np.log(n_classes)) or 1.0
        return {
            "classes": n_classes,
            "log_likelihood": likelihood,  # without penalties
            "parameters": n_free,
            "aic": 2.0 * n_free - 2.0 * likelihood,
            "bic": n_free * float(np.log(n_users)) - 2.0 * likelihood,
            "entropy": 1.0 + float(xlogy(member, member).sum()) / most_uncertain,
        }

    @cached_property
    def covariance(self) -> Float:
        """The covariance of `ClassParameters.flat`: the inverse of the information."""
        return np.asarray(np.linalg.pinv(self.evaluated.derivatives[1], hermitian=True))

    @property
    def converged(self) -> bool:
        """Whether a Newton step would gain next to nothing."""
        score, information = self.evaluated.derivatives
        gain = 0.5 * float(score @ self.covariance @ score)
        return bool(gain <= EXACT and np.linalg.eigvalsh(information)[0] > 0.0)

    def class_covariances(self) -> Float:
        """Return the covariance of each class's coefficients, (K, p, p)."""
        n_classes, size = self.parameters.points.shape
        square = self.covariance[: n_classes * size, : n_classes * size]
        blocks = square.reshape(n_classes, size, n_classes, size)
        return np.stack([blocks[k, :, k] for k in range(n_classes)])

    def share_errors(self) -> Float:
        """Return the standard errors of shares, by the delta method, (K,)."""
        shares, size = self.parameters.shares, self.parameters.points.size
        slopes = (np.diag(shares) - np.outer(shares, shares))[:, :-1]
        covariance = slopes @ self.covariance[size:, size:] @ slopes.T
        return np.asarray(np.sqrt(np.maximum(np.diag(covariance), 0.0)))

    def normal_prior(self) -> GaussianPrior:
        """Return the mean and covariance of users' coefficients, with the classes' uncertainty."""
        shares, points = self.parameters.shares, self.parameters.points
        covariance = class_covariance(shares[None], points)[0]
        covariance += np.einsum("k,kpq->pq", shares, self.class_covariances())
        return GaussianPrior.of_covariance(shares @ points, covariance)


def class_covariance(member: Float, points: Float) -> Float:
    """Return the covariance of class coefficients by membership, (n, p, p)."""
    mean = member @ points
    squares = np.einsum("nk,kp,kq->npq", member, points, points)
    return np.asarray(squares - mean[:, :, None] * mean[:, None, :])


@dataclass(frozen=True)
class ClassNewcomers:
    """Posteriors of new users, by the probabilities of classes given their labels.

    Standard errors are those of a normal distribution with the variance of coefficients between
    classes, and are at most those of users without labels.
    """

    fitted_prior: FittedPrior
    parameters: ClassParameters
    loss: PriorLoss
    positive_share: float

    def evaluate(self, annotations: Annotations) -> EvaluatedClasses:
        """Return the losses of new users in each class."""
        prepared, prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        responses, prior = self.loss.of_newcomers(prepared, prior, self.positive_share)
        # Choices do not identify an intercept: single labels have that of training labels.
        added = prior.prior.mean[self.fitted_prior.design.size :]
        more = np.repeat(added[None], self.parameters.n_classes, axis=0)
        parameters = replace(self.parameters, points=np.hstack([self.parameters.points, more]))
        problem = LatentClasses.of(responses, prior.likelihood, annotations.n_users, 0.0)
        return problem.evaluate(parameters)

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return each user's mean coefficients and matrix K; see `Posterior`."""
        member, points = self.evaluate(annotations).memberships, self.parameters.points
        shares = self.parameters.shares[None]
        reduction = class_covariance(shares, points) - class_covariance(member, points)
        roots = symmetric_root(reduction).transpose(0, 2, 1)
        return member @ points, roots.astype(np.float32)

    def answered(self, annotations: Annotations, posterior: Posterior) -> None:
        """Return None, since items have no effects."""
