"""Peers on crowds who judge the same items: ``python -m benchmarks.crowd_peers --data FOLDER``.

Every peer learns from the same splits as HierarchicalRanker, and is scored by the same functions:
those of `benchmarks.accuracy_check`, with the trials listed there. Printed are means over users,
the calibration error and processor seconds, then paired differences between HierarchicalRanker and
each peer, with 95 % intervals over users. ``--page FILE`` writes them as a table.

popularity
    The item effects alone: for pairs, a pooled Bradley-Terry model with a ridge penalty.
Factorisation
    Logistic matrix factorisation with features of items, tuned by `RankerCV`: labels only.
myFM
    The Bayesian factorisation machine by Gibbs sampling (``pip install myfm``); its rank (4, 8 or
    16) has the lowest log loss on 15 % of the training part. Grades: its ordered probit.
"""

import argparse
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import date
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.accuracy_check import TRIALS, Saved, Trial, Verdict, compare, measure
from likeminds import Annotations
from likeminds.rankers.baselines.popularity import has_shared_items
from likeminds.rankers.registry import default_rankers

RANKS = (4, 8, 16)
DRAWS = 300
OURS = "HierarchicalRanker"
DEFAULT = ("ukp, pairs", "bank, pairs", "oasis", "oasis, grades", "un", "jokes", "verbagg", "speed")


class Design:
    """Rows of users, items and features, one per label or, for choices, one per pair."""

    def __init__(self, train: Annotations) -> None:
        self._users, self._items = train.user_ids, train.item_ids
        spread = train.features.std(axis=0)
        self._spread = np.where(spread > 0, spread, 1.0)

    def rows(self, annotations: Annotations) -> sparse.csr_matrix:
        """Return one row per label: user, item, features."""
        users = _one_hot(annotations.users, self._users)
        return sparse.hstack([users, self._of_items(annotations)], format="csr")

    def pairs(self, annotations: Annotations) -> tuple[sparse.csr_matrix, np.ndarray, np.ndarray]:
        """Return one row per pair (first less second), and the positions of the two rows."""
        order = np.argsort(annotations.choice_set_codes, kind="stable")
        first, second = order[::2].copy(), order[1::2].copy()
        # Winners may come first in all pairs: every other pair is turned round.
        first[::2], second[::2] = order[1::4], order[::4]
        items = self._of_items(annotations)
        users = _one_hot(annotations.users[first], self._users)
        both = sparse.hstack([users, items[first] - items[second]], format="csr")
        return both, first, second

    def _of_items(self, annotations: Annotations) -> sparse.csr_matrix:
        parts = [sparse.csr_matrix(annotations.X / self._spread)]
        if annotations.has_items:
            parts.append(_one_hot(annotations.items, self._items))
        return sparse.hstack(parts, format="csr")


def _one_hot(values: np.ndarray, known: np.ndarray) -> sparse.csr_matrix:
    order = np.argsort(known)
    place = order[np.searchsorted(known[order], values).clip(max=len(known) - 1)]
    there = known[place] == values
    shape = (len(values), len(known))
    return sparse.csr_matrix((there.astype(float), (np.arange(len(values)), place)), shape=shape)


