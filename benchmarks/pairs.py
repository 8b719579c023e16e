"""Jokes turned into comparisons: ``python -m benchmarks.pairs --data FOLDER``.

FOLDER holds ``jokes.npz`` with ``user``, ``item`` and ``grade``. Of everybody's jokes, pairs with
different grades are drawn; the higher grade wins. A part of the people are unseen: methods are
told 0, 5 or 10 of their pairs and judged on the others, those seen on pairs that were held out.
Jokes are known by their ids alone. Writes ``pairs.json`` and, between two marks, the tables of
``comparisons.md``.
"""

import argparse
import json
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from sklearn.linear_model import LogisticRegression

from benchmarks.accuracy import ROOT
from benchmarks.low_rank_reward import LowRankReward, sides
from benchmarks.shared_page import BEGIN, END
from likeminds import Annotations, HierarchicalRanker, score_choices
from likeminds._util.array_types import Float
from likeminds._util.atomic_files import write_whole
from likeminds._util.checks import listing
from likeminds._util.text_format import counted
from likeminds.data.identifiers import lookup
from likeminds.data.splits import order_within_users
from likeminds.metrics.choices import ChoiceScores
from likeminds.metrics.paired import over_users
from likeminds.mixed_model.choice_probabilities import chances_of_sets

SEEDS = (10, 11, 12)
SHOTS = (0, 5, 10)
# Everybody's pairs, and how many of them are held out of those seen.
N_PAIRS, N_HELD_OUT = 40, 10
UNSEEN = 1 / 3
OURS = "HierarchicalRanker"

# By group of people, and how many of their pairs were told.
Judged = dict[str, ChoiceScores]


@dataclass(frozen=True)
class Split:
    """What methods learn from, and what they are judged on."""

    train: Annotations
    seen: Annotations
    told: Annotations
    unseen: Annotations

    def shots(self, k: int) -> Annotations | None:
        """Return the first k pairs of everybody unseen."""
        place = np.zeros(len(self.told), dtype=np.intp)
        order, offsets = self.told.user_index()
        place[order] = (np.arange(len(order)) - np.repeat(offsets[:-1], np.diff(offsets))) // 2
        return self.told[place < k] if k else None


def read_pairs(path: Path, seed: int, most: int | None = None) -> Annotations:
    """Draw pairs of jokes that a person gave different grades."""
    with np.load(path, allow_pickle=False) as data:
        user, item, grade = data["user"], data["item"], data["grade"]
    rng = np.random.default_rng(seed)
    positions = np.unique(user)
    positions = positions if most is None else rng.choice(positions, most, replace=False)
    rows: list[tuple[int, int, int]] = []
    for person in positions:
        mine = np.flatnonzero(user == person)
        found: set[tuple[int, int]] = set()
        for a, b in rng.choice(mine, (8 * N_PAIRS, 2)):
            if grade[a] == grade[b] or len(found) == N_PAIRS:
                continue
            won, lost = (a, b) if grade[a] > grade[b] else (b, a)
            found.add((int(item[won]), int(item[lost])))
        rows += [(int(person), *pair) for pair in sorted(found)]
    users, winners, losers = np.array(rows).T
    return Annotations.from_comparisons(users, winners, losers)


def split(said: Annotations, seed: int) -> Split:
    """Set people apart, and pairs of the others; and of the former, those that are told."""
    rng = np.random.default_rng(seed)
    strangers = rng.random(said.n_users) < UNSEEN
    place = order_within_users(said, rng)
    new = strangers[said.user_codes]
    told = place < max(SHOTS)
    held_out = place < N_HELD_OUT
    return Split(said[~new & ~held_out], said[~new & held_out], said[new & told], said[new & ~told])


class Method(Protocol):
    """Something that learns from pairs, and scores items for people."""

    def fit(self, train: Annotations) -> "Method":
        """Learn."""
        ...

    def predict(self, said: Annotations, told: Annotations | None) -> tuple[Float, Float | None]:
        """Return scores, and probabilities where they are not those of the scores as log-odds.

        ``told`` are pairs of people who were not there when it learned.
        """
        ...


class PooledBradleyTerry:
    """One score for each item, the same for everybody: penalised maximum likelihood."""

    def fit(self, train: Annotations) -> "PooledBradleyTerry":
        """Fit a logistic regression of differences, with a penalty that hardly matters."""
        won, lost = sides(train)
        rows = np.zeros((len(won), train.n_items))
        rows[np.arange(len(won)), won], rows[np.arange(len(won)), lost] = 1.0, -1.0
        both, outcome = np.vstack([rows, -rows]), np.repeat([1, 0], len(won))
        found = LogisticRegression(C=10.0, fit_intercept=False, max_iter=1000).fit(both, outcome)
        self.points_ = found.coef_[0]
        return self

    def predict(
        self,
        said: Annotations,
        told: Annotations | None,  # noqa: ARG002 - it is the same for all
    ) -> tuple[Float, None]:
        """Return everybody's scores."""
        return self.points_[said.item_codes], None


