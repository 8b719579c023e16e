"""Wide features: how the learned prior grows with them, beside the pooled model.

Simulated pairs of embeddings whose variances fall like 1/j along hidden axes: a crowd that agrees,
one of three schools, one whose people differ gradually in two ways, and one that answers at random.

python -m benchmarks.wide --draws 8 --features 1024 [--users 1000] [--crowds agree schools]

draws crowds anew, again and again, and says by how much the learned prior is ahead of the pooled
model on held-out pairs, with standard errors over people and over draws. With --time, it only says
how long one fit of each takes, by the clock and the processor.
"""

import argparse
import resource
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.fft import dct
from sklearn.linear_model import LogisticRegression

from benchmarks.results import Result, at_most
from likeminds import Annotations, HierarchicalRanker
from likeminds._util.array_types import Bool, Float, FloatArray, Index

CROWDS = ("agree", "schools", "gradual", "noise")
# Pairs that everybody judges, and those of them that are held out.
N_PAIRS, N_HELD_OUT = 26, 6
# What scores of pairs differ by: because of the consensus, and because of the school.
CONSENSUS, SCHOOL, N_SCHOOLS = 2.0, 1.5, 3
# Penalties that the pooled model chooses from, by a fifth of the pairs.
PENALTIES = 10.0 ** np.arange(-3.0, 3.0, 0.5)
_AT_ONCE = 500


@dataclass(frozen=True)
class Pairs:
    """Who judged which pair: the winner's features first."""

    users: Index
    winners: FloatArray
    losers: FloatArray

    def take(self, chosen: Bool) -> "Pairs":
        """Return some of the pairs."""
        return Pairs(self.users[chosen], self.winners[chosen], self.losers[chosen])

    @property
    def annotations(self) -> Annotations:
        """The pairs as choices."""
        number = np.arange(len(self.users))
        features = (self.winners, self.losers)
        return Annotations.from_comparisons(
            self.users, number, number + len(number), features=features
        )


def simulate(kind: str, n_users: int, n_features: int, seed: int = 0) -> Pairs:
    """Draw a crowd's pairs, in single precision."""
    rng = np.random.default_rng(seed)
    variance = 1.0 / np.arange(1, n_features + 1)
    variance /= variance.sum()
    signs = rng.choice([-1.0, 1.0], size=(2, n_features))

    def weights(size: float) -> Float:
        drawn = rng.standard_normal(n_features)
        return np.asarray(drawn * size / np.sqrt(2.0 * (drawn**2) @ variance))

    W = np.zeros((N_SCHOOLS, n_features))
    if kind != "noise":
        W += weights(CONSENSUS)
    if kind == "schools":
        W += [weights(SCHOOL) for _ in range(N_SCHOOLS)]
    users = np.repeat(np.arange(n_users), N_PAIRS)
    school = rng.integers(0, N_SCHOOLS, size=n_users)
    if kind == "gradual":
        ways = np.array([weights(SCHOOL / np.sqrt(2.0)) for _ in range(2)])
        W = W[0] + rng.standard_normal((n_users, 2)) @ ways
        school = np.arange(n_users)
    sides = np.empty((2, len(users), n_features), dtype=np.float32)
    for start in range(0, len(users), _AT_ONCE):
        part = slice(start, start + _AT_ONCE)
        own = users[part]
        items = rng.standard_normal((2, len(own), n_features)) * np.sqrt(variance)
        scores = np.einsum("nd,nd->n", items[0] - items[1], W[school[own]])
        wins = (scores + rng.logistic(size=len(own)) > 0)[:, None]
        # Two cosine transforms with signs between them hide the axes.
        seen = dct(signs[1] * dct(signs[0] * items, norm="ortho"), norm="ortho")
        sides[0, part], sides[1, part] = np.where(wins, *seen), np.where(wins, *seen[::-1])
    return Pairs(users, *sides)


def run(quick: bool) -> Result:
    """Fit crowds of growing width, and each kind of crowd at the largest."""
    n_users = 60 if quick else 1000
    widths = (16, 300) if quick else (64, 256, 1024, 4096)
    rows = [_measured("schools", n_users, width) for width in widths]
    rows += [_measured(kind, n_users, widths[-1]) for kind in CROWDS if kind != "schools"]
    behind = max(row["behind"] for row in rows if row["features"] == widths[-1])
    widest = rows[len(widths) - 1]["seconds"]
    judge = not quick
    return Result(
        title="Wide features",
        compares=f"{n_users:,} people with {N_PAIRS - N_HELD_OUT} pairs of embeddings each, and "
        f"{N_HELD_OUT} more held out: the learned prior beside the pooled model (a logistic "
        "regression of differences, its penalty chosen by held-out pairs) and one BLAS pass over "
        "the pairs (their differences times as many vectors as a step of learning has).",
        tables=[
            {
                "columns": [
                    *("crowd", "features", "wide", "CPU seconds", "over one BLAS pass"),
                    *("directions", "accuracy", "pooled", "its CPU seconds", "standard error"),
                ],
                "rows": [_row(found) for found in rows],
            }
        ],
        goals=[
            at_most("CPU seconds at 4,096 features, schools", 60.0, widest, judge=judge),
            at_most("standard errors behind the pooled model, at most", 1.0, behind, judge=judge),
        ],
        notes=["CPU seconds of all threads, so that other work on the machine counts little."],
        series={"features": list(widths), "seconds": [row["seconds"] for row in rows]},
    )


