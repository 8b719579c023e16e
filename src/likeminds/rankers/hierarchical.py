"""The ranker with nothing to tune: people are draws from a prior that is learned."""

from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass
from numbers import Integral, Real
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


# Parameters are the fields of a dataclass: see `ComponentsRanker`.
@dataclass(eq=False, repr=False)
class HierarchicalRanker(PriorRanker):
    """One ranking function per person, drawn from a prior that is learned from the crowd.

    Everybody's weights are W_i ~ N(theta, Omega). theta, Omega, how many of its directions lead,
    and the ridge penalty of the consensus are learned by maximising the marginal likelihood of
    the labels (Laplace approximation; exact for ``loss="auc"``): there is nothing to tune. Where
    there are labels enough, Omega is any covariance, shrunk a little towards one that is alike
    in all directions; else it has a few leading directions, and an equal residual in all others.
    A person's weights are the mode of their posterior given this prior, and come with its
    covariance. Where annotations have covariates of people z_i (``user_features=``), weights are
    W_i ~ N(theta + Gamma z_i, Omega); Gamma is learned, and shrunk as much as it has to be. A
    keyboard interrupt keeps the best prior found so far.

    Where several people judge the same items (`Annotations` say which), an item is more than its
    features: a person's score of it is x_j'W_i + b_j + f_j'v_i, with b_j what all see in it beyond
    its features, and f_j a few features that are learned, weighed by people like any others. b_j
    and f_j are learned like people's weights, as draws from distributions that are learned
    themselves; where features explain everything, they shrink to nothing. Then features may be
    left out altogether.

    Parameters
    ----------
    n_groups : int or "auto", default="auto"
        How many leading directions Omega has. "auto" leaves it to the data: as many as pay by
        Akaike's criterion; see ``covariance``.
    loss : str or PriorLoss, default="auto"
        "logistic": each label is a logistic regression with an intercept per person; people
        with labels of one class count, too. "choice": each positive label is a choice among it
        and the negatives shown with it (its group; without groups, all of the person's): a
        conditional logit, which needs no intercept. "mixed": groups of rows are choices, and
        rows that are alone are labels. "auc": the squared AUC loss of `ThreeLevelRanker`, as a
        regression whose precision is learned. "auto" is "choice" where labels came in groups
        with one positive each, "mixed" where some did, and others alone, else "logistic".
        Of grades, "cumulative" (a cumulative logit), "gaussian" (standardised by person),
        "logistic" (those above the one that divides all evenly) or "median" (those above the
        person's own): "auto" is the one that ranks best for held-out people.
    item_effects : bool or "auto", default="auto"
        Whether items have effects of their own. "auto": where two users judge one item, or
        choices have no features, the loss is not "auc" (which is about pairs of labels), and
        nothing is simulated (see ``draws``).
    n_item_factors : int or "auto", default="auto"
        How many features of items are learned, where items have effects of their own.
        "auto": labels that are held out say whether any, and people's learned weights how many:
        those of features that are not needed shrink to nothing.
    covariance : {"auto", "full", "diagonal", "low_rank"}, default="auto"
        What is learned of Omega: all of it; variances alone, as if people's weights were
        independent; or a few leading directions and a residual. "auto" takes "full" or
        "low_rank", whichever makes the labels of held-out people likelier; "low_rank" where
        ``n_groups`` is a number. With "full" and "diagonal", the
        leading directions are a way to read Omega, not a limit to it.
    fixed : list of features, optional
        Features, by name or position, whose weights are the same for everybody.
    signs : dict, optional
        Features, by name or position, whose weights have a known sign, 1 or -1. Such a weight is
        normally distributed where it has this sign, and else zero (a censored normal
        distribution): some people do not care, nobody cares the other way round.
    distributions : dict, optional
        How the weights of features are distributed over people, where that is not to be the
        normal distribution (of features in ``signs``, the censored one): "lognormal" for a weight
        in ``signs`` that nobody has at zero. "normal" and "censored" say what holds anyway.
    draws : int or "auto", default="auto"
        With so many draws for each person, theta, Omega and the weights in ``fixed`` are taken
        from where the steps above lead to the maximum of the simulated likelihood, without any
        penalty: what choice modellers call maximum simulated likelihood. "auto" is 200 with
        ``fixed`` or ``signs``, else 0: nothing is simulated.
    consensus : array of shape (n_features,), optional
        Weights of the features that are thought to be the consensus: a reward head, or a model of
        everybody, that is there already. The consensus is shrunk towards them instead of zero, as
        much as makes it most likely. They are in units of the scores: log-odds of a label or a
        choice for each unit of a feature.
    wide : bool or "auto", default="auto"
        Whether to learn without any matrix of features x features, in the space of the labels'
        rows: Omega has a few leading directions then. "auto": with more than 256 features, and as
        many items. Models that need such matrices keep 256 leading directions of the items. See
        `docs/wide.md`.
    standardize : bool, default=True
        Give all features unit variance first (undone in the coefficients).
    covariance_rank : int, default=16
        How many directions of each person's posterior covariance are kept: those the labels
        say most about. In the others, the prior's variance stands.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    max_iter : int, default=500
        Stop after this many steps in any case (with a warning).
    unknown : {"error", "consensus"}, default="error"
        What users get who were not seen in training: an error, or the scores of the consensus.
        Without features, the same holds for items: an error, or the score of an average item.
    user_column : int or str, optional
        The column of X that says who gave the label, as in `ThreeLevelRanker`.
    callback : callable, optional
        Called as ``callback(step, objective, residual)`` after each step of the last descent;
        to return True is to stop.
    verbose : bool, default=False
        Whether to report progress on stderr: the steps and the objective.

    Attributes
    ----------
    users_, coef_, consensus_, group_, personal_, scale_, classes_, feature_names_
        As in `ThreeLevelRanker`: ``coef_ = consensus_ + group_ + personal_``. The group level
        is the part of a person's deviation in the leading directions, the personal level is
        the rest.
    loss_, positive_share_ : str, float
        The loss that was used, and the share of positive labels.
    prior_ : Crowd
        What people are drawn from: ``prior`` (theta and Omega), the ``coordinates`` it is in, the
        ``likelihood`` of labels, and ``predictive``, the prior with its parameters' uncertainty;
        ``traits`` (Gamma) where there are covariates of people.
    information_ : array of shape (n_users, covariance_rank, p)
        The matrices K of `Posterior`: a person's posterior covariance is the prior's less K'K.
    intercept_ : array of shape (n_users,)
        What to add to scores to get log-odds of a positive label (zeros but for the logistic loss).
    item_effects_, n_item_factors_ : bool, int
        Whether items have effects of their own, and how many of their features were learned.
        Where no item was judged by two people, they have none: `fit` says so once, a message of
        level INFO of the logger ``likeminds``, or a warning if they were asked for.
    variance_scale_ : float or None
        Of the logistic loss: how much of the variance of scores counts in `predict_proba`, of
        people and items that are known.
    items_, item_effect_, item_effect_error_, item_factors_ : arrays
        Which items they are, b_j and its standard deviation, and f_j, shape (n_items, r).
    factor_weights_ : array of shape (n_users, r)
        v_i, people's weights of the features that were learned.
    wide_ : bool
        Whether the prior was learned in the space of rows; see ``wide``.
    points_ : array of shape (n_users, p)
        Of wide features, people in the coordinates of ``prior_``; ``coef_``, ``group_`` and
        ``personal_`` are made of them when they are first asked for.
    covariance_ : str
        Which form of Omega was learned: "full", "diagonal" or "low_rank".
    grade_scores_, grading_ : dict, CumulativeLogit or None
        What each loss of grades reached; how grades follow from scores (`predict_grades`).
    n_groups_ : int
        The number of leading directions.
    directions_ : array of shape (n_groups_, n_features)
        These directions, as weights of the features; strongest first.
    explained_ : dict
        The share of the disagreement about items (the variance of scores between people) that
        the "group" and the "personal" level explain.
    explained_by_users_ : dict
        The share of it that goes with each covariate of people alone; empty without covariates.
    criterion_ : array
        What was compared, by number of directions tried, from none ("auto" only): the
        objective and what the directions' numbers count.
    objective_, objective_trace_ : float, array
        What was minimised, at the end and by step of the last descent: minus the log marginal
        likelihood of the labels, approximated (Laplace's method), plus the penalties of theta
        and Omega (a ridge, pseudo-people). It compares fits of one kind, not models;
        `log_likelihood` has neither penalty nor approximation. With ``draws``: minus the
        simulated log-likelihood, by round of draws.
    final_steps_ : list of str
        What was rewritten after the optimum: "regress_items_on_features" (item effects and factors,
        on the items' features), "calibrate_grades" (how grades follow from scores) or
        "calibrate_variance" (``variance_scale_``). ``objective_`` is that before these steps.
    n_iter_, converged_ : int, bool
        Steps of the last descent, and whether it ended by ``tol``.
    sampling_ : SubsampleRecord or None
        How the prior of a large crowd was learned from some of its people: how many learned
        (``n_learned``) and corrected (``n_asked``), by how much each corrected step promised to
        lower the objective and lowered it (``promised``, ``gained``), and how far it is expected
        to be above its least value (``excess``), all in nats per label. None where everybody
        learned: crowds of fewer than 8,000, items with effects of their own, covariates of people.

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
    _learned_from: ClassVar[str] = "annotations_"
    _nothing_to_add_to = (
        "This ranker was read from a file, or fitted on a cluster, and does not hold its training "
        "data: more labels cannot be added to it. They can where it was saved with "
        "save(..., with_data=True); `newcomer` needs none of it."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_groups": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"auto", *ALL_LOSSES}), PriorLoss],
        "item_effects": ["boolean", StrOptions({"auto"})],
        "n_item_factors": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "covariance": [StrOptions({"auto", "full", "diagonal", "low_rank"})],
        "fixed": ["array-like", None],
        "signs": [dict, None],
        "distributions": [dict, None],
        "draws": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "consensus": ["array-like", None],
        "wide": ["boolean", StrOptions({"auto"})],
        "standardize": ["boolean"],
        "covariance_rank": [Interval(Integral, 0, None, closed="left")],
        "tol": [Interval(Real, 0, None, closed="left")],
        "max_iter": [Interval(Integral, 1, None, closed="left")],
        "unknown": [StrOptions({"consensus", "error"})],
        "user_column": [Integral, str, None],
        "callback": [callable, None],
        "verbose": ["boolean"],
    }

    _learn_from = fit

    def _fit_more(self, more: Annotations) -> None:
        assert self.annotations_ is not None
        everything = self.annotations_.concat(more)
        # A few rows must not turn all that was learned into something else.
        if self.loss == "auto" and self.loss_ == "choice":
            if more.choice_set_codes is None:
                raise ValueError(
                    "The model has learned from choices, but these are labels of single items: "
                    "fit both at once (first.concat(second)), or use newcomer, which takes either."
                )
            refuse_no_choices(everything)
        self._fit_annotations(everything, chosen=self.loss_)

    def _fit_annotations(self, annotations: Annotations, chosen: str | None = None) -> None:
        fit(self, TrainingData.of(annotations), chosen)
        self.annotations_ = annotations
