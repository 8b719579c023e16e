"""Newcomers among the schools: their levels, their place on the map, their likely school."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from scipy.special import softmax

from likeminds._util.array_types import Float
from likeminds.mixed_model.posterior import Posterior
from likeminds.schools.result import Schools
from likeminds.schools.variance_shares import shares
from likeminds.schools.weight_levels import WeightLevels, as_ranker

# The least variance inside schools along a coordinate, as a share of that of all people.
_LEAST = 1e-6


def levels_of_posterior(levels: WeightLevels, ranker: Any, posterior: Posterior) -> WeightLevels:
    """Return the levels of people from their posteriors, beside those of the crowd.

    Parameters
    ----------
    levels : WeightLevels
        Of the crowd.
    ranker : ranker
        With a learned prior, or the paper's: what made the posteriors.
    posterior : Posterior
        Of newcomers, or of people with labels the ranker has not seen.

    Returns
    -------
    WeightLevels

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity
    >>> ranker = HierarchicalRanker(n_groups=2).fit(load_electricity())
    >>> crowd = WeightLevels.of_ranker(ranker)
    >>> alone = levels_of_posterior(crowd, ranker, ranker.user_posterior("household-001"))
    >>> bool(np.allclose(alone.coef[0], ranker.coef_[0]))
    True
    """
    chosen = as_ranker(ranker)._best_model
    group, personal = chosen.crowd_.levels(posterior.points, chosen.n_groups_)
    if len(levels.consensus) > group.shape[1]:  # columns that were learned about items
        weights = posterior.points[:, posterior.coordinates.size :]
        none = np.zeros((len(weights), 1))
        group = np.hstack([group, weights, none])
        personal = np.hstack([personal, np.zeros_like(weights), none])
    return replace(levels, users=posterior.users, group=group, personal=personal, own=None)


class MapPositions(NamedTuple):
    """Where people stand.

    Attributes
    ----------
    coordinates : array of shape (n_users, k)
        As `Schools.coordinates`.
    membership : array of shape (n_users, n_schools)
        How likely each person belongs to each school.
    standing : array of shape (n_users, 3)
        As `Schools.standing`.
    """

    coordinates: Float
    membership: Float
    standing: Float


@dataclass(frozen=True, eq=False)
class NewUserProjection:
    """The map of a crowd, to place others on.

    Schools are taken as normal distributions with one covariance around the means of their
    members, which is what `find_schools` divides people by.

    Attributes
    ----------
    levels : WeightLevels
        Of the crowd.
    schools : Schools
        What was found about it.
    """

    levels: WeightLevels
    schools: Schools

    @cached_property
    def _alike(self) -> WeightLevels:
        return self.levels.alike(self.schools.spread)

    @cached_property
    def _directions(self) -> Float:
        return self._alike.coordinates(self.schools.spread)[1]

    @cached_property
    def normals(self) -> tuple[Float, Float, Float]:
        """Means (s, k), the root of the precision (k, k), and log shares (s,) of the schools."""
        found = self.schools
        if not found:
            k = found.coordinates.shape[1]
            return np.zeros((0, k)), np.eye(k), np.zeros(0)
        member = found.labels[:, None] == np.arange(len(found))
        size = np.maximum(member.sum(axis=0), 1)
        means = (member.T @ found.coordinates) / size[:, None]
        left = found.coordinates - means[found.labels]
        k = left.shape[1]
        least = _LEAST * float(found.coordinates.var()) if found.coordinates.size else 0.0
        covariance = left.T @ left / len(left) + (least + 1e-12) * np.eye(k)
        root = np.linalg.inv(np.linalg.cholesky(covariance)).T
        return means, root, np.log(size / size.sum())

    def place(self, levels: WeightLevels) -> MapPositions:
        """Place people by their levels.

        Parameters
        ----------
        levels : WeightLevels
            As `levels_of_posterior` returns them.

        Returns
        -------
        MapPositions
        """
        spread = self.schools.spread
        alike = levels.alike(spread, self._alike)
        coordinates = alike.group @ spread @ self._directions.T
        means, root, log_share = self.normals
        apart = (coordinates[:, None, :] - means) @ root
        likely = log_share - 0.5 * (apart**2).sum(axis=2)
        membership = softmax(likely, axis=1) if likely.size else likely
        return MapPositions(coordinates, np.asarray(membership), shares(levels, spread))
