"""Tables of choice models: log-likelihood, part-worths, willingness to pay, shares."""

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from likeminds._util.array_types import Bool, IdArray, Index
from likeminds._util.checks import as_matrix, listing
from likeminds._util.result_tables import Table
from likeminds.choice_models.estimates import SimulatedModel, estimate
from likeminds.choice_models.market import Market, willingness_to_pay
from likeminds.choice_models.specification import find_feature, has_probabilities
from likeminds.choice_models.summary import (
    LogLikelihood,
    Summary,
    simulate_likelihood,
    summarise,
)
from likeminds.data.annotations import Annotations
from likeminds.data.identifiers import lookup
from likeminds.rankers.item_table import frames_of

if TYPE_CHECKING:
    from likeminds.rankers.prior_ranker import PriorRanker

# Draws for each user, for standard errors.
_DRAWS = 300


@runtime_checkable
class SchoolsOfUsers(Protocol):
    """Schools of users, as `find_schools` returns them."""

    user_ids: IdArray
    labels: Index
    schools: Sequence[object]


GroupsOfUsers = SchoolsOfUsers | Mapping[Hashable, object] | Sequence[object]


def log_likelihood(
    self: "PriorRanker",
    annotations: Annotations | None = None,
    draws: int = 2000,
    *,
    random_state: int = 0,
) -> LogLikelihood:
    """Return the simulated log-likelihood of labels, integrated over users' weights.

    The integral over the prior uses importance sampling around the mode of each user's posterior.
    Unlike ``objective_``, it has no penalties and no Laplace approximation.

    Parameters
    ----------
    annotations : Annotations, optional
        Labels of any users; by default the training data.
    draws : int, default=2000
        Draws per user.
    random_state : int, default=0
        The seed of the random numbers.

    Returns
    -------
    LogLikelihood
        The ``value``, its Monte-Carlo standard ``error``, and the values ``by_user``.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = HierarchicalRanker(covariance="diagonal").fit(households)
    >>> found = ranker.log_likelihood(draws=100)
    >>> -3890 < found.value < -3875, found.error < 2
    (True, True)
    """
    return simulate_likelihood(_simulated(self, annotations), draws, seed=random_state)


def summary(
    self: "PriorRanker", annotations: Annotations | None = None, draws: int = _DRAWS
) -> Summary:
    """Return the table of part-worths.

    For each feature, in its units, the table has the mean and standard deviation of the weight
    over users, with standard errors. It also has the share of positive weights. Standard errors
    come from the Hessian of the simulated likelihood (without penalties), robust errors from the
    sandwich estimate by user. The result also has correlations, and ``fit`` with AIC, BIC and
    McFadden's R2.

    Parameters
    ----------
    annotations : Annotations, optional
        The training data, if the ranker lacks them (if loaded from a file, or fitted on a cluster).
    draws : int, default=300
        Draws per user.

    Returns
    -------
    Summary
        A table with `to_pandas`, `to_polars`, `to_arrow` and `to_dict`.
    """
    is_maximum = self._simulation() is not None
    return summarise(_simulated(self, annotations), draws, is_maximum=is_maximum)


def wtp(
    self: "PriorRanker",
    price: Hashable,
    *,
    level: float = 0.95,
    annotations: Annotations | None = None,
    draws: int = _DRAWS,
) -> Table:
    """Return the willingness to pay for one more unit of each feature.

    This is minus the weight of the feature over the weight of the price. The table has the ratio of
    mean weights with Fieller's interval, and the median over users with an interval. A mean weight
    of the price that is positive, or not distinguishable from zero, raises ValueError.

    Parameters
    ----------
    price : feature
        The name or position of the price.
    level : float, default=0.95
        The level of the intervals.
    annotations, draws
        As in `summary`.

    Returns
    -------
    Table
    """
    check_is_fitted(self)
    place = find_feature(price, self.feature_names_, "price")
    estimates = estimate(_simulated(self, annotations), draws)
    return willingness_to_pay(estimates, self.feature_names_, place, level, frames_of(self))


def shares(
    self: "PriorRanker",
    items: ArrayLike | Mapping[str, ArrayLike],
    *,
    available: ArrayLike | None = None,
    by: GroupsOfUsers | None = None,
) -> Table:
    """Predict the market share of each item.

    Parameters
    ----------
    items : array of shape (n_items, n_features), or mapping from names to rows
        The alternatives.
    available : array of bool, shape (n_items,) or (n_users, n_items), optional
        Which items are available, to all users or to each user, in the order of ``users_``.
    by : Schools, mapping or array, optional
        Groups of users to report separately: the schools of `find_schools`, a mapping from users to
        groups, or an array of groups in the order of ``users_``.

    Returns
    -------
    Table
        The share of each item, its standard error over users, and the share in each group.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=1).fit(load_electricity())
    >>> offers = {"cheap": [7.0, 5, 0, 0, 0, 0], "local": [9.0, 1, 1, 0, 0, 0]}
    >>> table = ranker.shares(offers)
    >>> [row["item"] for row in table.rows], round(sum(row["share"] for row in table.rows), 6)
    (['cheap', 'local'], 1.0)
    """
    names, market = _market(self, items, available)
    chances = market.shares()
    groups = _groups(self, by)
    rows = []
    for j, name in enumerate(names):
        error = float(chances[:, j].std() / np.sqrt(len(chances)))
        row = {"item": name, "share": float(chances[:, j].mean()), "error": error}
        rows.append(row | {g: float(chances[who, j].mean()) for g, who in groups.items()})
    counted = "".join(f"; {g}: {who.sum():,}" for g, who in groups.items())
    note = f"Mean over {len(chances):,} users{counted}, with its standard error."
    return Table("Shares", rows, (note,), frames=frames_of(self))


