"""Peers on crowds who judge the same items: ``python -m benchmarks.crowd_peers --data FOLDER``.

Every peer learns from the same splits as HierarchicalRanker, and is scored by the same functions:
those of `benchmarks.accuracy_check`, with the trials listed there. Printed are means over users,
the calibration error and processor seconds, then paired differences between HierarchicalRanker and
each peer, with 95 % intervals over users.

popularity
    The item effects alone: for pairs, a pooled Bradley-Terry model with a ridge penalty.
myFM
    The Bayesian factorisation machine by Gibbs sampling (``pip install myfm``); its rank (4, 8 or
    16) has the lowest log loss on 15 % of the training part. Grades: its ordered probit.
"""

import argparse
import warnings
from collections.abc import Callable
from dataclasses import replace
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse
from scipy.special import expit
from sklearn.linear_model import LogisticRegressionCV

from benchmarks.accuracy_check import SEEDS, TRIALS, Saved, Trial, compare, measure
from likeminds import Annotations

RANKS = (4, 8, 16)
DRAWS = 300
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
        self._levels = None if train.grades is None else np.unique(train.grades)
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


def peers_of(trial: Trial, annotations: Annotations) -> dict[str, Callable[[], Any]]:
    """Return the peers that take these answers."""
    peers: dict[str, Callable[[], Any]] = {}
    if annotations.grades is None:
        peers["popularity"] = Pooled
    if find_spec("myfm") is not None:
        peers["myFM"] = MyFM
    return peers | {"HierarchicalRanker": trial.ranker}


def calibration_error(ranker: Any, test: Annotations) -> float:
    """Return the mean distance between probability and share of positives, in ten bins."""
    chance = ranker.predict_proba(test)[:, 1]
    bins = np.minimum((chance * 10).astype(int), 9)
    count = np.bincount(bins, minlength=10)
    apart = np.bincount(bins, weights=chance - test.labels, minlength=10)
    return float(np.abs(apart).sum() / count.sum())


def run(name: str, folder: Path, seeds: tuple[int, ...], users: int | None) -> dict[str, Saved]:
    """Measure every peer on the splits of a trial, and print means."""
    trial, saved = TRIALS[name], {}
    whole = trial.read(folder, trial.file)
    for peer, make in peers_of(trial, whole).items():
        by_seed = {str(s): measure(replace(trial, ranker=make), folder, s, users) for s in seeds}
        saved[peer] = {name: by_seed}
        means = {
            kind: np.mean([v for one in by_seed.values() for v in one["scores"][kind].values()])
            for kind in next(iter(by_seed.values()))["scores"]
        }
        seconds = sum(one["seconds"] for one in by_seed.values()) / len(seeds)
        told = "  ".join(f"{kind} {value:.4f}" for kind, value in means.items())
        print(f"{name:<16} {peer:<20} {told}  {seconds:.1f} s", flush=True)
    return saved


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="folder with NAME.npz files")
    parser.add_argument("--only", nargs="+", metavar="TRIAL", default=DEFAULT)
    parser.add_argument("--splits", type=int, default=3, help="at most three")
    parser.add_argument("--users", type=int, help="at most so many users of each data set")
    asked = parser.parse_args(arguments)
    for name in asked.only:
        if not (asked.data / f"{TRIALS[name].file}.npz").is_file():
            print(f"{name}: left out, as there is no {TRIALS[name].file}.npz in --data.")
            continue
        saved = run(name, asked.data, SEEDS[: asked.splits], asked.users)
        ours = saved.pop("HierarchicalRanker")
        for peer, theirs in saved.items():
            for one in compare(theirs, ours):
                interval = f"{one.gain:+.4f} [{one.low:+.4f}, {one.high:+.4f}]"
                print(f"    over {peer:<14} {one.measure:<11} {interval}  {one.word}", flush=True)


if __name__ == "__main__":
    main()
