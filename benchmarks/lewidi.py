"""LeWiDi scores of comments by offensiveness: ``python -m benchmarks.lewidi --data FOLDER``.

FOLDER holds ``offensive.npz`` with ``user``, ``item``, ``grade`` (1 to 5) and ``text``. As in the
shared tasks, annotators are known and 20 % of the items are new. The grades task is scored as the
Likert scales of LeWiDi 2025. The yes-or-no task (a grade above 1) has the scores of 2023 and 2025.
Scores of likeminds are those of the submission files, read back. Writes ``lewidi.json`` and,
between two marks, the tables of ``how-to/learning-with-disagreement.md``.
"""

import argparse
import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegressionCV
from sklearn.model_selection import GroupKFold

from benchmarks.accuracy import ROOT
from likeminds import Annotations, HierarchicalRanker, write_lewidi
from likeminds._util.array_types import Bool, Float, Index
from likeminds.features import TextFeatures
from likeminds.metrics import (
    absolute_distance_by_user,
    cross_entropy,
    error_rate_by_user,
    manhattan_distance,
    soft_labels,
    wasserstein_distance,
)

PAGE = "how-to/learning-with-disagreement.md"
BEGIN, END = "<!-- measured by benchmarks/lewidi.py: begin -->", "<!-- end -->"
SEEDS = range(20, 25)
_NEW = 0.2
# Labels that each annotator's distribution is smoothed by, with the shares of all labels.
_PRIOR = 5.0
_PENALTIES = np.geomspace(0.01, 10.0, 7)
Predicted = tuple[Float, Float]


class Task:
    """Rows of labels, which of them are known, the levels of the scale, and the texts of items."""

    def __init__(self, rows: dict[str, Any], known: Bool, levels: Float, texts: list[str]) -> None:
        self.user, self.item, self.label = (rows[name] for name in ("user", "item", "label"))
        self.known, self.levels, self.texts = known, levels, texts
        self.place = np.searchsorted(levels, self.label)

    def shares_by(self, codes: Index, prior: float) -> Float:
        """Return shares of known labels by code, smoothed by the shares of all."""
        counts = np.zeros((codes.max() + 1, len(self.levels)))
        np.add.at(counts, (codes[self.known], self.place[self.known]), 1.0)
        mixed = counts + prior * counts.sum(axis=0) / counts.sum()
        return np.asarray(mixed / mixed.sum(axis=1, keepdims=True))

    def summed_up(self, chances: Float) -> Predicted:
        """Return soft labels of new items, and annotators' medians, from chances of new rows."""
        codes = np.unique(self.item[~self.known], return_inverse=True)[1]
        soft = np.zeros((codes.max() + 1, len(self.levels)))
        np.add.at(soft, codes, chances)
        below = (chances.cumsum(axis=1) < 0.5).sum(axis=1)
        return soft / soft.sum(axis=1, keepdims=True), self.levels[below]


def most_frequent(task: Task) -> Predicted:
    """Predict the most frequent label, always: the organisers' baseline."""
    best = np.bincount(task.place[task.known]).argmax()
    return task.summed_up(np.tile(np.eye(len(task.levels))[best], ((~task.known).sum(), 1)))


def all_labels(task: Task) -> Predicted:
    """Predict the shares of all labels."""
    everyone = task.shares_by(np.zeros_like(task.user), 0.0)
    return task.summed_up(np.tile(everyone, ((~task.known).sum(), 1)))


def own_labels(task: Task) -> Predicted:
    """Predict the shares of each annotator's own labels."""
    return task.summed_up(task.shares_by(task.user, _PRIOR)[task.user[~task.known]])


def texts_only(task: Task, *, annotators: bool = False) -> Predicted:
    """Predict by TF-IDF and pooled multinomial logistic regression, penalty by cross-validation."""
    read = [task.texts[j] for j in np.unique(task.item[task.known])]
    words = TfidfVectorizer(sublinear_tf=True).fit(read).transform(task.texts)[task.item]
    ids = sparse.identity(task.user.max() + 1, format="csr")[task.user]
    rows = sparse.hstack([words, ids]).tocsr() if annotators else words
    known = task.known
    folds = list(GroupKFold(3).split(task.item[known], groups=task.item[known]))
    search = LogisticRegressionCV(
        Cs=_PENALTIES,
        cv=folds,
        scoring="neg_log_loss",
        l1_ratios=(0.0,),
        use_legacy_attributes=False,
        max_iter=2000,
    )
    search.fit(rows[known], task.place[known])
    return task.summed_up(search.predict_proba(rows[~known]))


def texts_and_annotators(task: Task) -> Predicted:
    """Predict the same way, with a dummy variable for each annotator."""
    return texts_only(task, annotators=True)


def ours(task: Task) -> Predicted:
    """Write a submission of `TextFeatures` with a `HierarchicalRanker`, and read it back."""
    words = TextFeatures(random_state=0)
    words.fit([task.texts[j] for j in np.unique(task.item[task.known])])
    graded = len(task.levels) > 2
    crowd = Annotations(
        task.user,
        task.item,
        task.label,
        words.transform(task.texts),
        grades=True if graded else None,
    )
    ranker = HierarchicalRanker(standardize=False, loss="cumulative" if graded else "auto")
    ranker.fit(crowd[task.known])
    with tempfile.TemporaryDirectory() as folder:
        files = write_lewidi(ranker, crowd[~task.known], folder, "offensive", levels=task.levels)
        soft, own = map(read_submission, files)
    codes = np.unique(task.item[~task.known], return_inverse=True)[1]
    labels = np.empty(len(codes))
    for item, found in enumerate(own.values()):
        labels[codes == item] = found
    return np.array(list(soft.values())), labels


