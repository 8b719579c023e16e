"""Repeated splits of one data set, and the rankers compared on them.

The rankers are the paper's eight, baselines without and with an intercept, simple baselines, and
the learned prior.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Self

import numpy as np
from pyarrow import compute
from sklearn.base import BaseEstimator, clone

from likeminds._util.array_types import Float
from likeminds.comparing.comparison import Comparison, compare
from likeminds.comparing.runs import ResultStore
from likeminds.data.annotations import Annotations
from likeminds.features.reduction import Reduce
from likeminds.metrics.paired import PairedDifference, over_repeats
from likeminds.paper.experiments.path_search import ExtendedCV, PathCV, at_edge
from likeminds.paper.experiments.setting import MANY_LABELS, ExperimentSetting, Tuned
from likeminds.rankers.baselines import ConsensusOnly, LogisticPerUser, OnePerUser, RidgeToConsensus
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.registry import PAPER_BASELINES, NamedRankers
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import usual_alpha_group

# The paper holds out 15 %.
TEST_SIZE = 0.15
OURS = "Three levels"  # "Ours" in the paper
SHRUNK = "Three levels, groups shrunk"
LEARNED = "Learned prior"
LEAST_SQUARES = "Three levels on least squares"
# We infer that the paper's baselines have no intercept.
RAW, INTERCEPT = "without an intercept", "with an intercept"
LOSSES = {RAW: "least_squares_raw", INTERCEPT: "least_squares"}
SIMPLE_BASELINES = {
    "Ridge to the consensus": RidgeToConsensus,
    "One model per person": OnePerUser,
    "Logistic regression per person": LogisticPerUser,
    "Consensus only": ConsensusOnly,
}

# A coarse grid, as wide as those of the other rankers, and a fine path of lambda3 where a few users
# have a personal part. Paths are extended if an edge wins. The simulation has 5 groups.
_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_N_GROUPS = (1, 2, 3, 5, 8)
_ALPHA_PERSONAL = (10.0, 1.0, 0.2)
_ALPHA_CONSENSUS = (1e-4, 1e-2)
# First-order methods need more steps if components are not standardised.
_MOST_STEPS = 20_000
FINE_PATH = (1.0, 0.5, 0.3, 0.26, 0.23, 0.2, 0.17, 0.145, 0.12, 0.08, 0.05)


def variant_name(name: str, variant: str) -> str:
    """Return the name of a ranker without or with an intercept."""
    return f"{name}, {variant}"


def paper_search(
    annotations: Annotations,
    n_folds: int,
    seed: int = 0,
    *,
    n_features: int | None = None,
    n_groups: Sequence[int] = _N_GROUPS,
    loss: str = "auc",
    standardize: bool = True,
) -> PathCV:
    """Return the search for the paper's four parameters, without group shrinkage.

    Penalties are multiples of a unit for the number of features per label. The loss without an
    intercept is a sum over rows, so its penalties grow with the rows.
    """
    labels_each = len(annotations) / annotations.n_users
    n_features = annotations.n_features if n_features is None else n_features
    usual = usual_alpha_group(n_features / labels_each)
    unit = labels_each if loss == "least_squares_raw" else 1.0
    most = min(annotations.n_users, n_features)
    return PathCV(
        {
            "alpha_consensus": [alpha * unit for alpha in _ALPHA_CONSENSUS],
            "alpha_group": [times * usual * unit for times in _GROUP_TIMES],
            "alpha_personal": [alpha * unit for alpha in _ALPHA_PERSONAL],
            "n_groups": [n for n in n_groups if n <= most],
        },
        [alpha * unit for alpha in FINE_PATH],
        n_folds=max(n_folds, 2),
        loss=loss,
        standardize=standardize,
        random_state=seed,
    )


def compared_rankers(
    annotations: Annotations,
    setting: ExperimentSetting,
    share: float | None = None,
    *,
    standardize: bool = True,
) -> dict[str, "ComparedRanker"]:
    """Return the paper's eight and, if standardised, all others; without folds, their defaults."""
    n_folds, seed = setting.scale.n_folds, setting.seed
    n_features = None if share is None else Reduce(share).fit(annotations).n_components_
    search: dict[str, Any] = {"n_folds": max(n_folds, 2), "random_state": seed}
    scaled: dict[str, Any] = {} if standardize else {"standardize": False, "max_iter": _MOST_STEPS}

    def three_levels(loss: str) -> PathCV:
        return paper_search(
            annotations, n_folds, seed, n_features=n_features, loss=loss, standardize=standardize
        )

    named: NamedRankers = {
        **{
            variant_name(name, variant): ExtendedCV(kind(loss=loss, **scaled), **search)
            for name, kind in PAPER_BASELINES.items()
            for variant, loss in LOSSES.items()
        },
        OURS: three_levels("auc"),
    }
    if standardize:
        named |= {
            variant_name(LEAST_SQUARES, variant): three_levels(loss)
            for variant, loss in LOSSES.items()
        }
        simple = {name: ExtendedCV(kind(), **search) for name, kind in SIMPLE_BASELINES.items()}
        named = {**named, SHRUNK: PathCV(**search), **simple}
        named |= {LEARNED: learned_prior(len(annotations))}
    rankers = {n: ComparedRanker(r, share, rescale=not standardize) for n, r in named.items()}
    if n_folds:
        return rankers
    return {name: ranker.with_parameters({}) for name, ranker in rankers.items()}


