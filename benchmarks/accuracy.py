"""Every ranker on every data set at hand: ``python -m benchmarks.accuracy --data FOLDER``.

Writes ``docs/accuracy.json``, the page that shows it, and its picture. The bundled data is always
there; FOLDER may hold others as ``NAME.npz`` with ``X`` (items x features), and one row per label
in ``user``, ``item``, ``label`` (0/1), ``group`` and, where there are several, ``attribute``.
Finished fits are kept in ``--cache``, so that a run that was interrupted continues where it was.
"""

import argparse
import json
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean
from typing import Any

from sklearn.decomposition import PCA

import likeminds
from benchmarks.tables import markdown
from likeminds import Annotations, Comparison, RankerCV, compare, load_electricity
from likeminds.features.reduction import component_names
from likeminds.paper.experiments.data_sets import fewer_users, read_data
from likeminds.rankers.registry import PAPER_BASELINES, default_rankers, that_apply

ROOT = Path(__file__).parents[1]
WITHOUT_INTERCEPT = ", without an intercept"
# More features than items are reduced to the directions that hold this share of the variance.
VARIANCE = 0.99
# Of larger crowds, this many people take part, drawn at random.
MOST_PEOPLE = 300
_HEAD = ["ranker", "mean AUC", "± repeats", "to best [95 % over people]", "Wilcoxon p", "seconds"]


@dataclass(frozen=True)
class UserDataSet:
    """One attribute of a data set."""

    name: str
    annotations: Annotations
    attribute: str | None = None


def data_sets(folder: Path | None, most_users: int) -> Iterator[UserDataSet]:
    """Yield the bundled data, then what the folder holds, attribute by attribute."""
    yield UserDataSet("electricity", fewer_users(load_electricity(), most_users))
    for path in sorted(folder.glob("*.npz")) if folder else []:
        if path.stem != "electricity":
            parts = read_data(path)
            for attribute, rows in parts.items():
                fewer = fewer_users(reduced(rows), most_users)
                yield UserDataSet(path.stem, fewer, attribute if len(parts) > 1 else None)


def reduced(annotations: Annotations) -> Annotations:
    """Describe items by fewer directions where there are more features than items."""
    if annotations.n_features <= annotations.n_items:
        return annotations
    reduced = PCA(VARIANCE, random_state=0).fit_transform(annotations.features)
    names = tuple(component_names(reduced.shape[1]))
    return annotations._with(features=reduced, feature_names=names)


def rankers() -> dict:
    """Return every ranker, the baselines with and without an intercept."""
    raw = {
        kind.__name__ + WITHOUT_INTERCEPT: RankerCV(kind(loss="least_squares_raw"))
        for kind in PAPER_BASELINES.values()
    }
    return default_rankers() | raw


def run(data: UserDataSet, repeats: int, cache: Path, n_jobs: int) -> Comparison:
    """Compare all rankers that apply on one data set."""
    named = that_apply(rankers(), data.annotations)
    return compare(
        data.annotations, named, repeats=repeats, n_jobs=n_jobs, folder=cache, random_state=100
    )


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with NAME.npz files")
    parser.add_argument("--cache", type=Path, default=ROOT / ".accuracy", help="finished fits")
    parser.add_argument("--repeats", type=int, default=15)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--users", type=int, default=MOST_PEOPLE, help="at most so many")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page goes")
    parser.add_argument("--only", help="just this data set, printed and not written")
    chosen = parser.parse_args(arguments)
    judged, picture = [], None
    for data in data_sets(chosen.data, chosen.users):
        if chosen.only in (None, data.name):
            # Ten attributes are ten repeats of a kind: one split of each is enough.
            repeats = chosen.repeats if data.attribute is None else 1
            comparison = run(data, repeats, chosen.cache, chosen.jobs)
            print(data.name, data.attribute or "", comparison, sep="\n", flush=True)
            judged.append(_found(data, comparison))
            picture = picture or comparison.boxplot()
    if chosen.only is not None or picture is None:
        return
    picture.figure.savefig(chosen.out / "accuracy.png", dpi=120, bbox_inches="tight")
    versions = {"likeminds": likeminds.__version__, "python": platform.python_version()}
    names = list(dict.fromkeys(one["name"] for one in judged))
    means = {name: _means([one for one in judged if one["name"] == name]) for name in names}
    found = {"repeats": chosen.repeats, **versions, "means": means, "data": judged}
    (chosen.out / "accuracy.json").write_text(json.dumps(found) + "\n", encoding="utf-8")
    (chosen.out / "accuracy.md").write_text(as_page(found), encoding="utf-8")


