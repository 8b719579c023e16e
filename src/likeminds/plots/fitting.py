"""Plots of a fit: convergence, cross-validation, accuracy by user, reliability."""

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from scipy.stats import binomtest

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_vector, same_length
from likeminds._util.per_user_arrays import nan_mean
from likeminds._util.text_format import counted
from likeminds.diagnostics import Diagnostics
from likeminds.plots.figures import (
    BLUE,
    GREEN,
    GREY,
    VERMILION,
    evenly_spaced,
    look_of,
    new_axes,
    set_title,
)
from likeminds.rankers.capabilities import ReadableModel
from likeminds.rankers.ranker import Ranker
from likeminds.rankers.search import RankerCV

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Trace: TypeAlias = Ranker | ArrayLike

_MOST_USERS = 300
_LOOKS = {
    "agrees": (BLUE, "o"),
    "different": (GREEN, "s"),
    "reversed": (VERMILION, "v"),
    "constant": (GREY, "_"),
    "random": (VERMILION, "X"),
    "unclear": (GREY, "."),
}
# The highest start of the axis of AUCs, and the room below it for the legend.
_LOWEST_SHOWN, _ROOM_FOR_LEGEND = 0.5, 0.14


def convergence(traces: Trace | Mapping[str, Trace], *, ax: "Axes | None" = None) -> "Axes":
    """Draw the objective above its lowest value, by iteration.

    Parameters
    ----------
    traces : fitted ranker, or mapping from name to ranker or array
        A ranker's ``objective_trace_``, or traces of objectives.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    named = traces if isinstance(traces, Mapping) else {type(traces).__name__: traces}
    arrays = {name: _trace(trace, name) for name, trace in named.items()}
    axes = new_axes() if ax is None else ax
    lowest = min(float(trace.min()) for trace in arrays.values())
    unit = max(abs(lowest), np.finfo(np.float64).tiny)
    floor = 1e-12
    for place, (name, trace) in enumerate(arrays.items()):
        above = np.maximum((trace - lowest) / unit, floor)
        every = max(1, len(trace) // 12)
        axes.plot(above, markevery=every, markersize=4, label=name, **look_of(place))
    label = "objective above its lowest value, relative"
    axes.set(yscale="log", xlabel="iteration", ylabel=label)
    if len(arrays) > 1:
        axes.legend(frameon=False, fontsize="small")
    steps = max(len(trace) for trace in arrays.values()) - 1
    title = f"{counted(steps, 'iteration')} to the lowest objective"
    return set_title(axes, title if len(arrays) == 1 else "Lower and sooner is better", grid="y")


def _trace(trace: Trace, name: str) -> Float:
    try:  # an unfitted ranker raises NotFittedError, a ValueError
        values: Any = trace.objective_trace_ if isinstance(trace, ReadableModel) else trace
        return np.asarray(as_vector(values, name), dtype=np.float64)
    except ValueError as error:
        raise TypeError(
            f"{name} has no trace of its objective: pass a fitted ranker that iterates, or an "
            "array of objectives."
        ) from error


def auc_by_user(diagnostics: Diagnostics, *, ax: "Axes | None" = None) -> "Axes":
    """Draw each user's AUC on held-out labels with its interval, from worst to best.

    Parameters
    ----------
    diagnostics : Diagnostics
        The result of `likeminds.diagnose`.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(8.0, 4.5) if ax is None else ax
    defined = np.flatnonzero(np.isfinite(diagnostics.own_auc))
    order = defined[np.argsort(diagnostics.own_auc[defined], kind="stable")]
    order = order[evenly_spaced(len(order), _MOST_USERS)]
    place = np.arange(len(order))
    low, high = diagnostics.low[order], diagnostics.high[order]
    axes.vlines(place, low, high, color="0.8", linewidth=1)
    for verdict, (colour, marker) in _LOOKS.items():
        mine = diagnostics.verdict[order] == verdict
        if mine.any():
            label = f"{verdict} ({diagnostics.counts[verdict]:,})"
            own = diagnostics.own_auc[order][mine]
            axes.scatter(place[mine], own, s=18, color=colour, marker=marker, label=label)
    consensus = diagnostics.consensus_auc[order]
    axes.plot(place, consensus, "_", color="black", markersize=5, label="by the consensus")
    axes.axhline(0.5, color="black", linewidth=1, linestyle="--")
    axes.text(0.99, 0.5, "chance", ha="right", va="bottom", transform=axes.get_yaxis_transform())
    axes.set(xlabel="people, the worst predicted first", xticks=[])
    axes.set_ylabel("AUC on held-out labels, 95 % interval")
    drawn = np.concatenate([low, consensus, [_LOWEST_SHOWN]])
    bottom = max(float(np.nanmin(drawn)) - _ROOM_FOR_LEGEND, -0.02)
    axes.set(xlim=(-1, max(len(order), 10)), ylim=(bottom, 1.02))
    axes.legend(fontsize="small", loc="lower right", ncols=2, framealpha=0.95)
    mean = float(diagnostics.own_auc[defined].mean()) if len(defined) else float("nan")
    title = f"Mean AUC of own rankings on held-out labels: {mean:.2f}"
    return set_title(axes, title)


