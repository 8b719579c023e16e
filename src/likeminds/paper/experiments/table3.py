"""Table 3 and Figure 5: all rankers on the attributes of Shoes and SUN, or their stand-ins."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from statistics import mean
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.paper.experiments.data_sets import DataSet, data_sets
from likeminds.paper.experiments.report_page import (
    Facts,
    Piece,
    ReportPart,
    ReportPicture,
    bold_if,
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
    deviation,
    penalties_table,
    run_trials,
    variant_name,
)
from likeminds.plots import boxplot
from likeminds.plots.figures import new_figure
from likeminds.rankers.registry import PAPER_BASELINES
from likeminds.report.page import ReportTable

_VARIANTS = (RAW, INTERCEPT)
# The paper does not mention that components are standardised.
STANDARDISED, PLAIN = "features standardised", "components as they are"
_STAND_INS = {
    "Shoes": "**Sketch shoes stand in for Shoes**, which we may not bundle: drawn pictures, "
    "simulated people, features from the pixels alone (GIST and colours). The paper's figures are "
    "those of the original data, so only the order of the algorithms can be compared. ",
    "SUN": "**Random attributes of the drawn shoes take the place of SUN**, which we may not "
    "bundle. They share the names of its attributes and the number of labels, so nothing follows "
    "from them about SUN. The consensus and three schools weigh the traits of the drawings at "
    "random, and 15 % of the labels are wrong. The pictures are not scenes, and the features are "
    "not those of a network. `--sun FOLDER` reads the original. ",
}


@dataclass(frozen=True, eq=False)
class DataSetTrials:
    """The results on all attributes of a data set."""

    data: DataSet
    trials: Mapping[str, Trials]
    # Of the paper's rankers on components that are not standardised.
    plain: Mapping[str, Trials] = field(default_factory=dict)

    @cached_property
    def names(self) -> list[str]:
        """The rankers that took part on all attributes."""
        first, *others = self.trials.values()
        return [name for name in first.means if all(name in trials.means for trials in others)]

    def by_repeat(self, name: str) -> Float:
        """Return a ranker's mean over attributes, by repeat."""
        return np.asarray(np.mean([each.by_repeat[name] for each in self.trials.values()], axis=0))

    def mean(self, name: str) -> float:
        """Return a ranker's mean over attributes and repeats."""
        return float(self.by_repeat(name).mean())

    def facts(self) -> dict[str, Any]:
        """Return the figures that claims are judged by, and all results."""
        return {
            "stands_in_for": self.data.stands_in_for,
            "attributes": {name: trials.facts() for name, trials in self.trials.items()},
            "not_standardised": {name: trials.facts() for name, trials in self.plain.items()},
            "means": {name: self.mean(name) for name in self.names},
            # The first is closest to the paper.
            "lead": {
                f"{variant}, {scaled}": _leads(trials, variant)
                for scaled, trials in {PLAIN: self.plain, STANDARDISED: self.trials}.items()
                if trials
                for variant in _VARIANTS
            },
            "paper_lead": self._paper_lead(),
            "lead_over_consensus": self._lead_over("Consensus only"),
            "lead_over_learned": self._lead_over(LEARNED),
        }

    def _paper_lead(self) -> str:
        """Return the lead of the paper's method in the paper, on these attributes."""
        paper = self.data.paper
        known = [name for name in self.trials if name in paper.get("Ours", {})]
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
    pieces: list[Piece] = []
    for each in found:
        pieces += [_description(each.data), _table(each), *_equal_baselines(each)]
        if each.plain:
            pieces.append(_plain_table(each))
        if setting.scale.n_folds:
            ways = {STANDARDISED: each.trials, PLAIN: each.plain}
            pieces += [penalties_table(t, f"With {way}: ") for way, t in ways.items() if t]
        if each.data.paper:
            pieces.append(_paper_table(each.data))
    pieces.append(_how(setting))
    return ReportPart(
        key="table3",
        title="Table 3: AUC by attribute",
        found=" ".join(_sentence(name, each) for name, each in facts.items()),
        pieces=pieces,
        facts=facts,
    )


def _sentence(name: str, facts: Facts) -> str:
    instead = facts["stands_in_for"]
    first, *others = (
        (way, [lead[1:] for lead in leads.values()]) for way, leads in facts["lead"].items()
    )
    further = "; ".join(f"{way}: {mean_points(leads)}" for way, leads in others)
    compared = {"the consensus alone": "consensus", "the learned prior": "learned"}
    apart = " and ".join(
        f"{mean_points(facts[f'lead_over_{key}'].values())} from {ranker}"
        for ranker, key in compared.items()
        if facts[f"lead_over_{key}"]
    )
    return (
        f"{name}{f' (not {instead})' if instead else ''}: the paper's method reaches "
        f"{percent(facts['means'][OURS], 1)} with {STANDARDISED}. Its distance from the best of "
        f"the seven baselines, in points (mean of all attributes): {first[0]}: "
        f"{mean_points(first[1])}; {further}. It is {apart}."
    )


def mean_points(leads: Iterable[Sequence[float]]) -> str:
    """Return the mean of leads in points, and how many have an interval above or below 0."""
    each = list(leads)
    above, below = sum(low > 0 for _, low, _ in each), sum(high < 0 for *_, high in each)
    sure = f" (surely ahead on {above}, behind on {below} of {len(each)})"
    return points(mean(lead[0] for lead in each)) + sure


