"""Cross-validation of the three-level ranker."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from likeminds.data.annotations import Annotations
from likeminds.losses import Loss
from likeminds.rankers.search import Grid, RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.rankers.validation import record_update

# Parameters of the tuned ranker.
_SHARED = ("loss", "standardize", "tol", "max_iter", "unknown", "user_column")


class ThreeLevelRankerCV(RankerCV):
    """The three-level ranker with its penalties chosen by cross-validation.

    It is ``RankerCV(ThreeLevelRanker())`` with the parameters of both.

    Parameters
    ----------
    param_grid : dict or list of dicts, optional
        Lists of values of ``alpha_consensus``, ``alpha_group``, ``alpha_personal``,
        ``n_groups`` and ``group_shrinkage``; all combinations are candidates, except those
        that `ThreeLevelRanker` refuses (more shrinkage than penalty, too many groups). By
        default about 130 candidates for all of them but ``alpha_personal``, from separate
        rankings to the consensus only.
    n_folds : int, default=5
        Number of folds.
    halving : bool, default=True
        Drop three quarters of the candidates after the first fold, and again after the second.
        Otherwise all candidates are fitted to all folds.
    one_standard_error : bool, default=False
        Take the simplest candidate within one standard error of the best: fewest groups, then
        largest penalties.
    loss, standardize, unknown, user_column
        As in `ThreeLevelRanker`.
    tol, max_iter
        Of the final fit, as in `ThreeLevelRanker`.
    n_jobs : int, optional
        How many paths are followed at the same time (joblib).
    random_state : int, default=0
        Which rows fall into which fold.
    verbose : bool, default=False
        As in `RankerCV`.

    Attributes
    ----------
    best_estimator_ : ThreeLevelRanker
        The ranker with the parameters chosen, fitted to all rows.
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

    # A parameter of its own, not that of a ranker inside.
    user_column: int | str | None = None
    _needs_no_features = False

    takes_updates = takes_newcomers = True
    _learned_from: ClassVar[str] = ThreeLevelRanker._learned_from
    _nothing_to_add_to = ThreeLevelRanker._nothing_to_add_to
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **ThreeLevelRanker._parameter_constraints,
        **RankerCV._parameter_constraints,
    }

    def __init__(
        self,
        param_grid: Grid | Sequence[Grid] | None = None,
        *,
        n_folds: int = 5,
        halving: bool = True,
        one_standard_error: bool = False,
        loss: str | Loss = "auc",
        standardize: bool = True,
        tol: float = 1e-4,
        max_iter: int = 1000,
        unknown: str = "error",
        user_column: int | str | None = None,
        n_jobs: int | None = None,
        random_state: int = 0,
        verbose: bool = False,
    ) -> None:
        self.param_grid = param_grid
        self.n_folds = n_folds
        self.halving = halving
        self.one_standard_error = one_standard_error
        self.loss = loss
        self.standardize = standardize
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.verbose = verbose

    def with_parameters(self, parameters: Mapping[str, Any]) -> ThreeLevelRanker:
        """Return a three-level ranker with parameters of the caller's choice, not fitted."""
        given = {name: getattr(self, name) for name in _SHARED}
        return ThreeLevelRanker(**given | dict(parameters))

    def _fit_more(self, more: Annotations) -> None:
        # The model is not convex: it is solved from all starts again, as in `fit`.
        assert self.statistics_ is not None
        assert self.best_params_ is not None
        best = self.with_parameters(self.best_params_)
        best._fit_statistics(self.statistics_.update(more))
        self._share_input(best)
        record_update(best, more)
        self._adopt(best)
