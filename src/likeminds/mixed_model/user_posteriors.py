"""The fitted prior, and users' posteriors given it: modes, and reductions of variance."""

from dataclasses import dataclass, field, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, IdArray, Index
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import solve, times
from likeminds.data.covariates import Covariates
from likeminds.data.identifiers import encode, lookup
from likeminds.mixed_model.design import Design
from likeminds.mixed_model.extensions.covariate_effects import CovariateEffects
from likeminds.mixed_model.extensions.sign_constraints import (
    LogNormalPrior,
    bound_modes,
    curvature_of_logs,
    find_mode_of_logs,
    moments_of_weights,
    variance_reductions,
    weights_of_logs,
)
from likeminds.mixed_model.gaussian_prior import GaussianPrior, ItemPosteriors, MeanShifts
from likeminds.mixed_model.laplace import EStepParams, PosteriorMode, WarmStart, WarmStarts
from likeminds.mixed_model.likelihoods import Curvature, Likelihood, LogisticLikelihood
from likeminds.mixed_model.primal_dual import Dual, Primal, system_of
from likeminds.mixed_model.responses import PaddedRows, ResponseBlock, Responses, users_of

Single = NDArray[np.float32]


@dataclass(frozen=True)
class FittedPrior:
    """The prior of users' weights, with its design and likelihood."""

    design: Design = field(metadata={"stored": "coordinates"})
    prior: GaussianPrior
    likelihood: Likelihood
    # The prior with the uncertainty of its parameters. Both are conditional on covariates.
    inflated: GaussianPrior | None = field(default=None, metadata={"stored": "wider"})
    covariate_effects: CovariateEffects | None = field(default=None, metadata={"stored": "traits"})
    items: ItemPosteriors | None = None
    # (p,): 1 or -1 for weights of that sign or zero, else 0: see `sign_constraints`.
    signs: Float | None = None
    # The prior of logarithms, if some weights are log-normal; ``prior`` and ``inflated`` then have
    # the moments of weights.
    log_normal: LogNormalPrior | None = field(default=None, metadata={"stored": "logs"})

    @property
    def predictive(self) -> GaussianPrior:
        """The prior of users without covariates, with the uncertainty of its parameters."""
        return self._without_covariates(self._own)

    @property
    def _own(self) -> GaussianPrior:
        return self.prior if self.inflated is None else self.inflated

    @property
    def simulated(self) -> GaussianPrior:
        """The normal prior that users are drawn from, of logarithms for log-normal weights."""
        return self.prior if self.log_normal is None else self.log_normal.prior

    @property
    def marginal(self) -> GaussianPrior:
        """The prior with covariates integrated out."""
        return self._without_covariates(self.prior)

    def _without_covariates(self, prior: GaussianPrior) -> GaussianPrior:
        effects = self.covariate_effects
        return prior if effects is None else prior.widened(effects.covariance)

    def shifts(self, covariates: Covariates | None, users: IdArray) -> Float | None:
        """Return the shifts of users' means by their covariates."""
        if self.covariate_effects is None:
            return None
        shifts = self.covariate_effects.shifts(covariates, users)
        # In files of earlier versions, covariates have no effect on weights of factors.
        return np.pad(shifts, ((0, 0), (0, len(self.prior.mean) - shifts.shape[1])))

    def variance_reduction(self, shifts: Float | None, n_users: int) -> Float:
        """Return matrices K by covariates, (n_users, m, p), as in `Posterior`.

        ``shifts`` are those of `shifts`: zero for users without covariates.
        """
        size = len(self.prior.mean)
        if self.covariate_effects is None or shifts is None:
            return np.zeros((n_users, 0, size))
        is_known = np.any(shifts != 0.0, axis=1)
        return np.asarray(is_known[:, None, None] * self.covariate_effects.variance_reduction(size))

    def levels(self, points: Float, n_groups: int) -> tuple[Float, Float]:
        """Return deviations of users' weights from the consensus: of the group, and personal."""
        n_weights, prior = self.design.n_weights, self.marginal
        directions = prior.directions(n_groups, n_weights)
        deviation = points[:, :n_weights] - prior.mean[:n_weights]
        group = deviation @ directions @ directions.T
        return self.design.weights(group), self.design.weights(deviation - group)

    def weights_by(self, name: str) -> list[tuple[str | None, Float]]:
        """Return the effect of a covariate on the weights of features, then of item factors.

        There is one for each category; for a number (None), it is that of a standard deviation.
        """
        if self.covariate_effects is None:
            return []
        effects = self.covariate_effects.examples(name)
        return [
            (kind, np.append(self.design.weights(added), added[self.design.size :]))
            for kind, added in effects
        ]

    @property
    def explained_by_covariates(self) -> dict[str, float]:
        """Each covariate's share of the variance of scores between users."""
        if self.covariate_effects is None:
            return {}
        covariance, n_weights = self.marginal.covariance, self.design.n_weights
        spread = np.zeros_like(covariance)
        own = self.design.spread
        spread[:n_weights, :n_weights] = np.eye(n_weights) if own is None else own
        if self.items is not None and self.items.n_factors:
            size = self.design.size
            spread[size:, size:] = np.cov(self.items.factors, rowvar=False, bias=True)
        return self.covariate_effects.explained(covariance, spread)

    def of_single_labels(self, positive_share: float) -> "FittedPrior":
        """Return a prior fitted to choices, extended to labels of single items.

        Choices do not identify the intercept. Its prior has the log-odds of training labels as
        mean, and standard deviation 2.
        """
        odds = float(np.log(positive_share / (1.0 - positive_share)))
        at = self.design.size
        return replace(
            self,
            design=replace(self.design, intercept=True),
            prior=self.prior.with_coordinate(odds, 2.0, at),
            inflated=self._own.with_coordinate(odds, 2.0, at),
            likelihood=LogisticLikelihood(),
            covariate_effects=None
            if self.covariate_effects is None
            else self.covariate_effects.with_coordinate(at),
            signs=None if self.signs is None else np.append(self.signs, 0.0),
            log_normal=None
            if self.log_normal is None
            else self.log_normal.with_coordinate(odds, 2.0),
        )


