"""Coverage of the intervals of leaderboards: ``python -m benchmarks.leaderboards``.

Two schools of 30 judges each compare 8 models; true scores of the second school are those of the
first in reverse order. Judges may also deviate from their school. Writes ``leaderboards.json``:
the shares of true scores and ranks in 90 % intervals, and the slope of true scores on estimated
ones. They are those of everyone, of each school that is found, and of its true members.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from benchmarks.accuracy import ROOT
from likeminds import Annotations, HierarchicalRanker, find_schools, leaderboard
from likeminds._util.array_types import Float

_JUDGES, _MODELS = 60, 8
# Deviation of judges from their school, and number of votes.
SETTINGS = {"one opinion, 3,000 votes": (0.0, 3000), "deviations, 3,000 votes": (0.3, 3000)}
SETTINGS |= {"one opinion, 1,000 votes": (0.0, 1000)}


def simulate(seed: int, deviation: float, n: int) -> tuple[Annotations, Float]:
    """Return votes, and the true scores of each judge."""
    rng = np.random.default_rng(1000 + seed)
    worth = rng.normal(size=_MODELS)
    own = np.stack([worth, worth[::-1]])[np.arange(_JUDGES) % 2]
    own = own + deviation * rng.normal(size=own.shape)
    own -= own.mean(axis=1, keepdims=True)
    judge, a = rng.integers(_JUDGES, size=n), rng.integers(_MODELS, size=n)
    b = (a + rng.integers(1, _MODELS, size=n)) % _MODELS
    first = rng.logistic(size=n) < own[judge, a] - own[judge, b]
    won, lost = np.where(first, a, b), np.where(first, b, a)
    return Annotations.from_comparisons(judge, won, lost), own


def coverage(deviation: float, n: int, n_seeds: int) -> dict[str, float]:
    """Return mean shares over simulations in which two schools were found."""
    found: dict[str, list[float]] = {}
    for seed in range(n_seeds):
        votes, own = simulate(seed, deviation, n)
        ranker = HierarchicalRanker().fit(votes)
        schools = find_schools(ranker, n_schools=2)
        groups = [("everyone", np.arange(_JUDGES))]
        for school in schools:
            members = schools.members(school.number)
            kind = int((members % 2).mean() > 0.5)
            groups += [("schools", members), ("true members", np.arange(kind, _JUDGES, 2))]
        for name, users in groups if len(schools) == 2 else ():
            board = leaderboard(ranker, users.tolist(), level=0.9)
            truth = own[users].mean(axis=0)
            true = truth[board.items]
            rank = 1 + (truth > true[:, None]).sum(axis=1)
            inside = (board.low <= true) & (true <= board.high)
            ranked = (board.rank_low <= rank) & (rank <= board.rank_high)
            found.setdefault(f"{name}, scores", []).append(float(inside.mean()))
            found.setdefault(f"{name}, ranks", []).append(float(ranked.mean()))
            slope = float(board.scores @ true / (board.scores @ board.scores))
            found.setdefault(f"{name}, slope", []).append(slope)
    return {name: float(np.mean(values)) for name, values in found.items()}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one setting, one simulation")
    parser.add_argument("--out", type=Path, default=ROOT / "docs", help="folder of the file")
    chosen = parser.parse_args(arguments)
    settings = dict(list(SETTINGS.items())[:1]) if chosen.quick else SETTINGS
    n_seeds = 1 if chosen.quick else 40
    results = {name: coverage(*setting, n_seeds) for name, setting in settings.items()}
    (chosen.out / "leaderboards.json").write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
