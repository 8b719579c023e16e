"""The measured part of ``docs/shared-items.md``, from what `benchmarks.shared_items` kept."""

import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import likeminds
from benchmarks.shared_methods import FEATURES_ONLY, GPBOOST, OURS, WITHOUT
from likeminds._support.arrays import Float
from likeminds.metrics.paired import over_people
from likeminds.plots.figures import BLUE, as_png, new_figure, set_title

BEGIN, END = "<!-- measured: begin -->", "<!-- measured: end -->"
PICTURE = "shared-items-measured.png"
_COLUMNS = (OURS, "Popularity", "Factorisation", WITHOUT, *FEATURES_ONLY, GPBOOST)


def summarise(results: Iterable[tuple[Any, dict[str, Any]]]) -> dict[str, Any]:
    """Return the means, and the differences from the best rival, of tasks and their results."""
    summary: dict[str, Any] = {
        "likeminds": likeminds.__version__,
        "python": platform.python_version(),
        **{kind: {} for kind in ("within", "new items", "bridging", "groups")},
    }
    tables: dict[tuple[str, str], dict[str, Any]] = {}
    for task, result in results:
        family = task.crowd.family
        if task.kind == "groups":
            summary["groups"][family] = result
        elif task.kind == "bridging":
            summary["bridging"].setdefault(family, {})[str(task.seed)] = result
        else:
            table = tables.setdefault((task.kind, family), {})
            table.setdefault("crowds", {})[task.crowd.name] = task.crowd.said
            found = table.setdefault("found", {}).setdefault(task.method, {})
            found[task.crowd.name, task.seed] = result
    for (kind, family), table in tables.items():
        summary[kind][family] = _table(**table)
    return summary


def _table(crowds: dict[str, Any], found: dict[str, Any]) -> dict[str, Any]:
    splits = list(found[OURS]) if OURS in found else []
    people = {method: _people(runs, splits) for method, runs in found.items()}
    whole = {method: aucs for method, aucs in people.items() if aucs is not None}
    methods: dict[str, Any] = {}
    for method, runs in found.items():
        late = [run["late"] for run in runs.values() if "late" in run]
        if method in whole:
            seconds = float(np.mean([run["seconds"] for run in runs.values()]))
            methods[method] = {"auc": float(np.nanmean(whole[method])), "seconds": seconds}
        elif late:
            methods[method] = {"late": late[0]}
    rivals = {method: one["auc"] for method, one in methods.items() if "auc" in one}
    rivals.pop(OURS, None)
    table = {
        "people": sum(said.n_people for said in crowds.values()),
        "items": max(said.n_items for said in crowds.values()),
        "labels": sum(len(said) for said in crowds.values()),
        "features": max(said.n_features for said in crowds.values()),
        "splits": len({seed for _, seed in splits}),
        "methods": methods,
    }
    if OURS in whole and rivals:
        best = max(rivals, key=rivals.__getitem__)
        apart = over_people(whole[OURS] - whole[best])
        table |= {"best rival": best, "difference": [apart.mean, apart.low, apart.high]}
    return table


def _people(runs: dict[Any, Any], splits: list[Any]) -> Float | None:
    """Return everybody's AUC, the mean over seeds; None where a split is missing or was late."""
    if not splits or any("aucs" not in runs.get(split, {}) for split in splits):
        return None
    by_crowd: dict[str, list[Float]] = {}
    for crowd, seed in splits:
        aucs = np.array(runs[crowd, seed]["aucs"], dtype=np.float64)
        by_crowd.setdefault(crowd, []).append(aucs)
    return np.concatenate([_mean(np.stack(aucs)) for aucs in by_crowd.values()])


def _mean(aucs: Float) -> Float:
    """Return the mean over the first axis, of what there is; NaN where there is nothing."""
    there = ~np.isnan(aucs)
    number = there.sum(axis=0)
    return np.where(number > 0, np.where(there, aucs, 0.0).sum(axis=0), np.nan) / np.maximum(
        number, 1
    )


def write_page(summary: dict[str, Any], out: Path) -> None:
    """Put the tables between the marks of the page, or into a page of their own."""
    page = out / "shared-items.md"
    text = page.read_text(encoding="utf-8") if page.is_file() else f"{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    if any("difference" in table for table in summary["within"].values()):
        (out / PICTURE).write_bytes(as_png(draw_differences(summary["within"]), dpi=90))
    measured = "\n\n".join(part for part in _parts(summary) if part)
    page.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")
    print(f"Written: {page}")


def draw_differences(tables: dict[str, Any]) -> Any:
    """Draw the differences from the best rival with their intervals, a line for each data set."""
    judged = {name: table for name, table in tables.items() if "difference" in table}
    figure = new_figure(8.0, 1.4 + 0.34 * len(judged), shown=False)
    axes = figure.add_subplot()
    height = np.arange(len(judged))[::-1]
    mean, low, high = 100 * np.array([table["difference"] for table in judged.values()]).T
    axes.errorbar(mean, height, xerr=[mean - low, high - mean], fmt="o", color=BLUE)
    axes.axvline(0, color="black", linewidth=1)
    names = [f"{name}: {table['best rival']}" for name, table in judged.items()]
    axes.set_yticks(height, names)
    axes.set_xlabel("points of AUC above the best rival (bars: 95 % intervals over people)")
    set_title(axes, f"{OURS} is ahead of the best rival where dots are to the right", grid="x")
    return figure


