"""Repeated splits of one data set, and the rankers compared on them.

They are the paper's eight, each as in the paper and with an intercept, simple baselines, and the
learned prior.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from pyarrow import compute
from sklearn.base import BaseEstimator, clone

from likeminds._util.array_types import Float
from likeminds.comparing.comparison import Comparison, compare
from likeminds.data.annotations import Annotations
from likeminds.features.reduction import Reduce
from likeminds.metrics.paired import PairedDifference, over_repeats
from likeminds.paper.experiments.setting import ExperimentSetting, ResultStore, Tuned
from likeminds.rankers.baselines import ConsensusOnly, LogisticPerUser, OnePerUser, RidgeToConsensus
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.registry import PAPER_BASELINES, NamedRankers
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import usual_alpha_group
from likeminds.rankers.three_level_cv import ThreeLevelRankerCV

# The paper holds out 15 %.
TEST_SIZE = 0.15
OURS = "Three levels"  # "Ours" in the paper
SHRUNK = "Three levels, groups shrunk"
LEARNED = "Learned prior"
LEAST_SQUARES = "Three levels on least squares"
RAW, INTERCEPT = "as in the paper", "with an intercept"
LOSSES = {RAW: "least_squares_raw", INTERCEPT: "least_squares"}
SIMPLE_BASELINES = {
    "Ridge to the consensus": RidgeToConsensus,
    "One model per person": OnePerUser,
    "Logistic regression per person": LogisticPerUser,
    "Consensus only": ConsensusOnly,
}
# Above so many labels, the learned prior takes the AUC loss, whose steps do not visit every label.
MANY_LABELS = 50_000

# As wide as the grids of the other rankers: from almost no penalty to a level of zeros.
_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_N_GROUPS = (1, 2, 4)
_ALPHA_PERSONAL = (10.0, 1.0, 0.1)
_ALPHA_CONSENSUS = (1e-4, 1e-2)


def variant_name(name: str, variant: str) -> str:
    """Return the name of a ranker run as in the paper, or with an intercept.

    Examples
    --------
    >>> variant_name("RMTL", RAW)
    'RMTL, as in the paper'
    """
    return f"{name}, {variant}"


def paper_grid(
    annotations: Annotations, n_features: int | None = None, loss: str = "auc"
) -> dict[str, list[float]]:
    """Return candidates for the paper's four parameters, without group shrinkage.

    Penalties are multiples of what suits the number of features per label. The loss without
    an intercept is a sum over rows, so there they grow with the rows.
    """
    labels_each = len(annotations) / annotations.n_users
    n_features = annotations.n_features if n_features is None else n_features
    usual = usual_alpha_group(n_features / labels_each)
    unit = labels_each if loss == "least_squares_raw" else 1.0
    most = min(annotations.n_users, n_features)
    return {
        "alpha_consensus": [alpha * unit for alpha in _ALPHA_CONSENSUS],
        "alpha_group": [times * usual * unit for times in _GROUP_TIMES],
        "alpha_personal": [alpha * unit for alpha in _ALPHA_PERSONAL],
        "n_groups": [n for n in _N_GROUPS if n <= most],
    }


def compared_rankers(
    annotations: Annotations, n_folds: int, seed: int, n_features: int | None = None
) -> NamedRankers:
    """Return all rankers but the learned prior, each of which tunes itself."""
    # Without folds no ranker searches: each is replaced by its defaults.
    search: dict[str, Any] = {"n_folds": max(n_folds, 2), "random_state": seed}
    grids = {loss: paper_grid(annotations, n_features, loss) for loss in ("auc", *LOSSES.values())}
    return {
        **{
            variant_name(name, variant): RankerCV(kind(loss=loss), **search)
            for name, kind in PAPER_BASELINES.items()
            for variant, loss in LOSSES.items()
        },
        OURS: ThreeLevelRankerCV(grids["auc"], **search),
        **{
            variant_name(LEAST_SQUARES, variant): ThreeLevelRankerCV(
                grids[loss], loss=loss, **search
            )
            for variant, loss in LOSSES.items()
        },
        SHRUNK: ThreeLevelRankerCV(**search),
        **{name: RankerCV(kind(), **search) for name, kind in SIMPLE_BASELINES.items()},
    }


def learned_prior(n_labels: int) -> HierarchicalRanker:
    """Return the ranker with nothing to tune, with the loss that suits so many labels."""
    return HierarchicalRanker(loss="auc" if n_labels > MANY_LABELS else "auto")


def loss_of_learned_prior(n_labels: int) -> str:
    """Return a sentence on its loss, where that is not the ranker's own choice."""
    if n_labels <= MANY_LABELS:
        return ""
    return (
        f" Above {MANY_LABELS:,} labels the learned prior has the AUC loss: the cost of a step "
        "does not grow with the labels, as that of the logistic loss does."
    )