def read_submission(path: Path) -> dict[str, list[float]]:
    """Return the list of each item of a submission."""
    lines = (line.split("\t") for line in path.read_text().splitlines())
    return {item: json.loads(values) for item, values in lines}


METHODS: dict[str, Callable[[Task], Predicted]] = {
    "most frequent label": most_frequent,
    "shares of all labels": all_labels,
    "shares of the annotator's labels": own_labels,
    "texts (TF-IDF, logistic regression)": texts_only,
    "texts and annotators' ids": texts_and_annotators,
    "HierarchicalRanker": ours,
}


def scores(task: Task, predicted: Predicted) -> dict[str, float]:
    """Return the scores of a task, each the mean over items."""
    soft, labels = predicted
    rows = ~task.known
    given, items = task.label[rows], task.item[rows]
    _, truth = soft_labels(given, items, task.levels)
    if len(task.levels) > 2:
        apart = absolute_distance_by_user(given, labels, items, task.levels).mean
        moved = wasserstein_distance(truth, soft, task.levels).mean()
        return {"Wasserstein distance": float(moved), "normalised absolute distance": apart}
    return {
        "cross-entropy": float(cross_entropy(truth, soft).mean()),
        "Manhattan distance": float(manhattan_distance(truth, soft).mean()),
        "error rate": error_rate_by_user(given, labels, items).mean,
    }


def tasks(columns: dict[str, Any], seed: int) -> Iterator[tuple[str, Task]]:
    """Yield the two tasks, with the same new items."""
    texts = columns["text"].tolist()
    new = np.random.default_rng(seed).permutation(len(texts))[: round(_NEW * len(texts))]
    known = ~np.isin(columns["item"], new)
    grade = columns["grade"].astype(np.float64)
    for name, label in (("grades", grade), ("yes or no", (grade > 1).astype(np.float64))):
        yield name, Task(columns | {"label": label}, known, np.unique(label), texts)


def simulated() -> dict[str, Any]:
    """Return a tiny crowd that grades texts by the number of rude words."""
    rng = np.random.default_rng(0)
    user, item = (one.ravel() for one in np.indices((12, 40)))
    rude = rng.integers(4, size=40)
    words = [["rude"] * n + ["mild"] * (3 - n) for n in rude]
    texts = [" ".join([*one, *rng.choice(["cat", "dog", "sun", "sea"], 3)]) for one in words]
    strict = rng.normal(size=12)
    liked = 1 + rude[item] + strict[user] + 0.5 * rng.normal(size=len(user))
    grade = np.clip(np.round(liked), 1, 5)
    return {"user": user, "item": item, "grade": grade, "text": np.array(texts)}


def measure(columns: dict[str, Any], seeds: range) -> dict[str, Any]:
    """Return each score of each method: its mean over splits, and its standard error."""
    found: dict[str, dict[str, dict[str, list[float]]]] = {}
    for seed in seeds:
        for name, task in tasks(columns, seed):
            for method, predict in METHODS.items():
                for metric, value in scores(task, predict(task)).items():
                    by_metric = found.setdefault(name, {}).setdefault(method, {})
                    by_metric.setdefault(metric, []).append(value)
    return {
        name: {
            method: {metric: _mean(values) for metric, values in by_metric.items()}
            for method, by_metric in methods.items()
        }
        for name, methods in found.items()
    }


def _mean(values: list[float]) -> dict[str, float]:
    error = np.std(values, ddof=1) / np.sqrt(len(values)) if len(values) > 1 else 0.0
    return {"mean": float(np.mean(values)), "error": float(error)}


def as_tables(results: dict[str, Any]) -> str:
    """Return a table for each task; the best value of each column is in bold."""
    parts = []
    for name, methods in results.items():
        metrics = list(next(iter(methods.values())))
        best = {m: min(round(row[m]["mean"], 3) for row in methods.values()) for m in metrics}
        lines = [f"| {name} | {' | '.join(metrics)} |", "|---" * (len(metrics) + 1) + "|"]
        for method, row in methods.items():
            shown = {m: f"{row[m]['mean']:.3f}" for m in metrics}
            marked = [
                f"**{shown[m]}**" if round(row[m]["mean"], 3) == best[m] else shown[m]
                for m in metrics
            ]
            errors = [f" ± {row[m]['error']:.3f}" for m in metrics]
            cells = map("".join, zip(marked, errors, strict=True))
            lines.append(f"| {method} | {' | '.join(cells)} |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, help="folder with offensive.npz")
    parser.add_argument("--quick", action="store_true", help="a tiny simulated crowd, one split")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the page")
    chosen = parser.parse_args(arguments)
    if chosen.quick:
        results = measure(simulated(), SEEDS[:1])
    else:
        with np.load(chosen.data / "offensive.npz", allow_pickle=False) as archive:
            columns = {name: archive[name] for name in ("user", "item", "grade", "text")}
        results = measure(columns, SEEDS)
    page = chosen.out / PAGE
    before, rest = page.read_text(encoding="utf-8").split(BEGIN)
    after = rest.split(END, 1)[1]
    tables = f"{before}{BEGIN}\n{as_tables(results)}\n{END}{after}"
    page.write_text(tables, encoding="utf-8")
    (chosen.out / "lewidi.json").write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
