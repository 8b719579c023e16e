"""Recovery of groups and personal parts, at cross-validated parameters and at the best ones."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from likeminds.datasets import Simulation, make_simulation
from likeminds.datasets.recovery import cocluster_recovery
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.path_search import PENALTIES
from likeminds.paper.experiments.report_page import Facts
from likeminds.paper.experiments.setting import ExperimentSetting, Job
from likeminds.paper.experiments.trials import FINE_PATH, paper_search
from likeminds.rankers.three_level import ThreeLevelRanker
from likeminds.report.page import ReportTable

CHOSEN, TRUE_KAPPA, BEST = "cross-validated", "true kappa, else cross-validated", "best lambda3"
_TRUE_GROUPS = 5
# Values of lambda2 on which the path of lambda3 is followed, besides the chosen one.
_ALPHA_GROUP = (1.0, 3.0)


def recover_structure(setting: ExperimentSetting, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return whom the personal level flags on the data of Table 1, by choice of parameters.

    ``parameters`` are those that cross-validation chose for all of kappa and the penalties.
    """
    arguments = {
        "size": list(setting.scale.simulation),
        "seed": setting.seed,
        "n_folds": setting.scale.n_folds,
        "parameters": dict(parameters),
    }
    found: dict[str, Any] = setting.store.one(Job("structure", score_structure, arguments))
    return found


def score_structure(
    *, size: list[int], seed: int, n_folds: int, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Fit the paper's model with several parameters, and compare it with the truth (a `Job`)."""
    drawn = make_simulation(*size, random_state=seed)
    statistics = Statistics.from_annotations(drawn.annotations)
    at_true = dict(parameters) | {"n_groups": _TRUE_GROUPS}
    if n_folds:
        search = paper_search(drawn.annotations, n_folds, seed, n_groups=[_TRUE_GROUPS])
        at_true = search.fit(drawn.annotations).best_params_
    found = {
        CHOSEN: _compare(drawn, statistics, parameters),
        TRUE_KAPPA: _compare(drawn, statistics, at_true),
    }
    chosen = at_true.get("alpha_group")
    path = [
        _compare(drawn, statistics, at_true | {"alpha_group": group, "alpha_personal": personal})
        for group in (*_ALPHA_GROUP, *([] if chosen is None else [chosen]))
        for personal in FINE_PATH
    ]
    found[BEST] = max(path, key=lambda each: each["personal"])
    return found


def structure_table(found: Facts) -> ReportTable:
    """Return recovery by choice of parameters."""
    rows = []
    for choice, each in found.items():
        used = each["parameters"]
        penalties = [used.get(name) for name in ("n_groups", *PENALTIES)]
        cells = ["default" if value is None else f"{value:.3g}" for value in penalties]
        right = f"{each['flagged']} ({each['right']} of the {each['true']} true)"
        rows.append([choice, *cells, right, f"{each['personal']:.2f}", f"{each['groups']:.2f}"])
    indices = ["index of personal parts", "index of groups"]
    return ReportTable(
        ["parameters", "κ", "λ1", "λ2", "λ3", "people flagged", *indices],
        rows,
        "The data of Table 1: people with P ≠ 0, and adjusted Rand indices, at the cross-validated "
        "parameters, at the true number of groups, and at that with the values of λ2 and λ3 "
        "which find the people with a personal part best. The last needs the truth.",
    )


def _compare(
    drawn: Simulation, statistics: Statistics, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    ranker = ThreeLevelRanker(**parameters)
    ranker._fit_statistics(statistics)
    flagged = np.linalg.norm(ranker.personal_, axis=1) > 0
    true = np.abs(drawn.personal).sum(axis=1) > 0
    return {
        "parameters": dict(parameters),
        "flagged": int(flagged.sum()),
        "right": int((flagged & true).sum()),
        "true": int(true.sum()),
        "personal": float(adjusted_rand_score(true, flagged)),
        "groups": cocluster_recovery(drawn, ranker.coef_).users_index,
    }
