"""Table 3 and Figure 5: all rankers on the attributes of Shoes and SUN, or their stand-ins."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import mean
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.paper.experiments.data_sets import DataSet, data_sets
from likeminds.paper.experiments.report_page import (
    ReportPart,
    bold_if,
    interval,
    make_part,
    percent,
    plus_minus,
    points,
)
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trials import (
    INTERCEPT,
    LEARNED,
    LEAST_SQUARES,
    OURS,
    RAW,
    SHRUNK,
    SIMPLE_BASELINES,
    Trials,
    penalty_rows,
    run_trials,
    variant_name,
)
from likeminds.plots import boxplot
from likeminds.plots.figures import new_figure
from likeminds.rankers.registry import PAPER_BASELINES

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_VARIANTS = (RAW, INTERCEPT)
# The rankers with both.
_BOTH_WAYS = (*PAPER_BASELINES, LEAST_SQUARES)
# The paper does not mention that components are standardised.
STANDARDISED, PLAIN = "features standardised", "components as they are"


@dataclass(frozen=True, eq=False)
class DataSetTrials:
    """The results on all attributes of a data set."""

    data: DataSet
    trials: Mapping[str, Trials]
    # Results of the paper's rankers on components that are not standardised.
    plain: Mapping[str, Trials] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The rankers with results on all attributes."""
        first, *others = self.trials.values()
        return [name for name in first.means if all(name in trials.means for trials in others)]

    def by_repeat(self, name: str) -> Float:
        """Return a ranker's mean over attributes, by repeat."""
        return np.asarray(np.mean([each.by_repeat[name] for each in self.trials.values()], axis=0))

    def mean(self, name: str) -> float:
        """Return a ranker's mean over attributes and repeats."""
        return float(self.by_repeat(name).mean())

    def facts(self) -> dict[str, Any]:
        """Return the figures for the verdicts on claims, and all results."""
        return {
            "stands_in_for": self.data.stands_in_for,
            "attributes": {name: trials.facts() for name, trials in self.trials.items()},
            "not_standardised": {name: trials.facts() for name, trials in self.plain.items()},
            "means": {name: self.mean(name) for name in self.names},
            "lead": self.leads(),
            "paper_lead": self._paper_lead(),
            "lead_over_consensus": self._lead_over("Consensus only"),
            "lead_over_learned": self._lead_over(LEARNED),
        }

    def leads(self) -> dict[str, dict[str, Any]]:
        """Return the leads over the best baselines; the first is closest to the paper."""
        return {
            f"{variant}, {scaled}": _leads(trials, variant)
            for scaled, trials in {PLAIN: self.plain, STANDARDISED: self.trials}.items()
            if trials
            for variant in _VARIANTS
        }

    def _paper_lead(self) -> str:
        """Return the lead of the paper's method in the paper, on these attributes."""
        paper = self.data.paper
        known = self.data.paper_attributes
        if not known:
            return "-"
        leads = [
            paper["Ours"][name] - max(paper[other][name] for other in PAPER_BASELINES)
            for name in known
        ]
        mark = f" on the original {self.data.stands_in_for}" if self.data.stands_in_for else ""
        return f"every attribute, {points(mean(leads) / 100)} points on average{mark}"

    def _lead_over(self, name: str) -> dict[str, list[float]]:
        """Return, by attribute, the lead of the paper's method and its interval."""
        return {
            attribute: list(trials.difference(OURS, name)[:3])
            for attribute, trials in self.trials.items()
            if name in trials.means
        }

    def rows(self) -> list[list[str]]:
        """Return AUC by ranker and attribute; the best figure of each attribute is bold."""
        others = [name for name in (OURS, SHRUNK, LEARNED, *SIMPLE_BASELINES) if name in self.names]
        named = {name: [variant_name(name, v) for v in _VARIANTS] for name in _BOTH_WAYS}
        named |= {f"{name} (Ours)" if name == OURS else name: [name] for name in others}
        best = {key: percent(max(t.means.values()), 1) for key, t in self.trials.items()}
        rows = []
        for shown, names in named.items():
            row = [shown]
            for attribute, trials in self.trials.items():
                cells = [percent(trials.means[name], 1) for name in names]
                row.append(" / ".join(bold_if(cell, cell == best[attribute]) for cell in cells))
            rows.append([*row, " / ".join(plus_minus(self.by_repeat(name)) for name in names)])
        return rows

    def plain_rows(self) -> list[list[str]]:
        """Return the paper's rankers on components as they are, next to standardised ones."""
        rows = []
        baselines = [variant_name(name, v) for name in PAPER_BASELINES for v in _VARIANTS]
        for name in [*baselines, OURS]:
            both = [
                [trials.means[name] for trials in part.values()]
                for part in (self.plain, self.trials)
            ]
            columns = [*zip(*both, strict=True), tuple(map(mean, both))]
            rows.append([name, *(" / ".join(percent(v, 1) for v in pair) for pair in columns)])
        return rows

    def lead_rows(self) -> list[list[str]]:
        """Return the leads of the paper's method by attribute, their mean, and the sure ones."""
        against = {f"best baseline, {way}": leads for way, leads in self.leads().items()}
        against |= {
            f"{name.lower()}, {STANDARDISED}": self._lead_over(name)
            for name in ("Consensus only", LEARNED)
            if name in self.names
        }
        rows = []
        for name, leads in against.items():
            cells = [" ".join([*lead[:-3], interval(lead[-3:])]) for lead in leads.values()]
            average, ahead, behind = summarise_leads(leads.values())
            rows.append([name, *cells, points(average), str(ahead), str(behind)])
        return rows

    def n_equal(self) -> int:
        """Return the number of attributes on which RAMU equals RMTL."""

        def both_ways(trials: Trials, name: str) -> list[list[float]]:
            return [trials.by_repeat[variant_name(name, v)].tolist() for v in _VARIANTS]

        return sum(both_ways(t, "RMTL") == both_ways(t, "RAMU") for t in self.trials.values())

    def penalties(self) -> dict[str, list[list[str]]]:
        """Return the penalties of the first repeat, by scaling."""
        ways = {STANDARDISED: self.trials, PLAIN: self.plain}
        return {way: penalty_rows(trials) for way, trials in ways.items() if trials}

    def best_baselines(self) -> list[str]:
        """Return the best of the paper's baselines, without and with an intercept."""
        return [
            max((variant_name(name, v) for name in PAPER_BASELINES), key=self.mean)
            for v in _VARIANTS
        ]


