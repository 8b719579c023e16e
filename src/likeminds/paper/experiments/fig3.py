"""Figure 3: the true weights and those learned, and when structure is found again."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from sklearn.metrics import adjusted_rand_score

from likeminds._util.array_types import Float
from likeminds.datasets import Simulation
from likeminds.paper.experiments.rankers import OURS, loss_of_learned_prior
from likeminds.paper.experiments.recovery import ALONE, directions, picture, recover, schools
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.tuned_penalties import simulation_parameters
from likeminds.plots.figures import DIVERGING, as_png, new_figure
from likeminds.rankers.three_level import ThreeLevelRanker


def run(setting: ExperimentSetting) -> ReportPart:
    """Fit the paper's model to the simulation, and follow recovery by labels per person."""
    drawn = setting.simulation()
    parameters = simulation_parameters(setting, drawn.annotations)
    ranker = ThreeLevelRanker(**parameters).fit(drawn.annotations)
    facts: dict[str, Any] = {
        "cosine": float(np.mean(np.sum(directions(ranker.coef_) * directions(drawn.coef), axis=1))),
        "groups": _agreement(drawn, ranker.coef_),
        "personal_found": int((np.abs(ranker.personal_).sum(axis=1) > 0).sum()),
        "personal_true": int((np.abs(drawn.personal).sum(axis=1) > 0).sum()),
        "recovery": recover(setting.scale, setting.store, setting.seed),
    }
    return ReportPart(
        key="fig3",
        title="Figure 3: is the structure found again?",
        found=_sentence(facts),
        pieces=[
            _heat_maps(drawn, ranker.coef_, facts["groups"]),
            picture(facts["recovery"], setting.scale.recovery_labels),
            _how(setting),
        ],
        facts=facts,
    )


def _agreement(drawn: Simulation, coef: Float) -> float:
    return float(adjusted_rand_score(drawn.school, schools(coef, len(np.unique(drawn.school)))))


def _sentence(facts: Mapping[str, Any]) -> str:
    recovery = facts["recovery"][OURS]
    few, many = recovery["labels"][0], recovery["labels"][-1]
    alone = facts["recovery"][ALONE]["groups"][-1]
    personal = recovery["personal"][-1]
    return (
        f"On the data of Table 1, everybody's true and learned weights have a cosine of "
        f"{facts['cosine']:.2f} on average, and the schools are found again with an adjusted Rand "
        f"index of {facts['groups']:.2f}. With {few} labels per person the index is "
        f"{recovery['groups'][0]:.2f}, with {many:,} it is {recovery['groups'][-1]:.2f} (one model "
        f"per person, clustered: {alone:.2f}). Who has a personal part is "
        f"{'found' if personal > 0.5 else 'not found'} by the personal level: index "
        f"{personal:.2f} with {many:,} labels."
    )


def _heat_maps(drawn: Simulation, coef: Float, agreement: float) -> ReportPicture:
    """Show the weights as in the paper, then what is left without everybody's mean."""
    figure = new_figure(9.5, 6.8, shown=False)
    grid = figure.subplots(2, 2, sharex=True, sharey=True)
    for column, (title, weights) in enumerate([("true W", drawn.coef), ("learned W", coef)]):
        unit = directions(weights)
        for axes, rows, what in zip(
            grid[:, column], (unit, unit - unit.mean(axis=0)), ("", ", mean removed"), strict=True
        ):
            limit = float(np.quantile(np.abs(rows), 0.995)) or 1.0
            image = axes.imshow(
                rows.T, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto", origin="upper"
            )
            axes.set_title(f"{title}{what}", loc="left", fontsize="medium")
            figure.colorbar(image, ax=axes, shrink=0.8, label="weight")
    for axes in grid[-1]:
        axes.set_xlabel("person")
    for axes in grid[:, 0]:
        axes.set_ylabel("feature")
    figure.suptitle(
        f"Clusters of the learned weights are the true schools to an adjusted Rand index of "
        f"{agreement:.2f}"
    )
    return ReportPicture(
        "fig3",
        as_png(figure),
        "True and learned weights of everybody, each person's scaled to unit length. Below, the "
        "mean over people is removed: what is left are schools (blocks) and personal parts "
        "(columns).",
    )


def _how(setting: ExperimentSetting) -> str:
    scale = setting.scale
    most = scale.simulation.n_users * max(scale.recovery_labels)
    learned = loss_of_learned_prior(most)
    return (
        "Heat maps: the data of Table 1, all rows, with the penalties found there. Recovery: "
        f"{scale.simulation.n_users} people, {scale.simulation.n_features} features, 2 % of the "
        f"labels positive (at least 4), {scale.recovery_repeats} draws for each number of labels, "
        "penalties tuned on each draw. Schools are k-means clusters of the directions of "
        "everybody's weights, in the true number. A personal part is P ≠ 0 for the three levels; "
        "for the others, people are divided in two by their distance from the leading "
        f"directions.{learned}"
    )
