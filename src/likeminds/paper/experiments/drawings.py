"""Figures 1 and 2, drawn from real fits: the decomposition, and the graph behind the AUC."""

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from likeminds._util.array_types import Float
from likeminds.datasets import Simulation, SketchShoes, make_sketch_shoes
from likeminds.metrics.by_user import auc_by_user
from likeminds.paper.experiments.report_page import ReportPart, ReportPicture
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.tuned_penalties import simulation_parameters
from likeminds.plots.figures import COLOURS, DIVERGING, as_png, new_figure
from likeminds.rankers.three_level import ThreeLevelRanker

# Lowered until this share of the people has a personal part, so that there is one to see.
_PERSONAL = tuple(float(alpha) for alpha in np.geomspace(3.0, 0.003, 25))
_SHARE_PERSONAL = 0.1
# One person's pictures in the graph of the AUC.
# Of so many who are closest to what all mean.
_USUAL = 10
_SHOWN_POSITIVE, _SHOWN_NEGATIVE = 4, 5
_ATTRIBUTE = "open"


def run(setting: ExperimentSetting) -> ReportPart:
    """Draw both, from a fit to the simulation and from one to sketch shoes."""
    drawn = setting.simulation()
    ranker = _fit_drawn(drawn, simulation_parameters(setting, drawn.annotations))
    shoes = make_sketch_shoes(100, 20, 40, attributes=[_ATTRIBUTE], random_state=setting.seed)
    graph = _graph(shoes)
    personal = int((np.abs(ranker.personal_).sum(axis=1) > 0).sum())
    facts = {
        "n_personal": personal,
        "alpha_personal": ranker.alpha_personal,
        "n_edges": int(graph.right.size),
        "auc": float(graph.right.mean()),
    }
    return ReportPart(
        key="drawings",
        title="Figures 1 and 2: the decomposition, and the graph of the AUC",
        found=(
            f"Everybody's weights are the consensus, plus what their school adds, plus, for "
            f"{personal} of {len(ranker.coef_)} people here, something of their own; and a "
            "person's AUC is the share of edges, between what they call positive and what they "
            f"call negative, that point the right way: {facts['auc']:.2f} in the drawing."
        ),
        pieces=[_decomposition(ranker), _auc_graph(graph)],
        facts=facts,
    )


def _fit_drawn(drawn: Simulation, parameters: dict[str, Any]) -> ThreeLevelRanker:
    """Fit with a penalty on the personal level that leaves a few people some of it."""
    wanted = _SHARE_PERSONAL * drawn.annotations.n_users
    for alpha in _PERSONAL:
        ranker = ThreeLevelRanker(**(parameters | {"alpha_personal": alpha}))
        ranker.fit(drawn.annotations)
        if (np.abs(ranker.personal_).sum(axis=1) > 0).sum() >= wanted:
            break
    return ranker


