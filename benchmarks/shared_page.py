"""Write the tables of ``docs/shared-items-measured.md`` from the results of `shared_items`."""

import platform
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

import likeminds
from benchmarks.shared_methods import FEATURES_ONLY, GPBOOST, OURS, RIDGE, WITHOUT
from likeminds._util.array_types import Float
from likeminds._util.text_format import counted
from likeminds.metrics.paired import over_repeats, over_users
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
        summary[kind][family] = _table(**table, by_split=kind == "new items")
        if kind == "new items":
            summary[kind][family]["features"] = "texts"
    return summary


def keep_earlier(summary: dict[str, Any], earlier: dict[str, Any]) -> None:
    """Take over what was measured before and not now; say which rows these are."""
    kept = []
    for kind in ("within", "new items", "bridging", "groups"):
        rows = {name: row for name, row in earlier[kind].items() if name not in summary[kind]}
        for name, row in summary[kind].items():
            if "methods" in row and name in earlier[kind]:
                taken = _keep_rivals(row, earlier[kind][name]["methods"])
                kept += [f"`{name}` ({kind}: {', '.join(taken)})"] if taken else []
        summary[kind] |= rows
        kept += [f"`{name}` ({kind})" for name in rows]
    if kept:
        said = f"Measured with an earlier version: {', '.join(kept)}."
        summary["note"] = f"{summary['note']} {said}".strip()


def _keep_rivals(row: dict[str, Any], earlier: dict[str, Any]) -> list[str]:
    """Take over rivals not measured now, with how far ours was above them then; name them."""
    methods = row["methods"]
    absent = [name for name in earlier if name not in methods]
    methods |= {name: earlier[name] for name in absent}
    apart = {name: one["difference"] for name, one in methods.items() if "difference" in one}
    if apart:
        best = min(apart, key=lambda name: apart[name][0])
        row |= {"best rival": best, "difference": apart[best]}
    return absent


def _table(
    crowds: dict[str, Any], found: dict[str, Any], *, by_split: bool = False
) -> dict[str, Any]:
    ours = _aucs_by_split(found.get(OURS, {}))
    methods = {
        method: _measured(runs, ours, method, by_split=by_split) for method, runs in found.items()
    }
    table = {
        "people": sum(said.n_users for said in crowds.values()),
        "items": max(said.n_items for said in crowds.values()),
        "labels": sum(len(said) for said in crowds.values()),
        "features": max(said.n_features for said in crowds.values()),
        "methods": methods,
    }
    apart = {name: one["difference"] for name, one in methods.items() if "difference" in one}
    if apart:
        best = min(apart, key=lambda name: apart[name][0])
        table |= {"best rival": best, "difference": apart[best]}
    return table


def _measured(
    runs: dict[Any, Any], ours: dict[Any, Float], method: str, *, by_split: bool
) -> dict[str, Any]:
    """Return the mean AUC of a method, and how far ours is above it on the splits of both.

    The interval of the difference is that of people, or ``by_split``, of splits.
    """
    late = [run["late"] for run in runs.values() if "late" in run]
    if late:
        return {"late": late[0]}
    aucs = _aucs_by_split(runs)
    measured: dict[str, Any] = {
        "auc": float(np.nanmean(_over_seeds(aucs))),
        "splits": len({seed for _, seed in aucs}),
        "seconds": float(np.mean([run["seconds"] for run in runs.values()])),
    }
    both = [split for split in aucs if split in ours]
    if method != OURS and both:
        differences = {split: ours[split] - aucs[split] for split in both}
        if by_split:
            apart = over_repeats(np.array([np.nanmean(d) for d in differences.values()]), 0.3)
        else:
            apart = over_users(_over_seeds(differences))
        # One split of items says nothing about others: there is no interval.
        measured["difference"] = [None if np.isnan(value) else float(value) for value in apart[:3]]
    return measured


