"""A mixed-effects ranking model without hyperparameters, with a learned prior over users."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral
from typing import Any, ClassVar

from numpy.typing import ArrayLike
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds.data.annotations import Annotations
from likeminds.mixed_model.choice_responses import refuse_no_choices
from likeminds.mixed_model.losses import ALL_LOSSES, PriorLoss
from likeminds.rankers.hierarchical_fit import fit
from likeminds.rankers.prior_ranker import PriorRanker
from likeminds.rankers.training_data import TrainingData
from likeminds.solvers.solver import Callback


# Parameters are the fields of a dataclass: see `IterativeRanker`.
@dataclass(eq=False, repr=False)
class HierarchicalRanker(PriorRanker):
    """A mixed-effects ranking model: one ranking function per user, with a learned prior.

    Users' weights are random effects W_i ~ N(theta, Omega). theta, Omega and the ridge penalty of
    the consensus maximise the marginal likelihood of the labels (Laplace approximation; exact for
    ``loss="auc"``), so there are no hyperparameters to tune. With enough labels, Omega is a full
    covariance matrix, shrunk slightly towards a multiple of the identity. With fewer labels, it has
    a few leading directions and an equal residual variance in all others. A user's weights are the
    mode of their posterior, which also has a covariance. With covariates z_i of users
    (``user_features=`` of `Annotations`), W_i ~ N(theta + Gamma z_i, Omega), and the ridge penalty
    of Gamma is learned, too. A keyboard interrupt keeps the best prior so far.

    If several users label the same items, user i's score of item j is x_j'W_i + b_j + f_j'v_i. b_j
    is an item effect, and f_j are learned factors. b_j, f_j and v_i are random effects with learned
    variances, so they shrink to zero if features explain the labels. Such data need no features.

    Parameters
    ----------
    n_groups : int or "auto", default="auto"
        The number of leading directions of Omega. "auto" selects it by Akaike's criterion; see
        ``covariance``.
    loss : str or PriorLoss, default="auto"
        "logistic" is a logistic regression of labels, with an intercept per user; it also uses
        users with labels of one class. "choice" is a conditional logit of each positive label among
        the negatives of its choice set (without choice sets, of the user's labels). With "mixed",
        choice sets of several rows are choices, and other rows are labels. "auc" is the squared AUC
        loss of `ThreeLevelRanker`, as a regression with learned precision. "auto" is "choice" if
        all labels are in choice sets with one positive each, "mixed" if some are, else "logistic".
        For grades: "cumulative" (a cumulative logit), "gaussian" (grades standardised by user),
        "logistic" (grades above the most even split) or "median" (grades above the user's median).
        "auto" then takes the best for held-out users.
    item_effects : bool or "auto", default="auto"
        Whether items have random effects. "auto" means if two users label one item, or choices have
        no features. They are not available with the loss "auc" (of pairs of labels) or a simulated
        likelihood (see ``draws``).
    n_item_factors : int or "auto", default="auto"
        The number of learned factors of items. With "auto", held-out labels decide whether to use
        factors, and the weights of unneeded factors shrink to zero.
    unknown : {"error", "consensus"}, default="error"
        Users not seen in training raise an error, or get the consensus. Without features, items not
        seen in training raise an error, or are scored as an average item.
    user_column : int or str, optional
        The column of X with the ids of users, as in `ThreeLevelRanker`.
    verbose : bool, default=False
        Whether to print steps and objective on stderr.

    Other Parameters
    ----------------
    fixed : list of features, optional
        Choice modelling: features, by name or position, with the same weight for all users.
    signs : dict, optional
        Choice modelling: known signs (1 or -1) of weights, by name or position of the feature.
        Their distribution is normal, censored at zero.
    distributions : dict, optional
        Choice modelling: distributions of weights over users, by feature. "lognormal" needs a sign
        in ``signs``. The default is "censored" with a sign, else "normal".
    draws : int or "auto", default="auto"
        Choice modelling: draws per user for the maximum simulated likelihood, without penalties, of
        theta, Omega and ``fixed`` weights. It starts from the Laplace estimate. "auto" is 200 with
        ``fixed`` or ``signs``, else 0 (no simulation).
    consensus : array of shape (n_features,), optional
        Choice modelling and reward models: weights towards which the consensus is shrunk (instead
        of zero), such as those of an earlier model. Their unit is log-odds per unit of a feature.
    covariance : {"auto", "full", "diagonal", "low_rank", "none"}, default="auto"
        Advanced: the structure of Omega. "full" is unrestricted, "diagonal" has independent
        weights, and "low_rank" has a few leading directions and a residual. "auto" chooses "full"
        or "low_rank" by the likelihood of held-out users, and "low_rank" if ``n_groups`` is a
        number. With "full" and "diagonal", the leading directions only describe Omega. With "none",
        users have no weights of features, and item effects and factors are regressed on features.
        "auto" chooses this if labels are few for the number of features, and users' weights do not
        improve held-out predictions.
    wide : bool or "auto", default="auto"
        Advanced: whether to learn in the space of rows, without matrices of features x features.
        Omega then has a few leading directions. "auto" does so with more than 256 features and as
        many items. Models that need such matrices keep 256 leading directions of the items.
    standardize : bool, default=True
        Advanced: whether to scale features to unit variance for the fit.
    covariance_rank : int, default=16
        Advanced: the number of stored directions of each user's posterior covariance, the most
        informed first. Other directions have the variance of the prior.
    tol : float, default=1e-5
        Advanced: stop when a step lowers the objective by less than this share.
    max_iter : int, default=500
        Advanced: the most steps; reaching it gives a warning.
    callback : callable, optional
        Advanced: called as ``callback(step, objective, residual)`` after each step of the last
        descent; return True to stop.

    Attributes
    ----------
    users_, coef_, consensus_, group_, personal_, scale_, classes_, feature_names_
        As in `ThreeLevelRanker`, with ``coef_ = consensus_ + group_ + personal_``. The group level
        is a user's deviation in the leading directions; the personal level is the rest.
    loss_, positive_share_ : str, float
        The loss used, and the share of positive labels.
    prior_ : FittedPrior
        The learned prior: ``prior`` (theta and Omega, in the coordinates of ``design``), the
        ``likelihood`` of labels, and ``predictive`` (the prior with uncertain parameters). With
        covariates of users, also ``covariate_effects`` (Gamma).
    information_ : array of shape (n_users, covariance_rank, p)
        Matrices K; a user's posterior covariance is the covariance of the prior less K'K.
    intercept_ : array of shape (n_users,)
        The log-odds of a positive label at a score of zero (zeros except for the logistic loss).
    item_effects_, n_item_factors_ : bool, int
        Whether items have random effects, and the number of learned factors. If no item was
        labelled by two users, `fit` uses neither, and logs this (level INFO, logger ``likeminds``),
        or warns if ``item_effects=True``.
    items_, item_effect_, item_effect_error_, item_factors_ : arrays
        The items, b_j, its posterior standard deviation, and f_j, shape (n_items, r).
    factor_weights_ : array of shape (n_users, r)
        v_i, users' weights of the learned factors.
    variance_scale_ : float or None
        The scale of the variance of scores in `predict_proba`, for users and items in training.
    grade_scores_, grading_ : dict, CumulativeLogit or None
        The held-out concordance of each loss of grades, and the model of grades given scores
        (`predict_grades`).
    wide_, points_ : bool, array of shape (n_users, p)
        Whether the prior was learned in the space of rows (``wide``); if so, users' weights in the
        coordinates of ``prior_``. ``coef_``, ``group_`` and ``personal_`` are then computed on
        first use.
    covariance_, n_groups_ : str, int
        The structure of Omega, and the number of leading directions.
    directions_ : array of shape (n_groups_, n_features)
        The leading directions, as weights of the features, strongest first.
    explained_, explained_by_users_ : dict
        Shares of the variance of scores between users, explained by the "group" and the "personal"
        level, and by each covariate of users alone.
    criterion_ : array
        Akaike's criterion by number of directions, from 0 (only for ``n_groups="auto"``).
    objective_, objective_trace_ : float, array
        The final objective, and the objective by step of the last descent. It is minus the log
        marginal likelihood (Laplace approximation), plus penalties of theta and Omega (a ridge,
        pseudo-users). With ``draws``, it is minus the simulated log-likelihood, by round of draws.
        Use `log_likelihood` to compare models; it has no penalties.
    final_steps_ : list of str
        The steps after the optimum: "regress_items_on_features" (item effects and factors),
        "calibrate_grades" (``grading_``) or "calibrate_variance" (``variance_scale_``).
        ``objective_`` is from before these steps.
    n_iter_, converged_ : int, bool
        The number of steps of the last descent, and whether ``tol`` was reached.
    sampling_ : SubsampleRecord or None
        The record of learning from a subsample (with 8,000 users or more, without item effects and
        covariates; else None). ``n_learned`` and ``n_asked`` are the numbers of users in the
        subsample and in corrections. ``promised`` and ``gained`` are the predicted and actual
        decreases of the objective by each correction. ``excess`` is the expected distance of the
        objective from its minimum, in nats per label.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity, split_within_users
    >>> train, test = split_within_users(load_electricity(), random_state=0)
    >>> ranker = HierarchicalRanker().fit(train)
    >>> ranker.score(test) > 0.84
    True
    >>> sorted(ranker.explained_)
    ['group', 'personal']
    """

    n_groups: int | str = "auto"
    loss: str | PriorLoss = "auto"
    _: KW_ONLY
    item_effects: bool | str = "auto"
    n_item_factors: int | str = "auto"
    covariance: str = "auto"
    fixed: Sequence[str | int] | None = None
    signs: Mapping[str | int, int] | None = None
    distributions: Mapping[str | int, str] | None = None
    draws: int | str = "auto"
    consensus: ArrayLike | None = None
    wide: bool | str = "auto"
    standardize: bool = True
    covariance_rank: int = 16
    tol: float = 1e-5
    max_iter: int = 500
    unknown: str = "error"
    user_column: int | str | None = None
    callback: Callback | None = None
    verbose: bool = False

    _needs_no_features = True
    _nothing_to_add_to = (
        "This ranker has no training data, because it was loaded from a file or fitted on a "
        "cluster, so labels cannot be added. Save it with save(..., with_data=True), or use "
        "`newcomer`, which needs no training data."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_groups": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"auto", *ALL_LOSSES}), PriorLoss],
        "item_effects": ["boolean", StrOptions({"auto"})],
        "n_item_factors": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "covariance": [StrOptions({"auto", "full", "diagonal", "low_rank", "none"})],
        "fixed": ["array-like", None],
        "signs": [dict, None],
        "distributions": [dict, None],
        "draws": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "consensus": ["array-like", None],
        "wide": ["boolean", StrOptions({"auto"})],
        "covariance_rank": [Interval(Integral, 0, None, closed="left")],
    }

    _learn_from = fit

    def _fit_more(self, more: Annotations) -> None:
        assert self.annotations_ is not None
        everything = self.annotations_.concat(more)
        # A few rows must not change the loss.
        if self.loss == "auto" and self.loss_ == "choice":
            if more.choice_set_codes is None:
                raise ValueError(
                    "The model was fitted to choices, but these are labels of single items. Fit "
                    "both at once (first.concat(second)), or use newcomer, which takes either."
                )
            refuse_no_choices(everything)
        self._fit_annotations(everything, chosen=self.loss_)

    def _fit_annotations(self, annotations: Annotations, chosen: str | None = None) -> None:
        fit(self, TrainingData.of(annotations), chosen)
        self.annotations_ = annotations
