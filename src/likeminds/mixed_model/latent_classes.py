"""Latent classes of users: a finite mixture of logits, fitted by EM and Newton's method.

A user i belongs to class k with probability pi_k, and labels with the coefficients b_k of it:

    log L = sum_i log sum_k pi_k exp(-loss_i(b_k)).

A ridge on b_k and pseudo-users of each class, both tiny, keep estimates finite. The objective is
log L with these two; `LatentClassFit.log_likelihood` is log L alone.
"""

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray
from scipy.special import logsumexp, xlogy

from likeminds._util.array_types import Float
from likeminds._util.per_user_arrays import EXACT, damped_newton, symmetric_root
from likeminds.data.annotations import Annotations
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import ROUNDING, GaussianPrior
from likeminds.mixed_model.likelihoods import Likelihood, LossDerivatives
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.responses import PaddedRows, Responses, data_of

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

    @property
    def n_free(self) -> int:
        """The number of free parameters."""
        return int(self.points.size) + self.n_classes - 1

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

    def evaluate(self, points: Float) -> "EvaluatedClasses":
        """Return the losses of all users in each class, with their derivatives."""
        found = [[self.likelihood.at(data.rows @ b, data) for b in points] for data in self.blocks]
        return EvaluatedClasses(self, points, found)

    def memberships(self, parameters: ClassParameters) -> Float:
        """Return the posterior probabilities of classes, (n_users, K)."""
        return self.evaluate(parameters.points).memberships(parameters.shares)

    def log_likelihoods(self, parameters: ClassParameters) -> Float:
        """Return the log-probability of each user's labels, (n_users,)."""
        joint = self.evaluate(parameters.points).joint(parameters.shares)
        return np.asarray(logsumexp(joint, axis=1))

    def objective(self, evaluated: "EvaluatedClasses", shares: Float) -> float:
        """Return the penalised log-likelihood."""
        ridge = 0.5 * self.alpha * float((evaluated.points**2).sum())
        prior = float(xlogy(self.alpha, shares).sum())
        return float(logsumexp(evaluated.joint(shares), axis=1).sum()) - ridge + prior

    def fit(
        self, n_classes: int, n_starts: int, rng: np.random.Generator, tol: float, max_iter: int
    ) -> "LatentClassFit":
        """Fit classes from several random starts; continue the best one to the optimum."""
        size = self.blocks[0].rows.shape[2]
        one = ClassParameters(np.ones(1), np.zeros((1, size)))
        pooled = self._maximise(one)
        if n_classes == 1:
            return LatentClassFit(self, pooled, (self._value(pooled),))
        shares = np.full(n_classes, 1.0 / n_classes)
        best: tuple[ClassParameters, list[float]] | None = None
        for _ in range(n_starts):
            # Starts differ by one, in log-odds, from the coefficients of a single class.
            moved = rng.standard_normal((n_classes, size))
            start = ClassParameters(shares, pooled.points + moved)
            found = self.em(start, tol, min(_FIRST_STEPS, max_iter))
            if best is None or found[1][-1] > best[1][-1]:
                best = found
        assert best is not None
        parameters, trace = self.em(best[0], tol, max(max_iter - _FIRST_STEPS, 0))
        parameters = self._maximise(parameters).by_share()
        return LatentClassFit(self, parameters, (*best[1], *trace[1:], self._value(parameters)))

    def em(
        self, start: ClassParameters, tol: float, max_iter: int
    ) -> tuple[ClassParameters, list[float]]:
        """Take EM steps until the objective gains less than a share ``tol`` of itself."""
        shares, evaluated = start.shares, self.evaluate(start.points)
        trace = [self.objective(evaluated, shares)]
        for _ in range(max_iter):
            member = evaluated.memberships(shares)
            shares = member.sum(axis=0) + self.alpha
            shares = shares / shares.sum()
            evaluated = self._newton_step(evaluated, member)
            trace.append(self.objective(evaluated, shares))
            if trace[-1] - trace[-2] <= tol * (1.0 + abs(trace[-1])):
                break
        return ClassParameters(shares, evaluated.points), trace

    def _newton_step(self, evaluated: "EvaluatedClasses", member: Float) -> "EvaluatedClasses":
        """Return all classes after one damped Newton step, users weighted by membership."""

        def at(points: Float) -> tuple[EvaluatedClasses, Float]:
            new = self.evaluate(points)
            ridge = 0.5 * self.alpha * (points**2).sum(axis=1)
            return new, (member * new.losses).sum(axis=0) + ridge

        def step(found: EvaluatedClasses) -> Float:
            slope = np.einsum("nk,nkp->kp", member, found.scores) - self.alpha * found.points
            return np.asarray(np.linalg.solve(found.curvature(member), slope[:, :, None])[:, :, 0])

        return damped_newton(evaluated.points, at, step, n_steps=1)

    def _maximise(self, parameters: ClassParameters) -> ClassParameters:
        """Return the parameters after Newton's method on the objective itself."""

        def at(flat: Float) -> tuple[ClassParameters, Float]:
            new = parameters.at(flat[0])
            return new, np.array([-self._value(new)])

        def step(found: ClassParameters) -> Float:
            score, information = self.derivatives(found)
            # Absolute eigenvalues make every step an ascent, also at a saddle point.
            values, vectors = np.linalg.eigh(information)
            lengths = np.maximum(np.abs(values), ROUNDING * np.abs(values).max())
            return np.asarray((vectors @ ((vectors.T @ score) / lengths))[None])

        return damped_newton(parameters.flat()[None], at, step)

    def _value(self, parameters: ClassParameters) -> float:
        return self.objective(self.evaluate(parameters.points), parameters.shares)

    def derivatives(self, parameters: ClassParameters) -> tuple[Float, Float]:
        """Return the gradient of the objective by `flat` parameters, and minus its Hessian.

        By Louis' identity: the information of labels and classes, less the variance of their
        score given the labels.
        """
        shares, n_classes = parameters.shares, parameters.n_classes
        evaluated = self.evaluate(parameters.points)
        member, scores = evaluated.memberships(shares), evaluated.scores
        weighted = member[:, :, None] * scores
        size = parameters.points.size
        flat = weighted.reshape(self.n_users, size)
        free = slice(0, n_classes - 1)
        slope = (weighted.sum(axis=0) - self.alpha * parameters.points).ravel()
        by_odds = (member - shares).sum(axis=0) + self.alpha * (1.0 - n_classes * shares)
        information = np.zeros((size + n_classes - 1, size + n_classes - 1))
        blocks = evaluated.curvature(member) - np.einsum("nkp,nkq->kpq", weighted, scores)
        crossed = -np.einsum("nkp,nl->kpl", weighted, member)
        for k in range(n_classes):
            part = slice(k * parameters.points.shape[1], (k + 1) * parameters.points.shape[1])
            information[part, part] = blocks[k]
            crossed[k, :, k] += weighted[:, k].sum(axis=0)
        information[:size, :size] += flat.T @ flat
        information[:size, size:] = -crossed.reshape(size, n_classes)[:, free]
        information[size:, :size] = information[:size, size:].T
        total = self.n_users + n_classes * self.alpha
        odds = total * (np.diag(shares) - np.outer(shares, shares))
        odds -= np.diag(member.sum(axis=0)) - member.T @ member
        information[size:, size:] = odds[free, free]
        return np.append(slope, by_odds[free]), information


