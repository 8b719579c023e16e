"""New texts judged by known users: ``python -m benchmarks.new_texts --data FOLDER``.

A share of the texts is held out with all their labels. HierarchicalRanker learns from the other
texts, described by TF-IDF (`TextFeatures`) or by embeddings, and predicts the labels of the new
ones. ``--model FILE --vocabulary FILE`` give the network of `SentenceEmbeddings`; without them,
embeddings are left out.

grades
    The protocol of POPQUORN: 300 of the 1,500 comments of ``offensive.npz`` are new. Printed is
    the correlation between grades and expected grades over all held-out rows. The mean absolute
    error is that of the predicted median, with grades from 0 to 1. Each user's own mean (for the
    error, the median) in the training part is the baseline.
AUC
    30 % of the texts of ``offensive.npz`` and ``polis_uber.npz`` (400 users, drawn at random) are
    new. Printed are means over users, and paired gains over TF-IDF with 95 % intervals over users.

``--out FILE`` writes the results as JSON; those of other data stay there with ``--only``.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.shared_crowds import SharedCrowd, read_crowds_of
from likeminds import Annotations, HierarchicalRanker, auc_by_user
from likeminds._util.array_types import Bool, Float
from likeminds.features import SentenceEmbeddings, TextFeatures
from likeminds.metrics.paired import over_users
from likeminds.paper.experiments.data_sets import fewer_users

NEW_OF_GRADES, NEW_OF_LABELS = 0.2, 0.3
MOST_USERS = 400
GRADES = "grades"
NAMES = (GRADES, "offensive", "polis_uber")
TFIDF, OWN = "TF-IDF", "own mean"

# Given which texts are known, return the features of all.
Describe = Callable[[Bool], Float]


def ways(texts: np.ndarray, embeddings: SentenceEmbeddings | None) -> dict[str, Describe]:
    """Return the ways to describe texts."""

    def tfidf(known: Bool) -> Float:
        words = TextFeatures(random_state=0).fit(texts[known].tolist())
        return words.transform(texts.tolist()).astype(np.float64)

    if embeddings is None:
        return {TFIDF: tfidf}
    rows = np.asarray(embeddings.transform(texts.tolist()), dtype=np.float64)
    return {TFIDF: tfidf, "embeddings": lambda _: rows}


def drawn(n_texts: int, share: float, seed: int) -> Bool:
    """Return which texts are known."""
    new = np.random.default_rng(seed).permutation(n_texts)[: round(share * n_texts)]
    return ~np.isin(np.arange(n_texts), new)


def split(said: Annotations, X: Float, known: Bool) -> tuple[Annotations, Annotations]:
    """Describe the items, and separate the labels of known and new ones."""
    labels = said.labels if said.grades is None else said.grades
    described = Annotations(said.users, said.items, labels, X, item_ids=np.arange(len(X)))
    is_known = known[described.items.astype(np.intp)]
    return described[is_known], described[~is_known]


def of_grades(predicted: Float, middle: Float, grades: Float, scale: Float) -> dict[str, float]:
    """Return the correlation, and the mean absolute error on a scale from 0 to 1."""
    width = scale.max() - scale.min()
    correlation = float(np.corrcoef(predicted, grades)[0, 1])
    return {"correlation": correlation, "error": float(np.abs(middle - grades).mean() / width)}


def graded(train: Annotations, test: Annotations) -> dict[str, float]:
    """Fit to grades, and score the grades of new texts."""
    begun = time.process_time()
    ranker = HierarchicalRanker(standardize=False).fit(train)
    seconds = time.process_time() - begun
    found = ranker.predict_grades(test)
    middle = found.grades[(found.probabilities.cumsum(axis=1) < 0.5).sum(axis=1)]
    expected = found.probabilities @ found.grades
    return of_grades(expected, middle, test.grades, found.grades) | {"seconds": seconds}


def own_mean(train: Annotations, test: Annotations) -> dict[str, float]:
    """Score the mean and the median of the grades of each user."""
    mine = {user: train.grades[train.users == user] for user in np.unique(test.users).tolist()}
    mean, middle = (
        np.array([summary(mine[user]) for user in test.users.tolist()])
        for summary in (np.mean, np.median)
    )
    return of_grades(mean, middle, test.grades, np.unique(train.grades))


def aucs(train: Annotations, test: Annotations, counted: Sequence[Any]) -> dict[Any, float]:
    """Fit to labels; return the AUC of the users that count."""
    ranker = HierarchicalRanker(standardize=False, unknown="consensus").fit(train)
    found = auc_by_user(test.labels, ranker.decision_function(test), test.users)
    pairs = zip(found.users.tolist(), found.values.tolist(), strict=True)
    return {user: auc for user, auc in pairs if np.isfinite(auc) and user in counted}


def measure_grades(
    folder: Path, embeddings: SentenceEmbeddings | None, seeds: Sequence[int]
) -> dict[str, dict[str, float]]:
    """Return the means over splits by way."""
    with np.load(folder / "offensive.npz", allow_pickle=False) as data:
        texts = data["text"]
        said = Annotations(data["user"], data["item"], data["grade"].astype(np.float64))
    described = ways(texts, embeddings)
    found: dict[str, list[dict[str, float]]] = {}
    for seed in seeds:
        known = drawn(len(texts), NEW_OF_GRADES, seed)
        for way, describe in described.items():
            train, test = split(said, describe(known), known)
            found.setdefault(way, []).append(graded(train, test))
            print(f"grades, split {seed}, {way}: {found[way][-1]}", flush=True)
        found.setdefault(OWN, []).append(own_mean(train, test))
    return {
        way: {kind: float(np.mean([one[kind] for one in each])) for kind in each[0]}
        for way, each in found.items()
    }


def measure_aucs(
    crowd: SharedCrowd, embeddings: SentenceEmbeddings | None, seeds: Sequence[int]
) -> dict[str, Any]:
    """Return means over users by way, with gains over TF-IDF."""
    described = ways(crowd.texts, embeddings)
    counted = set(crowd.said.user_ids[crowd.counted].tolist())
    found: dict[str, dict[Any, list[float]]] = {way: {} for way in described}
    for seed in seeds:
        known = drawn(len(crowd.texts), NEW_OF_LABELS, seed)
        for way, describe in described.items():
            train, test = split(crowd.said, describe(known), known)
            scores = aucs(train, test, counted)
            for user, auc in scores.items():
                found[way].setdefault(user, []).append(auc)
            print(f"{crowd.name}, {seed}, {way}: {np.mean(list(scores.values())):.4f}", flush=True)
    means = {
        way: {user: float(np.mean(each)) for user, each in users.items()}
        for way, users in found.items()
    }
    results: dict[str, Any] = {}
    for way, values in means.items():
        results[way] = {"auc": float(np.mean(list(values.values())))}
        if way != TFIDF:
            gains = np.array([values[user] - means[TFIDF][user] for user in values])
            results[way] |= dict(zip(("gain", "low", "high"), over_users(gains), strict=False))
    return results


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--model", type=Path, help="ONNX file of a language network")
    parser.add_argument("--vocabulary", type=Path, help="its vocab.txt")
    parser.add_argument("--seed", type=int, default=70, help="of the first split")
    parser.add_argument("--splits", type=int, default=2, help="how many")
    parser.add_argument("--only", nargs="+", choices=NAMES, default=NAMES)
    parser.add_argument("--out", type=Path, help="write the results to this JSON file")
    asked = parser.parse_args(arguments)
    network = None
    if asked.model is None:
        print("Embeddings are left out, as there is no --model.")
    else:
        network = SentenceEmbeddings(asked.model, asked.vocabulary, n_threads=1)
    seeds = range(asked.seed, asked.seed + asked.splits)
    results: dict[str, Any] = {}
    if asked.out and asked.out.is_file():
        results = json.loads(asked.out.read_text(encoding="utf-8"))
    for name in asked.only:
        if name == GRADES:
            results[name] = measure_grades(asked.data, network, seeds)
        else:
            crowd = next(read_crowds_of(asked.data / f"{name}.npz"))
            fewer = replace(crowd, said=fewer_users(crowd.said, MOST_USERS))
            results[name] = measure_aucs(fewer, network, seeds)
        text = json.dumps({one: results[one] for one in NAMES if one in results}, indent=1)
        if asked.out:
            asked.out.write_text(f"{text}\n", encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
