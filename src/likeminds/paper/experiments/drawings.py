"""Figures 1 and 2, drawn from real fits: the decomposition, and the graph of the AUC."""

import warnings
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from likeminds._util.array_types import Bool, Float, Index
from likeminds.datasets import Simulation, SketchShoes, make_sketch_shoes
from likeminds.laplacian import explicit_laplacian
from likeminds.metrics.by_user import auc_by_user
from likeminds.paper.experiments.fig3 import has_personal
from likeminds.paper.experiments.report_page import ReportPart, make_part
from likeminds.paper.experiments.setting import ExperimentSetting
from likeminds.paper.experiments.trials import simulation_parameters
from likeminds.plots.figures import COLOURS, DIVERGING, new_figure
from likeminds.rankers.three_level import ThreeLevelRanker

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# The penalty is lowered until this share of the users has a personal part.
_PERSONAL = tuple(float(alpha) for alpha in np.geomspace(3.0, 0.003, 25))
_SHARE_PERSONAL = 0.1
# The graph of the AUC is drawn for one of so many users whose labels follow the trait best.
_FOLLOWING = 10
_SHOWN_POSITIVE, _SHOWN_NEGATIVE = 4, 5
_ATTRIBUTE, _TRAIT = "open", "toe_open"


def run(setting: ExperimentSetting) -> ReportPart:
    """Draw both, from a fit to the simulation and from one to sketch shoes."""
    drawn = setting.simulation()
    ranker = _fit_drawn(drawn, simulation_parameters(setting, drawn.annotations))
    shoes = make_sketch_shoes(100, 20, 40, attributes=[_ATTRIBUTE], random_state=setting.seed)
    graph = _graph(shoes)
    facts = {
        "n_personal": _n_personal(ranker),
        "alpha_personal": ranker.alpha_personal,
        "n_edges": int(graph.right.size),
        "auc": float(graph.right.mean()),
    }
    figures = {"fig1": _decomposition(ranker), "fig2": _auc_graph(graph)}
    return make_part("drawings", setting, facts, figures, share=_SHARE_PERSONAL)


def _n_personal(ranker: ThreeLevelRanker) -> int:
    return int(has_personal(ranker.personal_).sum())


def _fit_drawn(drawn: Simulation, parameters: dict[str, Any]) -> ThreeLevelRanker:
    """Fit with a penalty at which a few users have a personal part."""
    for alpha in _PERSONAL:
        ranker = ThreeLevelRanker(**(parameters | {"alpha_personal": alpha}))
        ranker.fit(drawn.annotations)
        if _n_personal(ranker) >= _SHARE_PERSONAL * drawn.annotations.n_users:
            break
    return ranker


def _decomposition(ranker: ThreeLevelRanker) -> "Figure":
    parts = {
        "W\nall weights": ranker.coef_,
        "= θ + mean of G\nconsensus: all the same": np.broadcast_to(
            ranker.consensus_, ranker.coef_.shape
        ),
        "+ G - mean of G\ngroup: a school's": ranker.group_,
        f"+ P\npersonal: {_n_personal(ranker)} people's": ranker.personal_,
    }
    figure = new_figure(11, 4.3, shown=False)
    sides = figure.subplots(1, 4, sharey=True)
    limit = float(np.quantile(np.abs(ranker.coef_), 0.995))
    # The personal level is small, and invisible in the colours of the others.
    faint = limit / (float(np.abs(ranker.personal_).max()) or limit)
    for axes, (title, weights) in zip(sides, parts.items(), strict=True):
        times = faint if weights is ranker.personal_ else 1.0
        image = axes.imshow(
            times * weights.T, cmap=DIVERGING, vmin=-limit, vmax=limit, aspect="auto"
        )
        enlarged = f" (colours x {times:.0f})" if times >= 1.5 else ""
        axes.set_title(f"{title}{enlarged}", fontsize="medium")
        axes.set_xlabel("person")
    sides[0].set_ylabel("feature")
    figure.suptitle("Weights W = consensus + group + personal, with centred levels")
    figure.colorbar(image, ax=sides, shrink=0.85, label="weight")
    return figure


@dataclass(frozen=True, eq=False)
class _Graph:
    """Some of one user's pictures and their scores, best first: positive ones, negative ones."""

    pictures: tuple[list[Any], list[Any]]
    scores: tuple[Float, Float]

    @property
    def right(self) -> Bool:
        """Which pairs are ranked the right way."""
        return self.scores[0][:, np.newaxis] > self.scores[1]

    @property
    def affinity(self) -> Float:
        """The weights of the edges between all pictures: positive ones first."""
        laplacian = explicit_laplacian(np.repeat([True, False], self.right.shape))
        return np.asarray(np.diag(np.diag(laplacian)) - laplacian)