def learned_prior(n_labels: int) -> HierarchicalRanker:
    """Return the ranker without hyperparameters, with a loss for so many labels."""
    return HierarchicalRanker(loss="auc" if n_labels > MANY_LABELS else "auto")


class ComparedRanker(BaseEstimator):  # type: ignore[misc]
    """A ranker that `compare` fits as it is, without a search for penalties.

    With ``share``, features are replaced by the principal components of the training items with
    this share of the variance. With ``rescale``, all are divided by the same number, so their mean
    variance is 1: it changes the unit of the penalties, and does not standardise components.
    """

    def __init__(
        self, ranker: BaseEstimator, share: float | None = None, *, rescale: bool = False
    ) -> None:
        self.ranker = ranker
        self.share = share
        self.rescale = rescale

    def fit(self, annotations: Annotations) -> Self:
        """Find the components of the labelled items, and fit the ranker to them."""
        if self.share is not None:
            self.reduce_ = Reduce(self.share).fit(annotations)
        reduced = self._reduced(annotations)
        if self.rescale:
            self.unit_ = float(np.sqrt(reduced.features.var(axis=0).mean()))
            reduced = self._reduced(annotations)
        self.ranker_ = clone(self.ranker).fit(reduced)
        if "solution_" in vars(self.ranker_):  # whether the fit was interrupted
            self.solution_ = self.ranker_.solution_
        if "best_params_" in vars(self.ranker_):
            chosen = self.ranker_.best_params_
            self.best_params_ = {
                "parameters": chosen,
                "at_edge": at_edge(self.ranker_.cv_results_["params"], chosen),
                "extended": getattr(self.ranker_, "extended_", []),
            }
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
        return ComparedRanker(ranker, self.share, rescale=self.rescale)

    def _reduced(self, annotations: Annotations) -> Annotations:
        reduced = annotations if self.share is None else self.reduce_.transform(annotations)
        unit = getattr(self, "unit_", 1.0)
        return reduced if unit == 1.0 else reduced._with(features=reduced.features / unit)


