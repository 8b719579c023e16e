"""Table 1: all rankers on the paper's simulation, baselines without and with an intercept."""

from collections.abc import Sequence
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.comparing.runs import Job
from likeminds.data.splits import split_within_users
from likeminds.datasets import make_simulation
from likeminds.metrics.by_user import mean_auc
from likeminds.paper.experiments.report_page import ReportPart, make_part, plus_minus
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
from likeminds.paper.experiments.table2 import UserRows, rows_by_user
from likeminds.paper.experiments.trials import (
    INTERCEPT,
    LEARNED,
    OURS,
    RAW,
    SHRUNK,
    SIMPLE_BASELINES,
    Trials,
    penalty_rows,
    run_trials,
    variant_name,
)
from likeminds.rankers.registry import PAPER_BASELINES

_TRAINING_SHARES = (0.6, 0.65, 0.75, 0.85)
_HARDLY = 1e-3


def run(setting: ExperimentSetting) -> ReportPart:
    """Compare all rankers on the simulation, next to the paper's figures."""
    trials = run_trials(setting.simulation().annotations, setting)
    # The evidence that baselines have no intercept is at the paper's size.
    size = (SCALES["paper"] if setting.scale.n_folds else setting.scale).simulation
    inference = Job("least-squares", least_squares, {"size": list(size), "seed": setting.seed})
    others = sorted((SHRUNK, LEARNED, *SIMPLE_BASELINES), key=lambda name: -trials.means[name])
    return make_part(
        "table1",
        setting,
        trials.facts() | _summary(trials) | {"inference": setting.store.one(inference)},
        cells={name: plus_minus(values) for name, values in trials.by_repeat.items()},
        others={name: trials.difference(name, OURS)[:3] for name in others},
        penalty_rows=penalty_rows({"simulation": trials}),
    )


def least_squares(*, size: Sequence[int], seed: int) -> list[list[float]]:
    """Fit least squares to labels of ±1, user by user, with a small penalty (a `Job`)."""
    annotations = make_simulation(*size, random_state=seed).annotations
    found = []
    for share in _TRAINING_SHARES:
        train, test = split_within_users(annotations, 1 - share, seed)
        aucs = []
        for intercept in (False, True):
            weights = [_solve(rows, intercept) for rows in rows_by_user(train)]
            scores = np.einsum("nd,nd->n", test.X, np.array(weights)[test.user_codes])
            aucs.append(float(mean_auc(test.labels, scores, test.users)))
        found.append([share, *aucs])
    return found


def _solve(user: UserRows, intercept: bool) -> Float:
    X, y = user.rows, 2.0 * user.positive - 1.0
    if intercept:
        X, y = X - X.mean(axis=0), y - y.mean()
    return np.asarray(np.linalg.solve(X.T @ X + _HARDLY * np.eye(X.shape[1]), X.T @ y))


def _summary(trials: Trials) -> dict[str, Any]:
    """Return the figures for the verdicts on claims."""
    raw = {name: trials.means[variant_name(name, RAW)] for name in PAPER_BASELINES}
    fair = {name: trials.means[variant_name(name, INTERCEPT)] for name in PAPER_BASELINES}
    best = max(fair, key=fair.__getitem__)
    simple = max(SIMPLE_BASELINES, key=lambda name: trials.means[name])
    return {
        "ours": trials.means[OURS],
        "without_an_intercept": raw,
        "with_an_intercept": fair,
        "best_baseline": best,
        "lead": list(trials.difference(OURS, variant_name(best, INTERCEPT))[:3]),
        "best_simple": simple,
        "best_simple_auc": trials.means[simple],
        "lead_over_simple": list(trials.difference(OURS, simple)[:3]),
        "learned_prior": trials.means.get(LEARNED),
    }
