"""Table 3: everybody on the attributes of Shoes and SUN, or what stands in for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from statistics import mean
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.paper.experiments.data_sets import DataSet, crowds
from likeminds.paper.experiments.rankers import (
    HONEST,
    INTERCEPT,
    LEARNED,
    LEAST_SQUARES,
    OURS,
    RAW,
    SHRUNK,
    both,
)
from likeminds.paper.experiments.report_page import (
    ReportPart,
    ReportPicture,
    percent,
    plus_minus,
    points,
)
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trials import Trials, run_trials
from likeminds.rankers.registry import COMPETITORS
from likeminds.report.page import ReportTable

PLAIN = (OURS, SHRUNK, LEARNED, *HONEST)


@dataclass(frozen=True, eq=False)
class CrowdTrials:
    """The results on all attributes of a data set."""

    crowd: DataSet
    trials: Mapping[str, Trials]

    @cached_property
    def names(self) -> list[str]:
        """Everybody who took part on all attributes."""
        first, *others = self.trials.values()
        return [name for name in first.means if all(name in trials.means for trials in others)]

    def by_repeat(self, name: str) -> Float:
        """Return a ranker's mean over attributes, by repeat."""
        values: Float = np.mean([trials.by_repeat[name] for trials in self.trials.values()], axis=0)
        return values

    def mean(self, name: str) -> float:
        """Return a ranker's mean over attributes and repeats."""
        return float(self.by_repeat(name).mean())

    def facts(self) -> dict[str, Any]:
        """Return what claims are judged by, and all results."""
        return {
            "stands_in": self.crowd.stands_in,
            "attributes": {name: trials.facts() for name, trials in self.trials.items()},
            "means": {name: self.mean(name) for name in self.names},
            "lead": {way: self._leads(way) for way in (RAW, INTERCEPT)},
            "paper_lead": self._paper_lead(),
            "lead_over_consensus": self._lead_over("Consensus only"),
            "lead_over_learned": self._lead_over(LEARNED),
        }

    def _leads(self, way: str) -> dict[str, Any]:
        """Return, by attribute, the best competitor and the lead of the paper's method over it."""
        leads = {}
        for attribute, trials in self.trials.items():
            best = max(COMPETITORS, key=lambda name: trials.means[both(name, way)])
            judged = trials.difference(OURS, both(best, way))
            leads[attribute] = [best, judged.mean, judged.low, judged.high]
        return leads

    def _paper_lead(self) -> str:
        """Say by how much the paper's method led there, on these attributes."""
        paper = self.crowd.paper
        known = [name for name in self.trials if name in paper.get("Ours", {})]
        if not known:
            return "-"
        leads = [
            paper["Ours"][name] - max(paper[other][name] for other in COMPETITORS) for name in known
        ]
        mark = " on the original Shoes" if self.crowd.stands_in else ""
        return f"every attribute, {points(float(np.mean(leads)) / 100)} points on average{mark}"

    def _lead_over(self, name: str) -> dict[str, float]:
        return {
            attribute: trials.difference(OURS, name).mean
            for attribute, trials in self.trials.items()
            if name in trials.means
        }


@lru_cache(maxsize=1)
def results(setting: ExperimentSetting) -> list[CrowdTrials]:
    """Return everybody's results on all data sets; kept, so that others may ask again."""
    scale = setting.scale
    return [
        CrowdTrials(
            crowd,
            {
                attribute: run_trials(
                    annotations,
                    scale,
                    setting.store,
                    setting.seed,
                    tuned=scale.tuned_table_3,
                    share=crowd.share,
                )
                for attribute, annotations in crowd.attributes.items()
            },
        )
        for crowd in crowds(setting)
    ]


def run(setting: ExperimentSetting) -> ReportPart:
    """Let everybody take part on every attribute."""
    found = results(setting)
    facts = {each.crowd.name: each.facts() for each in found}
    pieces: list[str | ReportTable | ReportPicture] = []
    for each in found:
        pieces += [_description(each), _table(each), *_twins(each)]
        if each.crowd.paper:
            pieces.append(_paper_table(each.crowd))
    pieces.append(_how(setting))
    return ReportPart(
        key="table3",
        title="Table 3: AUC by attribute",
        found=" ".join(_sentence(name, each) for name, each in facts.items()),
        pieces=pieces,
        facts=facts,
    )


def ahead(leads: Mapping[str, Sequence[Any]]) -> tuple[int, int]:
    """Return on how many attributes the method leads, and on how many its interval is above 0."""
    return sum(lead[1] > 0 for lead in leads.values()), sum(lead[2] > 0 for lead in leads.values())


def _sentence(name: str, facts: Mapping[str, Any]) -> str:
    n = len(facts["attributes"])
    counts = {way: ahead(facts["lead"][way]) for way in (RAW, INTERCEPT)}
    return (
        f"On {name}{' (standing in for Shoes)' if facts['stands_in'] else ''} the paper's method "
        f"is ahead of all seven competitors run as in the paper on {counts[RAW][0]} of {n} "
        f"attributes (surely on {counts[RAW][1]}), and of all seven with an intercept on "
        f"{counts[INTERCEPT][0]} (surely on {counts[INTERCEPT][1]}). On average it reaches "
        f"{percent(facts['means'][OURS], 1)}.{learned_prior_words(facts)}"
    )


