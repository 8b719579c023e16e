"""The path of the personal level: which users have one, by its penalty."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds._util.checks import same_length
from likeminds.data.annotations import Annotations
from likeminds.losses import as_loss
from likeminds.losses.statistics import Statistics
from likeminds.rankers.three_level import ThreeLevelRanker

# By default the path has so many penalties, down to this share of the first.
_NUMBER, _LEAST_SHARE = 20, 0.1
# The solver's tolerance must not leave a user a personal part at the first penalty.
_MARGIN = 1.01
# A penalty that leaves no user a personal level: the gradient at zero is far shorter.
_PROHIBITIVE = 1e6


@dataclass(frozen=True, eq=False)
class PersonalPath:
    """Fits by the penalty on the personal level.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        Values of ``alpha_personal`` (the paper's lambda3), the largest first.
    users : array of shape (n_users,)
        The users.
    lengths : array of shape (n_alphas, n_users)
        The length of each user's personal weights, in units of ``scale_``.
    objectives : array of shape (n_alphas,)
        The minimum found with each penalty.
    """

    alphas: Float
    users: IdArray
    lengths: Float
    objectives: Float

    @property
    def personal(self) -> Bool:
        """Which users have a personal part, by penalty: (n_alphas, n_users)."""
        return np.asarray(self.lengths > 0)

    def agreement(self, true: ArrayLike) -> Float:
        """Return the adjusted Rand index of who has a personal part, by penalty.

        ``true`` says which users have one in truth.
        """
        known = np.asarray(true, dtype=bool)
        same_length(true=known, users=self.users)
        return np.array([adjusted_rand_score(known, found) for found in self.personal])


def personal_path(
    annotations: Annotations,
    alphas: Sequence[float] | None = None,
    *,
    ranker: ThreeLevelRanker | None = None,
) -> PersonalPath:
    """Fit the three levels along a path of penalties on the personal level.

    Each fit starts from the one before. Without ``alphas``, the path begins at the smallest
    penalty that leaves no user a personal part: the longest gradient of a user's loss at the
    solution without the level.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    alphas : sequence of float, optional
        Values of ``alpha_personal``; by default 20, down to a tenth of the first.
    ranker : ThreeLevelRanker, optional
        Its other parameters are used; by default those of ``ThreeLevelRanker()``.

    Returns
    -------
    PersonalPath

    Examples
    --------
    >>> from likeminds import make_simulation
    >>> simulation = make_simulation(10, 100, 8, n_positive=10, random_state=0)
    >>> path = personal_path(simulation.annotations)
    >>> path.personal.sum(axis=1)[[0, -1]]
    array([0, 8])
    """
    given = ThreeLevelRanker() if ranker is None else ranker
    fitted = clone(given).set_params(warm_start=True)
    statistics = Statistics.from_annotations(annotations, graded=as_loss(given.loss).takes_grades)
    if alphas is None:
        first = _MARGIN * _first_alpha(fitted, statistics)
        descending = np.geomspace(first, _LEAST_SHARE * first, _NUMBER)
    else:
        descending = np.sort(np.asarray(alphas, dtype=np.float64))[::-1]
    lengths, objectives = [], []
    for alpha in descending:
        fitted.set_params(alpha_personal=float(alpha))
        fitted._fit_statistics(statistics)
        lengths.append(np.linalg.norm(fitted.personal_ * fitted.scale_, axis=1))
        objectives.append(fitted.objective_)
    return PersonalPath(descending, statistics.user_ids, np.array(lengths), np.array(objectives))


def _first_alpha(ranker: ThreeLevelRanker, statistics: Statistics) -> float:
    """Return the smallest penalty at which the personal level is zero."""
    ranker.set_params(alpha_personal=_PROHIBITIVE)
    ranker._fit_statistics(statistics)
    loss = ranker._measure(statistics)
    gradient = loss.gradient((ranker.raw_consensus_ + ranker.raw_group_) * ranker.scale_)
    return float(np.linalg.norm(gradient, axis=1).max())
