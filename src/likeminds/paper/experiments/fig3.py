"""Figure 3: the true weights and those learned, and recovery of the structure by labels.

The second picture is not in the paper: when groups and personal columns are recovered.
"""

from typing import Any

import numpy as np
from sklearn.cluster import KMeans
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Float, Index
from likeminds.comparing.runs import fit_to_the_end
from likeminds.datasets import Simulation, make_simulation
from likeminds.datasets.recovery import CoClusterRecovery, cocluster_recovery, deviations
from likeminds.paper.experiments.report_page import (
    Facts,
    Panel,
    ReportPart,
    ReportPicture,
    draw_panels,
)
from likeminds.paper.experiments.setting import ExperimentSetting, Job
from likeminds.paper.experiments.structure_recovery import recover_structure, structure_table
from likeminds.paper.experiments.trials import (
    LEARNED,
    OURS,
    learned_prior,
    loss_of_learned_prior,
    paper_search,
    simulation_parameters,
)
from likeminds.plots.figures import new_figure
from likeminds.plots.recovered_structure import cocluster_recovery as cocluster_recovery_picture
from likeminds.rankers.baselines import OnePerUser
from likeminds.rankers.search import RankerCV
from likeminds.rankers.three_level import ThreeLevelRanker

PER_USER = "One model per person"
RANKERS = (OURS, LEARNED, PER_USER)
# As rare as in the paper, but enough for the folds of the search.
_POSITIVE, _LEAST_POSITIVE = 0.02, 4
_STARTS = 20


def run(setting: ExperimentSetting) -> ReportPart:
    """Fit the paper's model to the simulation, and follow recovery by labels per person."""
    drawn = setting.simulation()
    parameters = simulation_parameters(setting, drawn.annotations)
    ranker = ThreeLevelRanker(**parameters).fit(drawn.annotations)
    found = cocluster_recovery(drawn, ranker.coef_)
    facts: dict[str, Any] = {
        "cosine": found.cosine,
        "groups": found.users_index,
        "features": found.features_index,
        "personal_found": int((np.abs(ranker.personal_).sum(axis=1) > 0).sum()),
        "personal_true": int((np.abs(drawn.personal).sum(axis=1) > 0).sum()),
        "recovery": recover(setting),
        "structure": recover_structure(setting, parameters),
    }
    return ReportPart(
        key="fig3",
        title="Figure 3: is the structure found again?",
        found=_sentence(facts),
        pieces=[
            _heat_maps(found),
            structure_table(facts["structure"]),
            _recovery_picture(facts["recovery"]),
            _how(setting),
        ],
        facts=facts,
    )


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
    scores = iter(setting.store.all(jobs))
    facts: dict[str, Any] = {}
    for ranker in RANKERS:
        by_labels = [
            [next(scores) for _ in range(scale.recovery_repeats)] for _ in scale.recovery_labels
        ]
        facts[ranker] = {"labels": list(scale.recovery_labels)} | {
            kind: [float(np.mean([score[kind] for score in draws])) for draws in by_labels]
            for kind in ("groups", "personal", "cosine")
        }
    return facts


def score_recovery(
    *, ranker: str, n_users: int, n_labels: int, n_features: int, n_folds: int, seed: int
) -> dict[str, float]:
    """Fit one ranker to one draw, and compare its structure with the truth (a `Job`)."""
    n_positive = max(_LEAST_POSITIVE, round(_POSITIVE * n_labels))
    drawn = make_simulation(n_users, n_labels, n_features, n_positive, random_state=seed)
    fitted = _rankers(drawn, n_folds)[ranker]
    fit_to_the_end(fitted, drawn.annotations)
    has_personal = (
        np.linalg.norm(fitted.personal_, axis=1) > 0
        if ranker == OURS
        else split_by_distance(fitted.coef_, len(np.unique(drawn.school)))
    )
    true = np.abs(drawn.personal).sum(axis=1) > 0
    found = cocluster_recovery(drawn, fitted.coef_)
    return {
        "groups": found.users_index,
        "personal": float(adjusted_rand_score(true, has_personal)),
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
    """Divide people in two by their distance from the leading directions."""
    deviation = deviations(coef)
    _, _, leading = np.linalg.svd(deviation, full_matrices=False)
    leading = leading[: min(n_schools, len(leading))]
    rest = np.linalg.norm(deviation - deviation @ leading.T @ leading, axis=1, keepdims=True)
    return np.asarray(KMeans(2, n_init=_STARTS, random_state=0).fit_predict(rest))


def _sentence(facts: Facts) -> str:
    recovery = facts["recovery"][OURS]
    few, many = recovery["labels"][0], recovery["labels"][-1]
    per_user, personal = facts["recovery"][PER_USER]["groups"][-1], recovery["personal"][-1]
    return (
        f"On the data of Table 1, true and learned weights have a cosine of "
        f"{facts['cosine']:.2f} on average, and the schools are found again with an adjusted Rand "
        f"index of {facts['groups']:.2f} (the features of each school: {facts['features']:.2f}). "
        f"With {few} labels per person the index is "
        f"{recovery['groups'][0]:.2f}, with {many:,} it is {recovery['groups'][-1]:.2f} (one model "
        f"per person, clustered: {per_user:.2f}). Who has a personal part is "
        f"{'found' if personal > 0.5 else 'not found'} by the personal level: index "
        f"{personal:.2f} with {many:,} labels."
    )


def _heat_maps(found: CoClusterRecovery) -> ReportPicture:
    """Show the weights as in the paper, then without their mean."""
    return ReportPicture(
        "fig3",
        cocluster_recovery_picture(found, figure=new_figure(9.5, 6.8, shown=False)),
        "True and learned weights, each person's scaled to unit length, on one colour scale. "
        "Below, the mean over people is removed. What is left are schools (blocks) and personal "
        "parts (columns).",
    )


def _recovery_picture(facts: Facts) -> ReportPicture:
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
    caption = "Recovery of the groups and of the people with a personal part, by labels per person."
    return draw_panels("recovery", caption, panels, (10, 4.2), share_y=True)


def _how(setting: ExperimentSetting) -> str:
    scale = setting.scale
    most = scale.simulation.n_users * max(scale.recovery_labels)
    return (
        "Heat maps: the data of Table 1, all rows, with the penalties found there. Recovery: "
        f"{scale.simulation.n_users} people, {scale.simulation.n_features} features, 2 % of the "
        f"labels positive (at least 4), {scale.recovery_repeats} draws for each number of labels, "
        "penalties tuned on each draw. Schools are k-means clusters of the directions of all "
        "weights, in the true number. A personal part is P ≠ 0 for the three levels; for the "
        "others, people are divided in two by their distance from the leading directions."
        f"{loss_of_learned_prior(most)}"
    )
