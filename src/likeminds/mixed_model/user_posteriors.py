"""Each user's posterior, once the prior is learned: its mode, and what labels say of the rest."""

from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from likeminds._util.array_types import Float, Index
from likeminds._util.map_reduce import one_blas_thread
from likeminds._util.per_user_arrays import solve, times
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact
from likeminds.mixed_model.extensions.sign_constraints import (
    LogNormalPrior,
    bound_modes,
    curvature_of_logs,
    find_mode_of_logs,
    moments_of_weights,
    variance_reductions,
    weights_of_logs,
)
from likeminds.mixed_model.fitted_prior import FittedPrior
from likeminds.mixed_model.gaussian_prior import GaussianPrior, MeanShifts
from likeminds.mixed_model.item_posteriors import (
    Answered,
    ItemPosteriors,
    PointwiseChoiceLoss,
    PointwiseLabelLoss,
    PointwiseLoss,
    PredictionRows,
    fold_in,
)
from likeminds.mixed_model.laplace import EStepParams, PosteriorMode, WarmStart, WarmStarts
from likeminds.mixed_model.likelihoods import Curvature
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.numerics import EXACT
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.primal_dual import Dual, Primal, system_of
from likeminds.mixed_model.responses import PaddedRows, ResponseBlock, Responses, people_of

Single = NDArray[np.float32]


def posterior_of(
    tasks: Responses,
    n_users: int,
    fitted_prior: FittedPrior,
    *,
    warm_starts: WarmStarts,
    rank: int,
    shifts: Float | None = None,
    quick: bool = False,
) -> tuple[Float, NDArray[np.float32]]:
    """Return each user's mode and matrix K, of at most ``rank`` rows; see `Beliefs`.

    The mode is that of the prior; the uncertainty includes that of the prior's parameters. Where
    a crowd has covariates, users whose own are not known may have any: their prior is the wider
    one, in which covariates are integrated out. Of the others, K says that they are known.

    ``quick`` is for large crowds: steps to modes are solved for nearly (so exactly that another
    partitioning of the users moves no user by more than a millionth of how far apart they are), and
    K, whose numbers are single precision, is computed in that, and by subspace iteration. It then
    says a little less than it might, never more.
    """
    finder = PosteriorFinder.of(fitted_prior, rank, shifts, quick=quick)
    told = fitted_prior.variance_reduction(shifts, n_users)
    points, known = finder.without_labels(fitted_prior, told)
    with one_blas_thread():
        answers = tasks.map(find_user_posteriors, finder, warm_starts.own)
        few = _unknown(tasks, told) if told.shape[1] else None
        if few is not None:
            answers = chain(answers, few.map(find_user_posteriors, finder.of_unknown(fitted_prior)))
        for users, found, inner in answers:
            points[users], known[users, : inner.shape[1]] = found, inner
    return points, known


def _unknown(tasks: Responses, told: Float) -> Responses | None:
    """Return the labels of those of whom no covariate is known, where others' are."""
    nothing = np.all(told == 0.0, axis=(1, 2))
    chosen = nothing[np.sort(np.concatenate(list(tasks.map(people_of, None))))]
    return tasks.of_users(chosen) if chosen.any() else None


@dataclass(frozen=True)
class PosteriorFinder:
    """How posteriors are found: modes under a prior, and K under the predictive one."""

    terms: EStepParams
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
        """Return how the posteriors of a crowd are found: see `posterior_of`."""
        prior = fitted_prior.prior.shifted(shifts)
        predictive = prior if fitted_prior.inflated is None else fitted_prior.inflated
        terms = EStepParams(prior, fitted_prior.likelihood, EXACT, approximate=quick)
        rank = min(rank, len(prior.mean))
        return cls(terms, predictive, rank, fitted_prior.signs, fitted_prior.log_normal, quick)

    def of_unknown(self, fitted_prior: FittedPrior) -> "PosteriorFinder":
        """Return how those are settled of whom no covariate is known, where others' are."""
        terms = EStepParams(fitted_prior.marginal, fitted_prior.likelihood)
        return replace(self, terms=terms, predictive=fitted_prior.predictive)

    def without_labels(
        self, fitted_prior: FittedPrior, told: Float
    ) -> tuple[Float, NDArray[np.float32]]:
        """Return modes and matrices K of users without labels, to be filled in.

        ``told`` are the rows of K that covariates take, of shape (n_users, m, p).
        """
        size = len(self.terms.prior.mean)
        # The penalty for the uncertainty of items takes a few rows more, and so do covariates.
        n_rows = self.rank + (0 if fitted_prior.items is None else fitted_prior.items.n_factors)
        known = np.zeros((len(told), n_rows + told.shape[1], size), dtype=np.float32)
        known[:, n_rows:] = told
        return self.terms.prior.means(np.arange(len(told))), known