def elasticities(
    self: "PriorRanker",
    items: ArrayLike | Mapping[str, ArrayLike],
    feature: Hashable,
    *,
    available: ArrayLike | None = None,
    by: GroupsOfUsers | None = None,
) -> Table:
    """Predict elasticities: the change of shares, in per cent, for a change of 1 % in a feature.

    Parameters
    ----------
    items, available, by
        As in `shares`.
    feature : feature
        The name or position of the feature.

    Returns
    -------
    Table
        A row per item, for all users and for each group. It has the elasticity of the item's share
        with respect to the feature of the item in each column.
    """
    names, market = _market(self, items, available)
    place = find_feature(feature, self.feature_names_, "feature")
    chances, slopes = market.shares(), market.slopes(place)
    levels = np.asarray(market.items[:, place], dtype=np.float64)
    groups = {"all users": np.ones(len(chances), dtype=np.bool_)} | _groups(self, by)
    rows = []
    for group, who in groups.items():
        share = chances[who].mean(axis=0)
        moved = slopes[who].mean(axis=0) * levels
        with np.errstate(invalid="ignore", divide="ignore"):
            found = moved / share[:, None]
        for j, name in enumerate(names):
            known = zip(names, found[j], strict=True)
            numbers = {k: float(v) if np.isfinite(v) else None for k, v in known}
            rows.append({"among": group, "item": name} | numbers)
    title = f"Elasticities of shares by {self.feature_names_[place]}"
    return Table(title, rows, frames=frames_of(self))


def _market(
    self: "PriorRanker", items: ArrayLike | Mapping[str, ArrayLike], available: ArrayLike | None
) -> tuple[list[str], Market]:
    check_is_fitted(self)
    if not has_probabilities(self.prior_.likelihood):
        raise ValueError(
            'Shares need probabilities of choices, which grades and loss="auc" do not have. '
            'Fit choices or yes-no labels with loss="choice" or "logistic".'
        )
    names: list[str] = []
    if isinstance(items, Mapping):
        names = [str(name) for name in items]
        items = np.array([np.asarray(row) for row in items.values()])
    rows = as_matrix(items, "items")
    names = names or [str(number) for number in range(len(rows))]
    if rows.shape[1] != len(self.feature_names_):
        raise ValueError(
            f"items have {rows.shape[1]} features, but the model has {len(self.feature_names_)}: "
            f"{listing(self.feature_names_)}."
        )
    shape = (len(self.users_), len(rows))
    free = np.ones(shape, dtype=np.bool_) if available is None else _bools(available, shape)
    logs = None if self.prior_.log_normal is None else self.prior_.log_normal.signs
    return names, Market(self._posterior(), rows, free, self.prior_.signs, logs)


def _groups(self: "PriorRanker", by: GroupsOfUsers | None) -> dict[str, Bool]:
    """Return the members of each group."""
    if by is None:
        return {}
    if isinstance(by, SchoolsOfUsers):
        where = lookup(self.users_, by.user_ids, "users")
        labels = np.where(where >= 0, by.labels[where], -1)
        return {f"school {n + 1}": labels == n for n in range(len(by.schools))}
    if isinstance(by, Mapping):
        by = [by.get(user) for user in self.users_.tolist()]
    given = [None if group is None else str(group) for group in by]
    if len(given) != len(self.users_):
        raise ValueError(f"by has {len(given)} entries, but there are {len(self.users_)} users.")
    whole = np.array(given, dtype=object)
    names = sorted({group for group in given if group is not None})
    if not names:
        raise ValueError("by has no group for any training user. Map user ids to groups.")
    return {name: whole == name for name in names}


def _simulated(self: "PriorRanker", annotations: Annotations | None) -> SimulatedModel:
    """Return the simulated model of these labels."""
    check_is_fitted(self)
    annotations = self.annotations_ if annotations is None else annotations
    if annotations is None:
        raise ValueError(
            "This ranker has no training data, because it was loaded from a file or fitted on a "
            "cluster. Pass annotations=, or save it with_data=True."
        )
    fitted_prior = self.prior_
    if fitted_prior.items is not None:
        raise ValueError(
            "Users share item effects, so the likelihood is not a product over users. Fit with "
            "item_effects=False."
        )
    loss = self._prior_loss()
    answers, fitted_prior = loss.prepare_new_users(annotations, fitted_prior)
    responses = loss.responses(answers, fitted_prior.design)
    shifts = fitted_prior.shifts(annotations.user_features, annotations.user_ids)
    problem = self._specification().problem(
        responses, fitted_prior.likelihood, fitted_prior.design, shifts
    )
    at, coordinates = problem.coefficients(self.prior_.simulated), self.prior_.design
    structure = (self.covariance_, self.n_groups_, self.feature_names_)
    return SimulatedModel(
        problem, at, coordinates, *structure, annotations.user_ids, frames_of(self)
    )


def _bools(available: ArrayLike, shape: tuple[int, int]) -> Bool:
    free = np.asarray(available, dtype=np.bool_)
    if free.shape not in (shape, shape[1:]):
        raise ValueError(
            f"available has shape {free.shape}, but there are {shape[1]} items and {shape[0]} "
            f"users. Pass shape {shape[1:]} or {shape}."
        )
    free = np.broadcast_to(free, shape)
    if not free.any(axis=1).all():
        raise ValueError("available leaves a user without items. Each user needs at least one.")
    return free
