"""Search penalties of the three-level ranker, by cross-validation or on the personal path."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, field
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Bool, Float, IdArray
from likeminds._util.checks import same_length
from likeminds.data.annotations import Annotations
from likeminds.losses import Loss, as_loss
from likeminds.losses.statistics import Statistics
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.training_checks import record_update

# Parameters of the tuned ranker.
_SHARED = ("loss", "standardize", "tol", "max_iter", "unknown", "user_column")


@dataclass(eq=False, repr=False)
class ThreeLevelRankerCV(RankerCV):
    """The three-level ranker, with penalties chosen by cross-validation.

    This is ``RankerCV(ThreeLevelRanker())`` with the parameters of both.

    Parameters
    ----------
    param_grid : dict or list of dicts, optional
        Lists of values of ``alpha_consensus``, ``alpha_group``, ``alpha_personal``, ``n_groups``
        and ``group_shrinkage``. All valid combinations are candidates (with shrinkage up to
        ``alpha_group``, and not too many groups). The default is about 130 candidates, from
        separate rankings to the consensus only, which do not vary ``alpha_personal``.
    n_folds : int, default=5
        The number of folds.
    halving : bool, default=True
        Whether to drop three quarters of the candidates after the first fold, and again after the
        second. If False, all candidates are fitted to all folds.
    one_standard_error : bool, default=False
        Whether to choose the simplest candidate (fewest groups, then largest penalties) within one
        standard error of the best.
    loss, standardize, unknown, user_column
        As in `ThreeLevelRanker`.
    tol, max_iter
        Parameters of the final fit, as in `ThreeLevelRanker`.
    n_jobs : int, optional
        The number of paths to fit in parallel (joblib).
    random_state : int, default=0
        The seed of the assignment of rows to folds.
    verbose : bool, default=False
        As in `RankerCV`.

    Attributes
    ----------
    best_estimator_ : ThreeLevelRanker
        The ranker with the chosen parameters, fitted to all rows.
    best_params_, best_index_, best_score_, cv_results_
        As in `RankerCV`.
    coef_, consensus_, group_, personal_, users_, ...
        All fitted attributes of `ThreeLevelRanker`.

    Examples
    --------
    >>> from likeminds import ThreeLevelRankerCV, make_schools
    >>> crowd = make_schools(20, 20, 50, 6, 2, random_state=0).annotations
    >>> ranker = ThreeLevelRankerCV(
    ...     {"alpha_group": [0.3, 1.0, 3.0], "n_groups": [0, 1]}, n_folds=3
    ... ).fit(crowd)
    >>> sorted(ranker.best_params_)
    ['alpha_group', 'n_groups']
    >>> len(ranker.cv_results_["params"])
    6
    """

    ranker: Ranker = field(init=False)
    _: KW_ONLY
    loss: str | Loss = "auc"
    standardize: bool = True
    tol: float = 1e-4
    max_iter: int = 1000
    unknown: str = "error"
    # A parameter of this class, not of the ranker inside.
    user_column: int | str | None = None

    _needs_no_features = False
    takes_updates = takes_newcomers = True
    _learned_from: ClassVar[str] = ThreeLevelRanker._learned_from
    _nothing_to_add_to = ThreeLevelRanker._nothing_to_add_to
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "loss": ThreeLevelRanker._parameter_constraints["loss"]
    }

    def with_parameters(self, parameters: Mapping[str, Any]) -> ThreeLevelRanker:
        """Return an unfitted three-level ranker with these parameters."""
        given = {name: getattr(self, name) for name in _SHARED}
        return ThreeLevelRanker(**given | dict(parameters))

    def _fit_more(self, more: Annotations) -> None:
        # The model is not convex, so solve it again from all starts, as in `fit`.
        assert self.statistics_ is not None
        assert self.best_params_ is not None
        best = self.with_parameters(self.best_params_)
        best._fit_statistics(self.statistics_.update(more))
        self._share_input(best)
        record_update(best, more)
        self._adopt(best)


# The default number of penalties of the path, and the last as a share of the first.
_NUMBER, _ROUNDING = 20, 0.1
# A margin for the solver's tolerance, so the first penalty leaves no personal parts.
_MARGIN = 1.01
# A penalty far above the gradient at zero, so there are no personal parts.
_PROHIBITIVE = 1e6


@dataclass(frozen=True, eq=False)
class PersonalPath:
    """Fits along a path of penalties on the personal level.

    Attributes
    ----------
    alphas : array of shape (n_alphas,)
        Values of ``alpha_personal`` (the paper's lambda3), the largest first.
    users : array of shape (n_users,)
        The users.
    lengths : array of shape (n_alphas, n_users)
        The length of each user's personal weights, in units of ``scale_``.
    objectives : array of shape (n_alphas,)
        The minimum of the objective at each penalty.
    """

    alphas: Float
    users: IdArray
    lengths: Float
    objectives: Float

    @property
    def personal(self) -> Bool:
        """Whether users have a personal part, by penalty: (n_alphas, n_users)."""
        return np.asarray(self.lengths > 0)

    def agreement(self, true: ArrayLike) -> Float:
        """Return the adjusted Rand index of users with a personal part, by penalty.

        ``true`` marks the users with a personal part in the simulation.
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

    Each fit starts from the previous solution. Without ``alphas``, the path begins at the smallest
    penalty without personal parts. This is the longest gradient of a user's loss at the solution
    without this level.

    Parameters
    ----------
    annotations : Annotations
        The labels.
    alphas : sequence of float, optional
        Values of ``alpha_personal``; by default 20, down to a tenth of the first.
    ranker : ThreeLevelRanker, optional
        The ranker with other parameters; by default ``ThreeLevelRanker()``.

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
        descending = np.geomspace(first, _ROUNDING * first, _NUMBER)
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
