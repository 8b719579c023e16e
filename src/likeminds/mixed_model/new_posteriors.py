"""Posteriors of new users and new items, given a fitted prior."""

from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from likeminds._util.array_types import Float, Index
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import compact
from likeminds.mixed_model.item_posteriors import (
    Answered,
    ItemPosteriors,
    PredictionRows,
    Slopes,
    choice_slopes,
    fold_in,
    label_slopes,
)
from likeminds.mixed_model.laplace import WarmStarts
from likeminds.mixed_model.losses import PriorLoss
from likeminds.mixed_model.ordinal_responses import DavidsonLikelihood
from likeminds.mixed_model.posterior import Posterior
from likeminds.mixed_model.user_posteriors import FittedPrior, Single, posterior_of


@dataclass(frozen=True)
class NewUserPosteriors:
    """Posteriors of new users, given a fitted prior."""

    fitted_prior: FittedPrior
    loss: PriorLoss
    positive_share: float  # of the labels in training
    rank: int  # the largest number of rows of K

    def fold_in(self, annotations: Annotations) -> tuple[Float, Single]:
        """Return each user's mode and matrix K; see `Posterior`."""
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        responses, fitted_prior = self.loss.of_newcomers(
            annotations, fitted_prior, self.positive_share
        )
        shifts = fitted_prior.shifts(annotations.user_features, annotations.user_ids)
        points, reduction = posterior_of(
            responses,
            annotations.n_users,
            fitted_prior,
            warm_starts=WarmStarts(),
            rank=self.rank,
            shifts=shifts,
        )
        # Scores do not need the coordinates that only new users have.
        own = slice(self.fitted_prior.design.size, fitted_prior.design.size)
        return np.delete(points, own, axis=1), np.delete(reduction, own, axis=2)

    def answered(self, annotations: Annotations, posterior: Posterior) -> Answered | None:
        """Return the residuals of labelled items, if items have ids; choices have none."""
        if (
            self.fitted_prior.items is None
            or not annotations.has_items
            or annotations.choice_set_codes is not None
        ):
            return None
        annotations, fitted_prior = self.loss.prepare_new_users(annotations, self.fitted_prior)
        users = annotations.user_codes
        eta = posterior.eta(posterior.prediction_rows(annotations.X, annotations.items), users)
        likelihood: Any = fitted_prior.likelihood
        utility = likelihood.utility(eta, annotations.outcomes, users)
        return Answered(users, annotations.items, utility - eta)


def new_item_posteriors(
    posterior: Posterior, annotations: Annotations, users: Index
) -> ItemPosteriors:
    """Return the posteriors of items not in training, from the labels of users.

    Choice sets may show items of the training, too; their posteriors do not change.
    """
    if posterior.items is None:
        raise ValueError("This model has no item effects (`item_effects_` is False).")
    design, n_rows = posterior.design, len(annotations)
    targets = posterior.prediction_rows(annotations.X, annotations.items)
    is_new = ~targets.is_known(posterior.items)
    item = np.full(n_rows, -1)
    item[is_new], which = compact(annotations.item_codes[is_new], annotations.n_items)
    unknown = replace(posterior.items.prior_of(len(which)), ids=annotations.item_ids[which])
    points = np.vstack([posterior.points, posterior.prior.mean])[users]
    # The factors of new items are zero a priori.
    rows = targets.rows.copy()
    rows[:, design.n_weights : design.size] = 1.0
    slopes, differences = _pointwise(posterior, annotations, users, rows)
    return fold_in(
        unknown,
        item,
        slopes,
        bound=1.0 if annotations.choice_set_codes is None else 2.0,
        weight=np.ones(n_rows) if annotations.weights is None else annotations.weights,
        eta=np.einsum("np,np->n", rows, points) + targets.effects,
        score_variance=posterior.deviation(PredictionRows(differences), users) ** 2,
        v=points[:, design.size :],
    )


def _pointwise(
    posterior: Posterior, annotations: Annotations, users: Index, rows: Float
) -> tuple[Slopes, Float]:
    """Return the loss of rows, and the rows themselves, less the mean of the others in a set."""
    sets = annotations.choice_set_codes
    if sets is None:
        if annotations.grades is not None and posterior.response_style is not None:
            return posterior.response_style.slopes(annotations.grades, users), rows
        return partial(label_slopes, annotations.labels), rows
    others = np.maximum(np.bincount(sets) - 1, 1)[sets, None]
    total = np.zeros((int(sets.max()) + 1, rows.shape[1]))
    np.add.at(total, sets, rows)
    worst = annotations.picks_worst
    sign = np.ones(len(annotations)) if worst is None else np.where(worst, -1.0, 1.0)
    differences = rows - (total[sets] - rows) / others
    likelihood = posterior.likelihood
    nu = likelihood.nu if isinstance(likelihood, DavidsonLikelihood) else 0.0
    return partial(choice_slopes, annotations.chosen, sets, sign, nu), differences