def _row(found: dict[str, Any]) -> list[Any]:
    names = ("crowd", "features", "wide", "seconds", "ratio", "directions")
    names += ("accuracy", "pooled", "pooled seconds", "error")
    return [found[name] for name in names]


def _measured(kind: str, n_users: int, n_features: int, seed: int = 0) -> dict[str, Any]:
    pairs = simulate(kind, n_users, n_features, seed)
    held_out = np.arange(len(pairs.users)) % N_PAIRS >= N_PAIRS - N_HELD_OUT
    train, test = pairs.take(~held_out), pairs.take(held_out)
    del pairs
    said = train.annotations
    ranker, seconds = _timed(lambda: HierarchicalRanker(item_effects=False).fit(said))
    apart = train.winners - train.losers
    thin = np.ones((n_features, 1 + ranker.n_groups_), dtype=np.float32)
    floor = min(_timed(lambda: apart.T @ (apart @ thin))[1] for _ in range(3))
    weights, pooled_seconds = _timed(lambda: _pooled(apart))
    right = ranker.decision_function(test.winners, test.users)
    right = right > ranker.decision_function(test.losers, test.users)
    pooled_right = (test.winners - test.losers) @ weights > 0
    by_user = (right.astype(float) - pooled_right).reshape(n_users, N_HELD_OUT).mean(axis=1)
    error = float(by_user.std() / np.sqrt(n_users))
    return {
        "crowd": kind,
        "features": n_features,
        "wide": "yes" if ranker.wide_ else "no",
        "seconds": seconds,
        "ratio": seconds / floor,
        "directions": ranker.n_groups_,
        "accuracy": 100.0 * float(right.mean()),
        "pooled": 100.0 * float(pooled_right.mean()),
        "pooled seconds": pooled_seconds,
        "error": 100.0 * error,
        "ahead": 100.0 * float(by_user.mean()),
        "behind": -float(by_user.mean()) / max(error, 1e-12),
    }


def _timed(work: Callable[[], Any]) -> tuple[Any, float]:
    start = time.process_time()
    found = work()
    return found, max(time.process_time() - start, 1e-6)


def _pooled(apart: FloatArray) -> Float:
    """Return the weights of a logistic regression, its penalty chosen by a fifth of the pairs."""
    rng = np.random.default_rng(0)
    sign = rng.choice([-1.0, 1.0], size=len(apart)).astype(apart.dtype)
    turned, judges = apart * sign[:, None], rng.random(len(apart)) < 0.2
    unit = float(np.square(apart).sum(axis=1).mean())
    best, found = -np.inf, 0.0
    for penalty in PENALTIES:
        model = LogisticRegression(C=penalty * 100.0 / unit, fit_intercept=False, max_iter=100)
        model.fit(turned[~judges], sign[~judges])
        right = model.score(turned[judges], sign[judges])
        if right > best:
            best, found = right, model.C
    model = LogisticRegression(C=found, fit_intercept=False, max_iter=200).fit(turned, sign)
    return np.asarray(model.coef_[0], dtype=np.float64)


def draws(kind: str, n_users: int, n_features: int, n_draws: int) -> dict[str, Any]:
    """Return by how much the learned prior is ahead over several draws, in points of accuracy."""
    found = [_measured(kind, n_users, n_features, seed) for seed in range(n_draws)]
    ahead = np.array([one["ahead"] for one in found])
    return {
        "crowd": kind,
        "features": n_features,
        "draws": n_draws,
        "accuracy": round(float(np.mean([one["accuracy"] for one in found])), 2),
        "ahead": round(float(ahead.mean()), 2),
        "standard error over draws": round(float(ahead.std(ddof=1) / np.sqrt(n_draws)), 2),
        "least, in standard errors over people": round(min(-one["behind"] for one in found), 2),
        "directions": [one["directions"] for one in found],
        "CPU seconds": round(float(np.mean([one["seconds"] for one in found])), 1),
    }


def _time(kind: str, n_users: int, n_features: int) -> dict[str, float]:
    """Return what a fit takes, and the peak memory with the data in it."""
    pairs = simulate(kind, n_users, n_features)
    said = pairs.take(np.arange(len(pairs.users)) % N_PAIRS < N_PAIRS - N_HELD_OUT).annotations
    del pairs
    started = time.perf_counter()
    _, cpu = _timed(lambda: HierarchicalRanker(item_effects=False).fit(said))
    wall = time.perf_counter() - started
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    return {"seconds": round(wall, 1), "CPU seconds": round(cpu, 1), "peak GiB": round(peak, 2)}


def main() -> None:
    """Draw crowds, and print a line for each kind and width."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=8)
    parser.add_argument("--features", type=int, nargs="+", default=[256, 1024, 4096])
    parser.add_argument("--users", type=int, default=1000)
    parser.add_argument("--crowds", choices=CROWDS, nargs="+", default=CROWDS)
    parser.add_argument("--time", action="store_true")
    asked = parser.parse_args()
    for n_features in asked.features:
        for kind in asked.crowds:
            if asked.time:
                print(kind, n_features, _time(kind, asked.users, n_features), flush=True)
                continue
            print(draws(kind, asked.users, n_features, asked.draws), flush=True)


if __name__ == "__main__":
    main()
