"""Where each level of the decomposition pays, by labels per person."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from likeminds._util.array_types import Float
from likeminds._util.per_user_arrays import nan_mean
from likeminds.comparing.runs import fit_to_the_end
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.datasets import make_schools
from likeminds.losses.statistics import Statistics
from likeminds.metrics.by_user import mean_auc
from likeminds.metrics.paired import PairedDifference, over_users
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture, percent, points
from likeminds.paper.experiments.result_store import Job
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trial_rankers import ComparedRanker
from likeminds.plots.figures import (
    COLOURS,
    as_png,
    draw_line,
    name_axes,
    new_figure,
    put_legend_below,
)
from likeminds.rankers.baselines import ConsensusOnly
from likeminds.rankers.candidates.folds import Split, plain_values
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.three_level import usual_alpha_group
from likeminds.rankers.tuning.search import RankerCV
from likeminds.rankers.tuning.three_level_cv import ThreeLevelRankerCV
from likeminds.report.page import ReportTable


class Step(NamedTuple):
    """What is added, the model that has it, and the one that has not."""

    name: str
    new: str
    old: str
    ours: bool = False  # not in the paper


CONSENSUS, PERSONAL, GROUP = "consensus", "consensus + personal", "consensus + group"
ALL, SHRUNK, LEARNED = "all three", "all three, groups shrunk", "learned prior"
MODELS = (CONSENSUS, PERSONAL, GROUP, ALL, SHRUNK, LEARNED)
# What each adds to which: the steps of the ablation.
STEPS = (
    Step("the personal level, to the consensus", PERSONAL, CONSENSUS),
    Step("the group level, to the consensus", GROUP, CONSENSUS),
    Step("the personal level, to consensus and group", ALL, GROUP),
    Step("group shrinkage, to all three", SHRUNK, ALL, ours=True),
    Step("a learned prior, instead of tuned and shrunk levels", LEARNED, SHRUNK, ours=True),
)
# A penalty that leaves nothing of a level.
_NOTHING = 1e6
_ALPHA_CONSENSUS = 1e-3
_GROUP_TIMES = (0.3, 1.0, 3.0, 10.0, 30.0)
_ALPHA_PERSONAL = (_NOTHING, 3.0, 1.0, 0.3, 0.1, 0.03)
_SHRINKAGE = (0.0, 0.03, 0.1, 0.3)
_N_GROUPS = (1, 2, 4)
# Labels of each person that are held out, whatever there is to learn from.
_TEST_LABELS = 50
# Penalties are tuned on so many other crowds, with seeds that are never scored.
_TUNING_CROWDS, _TUNING = 3, 10_000


def run(setting: ExperimentSetting) -> ReportPart:
    """Score six models on crowds with more and more labels per person."""
    size, seed, n_folds = setting.scale.ablation, setting.seed, setting.scale.n_folds
    keys = [(model, n_labels) for n_labels in size.labels for model in MODELS]
    shape = {
        "n_users": size.n_users,
        "n_features": size.n_features,
        "n_schools": size.n_schools,
    }
    searches = [
        Job(
            f"ablation-search-{n}",
            search,
            {"model": model, "n_labels": n, "tuned": n_folds > 0, "seed": seed, **shape},
        )
        for model, n in keys
    ]
    chosen = dict(zip(keys, setting.store.all(searches), strict=True))
    runs = [(model, n, draw) for model, n in keys for draw in range(size.repeats)]
    fits = [
        Job(
            f"ablation-{n}-{draw}",
            score,
            {
                "model": model,
                "n_labels": n,
                "parameters": chosen[model, n],
                "seed": seed + draw,
                **shape,
            },
        )
        for model, n, draw in runs
    ]
    scores = dict(zip(runs, setting.store.all(fits), strict=True))
    found = {
        model: np.array(
            [[scores[model, n, draw] for draw in range(size.repeats)] for n in size.labels]
        )
        for model in MODELS
    }
    facts = _facts(found, size.labels)
    return ReportPart(
        key="ablation",
        title="Where each level pays",
        found=_sentence(facts),
        pieces=[_picture(facts), _table(facts), _steps_table(facts), _how(setting)],
        facts=facts,
    )


def search(
    *,
    model: str,
    n_labels: int,
    tuned: bool,
    seed: int,
    n_users: int,
    n_features: int,
    n_schools: int,
) -> dict[str, Any]:
    """Return the penalties that suit crowds like these (a `Job`)."""
    if model == LEARNED:
        return {}
    if not tuned:
        return _middle(model, n_features / n_labels)
    ranker = models(n_features / n_labels)[model]
    aucs, candidates = [], []
    for crowd in range(_TUNING_CROWDS):
        train, test = _split(n_users, n_labels, n_features, n_schools, _TUNING + seed + crowd)
        statistics = Statistics.from_annotations(train)
        candidates = ranker._candidates(statistics)
        tuning = ranker._way_of_tuning()
        split = Split(test, statistics, statistics.user_ids, partial(_itself, train))
        fold = tuning.fold(split)
        paths = tuning.paths(candidates, np.arange(len(candidates)))
        found = np.empty(len(candidates))
        for path in paths:
            found[path] = nan_mean(fold.follow([candidates[c] for c in path]))
        aucs.append(found)
    return plain_values(candidates[int(np.argmax(np.mean(aucs, axis=0)))])


def score(
    *,
    model: str,
    n_labels: int,
    parameters: Mapping[str, Any],
    seed: int,
    n_users: int,
    n_features: int,
    n_schools: int,
) -> float:
    """Return the mean AUC of one model on one crowd, on labels held out (a `Job`)."""
    train, test = _split(n_users, n_labels, n_features, n_schools, seed)
    ranker = ComparedRanker(models(n_features / n_labels)[model])
    if parameters or model != LEARNED:
        ranker = ranker.settle(parameters)
    fit_to_the_end(ranker, train)
    return float(mean_auc(test.labels, ranker.decision_function(test), test.users))


def _split(
    n_users: int, n_labels: int, n_features: int, n_schools: int, seed: int
) -> tuple[Annotations, Annotations]:
    """Draw a crowd; hold out further labels of everybody, as many whatever there is to learn."""
    total = n_labels + _TEST_LABELS
    drawn = make_schools(
        n_users, total, max(1000, 4 * total), n_features, n_schools, random_state=seed
    )
    return split_within_users(drawn.annotations, _TEST_LABELS / total, seed)


def _itself(annotations: Annotations) -> Annotations:
    return annotations


def models(features_per_label: float) -> dict[str, Any]:
    """Return the six models, each of which tunes itself."""
    usual = usual_alpha_group(features_per_label)
    group = [times * usual for times in _GROUP_TIMES]
    base = {"alpha_consensus": [_ALPHA_CONSENSUS]}
    personal = {"alpha_personal": list(_ALPHA_PERSONAL)}
    groups = {"alpha_group": group, "n_groups": list(_N_GROUPS)}
    grids: dict[str, Any] = {
        PERSONAL: base | personal | {"alpha_group": [_NOTHING], "n_groups": [0]},
        GROUP: base | groups | {"alpha_personal": [_NOTHING]},
        ALL: base | groups | personal,
        SHRUNK: [
            base
            | {"alpha_group": [alpha], "n_groups": list(_N_GROUPS)}
            | {"alpha_personal": list(_ALPHA_PERSONAL[::2])}
            | {"group_shrinkage": [share * alpha for share in _SHRINKAGE]}
            for alpha in group
        ],
    }
    return {
        CONSENSUS: RankerCV(ConsensusOnly(), n_folds=2),
        **{name: ThreeLevelRankerCV(grid, n_folds=2) for name, grid in grids.items()},
        LEARNED: HierarchicalRanker(),
    }


def _middle(model: str, features_per_label: float) -> dict[str, Any]:
    """Return a candidate from the middle, where nothing is searched for."""
    grid = getattr(models(features_per_label)[model], "param_grid", None) or {}
    first = grid[len(grid) // 2] if isinstance(grid, list) else grid
    return {name: values[len(values) // 2] for name, values in first.items()}


def _facts(found: Mapping[str, Float], labels: Sequence[int]) -> dict[str, Any]:
    steps = {}
    for step in STEPS:
        differences = found[step.new] - found[step.old]
        judged: list[PairedDifference] = [over_users(row) for row in differences]
        steps[step.name] = [[j.mean, j.low, j.high] for j in judged]
    return {
        "labels": list(labels),
        "auc": {model: values.mean(axis=1).tolist() for model, values in found.items()},
        "deviation": {
            model: values.std(axis=1, ddof=min(1, values.shape[1] - 1)).tolist()
            for model, values in found.items()
        },
        "steps": steps,
    }


def _sentence(facts: Mapping[str, Any]) -> str:
    labels = facts["labels"]
    gains = []
    for name, judged in facts["steps"].items():
        best = int(np.argmax([mean for mean, _, _ in judged]))
        gains.append(
            f"{name}: {points(judged[0][0])} points with {labels[0]} labels per person, "
            f"{points(judged[best][0])} at best (with {labels[best]})"
        )
    return "What each step adds - " + "; ".join(gains) + "."


def _picture(facts: Mapping[str, Any]) -> ReportPicture:
    figure = new_figure(8, 5, shown=False)
    axes = figure.subplots()
    for place, (model, means) in enumerate(facts["auc"].items()):
        draw_line(axes, place, facts["labels"], 100 * np.array(means), model)
        spread = np.array(facts["deviation"][model])
        low, high = (100 * (np.array(means) + sign * spread) for sign in (-1, 1))
        axes.fill_between(facts["labels"], low, high, color=COLOURS[place], alpha=0.1, linewidth=0)
    axes.set_xscale("log")
    axes.set_xticks(facts["labels"], [str(n) for n in facts["labels"]])
    axes.minorticks_off()
    name_axes(
        axes,
        title=_title(facts),
        x="labels per person (log scale)",
        y="AUC on held-out labels, per cent",
    )
    put_legend_below(figure, axes)
    return ReportPicture(
        "ablation",
        as_png(figure),
        "AUC by labels per person with more and more levels; bands are one standard deviation "
        "over crowds.",
    )


def _title(facts: Mapping[str, Any]) -> str:
    labels = facts["labels"]
    few, many = (
        max(facts["auc"], key=lambda model: facts["auc"][model][place]) for place in (0, -1)
    )
    if few == many:
        return f"With {labels[0]} and with {labels[-1]} labels per person, best is: {few}"
    return f"Best with {labels[0]} labels per person: {few}; with {labels[-1]}: {many}"


def _table(facts: Mapping[str, Any]) -> ReportTable:
    best = [max(column) for column in zip(*facts["auc"].values(), strict=True)]
    rows = [
        [
            model,
            *(
                f"**{percent(mean, 1)}**" if mean == top else percent(mean, 1)
                for mean, top in zip(means, best, strict=True)
            ),
        ]
        for model, means in facts["auc"].items()
    ]
    columns = ["model", *(f"{n} labels" for n in facts["labels"])]
    return ReportTable(columns, rows, "Mean AUC in per cent; the best of each column is bold.")


def _steps_table(facts: Mapping[str, Any]) -> ReportTable:
    rows = [
        [name, *(f"{points(m)} [{points(low)}, {points(high)}]" for m, low, high in judged)]
        for name, judged in facts["steps"].items()
    ]
    columns = ["what is added", *(f"{n} labels" for n in facts["labels"])]
    return ReportTable(columns, rows, "Points of AUC, with 95 % intervals over crowds (paired).")


def _how(setting: ExperimentSetting) -> str:
    size = setting.scale.ablation
    tuned = (
        f"Penalties are those that are best on {_TUNING_CROWDS} other crowds, for each number of "
        "labels: what a level can add, and not what a search in few labels makes of it"
        if setting.scale.n_folds
        else "Penalties are the defaults"
    )
    return (
        f"`make_schools`: {size.n_users} people in {size.n_schools} schools that contradict on a "
        f"quarter of {size.n_features} features, everybody with a small part of their own, 5 % of "
        f"the labels wrong. {size.repeats} crowds (seeds {setting.seed} to "
        f"{setting.seed + size.repeats - 1}); {_TEST_LABELS} further labels of each person are "
        f"held out. {tuned}. The learned prior has nothing to tune."
    )
