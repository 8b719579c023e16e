"""Table 1: everybody on the paper's simulation, as in the paper and with an intercept."""

from statistics import mean
from typing import Any

from likeminds.paper.experiments.published import TABLE_1
from likeminds.paper.experiments.rankers import (
    HONEST,
    INTERCEPT,
    LEARNED,
    LEAST_SQUARES,
    OURS,
    RAW,
    SHRUNK,
    both,
    loss_of_learned_prior,
)
from likeminds.paper.experiments.report_page import ReportPart, percent, plus_minus, points
from likeminds.paper.experiments.scale import SCALES
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trials import Trials, run_trials
from likeminds.rankers.registry import COMPETITORS
from likeminds.report.page import ReportTable


def run(setting: ExperimentSetting) -> ReportPart:
    """Let everybody take part on the simulation, and show it next to the paper's figures."""
    trials = simulation_trials(setting)
    facts = trials.facts() | summary(trials)
    return ReportPart(
        key="table1",
        title="Table 1: AUC on the simulation",
        found=_sentence(facts),
        pieces=[_main_table(trials), _others_table(trials), _how(setting)],
        facts=facts,
    )


def simulation_trials(setting: ExperimentSetting) -> Trials:
    """Return everybody's results on the simulation; kept, so that others may ask again."""
    annotations = setting.simulation().annotations
    scale = setting.scale
    return run_trials(
        annotations,
        scale,
        setting.store,
        setting.seed,
        tuned=scale.tuned_table_1,
    )


def summary(trials: Trials) -> dict[str, Any]:
    """Return the figures that claims are judged by."""
    raw = {name: trials.means[both(name, RAW)] for name in COMPETITORS}
    fair = {name: trials.means[both(name, INTERCEPT)] for name in COMPETITORS}
    best = max(fair, key=fair.__getitem__)
    judged = trials.difference(OURS, both(best, INTERCEPT))
    honest = max(HONEST, key=lambda name: trials.means[name])
    against_honest = trials.difference(OURS, honest)
    return {
        "ours": trials.means[OURS],
        "as_in_the_paper": raw,
        "with_an_intercept": fair,
        "best_competitor": best,
        "lead": [judged.mean, judged.low, judged.high],
        "best_honest": honest,
        "best_honest_auc": trials.means[honest],
        "lead_over_honest": [against_honest.mean, against_honest.low, against_honest.high],
        "learned_prior": trials.means.get(LEARNED),
    }


def _sentence(facts: dict[str, Any]) -> str:
    raw, fair = facts["as_in_the_paper"].values(), facts["with_an_intercept"].values()
    return (
        f"The paper's method reaches {percent(facts['ours'])} (paper: {TABLE_1['Ours']}). Its "
        f"competitors reach {percent(min(raw))} to {percent(max(raw))} run as in the paper, and "
        f"{percent(min(fair))} to {percent(max(fair))} once they have an intercept, "
        f"{points(mean(fair) - mean(raw))} points on average; the method's lead over the best of "
        f"them, {facts['best_competitor']}, is then {points(facts['lead'][0])} points."
    )


def _main_table(trials: Trials) -> ReportTable:
    rows = [
        [
            name,
            f"{TABLE_1[name]:.2f}",
            _cell(trials, both(name, RAW)),
            _cell(trials, both(name, INTERCEPT)),
        ]
        for name in COMPETITORS
    ]
    rows.append(
        ["Ours (three levels, AUC loss)", f"**{TABLE_1['Ours']:.2f}**", _cell(trials, OURS)]
    )
    rows[-1].append("its loss needs none")
    cells = [_cell(trials, both(LEAST_SQUARES, way)) for way in (RAW, INTERCEPT)]
    rows.append(["Ours on least squares", "-", *cells])
    return ReportTable(
        ["algorithm", "paper", RAW, INTERCEPT],
        rows,
        "AUC in per cent, mean over people and standard deviation over repeats: labels of ±1 "
        "without an intercept (as in the paper), and with one for each person.",
    )


def _others_table(trials: Trials) -> ReportTable:
    names = [name for name in (SHRUNK, LEARNED, *HONEST) if name in trials.means]
    rows = []
    for name in sorted(names, key=lambda name: -trials.means[name]):
        judged = trials.difference(name, OURS)
        rows.append(
            [
                name,
                _cell(trials, name),
                f"{points(judged.mean)} [{points(judged.low)}, {points(judged.high)}]"
                if judged.low == judged.low
                else points(judged.mean),
                str(len(trials.by_repeat[name])),
            ]
        )
    return ReportTable(
        ["ranker", "AUC", "points to Ours [95 % over repeats]", "repeats"],
        rows,
        "What the paper does not compare with: the learned prior (nothing tuned), shrunk groups, "
        "and what one would try first.",
    )


def _cell(trials: Trials, name: str) -> str:
    return plus_minus(trials.means[name], trials.deviation(name))


def _how(setting: ExperimentSetting) -> str:
    scale = setting.scale
    paper = SCALES["paper"].simulation
    rows = scale.simulation.n_users * scale.simulation.n_samples
    same = "" if scale.simulation == paper else f" (the paper: {paper})"
    return (
        f"The paper's simulation: {scale.simulation}{same}. One draw; 15 % of everybody's "
        f"labels are held out, {scale.repeats} times anew (seeds {setting.seed} to "
        f"{setting.seed + scale.repeats - 1}).{loss_of_learned_prior(rows)} "
        f"{scale.search(scale.tuned_table_1)}"
    )