def find_user_posteriors(
    block: ResponseBlock, finder: PosteriorFinder, kept: WarmStart | None
) -> tuple[Index, Float, NDArray[np.float32]]:
    """Return a block's users, their points, and their matrices K."""
    prior, predictive = finder.terms.prior, finder.predictive
    if finder.log_normal is not None:
        return _settle_logs(block.task, finder, finder.log_normal)
    mode = finder.terms.mode_of(block, kept)
    users = mode.task.users
    found = prior.means(users) + mode.system.z(mode.state) @ prior.root.T
    if finder.signs is not None:
        found = bound_modes(found, mode.task, prior, finder.terms.likelihood, finder.signs)
    # With twice as many rows as are kept, subspace iteration is faster than eigenvectors.
    few = finder.rank * 2 <= mode.task.rows.shape[1] < len(prior.mean)
    if finder.quick and few and finder.rank > 0 and mode.task.precision is None:
        return users, found, _nearly_known(mode, predictive, finder.rank)
    system = mode.system if predictive is prior else system_of(mode.task, predictive)
    if mode.task.beyond is None:
        inner = _known(system, mode.derivatives.curvature, finder.rank)
    else:
        inner = _shortened(
            _known(system, mode.derivatives.curvature, mode.task.rows.shape[1]), finder.rank
        )
    return users, found, (inner @ predictive.root.T).astype(np.float32)


def _settle_logs(
    task: PaddedRows, finder: PosteriorFinder, logs: LogNormalPrior
) -> tuple[Index, Float, NDArray[np.float32]]:
    """Return the same where some weights are log-normal: means, and K for their covariance."""
    likelihood = finder.terms.likelihood
    mode = find_mode_of_logs(task, logs.prior, likelihood, logs.signs)
    found, derivatives = mode.logs, mode.derivatives
    if finder.signs is not None:
        found = bound_modes(found, task, logs.prior, likelihood, finder.signs, logs=logs.signs)
        derivatives = likelihood.at(times(task.rows, weights_of_logs(found, logs.signs)), task)
    root = logs.inflated.root
    precision = curvature_of_logs(task, found, derivatives, root, logs.signs)
    covariance = root @ np.linalg.inv(precision) @ root.T
    points, covariance = moments_of_weights(found, covariance, logs.signs)
    inner = variance_reductions(covariance, finder.predictive, finder.rank)
    return task.users, points, inner.astype(np.float32)


def _shortened(known: Float, most: int) -> Float:
    """Return matrices of fewer rows, (b, most, p), that have the largest share of K'K.

    Where rows have something beyond the coordinates, what they tell most of may be there.
    """
    if known.shape[1] <= most:
        return known
    _, vectors = np.linalg.eigh(known @ known.transpose(0, 2, 1))
    return np.asarray(vectors[:, :, -most:].transpose(0, 2, 1) @ known)


def _known(system: Primal | Dual, curvature: Curvature, most: int) -> Float:
    """Return matrices K of few rows, (b, m, p), with the covariance I - K'K of z."""
    if system.user_penalty is not None:
        inner = system.user_penalty.of_rows(_known(system.without_penalty(), curvature, most))
        return np.concatenate([system.user_penalty.variance_reduction(), inner], axis=1)
    if isinstance(system, Dual) and system.rows.shape[1] <= most:
        # Where there is room for all rows, a Cholesky factor does what eigenvectors would.
        factor: Float = np.asarray(np.linalg.cholesky(system.matrices(curvature)), dtype=np.float64)
        return solve(factor, curvature.times_root_back(system.rows))
    directions, shrunk = system.information(curvature, most)
    return np.asarray(np.sqrt(shrunk)[:, :, None] * directions)


def _nearly_known(mode: PosteriorMode, prior: GaussianPrior, most: int) -> Single:
    """Return nearly the K of `_known`, in weights, several times faster than by eigenvectors.

    With Z = R'X in the basis of z, and any matrix Q, (I + Z Z') and Q make the posterior given
    Q'Z alone: K = (Q'Q + Q'Z Z'Q)^-1/2 Q'Z. Power iteration turns Q towards what Z says most
    about; whatever Q is, nothing is claimed that the labels do not say.
    """
    rows: Any = mode.task.rows.astype(np.float32) @ prior.root.astype(np.float32)
    Z = mode.derivatives.curvature.times_root_back(rows).astype(np.float32, copy=False)
    back = Z.transpose(0, 2, 1)
    lot = np.random.default_rng(0).standard_normal((Z.shape[1], most)).astype(np.float32)
    Q = Z @ (back @ lot)
    Q = _orthonormal(Z @ (back @ _orthonormal(Q)))
    across = Q.transpose(0, 2, 1)
    seen = across @ Z
    factor = np.linalg.cholesky(_lifted(across @ Q + seen @ seen.transpose(0, 2, 1)))
    return np.asarray(np.linalg.solve(factor, seen) @ prior.root.T.astype(np.float32))


