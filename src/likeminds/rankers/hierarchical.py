"""The ranker with nothing to tune: people are draws from a prior that is learned."""

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils._param_validation import Interval, StrOptions

from likeminds._support.arrays import Float
from likeminds._support.checks import refuse_not_finite
from likeminds.data.annotations import Annotations
from likeminds.prior.apportioning import apportion
from likeminds.prior.choices import refuse_no_choices
from likeminds.prior.coordinates import Coordinates
from likeminds.prior.covariates import learn_with_people
from likeminds.prior.crossed import NOT_SHARED, CrossedTasks, are_shared
from likeminds.prior.descent import Learned
from likeminds.prior.grading import Graded
from likeminds.prior.items import Items
from likeminds.prior.learning import learn
from likeminds.prior.likelihoods import Likelihood
from likeminds.prior.losses import ALL_LOSSES, PriorLoss, choose_loss
from likeminds.prior.refining import refine_likelihood
from likeminds.prior.settling import posterior_of
from likeminds.prior.shared import learn_crossed
from likeminds.prior.tasks import Tasks
from likeminds.prior.traits import Traits
from likeminds.prior.wide.learning import learn_in_rows
from likeminds.rankers.callbacks import both_callbacks
from likeminds.rankers.choice_tables import ChoiceTables
from likeminds.rankers.fitting import refuse_one_class
from likeminds.rankers.grading import choose_grade_loss, learn_grading
from likeminds.rankers.widths import choose_way
from likeminds.solvers.base import Callback

# Likelihoods of grades suit people's scores after so many rounds, learned not very exactly.
_ROUNDS, _ROUGH = 2, 1e-3