class ComparedRanker(BaseEstimator):  # type: ignore[misc]
    """A ranker that `compare` fits as it is, without a search for penalties.

    With ``share``, features are replaced by the principal components of the training items with
    this share of the variance.
    """

    def __init__(self, ranker: BaseEstimator, share: float | None = None) -> None:
        self.ranker = ranker
        self.share = share

    def fit(self, annotations: Annotations) -> Self:
        """Find the components of the labelled items, and fit the ranker to them."""
        if self.share is not None:
            self.reduce_ = Reduce(self.share).fit(annotations)
        self.ranker_ = clone(self.ranker).fit(self._reduced(annotations))
        # The parameters that a search chose, and whether the fit was interrupted.
        for name in {"best_params_", "solution_"} & set(vars(self.ranker_)):
            setattr(self, name, getattr(self.ranker_, name))
        return self

    def decision_function(self, annotations: Annotations) -> Float:
        """Score the rows of annotations."""
        return np.asarray(self.ranker_.decision_function(self._reduced(annotations)))

    @property
    def searches(self) -> bool:
        """Whether it searches for its penalties itself."""
        return isinstance(self.ranker, RankerCV)

    def with_parameters(self, parameters: Mapping[str, Any]) -> "ComparedRanker":
        """Return the ranker that a search fits with these parameters."""
        ranker = self.ranker
        if isinstance(ranker, RankerCV):
            ranker = ranker.with_parameters(parameters)
        return ComparedRanker(ranker, self.share)

    def _reduced(self, annotations: Annotations) -> Annotations:
        if self.share is None:
            return annotations
        reduced: Annotations = self.reduce_.transform(annotations)
        return reduced


def as_compared(named: NamedRankers, share: float | None = None) -> dict[str, ComparedRanker]:
    """Return the rankers as compared rankers."""
    return {name: ComparedRanker(ranker, share) for name, ranker in named.items()}


@dataclass(frozen=True, eq=False)
class Trials:
    """Mean AUC of every ranker in every repeat."""

    by_repeat: Mapping[str, Float]
    parameters: Mapping[str, str]  # chosen in the first repeat, as JSON
    seconds: Mapping[str, float]  # median time of a fit, with its search

    @cached_property
    def means(self) -> dict[str, float]:
        """Means over repeats."""
        return {name: float(values.mean()) for name, values in self.by_repeat.items()}

    def difference(self, name: str, against: str) -> PairedDifference:
        """Compare two rankers over the repeats that both took part in."""
        first, second = self.by_repeat[name], self.by_repeat[against]
        shared = min(len(first), len(second))
        return over_repeats(first[:shared] - second[:shared], TEST_SIZE)

    def joined(self, other: "Trials") -> "Trials":
        """Return these trials and others of the same splits."""
        return Trials(
            {**self.by_repeat, **other.by_repeat},
            {**self.parameters, **other.parameters},
            {**self.seconds, **other.seconds},
        )

    def facts(self) -> dict[str, Any]:
        """Return the trials as plain values."""
        return {
            "auc": {name: values.tolist() for name, values in self.by_repeat.items()},
            "parameters": dict(self.parameters),
            "seconds": dict(self.seconds),
        }


def deviation(values: Float) -> float:
    """Return the standard deviation over repeats, NaN for one."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")


def run_trials(
    annotations: Annotations, setting: ExperimentSetting, share: float | None = None
) -> Trials:
    """Compare all rankers on one attribute.

    With ``share``, features are reduced to components with this share of the variance, in each
    split anew.
    """
    scale, n_features = setting.scale, None
    if share is not None:
        n_features = Reduce(share).fit(annotations).n_components_
    named = compared_rankers(annotations, scale.n_folds, setting.seed, n_features)
    rankers = as_compared(named, share)
    if not scale.n_folds:
        rankers = {name: ranker.with_parameters({}) for name, ranker in rankers.items()}
    rankers |= as_compared({LEARNED: learned_prior(len(annotations))}, share)
    return run_compared(
        annotations, rankers, scale.repeats, setting.store, setting.seed, tuned=scale.tuned
    )


def run_compared(
    annotations: Annotations,
    rankers: Mapping[str, ComparedRanker],
    repeats: int,
    store: ResultStore,
    seed: int,
    *,
    tuned: Tuned,
) -> Trials:
    """Compare some rankers, tuned in every repeat or in the first."""
    options: dict[str, Any] = {
        "test_size": TEST_SIZE,
        "n_jobs": store.n_jobs,
        "random_state": seed,
        "folder": store.folder / "fits",
        "progress": store.finished,
    }
    searching = {name: ranker for name, ranker in rankers.items() if ranker.searches}
    if tuned == "in every repeat" or not searching:
        return _trials(compare(annotations, rankers, repeats=repeats, **options))
    search = _trials(compare(annotations, searching, repeats=1, **options))
    fixed = {name: json.loads(chosen) for name, chosen in search.parameters.items()}
    final = {
        name: ranker.with_parameters(fixed[name]) if name in fixed else ranker
        for name, ranker in rankers.items()
    }
    found = _trials(compare(annotations, final, repeats=repeats, **options))
    # The chosen parameters, and the time of the search.
    return found.joined(Trials({}, search.parameters, search.seconds))


def _trials(comparison: Comparison) -> Trials:
    table = comparison.cells
    rows = {name: table.filter(compute.equal(table["ranker"], name)) for name in comparison.rankers}
    return Trials(
        {name: np.array(part["mean_score"].to_pylist()) for name, part in rows.items()},
        {name: part["parameters"][0].as_py() for name, part in rows.items()},
        {name: float(np.median(part["seconds"].to_numpy())) for name, part in rows.items()},
    )


def simulation_parameters(setting: ExperimentSetting, annotations: Annotations) -> dict[str, Any]:
    """Return the penalties found in the first split of Table 1 (the same fit, if it is stored)."""
    if not setting.scale.n_folds:
        return {}
    ours = compared_rankers(annotations, setting.scale.n_folds, setting.seed)[OURS]
    named = {OURS: ComparedRanker(ours)}
    found = run_compared(
        annotations, named, 1, setting.store, setting.seed, tuned="in every repeat"
    )
    chosen: dict[str, Any] = json.loads(found.parameters[OURS])
    return chosen
