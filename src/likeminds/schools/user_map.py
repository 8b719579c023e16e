"""The map of people: on a plane, or along the one axis that divides them."""

import numpy as np
from sklearn.metrics import roc_auc_score

from likeminds._util.array_types import Bool, Float
from likeminds.schools.result import Schools

# A second direction is drawn if it holds this share of the differences between users.
_LEAST_SHARE = 0.1
# Two schools are told apart by one direction if it puts so many pairs of users in order.
_TOLD_APART = 0.9
_COLUMNS_OF_DOTS = 70


def n_dimensions(schools: Schools) -> int:
    """Return how many directions the map of people needs: 0, 1 or 2.

    Users are compared as if all were equally decided, which bends one axis into a horseshoe. One
    direction is therefore enough where it tells two schools apart; or where, without schools, a
    parabola of it explains all but a tenth of the differences.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, find_schools, make_schools
    >>> crowd = make_schools(60, 40, 200, 12, n_schools=3, contested=0.5, random_state=0)
    >>> n_dimensions(find_schools(HierarchicalRanker().fit(crowd.annotations)))
    2
    """
    n = min(len(schools.axes), int(schools.coordinates.shape[1]))
    if n < 2:
        return n
    first, second = schools.coordinates[:, 0], schools.coordinates[:, 1]
    if len(schools) == 2:
        above = float(roc_auc_score(schools.labels == 0, first))
        return 1 if max(above, 1.0 - above) >= _TOLD_APART else 2
    share = schools.axes[1].share
    if not schools:
        bent = np.column_stack([np.ones(len(first)), first, first**2])
        left = second - bent @ np.linalg.lstsq(bent, second, rcond=None)[0]
        share *= float(left @ left) / (float(second @ second) or 1.0)
    return 2 if share >= _LEAST_SHARE else 1


def map_places(schools: Schools, shown: Bool) -> Float:
    """Return where people are drawn, shape (n_users, 2); along one axis, dots are heaped up.

    Parameters
    ----------
    schools : Schools
        What was found about a crowd.
    shown : array of bool, shape (n_users,)
        Who is drawn: the others are not heaped up.
    """
    n = n_dimensions(schools)
    if n > 1:
        return schools.coordinates[:, :2]
    places = np.zeros((len(schools.user_ids), 2))
    if n:
        places[:, 0] = schools.coordinates[:, 0]
        places[shown, 1] = _heaps(places[shown, 0])
    return places


def _heaps(values: Float) -> Float:
    """Return heights that heap up equal values, so that dots do not hide each other."""
    spread = float(np.ptp(values)) or 1.0
    column = np.round((values - values.min()) / spread * _COLUMNS_OF_DOTS).astype(np.intp)
    heights = np.zeros(len(values))
    for heap in np.unique(column):
        mine = np.flatnonzero(column == heap)
        heights[mine[np.argsort(values[mine], kind="stable")]] = np.arange(len(mine))
    return heights