@dataclass(frozen=True, eq=False)
class Trials:
    """Mean AUC of every ranker in every repeat."""

    by_repeat: Mapping[str, Float]
    chosen: Mapping[str, Any]  # in the first repeat: parameters, those at an edge, extended paths
    seconds: Mapping[str, float]  # median time of a fit, with its search

    @cached_property
    def means(self) -> dict[str, float]:
        """Means over repeats."""
        return {name: float(values.mean()) for name, values in self.by_repeat.items()}

    def difference(self, name: str, against: str) -> PairedDifference:
        """Compare two rankers over their common repeats."""
        first, second = self.by_repeat[name], self.by_repeat[against]
        shared = min(len(first), len(second))
        return over_repeats(first[:shared] - second[:shared], TEST_SIZE)

    def facts(self) -> dict[str, Any]:
        """Return the trials as plain values."""
        return {
            "auc": {name: values.tolist() for name, values in self.by_repeat.items()},
            "chosen": dict(self.chosen),
            "seconds": dict(self.seconds),
        }


def run_trials(
    annotations: Annotations,
    setting: ExperimentSetting,
    share: float | None = None,
    *,
    standardize: bool = True,
) -> Trials:
    """Compare rankers on one attribute, on components with a ``share`` of the variance, if any."""
    rankers = compared_rankers(annotations, setting, share, standardize=standardize)
    scale, store = setting.scale, setting.store
    return run_compared(annotations, rankers, scale.repeats, store, setting.seed, tuned=scale.tuned)


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
        "folder": store.folder and store.folder / "fits",
        "progress": store.finished,
    }
    searching = {name: ranker for name, ranker in rankers.items() if ranker.searches}
    if tuned == "in every repeat" or not searching:
        return _trials(compare(annotations, rankers, repeats=repeats, **options))
    search = _trials(compare(annotations, searching, repeats=1, **options))
    final = {
        name: ranker.with_parameters(search.chosen[name]["parameters"])
        if name in search.chosen
        else ranker
        for name, ranker in rankers.items()
    }
    found = _trials(compare(annotations, final, repeats=repeats, **options))
    # The chosen parameters, and the time of the search.
    chosen, seconds = {**found.chosen, **search.chosen}, {**found.seconds, **search.seconds}
    return Trials(found.by_repeat, chosen, seconds)


def _trials(comparison: Comparison) -> Trials:
    table = comparison.cells
    rows = {name: table.filter(compute.equal(table["ranker"], name)) for name in comparison.rankers}
    return Trials(
        {name: np.array(part["mean_score"].to_pylist()) for name, part in rows.items()},
        {name: json.loads(part["parameters"][0].as_py()) for name, part in rows.items()},
        {name: float(np.median(part["seconds"].to_numpy())) for name, part in rows.items()},
    )


_SYMBOLS = {
    "alpha_consensus": "λ1",
    "alpha_group": "λ2",
    "alpha_personal": "λ3",
    "n_groups": "κ",
    "group_shrinkage": "λ4",
}


def penalty_rows(by_attribute: Mapping[str, Trials]) -> list[list[str]]:
    """Return the penalties of the first repeat, by ranker and attribute, with edges marked."""

    def cell(name: str, chosen: Mapping[str, Any]) -> str:
        symbols = _SYMBOLS if name.startswith(OURS) else {}
        return ", ".join(
            f"{symbols.get(key, key)} {value:.3g}"
            + " (edge)" * (key in chosen["at_edge"])
            + " (extended)" * (key in chosen["extended"])
            for key, value in chosen["parameters"].items()
            if isinstance(value, int | float)
        )

    first, *_ = by_attribute.values()
    return [
        [name, *(cell(name, trials.chosen[name]) for trials in by_attribute.values())]
        for name, chosen in first.chosen.items()
        if "at_edge" in chosen
    ]


def simulation_parameters(setting: ExperimentSetting, annotations: Annotations) -> dict[str, Any]:
    """Return the penalties found in the first split of Table 1 (the same fit, if it is stored)."""
    if not setting.scale.n_folds:
        return {}
    ours = paper_search(annotations, setting.scale.n_folds, setting.seed)
    named = {OURS: ComparedRanker(ours)}
    found = run_compared(
        annotations, named, 1, setting.store, setting.seed, tuned="in every repeat"
    )
    chosen: dict[str, Any] = found.chosen[OURS]["parameters"]
    return chosen