@dataclass(frozen=True)
class EvaluatedClasses:
    """Losses of users in each class, at some coefficients, with their derivatives."""

    problem: LatentClasses
    points: Float
    found: list[list[LossDerivatives]]  # by block of users, then by class

    @cached_property
    def losses(self) -> Float:
        """The loss of each user's labels in each class, (n_users, K); zero without labels."""
        losses = np.zeros((self.problem.n_users, len(self.points)))
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            losses[data.users] = np.column_stack([one.loss for one in classes])
        return losses

    @cached_property
    def scores(self) -> Float:
        """Minus the gradients of the losses by coefficients, (n_users, K, p)."""
        scores = np.zeros((self.problem.n_users, *self.points.shape))
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            for k, one in enumerate(classes):
                scores[data.users, k] = (one.residuals[:, None, :] @ data.rows)[:, 0]
        return scores

    def curvature(self, member: Float) -> Float:
        """Return the Hessians of losses weighted by membership, with the ridge, (K, p, p)."""
        size = self.points.shape[1]
        total = np.repeat(self.problem.alpha * np.eye(size)[None], len(self.points), axis=0)
        for data, classes in zip(self.problem.blocks, self.found, strict=True):
            for k, one in enumerate(classes):
                rows = one.curvature.times_root_back(data.rows)
                rows = rows * np.sqrt(member[data.users, k])[:, None, None]
                rows = rows.reshape(-1, size)
                total[k] += rows.T @ rows
        return total

    def joint(self, shares: Float) -> Float:
        """Return the logarithm of the probability of labels and class, (n_users, K)."""
        return np.asarray(np.log(shares) - self.losses)

    def memberships(self, shares: Float) -> Float:
        """Return the posterior probabilities of classes, (n_users, K)."""
        joint = self.joint(shares)
        return np.asarray(np.exp(joint - logsumexp(joint, axis=1, keepdims=True)))