def posterior_of(
    responses: Responses,
    n_users: int,
    fitted_prior: FittedPrior,
    *,
    warm_starts: WarmStarts,
    rank: int,
    shifts: Float | None = None,
    quick: bool = False,
) -> tuple[Float, Single]:
    """Return each user's mode and matrix K, of at most ``rank`` rows; see `Posterior`.

    The mode is that under the prior; the covariance includes the uncertainty of the prior's
    parameters. If only some users have covariates, those without any have the marginal prior. For
    the others, K includes the reduction of variance by their covariates.

    ``quick`` is for many users. Newton steps are approximate, so another partition of users changes
    results by at most a millionth of their standard deviation. K is computed by subspace iteration
    in single precision. K'K is then slightly too small, never too large.
    """
    finder = PosteriorFinder.of(fitted_prior, rank, shifts, quick=quick)
    of_covariates = fitted_prior.variance_reduction(shifts, n_users)
    points, reduction = finder.without_labels(fitted_prior, of_covariates)
    with one_blas_thread():
        answers = responses.map(find_user_posteriors, finder, warm_starts.own)
        others = _without_covariates(responses, of_covariates) if of_covariates.shape[1] else None
        if others is not None:
            marginal = finder.without_covariates(fitted_prior)
            answers = chain(answers, others.map(find_user_posteriors, marginal))
        for users, found, inner in answers:
            points[users], reduction[users, : inner.shape[1]] = found, inner
    return points, reduction


def _without_covariates(responses: Responses, of_covariates: Float) -> Responses | None:
    """Return the labels of users without covariates, if there are any."""
    missing = np.all(of_covariates == 0.0, axis=(1, 2))
    chosen = missing[np.sort(np.concatenate(list(responses.map(users_of, None))))]
    return responses.of_users(chosen) if chosen.any() else None


