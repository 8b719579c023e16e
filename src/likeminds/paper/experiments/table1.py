"""Table 1: all rankers on the paper's simulation, baselines without and with an intercept."""

from collections.abc import Sequence
from statistics import mean
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.data.splits import split_within_users
from likeminds.datasets import make_simulation
from likeminds.metrics.by_user import mean_auc
from likeminds.paper.experiments.published import TABLE_1
from likeminds.paper.experiments.report_page import (
    Facts,
    ReportPart,
    interval,
    percent,
    plus_minus,
    points,
)
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting, Job
from likeminds.paper.experiments.table2 import UserRows, rows_by_user
from likeminds.paper.experiments.trials import (
    INTERCEPT,
    LEARNED,
    LEAST_SQUARES,
    OURS,
    RAW,
    SHRUNK,
    SIMPLE_BASELINES,
    Trials,
    deviation,
    loss_of_learned_prior,
    penalties_table,
    run_trials,
    variant_name,
)
from likeminds.rankers.registry import PAPER_BASELINES
from likeminds.report.page import ReportTable

_TRAINING_SHARES = (0.6, 0.65, 0.75, 0.85)
_HARDLY = 1e-3
_PUBLISHED = [value for name, value in TABLE_1.items() if name != "Ours"]


def run(setting: ExperimentSetting) -> ReportPart:
    """Compare all rankers on the simulation, next to the paper's figures."""
    trials = run_trials(setting.simulation().annotations, setting)
    facts = trials.facts() | _summary(trials) | {"inference": _inference(setting)}
    penalties = [penalties_table({"simulation": trials})] * (setting.scale.n_folds > 0)
    return ReportPart(
        key="table1",
        title="Table 1: AUC on the simulation",
        found=_sentence(facts),
        pieces=[
            _main_table(trials),
            _inference_table(facts["inference"]),
            _others_table(trials),
            *penalties,
            _how(setting),
        ],
        facts=facts,
    )


def _inference(setting: ExperimentSetting) -> list[list[float]]:
    """Return rows of training share and AUC of least squares, without and with an intercept."""
    size = (SCALES["paper"] if setting.scale.n_folds else setting.scale).simulation
    found: list[list[float]] = setting.store.one(
        Job("least-squares", least_squares, {"size": list(size), "seed": setting.seed})
    )
    return found


def least_squares(*, size: Sequence[int], seed: int) -> list[list[float]]:
    """Fit least squares to labels of ±1, person by person, hardly penalised (a `Job`)."""
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
    """Return the figures that claims are judged by."""
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


def _sentence(facts: Facts) -> str:
    raw, fair = facts["without_an_intercept"].values(), facts["with_an_intercept"].values()
    return (
        f"The paper's method reaches {percent(facts['ours'])} (paper: {TABLE_1['Ours']}). Its "
        f"seven baselines reach {percent(min(raw))} to {percent(max(raw))} without an intercept "
        f"(paper: {min(_PUBLISHED)} to {max(_PUBLISHED)}), and {percent(min(fair))} to "
        f"{percent(max(fair))} with one, {points(mean(fair) - mean(raw))} points on average. The "
        f"lead over the best of them, {facts['best_baseline']}, is then "
        f"{interval(*facts['lead'])} points. {facts['best_simple']} reaches "
        f"{percent(facts['best_simple_auc'])}. That the paper's baselines had no intercept is our "
        f"inference: {_support(facts['inference'])}."
    )


def _support(inference: Sequence[Sequence[float]]) -> str:
    without = ", ".join(f"{percent(auc, 1)} at {share:.0%}" for share, auc, _ in inference)
    fair = min(auc for _, _, auc in inference)
    return (
        f"at the paper's size, least squares without one reaches {without} of the labels for "
        f"training, and with one at least {percent(fair, 1)}"
    )


def _inference_table(inference: Sequence[Sequence[float]]) -> ReportTable:
    rows = [
        [name, *(percent(row[place], 1) for row in inference)]
        for place, name in ((1, "without an intercept"), (2, "with an intercept"))
    ]
    return ReportTable(
        ["least squares per person", *(f"{share:.0%} for training" for share, *_ in inference)],
        rows,
        "The evidence for our inference, AUC in per cent at the paper's size: labels of ±1, hardly "
        "penalised. The "
        "paper does not say how its baselines treat the intercept, or what share it trains on.",
    )


def _main_table(trials: Trials) -> ReportTable:
    def cells(name: str) -> list[str]:
        return [_cell(trials, variant_name(name, variant)) for variant in (RAW, INTERCEPT)]

    ours = [f"**{TABLE_1['Ours']:.2f}**", _cell(trials, OURS), "its loss needs none"]
    rows = [
        *([name, f"{TABLE_1[name]:.2f}", *cells(name)] for name in PAPER_BASELINES),
        ["The paper's method (three levels, AUC loss)", *ours],
        [LEAST_SQUARES, "-", *cells(LEAST_SQUARES)],
    ]
    return ReportTable(
        ["algorithm", "paper", RAW, INTERCEPT],
        rows,
        "AUC in per cent, mean over people and standard deviation over repeats: labels of ±1 "
        "without an intercept, as we infer of the paper, and with one for each person.",
    )


def _others_table(trials: Trials) -> ReportTable:
    names = sorted((SHRUNK, LEARNED, *SIMPLE_BASELINES), key=lambda name: -trials.means[name])
    rows = [
        [
            name,
            _cell(trials, name),
            interval(*trials.difference(name, OURS)[:3]),
            str(len(trials.by_repeat[name])),
        ]
        for name in names
    ]
    return ReportTable(
        ["ranker", "AUC", "points to the paper's method [95 % over repeats]", "repeats"],
        rows,
        "What the paper does not compare with: the learned prior (nothing tuned), shrunk groups, "
        "and simple baselines.",
    )


def _cell(trials: Trials, name: str) -> str:
    return plus_minus(trials.means[name], deviation(trials.by_repeat[name]))


def _how(setting: ExperimentSetting) -> str:
    size, paper = setting.scale.simulation, SCALES["paper"].simulation
    same = "" if size == paper else f" (the paper: {paper})"
    return (
        f"The paper's simulation: {size}{same}. One draw; 15 % of everyone's labels are held out, "
        f"{setting.scale.repeats} times anew (seeds {setting.seed} to "
        f"{setting.seed + setting.scale.repeats - 1})."
        f"{loss_of_learned_prior(size.n_users * size.n_samples)} {setting.scale.search}"
    )