class Machine:
    """Base: a model of `Design` rows, with the methods that the scores ask for."""

    def fit(self, train: Annotations) -> "Machine":
        """Learn from labels, grades or pairs."""
        self._design = Design(train)
        self._is_paired = train.choice_set_codes is not None
        self._levels = self.grading_ = None if train.grades is None else np.unique(train.grades)
        self._learn(*self._given(train))
        return self

    def _given(self, annotations: Annotations) -> tuple[sparse.csr_matrix, np.ndarray]:
        if self._is_paired:
            rows, first, _ = self._design.pairs(annotations)
            return rows, annotations.labels[first].astype(int)
        rows = self._design.rows(annotations)
        if self._levels is not None:
            return rows, np.searchsorted(self._levels, annotations.grades)
        return rows, annotations.labels.astype(int)

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability of each label; of a pair's rows, to be chosen."""
        if not self._is_paired:
            chance = self._chances(self._design.rows(annotations))
            return np.column_stack([1 - chance, chance])
        rows, first, second = self._design.pairs(annotations)
        chance = np.empty(len(annotations))
        chance[first] = self._chances(rows)
        chance[second] = 1.0 - chance[first]
        return np.column_stack([1 - chance, chance])

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return log-odds, or expected grades."""
        if self._levels is not None:
            return self._expected(self._design.rows(annotations))
        chance = self.predict_proba(annotations)[:, 1].clip(1e-9, 1 - 1e-9)
        return np.log(chance / (1 - chance))

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        raise NotImplementedError

    def _chances(self, rows: sparse.csr_matrix) -> np.ndarray:
        raise NotImplementedError

    def _expected(self, rows: sparse.csr_matrix) -> np.ndarray:
        raise NotImplementedError


class Pooled(Machine):
    """One regression for all: item effects and features; of pairs, Bradley-Terry."""

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        penalties = np.logspace(-2, 2, 9)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            self._model = LogisticRegressionCV(
                Cs=penalties, cv=5, scoring="neg_log_loss", fit_intercept=not self._is_paired
            ).fit(rows, answer)

    def _chances(self, rows: sparse.csr_matrix) -> np.ndarray:
        return expit(self._model.decision_function(rows))


class MyFM(Machine):
    """The Bayesian factorisation machine; its rank is chosen on held-out rows."""

    def _learn(self, rows: sparse.csr_matrix, answer: np.ndarray) -> None:
        myfm = import_module("myfm")
        make = myfm.MyFMClassifier if self._levels is None else myfm.MyFMOrderedProbit
        out = np.random.default_rng(0).random(len(answer)) < 0.15
        losses = []
        for rank in RANKS:
            self._model = self._sampled(make(rank, random_seed=0), rows[~out], answer[~out])
            given = self._of_answers(rows[out])[np.arange(out.sum()), answer[out]]
            losses.append(-np.log(np.maximum(given, 1e-12)).mean())
        self._model = self._sampled(make(RANKS[int(np.argmin(losses))]), rows, answer)

    def _sampled(self, model: Any, rows: sparse.csr_matrix, answer: np.ndarray) -> Any:
        n_users = len(self._design._users)
        shapes = [n_users, rows.shape[1] - n_users]
        return model.fit(rows, answer, n_iter=DRAWS, n_kept_samples=DRAWS // 2, group_shapes=shapes)

    def _of_answers(self, rows: sparse.csr_matrix) -> np.ndarray:
        found = np.asarray(self._model.predict_proba(rows))
        return found if found.ndim == 2 else np.column_stack([1 - found, found])

    def _chances(self, rows: sparse.csr_matrix) -> np.ndarray:
        return self._of_answers(rows)[:, 1]

    def _expected(self, rows: sparse.csr_matrix) -> np.ndarray:
        return self._of_answers(rows) @ self._levels

    def predict_grades(self, annotations: Annotations) -> SimpleNamespace:
        """Return the probability of each grade."""
        chances = self._of_answers(self._design.rows(annotations))
        return SimpleNamespace(grades=self._levels, probabilities=chances)


class TunedFactorisation:
    """Factorisation with cross-validated parameters; its scores are log-odds."""

    def fit(self, train: Annotations) -> "TunedFactorisation":
        """Tune and fit."""
        ranker = default_rankers()["Factorisation"].set_params(ranker__unknown="consensus")
        self._ranker = ranker.fit(train)
        return self

    def decision_function(self, annotations: Annotations) -> np.ndarray:
        """Return log-odds."""
        return np.asarray(self._ranker.decision_function(annotations))

    def predict_proba(self, annotations: Annotations) -> np.ndarray:
        """Return the probability of each label."""
        chance = expit(self.decision_function(annotations))
        return np.column_stack([1 - chance, chance])


def peers_of(trial: Trial, annotations: Annotations) -> dict[str, Callable[[], Any]]:
    """Return the peers that take these answers."""
    peers: dict[str, Callable[[], Any]] = {}
    if annotations.grades is None:
        peers["popularity"] = Pooled
        if annotations.choice_set_codes is None and has_shared_items(annotations):
            peers["Factorisation"] = TunedFactorisation
    if find_spec("myfm") is not None:
        peers["myFM"] = MyFM
    return peers | {OURS: trial.ranker}


def calibration_error(ranker: Any, test: Annotations) -> float:
    """Return the mean distance between probability and share of positives, in ten bins."""
    chance = ranker.predict_proba(test)[:, 1]
    bins = np.minimum((chance * 10).astype(int), 9)
    apart = np.bincount(bins, weights=chance - test.labels)
    return float(np.abs(apart).sum() / len(chance))


@dataclass(frozen=True)
class Result:
    """A method on the splits of a trial."""

    name: str
    saved: Saved
    means: dict[str, float]
    seconds: float
    gains: list[Verdict]  # of HierarchicalRanker over this method

    @property
    def cells(self) -> list[str]:
        """The cells of a row: the means, processor seconds, and gains with their intervals."""
        cells = [f"{kind} {value:.4f}" for kind, value in self.means.items()]
        cells = [self.name, ", ".join(cells), f"{self.seconds:.1f}"]
        gains = [
            f"{one.measure} {one.gain:+.4f} [{one.low:+.4f}, {one.high:+.4f}] {one.word}"
            for one in self.gains
        ]
        return [*cells, "; ".join(gains)]


def run(name: str, folder: Path, seeds: Sequence[int], users: int | None) -> list[Result]:
    """Measure every method on the splits of a trial, HierarchicalRanker first."""
    trial = TRIALS[name]
    methods = peers_of(trial, trial.read(folder, trial.file))
    found: list[Result] = []
    for method in (OURS, *(peer for peer in methods if peer != OURS)):
        errors: list[float] = []

        def score(ranker: Any, test: Annotations, errors: list[float] = errors) -> Any:
            if test.grades is None:
                errors.append(calibration_error(ranker, test))
            return trial.score(ranker, test)

        asked = replace(trial, ranker=methods[method], score=score)
        by_seed = {str(seed): measure(asked, folder, seed, users) for seed in seeds}
        means = {
            kind: float(
                np.mean([v for one in by_seed.values() for v in one["scores"][kind].values()])
            )
            for kind in next(iter(by_seed.values()))["scores"]
        }
        if errors:
            means["calibration error"] = float(np.mean(errors))
        seconds = sum(one["seconds"] for one in by_seed.values()) / len(seeds)
        saved = {name: by_seed}
        gains = list(compare(saved, found[0].saved)) if found else []
        found.append(Result(method, saved, means, seconds, gains))
        print("  ".join([f"{name:<16}", *found[-1].cells]), flush=True)
    return found


def page(results: dict[str, list[Result]], seeds: Sequence[int]) -> str:
    """Return a page with the table, and a list of the data sets where a peer is ahead."""
    rows = [[name, *one.cells] for name, found in results.items() for one in found]
    behind = [
        f"{name}: {one.name} ({gain.measure} {gain.gain:+.4f})"
        for name, found in results.items()
        for one in found
        for gain in one.gains
        if gain.word == "worse"
    ]
    lines = [
        "# Peers on the same items",
        "",
        f"Written by `python -m benchmarks.crowd_peers --data FOLDER --seed {seeds[0]} --splits "
        f"{len(seeds)} --page FILE` on {date.today().isoformat()}. 30 % of the labels of each user "
        "are held out. No ranker and no constant was chosen by these seeds. Values are means over "
        "users, and the calibration error is over ten bins of probability. Gains of "
        f"`{OURS}` over each peer are paired over users, with 95 % intervals; positive is better. "
        "Popularity is the pooled regression on items and features (for pairs, Bradley-Terry).",
        "",
        "| data | method | held-out labels | processor s | gain of HierarchicalRanker |",
        "|---|---|---|---|---|",
        *("| " + " | ".join(row) + " |" for row in rows),
        "",
        f"`{OURS}` is behind on: {'; '.join(behind)}." if behind else f"`{OURS}` is never behind.",
    ]
    return "\n".join(lines) + "\n"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--only", nargs="+", metavar="TRIAL", default=DEFAULT)
    parser.add_argument("--splits", type=int, default=3, help="how many")
    parser.add_argument("--seed", type=int, default=10, help="of the first split")
    parser.add_argument("--users", type=int, help="at most so many users of each data set")
    parser.add_argument("--page", type=Path, help="write the table to this Markdown file")
    asked = parser.parse_args(arguments)
    seeds, results = range(asked.seed, asked.seed + asked.splits), {}
    for name in asked.only:
        if not (asked.data / f"{TRIALS[name].file}.npz").is_file():
            print(f"{name}: left out, as there is no {TRIALS[name].file}.npz in --data.")
            continue
        results[name] = run(name, asked.data, seeds, asked.users)
        if asked.page:
            asked.page.write_text(page(results, seeds), encoding="utf-8")


if __name__ == "__main__":
    main()