class LearnedPrior:
    """`HierarchicalRanker`, whose probabilities know how little it knows of a person."""

    def fit(self, train: Annotations) -> "LearnedPrior":
        """Fit it as it is."""
        self.ranker_ = HierarchicalRanker(unknown="consensus").fit(train)
        return self

    def predict(self, said: Annotations, told: Annotations | None) -> tuple[Float, Float | None]:
        """Return scores, and the posterior's probabilities."""
        posterior = self.ranker_._posterior() if told is None else self.ranker_.newcomer(told)
        users = lookup(said.users, posterior.users, "users")
        if told is None:
            scores = self.ranker_.decision_function(said)
        else:
            scores = posterior.decision_function(said, said.users)
        return scores, chances_of_sets(posterior, said, scores, users)


METHODS: dict[str, Callable[[], Method]] = {
    OURS: LearnedPrior,
    "low-rank reward": LowRankReward,
    "pooled Bradley-Terry": PooledBradleyTerry,
}


def judge(method: Method, parts: Split) -> Judged:
    """Return what a method gets on people seen, and on people unseen."""
    method.fit(parts.train)
    found: Judged = {"seen": score_choices(parts.seen, *method.predict(parts.seen, None))}
    for k in SHOTS:
        predicted = method.predict(parts.unseen, parts.shots(k))
        found[f"new, {k} pairs"] = score_choices(parts.unseen, *predicted)
    return found


def measure(path: Path, seed: int, most: int | None) -> list[dict[str, Any]]:
    """Run all methods on one draw; return rows of the tables."""
    parts = split(read_pairs(path, seed, most), seed)
    rows: list[dict[str, Any]] = []
    judged: dict[str, Judged] = {}
    for name, make in METHODS.items():
        started = time.process_time()
        judged[name] = judge(make(), parts)
        seconds = time.process_time() - started
        for who, found in judged[name].items():
            row = _row(seed, name, who, found, judged[OURS][who]) | {"seconds": seconds}
            rows.append(row)
            print(json.dumps(row), flush=True)
    return rows


def _row(seed: int, name: str, who: str, found: ChoiceScores, ours: ChoiceScores) -> dict[str, Any]:
    """Return means, and how much better the learned prior is, person by person."""
    row: dict[str, Any] = {"seed": seed, "method": name, "people": who}
    row["n_users"] = found.accuracy.n_defined
    for measure_, sign in (("accuracy", 1.0), ("log_loss", -1.0)):
        metric, best = getattr(found, measure_), getattr(ours, measure_)
        ahead = over_users(sign * (best.values - metric.values))
        error = (ahead.high - ahead.mean) / 1.96
        row |= {measure_: metric.mean, f"{measure_}_error": metric.standard_error}
        row |= {f"{measure_}_ahead": ahead.mean, f"{measure_}_ahead_error": error}
    return row


def tables(rows: Sequence[dict[str, Any]]) -> str:
    """Return the tables of the page: means over seeds."""
    seeds = list(dict.fromkeys(row["seed"] for row in rows))
    n_users = sum(row["n_users"] for row in rows[:2])
    parts = [f"{n_users:,} people; {counted(len(seeds), 'draw')}, with seeds {listing(seeds)}."]
    groups = list(dict.fromkeys(row["people"] for row in rows))
    for measure_, title in (("accuracy", "Accuracy"), ("log_loss", "Log loss")):
        lines = [f"| {title} | " + " | ".join(groups) + " |", "|---" * (len(groups) + 1) + "|"]
        for name in dict.fromkeys(row["method"] for row in rows):
            cells = []
            for who in groups:
                mine = [r for r in rows if r["method"] == name and r["people"] == who]
                mean = np.mean([row[measure_] for row in mine])
                cells.append(f"{mean:.3f}".removeprefix("0"))
                if name != OURS:
                    ahead = np.mean([row[f"{measure_}_ahead"] for row in mine])
                    error = np.mean([row[f"{measure_}_ahead_error"] for row in mine])
                    cells[-1] += f" ({ahead:+.3f} ± {error:.3f})"
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
        parts.append("\n".join(lines))
    return "\n\n".join(parts)


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, required=True, help="the folder of jokes.npz")
    parser.add_argument("--users", type=int, help="only so many, drawn at random")
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="where the page is")
    asked = parser.parse_args(arguments)
    rows: list[dict[str, Any]] = []
    for seed in asked.seeds:  # so that a run that is interrupted has whole draws
        rows += measure(asked.data / "jokes.npz", seed, asked.users)
        write_whole(asked.out / "pairs.json", json.dumps({"rows": rows}, indent=1).encode())
        _write(asked.out / "how-to" / "comparisons.md", tables(rows))


def _write(page: Path, measured: str) -> None:
    """Put the tables between the marks of a page."""
    text = page.read_text(encoding="utf-8") if page.is_file() else f"{BEGIN}\n{END}\n"
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    page.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