def cv_surface(
    tuned: RankerCV, x: str | None = None, y: str | None = None, *, ax: "Axes | None" = None
) -> "Axes":
    """Draw the scores of candidates relative to the chosen one, over two parameters.

    A candidate is compared with the chosen one on the folds that both were fitted to. If several
    candidates share a cell, the best is shown.

    Parameters
    ----------
    tuned : fitted ThreeLevelRankerCV or RankerCV
        The fitted search.
    x, y : str, optional
        Two parameters of its grid; by default, the two with the most complete grid. A single
        parameter gives a line.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    results = tuned.cv_results_ if isinstance(tuned, RankerCV) else None
    if not results or not len(results["params"]):
        raise ValueError(f"{type(tuned).__name__} has no search results to draw: fit a RankerCV.")
    params = list(results["params"])
    reading = tuned.label_reading_
    measure = "AUC" if reading is None or reading.grades is None else "concordance"
    across, upwards = _two_parameters(params, x, y)
    splits = np.array([results[name] for name in results if name.startswith("split")])
    # In points of the measure, over the folds that both candidates were fitted to.
    behind = 100.0 * nan_mean((splits - splits[:, [params.index(tuned.best_params_)]]).T)
    label = f"points of {measure}, compared with the chosen one"
    axes = new_axes() if ax is None else ax
    columns, column = _levels_of(params, across)
    axes.set_xlabel(across.replace("_", " "))
    if upwards is None:
        line = _best_in_cells(behind, np.zeros_like(column), column, (1, len(columns)))[0]
        axes.plot(line, "o-", color=BLUE)
        axes.set_ylabel(label)
    else:
        rows, row = _levels_of(params, upwards)
        cells = _best_in_cells(behind, row, column, (len(rows), len(columns)))
        _draw_surface(axes, cells, label)
        axes.set_ylabel(upwards.replace("_", " "))
        axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns, rotation=45 if len(columns) > 8 else 0)
    chosen = ", ".join(f"{n.replace('_', ' ')} {_text(v)}" for n, v in tuned.best_params_.items())
    title = f"Chosen: {chosen} ({measure} {tuned.best_score_:.3f})"
    return set_title(axes, title, grid="y" if upwards is None else None)


def _two_parameters(
    params: list[dict[str, Any]], x: str | None, y: str | None
) -> tuple[str, str | None]:
    names = sorted({name for candidate in params for name in candidate})
    for name in (x, y):
        if name is not None and name not in names:
            raise ValueError(f"{name!r} was not searched; there are {', '.join(names)}.")
    varied = [name for name in names if len(_levels_of(params, name)[0]) > 1]
    pairs = [
        (a, b)
        for a in ([x] if x else varied)
        for b in ([y] if y else varied)
        if a != b and (x or y or a < b)
    ]
    if not pairs:
        return x or y or (varied or names)[0], None
    return max(pairs, key=lambda pair: _fill(params, *pair))


def _fill(params: list[dict[str, Any]], x: str, y: str) -> tuple[float, int]:
    """Return the share and the number of cells of a surface with a candidate."""
    (columns, column), (rows, row) = _levels_of(params, x), _levels_of(params, y)
    n = len(set(zip(column.tolist(), row.tolist(), strict=True)))
    # If both surfaces are at least two thirds full, prefer the larger one, if it is legible.
    readable = max(len(columns), len(rows)) <= 8
    return min(n / (len(columns) * len(rows)), 2 / 3), n if readable else 0


def _levels_of(params: list[dict[str, Any]], name: str) -> tuple[list[str], Index]:
    """Return the values of a parameter in order, as text, and the position of each candidate's."""
    values = [candidate.get(name) for candidate in params]
    distinct = sorted(set(values), key=lambda v: (v is not None, v if v is not None else 0))
    return [_text(value) for value in distinct], np.array([distinct.index(v) for v in values])


