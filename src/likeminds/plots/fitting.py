"""Pictures of a fit: convergence, cross-validation, accuracy by person, reliability."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from likeminds._util.array_types import Float, Index
from likeminds._util.checks import as_vector, same_length
from likeminds._util.per_user_arrays import nan_mean
from likeminds._util.text_format import counted
from likeminds.diagnostics import Diagnostics
from likeminds.plots.figures import (
    BLUE,
    COLOURS,
    GREEN,
    GREY,
    MARKERS,
    VERMILION,
    evenly_spaced,
    new_axes,
    set_title,
)
from likeminds.rankers.capabilities import ReadableModel

_MOST_PEOPLE = 300
_BEHIND = "points of {measure}, compared with the one chosen"
_LOOKS = {
    "agrees": (BLUE, "o"),
    "different": (GREEN, "s"),
    "reversed": (VERMILION, "v"),
    "constant": (GREY, "_"),
    "random": (VERMILION, "X"),
    "unclear": (GREY, "."),
}

# The axis of AUCs begins no higher than this, and leaves so much room below what is drawn.
_LOWEST_SHOWN, _ROOM_FOR_LEGEND = 0.5, 0.14


def convergence(traces: Any, *, ax: Any = None) -> Any:
    """Draw how far the objective is above its lowest value, by iteration.

    Parameters
    ----------
    traces : fitted ranker, or mapping from name to ranker or array
        A ranker's ``objective_trace_``, or traces of objectives.
    ax : matplotlib Axes, optional
        Where to draw.

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
    looks = zip(COLOURS * len(arrays), MARKERS * len(arrays), strict=True)
    for (name, trace), (colour, marker) in zip(arrays.items(), looks, strict=False):
        above = np.maximum((trace - lowest) / unit, floor)
        every = max(1, len(trace) // 12)
        axes.plot(above, color=colour, marker=marker, markevery=every, markersize=4, label=name)
    axes.set_yscale("log")
    axes.set_xlabel("iteration")
    axes.set_ylabel("objective above its lowest value, relative")
    if len(arrays) > 1:
        axes.legend(frameon=False, fontsize="small")
    steps = max(len(trace) for trace in arrays.values()) - 1
    title = f"{counted(steps, 'iteration')} to the lowest objective"
    return set_title(axes, title if len(arrays) == 1 else "Lower and sooner is better", grid="y")


def _trace(trace: Any, name: str) -> Float:
    values = trace._learned("objective_trace_") if isinstance(trace, ReadableModel) else trace
    try:
        return np.asarray(as_vector(values, name), dtype=np.float64)
    except ValueError as error:
        raise TypeError(
            f"{name} has no trace of its objective: pass a fitted ranker that iterates, or an "
            "array of objectives."
        ) from error


def auc_by_user(diagnostics: Diagnostics, *, ax: Any = None) -> Any:
    """Draw everybody's AUC on held-out labels with its interval, from worst to best.

    Parameters
    ----------
    diagnostics : Diagnostics
        What `likeminds.diagnose` found.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    axes = new_axes(8.0, 4.5) if ax is None else ax
    known = np.flatnonzero(np.isfinite(diagnostics.own_auc))
    order = known[np.argsort(diagnostics.own_auc[known], kind="stable")]
    order = order[evenly_spaced(len(order), _MOST_PEOPLE)]
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
    axes.set_xlim(-1, max(len(order), 10))
    axes.text(0.99, 0.5, "chance", ha="right", va="bottom", transform=axes.get_yaxis_transform())
    axes.set_xlabel("people, from the worst predicted to the best")
    axes.set_ylabel("AUC on held-out labels, 95 % interval")
    axes.set_xticks([])
    drawn = np.concatenate([low, consensus, [_LOWEST_SHOWN]])
    axes.set_ylim(max(float(np.nanmin(drawn)) - _ROOM_FOR_LEGEND, -0.02), 1.02)
    axes.legend(fontsize="small", loc="lower right", ncols=2, framealpha=0.95)
    mean = float(diagnostics.own_auc[known].mean()) if len(known) else float("nan")
    title = f"Own functions rank held-out labels with an AUC of {mean:.2f} on average"
    return set_title(axes, title)


def cv_surface(tuned: Any, x: str | None = None, y: str | None = None, *, ax: Any = None) -> Any:
    """Draw how far candidates stay behind the one chosen, over two parameters.

    A candidate is compared with the one chosen on the folds that both saw (the others dropped
    out early), and of those that share a place, the best is shown.

    Parameters
    ----------
    tuned : fitted ThreeLevelRankerCV or RankerCV
        What was searched.
    x, y : str, optional
        Two parameters of its grid; by default two that make a full surface. With one parameter
        only, a line is drawn.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    results = tuned._learned("cv_results_") if isinstance(tuned, ReadableModel) else None
    if not results or not len(results["params"]):
        raise ValueError(f"This {type(tuned).__name__} searched nothing: there is no surface.")
    params = list(results["params"])
    reading = tuned._learned("label_reading_")
    measure = "AUC" if reading is None or reading.grades is None else "concordance"
    across, upwards = _two_parameters(params, x, y)
    behind = _behind(results, params.index(tuned.best_params_))
    axes = new_axes() if ax is None else ax
    columns, column = _levels_of(params, across)
    axes.set_xlabel(across.replace("_", " "))
    if upwards is None:
        line = _best_in_cells(behind, np.zeros_like(column), column, (1, len(columns)))[0]
        axes.plot(line, "o-", color=BLUE)
        axes.set_ylabel(_BEHIND.format(measure=measure))
    else:
        rows, row = _levels_of(params, upwards)
        cells = _best_in_cells(behind, row, column, (len(rows), len(columns)))
        _draw_surface(axes, cells, _BEHIND.format(measure=measure))
        axes.set_ylabel(upwards.replace("_", " "))
        axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(range(len(columns)), columns, rotation=45 if len(columns) > 8 else 0)
    chosen = ", ".join(f"{n.replace('_', ' ')} {_say(v)}" for n, v in tuned.best_params_.items())
    title = f"Chosen: {chosen} ({measure} {tuned.best_score_:.3f})"
    return set_title(axes, title, grid="y" if upwards is None else None)


def _behind(results: dict[str, Any], best: int) -> Float:
    """Return mean differences to the best candidate, in points of AUC, over folds both saw."""
    splits = np.array([results[name] for name in results if name.startswith("split")])
    return 100.0 * nan_mean((splits - splits[:, [best]]).T)


def _two_parameters(
    params: list[dict[str, Any]], x: str | None, y: str | None
) -> tuple[str, str | None]:
    names = sorted({name for candidate in params for name in candidate})
    for asked in (x, y):
        if asked is not None and asked not in names:
            raise ValueError(f"{asked!r} was not searched; there are {', '.join(names)}.")
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
    """Return the share of the cells of a surface that have a candidate, and how many have."""
    (columns, column), (rows, row) = _levels_of(params, x), _levels_of(params, y)
    n = len(set(zip(column.tolist(), row.tolist(), strict=True)))
    # Two thirds are as good as all: then the larger surface tells more, if one can read it.
    readable = max(len(columns), len(rows)) <= 8
    return min(n / (len(columns) * len(rows)), 2 / 3), n if readable else 0


def _levels_of(params: list[dict[str, Any]], name: str) -> tuple[list[str], Index]:
    """Return the values of a parameter in order, as text, and which each candidate has."""
    values = [candidate.get(name) for candidate in params]
    distinct = sorted(set(values), key=lambda v: (v is not None, v if v is not None else 0))
    return [_say(value) for value in distinct], np.array([distinct.index(v) for v in values])


def _say(value: Any) -> str:
    if value is None:
        return "default"
    return f"{value:.3g}" if isinstance(value, float) else str(value)


def _best_in_cells(scores: Float, row: Index, column: Index, shape: tuple[int, int]) -> Float:
    surface = np.full(shape, -np.inf)
    np.maximum.at(surface, (row, column), np.where(np.isfinite(scores), scores, -np.inf))
    return np.where(np.isfinite(surface), surface, np.nan)


def _draw_surface(axes: Any, surface: Float, label: str) -> None:
    image = axes.imshow(surface, cmap="cividis", aspect="auto", origin="lower")
    middle = (np.nanmin(surface) + np.nanmax(surface)) / 2
    for (i, j), value in np.ndenumerate(surface):
        if np.isfinite(value):
            colour = "white" if value < middle else "black"
            text = "chosen" if value == 0 else f"{value:+.1f}"
            axes.text(j, i, text, ha="center", va="center", fontsize="small", color=colour)
    axes.figure.colorbar(image, ax=axes, label=label)


def reliability(
    labels: ArrayLike, probabilities: ArrayLike, *, n_bins: int = 10, ax: Any = None
) -> Any:
    """Draw how often labels are positive where a probability is claimed.

    Parameters
    ----------
    labels : array of shape (n_rows,)
        True or false (or 1 and 0), held out.
    probabilities : array of shape (n_rows,)
        What was claimed.
    n_bins : int, default=10
        In how many bins, of equally many labels.
    ax : matplotlib Axes, optional
        Where to draw.

    Returns
    -------
    matplotlib Axes
    """
    claimed = np.asarray(as_vector(probabilities, "probabilities"), dtype=np.float64)
    positive = np.asarray(labels, dtype=np.float64)
    same_length(labels=positive, probabilities=claimed)
    if claimed.min() < 0 or claimed.max() > 1:
        raise ValueError("probabilities must lie between 0 and 1; scores are none.")
    axes = new_axes(5.0, 5.0) if ax is None else ax
    bins = [b for b in np.array_split(np.argsort(claimed, kind="stable"), n_bins) if len(b)]
    x = np.array([claimed[b].mean() for b in bins])
    share = np.array([positive[b].mean() for b in bins])
    low, high = _wilson(share, np.array([len(b) for b in bins], dtype=np.float64))
    axes.plot([0, 1], [0, 1], color="black", linewidth=1, linestyle="--", label="perfect")
    axes.errorbar(x, share, [share - low, high - share], fmt="o", color=BLUE, label="found")
    axes.set_xlabel("probability claimed")
    axes.set_ylabel("share of positive labels, 95 % interval")
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.legend(frameon=False, fontsize="small", loc="upper left")
    off = float(np.average(np.abs(x - share), weights=[len(b) for b in bins]))
    return set_title(axes, f"Probabilities are off by {off:.1%} on average", grid="both")


def _wilson(share: Float, n: Float, z: float = 1.96) -> tuple[Float, Float]:
    """Return Wilson's interval of a share."""
    middle = (share + z**2 / (2 * n)) / (1 + z**2 / n)
    half = z * np.sqrt(share * (1 - share) / n + z**2 / (4 * n**2)) / (1 + z**2 / n)
    # Rounding must not put the share found outside.
    return np.minimum(middle - half, share), np.maximum(middle + half, share)
