"""Texts as items: our features of texts beside TF-IDF with pooled logistic regression.

    python -m benchmarks.texts FOLDER [--seeds 3]

reads ``offensive.npz`` (and ``jokes.npz`` with ``--jokes``) in a folder of data as
docs/accuracy.md describes it, and prints the mean over people of their AUC, in two ways: a part of
everybody's labels is held out, or whole items are, which nobody has judged in training.
"""

import argparse
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression

from likeminds import Annotations, HierarchicalRanker, split_within_people
from likeminds._support.arrays import Bool, Float
from likeminds.features import TextFeatures
from likeminds.metrics.by_person import auc_by_person

_HELD_OUT = 0.3


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
    train, _ = split_within_people(numbered, _HELD_OUT, random_state=seed)
    known = np.zeros(len(said), dtype=np.bool_)
    known[train.X[:, 0].astype(np.intp)] = True
    yield "labels", known
    new = np.random.default_rng(seed).permutation(n_items)[: round(_HELD_OUT * n_items)]
    yield "whole items", ~np.isin(said.item_codes, new)


def rival(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score held-out rows by TF-IDF of words and one logistic regression for everybody."""
    learned = np.unique(said.item_codes[known])
    words = TfidfVectorizer(sublinear_tf=True).fit([texts[j] for j in learned])
    rows = words.transform(texts)[said.item_codes]
    model = LogisticRegression(max_iter=1000).fit(rows[known], said.labels[known])
    return np.asarray(model.decision_function(rows[~known]))


def ours(said: Annotations, texts: list[str], known: Bool) -> Float:
    """Score held-out rows by `TextFeatures` and a `HierarchicalRanker`, as `fit --texts` does."""
    learned = np.unique(said.item_codes[known])
    words = TextFeatures(random_state=0).fit([texts[j] for j in learned])
    described = said._with(
        features=words.transform(texts), feature_names=tuple(words.get_feature_names_out())
    )
    ranker = HierarchicalRanker(standardize=False).fit(described[known])
    return np.asarray(ranker.decision_function(described[~known]))


_WAYS = {"TF-IDF, pooled logistic regression": rival, "TextFeatures, HierarchicalRanker": ours}


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jokes", action="store_true")
    asked = parser.parse_args()
    print("| data | held out | way | mean AUC by seed | mean | CPU s a fit |")
    print("|---|---|---|---|---|---|")
    for name in ["offensive", *(["jokes"] if asked.jokes else [])]:
        said, texts = read(asked.folder / f"{name}.npz")
        found: dict[tuple[str, str], list[float]] = {}
        spent: dict[tuple[str, str], float] = {}
        for seed in range(asked.seeds):
            for held_out, known in splits(said, seed):
                for way, score in _WAYS.items():
                    started = time.process_time()
                    scores = score(said, texts, known)
                    spent[held_out, way] = time.process_time() - started
                    rest = ~known
                    auc = auc_by_person(said.labels[rest], scores, said.users[rest])
                    found.setdefault((held_out, way), []).append(auc.mean)
        for (held_out, way), values in sorted(found.items()):
            listed = ", ".join(f"{value:.3f}" for value in values)
            seconds = spent[held_out, way]
            row = (name, held_out, way, listed, f"{np.mean(values):.3f}", f"{seconds:.0f}")
            print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