def learned_prior_words(facts: Mapping[str, Any]) -> str:
    """Say how far the learned prior is from the paper's method, where it took part."""
    behind = facts["lead_over_learned"]
    if not behind:
        return ""
    return (
        " The learned prior, with nothing to tune, is "
        f"{points(-mean(behind.values()))} points from it, on the splits that both saw."
    )


def _description(each: CrowdTrials) -> str:
    crowd = each.crowd
    sizes = [
        f"{annotations.n_users} people, {len(annotations):,} labels, {annotations.n_items:,} items"
        for annotations in crowd.attributes.values()
    ]
    first, *others = dict.fromkeys(sizes)
    about = f"{first} for each attribute" if not others else f"{first}, or so, for each attribute"
    features = next(iter(crowd.attributes.values())).n_features
    kept = (
        f"; components keep {crowd.share:.0%} of the variance of {features} features and are found "
        "in the training items of each split"
        if crowd.share is not None
        else f"; {features} features"
    )
    mark = (
        "**Sketch shoes stand in for Shoes**, which we may not bundle: drawn pictures, simulated "
        "people, features from the pixels alone (GIST and colours). The paper's figures are those "
        "of the original data, so that only the order of the algorithms can be compared. SUN has "
        "no stand-in: `--sun FOLDER`. "
        if crowd.stands_in
        else ""
    )
    return f"{mark}{crowd.name}: {about}{kept}."


def _table(each: CrowdTrials) -> ReportTable:
    attributes = list(each.trials)
    rows = []
    for name in [*COMPETITORS, LEAST_SQUARES]:
        pairs = [
            " / ".join(percent(trials.means[both(name, way)], 1) for way in (RAW, INTERCEPT))
            for trials in each.trials.values()
        ]
        means = [_mean_cell(each, both(name, way)) for way in (RAW, INTERCEPT)]
        rows.append([name, *pairs, " / ".join(means)])
    for name in [name for name in PLAIN if name in each.names]:
        cells = [percent(trials.means[name], 1) for trials in each.trials.values()]
        shown = f"{name} (Ours)" if name == OURS else name
        rows.append([shown, *cells, _mean_cell(each, name)])
    _embolden(each, rows)
    return ReportTable(
        ["algorithm", *attributes, "mean of all"],
        rows,
        f"{each.crowd.name}: AUC in per cent, mean over people and repeats; two figures are as in "
        "the paper / with an intercept, the last column has the standard deviation over repeats. "
        "Bold: the best of a column.",
    )


def _twins(each: CrowdTrials) -> list[str]:
    """Say where the capped trace norm is the trace norm, so that nobody takes it for a mistake."""
    same = [
        attribute
        for attribute, trials in each.trials.items()
        if all(
            np.array_equal(trials.by_repeat[both("RMTL", way)], trials.by_repeat[both("RAMU", way)])
            for way in (RAW, INTERCEPT)
        )
    ]
    if not same:
        return []
    return [
        f"RAMU is RMTL on {len(same)} of {len(each.trials)} attributes: the search found best a "
        "threshold that no singular value reaches, so that nothing is capped."
    ]


def _mean_cell(each: CrowdTrials, name: str) -> str:
    values = each.by_repeat(name)
    deviation = float(values.std(ddof=1)) if len(values) > 1 else float("nan")
    return plus_minus(float(values.mean()), deviation)


def _embolden(each: CrowdTrials, rows: list[list[str]]) -> None:
    """Make the best figure of each attribute bold."""
    for column, trials in enumerate(each.trials.values(), start=1):
        best = percent(max(trials.means.values()), 1)
        for row in rows:
            cells = [f"**{cell}**" if cell == best else cell for cell in row[column].split(" / ")]
            row[column] = " / ".join(cells)


def _paper_table(crowd: DataSet) -> ReportTable:
    attributes = [name for name in crowd.attributes if name in next(iter(crowd.paper.values()))]
    rows = [
        [name, *(f"{figures[attribute]:.2f}" for attribute in attributes)]
        for name, figures in crowd.paper.items()
    ]
    return ReportTable(
        ["algorithm", *attributes],
        rows,
        "The paper's figures"
        + (" on the original Shoes: other data than above." if crowd.stands_in else "."),
    )


def _how(setting: ExperimentSetting) -> str:
    scale = setting.scale
    last = setting.seed + scale.repeats - 1
    return (
        f"15 % of everybody's labels are held out, {scale.repeats} times (seeds {setting.seed} to "
        f"{last}). {scale.search(scale.tuned_table_3)} People with fewer than 8 labels "
        "of either kind are left out of Shoes, SUN and sketch shoes, as in the paper. "
        f'"Surely" means: the 95 % interval of the lead over the repeats, widened for their '
        f"overlap, lies above 0 ({points(0.0)} points)."
    )
