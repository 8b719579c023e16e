"""The map of users, on a plane or along one axis, and positions of new users on it."""

from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.special import softmax
from sklearn.metrics import roc_auc_score

from likeminds._util.array_types import Bool, Float
from likeminds.mixed_model.posterior import Posterior
from likeminds.schools.population import WeightLevels, as_ranker, with_learned_columns
from likeminds.schools.result import Schools, variance_shares

# A second direction is drawn if it explains this share of the differences between users.
_ROUNDING = 0.1
# One direction separates two schools if it orders this share of the pairs of users.
_SEPARATED = 0.9
_COLUMNS_OF_DOTS = 70
# The least variance inside schools along a coordinate, as a share of that of all users.
_LEAST_VARIANCE = 1e-6


def n_dimensions(schools: Schools) -> int:
    """Return how many directions the map of users needs: 0, 1 or 2.

    Normalised weights bend a single axis into a horseshoe. So one direction is enough if it
    separates two schools. Without schools, it is enough if a parabola in it explains all but a
    tenth of the differences.
    """
    n = min(len(schools.axes), int(schools.coordinates.shape[1]))
    if n < 2:
        return n
    first, second = schools.coordinates[:, 0], schools.coordinates[:, 1]
    if len(schools) == 2:
        above = float(roc_auc_score(schools.labels == 0, first))
        return 1 if max(above, 1.0 - above) >= _SEPARATED else 2
    share = schools.axes[1].share
    if not schools:
        parabola = np.column_stack([np.ones(len(first)), first, first**2])
        residual = second - parabola @ np.linalg.lstsq(parabola, second, rcond=None)[0]
        share *= float(residual @ residual) / (float(second @ second) or 1.0)
    return 2 if share >= _ROUNDING else 1


def map_places(schools: Schools, shown: Bool) -> Float:
    """Return positions on the map, (n_users, 2); on one axis, stack the users shown."""
    n = n_dimensions(schools)
    if n > 1:
        return schools.coordinates[:, :2]
    places = np.zeros((len(schools.user_ids), 2))
    if n:
        places[:, 0] = schools.coordinates[:, 0]
        places[shown, 1] = _stacked(places[shown, 0])
    return places


def _stacked(values: Float) -> Float:
    """Return heights that stack equal values, so dots do not hide each other."""
    spread = float(np.ptp(values)) or 1.0
    column = np.round((values - values.min()) / spread * _COLUMNS_OF_DOTS).astype(np.intp)
    heights = np.zeros(len(values))
    for stack in np.unique(column):
        stacked = np.flatnonzero(column == stack)
        heights[stacked[np.argsort(values[stacked], kind="stable")]] = np.arange(len(stacked))
    return heights


def levels_of_posterior(levels: WeightLevels, ranker: object, posterior: Posterior) -> WeightLevels:
    """Return the levels of new users, from their posteriors and the ranker's levels."""
    chosen = as_ranker(ranker)
    group, personal = chosen.prior_.levels(posterior.points, chosen.n_groups_)
    if len(levels.consensus) > group.shape[1]:  # columns of learned item factors and effects
        weights = posterior.points[:, posterior.design.size :]
        group, personal = with_learned_columns(group, personal, weights)
    return replace(levels, users=posterior.users, group=group, personal=personal, own=None)


class MapPositions(NamedTuple):
    """Coordinates (n_users, k), membership (n_users, n_schools), level_shares (n_users, 3)."""

    coordinates: Float
    membership: Float
    level_shares: Float


@dataclass(frozen=True, eq=False)
class NewUserProjection:
    """Places new users on the map of a model's users.

    Schools are modelled as normal distributions around the means of their members, with one
    covariance, as in `likeminds.schools.mixture`.
    """

    levels: WeightLevels
    schools: Schools

    @cached_property
    def _normalised(self) -> WeightLevels:
        return self.levels.normalised(self.schools.spread)

    @cached_property
    def _directions(self) -> Float:
        return self._normalised.coordinates(self.schools.spread)[1]

    @cached_property
    def normals(self) -> tuple[Float, Float, Float]:
        """Means (s, k), the root of the precision (k, k), and log shares (s,) of the schools."""
        found = self.schools
        member = found.labels[:, None] == np.arange(len(found))
        size = np.maximum(member.sum(axis=0), 1)
        means = (member.T @ found.coordinates) / size[:, None]
        residual = found.coordinates - (means[found.labels] if found else 0.0)
        least = _LEAST_VARIANCE * float(found.coordinates.var()) if residual.size else 0.0
        covariance = residual.T @ residual / len(residual) + (least + 1e-12) * np.eye(
            residual.shape[1]
        )
        root = np.linalg.inv(np.linalg.cholesky(covariance)).T
        return means, root, np.log(size / size.sum())

    def place(self, levels: WeightLevels) -> MapPositions:
        """Place users by their levels (see `levels_of_posterior`)."""
        spread = self.schools.spread
        normalised = levels.normalised(spread, self._normalised)
        coordinates = normalised.group @ spread @ self._directions.T
        membership = np.zeros((len(coordinates), 0))
        if self.schools:
            means, root, log_share = self.normals
            deviation = (coordinates[:, None, :] - means) @ root
            membership = np.asarray(softmax(log_share - 0.5 * (deviation**2).sum(axis=2), axis=1))
        return MapPositions(coordinates, membership, variance_shares(levels, spread))
