"""Which rankers are compared: the paper's eight, both ways, simple ones, the learned prior."""

from typing import Any

from likeminds.data.annotations import Annotations
from likeminds.rankers.baselines import (
    ConsensusOnly,
    LogisticPerUser,
    OnePerUser,
    RidgeToConsensus,
)
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.registry import COMPETITORS, NamedRankers
from likeminds.rankers.three_level import usual_alpha_group
from likeminds.rankers.tuning.search import RankerCV
from likeminds.rankers.tuning.three_level_cv import ThreeLevelRankerCV

OURS = "Three levels"  # what the paper calls "Ours"
SHRUNK = "Three levels, groups shrunk"
LEARNED = "Learned prior"
# From here on the learned prior does not visit every label in every step.
MANY_LABELS = 50_000
LEAST_SQUARES = "Three levels on least squares"
RAW, INTERCEPT = "as in the paper", "with an intercept"
WAYS = {RAW: "least_squares_raw", INTERCEPT: "least_squares"}
HONEST = {
    "Ridge to the consensus": RidgeToConsensus,
    "One model per person": OnePerUser,
    "Logistic regression per person": LogisticPerUser,
    "Consensus only": ConsensusOnly,
}

# As wide as what the other rankers search: from next to nothing to a level that is silent.
_GROUP_TIMES = (0.1, 0.3, 1.0, 3.0, 10.0)
_N_GROUPS = (1, 2, 4)
_ALPHA_PERSONAL = (10.0, 1.0, 0.1)
_ALPHA_CONSENSUS = (1e-4, 1e-2)


def both(name: str, way: str) -> str:
    """Return what a ranker is called that runs in one of two ways.

    Examples
    --------
    >>> both("RMTL", RAW)
    'RMTL, as in the paper'
    """
    return f"{name}, {way}"


def paper_grid(
    annotations: Annotations, n_features: int | None = None, loss: str = "auc"
) -> dict[str, list[float]]:
    """Return candidates for the paper's four parameters; nothing shrinks the groups.

    Penalties are multiples of what suits the number of features per label. The loss without
    an intercept is a sum over rows, so that there they grow with the rows.
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
    """Return everybody but the learned prior, each of whom tunes itself.

    ``n_features`` is how many of them rankers will see, if not all.
    """
    # Without folds nobody will search: rankers are settled at once.
    search: dict[str, Any] = {"n_folds": max(n_folds, 2), "random_state": seed}
    least_squares = {
        both(LEAST_SQUARES, way): ThreeLevelRankerCV(
            paper_grid(annotations, n_features, loss), loss=loss, **search
        )
        for way, loss in WAYS.items()
    }
    return {
        **{
            both(name, way): RankerCV(kind(loss=loss), **search)
            for name, kind in COMPETITORS.items()
            for way, loss in WAYS.items()
        },
        OURS: ThreeLevelRankerCV(paper_grid(annotations, n_features), **search),
        **least_squares,
        SHRUNK: ThreeLevelRankerCV(**search),
        **{name: RankerCV(kind(), **search) for name, kind in HONEST.items()},
    }


def learned_prior(n_labels: int) -> HierarchicalRanker:
    """Return the ranker with nothing to tune, with the loss that so many labels call for."""
    return HierarchicalRanker(loss="auc" if n_labels > MANY_LABELS else "auto")


def loss_of_learned_prior(n_labels: int) -> str:
    """Say which loss it is, where that is not the ranker's own choice."""
    if n_labels <= MANY_LABELS:
        return ""
    return (
        f" Above {MANY_LABELS:,} labels the learned prior has the AUC loss: what a step of it "
        "costs does not grow with the labels, as that of the logistic loss does."
    )