def _aucs_by_split(runs: dict[Any, Any]) -> dict[Any, Float]:
    return {
        split: np.array(run["aucs"], dtype=np.float64)
        for split, run in runs.items()
        if "aucs" in run
    }


def _over_seeds(by_split: dict[Any, Float]) -> Float:
    """Return what there is of everybody, the mean over seeds; NaN where there is nothing."""
    by_crowd: dict[str, list[Float]] = {}
    for (crowd, _), values in by_split.items():
        by_crowd.setdefault(crowd, []).append(values)
    return np.concatenate([_mean(np.stack(values)) for values in by_crowd.values()])


def _mean(values: Float) -> Float:
    there = ~np.isnan(values)
    number = there.sum(axis=0)
    total = np.where(there, values, 0.0).sum(axis=0)
    return np.where(number > 0, total / np.maximum(number, 1), np.nan)


def write_page(summary: dict[str, Any], out: Path) -> None:
    """Put the tables between the marks of the page, or into a page of their own."""
    page = out / "shared-items-measured.md"
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
    axes.set_xlabel("points of AUC above the best baseline (bars: 95 % intervals over users)")
    set_title(axes, f"{OURS} compared with the best baseline", grid="x")
    return figure


def _parts(summary: dict[str, Any]) -> list[str]:
    parts = [
        "Made by `python -m benchmarks.shared_items --data FOLDER` with likeminds "
        f"{summary['likeminds']}, Python {summary['python']}; the figures are in "
        "[shared-items.json](shared-items.json). The tables have the mean AUC over users on "
        "held-out labels, in per cent. The difference from the best baseline is paired by user, "
        "with its 95 % interval. Nothing is tuned by hand. Cross-validation tunes `Factorisation` "
        "and the rankers without item effects (`ThreeLevelRankerCV`, `RidgeToConsensus`, `COMT`). "
        "GPBoost has random effects of users and items, and random coefficients of the features "
        "by user. Methods over the limit of processor seconds are left out; a dash is not "
        "measured. Only `electricity` is bundled; the script describes the files of the others. "
        "A number in parentheses is a baseline's number of splits, if it differs. `london_faces` "
        "has a sample of 300 users, `faces_3dsk` has ten attributes.",
    ]
    parts.append(summary["note"])
    if summary["within"]:
        parts += [
            "## Known items: 30 % of each user's labels held out",
            _aucs(summary["within"], _COLUMNS),
            f"![Differences from the best baseline, with intervals, by data set]({PICTURE})",
            _verdict(summary["within"]),
        ]
    if summary["new items"]:
        parts += [
            "## New items: 30 % of the items held out, with their texts",
            "Statements and comments are described as `--texts` does by default: up to 300 "
            f"components of words and their pieces. `{RIDGE}` is a tuned ridge regression of the "
            "log-odds of a yes to each item on its features.",
            _aucs(summary["new items"], (OURS, WITHOUT, RIDGE, "Popularity")),
            _verdict(summary["new items"]),
            over_sets(summary["new items"], (WITHOUT, RIDGE, "Popularity")),
            "All users share the held-out items, so intervals are over splits, with the correction "
            "of Nadeau and Bengio for overlapping splits. If features are uninformative, an AUC "
            "below 50 is due to chance.",
        ]
    if summary["groups"]:
        parts += ["## Schools compared with the groups of Polis", _groups(summary["groups"])]
    if summary["bridging"]:
        parts += ["## Statements that bridge", _bridging(summary["bridging"])]
    return parts


def _aucs(tables: dict[str, Any], columns: tuple[str, ...]) -> str:
    used = [name for name in columns if any(name in t["methods"] for t in tables.values())]
    head = ["data", "users, items, labels, features", "splits", *used, "to the best baseline"]
    lines = _head(head)
    for name, table in tables.items():
        methods = table["methods"]
        size = f"{table['people']:,}, {table['items']:,}, {table['labels']:,}, {table['features']}"
        ahead = "difference" not in table or table["difference"][0] >= 0
        best = OURS if ahead else table["best rival"]
        splits = methods.get(OURS, {}).get("splits")
        cells = [_cell(methods.get(one), one == best, splits) for one in used]
        lines.append(_row([name, size, str(splits or "-"), *cells, _apart(table)]))
    return "\n".join(lines)


