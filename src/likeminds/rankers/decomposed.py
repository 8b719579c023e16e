"""Rankers with weights that are a sum of chosen components."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from likeminds._util.array_types import Bool, Float
from likeminds._util.checks import listing
from likeminds.components import Component, total_weights
from likeminds.losses import Loss, QuadraticLoss
from likeminds.losses.statistics import AbstractStatistics
from likeminds.rankers.statistics_rankers import IterativeRanker
from likeminds.solvers import SOLVERS
from likeminds.solvers.solver import Parts

# Names of components in which users form groups, by priority.
GROUP_LIKE = ("group", "low_rank", "clustered")
# The attributes of a component that the solver uses.
_REQUIRED = ("name", "zeros", "collect", "value", "prox")


@dataclass(eq=False, repr=False, kw_only=True)
class ComponentsRanker(IterativeRanker):
    """Base class of rankers that are a list of components, which subclasses define."""

    loss: str | Loss = "least_squares"

    @property
    def has_levels(self) -> bool:
        """Whether the weights have a part in which users form groups."""
        return any(name in GROUP_LIKE for name in self.part_names_)

    @property
    def parts_(self) -> dict[str, Float]:  # type: ignore[override]
        """The parts of the weights, by the names of their components."""
        return {name: getattr(self, f"{name}_part_") for name in self.part_names_}

    @property
    def group_(self) -> Float:  # type: ignore[override]
        """The centred part in which users form groups; AttributeError without such a part."""
        found = [name for name in GROUP_LIKE if name in self.part_names_]
        if not found:
            raise AttributeError(f"This {type(self).__name__} has no group level.")
        part = self.parts_[found[0]]
        # Users with the weights of the consensus (labels of one class) have zeros.
        differs = (self.coef_ != self.consensus_).any(axis=1)
        return np.where(differs[:, None], part - part[differs].mean(axis=0), 0.0)

    @property
    def personal_(self) -> Float:  # type: ignore[override]
        """The weights less consensus and group level."""
        return np.asarray(self.coef_ - self.consensus_ - self.group_)

    def _fit_loss(self, loss: QuadraticLoss, summary: AbstractStatistics) -> Parts:
        self.components_ = self._list_components(loss)
        return self._solve(SOLVERS["accelerated"], loss, self.components_, summary.user_ids)

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:
        """Return the components, with default penalties for the loss."""
        raise NotImplementedError

    def _fitted_parts(self) -> list[Float]:
        return list(self.parts_.values())

    def _set_parts(self, parts: Parts, has_pairs: Bool) -> None:
        self.part_names_ = [component.name for component in self.components_]
        for name, part in zip(self.part_names_, parts, strict=True):
            setattr(self, f"{name}_part_", part / self.scale_)
        weights = total_weights(parts, len(has_pairs)) / self.scale_
        self.consensus_ = weights[has_pairs].mean(axis=0)
        # Users without pairs get the consensus.
        self.coef_ = np.where(has_pairs[:, None], weights, self.consensus_)


@dataclass(eq=False, repr=False)
class DecomposedRanker(ComponentsRanker):
    """One ranking function per user, as a sum of chosen components.

    The weights are the sum of one part per component. The parts minimise the users' losses plus the
    penalties of the components.

    Parameters
    ----------
    components : list of Component
        Components of `likeminds.components`, or your own objects with the methods of
        `likeminds.components.Component` (`PerUser` defines some).
    loss : {"least_squares", "least_squares_raw", "auc"} or Loss, default="least_squares"
        With labels y of +-1, "least_squares" is 1/2 the mean over a user's rows of (y - intercept -
        score)^2. "least_squares_raw" is 1/2 the sum of (y - score)^2. "auc" is the squared pairwise
        AUC loss (see `likeminds.losses`).
    standardize : bool, default=True
        Scale features to unit variance for the fit. Coefficients are in original units.
    tol : float, default=1e-4
        Stop when the optimality residual is below this. It is the length of a subgradient of the
        objective, over the length of the gradient of the loss at zero.
    max_iter : int, default=1000
        The most iterations; reaching it gives a warning.
    unknown, user_column, warm_start, callback, verbose
        As in `ThreeLevelRanker`.

    Attributes
    ----------
    users_ : array of shape (n_users,)
        The users seen in training.
    coef_ : array of shape (n_users, n_features)
        Their weights. Users with labels of one class get the consensus.
    consensus_ : array of shape (n_features,)
        The mean weights of other users; the weights of new users.
    parts_ : dict of arrays
        The parts of the weights, by component name. Each is also an attribute, ``<name>_part_``.
    components_ : list of Component
        The components with the penalties used.
    objective_, objective_trace_, n_iter_, converged_, solution_, scale_, statistics_, classes_
        As in `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import DecomposedRanker, load_electricity
    >>> from likeminds.components import Consensus, Sparse
    >>> ranker = DecomposedRanker([Consensus(0.01), Sparse(0.05)], loss="auc")
    >>> ranker = ranker.fit(load_electricity())
    >>> {name: part.shape for name, part in ranker.parts_.items()}
    {'consensus': (6,), 'sparse': (361, 6)}
    """

    components: Sequence[Component]

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "components": [list, tuple],
    }

    def _list_components(self, loss: QuadraticLoss) -> list[Component]:  # noqa: ARG002
        _check_components(self.components)
        return list(self.components)


def _check_components(components: Sequence[Component]) -> None:
    if not components:
        raise ValueError("components is empty. Pass at least one component.")
    for component in components:
        missing = [name for name in _REQUIRED if name not in dir(component)]
        if missing:
            raise TypeError(
                f"{component!r} is not a component: it lacks {listing(missing)}. "
                "See likeminds.components.Component for the required methods."
            )
    names = [component.name for component in components]
    if len(set(names)) < len(names):
        raise ValueError(f"Components must have different names, but have {listing(names)}.")
