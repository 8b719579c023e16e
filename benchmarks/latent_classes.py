"""Latent classes compared with the learned prior: ``python -m benchmarks.latent_classes``.

Writes docs/latent-classes.json, which docs/how-to/choice-experiments.md quotes
(``python -m tools.quoted_numbers``). Log-likelihoods are those of all choices of the electricity
data. The comparison holds out 30 % of each household's choices.
"""

import json
import time
from pathlib import Path

import numpy as np

from likeminds import (
    HierarchicalRanker,
    LatentClassRanker,
    load_electricity,
    score_choices,
    split_within_users,
)

PAGE = Path(__file__).parents[1] / "docs" / "latent-classes.json"


def main(path: Path, seeds: range = range(3), n_starts: int = 20, most: int = 10) -> None:
    """Write criteria by number of classes, and scores on held-out choices."""
    homes = load_electricity()
    rankers = {str(k): LatentClassRanker(k, n_starts=n_starts) for k in range(1, 5)}
    by_bic = LatentClassRanker(n_starts=n_starts, max_classes=most)
    found = {
        "criteria": {name: ranker.fit(homes).selection_[0] for name, ranker in rankers.items()},
        "classes by BIC": by_bic.fit(homes).n_classes_,
        "held out": {
            name: _scores(ranker, seeds)
            for name, ranker in {**rankers, "BIC": by_bic, "prior": HierarchicalRanker()}.items()
        },
    }
    path.write_text(json.dumps(found, indent=1) + "\n")


def _scores(ranker: LatentClassRanker | HierarchicalRanker, seeds: range) -> dict[str, float]:
    """Return log loss, accuracy and processor seconds of a fit, means over splits."""
    found = []
    for seed in seeds:
        train, test = split_within_users(load_electricity(), 0.3, random_state=seed)
        start = time.process_time()
        ranker.fit(train)
        seconds = time.process_time() - start
        chances = ranker.predict_proba(test)[:, 1]
        scores = score_choices(test, ranker.decision_function(test), chances)
        means = np.nanmean(scores.log_loss.values), np.nanmean(scores.accuracy.values)
        found.append([*means, seconds])
    return dict(zip(("log_loss", "accuracy", "seconds"), np.mean(found, axis=0), strict=True))


if __name__ == "__main__":
    main(PAGE)
