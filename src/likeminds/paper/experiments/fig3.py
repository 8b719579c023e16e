"""Figure 3: the true weights and those learned, and recovery of the structure by labels.

In addition to the paper: the recovery of groups and personal columns by labels and parameters.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Bool, Float, Index
from likeminds.comparing.runs import Job, fit_to_the_end
from likeminds.datasets import Simulation, make_simulation
from likeminds.datasets.recovery import cocluster_recovery, deviations
from likeminds.losses.statistics import Statistics
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    draw_panels,
    make_part,
)
from likeminds.paper.experiments.setting import SCALES, ExperimentSetting
from likeminds.paper.experiments.trials import (
    FINE_PATH,
    LEARNED,
    OURS,
    learned_prior,
    paper_search,
    simulation_parameters,
)
from likeminds.plots.experiments import cocluster_recovery as cocluster_recovery_picture
from likeminds.plots.figures import new_figure
from likeminds.rankers.baselines import OnePerUser
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PER_USER = "One model per person"
RANKERS = (OURS, LEARNED, PER_USER)
# As rare as in the paper, but enough for the folds of the search.
_POSITIVE, _LEAST_POSITIVE = 0.02, 4
_STARTS = 20
# Parameters at which the structure of the data of Table 1 is compared.
CHOSEN, TRUE_KAPPA, BEST = "cross-validated", "true κ, else cross-validated", "best λ3"
FULL_SIZE = "best λ3, the paper's size"
_TRUE_GROUPS = 5
# Values of lambda2 on which the path of lambda3 is followed, besides the chosen one.
_ALPHA_GROUP = (1.0, 3.0)


def run(setting: ExperimentSetting) -> ReportPart:
    """Fit the paper's model to the simulation, and measure recovery by labels per user."""
    drawn = setting.simulation()
    parameters = simulation_parameters(setting, drawn.annotations)
    ranker = ThreeLevelRanker(**parameters).fit(drawn.annotations)
    found = cocluster_recovery(drawn, ranker.coef_)
    arguments = {
        "size": list(setting.scale.simulation),
        "seed": setting.seed,
        "n_folds": setting.scale.n_folds,
        "parameters": parameters,
    }
    facts: dict[str, Any] = {
        "cosine": found.cosine,
        "groups": found.users_index,
        "features": found.features_index,
        "personal_found": int(has_personal(ranker.personal_).sum()),
        "personal_true": int(has_personal(drawn.personal).sum()),
        "recovery": recover(setting),
        "structure": setting.store.one(Job("structure", score_structure, arguments)),
    }
    return make_part(
        "fig3",
        setting,
        facts,
        {
            # The weights as in the paper, then without their mean.
            "fig3": cocluster_recovery_picture(found, figure=new_figure(9.5, 6.8, shown=False)),
            "recovery": _recovery_picture(facts["recovery"]),
        },
        # At the paper's size, unless nothing is tuned.
        best=facts["structure"].get(FULL_SIZE, facts["structure"][BEST]),
    )


def has_personal(personal: Float) -> Bool:
    """Return which users have a personal part."""
    return np.asarray(personal.any(axis=1))


def recover(setting: ExperimentSetting) -> dict[str, Any]:
    """Return adjusted Rand indices by ranker and labels per person, means over draws."""
    scale = setting.scale
    sizes = {
        "n_users": scale.simulation.n_users,
        "n_features": scale.simulation.n_features,
        "n_folds": scale.n_folds,
    }
    jobs = [
        Job(
            f"recovery-{n}-{draw}",
            score_recovery,
            {"ranker": ranker, "n_labels": n, "seed": setting.seed + draw, **sizes},
        )
        for ranker in RANKERS
        for n in scale.recovery_labels
        for draw in range(scale.recovery_repeats)
    ]
    kinds, labels = ("groups", "personal", "cosine"), list(scale.recovery_labels)
    scores = [[score[kind] for kind in kinds] for score in setting.store.all(jobs)]
    means = np.reshape(scores, (len(RANKERS), len(labels), -1, len(kinds))).mean(axis=2)
    return {
        ranker: {"labels": labels, **dict(zip(kinds, by_labels.T.tolist(), strict=True))}
        for ranker, by_labels in zip(RANKERS, means, strict=True)
    }