def _text(value: object) -> str:
    if value is None:
        return "default"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _best_in_cells(scores: Float, row: Index, column: Index, shape: tuple[int, int]) -> Float:
    surface = np.full(shape, -np.inf)
    np.maximum.at(surface, (row, column), np.where(np.isfinite(scores), scores, -np.inf))
    return np.where(np.isfinite(surface), surface, np.nan)


def _draw_surface(axes: "Axes", surface: Float, label: str) -> None:
    image = axes.imshow(surface, cmap="cividis", aspect="auto", origin="lower")
    middle = (np.nanmin(surface) + np.nanmax(surface)) / 2
    for (i, j), value in np.ndenumerate(surface):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            text = "chosen" if value == 0 else f"{value:+.1f}"
            axes.text(j, i, text, ha="center", va="center", fontsize="small", color=colour)
    axes.figure.colorbar(image, ax=axes, label=label)


def reliability(
    labels: ArrayLike, probabilities: ArrayLike, *, n_bins: int = 10, ax: "Axes | None" = None
) -> "Axes":
    """Draw a reliability diagram: the share of positive labels by predicted probability.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        True or false (or 1 and 0), held out.
    probabilities : array of shape (n_rows,)
        Predicted probabilities.
    n_bins : int, default=10
        The number of bins, each with the same number of labels.
    ax : matplotlib Axes, optional
        The axes to draw in.

    Returns
    -------
    matplotlib Axes
    """
    claimed = np.asarray(as_vector(probabilities, "probabilities"), dtype=np.float64)
    positive = np.asarray(labels, dtype=np.float64)
    same_length(labels=positive, probabilities=claimed)
    if claimed.min() < 0 or claimed.max() > 1:
        raise ValueError("probabilities must lie between 0 and 1; scores are not probabilities.")
    axes = new_axes(5.0, 5.0) if ax is None else ax
    bins = [b for b in np.array_split(np.argsort(claimed, kind="stable"), n_bins) if len(b)]
    x = np.array([claimed[b].mean() for b in bins])
    share = np.array([positive[b].mean() for b in bins])
    found = [binomtest(round(positive[b].sum()), len(b)) for b in bins]
    low, high = np.transpose([one.proportion_ci(method="wilson") for one in found])
    # Rounding errors must not put the share outside of its interval.
    low, high = np.minimum(low, share), np.maximum(high, share)
    axes.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--", label="perfect")
    axes.errorbar(x, share, [share - low, high - share], fmt="o", color=BLUE, label="observed")
    axes.set(xlim=(0, 1), ylim=(0, 1), xlabel="predicted probability")
    axes.set_ylabel("share of positive labels, 95 % interval")
    axes.legend(frameon=False, fontsize="small", loc="upper left")
    off = float(np.average(np.abs(x - share), weights=[len(b) for b in bins]))
    return set_title(axes, f"Probabilities are off by {off:.1%} on average", grid="both")