def _cell(method: dict[str, Any] | None, is_best: bool, splits: int | None) -> str:
    if method is None:
        return "-"
    if "late" in method:
        return f"not in {method['late']:.0f} s"
    text = f"{100 * method['auc']:.1f}"
    # On other splits it is another figure: the difference is that of the splits of both.
    fewer = "" if method["splits"] == splits else f" ({counted(method['splits'], 'split')})"
    return f"**{text}**{fewer}" if is_best else text + fewer


def _apart(table: dict[str, Any]) -> str:
    if "difference" not in table:
        return "-"
    mean, low, high = table["difference"]
    interval = "on one split" if low is None else f"[{100 * low:+.1f}, {100 * high:+.1f}]"
    return f"{100 * mean:+.1f} {interval} ({table['best rival']})"


def _verdict(tables: dict[str, Any]) -> str:
    judged = {name: table["difference"] for name, table in tables.items() if "difference" in table}
    judged = {name: found for name, found in judged.items() if None not in found}
    ahead = [name for name, (_, low, _) in judged.items() if low > 0]
    behind = [name for name, (_, _, high) in judged.items() if high < 0]
    open_ = [name for name in judged if name not in ahead and name not in behind]
    said = [
        f"`{OURS}` is ahead of every baseline on {len(ahead)} of {len(judged)}"
        + (f" ({_list(ahead)})" if ahead else "")
    ]
    if open_:
        said.append(f"level with the best within the interval on {_list(open_)}")
    if behind:
        said.append(
            "behind on "
            + ", ".join(f"`{name}` (by {-100 * judged[name][0]:.1f} points)" for name in behind)
        )
    return "; ".join(said) + "."


def over_sets(tables: dict[str, Any], rivals: tuple[str, ...]) -> str:
    """Say how far ours is above each rival on average over data sets, which count alike."""
    said = []
    for rival in rivals:
        methods = [table["methods"].get(rival, {}) for table in tables.values()]
        apart = np.array([one["difference"][0] for one in methods if "difference" in one])
        if len(apart) > 1:
            mean, low, high, _ = 100 * np.array(over_users(apart))
            said.append(f"{mean:+.1f} [{low:+.1f}, {high:+.1f}] above {rival}")
    if not said:
        return ""
    return f"On average over data sets (95 % intervals over these), it is {'; '.join(said)}."


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def _groups(groups: dict[str, Any]) -> str:
    head = ["conversation", "users in groups", "Polis's groups", "our schools"]
    head += ["adjusted Rand index", "with as many schools", "groups along our first direction"]
    said = (
        "Polis divides users by k-means on two principal components of their votes, with or "
        "without a gap between the groups. The adjusted Rand index is 1 for the same division and "
        "0 for one by chance, or for one school. The last column is the AUC with which our first "
        "direction separates the groups of Polis. If it is near 1, both find the same difference. "
        "Without a gap, `find_schools` reports gradual differences."
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
                    f"{found['along']:.2f}" if "along" in found else "-",
                ]
            )
        )
    return "\n".join(lines)


def _bridging(conversations: dict[str, Any]) -> str:
    judges = ("in our schools", "in Polis's groups")
    head = ["conversation", "statements", "in both lists"]
    head += [f"{judge}: ours / Polis's, difference" for judge in judges]
    said = (
        "The table compares two selections of a tenth of the statements with two votes or more, "
        "both from 70 % of the votes. Ours has the highest lower bounds of agreement in every "
        "school. Polis's has the highest group-informed consensus: the product over its groups of "
        "the smoothed share that agrees. The scores are the shares of held-out votes that agree, "
        "in the school or group that agrees least, in per cent. Intervals (95 %) of the "
        "difference resample users; figures are means over splits."
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
