"""Draw docs/next-items.png, the AUC of new users by label: python -m tools.next_items_picture.

New users of a crowd of `make_schools` label one item after the other: items that `next_items`
chooses, or random items. Labels follow the users' true weights, with the simulation's noise. The
AUC is that of other items.
"""

from pathlib import Path

import matplotlib as mpl
import numpy as np

from likeminds import HierarchicalRanker, make_schools, plots
from likeminds._util.array_types import Float

DOCS = Path(__file__).parents[1] / "docs"
SIZES = (0, 1, 2, 3, 5, 8, 12, 16, 24, 32)


def learning_curves(
    seed: int, *, n_there: int = 150, n_new: int = 30, sizes: tuple[int, ...] = SIZES
) -> dict[str, Float]:
    """Return the mean AUC of new users by number of labels, shape (n_sizes,), by choice."""
    crowd = make_schools(n_there + n_new, 40, 400, 20, 3, random_state=seed)
    said = crowd.annotations
    ranker = HierarchicalRanker().fit(said.of_users(said.user_ids[:n_there]))
    rng = np.random.default_rng(seed)
    pool, unseen = rng.standard_normal((2, 150, 20))
    curves = {
        "random items": np.zeros(len(sizes)),
        "items chosen by next_items": np.zeros(len(sizes)),
    }
    for weights in crowd.coef[n_there:]:
        scores = pool @ weights
        answers = (scores > np.quantile(scores, 0.7)) ^ (rng.random(len(pool)) < 0.05)
        truth = unseen @ weights
        liked = truth > np.quantile(truth, 0.7)
        orders = {
            "random items": rng.permutation(len(pool))[: max(sizes)].tolist(),
            "items chosen by next_items": _asked(ranker, pool, answers, max(sizes)),
        }
        for name, order in orders.items():
            for place, size in enumerate(sizes):
                rows = order[:size]
                found = unseen @ ranker.newcomer(pool[rows], answers[rows]).coef[0]
                right = found[liked][:, None] > found[~liked]
                curves[name][place] += right.mean() / n_new
    return curves


def _asked(ranker: HierarchicalRanker, pool: Float, answers: Float, most: int) -> list[int]:
    """Choose one item at a time, given the labels of the items before it."""
    order: list[int] = []
    for _ in range(most):
        rest = np.setdiff1d(np.arange(len(pool)), order)
        known = ranker.newcomer(pool[order], answers[order])
        order.append(int(rest[known.next_items(pool[rest], n=1)[0]]))
    return order


def main() -> None:
    """Draw the mean over five crowds."""
    mpl.use("Agg")
    runs = [learning_curves(seed) for seed in range(5)]
    values = {name: np.column_stack([100 * run[name] for run in runs]) for name in runs[0]}
    gain = (values["items chosen by next_items"] - values["random items"]).mean(axis=1)
    best = int(gain.argmax())
    axes = plots.learning_curves(
        SIZES,
        values,
        title=f"Chosen items raise the AUC most with {SIZES[best]} labels: "
        f"+{gain[best]:.1f} points",
        size_label="labels of a new user",
        label="AUC on other items, per cent",
    )
    axes.figure.savefig(DOCS / "next-items.png", dpi=120, bbox_inches="tight")
    for size, *row in zip(SIZES, *(values[name].mean(axis=1) for name in values), strict=True):
        print(size, *(f"{value:.1f}" for value in row))


if __name__ == "__main__":
    main()