def _found(data: UserDataSet, comparison: Comparison) -> dict[str, Any]:
    """Return the sizes of a data set, and a row for each ranker, the best one first."""
    said = data.annotations
    differences = {row["ranker"]: row for row in comparison.paired().to_pylist()}
    rows = []
    for row in comparison.summary().to_pylist():
        apart = differences.get(row["ranker"])
        rows.append(
            {
                "ranker": row["ranker"],
                "auc": row["mean_score"],
                "deviation": row["deviation_over_repeats"],
                "difference": apart
                and [apart[f"users_{n}"] for n in ("difference", "low", "high")],
                "p": apart and apart["users_p"],
                "seconds": row["median_seconds"],
            }
        )
    return {
        "name": data.name,
        "attribute": data.attribute,
        "users": said.n_users,
        "labels": len(said),
        "features": said.n_features,
        "positive": float(said.labels.mean()),
        "rows": rows,
    }


def as_page(found: dict[str, Any]) -> str:
    """Return the page: who takes part, one table over all data sets, one for each."""
    sections = [
        "# Every ranker on every data set",
        _how(found),
        *([found["note"]] if "note" in found else []),
        "Seconds below were measured on a machine busy with other jobs and show orders of "
        "magnitude only; [benchmarks.md](benchmarks.md) has times.",
        "## Mean AUC over people",
        _overview(found["means"]),
        "AUC in per cent, the mean over people, then over repeats (and over attributes, if "
        "there are several). The best of each column is bold. The tables below have the "
        "differences with their intervals.",
        "![AUC by repeat on the electricity data](accuracy.png)",
        *(
            _section(name, [one for one in found["data"] if one["name"] == name])
            for name in found["means"]
        ),
    ]
    return "\n\n".join(sections) + "\n"


def _how(found: dict[str, Any]) -> str:
    return (
        f"Made by `python -m benchmarks.accuracy --data FOLDER --repeats {found['repeats']}` with "
        f"likeminds {found['likeminds']}, Python {found['python']}. The protocol is the "
        "paper's: 15 % of each user's labels are held out (whole choice sets, if rows were shown "
        "together). Cross-validation inside the rest chooses the parameters. This is repeated "
        f"{found['repeats']} times with other splits (seeds 100 and up, used for nothing else), or "
        "once for each attribute of data with several. Every ranker is tuned but "
        "`ThreeLevelRanker` (its defaults), `HierarchicalRanker` and `Popularity` (nothing to "
        "tune).\n\n"
        "The seven baselines of the paper appear twice: with an intercept for each person "
        "(`least_squares`, the usual way), and without one, as we infer for the paper "
        "(`least_squares_raw`). Only `electricity` comes with the project. The other data sets are "
        "public and credited below; with them as files (see the script), this page can be made "
        "again."
    )


def _overview(columns: dict[str, dict[str, float]]) -> str:
    there = {name for column in columns.values() for name in column}
    rows = [
        [name, *(_cell(c.get(name), max(c.values())) for c in columns.values())]
        for name in rankers()
        if name in there
    ]
    return markdown(["ranker", *columns], rows)


def _cell(value: float | None, best: float) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return f"**{text}**" if value == best else text


def _means(judged: list[dict[str, Any]]) -> dict[str, float]:
    rows = [{row["ranker"]: row["auc"] for row in one["rows"]} for one in judged]
    return {ranker: mean(row[ranker] for row in rows) for ranker in rows[0]}


CREDITS = {
    "electricity": "Which supply contract each household would choose, one of four at a time "
    "(Huber and Train, 2001).",
    "verbagg": "Would curse, scold or shout in a situation (Vansteelandt, 2000).",
    "trolley": "Judged more permissible than the person's median (Cushman et al., 2006).",
    "london_faces": "Rated more attractive than the person's median, by 300 of 2,492 raters; "
    "landmarks reduced to 99 % of their variance (DeBruine and Jones, Face Research Lab London "
    "Set, CC BY 4.0).",
    "faces_3dsk": "Five traits of women's and of men's faces, rated above the person's median; "
    "landmarks reduced to 99 % of their variance (DeBruine and Jones, 2020, CC BY 4.0).",
    "landmine": "Mine or clutter, 29 fields (Xue et al., 2007).",
}


def _section(name: str, judged: list[dict[str, Any]]) -> str:
    pieces = [f"## {name}", CREDITS.get(name, "")]
    for one in judged:
        which = f"**{one['attribute']}**: " if one["attribute"] else ""
        pieces += [
            f"{which}{one['users']} people, {one['labels']:,} labels, {one['features']} features, "
            f"{one['positive']:.0%} positive.",
            markdown(_HEAD, [_row(row) for row in one["rows"]]),
        ]
    return "\n\n".join(piece for piece in pieces if piece)


def _row(row: dict[str, Any]) -> list[str]:
    deviation, apart = row["deviation"], row["difference"]
    compared = ["best", ""]
    if apart is not None:
        compared = ["{:+.4f} [{:+.4f}, {:+.4f}]".format(*apart), f"{row['p']:.2g}"]
    shown = "-" if deviation is None else f"{deviation:.4f}"
    return [row["ranker"], f"{row['auc']:.4f}", shown, *compared, f"{row['seconds']:.2f}"]


if __name__ == "__main__":
    main()