class HierarchicalRanker(ChoiceTables):
    """One ranking function per person, drawn from a prior that is learned from the crowd.

    Everybody's weights are W_i ~ N(theta, Omega). theta, Omega, how many of its directions lead,
    and the ridge penalty of the consensus are learned by maximising the marginal likelihood of
    the labels (Laplace approximation; exact for ``loss="auc"``): there is nothing to tune. Where
    there are labels enough, Omega is any covariance, shrunk a little towards one that is alike
    in all directions; else it has a few leading directions, and an equal residual in all others.
    A person's weights are the mode of their posterior given this prior, and come with its
    covariance. Where annotations have covariates of people z_i (``people=``), weights are
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
        Whether items have effects of their own. "auto": where two people judge one item,
        the loss is "logistic" (the others know items by their features alone), and nothing is
        simulated (see ``draws``).
    n_item_factors : int or "auto", default="auto"
        How many features of items are learned, where items have effects of their own.
        "auto" takes as many as predict held-out labels best.
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
        many items, where nothing else that is asked for needs such matrices. See `docs/wide.md`.
    standardize : bool, default=True
        Give all features unit variance first (undone in the coefficients).
    covariance_rank : int, default=16
        How many directions of each person's posterior covariance are kept: those the labels
        say most about. In the others, the prior's variance stands.
    tol : float, default=1e-5
        Stop when a step lowers the objective by less than this share.
    max_iter : int, default=500
        Stop after this many steps in any case (with a warning).
    unknown : {"consensus", "error"}, default="consensus"
        What people get who were not seen in training.
    user_column : int or str, optional
        The column of X that says who gave the label, as in `ThreeLevelRanker`.
    callback : callable, optional
        Called as ``callback(step, objective, residual)`` after each step of the last descent;
        to return True is to stop.

    Attributes
    ----------
    users_, coef_, consensus_, group_, personal_, scale_, classes_, feature_names_
        As in `ThreeLevelRanker`: ``coef_ = consensus_ + group_ + personal_``. The group level
        is the part of a person's deviation in the leading directions, the personal level is
        the rest.
    loss_, positive_share_ : str, float
        The loss that was used, and the share of positive labels.
    crowd_ : Crowd
        What people are drawn from: ``prior`` (theta and Omega), the ``coordinates`` it is in, the
        ``likelihood`` of labels, and ``predictive``, the prior with its parameters' uncertainty;
        ``traits`` (Gamma) where there are covariates of people.
    information_ : array of shape (n_people, covariance_rank, p)
        The matrices K of `Beliefs`: a person's posterior covariance is the prior's less K'K.
    intercept_ : array of shape (n_people,)
        What to add to scores to get log-odds of a positive label (zeros but for the logistic loss).
    item_effects_, n_item_factors_ : bool, int
        Whether items have effects of their own, and how many of their features were learned.
    items_, item_effect_, item_effect_error_, item_factors_ : arrays
        Which items they are, b_j and its standard deviation, and f_j, shape (n_items, r).
    factor_weights_ : array of shape (n_people, r)
        v_i, people's weights of the features that were learned.
    wide_ : bool
        Whether the prior was learned in the space of rows; see ``wide``.
    points_ : array of shape (n_people, p)
        Of wide features, people in the coordinates of ``crowd_``; ``coef_``, ``group_`` and
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
    explained_by_people_ : dict
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
    n_iter_, converged_ : int, bool
        Steps of the last descent, and whether it ended by ``tol``.
    sampling_ : Sampling or None
        How the prior of a large crowd was learned from some of its people: how many learned
        (``n_learned``) and corrected (``n_asked``), by how much each corrected step promised to
        lower the objective and lowered it (``promised``, ``gained``), and how far it is expected
        to be above its least value (``excess``), all in nats per label. None where everybody
        learned: crowds of fewer than 8,000, items with effects of their own, covariates of people.

    Examples
    --------
    >>> from likeminds import HierarchicalRanker, load_electricity, split_within_people
    >>> train, test = split_within_people(load_electricity(), random_state=0)
    >>> ranker = HierarchicalRanker().fit(train)
    >>> ranker.score(test) > 0.84
    True
    >>> sorted(ranker.explained_)
    ['group', 'personal']
    """

    _needs_no_features = True
    _learned_from = "annotations_"
    _nothing_to_add_to = (
        "This ranker was read from a file, which does not hold its training data: more labels "
        "cannot be added to it. They can where it was saved with save(..., with_data=True); "
        "`newcomer` needs none of it."
    )
    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "n_groups": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "loss": [StrOptions({"auto", *ALL_LOSSES}), PriorLoss],
        "item_effects": ["boolean", StrOptions({"auto"})],
        "n_item_factors": [Interval(Integral, 0, None, closed="left"), StrOptions({"auto"})],
        "covariance": [StrOptions({"auto", "full", "diagonal", "low_rank"})],
        "fixed": ["array-like", None],
        "signs": [dict, None],
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
    }

    def __init__(
        self,
        n_groups: int | str = "auto",
        loss: str | PriorLoss = "auto",
        *,
        item_effects: bool | str = "auto",
        n_item_factors: int | str = "auto",
        covariance: str = "auto",
        fixed: Sequence[str | int] | None = None,
        signs: Mapping[str | int, int] | None = None,
        draws: int | str = "auto",
        consensus: ArrayLike | None = None,
        wide: bool | str = "auto",
        standardize: bool = True,
        covariance_rank: int = 16,
        tol: float = 1e-5,
        max_iter: int = 500,
        unknown: str = "consensus",
        user_column: int | str | None = None,
        callback: Callback | None = None,
    ) -> None:
        self.n_groups = n_groups
        self.loss = loss
        self.item_effects = item_effects
        self.n_item_factors = n_item_factors
        self.covariance = covariance
        self.fixed = fixed
        self.signs = signs
        self.draws = draws
        self.consensus = consensus
        self.wide = wide
        self.standardize = standardize
        self.covariance_rank = covariance_rank
        self.tol = tol
        self.max_iter = max_iter
        self.unknown = unknown
        self.user_column = user_column
        self.callback = callback

    def _fit_more(self, more: Annotations) -> None:
        everything = self.annotations_.concat(more)
        # A few rows must not turn all that was learned into something else.
        if self.loss == "auto" and self.loss_ == "choice":
            if more.group_codes is None:
                raise ValueError(
                    "The model has learned from choices, but these are labels of single items: "
                    "fit both at once (first.concat(second)), or use newcomer, which takes either."
                )
            refuse_no_choices(everything)
        self._fit_annotations(everything, chosen=self.loss_)

    def _fit_annotations(self, annotations: Annotations, chosen: str | None = None) -> None:
        loss = self._choose_loss(annotations, chosen)
        refuse_one_class(annotations, teaches=loss.one_class_teaches)
        self.loss_ = loss.name
        self.positive_share_ = float(annotations.labels.mean())
        self.wide_ = self._is_wide(loss, annotations)
        coordinates = Coordinates.of_annotations(
            annotations,
            standardize=self.standardize,
            intercept=loss.has_intercept,
            every=self.wide_,
        )
        likelihood = self._first_likelihood(loss, annotations, coordinates)
        said = loss.prepare(annotations, likelihood)
        specification = self._specification()
        if self.wide_:
            learned, tasks, coordinates = self._learn_wide(loss, said, likelihood, coordinates)
            traits = None
        else:
            tasks = self._tasks(loss, said, coordinates)
            learned, traits = self._learn(tasks, likelihood, annotations, coordinates)
        if not (specification.is_plain or learned.interrupted):
            learned = self._refine(learned, tasks, coordinates, _shifts(traits, annotations))
        self._interrupted = learned.interrupted
        self._warn_if_unfinished(learned)
        if learned.items is not None and isinstance(tasks, CrossedTasks):
            labelled = learned.items.take(np.flatnonzero(tasks.labelled))
            learned = apportion(replace(learned, items=labelled), annotations, coordinates)
            assert learned.items is not None
            tasks = tasks.with_items(learned.items.of(annotations.item_ids))
        self.users_ = annotations.user_ids
        self.annotations_ = annotations
        self._set_prior(learned, coordinates, traits)
        if specification.signs.any():
            intercept = np.zeros(coordinates.size - coordinates.n_weights)
            signs = np.concatenate([specification.signs, intercept])
            self.crowd_ = replace(self.crowd_, signs=signs)
        points, self.information_ = posterior_of(
            tasks,
            annotations.n_people,
            self.crowd_,
            pulls=learned.pulls,
            rank=self.covariance_rank,
            shifts=self.crowd_.shifts(annotations.people, annotations.user_ids),
            quick=learned.sampling is not None,
        )
        del tasks, learned, said  # a large crowd's levels need the memory that its rows take
        self._set_levels(points)
        self.grading_ = None
        if annotations.grades is not None and loss.has_intercept:
            self.grading_ = learn_grading(self, annotations)

    def _choose_loss(self, annotations: Annotations, chosen: str | None) -> PriorLoss:
        """Return the loss; of grades, unless one was ``chosen``, by held-out people."""
        loss = choose_loss(self.loss, annotations)
        self.grade_scores_: dict[str, float] = {}
        if self.loss != "auto" or annotations.grades is None or not loss.takes_items:
            return loss
        if chosen is None:
            chosen, self.grade_scores_ = choose_grade_loss(self, annotations)
        return ALL_LOSSES[chosen]

    def _first_likelihood(
        self, loss: PriorLoss, annotations: Annotations, coordinates: Coordinates
    ) -> Likelihood:
        """Return the likelihood; of grades, that which suits people's scores roughly."""
        likelihood = loss.first_likelihood(annotations)
        for _ in range(_ROUNDS if isinstance(likelihood, Graded) else 0):
            said = loss.prepare(annotations, likelihood)
            tasks = self._tasks(loss, said, coordinates)
            learned, traits = self._learn(tasks, likelihood, annotations, coordinates, rough=True)
            if learned.interrupted:
                raise KeyboardInterrupt
            likelihood = refine_likelihood(tasks, learned, _shifts(traits, annotations))
        return likelihood

    def _tasks(self, loss: PriorLoss, annotations: Annotations, coordinates: Coordinates) -> Tasks:
        """Return everybody's labels, with their items where those have effects of their own."""
        if self._has_items(loss, annotations):
            nothing = Items.unknown(annotations.item_ids)
            return CrossedTasks.of_annotations(annotations, coordinates, nothing, loss.bend)
        if not annotations.n_features:
            raise ValueError(
                "These annotations have no features, so that items are known only by what people "
                "say of them: that takes items that several people judge, item_effects not False, "
                'and loss="logistic".'
            )
        return loss.tasks(annotations, coordinates)

    def _has_items(self, loss: PriorLoss, annotations: Annotations) -> bool:
        if not self._specification().is_plain:
            if self.item_effects is True:
                raise ValueError(
                    "Items have effects of their own, or draws, fixed and signs are given: a "
                    "likelihood that is simulated person by person cannot have items that people "
                    "share. Leave out either."
                )
            return False
        if self.item_effects == "auto":
            return loss.takes_items and are_shared(annotations)
        if self.item_effects and not loss.takes_items:
            raise ValueError(
                f'item_effects=True needs loss="logistic"; with loss="{loss.name}", items are '
                'known by their features alone. Leave item_effects at "auto", or change the loss. '
                "(Comparisons and choices without features= give every item a column of its own.)"
            )
        if self.item_effects and not are_shared(annotations):
            warnings.warn(NOT_SHARED, UserWarning, stacklevel=6)
            return False
        return bool(self.item_effects)

    def _learn(
        self,
        tasks: Tasks,
        likelihood: Likelihood,
        annotations: Annotations,
        coordinates: Coordinates,
        *,
        rough: bool = False,
    ) -> tuple[Learned, Traits | None]:
        n_weights = coordinates.n_weights
        teach: Any = learn
        if isinstance(tasks, CrossedTasks):
            asked = 0 if rough else self.n_item_factors
            teach = partial(learn_crossed, n_factors=None if isinstance(asked, str) else int(asked))
        elif annotations.people is None:
            teach = partial(learn, may_sample=True)
        with both_callbacks(self, self.callback) as callback:
            learning = partial(
                teach,
                tasks,
                n_weights,
                coordinates.size,
                self._asked_groups(n_weights),
                likelihood=likelihood,
                covariance=self.covariance,
                centre=self._centre(coordinates),
                tol=max(self.tol, _ROUGH) if rough else self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )
            return learn_with_people(annotations, coordinates, tasks, learning, self.tol)

    def _is_wide(self, loss: PriorLoss, annotations: Annotations) -> bool:
        return choose_way(
            self.wide,
            annotations,
            needs_matrices={
                f'covariance="{self.covariance}"': self.covariance in {"full", "diagonal"},
                "fixed, signs and draws": not self._specification().is_plain,
                "covariates of people": annotations.people is not None,
                f'loss="{loss.name}"': not loss.rows_are_items,
                "item_effects=True": self.item_effects is True,
            },
            shared=self.item_effects == "auto" and loss.takes_items and are_shared(annotations),
        )

    def _learn_wide(
        self,
        loss: PriorLoss,
        said: Annotations,
        likelihood: Likelihood,
        coordinates: Coordinates,
    ) -> tuple[Learned, Tasks, Coordinates]:
        """Learn in the space of rows; return what was learned in a few coordinates."""
        with both_callbacks(self, self.callback) as callback:
            return learn_in_rows(
                loss,
                said,
                coordinates,
                self._asked_groups(coordinates.n_weights),
                likelihood=likelihood,
                centre=self._centre(coordinates),
                tol=self.tol,
                max_iter=self.max_iter,
                callback=callback,
            )

    def _centre(self, coordinates: Coordinates) -> Float | float:
        """Return the consensus that is known already, in coordinates."""
        if self.consensus is None:
            return 0.0
        weights = np.asarray(self.consensus, dtype=np.float64)
        if weights.shape != coordinates.scale.shape:
            raise ValueError(
                f"consensus has shape {weights.shape}, but there are {len(coordinates.scale)} "
                "features: give one weight for each."
            )
        refuse_not_finite(weights[None], "consensus")
        return coordinates.points(weights[None], np.zeros(1))[0, : coordinates.n_weights]

    def _asked_groups(self, n_weights: int) -> int | None:
        if isinstance(self.n_groups, str):
            return None
        if self.n_groups > n_weights:
            raise ValueError(
                f"n_groups is {self.n_groups}, but the items differ in {n_weights} direction(s) "
                f'only. Choose from 0 to {n_weights}, or "auto".'
            )
        return int(self.n_groups)

    def _warn_if_unfinished(self, learned: Learned) -> None:
        if learned.converged:
            return
        how = "Interrupted" if learned.interrupted else "Stopped"
        warnings.warn(
            f"{how} after {len(learned.trace) - 1} steps, before a step changed the objective by "
            f"less than tol={self.tol:g}: these are the best weights so far.",
            ConvergenceWarning,
            stacklevel=5,
        )


def _shifts(traits: Traits | None, annotations: Annotations) -> Float | None:
    """Return how far everybody's mean is from that of all, by their covariates."""
    return None if traits is None else traits.shifts(annotations.people, annotations.user_ids)