@dataclass(frozen=True)
class PosteriorFinder:
    """The parameters of posteriors: the prior of modes, and the predictive one of K."""

    params: EStepParams
    predictive: GaussianPrior
    rank: int
    signs: Float | None
    log_normal: LogNormalPrior | None
    quick: bool = False

    @classmethod
    def of(
        cls,
        fitted_prior: FittedPrior,
        rank: int,
        shifts: Float | MeanShifts | None = None,
        *,
        quick: bool = False,
    ) -> "PosteriorFinder":
        """Return the parameters of `posterior_of`."""
        prior = fitted_prior.prior.shifted(shifts)
        predictive = prior if fitted_prior.inflated is None else fitted_prior.inflated
        params = EStepParams(prior, fitted_prior.likelihood, approximate=quick)
        rank = min(rank, len(prior.mean))
        return cls(params, predictive, rank, fitted_prior.signs, fitted_prior.log_normal, quick)

    def without_covariates(self, fitted_prior: FittedPrior) -> "PosteriorFinder":
        """Return the parameters for users without covariates: those of the marginal prior."""
        params = EStepParams(fitted_prior.marginal, fitted_prior.likelihood)
        return replace(self, params=params, predictive=fitted_prior.predictive)

    def without_labels(
        self, fitted_prior: FittedPrior, of_covariates: Float
    ) -> tuple[Float, Single]:
        """Return modes and matrices K, without labels, given rows of K by covariates."""
        size = len(self.params.prior.mean)
        # The penalty for the uncertainty of items adds a few rows.
        n_rows = self.rank + (0 if fitted_prior.items is None else fitted_prior.items.n_factors)
        n_users, n_more, _ = of_covariates.shape
        reduction = np.zeros((n_users, n_rows + n_more, size), dtype=np.float32)
        reduction[:, n_rows:] = of_covariates
        return self.params.prior.means(np.arange(n_users)), reduction


def find_user_posteriors(
    block: ResponseBlock, finder: PosteriorFinder, warm_start: WarmStart | None
) -> tuple[Index, Float, Single]:
    """Return a block's users, their modes, and their matrices K."""
    prior, predictive = finder.params.prior, finder.predictive
    if finder.log_normal is not None:
        return _log_normal_posteriors(block.data, finder, finder.log_normal)
    mode = finder.params.mode_of(block, warm_start)
    users = mode.data.users
    found = prior.means(users) + mode.z @ prior.root.T
    if finder.signs is not None:
        found = bound_modes(found, mode.data, prior, finder.params.likelihood, finder.signs)
    # With at least twice as many rows as K has, subspace iteration is faster than eigenvectors.
    is_dual = finder.rank * 2 <= mode.data.rows.shape[1] < len(prior.mean)
    if finder.quick and is_dual and finder.rank > 0 and mode.data.precision is None:
        return users, found, _approximate_reduction(mode, predictive, finder.rank)
    system = mode.system if predictive is prior else system_of(mode.data, predictive)
    if mode.data.beyond is None:
        inner = _variance_reduction(system, mode.derivatives.curvature, finder.rank)
    else:
        inner = _truncated(
            _variance_reduction(system, mode.derivatives.curvature, mode.data.rows.shape[1]),
            finder.rank,
        )
    return users, found, (inner @ predictive.root.T).astype(np.float32)


def _log_normal_posteriors(
    data: PaddedRows, finder: PosteriorFinder, logs: LogNormalPrior
) -> tuple[Index, Float, Single]:
    """Return users, means of weights, and K, if some weights are log-normal."""
    likelihood = finder.params.likelihood
    mode = find_mode_of_logs(data, logs.prior, likelihood, logs.signs)
    found, derivatives = mode.logs, mode.derivatives
    if finder.signs is not None:
        found = bound_modes(found, data, logs.prior, likelihood, finder.signs, logs=logs.signs)
        derivatives = likelihood.at(times(data.rows, weights_of_logs(found, logs.signs)), data)
    root = logs.inflated.root
    precision = curvature_of_logs(data, found, derivatives, root, logs.signs)
    covariance = root @ np.linalg.inv(precision) @ root.T
    points, covariance = moments_of_weights(found, covariance, logs.signs)
    inner = variance_reductions(covariance, finder.predictive, finder.rank)
    return data.users, points, inner.astype(np.float32)


