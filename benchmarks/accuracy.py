"""Every ranker on every data set at hand: ``python -m benchmarks.accuracy --data FOLDER``.

Writes ``docs/accuracy.md`` and its picture. The bundled data is always there; FOLDER may hold
others as ``NAME.npz`` with ``X`` (items x features), and one row per label in ``user``, ``item``,
``label`` (0/1), ``group`` and, where there are several, ``attribute``. Finished fits are kept in
``--cache``, so that a run that was interrupted continues where it was.
"""

import argparse
import platform
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from statistics import mean

from sklearn.decomposition import PCA

import likeminds
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
    found: dict[str, list[tuple[UserDataSet, Comparison]]] = {}
    for data in data_sets(chosen.data, chosen.users):
        if chosen.only in (None, data.name):
            # Ten attributes are ten repeats of a kind: one split of each is enough.
            repeats = chosen.repeats if data.attribute is None else 1
            comparison = run(data, repeats, chosen.cache, chosen.jobs)
            print(data.name, data.attribute or "", comparison, sep="\n", flush=True)
            found.setdefault(data.name, []).append((data, comparison))
    if chosen.only is None:
        write(found, chosen.repeats, chosen.out)


def write(found: dict[str, list[tuple[UserDataSet, Comparison]]], repeats: int, out: Path) -> None:
    """Write the page: who takes part, one table over all data sets, one for each."""
    picture = found["electricity"][0][1].boxplot()
    picture.figure.savefig(out / "accuracy.png", dpi=120, bbox_inches="tight")
    sections = [
        "# Every ranker on every data set",
        _how(repeats),
        "## Mean AUC over people",
        _overview(found),
        "AUC in per cent, the mean over people, then over repeats (and over attributes, if "
        "there are several). The best of each column is bold. The tables below have the "
        "differences with their intervals.",
        "![AUC by repeat on the electricity data](accuracy.png)",
        *(_section(name, results) for name, results in found.items()),
    ]
    page = out / "accuracy.md"
    page.write_text("\n\n".join(sections) + "\n", encoding="utf-8")
    print(f"Written: {page}")


def _how(repeats: int) -> str:
    return (
        f"Made by `python -m benchmarks.accuracy --data FOLDER --repeats {repeats}` with likeminds "
        f"{likeminds.__version__}, Python {platform.python_version()}. The protocol is the "
        "paper's: 15 % of each user's labels are held out (whole choice sets, if rows were shown "
        "together). Cross-validation inside the rest chooses the parameters. This is repeated "
        f"{repeats} times with other splits (seeds 100 and up, used for nothing else), or once for "
        "each attribute of data with several. Every ranker is tuned but `ThreeLevelRanker` (its "
        "defaults), `HierarchicalRanker` and `Popularity` (nothing to tune).\n\n"
        "The seven baselines of the paper appear twice: with an intercept for each person "
        "(`least_squares`, the usual way), and without one, as we infer for the paper "
        "(`least_squares_raw`). Only `electricity` comes with the project. The other data sets are "
        "public and credited below; with them as files (see the script), this page can be made "
        "again.\n\n"
        "Seconds below were measured on a machine busy with other jobs and show orders of "
        "magnitude only; [benchmarks.md](benchmarks.md) has times."
    )


def _overview(found: dict[str, list[tuple[UserDataSet, Comparison]]]) -> str:
    columns = {name: _means([c for _, c in results]) for name, results in found.items()}
    names = list(dict.fromkeys(ranker for column in columns.values() for ranker in column))
    best = {name: max(column.values()) for name, column in columns.items()}
    lines = ["| ranker | " + " | ".join(columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for ranker in names:
        cells = [_cell(column.get(ranker), best[name]) for name, column in columns.items()]
        lines.append(f"| {ranker} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(value: float | None, best: float) -> str:
    if value is None:
        return "-"
    text = f"{100 * value:.1f}"
    return f"**{text}**" if value == best else text


def _means(comparisons: list[Comparison]) -> dict[str, float]:
    rows = [{r["ranker"]: r["mean_score"] for r in c.summary().to_pylist()} for c in comparisons]
    return {ranker: mean(row[ranker] for row in rows) for ranker in comparisons[0].rankers}


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


def _section(name: str, results: list[tuple[UserDataSet, Comparison]]) -> str:
    pieces = [f"## {name}", CREDITS.get(name, "")]
    for data, comparison in results:
        said = data.annotations
        which = f"**{data.attribute}**: " if data.attribute else ""
        pieces += [
            f"{which}{said.n_users} people, {len(said):,} labels, {said.n_features} features, "
            f"{said.labels.mean():.0%} positive.",
            comparison.to_markdown(),
        ]
    return "\n\n".join(piece for piece in pieces if piece)


if __name__ == "__main__":
    main()