@dataclass(frozen=True)
class LatentClassFit:
    """Fitted classes, and the objective by step."""

    problem: LatentClasses
    parameters: ClassParameters
    trace: tuple[float, ...]

    @cached_property
    def memberships(self) -> Float:
        """The posterior probabilities of classes, (n_users, K)."""
        return self.problem.memberships(self.parameters)

    @cached_property
    def log_likelihood(self) -> float:
        """The log-likelihood, without penalties."""
        return float(self.problem.log_likelihoods(self.parameters).sum())

    @cached_property
    def bic(self) -> float:
        """Schwarz's criterion, with the number of users as that of observations."""
        return (
            self.parameters.n_free * float(np.log(self.problem.n_users)) - 2.0 * self.log_likelihood
        )

    @property
    def aic(self) -> float:
        """Akaike's criterion."""
        return 2.0 * self.parameters.n_free - 2.0 * self.log_likelihood

    @property
    def entropy(self) -> float:
        """Relative entropy: 1 where every user's class is certain, 0 where none is known."""
        if self.parameters.n_classes == 1:
            return 1.0
        uncertain = -float(xlogy(self.memberships, self.memberships).sum())
        return 1.0 - uncertain / (self.problem.n_users * float(np.log(self.parameters.n_classes)))

    @cached_property
    def _derivatives(self) -> tuple[Float, Float]:
        return self.problem.derivatives(self.parameters)

    @cached_property
    def covariance(self) -> Float:
        """The covariance of `ClassParameters.flat`: the inverse of the information."""
        return np.asarray(np.linalg.pinv(self._derivatives[1], hermitian=True))

    @property
    def converged(self) -> bool:
        """Whether a Newton step would gain next to nothing."""
        score, information = self._derivatives
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

    def row(self) -> dict[str, float]:
        """Return the criteria by which numbers of classes are compared."""
        return {
            "classes": self.parameters.n_classes,
            "log_likelihood": self.log_likelihood,
            "parameters": self.parameters.n_free,
            "aic": self.aic,
            "bic": self.bic,
            "entropy": self.entropy,
        }


def with_intercept(parameters: ClassParameters, intercept: Float) -> ClassParameters:
    """Return classes with more coordinates, the same for all classes."""
    more = np.repeat(intercept[None], parameters.n_classes, axis=0)
    return replace(parameters, points=np.hstack([parameters.points, more]))


def class_covariance(member: Float, points: Float) -> Float:
    """Return the covariance of class coefficients by membership, (n, p, p)."""
    mean = member @ points
    squares = np.einsum("nk,kp,kq->npq", member, points, points)
    return np.asarray(squares - mean[:, :, None] * mean[:, None, :])


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
        responses, prior = self.loss.of_newcomers(prepared, prior, self.positive_share)
        # Choices do not identify an intercept: for single labels it is that of training labels.
        added = prior.prior.mean[self.fitted_prior.design.size :]
        parameters = with_intercept(self.parameters, added)
        return LatentClasses.of(responses, prior.likelihood, annotations.n_users, 0.0), parameters

    def memberships(self, annotations: Annotations) -> Float:
        """Return the probabilities of classes, (n_users, K)."""
        problem, parameters = self.problem(annotations)
        return problem.memberships(parameters)

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return each user's mean coefficients and matrix K; see `Posterior`."""
        member, points = self.memberships(annotations), self.parameters.points
        shares = self.parameters.shares[None]
        reduction = class_covariance(shares, points) - class_covariance(member, points)
        roots = symmetric_root(reduction).transpose(0, 2, 1)
        return member @ points, roots.astype(np.float32)

    def answered(self, annotations: Annotations, posterior: Posterior) -> None:
        """Return nothing: items have no effects of their own."""