def _leads(by_attribute: Mapping[str, Trials], variant: str) -> dict[str, Any]:
    """Return, by attribute, the best baseline and the lead of the paper's method over it."""
    leads = {}
    for attribute, trials in by_attribute.items():
        best = max(PAPER_BASELINES, key=lambda name: trials.means[variant_name(name, variant)])
        leads[attribute] = [best, *trials.difference(OURS, variant_name(best, variant))[:3]]
    return leads


@lru_cache(maxsize=1)
def results(setting: ExperimentSetting) -> list[DataSetTrials]:
    """Return the results on all data sets; Figure 5 needs them again."""
    return [
        DataSetTrials(
            data,
            {
                attribute: run_trials(annotations, setting, data.share)
                for attribute, annotations in data.attributes.items()
            },
            # Only components are on a common scale: other features are always standardised.
            {
                attribute: run_trials(annotations, setting, data.share, standardize=False)
                for attribute, annotations in data.attributes.items()
                if data.share is not None
            },
        )
        for data in data_sets(setting)
    ]


def run(setting: ExperimentSetting) -> ReportPart:
    """Compare all rankers on every attribute."""
    found = results(setting)
    facts = {each.data.name: each.facts() for each in found}
    return make_part("table3", setting, facts, crowds=found, summarise_leads=summarise_leads)


def summarise_leads(leads: Iterable[Sequence[float]]) -> tuple[float, int, int]:
    """Return the mean of leads, and how many have an interval above and below 0."""
    each = [lead[-3:] for lead in leads]
    above, below = sum(low > 0 for _, low, _ in each), sum(high < 0 for *_, high in each)
    return mean(lead[0] for lead in each), above, below


def describe_leads(leads: Collection[Sequence[float]]) -> str:
    """Return the mean of leads in points, and the numbers of those that are sure."""
    average, above, below = summarise_leads(leads)
    sure = f"surely ahead on {above} of {len(leads)} attributes, surely behind on {below}"
    return f"{points(average)} points on average, {sure}"


def run_figure(setting: ExperimentSetting) -> ReportPart:
    """Draw Figure 5: a box for each ranker, over the repeats of Table 3."""
    found = results(setting)
    facts = {
        each.data.name: {name: each.by_repeat(name).tolist() for name in each.names}
        for each in found
    }
    figures = {f"fig5-{each.data.name.lower().replace(' ', '-')}": _picture(each) for each in found}
    return make_part("fig5", setting, facts, figures, crowds=dict(zip(figures, found, strict=True)))


def _picture(each: DataSetTrials) -> "Figure":
    figure = new_figure(11, 4.6, shown=False)
    sides = figure.subplots(1, 2, sharex=True)
    rows = {
        "a) Without an intercept": [variant_name(name, RAW) for name in PAPER_BASELINES],
        "b) With an intercept, and what the paper leaves out": [
            *(variant_name(name, INTERCEPT) for name in PAPER_BASELINES),
            *(name for name in (LEARNED, *SIMPLE_BASELINES) if name in each.names),
        ],
    }
    for axes, (title, names) in zip(sides, rows.items(), strict=True):
        values = {name.split(", ")[0]: each.by_repeat(name) for name in [*names, OURS]}
        boxplot(values, label="AUC, mean over people and attributes", title=title, ax=axes)
    instead = f", not {each.data.stands_in_for}" if each.data.stands_in_for else ""
    figure.suptitle(f"{each.data.name}{instead}: the paper's method is “{OURS}” on both sides")
    return figure