def _description(data: DataSet) -> str:
    sizes = [
        f"{each.n_users} people, {len(each):,} labels, {each.n_items:,} items"
        for each in data.attributes.values()
    ]
    first, *others = dict.fromkeys(sizes)
    features = next(iter(data.attributes.values())).n_features
    reduced = (
        f"components keep {data.share:.0%} of the variance of {features} features and are found "
        "in the training items of each split"
        if data.share is not None
        else f"{features} features"
    )
    mark = _STAND_INS.get(data.stands_in_for, "")
    about = f"{first}{', or so,' if others else ''} for each attribute"
    return f"{mark}{data.name}: {about}; {reduced}."


def _table(each: DataSetTrials) -> ReportTable:
    """Return AUC by ranker and attribute; the best figure of each attribute is bold."""
    others = [name for name in (OURS, SHRUNK, LEARNED, *SIMPLE_BASELINES) if name in each.names]
    named = {
        name: [variant_name(name, v) for v in _VARIANTS]
        for name in [*PAPER_BASELINES, LEAST_SQUARES]
    }
    named |= {f"{name} (Ours)" if name == OURS else name: [name] for name in others}
    best = {key: percent(max(t.means.values()), 1) for key, t in each.trials.items()}
    rows = []
    for shown, names in named.items():
        row = [shown]
        for attribute, trials in each.trials.items():
            cells = [percent(trials.means[name], 1) for name in names]
            row.append(" / ".join(bold_if(cell, cell == best[attribute]) for cell in cells))
        means = [plus_minus(each.mean(name), deviation(each.by_repeat(name))) for name in names]
        rows.append([*row, " / ".join(means)])
    return ReportTable(
        ["algorithm", *each.trials, "mean of all"],
        rows,
        f"{each.data.name}, {STANDARDISED}: AUC in per cent, mean over people and repeats; two "
        "figures are without / with an intercept, the last column has the standard deviation over "
        "repeats. Bold: the best of a column.",
    )


def _plain_table(each: DataSetTrials) -> ReportTable:
    """Return the paper's rankers on components as they are, next to standardised ones."""
    names = [variant_name(n, v) for n in [*PAPER_BASELINES, LEAST_SQUARES] for v in _VARIANTS]
    rows = []
    for name in [*names, OURS]:
        cells = [
            f"{percent(each.plain[attribute].means[name], 1)} / {percent(trials.means[name], 1)}"
            for attribute, trials in each.trials.items()
        ]
        means = [mean(t.means[name] for t in part.values()) for part in (each.plain, each.trials)]
        rows.append([name, *cells, " / ".join(percent(value, 1) for value in means)])
    return ReportTable(
        ["algorithm", *each.trials, "mean of all"],
        rows,
        f"{each.data.name}: components as they are (the first have the largest variance) / each "
        "standardised, which the paper does not mention. AUC in per cent.",
    )


def _equal_baselines(each: DataSetTrials) -> list[str]:
    """Explain where RAMU equals RMTL, which looks like a mistake."""
    same = [
        attribute
        for attribute, trials in each.trials.items()
        if all(
            np.array_equal(
                trials.by_repeat[variant_name("RMTL", v)], trials.by_repeat[variant_name("RAMU", v)]
            )
            for v in _VARIANTS
        )
    ]
    if not same:
        return []
    return [
        f"RAMU is RMTL on {len(same)} of {len(each.trials)} attributes: the search found best a "
        "threshold that no singular value reaches, so nothing is capped."
    ]


def _paper_table(data: DataSet) -> ReportTable:
    attributes = [name for name in data.attributes if name in next(iter(data.paper.values()))]
    rows = [
        [name, *(f"{figures[attribute]:.2f}" for attribute in attributes)]
        for name, figures in data.paper.items()
    ]
    name = data.stands_in_for
    original = f" on the original {name}. The tables above are on other data" if name else ""
    return ReportTable(["algorithm", *attributes], rows, f"The paper's figures{original}.")


def _how(setting: ExperimentSetting) -> str:
    scale = setting.scale
    return (
        f"15 % of everyone's labels are held out, {scale.repeats} times (seeds {setting.seed} to "
        f"{setting.seed + scale.repeats - 1}). {scale.search} People with fewer than 8 labels "
        "of either kind are left out of Shoes, SUN and sketch shoes, as in the paper. "
        '"Surely" means: the 95 % interval of the lead over the repeats, widened for their '
        "overlap, lies above 0."
    )


def run_figure(setting: ExperimentSetting) -> ReportPart:
    """Draw Figure 5: a box for each ranker, over the repeats of Table 3."""
    found = results(setting)
    facts = {
        each.data.name: {name: each.by_repeat(name).tolist() for name in each.names}
        for each in found
    }
    return ReportPart(
        key="fig5",
        title="Figure 5: mean over all attributes, by repeat",
        found=" ".join(map(_figure_sentence, found)),
        pieces=[_picture(each) for each in found],
        facts=facts,
    )


def _figure_sentence(each: DataSetTrials) -> str:
    best = [
        max((variant_name(name, v) for name in PAPER_BASELINES), key=each.mean) for v in _VARIANTS
    ]
    reached = " and ".join(f"{name} {percent(each.mean(name), 1)}" for name in best)
    return (
        f"{each.data.name}, {STANDARDISED}: the paper's method has a mean of "
        f"{percent(each.mean(OURS), 1)}. The best baselines are {reached}. Consensus only has "
        f"{percent(each.mean('Consensus only'), 1)}."
    )


def _picture(each: DataSetTrials) -> ReportPicture:
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
    name = each.data.name
    instead = f", not {each.data.stands_in_for}" if each.data.stands_in_for else ""
    figure.suptitle(f"{name}{instead}: the paper's method is “{OURS}” on both sides")
    return ReportPicture(
        f"fig5-{name.lower().replace(' ', '-')}",
        figure,
        f"{name}, {STANDARDISED}: mean AUC over all attributes, a point for each repeat. The "
        "highest median is on top, in another colour.",
    )