def _truncated(reduction: Float, rank: int) -> Float:
    """Return matrices of fewer rows, (b, rank, p), with the largest share of K'K."""
    if reduction.shape[1] <= rank:
        return reduction
    _, vectors = np.linalg.eigh(reduction @ reduction.transpose(0, 2, 1))
    return np.asarray(vectors[:, :, -rank:].transpose(0, 2, 1) @ reduction)


def _variance_reduction(system: Primal | Dual, curvature: Curvature, rank: int) -> Float:
    """Return matrices K of few rows, (b, m, p), with the covariance I - K'K of z."""
    if system.user_penalty is not None:
        inner = system.user_penalty.of_rows(
            _variance_reduction(system.without_penalty(), curvature, rank)
        )
        return np.concatenate([system.user_penalty.variance_reduction(), inner], axis=1)
    if isinstance(system, Dual) and system.rows.shape[1] <= rank:
        # K may have all rows: a Cholesky factor is enough.
        factor: Float = np.asarray(np.linalg.cholesky(system.matrices(curvature)), dtype=np.float64)
        return solve(factor, curvature.times_root_back(system.rows))
    directions, shrunk = system.information(curvature, rank)
    return np.asarray(np.sqrt(shrunk)[:, :, None] * directions)


def _approximate_reduction(mode: PosteriorMode, prior: GaussianPrior, rank: int) -> Single:
    """Approximate K of `_variance_reduction`, in weights of features, by subspace iteration."""
    # With Z = R'X in the basis of z, the posterior given Q'Z alone has K = (Q'Q + Q'Z Z'Q)^-1/2
    # Q'Z: K'K is never too large. Power iteration turns Q towards the leading directions of Z.
    rows: Any = mode.data.rows.astype(np.float32) @ prior.root.astype(np.float32)
    Z = mode.derivatives.curvature.times_root_back(rows).astype(np.float32, copy=False)
    back = Z.transpose(0, 2, 1)
    start = np.random.default_rng(0).standard_normal((Z.shape[1], rank)).astype(np.float32)
    Q = Z @ (back @ start)
    Q = _orthonormal(Z @ (back @ _orthonormal(Q)))
    across = Q.transpose(0, 2, 1)
    projected = across @ Z
    gram = across @ Q + projected @ projected.transpose(0, 2, 1)
    factor = np.linalg.cholesky(_regularised(gram))
    return np.asarray(np.linalg.solve(factor, projected) @ prior.root.T.astype(np.float32))


def _orthonormal(Q: Single) -> Single:
    """Return columns with the same span, nearly orthonormal, by Cholesky factors."""
    Q = Q / (np.sqrt(np.einsum("bnm,bnm->bm", Q, Q)) + np.float32(1e-30))[:, None, :]
    inverse = np.linalg.inv(np.linalg.cholesky(_regularised(Q.transpose(0, 2, 1) @ Q)))
    return np.asarray(Q @ inverse.transpose(0, 2, 1))


def _regularised(gram: Single) -> Single:
    """Add to the diagonal, so matrices are positive definite in single precision."""
    diagonal = np.einsum("bmm->bm", gram)
    diagonal += np.float32(3e-5) * (np.float32(1.0) + diagonal)
    return gram


@dataclass(frozen=True)
class Answered:
    """The residuals of labelled items: E[eta + noise | label] - eta.

    A score eta is the mean utility of an item to a user. Its label also informs about the noise,
    the user's taste for this item alone.
    """

    users: Index  # (n,): the place of the user of each label
    items: IdArray  # (n,): the item of each label
    residuals: Float  # (n,): the residual of each label

    def at(self, users: Index, items: IdArray) -> Float:
        """Return the mean residual of each pair of user and item, zero without a label."""
        item, known = encode(self.items, "items")
        codes_of_items = lookup(items, known, "items")
        n = len(known)
        labelled, code = np.unique(self.users * n + item, return_inverse=True)
        mean = np.bincount(code, self.residuals) / np.bincount(code)
        pairs = users * n + codes_of_items
        place = np.minimum(np.searchsorted(labelled, pairs), len(labelled) - 1)
        return np.where((codes_of_items >= 0) & (labelled[place] == pairs), mean[place], 0.0)
