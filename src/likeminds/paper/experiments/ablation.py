"""The gain of each level of the decomposition, by labels per user."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from sklearn.model_selection import ParameterGrid

from likeminds._util.array_types import Float
from likeminds.comparing.runs import Job, fit_to_the_end
from likeminds.data.annotations import Annotations
from likeminds.data.splits import split_within_users
from likeminds.datasets import make_schools, make_simulation
from likeminds.losses.statistics import Statistics
from likeminds.metrics.by_user import mean_auc
from likeminds.metrics.paired import over_users
from likeminds.paper.experiments.path_search import ExtendedCV, PathCV
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    bold_if,
    draw_panels,
    make_part,
    percent,
)
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trials import ComparedRanker
from likeminds.rankers.baselines import ConsensusOnly
from likeminds.rankers.candidates import Split, plain_values
from likeminds.rankers.hierarchical import HierarchicalRanker
from likeminds.rankers.three_level import usual_alpha_group

if TYPE_CHECKING:
    from matplotlib.figure import Figure


class Step(NamedTuple):
    """An added level, the model with it, and the model without it."""

    name: str
    new: str
    old: str
    ours: bool = False  # not in the paper


CONSENSUS, PERSONAL, GROUP = "consensus", "consensus + personal", "consensus + group"
ALL, SHRUNK, LEARNED = "all three", "all three, groups shrunk", "learned prior"
MODELS = (CONSENSUS, PERSONAL, GROUP, ALL, SHRUNK, LEARNED)
PERSONAL_STEP = "the personal level, to consensus and group"
GROUP_STEP = "the group level, to the consensus"
STEPS = (
    Step("the personal level, to the consensus", PERSONAL, CONSENSUS),
    Step(GROUP_STEP, GROUP, CONSENSUS),
    Step(PERSONAL_STEP, ALL, GROUP),
    Step("group shrinkage, to all three", SHRUNK, ALL, ours=True),
    Step("a learned prior, instead of tuned and shrunk levels", LEARNED, SHRUNK, ours=True),
)
# A penalty that makes a level zero.
_NOTHING = 1e6
_ALPHA_CONSENSUS = 1e-3
_GROUP_TIMES = (0.3, 1.0, 3.0, 10.0, 30.0)
_ALPHA_PERSONAL = (_NOTHING, 1.0, 0.5, 0.3, 0.24, 0.19, 0.15, 0.12, 0.06)
_SHRINKAGE = (0.0, 0.03, 0.1, 0.3)
_N_GROUPS = (1, 2, 3, 5, 8)
# The crowds on which the personal level is evaluated.
SCHOOLS, LONERS, SIMULATION = "Schools, no loners", "Schools and loners", "The paper's simulation"
# Held-out labels of each user, for any number of training labels. Of the paper's simulation, 2 %
# are positive.
_TEST_LABELS = {SCHOOLS: 50, LONERS: 50, SIMULATION: 500}
_POSITIVE = 0.02
# Penalties are tuned on so many other draws, with seeds that are never scored.
_N_TUNING, _TUNING_SEED = 3, 10_000


def run(setting: ExperimentSetting) -> ReportPart:
    """Score six models on simulations with more and more labels per user."""
    size = setting.scale.ablation
    found = _scores(setting, SCHOOLS, size.labels, MODELS)
    facts = {"labels": list(size.labels)} | _facts(found)
    personal = {SCHOOLS: (size.labels, found)}
    for crowd, labels in {LONERS: size.loner_labels, SIMULATION: size.simulation_labels}.items():
        personal[crowd] = labels, _scores(setting, crowd, labels, (GROUP, ALL))
    facts["personal"] = {
        crowd: {"labels": list(labels), "gains": _gains(scores[ALL] - scores[GROUP])}
        for crowd, (labels, scores) in personal.items()
    }
    best = [max(column) for column in zip(*facts["auc"].values(), strict=True)]
    rows = [
        [model, *(bold_if(percent(m, 1), m == top) for m, top in zip(means, best, strict=True))]
        for model, means in facts["auc"].items()
    ]
    figures = {"ablation": _picture(facts)}
    return make_part("ablation", setting, facts, figures, rows=rows, n_tuning=_N_TUNING)


def _scores(
    setting: ExperimentSetting, crowd: str, labels: Sequence[int], names: Sequence[str]
) -> dict[str, Float]:
    """Return the AUC of models by labels per user and draw."""
    size, simulation = setting.scale.ablation, setting.scale.simulation
    shape = {
        SCHOOLS: (size.n_users, size.n_features, size.n_schools, 0),
        LONERS: (size.n_users, size.n_features, size.n_schools, size.n_loners),
        SIMULATION: (simulation.n_users, simulation.n_features, 0, 0),
    }[crowd]
    shared = {"crowd": crowd, "shape": list(shape)}
    tuning = {"tuned": setting.scale.n_folds > 0, "seed": setting.seed}
    keys = [(model, n) for n in labels for model in names]
    searches = [
        Job(f"ablation-search-{n}", search, {"model": model, "n_labels": n, **tuning, **shared})
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
                "seed": setting.seed + draw,
                **shared,
            },
        )
        for model, n, draw in runs
    ]
    scores = dict(zip(runs, setting.store.all(fits), strict=True))
    return {
        model: np.array([[scores[model, n, draw] for draw in range(size.repeats)] for n in labels])
        for model in names
    }


def search(
    *, crowd: str, model: str, n_labels: int, tuned: bool, seed: int, shape: Sequence[int]
) -> dict[str, Any]:
    """Return the best penalties for so many users, features and schools (a `Job`)."""
    if model == LEARNED:
        return {}
    ranker = models(shape[1] / n_labels)[model]
    if not tuned:
        grid = ParameterGrid(ranker.param_grid or {})
        return plain_values(grid[len(grid) // 2])
    ranker.halving = ranker.extends_counts = False
    splits = []
    for draw in range(_N_TUNING):
        train, test = _split(crowd, n_labels, _TUNING_SEED + seed + draw, shape)
        statistics = Statistics.from_annotations(train)
        training = partial(lambda rows: rows, train)
        splits.append(Split(test, statistics, statistics.user_ids, training))
    ranker._choose(ranker._candidates(statistics), splits, statistics)
    chosen: dict[str, Any] = ranker.best_params_
    return chosen


def score(
    *,
    crowd: str,
    model: str,
    n_labels: int,
    parameters: Mapping[str, Any],
    seed: int,
    shape: Sequence[int],
) -> float:
    """Return the mean AUC of one model on held-out labels of one draw (a `Job`)."""
    train, test = _split(crowd, n_labels, seed, shape)
    ranker = ComparedRanker(models(shape[1] / n_labels)[model])
    if parameters or model != LEARNED:
        ranker = ranker.with_parameters(parameters)
    fit_to_the_end(ranker, train)
    return float(mean_auc(test.labels, ranker.decision_function(test), test.users))


def _split(
    crowd: str, n_labels: int, seed: int, shape: Sequence[int]
) -> tuple[Annotations, Annotations]:
    """Simulate training labels, and a fixed number of held-out ones."""
    n_users, n_features, n_schools, n_loners = shape
    total = n_labels + _TEST_LABELS[crowd]
    if crowd == SIMULATION:
        drawn = make_simulation(
            n_users, total, n_features, round(_POSITIVE * total), random_state=seed
        )
    else:
        items = max(1000, 4 * total)
        drawn = make_schools(
            *(n_users, total, items, n_features, n_schools), n_loners=n_loners, random_state=seed
        )
    return split_within_users(drawn.annotations, _TEST_LABELS[crowd] / total, seed)


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
            | {"alpha_personal": list(_ALPHA_PERSONAL[::4])}
            | {"group_shrinkage": [share * alpha for share in _SHRINKAGE]}
            for alpha in group
        ],
    }
    return {
        CONSENSUS: ExtendedCV(ConsensusOnly(), n_folds=2),
        **{name: PathCV(grid, n_folds=2) for name, grid in grids.items()},
        LEARNED: HierarchicalRanker(),
    }


def _facts(found: Mapping[str, Float]) -> dict[str, Any]:
    return {
        "auc": {model: values.mean(axis=1).tolist() for model, values in found.items()},
        "deviation": {
            model: values.std(axis=1, ddof=min(1, values.shape[1] - 1)).tolist()
            for model, values in found.items()
        },
        "steps": {step.name: _gains(found[step.new] - found[step.old]) for step in STEPS},
    }


def _gains(differences: Float) -> list[list[float]]:
    """Return mean and interval of the differences of each row."""
    return [list(over_users(row)[:3]) for row in differences]


def _picture(facts: Facts) -> "Figure":
    labels, auc = facts["labels"], facts["auc"]
    few, many = (max(auc, key=lambda model: auc[model][place]) for place in (0, -1))
    title = f"Best with {labels[0]} labels per person: {few}; with {labels[-1]}: {many}"
    if few == many:
        title = f"With {labels[0]} and with {labels[-1]} labels per person, best is: {few}"
    panel = Panel(
        {model: (labels, 100 * np.array(means)) for model, means in auc.items()},
        title,
        "labels per person (log scale)",
        "AUC on held-out labels, per cent",
        log="x",
        ticks=labels,
        spread={model: 100 * np.array(values) for model, values in facts["deviation"].items()},
    )
    return draw_panels([panel], (8, 5))
