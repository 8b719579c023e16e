"""The paper's ranker: consensus + group + personal, fitted to the squared AUC loss."""

from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

from sklearn.utils._param_validation import HasMethods, Interval, StrOptions

from likeminds._util.array_types import Float
from likeminds._util.map_reduce import Executor, UserBlock
from likeminds.components import Component, Consensus, Group, Personal
from likeminds.losses import Loss, QuadraticLoss, as_loss
from likeminds.losses.statistics import AbstractStatistics, Statistics
from likeminds.rankers import newcomers
from likeminds.rankers.candidates import Candidate
from likeminds.rankers.statistics_rankers import StatisticsRanker
from likeminds.rankers.three_level_newcomers import ThreeLevelNewcomers
from likeminds.rankers.three_level_path import ThreeLevels, default_grid
from likeminds.rankers.training_checks import refuse_too_wide
from likeminds.solvers import SOLVERS, Solver
from likeminds.solvers.solver import Callback, Parts

# What n_groups=None asks for where the data has room for it.
_USUAL_GROUPS = 2


def usual_alpha_group(features_per_label: float) -> float:
    """Return the penalty on the group level that suits so many features per label of a person.

    Examples
    --------
    >>> usual_alpha_group(0.2)
    0.5
    """
    return 0.3 + features_per_label


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False)
class ThreeLevelRanker(StatisticsRanker):
    """One ranking function per person: consensus + group + personal.

    Minimises, over theta, G and P (Yang, Xu, Cao and Huang, AAAI 2019),

        sum_i l_i(theta + G_i + P_i) + lambda1 |theta|^2 + lambda2 sum_{j > n_groups} sigma_j(G)^2
            + lambda4 sum_{j <= n_groups} sigma_j(G)^2 + lambda3 sum_i |P_i|

    where l_i is half the mean, over the pairs of a positive and a negative row of person i,
    of (1 - (the difference of their scores))^2, and sigma_j are singular values. A keyboard
    interrupt ends the search for the minimum early: the ranker is then fitted with the best
    levels found so far, and a warning says so.

    Parameters
    ----------
    alpha_consensus : float, default=0.001
        Ridge on the consensus. lambda1 is ``alpha_consensus`` times the number of people, so
        that a value means the same for ten people and for ten thousand; divide the paper's
        lambda1 by the number of people to get it.
    alpha_group : float, optional
        Penalty on the weak directions of the group level: the paper's lambda2. By default 0.3
        plus the number of features per label of a person: the less there is to learn each
        weight from, the closer people stay together.
    alpha_personal : float, default=1.0
        Penalty on the personal level, which is zero for most people: the paper's lambda3.
    n_groups : int, optional
        How many directions of the group level are strong: the paper's kappa, from 0 to the
        smaller of the numbers of people and features. By default 2, or fewer on small data.
    group_shrinkage : float, default=0.0
        Penalty on the strong directions (lambda4, at most ``alpha_group``). 0 is the paper's
        model; a little helps where people have few labels.
    loss : {"auc", "least_squares", "least_squares_raw"} or Loss, default="auc"
        What is minimised: "auc" as above, the paper's; "least_squares" on labels of +-1 with an
        intercept for each person; "least_squares_raw" without, and as a sum over rows, so that
        it wants larger penalties than the default ones; or a `likeminds.losses.Loss`.
    standardize : bool, default=True
        Give all features unit variance first (undone in the coefficients).
    solver : {"fast", "accelerated", "paper"} or Solver, default="fast"
        "fast" is Newton's method on the reduced problem; "accelerated" is the solver
        for any list of components; "paper" is the published algorithm, a reference that takes
        thousands of iterations.
    tol : float, default=1e-4
        Stop when the optimality residual is below: the length of a subgradient of the
        objective, over the length of the loss's gradient at zero.
    max_iter : int, default=1000
        Stop after this many iterations in any case (with a warning).
    unknown : {"error", "consensus"}, default="error"
        What users get who were not seen in training: an error, or the scores of the consensus.
        Without features, the same holds for items: an error, or the score of an average item.
    user_column : int or str, optional
        The column of X (a position, or a name in a data frame) that says who gave the label,
        for the places where scikit-learn does not pass ``users`` along.
    warm_start : bool, default=False
        Start from the last solution rather than from zero.
    callback : callable, optional
        Called as ``callback(step, objective, residual)`` after each step of the solver; to
        return True is to stop. Where scikit-learn has callbacks (``set_callbacks``, since
        1.9), they are told as well.
    verbose : bool, default=False
        Whether to report progress on stderr: the steps and the objective. Rankers that solve
        their problem at once report one step.

    Attributes
    ----------
    users_ : array of shape (n_users,)
        The people seen in training.
    coef_ : array of shape (n_users, n_features)
        Their weights: ``consensus_ + group_ + personal_``.
    consensus_ : array of shape (n_features,)
        What all agree on: theta plus the mean of G.
    group_ : array of shape (n_users, n_features)
        The group level, a person's deviation in common with others: G, centred.
    personal_ : array of shape (n_users, n_features)
        The personal level: P.
    raw_consensus_, raw_group_, raw_personal_ : arrays
        theta, G and P before centring. theta is not identified (the strong directions of G
        can absorb any of it at no cost), which is why the centred form is the one to read.
    alpha_group_, n_groups_ : float, int
        The values that were used.
    scale_ : array of shape (n_features,)
        The unit each feature was measured in; the objective is that of ``raw_* * scale_``.
    objective_ : float
        The minimum found, of the formula above in units of ``scale_``.
    objective_trace_ : array
        The objective by iteration, the start included.
    n_iter_ : int
        Iterations taken.
    converged_ : bool
        Whether the residual fell to ``tol``.
    prior_, knee_ : Crowd, float
        What `newcomer` needs: the prior of newcomers' weights with the precision of labels, and
        the length of a deviation beyond which its penalty is linear.
    n_labels_ : int
        How many labels were learned from.
    statistics_ : Statistics
        What was learned from, for `update` (in files, with ``save(..., with_data=True)``; of many
        people on a cluster, it stays there).
    final_steps_ : list of str
        Steps after the optimum: "centre_group" (theta takes the mean of G; the objective stays).
    solution_ : Solution
        What the solver returned, with its history.
    classes_ : array of shape (2,)
        The two labels, the positive one last.
    feature_names_in_, n_features_in_
        As everywhere in scikit-learn.
    feature_names_ : array
        Names of the columns of ``coef_`` (those of X, less ``user_column``).

    Examples
    --------
    >>> from likeminds import ThreeLevelRanker, load_electricity
    >>> households = load_electricity()
    >>> ranker = ThreeLevelRanker().fit(households)
    >>> [str(name) for name in ranker.feature_names_[ranker.consensus_ > 0]]
    ['local_company', 'known_company']
    """

    alpha_consensus: float = 0.001
    alpha_group: float | None = None
    alpha_personal: float = 1.0
    n_groups: int | None = None
    _: KW_ONLY
    group_shrinkage: float = 0.0
    loss: str | Loss = "auc"
    standardize: bool = True
    solver: str | Solver = "fast"
    tol: float = 1e-4
    max_iter: int = 1000
    unknown: str = "error"
    user_column: int | str | None = None
    warm_start: bool = False
    callback: Callback | None = None
    verbose: bool = False

    takes_newcomers = True
    _tuning = ThreeLevels
    newcomer = newcomers.newcomer
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        **StatisticsRanker._parameter_constraints,
        "alpha_consensus": [Interval(Real, 0, None, closed="left")],
        "alpha_group": [Interval(Real, 0, None, closed="left"), None],
        "alpha_personal": [Interval(Real, 0, None, closed="left")],
        "n_groups": [Interval(Integral, 0, None, closed="left"), None],
        "group_shrinkage": [Interval(Real, 0, None, closed="left")],
        "solver": [StrOptions(set(SOLVERS)), HasMethods("solve")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "warm_start": ["boolean"],
        "callback": [callable, None],
        "verbose": ["boolean"],
    }

    def _fit_blocks(
        self, summary: AbstractStatistics, blocks: Executor[UserBlock[Statistics]]
    ) -> None:
        """Fit the three levels: validate, design, select, optimise, finalise, posteriors."""
        # Validate: matrices of features fit in memory.
        refuse_too_wide(type(self).__name__, summary.n_features)
        # Design: units of features, and the loss of each user in these units.
        self.scale_ = self._scale_of(summary)
        loss = as_loss(self.loss).of_blocks(blocks, summary.n_users, self.scale_)
        # Select: penalties and the number of groups, where the caller left them out.
        levels = self._levels(summary)
        # Optimise: the loss plus the penalties over theta, G and P.
        parts = self._note(self._solve(self._solver(), loss, levels, summary.user_ids))
        # Finalise: G is centred (theta takes its mean), and users without pairs get the consensus.
        self.users_ = summary.user_ids
        self._set_parts(parts, summary.has_pairs)
        self.final_steps_ = ["centre_group"]
        # Posteriors: the prior of new users, whose posteriors `newcomer` finds.
        self._fit_newcomer_prior(loss, summary, parts)

    def _solver(self) -> Solver:
        return SOLVERS[self.solver] if isinstance(self.solver, str) else self.solver

    def _levels(self, statistics: AbstractStatistics) -> list[Component]:
        n_users, n_features = statistics.n_users, statistics.n_features
        usual_alpha = self._usual_alpha(statistics)
        self.alpha_group_ = usual_alpha if self.alpha_group is None else self.alpha_group
        most = min(n_users, n_features)
        # Schools need members: half the people, or half the features, are too many of them.
        usual = min(_USUAL_GROUPS, (n_users - 1) // 2, n_features // 2)
        self.n_groups_ = usual if self.n_groups is None else self.n_groups
        if self.n_groups_ > most:
            raise ValueError(
                f"n_groups is {self.n_groups_}, but {n_users} people with {n_features} features "
                f"have at most {most} directions. Choose from 0 to {most}, or leave it out."
            )
        return [
            Consensus(self.alpha_consensus * n_users),
            Group(self.alpha_group_, self.n_groups_, self.group_shrinkage),
            Personal(self.alpha_personal),
        ]

    @staticmethod
    def _usual_alpha(statistics: AbstractStatistics) -> float:
        labels_each = float(statistics.class_weight.sum()) / statistics.n_users
        return usual_alpha_group(statistics.n_features / labels_each)

    def _default_grid(self, statistics: Statistics) -> list[Candidate]:
        return default_grid(self._usual_alpha(statistics))

    def _fit_newcomer_prior(
        self, loss: QuadraticLoss, statistics: AbstractStatistics, parts: Parts
    ) -> None:
        assert self.n_groups_ is not None
        folding = ThreeLevelNewcomers.learn(
            as_loss(self.loss),
            loss,
            statistics,
            parts,
            scale=self.scale_,
            consensus=self.consensus_ * self.scale_,
            n_groups=self.n_groups_,
            knee=0.5 * self.alpha_personal / max(self.alpha_group_, 1e-12),
        )
        self.prior_, self.knee_ = folding.fitted_prior, folding.knee

    def _newcomers(self) -> ThreeLevelNewcomers:
        assert self.prior_ is not None
        return ThreeLevelNewcomers(self.prior_, as_loss(self.loss), self.knee_)

    def _fitted_parts(self) -> list[Float]:
        assert self.raw_personal_ is not None
        return [self.raw_consensus_, self.raw_group_, self.raw_personal_]