def _orthonormal(Q: Single) -> Single:
    """Return columns with the same span, nearly orthonormal, by Cholesky factors."""
    Q = Q / (np.sqrt(np.einsum("bnm,bnm->bm", Q, Q)) + np.float32(1e-30))[:, None, :]
    inverse = np.linalg.inv(np.linalg.cholesky(_lifted(Q.transpose(0, 2, 1) @ Q)))
    return np.asarray(Q @ inverse.transpose(0, 2, 1))


def _lifted(gram: Single) -> Single:
    """Return matrices that are positive definite in spite of rounding; K says less for it."""
    diagonal = np.einsum("bmm->bm", gram)
    # What keeps nearly dependent columns apart, in single precision.
    diagonal += np.float32(3e-5) * (np.float32(1.0) + diagonal)
    return gram


@dataclass(frozen=True)
class NewUserPosteriors:
    """New users to a ranker with a learned prior."""

    fitted_prior: FittedPrior  # the prior of new users' weights
    loss: PriorLoss  # the loss of new users' labels
    positive_share: float  # the share of positive labels in training
    rank: int  # how many directions of the posterior covariance are kept

    def fold_in(self, annotations: Annotations) -> tuple[Float, NDArray[np.float32]]:
        """Return each user's mode and matrix K; see `Posterior`."""
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        tasks, fitted_prior = self.loss.of_newcomers(annotations, fitted_prior, self.positive_share)
        shifts = fitted_prior.shifts(annotations.user_features, annotations.user_ids)
        points, known = posterior_of(
            tasks,
            annotations.n_users,
            fitted_prior,
            warm_starts=WarmStarts(),
            rank=self.rank,
            shifts=shifts,
        )
        # Coordinates that only new users have served their purpose: scores need none of them.
        own = slice(self.fitted_prior.design.size, fitted_prior.design.size)
        return np.delete(points, own, axis=1), np.delete(known, own, axis=2)

    def answered(self, annotations: Annotations, posterior: Posterior) -> Answered | None:
        """Return the residuals of labelled items, where items are known by their ids.

        A choice is about differences, so it leaves no residual of a single item.
        """
        if (
            self.fitted_prior.items is None
            or not annotations.has_items
            or annotations.choice_set_codes is not None
        ):
            return None
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        users = annotations.user_codes
        eta, _ = posterior.linear_predictor(
            posterior.prediction_rows(annotations.X, annotations.items), users
        )
        likelihood: Any = fitted_prior.likelihood
        utility = likelihood.utility(eta, annotations.outcomes, users)
        return Answered(users, annotations.items, utility - eta)


def new_item_posteriors(
    posterior: Posterior, annotations: Annotations, users: Index
) -> ItemPosteriors:
    """Return the posteriors of items not seen in training, from labels that ``people`` gave.

    Choice sets may show known items, too: their scores are what they are.
    """
    if posterior.items is None:
        raise ValueError("This model has no item effects (`item_effects_` is False).")
    coordinates, n_rows = posterior.design, len(annotations)
    seen = posterior.prediction_rows(annotations.X, annotations.items)
    is_new = ~seen.is_known(posterior.items)
    item = np.full(n_rows, -1)
    item[is_new], which = compact(annotations.item_codes[is_new], annotations.n_items)
    unknown = replace(posterior.items.prior_of(len(which)), ids=annotations.item_ids[which])
    points = np.vstack([posterior.points, posterior.prior.mean])[users]
    # The factors of new items are not known yet: these coordinates are zero.
    rows = seen.rows.copy()
    rows[:, coordinates.n_weights : coordinates.size] = 1.0
    loss, apart = _pointwise(posterior, annotations, users, rows)
    return fold_in(
        unknown,
        item,
        loss,
        weight=np.ones(n_rows) if annotations.weights is None else annotations.weights,
        eta=np.einsum("np,np->n", rows, points) + seen.effects,
        sure=posterior.deviation(PredictionRows(apart), users) ** 2,
        v=points[:, coordinates.size :],
    )


def _pointwise(
    posterior: Posterior, annotations: Annotations, users: Index, rows: Float
) -> tuple[PointwiseLoss, Float]:
    """Return the loss of rows, and the rows whose scores it compares with zero.

    In a choice set that is how far a row is from the mean of the others.
    """
    sets = annotations.choice_set_codes
    if sets is None:
        if annotations.grades is not None and posterior.response_style is not None:
            return posterior.response_style.pointwise_loss(annotations.grades, users), rows
        return PointwiseLabelLoss(annotations.labels), rows
    others = np.maximum(np.bincount(sets) - 1, 1)[sets, None]
    total = np.zeros((int(sets.max()) + 1, rows.shape[1]))
    np.add.at(total, sets, rows)
    worst = annotations.picks_worst
    sign = np.ones(len(annotations)) if worst is None else np.where(worst, -1.0, 1.0)
    apart = rows - (total[sets] - rows) / others
    return PointwiseChoiceLoss(annotations.chosen, sets, sign), apart