def score_recovery(
    *, ranker: str, n_users: int, n_labels: int, n_features: int, n_folds: int, seed: int
) -> dict[str, float]:
    """Fit one ranker to one draw, and compare its structure with the truth (a `Job`)."""
    n_positive = max(_LEAST_POSITIVE, round(_POSITIVE * n_labels))
    drawn = make_simulation(n_users, n_labels, n_features, n_positive, random_state=seed)
    fitted = _rankers(drawn, n_folds)[ranker]
    fit_to_the_end(fitted, drawn.annotations)
    flagged = (
        has_personal(fitted.personal_)
        if ranker == OURS
        else split_by_distance(fitted.coef_, len(np.unique(drawn.school)))
    )
    return _indices(drawn, fitted.coef_, flagged)


def _indices(drawn: Simulation, coef: Float, flagged: Bool | Index) -> dict[str, float]:
    found = cocluster_recovery(drawn, coef)
    return {
        "groups": found.users_index,
        "personal": float(adjusted_rand_score(has_personal(drawn.personal), flagged)),
        "cosine": found.cosine,
    }


def _rankers(drawn: Simulation, n_folds: int) -> dict[str, Any]:
    learned = learned_prior(len(drawn.annotations))
    if not n_folds:
        return {OURS: ThreeLevelRanker(), LEARNED: learned, PER_USER: OnePerUser()}
    return {
        OURS: paper_search(drawn.annotations, n_folds),
        LEARNED: learned,
        PER_USER: RankerCV(OnePerUser(), n_folds=n_folds),
    }


def split_by_distance(coef: Float, n_schools: int) -> Index:
    """Divide users in two by their distance from the leading directions."""
    deviation = deviations(coef)
    _, _, leading = np.linalg.svd(deviation, full_matrices=False)
    leading = leading[: min(n_schools, len(leading))]
    rest = np.linalg.norm(deviation - deviation @ leading.T @ leading, axis=1, keepdims=True)
    return np.asarray(KMeans(2, n_init=_STARTS, random_state=0).fit_predict(rest))


def score_structure(
    *, size: list[int], seed: int, n_folds: int, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Fit the paper's model with several parameters, and compare it with the truth (a `Job`)."""
    drawn = make_simulation(*size, random_state=seed)
    statistics = Statistics.from_annotations(drawn.annotations)
    at_true = dict(parameters) | {"n_groups": _TRUE_GROUPS}
    if n_folds:
        search = paper_search(drawn.annotations, n_folds, seed, n_groups=[_TRUE_GROUPS])
        at_true = search.fit(drawn.annotations).best_params_
    found = {
        CHOSEN: _compare(drawn, statistics, parameters),
        TRUE_KAPPA: _compare(drawn, statistics, at_true),
    }
    found[BEST] = _best(drawn, statistics, at_true)
    if n_folds:  # the path is cheap: it is followed at the paper's size, too
        full = make_simulation(*SCALES["paper"].simulation, random_state=seed)
        found[FULL_SIZE] = _best(full, Statistics.from_annotations(full.annotations), at_true)
    return found


def _best(
    drawn: Simulation, statistics: Statistics, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the comparison at the penalties with the best recovery of personal parts."""
    chosen = parameters.get("alpha_group")
    path = [
        _compare(
            drawn, statistics, {**parameters, "alpha_group": group, "alpha_personal": personal}
        )
        for group in (*_ALPHA_GROUP, *([] if chosen is None else [chosen]))
        for personal in FINE_PATH
    ]
    return max(path, key=lambda each: float(each["personal"]))


def _compare(
    drawn: Simulation, statistics: Statistics, parameters: Mapping[str, Any]
) -> dict[str, Any]:
    ranker = ThreeLevelRanker(**parameters)
    ranker._fit_statistics(statistics)
    flagged, true = has_personal(ranker.personal_), has_personal(drawn.personal)
    found = _indices(drawn, ranker.coef_, flagged)
    return {
        "parameters": dict(parameters),
        "flagged": int(flagged.sum()),
        "right": int((flagged & true).sum()),
        "true": int(true.sum()),
        "personal": found["personal"],
        "groups": found["groups"],
    }


def describe_flagged(found: Facts) -> str:
    """Return the numbers of users with a personal part in a fit, and of correct ones."""
    return (
        f"{found['flagged']} people flagged, {found['right']} of the {found['true']} true (index "
        f"{found['personal']:.2f})"
    )


def _recovery_picture(facts: Facts) -> "Figure":
    titles = {
        "groups": "a) Which school people belong to",
        "personal": "b) Who has a personal part",
    }
    panels = [
        Panel(
            {name: (facts[name]["labels"], facts[name][kind]) for name in RANKERS},
            title,
            "labels per person",
            "adjusted Rand index (1 found, 0 chance)" if kind == "groups" else "",
            log="x",
            ticks=facts[OURS]["labels"],
        )
        for kind, title in titles.items()
    ]
    return draw_panels(panels, (10, 4.2), share_y=True)
