"""Figure 5: the means over all attributes, repeat by repeat."""

from likeminds.paper.experiments.rankers import (
    HONEST,
    INTERCEPT,
    LEARNED,
    OURS,
    RAW,
    both,
)
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture, percent
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.table3 import CrowdTrials, results
from likeminds.plots import boxplot
from likeminds.plots.figures import as_png, new_figure
from likeminds.rankers.registry import COMPETITORS


def run(setting: ExperimentSetting) -> ReportPart:
    """Draw a box for everybody, over the repeats of Table 3."""
    found = results(setting)
    facts = {
        each.crowd.name: {name: each.by_repeat(name).tolist() for name in each.names}
        for each in found
    }
    return ReportPart(
        key="fig5",
        title="Figure 5: mean over all attributes, by repeat",
        found=" ".join(_sentence(each) for each in found),
        pieces=[_picture(each) for each in found],
        facts=facts,
    )


def _sentence(each: CrowdTrials) -> str:
    best = {
        way: max((both(name, way) for name in COMPETITORS), key=each.mean)
        for way in (RAW, INTERCEPT)
    }
    reached = ", ".join(f"{name} {percent(each.mean(name), 1)}" for name in best.values())
    return (
        f"{each.crowd.name}: the paper's method has a mean of {percent(each.mean(OURS), 1)}; the "
        f"best competitors, {reached}; consensus only, {percent(each.mean('Consensus only'), 1)}."
    )


def _picture(each: CrowdTrials) -> ReportPicture:
    figure = new_figure(11, 4.6, shown=False)
    sides = figure.subplots(1, 2, sharex=True)
    label = "AUC, mean over people and attributes"
    rows = {
        "a) As in the paper": [both(name, RAW) for name in COMPETITORS],
        "b) With an intercept, and what the paper leaves out": [
            *(both(name, INTERCEPT) for name in COMPETITORS),
            *(name for name in (LEARNED, *HONEST) if name in each.names),
        ],
    }
    for axes, (title, names) in zip(sides, rows.items(), strict=True):
        values = {_short(name): each.by_repeat(name) for name in [*names, OURS]}
        boxplot(values, label=label, title=title, ax=axes)
    name = each.crowd.name
    figure.suptitle(f"{name}: the same method against competitors without and with an intercept")
    stem = name.lower().replace(" ", "-")
    return ReportPicture(
        f"fig5-{stem}",
        as_png(figure),
        f"{name}: mean AUC over all attributes, a point for each repeat; the highest median is on "
        "top, in another colour.",
    )


def _short(name: str) -> str:
    return name.split(", ", maxsplit=1)[0]
