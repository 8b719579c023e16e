"""Migration from earlier formats: a crowd in separate arrays, and fewer parameters."""

from typing import Any

from likeminds._support.lazy_attributes import Unread
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.crowd import Crowd
from likeminds.prior.likelihoods import Regression
from likeminds.prior.losses import ALL_LOSSES
from likeminds.prior.prior import Prior

_LEARNED = ("prior_mean_", "basis_", "item_spread_", "ridge_")
_APART = (*_LEARNED, "prior_loadings_", "prior_residual_", "prior_unsure_", "precision_", "origin_")


def before(kind: str) -> dict[str, Any]:
    """Return the values of parameters that earlier files lack, where these are not the defaults."""
    return {"item_effects": False} if kind == "HierarchicalRanker" else {}


def renew(model: Any) -> None:
    """Replace the separate arrays of an earlier file by the crowd, which is made lazily."""
    names = model._fitted_names()
    if "prior_loadings_" not in names:
        return
    if "prior_mean_" in names and "loss_" not in names:
        model.loss_ = model.loss  # format 1 had no "auto"
        model.positive_share_ = 0.5  # asked for by choices only, which format 1 did not have
    stored = model.__dict__.setdefault("_unread", Unread({})).readers
    held = {name: vars(model).pop(name) for name in _APART if name in vars(model)}
    later = {name: stored.pop(name) for name in _APART if name in stored}

    def join() -> Crowd:
        parts = held | {name: read() for name, read in later.items()}
        return _learned(model, parts) if "prior_mean_" in parts else _spread(model, parts)

    stored["crowd_"] = join


def _learned(model: Any, parts: dict[str, Any]) -> Crowd:
    """Return the crowd of a `HierarchicalRanker`: the prior it learned."""
    loss = ALL_LOSSES[model.loss_]
    basis = parts["basis_"]
    coordinates = Coordinates(
        parts["origin_"],
        model.scale_,
        None if basis.shape[0] == basis.shape[1] else basis,
        loss.has_intercept,
        parts["item_spread_"],
    )
    prior = Prior(parts["prior_mean_"], parts["prior_loadings_"], parts["prior_residual_"])
    likelihood = loss.likelihood
    if isinstance(likelihood, Regression):
        likelihood = Regression(parts["precision_"])
    unsure = parts.get("prior_unsure_")
    wider = None if unsure is None else prior.predictive(unsure, model.n_groups_)
    return Crowd(coordinates, prior, likelihood, wider)


def _spread(model: Any, parts: dict[str, Any]) -> Crowd:
    """Return the crowd of a `ThreeLevelRanker`: the distribution of people's weights."""
    mean = model.consensus_ * model.scale_
    return Crowd(
        Coordinates(parts["origin_"], model.scale_, None, intercept=False),
        Prior(mean, parts["prior_loadings_"], parts["prior_residual_"]),
        Regression(parts["precision_"]),
    )
