"""The picture: one panel per benchmark, each titled with what one should look for."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from likeminds.plots.figures import BLUE, GREEN, GREY, ORANGE, as_png, new_figure
from likeminds.plots.figures import VERMILION as RED


def write_picture(results: dict[str, Any], path: Path) -> str | None:
    """Draw what there is; return a sentence where nothing can be drawn."""
    if find_spec("matplotlib") is None:
        return "The picture is left out: matplotlib is not installed."
    panels = [(draw, results[name]) for name, draw in PANELS if name in results]
    n_rows = -(-len(panels) // 2)
    heights = [max(4.2 * n_rows, 0.1), 1.2 + 0.24 * len(_measured(results))]
    figure = new_figure(13, sum(heights), shown=False)
    figure.get_layout_engine().set(h_pad=0.15, w_pad=0.15)
    # The sentences beside the goals are long: a part of their own keeps the panels aligned.
    above, below = figure.subfigures(2, 1, height_ratios=heights)
    for place, (draw, data) in enumerate(panels):
        draw(above.add_subplot(n_rows, 2, place + 1), data)
    _goals(below.add_subplot(), results)
    for axis in [*above.axes, *below.axes]:
        axis.spines[["top", "right"]].set_visible(False)
        axis.title.set_fontsize(11)
    path.write_bytes(as_png(figure, dpi=110))
    return None


def _floor(axis: Any, result: dict[str, Any]) -> None:
    parts = result["series"]["over_floor"]
    names = ["whole", "statistics", "solve"]
    axis.barh(names, [parts[name] for name in names], color=[BLUE, GREEN, ORANGE])
    axis.axvline(1, color="black")
    axis.axvline(3, color=RED, linestyle="--")
    axis.text(1, 2.65, " the floor", ha="left")
    axis.text(3, 2.65, " goal", color=RED, ha="left")
    axis.set_xlim(0, max(3.6, 1.15 * parts["whole"]))
    axis.set_ylim(2.8, -0.6)
    axis.set_xlabel("time / one pass of X'X over the rows")
    axis.set_title("Rows to solution: the whole should end left of the goal")


def _leads(axis: Any, result: dict[str, Any]) -> None:
    series = result["series"]
    ways = {
        "factored": ("through the data, factored", BLUE, "o"),
        "rows": ("through the data, rows in memory", GREEN, "s"),
        "paper": ("with the statistics", ORANGE, "^"),
    }
    for key, (label, colour, marker) in ways.items():
        values = [float("nan") if v is None else v for v in series["leads"][key]]
        axis.plot(values, marker=marker, color=colour, label=label)
    axis.axhline(300, color="black", linestyle="--", linewidth=1, label="goal, through the data")
    axis.axhline(50, color=ORANGE, linestyle="--", linewidth=1, label="goal, with the statistics")
    axis.set_yscale("log")
    labels = [", ".join(f"{value:g}" for value in setting) for setting in series["settings"]]
    axis.set_xticks(range(len(labels)), labels, fontsize=8, rotation=12)
    axis.set_xlabel("lambda1, lambda2, lambda3 (strong to weak)")
    axis.set_ylabel("times sooner")
    axis.set_ylim(10, 40_000)
    axis.legend(fontsize=8, ncols=2, loc="upper left")
    axis.set_title("Lead over the algorithm as printed: medians should be above the goals")


def _table2(axis: Any, result: dict[str, Any]) -> None:
    series = result["series"]
    styles = {"pairs": (RED, "o"), "rows": (ORANGE, "s"), "statistics": (BLUE, "^")}
    for way, (colour, marker) in styles.items():
        values = series["gradient"][way]
        axis.plot(series["shares"], values, color=colour, marker=marker, label=way)
    axis.set_yscale("log")
    axis.set_xlabel("share of the samples (%)")
    axis.set_ylabel("seconds per gradient")
    axis.legend(fontsize=8)
    axis.set_title("One gradient: the statistics should stay flat, pairs and rows grow")


def _growth(axis: Any, result: dict[str, Any]) -> None:
    series = result["series"]
    places = range(len(series["sizes"]))
    shift = 0.2
    left, right = [p - shift for p in places], [p + shift for p in places]
    axis.bar(left, series["statistics"], 2 * shift, color=GREEN, label="statistics")
    axis.bar(right, series["solve"], 2 * shift, color=ORANGE, label="solve")
    axis.axhline(1, color="black", linewidth=1)
    axis.set_yscale("log")
    axis.set_xticks(list(places), series["sizes"], fontsize=8)
    axis.set_xlabel("what is changed")
    axis.set_ylabel("time / time at the base size")
    axis.legend(fontsize=8)
    axis.set_title("Growth: ten times the labels should leave the solver at 1")


def _peers(axis: Any, result: dict[str, Any]) -> None:
    for name, peer in result["series"].items():
        ours = name.endswith(("Ranker", "RankerCV"))
        style = {"color": BLUE, "marker": "o"} if ours else {"color": ORANGE, "marker": "s"}
        # Ours stand close together: one name to the left, the other to the right of its mark.
        side = "left" if name.endswith("CV") else "right"
        offset = (8 if side == "left" else -8, 3) if ours else (0, -17)
        axis.scatter(peer["seconds"], peer["auc"], s=60, **style)
        axis.annotate(
            name,
            (peer["seconds"], peer["auc"]),
            offset,
            textcoords="offset points",
            ha=side if ours else "center",
            fontsize=8,
        )
    axis.set_xscale("log")
    axis.margins(x=0.3, y=0.2)
    axis.set_xlabel("seconds to fit and score")
    axis.set_ylabel("mean AUC of the households held out")
    axis.set_title("Peers: up is more accurate, left is faster")


def _measured(results: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    """Return the goals that were measured, with the sentences beside them."""
    return [
        (f"{name}: {goal['what']}", goal)
        for name, result in results.items()
        for goal in result["goals"]
        if goal["measured"]
    ]


def _goals(axis: Any, results: dict[str, Any]) -> None:
    goals = _measured(results)
    margins = [
        goal["bound"] / goal["measured"]
        if goal["direction"] == "at most"
        else goal["measured"] / goal["bound"]
        for _, goal in goals
    ]
    colours = {True: BLUE, False: RED, None: GREY}
    axis.barh(
        [label for label, _ in goals], margins, color=[colours[goal["met"]] for _, goal in goals]
    )
    axis.axvline(1, color="black")
    axis.set_xscale("log")
    ticks = [0.2, 0.5, 1, 2, 5, 10, 20]
    axis.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
    axis.set_xticks([], minor=True)
    axis.set_ylim(len(goals) - 0.4, -0.6)
    axis.tick_params(axis="y", labelsize=9)
    axis.set_xlabel("how many times better than the goal")
    axis.set_title("Goals: red bars, left of the line, are missed")


def _tuning(axis: Any, result: dict[str, Any]) -> None:
    ratios = {n: v for n, v in result["series"]["ratios"].items() if n.startswith("tuned")}
    axis.barh(["halving\n(default)", "all candidates\non all folds"], ratios.values(), color=BLUE)
    axis.axvline(30, color=RED, linestyle="--")
    axis.text(30, 1.55, " goal, for the default", color=RED)
    axis.set_ylim(1.8, -0.6)
    axis.set_xlabel("time / one fit with default penalties")
    axis.set_title(
        f"Tuning over {result['series']['n_candidates']} candidates: the default should be "
        "left of the goal"
    )


PANELS = [
    ("floor", _floor),
    ("floor", _leads),
    ("table2", _table2),
    ("growth", _growth),
    ("tuning", _tuning),
    ("peers", _peers),
]