def _parts(summary: dict[str, Any]) -> list[str]:
    parts = [
        "Made by `python -m benchmarks.shared_items --data FOLDER` with likeminds "
        f"{summary['likeminds']}, Python {summary['python']}; the figures are in "
        "[shared-items.json](shared-items.json). Mean AUC over people, in per cent, on labels "
        "held out; the difference from the best rival is paired by person, with its 95 % "
        "interval. Nothing is tuned by hand: `Factorisation` and the rankers that know items by "
        "their features alone (`ThreeLevelRankerCV`, `RidgeToConsensus`, `COMT`) tune themselves "
        "by cross-validation, GPBoost has random effects of people and of items, and random "
        "coefficients of the features by person. Methods that take more than the seconds of a "
        "processor that a table says are out. None of the data but `electricity` comes with "
        "the project; the script says what the files look like.",
    ]
    if summary["within"]:
        parts += [
            "### Known items: 30 % of everybody's labels held out",
            _aucs(summary["within"], _COLUMNS),
            f"![Differences from the best rival, with intervals, by data set]({PICTURE})",
            _verdict(summary["within"]),
        ]
    if summary["new items"]:
        parts += [
            "### New items: 30 % of the items held out, with their texts",
            _aucs(summary["new items"], (OURS, WITHOUT, "Popularity")),
            _verdict(summary["new items"]),
        ]
    if summary["groups"]:
        parts += ["### Schools beside Polis's groups", _groups(summary["groups"])]
    if summary["bridging"]:
        parts += ["### Statements that bridge", _bridging(summary["bridging"])]
    return parts


def _aucs(tables: dict[str, Any], columns: tuple[str, ...]) -> str:
    used = [name for name in columns if any(name in t["methods"] for t in tables.values())]
    head = ["data", "people, items, labels, features", "splits", *used, "to the best rival"]
    lines = _head(head)
    for name, table in tables.items():
        size = f"{table['people']:,}, {table['items']:,}, {table['labels']:,}, {table['features']}"
        best = max((one.get("auc", 0.0) for one in table["methods"].values()), default=0.0)
        cells = [_cell(table["methods"].get(method), best) for method in used]
        lines.append(_row([name, size, str(table["splits"]), *cells, _apart(table)]))
    return "\n".join(lines)


def _cell(method: dict[str, float] | None, best: float) -> str:
    if method is None:
        return "-"
    if "late" in method:
        return f"not in {method['late']:.0f} s"
    text = f"{100 * method['auc']:.1f}"
    return f"**{text}**" if method["auc"] == best else text


def _apart(table: dict[str, Any]) -> str:
    if "difference" not in table:
        return "-"
    mean, low, high = (100 * value for value in table["difference"])
    return f"{mean:+.1f} [{low:+.1f}, {high:+.1f}] ({table['best rival']})"


def _verdict(tables: dict[str, Any]) -> str:
    judged = {name: table["difference"] for name, table in tables.items() if "difference" in table}
    ahead = [name for name, (_, low, _) in judged.items() if low > 0]
    behind = [name for name, (_, _, high) in judged.items() if high < 0]
    open_ = [name for name in judged if name not in ahead and name not in behind]
    said = [
        f"`{OURS}` is ahead of every rival on {len(ahead)} of {len(judged)}"
        + (f" ({', '.join(ahead)})" if ahead else "")
    ]
    if open_:
        said.append(f"level with the best within the interval on {', '.join(open_)}")
    if behind:
        said.append(
            "behind on "
            + ", ".join(f"{name} (by {-100 * judged[name][0]:.1f} points)" for name in behind)
        )
    return "; ".join(said) + "."


def _groups(groups: dict[str, Any]) -> str:
    head = ["conversation", "people in groups", "Polis's groups", "our schools"]
    head += ["adjusted Rand index", "with as many schools"]
    said = (
        "Polis divides people by k-means on two principal components of their votes. The adjusted "
        "Rand index is 1 for the same division and 0 for one by chance."
    )
    lines = [said, "", *_head(head)]
    for name, found in groups.items():
        ours = found["ours"]
        lines.append(
            _row(
                [
                    name,
                    f"{found['people']:,}",
                    str(found["groups"]),
                    str(ours["auto"]["schools"]),
                    f"{ours['auto']['rand']:.2f}",
                    f"{ours['as many']['rand']:.2f}",
                ]
            )
        )
    return "\n".join(lines)


def _bridging(conversations: dict[str, Any]) -> str:
    judges = ("in our schools", "in Polis's groups")
    head = ["conversation", "statements", "in both lists"]
    head += [f"{judge}: ours / Polis's, difference" for judge in judges]
    said = (
        "The tenth of the statements that every school likes most (by lower bounds), and the tenth "
        "that are first by Polis's group-informed consensus (the product over its groups of the "
        "smoothed share that agrees), both from 70 % of the votes. Then the share of held-out "
        "votes on them that agree, in the school or group that agrees least, in per cent; 95 % "
        "intervals of the difference by resampled people, means over splits."
    )
    lines = [said, "", *_head(head)]
    for name, splits in conversations.items():
        runs = list(splits.values())
        cells = [str(runs[0]["statements"]), f"{np.mean([run['both'] for run in runs]):.1f}"]
        for judge in judges:
            ours, polis, low, high = (
                100 * np.mean([run[judge][key] for run in runs])
                for key in ("ours", "polis", "low", "high")
            )
            cells.append(f"{ours:.1f} / {polis:.1f}, {ours - polis:+.1f} [{low:+.1f}, {high:+.1f}]")
        lines.append(_row([name, *cells]))
    return "\n".join(lines)


def _head(cells: list[str]) -> list[str]:
    return [_row(cells), "|---" * len(cells) + "|"]


def _row(cells: Iterable[str]) -> str:
    return "| " + " | ".join(cells) + " |"