def _decomposition(ranker: ThreeLevelRanker) -> ReportPicture:
    n_personal = int((np.abs(ranker.personal_).sum(axis=1) > 0).sum())
    everybody = np.broadcast_to(ranker.consensus_, ranker.coef_.shape)
    parts = [
        ("W", "everybody's weights", ranker.coef_),
        ("= θ", "consensus: all the same", everybody),
        ("+ G", "group: a school's", ranker.group_),
        ("+ P", f"personal: {n_personal} people's", ranker.personal_),
    ]
    figure = new_figure(11, 4.3, shown=False)
    sides = figure.subplots(1, 4, sharey=True)
    limit = float(np.quantile(np.abs(ranker.coef_), 0.995))
    # What is the person's own is small: in the colours of the others it would not be seen.
    faint = limit / (float(np.abs(ranker.personal_).max()) or limit)
    for axes, (sign, what, weights) in zip(sides, parts, strict=True):
        times = faint if weights is ranker.personal_ else 1.0
        shown = times * weights.T
        image = axes.imshow(shown, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto")
        enlarged = f" (colours x {times:.0f})" if times >= 1.5 else ""
        axes.set_title(f"{sign}\n{what}{enlarged}", fontsize="medium")
        axes.set_xlabel("person")
    sides[0].set_ylabel("feature")
    figure.suptitle("Everybody's weights: what all share, what a school adds, what is one's own")
    figure.colorbar(image, ax=sides, shrink=0.85, label="weight")
    return ReportPicture(
        "fig1",
        as_png(figure),
        "Figure 1, from a fit to the simulation: weights are the sum of three levels. The penalty "
        f"on the personal level is {ranker.alpha_personal:.2g}, low enough for it to be seen.",
    )


@dataclass(frozen=True, eq=False)
class _Graph:
    """Some of one person's pictures, best first, and which pairs are ranked the right way."""

    positive: list[Any]
    negative: list[Any]
    positive_scores: Float
    negative_scores: Float

    @property
    def right(self) -> Any:
        return self.positive_scores[:, np.newaxis] > self.negative_scores


def _graph(shoes: SketchShoes) -> _Graph:
    """Choose somebody who means by the attribute what most do, but not always."""
    said = shoes.annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = ThreeLevelRanker(alpha_group=20.0).fit(said)
    shared = auc_by_user(said.labels, ranker.decision_function(said.X), said.users)
    own = auc_by_user(said.labels, ranker.decision_function(said), said.users)
    usual = np.argsort(-shared.values)[:_USUAL]
    rows = said.of_user(own.users[usual[np.argmin(own.values[usual])]])
    scores = ranker.decision_function(rows)
    chosen = [
        _spread(np.flatnonzero(rows.labels == label), scores, number)
        for label, number in ((1, _SHOWN_POSITIVE), (0, _SHOWN_NEGATIVE))
    ]
    numbers = [[int(str(rows.items[row]).split("-")[1]) for row in some] for some in chosen]
    pictures = [[shoes.pictures[number] for number in some] for some in numbers]
    return _Graph(pictures[0], pictures[1], scores[chosen[0]], scores[chosen[1]])


def _spread(rows: Any, scores: Float, number: int) -> Any:
    """Return some of the rows, from the highest score to the lowest."""
    ordered = rows[np.argsort(-scores[rows])]
    return ordered[np.linspace(0, len(ordered) - 1, min(number, len(ordered))).round().astype(int)]


def _auc_graph(graph: _Graph) -> ReportPicture:
    figure = new_figure(8, 6.2, shown=False)
    axes = figure.subplots()
    sides = [
        (0.0, graph.positive, graph.positive_scores, f"called “{_ATTRIBUTE}”"),
        (1.0, graph.negative, graph.negative_scores, f"not called “{_ATTRIBUTE}”"),
    ]
    places = [np.linspace(1, 0, len(pictures)) for _, pictures, _, _ in sides]
    for p, upper in enumerate(places[0]):
        for q, lower in enumerate(places[1]):
            right = graph.right[p, q]
            axes.plot(
                [0.09, 0.91],
                [upper, lower],
                color=COLOURS[0] if right else COLOURS[1],
                linestyle="-" if right else "--",
                linewidth=1.1 if right else 1.8,
                zorder=1,
            )
    for (x, pictures, scores, title), heights in zip(sides, places, strict=True):
        axes.text(x, 1.13, title, ha="center", fontweight="bold")
        half = 0.085
        for picture, score, y in zip(pictures, scores, heights, strict=True):
            extent = (x - half, x + half, y - half, y + half)
            axes.imshow(picture, extent=extent, aspect="auto", zorder=2)
            side = -0.11 if x == 0 else 1.11
            axes.text(side, y, f"{score:+.2f}", ha="right" if x == 0 else "left", va="center")
    axes.set(xlim=(-0.3, 1.3), ylim=(-0.22, 1.2))
    axes.axis("off")
    weight = f"{len(graph.positive)} x {len(graph.negative)}"
    axes.text(
        0.5,
        -0.18,
        f"edges weigh 1 / ({weight}); solid: ranked the right way, dashed: the wrong way",
        ha="center",
        fontsize="small",
    )
    figure.suptitle(
        f"{graph.right.sum()} of {graph.right.size} edges point the right way: "
        f"AUC {graph.right.mean():.2f}"
    )
    return ReportPicture(
        "fig2",
        as_png(figure),
        "Figure 2, from a fit to sketch shoes: some of one person's pictures, with the scores the "
        "person's ranking gives them. An edge joins each positive with each negative picture; the "
        "loss sums over edges, and its Laplacian makes that as cheap as a sum over pictures.",
    )
