"""Table 1: all rankers on the paper's simulation, as in the paper and with an intercept."""

from statistics import mean
from typing import Any

from likeminds.paper.experiments.published import TABLE_1
from likeminds.paper.experiments.report_page import (
    Facts,
    ReportPart,
    interval,
    percent,
    plus_minus,
    points,
)
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
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
    run_trials,
    variant_name,
)
from likeminds.rankers.registry import PAPER_BASELINES
from likeminds.report.page import ReportTable


def run(setting: ExperimentSetting) -> ReportPart:
    """Compare all rankers on the simulation, next to the paper's figures."""
    trials = run_trials(setting.simulation().annotations, setting)
    facts = trials.facts() | _summary(trials)
    return ReportPart(
        key="table1",
        title="Table 1: AUC on the simulation",
        found=_sentence(facts),
        pieces=[_main_table(trials), _others_table(trials), _how(setting)],
        facts=facts,
    )


def _summary(trials: Trials) -> dict[str, Any]:
    """Return the figures that claims are judged by."""
    raw = {name: trials.means[variant_name(name, RAW)] for name in PAPER_BASELINES}
    fair = {name: trials.means[variant_name(name, INTERCEPT)] for name in PAPER_BASELINES}
    best = max(fair, key=fair.__getitem__)
    simple = max(SIMPLE_BASELINES, key=lambda name: trials.means[name])
    return {
        "ours": trials.means[OURS],
        "as_in_the_paper": raw,
        "with_an_intercept": fair,
        "best_baseline": best,
        "lead": list(trials.difference(OURS, variant_name(best, INTERCEPT))[:3]),
        "best_simple": simple,
        "best_simple_auc": trials.means[simple],
        "lead_over_simple": list(trials.difference(OURS, simple)[:3]),
        "learned_prior": trials.means.get(LEARNED),
    }


def _sentence(facts: Facts) -> str:
    raw, fair = facts["as_in_the_paper"].values(), facts["with_an_intercept"].values()
    return (
        f"The paper's method reaches {percent(facts['ours'])} (paper: {TABLE_1['Ours']}). Its "
        f"baselines reach {percent(min(raw))} to {percent(max(raw))} run as in the paper, and "
        f"{percent(min(fair))} to {percent(max(fair))} once they have an intercept, "
        f"{points(mean(fair) - mean(raw))} points on average; the method's lead over the best of "
        f"them, {facts['best_baseline']}, is then {points(facts['lead'][0])} points, and "
        f"{facts['best_simple'].lower()} reaches {percent(facts['best_simple_auc'])}."
    )


def _main_table(trials: Trials) -> ReportTable:
    def cells(name: str) -> list[str]:
        return [_cell(trials, variant_name(name, variant)) for variant in (RAW, INTERCEPT)]

    ours = [f"**{TABLE_1['Ours']:.2f}**", _cell(trials, OURS), "its loss needs none"]
    rows = [
        *([name, f"{TABLE_1[name]:.2f}", *cells(name)] for name in PAPER_BASELINES),
        ["Ours (three levels, AUC loss)", *ours],
        ["Ours on least squares", "-", *cells(LEAST_SQUARES)],
    ]
    return ReportTable(
        ["algorithm", "paper", RAW, INTERCEPT],
        rows,
        "AUC in per cent, mean over people and standard deviation over repeats: labels of ±1 "
        "without an intercept (as in the paper), and with one for each person.",
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
        ["ranker", "AUC", "points to Ours [95 % over repeats]", "repeats"],
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