def _graph(shoes: SketchShoes) -> _Graph:
    """Choose pictures labelled by an open toe, and a user whose ranking of them has errors."""
    annotations = shoes.annotations
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ranker = ThreeLevelRanker(alpha_group=20.0).fit(annotations)
    shown = np.array([int(str(item).split("-")[1]) for item in annotations.items])
    trait = shoes.traits[shown, shoes.trait_names.index(_TRAIT)]
    visible = auc_by_user(annotations.labels, trait, annotations.users)
    best = visible.users[np.argsort(-np.nan_to_num(visible.values))[:_FOLLOWING]]
    follows = ((trait > 0) == annotations.labels) & np.isin(annotations.users, best)
    rows, pictures = annotations[follows], shoes.pictures[shown[follows]]
    own = auc_by_user(rows.labels, ranker.decision_function(rows), rows.users)
    chosen = rows.users == own.users[np.nanargmin(own.values)]
    rows, pictures = rows[chosen], pictures[chosen]
    scores = ranker.decision_function(rows)
    positive, negative = (
        _spread(np.flatnonzero(rows.labels == label), scores, number)
        for label, number in ((1, _SHOWN_POSITIVE), (0, _SHOWN_NEGATIVE))
    )
    return _Graph(
        (list(pictures[positive]), list(pictures[negative])), (scores[positive], scores[negative])
    )


def _spread(rows: Index, scores: Float, number: int) -> Index:
    """Return some of the rows, from the highest score to the lowest."""
    ordered = rows[np.argsort(-scores[rows])]
    places = np.linspace(0, len(ordered) - 1, min(number, len(ordered))).round()
    return np.asarray(ordered[places.astype(int)])


def _auc_graph(graph: _Graph) -> "Figure":
    figure = new_figure(12, 6, shown=False)
    edges, matrix = figure.subplots(1, 2, width_ratios=[3, 2])
    _draw_edges(edges, graph)
    _draw_affinity(matrix, graph)
    figure.suptitle(
        f"{graph.right.sum()} of {graph.right.size} pairs are in the right order: "
        f"AUC {graph.right.mean():.2f}"
    )
    return figure


def _draw_edges(axes: "Axes", graph: _Graph) -> None:
    places = [np.linspace(1, 0, len(pictures)) for pictures in graph.pictures]
    for (p, q), right in np.ndenumerate(graph.right):
        style: dict[str, Any] = (
            {"color": COLOURS[0], "linestyle": "-", "linewidth": 1.1}
            if right
            else {"color": COLOURS[1], "linestyle": "--", "linewidth": 1.8}
        )
        axes.plot([0.09, 0.91], [places[0][p], places[1][q]], zorder=1, **style)
    half = 0.085
    for x, (negation, sign) in enumerate((("", "+"), ("not ", "-"))):
        axes.text(x, 1.13, f"{negation}called “{_ATTRIBUTE}”", ha="center", fontweight="bold")
        shown = zip(graph.pictures[x], graph.scores[x], places[x], strict=True)
        for number, (picture, score, y) in enumerate(shown, start=1):
            extent = (x - half, x + half, y - half, y + half)
            axes.imshow(picture, extent=extent, aspect="auto", zorder=2)
            side, align = ((-0.11, "right"), (1.11, "left"))[x]
            axes.text(side, y, f"{sign}{number}\n{score:.2f}", ha=align, va="center")
    axes.set(xlim=(-0.3, 1.3), ylim=(-0.22, 1.2))
    axes.axis("off")
    legend = "solid: the positive picture has the higher score, dashed: the lower"
    axes.text(0.5, -0.18, legend, ha="center", fontsize="small")


def _draw_affinity(axes: "Axes", graph: _Graph) -> None:
    """Draw the matrix; rows and columns have the numbers of the pictures."""
    affinity = graph.affinity
    n_positive, n_negative = graph.right.shape
    names = [f"+{i}" for i in range(1, n_positive + 1)] + [
        f"-{i}" for i in range(1, n_negative + 1)
    ]
    axes.imshow(affinity, cmap="Blues", vmin=0.0, vmax=1.6 * affinity.max())
    for (i, j), weight in np.ndenumerate(affinity):
        axes.text(j, i, f"{weight:.2g}".lstrip("0") or "0", ha="center", va="center", fontsize=8)
    axes.set_xticks(range(len(names)), names)
    axes.set_yticks(range(len(names)), names)
    axes.set(xlabel=f"picture, + called and - not called “{_ATTRIBUTE}”", ylabel="picture")
    title = f"Affinity matrix: 1 / ({n_positive} x {n_negative}) between unlike labels, else 0"
    axes.set_title(title, fontsize="medium")
