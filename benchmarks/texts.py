"""Texts as items: our features of texts compared with TF-IDF and pooled logistic regression.

    python -m benchmarks.texts FOLDER --first 20 --seeds 2 --out docs/texts.json

reads ``offensive.npz`` (and ``jokes.npz`` with ``--jokes``) in a folder of data as
docs/accuracy.md describes it, and prints the mean over users of their AUC, in two ways: a part of
each user's labels is held out, or whole items. docs/features.md quotes the JSON file
(``python -m tools.quoted_numbers``).
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import GroupKFold

from likeminds import Annotations, HierarchicalRanker, split_within_users
from likeminds._util.array_types import Bool, Float
from likeminds.features import TextFeatures
from likeminds.metrics.by_user import auc_by_user

_HELD_OUT = 0.3
_FOLDS, _PENALTIES = 3, np.geomspace(0.1, 10.0, 5)


def read(path: Path) -> tuple[Annotations, list[str]]:
    """Return labels above everybody's own median, without features, and what items say."""
    with np.load(path, allow_pickle=False) as archive:
        texts = archive["text"].tolist()
        said = Annotations(
            archive["user"],
            archive["item"],
            archive["grade"],
            np.arange(len(texts), dtype=np.float64)[:, np.newaxis],
            threshold="median",
        )
    return said, texts


def splits(said: Annotations, seed: int) -> Iterator[tuple[str, Bool]]:
    """Yield, by how labels are held out, which rows are learned from."""
    n_items = said.n_items
    numbered = said._with(features=np.arange(len(said), dtype=np.float64)[:, np.newaxis])
    numbered = numbered._with(feature_rows=np.arange(len(said)), features_per="row")
    train, _ = split_within_users(numbered, _HELD_OUT, random_state=seed)
    known = np.zeros(len(said), dtype=np.bool_)
    known[train.X[:, 0].astype(np.intp)] = True
    yield "labels", known
    new = np.random.default_rng(seed).permutation(n_items)[: round(_HELD_OUT * n_items)]
    yield "whole items", ~np.isin(said.item_codes, new)


def rival(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score held-out rows by TF-IDF of words and one logistic regression for everybody."""
    rows = _counted(said, texts, known, pieces=False)
    model = LogisticRegression(max_iter=1000).fit(rows[known], said.labels[known])
    return np.asarray(model.decision_function(rows[~known]))


def tuned_rival(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score the same way, with the penalty tuned by cross-validation over items."""
    return _tuned(_counted(said, texts, known, pieces=False), said, known)


def rival_with_pieces(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score the same way, with the pieces of words that `TextFeatures` counts, too."""
    return _tuned(_counted(said, texts, known, pieces=True), said, known)


def _counted(said: Annotations, texts: list[str], known: Bool, *, pieces: bool) -> Any:
    """Return TF-IDF of each row's text; the vocabulary is that of the known items."""
    read = [texts[j] for j in np.unique(said.item_codes[known])]
    counts = [TfidfVectorizer(sublinear_tf=True).fit(read).transform(texts)]
    if pieces:
        letters = TfidfVectorizer(
            analyzer="char_wb", ngram_range=(2, 5), min_df=2, sublinear_tf=True
        )
        counts.append(letters.fit(read).transform(texts))
    return sparse.hstack(counts).tocsr()[said.item_codes]


def _tuned(rows: Any, said: Annotations, known: Bool) -> Float:
    items, labels = said.item_codes[known], said.labels[known]
    folds = list(GroupKFold(_FOLDS).split(items, groups=items))
    found = [np.mean([_auc(rows[known], labels, C, *fold) for fold in folds]) for C in _PENALTIES]
    best = _PENALTIES[int(np.argmax(found))]
    search = LogisticRegression(C=best, max_iter=1000).fit(rows[known], labels)
    return np.asarray(search.decision_function(rows[~known]))


def _auc(rows: Any, labels: Bool, C: float, learned: Any, held_out: Any) -> float:
    model = LogisticRegression(C=C, max_iter=1000).fit(rows[learned], labels[learned])
    return float(roc_auc_score(labels[held_out], model.decision_function(rows[held_out])))


def ours(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score held-out rows by `TextFeatures` and a `HierarchicalRanker`, as `fit --texts` does."""
    learned = np.unique(said.item_codes[known])
    words = TextFeatures(random_state=0).fit([texts[j] for j in learned])
    described = said._with(
        features=words.transform(texts), feature_names=tuple(words.get_feature_names_out())
    )
    ranker = HierarchicalRanker(standardize=False).fit(described[known])
    return np.asarray(ranker.decision_function(described[~known]))


_WAYS = {
    "TF-IDF, pooled logistic regression": rival,
    "the same, penalty tuned": tuned_rival,
    "the same with pieces of words, penalty tuned": rival_with_pieces,
    "TextFeatures, HierarchicalRanker": ours,
}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--jokes", action="store_true")
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    asked = parser.parse_args()
    results: dict[str, Any] = {}
    print("| data | held out | way | mean AUC by seed | mean | CPU s a fit |")
    print("|---|---|---|---|---|---|")
    for name in ["offensive", *(["jokes"] if asked.jokes else [])]:
        said, texts = read(asked.folder / f"{name}.npz")
        found: dict[tuple[str, str], list[float]] = {}
        spent: dict[tuple[str, str], float] = {}
        for seed in range(asked.first, asked.first + asked.seeds):
            for held_out, known in splits(said, seed):
                for way, score in _WAYS.items():
                    started = time.process_time()
                    scores = score(said, texts, known)
                    spent[held_out, way] = time.process_time() - started
                    rest = ~known
                    auc = auc_by_user(said.labels[rest], scores, said.users[rest])
                    found.setdefault((held_out, way), []).append(auc.mean)
            print(f"seed {seed} is done", file=sys.stderr, flush=True)
        for (held_out, way), values in found.items():
            listed = ", ".join(f"{value:.3f}" for value in values)
            mean, error = np.mean(values), np.std(values, ddof=1) / np.sqrt(len(values))
            of_data = results.setdefault(name, {}).setdefault(held_out, {})
            seconds = spent[held_out, way]
            of_data[way] = {"auc": values, "mean": float(mean), "seconds": seconds}
            row = (
                name,
                held_out,
                way,
                listed,
                f"{mean:.4f} ± {error:.4f}",
                f"{seconds:.0f}",
            )
            print(f"| {' | '.join(row)} |", flush=True)
    if asked.out:
        asked.out.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
