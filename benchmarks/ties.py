"""Ties by Davidson's model and as half wins: ``python -m benchmarks.ties``.

Simulated users compare items. In some crowds, ties follow the model of Davidson. In others, a pair
is tied if the noisy difference of its scores is below a threshold, which fits neither model. Both
models predict held-out pairs without a tie. That of Davidson also predicts the share of ties.

Writes docs/ties.json and its table in docs/how-to/comparisons.md.
"""

import argparse
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tables import DOCS, markdown, publish
from likeminds import Annotations, HierarchicalRanker
from likeminds._util.array_types import Bool, Float
from likeminds.metrics.paired import over_users

N_USERS, N_ITEMS, N_PAIRS, N_HELD_OUT = 100, 25, 30, 15


@dataclass(frozen=True)
class Crowd:
    """Users who compare items: scores are an item effect plus a factor.

    Attributes
    ----------
    nu : float
        The parameter of ties in Davidson's model, or the threshold of differences.
    is_threshold : bool
        Whether pairs are tied below a threshold.
    """

    nu: float
    is_threshold: bool = False

    def draw(self, seed: int) -> tuple[Float, Float, Float, Bool]:
        """Return users, items of both sides with the winner first, and ties."""
        rng = np.random.default_rng(seed)
        scores = rng.normal(size=N_ITEMS) + np.outer(
            rng.normal(size=N_USERS), rng.normal(size=N_ITEMS)
        )
        user = np.repeat(np.arange(N_USERS), N_PAIRS + N_HELD_OUT)
        a = rng.integers(N_ITEMS, size=len(user))
        b = (a + rng.integers(1, N_ITEMS, size=len(user))) % N_ITEMS
        apart = scores[user, a] - scores[user, b]
        if self.is_threshold:
            apart = apart + rng.logistic(size=len(user))
            won, tied = apart > 0, np.abs(apart) < self.nu
        else:
            terms = np.exp([apart / 2, -apart / 2, np.full(len(user), np.log(self.nu))])
            up_to = np.cumsum(terms / terms.sum(axis=0), axis=0)
            place = (up_to < rng.random(len(user))).sum(axis=0)
            won, tied = place != 1, place == 2
        return user, np.where(won, a, b), np.where(won, b, a), tied


CROWDS = {
    "Davidson, few ties": Crowd(0.3),
    "Davidson, many ties": Crowd(1.5),
    "threshold, few ties": Crowd(0.3, is_threshold=True),
    "threshold, many ties": Crowd(1.2, is_threshold=True),
}


def measure(crowd: Crowd, seed: int) -> dict[str, float]:
    """Return losses on held-out pairs of both models, and the shares of ties."""
    pairs = crowd.draw(seed)
    *_, tied = pairs
    is_known = np.tile(np.arange(N_PAIRS + N_HELD_OUT) < N_PAIRS, N_USERS)
    decided = Annotations.from_comparisons(*(one[~is_known & ~tied] for one in pairs[:3]))
    rows = {"ties": float(tied.mean())}
    for model in ("davidson", "half"):
        train = Annotations.from_comparisons(*(one[is_known] for one in pairs), tie_model=model)
        ranker = HierarchicalRanker().fit(train)
        chance = ranker.predict_proba(decided)[decided.labels, 1]
        rows[f"{model} loss"] = float(-np.log(chance).mean())
        rows[f"{model} accuracy"] = float((chance > 0.5).mean())
        if model == "davidson":
            held_out = Annotations.from_comparisons(*(one[~is_known] for one in pairs[:3]))
            found = ranker.probability_tied(held_out[::2], held_out[1::2], held_out.users[::2])
            rows["predicted ties"] = float(found.mean())
            rows["tie loss"], rows["constant"] = (
                float(-np.log(np.where(tied[~is_known], p, 1.0 - p)).mean())
                for p in (found, np.full(len(found), tied[is_known].mean()))
            )
    return rows


def measured(n_draws: int, crowds: dict[str, Crowd]) -> dict[str, Any]:
    """Return means over draws, and differences with their 95 % intervals."""
    rows: dict[str, Any] = {}
    for name, crowd in crowds.items():
        found = [measure(crowd, seed) for seed in range(n_draws)]
        columns = {key: np.array([one[key] for one in found]) for key in found[0]}
        gains = {
            "loss": columns["half loss"] - columns["davidson loss"],
            "accuracy": columns["davidson accuracy"] - columns["half accuracy"],
            "tie loss": columns["constant"] - columns["tie loss"],
        }
        rows[name] = {key: float(values.mean()) for key, values in columns.items()}
        for key, values in gains.items():
            paired = over_users(values)
            rows[name][f"{key} gain"] = [paired.mean, paired.low, paired.high]
    return {"draws": n_draws, "rows": rows}


def as_table(found: dict[str, Any]) -> str:
    """Return a row for each crowd."""
    head = ["ties", "tied", "predicted", "log loss", "half wins", "gain", "gain in accuracy"]
    rows = []
    for name, row in found["rows"].items():
        loss, accuracy = (
            _interval(row[f"{key} gain"], scale, digits)
            for key, scale, digits in (("loss", 1, 4), ("accuracy", 100, 1))
        )
        shares = [f"{row[key]:.1%}" for key in ("ties", "predicted ties")]
        losses = [f"{row[f'{model} loss']:.4f}" for model in ("davidson", "half")]
        rows.append([name, *shares, *losses, loss, accuracy])
    return markdown(head, rows)


def _interval(values: list[float], scale: float, digits: int) -> str:
    mean, low, high = (f"{scale * value:+.{digits}f}" for value in values)
    return f"{mean} [{low}, {high}]"


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=10)
    found = measured(parser.parse_args(arguments).draws, CROWDS)
    print(as_table(found))
    publish("ties", found, DOCS / "how-to" / "comparisons.md", as_table(found))


if __name__ == "__main__":
    main()
